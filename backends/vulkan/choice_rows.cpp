// What choices have in common. A binding that a shader does not use in this call has some other
// tensor, since all that a shader names must be bound.
#include "vulkan/choice_rows.h"

#include <cassert>
#include <cmath>
#include <limits>

namespace aerie::vulkan {

namespace {

constexpr int kChoiceRows = 32;  // at once
constexpr uint32_t kCutLevels = 5;

}  // namespace

void Scratch::add_choices_to(TensorPlan& plan, const Limits& limits) {
    const int rows = std::clamp(limits.rows, 1, kChoiceRows), vocab = std::max(limits.vocab, 1);
    const int slices = int(groups(vocab, int(kSlice)));
    plan.add(edited, DType::F32, rows, vocab);
    plan.add(tops, DType::I32, rows, 2);
    plan.add(totals, DType::I32, rows, 2);
    plan.add(cuts, DType::I32, rows, int(kCutWords));
    plan.add(histogram, DType::I32, rows, int(3 * kDigits));
    plan.add(best_parts, DType::I32, rows, slices * (2 * kMaxTopK + 2));
}

ChoiceRows::ChoiceRows(Queue& queue, const Scratch& scratch, const Choice& choice, int first,
                       int count)
    : rows(count), logits(choice.logits.row_range(first, count)), queue_(queue), scratch_(scratch) {
    const Filters& filters = choice.filters;
    assert(choice.logits.cols <= scratch.edited.cols);
    params.vocab = uint32_t(choice.logits.cols);
    if (choice.edits || choice.mask) edit(choice, first);
    params.logits_stride = stride_words(logits);
    params.least_high = -std::numeric_limits<float>::infinity();
    const double temperature = filters.temperature;
    if (temperature == 0) return;  // scale 0
    params.scale = float(std::min(1 / temperature, 3e38));
    params.has_cut = (filters.top_k > 0 && filters.top_k < choice.logits.cols) || filters.top_p < 1;
    if (filters.min_p > 0) {
        const double least = temperature * std::log(std::min(double(filters.min_p), 1.0));
        params.least_high = float(least);
        params.least_low = float(least - double(params.least_high));
    }
}

void ChoiceRows::edit(const Choice& choice, int first) {
    const Tensor raw = logits;
    const Tensor mask = choice.mask ? choice.mask.row_range(first, rows) : Tensor();
    logits = dense_prefix(scratch_.edited, rows, raw.cols);
    const EditParams edits = {.vocab = params.vocab,
                              .logits_stride = stride_words(raw),
                              .mask_stride = mask ? stride_words(mask) : 0,
                              .has_mask = bool(mask),
                              .first_row = uint32_t(first),
                              .edits = choice.edits ? uint32_t(choice.edits.rows) : 0};
    run("edit", edits,
        {writes(logits), reads(raw), reads_or(mask, raw), reads_or(choice.edits, raw)},
        {groups(raw.cols, int(kEditSlice)), uint32_t(rows)}, 2);
}

// With noise: the best of what the filters keep. Without ids: into `tops`.
void ChoiceRows::best(const Rows& places, const Tensor& noise, const Tensor& ids) {
    const BestParams own = {.choice = params,
                            .slices = slices(),
                            .noisy = bool(noise),
                            .noise_stride = noise ? stride_words(noise) : 0,
                            .is_last = bool(ids)};
    const Tensor found = parts(2);
    run("best_slice", own,
        {writes(found), reads(logits), reads(tops()), reads(cuts()), reads_or(noise, logits),
         reads_or(places.block, logits)},
        {slices(), uint32_t(rows)}, 4);
    run("best_row", own,
        {ids ? reads(tops()) : writes(tops()), ids ? reads(totals()) : writes(totals()),
         reads(found), reads_or(places.block, logits), ids ? writes(ids) : reads(logits)},
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

void ChoiceRows::find_cuts(const Filters& filters) {
    if (!params.has_cut) return;
    const bool limited = filters.top_k > 0 && filters.top_k < int(params.vocab);
    const bool nucleus = filters.top_p < 1;
    CutParams search = {.choice = params,
                        .level = 0,
                        .wanted = limited ? uint32_t(filters.top_k) : 0,
                        .weighs = nucleus,
                        .share = filters.top_p,
                        .within_last = 0};
    search_cut(search);
    if (!limited || !nucleus) return;
    search.wanted = 0;
    search.within_last = 1;
    search_cut(search);
}

void ChoiceRows::search_cut(CutParams search) {
    const Tensor histogram = scratch_.histogram.row_range(0, rows);
    for (search.level = 0; search.level < kCutLevels; ++search.level) {
        run("cut_histogram", search,
            {writes(histogram), reads(logits), reads(tops()), reads(cuts()), reads(logits)},
            {slices(), uint32_t(rows)}, 4);
        run("cut_descend", search, {writes(histogram), writes(cuts()), reads(tops())},
            {uint32_t(rows)}, 0);
    }
}

}  // namespace aerie::vulkan
