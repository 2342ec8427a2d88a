// Answers through the C API: their texts, and what is reported about them.
#include <cmath>
#include <cstddef>
#include <vector>

#include "api/embedded.h"
#include "io/damage.h"

namespace aerie::test {
namespace {

class Answers : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        context_ = new Context();
        aerie_model_options options = small_options();
        options.sessions = 3;
        model_ = new Model(*context_, options);
    }
    static void TearDownTestSuite() {
        delete model_;
        delete context_;
    }

    static Context* context_;
    static Model* model_;
};
Context* Answers::context_ = nullptr;
Model* Answers::model_ = nullptr;

TEST_F(Answers, DraftsChangeNoToken) {
    for (const float temperature : {0.0f, 0.9f}) {
        aerie_sampling sampling = aerie_sampling_init();
        sampling.temperature = temperature;
        aerie_request request = small_request(48);
        request.sampling = &sampling;
        request.seed = 5;
        request.has_seed = 1;
        Session drafted(*model_), plain(*model_);
        const std::string text = answer_to(drafted, request);
        request.without_drafts = 1;
        EXPECT_EQ(answer_to(plain, request), text);
        EXPECT_EQ(plain.ids(), drafted.ids());
        EXPECT_EQ(plain.statistics().cycles, 47);
        EXPECT_LT(drafted.statistics().cycles, 40);
        EXPECT_EQ(drafted.answer().seed, 5u);
    }
}

TEST_F(Answers, TokensSpellTheTextAndTellWhereTheyComeFrom) {
    Session session(*model_);
    aerie_request request = small_request(40);
    request.alternatives = 3;
    request.ignore_eos = 1;
    session.begin(request);
    std::string streamed, spelled;
    size_t tokens = 0, drafted = 0, deepest = 0;
    session.run([&](const aerie_step& step) {
        EXPECT_EQ(step.first_token, tokens);
        tokens += step.token_count;
        streamed.append(step.text, step.text_bytes);
        return true;
    });
    ASSERT_EQ(tokens, 40u);
    for (size_t i = 0; i < tokens; ++i) {
        const aerie_token token = session.token(i);
        spelled.append(token.bytes, token.byte_count);
        drafted += token.origin == AERIE_FROM_DRAFT;
        deepest = std::max(deepest, size_t(token.depth));
        EXPECT_EQ(token.origin == AERIE_FROM_DRAFT, token.depth > 0);
        EXPECT_EQ(token.origin == AERIE_AFTER_PROMPT, i == 0);
        ASSERT_EQ(token.alternative_count, 3u);
        EXPECT_EQ(token.alternatives[0].id, token.id) << "greedy";
        EXPECT_EQ(token.alternatives[0].logprob, token.logprob);
        EXPECT_GE(token.alternatives[1].logprob, token.alternatives[2].logprob);
    }
    EXPECT_EQ(streamed, session.answer().text);
    // No special token is among them, and a text lacks the space that its first token begins with.
    EXPECT_EQ(spelled, " " + streamed);
    const aerie_statistics statistics = session.statistics();
    EXPECT_EQ(statistics.cycle_tokens, 39);
    EXPECT_GT(drafted, 10u);
    EXPECT_LE(deepest, 4u);
    ASSERT_EQ(size_t(statistics.depth_count), deepest);
    int accepted = 0;
    for (int d = 0; d < statistics.depth_count; ++d) accepted += statistics.accepted_by_depth[d];
    EXPECT_GE(size_t(accepted), drafted);
    EXPECT_DOUBLE_EQ(statistics.tau, 39.0 / statistics.cycles);
}

