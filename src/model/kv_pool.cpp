// One allocation per layer. Pages are numbers, and the host counts how many sequences hold each.
#include "model/kv_pool.h"

#include <algorithm>
#include <climits>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace aerie {

int64_t KvShape::rows() const {
    const int64_t most = int64_t(sequences) * pages();
    if (shared_slots == 0) return most * kPageSize;
    return std::min(most, std::max(int64_t(pages()), pages_of(shared_slots))) * kPageSize;
}

size_t KvShape::size_bytes() const {
    const size_t values = size_t(layers) * 2 * size_t(columns);  // per row, in all layers
    size_t bytes = 0, table = 0;
    if (__builtin_mul_overflow(size_t(rows()), aerie::size_bytes(dtype, values), &bytes) ||
        __builtin_mul_overflow(size_t(sequences), aerie::size_bytes(DType::I32, size_t(pages())),
                               &table) ||
        __builtin_add_overflow(bytes, table, &bytes))
        return SIZE_MAX;
    return bytes;
}

void KvShape::check_rows() const {
    if (rows() > INT_MAX)
        throw Error("a KV cache of " + std::to_string(sequences) + " sequences of " +
                    std::to_string(slots) + " positions has more rows than " +
                    std::to_string(INT_MAX) + ": ask for a smaller context or fewer sequences");
}

KvPool::KvPool(Backend& be, const KvShape& shape) : be_(be), pages_of_sequence_(shape.pages()) {
    shape.check_rows();
    const int rows = int(shape.rows()), pages = rows / kPageSize;
    const size_t part_bytes = dense_bytes(shape.dtype, rows, shape.columns);
    page_memory_ = be.allocate(dense_bytes(DType::I32, shape.sequences, shape.pages()));
    page_table_ = dense(page_memory_.get(), DType::I32, shape.sequences, shape.pages());
    for (int i = 0; i < shape.layers; ++i) {
        memory_.push_back(be.allocate(2 * part_bytes));
        KvLayer layer;
        layer.k = layer.v = dense(memory_.back().get(), shape.dtype, rows, shape.columns);
        layer.v.offset_bytes = part_bytes;
        layer.page_table = page_table_;
        layers_.push_back(layer);
    }
    for (int page = pages; page-- > 0;) free_.push_back(page);
    for (int sequence = shape.sequences; sequence-- > 0;) idle_.push_back(sequence);
    holders_.resize(size_t(pages));
}

KvPages KvPool::begin() {
    if (idle_.empty())
        throw Error("no room for another sequence beside " + std::to_string(page_table_.rows),
                    Cause::no_room);
    KvPages pages(*this, idle_.back());  // may throw bad_alloc
    idle_.pop_back();
    return pages;
}

void KvPool::order_free_pages(std::span<const int32_t> pages) {
    free_.assign(pages.rbegin(), pages.rend());
}

int32_t KvPool::take_page() {
    if (free_.empty())
        throw Error("no page of the KV cache is free; there are " + std::to_string(holders_.size()),
                    Cause::no_room);
    const int32_t page = free_.back();
    free_.pop_back();
    ++used_pages_;
    return page;
}

void KvPool::give_back(int32_t page) {
    if (--holders_[size_t(page)] != 0) return;
    free_.push_back(page);
    --used_pages_;
}

KvPages::KvPages(KvPool& pool, int sequence) : pool_(&pool), sequence_(sequence) {
    pages_.reserve(size_t(pool.pages_of_sequence_));
}

KvPages& KvPages::operator=(KvPages&& other) noexcept {
    close();
    pool_ = std::exchange(other.pool_, nullptr);
    sequence_ = other.sequence_;
    pages_ = std::move(other.pages_);
    return *this;
}

void KvPages::close() {
    if (!pool_) return;
    truncate(0);
    pool_->idle_.push_back(sequence_);
    pool_ = nullptr;
}

void KvPages::add(int32_t page) {
    pages_.push_back(page);
    ++pool_->holders_[size_t(page)];
}

