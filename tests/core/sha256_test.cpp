// SHA-256 against values that other programs have computed (FIPS 180-4's examples, and Python's
// hashlib).
#include "core/sha256.h"

#include <gtest/gtest.h>

namespace aerie {
namespace {

TEST(Sha256, HasTheValuesOfOthers) {
    EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Wherever a text is divided, and whatever its size is, the hash is that of the whole.
TEST(Sha256, DoesNotDependOnPieces) {
    std::string text;
    for (int size = 0; size < 200; ++size) {
        const std::string whole = sha256(text);
        for (size_t cut : {size_t(0), text.size() / 3, text.size()}) {
            Sha256 hash;
            hash.add(std::string_view(text).substr(0, cut));
            hash.add(std::string_view(text).substr(cut));
            EXPECT_EQ(hash.digest(), whole) << size << " " << cut;
        }
        text += char(size * 7);
    }
    EXPECT_EQ(sha256(text), "b531abd8dae7232c861ac9f50aff9952d29c8d4c3772551cc5bce5d39d2cd08d");
}

}  // namespace
}  // namespace aerie
