#include "train/learner.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <random>

#include "core/error.h"
#include "core/hash.h"
#include "core/replaced_file.h"
#include "core/sha256.h"
#include "io/input_file.h"
#include "io/safetensors_writer.h"
#include "talk/weights_hash.h"
#include "train/head_file.h"
#include "train/training_text.h"

namespace aerie::train {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostWaiting = 256;  // answers that wait for the thread; further ones are dropped
constexpr size_t kMostOwners = 64;    // further ones get the model's own head
constexpr int kUnsuccessful = 4;      // judgements after which a copy begins anew
constexpr double kBetter = 1.01;      // a copy must be so much better, which is beyond most noise
constexpr std::chrono::milliseconds kPoll{100};

std::vector<std::vector<float>> parameters_of(TrainingDevice& device, const TrainedHead& head) {
    std::vector<std::vector<float>> all;
    for (const Parameter& parameter : head.parameters()) {
        std::vector<double> values(parameter.value.size());
        device.read(parameter.value, values);
        all.emplace_back(values.begin(), values.end());
    }
    return all;
}

void write_parameters(TrainingDevice& device, const TrainedHead& head,
                      const std::vector<std::vector<float>>& all) {
    for (size_t i = 0; i < all.size(); ++i)
        device.write(head.parameters()[i].value, std::span<const float>(all[i]));
}

// Texts [first, last) of a file.
TrainingTexts texts_between(const TextFile& file, size_t first, size_t last) {
    const TrainingTexts& all = file.texts();
    TrainingTexts some;
    some.tokens.assign(all.tokens.begin() + ptrdiff_t(first), all.tokens.begin() + ptrdiff_t(last));
    some.mask.assign(all.mask.begin() + ptrdiff_t(first), all.mask.begin() + ptrdiff_t(last));
    return some;
}

// A secret of this machine, without which nobody can tell keys from the names of their folders.
std::string secret_of(const fs::path& folder) {
    const fs::path file = folder / "secret";
    if (!fs::exists(file)) {
        std::random_device random;
        std::string secret;
        for (int i = 0; i < 8; ++i) secret += hex_digits(random()).substr(8);
        ReplacedFile(file, FileAccess::owner).commit(secret);
    }
    return read_text(file, 4096);
}

// The number in a small file; 0 if there is none.
size_t number_in(const fs::path& file) {
    if (!fs::exists(file)) return 0;
    const std::string text = read_text(file, 4096);
    size_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

}  // namespace

TrainingPlan learner_plan() {
    TrainingPlan plan;
    plan.batch_rows = 512;
    plan.rate = 5e-4;
    plan.warm_up = 0;
    return plan;
}

Learner::Learner(std::shared_ptr<SharedModel> model, LearnerOptions options)
    : model_(std::move(model)), options_(std::move(options)) {
    const ModelFiles& files = model_->files();
    if (!files.head || !files.head_config)
        throw UsageError(model_->can_draft() ? "learning needs an EAGLE head to begin with: --head "
                                               "HEAD, or one that aerie train "
                                               "makes; with --draft " +
                                                   model_->options().draft.method + " there is none"
                                             : "learning needs an EAGLE head that drafts");
    (void)setup_of_head(files, options_.plan);
    thread_ = std::thread([this] { run(); });
}

Learner::~Learner() {
    {
        const std::lock_guard guard(mutex_);
        is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

std::shared_ptr<const DraftWeights> Learner::head(const std::string& name) {
    const std::lock_guard guard(mutex_);
    const auto found = owners_.find(name);
    if (found != owners_.end()) return found->second.head;
    if (owners_.size() >= kMostOwners) return nullptr;
    owners_[name];  // the thread looks for a head in its folder
    is_idle_ = false;
    changed_.notify_all();
    return nullptr;
}

void Learner::learn(const std::string& name, std::span<const int> prompt,
                    std::span<const int> answer) noexcept {
    try {
        if (answer.size() < 2) return;
        // The beginning of the prompt is cut, since a long talk would be read again for each turn.
        const size_t room = size_t(std::max(2, options_.max_text));
        const size_t kept =
            std::min(prompt.size(), std::max<size_t>(1, room - std::min(room, answer.size())));
        Answer given{name, {prompt.end() - ptrdiff_t(kept), prompt.end()}, kept};
        given.tokens.insert(given.tokens.end(), answer.begin(), answer.end());
        const std::lock_guard guard(mutex_);
        if (has_failed_ || answers_.size() >= kMostWaiting) return;
        if (!owners_.contains(name) && owners_.size() >= kMostOwners) return;
        owners_[name];
        answers_.push_back(std::move(given));
        is_idle_ = false;
    } catch (const std::bad_alloc&) {
        return;
    }
    changed_.notify_all();
}

void Learner::wait() {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return is_idle_ || has_failed_ || is_over_; });
}

void Learner::run() {
    // Answers come first. On Linux this is the priority of this thread, and of those it starts.
    if (options_.has_low_priority) (void)setpriority(PRIO_PROCESS, 0, 19);
    try {
        work();
    } catch (const std::exception& error) {
        note(std::string("learning has ended, answers go on: ") + error.what() +
             (folder_.empty() ? "" : " (aerie forget deletes what was learnt)"));
    }
    {
        const std::lock_guard guard(mutex_);
        has_failed_ = true;
        answers_.clear();
    }
    changed_.notify_all();
}

// The folder of an owner. Keys may be secrets and contain any byte.
std::string Learner::name_of(const std::string& owner) {
    if (owner.empty()) return "own";
    return "key-" + sha256(secret_of(options_.folder) + owner).substr(0, 32);
}

// Keeps answers as they come, and learns from them in idle time.
void Learner::work() {
    std::error_code error;
    fs::create_directories(options_.folder, error);
    if (error) throw Error(options_.folder.string() + ": " + error.message());
    fs::permissions(options_.folder, fs::perms::owner_all);
    folder_ = options_.folder /
              hex_digits(fnv1a(model_->identity().model +
                               weights_hash(*model_->files().head, model_->options().cache)));
    size_t count = 0;
    while (true) {
        std::vector<std::string> names;
        bool has_worked = false;
        {
            const std::lock_guard guard(mutex_);
            has_worked = !answers_.empty() || owners_.size() != count;
            count = owners_.size();
            for (const auto& [name, owner] : owners_) names.push_back(name);
        }
        std::vector<Owner*> owners;
        for (const std::string& name : names) owners.push_back(&known(name));
        keep_all();
        for (Owner* owner : owners) has_worked |= learn_from(*owner);
        std::unique_lock guard(mutex_);
        if (is_over_ && answers_.empty()) return;
        if (has_worked) continue;
        if (answers_.empty() && owners_.size() == count) {
            is_idle_ = true;
            changed_.notify_all();
        }
        changed_.wait(guard,
                      [&] { return is_over_ || !answers_.empty() || owners_.size() != count; });
    }
}

// Keeps the answers that wait.
void Learner::keep_all() {
    std::deque<Answer> answers;
    {
        const std::lock_guard guard(mutex_);
        answers.swap(answers_);
    }
    for (const Answer& answer : answers) keep(known(answer.owner), answer);
}

// An owner, whose folder and head are found when he is asked for first.
Learner::Owner& Learner::known(const std::string& name) {
    Owner* owner = nullptr;
    {
        const std::lock_guard guard(mutex_);
        owner = &owners_[name];
    }
    if (!owner->folder.empty()) return *owner;
    owner->folder = folder_ / name_of(name);
    take_head(*owner);
    return *owner;
}

// Uses the head that lies in the owner's folder, if there is one.
void Learner::take_head(Owner& owner) {
    if (!fs::exists(owner.folder / "head" / "config.json")) return;
    const std::lock_guard lock(model_->mutex());
    std::shared_ptr<const DraftWeights> head = model_->model().load_head(owner.folder / "head");
    const std::lock_guard guard(mutex_);
    owner.head.swap(head);  // the old one is freed by the thread that has the turn
}

void Learner::open(Owner& owner) {
    if (!fs::exists(owner.folder) && fs::exists(folder_)) {
        const auto all = fs::directory_iterator(folder_);
        owner.is_refused = std::distance(begin(all), end(all)) > ptrdiff_t(kMostOwners);
        if (owner.is_refused) return;
    }
    owner.lock = std::make_unique<FolderLock>(owner.folder);
    fs::permissions(owner.folder, fs::perms::owner_all);
    owner.file = std::make_unique<TextFile>(owner.folder / "texts.jsonl", model_->identity().model,
                                            model_->files().config.vocab);
    owner.learnt = std::min(number_in(owner.folder / "learnt"), owner.file->texts().tokens.size());
}

void Learner::keep(Owner& owner, const Answer& answer) {
    if (!owner.file && !owner.is_refused) open(owner);
    if (owner.is_refused) return;
    TokenText text{answer.tokens, std::vector<bool>(answer.tokens.size(), true)};
    std::fill_n(text.mask.begin(), answer.prompt_size, false);
    for (const TokenText& piece : pieces_of(text, options_.max_text))
        owner.file->append("a" + std::to_string(owner.file->texts().tokens.size()), "",
                           piece.tokens, piece.mask);
    if (owner.file->texts().tokens.size() <= options_.most_texts) return;
    const size_t dropped = owner.file->keep_newest(options_.most_texts / 2);
    owner.learnt -= std::min(owner.learnt, dropped);
    write_text(owner.folder / "learnt", std::to_string(owner.learnt));
}

// One round: judges the copy by answers that it has not seen, and lets it learn from them. False
// if there are too few of them.
bool Learner::learn_from(Owner& owner) {
    const size_t last = owner.file ? owner.file->texts().tokens.size() : 0;
    if (last < owner.learnt + size_t(options_.fresh) || !wait_until_idle()) return false;
    take_course(owner);
    const TrainingTexts fresh = texts_between(*owner.file, owner.learnt, last);
    if (has_learnt_) {
        if (is_better(fresh)) {
            replace(owner);
        } else if (++unsuccessful_ >= kUnsuccessful) {
            fs::remove_all(owner.folder / "copy");
            course_ = nullptr;
            take_course(owner);
        }
    }
    train(owner, fresh, last);
    return true;
}

// Goes on with the owner's copy, or makes one of the head that the owner uses.
void Learner::take_course(Owner& owner) {
    if (course_ == &owner) return;
    if (!device_) device_ = open_training_device("cpu", options_.threads);
    if (!training_)
        training_ = std::make_unique<HeadTraining>(
            model_->model(), *device_, setup_of_head(model_->files(), options_.plan),
            std::min(options_.max_text, model_->context()), &model_->mutex());
    training_->head.forget();
    const auto has = [&](const char* name) {
        return fs::exists(owner.folder / name / "config.json");
    };
    read_head(has("head") ? owner.folder / "head" : model_->options().head, *device_,
              training_->head);
    in_use_ = parameters_of(*device_, training_->head);
    has_learnt_ = has("copy");
    if (has_learnt_) read_head(owner.folder / "copy", *device_, training_->head);
    course_ = &owner;
    unsuccessful_ = 0;
}

bool Learner::is_better(const TrainingTexts& fresh) {
    const double copy = training_->trainer.evaluate(fresh).expected_tau();
    const std::vector<std::vector<float>> learnt = parameters_of(*device_, training_->head);
    write_parameters(*device_, training_->head, in_use_);
    const double in_use = training_->trainer.evaluate(fresh).expected_tau();
    write_parameters(*device_, training_->head, learnt);
    return copy > kBetter * in_use;
}

// Writes the copy and lets it draft the owner's next answers.
void Learner::replace(Owner& owner) {
    write_head(
        owner.folder / "head", *device_, training_->head,
        {model_->files().config, training_->vocabulary, training_->reader.taps(), DType::F16});
    take_head(owner);
    in_use_ = parameters_of(*device_, training_->head);
    unsuccessful_ = 0;
    ++replaced_;
    note("a head that learnt from " + std::to_string(owner.learnt) + " answers drafts from now on");
}

// Learns from the fresh texts, and from as many of the older ones so that they are not forgotten.
void Learner::train(Owner& owner, const TrainingTexts& fresh, size_t last) {
    TrainingTexts texts = fresh;
    std::mt19937_64 rng(options_.plan.seed + uint64_t(training_->head.steps()));
    for (size_t i = 0; owner.learnt > 0 && i < fresh.tokens.size(); ++i) {
        const size_t chosen = rng() % owner.learnt;
        texts.tokens.push_back(owner.file->texts().tokens[chosen]);
        texts.mask.push_back(owner.file->texts().mask[chosen]);
    }
    const int steps =
        std::max(1, options_.passes * texts.all_tokens() / std::max(1, options_.plan.batch_rows));
    owner.learnt = last;
    // First the number: what is not known to be unseen must not judge the copy.
    write_text(owner.folder / "learnt", std::to_string(last));
    for (int i = 0; i < steps && wait_until_idle(); ++i) {
        training_->trainer.step(texts, 0);
        keep_all();
    }
    has_learnt_ = true;
    write_head(
        owner.folder / "copy", *device_, training_->head,
        {model_->files().config, training_->vocabulary, training_->reader.taps(), DType::F32});
}

// False if the learner is to end.
bool Learner::wait_until_idle() {
    std::unique_lock guard(mutex_);
    while (!is_over_ && model_->idle_seconds() < options_.idle_seconds)
        changed_.wait_for(guard, kPoll);
    return !is_over_;
}

}  // namespace aerie::train
