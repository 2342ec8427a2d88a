// Values into blocks of the types that weights may be stored in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace aerie {

// Those that a user may choose.
constexpr DType kWeightTypes[] = {DType::F32,  DType::F16,  DType::BF16, DType::Q8_0,
                                  DType::Q4_0, DType::Q4_K, DType::Q5_K, DType::Q6_K};

// What takes the place of a chosen type where rows are no whole blocks of it: the one that
// llama.cpp takes, of about as many bits in blocks of 32.
constexpr DType type_for(DType wanted, int64_t cols) {
    if (cols % unit_elements(wanted) == 0) return wanted;
    switch (wanted) {
        case DType::Q4_K:
            return DType::Q5_0;
        case DType::Q5_K:
            return DType::Q5_1;
        case DType::Q6_K:
            return DType::Q8_0;
        default:
            return wanted;
    }
}

// Whether pack makes blocks of it: what may be chosen, and what takes its place.
bool can_pack(DType type);

// `count` values, whole blocks of the type, at any alignment. Steps beyond f16's range become its
// largest number; a NaN becomes 0. Q8_0 and Q4_0 by their definition (core/quant.h); of the others
// each sixteen or thirty-two gets the scale (and least value) that leaves the smallest squared
// error, larger values counting more, and then steps that are the nearest to what the block can
// say. Throws std::logic_error unless can_pack.
void pack(std::byte* to, const float* values, DType type, size_t count);

}  // namespace aerie
