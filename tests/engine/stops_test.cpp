// Everything that ends a text, at every offset inside an accepted run: the drafted result equals
// the plain one, token for token and byte for byte.
#include <gtest/gtest.h>

#include "engine/bundled.h"

namespace aerie::test {
namespace {

class Stops : public testing::Test {
  protected:
    void SetUp() override {
        for (const std::string kind : {"none", "chain", "eagle1", "eagle2"}) {
            DraftOptions draft = draft_options(kind);
            draft.tree = {16, 5, 4};  // small, so that many cases fit in a short test
            drafting_.push_back(model_.drafting(draft));
        }
        drafting_.push_back(model_.drafting(auto_options()));
        prompt_ = model_.encode(sixty_prompts()[3]);
        request_ = model_.request(prompt_, 40, sampling_at(0, 0));
        request_.eos_ids.clear();
        request_.answer.with_logprobs = true;
        full_ = model_.run(*drafting_[0].session, request_);
        ASSERT_EQ(full_.ids.size(), 40u);
    }

    // Runs the request with every drafter, checks that they agree, and returns the result.
    GenerationResult run_all(const Request& request) {
        std::vector<GenerationResult> results;
        for (auto& drafting : drafting_) {
            std::string streamed;
            Request streaming = request;
            streaming.on_text = [&](const std::string& text) { streamed += text; };
            results.push_back(model_.run(*drafting.session, streaming));
            EXPECT_EQ(streamed, results.back().text);
            EXPECT_EQ(results.back().logprobs.size(), results.back().ids.size());
            EXPECT_EQ(results.back().ids, results[0].ids);
            EXPECT_EQ(results.back().text, results[0].text);
            EXPECT_EQ(results.back().logprobs, results[0].logprobs);
            EXPECT_EQ(results.back().finish, results[0].finish);
            const Stats& stats = results.back().stats;
            EXPECT_EQ(stats.cycle_tokens + 1, int(results.back().ids.size()));
        }
        return results[0];
    }

    Bundled model_;
    std::vector<Bundled::Drafting> drafting_;
    std::vector<int> prompt_;
    Request request_;
    GenerationResult full_;
};

TEST_F(Stops, AnyTokenCanBeTheEos) {
    for (size_t at = 0; at < full_.ids.size(); ++at) {
        Request request = request_;
        request.eos_ids = {full_.ids[at], 4095};
        const size_t first = size_t(std::find(full_.ids.begin(), full_.ids.end(), full_.ids[at]) -
                                    full_.ids.begin());
        const GenerationResult result = run_all(request);
        EXPECT_EQ(result.finish, FinishReason::stop);
        ASSERT_EQ(result.ids.size(), first + 1);
        EXPECT_EQ(result.text,
                  model_.tokenizer().decode({result.ids.begin(), result.ids.end() - 1}));
    }
}

TEST_F(Stops, EveryLimit) {
    for (int limit = 1; limit <= 40; ++limit) {
        Request request = request_;
        request.max_tokens = limit;
        const GenerationResult result = run_all(request);
        EXPECT_EQ(result.finish, FinishReason::length);
        EXPECT_EQ(int(result.ids.size()), limit);
    }
}

TEST_F(Stops, StopStringsAcrossTokenBorders) {
    // Substrings of 1, 3 and 9 bytes at every fifth byte of the text.
    int cases = 0;
    for (size_t length : {1, 3, 9})
        for (size_t at = 0; at + length <= full_.text.size(); at += 5) {
            Request request = request_;
            request.stops = {full_.text.substr(at, length), "\x01never"};
            const GenerationResult result = run_all(request);
            EXPECT_EQ(result.finish, FinishReason::stop);
            EXPECT_EQ(result.text, full_.text.substr(0, full_.text.find(request.stops[0])));
            // The last id is the one that completes the stop string.
            const std::vector<int> before(result.ids.begin(), result.ids.end() - 1);
            EXPECT_EQ(model_.tokenizer().decode(before).find(request.stops[0]), std::string::npos);
            EXPECT_NE(model_.tokenizer().decode(result.ids).find(request.stops[0]),
                      std::string::npos);
            ++cases;
        }
    std::printf("%d stop strings x 5 drafters\n", cases);
}

TEST_F(Stops, CancelledBetweenCycles) {
    for (auto& drafting : drafting_)
        for (int after : {0, 1, 3, 7}) {
            Request request = request_;
            int asked = 0;
            request.cancelled = [&] { return asked++ >= after; };
            const GenerationResult result = model_.run(*drafting.session, request);
            EXPECT_EQ(result.finish, FinishReason::cancelled);
            EXPECT_LE(result.ids.size(), full_.ids.size());
            EXPECT_TRUE(std::equal(result.ids.begin(), result.ids.end(), full_.ids.begin()));
        }
}

TEST_F(Stops, ZeroTokens) {
    Request request = request_;
    request.max_tokens = 0;
    const GenerationResult result = model_.run(*drafting_[3].session, request);
    EXPECT_TRUE(result.ids.empty());
    EXPECT_EQ(result.finish, FinishReason::length);
}

TEST_F(Stops, PromptsThatDoNotFit) {
    Request request = request_;
    request.prompt.clear();
    EXPECT_THROW(model_.run(*drafting_[0].session, request), UsageError);
    request.prompt.assign(2048, 5);
    EXPECT_THROW(model_.run(*drafting_[3].session, request), UsageError);
    request.prompt.assign(2047, 5);
    EXPECT_EQ(run_all(request).ids.size(), 1u);
}

}  // namespace
}  // namespace aerie::test
