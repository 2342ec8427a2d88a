// Sessions: their texts and their answers.
#include "api/handles.h"
#include "api/options.h"
#include "api/structs.h"
#include "core/platform.h"

using namespace aerie;
using namespace aerie::api;

namespace {

void make_session(const std::shared_ptr<OpenModel>& open, std::unique_ptr<Talk> talk,
                  aerie_session** session) {
    *session = new aerie_session(open, std::move(talk));
}

int length_of(size_t length) {
    constexpr size_t kMost = std::numeric_limits<int>::max();
    return int(std::min(length, kMost));
}

// Marks an unfinished answer as cancelled, because it will not continue.
void leave_answer(aerie_session& session) {
    if (session.finish == AERIE_FINISH_NONE) session.finish = AERIE_FINISH_CANCELLED;
}

aerie_finish finish_of(FinishReason reason) {
    switch (reason) {
        case FinishReason::stop:
            return AERIE_FINISH_STOP;
        case FinishReason::length:
            return AERIE_FINISH_LENGTH;
        case FinishReason::cancelled:
            return AERIE_FINISH_CANCELLED;
    }
    return AERIE_FINISH_FAILED;
}

// Copies the newest alternatives to the form that the header shows.
void take_alternatives(aerie_session& session) {
    const std::vector<TokenLogprob>& all = session.talk->answer().result().alternatives;
    for (size_t i = session.alternatives.size(); i < all.size(); ++i)
        session.alternatives.push_back({all[i].id, all[i].logprob});
}

aerie_step step_on(aerie_session& session) {
    const GenerationResult& result = session.talk->answer().result();
    const size_t text_before = result.text.size(), ids_before = result.ids.size();
    bool more = false;
    try {
        more = session.talk->step();
        take_alternatives(session);
    } catch (const Cancelled&) {
        leave_answer(session);
        throw;
    } catch (...) {
        if (session.finish == AERIE_FINISH_NONE) session.finish = AERIE_FINISH_FAILED;
        throw;
    }
    if (!more && session.finish == AERIE_FINISH_NONE) session.finish = finish_of(result.finish);
    aerie_step step = aerie_step_init();
    step.more = more;
    step.text = result.text.c_str() + text_before;
    step.text_bytes = result.text.size() - text_before;
    step.first_token = ids_before;
    step.token_count = result.ids.size() - ids_before;
    return step;
}

}  // namespace

aerie_status aerie_session_create(aerie_model* model, aerie_session** session) {
    return enter_to_make(model, session, [&] {
        given(session, "session");
        make_session(model->open, std::make_unique<Talk>(shared(model->open)), session);
    });
}

void aerie_session_free(aerie_session* session) {
    enter(session, [&] { delete session; });
}

const char* aerie_session_message(const aerie_session* session) {
    return session ? session->last_message.text() : kNullHandle;
}

aerie_cause aerie_session_cause(const aerie_session* session) {
    return session ? session->last_message.cause() : AERIE_CAUSE_ARGUMENT;
}

aerie_status aerie_session_begin(aerie_session* session, const aerie_request* asked) {
    return enter(session, [&] {
        const Request request = request_of(asked, *session->talk, session->open->model);
        leave_answer(*session);
        session->talk->begin(request);
        session->finish = AERIE_FINISH_NONE;
        session->prompt_tokens = request.prompt.size();
        session->seed = request.answer.sampling.seed;
        session->alternatives_each = size_t(request.answer.alternatives);
        session->alternatives.clear();
    });
}

aerie_status aerie_session_step(aerie_session* session, aerie_step* out) {
    return enter(session, [&] {
        if (out) checked_size(out, "aerie_step");
        const aerie_step step = step_on(*session);
        if (out) write_struct(out, step, "aerie_step");
    });
}

aerie_status aerie_session_run(aerie_session* session, aerie_step_callback callback, void* user) {
    return enter(session, [&] {
        aerie_step step = aerie_step_init();
        do {
            step = step_on(*session);
            if (callback && callback(user, session, &step) != 0) session->talk->cancel();
        } while (step.more);
    });
}

void aerie_session_cancel(aerie_session* session) {
    if (session) session->talk->cancel();
}

aerie_status aerie_session_ids(aerie_session* session, const int32_t** ids, size_t* count,
                               size_t* computed) {
    return enter(session, [&] {
        given(ids, "ids");
        given(count, "count");
        *ids = session->talk->ids().data();
        *count = session->talk->ids().size();
        if (computed) *computed = size_t(session->talk->computed());
    });
}

aerie_status aerie_session_rewind(aerie_session* session, size_t length) {
    return enter(session, [&] {
        session->talk->rewind(length_of(length));
        leave_answer(*session);
    });
}

aerie_status aerie_session_fork(aerie_session* session, size_t length, aerie_session** fork) {
    return enter_to_make(session, fork, [&] {
        given(fork, "fork");
        make_session(session->open, session->talk->fork(length_of(length)), fork);
    });
}

aerie_status aerie_session_save(aerie_session* session, const char* path) {
    return enter(session,
                 [&] { session->talk->save(platform::path_of(given_text(path, 0, "path"))); });
}

aerie_status aerie_session_load(aerie_model* model, const char* path, aerie_session** session) {
    return enter_to_make(model, session, [&] {
        given(session, "session");
        std::string note;
        const auto file = platform::path_of(given_text(path, 0, "path"));
        auto talk =
            with_cause(Cause::damaged, [&] { return Talk::load(shared(model->open), file, note); });
        make_session(model->open, std::move(talk), session);
        if (!note.empty()) model->open->log->say(AERIE_LOG_WARNING, note);
    });
}