void KvPages::hold(int slots) {
    const int before = int(pages_.size()), wanted = (slots + kPageSize - 1) / kPageSize;
    if (wanted <= before) return;
    if (wanted > pool_->pages_of_sequence_)
        throw Error("a sequence has room for " +
                    std::to_string(pool_->pages_of_sequence_ * kPageSize) + " positions, not " +
                    std::to_string(slots));
    while (int(pages_.size()) < wanted) add(pool_->take_page());
    pool_->be_.write(pool_->page_table_.row_range(sequence_, 1).col_range(before, wanted - before),
                     pages_.data() + before);
}

int KvPages::truncate(int slots) {
    size_t kept = size_t(slots + kPageSize - 1) / kPageSize;
    if (slots % kPageSize != 0 && kept <= pages_.size() &&
        pool_->holders_[size_t(pages_[kept - 1])] > 1)
        slots = int(--kept) * kPageSize;
    while (pages_.size() > kept) {
        pool_->give_back(pages_.back());
        pages_.pop_back();
    }
    return slots;
}

KvPages KvPages::fork(int slots) const {
    KvPages other = pool_->begin();
    const int shared = slots / kPageSize;
    for (int i = 0; i < shared; ++i) other.add(pages_[size_t(i)]);
    if (shared > 0)
        pool_->be_.write(pool_->page_table_.row_range(other.sequence_, 1).col_range(0, shared),
                         other.pages_.data());
    if (slots % kPageSize != 0) other.copy_last_page(*this, slots);
    return other;
}

// Takes a page for the slots above the whole pages below `slots`, and copies them.
void KvPages::copy_last_page(const KvPages& from, int slots) {
    hold(slots);
    const int last = slots / kPageSize, rows = slots % kPageSize;
    for (int i = 0; i < pool_->layers(); ++i) {
        const KvLayer layer = pool_->layer(i);
        for (const Tensor& part : {layer.k, layer.v}) {
            const auto rows_of = [&](const KvPages& pages) {
                return part.row_range(pages.pages_[size_t(last)] * kPageSize, rows);
            };
            copy_rows(pool_->be_, rows_of(*this), rows_of(from));
        }
    }
}

int KvPages::most_slots() const {
    return pool_->pages_of_sequence_ * kPageSize;
}

// Visits keys and values below `slots`, layer by layer and page by page.
void KvPages::each_run(int slots, const std::function<void(Tensor)>& visit) const {
    for (int i = 0; i < pool_->layers(); ++i) {
        const KvLayer layer = pool_->layer(i);
        for (int slot = 0; slot < slots; slot += kPageSize) {
            const int row = pages_[size_t(slot / kPageSize)] * kPageSize;
            for (const Tensor& part : {layer.k, layer.v})
                visit(part.row_range(row, std::min(kPageSize, slots - slot)));
        }
    }
}

void KvPages::save(SaveSink& to, int slots) const {
    each_run(slots, [&](Tensor rows) { save_rows(pool_->be_, rows, to); });
}

void KvPages::load(SaveSource& from, int slots) {
    truncate(0);
    hold(slots);
    each_run(slots, [&](Tensor rows) { load_rows(pool_->be_, rows, from); });
}

void save_rows(Backend& be, Tensor rows, SaveSink& to) {
    if (rows.rows == 0 || rows.cols == 0) return;
    std::vector<std::byte> bytes(dense_bytes(rows.dtype, rows.rows, rows.cols));
    be.read(rows, bytes.data());
    to.write(bytes);
}

void copy_rows(Backend& be, Tensor to, Tensor from) {
    if (from.rows == 0 || from.cols == 0) return;
    std::vector<std::byte> bytes(dense_bytes(from.dtype, from.rows, from.cols));
    be.read(from, bytes.data());
    be.write(to, bytes.data());
}

void load_rows(Backend& be, Tensor rows, SaveSource& from) {
    if (rows.rows == 0 || rows.cols == 0) return;
    std::vector<std::byte> bytes(dense_bytes(rows.dtype, rows.rows, rows.cols));
    from.read(bytes);
    be.write(rows, bytes.data());
}

}  // namespace aerie
