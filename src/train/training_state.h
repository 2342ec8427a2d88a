// The state of a training between two steps, in one file: with it, a run that was killed goes on as
// if it had not been.
//
// A line of JSON, then the raw f32 values, means and squares of each parameter of the head.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/trained_head.h"
#include "train/trainer.h"

namespace aerie::train {

// Hyperparameters and shapes of a training; one that is resumed must have the same.
struct TrainingSetup {
    HeadShape shape;
    std::vector<int> taps;
    std::vector<int> draft_ids;  // EAGLE-3: the target's token of each draft token
    TrainingPlan plan;
};

struct TrainingState {
    TrainingSetup setup;
    int steps = 0;
    int64_t tokens = 0;
    double seconds = 0;   // spent on training, evaluations included
    double best_tau = 0;  // the written head's expected tau
    int best_step = -1;   // -1: none was written
    int since_best = 0;   // evaluations since then
};

// Replaces the file as a whole or not at all. Throws Error.
void write_state(const std::filesystem::path& file, const TrainingState& state,
                 TrainingDevice& device, const TrainedHead& head);

// Reads the file's line; unset if there is no file. Throws Error naming the file if it is damaged.
std::optional<TrainingState> read_state(const std::filesystem::path& file);

// Gives a head of the state's shape the parameters and moments of the file.
void read_parameters(const std::filesystem::path& file, const TrainingState& state,
                     TrainingDevice& device, TrainedHead& head);

}  // namespace aerie::train
