// Truth from an independent PyTorch program (tests/data, see its README): ids, logits, first trees,
// tau.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "backend/ops.h"
#include "engine/bundled.h"

namespace aerie::test {
namespace {

Bundled& bundled() {
    static Bundled model(bundled_options(DType::F32));
    return model;
}

TEST(Golden, PromptIds) {
    const Json greedy = read_data("greedy.json");
    for (const Json& entry : *greedy.array())
        EXPECT_EQ(bundled().encode(*entry.find("prompt")->string()),
                  ints(*entry.find("prompt_ids")));
}

TEST(Golden, Logits) {
    auto drafting = bundled().drafting(draft_options(DraftKind::eagle2));
    Session& session = *drafting.session;
    double worst = 0, worst_feature = 0;
    const Json golden = read_data("logits.json");
    for (const Json& entry : *golden.array()) {
        const std::vector<int> prompt = ints(*entry.find("prompt_ids"));
        session.begin({});
        session.prefill(prompt);
        std::vector<float> logits(size_t(session.logits().cols));
        bundled().backend().read(session.logits().row_range(0, 1), logits.data());
        for (const auto& [ids, values] : {std::pair{"top_ids", "top"}, {"probe_ids", "probe"}}) {
            const std::vector<int> tokens = ints(*entry.find(ids));
            for (size_t i = 0; i < tokens.size(); ++i)
                worst = std::max(worst, std::abs(logits[size_t(tokens[i])] -
                                                 entry.find(values)->array()->at(i).number()));
        }
        const int last = (int(prompt.size()) - 1) % kPrefillRows;
        std::vector<float> feature(size_t(session.features().cols));
        bundled().backend().read(session.features().row_range(last, 1), feature.data());
        const Json::Array& want = *entry.find("feature")->array();
        for (size_t i = 0; i < want.size(); ++i)
            worst_feature = std::max(worst_feature, std::abs(feature[i] - want[i].number()));
    }
    std::printf("max abs error: logits %.2e, features %.2e\n", worst, worst_feature);
    EXPECT_LE(worst, 2e-3);
    EXPECT_LE(worst_feature, 2e-3);
}

// The first tree as paths of tokens -> value.
std::map<std::vector<int>, double> paths_of(const std::vector<int>& tokens,
                                            const std::vector<int>& parents,
                                            const std::vector<double>& values) {
    std::vector<std::vector<int>> path(tokens.size() + 1);
    std::map<std::vector<int>, double> result;
    for (size_t i = 0; i < tokens.size(); ++i) {
        path[i + 1] = path[size_t(parents[i])];
        path[i + 1].push_back(tokens[i]);
        result[path[i + 1]] = values[i];
    }
    return result;
}

TEST(Golden, FirstTrees) {
    auto drafting = bundled().drafting(draft_options(DraftKind::eagle2));
    int trees = 0, missing = 0, near_cut = 0;
    const Json golden = read_data("trees.json");
    for (const Json& entry : *golden.array()) {
        if (*entry.find("method")->string() != "eagle2") continue;
        ++trees;
        drafting.session->begin({});
        const Turn turn = drafting.session->prefill(ints(*entry.find("prompt_ids")));
        EXPECT_EQ(turn.tokens.front(), int(entry.find("pending")->number()));
        const TokenTree tree = drafting.session->propose();
        ASSERT_EQ(tree.size(), 60);
        const std::vector<int> drafted(tree.tokens.begin() + 1, tree.tokens.end());
        const std::vector<int> parents(tree.parents.begin() + 1, tree.parents.end());
        const auto ours = paths_of(drafted, parents, std::vector<double>(drafted.size()));
        std::vector<double> values;
        for (const Json& value : *entry.find("values")->array()) values.push_back(value.number());
        const auto theirs =
            paths_of(ints(*entry.find("tokens")), ints(*entry.find("parents")), values);
        const double cut = *std::min_element(values.begin(), values.end());
        for (const auto& [path, value] : theirs)
            if (!ours.count(path)) ++(value - cut <= 1e-4 ? near_cut : missing);
    }
    std::printf("%d trees, %d paths differ near the cut, %d elsewhere\n", trees, near_cut, missing);
    EXPECT_EQ(trees, 14);
    EXPECT_EQ(missing, 0);
}

struct Tau {
    double tokens = 0, cycles = 0;
};

// Runs every golden prompt; ids must agree up to `safe`; tau over those that agree entirely.
void check_greedy(const char* method, const DraftOptions& options) {
    auto drafting = bundled().drafting(options);
    std::map<std::string, Tau> ours, theirs;
    int agree = 0, safe_failures = 0;
    const Json greedy = read_data("greedy.json");
    for (const Json& entry : *greedy.array()) {
        const std::vector<int> want = ints(*entry.find("ids"));
        const Generation got = bundled().run(
            *drafting.session, bundled().request(ints(*entry.find("prompt_ids")), 128));
        const size_t safe = size_t(entry.find("safe")->number());
        for (size_t i = 0; i < std::min(safe, want.size()); ++i)
            if (i >= got.ids.size() || got.ids[i] != want[i]) {
                ++safe_failures;
                break;
            }
        if (got.ids != want) continue;
        ++agree;
        EXPECT_EQ(got.text, *entry.find("text")->string());
        const Json* passes = entry.find("passes")->find(method);
        for (const std::string& group : {*entry.find("group")->string(), std::string("all")}) {
            ours[group].tokens += got.stats.cycle_tokens;
            ours[group].cycles += got.stats.cycles;
            theirs[group].tokens += double(want.size()) - 1;
            if (passes) theirs[group].cycles += passes->number();
        }
    }
    EXPECT_EQ(safe_failures, 0);
    std::printf("%s: %d of 40 prompts agree entirely\n", method, agree);
    EXPECT_GE(agree, 35);
    if (options.kind == DraftKind::none) return;
    for (const auto& [group, tau] : ours) {
        const double have = tau.tokens / tau.cycles;
        const double want = theirs[group].tokens / theirs[group].cycles;
        std::printf("  %-6s tau %.4f, reference %.4f (%+.2f %%)\n", group.c_str(), have, want,
                    100 * (have / want - 1));
        EXPECT_NEAR(have / want, 1, 0.015) << method << " " << group;
    }
}

TEST(Golden, GreedyNone) {
    check_greedy("none", draft_options(DraftKind::none));
}
TEST(Golden, GreedyChain) {
    check_greedy("chain", draft_options(DraftKind::chain));
}
TEST(Golden, GreedyEagle1) {
    check_greedy("eagle1", draft_options(DraftKind::eagle1));
}
TEST(Golden, GreedyEagle2) {
    check_greedy("eagle2", draft_options(DraftKind::eagle2));
}

// tau over all golden prompts with EAGLE-2, the head in a type of its own.
double tau_of_head(DType draft_type) {
    Bundled model(bundled_options(DType::F32, draft_type));
    auto drafting = model.drafting(draft_options(DraftKind::eagle2));
    Tau total;
    const Json greedy = read_data("greedy.json");
    for (const Json& entry : *greedy.array()) {
        const Generation got =
            model.run(*drafting.session, model.request(ints(*entry.find("prompt_ids")), 128));
        total.tokens += got.stats.cycle_tokens;
        total.cycles += got.stats.cycles;
    }
    return total.tokens / total.cycles;
}

TEST(Golden, QuantisedHeadsKeepTau) {
    const double exact = tau_of_head(DType::F32);
    for (const auto& [type, loss] : {std::pair(DType::Q8_0, 0.01), {DType::Q4_0, 0.08}}) {
        const double tau = tau_of_head(type);
        std::printf("tau %.4f with a head in f32, %.4f in %s (%+.2f %%)\n", exact, tau, name(type),
                    100 * (tau / exact - 1));
        EXPECT_GE(tau, (1 - loss) * exact);
    }
}

}  // namespace
}  // namespace aerie::test
