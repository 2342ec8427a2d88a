// Binary search for the largest number that fits.
#pragma once

#include <cstdint>

namespace aerie {

// The largest number up to `high` that fits, if all up to it do; at least `low`.
template <class Fits>
int64_t largest_with(const Fits& fits, int64_t low, int64_t high) {
    if (fits(high)) return high;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
    }
    return low;
}

}  // namespace aerie
