// Hashes of long texts: each byte and each place counts.
#include "core/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace aerie {
namespace {

std::string digest(const std::vector<std::byte>& bytes) {
    LongHash hash;
    hash.add(bytes);
    return hash.digest();
}

TEST(LongHash, EveryBitCounts) {
    std::vector<std::byte> bytes(200, std::byte(7));
    std::set<std::string> seen = {digest(bytes)};
    for (std::byte& byte : bytes)
        for (int bit = 0; bit < 8; ++bit) {
            byte ^= std::byte(1 << bit);
            EXPECT_TRUE(seen.insert(digest(bytes)).second);
            byte ^= std::byte(1 << bit);
        }
    EXPECT_EQ(seen.begin()->size(), 32u);
}

TEST(LongHash, SizeAndOrderCount) {
    std::set<std::string> seen;
    for (size_t size = 0; size < 100; ++size)
        EXPECT_TRUE(seen.insert(digest(std::vector<std::byte>(size))).second) << size;
    for (size_t i = 0; i < 64; ++i) {
        std::vector<std::byte> one(64);
        one[i] = std::byte(1);
        EXPECT_TRUE(seen.insert(digest(one)).second) << "a byte at " << i;
    }
}

TEST(LongHash, PiecesOfWholeLanesAreOne) {
    std::vector<std::byte> bytes(160);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 37);
    LongHash hash;
    hash.add(std::span(bytes).first(64));
    hash.add(std::span(bytes).subspan(64));
    EXPECT_EQ(hash.digest(), digest(bytes));
    EXPECT_EQ(hex_digits(0x0123456789abcdef), "0123456789abcdef");
}

}  // namespace
}  // namespace aerie
