// A conversation on a shared model: a text and everything computed for it are kept from one answer
// to the next. This never changes the output.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/generation.h"
#include "talk/shared_model.h"
#include "text/chat_template.h"

namespace aerie {

// A talk may be used by one thread at a time; only cancel may be called from another thread
// meanwhile. Talks of one model are independent of each other.
class Talk {
  public:
    // Throws Error if the model has no room for another talk.
    explicit Talk(std::shared_ptr<SharedModel> model);
    ~Talk();
    Talk(const Talk&) = delete;  // its answer refers to it
    Talk& operator=(const Talk&) = delete;

    SharedModel& model() { return *model_; }
    // All ids so far: prompt, answer, prompt, ...
    std::span<const int> ids() const { return sequence_->tokens(); }
    // Number of ids in the KV cache; a prompt that begins with them does not run them again.
    // Other talks may have taken the memory of some of them.
    int computed() const;

    // The prompt that these ids mean in this talk: the talk's own ids as far as they spell the same
    // text (an answer is seldom tokenized as its text would be), then the rest of the given ids.
    std::vector<int> joined(std::span<const int> prompt) const;
    // The same for a conversation, rendered with the model's chat template.
    std::vector<int> joined(const Conversation& conversation) const;

    // Begins an answer to request.prompt. The part of it that the talk already holds is not run
    // again, and the talk's text beyond it is forgotten. Throws UsageError and leaves the talk
    // unchanged.
    void begin(const Request& request);
    // Continues the answer; returns false once it has ended. Waits while other threads use the
    // model. Throws Error (device, damaged model): then the answer has ended, and the next answer
    // runs the whole text again.
    bool step();
    // Ends the answer and returns its result, so that another talk can continue it
    // (Request::begun). Throws UsageError if no answer was begun.
    GenerationResult leave();
    // The newest answer; throws UsageError if there is none.
    const Generation& answer() const;
    // May be called from any thread. The running answer ends with its next step at the latest, or
    // between two passes of its prompt. Later answers are not affected.
    void cancel() { cancelled_ = true; }

    // Cuts the text to its first ids. Throws UsageError if there are fewer.
    void rewind(int length);
    // Another talk that begins with the first ids of this one and shares what was computed for
    // them. Throws Error, UsageError.
    std::unique_ptr<Talk> fork(int length) const;

    // Saves the whole talk to a file, which appears as a whole or not at all. Throws Error naming
    // the file.
    void save(const std::filesystem::path& path) const;
    // Loads a saved talk. If the saved KV cache cannot be used here (another device, types or
    // arithmetic), the ids are run again when they are needed, and `note` says why; otherwise
    // `note` is empty. Throws Error naming the file if it is damaged or belongs to another model.
    static std::unique_ptr<Talk> load(std::shared_ptr<SharedModel> model,
                                      const std::filesystem::path& path, std::string& note);

  private:
    Talk(std::shared_ptr<SharedModel> model, Sequence sequence);
    void check_length(int length) const;  // throws UsageError unless the talk has so many tokens
    void end_answer();

    std::shared_ptr<SharedModel> model_;
    std::optional<Sequence> sequence_;  // empty only in the destructor
    OpenSequence open_;
    std::optional<Generation> answer_;
    int prompt_length_ = 0;  // prompt of the newest answer
    std::atomic<bool> cancelled_ = false;
};

// Whether the file begins as those that Talk::save() writes, in any version.
bool is_talk_file(const std::filesystem::path& path);

// Runs all steps.
const GenerationResult& answer(Talk& talk, const Request& request);

}  // namespace aerie
