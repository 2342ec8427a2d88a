#include "train/answering.h"

#include <algorithm>
#include <memory>

#include "engine/accept.h"

namespace aerie::train {

namespace {

// A place for one prompt after another.
struct Place {
    explicit Place(Sequence made) : sequence(std::move(made)) {}

    Sequence sequence;
    Cycle cycle;
    AnsweredPrompt answered;
    bool is_running = false;
};

}  // namespace

void answer_prompts(Model& model, const AnsweringPlan& plan,
                    const std::function<bool(Prompt& prompt)>& next,
                    const std::function<void(const AnsweredPrompt&)>& on_answer) {
    BatchLimits limits = model.limits();
    limits.sequences_in_pass = limits.open_sequences = plan.sequences_in_pass;
    DraftOptions plain;
    plain.method = kNoDrafts;
    const std::unique_ptr<Drafter> drafter = model.drafter(plain, limits);
    const ModelConfig& config = model.target().config();
    KvPool kv(model.backend(), kv_shape(config, limits, drafter->reach()));
    Batch batch(model.backend(), model.target(), kv, *drafter, limits);
    std::vector<std::unique_ptr<Place>> places;
    for (int i = 0; i < plan.sequences_in_pass; ++i)
        places.push_back(
            std::make_unique<Place>(Sequence(kv, *drafter, config.vocab, limits.context)));

    size_t prompts = 0;
    const auto is_end = [&](const Place& place) {
        const std::vector<int>& eos = plan.eos_ids;
        return std::find(eos.begin(), eos.end(), place.sequence.pending()) != eos.end() ||
               int(place.sequence.tokens().size() - place.answered.prompt_size) >=
                   plan.max_tokens ||
               int(place.sequence.tokens().size()) + 1 >= limits.context;
    };
    const auto end = [&](Place& place) {
        place.answered.tokens.assign(place.sequence.tokens().begin(),
                                     place.sequence.tokens().end());
        place.is_running = false;
        on_answer(place.answered);
    };
    const auto begin = [&](Place& place) {
        Prompt prompt;
        while (next(prompt)) {
            const int size = int(prompt.tokens.size());
            place.answered = {prompts++, {}, size_t(size)};
            if (size == 0 || size + 1 >= limits.context) continue;
            AnswerOptions answer(plan.sampling);
            answer.sampling.seed += prompt.seed;
            place.sequence.begin(prompt.tokens, answer);
            batch.prefill(place.sequence);
            place.is_running = true;
            if (!is_end(place)) return;
            end(place);
        }
    };
    for (;;) {
        if (plan.cancelled && plan.cancelled()) return;
        std::vector<Cycle*> cycles;
        for (const std::unique_ptr<Place>& place : places) {
            if (!place->is_running) begin(*place);
            place->cycle.sequence = &place->sequence;
            if (place->is_running) cycles.push_back(&place->cycle);
        }
        if (cycles.empty()) return;
        batch.propose(cycles);
        run_pass(batch, cycles);
        for (const Cycle* cycle : cycles)
            if (cycle->error) std::rethrow_exception(cycle->error);
        for (const std::unique_ptr<Place>& place : places)
            if (place->is_running && is_end(*place)) end(*place);
    }
}

}  // namespace aerie::train
