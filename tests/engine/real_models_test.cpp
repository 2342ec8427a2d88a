// Published shapes and spellings against transformers: logits and greedy ids (tests/data/real).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/checks.h"
#include "engine/watched_backend.h"

namespace aerie::test {
namespace {

Json real_data(const char* file) {
    const auto path = test_data_dir() / "real" / file;
    return Json::parse(read_text(path, 1 << 20), path.string());
}

class RealModels : public testing::TestWithParam<const char*> {
  protected:
    static LoadOptions options() {
        LoadOptions options;
        options.device = test_device();
        options.model = test_data_dir() / "real" / GetParam();
        options.kv = DType::F32;
        options.weights = DType::F32;
        options.draft = draft_options("none");
        return options;
    }

    Model model_{ModelFiles::open(options()), options(), open_device(options().device)};
    Model::Drafting plain_ = model_.start_session(draft_options("none"));
};

TEST_P(RealModels, HaveTheirLogits) {
    Session& session = *plain_.session;
    double worst = 0;
    int positions = 0;
    const Json all = real_data("logits.json");
    for (const Json& prompt : *all.find(GetParam())->array())
        for (const Json& place : *prompt.find("at")->array()) {
            std::vector<int> ids = ints(*prompt.find("ids"));
            ids.resize(size_t(place.find("pos")->number()) + 1);
            session.begin({});
            session.prefill(ids);
            Logits logits(size_t(session.logits().cols));
            model_.backend().read(session.logits().row_range(0, 1), logits.data());
            for (const auto& [tokens, values] :
                 {std::pair{"top_ids", "top"}, {"probe_ids", "probe"}})
                for (size_t i = 0; i < ints(*place.find(tokens)).size(); ++i) {
                    const float got = logits[size_t(ints(*place.find(tokens))[i])];
                    const double want = place.find(values)->array()->at(i).number();
                    worst = std::max(worst, std::abs(double(got) - want));
                }
            ++positions;
        }
    std::printf("%s: max abs error %.2e at %d positions\n", GetParam(), worst, positions);
    EXPECT_GE(positions, 9);
    EXPECT_LE(worst, 2e-3);
}

// Number of texts; slow devices take few.
int most_texts() {
    const char* count = std::getenv("AERIE_TEST_PROMPTS");
    return count ? std::atoi(count) : 100;
}

TEST_P(RealModels, GoOnAsTransformersDoes) {
    const Json all = real_data("greedy.json");
    int texts = 0;
    for (const Json& entry : *all.find(GetParam())->array()) {
        std::vector<int> want = ints(*entry.find("ids"));
        const size_t safe = size_t(entry.find("safe")->number());
        want.resize(std::min(safe, size_t(most_tokens(int(safe)))));
        if (want.empty() || texts == most_texts()) continue;
        EXPECT_EQ(decode(*plain_.session, ints(*entry.find("prompt_ids")), int(want.size())), want)
            << "text " << texts;
        ++texts;
    }
    EXPECT_GE(texts, std::min(most_texts(), 4));
}

INSTANTIATE_TEST_SUITE_P(Names, RealModels,
                         testing::Values("llama3", "llama3-tied", "llama-linear", "llama-yarn",
                                         "mistral-window", "qwen2", "qwen3", "mixtral",
                                         "qwen3-moe"),
                         [](const auto& info) {
                             std::string name = info.param;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

}  // namespace
}  // namespace aerie::test
