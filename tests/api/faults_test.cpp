// A request for memory is refused once, at each place: the call gives a status, and the next call
// works.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "api/embedded.h"
#include "api/failing.h"
#include "host_memory.h"
#include "io/damage.h"

namespace aerie::test {
namespace {

// Requests to refuse, out of `count`: the first ones and the last, and between them as many as
// there is time for. AERIE_TEST_FAULTS=all takes all of them.
std::vector<size_t> places(size_t count, size_t most) {
    const char* all = std::getenv("AERIE_TEST_FAULTS");
    const size_t step = all ? 1 : std::max<size_t>(1, count / most);
    std::vector<size_t> chosen;
    for (size_t n = 1; n <= count; n += n < most / 4 ? 1 : step) chosen.push_back(n);
    if (chosen.back() != count) chosen.push_back(count);
    return chosen;
}

aerie_request sampled() {
    static aerie_sampling sampling = aerie_sampling_init();
    sampling.temperature = 0.8f;
    sampling.repetition = 1.2f;
    static const char* stops[] = {"never said"};
    aerie_request request = small_request(6);
    request.sampling = &sampling;
    request.seed = 3;
    request.has_seed = 1;
    request.alternatives = 2;
    request.stops = stops;
    request.stop_count = 1;
    return request;
}

class Memory : public testing::Test {
  protected:
    Memory() : options(small_options()) {
        options.sessions = 2;
        options.context = 128;
    }
    ~Memory() override {
        fail_host(0);
        fail_device(0);
    }

    aerie_status open(aerie_model** model) {
        return aerie_model_open(context.handle(), &options, model);
    }
    // Opens the model with the n-th request refused.
    void expect_open_survives(void (*fail)(size_t), size_t n, aerie_status refused,
                              aerie_cause cause) {
        aerie_model* model = nullptr;
        fail(n);
        const aerie_status status = open(&model);
        fail(0);
        // Some memory is only for speed: if it is refused, nothing fails.
        if (status == AERIE_OK) return aerie_model_free(model);
        ++refusals;
        EXPECT_EQ(status, refused) << n << ": " << aerie_context_message(context.handle());
        EXPECT_EQ(aerie_context_cause(context.handle()), cause) << n;
        EXPECT_EQ(model, nullptr) << n;
        EXPECT_STRNE(aerie_context_message(context.handle()), "") << n;
    }

