// The model that a tree is grown with, one pass for each level: a draft head or a small language
// model.
#pragma once

#include "backend/backend.h"
#include "core/rows.h"
#include "draft/drafter.h"
#include "model/kv_pool.h"

namespace aerie {

// The states of the parents of M rows.
struct ParentStates {
    Tensor states;        // [n, state_columns]
    Tensor index = {};    // I32 [1, M]: each row's parent in `states`; absent: in order
    Tensor scratch = {};  // [M, state_columns]: for the gathered states

    // One parent state for each row, in order of rows.
    Tensor gathered(Backend& be) const {
        if (!index) return states;
        be.run(GatherRows{scratch, states, index}, "parents");
        return scratch;
    }
};

// A pass reads and writes the model's own KV cache, in the slots that its rows name. A level model
// is exempt from the invariance contract, since its numbers never change the output.
class LevelModel {
  public:
    virtual ~LevelModel() = default;

    // The row of position p has the token of position p + token_lead(): 1 for a head, which pairs a
    // feature with the token after it, 0 for a language model.
    virtual int token_lead() const = 0;
    // Columns (F32) of the state that a node passes to its children; 0 if its row suffices.
    virtual int state_columns() const = 0;
    virtual int feature_columns() const = 0;  // columns of the target's features that `read` takes
    virtual int vocab() const = 0;            // columns of the logits
    // I32 [1, vocab]: the target's id of each draft id; absent: ids are the same.
    virtual Tensor target_ids() const { return {}; }
    // The id that the model reads for a token of the target.
    virtual int token_of(int token) const { return token; }
    virtual KvPool& kv() = 0;
    // The weights in use, and others of the same shape in their place; null: the model's own.
    virtual const DraftWeights* weights() const { return nullptr; }
    virtual void use(const std::shared_ptr<const DraftWeights>& weights) { (void)weights; }

    // Runs rows of the text over the target's features [M, feature_columns], and writes their
    // states [M, state_columns].
    virtual void read(Tensor state, Tensor features, Rows rows) = 0;
    // Runs drafted rows of level 1, 2, ... over the states of their parents.
    virtual void forward(Tensor state, const ParentStates& parents, Rows rows, int level) = 0;
    // Writes F32 [n, vocab], the logits of the last n rows of the newest pass; `state` holds the
    // states of these rows. `level` is that of the pass, 0 after `read`; the rows are those of so
    // many trees.
    virtual void logits(Tensor out, Tensor state, int level, int trees) = 0;
    // Whether levels are computed differently, so that each needs its own recording.
    virtual bool differs_by_level() const { return false; }
};

}  // namespace aerie
