#include "train/training_run.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include "core/error.h"
#include "core/hash.h"
#include "core/quant.h"
#include "draft/heads/eagle3_files.h"
#include "draft/heads/kinds.h"
#include "io/input_file.h"
#include "model/tensor_rows.h"
#include "train/head_file.h"
#include "train/training_text.h"

namespace aerie::train {

namespace fs = std::filesystem;

namespace {

constexpr double kSaveSeconds = 30;         // a kill loses at most so much, and the step that runs
constexpr int kHeldOutShare = 16;           // one text of so many is held out
constexpr int64_t kHeldOutTokens = 24'000;  // and no more than these
constexpr int kEvaluations = 40;            // in a whole training

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// The number and the turn that the answer to a prompt belongs to.
struct Asked {
    size_t line = 0;
    size_t turn = 0;       // number of the user's message that is answered
    Json::Array messages;  // all up to that message
};

// Has the target answer the prompts of some files, as far as the file of texts lacks them.
class Answers {
  public:
    Answers(Model& model, const Tokenizer& tokenizer, const TrainingOptions& options,
            TextFile& file, std::vector<TrainingLine> lines)
        : model_(model),
          tokenizer_(tokenizer),
          options_(options),
          file_(file),
          lines_(std::move(lines)),
          is_chat_(!tokenizer.chat_template().text.empty()) {}

    void run() {
        if (!is_chat_ && options_.on_note)
            options_.on_note("the model has no chat template: prompts are texts that it continues");
        AnsweringPlan plan = options_.answering;
        plan.eos_ids = eos_ids(model_.files(), tokenizer_);
        plan.cancelled = options_.cancelled;
        answer_prompts(
            model_, plan, [&](std::vector<int>& prompt) { return next(prompt); },
            [&](const AnsweredPrompt& answered) { take(answered); });
    }

  private:
    bool next(std::vector<int>& prompt) {
        Asked asked;
        if (!further_.empty()) {
            asked = std::move(further_.front());
            further_.pop_front();
        } else {
            while (line_ < lines_.size() && file_.has(lines_[line_].id)) ++line_;
            if (line_ == lines_.size()) return false;
            asked.line = line_++;
            append_questions(asked);
        }
        prompt = is_chat_ ? prompt_tokens(tokenizer_, asked.messages)
                          : tokenizer_.encode_from_start(text_of(asked.messages.back()));
        asked_.push_back(std::move(asked));
        return true;
    }

    static const std::string& text_of(const Json& message) {
        return *message.find("content")->string();
    }
    static bool is_from(const Json& message, const char* role) {
        return *message.find("role")->string() == role;
    }

    // Appends what stands before the next answer: system messages and the user's next one. The
    // answers of a file of prompts are left out.
    void append_questions(Asked& asked) const {
        size_t turn = 0;
        for (const Json& message : lines_[asked.line].messages) {
            if (is_from(message, "assistant")) continue;
            if (is_from(message, "user") && turn++ != asked.turn) continue;
            if (is_from(message, "system") && asked.turn > 0) continue;
            asked.messages.push_back(message);
        }
    }

    size_t turns_of(size_t line) const {
        return size_t(std::count_if(lines_[line].messages.begin(), lines_[line].messages.end(),
                                    [](const Json& message) { return is_from(message, "user"); }));
    }

    void take(const AnsweredPrompt& answered) {
        Asked asked = asked_[answered.prompt];
        tokens_ += int64_t(answered.tokens.size() - answered.prompt_size);
        TokenText text{answered.tokens, std::vector<bool>(answered.tokens.size())};
        for (size_t i = answered.prompt_size; i < text.mask.size(); ++i) text.mask[i] = true;
        if (is_chat_ && asked.turn > 0) mark_earlier_answers(asked, text);
        if (is_chat_ && asked.turn + 1 < turns_of(asked.line) && has_room_for_more(text)) {
            Asked further{asked.line, asked.turn + 1, asked.messages};
            Json answer;
            answer.set("role", "assistant");
            answer.set("content",
                       tokenizer_.decode({answered.tokens.begin() + ptrdiff_t(answered.prompt_size),
                                          answered.tokens.end()}));
            further.messages.push_back(std::move(answer));
            append_questions(further);
            further_.push_back(std::move(further));
            return;
        }
        const TrainingLine& line = lines_[asked.line];
        file_.append(line.id, line.kind, text.tokens, text.mask);
        ++done_;
        report();
    }

