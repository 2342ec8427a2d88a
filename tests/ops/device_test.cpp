// Moves matrices to a device under test and back.
#include "ops/device_test.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace aerie {

using reference::Indices;
using reference::Matrix;

namespace {

constexpr int kGap = 6;  // elements between the rows of an Array: whole words, as GPUs require
constexpr int32_t kPoison = -12345;

Array strided(Backend& be, DType type, int rows, int cols) {
    const int stride = cols + (is_quantised(type) ? kGroup : kGap);
    Array array{be.allocate(dense_bytes(type, rows, stride)), {}};
    array.tensor = {array.memory.get(), 0, type, rows, cols, stride};
    return array;
}

// Backends by device, between the tests that run on them. They are closed before the program's
// static objects are destroyed, which drivers have some of.
std::map<std::string, std::unique_ptr<Backend>>& idle_backends() {
    static std::map<std::string, std::unique_ptr<Backend>> backends;
    struct Closing : testing::Environment {
        void TearDown() override { backends.clear(); }
    };
    [[maybe_unused]] static testing::Environment* const closing =
        testing::AddGlobalTestEnvironment(new Closing);
    return backends;
}

Tensor with_gap(const Array& array) {
    Tensor all = array.tensor;
    all.cols = all.row_stride;
    return all;
}

}  // namespace

void DeviceTest::SetUp() {
    std::unique_ptr<Backend>& idle = idle_backends()[GetParam().name];
    if (idle) {
        backend_ = std::move(idle);
        return;
    }
    backend_ = GetParam().open();
    if (!backend_) GTEST_SKIP() << "SKIPPED: no " << GetParam().name << " here";
    backend_->reserve({.rows = 130,
                       .top_k = kMaxTopK,
                       .widest = 8192,
                       .vocab = 40000,
                       .context = 4096,
                       .heads = 32,
                       .head_dim = 128,
                       .places = 130 * 8});
}

void DeviceTest::TearDown() {
    idle_backends()[GetParam().name] = std::move(backend_);
}

uint64_t DeviceTest::new_key() {
    static uint64_t last = 0;
    return ++last;
}

Array DeviceTest::upload(const Matrix& values, DType type) {
    Array array = strided(*backend_, type, values.rows, values.cols);
    if (type == DType::F32) {
        backend_->write(array.tensor, values.data.data());
    } else if (type == DType::I8G32) {
        backend_->write(array.tensor, packed_groups(values, pack_i8g32).data());
    } else {
        backend_->write(array.tensor, packed16(values, type).data());
    }
    return array;
}

Array DeviceTest::upload(const Indices& values) {
    Array array = strided(*backend_, DType::I32, values.rows, values.cols);
    backend_->write(array.tensor, values.data.data());
    return array;
}

Tensor DeviceTest::upload(const std::vector<RowChoice>& rules) {
    kept_.push_back(backend_->allocate(rules.size() * sizeof(RowChoice)));
    const Tensor block = dense(kept_.back().get(), DType::I32, int(rules.size()), kRowChoiceInts);
    backend_->write(block, rules.data());
    return block;
}

Rows DeviceTest::upload(const std::vector<Row>& rows) {
    kept_.push_back(backend_->allocate(rows.size() * sizeof(Row)));
    const Tensor block = dense(kept_.back().get(), DType::I32, int(rows.size()), kRowInts);
    backend_->write(block, rows.data());
    return {block};
}

Tensor DeviceTest::upload(const std::vector<KvMove>& moves) {
    kept_.push_back(backend_->allocate(moves.size() * sizeof(KvMove)));
    const Tensor block = dense(kept_.back().get(), DType::I32, int(moves.size()), kKvMoveInts);
    backend_->write(block, moves.data());
    return block;
}

std::unique_ptr<Weight> DeviceTest::upload_weight(const Matrix& values, DType type, WeightUse use) {
    kept_values_.push_back(values);
    const WeightBlock block{DType::F32, type, kept_values_.back().data.data(), values.rows,
                            values.cols};
    return backend_->upload_weight({&block, 1}, use);
}

