// Every allocation of the service is made to fail in turn: each request gets one end, and the next
// request gets its answer.
#include <cstdlib>

#include "host_memory.h"
#include "serving.h"

namespace aerie::test {
namespace {

const std::string kChat =
    R"({"messages":[{"role":"user","content":"What is 3 times 14?"}],"max_tokens":6,"n":2,)"
    R"("temperature":0.8,"seed":5,"logprobs":true,"top_logprobs":2,"join":true,"stop":"never",)"
    R"("prompt_cache_key":"k")";
const std::string kText =
    R"({"prompt":"Once upon a time","max_tokens":6,"temperature":0,"logprobs":1,"provenance":true)";

struct Case {
    const char* name;
    std::string path;
    std::string body;
    int status;
};

std::vector<Case> cases() {
    std::vector<Case> all;
    const auto add = [&](const char* name, const char* path, std::string body, int status = 200) {
        all.push_back({name, path, std::move(body), status});
    };
    add("a chat", "/v1/chat/completions", kChat + "}");
    add("a stream", "/v1/chat/completions", kChat + R"(,"stream":true})");
    add("a completion", "/v1/completions", kText + "}");
    add("tokens", "/tokenize", R"({"content":"Once upon a time"})");
    add("a refusal", "/v1/completions", R"({"prompt":"a","n":-1})", 400);
    add("the models", "/v1/models", "");
    add("metrics", "/metrics", "");
    return all;
}

class Faults : public testing::Test {
  protected:
    Faults() : serving(served_options(2), 1) {}
    ~Faults() override { fail_host(0); }

    Serving serving;
};

// Chooses among `count` places the first 20 and some of the others; with AERIE_TEST_FAULTS=all,
// every one.
std::vector<size_t> places(size_t count) {
    const size_t step = std::getenv("AERIE_TEST_FAULTS") ? 1 : std::max<size_t>(1, count / 100);
    std::vector<size_t> chosen;
    for (size_t n = 1; n <= count; n += n < 20 ? 1 : step) chosen.push_back(n);
    return chosen;
}

TEST_F(Faults, EachRequestGetsOneEnd) {
    const std::string plain = R"({"prompt":"The quick brown fox","max_tokens":8,"temperature":0})";
    const std::string want = text_of(serving.complete(plain));
    for (const Case& each : cases()) {
        serving.ask(each.path, each.body, each.status);
        fail_host(0);
        serving.ask(each.path, each.body, each.status);
        const size_t count = host_requests();
        int refused = 0, dropped = 0;
        for (const size_t n : places(count)) {
            const auto exchange = std::make_shared<RecordedExchange>();
            HttpRequest request{endpoint_at(each.path), "", each.body, 0};
            bool is_taken = true;
            fail_host(n);
            try {
                serving.service.handle(std::move(request), exchange);
            } catch (const std::bad_alloc&) {
                is_taken = false;  // the connection would be closed
            }
            const bool has_ended = !is_taken || exchange->wait();
            fail_host(0);
            ASSERT_TRUE(has_ended) << each.name << " " << n;
            dropped += !is_taken;
            if (!is_taken) continue;
            EXPECT_EQ(exchange->ends(), 1) << each.name << " " << n;
            EXPECT_FALSE(exchange->is_abandoned()) << each.name << " " << n;
            const bool is_refused = exchange->text().find("out_of_memory") != std::string::npos;
            EXPECT_TRUE(is_refused || exchange->status() == each.status)
                << each.name << " " << n << ": " << exchange->status() << exchange->text();
            refused += is_refused;
        }
        std::printf("%s: %zu requests, %d refused, %d dropped\n", each.name, count, refused,
                    dropped);
        EXPECT_GT(refused + dropped, 3) << each.name;
        EXPECT_EQ(text_of(serving.complete(plain)), want) << each.name;
    }
    EXPECT_TRUE(serving.wait_until([&] { return serving.metric("requests_running") == 0; }));
    EXPECT_EQ(serving.metric("requests_waiting"), 0);
}

// There may be no memory for the error either. Then it is sent again, and a reply that cannot be
// made is abandoned.
TEST_F(Faults, WordsThatFindNoMemoryAreSaidAgain) {
    for (const Case& each : cases()) {
        for (const int calls : {1, 2, 5}) {
            const auto exchange = std::make_shared<RecordedExchange>();
            exchange->refuse(calls);
            serving.service.handle({endpoint_at(each.path), "", each.body, 0}, exchange);
            ASSERT_TRUE(exchange->wait()) << each.name;
            EXPECT_EQ(exchange->ends(), 1) << each.name;
            EXPECT_FALSE(exchange->is_abandoned()) << each.name;
            EXPECT_TRUE(exchange->status() == each.status || exchange->status() == 500)
                << each.name;
        }
    }
    for (const Case& each : cases()) {
        const auto exchange = std::make_shared<RecordedExchange>();
        exchange->refuse(1000);
        serving.service.handle({endpoint_at(each.path), "", each.body, 0}, exchange);
        ASSERT_TRUE(exchange->wait()) << each.name;
        EXPECT_TRUE(exchange->is_abandoned()) << each.name;
        EXPECT_EQ(exchange->ends(), 0) << each.name;
    }
    EXPECT_FALSE(serving.ask("/v1/models", "").empty());
    EXPECT_TRUE(serving.wait_until([&] { return serving.metric("requests_running") == 0; }));
}

// A stream that fails in the middle says why, once.
TEST_F(Faults, AStreamThatFailsSaysWhy) {
    class FailsLater : public RecordedExchange {
      public:
        void say(std::string_view piece) override {
            if (++said == 4 || said == 5) throw std::bad_alloc();
            RecordedExchange::say(piece);
        }
        int said = 0;
    };
    const auto exchange = std::make_shared<FailsLater>();
    const std::string body = kText + R"(,"stream":true})";
    serving.service.handle({endpoint_at("/v1/completions"), "", body, 0}, exchange);
    ASSERT_TRUE(exchange->wait());
    EXPECT_EQ(exchange->status(), 200);
    const std::string text = exchange->text();
    EXPECT_NE(text.find("out_of_memory"), text.npos) << text;
    EXPECT_EQ(text.find("out_of_memory"), text.rfind("out_of_memory")) << text;
    EXPECT_EQ(text.find("[DONE]"), text.npos);
    EXPECT_EQ(exchange->ends(), 1);
}

}  // namespace
}  // namespace aerie::test
