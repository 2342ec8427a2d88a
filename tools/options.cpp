// All flags, with the names that llama.cpp and vLLM users know.
#include "options.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "core/error.h"

namespace aerie {

namespace {

const std::map<std::string, DType> kFloatTypes = {
    {"f32", DType::F32}, {"f16", DType::F16}, {"bf16", DType::BF16}};
const std::map<std::string, DType> kKvTypes = {{"f32", DType::F32}, {"f16", DType::F16}};

void add_type(CLI::App& app, const std::string& flag, std::optional<DType>& type,
              const std::string& help) {
    app.add_option_function<std::string>(
           flag, [&type](const std::string& name) { type = kFloatTypes.at(name); }, help)
        ->check(CLI::IsMember({"f32", "f16", "bf16"}))
        ->type_name("f32|f16|bf16");
}

// "60,6,10" -> a shape within limits.
TreeShape parse_tree(const std::string& text) {
    TreeShape shape;
    char rest = 0;
    if (std::sscanf(text.c_str(), "%d,%d,%d%c", &shape.nodes, &shape.levels, &shape.top_k, &rest) !=
        3)
        throw CLI::ValidationError("--tree", "expected N,L,K such as 60,6,10, not '" + text + "'");
    try {
        check_tree_shape(shape);
    } catch (const UsageError& error) {
        throw CLI::ValidationError("--tree", error.what());
    }
    return shape;
}

void add_draft_options(CLI::App& app, ModelOptions& options) {
    DraftOptions& drafting = options.drafting;
    app.add_option("--draft", options.draft,
                   "how tokens are drafted (default: eagle2 where there is a head, else none)")
        ->check(CLI::IsMember({"none", "chain", "eagle1", "eagle2"}))
        ->type_name("none|chain|eagle1|eagle2");
    app.add_option("--head,--model-draft", options.head,
                   "EAGLE-1/2 head: a folder or org/name (default: TARGET-eagle beside the target)")
        ->envname("AERIE_HEAD")
        ->type_name("FOLDER");
    app.add_option("--chain-length", drafting.chain_length, "tokens that `chain` drafts")
        ->check(CLI::Range(1, kMaxDepth))
        ->capture_default_str();
    app.add_option_function<std::string>(
           "--tree", [&drafting](const std::string& text) { drafting.tree = parse_tree(text); },
           "shape of `eagle2`'s tree: N nodes verified, root included; L levels; top K "
           "(default: 60,6,10)")
        ->type_name("N,L,K");
    app.add_option_function<std::string>(
           "--tree-file",
           [&drafting](const std::string& file) { drafting.static_tree = read_tree_file(file); },
           "`eagle1`'s tree: a JSON list of paths of child ranks (default: EAGLE's 25 nodes)")
        ->type_name("FILE");
    app.add_option("--proposals", drafting.proposals,
                   "at temperature > 0: rank candidates with the target's own noise (coupled) or "
                   "by the head alone (plain); the text is the same")
        ->transform(CLI::Transformer(std::map<std::string, Proposals>{
            {"coupled", Proposals::coupled}, {"plain", Proposals::plain}}))
        ->type_name("coupled|plain");
    app.add_flag_callback(
        "--no-value", [&drafting] { drafting.use_value = false; },
        "ablation of `eagle2`: rank nodes by their own probability");
    app.add_flag_callback(
        "--no-rerank", [&drafting] { drafting.rerank = false; },
        "ablation of `eagle2`: verify the best K of each level");
}

void add_model_options(CLI::App& app, ModelOptions& options) {
    app.add_option("-c,--ctx-size", options.context,
                   "most tokens of prompt and answer (default: the model's, at most 4096)")
        ->check(CLI::Range(2, 1 << 24))
        ->type_name("N");
    app.add_option("-t,--threads", options.threads, "CPU threads (default: one per core)")
        ->check(CLI::Range(1, 1024))
        ->envname("AERIE_THREADS")
        ->type_name("N");
    app.add_option("--device", options.device, "see `aerie devices` (default: the best)")
        ->envname("AERIE_DEVICE")
        ->type_name("NAME");
    add_type(app, "--weights", options.weights,
             "type of the target's weights (default: as stored)");
    add_type(app, "--draft-weights", options.draft_weights,
             "type of the head's weights (default: as stored)");
    app.add_option("--kv", options.kv, "type of the KV cache (default: f16)")
        ->transform(CLI::Transformer(kKvTypes))
        ->type_name("f32|f16");
    add_draft_options(app, options);
}

void add_sampling_options(CLI::App& app, GenerateOptions& options) {
    app.add_option("--temp,--temperature", options.temperature, "0: always the likeliest (default)")
        ->type_name("T");
    app.add_option("--top-k", options.top_k, "keep the K likeliest (0: off)")->type_name("K");
    app.add_option("--top-p", options.top_p, "keep the likeliest that sum to P (1: off)")
        ->type_name("P");
    app.add_option("--min-p", options.min_p, "keep those above P times the likeliest (0: off)")
        ->type_name("P");
    app.add_option("--repeat-penalty,--repetition-penalty", options.repetition_penalty,
                   "divides logits of tokens seen in prompt or answer (1: off)")
        ->type_name("X");
    app.add_option("--frequency-penalty", options.frequency_penalty,
                   "subtracted for each time that a token was put out")
        ->type_name("X");
    app.add_option("--presence-penalty", options.presence_penalty,
                   "subtracted if a token was put out")
        ->type_name("X");
    app.add_option("-s,--seed", options.seed,
                   "same seed, same text, whatever drafts (default: random, and shown)")
        ->type_name("N");
}

void add_generate(CLI::App& app, GenerateOptions& options) {
    app.add_option("-m,--model", options.model.model,
                   "folder, bundled name or org/name in the Hugging Face cache")
        ->envname("AERIE_MODEL")
        ->capture_default_str()
        ->type_name("MODEL");
    auto* prompt = app.add_option("-p,--prompt", options.prompt, "prompt, taken literally");
    app.add_option("-f,--file", options.prompt_file, "file with the prompt, - for stdin")
        ->excludes(prompt)
        ->type_name("FILE");
    app.add_flag("--chat", options.chat, "wrap the prompt in the model's chat template");
    app.add_option("-n,--predict", options.max_tokens, "most tokens (-1: to the context's end)")
        ->check(CLI::Range(-1, 1 << 24))
        ->capture_default_str()
        ->type_name("N");
    add_sampling_options(app, options);
    app.add_option("--stop", options.stops, "end before this text; may be repeated")
        ->allow_extra_args(false)
        ->type_name("TEXT");
    add_model_options(app, options.model);
    app.add_flag("--logprobs", options.logprobs, "with --json: log-probability of each token");
    app.add_flag("--json", options.json, "print one JSON object instead of the text");
    app.add_flag("-q,--quiet", options.quiet, "no progress and statistics on stderr");
    app.add_flag("--compare-plain", options.compare_plain,
                 "then decode the same prompt plainly and compare");
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
    CLI::App app{
        "aerie: LLaMA-family models, several times faster by EAGLE drafting, not one token "
        "changed.",
        "aerie"};
    app.set_version_flag("--version", "aerie " AERIE_VERSION);
    app.require_subcommand(1);
    CommandLine line;
    GenerateOptions generate;
    InfoOptions info;
    DevicesOptions devices;
    CLI::App* generate_app =
        app.add_subcommand("generate", "Continue a prompt, streaming to stdout");
    add_generate(*generate_app, generate);
    CLI::App* info_app =
        app.add_subcommand("info", "What a model holds and the memory it will need");
    info_app->add_option("model,-m,--model", info.model.model, "as in `generate`")
        ->capture_default_str()
        ->type_name("MODEL");
    add_model_options(*info_app, info.model);
    info_app->add_flag("--json", info.json, "print one JSON object");
    CLI::App* devices_app = app.add_subcommand("devices", "Devices that this program can use");
    devices_app->add_flag("--json", devices.json, "print one JSON object");

    // llama.cpp's two-letter flag, which CLI11 would read as -m d.
    std::vector<std::string> arguments;
    for (int i = argc - 1; i > 0; --i)
        arguments.push_back(std::string(argv[i]) == "-md" ? "--head" : argv[i]);
    try {
        app.parse(std::move(arguments));
    } catch (const CLI::Success& help) {
        app.exit(help);
        return line;
    } catch (const CLI::ParseError& error) {
        std::cerr << "aerie: " << error.what() << " (see aerie --help)\n";
        line.exit_code = 2;
        return line;
    }
    if (*generate_app) line.generate = std::move(generate);
    if (*info_app) line.info = std::move(info);
    if (*devices_app) line.devices = devices;
    return line;
}

}  // namespace aerie
