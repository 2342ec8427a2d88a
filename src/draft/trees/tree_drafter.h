// The common part of all drafters that grow trees with a LevelModel. The model reads the text after
// the target does; positions that it has missed are read when a proposal needs them.
#pragma once

#include <climits>
#include <vector>

#include "draft/methods.h"
#include "draft/trees/softness.h"
#include "draft/trees/tree_grower.h"

namespace aerie {

// Largest depth of a graft, even if the model drafts fewer levels.
constexpr int kGraftDepth = kMaxAuto.levels;

// Most waiting features that the model reads before a proposal, after a stretch of plain decoding.
constexpr int kWindow = 16;

// Most trees that grow in the same passes. More sequences take several turns.
constexpr int kMostGrown = 8;

// How the trees of a method grow.
struct Growth {
    TreePaths paths =
        {};           // the paths of a static tree, or those that a chosen one may have; empty: all
    TreeShape shape;  // shape of a dynamic tree, or the upper bound of a chosen one
    bool is_chosen = false;   // whether the tree is sized by measurement
    bool has_grafts = false;  // whether continuations from the text are grafted on a chosen tree
};
Growth chain_growth(const DraftOptions& options);
Growth static_growth(const DraftOptions& options);
Growth dynamic_growth(const DraftOptions& options);
Growth grafted_growth(const DraftOptions& options);
// Limits a growth to the number of levels that a model can draft.
Growth within(Growth growth, int levels);

// The largest tree of a drafter; sizes every buffer.
struct TreeDrafterLimits {
    int nodes = 0;        // nodes of the tree, root included
    int levels = 0;       // levels of drafted tokens
    int draft_slots = 0;  // slots of the model's KV cache beyond the committed positions
    GrowLimits grow;

    // Limits of the model: rows of a pass, positions of a sequence, slots of its KV cache.
    int rows(int pass_rows) const { return std::max(pass_rows, grow.rows()); }
    int positions(int context) const { return context + levels + 2; }
    int slots(int context) const { return context + draft_slots + 1; }
    // Slots of all sequences together (KvShape): there are pages for all texts that the target has
    // pages for.
    int64_t shared_slots(const DraftPlan& plan) const;
};
// The limits of drafters in whose passes so many trees grow at the same time.
TreeDrafterLimits reach_of(const Growth& growth, int together = 1);
TreeDrafterLimits static_reach(const TreePaths& paths);
TreeDrafterLimits dynamic_reach(const TreeShape& shape);

// Device memory for a pass of the model over the texts of several sequences.
struct SharedPassTensors {
    void add_to(TensorPlan& plan, int state_columns, int feature_columns, int pass_rows);

    Tensor features, rows, states;  // as those of a sequence, [pass_rows, ...]
};

// Device memory for the drafts of one sequence, beside the model's own.
struct TreeDrafterTensors {
    void add_to(TensorPlan& plan, int state_columns, int feature_columns, int pass_rows);

    Tensor backlog;  // [kBacklogRows + pass_rows, feature_columns]: features that were not read yet
    Tensor rows;     // [pass_rows, kRowInts]: rows of the model's last pass over the text
    Tensor states;   // [pass_rows, state_columns]: states that this pass made
};
// Bytes that a TreeDrafter allocates for such a model, without the model's own.
size_t tree_drafter_bytes(const DraftPlan& plan, const TreeDrafterLimits& reach, int state_columns,
                          int feature_columns, int vocab);

class TreeDrafter : public Drafter {
  public:
    struct Parts {
        std::unique_ptr<LevelModel> model;
        Taps taps;  // features that the model reads
        Growth growth;
    };
    TreeDrafter(const DraftSource& source, Parts parts);
    TreeDrafter(const DraftSource& source, Parts parts, const TreeDrafterLimits& reach);

    DraftReach reach() const override { return {reach_.nodes, reach_.levels, taps_}; }
    void use_head(const std::shared_ptr<const DraftWeights>& weights) override {
        model_->use(weights);
    }
    std::unique_ptr<DraftState> begin() override;
    void observe(const Observed& observed) override;
    void prepare(const DraftRequest& request) override { catch_up(request); }

  protected:
    // The state of one sequence. The model's own text begins at position `first`.
    struct State : DraftState {
        State(const TreeDrafter& of, KvPages held);

        int positions() const override;
        void truncate(int positions) override;
        std::unique_ptr<DraftState> fork(int positions) const override;
        void save(SaveSink& to) const override;
        void load(SaveSource& from) override;

