// EAGLE-2's tree growth: fills the table of candidates level by level, from which the host then
// chooses the tree (EAGLE-2 sections 4.1 and 4.2; docs/drafting.md section 3). Levels of a shape
// that is known beforehand run on the device without the host; a ChooseFrontier decides on the host
// after each level. Static trees are the same expansion with a given frontier.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "backend/replay_keys.h"
#include "backend/tensor_plan.h"
#include "draft/chance.h"
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

// Chooses the frontiers of a plan, level by level.
struct FollowPlan {
    void operator()(std::span<const Candidate> table, int first, Frontier& frontier);

    const ExpansionPlan* plan = nullptr;
    size_t done = 0;
};

struct GrowLimits {
    int top_k = 0;
    int width = 0;       // most rows of a tree's level
    int candidates = 0;  // most entries of a table
    int together = 1;    // most trees that grow at the same time

    int rows() const { return together * width; }  // most rows of a level of all trees
};

struct GrowScratch {
    void add_to(TensorPlan& plan, const GrowLimits& limits, int state_columns, int vocab);

    Tensor logits;           // [rows, vocab]
    Tensor states, parents;  // [rows, state_columns]: states of a level, and of its parents
    Tensor roots;            // [together, state_columns]: states at which the trees begin
    Tensor ranked;           // [rows, 2 * top_k]: ids, then log-probabilities
    Tensor table;            // [candidates, kCandidateInts]
    Tensor frontier;         // [1, width]
    Tensor parent_row;       // [1, rows]
    Tensor selection;        // [kMaxDepth, width]: each level's selection, if it is given
    Tensor rows[2];          // [rows, kRowInts]: this level's rows and the next level's
};

// The point at which a tree begins: the model's newest row of the text, on the device and on the
// host, and its state [1, state_columns].
struct TreeStart {
    Tensor state;
    Rows rows;
    Row row;
};

// A tree that the host decides on.
struct TreeToGrow {
    const DraftRequest* request = nullptr;
    TreeStart start;
    ChooseFrontier choose;
};

// Grows tables of candidates, which are valid until the next growth.
class TreeGrower {
  public:
    TreeGrower(Backend& be, LevelModel& model, const GrowLimits& limits,
               const DraftOptions& options);

    std::span<const Candidate> expand(const ExpansionPlan& expansion, const TreeStart& end,
                                      const DraftRequest& request);
    // Grows trees of several sequences, each level of all of them in one pass. There are at most
    // GrowLimits::together.
    void grow(std::span<const TreeToGrow> trees, int top_k);
    // The table of the i-th tree.
    std::span<const Candidate> table(size_t i = 0) const { return growing_[i].table; }

  private:
    // A tree while it grows. The level that runs has these rows, which follow those of the trees
    // before it from row `offset` on.
    struct Growing {
        std::vector<Candidate> table;  // as read from the device, or grown on the host
        FixedVector<Row, kMaxFrontier> rows;
        Frontier frontier;  // numbers of the rows in the level that begins at `first`
        int first = -1;     // index of that level in the table; -1: the root's candidates
        int offset = 0;
        std::optional<KeyedChance> chance;  // present if the candidates are drawn
        Tensor noise;                       // row for the level that is ranked; or absent
        bool is_over = false;
    };

    void write_selections(const ExpansionPlan& expansion);
    void run_levels(const ExpansionPlan& expansion, const TreeStart& end,
                    const DraftRequest& request);
    uint64_t kind_of(int level) const;
    uint64_t key_of(const TreeStart& end, const DraftRequest& request, int top_k) const;
    uint64_t key_of(const ExpansionPlan& expansion, const TreeStart& end,
                    const DraftRequest& request) const;
    void begin(std::span<const TreeToGrow> trees);
    Tensor roots(std::span<const TreeToGrow> trees);
    void make_noise(std::span<const TreeToGrow> trees, int level);
    void rank_all(std::span<const TreeToGrow> trees, int rows, int top_k);
    void rank(int first, int rows, const DraftRequest& request, Tensor noise, int k);
    bool go_on(std::span<const TreeToGrow> trees, int top_k);
    Rows select(const ExpansionPlan& expansion, size_t level, Rows rows, Beam& step);
    bool draws(const DraftRequest& request) const { return draws_ && request.drawn; }
    bool is_coupled(const DraftRequest& request) const {
        return proposals_ == Proposals::coupled && request.noise && !draws(request);
    }
    void draw(Growing& tree, int k, Drawn& drawn);
    static PathTokens path_of(const Growing& tree, int entry);
    void run(Tensor out, Tensor states, Rows rows, int level);
    Tensor ids(int first, int rows, int k) const;
    Tensor log_probs(int first, int rows, int k) const;
    void read_ranked(int rows, int k);
    void append_level(Growing& tree, int top_k);
    void extend(Growing& tree, int top_k);
    Rows write_rows();

    Backend& be_;
    LevelModel& model_;
    Proposals proposals_;
    bool draws_, sum_values_;
    LevelHook on_level_;
    ReplayKeys replays_;
    Buffer memory_;
    GrowScratch scratch_;
    std::vector<Growing> growing_;
    int row_count_ = 0;  // rows of the level that runs, of all trees
    // Rows, parents and candidates of the level that runs, if the host decides.
    std::vector<Row> rows_;
    std::vector<int32_t> parents_;
    std::vector<int32_t> ids_, ranked_;
    std::vector<float> log_probs_;
    std::vector<float> logits_;        // logits of one row; used only if candidates are drawn
    std::vector<int32_t> target_ids_;  // used only with drawn candidates; empty: ids are the same
};

}  // namespace aerie
