// The tokens that a head may draft, and files of token counts.
#include <gtest/gtest.h>

#include "io/damage.h"
#include "model/draft_vocabulary.h"

namespace aerie::test {
namespace {

using Ids = std::vector<int32_t>;

TEST(DraftVocabulary, TakesWhatIsAlwaysWantedThenTheMostFrequent) {
    const std::vector<uint64_t> counts = {0, 5, 0, 9, 5, 1, 0, 0};
    const std::vector<int> end = {7};
    EXPECT_EQ(draft_vocabulary(3, 8, end, counts), (Ids{1, 3, 7}));
    EXPECT_EQ(draft_vocabulary(4, 8, end, counts), (Ids{1, 3, 4, 7}));
    EXPECT_EQ(draft_vocabulary(7, 8, end, counts), (Ids{0, 1, 2, 3, 4, 5, 7}));
    EXPECT_EQ(draft_vocabulary(3, 8, end, {}), (Ids{0, 1, 7}));
    EXPECT_EQ(draft_vocabulary(99, 3, {}, {}), (Ids{0, 1, 2}));
}

TEST(DraftVocabulary, CountsAreReadAsTheyAreWritten) {
    const TestFolder folder;
    const std::vector<uint64_t> counts = {0, 7, 0, 12345678901, 7};
    folder.write("counts", token_counts_text(counts));
    EXPECT_EQ(token_counts_text(counts), "3 12345678901\n1 7\n4 7\n");
    EXPECT_EQ(read_token_counts(folder.path() / "counts", 5), counts);
}

TEST(DraftVocabulary, BadFilesAreOneLine) {
    const TestFolder folder;
    for (const char* text : {"", "\n", "1\n", "1 2 3\n", "-1 2\n", "1 x\n", "5 1\n", "1 1\n1 2\n",
                             "1 0\n", "1  2\n", "1 99999999999999999999\n", "id 1\n"}) {
        folder.write("counts", text);
        const std::string path = (folder.path() / "counts").string();
        EXPECT_EQ(error_of([&] { read_token_counts(path, 5); }).find(path), 0u) << text;
    }
    expect_survives_damage("1 20\n3 4\n", [&](const std::string& text) {
        folder.write("counts", text);
        read_token_counts(folder.path() / "counts", 5);
    });
}

}  // namespace
}  // namespace aerie::test
