// Speed of a model on a device: passes over some rows, draft levels, whole cycles, and the memory
// bandwidth at the same time. All measurements alternate in rounds, because machines are shared.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measure/cycle_bench.h"
#include "measure/sequences_bench.h"

namespace aerie {

struct BenchPlan {
    std::vector<int> rows = {1, 2, 4, 8, 16, 32, 60, 64};  // rows of the timed target passes
    int prompt_tokens = 128;                               // committed before anything is timed
    // Also measures levels and cycles, with this acceptance in place of the models' own; null: does
    // not.
    const RecordedDrafts* acceptance = nullptr;
    std::optional<double> tau;   // acceptance length to which the record is rescaled
    std::vector<int> sequences;  // numbers of sequences that are decoded together; may be empty
    double seconds = 60;         // rounds begin until this is used up, but at least three
    std::function<void(const std::string&)> on_progress;  // may be empty
    std::function<bool()> cancelled;                      // asked between passes; may be empty
};

struct PassTimes {
    int rows = 0;
    Timings seconds;
};

struct BenchResult {
    size_t probe_bytes = 0;  // bytes that each read or copy moved
    Timings read, copy;
    Timings prefill;  // for the whole prompt
    Timings plain;    // for one token of plain decoding
    std::vector<PassTimes> passes;
    Timings draft_level;             // empty without a head
    std::vector<CycleTimes> cycles;  // empty without a head
    std::vector<SequencesTimes> sequences;
    int most_sequences = 0;  // as many as memory has room for; 0: not asked for
    // Counts for one plain token, and for one cycle with the paper's tree; zero if ops run at once.
    CommandCounts token_commands, cycle_commands;
    Timings read_share;  // per round: bytes per second of plain decoding, over the read rate
    int rounds = 0;
    bool cancelled = false;
};

BenchResult run_benchmark(Model& model, const BenchPlan& plan);

}  // namespace aerie
