// `aerie generate --prompts FILE`: many prompts, several in one pass, an answered prompt a line.
// The lines of a file that an interrupted run left are kept.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <fstream>
#include <map>
#include <optional>

#include "assumed.h"
#include "commands.h"
#include "core/error.h"
#include "core/platform.h"
#include "core/utf8.h"
#include "io/input_file.h"
#include "io/json.h"
#include "talk/shared_model.h"
#include "terminal.h"
#include "text/chat_template.h"
#include "text/prompt_file.h"

namespace aerie {

namespace {

constexpr const char* kSchema = "aerie-answers-1";
constexpr size_t kMaxBytes = size_t(1) << 32;

// The file of answers, one line for each prompt, in the order of the prompts.
class AnswerFile {
  public:
    // Takes over the lines of a former run with the same prompts. Throws UsageError if they belong
    // to others.
    AnswerFile(const std::optional<std::string>& path, const std::vector<PromptLine>& prompts);

    size_t written() const { return next_; }
    // Answers come in any order; a line is written once all before it are.
    void add(size_t number, const Json& line);

  private:
    void write(const std::string& line);

    std::optional<std::string> path_;
    std::ofstream file_;
    std::map<size_t, std::string> waiting_;
    size_t next_ = 0;
};

AnswerFile::AnswerFile(const std::optional<std::string>& path,
                       const std::vector<PromptLine>& prompts)
    : path_(path) {
    if (!path_) return;
    std::error_code error;
    size_t kept = 0;
    if (std::filesystem::exists(*path_, error)) {
        const std::string text = read_text(*path_, kMaxBytes);
        // A line without an end was being written when the run was interrupted.
        for (size_t end; (end = text.find('\n', kept)) != std::string::npos; kept = end + 1) {
            const std::string place = *path_ + ": line " + std::to_string(next_ + 1);
            const Json line = Json::parse(text.substr(kept, end - kept), place);
            const Json* id = line.object() ? line.find("id") : nullptr;
            if (next_ == prompts.size() || !id || !id->string() ||
                *id->string() != prompts[next_].id)
                throw UsageError(place + " answers another prompt than line " +
                                 std::to_string(next_ + 1) +
                                 " of the prompts: name another file, or delete this one");
            ++next_;
        }
        if (kept < text.size()) std::filesystem::resize_file(*path_, kept, error);
        if (error) throw Error(*path_ + ": " + error.message());
    }
    file_.open(*path_, std::ios::binary | std::ios::app);
    if (!file_) throw Error(*path_ + ": cannot be written");
}

void AnswerFile::add(size_t number, const Json& line) {
    waiting_.emplace(number, line.dump() + "\n");
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_;
         first = waiting_.erase(first), ++next_)
        write(first->second);
}

void AnswerFile::write(const std::string& line) {
    if (!path_) return print(line);
    file_ << line << std::flush;
    if (!file_) throw OutputError(*path_ + ": cannot be written");
}

// A prompt that is being answered: the conversation so far, and the messages that are still to be
// said.
struct Place {
    explicit Place(Sequence made) : sequence(std::move(made)) {}

    Sequence sequence;
    std::optional<Generation> answer;
    size_t number = 0;  // the prompt's line in the file, from 0 on
    Conversation conversation;
    std::deque<Json> rest;
    Json::Array answers;
    int tokens = 0;
};

class ManyPrompts {
  public:
    ManyPrompts(SharedModel& model, const GenerateOptions& options, const Sampling& sampling,
                std::vector<PromptLine> prompts, ProgressLine& progress);
    // Returns the exit code.
    int run();

  private:
    void begin_prompt(Place& place);
    void begin_answer(Place& place);
    void go_on(Place& place);
    void end(Place& place, const std::string& error);
    std::vector<int> ids_of(const Place& place) const;
    void show();

