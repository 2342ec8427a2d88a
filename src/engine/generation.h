// The loop, a step at a time: prompt in, tokens and text out.
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
    // An answer to it that was begun in another text and is gone on with as if it had been begun in
    // this one. Null: there is none. Looked at by Generation's constructor alone.
    const GenerationResult* begun = nullptr;
    AnswerOptions answer;
    int max_tokens = -1;             // -1: to the end of the context
    std::vector<int> eos_ids;        // any of these ends the text
    std::vector<std::string> stops;  // so does any of these in it
    // Called with text as it becomes final; whole UTF-8 characters. May be empty.
    std::function<void(const std::string&)> on_text;
    std::function<bool()> cancelled;  // asked at least once a cycle. May be empty.
};

enum class FinishReason { stop, length, cancelled };
const char* name(FinishReason reason);  // "stop", "length", "cancelled"

struct Stats {
    int cycles = 0;                      // draft-and-verify cycles
    int cycle_tokens = 0;                // tokens that they put out
    int plain_cycles = 0;                // cycles of a bare root
    int64_t cycle_nodes = 0;             // verified in all cycles, roots included
    std::vector<int> accepted_by_depth;  // [d]: cycles that put out a drafted token of depth d + 1
    double prefill_seconds = 0, decode_seconds = 0;
    double draft_seconds = 0, verify_seconds = 0, sample_seconds = 0, host_seconds = 0;

    // Tokens of draft-and-verify cycles per cycle; the first token comes from the prefill. 0: none.
    double tau() const { return cycles ? double(cycle_tokens) / cycles : 0; }
    double mean_nodes() const { return cycles ? double(cycle_nodes) / cycles : 0; }
    double plain_share() const { return cycles ? double(plain_cycles) / cycles : 0; }
    double tokens_per_second() const {
        return decode_seconds > 0 ? cycle_tokens / decode_seconds : 0;
    }
};

// Where a token comes from. Who chose it is always the target.
struct Origin {
    enum class Kind { after_prompt, from_draft, from_target };
    Kind kind = Kind::from_target;
    int depth = 0;  // in the tree, of one from a draft
};

struct GenerationResult {
    std::vector<int> ids;         // includes the EOS or the token that completed a stop string
    std::string text;             // neither of them
    std::vector<Origin> origins;  // of ids
    std::vector<float> logprobs;  // of ids, if asked for
    std::vector<TokenLogprob> alternatives;  // the same number in the place of each of ids
    int reused = 0;                          // positions of the prompt that were not run again
    FinishReason finish = FinishReason::length;
    Stats stats;
};

// An answer in the making. What ends a text is decided here: EOS, stop strings, limits, cancelling.
class Generation {
  public:
    // Of a text that goes on with this prompt, as far as it is not this prompt already. Text and
    // batch must outlive it. Throws UsageError (prompt, sampling values).
    Generation(Batch& batch, Sequence& text, const Tokenizer& tokenizer, const Request& request);
    // A new text in this session.
    Generation(Session& session, const Tokenizer& tokenizer, const Request& request);

    // The prompt at first, then a cycle. False once the text has ended. Throws Error (device,
    // damaged model).
    bool step();
    // So far. Text is final up to here; it ends with a whole character.
    const GenerationResult& result() const { return result_; }
    // The result, for another text to go on with (Request::begun). No step is left here.
    GenerationResult leave() {
        has_ended_ = true;
        return std::move(result_);
    }
    // The newest one: its tree, what the target chose after each node, and the path taken. Of the
    // prompt's own step a bare root.
    const Cycle& cycle() const { return cycle_; }

  private:
    void go_on(const GenerationResult& begun);
    bool take(const Turn& turn);
    bool push(const Turn& turn, size_t i);
    bool end(FinishReason reason);
    void say(const std::string& text);
    void count_cycle(int emitted);
    void count_time(double since, const PhaseSeconds& before);

    Batch& batch_;
    Request request_;
    TextStream stream_;
    int max_tokens_ = 0;
    bool has_begun_ = false, has_ended_ = false;
    Cycle cycle_;
    GenerationResult result_;
};

// All steps at once.
GenerationResult generate(Session& session, const Tokenizer& tokenizer, const Request& request);

}  // namespace aerie
