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

// A prompt that is being answered: the conversation so far, and the messages that are still to be
// said.
struct Job {
    explicit Job(Sequence made) : sequence(std::move(made)) {}

    Sequence sequence;
    std::optional<Generation> answer;
    size_t number = 0;  // the prompt's index in AnswerFile::unanswered()
    Conversation conversation;
    std::deque<Json> rest;
    Json::Array answers;
    int tokens = 0;
};

class ManyPrompts {
  public:
    ManyPrompts(SharedModel& model, const GenerateOptions& options, const Sampling& sampling,
                const std::vector<PromptLine>& prompts, AnswerFile& file, ProgressLine& progress);
    // Returns the exit code.
    int run();

  private:
    const PromptLine& prompt_of(const Job& job) const {
        return prompts_[file_.unanswered()[job.number]];
    }
    uint64_t seed_of(const Job& job) const {
        return sampling_.seed + file_.unanswered()[job.number];
    }
    Json settings() const;
    void begin_prompt(Job& job);
    bool take_question(Job& job);
    void begin_answer(Job& job);
    void go_on(Job& job);
    void end(Job& job, const std::string& error);
    std::vector<int> ids_of(const Job& job) const;
    void show();

    SharedModel& model_;
    const GenerateOptions& options_;
    const Sampling sampling_;
    const std::vector<PromptLine>& prompts_;
    AnswerFile& file_;
    ProgressLine& progress_;
    NamedText template_;
    std::vector<std::unique_ptr<Job>> jobs_;
    size_t next_ = 0, failed_ = 0;
    int64_t tokens_ = 0;
    double started_ = 0;
};

ManyPrompts::ManyPrompts(SharedModel& model, const GenerateOptions& options,
                         const Sampling& sampling, const std::vector<PromptLine>& prompts,
                         AnswerFile& file, ProgressLine& progress)
    : model_(model),
      options_(options),
      sampling_(sampling),
      prompts_(prompts),
      file_(file),
      progress_(progress) {
    const std::optional<std::string>& given = options.chat.chat_template;
    template_ = given ? NamedText{read_input(*given), *given} : chat_template_of(model.tokenizer());
    file_.set_settings(settings());
}

// Everything that decides what the answers say. A model, a template and a device are known by a
// hash; the device counts because another one adds in another order. The context does not: a larger
// one lets a later run answer prompts that were too long.
Json ManyPrompts::settings() const {
    const Filters& filters = sampling_.filters;
    const Penalties& penalties = sampling_.penalties;
    const Identity& identity = model_.identity();
    const auto digest = [](const std::string& text) { return hex_digits(fnv1a(text)); };
    Json settings(Json::Object{{"model", model_.files().target.path.filename().string()},
                               {"weights", digest(identity.model)},
                               {"arithmetic", digest(identity.arithmetic)},
                               {"template", digest(template_.text)},
                               {"predict", options_.max_tokens},
                               {"temperature", shortest(filters.temperature)}});
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
    settings.set("logprobs", options_.logprobs);
    return settings;
}

// A text without roles is continued; everything else is a conversation.
std::vector<int> ManyPrompts::ids_of(const Job& job) const {
    const Tokenizer& tokenizer = model_.tokenizer();
    const PromptLine& prompt = prompt_of(job);
    if (prompt.messages.empty()) return tokenizer.encode_from_start(prompt.text, Recognised::none);
    return encode_chat(tokenizer,
                       render_chat(template_, tokenizer.named_tokens(), job.conversation));
}

void ManyPrompts::begin_prompt(Job& job) {
    job.number = next_++;
    const PromptLine& prompt = prompt_of(job);
    job.conversation = {};
    job.conversation.now = platform::local_time();
    if (options_.chat.system && !options_.chat.system->empty())
        job.conversation.put_first("system", *options_.chat.system);
    job.rest.assign(prompt.messages.begin(), prompt.messages.end());
    job.answers.clear();
    job.tokens = 0;
    if (prompt.messages.empty() || take_question(job))
        begin_answer(job);
    else
        end(job, "nothing is asked: no message of the user waits for an answer");
}

