// Paged keys and values of one model: 64 consecutive logical positions a page. A sequence holds
// pages as it grows; sequences that begin alike share whole pages.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "core/saved.h"

namespace aerie {

struct KvShape {
    int layers = 0;
    int columns = 0;  // kv_heads * head_dim
    DType dtype = DType::F16;
    int slots = 0;  // of one sequence: context plus draft slots
    int sequences = 1;

    int pages() const { return int((int64_t(slots) + kPageSize - 1) / kPageSize); }  // of one text
    int64_t rows() const { return int64_t(sequences) * pages() * kPageSize; }  // of all texts
    size_t size_bytes() const;  // of everything that KvPool allocates; SIZE_MAX: more than counts
    // Throws Error, in the words of who asks for texts and positions, where rows are more than the
    // ints in which devices count them.
    void check_rows() const;
};

class KvPages;

// Dense rows of a device, to a file and back.
void save_rows(Backend& be, Tensor rows, SaveSink& to);
void load_rows(Backend& be, Tensor rows, SaveSource& from);

// Never gives memory back: devices keep recordings that name it.
class KvPool {
  public:
    KvPool(Backend& be, const KvShape& shape);  // throws Error
    KvPool(const KvPool&) = delete;  // pages know their pool
    KvPool& operator=(const KvPool&) = delete;

    KvLayer layer(int i) const { return layers_[size_t(i)]; }
    int layers() const { return int(layers_.size()); }

    // A sequence without pages. Throws Error if there are as many as the shape allows.
    KvPages begin();
    // Moves accepted rows down in every layer: KvMoves, as KvCompact in ops.h wants them.
    void compact(Tensor moves) { be_.run(KvCompact{layers_, moves}); }

    int free_pages() const { return int(free_.size()); }
    // Free pages are taken in this order from now on; all of them are named.
    void order_free_pages(std::span<const int32_t> pages);

  private:
    friend class KvPages;

    int32_t take_page();
    void give_back(int32_t page);

    Backend& be_;
    int pages_of_sequence_;
    std::vector<Buffer> memory_;  // one a layer: a device may limit a single allocation
    Buffer page_memory_;
    Tensor page_table_;  // [sequences, pages of one]
    std::vector<KvLayer> layers_;
    std::vector<int32_t> free_;  // the next one last
    std::vector<int> holders_;   // of each page
    std::vector<int> idle_;      // rows of the page table that no sequence has
};

// The pages of one sequence; given back at the end. The pool must outlive it.
class KvPages {
  public:
    KvPages(KvPages&& other) noexcept { *this = std::move(other); }
    KvPages& operator=(KvPages&& other) noexcept;
    ~KvPages() { close(); }

    int sequence() const { return sequence_; }  // as rows name it
    int slots() const { return int(pages_.size()) * kPageSize; }
    // Pages for slots [0, slots). Throws Error if the pool has not so many.
    void hold(int slots);
    // Keeps what was written below `slots`, as far as it may be written on: the end of a page that
    // others share is dropped too. Returns the slots that are left.
    int truncate(int slots);
    // A new sequence that shares the whole pages below `slots`.
    KvPages fork(int slots) const;

    int most_slots() const;
    // What was written below `slots`, of all layers, to a file and from one that had the same shape
    // and type. Throw Error.
    void save(SaveSink& to, int slots) const;
    void load(SaveSource& from, int slots);

  private:
    friend class KvPool;
    KvPages(KvPool& pool, int sequence);
    void each_run(int slots, const std::function<void(Tensor)>& visit) const;
    void add(int32_t page);
    void close();

    KvPool* pool_ = nullptr;
    int sequence_ = 0;
    std::vector<int32_t> pages_;
};

}  // namespace aerie
