// The dispatches that all choices share. A binding that a shader does not use in a call gets some
// other tensor, because every binding that a shader names must be bound.
#include "vulkan/choice_rows.h"

#include <cassert>

namespace aerie::vulkan {

namespace {

constexpr int kChoiceRows = 32;  // rows of a block
constexpr uint32_t kCutLevels = 5;

}  // namespace

void Scratch::add_choices_to(TensorPlan& plan, const Limits& limits) {
    const int rows = std::clamp(limits.rows, 1, kChoiceRows), vocab = std::max(limits.vocab, 1);
    const int slices = int(groups(vocab, int(kSlice)));
    plan.add(edited, DType::F32, rows, vocab);
    plan.add(tops, DType::I32, rows, 2);
    plan.add(cuts, DType::I32, rows, int(kCutWords));
    plan.add(histogram, DType::I32, rows, int(3 * kDigits));
    plan.add(best_parts, DType::I32, rows, slices * (2 * kMaxTopK + 2));
}

ChoiceRows::ChoiceRows(Queue& queue, const Scratch& scratch, const Choice& choice,
                       const Rows& places, int first, int count)
    : rows(count),
      logits(choice.logits.row_range(first, count)),
      rules(logits),
      queue_(queue),
      scratch_(scratch),
      top_k_(choice.rules.top_k),
      top_p_(choice.rules.top_p) {
    assert(choice.logits.cols <= scratch.edited.cols);
    params.vocab = uint32_t(choice.logits.cols);
    if (const Tensor& block = choice.rules.block) {
        params.has_rules = 1;
        params.rules_stride = block.rows > 1 ? uint32_t(kRowChoiceInts) : 0;
        rules = block.rows > 1 ? block.row_range(first, count) : block;
    }
    params.logits_stride = stride_words(logits);
    if (choice.rules.seen || choice.mask) edit(choice, places, first);
}

void ChoiceRows::edit(const Choice& choice, const Rows& places, int first) {
    const Tensor raw = logits, seen = choice.rules.seen, map = choice.id_map;
    const Tensor mask = choice.mask ? choice.mask.row_range(first, rows) : Tensor();
    const EditParams edit_params = {.choice = params,
                                    .seen_stride = seen ? stride_words(seen) : 0,
                                    .mask_stride = mask ? stride_words(mask) : 0,
                                    .has_map = bool(map),
                                    .has_rows = bool(places.block),
                                    .first_row = uint32_t(first)};
    logits = dense_prefix(scratch_.edited, rows, raw.cols);
    params.logits_stride = stride_words(logits);
    run("edit", edit_params,
        {writes(logits), reads(raw), reads_or(mask, raw), reads_or(seen, raw), reads_or(map, raw),
         reads(rules), reads_or(places.block, raw)},
        {groups(raw.cols, int(kEditSlice)), uint32_t(rows)}, 2);
}

// With noise, only tokens that the filters keep take part. Without `ids`, the result goes to
// `tops`.
void ChoiceRows::best(const Rows& places, const Tensor& noise, const Tensor& ids) {
    const BestParams best_params = {.choice = params,
                                    .slices = slices(),
                                    .noisy = bool(noise),
                                    .noise_stride = noise ? stride_words(noise) : 0,
                                    .is_last = bool(ids)};
    const Tensor found = parts(2);
    run("best_slice", best_params,
        {writes(found), reads(logits), reads(tops()), reads(cuts()), reads_or(noise, logits),
         reads(rules), reads_or(places.block, logits)},
        {slices(), uint32_t(rows)}, 4);
    run("best_row", best_params,
        {ids ? reads(tops()) : writes(tops()), reads(found), reads_or(places.block, logits),
         ids ? writes(ids) : reads(logits)},
        {uint32_t(rows)}, 0);
}

void ChoiceRows::find_tops() {
    best({}, {}, {});
}

void ChoiceRows::choose_best(const Tensor& ids, const Rows& places) {
    best(places, {}, ids);
}

void ChoiceRows::choose_noisy(const Tensor& ids, const Rows& places, const Tensor& noise) {
    best(places, noise, ids);
}

void ChoiceRows::find_cuts() {
    if (top_k_) search_cut(false);
    if (top_p_) search_cut(true);
}

void ChoiceRows::search_cut(bool by_mass) {
    const Tensor histogram = scratch_.histogram.row_range(0, rows);
    for (uint32_t level = 0; level < kCutLevels; ++level) {
        const CutParams search = {params, level, by_mass};
        run("cut_histogram", search,
            {writes(histogram), reads(logits), reads(tops()), reads(cuts()), reads(logits),
             reads(rules)},
            {slices(), uint32_t(rows)}, 4);
        run("cut_descend", search, {writes(histogram), writes(cuts()), reads(tops()), reads(rules)},
            {uint32_t(rows)}, 0);
    }
}

}  // namespace aerie::vulkan
