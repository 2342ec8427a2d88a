// replay: a recording runs again with new contents, and is made anew if memory that it used is
// gone.
#include "ops/device_test.h"

namespace aerie {

using namespace reference;

namespace {

class ReplayTest : public DeviceTest {};

TEST_P(ReplayTest, RunsWithWhatTheTensorsHoldNow) {
    const auto weight = upload_weight(random_matrix(33, 64, 1), DType::Q8_0);
    Array x = upload(Matrix(3, 64)), groups = poisoned_activations(3, 64), out = poisoned(3, 33);
    const auto pass = [&] {
        backend_->run(Copy{groups, x});
        backend_->run(Matmul{out, groups, *weight});
        backend_->run(Add{out, out, out});
    };
    const uint64_t key = new_key();
    for (unsigned seed = 2; seed < 6; ++seed) {
        const Matrix values = random_matrix(3, 64, seed);
        backend_->write(x.tensor, values.data.data());
        backend_->replay(key, pass);
        const Matrix got = download(out);
        pass();
        EXPECT_TRUE(same_bits(got, download(out))) << seed;
    }
}

TEST_P(ReplayTest, KeysAreRecordingsOfTheirOwn) {
    Array a = upload(Matrix(1, 8, 1.0f)), b = upload(Matrix(1, 8, 10.0f));
    const uint64_t first = new_key(), second = new_key();
    for (int i = 0; i < 3; ++i) {
        backend_->replay(first, [&] { backend_->run(Add{a, a, a}); });
        backend_->replay(second, [&] { backend_->run(Add{b, b, a}); });
    }
    EXPECT_EQ(download(a)[0][0], 8);
    EXPECT_EQ(download(b)[0][7], 10 + 2 + 4 + 8);
}

// A recording holds addresses: it must not be used once one of them is gone.
TEST_P(ReplayTest, MemoryThatGoesTakesRecordingsWithIt) {
    const uint64_t key = new_key();
    for (float value : {1.0f, 2.0f, 3.0f}) {
        const Array a = upload(Matrix(1, 1000, value));
        Array out = poisoned(1, 1000);
        backend_->replay(key, [&] { backend_->run(Add{out, a, a}); });
        const Matrix got = download(out);
        for (float x : got.data) ASSERT_EQ(x, 2 * value);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, ReplayTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
