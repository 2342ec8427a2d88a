#include "train/training_run.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "draft/heads/eagle3_shape.h"
#include "draft/heads/kinds.h"
#include "train/head_file.h"
#include "train/head_training.h"
#include "train/prompt_answers.h"
#include "train/training_text.h"

namespace aerie::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kStateFile = "state.bin";
constexpr double kSaveSeconds = 30;  // a kill loses at most so much, and the step that runs
constexpr size_t kMinTexts = 8;
constexpr int kHeldOutShare = 16;           // one text of so many is held out
constexpr int64_t kHeldOutTokens = 24'000;  // and no more than these
constexpr const char* kTextsFile = "texts.jsonl";
constexpr int kEvaluations = 40;  // in a whole training

// Some texts, and how many tokens they have.
struct TextSet {
    TrainingTexts texts;
    std::vector<std::string> kinds;
    int64_t tokens = 0;

    void add(TokenText text, const std::string& kind) {
        tokens += int64_t(text.tokens.size());
        texts.tokens.push_back(std::move(text.tokens));
        texts.mask.push_back(std::move(text.mask));
        kinds.push_back(kind);
    }
};

class Run {
  public:
    Run(Model& model, const Tokenizer& tokenizer, TrainingDevice& device,
        const TrainingOptions& options)
        : model_(model), tokenizer_(tokenizer), device_(device), options_(options) {}

    TrainingReport run();

  private:
    fs::path own_folder() const { return training_folder(options_.folder); }
    fs::path state_file() const { return own_folder() / kStateFile; }
    int positions() const { return std::min(options_.max_text, model_.files().context); }
    bool is_cancelled() const { return options_.cancelled && options_.cancelled(); }
    void note(const std::string& line) const {
        if (options_.on_note) options_.on_note(line);
    }

    void gather(TextFile& file);
    TokenText tokens_of(const PromptLine& line) const;
    void divide(const TextFile& file);
    TrainingSetup new_setup() const;
    TrainingSetup first_setup() const;
    void check_same(const TrainingSetup& old) const;
    void learn(HeadTraining& training);
    void evaluate(HeadTraining& training);
    bool is_time_to_evaluate() const;
    double way() const;
    void report(const Trainer& trainer, double loss, bool is_new);
    void evaluate_kinds(Trainer& trainer);

    Model& model_;
    const Tokenizer& tokenizer_;
    TrainingDevice& device_;
    const TrainingOptions& options_;
    TextSet learnt_, held_out_;
    TrainingState state_;
    TrainingReport report_;
    Evaluation evaluation_;
    double evaluated_way_ = 0;                          // where the newest evaluation was
    double evaluated_ = 0, seconds_of_evaluation_ = 0;  // when it ended, and what it took
    double start_ = 0;
    double seconds_before_ = 0;
    int64_t tokens_before_ = 0;
};

// Appends what the file of texts lacks: answers to the prompts, and conversations as they are.
void Run::gather(TextFile& file) {
    std::vector<PromptLine> prompts;
    for (const fs::path& path : options_.prompts)
        for (PromptLine& line : read_prompt_file(path)) {
            if (!line.asks())
                throw UsageError(line.place + ": no user's message to answer; texts go to --texts");
            if (int(prompts.size()) < options_.max_prompts) prompts.push_back(std::move(line));
        }
    std::vector<PromptLine> texts;
    for (const fs::path& path : options_.texts)
        for (PromptLine& line : read_prompt_file(path)) texts.push_back(std::move(line));
    int silent = 0;
    for (const PromptLine& line : texts) {
        if (file.has(line.id + "#0") || is_cancelled()) continue;
        const std::vector<TokenText> pieces = pieces_of(tokens_of(line), options_.max_text);
        silent += pieces.empty();
        for (size_t i = pieces.size(); i-- > 0;)  // #0 last: then all of them are there
            file.append(line.id + "#" + std::to_string(i), line.kind, pieces[i].tokens,
                        pieces[i].mask);
    }
    if (silent > 0) note(std::to_string(silent) + " texts have no answer to learn from");
    if (!prompts.empty()) answer_lines(model_, tokenizer_, options_, std::move(prompts), file);
}

TokenText Run::tokens_of(const PromptLine& line) const {
    if (line.messages.empty()) return plain_text(tokenizer_, line.text);
    try {
        return conversation_text(tokenizer_, eos_ids(model_.files(), tokenizer_), line.messages);
    } catch (const UsageError& error) {
        throw UsageError(line.place + ": " + error.what());
    }
}

