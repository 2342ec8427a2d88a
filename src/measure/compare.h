// Whether devices compute the same: hidden states op by op, distributions along a text, greedy
// texts, drafted texts. The first device is the reference.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/compared_model.h"
#include "measure/difference.h"

namespace aerie {

struct CompareTask {
    std::vector<std::vector<int>> prompts;  // ids; none is empty, all leave room in the context
    int max_tokens = 64;
    std::vector<int> eos_ids;
    std::function<void(const std::string&)> on_progress;  // may be empty
    std::function<bool()> cancelled;                      // may be empty
};

// One op over all prompts, on one device against the reference.
struct ComparedOp {
    OpPlace place;
    Difference carried;  // with what it inherits from the ops and positions before
    Difference alone;    // given the reference's inputs
};

// What a device expects after one position of the reference's text.
struct ComparedPosition {
    double kl = 0;      // KL(reference || device), nats
    int likeliest = 0;  // the device's
    double margin = 0;  // by which the reference prefers its own likeliest token; 0: the same token
};

// Where a device's greedy text leaves the reference's.
struct Fork {
    int at = 0;                       // tokens that are still equal
    int reference = -1, device = -1;  // the tokens there; -1: its text has ended
    double margin = 0;                // between these in the reference's logits
};

struct ComparedText {
    std::vector<int> ids;                     // the device's own greedy text
    std::string failure;                      // the error that ended it; empty: none
    std::optional<Fork> fork;                 // against the reference's ids
    std::vector<ComparedPosition> positions;  // of prompt and reference text but the last token
    // First token of `ids`, up to the fork, that a pass over the whole text would not have chosen.
    std::optional<int> prefill_fork;
    std::optional<Stats> drafting;    // with a head
    std::optional<int> drafted_fork;  // first token in which the drafted text is another
    std::string drafted_failure;
};

struct ComparedDevice {
    std::string name, description;
    std::vector<ComparedOp> ops;  // in their order; those that the reference has too. It has none
    std::vector<ComparedText> texts;  // by prompt

    bool identical() const;         // every value of every op had the reference's bits
    int64_t identical_ops() const;  // ops that give its bits when given its inputs
};

struct Comparison {
    WeightTypes weights;
    DType kv = DType::F16;
    std::vector<std::vector<int>> prompts;
    std::vector<ComparedDevice> devices;  // the reference first
    bool drafts = false;                  // whether there was a head
    bool cancelled = false;
};

// What was accepted at each depth, over all prompts.
struct Acceptance {
    int cycles = 0, tokens = 0;
    std::vector<int> by_depth;

    double tau() const { return cycles ? double(tokens) / cycles : 0; }
};
Acceptance acceptance(const ComparedDevice& device);

// The op that makes what the LM head reads (kFinalNorm); null where the devices do not share it.
const ComparedOp* final_state(const ComparedDevice& device);

// Models of the same files, two at least, all of which are in memory. Texts are decoded by each
// device alone; then all read the reference's text in passes of at most kObservedRows rows, while
// the reference's values of one pass are kept, 256 MB at most. Throws Error, UsageError (a prompt
// that does not fit).
Comparison compare(std::span<const std::unique_ptr<ComparedModel>> models,
                   const Tokenizer& tokenizer, const CompareTask& task);

}  // namespace aerie
