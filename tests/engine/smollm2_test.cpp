// SmolLM2, the bundled model that answers: every drafter that needs no head puts out the tokens of
// plain decoding. $AERIE_TEST_QUESTIONS names a folder of question files (JSON lines with "turns"),
// each of which gives $AERIE_TEST_PROMPTS questions; without it three questions of our own are
// asked.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "engine/bundled.h"
#include "text/chat_template.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> first_turns(const fs::path& file, int most) {
    std::vector<std::string> turns;
    std::ifstream lines(file);
    for (std::string line; int(turns.size()) < most && std::getline(lines, line);)
        turns.push_back(*Json::parse(line, file.string()).find("turns")->array()->at(0).string());
    return turns;
}

std::vector<std::string> read_questions() {
    const char* folder = std::getenv("AERIE_TEST_QUESTIONS");
    if (!folder)
        return {
            "Why is the sky blue?",
            "Write a Python function that checks whether a number is prime.",
            "Say this in other words: the train leaves at nine, and the train to the sea leaves at "
            "ten."};
    const char* count = std::getenv("AERIE_TEST_PROMPTS");
    std::set<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().extension() == ".jsonl") files.insert(entry.path());
    std::vector<std::string> questions;
    for (const fs::path& file : files)
        for (const std::string& turn : first_turns(file, count ? std::atoi(count) : 10))
            questions.push_back(turn);
    return questions;
}

LoadOptions smollm2_options() {
    LoadOptions options;
    options.device = test_device();
    options.model = models_dir() / "smollm2.gguf";
    options.draft.method = "best";
    return options;
}

// The model is loaded once for all tests.
struct Asked {
    Bundled model{smollm2_options()};
    std::vector<std::string> questions = read_questions();
    // Plain tokens by temperature and question.
    std::map<std::pair<float, size_t>, std::vector<int>> plain_ids;

    Request request(size_t question, float temperature) {
        Conversation conversation;
        conversation.add("user", questions[question]);
        Sampling sampling;
        sampling.filters.temperature = temperature;
        sampling.seed = 7 + question;
        Request request = model.request(
            encode_chat(model.tokenizer(), render_chat(model.tokenizer(), conversation)),
            most_tokens(24), sampling);
        request.eos_ids = eos_ids(model.model().files(), model.tokenizer());
        return request;
    }

    const std::vector<int>& plain(size_t question, float temperature) {
        std::vector<int>& ids = plain_ids[{temperature, question}];
        if (!ids.empty()) return ids;
        static const auto drafting = model.drafting(draft_options(kNoDrafts));
        return ids = model.run(*drafting.session, request(question, temperature)).ids;
    }
};

Asked& asked() {
    static Asked asked;
    return asked;
}

// Costs of this model's passes on two AVX2 cores, in units of one token: trees are equal on every
// machine.
const MeasuredCosts kRecorded{{{1, 1}, {4, 1.1}, {8, 1.7}, {16, 2.9}, {64, 11}}, {{1, 1e-3}}, true};

class SmolLm2 : public testing::TestWithParam<std::tuple<std::string, float>> {};

TEST_P(SmolLm2, TokensAreThoseOfPlainDecoding) {
    const auto& [method, temperature] = GetParam();
    DraftOptions draft;
    draft.method = method;
    const auto drafting = asked().model.drafting(draft);
    if (CostAware* costs = drafting.drafter->cost_aware()) costs->set_costs(kRecorded);
    int tokens = 0, cycles = 0;
    ASSERT_GE(asked().questions.size(), 3u);
    for (size_t i = 0; i < asked().questions.size(); ++i) {
        SCOPED_TRACE("question " + std::to_string(i));
        const GenerationResult drafted =
            asked().model.run(*drafting.session, asked().request(i, temperature));
        EXPECT_EQ(drafted.ids, asked().plain(i, temperature));
        tokens += drafted.stats.cycle_tokens;
        cycles += drafted.stats.cycles;
    }
    EXPECT_LT(cycles, tokens) << "no draft was right: nothing was compared";
    RecordProperty("tokens", tokens);
    std::printf("%s at T = %g: %d tokens in %d cycles\n", method.c_str(), double(temperature),
                tokens, cycles);
}

INSTANTIATE_TEST_SUITE_P(DraftersWithoutAHead, SmolLm2,
                         testing::Combine(testing::Values("lookup", "lookahead", "best"),
                                          testing::Values(0.0f, 1.0f)),
                         [](const auto& test) {
                             return std::get<0>(test.param) +
                                    (std::get<1>(test.param) > 0 ? "_sampled" : "_greedy");
                         });

}  // namespace
}  // namespace aerie::test
