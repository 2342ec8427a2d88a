// Options of the user override a head's files.
#include "engine/head_options.h"

#include "core/error.h"
#include "draft/heads/kinds.h"
#include "engine/model_files.h"
#include "model/draft_vocabulary.h"

namespace aerie {

namespace {

// Vocabularies begin with the earliest merges, except that letters may be anywhere. Drafting needs
// them.
void add_letters(const Tokenizer& tokenizer, std::vector<int>& ids) {
    for (int id = 0; id < tokenizer.size(); ++id) {
        const std::string text = tokenizer.bpe().decode({id}, false);
        if (text.size() == 1 && static_cast<unsigned char>(text[0]) < 0x80) ids.push_back(id);
    }
}

}  // namespace

void apply_options(const HeadOptions& options, const ModelConfig& target, HeadConfig& head) {
    const DraftHead& kind = *head.kind;
    if (kind.complete) kind.complete(target, head);
    if (options.theta) head.rope.theta = *options.theta;
    if (options.taps.empty()) return;
    if (!kind.set_taps)
        throw UsageError("--head-taps is for " +
                         heads_where([](const DraftHead& one) { return one.set_taps != nullptr; }));
    kind.set_taps(head, options.taps);
}

// The ids that end a text are always included: otherwise the head would draft beyond each end.
std::vector<int32_t> choose_draft_ids(const HeadOptions& options, const ModelFiles& files) {
    if (options.vocab == 0) {
        if (!options.token_counts.empty()) throw UsageError("--token-counts needs --draft-vocab");
        return {};
    }
    if (!files.head_config->kind->has_draft_vocab)
        throw UsageError("--draft-vocab is for " +
                         heads_where([](const DraftHead& one) { return one.has_draft_vocab; }));
    const int vocab = files.config.vocab;
    if (options.vocab > vocab)
        throw UsageError("--draft-vocab " + std::to_string(options.vocab) +
                         ": the model has no more than " + std::to_string(vocab) + " tokens");
    std::vector<uint64_t> counts;
    if (!options.token_counts.empty()) counts = read_token_counts(options.token_counts, vocab);
    std::vector<int> always = generation_config(files.target).eos_ids;
    if (always.empty()) always = files.config.eos_ids;
    if (counts.empty() && files.target.tokenizer) add_letters(load_tokenizer(files), always);
    return draft_vocabulary(options.vocab, vocab, always, counts);
}

}  // namespace aerie