    bool has_room_for_more(const TokenText& text) const {
        return int(text.tokens.size()) < model_.limits().context / 2;
    }

    void mark_earlier_answers(const Asked& asked, TokenText& text) const {
        const TokenText earlier =
            conversation_text(tokenizer_, eos_ids(model_.files(), tokenizer_), asked.messages);
        for (size_t i = 0; i < earlier.tokens.size() && i < text.tokens.size(); ++i) {
            if (earlier.tokens[i] != text.tokens[i]) return;
            if (earlier.mask[i]) text.mask[i] = true;
        }
    }

    void report() const {
        if (!options_.on_progress) return;
        const double seconds = seconds_since(start_);
        int64_t all = 0;
        for (const TrainingLine& line : lines_) all += !file_.has(line.id);
        TrainingProgress progress;
        progress.done = done_;
        progress.all = all + done_;
        progress.tokens = tokens_;
        progress.tokens_per_second = double(tokens_) / seconds;
        progress.seconds_left = seconds / double(done_) * double(all);
        options_.on_progress(progress);
    }

    Model& model_;
    const Tokenizer& tokenizer_;
    const TrainingOptions& options_;
    TextFile& file_;
    std::vector<TrainingLine> lines_;
    bool is_chat_;
    size_t line_ = 0;
    std::deque<Asked> further_;  // next turns of conversations
    std::vector<Asked> asked_;   // by number of the prompt
    Clock::time_point start_ = Clock::now();
    int64_t done_ = 0, tokens_ = 0;
};

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

// The rows of a matrix of the target, as f32.
std::vector<float> target_matrix(const ModelFiles& files, const std::string& name) {
    const ModelConfig& config = files.config;
    const int64_t shape[] = {config.vocab, config.hidden};
    const Checkpoint& tensors = files.target.tensors;
    const TensorRows rows(tensors, tensors.get(name, shape), DType::F32, {0, config.hidden});
    std::vector<float> values(size_t(config.vocab) * size_t(config.hidden));
    std::vector<std::byte> row(size_bytes(rows.type(), config.hidden));
    for (int r = 0; r < config.vocab; ++r) {
        rows.read(r, 1, row.data());
        unpack(values.data() + size_t(r) * size_t(config.hidden), row.data(), rows.type(),
               size_t(config.hidden));
    }
    return values;
}

HeadShape shape_of(const ModelConfig& config, int taps, int draft_vocab) {
    return {.hidden = config.hidden,
            .intermediate = config.intermediate,
            .heads = config.attention.heads,
            .kv_heads = config.attention.kv_heads,
            .head_dim = config.size_of_head(),
            .taps = taps,
            .vocab = config.vocab,
            .draft_vocab = draft_vocab,
            .epsilon = config.rms_epsilon,
            .rope_base = config.rope.theta};
}

class Run {
  public:
    Run(Model& model, const Tokenizer& tokenizer, TrainingDevice& device,
        const TrainingOptions& options)
        : model_(model), tokenizer_(tokenizer), device_(device), options_(options) {}

    TrainingReport run();

  private:
    fs::path own_folder() const { return options_.folder / "training"; }
    fs::path state_file() const { return own_folder() / "state.bin"; }
    int positions() const { return std::min(options_.max_text, model_.files().context); }
    bool is_cancelled() const { return options_.cancelled && options_.cancelled(); }
    void note(const std::string& line) const {
        if (options_.on_note) options_.on_note(line);
    }

