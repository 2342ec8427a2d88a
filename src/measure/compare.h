// Checks whether devices compute the same: hidden states op by op, distributions along a text,
// greedy texts, drafted texts. The first device is the reference.
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
    std::vector<std::vector<int>> prompts;  // ids; none is empty, and all leave room in the context
    int max_tokens = 64;
    std::vector<int> eos_ids;
    std::function<void(const std::string&)> on_progress;  // may be empty
    std::function<bool()> cancelled;                      // may be empty
};

// One op on one device against the reference, over all prompts.
struct ComparedOp {
    OpPlace place;
    Difference carried;  // including errors inherited from earlier ops and positions
    Difference alone;    // with the reference's inputs
};

// The device's prediction after one position of the reference's text.
struct ComparedPosition {
    double kl = 0;      // KL(reference || device), nats
    int likeliest = 0;  // the device's likeliest token
    double margin = 0;  // reference logits: its likeliest minus the device's; 0: the same token
};

// The place where a device's greedy text departs from the reference's.
struct Fork {
    int at = 0;                       // number of equal tokens before it
    int reference = -1, device = -1;  // the tokens there; -1: the text has ended
    double margin = 0;                // between these tokens, in the reference's logits
};

struct ComparedText {
    std::vector<int> ids;                     // the device's own greedy text
    std::string failure;                      // the error that ended it; empty: none
    std::optional<Fork> fork;                 // where it departs from the reference's ids
    std::vector<ComparedPosition> positions;  // for prompt and reference text except the last token
    // The first token of `ids`, up to the fork, that a pass over the whole text would not have
    // chosen.
    std::optional<int> prefill_fork;
    std::optional<Stats> drafting;    // only with a head
    std::optional<int> drafted_fork;  // first token at which the drafted text differs
    std::string drafted_failure;
};

struct ComparedDevice {
    std::string name, description;
    std::vector<ComparedOp> ops;  // in order, if the reference has them too; its own list is empty
    std::vector<ComparedText> texts;  // by prompt

    bool identical() const;         // whether all values of all ops have the reference's bits
    int64_t identical_ops() const;  // ops with the reference's bits, given its inputs
};

struct Comparison {
    WeightTypes weights;
    DType kv = DType::F16;
    std::vector<std::vector<int>> prompts;
    std::vector<ComparedDevice> devices;  // the reference first
    bool drafts = false;                  // whether there was a head
    bool cancelled = false;
};

// Tokens accepted at each depth, over all prompts.
struct Acceptance {
    int cycles = 0, tokens = 0;
    std::vector<int> by_depth;

    double tau() const { return cycles ? double(tokens) / cycles : 0; }
};
Acceptance acceptance(const ComparedDevice& device);

// The op that makes the input of the LM head (kFinalNorm); null if the devices do not share it.
const ComparedOp* final_state(const ComparedDevice& device);

// Compares at least two models of the same files, which are all in memory. Each device decodes the
// texts by itself. Then all devices read the reference's text, in passes of at most kObservedRows
// rows; the reference's values of one pass are kept, at most 256 MB. Throws Error, UsageError (a
// prompt that does not fit).
Comparison compare(std::span<const std::unique_ptr<ComparedModel>> models,
                   const Tokenizer& tokenizer, const CompareTask& task);

}  // namespace aerie
