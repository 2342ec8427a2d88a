// What clients are told of an answer as it grows: all of its text once, and of no token too much.
#include "serve/told.h"

#include <gtest/gtest.h>

#include "paths.h"
#include "serve/metrics.h"
#include "serve/reply_format.h"

namespace aerie {
namespace {

const Tokenizer& tokenizer() {
    static const Tokenizer loaded = Tokenizer::load(test::models_dir() / "aerie-tiny");
    return loaded;
}

// An answer that a model might have given, token by token.
class Growing {
  public:
    explicit Growing(std::vector<std::string> stops = {})
        : stream_(tokenizer(), std::move(stops)), told_(tokenizer(), {tokenizer().eos()}) {}

    void push(int id) {
        result.origins.push_back({Origin::Kind::from_draft, int(result.ids.size())});
        result.ids.push_back(id);
        result.logprobs.push_back(-float(result.ids.size()));
        if (id != tokenizer().eos()) say(stream_.push(id));
    }
    void end(FinishReason reason) {
        result.finish = reason;
        if (!stream_.stopped()) say(stream_.finish());
    }
    Told::News take(bool is_over = false) { return told_.take(result, is_over); }

    GenerationResult result;

  private:
    void say(const std::string& text) {
        result.text += text;
        if (!text.empty()) told_.add(text, result.origins.back());
    }

