// Recorded acceptance: a replay gives what the record holds, any tree can be replayed, and a
// damaged record is refused.
#include "measure/forced_acceptance.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <fstream>

#include "core/error.h"
#include "io/input_file.h"
#include "paths.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

fs::path recorded_file() {
    return repository_dir() / "bench" / "data" / "acceptance.txt";
}

const RecordedDrafts& recorded() {
    static const RecordedDrafts record = read_recorded_drafts(recorded_file());
    return record;
}

TEST(RecordedDrafts, AreWrittenAsTheyAreRead) {
    EXPECT_EQ(to_text(recorded()), read_text(recorded_file(), 64 << 20));
    for (const auto& text : recorded().texts)
        for (const std::string& line : text) ASSERT_EQ(encode(decode(line)), line);
}

TEST(RecordedDrafts, KeepLogProbabilities) {
    for (float log_prob = 0; log_prob > RecordedDrafts::kLeast; log_prob -= 0.003f)
        EXPECT_NEAR(as_recorded(log_prob), log_prob, 0.035f * std::sqrt(1e-3f - log_prob));
    for (float log_prob : {-7.1f, -100.0f, -INFINITY, float(NAN)})
        EXPECT_EQ(as_recorded(log_prob), RecordedDrafts::kNegligible);
}

TEST(Acceptance, HasTheTauOfTheWholeRecord) {
    ForcedAcceptance forced(recorded());
    EXPECT_GE(recorded().texts.size(), 60u);
    EXPECT_NEAR(forced.tau({60, 6, 10}), recorded().tau, 0.01 * recorded().tau);
}

TEST(Acceptance, SmallerTreesGetLess) {
    ForcedAcceptance forced(recorded());
    const double full = forced.tau({60, 6, 10}), deep = forced.tau({60, 10, 10});
    const double small = forced.tau({16, 6, 10}), chain = forced.tau({6, 5, 1});
    const double pair = forced.tau({2, 1, 1});
    std::printf("tau 60,10,10 %.2f, 60,6,10 %.2f, 16,6,10 %.2f, chain of 5 %.2f, of 1 %.2f\n", deep,
                full, small, chain, pair);
    EXPECT_GT(deep, full);
    EXPECT_GT(full, small);
    EXPECT_GT(small, chain);
    EXPECT_GT(chain, pair);
    EXPECT_GT(pair, 1.5);
}

TEST(Acceptance, CanBeForbiddenAndRescaled) {
    ForcedAcceptance forced(recorded());
    for (double tau : {1.5, 4.0, 6.0}) {
        forced.rescale(tau);
        EXPECT_NEAR(forced.tau({60, 6, 10}), tau, 0.02);
    }
    ForcedAcceptance again(recorded());
    again.rescale(6);
    EXPECT_EQ(again.tau({8, 6, 3}), forced.tau({8, 6, 3})) << "always the same tokens";
    EXPECT_THROW(forced.rescale(0.5), UsageError);
    EXPECT_THROW(forced.rescale(7.5), UsageError) << "six levels give at most seven tokens";
    forced.forbid();
    EXPECT_EQ(forced.tau({60, 6, 10}), 1);
}

class BadRecord : public testing::TestWithParam<std::pair<std::string, const char*>> {};

TEST_P(BadRecord, IsRefused) {
    const auto& [text, reason] = GetParam();
    const fs::path file =
        fs::temp_directory_path() / ("aerie_acceptance_" + std::to_string(::getpid()));
    std::ofstream(file, std::ios::binary) << text;
    try {
        read_recorded_drafts(file);
        ADD_FAILURE() << "taken: " << text.substr(0, 200);
    } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find(file.string() + ": "), 0u) << error.what();
        EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
    fs::remove(file);
}

std::string after_schema(const std::string& rest) {
    return "aerie-acceptance-2\n" + rest;
}

// A record of one position.
std::string of_draft(const std::string& line) {
    return after_schema("tau 2\ntexts 1\ntext 1\n" + line + "\n");
}

// A draft that is a chain of this many nodes.
std::string deep(size_t nodes) {
    std::string line;
    for (size_t i = 1; i < nodes; ++i) line += i == 1 ? "!0" : " !0";
    return line + " 0";
}

TEST(RecordedDrafts, MayHaveManyNodes) {
    EXPECT_EQ(decode(deep(1024)).size(), 1024u);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadRecord,
    testing::Values(
        std::pair{"", "too early"}, std::pair{"aerie-acceptance-2", "too early"},
        std::pair{"{\"schema\":\"aerie-acceptance-1\"}\n", "schema"},
        std::pair{after_schema(""), "too early"}, std::pair{after_schema("tau 0\n"), "tau"},
        std::pair{after_schema("tau nan\n"), "tau"}, std::pair{after_schema("tau 2x\n"), "tau"},
        std::pair{after_schema("tau 1e999\n"), "tau"}, std::pair{after_schema("tau\n"), "tau"},
        std::pair{after_schema("tau 2\ntexts 0\n"), "texts"},
        std::pair{after_schema("tau 2\ntexts 1001\n"), "texts"},
        std::pair{after_schema("tau 2\ntexts -1\n"), "texts"},
        std::pair{after_schema("tau 2\ntexts 99999999999\n"), "texts"},
        std::pair{after_schema("tau 2\ntexts 1\ntext 0\n"), "text"},
        std::pair{after_schema("tau 2\ntexts 1\ntext 100001\n"), "text"},
        std::pair{after_schema("tau 2\ntexts 1\ntext 2\n00\n"), "too early"},
        std::pair{after_schema("tau 2\ntexts 2\ntext 1\n00\n"), "too early"},
        std::pair{after_schema("tau 2\ntexts 2\ntext 1\n0\ntext 100000\n"), "text"},
        std::pair{of_draft("0") + "0\n", "follows"}, std::pair{of_draft("0") + "\n", "follows"},
        std::pair{of_draft("0\t0"), "means nothing"}, std::pair{of_draft("0\x80"), "means nothing"},
        std::pair{of_draft(std::string("0\0", 2)), "means nothing"},
        std::pair{of_draft("\x7f"), "means nothing"}, std::pair{of_draft("*!0 0"), "means nothing"},
        std::pair{of_draft("!!0 0"), "means nothing"}, std::pair{of_draft("0!"), "too early"},
        std::pair{of_draft("0*"), "too early"}, std::pair{of_draft("!0"), "too early"},
        std::pair{of_draft("!00 0 0"), "leads to"}, std::pair{of_draft("0 "), "leads to"},
        std::pair{of_draft(" "), "leads to"}, std::pair{of_draft("*0*0"), "true node"},
        std::pair{of_draft("!0*0 *0"), "true node"},
        std::pair{of_draft(std::string(33, '0')), "too many children"},
        std::pair{of_draft(deep(1025)), "too many nodes"}));

TEST(RecordedDrafts, RefusesAFileThatIsTooLarge) {
    const fs::path file = fs::temp_directory_path() / ("aerie_large_" + std::to_string(::getpid()));
    std::ofstream(file).close();
    fs::resize_file(file, size_t(1) << 40);  // a sparse file
    EXPECT_THROW(read_recorded_drafts(file), Error);
    fs::remove(file);
}

}  // namespace
}  // namespace aerie::test
