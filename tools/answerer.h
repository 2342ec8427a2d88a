// Answers the last turn of a dialogue on the terminal, with a talk that is kept between turns.
#pragma once

#include <memory>

#include "answer_settings.h"
#include "dialogue.h"
#include "talk/learning.h"
#include "talk/talk.h"

namespace aerie {

class Answerer {
  public:
    // The template must outlive it.
    // `learning` takes the answers; null: nothing does.
    Answerer(std::shared_ptr<SharedModel> model, const NamedText& chat_template,
             Learning* learning);

    // Runs the new part of the prompt, shows the answer as it grows and adds it to the dialogue. If
    // it was stopped before its first token, the turn stays without an answer. If the context has
    // no room, the oldest turns are dropped before. Throws Error, UsageError, OutputError.
    void answer(Dialogue& dialogue, const AnswerSettings& settings);

    // Saves the talk with all that was computed for it. Throws Error naming the file.
    void save(const std::filesystem::path& file) const { talk_->save(file); }
    // Loads a talk; returns why some of it is computed again, or nothing. After an Error the talk
    // is empty.
    std::string load(const std::filesystem::path& file);

  private:
    std::vector<int> ids(const Dialogue& dialogue) const;
    std::vector<int> prompt_with_room(Dialogue& dialogue, int max_tokens) const;
    void run(const Request& request, const AnswerSettings& settings);
    void note_end(const Request& request, bool on_terminal) const;
    void show_stats(const Request& request) const;

    std::shared_ptr<SharedModel> model_;
    const NamedText& template_;
    Learning* learning_;
    std::unique_ptr<Talk> talk_;
};

// Renders a dialogue with a template. Throws Error, UsageError.
jinja::Rendered rendered(const NamedText& chat_template, const Tokenizer& tokenizer,
                         const Dialogue& dialogue);

// Throws UsageError if the template refuses the system message, or leaves it out.
void check_system(const NamedText& chat_template, const NamedTokens& tokens,
                  const std::string& system);

}  // namespace aerie
