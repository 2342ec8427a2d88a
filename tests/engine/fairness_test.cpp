// An answer gets its tokens in every round, whatever else is read or waits.
#include <gtest/gtest.h>

#include <deque>

#include "engine/bundled.h"

namespace aerie::test {
namespace {

TEST(Fairness, ALongPromptHoldsNobodyBack) {
    LoadOptions options = bundled_options(DType::Q8_0);
    options.draft.method = kNoDrafts;
    options.sequences_in_pass = 2;
    options.context = 1024;
    Bundled model(options);
    const BatchLimits limits = model.limits();
    const auto drafter = model.model().drafter(options.draft, limits);
    const ModelConfig& config = model.target().config();
    KvPool kv(model.backend(), kv_shape(config, limits, drafter->reach()));
    Batch batch(model.backend(), model.target(), kv, *drafter, limits);
    std::deque<Sequence> sequences;
    for (int i = 0; i < 2; ++i) sequences.emplace_back(kv, *drafter, config.vocab, limits.context);

    Request talk = model.request(model.encode("Once upon a time"), 60);
    talk.eos_ids.clear();
    Generation answer(batch, sequences[0], model.tokenizer(), talk);
    ASSERT_TRUE(answer.step());
    std::vector<int> words(900);
    for (size_t i = 0; i < words.size(); ++i) words[i] = 3 + int(i * 37 % 4000);
    int reports = 0;
    Request book = model.request(words, 4);
    book.on_read = [&](int, int) { ++reports; };
    Generation reader(batch, sequences[1], model.tokenizer(), book);

    int rounds = 0;
    for (; reader.is_prefilling(); ++rounds) {
        const size_t before = answer.result().ids.size();
        const uint64_t rows = batch.counts().rows;
        Generation* together[] = {&answer, &reader};
        step(together);
        EXPECT_EQ(answer.result().ids.size(), before + 1) << "round " << rounds;
        // A tree, a piece of the prompt, and the last token of the prompt as a tree of its own.
        EXPECT_LE(batch.counts().rows - rows, uint64_t(1 + kPieceRows)) << "round " << rounds;
    }
    EXPECT_EQ(rounds, int((words.size() + kPieceRows - 1) / kPieceRows));
    EXPECT_EQ(reports, rounds);
}

// More answers than a round has places for take turns.
TEST(Fairness, AnswersThatWaitGetTheirTurnInOrder) {
    LoadOptions options = bundled_options(DType::Q8_0);
    options.draft.method = kNoDrafts;
    options.sequences_in_pass = options.sequences = 3;
    options.context = 128;
    Bundled model(options);
    const BatchLimits limits = model.limits();
    const auto drafter = model.model().drafter(options.draft, limits);
    const ModelConfig& config = model.target().config();
    KvShape shape = kv_shape(config, limits, drafter->reach());
    shape.shared_slots = 1;  // pages for one context
    KvPool kv(model.backend(), shape);
    Batch batch(model.backend(), model.target(), kv, *drafter, limits);
    std::deque<Sequence> sequences;
    std::deque<Generation> answers;
    std::vector<Generation*> together;
    for (int i = 0; i < 3; ++i) {
        Request request = model.request(model.encode("Once upon a time"), 100);
        request.eos_ids.clear();
        Sequence& sequence = sequences.emplace_back(kv, *drafter, config.vocab, limits.context);
        together.push_back(&answers.emplace_back(batch, sequence, model.tokenizer(), request));
    }
    std::vector<int> ended;
    for (int round = 0; ended.size() < 3; ++round) {
        ASSERT_LT(round, 2'000);
        step(together);
        for (int i = 0; i < 3; ++i)
            if (answers[size_t(i)].has_ended() &&
                std::find(ended.begin(), ended.end(), i) == ended.end())
                ended.push_back(i), sequences[size_t(i)].forget();
    }
    EXPECT_EQ(ended, (std::vector<int>{0, 1, 2}));
    for (const Generation& answer : answers)
        EXPECT_EQ(answer.result().ids, answers[0].result().ids);
}

}  // namespace
}  // namespace aerie::test
