#include "serve/answering.h"

#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "serve/requests/problem.h"

namespace aerie {

namespace {

// What a client is not told: it may name files.
constexpr const char* kOurFault = "the server could not answer; its log says why";

}  // namespace

Answering::Answering(AnswerShop& shop, CompletionRequest asked, Request request,
                     std::shared_ptr<Exchange> exchange, double received)
    : shop_(shop),
      asked_(std::move(asked)),
      request_(std::move(request)),
      exchange_(std::move(exchange)),
      received_(received),
      format_(asked_, shop.model_name) {
    request_.cancelled = [this] { return is_gone_ || is_given_up_; };
}

bool Answering::run() {
    bool has_ended = true;
    try {
        has_ended = go_on();
    } catch (const Problem& problem) {
        fail(problem.status, problem.code, problem.what());
    } catch (const std::bad_alloc&) {
        shop_.log("out of memory");
        fail(500, "out_of_memory", kOurFault);
    } catch (const std::exception& error) {
        shop_.log(error.what());
        fail(500, "internal_error", kOurFault);
    }
    if (!has_ended) return false;
    lease_.reset();
    exchange_->end();
    return true;
}

bool Answering::go_on() {
    while (true) {
        if (is_gone_) {
            shop_.metrics.count_cancelled();
            return true;
        }
        if (is_given_up_) throw Problem(503, "server_stopping", "the server is being stopped");
        if (!is_begun_) begin_choice();
        if (is_streaming_ && exchange_->unsent() >= kSendBuffer) return false;
        const bool more = lease_->step();
        if (!has_token_ && !result().ids.empty()) {
            has_token_ = true;
            shop_.metrics.add_first_token(steady_seconds() - received_);
        }
        if (more) {
            tell_news(false);
            continue;
        }
        if (result().finish == FinishReason::cancelled) continue;  // above it is said why
        end_choice();
        if (++choice_ < asked_.choices) continue;
        end_all();
        return true;
    }
}

void Answering::begin_choice() {
    if (!lease_) lease_.emplace(shop_.shelf.take(request_.prompt));
    told_.emplace(shop_.model->tokenizer(), request_.eos_ids);
    all_ = {};
    Request request = request_;
    request.answer.sampling.seed = seed();
    request.on_text = [this](const std::string& text) {
        told_->add(text, result().origins.back());
    };
    lease_->begin(request);
    is_begun_ = true;
    if (!asked_.stream) return;
    if (!std::exchange(is_streaming_, true)) exchange_->begin_stream();
    exchange_->say(format_.first(choice_));
}

Json Answering::logprobs(const Told::News& news) const {
    if (!asked_.with_logprobs) return {};
    const Tokenizer& tokenizer = shop_.model->tokenizer();
    return asked_.is_chat ? chat_logprobs(tokenizer, result(), news)
                          : text_logprobs(tokenizer, result(), news);
}

// What a page shows while it waits.
Json Answering::live(const Told::News& news) const {
    if (!asked_.provenance) return {};
    return Json::Object{{"pieces", pieces_json(news.pieces)},
                        {"tokens", int64_t(result().ids.size())},
                        {"tau", result().stats.tau()},
                        {"tokens_per_second", result().stats.tokens_per_second()}};
}

// A client that reads slowly gets more at once.
void Answering::tell_news(bool is_over) {
    if (!asked_.stream) return;
    if (!is_over && !asked_.with_logprobs && exchange_->unsent() > kLittleUnsent) return;
    const Told::News news = told_->take(result(), is_over);
    if (news.text.empty() && (news.first == news.last || !asked_.with_logprobs)) return;
    exchange_->say(format_.part(choice_, logprobs(news), news, live(news)));
}

void Answering::end_choice() {
    is_begun_ = false;
    shop_.metrics.count_answer(result(), int(request_.prompt.size()), choice_ == 0);
    usage_.completion += int(result().ids.size());
    if (choice_ == 0) {
        usage_.prompt = int(request_.prompt.size());
        usage_.reused = result().reused;
    }
    Json aerie = aerie_member(seed(), result(), asked_.drafts ? shop_.drafter : "none");
    if (asked_.stream) {
        tell_news(true);
        exchange_->say(format_.last(choice_, result().finish, aerie));
        return;
    }
    const Told::News news = told_->take(result(), true);
    if (asked_.provenance) aerie.set("pieces", pieces_json(news.pieces));
    choices_.push_back(format_.choice(choice_, result(), logprobs(news), aerie));
}

void Answering::end_all() {
    if (!asked_.stream) {
        exchange_->reply({.body = format_.whole(std::move(choices_), usage_.json())});
        return;
    }
    if (asked_.include_usage) exchange_->say(format_.usage(usage_.json()));
    exchange_->say("data: [DONE]\n\n");
}

void Answering::fail(int status, const std::string& code, const std::string& message) {
    const std::string error = Problem(status, code, message).json();
    if (is_streaming_)
        exchange_->say("data: " + error + "\n\n");
    else
        exchange_->reply({.status = status, .body = error});
}

}  // namespace aerie
