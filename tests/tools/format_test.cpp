// Formatted text is whole, however long it is.
#include "format.h"

#include <gtest/gtest.h>

namespace aerie {
namespace {

TEST(Format, CutsNothing) {
    for (const size_t size : {0, 1, 598, 599, 600, 601, 100'000}) {
        const std::string text(size, 'x');
        EXPECT_EQ(format("%s|%d\n", text.c_str(), 7), text + "|7\n");
    }
}

TEST(Format, ShortNumbersHaveThreeDigits) {
    EXPECT_EQ(short_number(0.012345), "0.0123");
    EXPECT_EQ(short_number(45.61), "45.6");
    EXPECT_EQ(short_number(12345.4), "12345");
}

}  // namespace
}  // namespace aerie