        const TreeDrafter& drafter;
        KvPages pages;
        int first = 0, read = 0;   // the model has run positions [first, read)
        int waiting = 0;           // features in the backlog, of the positions from `read` on
        Row last;                  // newest row of the last pass
        LearnedSoftness softness;  // used by coupled proposals
    };

    // Makes a state for begin and fork. `like` is the state that is forked, or null.
    virtual std::unique_ptr<State> make_state(KvPages pages, const State* like) const;
    // Whether a prompt is read as a whole; otherwise only its end is kept.
    virtual bool reads_prompt(const State&) const { return true; }

    std::span<const Candidate> expand(const ExpansionPlan& expansion, const DraftRequest& request);
    // Expands several trees by the same plan. The table of the i-th is given to visit(i, table).
    template <class Visit>
    void expand_all(const ExpansionPlan& expansion, std::span<const DraftRequest> requests,
                    const Visit& visit) {
        for (size_t first = 0; first < requests.size(); first += most_grown()) {
            const size_t count = std::min(most_grown(), requests.size() - first);
            expand_group(expansion, requests.subspan(first, count));
            for (size_t i = 0; i < count; ++i) visit(first + i, table(i));
        }
    }
    std::span<const Candidate> grow(const ChooseFrontier& choose, int top_k,
                                    const DraftRequest& request);
    // A tree that the host decides on, of the sequence of this request.
    struct Wanted {
        const DraftRequest* request = nullptr;
        ChooseFrontier choose;
    };
    // Grows several trees, at most most_grown(), each level of all of them in one pass. If more
    // than `window` features of a sequence wait, see catch_up.
    void grow_all(std::span<const Wanted> wanted, int top_k, int window = INT_MAX);
    std::span<const Candidate> table(size_t i) const { return grower_.table(i); }
    // The proposed tree; see tree_of.
    static TokenTree tree(std::span<const Candidate> table, const NodeList& kept,
                          const DraftRequest& request);
    // Number of known tokens that the model has not read.
    int backlog(const DraftRequest& request) const;
    // Runs the model over the positions that it has not read. If more than `window` features wait,
    // the model forgets what it knew and begins anew that far back: proposals may get worse, but
    // the cost is bounded. A language model needs no features and forgets nothing: it reads each
    // token of a text once.
    void catch_up(const DraftRequest& request, int window = INT_MAX);
    // Number of positions that catch_up would run.
    int to_read(const DraftRequest& request, int window) const;

  private:
    void tell_softness(const DraftRequest& request);
    void make_room(State& state, const Observed& observed);
    int keep_newest(State& state, int count);
    void read(State& state, std::span<const int> tokens, int count, int backlog_row);
    void run_pass(State& state, std::span<const int> tokens, int count, int backlog_row);
    // Positions of a sequence's text that the model reads beside those of others.
    struct Stretch {
        State* state = nullptr;
        std::span<const int> tokens;
        int count = 0, backlog_row = 0;
    };
    void catch_up_all(std::span<const Wanted> wanted, int window);
    void expand_group(const ExpansionPlan& expansion, std::span<const DraftRequest> requests);
    void run_shared_pass(std::span<const Stretch> stretches);
    Row text_row(const State& state, std::span<const int> tokens, int i) const;
    TreeStart tree_start(State& state);

    Backend& be_;
    std::unique_ptr<LevelModel> model_;
    Taps taps_;

  protected:
    size_t most_grown() const { return size_t(reach_.grow.together); }

  private:
    TreeDrafterLimits reach_;
    int pass_rows_;
    TreeGrower grower_;
    Buffer memory_;
    std::vector<TreeDrafterTensors> tensors_;  // by sequence
    SharedPassTensors shared_;                 // absent if sequences draft alone
    std::vector<Row> rows_;                    // rows of the pass that is being written
};

// Makes the drafter for trees of this growth.
std::unique_ptr<Drafter> make_tree_drafter(const DraftSource& source, TreeDrafter::Parts parts);
std::unique_ptr<Drafter> make_static_trees(const DraftSource& source, TreeDrafter::Parts parts);
std::unique_ptr<Drafter> make_dynamic_trees(const DraftSource& source, TreeDrafter::Parts parts);
std::unique_ptr<Drafter> make_chosen_trees(const DraftSource& source, TreeDrafter::Parts parts);

}  // namespace aerie
