// The one interface between what to compute (src) and how (backends). ops.h lists the ops.
//
// Program order is execution order on one in-order queue. Ops return nothing and never allocate; a
// failed device reports at the next read or sync. Every op keeps the invariance contract: the bits
// of an output row depend on that row's own inputs and logical history alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/limits.h"
#include "backend/ops.h"
#include "backend/weight.h"
#include "core/tensor.h"

namespace aerie {

// Kinds of devices. If the user names no device, a later kind is preferred to an earlier one. A GPU
// driver that runs on the CPU is never chosen, since the CPU backend is faster.
enum class DeviceKind { cpu, integrated_gpu, virtual_gpu, discrete_gpu };

struct Capabilities {
    std::string name;                  // "cpu", "vulkan:0"
    std::string description;           // for messages: processor, instruction set, threads
    std::vector<std::string> details;  // for messages: features of the device, one per line
    std::string problem;               // why it cannot be opened; empty if it can
    DeviceKind kind = DeviceKind::cpu;
    size_t memory_bytes = 0;
    int threads = 0;         // threads of a CPU
    bool records = false;    // whether passes are recorded, for few numbers of rows: recorded_rows
    Limits most = kAnySize;  // largest limits that reserve() accepts
};

// Measures the bandwidth of a device's memory, from which the byte floor of a kernel follows. Both
// measurements use all threads or units that ops use, wait for the end, and return seconds by the
// device's clock if it has one, so that host calls do not count.
class MemoryProbe {
  public:
    virtual ~MemoryProbe() = default;
    virtual size_t size_bytes() const = 0;
    virtual double read() = 0;  // reads every byte once
    virtual double copy() = 0;  // copies one half to the other, which moves as many bytes
};

// The time that an op took since the device was opened.
struct OpTime {
    std::string op;
    long count = 0;
    double seconds = 0;
};

// Counts of what a recording device was given since it was opened.
struct CommandCounts {
    long dispatches = 0, barriers = 0, submissions = 0;
    long recordings = 0;    // command lists made for replay
    size_t bytes_read = 0;  // bytes read back to the host
};

class Backend : public RunsOps<Ops> {
  public:
    virtual const Capabilities& capabilities() const = 0;

    // Lifetime and transfers. All of these functions may throw Error; ops may not.
    virtual Buffer allocate(size_t size_bytes) = 0;  // zeroed
    // Whether weights may be stored in this type.
    virtual bool stores(DType type) const {
        return is_float(type) || type == DType::Q8_0 || type == DType::Q4_0;
    }
    // Uploads the blocks as one matrix, one below the other, each stored in its type.
    virtual std::unique_ptr<Weight> upload_weight(std::span<const WeightBlock> blocks,
                                                  WeightUse use = WeightUse::multiply) = 0;
    // Allocates scratch for everything reserved so far and for these limits. The owner of a model
    // or a session reserves what its passes need, and ops rely on it. Throws Error if the device
    // takes less.
    void reserve(const Limits& limits);
    const Limits& reserved() const { return reserved_; }
    virtual size_t scratch_bytes(const Limits& limits) const = 0;  // bytes that reserve allocates
    virtual void write(Tensor to, const void* from) = 0;  // dense host data, reusable at once
    virtual void read(Tensor from, void* to) = 0;         // waits for the result
    virtual void sync() = 0;
    // Records the ops of a key once; later calls may resubmit the recording. Contents of tensors
    // may differ between calls, shapes may not.
    virtual void replay(uint64_t key, const std::function<void()>& record) = 0;
    // A probe over this many bytes, or over fewer if the device cannot spare so many. Throws Error.
    virtual std::unique_ptr<MemoryProbe> memory_probe(size_t size_bytes) = 0;
    // Time by op, if the device was opened for profiling and can measure it; waits.
    virtual std::vector<OpTime> op_times() { return {}; }
    // All counts are zero on a device that runs ops at once.
    virtual CommandCounts command_counts() const { return {}; }
    // The type of activations that a matmul with this weight reads: I8G32 if all of its rows are
    // quantised, else F32.
    virtual DType activation_type(const Weight& w) const;

    // Checks the op's shapes and runs it.
    template <class Op>
    void run(const Op& op, Label label = {}) {
        op.check(*this);
        do_run(op, label);
    }

  protected:
    virtual void do_reserve(const Limits& limits) = 0;  // replaces the present scratch

  private:
    Limits reserved_;
};

// The base of a device: Self::execute(op) runs an op. Self declares this template, and the file of
// each op specialises it. A fused op runs as its parts unless Self::fuses says that the device has
// a kernel for it.
template <class Self>
class DeviceBackend : public OverridesOps<DeviceBackend<Self>, Backend, Ops> {
  public:
    template <class Op>
    static constexpr bool fuses = false;

    template <class Op>
    void execute(const Op& op, Label label) {
        if constexpr (Fused<Op> && !Self::template fuses<Op>)
            op.run_parts(*this, label);
        else
            static_cast<Self*>(this)->execute(op);
    }
};

// The input of a matmul with `w`: [rows, K] in the type that it reads, at the start of `scratch`, a
// dense F32 tensor [>= rows, >= K], in which every activation type fits.
Tensor activation_in(const Backend& be, Tensor scratch, const Weight& w, int rows);
// Returns x in the form that a matmul with `w` reads: x itself, or a copy at the start of
// `scratch`.
Tensor activation(Backend& be, Tensor x, const Weight& w, Tensor scratch, Label label = {});

}  // namespace aerie
