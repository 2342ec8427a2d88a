// matmul: a token and a row of the weight stand alone. At every place, beside anything else, they
// have the same product: on tensor cores this shows that elements of a tile do not mix.
#include <limits>

#include "ops/device_test.h"

namespace aerie {

using reference::Matrix;
using reference::random_matrix;

namespace {

constexpr int kPlaces = 64;
constexpr DType kTypes[] = {DType::F32,  DType::F16,  DType::BF16, DType::Q8_0,
                            DType::Q4_0, DType::Q4_K, DType::Q6_K};

// More columns than one part of the sum (core/quant.h), or than one range of split-K
// (backends/cuda/split.h).
int inner_of(DType type) {
    return is_float(type) ? 544 : 1280;
}

// Rows in which `place` holds `row` and every other place holds a value that spoils any sum it
// enters: NaN, or for quantised types, which have no NaN, values with an infinite scale. With a
// negative place all rows hold `row`.
Matrix at_place(int places, int place, const Matrix& row, float spoils) {
    Matrix all(places, row.cols, spoils);
    for (int i = 0; i < places; ++i)
        if (place < 0 || i == place) std::copy_n(row[0], row.cols, all[i]);
    return all;
}

class ColumnsTest : public DeviceTest {
  protected:
    Matrix multiply(const Matrix& x, const Weight& w) {
        Array out = poisoned(x.rows, w.rows);
        backend_->run(Matmul{out, upload(x, backend_->activation_type(w)), w});
        return download(out);
    }

    // The product of one token with a row that stands at all places.
    float product_of(const Matrix& x, const Matrix& row, DType type) {
        const auto weight = upload_weight(at_place(kPlaces, -1, row, 0), type);
        const Matrix alone = multiply(x, *weight);
        for (int n = 0; n < kPlaces; ++n)
            EXPECT_TRUE(same_bits(alone[0] + n, alone[0], 1)) << name(type) << ", row " << n;
        return alone[0][0];
    }

    // All places on a GPU; on a CPU driver every seventh, which visits each column of eight.
    int step() const {
        const bool is_played = backend_->capabilities().kind == DeviceKind::cpu;
        return is_played && GetParam().step > 1 ? 7 : 1;
    }
};

TEST_P(ColumnsTest, ATokenIsByItself) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    for (DType type : kTypes) {
        if (!backend_->stores(type)) continue;
        const Matrix row = random_matrix(1, inner_of(type), 1);
        const Matrix x = random_matrix(1, inner_of(type), 2);
        const float want = product_of(x, row, type);
        const auto weight = upload_weight(at_place(kPlaces, -1, row, 0), type);
        for (int tokens : {2, 8, 16, 32, kPlaces})
            for (int place = 0; place < tokens; place += step()) {
                const Matrix got = multiply(at_place(tokens, place, x, kNan), *weight);
                for (int n = 0; n < kPlaces; ++n)
                    ASSERT_TRUE(same_bits(got[place] + n, &want, 1))
                        << name(type) << ", token " << place << " of " << tokens << ", row " << n;
            }
    }
}

TEST_P(ColumnsTest, ARowOfAWeightIsByItself) {
    for (DType type : kTypes) {
        if (!backend_->stores(type)) continue;
        const float spoils = is_float(type) ? std::numeric_limits<float>::quiet_NaN() : 1e30f;
        const Matrix row = random_matrix(1, inner_of(type), 1);
        const Matrix x = random_matrix(1, inner_of(type), 2);
        const float want = product_of(x, row, type);
        for (int place = 0; place < kPlaces; place += step()) {
            const auto weight = upload_weight(at_place(kPlaces, place, row, spoils), type);
            for (int tokens : {1, 8, kPlaces}) {
                const Matrix got = multiply(at_place(tokens, -1, x, 0), *weight);
                for (int t = 0; t < tokens; ++t)
                    ASSERT_TRUE(same_bits(got[t] + place, &want, 1))
                        << name(type) << ", row " << place << ", token " << t << " of " << tokens;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, ColumnsTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
