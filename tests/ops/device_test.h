// Base of every op test: it runs on each device, and moves host matrices there and back.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "core/quant.h"
#include "reference/matrix.h"

namespace aerie {

struct Device {
    std::string name;
    std::function<std::unique_ptr<Backend>()> open;  // null if the machine lacks it
    unsigned step = 1;  // the device takes every step-th random case: it is slow in tests
};

// The devices of the test program: the CPU with every instruction set and the GPUs, or the CUDA
// kernels under the execution model (tests/simt).
std::vector<Device> devices();

// Vulkan's first device with several settings; none in a build without Vulkan.
std::vector<Device> vulkan_devices();

// The CPU with an instruction set by its $AERIE_CPU_ISA name; null if the CPU lacks it.
std::unique_ptr<Backend> open_cpu_isa(const std::string& isa, int threads);

// A tensor with its own memory. Between its rows lies a gap that must not be written.
struct Array {
    Buffer memory;
    Tensor tensor;

    operator Tensor() const { return tensor; }
};

class DeviceTest : public testing::TestWithParam<Device> {
  protected:
    // Each test takes the backend that the test before it left: its scratch of some 300 MB is
    // allocated once for each device, and nothing that a test leaves there may matter to the next.
    void SetUp() override;
    void TearDown() override;
    // A key for replay() that no other test of this program has: ops of a key never change.
    static uint64_t new_key();

    Array upload(const reference::Matrix& values, DType type = DType::F32);
    Array upload(const reference::Indices& values);
    // The device memory is kept until the test ends.
    Tensor upload(const std::vector<RowChoice>& rules);
    Rows upload(const std::vector<Row>& rows);
    Tensor upload(const std::vector<KvMove>& moves);
    std::unique_ptr<Weight> upload_weight(const reference::Matrix& values, DType type,
                                          WeightUse use = WeightUse::multiply);
    Array poisoned(int rows, int cols);              // NaN everywhere
    Array poisoned_activations(int rows, int cols);  // I8G32 that is NaN everywhere
    Array poisoned_indices(int rows, int cols);      // -12345 everywhere
    reference::Matrix download(const Array& array);  // checks that the gap is untouched
    reference::Indices download_indices(const Array& array);
    std::vector<BlockI8G32> download_activations(const Array& array);

    std::unique_ptr<Backend> backend_;
    std::vector<Buffer> kept_;
    std::deque<reference::Matrix> kept_values_;  // weights may point into them
};

// The values after they were stored as `type`.
reference::Matrix rounded(const reference::Matrix& values, DType type);
std::vector<uint16_t> packed16(const reference::Matrix& values, DType type);
// The values of all rows, quantised, without gaps.
template <class Block>
std::vector<Block> packed_groups(const reference::Matrix& values, Block (*pack)(const float*)) {
    std::vector<Block> blocks;
    for (size_t i = 0; i < values.data.size(); i += kGroup)
        blocks.push_back(pack(values.data.data() + i));
    return blocks;
}

bool same_bits(const reference::Matrix& a, const reference::Matrix& b);
bool same_bits(const float* a, const float* b, int count);

// The largest nmse that a product with float weights, a sum over `inner` columns, may have. A
// tensor core aligns the addends to the largest one and drops the bits below: the errors have one
// sign, so the nmse of a sum grows with the square of its length (models of A100 and H100, arXiv
// 2512.07004: for bf16 1.1e-10 and 6e-11 at 2,048 columns in one sum, 3e-9 and 1.6e-9 at 11,008).
// Short sums, in which only rounding is left, have the limit of 2,048 columns.
// rounding is left, have the limit of 2,048 columns.
inline double float_product_limit(int inner) {
    const double length = std::max(inner, 2048) / 2048.0;
    return 1e-10 * length * length;
}

// Runs multiply() on 1 to 64 rows of x: each row always has the bits that it has alone.
template <class Multiply>
void expect_rows_to_stand_alone(const reference::Matrix& x, int outputs, const std::string& what,
                                const Multiply& multiply) {
    reference::Matrix alone(64, outputs);
    for (int r = 0; r < 64; ++r) {
        reference::Matrix one(1, x.cols);
        std::copy_n(x[r], x.cols, one[0]);
        std::copy_n(multiply(one)[0], outputs, alone[r]);
    }
    for (int rows = 2; rows <= 64; ++rows) {
        reference::Matrix some(rows, x.cols);
        std::copy_n(x.data.begin(), some.data.size(), some.data.begin());
        const reference::Matrix got = multiply(some);
        ASSERT_TRUE(same_bits(got.data.data(), alone.data.data(), int(got.data.size())))
            << what << " at " << rows << " rows";
    }
}

inline std::string device_name(const testing::TestParamInfo<Device>& info) {
    return info.param.name;
}

}  // namespace aerie
