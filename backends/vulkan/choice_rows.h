// Some rows of a choice on their way through the shaders: edits and mask, the best token, the cut
// of top-k and top-p. Nothing comes back to the host.
#pragma once

#include <algorithm>

#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

class ChoiceRows {
  public:
    // The rows [first, first + count) of the choice, at most those of the scratch. `places` of the
    // whole choice, if it has drafted rows.
    ChoiceRows(Queue& queue, const Scratch& scratch, const Choice& choice, const Rows& places,
               int first, int count);

    // The best token of each row by logit, into `tops`.
    void find_tops();
    // The same into `ids`; padding rows are left alone.
    void choose_best(const Tensor& ids, const Rows& rows);
    // The best of what the filters keep plus noise. Needs tops and cuts.
    void choose_noisy(const Tensor& ids, const Rows& rows, const Tensor& noise);
    // What the filters keep. Needs tops.
    void find_cuts();

    uint32_t slices() const { return groups(int(params.vocab), int(kSlice)); }
    // Dense scratch of these rows for what slices find.
    Tensor parts(uint32_t words_of_slice) const {
        return dense_prefix(scratch_.best_parts, rows, int(slices() * words_of_slice));
    }
    Tensor tops() const { return scratch_.tops.row_range(0, rows); }
    Tensor totals() const { return scratch_.totals.row_range(0, rows); }
    Tensor cuts() const { return scratch_.cuts.row_range(0, rows); }

    // `work` is that of one logit, if it goes over all of them.
    template <class Params>
    void run(const char* shader, const Params& own, std::initializer_list<Access> bindings,
             Grid grid, double work) {
        queue_.dispatch({{shader},
                         {bindings.begin(), bindings.size()},
                         &own,
                         sizeof(Params),
                         grid,
                         work * rows * params.vocab});
    }

    int rows;
    Tensor logits;  // edited
    Tensor rules;   // of these rows; where there are none, something to bind
    ChoiceParams params = {};

  private:
    void edit(const Choice& choice, const Rows& places, int first);
    void best(const Rows& places, const Tensor& noise, const Tensor& ids);
    void search_cut(bool by_mass);

    Queue& queue_;
    const Scratch& scratch_;
    bool top_k_, top_p_;
};

// Calls body(ChoiceRows&, first) for blocks of rows that fit into the scratch.
template <class Body>
void for_choice_rows(Queue& queue, const Scratch& scratch, const Choice& choice, const Rows& places,
                     const Body& body) {
    for (int first = 0; first < choice.logits.rows; first += scratch.edited.rows) {
        const int count = std::min(scratch.edited.rows, choice.logits.rows - first);
        ChoiceRows rows(queue, scratch, choice, places, first, count);
        body(rows, first);
    }
}

}  // namespace aerie::vulkan
