// Drafts of a real head at every position of some texts, with the choices of a real target. They
// are kept as lines of text and decoded one at a time. bench/README.md describes the format.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/fixed_vector.h"
#include "core/rows.h"

namespace aerie {

// A drafted node that the head was run on.
struct RecordedNode {
    struct Child {
        float log_prob = 0;
        int node = -1;  // index in the draft; -1: the head was not run on it
    };
    FixedVector<Child, kMaxTopK> children;  // by rank; further ones were negligible
    int truth = -1;                         // rank of the true child; -1: none
};
using RecordedDraft = std::vector<RecordedNode>;  // the root first, parents before children

struct RecordedDrafts {
    static constexpr const char* kSchema = "aerie-acceptance-2";
    static constexpr float kLeast = -7;        // smaller log-probabilities are negligible
    static constexpr float kNegligible = -12;  // log-probability of children that were not recorded

    using Text = std::vector<std::string>;  // the draft of each position, encoded
    std::vector<Text> texts;
    double tau = 0;  // with EAGLE-2's tree 60,6,10 where these texts were generated
};

// The log-probability that will be read back after recording.
float as_recorded(float log_prob);
std::string encode(const RecordedDraft& draft);
// Throws Error that says what is wrong.
RecordedDraft decode(std::string_view line);

std::string to_text(const RecordedDrafts& drafts);
// Checks that every draft can be decoded. Throws Error naming the file and what is wrong with it.
RecordedDrafts read_recorded_drafts(const std::filesystem::path& path);

}  // namespace aerie
