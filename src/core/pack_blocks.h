// Quantises values into blocks of the types that weights may be stored in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace aerie {

// The types that a user may choose.
constexpr DType kWeightTypes[] = {DType::F32,  DType::F16,  DType::BF16, DType::Q8_0,
                                  DType::Q4_0, DType::Q4_K, DType::Q5_K, DType::Q6_K};

// The type that replaces a chosen one if rows are not whole blocks of it. It is the one that
// llama.cpp takes: about as many bits, in blocks of 32.
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

// Whether pack makes blocks of this type: true for the types above and their replacements.
bool can_pack(DType type);

// Packs `count` values, which must be whole blocks of the type; both pointers may have any
// alignment. A scale or min beyond f16's range becomes its largest number; a NaN becomes 0. Q8_0
// and Q4_0 follow their definition (core/quant.h). For the other types each group of 16 or 32 gets
// the scale (and min) with the smallest squared error, in which larger values weigh more, and then
// the quantised values that are nearest under the scales as stored. Throws std::logic_error unless
// can_pack.
void pack(std::byte* to, const float* values, DType type, size_t count);

}  // namespace aerie
