// Acceptance that a real head and target had, replayed where there is none to speak of (random
// weights), so that speed can be measured there. A replay walks the recorded texts: each cycle
// drafts at the position where the tokens that the one before put out end.
#pragma once

#include "draft/drafter.h"
#include "measure/recorded_drafts.h"

namespace aerie {

// Puts a record in the place of what head and target compute. A candidate stands for the recorded
// one at the same place in the tree (child ranks from the root), so any shape can be replayed.
class ForcedAcceptance {
  public:
    explicit ForcedAcceptance(RecordedDrafts recorded);

    // Nothing is ever accepted.
    void forbid() { shift_ = -1; }
    // Some tokens of the texts, always the same ones, become such as no draft has, or such as every
    // draft has first, until tau of the tree 60,6,10 is `tau`, at least 1. Throws UsageError if it
    // cannot be reached.
    void rescale(double tau);
    // Begins with the first text again.
    void restart();

    // A DraftOptions::on_level: rewrites values and log-probabilities of a new level.
    void level(std::span<Candidate> table, int first, int last);
    // The tree that EAGLE-2 grows here without a model; its tokens are child ranks.
    TokenTree tree(const TreeShape& shape);
    // What the target is taken to have chosen after each node of the tree made of these levels
    // (none: a bare root). The text goes on behind what is then accepted.
    NodeList choices(const TokenTree& tree);
    // Tokens that the last choices put out: those accepted and one more, up to the text's end.
    int put_out() const { return put_out_; }
    bool begins_text() const { return position_ == 0; }
    bool begins() const { return text_ == 0 && position_ == 0; }

    // Tokens a cycle of a tree of this shape over all texts, without a model.
    double tau(const TreeShape& shape);

  private:
    // Where a table entry stands in the recorded draft.
    struct Place {
        int node = -1;  // -1: its children were not recorded
        bool is_true = false;
        int depth = 0;
    };
    double draw(int depth) const;
    int truth(const Place& parent) const;
    Place child(const Place& parent, int rank) const;
    float log_prob(const Place& parent, int rank) const;
    int choice_below(int entry) const;
    void go_to(size_t text, int position);

    RecordedDrafts recorded_;
    double shift_ = 0;  // below 0: share of tokens never drafted; above: of tokens always drafted
    size_t text_ = 0;
    int position_ = 0, put_out_ = 0;
    RecordedDraft draft_;  // of this position
    // Of the tree being grown: where each table entry stands, and the table.
    std::vector<Place> places_;
    std::vector<Candidate> table_;
};

}  // namespace aerie