TEST_F(Answers, CyclesShowTheirTrees) {
    Session session(*model_);
    session.begin(small_request());
    EXPECT_EQ(session.step().token_count, 1u);
    EXPECT_EQ(session.cycle().node_count, 1u);
    int last = session.token(0).id, checked = 0;
    for (aerie_step step = session.step(); step.more; step = session.step(), ++checked) {
        const aerie_cycle cycle = session.cycle();
        ASSERT_EQ(cycle.node_count, 12u);
        EXPECT_EQ(cycle.tokens[0], last) << "the root is the token before";
        ASSERT_NE(cycle.values, nullptr);
        ASSERT_NE(cycle.choices, nullptr);
        for (size_t i = 1; i < cycle.node_count; ++i) EXPECT_LT(size_t(cycle.parents[i]), i);
        ASSERT_EQ(cycle.path_count, step.token_count);
        EXPECT_EQ(cycle.path[0], 0);
        for (size_t i = 1; i < cycle.path_count; ++i) {
            EXPECT_EQ(cycle.parents[cycle.path[i]], cycle.path[i - 1]);
            EXPECT_EQ(session.token(step.first_token + i - 1).id, cycle.tokens[cycle.path[i]]);
        }
        last = cycle.next;
        EXPECT_EQ(session.token(step.first_token + step.token_count - 1).id, last);
    }
    EXPECT_GT(checked, 3);
}

struct Forbidden {
    int id = 0;
    size_t calls = 0, shortest = SIZE_MAX;
};

int forbid(void* user, const int32_t*, size_t count, float* logits, size_t vocab) {
    Forbidden& forbidden = *static_cast<Forbidden*>(user);
    ++forbidden.calls;
    forbidden.shortest = std::min(forbidden.shortest, count);
    if (size_t(forbidden.id) < vocab) logits[forbidden.id] = -INFINITY;
    return 0;
}

TEST_F(Answers, LogitsCanBeEdited) {
    Session session(*model_);
    answer_to(session, small_request());
    const std::vector<int32_t> ids = session.ids();
    const size_t prompt = session.answer().prompt_tokens;
    Forbidden forbidden{ids[prompt]};
    aerie_request request = small_request();
    request.edit_logits = forbid;
    request.edit_user = &forbidden;
    answer_to(session, request);
    EXPECT_EQ(forbidden.shortest, prompt);
    EXPECT_GT(forbidden.calls, session.answer().token_count) << "every node of a tree";
    for (size_t i = 0; i < session.answer().token_count; ++i)
        EXPECT_NE(session.token(i).id, forbidden.id);
}

// Forbids all tokens but one, and that one as well once the text has `ends_at` tokens.
struct Narrow {
    size_t ends_at = 0, longest = 0;
    bool with_nan = false;
};

int allow_one(void* user, const int32_t*, size_t count, float* logits, size_t vocab) {
    Narrow& narrow = *static_cast<Narrow*>(user);
    narrow.longest = std::max(narrow.longest, count);
    const float none = narrow.with_nan ? NAN : -INFINITY;
    for (size_t i = 0; i < vocab; ++i)
        if (i != 400 || count >= narrow.ends_at) logits[i] = i % 2 ? none : -INFINITY;
    return 0;
}

TEST_F(Answers, AnEditThatForbidsEveryTokenIsAnError) {
    Session session(*model_);
    const std::string text = answer_to(session, small_request());
    const size_t prompt = session.answer().prompt_tokens;
    for (const float temperature : {0.0f, 0.8f})
        for (const bool without_drafts : {false, true})
            for (const size_t more : {size_t(0), size_t(1), size_t(6)})
                for (const bool with_nan : {false, true}) {
                    Narrow narrow{prompt + more, 0, with_nan};
                    aerie_sampling sampling = aerie_sampling_init();
                    sampling.temperature = temperature;
                    aerie_request request = small_request();
                    request.sampling = &sampling;
                    request.without_drafts = without_drafts;
                    request.edit_logits = allow_one;
                    request.edit_user = &narrow;
                    session.begin(request);
                    EXPECT_EQ(aerie_session_run(session.handle(), nullptr, nullptr), AERIE_ERROR);
                    EXPECT_NE(std::string(aerie_session_message(session.handle()))
                                  .find("forbids every token"),
                              std::string::npos)
                        << aerie_session_message(session.handle());
                    EXPECT_EQ(session.answer().finish, AERIE_FINISH_FAILED);
                    EXPECT_LE(session.answer().token_count, more);
                    EXPECT_EQ(answer_to(session, small_request()), text);
                }
}

