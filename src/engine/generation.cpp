// The loop of architecture.md section 5.
#include "engine/generation.h"

#include <algorithm>

namespace aerie {

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

Generation::Generation(Session& session, const Tokenizer& tokenizer, const Request& request)
    : session_(session), request_(request), stream_(tokenizer, request.stops) {
    const int room = session.context() - int(request.prompt.size());
    max_tokens_ = request.max_tokens < 0 ? room : std::min(room, request.max_tokens);
    session.begin(request.sampling, request.with_logprobs);
}

bool Generation::step() {
    if (request_.max_tokens == 0) return false;
    const double start = steady_seconds();
    if (!has_begun_) {
        has_begun_ = true;
        const bool more = take(session_.prefill(request_.prompt, request_.cancelled));
        prefill_ = session_.seconds();
        result_.stats.prefill_seconds = steady_seconds() - start;
        return more;
    }
    const size_t before = result_.ids.size();
    const TokenTree& tree = session_.propose();
    const Path path = accept(tree, session_.verify(tree));
    const bool more = take(session_.commit(tree, path));
    count_cycle(tree, path, int(result_.ids.size() - before));
    count_time(start);
    return more;
}

// False once the text has ended; the rest of the turn is then dropped.
bool Generation::take(const Turn& turn) {
    if (turn.tokens.empty()) return end(FinishReason::cancelled);  // during the prefill
    for (size_t i = 0; i < turn.tokens.size(); ++i)
        if (!push(turn.tokens[i], turn.logprobs.empty() ? nullptr : &turn.logprobs[i]))
            return false;
    if (request_.cancelled && request_.cancelled()) return end(FinishReason::cancelled);
    return true;
}

bool Generation::push(int token, const float* logprob) {
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

bool Generation::end(FinishReason reason) {
    result_.finish = reason;
    say(stream_.finish());
    return false;
}

void Generation::say(const std::string& text) {
    result_.text += text;
    if (request_.on_text && !text.empty()) request_.on_text(text);
}

// Books what a cycle put out: `emitted` tokens, the last of which may be the target's bonus token.
void Generation::count_cycle(const TokenTree& tree, const Path& path, int emitted) {
    Stats& stats = result_.stats;
    ++stats.cycles;
    stats.plain_cycles += tree.size() == 1;
    stats.cycle_nodes += tree.size();
    stats.cycle_tokens += emitted;
    const int accepted = std::min(int(path.nodes.size()) - 1, emitted);
    if (int(stats.accepted_by_depth.size()) < accepted)
        stats.accepted_by_depth.resize(size_t(accepted));
    for (int depth = 0; depth < accepted; ++depth) ++stats.accepted_by_depth[size_t(depth)];
}

void Generation::count_time(double since) {
    Stats& stats = result_.stats;
    stats.decode_seconds += steady_seconds() - since;
    const PhaseSeconds& total = session_.seconds();
    stats.draft_seconds = total.draft - prefill_.draft;
    stats.verify_seconds = total.verify - prefill_.verify;
    stats.sample_seconds = total.sample - prefill_.sample;
    stats.host_seconds =
        stats.decode_seconds - stats.draft_seconds - stats.verify_seconds - stats.sample_seconds;
}

GenerationResult generate(Session& session, const Tokenizer& tokenizer, const Request& request) {
    Generation generation(session, tokenizer, request);
    while (generation.step()) {
    }
    return generation.result();
}

}  // namespace aerie
