// A request for completions being answered: its choices one after the other on one talk, told as
// they come.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "serve/exchange.h"
#include "serve/metrics.h"
#include "serve/reply_format.h"
#include "serve/requests/request.h"
#include "serve/schedule.h"
#include "serve/talk_shelf.h"

namespace aerie {

// What requests share.
struct AnswerShop {
    std::shared_ptr<SharedModel> model;
    TalkShelf& shelf;
    Metrics& metrics;
    std::string model_name, drafter;
    std::function<void(const std::string&)> log;  // a line for who runs the server
};

class Answering : public Job {
  public:
    // `request` is that of choice 0, which only its seed tells from the others.
    Answering(AnswerShop& shop, CompletionRequest asked, Request request,
              std::shared_ptr<Exchange> exchange, double received);

    bool run() override;
    void give_up() override { is_given_up_ = true; }
    void client_gone() { is_gone_ = true; }

  private:
    bool go_on();
    void begin_choice();
    void tell_news(bool is_over);
    void end_choice();
    void end_all();
    void fail(int status, const std::string& code, const std::string& message);
    const GenerationResult& result() const { return lease_->answer().result(); }
    uint64_t seed() const { return request_.answer.sampling.seed + uint64_t(choice_); }
    Json logprobs(const Told::News& news) const;
    Json live(const Told::News& news) const;

    AnswerShop& shop_;
    const CompletionRequest asked_;
    Request request_;
    const std::shared_ptr<Exchange> exchange_;
    const double received_;
    const ReplyFormat format_;
    std::optional<TalkShelf::Lease> lease_;
    int choice_ = 0;
    bool is_begun_ = false, is_streaming_ = false, has_token_ = false;
    std::optional<Told> told_;
    Told::News all_;  // of the choice, where the reply is whole
    Json::Array choices_;
    Usage usage_;
    std::atomic<bool> is_gone_ = false, is_given_up_ = false;
};

}  // namespace aerie
