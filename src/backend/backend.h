// The one interface between what to compute (src) and how (backends). What can be run is in ops.h.
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

// What a device is; where none is named, the later of two is chosen. A cpu never is: the CPU
// backend is quicker than a GPU's driver that runs on one.
enum class DeviceKind { cpu, integrated_gpu, virtual_gpu, discrete_gpu };

struct Capabilities {
    std::string name;                  // "cpu", "vulkan:0"
    std::string description;           // for people: processor, instruction set, threads
    std::vector<std::string> details;  // for people: what the device has, a line each
    std::string problem;               // why it cannot be opened; empty if it can
    DeviceKind kind = DeviceKind::cpu;
    size_t memory_bytes = 0;
    int threads = 0;         // of a CPU
    bool records = false;    // passes, each number of rows by itself: see recorded_rows
    Limits most = kAnySize;  // that may be reserved
};

// What memory gives on this device, whatever is computed: the yardstick of a streaming kernel. Both
// use every thread or unit that the ops use, wait until they are done, and return the seconds that
// they took: by the device's clock where it has one, so that no call of the host's counts.
class MemoryProbe {
  public:
    virtual ~MemoryProbe() = default;
    virtual size_t size_bytes() const = 0;
    virtual double read() = 0;  // every byte once
    virtual double copy() = 0;  // reads one half and writes it to the other: as many bytes moved
};

// What an op took since the device was opened.
struct OpTime {
    std::string op;
    long count = 0;
    double seconds = 0;
};

// What a device that records commands has been given since it was opened.
struct CommandCounts {
    long dispatches = 0, barriers = 0, submissions = 0;
    long recordings = 0;    // made, to be replayed
    size_t bytes_read = 0;  // back to the host
};

class Backend : public RunsOps<Ops> {
  public:
    virtual const Capabilities& capabilities() const = 0;

    // Life. All of these may throw Error; ops may not.
    virtual Buffer allocate(size_t size_bytes) = 0;  // zeroed
    // Whether weights may be stored in this type.
    virtual bool stores(DType type) const {
        return is_float(type) || type == DType::Q8_0 || type == DType::Q4_0;
    }
    // The blocks stacked, each stored in its type.
    virtual std::unique_ptr<Weight> upload_weight(std::span<const WeightBlock> blocks,
                                                  WeightUse use = WeightUse::multiply) = 0;
    // Scratch for all that was reserved so far and for this. Whoever makes a model or a session
    // reserves what its passes need; ops rely on it. Throws where the device takes less.
    void reserve(const Limits& limits);
    const Limits& reserved() const { return reserved_; }
    virtual size_t scratch_bytes(const Limits& limits) const = 0;  // what reserve would take
    virtual void write(Tensor to, const void* from) = 0;  // dense host data; reusable at once
    virtual void read(Tensor from, void* to) = 0;         // waits
    virtual void sync() = 0;
    // Records the ops of a key once and may resubmit them. Contents may differ, shapes may not.
    virtual void replay(uint64_t key, const std::function<void()>& record) = 0;
    // Memory of this size to measure with, or less where the device has not so much to spare.
    // Throws Error.
    virtual std::unique_ptr<MemoryProbe> memory_probe(size_t size_bytes) = 0;
    // By op, where the device was opened to be profiled and can tell; waits.
    virtual std::vector<OpTime> op_times() { return {}; }
    // All zero where ops run at once.
    virtual CommandCounts command_counts() const { return {}; }
    // The type of activations that a matmul with this weight reads: I8G32 where all of its rows are
    // quantised, else F32.
    virtual DType activation_type(const Weight& w) const;

    // Checks the op's shapes and has it done.
    template <class Op>
    void run(const Op& op, Label label = {}) {
        op.check(*this);
        do_run(op, label);
    }

  protected:
    virtual void do_reserve(const Limits& limits) = 0;  // in the place of the scratch that is there

  private:
    Limits reserved_;
};

// A device: Self::execute(op) does an op. Self declares that template, and each op's own file has a
// specialisation of it. A fused op is run as its parts, unless Self says that it fuses it.
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

// What a matmul with `w` reads, [rows, K] of the type that it wants, at the start of `room`, dense
// F32 [>= rows, >= K]: every type of activations fits.
Tensor activation_in(const Backend& be, Tensor room, const Weight& w, int rows);
// x as a matmul with `w` reads it: x itself, or a copy in such a room.
Tensor activation(Backend& be, Tensor x, const Weight& w, Tensor room, Label label = {});

}  // namespace aerie
