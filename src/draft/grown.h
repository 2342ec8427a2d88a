// What all drafters have in common that grow trees with a LevelModel: it reads the text behind the
// target; what it has missed it reads when a proposal needs it.
#pragma once

#include <climits>
#include <vector>

#include "draft/grow.h"
#include "draft/methods.h"
#include "draft/softness.h"

namespace aerie {

// Deepest guess that is grafted on a tree, however few levels its model drafts.
constexpr int kGraftDepth = kMostAuto.levels;

// Most positions that the model reads before a proposal after a stretch of plain decoding.
constexpr int kWindow = 16;

// How the trees of a method grow.
struct Growth {
    TreePaths paths = {};     // along these; none: else
    TreeShape shape;          // of this shape, or
    bool is_chosen = false;   // by measurement, of this shape at the most
    bool has_grafts = false;  // the same with what the text itself said before
};
Growth chain_growth(const DraftOptions& options);
Growth static_growth(const DraftOptions& options);
Growth dynamic_growth(const DraftOptions& options);
Growth grafted_growth(const DraftOptions& options);
// The same as far as a model drafts so many levels.
Growth within(Growth growth, int levels);

// What a drafter of such trees can reach; sizes every buffer.
struct GrownReach {
    int nodes = 0;        // of the tree, root included
    int levels = 0;       // of drafted tokens
    int draft_slots = 0;  // of the model's KV cache, beyond the committed positions
    GrowLimits grow;

    // Of the model: rows of a pass, positions of a text, slots of its KV cache.
    int rows(int pass_rows) const { return std::max(pass_rows, grow.width); }
    int positions(int context) const { return context + levels + 2; }
    int slots(int context) const { return context + draft_slots + 1; }
};
GrownReach reach_of(const Growth& growth);
GrownReach static_reach(const TreePaths& paths);
GrownReach dynamic_reach(const TreeShape& shape);

// Device memory of one text's drafts, besides the model's.
struct GrownTensors {
    void add_to(TensorPlan& plan, int state_columns, int feature_columns, int pass_rows);

    Tensor backlog;  // [kBacklogRows + pass_rows, feature_columns]: observed, not yet read
    Tensor rows;     // [pass_rows, kRowInts]: of the model's last pass over the text
    Tensor states;   // [pass_rows, state_columns]: what it gave
};
// What a GrownDrafter allocates for such a model.
size_t grown_bytes(const DraftPlan& plan, const GrownReach& reach, int state_columns,
                   int feature_columns, int vocab);

class GrownDrafter : public Drafter {
  public:
    struct Parts {
        std::unique_ptr<LevelModel> model;
        Taps taps;  // that it reads
        Growth growth;
    };
    GrownDrafter(const DraftSource& source, Parts parts);
    GrownDrafter(const DraftSource& source, Parts parts, const GrownReach& reach);

    DraftReach reach() const override { return {reach_.nodes, reach_.levels, taps_}; }
    std::unique_ptr<DraftState> begin() override;
    void observe(const Observed& observed) override;
    void prepare(const DraftRequest& request) override { catch_up(request); }

  protected:
    // Of one text. Positions count from `first`, where the model's own text begins.
    struct State : DraftState {
        State(const GrownDrafter& of, KvPages held);

        int positions() const override;
        void truncate(int positions) override;
        std::unique_ptr<DraftState> fork(int positions) const override;
        void save(SaveSink& to) const override;
        void load(SaveSource& from) override;

        const GrownDrafter& drafter;
        KvPages pages;
        int first = 0, read = 0;   // positions in [first, read) have been run
        int waiting = 0;           // those behind them, from the backlog's first row on
        Row last;                  // of the last pass
        LearnedSoftness softness;  // of coupled proposals
    };

    // What begin and fork make.
    virtual std::unique_ptr<State> make_state(KvPages pages, const State* like) const;
    // Whether a prompt is to be read whole; else only its end is kept.
    virtual bool reads_prompt(const State&) const { return true; }

    std::span<const Candidate> expand(const Expansion& expansion, const DraftRequest& request);
    std::span<const Candidate> grow(FrontierPolicy& policy, int top_k, const DraftRequest& request);
    // What is proposed: tree_of.
    static TokenTree tree(std::span<const Candidate> table, const NodeList& kept,
                          const DraftRequest& request);
    // Positions that the model misses.
    int backlog(const DraftRequest& request) const;
    // Runs the model over them. With more than `window` features waiting it forgets what it knew
    // and begins anew that far back: proposals may get worse, the cost stays bounded. A language
    // model needs no features and forgets nothing: it reads each token of a text once.
    void catch_up(const DraftRequest& request, int window = INT_MAX);
    // The positions that this runs.
    int to_read(const DraftRequest& request, int window) const;

  private:
    void tell_softness(const DraftRequest& request);
    void make_room(State& state, const Observed& observed);
    int keep_newest(State& state, int count);
    void read(State& state, std::span<const int> tokens, int count, int backlog_row);
    void run_pass(State& state, std::span<const int> tokens, int count, int backlog_row);
    TextEnd text_end(State& state);

    Backend& be_;
    std::unique_ptr<LevelModel> model_;
    Taps taps_;
    GrownReach reach_;
    int pass_rows_;
    TreeGrower grower_;
    Buffer memory_;
    std::vector<GrownTensors> tensors_;  // by sequence
    std::vector<Row> rows_;              // of the pass being written
};

// The drafter that grows so with this model.
std::unique_ptr<Drafter> make_grown(const DraftSource& source, GrownDrafter::Parts parts);
std::unique_ptr<Drafter> make_static_trees(const DraftSource& source, GrownDrafter::Parts parts);
std::unique_ptr<Drafter> make_dynamic_trees(const DraftSource& source, GrownDrafter::Parts parts);
std::unique_ptr<Drafter> make_chosen_trees(const DraftSource& source, GrownDrafter::Parts parts);

}  // namespace aerie
