// Far into a text, where windows hide most of it and YaRN has scaled all of it, rows have the bits
// of plain decoding, however the text was passed before.
#include <gtest/gtest.h>

#include <numeric>

#include "engine/hidden_path.h"
#include "engine/reach.h"

namespace aerie::test {
namespace {

constexpr int kFirst = 5000, kVocab = 256, kNext = 12;

// A tiny model of random weights.
ModelConfig tiny_config() {
    ModelConfig config;
    config.architecture = "llama";
    config.hidden = 64;
    config.intermediate = 96;
    config.layers = 3;
    config.vocab = kVocab;
    config.context = 8192;
    config.attention = {2, 1, 16};
    return config;
}

std::vector<int> random_tokens(int count) {
    std::mt19937 random(9);
    std::vector<int> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(int(random() % kVocab));
    return tokens;
}

using LongCase = std::tuple<DType, Reach>;

class LongText : public testing::TestWithParam<LongCase> {
  protected:
    static LoadOptions options() {
        LoadOptions options;
        options.weights = std::get<DType>(GetParam());
        options.context = 8192;
        options.draft.method = "eagle2";
        return options;
    }
    static ModelFiles files() {
        ModelFiles files = ModelFiles::random("tiny", tiny_config(), options());
        change(files, std::get<Reach>(GetParam()));
        if (!files.config.windows.empty()) files.config.windows = {24, 0, 1000};
        return files;
    }

    Model model_{files(), options(), open_device(test_device())};
};

TEST_P(LongText, HasTheBitsOfPlainDecoding) {
    const Plain plain = decode_plainly(model_, random_tokens(kFirst + kNext + 1), kFirst, kNext);
    std::mt19937 random(3);
    int rows = 0;
    for (const auto& [step, nodes] : {std::pair(kPrefillRows, 64), {37, 17}, {100, 5}}) {
        BatchLimits limits = model_.limits();
        limits.prefill_rows = step;
        auto drafting = model_.start_session(widest(), limits);
        Session& session = *drafting.session;
        std::vector<int32_t> pages(size_t(session.kv().layer(0).page_table.cols));
        std::iota(pages.rbegin(), pages.rend(), 0);
        session.begin({});
        session.kv().order_free_pages(pages);
        session.prefill(plain.prompt());
        const Hidden hidden = hide_path(plain, nodes, kVocab, random);
        session.verify(hidden.tree);
        for (size_t d = 0; d < hidden.path.size(); ++d, ++rows)
            EXPECT_TRUE(
                same_bits(read_logits(model_.backend(), session, hidden.path[d]), plain.logits[d]))
                << "depth " << d << " of " << nodes << " nodes, " << step << " rows a pass";
    }
    EXPECT_GT(rows, 10);
    std::printf("%d rows behind %d positions\n", rows, kFirst);
}

// The same positions as the end of a prompt.
TEST_P(LongText, ReadAsAPromptHasTheBitsOfPlainDecoding) {
    const Plain plain = decode_plainly(model_, random_tokens(kFirst + kNext + 1), kFirst, kNext);
    auto drafting = model_.start_session(draft_options("none"));
    std::vector<int> prompt(plain.tokens.begin(), plain.tokens.begin() + kFirst + kNext);
    drafting.session->begin({});
    drafting.session->prefill(prompt);
    EXPECT_TRUE(
        same_bits(read_logits(model_.backend(), *drafting.session, 0), plain.logits.back()));
}

INSTANTIATE_TEST_SUITE_P(Reaches, LongText,
                         testing::Combine(testing::Values(DType::F16, DType::Q8_0),
                                          testing::Values(Reach::windows, Reach::yarn)),
                         [](const auto& info) {
                             return std::string(name(std::get<DType>(info.param))) + "_" +
                                    name(std::get<Reach>(info.param));
                         });

}  // namespace
}  // namespace aerie::test
