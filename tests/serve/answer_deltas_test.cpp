// The deltas of an answer as it grows: all of its text comes once, and no token too many.
#include "serve/answer_deltas.h"

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
        : stream_(tokenizer(), std::move(stops)), deltas_(tokenizer(), {tokenizer().eos()}) {}

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
    AnswerDeltas::Delta take(bool is_over = false) { return deltas_.take(result, is_over); }

    bool stopped() const { return stream_.stopped(); }

    GenerationResult result;

  private:
    void say(const std::string& text) {
        result.text += text;
        if (!text.empty()) deltas_.add(text, result.origins.back());
    }

    TextStream stream_;
    AnswerDeltas deltas_;
};

const std::vector<int>& story() {
    static const std::vector<int> ids =
        tokenizer().encode("there was a little girl who lived by the sea and then it ended");
    return ids;
}

TEST(AnswerDeltas, EverythingOnceWhateverTheSteps) {
    for (size_t step = 1; step <= 5; ++step) {
        Growing answer;
        std::string text, pieces;
        size_t next = 0;
        for (size_t i = 0; i < story().size(); ++i) {
            answer.push(story()[i]);
            const bool is_over = i + 1 == story().size();
            if (is_over) answer.end(FinishReason::length);
            if (!is_over && i % step != 0) continue;
            const AnswerDeltas::Delta delta = answer.take(is_over);
            text += delta.text;
            for (const Piece& piece : delta.pieces) pieces += piece.text;
            EXPECT_EQ(delta.first, next);
            EXPECT_EQ(delta.offsets.size(), delta.last - delta.first);
            next = delta.last;
        }
        EXPECT_EQ(text, answer.result.text);
        EXPECT_EQ(pieces, answer.result.text);
        EXPECT_EQ(next, story().size());
    }
}

TEST(AnswerDeltas, OffsetsAreWhereTokensBeginInTheText) {
    Growing answer;
    for (const int id : story()) answer.push(id);
    answer.end(FinishReason::length);
    const AnswerDeltas::Delta delta = answer.take(true);
    for (size_t i = 0; i < delta.offsets.size(); ++i) {
        std::string bytes(tokenizer().bytes(story()[i]));
        if (i == 0 && tokenizer().drops_leading_space() && bytes.starts_with(' '))
            bytes.erase(0, 1);
        EXPECT_EQ(answer.result.text.substr(delta.offsets[i], bytes.size()), bytes);
    }
}

int byte_token(unsigned char byte) {
    const char text = char(byte);
    for (int id = 0; id < tokenizer().size(); ++id)
        if (tokenizer().bytes(id) == std::string_view(&text, 1)) return id;
    ADD_FAILURE() << "no token has the byte " << int(byte);
    return 0;
}

TEST(AnswerDeltas, OffsetsAreCharactersWhateverBytesTokensHave) {
    struct Case {
        const char* bytes;
        const char* text;
        std::vector<size_t> places;
    };
    const Case cases[] = {
        {"\xC3\xA9\xC3\xA9x",
         "éé"
         "x",
         {0, 0, 1, 1, 2}},
        {"a\xE2\x82\xAC"
         "b",
         "a€b",
         {0, 1, 1, 1, 2}},
        {"\xF0\x9F\x98\x80z", "😀z", {0, 0, 0, 0, 1}},
        // Bytes that are not UTF-8: each maximal piece is a character of its own.
        {"\xC3"
         "a",
         "\uFFFDa",
         {0, 1}},
        {"\xC3\xC3\xA9", "\uFFFDé", {0, 1, 1}},
        {"\xFF\xFE"
         "a",
         "\uFFFD\uFFFDa",
         {0, 1, 2}},
        {"\xE2\x82\xFF"
         "a",
         "\uFFFD\uFFFDa",
         {0, 0, 1, 2}},
        {"a\xE2\x82", "a\uFFFD", {0, 1, 1}},
    };
    for (const Case& each : cases) {
        for (const size_t step : {size_t(1), size_t(2), size_t(100)}) {
            Growing answer;
            const std::string_view bytes = each.bytes;
            std::vector<size_t> places;
            for (size_t i = 0; i < bytes.size(); ++i) {
                answer.push(byte_token((unsigned char)bytes[i]));
                const bool is_over = i + 1 == bytes.size();
                if (is_over) answer.end(FinishReason::length);
                if (!is_over && (i + 1) % step != 0) continue;
                const AnswerDeltas::Delta delta = answer.take(is_over);
                places.insert(places.end(), delta.offsets.begin(), delta.offsets.end());
            }
            EXPECT_EQ(answer.result.text, each.text);
            EXPECT_EQ(places, each.places) << each.text << " by " << step;
        }
    }
}

