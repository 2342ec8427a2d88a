#include "train/prompt_answers.h"

#include <algorithm>
#include <deque>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "train/training_text.h"

namespace aerie::train {

namespace {

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
            TextFile& file, std::vector<PromptLine> lines)
        : model_(model),
          tokenizer_(tokenizer),
          options_(options),
          file_(file),
          lines_(std::move(lines)),
          is_chat_(!tokenizer.chat_template().text.empty()) {
        for (const PromptLine& line : lines_) wanted_ += !file.has(line.id);
    }

    void run() {
        if (!is_chat_ && options_.on_note)
            options_.on_note("the model has no chat template: prompts are texts that it continues");
        AnsweringPlan plan = options_.answering;
        plan.eos_ids = eos_ids(model_.files(), tokenizer_);
        plan.cancelled = options_.cancelled;
        answer_prompts(
            model_, plan, [&](Prompt& prompt) { return next(prompt); },
            [&](const AnsweredPrompt& answered) { take(answered); });
        if (too_long_ > 0 && options_.on_note)
            options_.on_note(std::to_string(too_long_) +
                             " prompts leave no room for an answer (--max-text, --predict)");
    }

  private:
    bool next(Prompt& prompt) {
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
        prompt = {tokens_of(asked), fnv1a(lines_[asked.line].id)};
        too_long_ += int(prompt.tokens.size()) + 1 >= model_.limits().context;
        asked_.push_back(std::move(asked));
        return true;
    }

    std::vector<int> tokens_of(const Asked& asked) const {
        if (!is_chat_) return tokenizer_.encode_from_start(text_of(asked.messages.back()));
        try {
            return prompt_tokens(tokenizer_, asked.messages);
        } catch (const UsageError& error) {
            throw UsageError(lines_[asked.line].place + ": " + error.what());
        }
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
        const PromptLine& line = lines_[asked.line];
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
        const double seconds = steady_seconds() - start_;
        TrainingProgress progress;
        progress.done = done_;
        progress.all = wanted_;
        progress.tokens = tokens_;
        progress.tokens_per_second = double(tokens_) / seconds;
        progress.seconds_left = seconds / double(done_) * double(wanted_ - done_);
        options_.on_progress(progress);
    }

    Model& model_;
    const Tokenizer& tokenizer_;
    const TrainingOptions& options_;
    TextFile& file_;
    std::vector<PromptLine> lines_;
    bool is_chat_;
    size_t line_ = 0;
    std::deque<Asked> further_;  // next turns of conversations
    std::vector<Asked> asked_;   // by number of the prompt
    double start_ = steady_seconds();
    int64_t wanted_ = 0, done_ = 0, tokens_ = 0;  // conversations; tokens of answers
    int too_long_ = 0;
};

}  // namespace

void answer_lines(Model& model, const Tokenizer& tokenizer, const TrainingOptions& options,
                  std::vector<PromptLine> lines, TextFile& file) {
    Answers(model, tokenizer, options, file, std::move(lines)).run();
}

}  // namespace aerie::train
