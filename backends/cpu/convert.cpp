// Converts elements of one float type to another, through f32.
#include "cpu/isa_kernels.h"
#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

template <class To, class From>
void convert_elements(To* to, const From* from, size_t count) {
    size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) store(to + i, load(from + i));
    if (i < count) store_first(to + i, load_first(from + i, int(count - i)), int(count - i));
}

template <class To>
void convert_to(To* to, const void* from, Float from_type, size_t count) {
    switch (from_type) {
        case Float::F32:
            return convert_elements(to, static_cast<const float*>(from), count);
        case Float::F16:
            return convert_elements(to, static_cast<const Half*>(from), count);
        case Float::BF16:
            return convert_elements(to, static_cast<const Brain*>(from), count);
    }
}

}  // namespace

void convert(void* to, Float to_type, const void* from, Float from_type, size_t count) {
    switch (to_type) {
        case Float::F32:
            return convert_to(static_cast<float*>(to), from, from_type, count);
        case Float::F16:
            return convert_to(static_cast<Half*>(to), from, from_type, count);
        case Float::BF16:
            return convert_to(static_cast<Brain*>(to), from, from_type, count);
    }
}

}  // namespace aerie::cpu::AERIE_ISA
