// A conversation on a shared model: a text that is kept, with all that was computed for it, from
// one answer to the next. Nothing that is kept changes what comes out.
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

// One thread at a time may use a talk; only cancel may be called from another meanwhile. Talks of
// one model are independent of each other.
class Talk {
  public:
    // Throws Error if the model has no room for another one.
    explicit Talk(std::shared_ptr<SharedModel> model);
    ~Talk();
    Talk(const Talk&) = delete;  // its answer refers to it
    Talk& operator=(const Talk&) = delete;

    SharedModel& model() { return *model_; }
    // All ids so far: prompt, answer, prompt, ...
    std::span<const int> ids() const { return text_->tokens(); }
    // Those that are computed: what a prompt that begins with them need not wait for.
    int computed() const { return text_->committed(); }

    // The prompt that these ids mean here: the talk's own as long as they say the same, in
    // whatever pieces (an answer's are seldom those that its text would be cut into), then these.
    std::vector<int> joined(std::span<const int> prompt) const;
    // The same of a conversation by the model's chat template.
    std::vector<int> joined(const Conversation& conversation) const;

    // Begins an answer to request.prompt. What of it the talk holds already is not run again; what
    // the talk holds beyond it is forgotten. Throws UsageError; the talk is then as it was.
    void begin(const Request& request);
    // Goes on with the answer; false once it has ended. Waits until it is this talk's turn. Throws
    // Error (device, damaged model): the answer is over, and the talk's text is read anew by the
    // next one.
    bool step();
    // The answer in the making ends here; another talk can go on with it (Request::begun). Throws
    // UsageError if none was begun.
    GenerationResult leave();
    // Of the newest answer; throws UsageError if there is none.
    const Generation& answer() const;
    // From any thread: the answer in the making ends with its next step at the latest, and within a
    // prompt with its next piece. Does nothing to the answer after it.
    void cancel() { cancelled_ = true; }

    // The text is cut to its first ids. Throws UsageError if it has not so many.
    void rewind(int length);
    // Another talk that begins with the first ids of this one, and shares what was computed for
    // them. Throws Error, UsageError.
    std::unique_ptr<Talk> fork(int length) const;

    // The whole talk in a file, at once or not at all. Throws Error naming the file.
    void save(const std::filesystem::path& path) const;
    // A talk as it was saved. Where what was computed is of no use here (another device, types or
    // arithmetic), its ids are read anew when they are needed, and `note` says why; it is empty
    // otherwise. Throws Error naming the file, if it is damaged or of another model.
    static std::unique_ptr<Talk> load(std::shared_ptr<SharedModel> model,
                                      const std::filesystem::path& path, std::string& note);

  private:
    Talk(std::shared_ptr<SharedModel> model, Sequence text);
    void end_answer();

    std::shared_ptr<SharedModel> model_;
    std::optional<Sequence> text_;  // until the end
    std::optional<Generation> answer_;
    int prompt_length_ = 0;  // of the newest answer
    bool is_answering_ = false;
    std::atomic<bool> cancelled_ = false;
};

// All steps at once.
const GenerationResult& answer(Talk& talk, const Request& request);

}  // namespace aerie
