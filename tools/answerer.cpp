#include "answerer.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "core/error.h"
#include "core/platform.h"
#include "reading_line.h"
#include "shading.h"
#include "terminal.h"
#include "thoughts.h"
#include "word_wrap.h"

namespace aerie {

namespace {

// Few enough tokens that nobody needs a progress line.
constexpr int kSoonRead = 64;
// As many tokens as <think> and the line break behind it may have.
constexpr std::ptrdiff_t kTagTokens = 10;

std::string whole(int count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

Answerer::Answerer(std::shared_ptr<SharedModel> model, const NamedText& chat_template,
                   Learning* learning)
    : model_(std::move(model)),
      template_(chat_template),
      learning_(learning),
      talk_(std::make_unique<Talk>(model_)) {}

void Answerer::answer(Dialogue& dialogue, const AnswerSettings& settings) {
    Request request;
    request.prompt = prompt_with_room(dialogue, settings.max_tokens);
    request.answer.sampling = settings.sampling;
    request.answer.drafts = settings.drafts;
    if (learning_ && settings.drafts) request.answer.head = learning_->head("");
    request.max_tokens = settings.max_tokens;
    request.eos_ids = model_->eos_ids();
    request.cancelled = [] { return interrupt_noted() || interrupted(); };
    forget_interrupt();
    run(request, settings);
    const GenerationResult& result = talk_->answer().result();
    if (!result.ids.empty()) dialogue.turns.back().answer = result.text;
    if (learning_) learning_->learn("", request.prompt, result.ids);
    note_end(request, settings.on_terminal);
    if (settings.stats && result.finish != FinishReason::cancelled) show_stats(request);
}

std::string Answerer::load(const std::filesystem::path& file) {
    talk_.reset();  // the model has room for one talk
    std::string note;
    try {
        talk_ = Talk::load(model_, file, note);
    } catch (...) {
        talk_ = std::make_unique<Talk>(model_);
        throw;
    }
    return note;
}

std::vector<int> Answerer::ids(const Dialogue& dialogue) const {
    return encode_chat(model_->tokenizer(), rendered(template_, model_->tokenizer(), dialogue));
}

// After dropping turns, all that is left must be computed again: half of the context is freed at
// once, so that it happens only once in many turns.
std::vector<int> Answerer::prompt_with_room(Dialogue& dialogue, int max_tokens) const {
    const int context = model_->context();
    const int least = std::max(1, max_tokens < 0 ? context / 8 : std::min(max_tokens, context / 8));
    const auto joined = [this](const Dialogue& turns) { return talk_->joined(ids(turns)); };
    std::vector<int> prompt = joined(dialogue);
    if (int(prompt.size()) + least <= context) return prompt;
    const int dropped = drop_oldest(
        dialogue, context / 2, [&](const Dialogue& turns) { return int(joined(turns).size()); });
    if (dropped > 0) prompt = joined(dialogue);
    if (int(prompt.size()) >= context)
        throw UsageError(std::string("the message is too long: ") +
                         (dialogue.system ? "with the system message " : "") + "it has " +
                         whole(int(prompt.size()), "token") + ", and the context has " +
                         std::to_string(context));
    if (dropped > 0)
        print_note("(the context of " + std::to_string(context) + " tokens is full: the " +
                   (dropped == 1 ? "oldest turn is" : "oldest " + whole(dropped, "turn") + " are") +
                   " dropped)");
    return prompt;
}

// on_text is called while a token is taken up, so the newest origin is that of the token that made
// the text whole.
void Answerer::run(const Request& request, const AnswerSettings& settings) {
    const bool has_looks = has_colors(stdout);
    Shading shading(settings.shade && has_looks, has_looks);
    const std::vector<int>& prompt = request.prompt;
    Thoughts thoughts(model_->tokenizer().decode(
        {prompt.end() - std::min(kTagTokens, std::ptrdiff_t(prompt.size())), prompt.end()}));
    WordWrap wrap;
    bool is_drafted = false;  // the newest token
    const auto show = [&](const std::vector<WordWrap::Piece>& pieces) {
        std::string bytes;
        for (const auto& [text, marks] : pieces) bytes += shading.put(text, marks);
        print_bytes(bytes);
    };
    FoldedThoughts folded;
    bool has_shown = false;
    const auto show_parts = [&](const std::vector<Thoughts::Part>& parts) {
        for (const auto& [text, is_thought] :
             settings.fold_thoughts ? folded.without(parts) : parts)
            show(wrap.put(text, {is_drafted, is_thought}, columns_of(stdout))), has_shown = true;
    };
    const auto show_rest = [&] {
        show_parts(thoughts.end());
        show(wrap.end());
    };
    std::optional<HiddenTyping> hidden;
    if (settings.on_terminal) hidden.emplace();
    ProgressLine progress(!settings.on_terminal);
    Request shown = request;
    shown.on_text = [&](const std::string& text) {
        progress.hide();
        const Origin& origin = talk_->answer().result().origins.back();
        is_drafted = origin.kind == Origin::Kind::from_draft;
        const std::string bytes = shown_on(stdout, text);
        if (has_looks || settings.fold_thoughts)
            show_parts(thoughts.put(bytes));
        else
            show(wrap.put(bytes, {is_drafted}, columns_of(stdout)));
        // Behind text of the answer the line would take the text's place.
        if (folded.is_thinking() && !has_shown)
            progress.show("thinking: " + whole(int(talk_->answer().result().ids.size()), "token"));
    };
    ReadingLine reading(progress);
    shown.on_read = [&](int done, int all) {
        if (all - done > kSoonRead) reading.show(done, all);
    };
    talk_->begin(shown);
    try {
        while (talk_->step()) {
        }
    } catch (const OutputError&) {
        throw;
    } catch (...) {
        show_rest();
        print_bytes(shading.end());
        throw;
    }
    progress.clear();
    show_rest();
    print_bytes(shading.end() + "\n");
}

// If -n ended the answer, only a user who sees it needs the reason.
void Answerer::note_end(const Request& request, bool on_terminal) const {
    const GenerationResult& result = talk_->answer().result();
    if (result.finish == FinishReason::cancelled) print_note("(stopped)");
    if (result.finish != FinishReason::length) return;
    const bool is_full = int(request.prompt.size() + result.ids.size()) >= model_->context();
    if (is_full)
        print_note("(ended: the context of " + std::to_string(model_->context()) +
                   " tokens is full)");
    else if (on_terminal)
        print_note("(ended: " + whole(request.max_tokens, "token") + ": the limit of -n)");
}

void Answerer::show_stats(const Request& request) const {
    const GenerationResult& result = talk_->answer().result();
    const Stats& stats = result.stats;
    const int prompt = int(request.prompt.size());
    char line[256];
    std::snprintf(line, sizeof(line),
                  "%s, %.1f tokens/s, tau %.2f, first token after %.3f s (read %d of %d)",
                  whole(int(result.ids.size()), "token").c_str(), stats.tokens_per_second(),
                  stats.tau(), stats.prefill_seconds, prompt - result.reused, prompt);
    std::string seed;
    if (request.answer.sampling.filters.temperature > 0)
        seed = ", seed " + std::to_string(request.answer.sampling.seed);
    print_note(line + seed);
    const std::string why = why_hardly_drafted(stats);
    if (!why.empty()) print_note(why);
}

jinja::Rendered rendered(const NamedText& chat_template, const Tokenizer& tokenizer,
                         const Dialogue& dialogue) {
    Conversation conversation = dialogue.conversation();
    conversation.now = platform::local_time();
    return render_chat(chat_template, tokenizer.named_tokens(), conversation);
}

void check_system(const NamedText& chat_template, const NamedTokens& tokens,
                  const std::string& system) {
    const std::string why = why_no_system_message(chat_template, tokens, system);
    if (!why.empty()) throw UsageError("this model takes no system message: " + why);
}

}  // namespace aerie
