// A model runs even if its files give little but its layers; the user should know what was assumed,
// and which flags have no effect.
#include "assumed.h"

#include <algorithm>

#include "core/platform.h"
#include "draft/methods.h"
#include "engine/model_files.h"
#include "terminal.h"

namespace aerie {

void tell_assumed(const ModelFiles& files) {
    if (files.config.context_is_assumed)
        print_note("(" + files.target.path.string() +
                   " does not say how long a context the model takes: " +
                   std::to_string(files.config.context) + " tokens are assumed)");
}

namespace {

struct Flag {
    const char* name;
    bool (*counts)(const DraftMethod& method, const DraftOptions& options);
};

bool reads_files(const DraftMethod& method, const DraftOptions&) {
    return method.needs != DraftNeeds::nothing;
}

bool takes_tree(const DraftMethod& method, const DraftOptions& options) {
    if (options.tree) return method.takes_tree;
    return options.is_published ? method.has_published : method.name != kNoDrafts;
}

bool takes_tree_file(const DraftMethod& method, const DraftOptions&) {
    return method.takes_tree_file;
}

bool is_chain(const DraftMethod& method, const DraftOptions&) {
    return method.name == "chain";
}

bool is_lookahead(const DraftMethod& method, const DraftOptions&) {
    return method.name == "lookahead";
}

constexpr Flag kDraftFlags[] = {
    {"--head", reads_files},
    {"--head-taps", reads_files},
    {"--head-rope-theta", reads_files},
    {"--draft-vocab", reads_files},
    {"--token-counts", reads_files},
    {"--draft-weights", reads_files},
    {"--tree", takes_tree},
    {"--tree-file", takes_tree_file},
    {"--chain-length", is_chain},
    {"--lookahead", is_lookahead},
};

}  // namespace

void tell_unused(const SamplingOptions& options, const Sampling& sampling) {
    if (sampling.filters.temperature > 0) return;
    std::string flags;
    const auto name_if = [&](bool is_given, const char* flag) {
        if (is_given) flags += (flags.empty() ? "" : " ") + std::string(flag);
    };
    name_if(options.top_k.has_value(), "--top-k");
    name_if(options.top_p.has_value(), "--top-p");
    name_if(options.min_p.has_value(), "--min-p");
    name_if(options.seed.has_value(), "--seed");
    if (!flags.empty())
        print_note("(decoding is greedy at temperature 0: no effect of " + flags + ")");
}

void tell_unused(const ModelOptions& options, const std::string& method) {
    if (options.draft == kFormerBest)
        print_note(std::string("(--draft ") + kFormerBest + " is called --draft " + method +
                   " now)");
    if (const int cores = platform::processors(); options.threads.value_or(0) > cores)
        print_note("(-t " + std::to_string(*options.threads) + ": this machine has " +
                   std::to_string(cores) + " cores; more threads than cores are slower)");
    for (const Flag& flag : kDraftFlags)
        if (std::count(options.given.begin(), options.given.end(), flag.name) &&
            !flag.counts(draft_method(method), options.drafting))
            print_note(std::string("(") + flag.name + " changes nothing with --draft " + method +
                       ")");
}

}  // namespace aerie
