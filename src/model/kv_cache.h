// Paged keys and values of one model: 64 consecutive logical positions a page.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"

namespace aerie {

struct KvShape {
    int layers = 0;
    int columns = 0;  // kv_heads * head_dim
    DType dtype = DType::F16;
    int slots = 0;  // context plus draft slots

    int pages() const { return (slots + kPageSize - 1) / kPageSize; }
    size_t size_bytes() const;  // of everything that KvCache allocates
};

class KvCache {
  public:
    KvCache(Backend& be, const KvShape& shape);

    KvLayer layer(int i) const { return layers_[size_t(i)]; }
    int layers() const { return int(layers_.size()); }

    // Which physical page holds each logical page: a permutation of 0 .. pages-1. Drops nothing,
    // but what was written before is then found elsewhere.
    void set_pages(std::span<const int32_t> pages);

    // Moves accepted rows down in every layer: KvMoves, as KvCompact in ops.h wants them.
    void compact(Tensor moves);

  private:
    Backend& be_;
    std::vector<Buffer> memory_;  // one a layer: a device may limit a single allocation
    Buffer page_memory_;
    Tensor page_table_;
    std::vector<KvLayer> layers_;
};

}  // namespace aerie
