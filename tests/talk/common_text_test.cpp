// Common prefixes of the same text in different tokens.
#include "text/common_text.h"

#include <gtest/gtest.h>

#include "paths.h"
#include "text/tokenizer.h"

namespace aerie::test {
namespace {

class CommonTextTest : public testing::Test {
  protected:
    // One token for each byte, as a model might generate the text.
    std::vector<int> spelled(const std::string& text) const {
        std::vector<int> ids;
        for (const unsigned char byte : text) {
            char name[8];
            std::snprintf(name, sizeof(name), "<0x%02X>", byte);
            ids.push_back(bpe_.id_of(name));
        }
        return ids;
    }
    std::vector<int> cut(const std::string& text) const { return tokenizer_.encode(text); }
    std::pair<size_t, size_t> common(std::span<const int> a, std::span<const int> b) const {
        const CommonText both = common_text(bpe_, a, b);
        return {both.first, both.second};
    }

    const Tokenizer tokenizer_ = Tokenizer::load(models_dir() / "aerie-tiny");
    const BpeTokenizer& bpe_ = tokenizer_.bpe();
};

TEST_F(CommonTextTest, CountsTheSameIds) {
    const std::vector<int> ids = cut("the quick brown fox");
    std::vector<int> other = ids;
    EXPECT_EQ(common(ids, ids), std::pair(ids.size(), ids.size()));
    other.resize(2);
    EXPECT_EQ(common(ids, other), std::pair(size_t(2), size_t(2)));
    EXPECT_EQ(common({}, ids), std::pair(size_t(0), size_t(0)));
}

TEST_F(CommonTextTest, FollowsOtherPieces) {
    const std::vector<int> ids = cut("the quick brown fox");
    const std::vector<int> bytes = spelled(" the quick brown fox");
    EXPECT_EQ(common(ids, bytes), std::pair(ids.size(), bytes.size()));
    EXPECT_EQ(common(bytes, ids), std::pair(bytes.size(), ids.size()));
}

// The last position before the first difference where both texts have a token boundary.
TEST_F(CommonTextTest, EndsAtABorderOfBoth) {
    std::vector<int> ids = cut("the quick brown");
    const std::vector<int> bytes = spelled(" the quick brawn");
    const auto [first, second] = common(ids, bytes);
    ASSERT_LT(first, ids.size());
    ids.resize(first);
    std::string text;
    for (const int id : ids) text += bpe_.bytes(id);
    EXPECT_EQ(text, std::string(" the quick brawn").substr(0, second));
    EXPECT_GE(text.size(), std::string(" the quick").size());
}

// Ordinary tokens that spell a control token are not equal to the control token.
TEST_F(CommonTextTest, KnowsAddedTokensFromTheirSpelling) {
    const int eos = tokenizer_.eos();
    std::vector<int> control = cut("so"), plain = control;
    const size_t before = control.size();
    control.push_back(eos);
    for (const int id : spelled(std::string(bpe_.text(eos)))) plain.push_back(id);
    EXPECT_EQ(common(control, plain), std::pair(before, before));
    EXPECT_EQ(common(control, control), std::pair(before + 1, before + 1));
}

}  // namespace
}  // namespace aerie::test
