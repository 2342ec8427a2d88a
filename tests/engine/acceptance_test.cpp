// The recorded acceptance: what it replays is what was recorded, and a damaged record is refused.
#include "engine/acceptance.h"

#include <gtest/gtest.h>

#include "engine/bundled.h"
#include "paths.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

fs::path recorded() {
    return repository_dir() / "bench" / "data" / "acceptance.json";
}

TEST(Acceptance, ReplaysTheTauThatWasRecorded) {
    const AcceptanceRecord record = read_acceptance(recorded());
    EXPECT_GE(record.cycles.size(), 100u);
    ForcedAcceptance forced(record);
    EXPECT_DOUBLE_EQ(forced.tau({60, 6, 10}), record.tau);
}

TEST(Acceptance, SmallerTreesGetLess) {
    ForcedAcceptance forced(read_acceptance(recorded()));
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
    ForcedAcceptance forced(read_acceptance(recorded()));
    for (double tau : {1.5, 4.0, 5.0, 6.0}) {
        forced.rescale(tau);
        EXPECT_NEAR(forced.tau({60, 6, 10}), tau, 0.05);
    }
    EXPECT_THROW(forced.rescale(0.5), UsageError);
    EXPECT_THROW(forced.rescale(7.5), UsageError) << "six levels give at most seven tokens";
    forced.forbid();
    EXPECT_EQ(forced.tau({60, 6, 10}), 1);
}

// The same through a real head's levels and trees; what head and target compute does not matter.
TEST(Acceptance, ForcesADrafter) {
    Bundled model(bundled_options(DType::F16));
    const AcceptanceRecord record = read_acceptance(recorded());
    ForcedAcceptance forced(record);
    DraftOptions draft = draft_options(DraftKind::eagle2);
    draft.on_level = [&](std::span<Candidate> table, int first, int last) {
        forced.level(table, first, last);
    };
    auto drafting = model.drafting(draft);
    Session& session = *drafting.session;
    session.begin({});
    session.prefill(std::vector<int>{1, 50, 60});
    size_t tokens = 0;
    for (size_t cycle = 0; cycle < record.cycles.size(); ++cycle) {
        const TokenTree tree = session.propose();
        ASSERT_EQ(tree.size(), 60);
        tokens += session.commit(tree, accept(tree, forced.choices(tree))).tokens.size();
    }
    EXPECT_DOUBLE_EQ(double(tokens) / double(record.cycles.size()), record.tau);
}

class BadRecord : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BadRecord, IsRefused) {
    const auto [text, reason] = GetParam();
    const fs::path file =
        fs::temp_directory_path() / ("aerie_acceptance_" + std::to_string(::getpid()));
    std::ofstream(file) << text;
    try {
        read_acceptance(file);
        ADD_FAILURE() << "taken: " << text;
    } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find(file.string() + ": "), 0u) << error.what();
        EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
    fs::remove(file);
}

#define RECORD(cycles) "{\"schema\":\"aerie-acceptance-1\",\"tau\":2,\"cycles\":" cycles "}"
INSTANTIATE_TEST_SUITE_P(
    Cases, BadRecord,
    testing::Values(
        std::pair{"", "JSON"}, std::pair{"[]", "schema"},
        std::pair{"{\"schema\":\"aerie-acceptance-2\"}", "schema"},
        std::pair{"{\"schema\":\"aerie-acceptance-1\",\"cycles\":[[[-1,-1,-1,5]]]}", "tau"},
        std::pair{"{\"schema\":\"aerie-acceptance-1\",\"tau\":1e9,\"cycles\":[]}", "tau"},
        std::pair{RECORD("[]"), "cycles"}, std::pair{RECORD("7"), "cycles"},
        std::pair{RECORD("[[]]"), "list of 1"}, std::pair{RECORD("[[7]]"), "list of 3"},
        std::pair{RECORD("[[[0,-1,-1,5]]]"), "from -1 to -1"},
        std::pair{RECORD("[[[-1,-1,32,5]]]"), "from -1 to 31"},
        std::pair{RECORD("[[[-1,-1,-1,-5]]]"), "from 0"},
        std::pair{RECORD("[[[-1,-1,-1,0.5]]]"), "from 0"},
        std::pair{RECORD("[[[-1,-1,-1,1e99]]]"), "from 0"},
        std::pair{RECORD("[[[-1,-1,-1,5],[1,0,-1,5]]]"), "from 0 to 0"},
        std::pair{RECORD("[[[-1,-1,-1,5],[0,32,-1,5]]]"), "from 0 to 31"},
        std::pair{RECORD("[[[-1,-1,-1,5],[0,0,-1,5],[0,0,-1,5]]]"), "twice"},
        std::pair{RECORD("[[[-1,-1,1,5],[0,0,0,5]]]"), "true node below"}));
#undef RECORD

}  // namespace
}  // namespace aerie::test
