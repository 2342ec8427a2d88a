// Throughput of several sequences that share passes, plain and drafted: Table 7 of the EAGLE paper.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/model.h"
#include "measure/recorded_drafts.h"
#include "measure/timings.h"

namespace aerie {

struct SequencesTimes {
    int sequences = 0;
    double tau = 0, tree_nodes = 0;  // means over all cycles; 0: nothing is drafted
    // Per round: tokens per second of all sequences together, and drafted over plain.
    Timings plain, drafted, speedup;
};

class SequencesBench {
  public:
    struct Plan {
        int sequences = 1;
        double round_seconds = 1;        // time for a round's cycles of each kind
        std::vector<int> prompt;         // each sequence's
        std::optional<TreeShape> shape;  // unset: sized by measurement
        // Replayed in place of the model's own acceptance; null: plain decoding alone.
        const RecordedDrafts* acceptance = nullptr;
        std::optional<double> tau;  // acceptance length to which the record is rescaled
    };
    // Throws Error.
    SequencesBench(Model& model, const Plan& plan);
    ~SequencesBench();

    void warm_up();  // as many cycles as a round, so that a drafter can learn
    void round();
    SequencesTimes times() const;

  private:
    class Side;

    std::unique_ptr<Side> plain_, drafted_;  // drafted_ is null without acceptance
    SequencesTimes times_;
    int64_t cycles_ = 0, tokens_ = 0, nodes_ = 0;  // counts of drafted_, in rounds
};

// The most sequences of this context for which the device's memory has room beside the model, up to
// `limit`.
int most_sequences(const ModelFiles& files, const LoadOptions& options, const Backend& backend,
                   int limit);

}  // namespace aerie