// An edit may forbid every token on a drafted branch that the text does not take: the text is that
// of plain decoding.
TEST_F(Answers, AnEditMayForbidEverythingWhereTheTextDoesNotGo) {
    Session session(*model_);
    answer_to(session, small_request());
    static std::vector<int32_t> way;
    way = session.ids();
    const auto forbid_elsewhere = [](void* user, const int32_t* text, size_t count, float* logits,
                                     size_t vocab) {
        if (count > way.size() || !std::equal(text, text + count, way.begin())) {
            ++*static_cast<int*>(user);
            std::fill_n(logits, vocab, -INFINITY);
        }
        return 0;
    };
    int elsewhere = 0;
    aerie_request request = small_request();
    request.edit_logits = forbid_elsewhere;
    request.edit_user = &elsewhere;
    answer_to(session, request);
    EXPECT_EQ(session.ids(), way);
    EXPECT_GT(elsewhere, 10);
}

TEST_F(Answers, ALogitsCallbackCanEndTheAnswer) {
    Session session(*model_);
    const std::string text = answer_to(session, small_request());
    aerie_request request = small_request();
    request.edit_logits = [](void*, const int32_t*, size_t, float*, size_t) { return 1; };
    session.begin(request);
    EXPECT_EQ(aerie_session_run(session.handle(), nullptr, nullptr), AERIE_CANCELLED);
    EXPECT_EQ(session.answer().finish, AERIE_FINISH_CANCELLED);
    EXPECT_EQ(answer_to(session, small_request()), text);
}

TEST_F(Answers, StopsLimitsAndCancels) {
    Session session(*model_);
    const std::string text = answer_to(session, small_request());
    EXPECT_EQ(session.answer().finish, AERIE_FINISH_LENGTH);
    const std::string stop = text.substr(text.size() / 2, 4);
    const char* stops[] = {stop.c_str()};
    aerie_request request = small_request();
    request.stops = stops;
    request.stop_count = 1;
    EXPECT_EQ(answer_to(session, request), text.substr(0, text.find(stop)));
    EXPECT_EQ(session.answer().finish, AERIE_FINISH_STOP);
    session.begin(small_request());
    session.run([](const aerie_step&) { return false; });
    EXPECT_EQ(session.answer().finish, AERIE_FINISH_CANCELLED);
    EXPECT_LE(session.answer().token_count, 6u) << "within one step";
    EXPECT_EQ(text.find(session.answer().text), 0u);
}

// Notes each report of a prompt's progress; cancels from the pass with `most` tokens on.
struct Progress {
    size_t most;
    std::vector<std::pair<size_t, size_t>> reports = {};
    static int report(void* user, size_t done, size_t total) {
        Progress& progress = *static_cast<Progress*>(user);
        progress.reports.emplace_back(done, total);
        return done >= progress.most;
    }
};

TEST_F(Answers, PromptsReportTheirProgress) {
    const std::vector<int32_t> prompt(200, 100);
    aerie_request request = small_request(4);
    request.text = nullptr;
    request.ids = prompt.data();
    request.id_count = prompt.size();
    request.prompt_progress = &Progress::report;
    Session session(*model_), cut(*model_);

    Progress whole{1000};
    request.prompt_progress_user = &whole;
    answer_to(session, request);
    const std::vector<std::pair<size_t, size_t>> passes = {{0, 200}, {128, 200}};
    EXPECT_EQ(whole.reports, passes);
    EXPECT_EQ(session.answer().token_count, 4u);

    Progress first{0};
    request.prompt_progress_user = &first;
    cut.begin(request);
    EXPECT_FALSE(cut.step().more);
    EXPECT_EQ(first.reports.size(), 1u);
    EXPECT_EQ(cut.answer().finish, AERIE_FINISH_CANCELLED);
    EXPECT_EQ(cut.answer().token_count, 0u);

    // The next answer is cancelled in its second pass; the one behind it begins where that stood.
    Progress second{128};
    request.prompt_progress_user = &second;
    cut.begin(request);
    cut.run();
    EXPECT_EQ(cut.answer().finish, AERIE_FINISH_CANCELLED);
    Progress rest{1000};
    request.prompt_progress_user = &rest;
    EXPECT_EQ(answer_to(cut, request), session.answer().text);
    EXPECT_EQ(rest.reports.front().first, 128u);
}

