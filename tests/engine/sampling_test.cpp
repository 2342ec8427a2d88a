// The tokens that penalties have seen, and values that sampling refuses.
#include "engine/sampling.h"

#include <gtest/gtest.h>

#include <limits>

#include "backend/registry.h"
#include "core/error.h"

namespace aerie {
namespace {

class SeenTokensTest : public testing::Test {
  protected:
    static constexpr int kVocab = 100;

    SeenTokensTest() {
        seen_.reset(kVocab);
        be_->write(row_, std::vector<int32_t>(kVocab, -1).data());
    }
    std::vector<int32_t> on_device() {
        seen_.write_to(*be_, row_);
        std::vector<int32_t> words(kVocab);
        be_->read(row_, words.data());
        return words;
    }

    std::unique_ptr<Backend> be_ = open_device("cpu", {1});
    Buffer memory_ = be_->allocate(dense_bytes(DType::I32, 1, kVocab));
    Tensor row_ = dense(memory_.get(), DType::I32, 1, kVocab);
    SeenTokens seen_;
};

TEST_F(SeenTokensTest, TellPromptFromOutput) {
    seen_.add(std::vector<int>{5, 6, 5}, false);
    seen_.add(std::vector<int>{6, 7, 7}, true);
    std::vector<int32_t> want(kVocab);
    want[5] = kInPrompt;
    want[6] = kInPrompt + kPutOut;
    want[7] = 2 * kPutOut;
    EXPECT_EQ(on_device(), want);
}

TEST_F(SeenTokensTest, ReachTheDeviceHoweverManyThereAre) {
    std::vector<int32_t> want = on_device();
    EXPECT_EQ(want, std::vector<int32_t>(kVocab));
    for (int count : {1, 3, 63, 64, 65, 200}) {
        for (int i = 0; i < count; ++i) {
            const int token = (count + 7 * i) % kVocab;
            seen_.add({&token, 1}, true);
            want[size_t(token)] += kPutOut;
        }
        EXPECT_EQ(on_device(), want) << count;
    }
    seen_.reset(kVocab);
    EXPECT_EQ(on_device(), std::vector<int32_t>(kVocab));
}

TEST(Sampling, RefusesValuesOutOfRange) {
    Sampling sampling;
    EXPECT_NO_THROW(check_sampling(sampling));
    sampling.filters.temperature = -1;
    EXPECT_THROW(check_sampling(sampling), UsageError);
    sampling.filters.temperature = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THROW(check_sampling(sampling), UsageError);
    sampling.filters.temperature = 1;
    sampling.filters.top_p = 1.5f;
    EXPECT_THROW(check_sampling(sampling), UsageError);
    sampling.filters.top_p = 1;
    sampling.penalties.repetition = 0;
    EXPECT_THROW(check_sampling(sampling), UsageError);
}

}  // namespace
}  // namespace aerie
