// `aerie generate`: text to stdout as it becomes final, progress and statistics to stderr.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "answerer.h"
#include "assumed.h"
#include "commands.h"
#include "core/error.h"
#include "core/platform.h"
#include "engine/generation.h"
#include "engine/learned_costs.h"
#include "io/json.h"
#include "measure/timings.h"
#include "reading_line.h"
#include "shading.h"
#include "terminal.h"
#include "text/chat_template.h"

namespace aerie {

namespace {

std::optional<std::string> read_prompt(const GenerateOptions& options) {
    if (options.prompt) return options.prompt;
    if (!options.prompt_file && (options.prompt_ids || options.chat.messages)) return {};
    if (!options.prompt_file && isatty(STDIN_FILENO))
        throw UsageError("no prompt: give -p TEXT, -f FILE or pipe it in");
    return read_text_input(options.prompt_file.value_or("-"));
}

// Whether an empty text is a prompt must not depend on whether the model puts a BOS before it.
std::optional<std::string> checked_prompt(const GenerateOptions& options) {
    std::optional<std::string> prompt = read_prompt(options);
    if (prompt && prompt->empty())
        throw UsageError(
            "the prompt is empty: give a text with -p or -f, or pipe one in (--prompt-ids 1 begins "
            "with the token 1 alone)");
    return prompt;
}

// Flags that change nothing, and flags that change more than they name.
void tell_flags(const GenerateOptions& options) {
    const ConversationOptions& chat = options.chat;
    if (!chat.on && !chat.messages && (chat.system || chat.chat_template))
        print_note(std::string("(") + (chat.system ? "--system" : "--template") +
                   " makes a conversation of the prompt, as --chat does)");
    if (options.shade && options.json) print_note("(--shade changes nothing with --json)");
    const std::vector<std::string>& given = options.model.given;
    if (std::find(given.begin(), given.end(), "--parallel") != given.end())
        print_note("(--parallel changes nothing without --prompts)");
}

// The messages of the file, then the prompt; the system message comes first.
Conversation conversation_of(const ConversationOptions& chat,
                             const std::optional<std::string>& prompt) {
    Conversation conversation;
    if (chat.messages) {
        conversation = read_conversation(read_input(*chat.messages), *chat.messages);
        join_text_parts(conversation, *chat.messages);
    }
    if (chat.system && !chat.system->empty()) conversation.put_first("system", *chat.system);
    if (prompt) conversation.add("user", *prompt);
    conversation.now = platform::local_time();
    return conversation;
}

// The text with which the conversation begins if that is a system message, else null.
const std::string* system_message(const Conversation& conversation) {
    const Json::Array& messages = *conversation.messages.array();
    if (messages.empty() || !messages.front().object()) return nullptr;
    const Json *role = messages.front().find("role"), *content = messages.front().find("content");
    const bool is_system = role && role->string() && *role->string() == "system";
    return is_system && content ? content->string() : nullptr;
}

void set_prompt(Request& request, const Tokenizer& tokenizer, const GenerateOptions& options,
                const std::optional<std::string>& prompt) {
    if (options.prompt_ids) {
        request.prompt = *options.prompt_ids;
        return;
    }
    if (!options.chat.wanted()) {
        request.prompt = tokenizer.encode_from_start(
            *prompt, options.no_special ? Recognised::none : Recognised::all);
        return;
    }
    Conversation conversation = conversation_of(options.chat, prompt);
    const std::optional<std::string>& file = options.chat.chat_template;
    const NamedText chat_template =
        file ? NamedText{read_input(*file), *file} : chat_template_of(tokenizer);
    if (const std::string* system = system_message(conversation))
        check_system(chat_template, tokenizer.named_tokens(), *system);
    std::string begun = take_begun_answer(conversation);
    request.continues_text = !begun.empty();
    jinja::Rendered chat = render_chat(chat_template, tokenizer.named_tokens(), conversation);
    append_begun_answer(tokenizer, chat, std::move(begun));
    request.prompt = encode_chat(tokenizer, chat);
}

// The drafter's name in statistics.
std::string drafter_name(const DraftOptions& draft) {
    return draft.method + (draft.accept == AcceptRule::ratio ? " with p/q" : "");
}

void check_comparison(const GenerateOptions& options, const Sampling& sampling) {
    if (options.compare_plain && sampling.filters.temperature > 0 &&
        options.model.drafting.accept == AcceptRule::ratio)
        throw UsageError("--compare-plain is for equal texts: --accept p/q gives another one");
}

bool is_drafted(const Origin& origin) {
    return origin.kind == Origin::Kind::from_draft;
}

void print_statistics(const GenerationResult& result, const std::string& method,
                      const Sampling& sampling) {
    const Stats& stats = result.stats;
    const bool color = has_colors(stderr);
    std::fputs(color ? "\033[2m" : "", stderr);
    std::fprintf(stderr,
                 "%zu tokens, %d of them drafted, %.1f tokens/s, prompt read in %.3f s "
                 "(finished: %s)\n",
                 result.ids.size(), stats.drafted_tokens(), stats.tokens_per_second(),
                 stats.prefill_seconds, aerie::name(result.finish));
    if (sampling.filters.temperature > 0)
        std::fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(sampling.seed));
    if (stats.cycles > 0) {
        std::fprintf(stderr, "%s: %d cycles of %.1f nodes, %.0f%% of them plain, tau %.2f",
                     method.c_str(), stats.cycles, stats.mean_nodes(), 100 * stats.plain_share(),
                     stats.tau());
        if (!stats.accepted_by_depth.empty()) std::fputs(", accepted by depth", stderr);
        for (int accepted : stats.accepted_by_depth)
            std::fprintf(stderr, " %.0f%%", 100.0 * accepted / stats.cycles);
        std::fprintf(stderr, "\ntime: draft %.3f s, verify %.3f s, sample %.3f s, host %.3f s\n",
                     stats.draft_seconds, stats.verify_seconds, stats.sample_seconds,
                     stats.host_seconds);
        const std::string why = why_hardly_drafted(stats);
        if (!why.empty()) std::fprintf(stderr, "%s\n", why.c_str());
    }
    std::fputs(color ? "\033[0m" : "", stderr);
}

// A head with bad drafts is mostly not the one that was meant, or not read as it was trained.
void warn_of_bad_head(const Stats& stats, const ModelFiles& files) {
    constexpr int kEnough = 200;
    constexpr double kLeast = 0.15;
    const int drafts = stats.cycles - stats.plain_cycles;
    const int right = stats.accepted_by_depth.empty() ? 0 : stats.accepted_by_depth[0];
    if (!files.head || drafts < kEnough || right >= kLeast * drafts) return;
    std::fprintf(
        stderr,
        "aerie: only %.0f%% of %d drafts began with the right token: check %sthe head's "
        "RoPE base (--head-rope-theta), the chat template (--chat), and whether the head "
        "was made for this model and not for another fine-tune of it\n",
        100.0 * right / drafts, drafts,
        files.head_config->kind->set_taps ? "the layers that it reads (--head-taps), " : "");
}

// A model that was tuned for chats mostly ends at once after a text that is no chat.
void point_to_chat(const GenerateOptions& options, const GenerationResult& result,
                   const std::vector<int>& eos_ids, const Tokenizer& tokenizer) {
    const bool is_raw = !options.chat.wanted() && !options.prompt_ids;
    if (!is_raw || tokenizer.chat_template().text.empty() || result.ids.empty()) return;
    const bool has_ended =
        std::find(eos_ids.begin(), eos_ids.end(), result.ids.back()) != eos_ids.end();
    if (!has_ended || result.text.find_first_not_of(" \t\r\n") != std::string::npos) return;
    std::fputs(
        "aerie: the model ended the text at once. It was tuned for chats: with --chat it "
        "answers the prompt\n",
        stderr);
}

// Prints the text as it becomes final.
GenerationResult generate_shown(Session& session, const Tokenizer& tokenizer, Request request,
                                const GenerateOptions& options, ProgressLine& progress) {
    Shading shading(options.shade && has_colors(stdout), false);
    const Generation* shown = nullptr;
    // Called while a token is taken up, so the newest origin is that of the token that made the
    // text whole.
    if (!options.json)
        request.on_text = [&](const std::string& text) {
            progress.clear();
            const bool drafted = is_drafted(shown->result().origins.back());
            print_bytes(shading.put(shown_on(stdout, text), {.is_drafted = drafted}));
        };
    Generation generation(session, tokenizer, request);
    shown = &generation;
    try {
        while (generation.step()) {
        }
    } catch (const OutputError&) {
        throw;
    } catch (...) {
        print_bytes(shading.end());
        throw;
    }
    print_bytes(shading.end());
    return generation.result();
}

template <typename T>
Json::Array json_list(const std::vector<T>& values) {
    return Json::Array(values.begin(), values.end());
}

Json statistics_json(const Stats& stats) {
    return Json::Object{{"cycles", stats.cycles},
                        {"tau", stats.tau()},
                        {"mean_nodes", stats.mean_nodes()},
                        {"plain_share", stats.plain_share()},
                        {"accepted_by_depth", json_list(stats.accepted_by_depth)},
                        {"prefill_seconds", stats.prefill_seconds},
                        {"decode_seconds", stats.decode_seconds},
                        {"tokens_per_second", stats.tokens_per_second()},
                        {"draft_seconds", stats.draft_seconds},
                        {"verify_seconds", stats.verify_seconds},
                        {"sample_seconds", stats.sample_seconds},
                        {"host_seconds", stats.host_seconds}};
}

Json result_json(const GenerationResult& result, const Request& request) {
    Json json(Json::Object{{"schema", "aerie-generate-1"},
                           {"prompt_ids", json_list(request.prompt)},
                           {"ids", json_list(result.ids)},
                           {"text", result.text},
                           {"finish_reason", aerie::name(result.finish)},
                           {"seed", request.answer.sampling.seed},
                           {"stats", statistics_json(result.stats)}});
    if (request.answer.with_logprobs)
        json.set("logprobs", Json::Array(result.logprobs.begin(), result.logprobs.end()));
    return json;
}

// Decodes the same request without a drafter; the exit code says whether the ids are the same. The
// time of a short text says little, so such texts are decoded both ways in turn, up to seven times;
// trees that are sized by measurement take other passes each time, so these are medians, too.
int compare_plain(Model& model, Session& drafting, const Tokenizer& tokenizer,
                  GenerationResult drafted, Request request) {
    constexpr double kEnoughSeconds = 3;
    const Model::Drafting none = model.start_session(make_none());
    request.on_text = {};
    request.on_read = {};
    Timings plain_speeds, speeds, ratios, plain_passes, passes;
    GenerationResult plain;
    bool equal = true, hardly_drafted = true;
    for (double seconds = 0;;) {
        plain = generate(*none.session, tokenizer, request);
        if (plain.finish == FinishReason::cancelled) return interrupted();
        equal = equal && plain.ids == drafted.ids;
        hardly_drafted = hardly_drafted && is_hardly_drafted(drafted.stats);
        const double plain_speed = plain.stats.tokens_per_second();
        const double speed = drafted.stats.tokens_per_second();
        plain_speeds.add(plain_speed);
        speeds.add(speed);
        ratios.add(speed / plain_speed);
        plain_passes.add(plain.stats.cycles);
        passes.add(drafted.stats.cycles);
        seconds += plain.stats.decode_seconds + drafted.stats.decode_seconds;
        if (seconds >= kEnoughSeconds || ratios.runs() == 7 || !equal) break;
        drafted = generate(drafting, tokenizer, request);
        if (drafted.finish == FinishReason::cancelled) return interrupted();
    }
    std::fprintf(stderr,
                 "plain decoding of the same prompt: ids %s (%zu tokens), %.0f target passes "
                 "against %.0f with drafting\n",
                 equal ? "equal" : "DIFFERENT", plain.ids.size(), plain_passes.median(),
                 passes.median());
    if (plain.stats.cycles > 0) {
        std::fprintf(stderr, "speed: %.1f tokens/s plainly, %.1f with drafting",
                     plain_speeds.median(), speeds.median());
        // A factor would be the noise of two runs of the same kind.
        if (hardly_drafted)
            std::fputs(": no factor, for hardly anything was drafted\n", stderr);
        else
            std::fprintf(stderr,
                         ": %.2f times as fast (medians of %d runs each; of a pair from %.2f to "
                         "%.2f)\n",
                         speeds.median() / plain_speeds.median(), ratios.runs(), ratios.min(),
                         ratios.max());
    }
    return equal ? 0 : 1;
}

}  // namespace

