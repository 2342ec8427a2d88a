// The one interface between what to compute (src) and how (backends). See ops.h for the calls that
// the rest of src makes: they check shapes once and then come here.
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
#include "backend/weight.h"
#include "core/rows.h"
#include "core/tensor.h"

namespace aerie {

// One layer of KV cache. A slot s of sequence q lives in row page_table[q][s / 64] * 64 + s % 64.
struct KvLayer {
    Tensor k;           // [pages * 64, kv_heads * head_dim], F16 or F32
    Tensor v;           // the same
    Tensor page_table;  // I32 [sequences, pages of one sequence]
};

struct AttentionShape {
    int heads = 0;
    int kv_heads = 0;
    int head_dim = 0;  // a multiple of 16
};

enum class Accumulate : bool { no, yes };

// What is kept of a distribution, in this order: temperature, top-k, top-p, min-p. Ties at a cut
// go to the lowest id. Temperature 0 means argmax; then nothing is filtered.
struct Filters {
    float temperature = 0;
    int top_k = 0;    // 0: off
    float top_p = 1;  // 1: off
    float min_p = 0;  // 0: off
};

// Changes one logit of one row before everything else: l = (l > 0 ? l / divide : l * divide) + add.
struct Edit {
    int32_t row = 0;  // ascending; -1: every row (such edits come first)
    int32_t token = 0;
    float divide = 1;
    float add = 0;
};
constexpr int kEditInts = sizeof(Edit) / sizeof(int32_t);

// Logits and what is done to them before a choice. `edits` and `mask` may be absent.
struct Choice {
    Tensor logits;  // F32 [rows, vocab]; not changed
    Tensor edits;   // I32 [count, kEditInts]
    Tensor mask;    // I32 [rows, (vocab + 31) / 32]: a cleared bit forbids the token
    Filters filters;
};

struct SampleStep {
    Choice choice;
    Rows rows;     // row r uses the noise row of its depth (position - prefix)
    Tensor noise;  // F32 [depths, vocab]; unused at temperature 0
};

struct TopKStep {
    Choice choice;       // with noise: processed like the target's; without: only the edits count
    Tensor noise;        // F32 [1, vocab], the same for all rows; absent: rank by logit
    float softness = 1;  // with noise: log_probs = log_softmax(best z / softness)
    Tensor id_map;       // I32 [1, vocab]: draft id to target id; absent: identity
    Tensor ids;          // out: I32 [rows, k], target ids, best first, ties to the lowest draft id
    Tensor log_probs;    // out: F32 [rows, k]
};

// One level of EAGLE-2's expansion. The F rows just run have candidates ids[F, k]. Appends all F *
// k to the table at table_offset (frontier rank, then child rank), with value = log_prob, plus the
// parent's value if sum_values; then selects the next frontier: the `width` best of this level
// (value descending, index ascending), or the given `selection`; and writes its rows.
struct BeamStep {
    Tensor ids, log_probs;  // [F, k]
    Rows rows;              // the F rows of this level
    Tensor frontier;        // in: I32 [1, >= F] table index of each row (unused if from_root)
                            // out: that of the next rows
    Tensor table;           // I32 [capacity, kCandidateInts]
    Tensor selection;       // optional, I32 [1, width]: candidate numbers within this level
    Tensor parent_row;      // out: I32 [1, width], which of `rows` each next row extends
    Rows next;              // out: [width] rows, not in the place of `rows`; 0 on the last level
    int table_offset = 0;
    int next_slot = 0;       // next row i writes slot prefix + next_slot + i
    bool from_root = false;  // rows holds only the last committed row: next rows extend the prefix
    bool sum_values = true;
};

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
    size_t bytes_read = 0;  // back to the host
};

class Backend {
  public:
    virtual ~Backend() = default;
    virtual const Capabilities& capabilities() const = 0;

    // Life. All of these may throw Error; ops may not.
    virtual Buffer allocate(size_t size_bytes) = 0;  // zeroed
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

    // Ops: called through ops.h only.
    virtual void do_embed(Tensor out, const Weight& table, Rows rows) = 0;
    virtual void do_rms_norm(Tensor out, Tensor x, Tensor weight, float epsilon) = 0;
    virtual void do_matmul(Tensor out, Tensor x, const Weight& w, Tensor bias, Accumulate acc) = 0;
    virtual void do_rope_append(Tensor qkv, Tensor rope, Rows rows, const AttentionShape& shape,
                                const KvLayer& kv) = 0;
    virtual void do_attention(Tensor out, Tensor qkv, Rows rows, const AttentionShape& shape,
                              const KvLayer& kv) = 0;
    virtual void do_swiglu(Tensor out, Tensor gate_up) = 0;
    virtual void do_add(Tensor out, Tensor a, Tensor b) = 0;
    virtual void do_copy(Tensor out, Tensor x) = 0;
    virtual void do_gather_rows(Tensor out, Tensor x, Tensor index) = 0;
    virtual void do_kv_compact(const KvLayer& kv, int sequence, Tensor from_slots, int to_slot) = 0;
    virtual void do_noise(Tensor out, uint64_t seed, Tensor positions) = 0;
    virtual void do_top_k(const TopKStep& step) = 0;
    virtual void do_beam(const BeamStep& step) = 0;
    virtual void do_sample(Tensor ids, const SampleStep& step) = 0;
    virtual void do_probs(Tensor out, const Choice& choice) = 0;

    // Fused ops: the default is the ops that one is made of; a backend overrides it where that
    // pays, with the same bits.
    virtual void do_rms_norm_for(Tensor out, Tensor x, Tensor weight, float epsilon,
                                 const Weight& next) {
        (void)next;
        do_rms_norm(out, x, weight, epsilon);
    }
    virtual void do_matmul_swiglu(Tensor out, Tensor gate_up, Tensor x, const Weight& w);

  protected:
    virtual void do_reserve(const Limits& limits) = 0;  // in the place of the scratch that is there

  private:
    Limits reserved_;
};

}  // namespace aerie
