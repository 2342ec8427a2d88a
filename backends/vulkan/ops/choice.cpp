// Ops Sample and TopK: each is a few dispatches per block of rows.
#include "vulkan/choice_rows.h"

namespace aerie::vulkan {

namespace {

constexpr int kSoftmaxWidth = 10;  // candidates in the softmax of noisy values

}  // namespace

template <>
void VulkanBackend::execute(const Sample& step) {
    const auto choose = [&](ChoiceRows& block, int first) {
        const Tensor chosen = step.ids.col_range(first, block.rows);
        const Rows places = step.rows.range(first, block.rows);
        if (!step.noise) return block.choose_best(chosen, places);
        block.find_tops();
        block.find_cuts();
        block.choose_noisy(chosen, places, step.noise);
    };
    for_choice_rows(*queue_, scratch_, step.choice, step.rows, choose);
}

template <>
void VulkanBackend::execute(const TopK& step) {
    const Tensor& map = step.choice.id_map;
    const int k = step.ids.cols, vocab = step.choice.logits.cols;
    const int width = step.noise ? std::min(std::max(k, kSoftmaxWidth), vocab) : k;
    for_choice_rows(*queue_, scratch_, step.choice, {}, [&](ChoiceRows& block, int first) {
        if (step.noise) {
            block.find_tops();
            block.find_cuts();
        }
        const TopKParams params = {.choice = block.params,
                                   .slices = block.slices(),
                                   .noisy = bool(step.noise),
                                   .wanted = uint32_t(k),
                                   .width = uint32_t(width),
                                   .has_map = bool(map),
                                   .ids_stride = stride_words(step.ids),
                                   .log_probs_stride = stride_words(step.log_probs)};
        const Tensor found = block.parts(2 * uint32_t(width) + 2);
        block.run(
            "top_k_slice", params,
            {writes(found), reads(block.logits), reads(block.tops()), reads(block.cuts()),
             reads_or(step.noise, block.logits), reads(block.rules), reads_or(map, block.logits)},
            {block.slices(), uint32_t(block.rows)}, 20);
        block.run("top_k_row", params,
                  {writes(step.ids.row_range(first, block.rows)),
                   writes(step.log_probs.row_range(first, block.rows)), reads(found),
                   reads(block.tops()), reads_or(map, found), reads(block.rules)},
                  {uint32_t(block.rows)}, 1);
    });
}

}  // namespace aerie::vulkan
