// How fast a model runs on a device: passes of some rows, draft levels, whole cycles; and what
// memory gives in the same minute. Everything is measured in rounds that alternate, because
// machines are shared.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measure/cycle_bench.h"

namespace aerie {

struct BenchPlan {
    std::vector<int> rows = {1, 2, 4, 8, 16, 32, 60, 64};  // of the target passes to time
    int prompt_tokens = 128;                               // committed before anything is timed
    // Measures levels and cycles too, with this acceptance in place of the models' own; null: not.
    const RecordedDrafts* acceptance = nullptr;
    std::optional<double> tau;  // the record's acceptance length is rescaled to this
    double seconds = 60;        // rounds begin until they are used up, but three at least
    std::function<void(const std::string&)> on_progress;  // may be empty
    std::function<bool()> cancelled;                      // asked between passes; may be empty
};

struct PassTimes {
    int rows = 0;
    Timings seconds;
};

struct BenchResult {
    size_t probe_bytes = 0;  // that each read or copy moved
    Timings read, copy;
    Timings prefill;  // of the whole prompt
    Timings plain;    // of a token, decoded plainly
    std::vector<PassTimes> passes;
    Timings draft_level;             // empty without a head
    std::vector<CycleTimes> cycles;  // the same
    // Of one plain token, and of one cycle with the paper's tree; zero where ops run at once.
    CommandCounts token_commands, cycle_commands;
    Timings read_share;  // of each round: bytes a second of plain decoding, over the read rate
    int rounds = 0;
    bool cancelled = false;
};

BenchResult run_benchmark(Model& model, const BenchPlan& plan);

}  // namespace aerie
