// How fast a model runs on a device: passes of some rows, draft levels, whole cycles; and what
// memory gives in the same minute. Everything is measured in rounds that alternate, because
// machines are shared.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/acceptance.h"
#include "engine/runtime.h"

namespace aerie {

// Durations of one thing.
class Samples {
  public:
    void add(double seconds) { values_.push_back(seconds); }
    void add(const Samples& more);
    int runs() const { return int(values_.size()); }
    const std::vector<double>& values() const { return values_; }
    double median() const;  // these three: 0 without a run
    double min() const;
    double max() const;

  private:
    std::vector<double> values_;
};

// A model in the hands of a benchmark: one target, any number of drafters and sessions over it.
class BenchModel {
  public:
    // Throws Error. `files` may be random (ModelFiles::random).
    BenchModel(ModelFiles files, const RuntimeOptions& options);

    struct Drafting {
        std::unique_ptr<Drafter> drafter;
        std::unique_ptr<Session> session;
    };
    Drafting with(std::unique_ptr<Drafter> drafter);
    Drafting with(const DraftOptions& options);  // the model must have a head

    Backend& backend() { return *backend_; }
    const ModelFiles& files() const { return files_; }
    const RuntimeOptions& options() const { return options_; }
    DType weights() const;
    DType draft_weights() const;
    // Bytes of weights that a target pass streams: all but an embedding that is only looked up.
    size_t pass_bytes() const;

  private:
    ModelFiles files_;
    RuntimeOptions options_;
    std::unique_ptr<Backend> backend_;
    std::unique_ptr<Target> target_;
};

struct BenchPlan {
    std::vector<int> rows = {1, 2, 4, 8, 16, 32, 60, 64};  // of the target passes to time
    int prompt_tokens = 128;                               // committed before anything is timed
    // Measures levels and cycles too, with this acceptance in place of the models' own; null: not.
    const AcceptanceRecord* acceptance = nullptr;
    std::optional<double> tau;  // the record's acceptance length is rescaled to this
    double seconds = 60;        // rounds begin until they are used up, but three at least
    std::function<void(const std::string&)> on_progress;  // may be empty
    std::function<bool()> cancelled;                      // asked between passes; may be empty
};

struct PassTimes {
    int rows = 0;
    Samples seconds;
};

// Draft-and-verify cycles with one setting of the tree.
struct CycleTimes {
    std::string tree;  // "auto" or "60,6,10"
    int cycles = 0;
    double tau = 0;         // tokens a cycle
    double tree_nodes = 0;  // mean, root included
    // Of each round: the mean cycle and its parts; `rest` is sampling and the host.
    Samples seconds, draft, verify, rest;
    Samples speedup;  // of each round: over plain decoding
};

struct BenchResult {
    size_t probe_bytes = 0;  // that each read or copy moved
    Samples read, copy;
    Samples prefill;  // of the whole prompt
    Samples plain;    // of a token, decoded plainly
    std::vector<PassTimes> passes;
    Samples draft_level;             // empty without a head
    std::vector<CycleTimes> cycles;  // the same
    Samples read_share;  // of each round: bytes a second of plain decoding, over the read rate
    int rounds = 0;
    bool cancelled = false;
};

BenchResult run_benchmark(BenchModel& model, const BenchPlan& plan);

}  // namespace aerie
