// Clocks and stopwatches.
#pragma once

#include <chrono>
#include <functional>

namespace aerie {

// Returns seconds since an arbitrary moment. Code that decides by timings gets its clock as a
// parameter, so that a test can repeat a run exactly.
using Clock = std::function<double()>;

inline double steady_seconds() {
    using Steady = std::chrono::steady_clock;
    return std::chrono::duration<double>(Steady::now().time_since_epoch()).count();
}

// Adds the time between its construction and its destruction to `seconds`.
class Stopwatch {
  public:
    Stopwatch(const Clock& clock, double& seconds)
        : clock_(clock), seconds_(seconds), start_(clock()) {}
    ~Stopwatch() { seconds_ += clock_() - start_; }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

  private:
    const Clock& clock_;
    double& seconds_;
    double start_;
};

template <class Action>
double seconds_of(const Action& action) {
    const double start = steady_seconds();
    action();
    return steady_seconds() - start;
}

}  // namespace aerie