    Context context;
    aerie_model_options options;
    size_t refusals = 0;
};

TEST_F(Memory, OfTheHostWhileAModelIsOpened) {
    aerie_model* model = nullptr;
    ASSERT_EQ(open(&model), AERIE_OK);
    aerie_model_free(model);
    fail_host(0);
    ASSERT_EQ(open(&model), AERIE_OK);
    const size_t count = host_requests();
    aerie_model_free(model);
    const std::vector<size_t> chosen = places(count, 150);
    for (const size_t n : chosen)
        expect_open_survives(fail_host, n, AERIE_OUT_OF_MEMORY, AERIE_CAUSE_HOST_MEMORY);
    std::printf("%zu requests, %zu refused, %zu times an error\n", count, chosen.size(), refusals);
    EXPECT_GT(refusals, chosen.size() / 2);
    ASSERT_EQ(open(&model), AERIE_OK);
    aerie_model_free(model);
}

TEST_F(Memory, OfTheDeviceWhileAModelIsOpened) {
    aerie_model* model = nullptr;
    fail_device(0);
    ASSERT_EQ(open(&model), AERIE_OK);
    const size_t count = device_requests();
    aerie_model_free(model);
    EXPECT_GT(count, 40u);
    for (size_t n = 1; n <= count; ++n)
        expect_open_survives(fail_device, n, AERIE_ERROR, AERIE_CAUSE_DEVICE_MEMORY);
    EXPECT_EQ(refusals, count) << "every one is needed";
    ASSERT_EQ(open(&model), AERIE_OK);
    aerie_model_free(model);
}

// Runs a whole conversation. Returns its text, valid until the next call, or "" if a call failed
// with `status`. It asks for no memory itself.
const char* converse(aerie_model* model, aerie_status& status) {
    static char text[1000];
    text[0] = 0;
    const aerie_request request = sampled();
    aerie_session *session = nullptr, *fork = nullptr;
    aerie_answer answer = aerie_answer_init();
    status = aerie_session_create(model, &session);
    if (status == AERIE_OK) status = aerie_session_begin(session, &request);
    if (status == AERIE_OK) status = aerie_session_run(session, nullptr, nullptr);
    if (status == AERIE_OK) status = aerie_session_answer(session, &answer);
    if (status == AERIE_OK) status = aerie_session_fork(session, 9, &fork);
    if (status == AERIE_OK) std::snprintf(text, sizeof(text), "%s", answer.text);
    aerie_session_free(fork);
    aerie_session_free(session);
    return text;
}

TEST_F(Memory, OfTheHostInAConversation) {
    const Model model(context, options);
    aerie_status status = AERIE_OK;
    const std::string whole = converse(model.handle(), status);
    ASSERT_FALSE(whole.empty());
    fail_host(0);
    converse(model.handle(), status);
    const size_t count = host_requests();
    const std::vector<size_t> chosen = places(count, 400);
    for (const size_t n : chosen) {
        fail_host(n);
        const char* said = converse(model.handle(), status);
        fail_host(0);
        const std::string text = said;
        refusals += status != AERIE_OK;
        EXPECT_TRUE(status == AERIE_OUT_OF_MEMORY || (status == AERIE_OK && text == whole))
            << n << ": " << status << " " << text;
        EXPECT_EQ(std::string(converse(model.handle(), status)), whole) << n;
        ASSERT_EQ(status, AERIE_OK) << n << ": " << aerie_model_message(model.handle());
    }
    std::printf("%zu requests, %zu refused, %zu times an error\n", count, chosen.size(), refusals);
    EXPECT_GT(refusals, chosen.size() / 2);
}

// An answer that failed halfway leaves a session that answers as if nothing had happened.
TEST_F(Memory, ASessionSurvivesItsOwnFailures) {
    const Model model(context, options);
    Session session(model), fresh(model);
    const std::string whole = answer_to(fresh, sampled());
    fail_host(0);
    answer_to(session, sampled());
    const size_t count = host_requests();
    const aerie_request request = sampled();
    for (const size_t n : places(count, 200)) {
        fail_host(n);
        aerie_status status = aerie_session_begin(session.handle(), &request);
        if (status == AERIE_OK) status = aerie_session_run(session.handle(), nullptr, nullptr);
        fail_host(0);
        if (status == AERIE_OK) continue;
        ++refusals;
        EXPECT_EQ(status, AERIE_OUT_OF_MEMORY) << n;
        EXPECT_STREQ(aerie_session_message(session.handle()), "out of memory") << n;
        EXPECT_EQ(answer_to(session, request), whole) << n;
    }
    EXPECT_GT(refusals, 10u);
}

TEST_F(Memory, ADeviceIsAskedForNothingInAConversation) {
    const Model model(context, options);
    fail_device(1);
    aerie_status status = AERIE_ERROR;
    EXPECT_STRNE(converse(model.handle(), status), "");
    EXPECT_EQ(device_requests(), 0u);
}

// A call in which each of its own requests is refused in turn: it survives every refusal, and it
// works when nothing is refused.
class RefusedCall : public Memory {
  protected:
    void expect_survived(const char* name, const std::function<aerie_status()>& call) {
        size_t n = 1, refused = 0;
        for (;; ++n) {
            fail_host(n);
            const aerie_status status = call();
            const bool was_reached = host_requests() >= n;
            fail_host(0);
            if (!was_reached) {
                EXPECT_EQ(status, AERIE_OK) << name;
                break;
            }
            // Some memory is only for speed.
            EXPECT_TRUE(status == AERIE_OK || status == AERIE_OUT_OF_MEMORY) << name << " " << n;
            refused += status == AERIE_OUT_OF_MEMORY;
        }
        std::printf("%s: %zu requests, %zu times an error\n", name, n - 1, refused);
        EXPECT_GT(refused, (n - 1) / 2) << name;
    }