// Holds out one conversation of sixteen by a hash of its name, so that it stays on its side when
// others come; pieces of one text are on the same side. Texts are taken in the order of their
// names, not in that in which they were answered.
void Run::divide(const TextFile& file) {
    const TrainingTexts& all = file.texts();
    std::vector<size_t> order(all.tokens.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return file.id(a) < file.id(b); });
    const auto rank = [&](size_t i) {  // the multiplication spreads what the hash has at its end
        const std::string& id = file.id(i);
        return fnv1a(id.substr(0, id.rfind('#'))) * 0x9e3779b97f4a7c15u;
    };
    uint64_t limit = UINT64_MAX / kHeldOutShare;
    if (order.size() >= kMinTexts)  // at least one
        for (uint64_t lowest = UINT64_MAX; const size_t i : order)
            if (lowest = std::min(lowest, rank(i)); i == order.back())
                limit = std::max(limit, lowest);
    for (const size_t i : order) {
        const bool is_held_out = rank(i) <= limit && held_out_.tokens < kHeldOutTokens;
        TextSet& side = is_held_out ? held_out_ : learnt_;
        for (TokenText& piece : pieces_of({all.tokens[i], all.mask[i]}, positions()))
            side.add(std::move(piece), file.kind(i));
    }
    if (learnt_.tokens == 0 || held_out_.tokens == 0)
        throw UsageError("there are " + std::to_string(all.tokens.size()) +
                         " texts to learn from; a training needs some dozens (--prompts, --texts)");
    report_.texts = learnt_.texts.tokens.size();
    report_.held_out = held_out_.texts.tokens.size();
    report_.text_tokens = learnt_.tokens;
}

TrainingSetup Run::new_setup() const {
    const ModelConfig& target = model_.files().config;
    TrainingSetup setup;
    setup.plan = options_.plan;
    setup.taps = options_.is_eagle2 ? Taps{target.layers} : usual_taps(target.layers);
    if (!options_.is_eagle2)
        setup.draft_ids =
            DraftVocabulary::most_frequent(learnt_.texts, target.vocab, options_.draft_vocab).ids;
    setup.shape = shape_of(target, int(setup.taps.size()), int(setup.draft_ids.size()));
    setup.shape.rope_base = 10000;
    return setup;
}

// The setup of the head that the training begins with, if there is one.
TrainingSetup Run::first_setup() const {
    const ModelFiles& files = model_.files();
    if (!files.head) return new_setup();
    if (files.head_config->kind->method.name != (options_.is_eagle2 ? "eagle2" : "eagle3"))
        throw UsageError("--init: the files are " + files.head_config->kind->name +
                         ", which is not what --kind names");
    return setup_of_head(files, options_.plan);
}

void Run::check_same(const TrainingSetup& old) const {
    const ModelConfig& target = model_.files().config;
    if (old.shape.vocab != target.vocab || old.shape.hidden != target.hidden)
        throw UsageError(state_file().string() + " belongs to another model");
    if ((old.shape.draft_vocab == 0) != options_.is_eagle2)
        throw UsageError(state_file().string() + " belongs to a head of another kind (--kind)");
    if (old.taps.empty() || old.taps.back() > target.layers)
        throw Error(state_file().string() +
                    " is damaged: its head reads layers that are not there");
    const TrainingPlan& plan = old.plan;
    char line[200];
    std::snprintf(line, sizeof(line),
                  "going on as it began: --lr %g --batch %d --ttt %d --seed %llu", plan.rate,
                  plan.batch_rows, plan.test.depths, static_cast<unsigned long long>(plan.seed));
    note(line);
}

// The share of the training that lies behind.
double Run::way() const {
    if (options_.steps > 0) return std::min(1.0, double(state_.steps) / options_.steps);
    return std::min(1.0, state_.seconds / (3600 * options_.hours));
}

// Where the length is given in hours, evaluations take a ninth of the time at most. Where it is
// given in steps, they come at the same steps on every machine.
bool Run::is_time_to_evaluate() const {
    if (way() >= 1) return true;
    if (int(way() * kEvaluations) <= int(evaluated_way_ * kEvaluations)) return false;
    return options_.steps > 0 || steady_seconds() - evaluated_ >= 8 * seconds_of_evaluation_;
}

void Run::report(const Trainer& trainer, double loss, bool is_new) {
    if (!options_.on_progress) return;
    TrainingProgress progress;
    progress.stage = TrainingProgress::Stage::learning;
    progress.done = state_.steps;
    progress.all = options_.steps;
    progress.tokens = trainer.tokens();
    const double seconds = state_.seconds - seconds_before_;
    if (seconds > 0)
        progress.tokens_per_second = double(trainer.tokens() - tokens_before_) / seconds;
    const double done = way();
    progress.seconds_left = done > 0 ? state_.seconds * (1 - done) / done : 0;
    progress.loss = loss;
    if (!evaluation_.agreement.empty()) progress.evaluation = &evaluation_;
    progress.is_new = is_new;
    options_.on_progress(progress);
}

// Judges the head on the texts that were held out, and writes it if it is the best so far.
void Run::evaluate(HeadTraining& training) {
    const double start = steady_seconds();
    evaluation_ = training.trainer.evaluate(held_out_.texts);
    evaluated_ = steady_seconds();
    seconds_of_evaluation_ = evaluated_ - start;
    evaluated_way_ = way();
    const double tau = evaluation_.expected_tau();
    if (state_.best_step >= 0 && tau <= state_.best_tau) {
        ++state_.since_best;
        return;
    }
    write_head(options_.folder, device_, training.head,
               {model_.files().config, training.vocabulary, state_.setup.taps, DType::F16});
    state_.best_tau = tau;
    state_.best_step = state_.steps;
    state_.since_best = 0;
}

