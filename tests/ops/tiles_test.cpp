// Products by AMX on a model of its tiles: CI's machines may lack AMX.
#include <gtest/gtest.h>

#include <cstring>

#include "cpu/isa.h"
#include "cpu/memory.h"
#include "cpu/strips.h"
#include "reference/quantised.h"

namespace aerie::cpu {

namespace tiles_model {
void pack_columns(const PackTask& task, int first, int last);
void matmul_quant(const QuantMatmulTask& task);
}  // namespace tiles_model

namespace {

using namespace reference;

std::unique_ptr<CpuMemory> in_strips(const Blocks& blocks) {
    const size_t bytes = strip_bytes(blocks.type, blocks.cols);
    const int strips = (blocks.rows + kStripRows - 1) / kStripRows;
    auto memory = std::make_unique<CpuMemory>(bytes * size_t(strips));
    RowPacker packer(blocks.type, blocks.cols, kernels(Isa::portable));
    for (int r = 0; r < blocks.rows; ++r)
        packer.pack(memory->data() + size_t(r / kStripRows) * bytes, r % kStripRows,
                    blocks.data.data() + size_t(r) * size_bytes(blocks.type, size_t(blocks.cols)),
                    blocks.type);
    return memory;
}

Matrix multiply(const Matrix& x, const Blocks& blocks) {
    std::vector<BlockI8G32> groups;
    for (size_t i = 0; i < x.data.size(); i += kGroup) groups.push_back(pack_i8g32(&x.data[i]));
    const int each = x.cols / kGroup;
    CpuMemory packed(size_t((x.rows + kPackedStep) * each) * kPackedGroupBytes);
    const auto weight = in_strips(blocks);
    tiles_model::pack_columns({.x = groups.data(),
                               .x_stride = size_t(each) * sizeof(BlockI8G32),
                               .columns = x.rows,
                               .inner = x.cols,
                               .type = blocks.type,
                               .packed = packed.data()},
                              0, x.rows);
    Matrix out(x.rows, blocks.rows);
    tiles_model::matmul_quant({.packed = packed.data(),
                               .columns = x.rows,
                               .weight = weight->data(),
                               .type = blocks.type,
                               .rows = blocks.rows,
                               .inner = x.cols,
                               .output = {.bias = nullptr,
                                          .out = out.data.data(),
                                          .out_stride = size_t(blocks.rows),
                                          .accumulate = false,
                                          .places = nullptr}});
    return out;
}

TEST(Tiles, ProductsHaveTheBitsOfTheDefinition) {
    for (DType type : {DType::Q8_0, DType::Q4_0, DType::Q4_1, DType::Q5_0, DType::Q5_1,
                       DType::IQ4_NL, DType::Q4_K, DType::Q5_K, DType::IQ4_XS})
        for (int rows : {1, 4, 9, 13, 16, 17, 60, 64, 127, 128}) {
            SCOPED_TRACE(std::string(name(type)) + ", " + std::to_string(rows) + " rows");
            const Matrix x = random_matrix(rows, 1280, 1);
            const Blocks blocks = random_blocks(type, 37, 1280, 2);
            const Matrix got = multiply(x, blocks), want = quantised_matmul(x, blocks);
            ASSERT_EQ(std::memcmp(got.data.data(), want.data.data(), got.data.size() * 4), 0);
        }
}

}  // namespace
}  // namespace aerie::cpu
