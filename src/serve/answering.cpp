#include "serve/answering.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <utility>

#include "core/clock.h"
#include "core/platform.h"
#include "serve/requests/conversation_name.h"
#include "serve/requests/problem.h"

namespace aerie {

Answering::Answering(RequestContext& context, CompletionRequest asked,
                     std::vector<Request> requests, std::shared_ptr<Exchange> exchange,
                     double received)
    : context_(context),
      asked_(std::move(asked)),
      requests_(std::move(requests)),
      exchange_(std::move(exchange)),
      received_(received),
      format_(asked_, context.model_name) {
    for (Request& request : requests_)
        request.cancelled = [this] { return is_gone_ || is_given_up_; };
}

// The talk goes back to the cache before the client learns that the answer has ended: the client's
// next request may come at once.
bool Answering::run() {
    try {
        if (!go_on()) return false;
    } catch (...) {
        lease_.reset();
        tell_failure(*exchange_, state_, context_.log);
    }
    let_go();
    return true;
}

// Frees everything that the job holds, since others may hold the job for a while.
void Answering::let_go() {
    lease_.reset();
    const bool was_large = whole_.size() > ReplyRoom::kSmall;
    std::string().swap(whole_);
    share_ = {};
    if (was_large) platform::trim_freed_memory();
}

bool Answering::go_on() {
    while (true) {
        if (is_gone_) {
            context_.metrics.count_cancelled();
            note_end(true);
            return true;
        }
        if (is_given_up_) throw Problem(503, "server_stopping", "the server is being stopped");
        if (is_lost_) throw std::bad_alloc();
        if (choice_ == choices()) return say_whole();
        if (!is_begun_) begin_choice();
        if (!lease_) take_talk();
        if (asked_.stream && exchange_->unsent() >= kSendBuffer) return false;
        const bool more = lease_->step();
        if (!has_token_ && !result().ids.empty()) {
            has_token_ = true;
            context_.metrics.add_first_token(steady_seconds() - received_);
        }
        if (more) {
            if (asked_.stream) exchange_->say(delta_of(false));
            continue;
        }
        if (result().finish == FinishReason::cancelled) continue;  // the loop's beginning says why
        end_choice();
        if (++choice_ < choices() || !asked_.stream) continue;
        end_stream();
        return true;
    }
}

// A large reply goes out piece by piece, as its client takes it. Returns false if the client must
// read first.
bool Answering::say_whole() {
    if (state_ == ReplyState::none) {
        if (whole_.size() <= kSendBuffer) {
            exchange_->reply({.body = whole_});
            return true;
        }
        exchange_->begin_whole(whole_.size());
        state_ = ReplyState::whole;
    }
    for (std::string_view piece; said_ < whole_.size(); said_ += piece.size()) {
        if (exchange_->unsent() >= kSendBuffer) return false;
        piece = std::string_view(whole_).substr(said_, kLittleUnsent);
        exchange_->say(piece);
    }
    exchange_->end();
    return true;
}

// Called while the answer waits for its client. The text so far is kept; it is continued on another
// talk.
bool Answering::set_aside() {
    try {
        if (lease_ && is_begun_) begun_ = lease_->leave();
    } catch (const std::exception&) {
        is_lost_ = true;
    }
    lease_.reset();
    return true;
}

void Answering::begin_choice() {
    if (!asked_.stream && choice_ == 0)
        share_ = context_.room.take(reply_bytes(asked_, requests_, context_.model->context()));
    deltas_.emplace(context_.model->tokenizer(), request().eos_ids, request().continues_text);
    begun_ = {};
    take_talk();
    is_begun_ = true;
    if (!asked_.stream) return;
    if (state_ == ReplyState::none) exchange_->begin_stream();
    state_ = ReplyState::stream;
    exchange_->say(format_.first(choice_));
    if (!asked_.echo) return;
    AnswerDeltas::Delta prompt;
    prompt.text = echoed();
    exchange_->say(format_.part(choice_, {}, prompt, {}));
}

// The prompt as the beginning of the answer; empty unless the client asked for it.
std::string Answering::echoed() const {
    if (!asked_.echo) return "";
    const Prompt& prompt = asked_.prompts[prompt_index()];
    if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
    return context_.model->tokenizer().decode(std::get<std::vector<int>>(prompt));
}

// Takes a talk for the choice, which may have begun on another talk.
void Answering::take_talk() {
    if (!lease_) {
        std::vector<int> ids = request().prompt;
        ids.insert(ids.end(), begun_.ids.begin(), begun_.ids.end());
        lease_.emplace(context_.cache.take(ids, asked_.cache_key));
    }
    Request request = this->request();
    request.answer.sampling.seed = seed();
    request.on_text = [this](const std::string& text) {
        deltas_->add(text, result().origins.back());
    };
    // A comment of the stream, which clients may skip. A prompt of one pass needs none.
    if (asked_.stream)
        request.on_read = [this](int done, int all) {
            if (all - done > kPrefillRows)
                exchange_->say(": read " + std::to_string(done) + " of " + std::to_string(all) +
                               " prompt tokens\n\n");
        };
    if (is_learnt()) request.answer.head = context_.learning->head(asked_.key);
    if (!begun_.ids.empty()) request.begun = &begun_;
    lease_->begin(request);
}

Json Answering::logprobs(const AnswerDeltas::Delta& delta) const {
    if (!asked_.with_logprobs) return {};
    const Tokenizer& tokenizer = context_.model->tokenizer();
    return asked_.is_chat ? chat_logprobs(tokenizer, result(), delta)
                          : text_logprobs(tokenizer, result(), delta);
}

// The `aerie` member of an event: numbers that a page shows while it waits.
Json Answering::live(const AnswerDeltas::Delta& delta) const {
    if (!asked_.provenance) return {};
    return Json::Object{{"pieces", pieces_json(delta.pieces)},
                        {"tokens", int64_t(result().ids.size())},
                        {"tau", result().stats.tau()},
                        {"tokens_per_second", result().stats.tokens_per_second()}};
}

// The next event of a stream; empty if there is nothing new. A client that reads slowly gets more
// at once.
std::string Answering::delta_of(bool is_over) {
    if (!is_over && !asked_.with_logprobs && exchange_->unsent() > kLittleUnsent) return {};
    const AnswerDeltas::Delta delta = deltas_->take(result(), is_over);
    if (delta.text.empty() && (delta.first == delta.last || !asked_.with_logprobs)) return {};
    return format_.part(choice_, logprobs(delta), delta, live(delta));
}

// The `aerie` member of an answer that has ended.
Json Answering::aerie() const {
    Json json = aerie_member(seed(), result(), asked_.drafts ? context_.drafter : "none");
    if (!asked_.join) return json;
    std::vector<int> ids = request().prompt;
    ids.insert(ids.end(), result().ids.begin(), result().ids.end());
    json.set("join", conversation_name(ids));
    return json;
}

void Answering::end_choice() {
    is_begun_ = false;
    const int prompt_tokens = int(request().prompt.size());
    context_.metrics.count_answer(result(), prompt_tokens, is_first_of_prompt());
    usage_.completion += int(result().ids.size());
    tau_ = result().stats.tau();
    tokens_per_second_ = result().stats.tokens_per_second();
    if (is_learnt()) context_.learning->learn(asked_.key, request().prompt, result().ids);
    if (is_first_of_prompt()) {
        usage_.prompt += prompt_tokens;
        usage_.reused += result().reused;
    }
    std::string end;
    if (asked_.stream) {
        end = delta_of(true) + format_.last(choice_, result().finish, aerie());
    } else {
        const AnswerDeltas::Delta delta = deltas_->take(result(), true);
        Json about = aerie();
        if (asked_.provenance) about.set("pieces", pieces_json(delta.pieces));
        whole_ += choice_ == 0 ? format_.begin_whole() : ",";
        whole_ += format_.choice(choice_, echoed() + result().text, result().finish,
                                 logprobs(delta), std::move(about));
    }
    if (choice_ % asked_.choices + 1 == asked_.choices) lease_.reset();
    if (choice_ + 1 == choices()) {
        note_end(false);
        if (!asked_.stream) whole_ += format_.end_whole(usage_.json());
    }
    if (asked_.stream) exchange_->say(end);
}

// Writes the line of the request to the log.
void Answering::note_end(bool is_cancelled) {
    if (!context_.requests_log) return;
    char line[256];
    std::snprintf(line, sizeof(line),
                  "%s: %sprompt %d tokens (%d from the cache), answer %d tokens in %.2f s, %.1f "
                  "tokens/s, tau %.2f",
                  asked_.is_chat ? "/v1/chat/completions" : "/v1/completions",
                  is_cancelled ? "the client left; " : "", usage_.prompt, usage_.reused,
                  usage_.completion, steady_seconds() - received_, tokens_per_second_, tau_);
    context_.requests_log(line);
}

void Answering::end_stream() {
    if (asked_.include_usage) exchange_->say(format_.usage(usage_.json()));
    exchange_->say("data: [DONE]\n\n");
    exchange_->end();
}

}  // namespace aerie
