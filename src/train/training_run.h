// A whole training: the target answers prompts, a head learns from the answers, and the best head
// lies in a folder. It can be stopped or killed at any time and goes on where it was.
#pragma once

#include <climits>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/model.h"
#include "text/prompt_file.h"
#include "text/tokenizer.h"
#include "train/answering.h"
#include "train/text_file.h"
#include "train/training_state.h"

namespace aerie::train {

struct TrainingProgress {
    enum class Stage { answering, learning } stage = Stage::answering;
    int64_t done = 0, all = 0;  // prompts; or steps, `all` 0 if the training has a time instead
    int64_t tokens = 0;         // in answers; or learnt from
    double tokens_per_second = 0;
    double seconds_left = 0;  // 0: unknown
    double loss = 0;          // the newest step's
    // The newest result on texts that were held out; null while there is none. `is_new`: it was
    // made since the last report.
    const Evaluation* evaluation = nullptr;
    bool is_new = false;
};

struct TrainingOptions {
    std::filesystem::path
        folder;  // where the head lies; its folder "training" keeps texts and state
    bool is_eagle2 = false;
    std::vector<std::filesystem::path> prompts, texts;
    bool goes_on = false;  // from the state in the folder
    int max_prompts = INT_MAX;
    AnsweringPlan answering;  // its eos_ids and cancelled are filled in
    int steps = 0;            // 0: as many as `hours` allow
    double hours = 0;
    int draft_vocab = 8192;  // EAGLE-3: most tokens that the head can draft
    int max_text = 1024;     // tokens; longer texts are cut into pieces
    int patience = 10;       // evaluations without a better head before the training ends early
    TrainingPlan plan;
    std::function<bool()> cancelled;  // asked between steps; may be empty
    std::function<void(const TrainingProgress&)> on_progress;
    std::function<void(const std::string&)> on_note;  // a line for the user
};

struct TrainingReport {
    int steps = 0, best_step = -1;
    int64_t tokens = 0;  // learnt from, repeats included
    size_t texts = 0, held_out = 0;
    int64_t text_tokens = 0;  // in the texts learnt from, each counted once
    double seconds = 0;
    bool was_cancelled = false, ended_early = false;
    Evaluation best;                            // the written head's
    std::map<std::string, Evaluation> by_kind;  // the written head's, by the prompts' kinds
};

// Where a head's folder keeps the texts and the state of its training.
std::filesystem::path training_folder(const std::filesystem::path& head);

// Whether a folder has texts to learn from, those of an earlier training.
bool has_texts(const std::filesystem::path& head);

// Throws UsageError if the folder has a training and `goes_on` is false, or files of another model.
void check_folder(const std::filesystem::path& head, bool goes_on);

// Throws Error and UsageError. `model` may have a head, which the training then begins with. NaN
// and infinity end the training with an Error; the head that was written before remains.
TrainingReport train_head(Model& model, const Tokenizer& tokenizer, TrainingDevice& device,
                          const TrainingOptions& options);

}  // namespace aerie::train
