// `aerie train`: a draft head for a model, on the machine that runs it.
#include <algorithm>
#include <cstdio>

#include "backend/training.h"
#include "commands.h"
#include "core/error.h"
#include "format.h"
#include "io/safetensors_writer.h"
#include "terminal.h"
#include "train/folder_lock.h"
#include "train/model_card.h"
#include "train/profiled_device.h"
#include "train/training_run.h"

namespace aerie {

namespace {

using train::Evaluation;
using train::TrainingProgress;

// The last part of a path as the user wrote it: "head" for "heads/head/" and for ".".
std::string name_of(const std::filesystem::path& path) {
    const std::filesystem::path whole = std::filesystem::weakly_canonical(path);
    return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

std::string duration(double seconds) {
    if (seconds < 90) return format("%.0f s", seconds);
    if (seconds < 5400) return format("%.0f min", seconds / 60);
    return format("%.1f h", seconds / 3600);
}

// "tau 2.31 (61% 45% 32%)"
std::string shown(const Evaluation& evaluation) {
    std::string text = "tau " + format("%.2f", evaluation.expected_tau()) + " (";
    for (size_t d = 0; d < evaluation.agreement.size(); ++d)
        text += (d ? " " : "") + format("%.0f%%", 100 * evaluation.agreement[d]);
    return text + ")";
}

std::string shown(const TrainingProgress& progress) {
    const bool is_answering = progress.stage == TrainingProgress::Stage::answering;
    std::string line = is_answering ? "answering " : "step ";
    line += std::to_string(progress.done);
    if (progress.all > 0) line += " of " + std::to_string(progress.all);
    if (!is_answering) line += format(", loss %.3f", progress.loss);
    if (progress.evaluation) line += ", held-out " + shown(*progress.evaluation);
    line += format(", %.0f tokens/s", progress.tokens_per_second);
    if (progress.seconds_left > 0) line += ", " + duration(progress.seconds_left) + " left";
    return line;
}

train::TrainingOptions training_options(const TrainOptions& options) {
    train::TrainingOptions training;
    training.folder = options.folder;
    training.is_eagle2 = options.is_eagle2;
    training.prompts.assign(options.prompts.begin(), options.prompts.end());
    training.texts.assign(options.texts.begin(), options.texts.end());
    training.goes_on = options.goes_on;
    training.max_prompts = options.max_prompts;
    training.answering.sequences_in_pass = options.parallel;
    training.answering.max_tokens = options.max_answer;
    training.answering.sampling.filters.temperature = float(options.temperature);
    training.answering.sampling.seed = options.seed;
    training.steps = options.steps;
    training.hours = options.hours.value_or(1);
    training.draft_vocab = options.draft_vocab;
    training.max_text = options.max_text;
    training.patience = options.patience;
    training.plan.batch_rows = options.batch_rows;
    training.plan.rate = options.rate.value_or(options.init ? 1e-4 : 1e-3);
    training.plan.test.depths = options.depths;
    training.plan.seed = options.seed;
    training.cancelled = interrupted;
    return training;
}

void check_together(const TrainOptions& options) {
    if (options.folder.empty()) throw UsageError("-o: the head needs a folder");
    if (options.prompts.empty() && options.texts.empty() && !train::has_texts(options.folder))
        throw UsageError("nothing to learn from: give --prompts FILE or --texts FILE");
    if (options.steps > 0 && options.hours)
        throw UsageError("--steps and --hours exclude each other");
    if (options.hours && !(*options.hours > 0)) throw UsageError("--hours must be above 0");
    if (options.rate && !(*options.rate > 0)) throw UsageError("--lr must be above 0");
    if (options.temperature < 0) throw UsageError("--temp must not be negative");
    if (options.goes_on && options.init)
        throw UsageError("--resume goes on with its own head: --init is for the beginning");
}

}  // namespace

int run_train(const TrainOptions& options) {
    if (!options.folder.empty()) train::check_folder(options.folder, options.goes_on);
    check_together(options);
    for (const char* flag : {"--ttt", "--draft-vocab"})
        if (options.is_eagle2 && !options.quiet &&
            std::count(options.model.given.begin(), options.model.given.end(), flag))
            print_note(std::string("(") + flag + " changes nothing with --kind eagle2)");
    ModelOptions model = options.model;
    model.head = options.init;
    model.draft = options.init ? (options.is_eagle2 ? "eagle2" : "eagle3") : kNoDrafts;
    LoadOptions load_options = locate(model);
    load_options.sequences = options.parallel;
    load_options.context = std::min(options.max_text + options.max_answer,
                                    target_config(open_model(load_options.model)).context);
    const train::FolderLock lock(train::training_folder(options.folder));
    ProgressLine progress(options.quiet);
    load_options.on_progress = [&](const LoadProgress& now) { progress.show(now.line); };
    ModelFiles files = ModelFiles::open(load_options);
    const Tokenizer tokenizer = load_tokenizer(files);
    Model loaded(std::move(files), load_options);
    const std::string device_name = loaded.backend().capabilities().name;
    std::unique_ptr<TrainingDevice> device =
        open_training_device(device_name, load_options.threads);
    const train::ProfiledDevice* profiled = nullptr;
    if (options.model.profile) {
        auto made = std::make_unique<train::ProfiledDevice>(std::move(device));
        profiled = made.get();
        device = std::move(made);
    }

    end_cleanly_on_signals();
    train::TrainingOptions training = training_options(options);
    training.on_progress = [&](const TrainingProgress& now) {
        if (now.is_new && !options.quiet) {
            progress.clear();
            print_note(shown(now));
        }
        progress.show(shown(now));
    };
    training.on_note = [&](const std::string& line) {
        progress.clear();
        print_note(line);
    };
    const train::TrainingReport report = train::train_head(loaded, tokenizer, *device, training);
    progress.clear();
    if (profiled) {
        print_op_times(loaded.backend());
        print_op_times("training", profiled->op_times());
    }
    if (report.was_cancelled) {
        tell("aerie: stopped; with --resume the same command goes on from here\n");
        return interrupted();
    }
    const std::string head = name_of(options.folder);
    std::string target = name_of(loaded.files().target.path);
    if (target.ends_with(".gguf")) target.resize(target.size() - 5);
    write_text(training.folder / "README.md", train::model_card(head, target, training, report));
    if (report.best_step == 0)
        print_note("no step made the head better than its beginning: train longer");
    print(options.folder + ": step " + std::to_string(report.best_step) + " of " +
          std::to_string(report.steps) + (report.ended_early ? " (no better head since)" : "") +
          ", held-out " + shown(report.best) + "\n");
    return 0;
}

}  // namespace aerie
