// What a tree is grown with, a pass a level: a draft head, or a small language model.
#pragma once

#include "backend/backend.h"
#include "core/rows.h"
#include "model/kv_pool.h"

namespace aerie {

// The states of the parents of some rows.
struct ParentStates {
    Tensor states;      // [n, state_columns]
    Tensor index = {};  // I32 [1, M], row i's parent; absent: row by row
    Tensor room = {};   // [M, state_columns]: where they are gathered

    // Row by row.
    Tensor gathered(Backend& be) const {
        if (!index) return states;
        be.run(GatherRows{room, states, index}, "parents");
        return room;
    }
};

// A pass reads and writes the model's own KV cache, in the slots that its rows name. Numerics are
// the model's own affair: they never change what is put out.
class LevelModel {
  public:
    virtual ~LevelModel() = default;

    // The row of position p has the token of position p + token_lead(): 1 for a head, which pairs
    // a feature with the token after it, 0 for a language model.
    virtual int token_lead() const = 0;
    // Columns of what a node hands to its children (F32); 0 where its rows say all.
    virtual int state_columns() const = 0;
    virtual int feature_columns() const = 0;  // of the target's features that `read` takes
    virtual int vocab() const = 0;            // columns of its logits
    // I32 [1, vocab]: the target's id of each of its own; absent: the same ids.
    virtual Tensor target_ids() const { return {}; }
    // What it reads for a token of the target.
    virtual int token_of(int token) const { return token; }
    virtual KvPool& kv() = 0;

    // Rows of the text over the target's true features [M, feature_columns]: their states [M,
    // state_columns].
    virtual void read(Tensor state, Tensor features, Rows rows) = 0;
    // Drafted rows of level 1, 2, ... over the states of their parents.
    virtual void forward(Tensor state, const ParentStates& parents, Rows rows, int level) = 0;
    // F32 [n, vocab], of the last n rows of the newest pass, whose states these are; `level` as in
    // that pass, 0 after `read`.
    virtual void logits(Tensor out, Tensor state, int level) = 0;
    // Whether levels are computed differently.
    virtual bool differs_by_level() const { return false; }
};

}  // namespace aerie
