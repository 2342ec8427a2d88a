// A backend that passes every call on to another one. After each op it calls an observer that may
// read or replace the result.
#pragma once

#include <string_view>

#include "backend/backend.h"

namespace aerie {

// While there is an observer, a fused op runs as its parts, and the observer sees each of them.
class ObservedBackend : public OverridesOps<ObservedBackend, Backend, Ops> {
  public:
    // The result of an op: its `out`, or the qkv that it changed. Ops with neither are not
    // observed.
    struct Seen {
        std::string_view op;  // its name in ops.h
        Label label;
        Tensor out;
    };
    // Called after an op. It may use the backend, but must not run ops.
    using Observer = std::function<void(const Seen&)>;

    explicit ObservedBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

    // Empty: no observer. While there is one, passes are not replayed but run op by op.
    void observe(Observer observer) { observer_ = std::move(observer); }

    const Capabilities& capabilities() const override { return inner_->capabilities(); }
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
        if (observer_)
            record();
        else
            inner_->replay(key, record);
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
        if (!observer_) return inner_->run(op, label);
        if constexpr (Fused<Op>) {
            op.run_parts(*this, label);
        } else {
            inner_->run(in_its_place(op), label);
            if constexpr (requires { output(op); }) observer_({Op::kName, label, output(op)});
        }
    }

  private:
    void do_reserve(const Limits& limits) override { inner_->reserve(limits); }

    // The op without consumers: then the backend must write the result to `out`, where the observer
    // can read and replace it.
    template <class Op>
    static Op in_its_place(Op op) {
        if constexpr (requires { op.consumers; }) op.consumers.clear();
        return op;
    }

    template <class Op>
    static auto output(const Op& op) -> decltype(op.out) {
        return op.out;
    }
    static Tensor output(const RopeAppend& op) { return op.qkv; }
    static Tensor output(const HeadNorm& op) { return op.qkv; }

    std::unique_ptr<Backend> inner_;
    Observer observer_;
};

}  // namespace aerie
