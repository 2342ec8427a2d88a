// `aerie generate --prompts FILE`: many prompts, several in one pass, an answered prompt a line.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>

#include "answer_file.h"
#include "assumed.h"
#include "commands.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/platform.h"
#include "io/input_file.h"
#include "io/json.h"
#include "talk/shared_model.h"
#include "terminal.h"
#include "text/chat_template.h"
#include "text/prompt_file.h"

namespace aerie {

namespace {

// The number that prints as the float does.
double shortest(float value) {
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%.7g", double(value));
    return std::strtod(digits, nullptr);
}

// The model's file or folder, without the folders before it.
std::string name_of_model(const std::filesystem::path& model) {
    std::filesystem::path path = std::filesystem::absolute(model).lexically_normal();
    if (path.filename().empty()) path = path.parent_path();
    return path.filename().string();
}

// A prompt that is being answered: the conversation so far, and the messages that are still to be
// added to it.
struct ActivePrompt {
    explicit ActivePrompt(Sequence made) : sequence(std::move(made)) {}

    Sequence sequence;
    std::optional<Generation> answer;
    size_t number = 0;  // the prompt's index in the file
    Conversation conversation;
    std::deque<Json> remaining;
    Json::Array answers;
    int prompt_tokens = 0;  // before the answer
};

class ManyPrompts {
  public:
    ManyPrompts(SharedModel& model, const GenerateOptions& options, const Sampling& sampling,
                const std::vector<PromptLine>& prompts, AnswerFile& file, ProgressLine& progress,
                std::string name);
    // Returns the exit code.
    int run();

  private:
    const PromptLine& prompt_of(const ActivePrompt& active) const {
        return prompts_[active.number];
    }
    uint64_t seed_of(const ActivePrompt& active) const { return sampling_.seed + active.number; }
    Json settings() const;
    void begin_prompt(ActivePrompt& active);
    bool next_turn(ActivePrompt& active);
    void begin_answer(ActivePrompt& active);
    void finish_turn(ActivePrompt& active);
    void finish_prompt(ActivePrompt& active, const std::string& error);
    std::vector<int> ids_of(const ActivePrompt& active) const;
    void show();

