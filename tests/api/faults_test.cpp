// Memory that is refused once, at each place where it is asked for: a status, and the next call
// works.
#include <cstdio>
#include <cstdlib>

#include "api/embedded.h"
#include "api/failing.h"
#include "host_memory.h"

namespace aerie::test {
namespace {

// Places to fail at, of so many: the first ones and the last, and between them as many as there is
// time for. AERIE_TEST_FAULTS=all takes them all.
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
    // Opens with the n-th request refused, and once more.
    void expect_open_survives(void (*fail)(size_t), size_t n, aerie_status refused) {
        aerie_model* model = nullptr;
        fail(n);
        const aerie_status status = open(&model);
        fail(0);
        // Where memory is a matter of speed alone, nothing fails.
        if (status == AERIE_OK) return aerie_model_free(model);
        ++refusals;
        EXPECT_EQ(status, refused) << n << ": " << aerie_context_message(context.handle());
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
    for (const size_t n : chosen) expect_open_survives(fail_host, n, AERIE_OUT_OF_MEMORY);
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
    for (size_t n = 1; n <= count; ++n) expect_open_survives(fail_device, n, AERIE_ERROR);
    EXPECT_EQ(refusals, count) << "every one is needed";
    ASSERT_EQ(open(&model), AERIE_OK);
    aerie_model_free(model);
}

// All of a conversation; its text until the next one, or "" if a call failed with this status. It
// asks for no memory itself.
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

// An answer that failed in the middle leaves a session that answers as if it had not.
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

// What is given to the caller, and what is only told.
TEST_F(Memory, OfTheHostInSmallCalls) {
    const Model model(context, options);
    const aerie_chat_message message = {"user", "Hello."};
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
