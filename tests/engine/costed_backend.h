// A device on which time is what recorded costs say: its clock moves with the bytes of weights that
// its matmuls read and with their rows; nothing else takes time. So whatever is decided by timings
// is decided the same on every run.
#pragma once

#include <algorithm>
#include <map>
#include <memory>

#include "backend/backend.h"
#include "core/clock.h"
#include "draft/trees/cycle_costs.h"

namespace aerie::test {

// Cost of a pass by its rows, relative to one row: TinyLlama-1.1B's shape in q8_0 on two cores
// (bench/RESULTS.md).
inline const CostPoint kRecordedRows[] = {{1, 1.0},  {2, 1.05}, {4, 1.2}, {8, 1.6},
                                          {16, 1.9}, {32, 3.2}, {64, 5.8}};

class CostedBackend final : public OverridesOps<CostedBackend, Backend, Ops> {
  public:
    explicit CostedBackend(std::unique_ptr<Backend> inner)
        : inner_(std::move(inner)), capabilities_(inner_->capabilities()) {}
    // A device that says that it records passes, with its own costs by rows.
    CostedBackend(std::unique_ptr<Backend> inner, std::span<const CostPoint> rows)
        : CostedBackend(std::move(inner)) {
        rows_ = CostCurve(rows);
        capabilities_.records = true;
    }

    double seconds() const { return seconds_; }
    // The number of keys that were replayed more than once; another device would have a recording
    // of each.
    long recordings() const {
        return std::count_if(replays_.begin(), replays_.end(),
                             [](const auto& replay) { return replay.second > 1; });
    }

    const Capabilities& capabilities() const override { return capabilities_; }
    Buffer allocate(size_t size_bytes) override { return inner_->allocate(size_bytes); }
    std::unique_ptr<Weight> upload_weight(std::span<const WeightBlock> blocks,
                                          WeightUse use) override {
        return inner_->upload_weight(blocks, use);
    }
    size_t scratch_bytes(const Limits& limits) const override {
        return inner_->scratch_bytes(limits);
    }
    void write(Tensor to, const void* from) override { inner_->write(to, from); }
    void read(Tensor from, void* to) override { inner_->read(from, to); }
    void sync() override { inner_->sync(); }
    void replay(uint64_t key, const std::function<void()>& record) override {
        ++replays_[key];
        record();
    }
    std::unique_ptr<MemoryProbe> memory_probe(size_t size_bytes) override {
        return inner_->memory_probe(size_bytes);
    }
    std::vector<OpTime> op_times() override { return inner_->op_times(); }
    bool stores(DType type) const override { return inner_->stores(type); }
    CommandCounts command_counts() const override { return inner_->command_counts(); }
    DType activation_type(const Weight& w) const override { return inner_->activation_type(w); }

    template <class Op>
    void execute(const Op& op, Label label) {
        if constexpr (requires { op.weight.segments; }) {
            constexpr double kBytesPerSecond = 1e10;
            for (const WeightSegment& segment : op.weight.segments)
                seconds_ += double(dense_bytes(segment.dtype, segment.rows, op.weight.cols)) /
                            kBytesPerSecond * rows_.at(op.x.rows);
        }
        inner_->run(op, label);
    }

  private:
    void do_reserve(const Limits& limits) override { inner_->reserve(limits); }

    std::unique_ptr<Backend> inner_;
    Capabilities capabilities_;
    CostCurve rows_{kRecordedRows};
    double seconds_ = 0;
    std::map<uint64_t, long> replays_;  // number of replays by key
};

}  // namespace aerie::test
