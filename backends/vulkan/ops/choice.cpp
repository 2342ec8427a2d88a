// sample, probs and top_k: a few dispatches over blocks of rows each.
#include "vulkan/choice_rows.h"

namespace aerie::vulkan {

namespace {

constexpr int kSoftmaxWidth = 10;  // candidates under the softmax of noisy log-probabilities
constexpr int kProbsGroup = 64;    // invocations of a workgroup of probs

}  // namespace

template <>
void VulkanBackend::execute(const Sample& step) {
    const Filters& filters = step.choice.filters;
    for_choice_rows(*queue_, scratch_, step.choice, [&](ChoiceRows& block, int first) {
        const Tensor chosen = step.ids.col_range(first, block.rows);
        const Rows places = step.rows.range(first, block.rows);
        if (filters.temperature == 0) return block.choose_best(chosen, places);
        block.find_tops();
        block.find_cuts(filters);
        block.choose_noisy(chosen, places, step.noise);
    });
}

template <>
void VulkanBackend::execute(const Probs& op) {
    const Tensor& out = op.out;
    const Choice& choice = op.choice;
    for_choice_rows(*queue_, scratch_, choice, [&](ChoiceRows& block, int first) {
        const Tensor to = out.row_range(first, block.rows);
        block.find_tops();
        if (choice.filters.temperature != 0) block.find_cuts(choice.filters);
        const ProbsParams params = {block.params, stride_words(to)};
        if (choice.filters.temperature != 0)
            block.run("probs_total", params,
                      {writes(block.totals()), reads(block.logits), reads(block.tops()),
                       reads(block.cuts()), reads(block.logits)},
                      {block.slices(), uint32_t(block.rows)}, 20);
        block.run("probs", params,
                  {writes(to), reads(block.logits), reads(block.tops()), reads(block.cuts()),
                   reads(block.logits), reads(block.totals())},
                  {groups(out.cols, kProbsGroup), uint32_t(block.rows)}, 20);
    });
}

template <>
void VulkanBackend::execute(const TopK& step) {
    const Filters& filters = step.choice.filters;
    const bool noisy = step.noise && filters.temperature != 0;
    const int k = step.ids.cols, vocab = step.choice.logits.cols;
    const int width = noisy ? std::min(std::max(k, kSoftmaxWidth), vocab) : k;
    for_choice_rows(*queue_, scratch_, step.choice, [&](ChoiceRows& block, int first) {
        if (noisy) {
            block.find_tops();
            block.find_cuts(filters);
        }
        const TopKParams params = {.choice = block.params,
                                   .slices = block.slices(),
                                   .noisy = noisy,
                                   .wanted = uint32_t(k),
                                   .width = uint32_t(width),
                                   .has_map = bool(step.id_map),
                                   .ids_stride = stride_words(step.ids),
                                   .log_probs_stride = stride_words(step.log_probs),
                                   .inverse_softness = float(1 / double(step.softness))};
        const Tensor found = block.parts(2 * uint32_t(width) + 2);
        block.run("top_k_slice", params,
                  {writes(found), reads(block.logits), reads(block.tops()), reads(block.cuts()),
                   reads(step.noise ? step.noise : block.logits)},
                  {block.slices(), uint32_t(block.rows)}, 20);
        block.run("top_k_row", params,
                  {writes(step.ids.row_range(first, block.rows)),
                   writes(step.log_probs.row_range(first, block.rows)), reads(found),
                   reads(block.tops()), reads(step.id_map ? step.id_map : found)},
                  {uint32_t(block.rows)}, 1);
    });
}

}  // namespace aerie::vulkan
