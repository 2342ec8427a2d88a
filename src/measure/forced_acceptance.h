// Replays the acceptance of a real head and target, so that speed can be measured with models that
// have none to speak of (random weights). A replay walks through the recorded texts: each cycle
// drafts at the position that the tokens put out before have reached.
#pragma once

#include "draft/drafter.h"
#include "measure/recorded_drafts.h"

namespace aerie {

// Replaces the results of head and target by a record. A candidate stands for the recorded
// candidate at the same place in the tree, given by child ranks from the root, so any shape can be
// replayed.
class ForcedAcceptance {
  public:
    explicit ForcedAcceptance(RecordedDrafts recorded);

    // Makes every draft wrong.
    void forbid() { shift_ = -1; }
    // Makes some tokens of the texts, always the same ones, such that no draft has them, or such
    // that every draft has them first, until the tree 60,6,10 has acceptance length `tau`, at least
    // 1. Throws UsageError if that is impossible.
    void rescale(double tau);
    // Starts again, with the first text, or with another one (their number counts round).
    void restart(size_t text = 0);

    // A DraftOptions::on_level: rewrites the values and log-probabilities of a new level.
    void level(std::span<Candidate> table, int first, int last);
    // The tree that EAGLE-2 grows at this position, without a model; its tokens are child ranks.
    TokenTree tree(const TreeShape& shape);
    // The target's recorded choices after the nodes of the tree made of these levels (none: only a
    // root). The text then goes on behind the accepted tokens.
    NodeList choices(const TokenTree& tree);
    // Tokens that the last call of choices put out: the accepted ones and one more, up to the
    // text's end.
    int put_out() const { return put_out_; }
    bool begins_text() const { return position_ == 0; }
    bool begins() const { return text_ == 0 && position_ == 0; }

    // Acceptance length of trees of this shape over all texts, without a model.
    double tau(const TreeShape& shape);

  private:
    // The place of a table entry in the recorded draft.
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
    double shift_ = 0;  // below 0: part of the tokens never drafted; above 0: always drafted
    size_t text_ = 0;
    int position_ = 0, put_out_ = 0;
    RecordedDraft draft_;  // at this position
    // The place of each table entry of the growing tree, and the table.
    std::vector<Place> places_;
    std::vector<Candidate> table_;
};

}  // namespace aerie
