// Heads with random weights: their configurations, and their ids.
#include "draft/heads/random_head.h"

#include <gtest/gtest.h>

#include <cstring>

#include "draft/head_of_config.h"
#include "draft/heads/eagle3_shape.h"
#include "model/make/shapes.h"

namespace aerie::test {
namespace {

HeadConfig eagle3_for(const char* target) {
    return random_head_config(*head_of_method("eagle3"), model_shape(target));
}

// EAGLE-3's further fields go through config.json and back.
TEST(RandomHead, IsReadAsItWasWritten) {
    HeadConfig head = eagle3_for("qwen3-8b");
    EXPECT_EQ(eagle3_shape(head).vocab, 32000);
    EXPECT_EQ(head.hidden, 4096);
    EXPECT_EQ(head.rope.theta, 1e4);
    EXPECT_EQ(eagle3_shape(eagle3_for("aerie-tiny")).vocab, 4096);
    for (const std::vector<int>& taps : {std::vector<int>{}, {2, 18, 33}}) {
        eagle3_shape(head).taps = taps;
        eagle3_shape(head).norms_residual = !eagle3_shape(head).norms_residual;
        eagle3_shape(head).norms_state = !eagle3_shape(head).norms_state;
        const Json json = Json::parse(head.kind->random.config_json(head).dump(), "head");
        const HeadConfig read = head_of_config(json);
        ASSERT_EQ(read.kind, head.kind);
        EXPECT_EQ(eagle3_shape(read).vocab, 32000);
        EXPECT_EQ(eagle3_shape(read).target_hidden, 4096);
        EXPECT_EQ(eagle3_shape(read).taps, taps);
        EXPECT_EQ(eagle3_shape(read).norms_residual, eagle3_shape(head).norms_residual);
        EXPECT_EQ(eagle3_shape(read).norms_state, eagle3_shape(head).norms_state);
        EXPECT_EQ(read.vocab, 151936);
        EXPECT_EQ(read.attention.kv_heads, 8);
        EXPECT_EQ(read.rope.theta, 1e4);
    }
}

// d2t ascends through the target's vocabulary, from its first id to near its end, and t2d agrees.
TEST(RandomHead, HasIdsSpreadOverTheVocabulary) {
    for (const auto& [vocab, of_head] :
         {std::pair(128256, 32000), {1000, 999}, {1000, 3}, {1001, 500}}) {
        HeadConfig config = eagle3_for("aerie-tiny");
        config.vocab = vocab;
        eagle3_shape(config).vocab = of_head;
        const Checkpoint head = random_head("head", config, DType::F16, 1);
        EXPECT_FALSE(head.find("embed_tokens.weight"));
        const auto offsets = head.read(*head.find("d2t")), members = head.read(*head.find("t2d"));
        std::vector<int64_t> listed, marked;
        for (int i = 0; i < of_head; ++i) {
            int64_t offset = 0;
            std::memcpy(&offset, &offsets[size_t(i) * 8], 8);
            listed.push_back(i + offset);
        }
        for (int i = 0; i < vocab; ++i)
            if (members[size_t(i)] == std::byte(1)) marked.push_back(i);
        EXPECT_EQ(listed, marked) << vocab << " " << of_head;
        EXPECT_EQ(listed.front(), 0);
        EXPECT_GE(listed.back(), vocab - vocab / of_head - 1);
    }
    const HeadConfig whole = eagle3_for("aerie-tiny");
    EXPECT_FALSE(random_head("head", whole, DType::F16, 1).find("d2t"));
}

}  // namespace
}  // namespace aerie::test
