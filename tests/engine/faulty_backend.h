// A device with one fault: every op goes to a good backend, some with wrong arguments. The quick
// suites must find each of these faults on any device.
#pragma once

#include <map>

#include "backend/observed.h"

namespace aerie::test {

struct Fault {
    // These rows keep the keys and values that their slots held before.
    std::function<bool(const KvLayer&, const Row&)> stale = {};
    // The position that is rotated like the next one; -1: none.
    int rope_position = -1;
    // Attention reads each position from the page before the right one, except on the first page.
    bool page_before = false;
    // The id of a reduced vocabulary that is swapped with the next one; -1: none.
    int swapped_id = -1;
};

// Passes run op by op, never as recordings: the faults read and write between the ops.
class FaultyBackend final : public ObservedBackend {
  public:
    FaultyBackend(std::unique_ptr<Backend> inner, Fault fault)
        : ObservedBackend(std::move(inner)), fault_(std::move(fault)) {}

    Fault& fault() { return fault_; }

    void replay(uint64_t, const std::function<void()>& record) override { record(); }

  protected:
    using ObservedBackend::do_run;

    void do_run(const RopeAppend& op, Label label) override { rotate(op, label); }
    void do_run(const MatmulRope& op, Label label) override { rotate(op, label); }

    void do_run(const Attention& op, Label label) override {
        Attention wrong = op;
        if (fault_.page_before) wrong.kv.page_table = with_wrong_pages(op.kv.page_table);
        ObservedBackend::do_run(wrong, label);
    }

    void do_run(const TopK& op, Label label) override {
        TopK wrong = op;
        if (fault_.swapped_id >= 0 && op.choice.id_map)
            wrong.choice.id_map = with_swapped_ids(op.choice.id_map);
        ObservedBackend::do_run(wrong, label);
    }

  private:
    template <class Op>
    void rotate(Op op, Label label) {
        if (fault_.rope_position >= 0) op.rope = with_wrong_row(op.rope);
        std::vector<Kept> kept;
        if (fault_.stale) kept = stale_rows(op.kv, op.rows);
        ObservedBackend::do_run(op, label);
        for (const Kept& row : kept) write(row.place, row.bytes.data());
    }

    struct Kept {
        Tensor place;
        std::vector<std::byte> bytes;
    };
    struct Copy {
        Buffer memory;
        Tensor tensor;
    };

    std::vector<Kept> stale_rows(const KvLayer& kv, Rows rows) {
        std::vector<Row> host(size_t(rows.count()));
        read(rows.block, host.data());
        std::vector<int32_t> pages(size_t(kv.page_table.cols));
        read(kv.page_table.row_range(0, 1), pages.data());
        std::vector<Kept> kept;
        for (const Row& row : host) {
            if (row.slot < 0 || !fault_.stale(kv, row)) continue;
            const int line = pages[size_t(row.slot / kPageSize)] * kPageSize + row.slot % kPageSize;
            for (const Tensor& part : {kv.k, kv.v}) {
                Kept one{part.row_range(line, 1), {}};
                one.bytes.resize(dense_bytes(part.dtype, 1, part.cols));
                read(one.place, one.bytes.data());
                kept.push_back(std::move(one));
            }
        }
        return kept;
    }

    Tensor with_wrong_row(Tensor rope) {
        return changed<float>(rope, [&](std::vector<float>& values) {
            const auto row = values.begin() + ptrdiff_t(fault_.rope_position) * rope.cols;
            std::copy_n(row + rope.cols, rope.cols, row);
        });
    }

    Tensor with_wrong_pages(Tensor table) {
        return changed<int32_t>(table, [](std::vector<int32_t>& pages) {
            std::copy_backward(pages.begin(), pages.end() - 1, pages.end());
        });
    }

    Tensor with_swapped_ids(Tensor map) {
        return changed<int32_t>(map, [&](std::vector<int32_t>& ids) {
            std::swap(ids[size_t(fault_.swapped_id)], ids[size_t(fault_.swapped_id) + 1]);
        });
    }

    // A changed copy of a tensor that never changes itself; it is made once.
    template <class T>
    Tensor changed(Tensor tensor, const std::function<void(std::vector<T>&)>& change) {
        Copy& copy = copies_[{tensor.memory, tensor.offset_bytes}];
        if (!copy.memory) {
            std::vector<T> values(size_t(tensor.rows) * size_t(tensor.cols));
            read(tensor, values.data());
            change(values);
            copy.memory = allocate(values.size() * sizeof(T));
            copy.tensor = dense(copy.memory.get(), tensor.dtype, tensor.rows, tensor.cols);
            write(copy.tensor, values.data());
        }
        return copy.tensor;
    }

    Fault fault_;
    std::map<std::pair<Memory*, size_t>, Copy> copies_;
};

}  // namespace aerie::test
