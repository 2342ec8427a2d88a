// Missing rows are made by one op and appended to the existing ones.
#include "draft/trees/noise_rows.h"

#include <numeric>

#include "draft/trees/tree.h"

namespace aerie {

Tensor NoiseRows::rows(Backend& be, int count) {
    if (const int missing = count - made_; missing > 0) {
        DepthList<int32_t> positions;
        positions.resize(size_t(missing));
        std::iota(positions.begin(), positions.end(), first_position_ + made_);
        const Tensor device = positions_.col_range(0, missing);
        be.write(device, positions.data());
        be.run(Noise{noise_.row_range(made_, missing), seed_, device});
        made_ = count;
    }
    return noise_.row_range(0, count);
}

Tensor NoiseRows::row(Backend& be, int d) {
    const Tensor row = rows(be, d + 1).row_range(d, 1);
    if (!be.capabilities().records) return row;
    be.run(Copy{copy_, row}, "noise");
    return copy_;
}

}  // namespace aerie