    SharedModel& model_;
    const GenerateOptions& options_;
    const Sampling sampling_;
    const std::vector<PromptLine>& prompts_;
    AnswerFile& file_;
    ProgressLine& progress_;
    const std::string name_;  // the model's
    NamedText template_;
    std::vector<std::unique_ptr<ActivePrompt>> active_;
    size_t next_ = 0, failed_ = 0;
    int64_t tokens_ = 0;
    double started_ = 0;
};

ManyPrompts::ManyPrompts(SharedModel& model, const GenerateOptions& options,
                         const Sampling& sampling, const std::vector<PromptLine>& prompts,
                         AnswerFile& file, ProgressLine& progress, std::string name)
    : model_(model),
      options_(options),
      sampling_(sampling),
      prompts_(prompts),
      file_(file),
      progress_(progress),
      name_(std::move(name)) {
    const std::optional<std::string>& given = options.chat.chat_template;
    template_ = given ? NamedText{read_input(*given), *given} : chat_template_of(model.tokenizer());
    check_chat_template(template_);
    file_.set_settings(settings());
}

// Everything that decides what the answers say: files by their hash, the device because another
// one adds in another order, and what drafts only where that changes the text.
Json ManyPrompts::settings() const {
    const Filters& filters = sampling_.filters;
    const Penalties& penalties = sampling_.penalties;
    const Identity& identity = model_.identity();
    const auto hash = [](const std::string& text) { return hex_digits(fnv1a(text)); };
    Json settings(Json::Object{{"weights", hash(identity.model)},
                               {"arithmetic", identity.arithmetic},
                               {"template", hash(template_.text)},
                               {"predict", options_.max_tokens},
                               {"temperature", shortest(filters.temperature)}});
    if (options_.max_tokens < 0) settings.set("context", model_.context());
    if (filters.temperature > 0 && model_.options().draft.accept == AcceptRule::ratio)
        settings.set("accept", "p/q: " + identity.draft);
    if (filters.temperature > 0) {
        settings.set("seed", sampling_.seed);
        settings.set("top_k", filters.top_k);
        settings.set("top_p", shortest(filters.top_p));
        settings.set("min_p", shortest(filters.min_p));
    }
    settings.set("repetition_penalty", shortest(penalties.repetition));
    settings.set("frequency_penalty", shortest(penalties.frequency));
    settings.set("presence_penalty", shortest(penalties.presence));
    settings.set("ignore_eos", options_.ignore_eos);
    settings.set("stop", Json::Array(options_.stops.begin(), options_.stops.end()));
    settings.set("system", options_.chat.system.value_or(""));
    settings.set("special_tokens", !options_.no_special);
    settings.set("logprobs", options_.logprobs);
    return settings;
}

// A text without roles is continued; everything else is a conversation.
std::vector<int> ManyPrompts::ids_of(const ActivePrompt& active) const {
    const Tokenizer& tokenizer = model_.tokenizer();
    const PromptLine& prompt = prompt_of(active);
    if (prompt.messages.empty())
        return tokenizer.encode_from_start(
            prompt.text, options_.no_special ? Recognised::none : Recognised::all);
    return encode_chat(tokenizer,
                       render_chat(template_, tokenizer.named_tokens(), active.conversation));
}

void ManyPrompts::begin_prompt(ActivePrompt& active) {
    active.number = file_.unanswered()[next_++];
    const PromptLine& prompt = prompt_of(active);
    active.conversation = {};
    active.conversation.now = platform::local_time();
    if (options_.chat.system && !options_.chat.system->empty())
        active.conversation.put_first("system", *options_.chat.system);
    active.remaining.assign(prompt.messages.begin(), prompt.messages.end());
    active.answers.clear();
    active.prompt_tokens = 0;
    if (prompt.messages.empty() || next_turn(active))
        begin_answer(active);
    else
        finish_prompt(active, "nothing is asked: no message of the user waits for an answer");
}

// Says messages up to one that waits for an answer: a user's that no given answer follows. Returns
// false if there is none.
bool ManyPrompts::next_turn(ActivePrompt& active) {
    const auto role = [](const Json& message) { return *message.find("role")->string(); };
    while (!active.remaining.empty()) {
        const Json message = active.remaining.front();
        active.remaining.pop_front();
        active.conversation.add(role(message), *message.find("content")->string());
        const bool is_answered =
            !active.remaining.empty() && role(active.remaining.front()) == "assistant";
        if (role(message) == "user" && !is_answered) return true;
    }
    return false;
}

void ManyPrompts::begin_answer(ActivePrompt& active) {
    try {
        Request request;
        request.prompt = ids_of(active);
        request.max_tokens = options_.max_tokens;
        request.answer.sampling = sampling_;
        request.answer.sampling.seed = seed_of(active);
        request.answer.with_logprobs = options_.logprobs;
        if (!options_.ignore_eos) request.eos_ids = model_.eos_ids();
        request.stops = options_.stops;
        active.answer.emplace(model_.batch(), active.sequence, model_.tokenizer(), request);
        active.prompt_tokens = int(request.prompt.size());
    } catch (const Error& error) {
        finish_prompt(active, error.what());
    }
}

// Takes over an answer that has ended, and goes on with the user's next message.
void ManyPrompts::finish_turn(ActivePrompt& active) {
    if (active.answer->error()) {
        active.sequence.forget();
        try {
            std::rethrow_exception(active.answer->error());
        } catch (const Error& error) {
            return finish_prompt(active, error.what());
        }
    }
    const GenerationResult& result = active.answer->result();
    Json answer(Json::Object{{"text", result.text},
                             {"ids", Json::Array(result.ids.begin(), result.ids.end())},
                             {"finish_reason", name(result.finish)},
                             {"prompt_tokens", active.prompt_tokens},
                             {"tau", result.stats.tau()}});
    if (options_.logprobs)
        answer.set("logprobs", Json::Array(result.logprobs.begin(), result.logprobs.end()));
    active.answers.push_back(std::move(answer));
    tokens_ += int64_t(result.ids.size());
    active.conversation.add("assistant", result.text);
    if (next_turn(active))
        begin_answer(active);
    else
        finish_prompt(active, "");
}

void ManyPrompts::finish_prompt(ActivePrompt& active, const std::string& error) {
    const PromptLine& prompt = prompt_of(active);
    Json::Object line = {{"id", prompt.given_id}, {"hash", prompt.hash}};
    if (!prompt.kind.empty()) line.emplace_back("kind", prompt.kind);
    line.emplace_back("model", name_);
    if (sampling_.filters.temperature > 0) line.emplace_back("seed", seed_of(active));
    line.emplace_back("answers", active.answers);
    if (!error.empty()) {
        line.emplace_back("error", error);
        ++failed_;
        progress_.hide();
        tell_error(prompt.place + ": " + error);
    }
    active.answer.reset();
    file_.add(active.number, line);
}

void ManyPrompts::show() {
    const size_t done = file_.added(), asked = file_.unanswered().size(),
                 answered_before = prompts_.size() - asked;
    const double seconds = steady_seconds() - started_;
    std::string line = "answered " + std::to_string(answered_before + done) + " of " +
                       std::to_string(prompts_.size()) + " prompts";
    if (tokens_ > 0) {
        char rate[80];
        const double left = done > 0 ? seconds * double(asked - done) / double(done) : 0;
        std::snprintf(rate, sizeof(rate),
                      left > 0 ? ", %.0f tokens/s, %.0f s left" : ", %.0f tokens/s",
                      double(tokens_) / seconds, left);
        line += rate;
    }
    progress_.show(line);
}

int ManyPrompts::run() {
    const std::lock_guard lock(model_.mutex());
    for (int i = 0; i < model_.options().sequences; ++i)
        active_.push_back(std::make_unique<ActivePrompt>(model_.make_sequence()));
    started_ = steady_seconds();
    std::vector<Generation*> together;
    while (!interrupted()) {
        together.clear();
        for (const auto& active : active_) {
            while (!active->answer && next_ < file_.unanswered().size()) begin_prompt(*active);
            if (active->answer) together.push_back(&*active->answer);
        }
        if (together.empty()) break;
        step(together);
        for (const auto& active : active_)
            if (active->answer && active->answer->has_ended()) finish_turn(*active);
        show();
    }
    progress_.clear();
    file_.finish();
    if (const int code = interrupted()) return code;
    return failed_ > 0 ? 1 : 0;
}

void print_statistics(const PassCounts& counts, double seconds, const Sampling& sampling) {
    if (counts.passes == 0) return;
    std::fprintf(stderr,
                 "%llu tokens in %.1f s, %.1f tokens/s; %.2f answers and %.2f tokens a pass\n",
                 static_cast<unsigned long long>(counts.tokens), seconds,
                 double(counts.tokens) / seconds, double(counts.sequences) / double(counts.passes),
                 double(counts.tokens) / double(counts.passes));
    if (sampling.filters.temperature > 0)
        std::fprintf(stderr, "seed %llu for the first prompt, one more for each next\n",
                     static_cast<unsigned long long>(sampling.seed));
}

}  // namespace

int run_generate_many(const GenerateOptions& options) {
    SamplingOptions flags = options.sampling;
    sampling_of(flags, {});
    if (options.prompts->empty()) throw UsageError("--prompts: the file needs a name");
    if (options.output && options.output->empty())
        throw UsageError("--output: the file needs a name");
    if (*options.prompts == "-" && options.chat.chat_template == "-")
        throw UsageError("--prompts - and --template - cannot both read stdin");
    const std::vector<PromptLine> prompts = read_prompt_file(*options.prompts);
    LoadOptions load = locate(options.model);
    AnswerFile file(options.output, *options.prompts, prompts);
    if (!flags.seed) flags.seed = file.seed();
    load.sequences = load.sequences_in_pass =
        int(std::clamp<size_t>(file.unanswered().size(), 1, size_t(options.parallel)));
    if (!options.quiet) tell_unused(options.model, load.draft.method);
    ProgressLine progress(options.quiet);
    load.on_progress = [&](const LoadProgress& now) { progress.show(now.line); };
    ModelFiles files = ModelFiles::open(load);
    const Sampling sampling = sampling_of(flags, generation_config(files.target));
    if (!options.quiet) tell_assumed(files);
    Tokenizer tokenizer = load_tokenizer(files);
    SharedModel model(std::move(files), std::move(tokenizer), load);
    end_cleanly_on_signals();
    ManyPrompts many(model, options, sampling, prompts, file, progress, name_of_model(load.model));
    const double start = steady_seconds();
    const int code = many.run();
    if (!options.quiet) {
        print_statistics(model.pass_counts(), steady_seconds() - start, sampling);
        const size_t left = file.unanswered().size() - file.added();
        if (file.unanswered().empty())
            print_note("(" + file.path() + " has all answers already)");
        else if (left > 0 && !file.path().empty())
            print_note("(" + file.path() + " has the answers to " +
                       std::to_string(prompts.size() - left) + " of " +
                       std::to_string(prompts.size()) + " prompts; the same command goes on)");
    }
    if (options.model.profile) {
        const std::lock_guard lock(model.mutex());
        print_op_times(model.backend());
    }
    return code;
}

}  // namespace aerie
