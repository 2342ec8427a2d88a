// Reports on an answer: its text, tokens, newest cycle and statistics.
#include <limits>

#include "api/handles.h"
#include "api/structs.h"

using namespace aerie;
using namespace aerie::api;

namespace {

aerie_origin origin_of(Origin::Kind kind) {
    switch (kind) {
        case Origin::Kind::after_prompt:
            return AERIE_AFTER_PROMPT;
        case Origin::Kind::from_draft:
            return AERIE_FROM_DRAFT;
        case Origin::Kind::from_target:
            break;
    }
    return AERIE_FROM_TARGET;
}

aerie_token token_of(const aerie_session& session, size_t index) {
    const GenerationResult& result = session.talk->answer().result();
    if (index >= result.ids.size())
        throw UsageError("the answer has " + std::to_string(result.ids.size()) +
                         " tokens, no number " + std::to_string(index));
    aerie_token token = aerie_token_init();
    token.id = result.ids[index];
    token.origin = origin_of(result.origins[index].kind);
    token.depth = result.origins[index].depth;
    token.logprob = index < result.logprobs.size() ? result.logprobs[index]
                                                   : std::numeric_limits<float>::quiet_NaN();
    const std::string_view bytes = session.open->model.tokenizer().bytes(token.id);
    token.bytes = bytes.data();
    token.byte_count = bytes.size();
    const size_t each = session.alternatives_each;
    if (each > 0 && session.alternatives.size() >= (index + 1) * each) {
        token.alternatives = session.alternatives.data() + index * each;
        token.alternative_count = each;
    }
    return token;
}

}  // namespace

aerie_status aerie_session_answer(aerie_session* session, aerie_answer* out) {
    return enter(session, [&] {
        const GenerationResult& result = session->talk->answer().result();
        aerie_answer answer = aerie_answer_init();
        answer.text = result.text.c_str();
        answer.text_bytes = result.text.size();
        answer.token_count = result.ids.size();
        answer.prompt_tokens = session->prompt_tokens;
        answer.reused_tokens = size_t(result.reused);
        answer.seed = session->seed;
        answer.finish = session->finish;
        write_struct(out, answer, "aerie_answer");
    });
}

aerie_status aerie_session_token(aerie_session* session, size_t index, aerie_token* out) {
    return enter(session, [&] { write_struct(out, token_of(*session, index), "aerie_token"); });
}

aerie_status aerie_session_cycle(aerie_session* session, aerie_cycle* out) {
    return enter(session, [&] {
        const Cycle& cycle = session->talk->answer().cycle();
        const size_t nodes = cycle.tree.tokens.size();
        aerie_cycle shown = aerie_cycle_init();
        shown.node_count = nodes;
        shown.tokens = cycle.tree.tokens.data();
        shown.parents = cycle.tree.parents.data();
        if (cycle.tree.values.size() == nodes) shown.values = cycle.tree.values.data();
        if (cycle.choices.size() == nodes) shown.choices = cycle.choices.data();
        shown.path = cycle.path.nodes.data();
        shown.path_count = cycle.path.nodes.size();
        shown.next = cycle.path.next;
        write_struct(out, shown, "aerie_cycle");
    });
}

aerie_status aerie_session_statistics(aerie_session* session, aerie_statistics* out) {
    return enter(session, [&] {
        const Stats& stats = session->talk->answer().result().stats;
        aerie_statistics shown = aerie_statistics_init();
        shown.cycles = stats.cycles;
        shown.cycle_tokens = stats.cycle_tokens;
        shown.plain_cycles = stats.plain_cycles;
        shown.depth_count = int32_t(stats.accepted_by_depth.size());
        shown.accepted_by_depth = stats.accepted_by_depth.data();
        shown.cycle_nodes = stats.cycle_nodes;
        shown.tau = stats.tau();
        shown.tokens_per_second = stats.tokens_per_second();
        shown.prefill_seconds = stats.prefill_seconds;
        shown.decode_seconds = stats.decode_seconds;
        shown.draft_seconds = stats.draft_seconds;
        shown.verify_seconds = stats.verify_seconds;
        shown.sample_seconds = stats.sample_seconds;
        shown.host_seconds = stats.host_seconds;
        write_struct(out, shown, "aerie_statistics");
    });
}