    TextStream stream_;
    Told told_;
};

const std::vector<int>& story() {
    static const std::vector<int> ids =
        tokenizer().encode("there was a little girl who lived by the sea and then it ended");
    return ids;
}

TEST(Told, EverythingOnceWhateverTheSteps) {
    for (size_t step = 1; step <= 5; ++step) {
        Growing answer;
        std::string text, pieces;
        size_t next = 0;
        for (size_t i = 0; i < story().size(); ++i) {
            answer.push(story()[i]);
            const bool is_over = i + 1 == story().size();
            if (is_over) answer.end(FinishReason::length);
            if (!is_over && i % step != 0) continue;
            const Told::News news = answer.take(is_over);
            text += news.text;
            for (const Piece& piece : news.pieces) pieces += piece.text;
            EXPECT_EQ(news.first, next);
            EXPECT_EQ(news.offsets.size(), news.last - news.first);
            next = news.last;
        }
        EXPECT_EQ(text, answer.result.text);
        EXPECT_EQ(pieces, answer.result.text);
        EXPECT_EQ(next, story().size());
    }
}

TEST(Told, OffsetsAreWhereTokensBeginInTheText) {
    Growing answer;
    for (const int id : story()) answer.push(id);
    answer.end(FinishReason::length);
    const Told::News news = answer.take(true);
    for (size_t i = 0; i < news.offsets.size(); ++i) {
        std::string bytes(tokenizer().bytes(story()[i]));
        if (i == 0 && tokenizer().drops_leading_space() && bytes.starts_with(' '))
            bytes.erase(0, 1);
        EXPECT_EQ(answer.result.text.substr(news.offsets[i], bytes.size()), bytes);
    }
}

TEST(Told, OfTheEndTokenNothing) {
    Growing answer;
    answer.push(story()[0]);
    answer.push(tokenizer().eos());
    answer.end(FinishReason::stop);
    EXPECT_EQ(answer.take(true).last, 1u);
}

TEST(Told, OfWhatAStopStringHidesNothing) {
    const std::string text = tokenizer().decode(story());
    for (size_t at = 1; at + 6 < text.size(); at += 3) {
        Growing answer({text.substr(at, 6)});
        std::string told;
        size_t tokens = 0;
        for (const int id : story()) {
            answer.push(id);
            if (answer.result.text.size() + 6 <= text.find(text.substr(at, 6)) + 6) {
                const Told::News news = answer.take();
                told += news.text;
                tokens = news.last;
            }
            if (tokenizer().decode(answer.result.ids).find(text.substr(at, 6)) != std::string::npos)
                break;
        }
        answer.end(FinishReason::stop);
        const Told::News news = answer.take(true);
        told += news.text;
        tokens = news.last;
        EXPECT_EQ(told, text.substr(0, text.find(text.substr(at, 6))));
        // The tokens told have all of the text, and the last of them a part of it.
        std::vector<int> ids(answer.result.ids.begin(),
                             answer.result.ids.begin() + ptrdiff_t(tokens));
        EXPECT_GE(tokenizer().decode(ids).size(), told.size());
        if (ids.empty()) continue;
        ids.pop_back();
        EXPECT_LT(tokenizer().decode(ids).size(), std::max<size_t>(told.size(), 1));
    }
}

TEST(Told, LogprobsOfBothKinds) {
    Growing answer;
    answer.push(story()[0]);
    answer.result.alternatives = {{story()[0], -1}, {story()[1], -2}};
    answer.end(FinishReason::length);
    const Told::News news = answer.take(true);
    const Json chat = chat_logprobs(tokenizer(), answer.result, news);
    const Json& entry = chat.find("content")->array()->front();
    EXPECT_EQ(entry.find("logprob")->number(), -1);
    EXPECT_EQ(*entry.find("token")->string(), tokenizer().bytes(story()[0]));
    EXPECT_EQ(entry.find("bytes")->array()->size(), tokenizer().bytes(story()[0]).size());
    EXPECT_EQ(entry.find("top_logprobs")->array()->size(), 2u);
    const Json text = text_logprobs(tokenizer(), answer.result, news);
    EXPECT_EQ(text.find("tokens")->array()->size(), 1u);
    EXPECT_EQ(text.find("text_offset")->array()->front().number(), 0);
    EXPECT_EQ(text.find("top_logprobs")->array()->front().object()->size(), 2u);
}

TEST(ReplyFormat, StreamsAreOpenAis) {
    CompletionRequest request;
    request.is_chat = true;
    const ReplyFormat format(request, "m");
    const std::string first = format.first(1);
    ASSERT_TRUE(first.starts_with("data: {") && first.ends_with("}\n\n"));
    const Json json = Json::parse(first.substr(6), "event");
    EXPECT_EQ(*json.find("object")->string(), "chat.completion.chunk");
    EXPECT_TRUE(json.find("id")->string()->starts_with("chatcmpl-"));
    EXPECT_EQ(json.find("usage"), nullptr);
    const Json& choice = json.find("choices")->array()->front();
    EXPECT_EQ(choice.find("index")->number(), 1);
    EXPECT_EQ(*choice.find("delta")->find("role")->string(), "assistant");
    EXPECT_TRUE(choice.find("finish_reason")->is_null());
    EXPECT_NE(format.last(1, FinishReason::stop, {}).find("\"finish_reason\":\"stop\""),
              std::string::npos);
}

TEST(Metrics, ArePrometheusText) {
    Metrics metrics;
    metrics.count_request("/v1/completions", 200);
    metrics.count_request("/v1/completions", 200);
    GenerationResult result;
    result.ids = {1, 2, 3, 4};
    result.reused = 7;
    result.stats.cycles = 2;
    result.stats.cycle_tokens = 3;
    result.stats.accepted_by_depth = {1};
    metrics.count_answer(result, 10, true);
    metrics.count_answer(result, 10, false);
    metrics.add_first_token(0.3);
    metrics.add_first_token(1000);
    const std::string text = metrics.text({1, 2, 3, 4});
    for (const char* line : {"aerie_requests_total{path=\"/v1/completions\",status=\"200\"} 2\n",
                             "aerie_requests_waiting 2\n", "aerie_prompt_tokens_total 10\n",
                             "aerie_prompt_tokens_reused_total 7\n", "aerie_prefix_hits_total 1\n",
                             "aerie_generated_tokens_total 8\n", "aerie_tau 1.5\n",
                             "aerie_accepted_total{depth=\"1\"} 2\n",
                             "aerie_time_to_first_token_seconds_bucket{le=\"0.25\"} 0\n",
                             "aerie_time_to_first_token_seconds_bucket{le=\"0.5\"} 1\n",
                             "aerie_time_to_first_token_seconds_bucket{le=\"+Inf\"} 2\n",
                             "aerie_time_to_first_token_seconds_count 2\n"})
        EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

}  // namespace
}  // namespace aerie