// The tokens are the same, whether the deltas come at once or token by token.
TEST(AnswerDeltas, AStopStringCutsTheSameTokensWholeAndStreamed) {
    const std::string text = tokenizer().decode(story());
    for (size_t at = 0; at + 1 < text.size(); ++at) {
        for (const size_t length : {size_t(1), size_t(3), size_t(6)}) {
            const std::string stop = text.substr(at, length);
            Growing streamed({stop}), whole({stop});
            std::vector<size_t> places;
            for (const int id : story()) {
                streamed.push(id);
                whole.push(id);
                if (whole.stopped()) break;
                for (const size_t place : streamed.take().offsets) places.push_back(place);
            }
            ASSERT_TRUE(whole.stopped());
            streamed.end(FinishReason::stop);
            whole.end(FinishReason::stop);
            for (const size_t place : streamed.take(true).offsets) places.push_back(place);
            const AnswerDeltas::Delta all = whole.take(true);
            EXPECT_EQ(all.offsets, places) << stop;
            EXPECT_EQ(all.text, text.substr(0, text.find(stop)));
            // A token is reported exactly if some of its text is.
            size_t begun = 0, end = 0;
            while (end < all.text.size()) {
                std::string_view bytes = tokenizer().bytes(story()[begun]);
                if (begun == 0 && bytes.starts_with(' ')) bytes.remove_prefix(1);
                end += bytes.size();
                ++begun;
            }
            EXPECT_EQ(all.last, begun) << stop;
        }
    }
}

// Bytes that are not UTF-8 are all written as U+FFFD: together they are one member of the object.
TEST(AnswerDeltas, AlternativesAreNamedOnce) {
    Growing answer;
    answer.push(story()[0]);
    answer.result.alternatives = {{byte_token(0xC3), -1}, {byte_token(0xE2), -2}};
    answer.end(FinishReason::length);
    const AnswerDeltas::Delta delta = answer.take(true);
    const Json text = text_logprobs(tokenizer(), answer.result, delta);
    EXPECT_EQ(text.find("top_logprobs")->array()->front().object()->size(), 1u);
    EXPECT_NO_THROW(Json::parse(text.dump(), "logprobs"));
}

TEST(AnswerDeltas, LeavesOutTheEndToken) {
    Growing answer;
    answer.push(story()[0]);
    answer.push(tokenizer().eos());
    answer.end(FinishReason::stop);
    EXPECT_EQ(answer.take(true).last, 1u);
}

TEST(AnswerDeltas, LeavesOutWhatAStopStringHides) {
    const std::string text = tokenizer().decode(story());
    for (size_t at = 1; at + 6 < text.size(); at += 3) {
        Growing answer({text.substr(at, 6)});
        std::string text_so_far;
        size_t tokens = 0;
        for (const int id : story()) {
            answer.push(id);
            if (answer.result.text.size() + 6 <= text.find(text.substr(at, 6)) + 6) {
                const AnswerDeltas::Delta delta = answer.take();
                text_so_far += delta.text;
                tokens = delta.last;
            }
            if (tokenizer().decode(answer.result.ids).find(text.substr(at, 6)) != std::string::npos)
                break;
        }
        answer.end(FinishReason::stop);
        const AnswerDeltas::Delta delta = answer.take(true);
        text_so_far += delta.text;
        tokens = delta.last;
        EXPECT_EQ(text_so_far, text.substr(0, text.find(text.substr(at, 6))));
        // The reported tokens have all of the text, and the last of them has a part of it.
        std::vector<int> ids(answer.result.ids.begin(),
                             answer.result.ids.begin() + ptrdiff_t(tokens));
        EXPECT_GE(tokenizer().decode(ids).size(), text_so_far.size());
        if (ids.empty()) continue;
        ids.pop_back();
        EXPECT_LT(tokenizer().decode(ids).size(), std::max<size_t>(text_so_far.size(), 1));
    }
}

TEST(AnswerDeltas, LogprobsOfBothKinds) {
    Growing answer;
    answer.push(story()[0]);
    answer.result.alternatives = {{story()[0], -1}, {story()[1], -2}};
    answer.end(FinishReason::length);
    const AnswerDeltas::Delta delta = answer.take(true);
    const Json chat = chat_logprobs(tokenizer(), answer.result, delta);
    const Json& entry = chat.find("content")->array()->front();
    EXPECT_EQ(entry.find("logprob")->number(), -1);
    EXPECT_EQ(*entry.find("token")->string(), tokenizer().bytes(story()[0]));
    EXPECT_EQ(entry.find("bytes")->array()->size(), tokenizer().bytes(story()[0]).size());
    EXPECT_EQ(entry.find("top_logprobs")->array()->size(), 2u);
    const Json text = text_logprobs(tokenizer(), answer.result, delta);
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
    const std::string text = metrics.text({1, 2, 3, 4}, PassCounts());
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
