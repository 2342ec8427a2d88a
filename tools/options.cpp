// All flags, with the names that llama.cpp and vLLM users know.
#include "options.h"

#include <algorithm>
#include <climits>
#include <memory>
#include <random>
#include <sstream>

#include "arguments.h"
#include "completion.h"
#include "core/error.h"
#include "help.h"
#include "option_checks.h"

namespace aerie {

namespace {

const Choices<DType> kKvTypes = {{"f32", DType::F32}, {"f16", DType::F16}};
void add_generate(CLI::App& app, GenerateOptions& options) {
    app.option_defaults()->group("Input");
    app.add_option("-m,--model", options.model.model, kModelHelp)->type_name("MODEL");
    add_prompt(app, options.prompt, options.prompt_file);
    add_conversation(app, options);
    app.option_defaults()->group("Many prompts");
    app.add_option("--prompts", options.prompts,
                   "answer all prompts of this file, several in one pass: JSON Lines with "
                   "\"prompt\", \"turns\", \"messages\" or \"conversations\", which are chats, or "
                   "\"text\", which is continued; NAME.txt is one text, divided by lines "
                   "\"---8<---\"; - is stdin")
        ->type_name("FILE");
    app.add_option("-o,--output", options.output,
                   "file of the answers, a line a prompt (docs/json.md; default: stdout); what an "
                   "interrupted run wrote there is kept, and the same command goes on")
        ->type_name("FILE");
    add_whole(app, "--parallel", options.parallel, Range{1, kMaxTogether},
              "prompts that are answered at a time, in the same passes of the model (default: 8)");
    app.option_defaults()->group("Output");
    add_whole(app, "-n,--predict", options.max_tokens, Range{-1, 1 << 24},
              "most tokens (default: -1, to the end of the context)");
    app.add_flag("--ignore-eos", options.ignore_eos, "go on after tokens that end a text");
    app.add_option("--stop", options.stops, "end before this text; may be given several times")
        ->allow_extra_args(false)
        ->check(expect("a text in UTF-8 that is not empty",
                       [](const std::string& text) { return !text.empty() && is_utf8(text); }))
        ->type_name("TEXT");
    app.add_flag("--json", options.json, "print one JSON object instead of the text");
    app.add_flag("--logprobs", options.logprobs, "with --json: log-probability of each token");
    app.add_flag("-q,--quiet", options.quiet, "no progress and no statistics on stderr");
    app.add_flag("--shade", options.shade, "show drafted tokens in another colour, on a terminal");
    app.add_flag("--compare-plain", options.compare_plain,
                 "then decode again without drafting: same tokens? how much faster?");
    add_sampling_options(app, options.sampling);
    add_model_options(app, options.model);
    add_examples(app, {"aerie generate --chat --shade -p \"Why is the sky blue?\"",
                       "aerie generate -m Qwen3-8B -md Qwen3-0.6B --chat -p \"Hello\"",
                       "aerie generate --chat -p \"Hello\" -n 64 --compare-plain",
                       "aerie generate -m model.gguf -f question.txt --temp 0 --json",
                       "aerie generate --prompts q.jsonl -n 256 --parallel 8 -o answers.jsonl"});
}

void add_info(CLI::App& app, InfoOptions& options) {
    app.add_option("model,-m,--model", options.model.model, kModelHelp)->type_name("MODEL");
    app.add_flag("--json", options.json, "print one JSON object");
    add_model_options(app, options.model);
    add_examples(app, {"aerie info", "aerie info -m Qwen3-0.6B-Q8_0.gguf -c 32768",
                       "aerie info -m Qwen3-0.6B --head Qwen3-0.6B-eagle3 --json"});
}

void add_models(CLI::App& app, ModelsOptions& options) {
    app.add_option("action", options.action, "rm deletes a model from Hugging Face's cache")
        ->type_name("rm");
    app.add_option("name", options.name,
                   "the model to delete: ORG/NAME, ORG/NAME:QUANT or the address of a file")
        ->type_name("NAME");
    app.add_flag("--json", options.json, "print an object");
    app.add_flag("-y,--yes", options.yes, "delete without asking");
    add_examples(app,
                 {"aerie models", "aerie models rm bartowski/Llama-3.2-3B-Instruct-GGUF:Q8_0"});
}

void add_cache(CLI::App& app, CacheOptions& options) {
    app.add_flag("--json", options.json, "print an object");
    app.add_flag("--clear", options.clear, "delete it; it comes again as it is needed");
    add_examples(app, {"aerie cache", "aerie cache --clear"});
}

void add_forget(CLI::App& app, ForgetOptions&) {
    add_examples(app, {"aerie forget"});
}

void add_completion(CLI::App& app, CompletionOptions& options) {
    app.add_option("shell", options.shell, "bash, zsh or fish")
        ->required()
        ->check(expect("bash, zsh or fish",
                       [](const std::string& text) {
                           return text == "bash" || text == "zsh" || text == "fish";
                       }))
        ->type_name("SHELL");
    app.footer("To be evaluated when a shell starts, in ~/.bashrc, ~/.zshrc or config.fish.");
    add_examples(app, {"eval \"$(aerie completion bash)\"", "eval \"$(aerie completion zsh)\"",
                       "aerie completion fish | source"});
}

void add_pull(CLI::App& app, PullCommandOptions& options) {
    app.add_option("name", options.name,
                   "ORG/NAME, or ORG/NAME:QUANT for one of several GGUF files (default: Q4_K_M)")
        ->required()
        ->type_name("REPOSITORY");
    app.add_flag("-q,--quiet", options.quiet, "no progress on stderr");
    add_examples(app, {"aerie pull bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M",
                       "aerie pull yuhuili/EAGLE-llama2-chat-7B"});
}

void add_listing(CLI::App& app, ListingOptions& options) {
    app.add_flag("--json", options.json, "print one JSON object");
    add_examples(app, {"aerie devices", "aerie devices --json"});
}

// Adds a command; `chosen` gets its options if it is parsed.
template <typename Options>
void add_command(CLI::App& app, std::optional<Options>& chosen, const char* name, const char* help,
                 void (*add)(CLI::App&, Options&)) {
    CLI::App* command = app.add_subcommand(name, help);
    const auto options = std::make_shared<Options>();
    add(*command, *options);
    command->callback([&chosen, command, options] {
        if constexpr (requires { options->model.given; })
            for (const CLI::Option* option : command->get_options())
                if (option->count() > 0 && !option->get_lnames().empty())
                    options->model.given.push_back("--" + option->get_lnames().front());
        chosen = std::move(*options);
    });
}

void check_together(const GenerateOptions& options) {
    if (options.prompt && options.prompt_file)
        throw UsageError("--prompt and --file exclude each other");
    if (options.prompt_ids && (options.prompt || options.prompt_file || options.chat.wanted()))
        throw UsageError("--prompt-ids is the whole prompt: no other and no chat beside it");
    if (options.prompts) {
        if (options.prompt || options.prompt_file || options.prompt_ids || options.chat.messages)
            throw UsageError("--prompts is all that is asked: no other prompt beside it");
        if (options.compare_plain || options.shade || options.json)
            throw UsageError(
                "--prompts writes a line of JSON for each prompt: without --compare-plain, --shade "
                "and --json");
        return;
    }
    if (options.output) throw UsageError("--output is for the answers to --prompts FILE");
    if (options.logprobs && !options.json)
        throw UsageError("--logprobs are part of the object that --json prints: add --json");
}

void check_together(const ChatOptions& options) {
    if (options.single_turn && !options.message)
        throw UsageError("--single-turn needs the message: aerie chat --single-turn \"Hello\"");
    if (options.message && options.message->empty())
        throw UsageError("the message is empty: give a text");
}

void check_together(const TokenizeOptions& options) {
    const int given = int(options.prompt.has_value()) + int(options.prompt_file.has_value()) +
                      int(options.strings.has_value()) + int(options.decode.has_value());
    if (given > 1) throw UsageError("--prompt, --file, --strings and --decode exclude each other");
}

}  // namespace

void add_model_options(CLI::App& app, ModelOptions& options) {
    app.option_defaults()->group("Model, device and memory");
    add_whole(app, "-c,--ctx-size", options.context, Range{0, 1 << 24},
              "tokens of prompt and answer; 0, the default: the model's own, or what half of the "
              "memory holds");
    add_device_options(app, options);
    add_draft_options(app, options);
}

void add_sampling_options(CLI::App& app, SamplingOptions& options) {
    app.option_defaults()->group("Sampling");
    const auto add_number = [&](const char* flags, auto& value, const char* type,
                                const char* help) {
        app.add_option(flags, value, help)->check(number())->type_name(type);
    };
    add_number(
        "--temp,--temperature", options.temperature, "T",
        "0 takes the likeliest token (default: the model's, which `aerie info` shows, else 0.7)");
    add_whole(app, "--top-k", options.top_k, Range{-1, INT_MAX},
              "keep the K likeliest; 0: off (default: the model's)")
        ->type_name("K");
    add_number("--top-p", options.top_p, "P",
               "keep the likeliest whose probabilities sum to P; 1: off (default: the model's, "
               "else 0.95)");
    add_number("--min-p", options.min_p, "P",
               "keep those at least P times as likely as the best (default: 0, off)");
    add_number("--repeat-penalty,--repetition-penalty", options.repetition_penalty, "X",
               "weakens tokens that are in the prompt or the answer; 1: off (default: the model's, "
               "else off)");
    add_number("--frequency-penalty", options.frequency_penalty, "X",
               "taken off a token's logit for each time it is in the answer (default: 0)");
    add_number("--presence-penalty", options.presence_penalty, "X",
               "taken off a token's logit if it is in the answer (default: 0)");
    add_whole(app, "-s,--seed", options.seed, Range<uint64_t>{0, UINT64_MAX},
              "same seed, same text; -1, the default: a random one, which is shown",
              "-1 or a whole number")
        ->transform(CLI::Validator(
            [](std::string& text) {
                if (text == "-1") text = std::to_string(std::random_device()());
                return std::string();
            },
            ""));
}

void add_device_options(CLI::App& app, ModelOptions& options) {
    app.add_option("--device", options.device, "see `aerie devices` (default: the best)")
        ->type_name("NAME");
    app.add_flag("--profile", options.profile,
                 "time each op on the device and print a table on stderr; slower");
    add_type_options(app, options);
    app.add_flag("--offline", options.offline, "download nothing, whatever -hf names");
}

void add_type_options(CLI::App& app, ModelOptions& options) {
    add_whole(app, "-t,--threads", options.threads, Range{1, kMaxThreads},
              "CPU threads (default: one per core)");
    add_choice(app, "--weights", options.weights, kWeightChoices,
               "type of the target's weights (default: as stored)");
    add_choice(app, "--kv", options.kv, kKvTypes, "type of the KV cache (default: f16)");
}

CommandLine parse_command_line(int argc, char** argv) {
    CLI::App app{
        "aerie runs LLaMA-family models. An EAGLE head drafts tokens ahead and the model checks "
        "the drafts in one pass: often faster, and not one token changed.",
        "aerie"};
    app.set_version_flag("--version", "aerie " AERIE_VERSION);
    app.require_subcommand(0, 1);
    app.formatter(help_formatter());
    app.set_help_flag("-h,--help,--help-all", "this; --help-all shows flags for experiments too");
    CommandLine line;
    add_command(app, line.generate, "generate", "Continue a prompt", add_generate);
    add_command(app, line.chat, "chat", "Talk to a model, turn by turn", add_chat);
    add_command(app, line.tokenize, "tokenize", "Text as the model's tokens, and back",
                add_tokenize);
    add_command(app, line.render, "render", "A conversation as the model's chat template writes it",
                add_render);
    add_command(app, line.info, "info", "What a model holds and the memory it will need", add_info);
    add_command(app, line.devices, "devices", "Devices that this program can use", add_listing);
    add_command(app, line.models, "models",
                "Models on this machine: bundled ones, and those of other programs", add_models);
    add_command(app, line.cache, "cache", "What aerie keeps on disk to start faster", add_cache);
    add_command(app, line.perplexity, "perplexity", "How well a model predicts a given text",
                add_perplexity);
    add_command(app, line.synth, "synth",
                "Write a random-weight model of a given shape, and its head", add_synth);
    add_command(app, line.convert, "convert", "Write a model as one GGUF file", add_convert);
    add_command(app, line.bench, "bench", "How fast a model runs here", add_bench);
    add_command(app, line.compare, "compare", "Whether two devices or more compute the same",
                add_compare);
    add_command(app, line.train, "train", "Train a draft head for a model", add_train);
    add_command(app, line.forget, "forget", "Delete what --learn has learnt, and from what",
                add_forget);
    add_command(app, line.pull, "pull", "Download a model from Hugging Face's Hub", add_pull);
    add_command(app, line.completion, "completion", "Print the completion script of a shell",
                add_completion);
    add_command(app, line.serve, "serve", "Answer over HTTP, as OpenAI's API does", add_serve);
    app.footer(
        "`aerie COMMAND --help` shows the flags of a command. llama.cpp's names of flags, such as "
        "-hf, -ngl and -md, are understood too, and `aerie run MODEL [MESSAGE]`, `aerie list`, "
        "`aerie help COMMAND` and `aerie version`. AERIE_MODEL, AERIE_HEAD, AERIE_DEVICE and "
        "AERIE_THREADS stand for flags that are not given; AERIE_MODELS is one more folder to find "
        "models in. Exit codes: 0 done, 1 failed, 2 wrong usage, 128 + signal if stopped (serve: "
        "0).");
    add_examples(app, {"aerie chat", "aerie run ~/models/Llama-3.2-3B-Instruct-Q4_K_M.gguf",
                       "aerie chat -hf bartowski/Llama-3.2-3B-Instruct-GGUF", "aerie serve"});

    const std::vector<std::string> given(argv + 1, argv + argc);
    show_experiments(app, std::find(given.begin(), given.end(), "--help-all") != given.end());
    std::vector<std::string> arguments = understood(app, given);
    std::reverse(arguments.begin(), arguments.end());  // the order that CLI11 expects
    try {
        app.parse(std::move(arguments));
    } catch (const CLI::Success& help) {
        std::ostringstream text;
        app.exit(help, text, text);
        line.text = text.str();
        return line;
    } catch (const CLI::ParseError& error) {
        const auto given = app.get_subcommands();
        throw UsageError(std::string(error.what()) + " (see aerie " +
                         (given.empty() ? "" : given.front()->get_name() + " ") + "--help)");
    }
    if (app.get_subcommands().empty()) throw UsageError("no command given (see aerie --help)");
    if (line.completion) line.text = completion_script(app, line.completion->shell);
    if (line.generate) check_together(*line.generate);
    if (line.chat) check_together(*line.chat);
    if (line.tokenize) check_together(*line.tokenize);
    if (line.compare && line.compare->prompt && line.compare->prompt_file)
        throw UsageError("--prompt and --file exclude each other");
    return line;
}

}  // namespace aerie
