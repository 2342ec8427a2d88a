// The KV cache of a layer as kernels see it.
#pragma once

#include "cuda/device/view.cuh"

namespace aerie::cuda {

struct CacheView {
    std::byte *k_data, *v_data;
    size_t k_stride, v_stride;  // elements
    View<const int32_t> pages;

    CacheView() = default;
    explicit CacheView(const KvLayer& kv)
        : k_data(aerie::cuda::row<std::byte>(kv.k, 0)),
          v_data(aerie::cuda::row<std::byte>(kv.v, 0)),
          k_stride(size_t(kv.k.row_stride)),
          v_stride(size_t(kv.v.row_stride)),
          pages(kv.page_table) {}

    // The row of the cache that holds a slot of a sequence (see KvLayer).
    __device__ size_t row(int sequence, int slot) const {
        return size_t(pages[sequence][slot / kPageSize]) * kPageSize + size_t(slot % kPageSize);
    }
    template <class T>
    __device__ T* k(size_t row) const {
        return reinterpret_cast<T*>(k_data) + row * k_stride;
    }
    template <class T>
    __device__ T* v(size_t row) const {
        return reinterpret_cast<T*>(v_data) + row * v_stride;
    }
};

}  // namespace aerie::cuda