// A program of the first release has no members behind edit_user, whatever lies there in memory.
TEST_F(Answers, RequestsOfTheFirstReleaseReportNothing) {
    Session session(*model_);
    aerie_request request = small_request(4);
    Progress unwanted{0};
    request.prompt_progress = &Progress::report;
    request.prompt_progress_user = &unwanted;
    request.size = offsetof(aerie_request, prompt_progress);
    answer_to(session, request);
    EXPECT_TRUE(unwanted.reports.empty());
    EXPECT_EQ(session.answer().token_count, 4u);
}

TEST_F(Answers, WhatASessionHoldsIsNotReadAgain) {
    Session session(*model_), fresh(*model_);
    const std::string first = answer_to(session, small_request());
    const size_t held = session.ids().size();
    const std::string longer = kPrompt + (" " + first) + " USER: And then? ASSISTANT:";
    aerie_request request = small_request();
    request.text = longer.c_str();
    const std::string second = answer_to(session, request);
    EXPECT_GE(session.answer().reused_tokens + 2, held);
    EXPECT_EQ(answer_to(fresh, request), second);

    const size_t cut = session.answer().prompt_tokens - 3;
    Session fork = session.fork(cut);
    session.rewind(cut);
    EXPECT_EQ(session.ids().size(), cut);
    EXPECT_EQ(fork.ids(), session.ids());
    for (Session* each : {&session, &fork}) EXPECT_EQ(answer_to(*each, request), second);
}

TEST_F(Answers, SessionsLieInFiles) {
    const TestFolder folder;
    const std::string path = (folder.path() / "séance").string();
    Session session(*model_);
    const std::string text = answer_to(session, small_request());
    session.save(path);
    Session loaded = Session::load(*model_, path);
    EXPECT_EQ(loaded.ids(), session.ids());
    EXPECT_EQ(answer_to(loaded, small_request()), text);
    EXPECT_EQ(loaded.answer().reused_tokens, loaded.answer().prompt_tokens - 1);
    aerie_session* none = nullptr;
    EXPECT_EQ(aerie_session_load(model_->handle(), "no/such/file", &none), AERIE_ERROR);
    EXPECT_NE(std::string(aerie_model_message(model_->handle())).find("no/such/file"),
              std::string::npos);
}

TEST_F(Answers, ConversationsInBothSpellings) {
    const aerie_chat_message messages[] = {{"system", "Be brief."}, {"user", "Grüß \"dich\"."}};
    char* text = nullptr;
    int32_t* ids = nullptr;
    size_t count = 0;
    model_->check(aerie_model_render(model_->handle(), messages, 2, &text, &ids, &count));
    EXPECT_NE(std::string(text).find("Grüß \"dich\"."), std::string::npos) << text;
    aerie_request listed = aerie_request_init(), written = listed;
    listed.max_tokens = written.max_tokens = 8;
    listed.messages = messages;
    listed.message_count = 2;
    written.conversation =
        R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Grüß \"dich\"."}])";
    Session one(*model_), other(*model_);
    EXPECT_EQ(answer_to(one, listed), answer_to(other, written));
    EXPECT_EQ(one.ids(), other.ids());
    std::vector<int32_t> prompt = one.ids();
    prompt.resize(one.answer().prompt_tokens);
    EXPECT_EQ(std::vector<int32_t>(ids, ids + count), prompt);
    aerie_free(text);
    aerie_free(ids);
}

TEST_F(Answers, TextAndIdsAndBack) {
    const std::string text = "Grüße, 25 rolls.";
    const std::vector<int32_t> ids = model_->tokenize(text, AERIE_TEXT_START);
    EXPECT_EQ(ids.front(), model_->info().bos);
    EXPECT_EQ(model_->detokenize(ids), text);
    EXPECT_EQ(std::vector<int32_t>(ids.begin() + 1, ids.end()), model_->tokenize(text));
    EXPECT_EQ(model_->tokenize("</s>", AERIE_TEXT_SPECIAL).size(), 1u);
    EXPECT_GT(model_->tokenize("</s>").size(), 1u);
}

}  // namespace
}  // namespace aerie::test
