// Talks over the bundled model.
#pragma once

#include "engine/bundled.h"
#include "talk/talk.h"

namespace aerie::test {

inline LoadOptions talk_options(const DraftOptions& draft, int sequences = 4) {
    LoadOptions options = bundled_options(DType::Q8_0);
    options.draft = draft;
    options.sequences = sequences;
    options.context = 512;
    return options;
}

inline std::shared_ptr<SharedModel> shared_model(const DraftOptions& draft, int sequences = 4) {
    return std::make_shared<SharedModel>(talk_options(draft, sequences));
}

inline Request request_of(std::vector<int> prompt, int max_tokens, float temperature = 0) {
    Request request;
    request.prompt = std::move(prompt);
    request.max_tokens = max_tokens;
    request.answer.sampling.filters.temperature = temperature;
    request.answer.sampling.seed = 11;
    request.answer.with_logprobs = true;
    return request;
}

// A model for each drafting method. "model": the target drafts for itself. "chosen": eagle2 with
// trees that are sized by cost; the costs are constants, so that no clock affects them.
inline std::shared_ptr<SharedModel> shared_model_of(const std::string& method) {
    const bool is_chosen = method == "chosen" || method == "best" || method == "grafted";
    LoadOptions options = talk_options(draft_options(method == "chosen" ? "eagle2" : method));
    if (is_chosen) options.draft.tree.reset();
    for (const char* head : {"eagle3", "medusa", "hydra"}) {
        const auto path = models_dir() / (std::string("aerie-tiny-") + head);
        if (method == head) options.head = path;
        if (method == "best") options.more_heads.push_back(path);
    }
    if (method == "model") options.head = options.model;
    const auto model = std::make_shared<SharedModel>(options);
    if (is_chosen)
        model->drafter().cost_aware()->set_costs(
            {{{1, 3e-4}, {8, 5e-4}, {64, 2e-3}}, {{1, 3e-5}, {10, 6e-5}}, true});
    return model;
}

// The ids of a prompt from its text, as a user gives it.
inline std::vector<int> ids_of(const SharedModel& model, const std::string& text) {
    return model.tokenizer().encode_from_start(text);
}

inline std::vector<int> copy_of(std::span<const int> ids) {
    return {ids.begin(), ids.end()};
}

// Fields that must not depend on the earlier contents of a talk.
inline void expect_same_text(const GenerationResult& got, const GenerationResult& want) {
    EXPECT_EQ(got.ids, want.ids);
    EXPECT_EQ(got.text, want.text);
    EXPECT_EQ(got.logprobs, want.logprobs);
}
inline void expect_same(const GenerationResult& got, const GenerationResult& want) {
    expect_same_text(got, want);
    EXPECT_EQ(got.stats.cycles, want.stats.cycles);
    EXPECT_EQ(got.stats.cycle_nodes, want.stats.cycle_nodes);
    EXPECT_EQ(got.stats.accepted_by_depth, want.stats.accepted_by_depth);
}

}  // namespace aerie::test
