// Quantised models have the same bits on every device: logits of $AERIE_TEST_DEVICE against the
// CPU's, after a prompt and of every node of a tree, and a sampled text.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/bundled.h"

namespace aerie::test {
namespace {

using Logits = std::vector<float>;

struct Outcome {
    std::vector<Logits> logits;  // of the prompt's end, then of every node
    std::vector<int> ids;
};

Logits read_logits(Bundled& model, Session& session, int row) {
    Logits logits(size_t(session.logits().cols));
    model.backend().read(session.logits().row_range(row, 1), logits.data());
    return logits;
}

Outcome run(const std::string& device, DType type) {
    RuntimeOptions options = bundled_options(type);
    options.device = device;
    Bundled model(options);
    DraftOptions draft = draft_options(DraftKind::eagle2);
    draft.tree = {16, 4, 4};
    auto drafting = model.drafting(draft);
    Session& session = *drafting.session;
    Outcome outcome;
    const std::string prompt = sixty_prompts()[3];
    session.begin({});
    session.prefill(model.encode(prompt));
    outcome.logits.push_back(read_logits(model, session, 0));
    TokenTree tree(11);
    for (int i = 0; i < 11; ++i) tree.add(20 + i, i / 2);
    session.verify(tree);
    for (int i = 0; i < tree.size(); ++i) outcome.logits.push_back(read_logits(model, session, i));
    Request request = model.request(model.encode(prompt), 10, sampling_at(0.8f, 3));
    request.sampling.filters.top_k = 40;
    outcome.ids = model.run(session, request).ids;
    return outcome;
}

class SameBits : public testing::TestWithParam<DType> {};

TEST_P(SameBits, AsTheCpu) {
    if (test_device() == "cpu") GTEST_SKIP() << "SKIPPED: $AERIE_TEST_DEVICE names no other device";
    const Outcome want = run("cpu", GetParam()), got = run(test_device(), GetParam());
    ASSERT_EQ(got.logits.size(), want.logits.size());
    for (size_t i = 0; i < want.logits.size(); ++i)
        EXPECT_EQ(std::memcmp(got.logits[i].data(), want.logits[i].data(),
                              want.logits[i].size() * sizeof(float)),
                  0)
            << "row " << i;
    EXPECT_EQ(got.ids, want.ids);
}

INSTANTIATE_TEST_SUITE_P(Types, SameBits, testing::Values(DType::Q8_0, DType::Q4_0),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace aerie::test
