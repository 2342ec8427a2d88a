// One allocation a layer; the page table starts as the identity.
#include "model/kv_cache.h"

#include <numeric>

namespace aerie {

size_t KvShape::size_bytes() const {
    return size_t(layers) * 2 * dense_bytes(dtype, pages() * kPageSize, columns) +
           dense_bytes(DType::I32, 1, pages());
}

KvCache::KvCache(Backend& be, const KvShape& shape) : be_(be) {
    const int rows = shape.pages() * kPageSize;
    const size_t part_bytes = dense_bytes(shape.dtype, rows, shape.columns);
    page_memory_ = be.allocate(dense_bytes(DType::I32, 1, shape.pages()));
    page_table_ = dense(page_memory_.get(), DType::I32, 1, shape.pages());
    for (int i = 0; i < shape.layers; ++i) {
        memory_.push_back(be.allocate(2 * part_bytes));
        KvLayer layer;
        layer.k = layer.v = dense(memory_.back().get(), shape.dtype, rows, shape.columns);
        layer.v.offset_bytes = part_bytes;
        layer.page_table = page_table_;
        layers_.push_back(layer);
    }
    std::vector<int32_t> pages(size_t(shape.pages()));
    std::iota(pages.begin(), pages.end(), 0);
    set_pages(pages);
}

void KvCache::set_pages(std::span<const int32_t> pages) {
    be_.write(page_table_, pages.data());
}

void KvCache::compact(Tensor moves) {
    be_.run(KvCompact{layers_, moves});
}

}  // namespace aerie
