// Perplexity against that of an independent program, and how a text is divided.
#include "measure/perplexity.h"

#include <gtest/gtest.h>

#include "engine/bundled.h"
#include "paths.h"
#include "text/documents.h"

namespace aerie::test {
namespace {

using Documents = std::vector<std::string_view>;

TEST(SplitDocuments, AtLinesThatAreTheDivider) {
    EXPECT_EQ(split_documents("a\n---8<---\nb\n\n---8<---\nc"), (Documents{"a", "b\n", "c"}));
    EXPECT_EQ(split_documents("one\ntwo\n"), (Documents{"one\ntwo\n"}));
    EXPECT_EQ(split_documents(" ---8<---\n---8<---x\n"), (Documents{" ---8<---\n---8<---x\n"}));
    EXPECT_EQ(split_documents("---8<---\n---8<---\na\n---8<---"), (Documents{"", "", "a", ""}));
    EXPECT_EQ(split_documents(""), (Documents{""}));
}

class PerplexityOfBundled : public testing::Test {
  protected:
    PerplexityOfBundled() : bundled_(bundled_options(DType::F32)) {
        const auto path = test::test_data_dir() / "valid.txt";
        text_ = read_text(path, 1 << 20);
        for (std::string_view document : split_documents(text_))
            task_.documents.push_back(bundled_.encode(std::string(document)));
        task_.pass_rows = kPrefillRows;
    }
    Perplexity measure() {
        KvPool kv(bundled_.backend(),
                  kv_shape(bundled_.target().config(), bundled_.limits(), DraftReach{}));
        return measure_perplexity(bundled_.backend(), bundled_.target(), kv, task_);
    }

    Bundled bundled_;
    std::string text_;
    PerplexityTask task_;
};

TEST_F(PerplexityOfBundled, IsTheReferences) {
    const Json golden = read_data("valid.json");
    int64_t last = 0, all = 0;
    task_.on_window = [&](int64_t done, int64_t total) {
        EXPECT_GT(done, last);
        last = done;
        all = total;
    };
    const Perplexity result = measure();
    EXPECT_EQ(result.tokens, int64_t(golden.find("tokens")->number()));
    EXPECT_EQ(last, result.tokens);
    EXPECT_EQ(all, result.tokens);
    std::printf("nll %.4f, reference %.4f\n", result.nll, golden.find("nll")->number());
    EXPECT_NEAR(result.nll / golden.find("nll")->number(), 1, 2e-6);
    EXPECT_NEAR(result.value(), golden.find("perplexity")->number(), 1e-3);
}

TEST_F(PerplexityOfBundled, DoesNotDependOnThePasses) {
    task_.documents.resize(3);
    task_.window = 100;
    const Perplexity wide = measure();
    task_.pass_rows = 7;
    EXPECT_EQ(measure().nll, wide.nll);
    int64_t expected = 0;
    for (const auto& document : task_.documents)
        expected += int64_t(document.size() - (document.size() + 99) / 100);
    EXPECT_EQ(wide.tokens, expected);
    int windows = 0;
    task_.cancelled = [&] { return windows++ == 2; };
    EXPECT_LT(measure().tokens, wide.tokens);
}

TEST_F(PerplexityOfBundled, NeedsATokenToScore) {
    task_.documents = {{1}, {}};
    EXPECT_THROW(measure(), UsageError);
}

}  // namespace
}  // namespace aerie::test
