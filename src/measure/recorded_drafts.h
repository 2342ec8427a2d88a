// Drafts of a real head at every position of some texts, with what a real target chose: kept as
// lines of text, decoded one at a time. bench/README.md has the format.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/fixed_vector.h"
#include "core/rows.h"

namespace aerie {

// A drafted node below which the head was run.
struct RecordedNode {
    struct Child {
        float log_prob = 0;
        int node = -1;  // its index in the draft; -1: the head was not run below it
    };
    FixedVector<Child, kMaxTopK> children;  // by rank; further ones were negligible
    int truth = -1;  // rank of the child that is the true continuation; -1: none of them
};
using RecordedDraft = std::vector<RecordedNode>;  // the root first, parents before children

struct RecordedDrafts {
    static constexpr const char* kSchema = "aerie-acceptance-2";
    static constexpr float kLeast = -7;        // log-probabilities below are negligible
    static constexpr float kNegligible = -12;  // that of a child that was not recorded

    using Text = std::vector<std::string>;  // the draft of each position, encoded
    std::vector<Text> texts;
    double tau = 0;  // of EAGLE-2's tree 60,6,10 where these texts were generated
};

// A log-probability as it will be read back.
float as_recorded(float log_prob);
std::string encode(const RecordedDraft& draft);
// Throws Error with what is wrong.
RecordedDraft decode(std::string_view line);

std::string to_text(const RecordedDrafts& drafts);
// Every draft can be decoded. Throws Error naming the file and what is wrong with it.
RecordedDrafts read_recorded_drafts(const std::filesystem::path& path);

}  // namespace aerie
