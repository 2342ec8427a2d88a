// A replay of the recorded drafts puts out as much as decoding the same texts does, with any tree.
#include <gtest/gtest.h>

#include "engine/recorded_prompts.h"
#include "measure/forced_acceptance.h"

namespace aerie::test {
namespace {

const RecordedDrafts& recorded() {
    static const RecordedDrafts record =
        read_recorded_drafts(repository_dir() / "bench" / "data" / "acceptance.txt");
    return record;
}

// Indices of prompts of all kinds: 6 of them, or $AERIE_TEST_PROMPTS.
std::vector<size_t> chosen_prompts() {
    const char* count = std::getenv("AERIE_TEST_PROMPTS");
    const size_t all = recorded().texts.size();
    const size_t some = std::clamp<size_t>(count ? size_t(std::atoi(count)) : 6, 1, all);
    std::vector<size_t> chosen;
    for (size_t i = 0; i < some; ++i) chosen.push_back(i * all / some);
    return chosen;
}

struct Count {
    int64_t tokens = 0, cycles = 0, nodes = 0;

    double tau() const { return double(tokens) / double(cycles); }
    double mean_nodes() const { return double(nodes) / double(cycles); }
};

// The whole chosen texts, decoded by the models or replayed from the record.
class Replay : public testing::Test {
  protected:
    Replay() {
        record_.texts.clear();
        for (size_t i : chosen_) record_.texts.push_back(recorded().texts[i]);
    }

    Count generated(Bundled::Drafting& drafting) {
        const auto prompts = recorded_prompts();
        EXPECT_EQ(prompts.size(), recorded().texts.size());
        Count count;
        for (size_t i : chosen_) {
            const GenerationResult answer =
                model_.run(*drafting.session, model_.request(model_.encode(prompts[i]), 128));
            EXPECT_EQ(answer.ids.size(), recorded().texts[i].size() + 1) << "another text: " << i;
            count.tokens += answer.stats.cycle_tokens;
            count.cycles += answer.stats.cycles;
            count.nodes += answer.stats.cycle_nodes;
        }
        return count;
    }

    Count generated(const DraftOptions& draft) {
        auto drafting = model_.drafting(draft);
        return generated(drafting);
    }

    void expect_alike(const char* what, const Count& generated, const Count& replayed,
                      double tolerance = 0.01) {
        std::printf("%s: tau %.3f, %.2f nodes; replayed %.3f, %.2f\n", what, generated.tau(),
                    generated.mean_nodes(), replayed.tau(), replayed.mean_nodes());
        EXPECT_EQ(replayed.tokens, generated.tokens);
        EXPECT_NEAR(replayed.tau(), generated.tau(), tolerance * generated.tau());
        EXPECT_NEAR(replayed.mean_nodes(), generated.mean_nodes(),
                    2 * tolerance * generated.mean_nodes());
    }

    Count generated_auto(const MeasuredCosts& costs, const LevelHook& on_level = {}) {
        DraftOptions draft = auto_options();
        draft.on_level = on_level;
        auto drafting = model_.drafting(draft);
        drafting.drafter->cost_aware()->set_costs(costs);
        return generated(drafting);
    }

    // Replays through a real drafter; the results of head and target do not matter.
    Count replayed_auto(const MeasuredCosts& costs) {
        ForcedAcceptance forced(record_);
        DraftOptions draft = auto_options();
        draft.on_level = [&](const DraftState&, std::span<Candidate> table, int first, int last) {
            forced.level(table, first, last);
        };
        auto drafting = model_.drafting(draft);
        drafting.drafter->cost_aware()->set_costs(costs);
        Session& session = *drafting.session;
        Count count;
        do {
            if (forced.begins_text()) {
                session.begin({});
                session.prefill(std::vector<int>{1, 50, 60});
            }
            const TokenTree tree = session.propose();
            session.commit(tree, accept(tree, forced.choices(tree)));
            count.tokens += forced.put_out();
            count.nodes += tree.size();
            ++count.cycles;
        } while (!forced.begins());
        return count;
    }

    Bundled model_{bundled_options(DType::F16)};
    std::vector<size_t> chosen_ = chosen_prompts();
    RecordedDrafts record_ = recorded();
};

// Replays without a model.
Count replayed(const RecordedDrafts& record, const TreeShape& shape) {
    ForcedAcceptance forced(record);
    Count count;
    do {
        const TokenTree tree = forced.tree(shape);
        forced.choices(tree);
        count.tokens += forced.put_out();
        count.nodes += tree.size();
        ++count.cycles;
    } while (!forced.begins());
    EXPECT_DOUBLE_EQ(ForcedAcceptance(record).tau(shape), count.tau());
    return count;
}

TEST_F(Replay, GivesTheTauOfGenerationWithFixedTrees) {
    for (const TreeShape& shape : {TreeShape{60, 6, 10}, TreeShape{8, 6, 3}, TreeShape{16, 3, 4}}) {
        DraftOptions draft = draft_options("eagle2");
        draft.tree = shape;
        const std::string name = std::to_string(shape.nodes) + "," + std::to_string(shape.levels) +
                                 "," + std::to_string(shape.top_k);
        expect_alike(name.c_str(), generated(draft), replayed(record_, shape));
    }
    expect_alike("chain", generated(draft_options("chain")), replayed(record_, {6, 5, 1}));
}

// Rounds values as the record does.
void round_values(const DraftState&, std::span<Candidate> table, int first, int last) {
    for (int i = first; i < last; ++i) {
        Candidate& candidate = table[size_t(i)];
        candidate.value = candidate.log_prob = as_recorded(candidate.log_prob);
        if (candidate.parent >= 0) candidate.value += table[size_t(candidate.parent)].value;
    }
}

// Costs of two devices: a 1.1B model in q8_0 on two cores, and a device on which rows cost little.
// The policy amplifies small differences: over all texts, a level that costs 0.2 % more moves the
// tau of generation itself by 2 %. So values are rounded as in the record; with the head's own
// values tau may differ as much.
TEST_F(Replay, GivesTheTauOfGenerationWithAutoTrees) {
    const MeasuredCosts cores{
        {{1, .047}, {2, .055}, {4, .07}, {8, .103}, {16, .194}, {32, .38}, {64, .75}},
        {{1, .006}, {4, .009}, {10, .018}},
        true};
    const MeasuredCosts gpu{{{1, .010}, {64, .015}}, {{1, .0004}, {10, .0005}}, true};
    for (const auto& [name, costs] : {std::pair("auto on a CPU", cores), {"auto on a GPU", gpu}}) {
        const Count replayed = replayed_auto(costs);
        expect_alike(name, generated_auto(costs, round_values), replayed);
        expect_alike("  values not rounded", generated_auto(costs), replayed, 0.03);
    }
}

}  // namespace
}  // namespace aerie::test
