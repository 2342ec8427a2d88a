// What the engine knows of a drafter: it is shown the target's true features, and proposes a tree.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "backend/backend.h"
#include "draft/cycle_costs.h"
#include "draft/noise_rows.h"
#include "draft/tree.h"
#include "model/target.h"

namespace aerie {

// What a proposal may use. The output never depends on it (architecture.md section 1, idea 3).
struct DraftContext {
    int pending = 0;             // the root's token
    Filters filters;             // the target's sampling filters
    Tensor edits;                // penalties as known so far, for every row; may be absent
    NoiseRows* noise = nullptr;  // absent at temperature 0
};

// Sees the candidates table[first, last) of a new level before they are ranked, and may rewrite
// their tokens, values and log-probabilities (recording, forcing).
using LevelHook = std::function<void(std::span<Candidate> table, int first, int last)>;

// How far proposals can reach; the engine sizes its buffers by it.
struct DraftReach {
    int nodes = 1;  // of a proposal, root included
    int depth = 0;  // of its deepest node
    Taps taps;      // hidden states that the drafter wants to observe
};

// A drafter that chooses its trees by what they cost.
class CostAware {
  public:
    virtual ~CostAware() = default;
    // Runs a level of so many rows, at most widest_level(), over what was observed.
    virtual double level_seconds(int width) = 0;
    virtual int widest_level() const = 0;
    virtual void set_costs(const MeasuredCosts& costs) = 0;
    // How far the cycles' own timings have moved them: CycleCosts::correction().
    virtual double cost_correction() const = 0;
};

class Drafter {
  public:
    virtual ~Drafter() = default;
    virtual DraftReach reach() const = 0;

    // True features of the committed positions position, position + 1, ... with the token that
    // follows each. In order and without gaps; position 0 begins a new sequence.
    virtual void observe(Tensor features, std::span<const int> next_tokens, int position) = 0;
    // The prompt has been observed: what the first proposal needs of it may be computed now.
    virtual void prepare() {}
    virtual TokenTree propose(const DraftContext& context) = 0;
    // What became of the newest proposal: its accepted nodes, the root first, the token that the
    // target chose after the last of them, and the time of the target's pass and choices.
    virtual void learn(const TokenTree& tree, std::span<const int> accepted, int next,
                       double verify_seconds) {
        (void)tree, (void)accepted, (void)next, (void)verify_seconds;
    }
    virtual CostAware* cost_aware() { return nullptr; }
};

// How candidates are ranked at temperature > 0 (eagle.md section 10). Output is the same.
enum class Proposals { coupled, plain };

enum class DraftKind { none, chain, eagle1, eagle2 };

struct DraftOptions {
    DraftKind kind = DraftKind::none;
    int chain_length = 5;
    std::optional<TreeShape> tree;                  // eagle2; unset: chosen by measurement
    TreePaths static_tree = default_static_tree();  // eagle1
    Proposals proposals = Proposals::coupled;
    bool use_value = true;  // ablations of EAGLE-2, Table 3
    bool rerank = true;
    // A policy asked for the shape of each cycle's tree; none of its parts may exceed `tree`,
    // which must be set.
    std::function<TreeShape()> shape_policy;
    LevelHook on_level;  // may be empty; where it is set, levels are chosen on the host
};

// Proposes bare roots: plain decoding.
std::unique_ptr<Drafter> make_none();

// What chain, eagle1 and eagle2 draft with.
struct HeadSource {
    Backend& backend;
    const Target& target;
    const ModelConfig& config;  // of the head
    const Checkpoint& checkpoint;
    std::optional<DType> weights;  // unset: as stored
    DType kv = DType::F16;
    int context = 0;    // most positions of a sequence
    int pass_rows = 0;  // most rows that observe is given
};
std::unique_ptr<Drafter> make_eagle(const HeadSource& source, const DraftOptions& options);

// What the head of such a drafter asks of a backend; `head` is its shape.
Limits eagle_limits(const ModelConfig& head, const DraftOptions& options, int context,
                    int pass_rows);

// What a drafter of these options will reach, before it is made.
DraftReach draft_reach(const DraftOptions& options, const ModelConfig& target);

// What make_eagle allocates besides the head's weights, for a head of this shape.
size_t eagle_scratch_bytes(const ModelConfig& head, const DraftOptions& options, DType kv,
                           int context, int pass_rows);

}  // namespace aerie
