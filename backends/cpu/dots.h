// Integer dot products of a panel (16 rows x 32 elements) with packed columns, and what is common
// to them on every instruction set.
#pragma once

#include "core/quant.h"
#include "cpu/columns.h"
#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

constexpr int kSteps = 8;  // of four elements in a panel

inline void prefetch_panel(const uint8_t* panel, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(panel + i);
}

// sums += dots * (scales of the rows * scale of the column)
inline void add_scaled(float* sums, F32x16 dots, F32x16 row_scales, float column_scale) {
    store(sums, load(sums) + dots * (row_scales * splat(column_scale)));
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA

#if defined(__AVX512VNNI__)
#include "cpu/dots_avx512.h"
#elif defined(__AVX2__)
#include "cpu/dots_avx2.h"
#else
#include "cpu/dots_portable.h"
#endif
