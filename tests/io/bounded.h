// Limits on what a hostile file may cost, for each case. Programs that use it link host_memory.cpp.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>

#include "host_memory.h"
#include "io/damage.h"

namespace aerie::test {

#ifdef __SANITIZE_ADDRESS__
constexpr double kMaxSeconds = 20;
#else
constexpr double kMaxSeconds = 2;  // a desktop needs half of it
#endif

// Runs cases one after another, each within kMaxSeconds of processor time and most_bytes of
// memory, and prints how many there were and the most that one of them cost.
class Bounded {
  public:
    explicit Bounded(size_t most_bytes) : most_bytes_(most_bytes) {}
    ~Bounded() {
        std::printf("%zu cases, up to %.2f s (%s) and %.1f MB (%s)\n", cases_, slowest_,
                    slowest_name_.c_str(), double(largest_) / 1e6, largest_name_.c_str());
    }

    // The message of the Error that `action` throws; empty if it throws none.
    template <typename Action>
    std::string error_of(std::string_view name, const Action& action) {
        const std::string shown(name.substr(0, 100));
        SCOPED_TRACE(shown);
        begin_count();
        const std::clock_t start = std::clock();
        const std::string message = test::error_of(action);
        const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
        const size_t bytes = most_since_begin();
        EXPECT_LE(seconds, kMaxSeconds) << message;
        EXPECT_LE(bytes, most_bytes_) << message;
        ++cases_;
        if (seconds > slowest_) slowest_ = seconds, slowest_name_ = shown;
        if (bytes > largest_) largest_ = bytes, largest_name_ = shown;
        return message;
    }
    size_t cases() const { return cases_; }

  private:
    size_t most_bytes_, cases_ = 0, largest_ = 0;
    double slowest_ = 0;
    std::string slowest_name_, largest_name_;
};

}  // namespace aerie::test