int run_generate(const GenerateOptions& options) {
    // Cheap checks come before the loading, which takes time.
    sampling_of(options.sampling, {});
    LoadOptions load_options = locate(options.model);
    const std::optional<std::string> prompt = checked_prompt(options);
    if (!options.quiet) {
        tell_flags(options);
        tell_unused(options.model, load_options.draft.method);
    }
    ProgressLine progress(options.quiet);
    load_options.on_progress = [&](const LoadProgress& now) { progress.show(now.line); };
    ModelFiles files = ModelFiles::open(load_options);
    const Sampling sampling = sampling_of(options.sampling, generation_config(files.target));
    if (!options.quiet) {
        tell_assumed(files);
        tell_unused(options.sampling, sampling);
    }
    check_comparison(options, sampling);
    const Tokenizer tokenizer = load_tokenizer(files);
    Request request;
    set_prompt(request, tokenizer, options, prompt);
    Model model(std::move(files), load_options);
    Model::Drafting drafting = model.start_session(load_options.draft);
    const LearnedCosts costs(model, drafting);

    request.answer.sampling = sampling;
    request.max_tokens = options.max_tokens;
    if (!options.ignore_eos) request.eos_ids = eos_ids(model.files(), tokenizer);
    request.stops = options.stops;
    request.answer.with_logprobs = options.logprobs;
    request.cancelled = interrupted;
    end_cleanly_on_signals();
    ReadingLine reading(progress);
    request.on_read = [&](int done, int all) { reading.show(done, all); };
    const GenerationResult result =
        generate_shown(*drafting.session, tokenizer, request, options, progress);
    progress.clear();

    print(options.json ? result_json(result, request).dump() + "\n" : "\n");
    if (!options.quiet) {
        print_statistics(result, drafter_name(model.options().draft), request.answer.sampling);
        warn_of_bad_head(result.stats, model.files());
        point_to_chat(options, result, request.eos_ids, tokenizer);
    }
    if (options.model.profile) print_op_times(model.backend());
    if (result.finish == FinishReason::cancelled) return interrupted();
    costs.review();
    return options.compare_plain
               ? compare_plain(model, *drafting.session, tokenizer, result, request)
               : 0;
}

}  // namespace aerie
