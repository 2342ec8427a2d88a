// Runs some rows of a choice through the shaders: penalties and mask, the best token, the cuts of
// top-k and top-p. Nothing is read back to the host.
#pragma once

#include <algorithm>

#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

class ChoiceRows {
  public:
    // Takes rows [first, first + count) of the choice, at most as many as scratch.edited has.
    // `places` are the rows of the whole choice, if it has drafted rows.
    ChoiceRows(Queue& queue, const Scratch& scratch, const Choice& choice, const Rows& places,
               int first, int count);

    // Writes the best token of each row by logit to `tops`.
    void find_tops();
    // Writes the best token of each row to `ids`; those of padding rows stay as they are.
    void choose_best(const Tensor& ids, const Rows& rows);
    // Writes to `ids` the best token by logit plus noise among those that the filters keep. Needs
    // tops and cuts.
    void choose_noisy(const Tensor& ids, const Rows& rows, const Tensor& noise);
    // Finds the cuts of top-k and top-p. Needs tops.
    void find_cuts();

    uint32_t slices() const { return groups(int(params.vocab), int(kSlice)); }
    // Dense scratch [rows, slices * words_of_slice] for the results of slices.
    Tensor parts(uint32_t words_of_slice) const {
        return dense_prefix(scratch_.best_parts, rows, int(slices() * words_of_slice));
    }
    Tensor tops() const { return scratch_.tops.row_range(0, rows); }
    Tensor cuts() const { return scratch_.cuts.row_range(0, rows); }

    // Dispatches a shader. `work`: multiply-adds per logit; 0 if it does not go over all logits.
    template <class Params>
    void run(const char* shader, const Params& shader_params,
             std::initializer_list<Access> bindings, Grid grid, double work) {
        queue_.dispatch({{shader},
                         {bindings.begin(), bindings.size()},
                         &shader_params,
                         sizeof(Params),
                         grid,
                         work * rows * params.vocab});
    }

    int rows;
    Tensor logits;  // after penalties and mask
    Tensor rules;   // the rows' rules; without any, another tensor, since the binding needs one
    ChoiceParams params = {};

  private:
    void edit(const Choice& choice, const Rows& places, int first);
    void best(const Rows& places, const Tensor& noise, const Tensor& ids);
    void search_cut(bool by_mass);

    Queue& queue_;
    const Scratch& scratch_;
    bool top_k_, top_p_;
};

// Calls body(ChoiceRows&, first) for blocks of rows that fit into scratch.
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
