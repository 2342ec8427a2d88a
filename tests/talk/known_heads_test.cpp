// The table of published heads.
#include "talk/known_heads.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "core/error.h"
#include "paths.h"

namespace aerie::test {
namespace {

std::string head_for(const std::string& target) {
    static const std::vector<KnownHead> heads = read_known_heads(models_dir() / "heads.json");
    const auto known = known_head_for(target, heads);
    return known ? known->head.id() : "";
}

TEST(KnownHeads, EachTargetStandsOnceInTheTable) {
    const std::vector<KnownHead> heads = read_known_heads(models_dir() / "heads.json");
    EXPECT_GE(heads.size(), 15u);
    std::set<std::string> targets;
    for (const KnownHead& known : heads) {
        EXPECT_TRUE(targets.insert(known.target.id()).second) << known.target.id();
        EXPECT_NE(known.target.id(), known.head.id());
        EXPECT_EQ(head_for(known.target.id()), known.head.id());
        EXPECT_EQ(head_for("somebody/" + known.target.name + "-GGUF:Q4_K_M"), known.head.id());
    }
}

TEST(KnownHeads, AreForTheModelItselfOrGgufFilesOfIt) {
    const std::string llama = "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B";
    EXPECT_EQ(head_for("meta-llama/Llama-3.1-8B-Instruct"), llama);
    EXPECT_EQ(head_for("hf:Meta-Llama/llama-3.1-8b-instruct"), llama);
    EXPECT_EQ(head_for("bartowski/Meta-Llama-3.1-8B-Instruct-GGUF:Q5_K_M"), llama);
    EXPECT_EQ(head_for("somebody/Llama-3.1-8B-Instruct"), "") << "a fine-tune of the same name";
    EXPECT_EQ(head_for("somebody/Llama-3.1-8B-Instruct-abliterated-GGUF"), "");
    EXPECT_EQ(head_for("Qwen/Qwen3-8B-Base"), "");
}

}  // namespace
}  // namespace aerie::test
