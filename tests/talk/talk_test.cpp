// Talks that run at the same time, and the data that is reported of answers.
#include <cmath>
#include <thread>

#include "io/damage.h"
#include "talks.h"

namespace aerie::test {
namespace {

const char* const kPrompt = "The little bird sat on the";

// The tokenizer's file is gone by the time the model is made, so it is not read again.
TEST(SharedModel, TakesTheTokenizerThatIsLoaded) {
    const TestFolder folder;
    LoadOptions options = talk_options(draft_options("none"), 1);
    const auto tiny = models_dir() / "aerie-tiny";
    options.model = folder.path() / "model";
    std::filesystem::copy(tiny, options.model);
    ModelFiles files = ModelFiles::open(options);
    Tokenizer tokenizer = load_tokenizer(files);
    const std::vector<int> want = tokenizer.encode_from_start(kPrompt);
    ASSERT_TRUE(std::filesystem::remove(options.model / "tokenizer.model"));
    const SharedModel model(std::move(files), std::move(tokenizer), options);
    EXPECT_EQ(ids_of(model, kPrompt), want);
    EXPECT_FALSE(model.eos_ids().empty());
}

TEST(Talk, KeepsTheIdsOfItsAnswers) {
    const auto model = shared_model(draft_options("eagle2"));
    Talk talk(model);
    const GenerationResult first = answer(talk, request_of(ids_of(*model, kPrompt), 30));
    // The same text as a user sends it back, tokenized anew.
    const std::string text = model->tokenizer().decode(copy_of(talk.ids()));
    const std::vector<int> prompt = talk.joined(ids_of(*model, text + " And then"));
    ASSERT_GT(prompt.size(), talk.ids().size());
    EXPECT_TRUE(std::equal(talk.ids().begin(), talk.ids().end(), prompt.begin()));
    const GenerationResult second = answer(talk, request_of(prompt, 30));
    EXPECT_GE(second.reused + 1, int(talk.ids().size() - second.ids.size()) - 10);
    Talk anew(model);
    expect_same(second, answer(anew, request_of(prompt, 30)));
}

TEST(Talk, TellsWhereTokensComeFrom) {
    const auto model = shared_model(draft_options("eagle2"));
    Talk talk(model);
    talk.begin(request_of(ids_of(*model, kPrompt), 60));
    size_t checked = 0;
    int drafted = 0;
    while (talk.step()) {
        const GenerationResult& result = talk.answer().result();
        const Cycle& cycle = talk.answer().cycle();
        ASSERT_EQ(result.origins.size(), result.ids.size());
        if (checked == 0) {
            EXPECT_EQ(result.origins[0].kind, Origin::Kind::after_prompt);
        } else {
            ASSERT_EQ(cycle.tree.values.size(), cycle.tree.tokens.size());
            for (size_t i = checked; i < result.ids.size(); ++i) {
                const bool last = i + 1 == result.ids.size();
                EXPECT_EQ(result.origins[i].kind,
                          last ? Origin::Kind::from_target : Origin::Kind::from_draft);
                EXPECT_EQ(result.origins[i].depth, last ? 0 : int(i - checked) + 1);
                drafted += !last;
            }
        }
        checked = result.ids.size();
    }
    EXPECT_GT(drafted, 20);
}

TEST(Talk, GivesTheLikeliestTokens) {
    const auto model = shared_model(draft_options("eagle2"));
    Talk talk(model);
    Request request = request_of(ids_of(*model, kPrompt), 20);
    request.answer.alternatives = 5;
    const GenerationResult result = answer(talk, request);
    ASSERT_EQ(result.alternatives.size(), 5 * result.ids.size());
    for (size_t i = 0; i < result.ids.size(); ++i) {
        EXPECT_EQ(result.alternatives[5 * i].id, result.ids[i]);  // greedy
        EXPECT_EQ(result.alternatives[5 * i].logprob, result.logprobs[i]);
        double sum = 0;
        for (size_t j = 0; j < 5; ++j) {
            sum += std::exp(double(result.alternatives[5 * i + j].logprob));
            if (j > 0) {
                EXPECT_LE(result.alternatives[5 * i + j].logprob,
                          result.alternatives[5 * i + j - 1].logprob);
            }
        }
        EXPECT_LE(sum, 1 + 1e-5);
    }
}

// A simple grammar: odd ids follow even ones and even ids odd ones, and the ids below 1000 are
// forbidden.
TEST(Talk, LetsACallerForbidTokens) {
    const auto model = shared_model(draft_options("eagle2"));
    for (const float temperature : {0.0f, 0.8f}) {
        Request request = request_of(ids_of(*model, kPrompt), 40, temperature);
        request.answer.alternatives = 1;
        request.answer.edit_logits = [](std::span<const int> text, std::span<float> logits) {
            for (size_t id = 0; id < logits.size(); ++id)
                if (id < 1000 || int(id % 2) == text.back() % 2) logits[id] = -INFINITY;
        };
        Talk drafted(model), plain(model);
        const GenerationResult result = answer(drafted, request);
        request.answer.drafts = false;
        const GenerationResult same = answer(plain, request);
        EXPECT_EQ(result.ids, same.ids);
        EXPECT_EQ(result.logprobs, same.logprobs);
        EXPECT_EQ(result.ids.size(), 40u);
        int last = request.prompt.back(), unlikely = 0;
        for (size_t i = 0; i < result.ids.size(); ++i) {
            EXPECT_GE(result.ids[i], 1000);
            EXPECT_NE(result.ids[i] % 2, last % 2);
            last = result.ids[i];
            // The alternatives come from the distribution before edit_logits.
            unlikely += result.alternatives[i].id != result.ids[i];
        }
        EXPECT_GT(unlikely, 5);
    }
}

TEST(Talk, AnswersAsItDoesAlone) {
    const auto model = shared_model(draft_options("eagle2"), 8);
    std::vector<std::vector<int>> alone(8), together(8);
    const auto request = [&](size_t i) {
        return request_of(ids_of(*model, std::string(kPrompt) + std::string(i, '!')), 40,
                          i % 2 ? 0.8f : 0.0f);
    };
    for (size_t i = 0; i < 8; ++i) {
        Talk talk(model);
        alone[i] = answer(talk, request(i)).ids;
    }
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 8; ++i)
        threads.emplace_back([&, i] {
            Talk talk(model);
            together[i] = answer(talk, request(i)).ids;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(together, alone);
}

// An answer that moves between talks equals one that stays in one talk: its text, its
// log-probabilities, and where a stop string ends it, whatever the talks held before.
TEST(Talk, AnAnswerGoesOnInAnotherTalk) {
    for (const char* method : {"none", "eagle2"}) {
        const auto model = shared_model(draft_options(method));
        for (const bool is_stopped : {false, true}) {
            Request request = request_of(ids_of(*model, kPrompt), 60, 0.8f);
            request.answer.sampling.penalties.repetition = 1.3f;
            request.answer.sampling.penalties.frequency = 0.7f;
            request.answer.alternatives = 3;
            Talk whole(model);
            GenerationResult want = answer(whole, request);
            if (is_stopped) {
                request.stops = {want.text.substr(want.text.size() / 2, 9)};
                want = answer(whole, request);
                ASSERT_EQ(want.finish, FinishReason::stop);
            }
            std::string streamed;
            request.on_text = [&](const std::string& text) { streamed += text; };
            Talk other(model);
            answer(other, request_of(ids_of(*model, "Once upon a time"), 20));
            Talk first(model);
            Talk* talks[] = {&first, &other};
            GenerationResult begun;
            for (int turn = 0;; ++turn) {
                Talk& talk = *talks[turn % 2];
                request.begun = turn > 0 ? &begun : nullptr;
                talk.begin(request);
                bool more = true;
                for (int i = 0; more && i < 1 + turn % 3; ++i) more = talk.step();
                if (more) {
                    begun = talk.leave();
                    EXPECT_FALSE(talk.step());
                    continue;
                }
                const GenerationResult& got = talk.answer().result();
                expect_same_text(got, want);
                EXPECT_EQ(got.finish, want.finish);
                EXPECT_EQ(got.alternatives.size(), want.alternatives.size());
                EXPECT_EQ(got.origins.size(), got.ids.size());
                EXPECT_EQ(got.reused, 0);
                EXPECT_EQ(streamed, want.text);
                EXPECT_GT(turn, 5);
                break;
            }
        }
    }
}

TEST(Talk, StaysAsItWasWhenAskedForWhatCannotBe) {
    const auto model = shared_model(draft_options("eagle2"), 1);
    Talk talk(model);
    answer(talk, request_of(ids_of(*model, kPrompt), 10));
    const std::vector<int> ids = copy_of(talk.ids());
    const int computed = talk.computed();
    EXPECT_THROW(talk.begin(request_of({}, 10)), UsageError);
    EXPECT_THROW(talk.begin(request_of({1 << 30}, 10)), UsageError);
    EXPECT_THROW(talk.begin(request_of(std::vector<int>(512, 5), 10)), UsageError);
    EXPECT_THROW(talk.rewind(int(ids.size()) + 1), UsageError);
    EXPECT_THROW(talk.rewind(-1), UsageError);
    EXPECT_THROW(Talk another(model), Error);
    EXPECT_THROW(talk.fork(0), Error);
    EXPECT_EQ(copy_of(talk.ids()), ids);
    EXPECT_EQ(talk.computed(), computed);
}

TEST(Talk, EndsAtTheEndOfTheContext) {
    const auto model = shared_model(draft_options("eagle2"));
    Talk talk(model);
    Request request = request_of(ids_of(*model, kPrompt), -1);
    const GenerationResult result = answer(talk, request);
    EXPECT_EQ(result.finish, FinishReason::length);
    EXPECT_EQ(talk.ids().size(), 512u);
}

// From another thread; the answer ends after at most one more step.
TEST(Talk, CanBeCancelled) {
    const auto model = shared_model(draft_options("eagle2"));
    Talk talk(model);
    talk.begin(request_of(ids_of(*model, kPrompt), -1));
    ASSERT_TRUE(talk.step());
    ASSERT_TRUE(talk.step());
    const size_t before = talk.answer().result().ids.size();
    std::thread(&Talk::cancel, &talk).join();
    EXPECT_FALSE(talk.step());
    EXPECT_EQ(talk.answer().result().finish, FinishReason::cancelled);
    EXPECT_LE(talk.answer().result().ids.size(), before + 7);  // one cycle
    // The cancellation does not affect the next answer.
    EXPECT_EQ(answer(talk, request_of(copy_of(talk.ids()), 5)).ids.size(), 5u);
}

}  // namespace
}  // namespace aerie::test
