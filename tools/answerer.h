// Answers the last turn of a dialogue on the terminal, from a talk that is kept between turns.
#pragma once

#include <memory>

#include "dialogue.h"
#include "talk/talk.h"

namespace aerie {

struct AnswerSettings {
    Sampling sampling = {};
    int max_tokens = -1;  // -1: to the end of the context
    bool drafts = true, stats = false, shade = false;
    bool on_terminal = false;  // somebody sees how it goes on
};

class Answerer {
  public:
    // The template must outlive it.
    Answerer(std::shared_ptr<SharedModel> model, const NamedText& chat_template);

    // What is new of the prompt is read, and the answer shown as it comes and added to the
    // dialogue, where it stays without one if it was stopped before its first token. Where the
    // context has no room for it, the oldest turns are dropped before. Throws Error, UsageError,
    // OutputError.
    void answer(Dialogue& dialogue, const AnswerSettings& settings);

    // What was read and answered, with all that was computed for it. Throws Error naming the file.
    void save(const std::filesystem::path& file) const { talk_->save(file); }
    // The other way; returns why some of it is read anew, or nothing. After an Error all is.
    std::string load(const std::filesystem::path& file);

  private:
    std::vector<int> ids(const Dialogue& dialogue) const;
    std::vector<int> prompt_with_room(Dialogue& dialogue, int max_tokens) const;
    void run(const Request& request, const AnswerSettings& settings);
    void note_end(const Request& request, bool on_terminal) const;
    void show_stats(const Request& request) const;

    std::shared_ptr<SharedModel> model_;
    const NamedText& template_;
    std::unique_ptr<Talk> talk_;
};

// What a template makes of a dialogue. Throws Error, UsageError.
jinja::Rendered rendered(const NamedText& chat_template, const Tokenizer& tokenizer,
                         const Dialogue& dialogue);

// Throws UsageError if the template refuses what the model is told first, or leaves it out.
void check_system(const NamedText& chat_template, const Tokenizer& tokenizer,
                  const std::string& system);

}  // namespace aerie
