// kv_compact: rows of several sequences move in all layers at once, as if they moved one after
// another.
#include <algorithm>
#include <tuple>

#include "ops/device_test.h"

namespace aerie {

using namespace reference;

namespace {

constexpr int kPages = 2;      // per sequence
constexpr int kSequences = 3;  // their pages are interleaved
constexpr int kRows = kSequences * kPages * kPageSize;

int cache_row(int sequence, int slot) {
    const int page = slot / kPageSize * kSequences + (sequence + 1) % kSequences;
    return page * kPageSize + slot % kPageSize;
}

// Moves onto each other, across a page border, in place, and far down.
std::vector<KvMove> all_moves() {
    return {{2, 10, 10}, {2, 12, 11}, {2, 13, 12}, {0, 62, 61},  {0, 63, 62},
            {0, 66, 63}, {0, 70, 64}, {1, 100, 0}, {1, 127, 127}};
}

// A model's cache on the device, and on the host the values that it must have afterwards.
struct Layers {
    Array page_table;
    std::vector<Array> memory;  // keys and values in turn
    std::vector<Matrix> want;
    std::vector<KvLayer> layers;
};

class KvCompactTest : public DeviceTest {
  protected:
    Layers make(int count, int cols, DType type) {
        Layers made;
        Indices pages(kSequences, kPages);
        for (int s = 0; s < kSequences; ++s)
            for (int p = 0; p < kPages; ++p) pages[s][p] = cache_row(s, p * kPageSize) / kPageSize;
        made.page_table = upload(pages);
        for (int i = 0; i < 2 * count; ++i) {
            made.want.push_back(rounded(random_matrix(kRows, cols, unsigned(i)), type));
            made.memory.push_back(upload(made.want.back(), type));
        }
        for (size_t i = 0; i < made.memory.size(); i += 2)
            made.layers.push_back({made.memory[i], made.memory[i + 1], made.page_table});
        return made;
    }

    bool holds(const Array& array, const Matrix& want) {
        if (array.tensor.dtype == DType::F32) return same_bits(download(array), want);
        std::vector<uint16_t> got(want.data.size());
        backend_->read(array.tensor, got.data());
        return got == packed16(want, array.tensor.dtype);
    }
};

TEST_P(KvCompactTest, MovesRowsOfAllLayersAndSequences) {
    for (const auto& [layers, cols, type] :
         {std::tuple(1, 272, DType::F32), {5, 48, DType::F16}, {131, 4, DType::F32}}) {
        Layers made = make(layers, cols, type);
        backend_->run(KvCompact{made.layers, upload(all_moves())});
        for (size_t i = 0; i < made.want.size(); ++i) {
            for (const KvMove& move : all_moves())
                std::copy_n(made.want[i][cache_row(move.sequence, move.from)], cols,
                            made.want[i][cache_row(move.sequence, move.to)]);
            EXPECT_TRUE(holds(made.memory[i], made.want[i]))
                << "layer " << i / 2 << " of " << layers << (i % 2 ? ", values" : ", keys");
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, KvCompactTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
