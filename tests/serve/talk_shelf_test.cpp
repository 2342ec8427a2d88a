// Which kept conversation a prompt gets, and that nobody sees another's text.
#include "serve/talk_shelf.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/rows.h"
#include "paths.h"

namespace aerie {
namespace {

LoadOptions options(int talks) {
    LoadOptions options;
    options.device = "cpu";
    options.threads = 1;
    options.context = 256;
    options.model = test::models_dir() / "aerie-tiny";
    options.draft.method = "none";
    options.sequences = talks;
    return options;
}

class Shelf : public testing::Test {
  protected:
    void open(int talks) {
        model_ = std::make_shared<SharedModel>(options(talks));
        shelf_.emplace(model_);
    }

    static Request request(std::vector<int> prompt, int tokens = 4) {
        Request request;
        request.prompt = std::move(prompt);
        request.max_tokens = tokens;
        return request;
    }

    // Answers the prompt; what of it was there already.
    int reused(const std::vector<int>& prompt, int tokens = 4) {
        TalkShelf::Lease lease = shelf_->take(prompt);
        return finish(lease, prompt, tokens).reused;
    }

    const GenerationResult& finish(TalkShelf::Lease& lease, const std::vector<int>& prompt,
                                   int tokens = 4) {
        lease.begin(request(prompt, tokens));
        while (lease.step()) {
        }
        return lease.answer().result();
    }

    // 40 tokens, other ones for each number.
    static std::vector<int> prompt(int number, int length = 40) {
        std::vector<int> ids = {1};
        for (int i = 1; i < length; ++i) ids.push_back(300 + (i * 7 + number * 131) % 1000);
        return ids;
    }

    std::shared_ptr<SharedModel> model_;
    std::optional<TalkShelf> shelf_;
};

std::vector<int> with(std::vector<int> ids, std::span<const int> more) {
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
}

TEST_F(Shelf, WhatContinuesAConversationGetsItsTalk) {
    open(3);
    const std::vector<int> first = prompt(0);
    std::vector<int> held;
    {
        TalkShelf::Lease lease = shelf_->take(first);
        finish(lease, first);
        held.assign(lease.ids().begin(), lease.ids().end());
    }
    EXPECT_EQ(shelf_->idle(), 1);
    EXPECT_EQ(reused(prompt(1)), 0);
    EXPECT_GE(reused(with(held, prompt(2))), int(held.size()) - 1);
    EXPECT_EQ(shelf_->idle(), 2);  // the same talk, not another one
}

TEST_F(Shelf, AnotherContinuationStaysPossible) {
    open(3);
    const std::vector<int> first = prompt(0, 2 * kPageSize + 10);
    EXPECT_EQ(reused(first, 30), 0);
    // The same again would lose the answer: it is done on a fork, which has whole pages.
    EXPECT_EQ(reused(first, 30), 2 * kPageSize);
    EXPECT_EQ(shelf_->idle(), 2);
}

TEST_F(Shelf, ATalkIsTakenAsItIsWhereNoOtherCanBeDropped) {
    open(1);
    const std::vector<int> first = prompt(0);
    EXPECT_EQ(reused(first, 30), 0);
    EXPECT_GE(reused(first, 30), int(first.size()) - 1);
    EXPECT_EQ(shelf_->idle(), 1);
    EXPECT_EQ(reused(prompt(1)), 0);
    EXPECT_EQ(shelf_->idle(), 1);
}

TEST_F(Shelf, TheLeastRecentlyUsedMakesRoom) {
    open(2);
    const std::vector<int> a = prompt(0), b = prompt(1), c = prompt(2);
    reused(a);
    reused(b);
    EXPECT_GT(reused(a), 0);
    EXPECT_EQ(reused(c), 0);  // in the place of b
    EXPECT_GT(reused(a), 0);
    EXPECT_EQ(reused(b), 0);
}

TEST_F(Shelf, ATalkInUseIsForked) {
    open(2);
    const std::vector<int> first = prompt(0, kPageSize + 10);
    TalkShelf::Lease lease = shelf_->take(first);
    lease.begin(request(first, 60));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(lease.step());
    EXPECT_EQ(reused(with(first, prompt(5, 8))), kPageSize);
    EXPECT_EQ(shelf_->in_use(), 1);
    while (lease.step()) {
    }
    EXPECT_EQ(lease.answer().result().ids.size(), 60u);
}

TEST_F(Shelf, FewTokensAlikeAreNotWorthATalk) {
    open(3);
    const std::vector<int> few = prompt(0, int(TalkShelf::kWorthTaking) - 1);
    reused(few, 1);
    EXPECT_EQ(reused(with(few, prompt(3))), 0);
    EXPECT_EQ(shelf_->idle(), 2);
    const std::vector<int> page = prompt(1, int(TalkShelf::kWorthForking) - 1);
    reused(page, 30);
    EXPECT_EQ(reused(with(page, prompt(3))), 0);
}

TEST_F(Shelf, MoreLeasesThanTalksAreAnError) {
    open(1);
    const TalkShelf::Lease lease = shelf_->take(prompt(0));
    EXPECT_THROW(shelf_->take(prompt(1)), Error);
}

TEST_F(Shelf, JoinedIsTheHeldConversationsIds) {
    open(2);
    const Tokenizer& tokenizer = model_->tokenizer();
    const std::vector<int> asked =
        tokenizer.encode_from_start("the cat sat on the mat and then it slept all day long");
    EXPECT_EQ(shelf_->joined(asked), asked);
    // The same text, some of it in single bytes.
    std::vector<int> held(asked.begin(), asked.begin() + 5);
    for (size_t i = 5; i < 12; ++i)
        for (const char byte : tokenizer.bytes(asked[i]))
            for (int id = 0; id < tokenizer.size(); ++id)
                if (tokenizer.bytes(id) == std::string_view(&byte, 1)) {
                    held.push_back(id);
                    break;
                }
    ASSERT_FALSE(std::equal(held.begin(), held.end(), asked.begin()));
    TalkShelf::Lease(shelf_->take(held)).begin(request(held));
    const std::vector<int> joined = shelf_->joined(asked);
    EXPECT_EQ(tokenizer.decode(joined), tokenizer.decode(asked));
    EXPECT_TRUE(std::equal(held.begin(), held.end(), joined.begin()));
}

// What comes out is what a shelf of one talk gives, whatever is forked, dropped and shared.
TEST_F(Shelf, ManyThreadsGetTheTextsOfOne) {
    open(1);
    std::vector<std::vector<int>> prompts, answers;
    for (int i = 0; i < 12; ++i) {
        prompts.push_back(with(prompt(i % 3, kPageSize + 6), prompt(i, 4 + i)));
        TalkShelf::Lease lease = shelf_->take(prompts.back());
        answers.push_back(finish(lease, prompts.back(), 8).ids);
    }
    shelf_.reset();
    open(6);
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0, reused_at_all = 0;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (size_t i = 0; i < 2 * prompts.size(); ++i) {
                const size_t which = (i * size_t(2 * t + 1) + size_t(t)) % prompts.size();
                TalkShelf::Lease lease = shelf_->take(prompts[which]);
                const GenerationResult& result = finish(lease, prompts[which], 8);
                wrong += result.ids != answers[which];
                reused_at_all += result.reused > 0;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(reused_at_all, 20);
    EXPECT_EQ(shelf_->in_use(), 0);
}

}  // namespace
}  // namespace aerie
