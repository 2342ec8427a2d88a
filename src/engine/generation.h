// The decode loop, one round at a time: prompts in, tokens and text out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/session.h"
#include "text/stream.h"
#include "text/tokenizer.h"

namespace aerie {

struct GenerationResult;

struct Request {
    std::vector<int> prompt;
    // An answer to this prompt that was begun in another sequence, and goes on as if it had been
    // begun in this one. Null: none. Only Generation's constructor reads it.
    const GenerationResult* begun = nullptr;
    AnswerOptions answer;
    int max_tokens = -1;             // -1: to the end of the context
    std::vector<int> eos_ids;        // any of these ends the text
    std::vector<std::string> stops;  // any of these strings ends it, too
    bool continues_text = false;     // the text goes on from the prompt's: its leading space counts
    // Called with text as it becomes final, in whole UTF-8 characters. May be empty.
    std::function<void(const std::string&)> on_text;
    std::function<bool()> cancelled;  // asked at least once per cycle; may be empty
    // Called before each pass over the prompt, with the tokens that are in the KV cache by then and
    // all of the prompt. May be empty.
    std::function<void(int done, int all)> on_read;
};

enum class FinishReason { stop, length, cancelled };
const char* name(FinishReason reason);  // "stop", "length", "cancelled"

struct Stats {
    int cycles = 0;                      // draft-and-verify cycles
    int cycle_tokens = 0;                // tokens that these cycles put out
    int plain_cycles = 0;                // cycles with a root alone
    int64_t cycle_nodes = 0;             // nodes verified in all cycles, roots included
    std::vector<int> accepted_by_depth;  // [d]: cycles that put out a drafted token of depth d + 1
    double prefill_seconds = 0, decode_seconds = 0;
    double draft_seconds = 0, verify_seconds = 0, sample_seconds = 0, host_seconds = 0;
    // The cost of a target pass over 4 rows when the answer ended, as a multiple of a pass over one
    // row. 0: nothing drafts, or the drafter does not weigh costs.
    double cost_of_4_rows = 0;

    // Acceptance length: tokens per cycle. The first token, which comes from the prefill, does not
    // count. 0 without cycles.
    double tau() const { return cycles ? double(cycle_tokens) / cycles : 0; }
    double mean_nodes() const { return cycles ? double(cycle_nodes) / cycles : 0; }
    // Drafted tokens among those that the cycles put out.
    int drafted_tokens() const;
    double plain_share() const { return cycles ? double(plain_cycles) / cycles : 0; }
    double tokens_per_second() const {
        return decode_seconds > 0 ? cycle_tokens / decode_seconds : 0;
    }
};

// Whether too little was drafted for a comparison with plain decoding to mean anything: most cycles
// were plain, and less than one token in 20 was drafted.
bool is_hardly_drafted(const Stats& stats);
// Why a drafter that weighs costs hardly drafted, as one sentence without a full stop. Empty if it
// did draft, if the text is too short to tell, or if the drafter does not weigh costs.
std::string why_hardly_drafted(const Stats& stats);

// Where a token comes from. In each case the target has chosen it.
struct Origin {
    enum class Kind { after_prompt, from_draft, from_target };  // after_prompt: the first token
    Kind kind = Kind::from_target;
    int depth = 0;  // from_draft: depth in the tree
};

struct GenerationResult {
    std::vector<int> ids;         // includes the EOS token, or the one that completed a stop string
    std::string text;             // includes neither
    std::vector<Origin> origins;  // one for each id
    std::vector<float> logprobs;  // one for each id, if asked for
    std::vector<TokenLogprob> alternatives;  // equally many for each id
    int reused = 0;                          // positions of the prompt that were not run again
    FinishReason finish = FinishReason::length;
    Stats stats;
};

// An answer in progress. It decides when a text ends: EOS, stop strings, limits, cancellation.
class Generation {
  public:
    // Answers request.prompt in `sequence`, which keeps what was computed for tokens that it
    // already has in common with the prompt. `batch`, `sequence` and `tokenizer` must outlive this
    // object. Throws UsageError (prompt, sampling values).
    Generation(Batch& batch, Sequence& sequence, const Tokenizer& tokenizer,
               const Request& request);
    // Answers in a new sequence of this session.
    Generation(Session& session, const Tokenizer& tokenizer, const Request& request);

    // The first call runs the prompt, each further call a cycle: rounds of this answer alone.
    // Returns false once the text has ended. Throws Error (device, damaged model).
    bool step();
    bool has_ended() const { return has_ended_; }
    // Whether the next step puts nothing out yet: the text is being read, or waits for pages of the
    // KV cache.
    bool is_prefilling() const { return !has_ended_ && (!has_begun_ || is_waiting_); }
    // The error that has ended this answer alone; null if there is none. Then the sequence has to
    // forget what was computed.
    std::exception_ptr error() const { return cycle_.error; }
    // The result so far. Its text is final, and ends with a whole character.
    const GenerationResult& result() const { return result_; }
    // Ends this answer and returns its result, for an answer in another sequence
    // to go on from (Request::begun).
    GenerationResult leave() {
        has_ended_ = true;
        return std::move(result_);
    }
    // The newest cycle: its tree, the target's choice after each node, and the accepted path. After
    // the prompt's step the tree is only a root.
    const Cycle& cycle() const { return cycle_; }

  private:
    friend class Round;

    void go_on(const GenerationResult& begun);
    void take(bool is_first);
    bool push(const ChosenTokens& output, size_t i);
    bool end(FinishReason reason);
    bool is_cancelled() const { return request_.cancelled && request_.cancelled(); }
    void say(const std::string& text);
    void count_cycle(int emitted);
    void count_time(double since, const PhaseSeconds& before, bool was_prefilling);

    Batch& batch_;
    Request request_;
    TextStream stream_;
    int max_tokens_ = 0;
    uint64_t number_ = 0;      // answers of a batch that began earlier have smaller numbers
    bool has_begun_ = false;   // the text was read: each round runs a cycle
    bool is_waiting_ = false;  // the last round had no pages for it
    bool has_ended_ = false;
    Cycle cycle_;
    GenerationResult result_;
};

// A round of these answers, which belong to one batch: one pass of the target, or more where the
// trees have over kTreeRows rows. It runs a cycle of those that have begun, and pieces of the
// others' prompts, in this order, as far as the pass has room. If the KV cache has too few pages,
// younger answers wait or are preempted: they lose theirs and are computed again later. An answer
// never depends on what else runs. An error of one answer ends it alone (Generation::error); throws
// Error if the device fails, which ends all of them.
void step(std::span<Generation* const> together);

// Runs all steps.
GenerationResult generate(Session& session, const Tokenizer& tokenizer, const Request& request);

}  // namespace aerie
