// The loop of architecture.md section 5, and the emitter that ends it at any token of a turn.
#include "engine/generate.h"

#include <algorithm>
#include <chrono>

#include "text/stream.h"

namespace aerie {

namespace {

double now_seconds() {
    using Clock = std::chrono::steady_clock;
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Takes the target's tokens one by one until something ends the text.
class Emitter {
  public:
    Emitter(const Request& request, const Tokenizer& tokenizer, int context)
        : request_(request), stream_(tokenizer, request.stops) {
        const int room = context - int(request.prompt.size());
        max_tokens_ = request.max_tokens < 0 ? room : std::min(room, request.max_tokens);
    }

    // False once the text has ended; the rest of the turn is then dropped.
    bool take(const Turn& turn) {
        if (turn.tokens.empty()) return end(FinishReason::cancelled);  // during the prefill
        for (size_t i = 0; i < turn.tokens.size(); ++i)
            if (!push(turn.tokens[i], turn.logprobs.empty() ? nullptr : &turn.logprobs[i]))
                return false;
        if (request_.cancelled && request_.cancelled()) return end(FinishReason::cancelled);
        return true;
    }

    Generation& result() { return result_; }

  private:
    bool push(int token, const float* logprob) {
        result_.ids.push_back(token);
        if (logprob) result_.logprobs.push_back(*logprob);
        if (std::count(request_.eos_ids.begin(), request_.eos_ids.end(), token))
            return end(FinishReason::stop);
        say(stream_.push(token));
        if (stream_.stopped()) {
            result_.finish = FinishReason::stop;
            return false;
        }
        return int(result_.ids.size()) < max_tokens_ || end(FinishReason::length);
    }

    bool end(FinishReason reason) {
        result_.finish = reason;
        say(stream_.finish());
        return false;
    }

    void say(const std::string& text) {
        result_.text += text;
        if (request_.on_text && !text.empty()) request_.on_text(text);
    }

    const Request& request_;
    TextStream stream_;
    int max_tokens_ = 0;
    Generation result_;
};

// Books what a cycle put out: `emitted` tokens, the last of which may be the target's bonus token.
void count_cycle(Stats& stats, const TokenTree& tree, const Path& path, int emitted) {
    ++stats.cycles;
    stats.plain_cycles += tree.size() == 1;
    stats.cycle_nodes += tree.size();
    stats.cycle_tokens += emitted;
    const int accepted = std::min(int(path.nodes.size()) - 1, emitted);
    if (int(stats.accepted_by_depth.size()) < accepted)
        stats.accepted_by_depth.resize(size_t(accepted));
    for (int depth = 0; depth < accepted; ++depth) ++stats.accepted_by_depth[size_t(depth)];
}

}  // namespace

const char* name(FinishReason reason) {
    switch (reason) {
        case FinishReason::stop:
            return "stop";
        case FinishReason::length:
            return "length";
        case FinishReason::cancelled:
            return "cancelled";
    }
    return "?";
}

Generation generate(Session& session, const Tokenizer& tokenizer, const Request& request) {
    Emitter emitter(request, tokenizer, session.context());
    Generation& result = emitter.result();
    if (request.max_tokens == 0) return result;
    Stats& stats = result.stats;

    const double start = now_seconds();
    session.begin(request.sampling, request.with_logprobs);
    Turn turn = session.prefill(request.prompt, request.cancelled);
    const double prefilled = now_seconds();
    const PhaseSeconds prefill = session.seconds();
    bool more = emitter.take(turn);
    while (more) {
        const size_t before = result.ids.size();
        const TokenTree tree = session.propose();
        const NodeList choices = session.verify(tree);
        const Path path = accept(tree, choices);
        turn = session.commit(tree, path);
        more = emitter.take(turn);
        count_cycle(stats, tree, path, int(result.ids.size() - before));
    }

    stats.prefill_seconds = prefilled - start;
    stats.decode_seconds = now_seconds() - prefilled;
    const PhaseSeconds& total = session.seconds();
    stats.draft_seconds = total.draft - prefill.draft;
    stats.verify_seconds = total.verify - prefill.verify;
    stats.sample_seconds = total.sample - prefill.sample;
    stats.host_seconds =
        stats.decode_seconds - stats.draft_seconds - stats.verify_seconds - stats.sample_seconds;
    return std::move(result);
}

}  // namespace aerie