    void gather(TextFile& file);
    void divide(const TextFile& file);
    TrainingSetup new_setup() const;
    TrainingSetup setup_of_head() const;
    void check_same(const TrainingSetup& old) const;
    void learn(Trainer& trainer, TrainedHead& head, const DraftVocabulary& vocabulary);
    void evaluate(Trainer& trainer, const TrainedHead& head, const DraftVocabulary& vocabulary);
    bool is_time_to_evaluate(double way, double last_way) const;
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
    bool is_resumed_ = false;
    Clock::time_point start_;
    double seconds_before_ = 0;
    int64_t tokens_before_ = 0;
};

// Appends what the file of texts lacks: answers to the prompts, and conversations as they are.
void Run::gather(TextFile& file) {
    std::vector<TrainingLine> prompts;
    for (const fs::path& path : options_.prompts)
        for (TrainingLine& line : read_training_file(path)) {
            if (line.messages.empty())
                throw UsageError(path.string() + " has texts without roles; they go to --texts");
            if (int(prompts.size()) < options_.max_prompts) prompts.push_back(std::move(line));
        }
    std::vector<std::pair<fs::path, std::vector<TrainingLine>>> texts;
    for (const fs::path& path : options_.texts) texts.emplace_back(path, read_training_file(path));
    const std::vector<int> ends = eos_ids(model_.files(), tokenizer_);
    for (const auto& [path, lines] : texts)
        for (const TrainingLine& line : lines) {
            if (file.has(line.id + "#0") || is_cancelled()) continue;
            const std::vector<TokenText> pieces = pieces_of(
                line.messages.empty() ? plain_text(tokenizer_, line.text)
                                      : conversation_text(tokenizer_, ends, line.messages),
                options_.max_text);
            for (size_t i = pieces.size(); i-- > 0;)  // #0 last: then all of them are there
                file.append(line.id + "#" + std::to_string(i), line.kind, pieces[i].tokens,
                            pieces[i].mask);
        }
    if (!prompts.empty()) Answers(model_, tokenizer_, options_, file, std::move(prompts)).run();
}

// Holds out texts by a hash of their names, so that a text stays on its side when others come.
void Run::divide(const TextFile& file) {
    const TrainingTexts& all = file.texts();
    for (size_t i = 0; i < all.tokens.size(); ++i) {
        const bool is_held_out = fnv1a(file.id(i)) % kHeldOutShare == 0;
        if (is_held_out && held_out_.tokens >= kHeldOutTokens) continue;
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

// The setup of the head that the training begins with.
TrainingSetup Run::setup_of_head() const {
    const ModelConfig& target = model_.files().config;
    const HeadConfig& head = *model_.files().head_config;
    if (head.kind->method.name != (options_.is_eagle2 ? "eagle2" : "eagle3"))
        throw UsageError("--init: the files are " + head.kind->name +
                         ", which is not what --kind names");
    TrainingSetup setup;
    setup.plan = options_.plan;
    setup.taps = Taps{target.layers};
    if (!options_.is_eagle2) {
        const Eagle3Shape& shape = eagle3_shape(head);
        if (shape.norms_taps || shape.norms_features || shape.norms_residual || shape.norms_state)
            throw UsageError("--init: the head has norms that aerie does not train yet");
        setup.taps = shape.taps.empty() ? usual_taps(target.layers) : shape.taps;
        for (const int32_t id : read_target_ids(head, model_.files().head->tensors))
            setup.draft_ids.push_back(id);
        if (setup.draft_ids.empty()) setup.draft_ids = DraftVocabulary::all(target.vocab).ids;
    }
    setup.shape = shape_of(head, int(setup.taps.size()), int(setup.draft_ids.size()));
    return setup;
}

void Run::check_same(const TrainingSetup& old) const {
    const ModelConfig& target = model_.files().config;
    if (old.shape.vocab != target.vocab || old.shape.hidden != target.hidden)
        throw UsageError(state_file().string() + " belongs to another model");
    if ((old.shape.draft_vocab == 0) != options_.is_eagle2)
        throw UsageError(state_file().string() + " belongs to a head of another kind (--kind)");
}

// The share of the training that lies behind.
double Run::way() const {
    if (options_.steps > 0) return std::min(1.0, double(state_.steps) / options_.steps);
    return std::min(1.0, state_.seconds / (3600 * options_.hours));
}

bool Run::is_time_to_evaluate(double way, double last_way) const {
    return way >= 1 || int(way * kEvaluations) > int(last_way * kEvaluations);
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
void Run::evaluate(Trainer& trainer, const TrainedHead& head, const DraftVocabulary& vocabulary) {
    evaluation_ = trainer.evaluate(held_out_.texts);
    const double tau = evaluation_.expected_tau();
    if (state_.best_step >= 0 && tau <= state_.best_tau) {
        ++state_.since_best;
        return;
    }
    write_head(options_.folder, device_, head,
               {model_.files().config, vocabulary, state_.setup.taps, DType::F16});
    state_.best_tau = tau;
    state_.best_step = state_.steps;
    state_.since_best = 0;
    report_.best = evaluation_;
}

void Run::learn(Trainer& trainer, TrainedHead& head, const DraftVocabulary& vocabulary) {
    start_ = Clock::now();
    seconds_before_ = state_.seconds;
    tokens_before_ = trainer.tokens();
    Clock::time_point saved = start_;
    const auto tick = [&] { state_.seconds = seconds_before_ + seconds_since(start_); };
    const auto save = [&] {
        tick();
        state_.tokens = trainer.tokens();
        write_state(state_file(), state_, device_, head);
        saved = Clock::now();
    };
    if (state_.best_step < 0) {
        evaluate(trainer, head, vocabulary);
        report_.first = evaluation_;
        report(trainer, evaluation_.loss, true);
        save();
    }
    while (way() < 1 && state_.since_best < options_.patience && !is_cancelled()) {
        const double before = way();
        const double loss = trainer.step(learnt_.texts, before);
        state_.steps = trainer.steps();
        tick();
        const bool is_new = is_time_to_evaluate(way(), before);
        if (is_new) evaluate(trainer, head, vocabulary);
        tick();
        report(trainer, loss, is_new);
        if (seconds_since(saved) >= kSaveSeconds) save();
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
    if (old && !options_.goes_on)
        throw UsageError(options_.folder.string() +
                         " has an unfinished training: --resume goes on with it; to begin anew, "
                         "remove the folder or name another one");
    if (!old && options_.goes_on) note("there is no training to go on with: it begins now");
    if (!old && !options_.goes_on && fs::exists(options_.folder / "config.json"))
        throw UsageError(options_.folder.string() + " has a model already: name another folder");
    if (old) check_same(old->setup);
    fs::create_directories(own_folder());
    TextFile file(own_folder() / "texts.jsonl", model_.files().target.path.filename().string(),
                  model_.files().config.vocab);
    gather(file);
    if (is_cancelled()) {
        report_.was_cancelled = true;
        return report_;
    }
    divide(file);

    if (old)
        state_ = *old;
    else
        state_.setup = model_.files().head ? setup_of_head() : new_setup();
    DraftVocabulary vocabulary = DraftVocabulary::all(state_.setup.shape.vocab);
    if (state_.setup.shape.draft_vocab > 0)
        vocabulary = DraftVocabulary::of(state_.setup.draft_ids, state_.setup.shape.vocab);
    const ModelFiles& files = model_.files();
    const bool is_eagle2 = state_.setup.shape.draft_vocab == 0;
    TrainedHead head(device_, state_.setup.shape);
    const std::vector<float> embedding = target_matrix(files, "model.embed_tokens.weight");
    const std::vector<float> lm_head =
        files.config.tied_embeddings ? embedding : target_matrix(files, "lm_head.weight");
    const auto upload = [&](const std::vector<float>& values) {
        const Matrix matrix = device_.allocate(files.config.vocab, files.config.hidden);
        device_.write(matrix, std::span<const float>(values));
        return matrix;
    };
    if (old)
        read_parameters(state_file(), state_, device_, head);
    else if (files.head)
        read_head(model_.options().head, device_, head);
    else
        initialise(device_, head, vocabulary, lm_head, state_.setup.plan.seed);
    TargetReader reader(model_.backend(), model_.target(), device_, positions(), state_.setup.taps,
                        is_eagle2);
    const Matrix table = upload(embedding);
    Trainer trainer(device_, head, reader, vocabulary, table,
                    !is_eagle2                     ? Matrix()
                    : files.config.tied_embeddings ? table
                                                   : upload(lm_head),
                    state_.setup.plan, positions());
    trainer.go_on_after(state_.tokens);
    learn(trainer, head, vocabulary);
    if (!report_.was_cancelled) {
        read_head(options_.folder, device_, head);
        evaluate_kinds(trainer);
    }
    report_.steps = state_.steps;
    report_.best_step = state_.best_step;
    report_.tokens = trainer.tokens();
    report_.seconds = state_.seconds;
    return report_;
}

}  // namespace

TrainingReport train_head(Model& model, const Tokenizer& tokenizer, TrainingDevice& device,
                          const TrainingOptions& options) {
    return Run(model, tokenizer, device, options).run();
}

}  // namespace aerie::train
