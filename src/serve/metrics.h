// The server's counters, and the page of them that Prometheus reads.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/generation.h"

namespace aerie {

class Metrics {
  public:
    void count_request(const std::string& path, int status);
    // `is_first`: the answer is the first one of its request. The others have the same prompt,
    // which is counted once.
    void count_answer(const GenerationResult& result, int prompt_tokens, bool is_first);
    void add_first_token(double seconds);  // since the request had arrived
    void count_cancelled();

    struct Now {
        int running = 0, waiting = 0, kept = 0, connections = 0, failed_connections = 0;
        int pages = 0, used_pages = 0;  // pages of the KV cache, kPageSize positions each
    };
    std::string text(const Now& now, const PassCounts& passes) const;

  private:
    static constexpr std::array kBounds = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                           1.0,  2.5,   5.0,  10., 30.0, 60.0};
    mutable std::mutex mutex_;
    std::map<std::pair<std::string, int>, uint64_t> requests_;
    uint64_t answers_ = 0, cancelled_ = 0, prompt_tokens_ = 0, reused_tokens_ = 0, prefix_hits_ = 0;
    uint64_t tokens_ = 0, cycles_ = 0, cycle_tokens_ = 0;
    std::vector<uint64_t> accepted_by_depth_;
    std::array<uint64_t, kBounds.size() + 1> first_tokens_ = {};
    double first_token_seconds_ = 0;
};

}  // namespace aerie
