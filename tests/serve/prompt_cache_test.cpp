// The kept conversation that a prompt gets; and no request sees the text of another.
#include "serve/prompt_cache.h"

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

class PromptCacheTest : public testing::Test {
  protected:
    void open(int talks) {
        model_ = std::make_shared<SharedModel>(options(talks));
        cache_.emplace(model_);
    }

    static Request request(std::vector<int> prompt, int tokens = 4) {
        Request request;
        request.prompt = std::move(prompt);
        request.max_tokens = tokens;
        return request;
    }

    // Answers the prompt; returns how many of its tokens were there already.
    int reused(const std::vector<int>& prompt, int tokens = 4) {
        PromptCache::Lease lease = cache_->take(prompt);
        return finish(lease, prompt, tokens).reused;
    }

    const GenerationResult& finish(PromptCache::Lease& lease, const std::vector<int>& prompt,
                                   int tokens = 4) {
        lease.begin(request(prompt, tokens));
        while (lease.step()) {
        }
        return lease.answer().result();
    }

    // 40 tokens, different ones for each number.
    static std::vector<int> prompt(int number, int length = 40) {
        std::vector<int> ids = {1};
        for (int i = 1; i < length; ++i) ids.push_back(300 + (i * 7 + number * 131) % 1000);
        return ids;
    }

    std::shared_ptr<SharedModel> model_;
    std::optional<PromptCache> cache_;
};

std::vector<int> with(std::vector<int> ids, std::span<const int> more) {
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
}

TEST_F(PromptCacheTest, WhatContinuesAConversationGetsItsTalk) {
    open(3);
    const std::vector<int> first = prompt(0);
    std::vector<int> held;
    {
        PromptCache::Lease lease = cache_->take(first);
        finish(lease, first);
        held.assign(lease.ids().begin(), lease.ids().end());
    }
    EXPECT_EQ(cache_->idle(), 1);
    EXPECT_EQ(reused(prompt(1)), 0);
    EXPECT_GE(reused(with(held, prompt(2))), int(held.size()) - 1);
    EXPECT_EQ(cache_->idle(), 2);  // the same talk, not a further one
}

TEST_F(PromptCacheTest, AnotherContinuationStaysPossible) {
    open(3);
    const std::vector<int> first = prompt(0, 2 * kPageSize + 10);
    EXPECT_EQ(reused(first, 30), 0);
    // Taking the talk for the same prompt would lose the answer, so a fork is used. Only the newest
    // position, whose logits are wanted, is computed again.
    EXPECT_EQ(reused(first, 30), int(first.size()) - 1);
    EXPECT_EQ(cache_->idle(), 2);
}

TEST_F(PromptCacheTest, ATalkIsTakenAsItIsWhereNoOtherCanBeDropped) {
    open(1);
    const std::vector<int> first = prompt(0);
    EXPECT_EQ(reused(first, 30), 0);
    EXPECT_GE(reused(first, 30), int(first.size()) - 1);
    EXPECT_EQ(cache_->idle(), 1);
    EXPECT_EQ(reused(prompt(1)), 0);
    EXPECT_EQ(cache_->idle(), 1);
}

TEST_F(PromptCacheTest, TheLeastRecentlyUsedMakesRoom) {
    open(2);
    const std::vector<int> a = prompt(0), b = prompt(1), c = prompt(2);
    reused(a);
    reused(b);
    EXPECT_GT(reused(a), 0);
    EXPECT_EQ(reused(c), 0);  // took the place of b
    EXPECT_GT(reused(a), 0);
    EXPECT_EQ(reused(b), 0);
}

TEST_F(PromptCacheTest, ATalkInUseIsForked) {
    open(2);
    const std::vector<int> first = prompt(0, kPageSize + 10);
    PromptCache::Lease lease = cache_->take(first);
    lease.begin(request(first, 60));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(lease.step());
    EXPECT_EQ(reused(with(first, prompt(5, 8))), int(first.size()) - 1);
    EXPECT_EQ(cache_->in_use(), 1);
    while (lease.step()) {
    }
    EXPECT_EQ(lease.answer().result().ids.size(), 60u);
}

TEST_F(PromptCacheTest, FewTokensAlikeAreNotWorthATalk) {
    open(3);
    const std::vector<int> few = prompt(0, int(PromptCache::kWorthSharing) - 1);
    reused(few, 1);
    EXPECT_EQ(reused(with(few, prompt(3))), 0);
    EXPECT_EQ(cache_->idle(), 2);
    EXPECT_EQ(reused(few, 1), int(few.size()) - 1) << "a retry";
}

TEST_F(PromptCacheTest, MoreLeasesThanTalksAreAnError) {
    open(1);
    const PromptCache::Lease lease = cache_->take(prompt(0));
    EXPECT_THROW(cache_->take(prompt(1)), Error);
}

TEST_F(PromptCacheTest, OnlyTalksOfTheSameKeyAreShared) {
    open(4);
    const std::vector<int> first = prompt(0, 2 * kPageSize + 10);
    const auto reused_with = [&](const std::string& key) {
        PromptCache::Lease lease = cache_->take(first, key);
        return finish(lease, first, 30).reused;
    };
    EXPECT_EQ(reused_with("a"), 0);
    EXPECT_EQ(reused_with("b"), 0);
    EXPECT_EQ(reused_with(""), 0);
    EXPECT_EQ(reused_with("a"), int(first.size()) - 1);
    EXPECT_EQ(reused_with(""), int(first.size()) - 1);
    // The oldest talk makes room, whatever its key.
    reused_with("c");
    EXPECT_EQ(reused_with("b"), 0);
    EXPECT_EQ(cache_->idle(), 4);
}

// There is one talk only: a request with another key gets a new one in its place.
TEST_F(PromptCacheTest, TheLastTalkIsNotTakenByAnotherKey) {
    open(1);
    const std::vector<int> first = prompt(0);
    for (const char* key : {"a", "b", "a"}) {
        PromptCache::Lease lease = cache_->take(first, key);
        EXPECT_EQ(finish(lease, first, 4).reused, 0) << key;
    }
    PromptCache::Lease lease = cache_->take(first, "a");
    EXPECT_GT(finish(lease, first, 4).reused, 0);
}

// The output is that of a cache of one talk, whatever is forked, dropped and shared.
TEST_F(PromptCacheTest, ManyThreadsGetTheTextsOfOne) {
    open(1);
    std::vector<std::vector<int>> prompts, answers;
    for (int i = 0; i < 12; ++i) {
        prompts.push_back(with(prompt(i % 3, kPageSize + 6), prompt(i, 4 + i)));
        PromptCache::Lease lease = cache_->take(prompts.back());
        answers.push_back(finish(lease, prompts.back(), 8).ids);
    }
    cache_.reset();
    open(6);
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0, reused_at_all = 0;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (size_t i = 0; i < 2 * prompts.size(); ++i) {
                const size_t which = (i * size_t(2 * t + 1) + size_t(t)) % prompts.size();
                PromptCache::Lease lease = cache_->take(prompts[which]);
                const GenerationResult& result = finish(lease, prompts[which], 8);
                wrong += result.ids != answers[which];
                reused_at_all += result.reused > 0;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(reused_at_all, 20);
    EXPECT_EQ(cache_->in_use(), 0);
}

}  // namespace
}  // namespace aerie
