// DeepSpec's EAGLE-3 (five taps, query and key norms, the whole vocabulary) against an independent
// program in f64: candidates of each level, accepted tokens of each cycle, tau.
#include <gtest/gtest.h>

#include "engine/bundled.h"
#include "io/damage.h"
#include "tools/write_model.h"

namespace aerie::test {
namespace {

constexpr int kLength = 7, kBest = 5;

const std::filesystem::path kFolder = test_data_dir() / "drafters" / "eagle3-deepspec";

// The likeliest tokens of each level of a chain.
struct Draft {
    std::vector<std::vector<Candidate>> levels;
};

// Lets only the likeliest child of the chain's end run: the tree is a chain, and `drafts` receives
// the likeliest tokens of each of its levels.
LevelHook chain_only(std::vector<Draft>& drafts) {
    return [&](const DraftState&, std::span<Candidate> table, int first, int last) {
        if (first == 0) drafts.emplace_back();
        std::vector<Candidate> level;
        for (int i = first; i < last; ++i) {
            if (int(level.size()) < kBest) level.push_back(table[size_t(i)]);
            if (i > first) table[size_t(i)].value = -__builtin_inff();
        }
        drafts.back().levels.push_back(level);
    };
}

LoadOptions options_of(const std::filesystem::path& head) {
    LoadOptions options = bundled_options(DType::F32);
    options.head = head;
    options.draft.method = "eagle3";
    return options;
}

DraftOptions chain_of(std::vector<Draft>& drafts) {
    DraftOptions options = draft_options("eagle3");
    options.proposals = Proposals::plain;
    options.tree = TreeShape{kLength + 1, kLength, kBest};
    options.on_level = chain_only(drafts);
    return options;
}

// Compares a cycle's candidates with the recorded ones; candidates that are closer than the
// tolerance may change places.
void expect_candidates(const Draft& got, const Json& cycle, double& worst) {
    const Json::Array& positions = *cycle.find("positions")->array();
    ASSERT_EQ(got.levels.size(), positions.size());
    for (size_t level = 0; level < positions.size(); ++level) {
        const std::vector<int> ids = ints(*positions[level].find("ids"));
        const Json::Array& logs = *positions[level].find("logp")->array();
        ASSERT_EQ(got.levels[level].size(), ids.size());
        for (size_t i = 0; i < ids.size(); ++i) {
            const Candidate& one = got.levels[level][i];
            const double want = logs[i].number(), apart = std::abs(double(one.log_prob) - want);
            EXPECT_LE(apart, 1e-4);
            worst = std::max(worst, apart);
            const bool is_close = (i > 0 && logs[i - 1].number() - want < 1e-4) ||
                                  i + 1 == ids.size() || want - logs[i + 1].number() < 1e-4;
            if (!is_close) {
                EXPECT_EQ(one.token, ids[i]) << "level " << level << ", place " << i;
            }
        }
    }
}

// Number of drafted tokens that the text continues with; the text's last token is the target's in
// any case.
int accepted(const Draft& draft, const std::vector<int>& text, size_t pending) {
    int count = 0;
    for (const auto& level : draft.levels) {
        const size_t at = pending + size_t(count) + 1;
        if (at + 1 >= text.size() || level.front().token != text[at]) break;
        ++count;
    }
    return count;
}

TEST(Eagle3DeepSpec, CandidatesAndAcceptedAreTheGoldenOnes) {
    const Json record = Json::parse(
        read_text(test_data_dir() / "drafters" / "eagle3-deepspec.json", 1 << 20), "record");
    const Json greedy = read_data("greedy.json");
    std::vector<Draft> drafts;
    Bundled model(options_of(kFolder));
    auto drafting = model.drafting(chain_of(drafts));
    double worst = 0, tokens = 0, cycles = 0;
    int compared = 0;
    for (const Json& prompt : *record.find("prompts")->array()) {
        const Json& text = greedy.array()->at(size_t(prompt.find("prompt")->number()));
        const std::vector<int> ids = ints(*text.find("ids"));
        const std::vector<int> want = ints(*prompt.find("accepted"));
        drafts.clear();
        const GenerationResult got =
            model.run(*drafting.session, model.request(ints(*text.find("prompt_ids")), 128));
        tokens += got.stats.cycle_tokens;
        cycles += got.stats.cycles;
        const Json::Array& recorded = *prompt.find("cycles")->array();
        const size_t safe = size_t(prompt.find("safe")->number());
        size_t pending = 0;
        for (size_t i = 0; i < want.size() && pending + kLength + 1 < safe; ++i) {
            ASSERT_LT(i, drafts.size());
            if (i < recorded.size()) expect_candidates(drafts[i], recorded[i], worst);
            ASSERT_EQ(accepted(drafts[i], ids, pending), want[i]) << "cycle " << i;
            pending += size_t(want[i]) + 1;
            ++compared;
        }
    }
    EXPECT_GT(compared, 100);
    std::printf("%d cycles: candidates within %.1e; tau %.4f, reference %.4f\n", compared, worst,
                tokens / cycles, record.find("tau")->number());
    EXPECT_NEAR(tokens / cycles / record.find("tau")->number(), 1, 0.015);
}

// Files as published, in which the head has its own embedding and LM head, here copies of the
// target's.
TEST(Eagle3DeepSpec, OwnEmbeddingAndLmHeadAreRead) {
    const TestFolder folder;
    std::vector<Stored> tensors = Stored::all_of(kFolder);
    for (const Stored& tensor : Stored::all_of(models_dir() / "aerie-tiny"))
        for (const auto& [theirs, ours] :
             {std::pair("model.embed_tokens.weight", "embed_tokens.weight"),
              {"lm_head.weight", "lm_head.weight"}})
            if (tensor.name == theirs) {
                tensors.push_back(tensor);
                tensors.back().name = ours;
            }
    folder.write("config.json", read_text(kFolder / "config.json", 1 << 16));
    write_shards(folder.path(), "model.safetensors", tensors, safetensors_of);
    std::vector<std::vector<int>> texts;
    std::vector<int> cycles;
    for (const std::filesystem::path& head : {kFolder, folder.path()}) {
        std::vector<Draft> drafts;
        Bundled model(options_of(head));
        auto drafting = model.drafting(chain_of(drafts));
        const GenerationResult got =
            model.run(*drafting.session, model.request(model.encode(sixty_prompts()[0]), 64));
        texts.push_back(got.ids);
        cycles.push_back(got.stats.cycles);
    }
    EXPECT_EQ(texts[0], texts[1]);
    EXPECT_EQ(cycles[0], cycles[1]);
}

}  // namespace
}  // namespace aerie::test
