// Flags of the commands that measure: perplexity, synth, bench, compare.
#include "help.h"
#include "option_checks.h"

#include "model/make/shapes.h"

namespace aerie {

namespace {

const Choices<DType> kStoredTypes = {
    {"f16", DType::F16}, {"bf16", DType::BF16}, {"f32", DType::F32}};

// The kinds of which heads with random weights are made: "eagle" for "-eagle".
Choices<const DraftHead*> random_kinds() {
    Choices<const DraftHead*> kinds;
    for (const DraftHead& head : draft_heads())
        if (head.random.shape) kinds.emplace_back(head.ending.substr(1), &head);
    return kinds;
}

std::string shapes_help() {
    std::string names;
    for (const std::string& name : shape_names()) names += (names.empty() ? "" : ", ") + name;
    return names;
}

// "1,8,16": one pass of each number of rows.
// "1,2,4": up to 64 numbers from 1 to `most`.
std::vector<int> parse_counts(const std::string& flag, const std::string& text, int most) {
    std::vector<int> counts;
    const char* at = text.data();
    const char* end = at + text.size();
    while (true) {
        int value = 0;
        while (at < end && *at == ' ') ++at;
        const auto [rest, error] = std::from_chars(at, end, value);
        const bool ends = rest == end || *rest == ',';
        if (error != std::errc() || !ends || value < 1 || value > most || counts.size() > 63)
            refuse(flag, "numbers from 1 to " + std::to_string(most) + ", such as 1,2,4", text);
        counts.push_back(value);
        if (rest == end) return counts;
        at = rest + 1;
    }
}

// `of`: the option that names the shape.
void add_shape_changes(CLI::App& app, ShapeChanges& changes, CLI::Option* of) {
    app.option_defaults()->group("Sizes other than the shape's");
    const auto add = [&](const char* flag, std::optional<int>& value, const char* help) {
        add_whole(app, flag, value, Range{1, 1 << 24}, help)->needs(of);
    };
    add("--hidden", changes.hidden, "hidden size");
    add("--intermediate", changes.intermediate, "columns of the feed-forward layer");
    add("--layers", changes.layers, "decoder layers");
    add("--heads", changes.heads, "attention heads");
    add("--kv-heads", changes.kv_heads, "heads of keys and values (default: --heads)");
    add("--head-dim", changes.head_dim, "size of a head (default: hidden size / heads)");
    add("--vocab", changes.vocab, "vocabulary");
}

}  // namespace

void add_perplexity(CLI::App& app, PerplexityOptions& options) {
    app.option_defaults()->group("Input and output");
    app.add_option("file,-f,--file", options.file,
                   "text; lines \"---8<---\" divide documents; - is stdin")
        ->type_name("FILE");
    add_whole(app, "-c,--ctx-size", options.window, Range{2, 1 << 24},
              "tokens of a window, scored by itself (default: 512)");
    app.add_flag("--json", options.json, "print one JSON object");
    app.add_flag("-q,--quiet", options.quiet, "no progress on stderr");
    app.option_defaults()->group("Model and device");
    app.add_option("-m,--model", options.model.model, kModelHelp)->type_name("MODEL");
    add_device_options(app, options.model);
    add_examples(app, {"aerie perplexity wiki.test.raw",
                       "aerie perplexity wiki.test.raw -m model-Q4_K_M.gguf"});
}

void add_synth(CLI::App& app, SynthOptions& options) {
    app.option_defaults()->group("Model");
    CLI::Option* like = app.add_option("--like", options.like, "shape: " + shapes_help());
    like->required()->type_name("SHAPE");
    std::string places;
    for (const auto& [kind, head] : random_kinds())
        places += (places.empty() ? "FOLDER-" : " or FOLDER-") + kind;
    app.add_option("-o,--output", options.folder,
                   "folder to make; its EAGLE head goes to " + places)
        ->required()
        ->type_name("FOLDER");
    add_choice(app, "--weights", options.weights, kStoredTypes,
               "type of the weights (default: f16)");
    add_choice(app, "--head", options.head, random_kinds(), "kind of the head (default: eagle)");
    add_whole(app, "-s,--seed", options.seed, Range<uint64_t>{0, UINT64_MAX},
              "same seed, same weights (default: 1)");
    app.add_flag("-q,--quiet", options.quiet, "print nothing");
    add_shape_changes(app, options.changes, like);
    add_examples(app,
                 {"aerie synth --like tinyllama-1.1b -o /tmp/tinyllama",
                  "aerie synth --like tinyllama-1.1b --weights bf16 --layers 4 -o /tmp/small"});
}

void add_convert(CLI::App& app, ConvertOptions& options) {
    app.add_option("model,-m,--model", options.model, kModelHelp)->type_name("MODEL");
    app.add_option("-o,--output", options.output, "file to make")
        ->required()
        ->type_name("FILE.gguf");
    add_choice(app, "--weights", options.weights, kWeightChoices,
               "type of the matrices (default: as they are)");
    app.add_flag("-q,--quiet", options.quiet, "print warnings alone");
    add_examples(app, {"aerie convert Qwen3-0.6B -o Qwen3-0.6B-q4_0.gguf --weights q4_0"});
}

void add_bench(CLI::App& app, BenchOptions& options) {
    app.option_defaults()->group("What is measured");
    CLI::Option* model =
        app.add_option("-m,--model", options.model.model, kModelHelp)->type_name("MODEL");
    CLI::Option* like =
        app.add_option("--like", options.like, "random weights of a shape: " + shapes_help());
    like->excludes(model)->type_name("SHAPE");
    app.add_option_function<std::string>(
           "--rows",
           [&options](const std::string& text) {
               options.rows = parse_counts("--rows", text, kMaxNodes);
           },
           "rows of the target passes (default: 1,2,4,8,16,32,60,64)")
        ->type_name("M,M,...");
    app.add_option_function<std::string>(
           "--sequences",
           [&options](const std::string& text) {
               options.sequences = parse_counts("--sequences", text, kMaxTogether);
           },
           "also decode so many sequences in shared passes, such as 1,2,4,8 (EAGLE's Table 7)")
        ->type_name("N,N,...");
    add_whole(app, "-p,--prompt-tokens", options.prompt_tokens, Range{1, 1 << 20},
              "tokens read before; their text does not matter (default: 128)",
              "a number of tokens (aerie bench takes no text)");
    app.add_option("--seconds", options.seconds,
                   "time to measure for; three rounds at least (default: 60)")
        ->check(number_from(0, "seconds, 0 or more"))
        ->type_name("S");
    app.add_option("--tau", options.tau,
                   "acceptance length (of the tree 60,6,10) in place of the recorded one")
        ->check(number_from(1, "a number of at least 1"))
        ->type_name("X");
    app.option_defaults()->group("Output");
    app.add_flag("--json", options.json, "print one JSON object (see bench/README.md)");
    app.add_option("--html", options.html, "write a page with curves and tables")
        ->type_name("FILE");
    app.add_flag("-q,--quiet", options.quiet, "no progress and no table on stderr");
    app.option_defaults()->group("Device and types");
    add_device_options(app, options.model);
    app.option_defaults()->group("Drafting");
    add_choice(app, "--draft", options.model.draft,
               draft_choices([](const DraftMethod& method) { return method.is_replayed; }),
               "whether drafting is measured too (default: with a head)");
    add_head_options(app, options.model);
    add_tree_option(app, options.model);
    add_shape_changes(app, options.changes, like);
    add_examples(app, {"aerie bench -m ~/models/Qwen3-0.6B",
                       "aerie bench --like tinyllama-1.1b --weights q8_0 --html out.html"});
}

void add_compare(CLI::App& app, CompareOptions& options) {
    app.option_defaults()->group("Devices and types");
    app.add_option("--device", options.devices,
                   "given twice or more, see `aerie devices`; the first is the reference. Also "
                   "cpu:portable, "
                   "cpu:avx2, cpu:avxvnni, cpu:avx512, cpu:amx")
        ->allow_extra_args(false)
        ->type_name("NAME");
    app.add_option("-m,--model", options.model.model, kModelHelp)->type_name("MODEL");
    add_type_options(app, options.model);
    app.option_defaults()->group("Prompts");
    app.add_option("-p,--prompt", options.prompt, "prompt (default: three of our own)")
        ->type_name("TEXT");
    app.add_option("-f,--file", options.prompt_file,
                   "prompts, divided by lines \"---8<---\"; - is stdin")
        ->type_name("FILE");
    add_whole(app, "-n,--predict", options.max_tokens, Range{0, 1 << 24},
              "most tokens of an answer (default: 64; 0 compares the prompts alone)");
    app.option_defaults()->group("Output");
    app.add_flag("--json", options.json, "print one JSON object (see tools/README.md)");
    app.add_option("--html", options.html, "write a page with plots")->type_name("FILE");
    app.add_flag("-q,--quiet", options.quiet, "no progress on stderr");
    app.option_defaults()->group("Drafting, which must not change a text on any device");
    add_choice(app, "--draft", options.model.draft,
               draft_choices([](const DraftMethod& method) { return method.is_replayed; }),
               "whether drafted texts are compared (default: with a head)");
    add_head_options(app, options.model);
    app.add_option_function<std::string>(
           "--tree",
           [&options](const std::string& text) {
               options.model.drafting.tree = parse_tree(text);
               if (!options.model.drafting.tree) refuse("--tree", "N,L,K", text);
           },
           "N nodes with the root, L levels, top K (default: 60,6,10)")
        ->type_name("N,L,K");
    app.footer(
        "Exit code: 0 if every device is within the tolerances of tools/README.md, 1 if not (or if "
        "something failed), 2 if the command cannot be run as it stands.");
    add_examples(app, {"aerie compare --device cpu --device vulkan --html report.html"});
}

}  // namespace aerie
