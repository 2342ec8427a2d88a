// The service without sockets: requests wait, some for others, and nothing that is kept changes an
// answer.
#include "serve/requests/conversation_name.h"
#include "serving.h"

namespace aerie::test {
namespace {

const std::string kStory = R"({"prompt":"Once upon a time","max_tokens":24,"temperature":0})";

std::string repeated(const std::string& text, size_t count) {
    std::string all;
    for (size_t i = 0; i < count; ++i) all += text;
    return all;
}

std::string events_text(const std::string& stream) {
    std::string text;
    for (size_t at = 0; (at = stream.find("data: {", at)) != stream.npos; ++at) {
        const Json event =
            Json::parse(stream.substr(at + 6, stream.find("\n\n", at) - at - 6), "event");
        for (const Json& choice : *event.find("choices")->array())
            if (const Json* said = choice.find("text")) text += *said->string();
    }
    return text;
}

TEST(Service, SeedsBelowZeroAreSeeds) {
    Serving serving(served_options(2));
    const auto with_seed = [&](const std::string& seed) {
        return serving.complete(
            R"({"prompt":"Once upon a time","max_tokens":16,"temperature":1,"seed":)" + seed + "}");
    };
    const Json below = with_seed("-2");
    EXPECT_EQ(text_of(below), text_of(with_seed("-2")));
    EXPECT_NE(text_of(below), text_of(with_seed("1")));
    int64_t reported = 0;
    ASSERT_TRUE(choice_of(below).find("aerie")->find("seed")->integer(reported));
    EXPECT_EQ(reported, -2);
    // The choices have consecutive seeds, also across 0.
    const Json three = serving.complete(
        R"({"prompt":"Once upon a time","max_tokens":16,"temperature":1,"seed":-2,"n":3})");
    EXPECT_EQ(text_of(three, 0), text_of(below));
    EXPECT_EQ(text_of(three, 2), text_of(with_seed("0")));
}

// More requests come than may wait. Requests that no worker has read yet count, too, also by their
// bytes.
TEST(Service, RequestsThatNoWorkerHasReadWaitToo) {
    Serving serving(served_options(1));
    std::vector<std::shared_ptr<RecordedExchange>> all;
    const std::string large =
        R"({"prompt":")" + std::string(7'900'000, ' ') + R"(","max_tokens":1})";
    for (int i = 0; i < 20; ++i) all.push_back(serving.send("/v1/completions", large));
    int refused = 0;
    for (const auto& exchange : all) refused += exchange->has_ended() && exchange->status() == 429;
    // How many depends on how many the workers have read meanwhile.
    EXPECT_GE(refused, 1) << "more than 64 MB wait";
    for (const auto& exchange : all) EXPECT_TRUE(exchange->wait());
    all.clear();
    for (int i = 0; i < 400; ++i) all.push_back(serving.send("/v1/completions", kStory));
    EXPECT_LE(serving.metric("requests_waiting"), 64 + 3);
    refused = 0;
    for (const auto& exchange : all) {
        EXPECT_TRUE(exchange->wait());
        refused += exchange->status() == 429;
    }
    EXPECT_GT(refused, 200);
    EXPECT_EQ(serving.metric("requests_waiting"), 0);
}

// The requests are neither read nor answered, and other requests do not wait for them.
TEST(Service, RequestsOfClientsThatHaveGoneAreDropped) {
    Serving serving(served_options(1));
    const std::string large = R"({"prompt":")" + repeated("a b ", 500'000) + R"("})";
    std::vector<std::shared_ptr<RecordedExchange>> all;
    for (int round = 0; round < 10; ++round) {
        for (int i = 0; i < 10; ++i) all.push_back(serving.send("/v1/completions", large));
        for (const auto& exchange : all) exchange->go();
    }
    EXPECT_LE(serving.metric("requests_waiting"), 0);
    const double start = steady_seconds();
    serving.ask("/v1/completions", kStory);
    EXPECT_LT(steady_seconds() - start, 20);
    int answered = 0;
    for (const auto& exchange : all) answered += exchange->has_ended();
    EXPECT_LE(answered, 10) << "two workers may have begun one a round";
}

// A client that reads nothing loses its place once another request waits, and gets all of its reply
// later.
TEST(Service, WhoDoesNotReadKeepsNobodyWaiting) {
    Serving serving(served_options(2, 1024), 1);
    const std::string slow =
        R"({"prompt":"The quick brown fox","max_tokens":500,"temperature":1,"seed":3,)"
        R"("logprobs":20,"stream":true,"ignore_eos":true,"repetition_penalty":1.2,)"
        R"("stop":["never said"]})";
    const std::string want = events_text(serving.ask("/v1/completions", slow));
    const std::string story = text_of(serving.complete(kStory));
    std::vector<std::shared_ptr<RecordedExchange>> all;
    for (int i = 0; i < 6; ++i) all.push_back(serving.send("/v1/completions", slow, false));
    EXPECT_TRUE(serving.wait_until([&] {
        return std::all_of(all.begin(), all.end(),
                           [](const auto& exchange) { return exchange->unsent() >= kSendBuffer; });
    })) << "more may begin than there are talks";
    for (int i = 0; i < 3; ++i) EXPECT_EQ(text_of(serving.complete(kStory)), story);
    EXPECT_TRUE(serving.wait_until([&] { return serving.metric("requests_running") == 6; }));
    for (int round = 0; round < 2; ++round)
        for (const auto& exchange : all) {
            exchange->read_some();
            EXPECT_EQ(text_of(serving.complete(kStory)), story);
        }
    for (const auto& exchange : all) exchange->read_all();
    for (const auto& exchange : all) {
        ASSERT_TRUE(exchange->wait());
        EXPECT_EQ(events_text(exchange->text()), want);
        EXPECT_TRUE(exchange->text().ends_with("data: [DONE]\n\n"));
    }
    EXPECT_TRUE(serving.wait_until([&] { return serving.metric("requests_running") == 0; }));
}

// A client that waits for a long prompt sees how far it is read.
TEST(Service, StreamsTellHowFarThePromptIsRead) {
    Serving serving(served_options(1));
    const std::string long_text = repeated("The quick brown fox jumps over the lazy dog. ", 25);
    const auto streamed = [&](const std::string& prompt) {
        return serving.ask("/v1/completions",
                           R"({"prompt":")" + prompt + R"(","max_tokens":2,"stream":true})");
    };
    const std::string stream = streamed(long_text);
    const size_t first = stream.find(": read 0 of "), next = stream.find("\n\n: read 128 of ");
    EXPECT_LT(first, next);
    ASSERT_NE(next, stream.npos) << stream.substr(0, 400);
    EXPECT_LT(next, stream.find("\"text\":\"", next));
    EXPECT_EQ(streamed("The").find("\n: "), stream.npos) << "a short prompt is read at once";
}

// A whole reply goes out as its client takes it, and has the bytes that a quick client gets.
TEST(Service, LargeRepliesWaitForTheirClients) {
    Serving serving(served_options(2), 1);
    const std::string asked =
        R"({"prompt":"The quick brown fox","max_tokens":450,"temperature":1,"seed":3,"n":4,)"
        R"("logprobs":20,"ignore_eos":true})";
    const auto quick = serving.send("/v1/completions", asked);
    const auto slow = serving.send("/v1/completions", asked, false);
    ASSERT_TRUE(quick->wait());
    EXPECT_EQ(quick->text().size(), quick->promised);
    EXPECT_GT(quick->promised, 2 * kSendBuffer);
    ASSERT_TRUE(serving.wait_until([&] { return slow->unsent() >= kSendBuffer; }));
    EXPECT_LT(slow->unsent(), kSendBuffer + kLittleUnsent + 1);
    EXPECT_EQ(text_of(serving.complete(kStory)).empty(), false);
    EXPECT_EQ(slow->ends(), 0);
    slow->read_all();
    ASSERT_TRUE(slow->wait());
    const Json want = Json::parse(quick->text(), "reply"), got = Json::parse(slow->text(), "reply");
    for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(choice_of(got, i).find("logprobs")->dump(),
                  choice_of(want, i).find("logprobs")->dump());
        EXPECT_EQ(text_of(got, i), text_of(want, i));
    }
    EXPECT_EQ(got.find("usage")->find("completion_tokens")->dump(), "1800");
}

TEST(ReplyRoom, IsForAllReplies) {
    CompletionRequest asked;
    const std::vector<Request> one(1);  // with an empty prompt, to the end of the context
    EXPECT_LE(reply_bytes(asked, one, 2000), ReplyRoom::kSmall);
    EXPECT_EQ(reply_bytes(asked, std::vector<Request>(3), 2000), 3 * reply_bytes(asked, one, 2000));
    asked.choices = 8;
    asked.with_logprobs = true;
    asked.alternatives = 20;
    const int64_t large = reply_bytes(asked, one, 2000);
    EXPECT_NO_THROW(ReplyRoom::check(large));
    EXPECT_THROW(ReplyRoom::check(reply_bytes(asked, one, 100'000)), Problem);
    ReplyRoom room;
    std::vector<ReplyRoom::Share> shares;
    for (int64_t taken = large; taken <= ReplyRoom::kAll; taken += large)
        shares.push_back(room.take(large));
    ASSERT_GE(shares.size(), 3u);
    EXPECT_THROW(room.take(large), Problem);
    EXPECT_NO_THROW(room.take(ReplyRoom::kSmall));
    shares.pop_back();
    EXPECT_NO_THROW(room.take(large));  // the share is given back at once
    EXPECT_NO_THROW(shares.push_back(room.take(large)));
    EXPECT_THROW(room.take(large), Problem);
}

// The talk is back in the cache before the client hears the end, since it may go on at once.
TEST(Service, TheNextTurnFindsTheTalk) {
    Serving serving(served_options(3), 2);
    for (const char* stream : {"false", "true"}) {
        for (int i = 0; i < 10; ++i) {
            const std::string first = R"({"prompt":"Conversation )" + std::to_string(i) + stream +
                                      R"( begins like this, and it is long enough to be kept",)" +
                                      R"("max_tokens":16,"temperature":0,"stream":)" + stream + "}";
            // The client learns of the end by RecordedExchange::reply or by the last event.
            class Impatient : public RecordedExchange {
              public:
                explicit Impatient(Serving& serving) : serving_(serving) {}
                void reply(HttpReply reply) override {
                    kept = serving_.metric("talks_kept");
                    RecordedExchange::reply(std::move(reply));
                }
                void say(std::string_view piece) override {
                    if (kept < 0 && piece.find("\"finish_reason\":\"") != piece.npos)
                        kept = serving_.metric("talks_kept");
                    RecordedExchange::say(piece);
                }
                double kept = -1;

              private:
                Serving& serving_;
            };
            const double before = serving.metric("talks_kept");
            const auto exchange = std::make_shared<Impatient>(serving);
            serving.service.handle({endpoint_at("/v1/completions"), "", first, steady_seconds()},
                                   exchange);
            ASSERT_TRUE(exchange->wait());
            EXPECT_EQ(exchange->kept, std::min(before + 1, 3.0));
        }
    }
}

const std::string kQuestion = "What is 3 times 14? Please tell me the steps.";

std::string chat_of(const std::string& messages, const std::string& join) {
    return R"({"messages":[)" + messages + R"(],"temperature":0,"max_tokens":24,"join":)" + join +
           "}";
}
std::string message(const std::string& role, const std::string& content) {
    return R"({"role":")" + role + R"(","content":)" + Json(content).dump() + "}";
}

// Another client has sent the same bytes, cut into other tokens.
TEST(Service, WhatOthersAskedChangesNoAnswer) {
    std::vector<std::string> answers;
    for (const bool is_poisoned : {false, true}) {
        Serving serving(served_options(4), 1);
        const std::string asked = message("user", kQuestion);
        if (is_poisoned) {
            const Json cut =
                Json::parse(serving.ask("/tokenize", R"({"messages":[)" + asked + "]}"), "t");
            const Tokenizer& tokenizer = serving.model->tokenizer();
            std::vector<int> ids;
            for (const Json& id : *cut.find("tokens")->array()) {
                const std::string_view bytes = tokenizer.bytes(int(id.number()));
                if (bytes.empty()) ids.push_back(int(id.number()));
                for (const char& byte : bytes)
                    for (int i = 0; i < tokenizer.size(); ++i)
                        if (tokenizer.bytes(i) == std::string_view(&byte, 1)) {
                            ids.push_back(i);
                            break;
                        }
            }
            ASSERT_GT(ids.size(), cut.find("tokens")->array()->size());
            serving.complete(R"({"prompt":)" + Json(Json::Array(ids.begin(), ids.end())).dump() +
                             R"(,"max_tokens":1})");
        }
        for (const char* join : {"true", "\"AAAA\"", "\"no name\"", "false"}) {
            const Json reply = serving.chat(chat_of(asked, join));
            answers.push_back(text_of(reply) + reply.find("usage")->find("prompt_tokens")->dump());
        }
    }
    for (const std::string& answer : answers) EXPECT_EQ(answer, answers.front());
}

// A conversation that is continued by its name keeps the ids of its answers, whatever the server
// has kept.
TEST(Service, AConversationGoesOnByItsName) {
    std::vector<std::string> answers;
    for (const bool is_kept : {true, false}) {
        Serving serving(served_options(1), 1);
        const std::string first = message("user", kQuestion);
        const Json reply = serving.chat(chat_of(first, "true"));
        const std::string* name = choice_of(reply).find("aerie")->find("join")->string();
        ASSERT_TRUE(name);
        const auto ids = ids_of_conversation(*name);
        ASSERT_TRUE(ids);
        EXPECT_EQ(int(ids->size()), int(reply.find("usage")->find("total_tokens")->number()));
        if (!is_kept) serving.ask("/v1/completions", kStory);
        const std::string second =
            first + "," + message("assistant", text_of(reply)) + "," + message("user", "And then?");
        const Json next = serving.chat(chat_of(second, "\"" + *name + "\""));
        answers.push_back(text_of(next) + next.find("usage")->find("prompt_tokens")->dump());
        const double reused =
            next.find("usage")->find("prompt_tokens_details")->find("cached_tokens")->number();
        if (is_kept)
            EXPECT_GE(reused, double(ids->size()) - 2);
        else
            EXPECT_EQ(reused, 0);
        EXPECT_NE(*choice_of(next).find("aerie")->find("join")->string(), *name);
        EXPECT_EQ(choice_of(serving.chat(chat_of(second, "false"))).find("aerie")->find("join"),
                  nullptr);
    }
    EXPECT_EQ(answers[0], answers[1]);
}

TEST(Service, KeysKeepPrefixesApart) {
    Serving serving(served_options(4), 1);
    const auto cached = [&](const std::string& key) {
        const Json reply =
            serving.complete(R"({"prompt":")" + repeated("the same words again and again ", 20) +
                             R"(","max_tokens":1)" +
                             (key.empty() ? "" : R"(,"prompt_cache_key":")" + key + "\"") + "}");
        return reply.find("usage")->find("prompt_tokens_details")->find("cached_tokens")->number();
    };
    EXPECT_EQ(cached("a"), 0);
    EXPECT_EQ(cached("b"), 0);
    EXPECT_EQ(cached(""), 0);
    EXPECT_GT(cached("a"), 60);
    EXPECT_GT(cached(""), 60);
}

TEST(ConversationName, HoldsItsIds) {
    std::vector<int> ids = {0, 1, 31, 32, 33, 1023, 1024, 128'255, 1 << 24, INT_MAX};
    for (size_t count = 0; count <= ids.size(); ++count) {
        const std::vector<int> some(ids.begin(), ids.begin() + ptrdiff_t(count));
        const std::string name = conversation_name(some);
        EXPECT_EQ(ids_of_conversation(name), some);
        if (count == 0) continue;
        EXPECT_NE(ids_of_conversation(name.substr(0, name.size() - 1)), some);
    }
    for (const char* bad :
         {"g", "ggg", "ggggggI", "ggggggg", "=", " A", "A\n", "\xC3\xA9", "______f"})
        EXPECT_FALSE(ids_of_conversation(bad)) << bad;
}

}  // namespace
}  // namespace aerie::test
