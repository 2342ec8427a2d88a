// EAGLE-2's tree growth: fills the table of candidates level by level, from which the host then
// chooses the tree (EAGLE-2 sections 4.1 and 4.2; docs/drafting.md section 3). Levels of a shape
// that is known beforehand run on the device without the host; a ChooseFrontier decides on the host
// after each level. Static trees are the same expansion with a given frontier.
#pragma once

#include <functional>
#include <vector>

#include "backend/replay_keys.h"
#include "backend/tensor_plan.h"
#include "draft/drafter.h"
#include "draft/heads/level_model.h"
#include "draft/options.h"
#include "draft/trees/candidates.h"

namespace aerie {

// Decides on the host how a tree grows. The newest level's candidates are table[first ..], `top_k`
// children for each frontier node in turn. The function puts the numbers of the candidates to run
// next into `frontier`, which is empty; leaving it empty ends the growth.
using ChooseFrontier =
    std::function<void(std::span<const Candidate> table, int first, Frontier& frontier)>;

struct GrowLimits {
    int top_k = 0;
    int width = 0;       // most rows of a level
    int candidates = 0;  // most entries of the table
};

struct GrowScratch {
    void add_to(TensorPlan& plan, const GrowLimits& limits, int state_columns, int vocab);

    Tensor logits;                // [width, vocab]
    Tensor states, parents;       // [width, state_columns]: states of a level, and of its parents
    Tensor ranked;                // [width, 2 * top_k]: ids, then log-probabilities
    Tensor table;                 // [candidates, kCandidateInts]
    Tensor frontier, parent_row;  // [1, width]
    Tensor selection;             // [kMaxDepth, width]: each level's selection, if it is given
    Tensor rows[2];               // [width, kRowInts]: this level's rows and the next level's
};

// The point at which a tree begins: the model's newest row of the text, on the device and on the
// host, and its state [1, state_columns].
struct TreeStart {
    Tensor state;
    Rows rows;
    Row row;
};

// Grows a table of candidates. Both ways return the whole table, which is valid until the next
// growth.
class TreeGrower {
  public:
    TreeGrower(Backend& be, LevelModel& model, const GrowLimits& limits,
               const DraftOptions& options);

    std::span<const Candidate> expand(const ExpansionPlan& expansion, const TreeStart& end,
                                      const DraftRequest& request);
    std::span<const Candidate> grow(const ChooseFrontier& choose, int top_k, const TreeStart& end,
                                    const DraftRequest& request);

  private:
    void write_selections(const ExpansionPlan& expansion);
    void run_levels(const ExpansionPlan& expansion, const TreeStart& end,
                    const DraftRequest& request);
    uint64_t kind_of(int level) const;
    uint64_t key_of(const TreeStart& end, const DraftRequest& request, int top_k) const;
    uint64_t key_of(const ExpansionPlan& expansion, const TreeStart& end,
                    const DraftRequest& request) const;
    void rank(Tensor states, const DraftRequest& request, Tensor noise, int level, int k);
    Rows select(const ExpansionPlan& expansion, size_t level, Rows rows, Beam& step);
    bool draws(const DraftRequest& request) const { return draws_ && request.drawn; }
    bool is_coupled(const DraftRequest& request) const {
        return proposals_ == Proposals::coupled && request.noise && !draws(request);
    }
    void draw(const Frontier& frontier, int first, int k, Drawn& drawn, Chance& chance);
    PathTokens path_of(int entry) const;
    void run(Tensor out, Tensor states, Rows rows, int level);
    Tensor ids(int rows, int k) const;
    Tensor log_probs(int rows, int k) const;
    void read_ranked(int k);
    int append_level(const Frontier& frontier, int first, int top_k);
    Rows extend(const Frontier& frontier, int first, int top_k);

    Backend& be_;
    LevelModel& model_;
    Proposals proposals_;
    bool draws_, sum_values_;
    LevelHook on_level_;
    ReplayKeys replays_;
    Buffer memory_;
    GrowScratch scratch_;
    std::vector<Candidate> table_;  // as read from the device, or grown on the host
    // Rows and candidates of the level that runs, if the host decides.
    FixedVector<Row, kMaxFrontier> rows_;
    std::vector<int32_t> ids_, ranked_;
    std::vector<float> log_probs_;
    std::vector<float> logits_;        // logits of one row; used only if candidates are drawn
    std::vector<int32_t> target_ids_;  // used only with drawn candidates; empty: ids are the same
};

}  // namespace aerie
