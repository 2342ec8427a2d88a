// Continuous batching for threads that step one answer each: while a round runs, the answers that
// want another step wait in a queue; the thread that locks the model next runs a round of them, as
// many as share a pass, and the others wait for its outcome.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <vector>

#include "core/fair_mutex.h"
#include "engine/generation.h"

namespace aerie {

class Rounds {
  public:
    // The model's mutex is held during a round. At most `sequences_in_pass` answers share one.
    Rounds(FairMutex& model_mutex, int sequences_in_pass);
    Rounds(const Rounds&) = delete;
    Rounds& operator=(const Rounds&) = delete;

    // Takes part in rounds until this answer has put out tokens or has ended. Throws the answer's
    // own error, or the device's. Each answer is stepped by one thread at a time.
    void step(Generation& generation);

  private:
    struct Waiting {
        Generation* generation = nullptr;
        bool is_done = false;
        std::exception_ptr error;
    };
    void lead(std::unique_lock<std::mutex>& lock);

    FairMutex& model_mutex_;
    const size_t sequences_in_pass_;
    std::mutex mutex_;
    std::condition_variable arrived_, done_;
    std::vector<Waiting*> waiting_;  // in the order of arrival
    size_t expected_ = 0;            // answers of the last round that have not ended
    bool is_led_ = false;
    double seconds_ = 0;                    // time of the last round
    std::vector<Generation*> generations_;  // a round's answers, for the thread that leads
};

}  // namespace aerie
