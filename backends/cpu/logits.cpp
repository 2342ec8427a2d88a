// Passes over a row of logits: best values, sums of exponentials, cuts.
#include "cpu/isa_kernels.h"
#include "cpu/vector_math.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

constexpr float kInfinity = __builtin_inff();

// The best value(i, n) above -inf over groups of lanes; lanes beyond n must be NaN.
template <class Value>
ArgMax best_of(int count, Value value) {
    F32x16 best = splat(-kInfinity);
    U32x16 ids = splat_u32(~0u);  // as signed -1: nothing yet
    U32x16 here = iota();
    for_lanes(count, [&](int i, int n) {
        const F32x16 v = value(i, n);
        const Mask16 better = best < v;
        best = select(better, v, best);
        ids = select(better, here, ids);
        here = here + splat_u32(kLanes);
    });
    float values[kLanes];
    store(values, best);
    int32_t lane_ids[kLanes];
    __builtin_memcpy(lane_ids, &ids, sizeof(lane_ids));
    ArgMax result = {-1, -kInfinity};
    for (int j = 0; j < kLanes; ++j) {
        const bool better =
            values[j] > result.value ||
            (values[j] == result.value && unsigned(lane_ids[j]) < unsigned(result.id));
        if (better) result = {lane_ids[j], values[j]};
    }
    return result;
}

F32x16 load_or_nan(const float* x, int n) {
    return n == kLanes ? load(x) : load_first(x, n, __builtin_nanf(""));
}

}  // namespace

ArgMax argmax(const float* x, int count) {
    const ArgMax best = best_of(count, [=](int i, int n) { return load_or_nan(x + i, n); });
    if (best.id >= 0) return best;
    for (int i = 0; i < count; ++i)  // nothing above -inf
        if (x[i] == -kInfinity) return {i, -kInfinity};
    return best;
}

ArgMax argmax_noise(const float* x, const float* noise, float shift, float scale, int count) {
    const F32x16 shifts = splat(shift), scales = splat(scale);
    return best_of(count, [=](int i, int n) {
        return (load_or_nan(x + i, n) - shifts) * scales + load_some(noise + i, n);
    });
}

void perturb(float* out, const float* x, const float* noise, float shift, float scale, int count) {
    const F32x16 shifts = splat(shift), scales = splat(scale);
    for_lanes(count, [&](int i, int n) {
        const F32x16 z = (load_some(x + i, n) - shifts) * scales;
        store_some(out + i, noise ? z + load_some(noise + i, n) : z, n);
    });
}

double exp_sum(const float* x, float shift, float scale, int count) {
    const F32x16 shifts = splat(shift), scales = splat(scale), zero = splat(0.0f);
    F32x16 total = zero, lost = zero;
    for_lanes(count, [&](int i, int n) {
        const F32x16 z = (load_or_nan(x + i, n) - shifts) * scales;
        const F32x16 e = select(z <= splat(kInfinity), exp(z), zero);
        // The rounding error of the sum is kept too (Knuth's two-sum), so that a large vocabulary
        // loses nothing.
        const F32x16 next = total + e, part = next - total;
        lost = lost + ((total - (next - part)) + (e - part));
        total = next;
    });
    float totals[kLanes], losses[kLanes];
    store(totals, total);
    store(losses, lost);
    double result = 0;
    for (int j = 0; j < kLanes; ++j) result += double(totals[j]) + double(losses[j]);
    return result;
}

void exp_all(float* out, const float* x, float shift, float scale, int count) {
    const F32x16 shifts = splat(shift), scales = splat(scale), zero = splat(0.0f);
    for_lanes(count, [&](int i, int n) {
        const F32x16 z = (load_some(x + i, n) - shifts) * scales;
        const F32x16 e = select(z <= splat(kInfinity), exp(z), zero);
        store_some(out + i, e, n);
    });
}

int ids_between(int32_t* ids, const float* x, float low, float high, int count) {
    int found = 0;
    for_lanes(count, [&](int i, int n) {
        const F32x16 v = load_or_nan(x + i, n);
        for (uint32_t hits = bits((splat(low) <= v) & (v < splat(high))); hits; hits &= hits - 1)
            ids[found++] = i + __builtin_ctz(hits);
    });
    return found;
}

void remove_below(float* x, float cut, int count) {
    for_lanes(count, [&](int i, int n) {
        const F32x16 v = load_some(x + i, n);
        store_some(x + i, select(splat(cut) <= v, v, splat(-kInfinity)), n);
    });
}

int best(int32_t* ids, float* values, int k, const float* x, int count) {
    int found = 0;
    float threshold = -kInfinity;  // the k-th best value so far
    for_lanes(count, [&](int i, int n) {
        const F32x16 v = load_or_nan(x + i, n);
        for (uint32_t hits = bits(splat(threshold) < v); hits; hits &= hits - 1) {
            const int id = i + __builtin_ctz(hits);
            const float value = x[id];
            if (!(value > threshold)) continue;  // an earlier lane raised it
            int place = found < k ? found++ : k - 1;
            for (; place > 0 && values[place - 1] < value; --place) {
                values[place] = values[place - 1];
                ids[place] = ids[place - 1];
            }
            values[place] = value;
            ids[place] = id;
            if (found == k) threshold = values[k - 1];
        }
    });
    return found;
}

}  // namespace aerie::cpu::AERIE_ISA
