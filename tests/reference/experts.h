// Routing of tokens to experts, in doubles.
#pragma once

#include "backend/routing.h"
#include "reference/matrix.h"

namespace aerie::reference {

struct Chosen {
    Indices ids;    // [rows, k]
    Exact weights;  // [rows, k]
};
Chosen choose_experts(const Matrix& logits, int k, bool normalised);

// Results that follow from the chosen ids.
Indices order_of(const Indices& ids, int experts);  // [1, rows * k]
std::vector<ExpertTile> tiles_of(const Indices& ids, int experts);

}  // namespace aerie::reference
