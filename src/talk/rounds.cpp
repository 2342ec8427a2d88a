#include "talk/rounds.h"

#include <algorithm>
#include <chrono>

#include "core/clock.h"

namespace aerie {

Rounds::Rounds(FairMutex& model_mutex, int sequences_in_pass)
    : model_mutex_(model_mutex),
      sequences_in_pass_(size_t(std::clamp(sequences_in_pass, 1, kMaxTogether))) {
    waiting_.reserve(kMaxTogether);
    generations_.reserve(sequences_in_pass_);
}

void Rounds::step(Generation& generation) {
    Waiting mine;
    mine.generation = &generation;
    std::unique_lock lock(mutex_);
    waiting_.push_back(&mine);
    arrived_.notify_all();
    while (!mine.is_done) {
        if (is_led_)
            done_.wait(lock);
        else
            lead(lock);
    }
    if (mine.error) std::rethrow_exception(mine.error);
}

// Runs a round of the answers that wait. The threads of the last round deliver its tokens and come
// back within microseconds; a round that started without them would cost nearly as much as one with
// them. So the leader waits for them, but only a small part of a round: a client that reads slowly
// must not hold up the others.
void Rounds::lead(std::unique_lock<std::mutex>& lock) {
    constexpr double kMaxWait = 2e-3, kShare = 1.0 / 8;  // seconds; of the last round's time
    is_led_ = true;
    const double wait = std::min(kMaxWait, seconds_ * kShare);
    arrived_.wait_for(lock, std::chrono::duration<double>(wait),
                      [&] { return waiting_.size() >= std::min(expected_, sequences_in_pass_); });
    lock.unlock();
    model_mutex_.lock();
    lock.lock();
    // They stay in line, so that nothing needs memory after the round.
    const size_t count = std::min(waiting_.size(), sequences_in_pass_);
    generations_.clear();
    for (size_t i = 0; i < count; ++i) generations_.push_back(waiting_[i]->generation);
    lock.unlock();

    std::exception_ptr error;
    const double start = steady_seconds();
    try {
        aerie::step(generations_);
    } catch (...) {
        error = std::current_exception();
    }
    const double seconds = steady_seconds() - start;
    model_mutex_.unlock();

    lock.lock();
    seconds_ = seconds;
    expected_ = 0;
    for (size_t i = 0; i < count; ++i) {
        Waiting& one = *waiting_[i];
        one.error = error ? error : one.generation->error();
        one.is_done = one.error || !one.generation->is_prefilling();
        expected_ += !one.error && !one.generation->has_ended();
    }
    std::erase_if(waiting_, [](const Waiting* one) { return one->is_done; });
    is_led_ = false;
    done_.notify_all();
}

}  // namespace aerie