// Says messages up to one that waits for an answer: a user's that no given answer follows. Returns
// false if there is none.
bool ManyPrompts::take_question(Job& job) {
    const auto role = [](const Json& message) { return *message.find("role")->string(); };
    while (!job.rest.empty()) {
        const Json message = job.rest.front();
        job.rest.pop_front();
        job.conversation.add(role(message), *message.find("content")->string());
        const bool is_answered = !job.rest.empty() && role(job.rest.front()) == "assistant";
        if (role(message) == "user" && !is_answered) return true;
    }
    return false;
}

void ManyPrompts::begin_answer(Job& job) {
    try {
        Request request;
        request.prompt = ids_of(job);
        request.max_tokens = options_.max_tokens;
        request.answer.sampling = sampling_;
        request.answer.sampling.seed = seed_of(job);
        request.answer.with_logprobs = options_.logprobs;
        if (!options_.ignore_eos) request.eos_ids = model_.eos_ids();
        request.stops = options_.stops;
        job.answer.emplace(model_.batch(), job.sequence, model_.tokenizer(), request);
        job.tokens = int(request.prompt.size());
    } catch (const Error& error) {
        end(job, error.what());
    }
}

// Takes over an answer that has ended, and goes on with the user's next message.
void ManyPrompts::go_on(Job& job) {
    if (job.answer->error()) {
        job.sequence.forget();
        try {
            std::rethrow_exception(job.answer->error());
        } catch (const Error& error) {
            return end(job, error.what());
        }
    }
    const GenerationResult& result = job.answer->result();
    Json answer(Json::Object{{"text", result.text},
                             {"ids", Json::Array(result.ids.begin(), result.ids.end())},
                             {"finish_reason", name(result.finish)},
                             {"prompt_tokens", job.tokens},
                             {"tau", result.stats.tau()}});
    if (options_.logprobs)
        answer.set("logprobs", Json::Array(result.logprobs.begin(), result.logprobs.end()));
    job.answers.push_back(std::move(answer));
    tokens_ += int64_t(result.ids.size());
    job.conversation.add("assistant", result.text);
    if (take_question(job))
        begin_answer(job);
    else
        end(job, "");
}

void ManyPrompts::end(Job& job, const std::string& error) {
    const PromptLine& prompt = prompt_of(job);
    Json::Object line = {{"id", prompt.id}};
    if (!prompt.kind.empty()) line.emplace_back("kind", prompt.kind);
    if (sampling_.filters.temperature > 0) line.emplace_back("seed", seed_of(job));
    line.emplace_back("answers", job.answers);
    if (!error.empty()) {
        line.emplace_back("error", error);
        ++failed_;
        progress_.hide();
        tell_error(prompt.place + ": " + error);
    }
    job.answer.reset();
    file_.add(job.number, line);
}

void ManyPrompts::show() {
    const size_t done = file_.written(), asked = file_.unanswered().size(),
                 former = prompts_.size() - asked;
    const double seconds = steady_seconds() - started_;
    std::string line = "answered " + std::to_string(former + done) + " of " +
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
    const std::lock_guard turn(model_.turns());
    for (int i = 0; i < model_.options().sequences; ++i)
        jobs_.push_back(std::make_unique<Job>(model_.make_sequence()));
    started_ = steady_seconds();
    std::vector<Generation*> together;
    while (!interrupted()) {
        together.clear();
        for (const auto& job : jobs_) {
            while (!job->answer && next_ < file_.unanswered().size()) begin_prompt(*job);
            if (job->answer) together.push_back(&*job->answer);
        }
        if (together.empty()) break;
        step(together);
        for (const auto& job : jobs_)
            if (job->answer && job->answer->has_ended()) go_on(*job);
        show();
    }
    progress_.clear();
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
    const std::vector<PromptLine> prompts = read_prompt_file(*options.prompts);
    LoadOptions load = locate(options.model);
    AnswerFile file(options.output, *options.prompts, prompts);
    if (!flags.seed) flags.seed = file.seed();
    load.sequences = load.together =
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
    ManyPrompts many(model, options, sampling, prompts, file, progress);
    const double start = steady_seconds();
    const int code = many.run();
    if (!options.quiet) print_statistics(model.pass_counts(), steady_seconds() - start, sampling);
    if (!options.quiet && file.unanswered().empty())
        print_note("(all " + std::to_string(prompts.size()) + " prompts are answered in " +
                   *options.output + " already)");
    if (options.model.profile) {
        const std::lock_guard turn(model.turns());
        print_op_times(model.backend());
    }
    return code;
}

}  // namespace aerie