Array DeviceTest::poisoned(int rows, int cols) {
    Array array = strided(*backend_, DType::F32, rows, cols);
    const Matrix poison(rows, cols + kGap, std::numeric_limits<float>::quiet_NaN());
    backend_->write(with_gap(array), poison.data.data());
    return array;
}

Array DeviceTest::poisoned_activations(int rows, int cols) {
    Array array = strided(*backend_, DType::I8G32, rows, cols);
    const Matrix poison(rows, cols + kGroup, std::numeric_limits<float>::quiet_NaN());
    backend_->write(with_gap(array), packed_groups(poison, pack_i8g32).data());
    return array;
}

Array DeviceTest::poisoned_indices(int rows, int cols) {
    Array array = strided(*backend_, DType::I32, rows, cols);
    const Indices poison(rows, cols + kGap, kPoison);
    backend_->write(with_gap(array), poison.data.data());
    return array;
}

Matrix DeviceTest::download(const Array& array) {
    const Tensor all = with_gap(array);
    Matrix wide(all.rows, all.cols), out(array.tensor.rows, array.tensor.cols);
    backend_->read(all, wide.data.data());
    for (int r = 0; r < out.rows; ++r) {
        std::copy_n(wide[r], out.cols, out[r]);
        for (int c = out.cols; c < wide.cols; ++c)
            EXPECT_TRUE(std::isnan(wide[r][c]) || wide[r][c] == 0) << "row " << r << " overflows";
    }
    return out;
}

Indices DeviceTest::download_indices(const Array& array) {
    const Tensor all = with_gap(array);
    Indices wide(all.rows, all.cols), out(array.tensor.rows, array.tensor.cols);
    backend_->read(all, wide.data.data());
    for (int r = 0; r < out.rows; ++r) {
        std::copy_n(wide[r], out.cols, out[r]);
        for (int c = out.cols; c < wide.cols; ++c)
            EXPECT_TRUE(wide[r][c] == kPoison || wide[r][c] == 0) << "row " << r << " overflows";
    }
    return out;
}

std::vector<BlockI8G32> DeviceTest::download_activations(const Array& array) {
    const Tensor all = with_gap(array);
    const size_t width = size_t(all.cols / kGroup), groups = width - 1;
    std::vector<BlockI8G32> wide(size_t(all.rows) * width), out;
    backend_->read(all, wide.data());
    for (size_t i = 0; i < wide.size(); ++i) {
        if (i % width < groups)
            out.push_back(wide[i]);
        else
            EXPECT_TRUE(std::isnan(wide[i].scale)) << "row " << i / width << " overflows";
    }
    return out;
}

std::vector<uint16_t> packed16(const Matrix& values, DType type) {
    std::vector<uint16_t> out;
    for (float x : values.data) out.push_back(type == DType::F16 ? f32_to_f16(x) : f32_to_bf16(x));
    return out;
}

Matrix rounded(const Matrix& values, DType type) {
    Matrix out = values;
    for (float& x : out.data) {
        if (type == DType::F16) x = f16_to_f32(f32_to_f16(x));
        if (type == DType::BF16) x = bf16_to_f32(f32_to_bf16(x));
    }
    for (size_t i = 0; is_quantised(type) && i < out.data.size(); i += kGroup) {
        float* group = out.data.data() + i;
        if (type == DType::Q8_0) unpack(group, pack_q8_0(group));
        if (type == DType::Q4_0) unpack(group, pack_q4_0(group));
        if (type == DType::I8G32) unpack(group, pack_i8g32(group));
    }
    return out;
}

bool same_bits(const float* a, const float* b, int count) {
    return std::memcmp(a, b, size_t(count) * sizeof(float)) == 0;
}

bool same_bits(const Matrix& a, const Matrix& b) {
    return a.data.size() == b.data.size() &&
           same_bits(a.data.data(), b.data.data(), int(a.data.size()));
}

}  // namespace aerie
