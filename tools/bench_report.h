// The report of `aerie bench`, in three forms.
#pragma once

#include <string>

#include "io/json.h"
#include "measure/benchmark.h"

namespace aerie {

// A result with the names and figures that a report needs, which are derived here, once.
struct BenchReport {
    BenchReport(Model& model, const BenchPlan& plan, BenchResult measured);

    ModelConfig config;
    std::string name, device, description, weights, kv;
    std::string draft_weights, head;  // empty if nothing is drafted; its kind
    int threads = 0, prompt_tokens = 0, context = 0;
    size_t pass_bytes = 0, peak_memory_bytes = 0;
    bool tau_is_rescaled = false;
    double read_gb_per_s = 0, copy_gb_per_s = 0, streamed_gb_per_s = 0;
    double prefill_tokens_per_second = 0, plain_tokens_per_second = 0;
    BenchResult result;

    double tokens_per_second(const CycleTimes& cycle) const {
        return cycle.tau / cycle.seconds.median();
    }
    // Whether plain passes or reads of memory often took far longer than at best: something else
    // ran, and the figures are not to be relied on.
    bool was_disturbed() const;
    // The share of what a read gets, as a percentage: "84 %". Empty if plain decoding was faster
    // than the read, which was then disturbed, or the weights were in a cache.
    std::string read_share() const;
};

Json bench_json(const BenchReport& report);          // schema aerie-bench-1, see bench/README.md
std::string bench_table(const BenchReport& report);  // for a terminal
std::string bench_page(const BenchReport& report);   // HTML, self-contained

}  // namespace aerie