    SharedModel& model_;
    const GenerateOptions& options_;
    const Sampling sampling_;
    const std::vector<PromptLine> prompts_;
    ProgressLine& progress_;
    AnswerFile file_;
    NamedText template_;
    std::vector<std::unique_ptr<Place>> places_;
    size_t next_ = 0, begun_ = 0, failed_ = 0;
    int64_t tokens_ = 0;
    double started_ = 0;
};

ManyPrompts::ManyPrompts(SharedModel& model, const GenerateOptions& options,
                         const Sampling& sampling, std::vector<PromptLine> prompts,
                         ProgressLine& progress)
    : model_(model),
      options_(options),
      sampling_(sampling),
      prompts_(std::move(prompts)),
      progress_(progress),
      file_(options.output, prompts_),
      next_(file_.written()),
      begun_(next_) {
    const std::optional<std::string>& file = options.chat.chat_template;
    template_ = file ? NamedText{read_input(*file), *file} : chat_template_of(model.tokenizer());
}

// A text without roles is continued; everything else is a conversation.
std::vector<int> ManyPrompts::ids_of(const Place& place) const {
    const Tokenizer& tokenizer = model_.tokenizer();
    const PromptLine& prompt = prompts_[place.number];
    if (prompt.messages.empty()) return tokenizer.encode_from_start(prompt.text, Recognised::none);
    return encode_chat(tokenizer,
                       render_chat(template_, tokenizer.named_tokens(), place.conversation));
}

void ManyPrompts::begin_prompt(Place& place) {
    place.number = next_++;
    const PromptLine& prompt = prompts_[place.number];
    place.conversation = {};
    place.conversation.now = platform::local_time();
    if (options_.chat.system && !options_.chat.system->empty())
        place.conversation.put_first("system", *options_.chat.system);
    place.rest.assign(prompt.messages.begin(), prompt.messages.end());
    place.answers.clear();
    place.tokens = 0;
    begin_answer(place);
}

// Says messages up to one that waits for an answer: a user's that no given answer follows.
void ManyPrompts::begin_answer(Place& place) {
    const auto role = [](const Json& message) { return *message.find("role")->string(); };
    while (!place.rest.empty()) {
        const Json message = place.rest.front();
        place.rest.pop_front();
        place.conversation.add(role(message), *message.find("content")->string());
        const bool is_answered = !place.rest.empty() && role(place.rest.front()) == "assistant";
        if (role(message) == "user" && !is_answered) break;
    }
    try {
        Request request;
        request.prompt = ids_of(place);
        request.max_tokens = options_.max_tokens;
        request.answer.sampling = sampling_;
        request.answer.sampling.seed += place.number;
        request.answer.with_logprobs = options_.logprobs;
        if (!options_.ignore_eos) request.eos_ids = model_.eos_ids();
        request.stops = options_.stops;
        place.answer.emplace(model_.batch(), place.sequence, model_.tokenizer(), request);
        place.tokens = int(request.prompt.size());
    } catch (const Error& error) {
        end(place, error.what());
    }
}

// Takes over an answer that has ended, and goes on with the user's next message.
void ManyPrompts::go_on(Place& place) {
    if (place.answer->error()) {
        place.sequence.forget();
        try {
            std::rethrow_exception(place.answer->error());
        } catch (const Error& error) {
            return end(place, error.what());
        }
    }
    const GenerationResult& result = place.answer->result();
    Json answer(Json::Object{{"text", result.text},
                             {"ids", Json::Array(result.ids.begin(), result.ids.end())},
                             {"finish_reason", name(result.finish)},
                             {"prompt_tokens", place.tokens},
                             {"tau", result.stats.tau()}});
    if (options_.logprobs)
        answer.set("logprobs", Json::Array(result.logprobs.begin(), result.logprobs.end()));
    place.answers.push_back(std::move(answer));
    tokens_ += int64_t(result.ids.size());
    place.conversation.add("assistant", result.text);
    if (place.rest.empty())
        end(place, "");
    else
        begin_answer(place);
}

void ManyPrompts::end(Place& place, const std::string& error) {
    const PromptLine& prompt = prompts_[place.number];
    Json line(Json::Object{{"schema", kSchema}, {"id", prompt.id}});
    if (!prompt.kind.empty()) line.set("kind", prompt.kind);
    line.set("answers", place.answers);
    if (!error.empty()) {
        line.set("error", error);
        ++failed_;
        progress_.hide();
        tell_error(prompt.place + ": " + error);
    }
    place.answer.reset();
    file_.add(place.number, line);
}

void ManyPrompts::show() {
    const size_t done = file_.written(), all = prompts_.size();
    const double seconds = steady_seconds() - started_;
    std::string line =
        "answered " + std::to_string(done) + " of " + std::to_string(all) + " prompts";
    if (tokens_ > 0) {
        char rate[80];
        const double left =
            done > begun_ ? seconds * double(all - done) / double(done - begun_) : 0;
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
        places_.push_back(std::make_unique<Place>(model_.make_sequence()));
    started_ = steady_seconds();
    std::vector<Generation*> together;
    while (!interrupted()) {
        together.clear();
        for (const auto& place : places_) {
            while (!place->answer && next_ < prompts_.size()) begin_prompt(*place);
            if (place->answer) together.push_back(&*place->answer);
        }
        if (together.empty()) break;
        step(together);
        for (const auto& place : places_)
            if (place->answer && place->answer->has_ended()) go_on(*place);
        show();
    }
    progress_.clear();
    if (const int code = interrupted()) return code;
    return failed_ > 0 ? 1 : 0;
}

}  // namespace

int run_generate_many(const GenerateOptions& options) {
    sampling_of(options.sampling, {});
    LoadOptions load = locate(options.model);
    load.sequences = load.together = options.parallel;
    std::vector<PromptLine> prompts;
    for (PromptLine& line : read_prompt_file(*options.prompts)) prompts.push_back(std::move(line));
    ProgressLine progress(options.quiet);
    load.on_progress = [&](const LoadProgress& now) { progress.show(now.line); };
    ModelFiles files = ModelFiles::open(load);
    const Sampling sampling = sampling_of(options.sampling, generation_config(files.target));
    if (!options.quiet) tell_assumed(files);
    Tokenizer tokenizer = load_tokenizer(files);
    SharedModel model(std::move(files), std::move(tokenizer), load);
    end_cleanly_on_signals();
    ManyPrompts many(model, options, sampling, std::move(prompts), progress);
    const double start = steady_seconds();
    const int code = many.run();
    const PassCounts& counts = model.pass_counts();
    const double seconds = steady_seconds() - start;
    if (!options.quiet)
        std::fprintf(stderr,
                     "%llu tokens in %.1f s, %.1f tokens/s; %.2f answers and %.2f tokens a pass\n",
                     static_cast<unsigned long long>(counts.tokens), seconds,
                     double(counts.tokens) / seconds,
                     double(counts.sequences) / double(std::max<uint64_t>(1, counts.passes)),
                     double(counts.tokens) / double(std::max<uint64_t>(1, counts.passes)));
    if (options.model.profile) {
        const std::lock_guard turn(model.turns());
        print_op_times(model.backend());
    }
    return code;
}

}  // namespace aerie
