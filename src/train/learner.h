// Learning while a model is used: a copy of its head learns from the answers that were given, in
// idle time, and takes the old head's place when it drafts better on newer answers, which it has
// not seen. The text never changes; acceptance does.
//
// An owner's folder has texts.jsonl (TextFile); head/, the newest head that took the place of an
// older one; copy/, the copy as it is between two rounds; and `learnt`, the number of texts that
// the copy has learnt from.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "talk/learning.h"
#include "talk/shared_model.h"
#include "train/folder_lock.h"
#include "train/head_training.h"
#include "train/text_file.h"

namespace aerie::train {

// Small steps at a constant rate.
TrainingPlan learner_plan();

struct LearnerOptions {
    std::filesystem::path folder;  // holds those of all models and owners
    int threads = 0;               // for training; 0: one per core
    int fresh = 16;                // answers that a copy is judged by before it learns from them
    int passes = 4;                // over each of them
    double idle_seconds = 1;       // it works only if no answer was under way for so long
    bool has_low_priority = true;  // its threads, so that the rest of the machine comes first
    size_t most_texts = 4000;      // older ones are dropped
    int max_text = 512;            // tokens of an answer and what precedes it
    TrainingPlan plan = learner_plan();
    // Lines for the user; called from the learner's thread. May be empty.
    std::function<void(const std::string&)> on_note;
};

class Learner final : public Learning {
  public:
    // Throws UsageError if the model has no head that can be trained. A later error is
    // noted once, and ends the learning, not the answering.
    Learner(std::shared_ptr<SharedModel> model, LearnerOptions options);
    ~Learner() override;  // waits for the step that runs
    Learner(const Learner&) = delete;
    Learner& operator=(const Learner&) = delete;

    std::shared_ptr<const DraftWeights> head(const std::string& owner) override;
    void learn(const std::string& owner, std::span<const int> prompt,
               std::span<const int> answer) noexcept override;

    // Returns once everything that can be learnt from the answers so far has been learnt, or
    // learning has ended by an error. Waits for idle time like the learner itself.
    void wait();
    int replaced() const { return replaced_; }  // heads that took the place of another

  private:
    struct Answer {
        std::string owner;
        std::vector<int> tokens;
        size_t prompt_size = 0;
    };
    // Only the thread uses lock and file, which it opens with the first answer.
    struct Owner {
        std::filesystem::path folder;
        bool is_refused = false;  // there are too many owners
        std::unique_ptr<FolderLock> lock;
        std::unique_ptr<TextFile> file;
        size_t learnt = 0;  // texts of the file that the copy has learnt from
        std::shared_ptr<const DraftWeights> head;  // guarded by mutex_
    };

    void run();
    void work();
    std::string name_of(const std::string& owner);
    Owner& known(const std::string& name);
    void take_head(Owner& owner);
    void open(Owner& owner);
    void keep_all();
    void keep(Owner& owner, const Answer& answer);
    bool learn_from(Owner& owner);
    void take_course(Owner& owner);
    bool is_better(const TrainingTexts& fresh);
    void replace(Owner& owner);
    void train(Owner& owner, const TrainingTexts& fresh, size_t last);
    bool wait_until_idle();
    void note(const std::string& line) const {
        if (options_.on_note) options_.on_note(line);
    }

    const std::shared_ptr<SharedModel> model_;
    const LearnerOptions options_;
    std::filesystem::path folder_;  // holds the folders of owners
    std::unique_ptr<TrainingDevice> device_;
    std::unique_ptr<HeadTraining> training_;
    Owner* course_ = nullptr;                 // the owner whose copy is being trained
    std::vector<std::vector<float>> in_use_;  // parameters of the head in use for that owner
    int unsuccessful_ = 0;                    // judgements since the copy was made
    bool has_learnt_ = false;                 // whether the copy differs from the head in use

    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, Owner> owners_;
    std::deque<Answer> answers_;  // not yet in their files
    bool is_over_ = false, is_idle_ = false, has_failed_ = false;
    std::atomic<int> replaced_ = 0;
    std::thread thread_;  // uses all of the above
};

}  // namespace aerie::train