    static constexpr const char* kConversation =
        R"([{"role":"system","content":"Be kind to everybody who asks you something."},)"
        R"({"role":"user","content":"Hello there, a text that is long enough for the heap"}])";
};

TEST_F(RefusedCall, BeginsWithMessages) {
    const Model model(context, options);
    Session session(model);
    const aerie_chat_message messages[] = {
        {"system", "Be kind to everybody who asks you something."},
        {"user", "Hello there, a text that is long enough for the heap"}};
    aerie_request request = aerie_request_init();
    request.messages = messages;
    request.message_count = 2;
    expect_survived("begin with messages",
                    [&] { return aerie_session_begin(session.handle(), &request); });
    request = aerie_request_init();
    request.conversation = kConversation;
    expect_survived("begin with a conversation",
                    [&] { return aerie_session_begin(session.handle(), &request); });
    expect_survived("render", [&] {
        char* text = nullptr;
        int32_t* ids = nullptr;
        size_t count = 0;
        const aerie_status status =
            aerie_model_render(model.handle(), messages, 2, &text, &ids, &count);
        aerie_free(text);
        aerie_free(ids);
        return status;
    });
}

// The folder has many files, and is searched for leftovers of killed programs.
TEST_F(RefusedCall, SavesAndLoads) {
    const TestFolder folder;
    for (int i = 0; i < 30; ++i)
        folder.write("a file with quite a long name, number " + std::to_string(i), "x");
    const std::string file = (folder.path() / "a conversation that was saved.talk").string();
    const std::string cache = (folder.path() / "a folder that is a cache").string();
    options.cache = cache.c_str();
    const Model model(context, options);
    Session session(model);
    answer_to(session, sampled());
    expect_survived("save", [&] { return aerie_session_save(session.handle(), file.c_str()); });
    expect_survived("load", [&] {
        aerie_session* loaded = nullptr;
        const aerie_status status = aerie_session_load(model.handle(), file.c_str(), &loaded);
        aerie_session_free(loaded);
        return status;
    });
}

// Threads that were started are ended before the error is reported.
TEST_F(Memory, OfTheHostWhileManyThreadsStart) {
    options.threads = 64;
    aerie_model* model = nullptr;
    fail_host(0);
    ASSERT_EQ(open(&model), AERIE_OK);
    const size_t count = host_requests();
    aerie_model_free(model);
    size_t tried = 0;
    for (size_t n = 1; n <= count; n += std::max<size_t>(1, count / 60), ++tried)
        expect_open_survives(fail_host, n, AERIE_OUT_OF_MEMORY, AERIE_CAUSE_HOST_MEMORY);
    EXPECT_GT(refusals, tried / 2);
}

// Calls that give memory to the caller, and calls that do not.
TEST_F(Memory, OfTheHostInSmallCalls) {
    const Model model(context, options);
    const aerie_chat_message message = {"user", "Hello there, a text that is long enough."};
    for (size_t n = 1, failures = 1; failures > 0; ++n) {
        failures = 0;
        const auto expect = [&](aerie_status status) {
            failures += status != AERIE_OK;
            EXPECT_TRUE(status == AERIE_OK || status == AERIE_OUT_OF_MEMORY) << n;
        };
        int32_t *ids = nullptr, *rendered = nullptr;
        char *text = nullptr, *shown = nullptr;
        size_t count = 0, rendered_count = 0;
        fail_host(n);
        expect(aerie_model_tokenize(model.handle(), kPrompt, 0, 0, &ids, &count));
        const int32_t some[] = {5, 300, 40};
        fail_host(n);
        expect(aerie_model_detokenize(model.handle(), some, 3, &text, nullptr));
        fail_host(n);
        expect(aerie_model_render(model.handle(), &message, 1, &shown, &rendered, &rendered_count));
        fail_host(n);
        aerie_context* made = nullptr;
        expect(aerie_context_create(&made));
        fail_host(0);
        aerie_free(ids);
        aerie_free(rendered);
        aerie_free(text);
        aerie_free(shown);
        aerie_context_free(made);
        ASSERT_LT(n, 100000u);
    }
}

}  // namespace
}  // namespace aerie::test
