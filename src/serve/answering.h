// Answers one request for completions: the choices of its prompts one after the other, sent to the
// client as they are generated.
#pragma once

#include <atomic>
#include <optional>

#include "serve/exchange.h"
#include "serve/failure.h"
#include "serve/metrics.h"
#include "serve/prompt_cache.h"
#include "serve/reply_format.h"
#include "serve/reply_room.h"
#include "serve/requests/request.h"
#include "serve/schedule.h"
#include "talk/learning.h"

namespace aerie {

// The parts of the server that all requests share.
struct RequestContext {
    std::shared_ptr<SharedModel> model;
    PromptCache& cache;
    Metrics& metrics;
    ReplyRoom& room;
    std::string model_name, drafter;
    std::shared_ptr<Learning> learning;  // may be null
    Log log;
    Log requests_log;  // gets a line for each request; may be null
};

class Answering : public Job {
  public:
    // `requests` are those of the first choice of each prompt; the other choices of a prompt differ
    // from it in the seed alone. `received` is steady_seconds() when the request had arrived.
    Answering(RequestContext& context, CompletionRequest asked, std::vector<Request> requests,
              std::shared_ptr<Exchange> exchange, double received);

    bool run() override;
    void give_up() override { is_given_up_ = true; }
    bool set_aside() override;
    void client_gone() { is_gone_ = true; }

  private:
    bool go_on();
    bool say_whole();
    void begin_choice();
    void take_talk();
    // Whether the client's answers are learnt from, and drafted by a head of their own.
    bool is_learnt() const { return context_.learning && !asked_.key.empty() && asked_.drafts; }
    std::string delta_of(bool is_over);
    void end_choice();
    void end_stream();
    void let_go();
    Json aerie() const;
    void note_end(bool is_cancelled);
    const GenerationResult& result() const { return lease_->answer().result(); }
    int choices() const { return int(requests_.size()) * asked_.choices; }
    size_t prompt_index() const { return size_t(choice_ / asked_.choices); }
    const Request& request() const { return requests_[prompt_index()]; }
    bool is_first_of_prompt() const { return choice_ % asked_.choices == 0; }
    uint64_t seed() const {
        return request().answer.sampling.seed + uint64_t(choice_ % asked_.choices);
    }
    std::string echoed() const;
    Json logprobs(const AnswerDeltas::Delta& delta) const;
    Json live(const AnswerDeltas::Delta& delta) const;

    RequestContext& context_;
    const CompletionRequest asked_;
    std::vector<Request> requests_;
    const std::shared_ptr<Exchange> exchange_;
    const double received_;
    const ReplyFormat format_;
    ReplyRoom::Share share_;
    std::optional<PromptCache::Lease> lease_;
    GenerationResult begun_;  // the choice's result so far, when it was set aside
    int choice_ = 0;          // the choices of a prompt follow one another
    bool is_begun_ = false, has_token_ = false, is_lost_ = false;
    ReplyState state_ = ReplyState::none;
    std::optional<AnswerDeltas> deltas_;
    std::string whole_;  // the reply, unless it is a stream
    size_t said_ = 0;    // bytes of it that were sent
    Usage usage_;
    double tau_ = 0, tokens_per_second_ = 0;  // the newest choice's
    std::atomic<bool> is_gone_ = false, is_given_up_ = false;
};

}  // namespace aerie
