// Paged keys and values of one model: a page is 64 consecutive slots. A sequence takes pages as
// it grows; sequences with a common prefix share whole pages and copy the rest.
#pragma once

#include <algorithm>
#include <atomic>
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
    int slots = 0;  // most of a sequence: context plus draft slots
    int sequences = 1;
    // Slots of all sequences together; 0: each has room for `slots`. There is room for the longest
    // sequence in any case.
    int64_t shared_slots = 0;

    int pages() const { return int(pages_of(slots)); }  // most of a sequence
    int64_t rows() const;                               // for all sequences
    static constexpr int64_t pages_of(int64_t slots) { return (slots + kPageSize - 1) / kPageSize; }
    size_t size_bytes() const;  // all memory that KvPool allocates; SIZE_MAX on overflow
    // Throws Error, in terms of sequences and positions, if there are more rows than fit in the
    // ints with which devices count them.
    void check_rows() const;
};

// KvShape::shared_slots for so many tokens of all sequences, each of which needs `extra` slots
// beyond its tokens; 0 for 0 tokens. The last page of a sequence is seldom full.
constexpr int64_t shared_slots(int64_t tokens, int sequences, int extra) {
    return tokens == 0 ? 0 : tokens + int64_t(sequences) * (extra + kPageSize);
}

class KvPages;

// Write dense rows of a device to a file, and read them back.
void save_rows(Backend& be, Tensor rows, SaveSink& to);
void load_rows(Backend& be, Tensor rows, SaveSource& from);
// Copies dense rows by way of the host, to rows of the same shape and type.
void copy_rows(Backend& be, Tensor to, Tensor from);

// Sequences take pages of it on demand and give them back. Its own memory is never given back,
// because recordings of a device refer to it.
class KvPool {
  public:
    KvPool(Backend& be, const KvShape& shape);  // throws Error
    KvPool(const KvPool&) = delete;             // pages refer to their pool
    KvPool& operator=(const KvPool&) = delete;

    KvLayer layer(int i) const { return layers_[size_t(i)]; }
    int layers() const { return int(layers_.size()); }

    // Begins a sequence without pages. Throws Error if the pool has no sequence left.
    KvPages begin();
    // Moves accepted rows down in every layer. `moves` holds KvMoves, as KvCompact in ops.h takes
    // them.
    void compact(Tensor moves) { be_.run(KvCompact{layers_, moves}); }

    int free_pages() const { return int(free_.size()); }
    int pages() const { return int(holders_.size()); }
    int used_pages() const { return used_pages_; }  // any thread may ask
    // Free pages are taken in this order from now on; `pages` names all of them.
    void order_free_pages(std::span<const int32_t> pages);

  private:
    friend class KvPages;

    int32_t take_page();
    void give_back(int32_t page);

    Backend& be_;
    int pages_of_sequence_;
    std::vector<Buffer> memory_;  // one per layer: a device may limit a single allocation
    Buffer page_memory_;
    Tensor page_table_;  // I32 [sequences, pages of a sequence]
    std::vector<KvLayer> layers_;
    std::vector<int32_t> free_;  // the last one is taken next
    std::atomic<int> used_pages_ = 0;
    std::vector<int> holders_;  // per page: how many sequences hold it
    std::vector<int> idle_;     // rows of the page table that no sequence has
};

// The pages of one sequence. The destructor gives them back. The pool must outlive it.
class KvPages {
  public:
    KvPages(KvPages&& other) noexcept { *this = std::move(other); }
    KvPages& operator=(KvPages&& other) noexcept;
    ~KvPages() { close(); }

    int sequence() const { return sequence_; }  // as in Row
    int slots() const { return int(pages_.size()) * kPageSize; }
    // Pages that hold(slots) would take.
    int missing(int slots) const {
        return std::max(0, int(KvShape::pages_of(slots)) - int(pages_.size()));
    }
    // Takes pages for slots [0, slots). Throws Error if the pool has too few.
    void hold(int slots);
    // Keeps the slots below `slots`. If the last page is partly filled and shared with another
    // sequence, it is dropped too, because it must not be written on. Returns the slots that are
    // left.
    int truncate(int slots);
    // A new sequence with the same keys and values below `slots`. Whole pages are shared, and what
    // is left is copied. Throws Error if the pool has no page or no sequence left.
    KvPages fork(int slots) const;

    int most_slots() const;
    // Write the keys and values below `slots` of all layers to a file, and read them from a file of
    // the same shape and type. Throw Error.
    void save(SaveSink& to, int slots) const;
    void load(SaveSource& from, int slots);

  private:
    friend class KvPool;
    KvPages(KvPool& pool, int sequence);
    void copy_last_page(const KvPages& from, int slots);
    void each_run(int slots, const std::function<void(Tensor)>& visit) const;
    void add(int32_t page);
    void close();

    KvPool* pool_ = nullptr;
    int sequence_ = 0;
    std::vector<int32_t> pages_;
};

}  // namespace aerie
