// The decode loop. Plain decoding is the case of a tree that is only the root.
#include "engine/generation.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

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

int Stats::drafted_tokens() const {
    return std::accumulate(accepted_by_depth.begin(), accepted_by_depth.end(), 0);
}

bool is_hardly_drafted(const Stats& stats) {
    return 20 * stats.drafted_tokens() < stats.cycle_tokens &&
           2 * stats.plain_cycles > stats.cycles;
}

std::string why_hardly_drafted(const Stats& stats) {
    constexpr int kEnoughCycles = 16;
    if (stats.cost_of_4_rows <= 0 || stats.cycles < kEnoughCycles || !is_hardly_drafted(stats))
        return {};
    char line[160];
    std::snprintf(
        line, sizeof(line),
        "hardly anything was drafted: a pass over 4 rows costs as much as %.1f tokens, and ",
        stats.cost_of_4_rows);
    const int drafts = stats.cycles - stats.plain_cycles;
    if (drafts == 0)
        return std::string(line) + "no drafted token was likely enough to pay for that";
    if (stats.accepted_by_depth.empty()) return std::string(line) + "no drafted token was accepted";
    const int right = stats.accepted_by_depth[0];
    return std::string(line) + std::to_string(right) + " of " + std::to_string(drafts) +
           (drafts == 1 ? " draft tree" : " draft trees") + " had an accepted token";
}

Generation::Generation(Batch& batch, Sequence& sequence, const Tokenizer& tokenizer,
                       const Request& request)
    : batch_(batch),
      request_(request),
      stream_(tokenizer, request.stops, request.continues_text),
      number_(batch.next_number()) {
    const int room = batch.limits().context - int(request.prompt.size());
    max_tokens_ = request.max_tokens < 0 ? room : std::min(room, request.max_tokens);
    cycle_.sequence = &sequence;
    request_.begun = nullptr;
    if (request.begun)
        go_on(*request.begun);
    else
        result_.reused = sequence.begin(request.prompt, request.answer);
}

// The tokens of the begun answer become part of the prompt that the next step reads. Their final
// text was passed on when they were chosen.
void Generation::go_on(const GenerationResult& begun) {
    std::vector<int> all = request_.prompt;
    all.insert(all.end(), begun.ids.begin(), begun.ids.end());
    cycle_.sequence->begin(all, request_.answer, begun.ids.size());
    for (const int id : begun.ids) stream_.push(id);
    result_ = begun;
}

Generation::Generation(Session& session, const Tokenizer& tokenizer, const Request& request)
    : Generation((session.begin(request.answer), session.batch()), session.sequence(), tokenizer,
                 request) {}

bool Generation::step() {
    if (has_ended_) return false;
    Generation* const self = this;
    do aerie::step({&self, 1});
    while (is_prefilling());
    if (cycle_.error) std::rethrow_exception(cycle_.error);
    return !has_ended_;
}

// Takes over what the newest cycle has put out. Once the text has ended, the rest is dropped.
void Generation::take(bool is_first) {
    const size_t before = result_.ids.size();
    const ChosenTokens& output = cycle_.output;
    bool more = true;
    for (size_t i = 0; more && i < output.tokens.size(); ++i) more = push(output, i);
    if (!is_first) count_cycle(int(result_.ids.size() - before));
    if (more && is_cancelled()) end(FinishReason::cancelled);
}

// Adds the output's i-th token to the result.
bool Generation::push(const ChosenTokens& output, size_t i) {
    const int token = output.tokens[i];
    const bool is_drafted = i + 1 < output.tokens.size();
    result_.origins.push_back(result_.ids.empty() ? Origin{Origin::Kind::after_prompt}
                              : is_drafted        ? Origin{Origin::Kind::from_draft, int(i) + 1}
                                                  : Origin{Origin::Kind::from_target});
    result_.ids.push_back(token);
    if (!output.logprobs.empty()) result_.logprobs.push_back(output.logprobs[i]);
    const size_t others = output.alternatives.size() / output.tokens.size();
    const auto first = output.alternatives.begin() + ptrdiff_t(i * others);
    result_.alternatives.insert(result_.alternatives.end(), first, first + ptrdiff_t(others));
    if (std::count(request_.eos_ids.begin(), request_.eos_ids.end(), token))
        return end(FinishReason::stop);
    say(stream_.push(token));
    if (stream_.stopped()) {
        has_ended_ = true;
        result_.finish = FinishReason::stop;
        return false;
    }
    return int(result_.ids.size()) < max_tokens_ || end(FinishReason::length);
}

bool Generation::end(FinishReason reason) {
    has_ended_ = true;
    result_.finish = reason;
    if (request_.answer.drafts) result_.stats.cost_of_4_rows = batch_.pass_cost(4);
    say(stream_.finish());
    return false;
}

void Generation::say(const std::string& text) {
    result_.text += text;
    if (request_.on_text && !text.empty()) request_.on_text(text);
}

// Counts the newest cycle, which put out `emitted` tokens; the last may be the target's bonus
// token.
void Generation::count_cycle(int emitted) {
    Stats& stats = result_.stats;
    ++stats.cycles;
    stats.plain_cycles += cycle_.tree.size() == 1;
    stats.cycle_nodes += cycle_.tree.size();
    stats.cycle_tokens += emitted;
    const int accepted = std::min(int(cycle_.path.nodes.size()) - 1, emitted);
    if (int(stats.accepted_by_depth.size()) < accepted)
        stats.accepted_by_depth.resize(size_t(accepted));
    for (int depth = 0; depth < accepted; ++depth) ++stats.accepted_by_depth[size_t(depth)];
}

// Counts the time of a round, which other answers may have shared. Between two rounds the batch may
// have served others.
void Generation::count_time(double since, const PhaseSeconds& before, bool was_prefilling) {
    Stats& stats = result_.stats;
    const PhaseSeconds& now = batch_.seconds();
    if (was_prefilling) {
        stats.prefill_seconds += steady_seconds() - since;
        return;
    }
    stats.decode_seconds += steady_seconds() - since;
    stats.draft_seconds += now.draft - before.draft;
    stats.verify_seconds += now.verify - before.verify;
    stats.sample_seconds += now.sample - before.sample;
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
