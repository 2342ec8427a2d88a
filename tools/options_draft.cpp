// Flags about drafting.
#include "help.h"
#include "option_checks.h"

namespace aerie {

namespace {

const Choices<Proposals> kProposals = {{"coupled", Proposals::coupled},
                                       {"plain", Proposals::plain}};
const Choices<AcceptRule> kAcceptRules = {{"keyed", AcceptRule::keyed}, {"p/q", AcceptRule::ratio}};

// "a, b or c"; `last` stands before the last one.
std::string listed(const std::vector<std::string>& words, const char* last) {
    std::string list;
    for (const std::string& word : words) {
        const bool is_last = &word == &words.back();
        list += (list.empty() ? "" : is_last ? last : ", ") + word;
    }
    return list;
}

std::string methods_where(bool (*wanted)(const DraftMethod&), const char* last) {
    std::vector<std::string> names;
    for (const DraftMethod& method : draft_methods())
        if (wanted(method)) names.push_back(method.name);
    return listed(names, last);
}

std::string draft_help() {
    std::string help =
        "what drafts tokens (default: " + default_draft_method(&draft_heads().front(), {}).name +
        " with a head, the head's own method with a fixed tree, " +
        default_draft_method(nullptr, {}).name + " without a head).";
    for (const DraftMethod& method : draft_methods())
        help += "\n" + method.name + ": " + method.help + ".";
    return help;
}

std::string head_help() {
    std::vector<std::string> families, places;
    for (const DraftHead& head : draft_heads()) {
        places.push_back("MODEL" + head.ending);
        if (head.needs != DraftNeeds::head) continue;
        // "EAGLE" for "an EAGLE-3 head".
        const size_t begin = head.name.find(' ') + 1;
        const std::string family =
            head.name.substr(begin, head.name.find_first_of("- ", begin) - begin);
        if (families.empty() || families.back() != family) families.push_back(family);
    }
    return "what drafts: an " + listed(families, " or ") +
           " head, or a smaller model of the same tokens (-md in llama.cpp); which one is seen in "
           "its files (default: " +
           listed(places, " or ") + " beside MODEL, if it is there)";
}

}  // namespace

std::optional<TreeShape> parse_tree(const std::string& text) {
    if (text == "auto") return std::nullopt;
    TreeShape shape;
    char rest = 0;
    if (std::sscanf(text.c_str(), "%9d,%9d,%9d%c", &shape.nodes, &shape.levels, &shape.top_k,
                    &rest) != 3)
        refuse("--tree", "auto, published or N,L,K such as 60,6,10", text);
    check_tree_shape(shape);
    return shape;
}

LookaheadShape parse_lookahead(const std::string& text) {
    LookaheadShape shape;
    char rest = 0;
    if (std::sscanf(text.c_str(), "%9d,%9d,%9d%c", &shape.window, &shape.ngram, &shape.guesses,
                    &rest) != 3)
        refuse("--lookahead", "W,N,G such as 7,5,7", text);
    check_lookahead_shape(shape);
    return shape;
}

// Ascending layers, separated by commas.
std::vector<int> parse_layers(const std::string& text) {
    constexpr int kMost = 1024;
    std::vector<int> layers;
    for (const char *at = text.data(), *end = at + text.size(); at <= end; ++at) {
        int layer = -1;
        const auto [rest, error] = std::from_chars(at, end, layer);
        if (error != std::errc() || (rest != end && *rest != ',') || layer < 0 || layer > kMost ||
            (!layers.empty() && layer <= layers.back()))
            refuse("--head-taps", "ascending layers such as 2,3,5", text);
        layers.push_back(layer);
        at = rest;
    }
    return layers;
}

double parse_base(const std::string& text) {
    const double base = decimal(text);
    if (!(base >= 1 && base <= 1e12)) refuse("--head-rope-theta", "a number from 1 to 1e12", text);
    return base;
}

void add_head_options(CLI::App& app, ModelOptions& options) {
    app.add_option("--head,--model-draft", options.head, head_help())->type_name("MODEL");
    HeadOptions& head = options.head_options;
    app.add_option_function<std::string>(
           "--head-taps", [&head](const std::string& text) { head.taps = parse_layers(text); },
           "layers whose inputs an EAGLE-3 head reads (default: as its files say)")
        ->type_name("N,N,N")
        ->group(kExperiments);
    app.add_option_function<std::string>(
           "--head-rope-theta", [&head](const std::string& text) { head.theta = parse_base(text); },
           "base of the head's RoPE (default: as its files say, else 10000)")
        ->type_name("X")
        ->group(kExperiments);
    add_whole(app, "--draft-vocab", options.head_options.vocab, Range{2, 1 << 24},
              "tokens that an EAGLE-1/2 head may draft: the first ones, or the most frequent with "
              "--token-counts; fewer are faster (default: all)");
    app.add_option("--token-counts", options.head_options.token_counts,
                   "how often tokens occur, as `aerie tokenize --counts` writes it")
        ->type_name("FILE");
    add_choice(app, "--draft-weights", options.draft_weights, kWeightChoices,
               "type of the weights that draft (default: q8_0; q4_0 beside a target of four bits)");
}

void add_tree_option(CLI::App& app, ModelOptions& options) {
    DraftOptions& drafting = options.drafting;
    app.add_option_function<std::string>(
           "--tree",
           [&drafting](const std::string& text) {
               drafting.is_published = text == "published";
               drafting.tree = drafting.is_published ? std::nullopt : parse_tree(text);
           },
           "auto (default): chosen in each cycle by what it costs on this device and how much "
           "was accepted; none where none pays.\n"
           "N,L,K: always N nodes with the root, L levels, top K; at most so many with grafted and "
           "best; no effect with " +
               methods_where(
                   [](const DraftMethod& method) {
                       return !method.takes_tree && method.name != kNoDrafts;
                   },
                   " and ") +
               ".\n"
               "published: always the one of the method's authors, 60,6,10 of EAGLE-2, 26 nodes of "
               "EAGLE-1, a "
               "chain of 5, Medusa's and Hydra's fixed tree of 64 nodes, lookahead's 7,5,7")
        ->type_name("auto|N,L,K|published");
}

Choices<std::string> draft_choices(bool (*wanted)(const DraftMethod&)) {
    Choices<std::string> choices;
    for (const DraftMethod& method : draft_methods())
        if (wanted(method)) choices.emplace_back(method.name, method.name);
    return choices;
}

void add_draft_options(CLI::App& app, ModelOptions& options) {
    app.option_defaults()->group("Drafting (never changes the text, but for --accept p/q)");
    DraftOptions& drafting = options.drafting;
    const auto any = [](const DraftMethod&) { return true; };
    add_choice(app, "--draft", options.draft, draft_choices(any), draft_help(),
               {{kFormerBest, kFormerBest}});
    add_head_options(app, options);
    add_tree_option(app, options);
    add_whole(app, "--chain-length", drafting.chain_length, Range{1, kMaxDepth},
              "tokens that --draft chain always drafts (default: as many as pay, 10 at most)");
    app.add_option_function<std::string>(
           "--lookahead",
           [&drafting](const std::string& text) { drafting.lookahead = parse_lookahead(text); },
           "with --draft lookahead: W columns of its window, N tokens of an n-gram, at most G of "
           "them in a pass; (N-1) (W+G) <= 63 (default: as much of 7,5,7 as pays)")
        ->type_name("W,N,G");
    app.add_option_function<std::string>(
           "--tree-file",
           [&drafting](const std::string& file) { drafting.static_tree = read_tree_file(file); },
           "tree of --draft " +
               methods_where([](const DraftMethod& method) { return method.takes_tree_file; },
                             " or ") +
               ": JSON list of paths of child ranks")
        ->type_name("FILE")
        ->group(kExperiments);
    add_choice(app, "--accept", drafting.accept, kAcceptRules,
               "with --temp: drafts taken where the same seed gives them without drafting (keyed, "
               "default), or drawn and taken with probability p/q: another text of the same "
               "distribution, with --draft chain or eagle1");
    app.option_defaults()->group(kExperiments);
    add_choice(app, "--proposals", drafting.proposals, kProposals,
               "drafts ranked with the sampling noise (coupled, default) or without (plain)");
    app.add_flag_callback(
        "--no-value", [&drafting] { drafting.use_value = false; },
        "eagle2 ranks nodes by their own probability, not their path's");
    app.add_flag_callback(
        "--no-rerank", [&drafting] { drafting.rerank = false; },
        "eagle2 verifies the best K of each level, not the best of all");
}

}  // namespace aerie