void Run::learn(HeadTraining& training) {
    Trainer& trainer = training.trainer;
    start_ = steady_seconds();
    seconds_before_ = state_.seconds;
    tokens_before_ = trainer.tokens();
    evaluated_way_ = way();
    double saved = start_;
    const auto tick = [&] { state_.seconds = seconds_before_ + steady_seconds() - start_; };
    const auto save = [&] {
        tick();
        state_.tokens = trainer.tokens();
        write_state(state_file(), state_, device_, training.head);
        saved = steady_seconds();
    };
    if (state_.best_step < 0) {
        save();  // the folder is then known to be this training's before a head is written to it
        evaluate(training);
        report(trainer, evaluation_.loss, true);
        save();
    }
    while (way() < 1 && state_.since_best < options_.patience && !is_cancelled()) {
        const double loss = trainer.step(learnt_.texts, way());
        state_.steps = trainer.steps();
        tick();
        const bool is_new = is_time_to_evaluate();
        if (is_new) evaluate(training);
        tick();
        report(trainer, loss, is_new);
        if (steady_seconds() - saved >= kSaveSeconds) save();
    }
    save();
    report_.was_cancelled = is_cancelled();
    report_.ended_early = way() < 1 && !report_.was_cancelled;
}

// The written head on the held-out texts of each kind.
void Run::evaluate_kinds(Trainer& trainer) {
    std::map<std::string, TextSet> by_kind;
    for (size_t i = 0; i < held_out_.kinds.size(); ++i)
        if (!held_out_.kinds[i].empty())
            by_kind[held_out_.kinds[i]].add({held_out_.texts.tokens[i], held_out_.texts.mask[i]},
                                            held_out_.kinds[i]);
    for (const auto& [kind, set] : by_kind) report_.by_kind[kind] = trainer.evaluate(set.texts);
    report_.best = trainer.evaluate(held_out_.texts);
}

TrainingReport Run::run() {
    const std::optional<TrainingState> old = read_state(state_file());
    if (old) check_same(old->setup);
    if (!old && options_.goes_on && !fs::exists(own_folder() / kTextsFile))
        note("there is no training to go on with: it begins now");
    std::error_code error;
    fs::create_directories(own_folder(), error);
    if (error) throw Error(own_folder().string() + ": " + error.message());
    TextFile file(own_folder() / kTextsFile,
                  fs::weakly_canonical(model_.files().target.path).filename().string(),
                  model_.files().config.vocab);
    gather(file);
    if (is_cancelled()) {
        report_.was_cancelled = true;
        return report_;
    }
    divide(file);

    state_ = old ? *old : TrainingState{.setup = first_setup()};
    HeadTraining training(model_, device_, state_.setup, positions());
    if (old)
        read_parameters(state_file(), state_, device_, training.head);
    else if (model_.files().head)
        read_head(model_.options().head, device_, training.head);
    else
        training.begin_anew(state_.setup.plan.seed);
    Trainer& trainer = training.trainer;
    trainer.go_on_after(state_.tokens);
    learn(training);
    if (!report_.was_cancelled) {
        read_head(options_.folder, device_, training.head);
        evaluate_kinds(trainer);
    }
    report_.steps = state_.steps;
    report_.best_step = state_.best_step;
    report_.tokens = trainer.tokens();
    report_.seconds = state_.seconds;
    return report_;
}

}  // namespace

fs::path training_folder(const fs::path& head) {
    return head / "training";
}

bool has_texts(const fs::path& head) {
    std::error_code ignored;
    return fs::is_regular_file(training_folder(head) / kTextsFile, ignored);
}

void check_folder(const fs::path& head, bool goes_on) {
    std::error_code error;
    const fs::file_type type = fs::status(head, error).type();
    if (type == fs::file_type::none) throw Error(head.string() + ": " + error.message());
    if (type != fs::file_type::not_found && type != fs::file_type::directory)
        throw UsageError(head.string() + ": a head is made in a folder, and this is none");
    const bool has_training = fs::exists(training_folder(head) / kStateFile);
    if (has_training && !goes_on)
        throw UsageError(head.string() +
                         " has a training already: --resume goes on with it; to begin anew, name "
                         "another folder");
    if (has_training) return;
    for (const char* name : {"config.json", "model.safetensors", "README.md"})
        if (fs::exists(head / name))
            throw UsageError(head.string() + " has a " + name +
                             " that is not of an unfinished training: name another folder");
}

TrainingReport train_head(Model& model, const Tokenizer& tokenizer, TrainingDevice& device,
                          const TrainingOptions& options) {
    return Run(model, tokenizer, device, options).run();
}

}  // namespace aerie::train
