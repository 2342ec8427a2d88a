// head_norm: each head of q and k has the bits that rms_norm gives it alone, and v is untouched.
#include "ops/device_test.h"
#include "reference/layers.h"

namespace aerie {

using namespace reference;

namespace {

class HeadNormTest : public DeviceTest {};

TEST_P(HeadNormTest, HeadsHaveTheBitsOfRowsOfTheirOwn) {
    constexpr float kEpsilon = 1e-6f;
    for (const AttentionShape& shape :
         {AttentionShape{4, 2, 32}, {3, 1, 80}, {2, 2, 128}, {5, 1, 256}, {1, 1, 16}}) {
        const int dim = shape.head_dim, heads = shape.heads + 2 * shape.kv_heads;
        const Matrix q_weight = random_matrix(1, dim, 1), k_weight = random_matrix(1, dim, 2);
        const Array q = upload(q_weight), k = upload(k_weight);
        for (int rows : {1, 3, 64}) {
            SCOPED_TRACE(std::to_string(dim) + ", " + std::to_string(rows) + " rows");
            const Matrix before = random_matrix(rows, heads * dim, 3, 4);
            const Array qkv = upload(before);
            backend_->run(HeadNorm{qkv, q, k, shape, kEpsilon});
            const Matrix got = download(qkv);
            for (int head = 0; head < heads; ++head) {
                Matrix alone(rows, dim), part(rows, dim);
                for (int r = 0; r < rows; ++r) {
                    std::copy_n(before[r] + head * dim, dim, alone[r]);
                    std::copy_n(got[r] + head * dim, dim, part[r]);
                }
                if (head >= shape.heads + shape.kv_heads) {
                    EXPECT_TRUE(same_bits(part, alone)) << "values";
                    continue;
                }
                const bool is_q = head < shape.heads;
                const Array out = poisoned(rows, dim), x = upload(alone);
                backend_->run(RmsNorm{out, x, is_q ? q : k, kEpsilon});
                EXPECT_TRUE(same_bits(part, download(out))) << "head " << head;
                EXPECT_LE(nmse(part, rms_norm(alone, is_q ? q_weight : k_weight, kEpsilon)), 1e-12);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, HeadNormTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
