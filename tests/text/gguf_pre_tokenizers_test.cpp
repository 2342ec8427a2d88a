// Each name of tokenizer.ggml.pre against the ids that llama.cpp gives for it (tests/data/gguf).
#include "text/gguf_pre_tokenizers.h"

#include <gtest/gtest.h>

#include <set>

#include "io/input_file.h"
#include "io/json.h"
#include "paths.h"
#include "text/gguf_tokenizer.h"

namespace aerie {
namespace {

std::vector<std::string_view> strings(const Json& list) {
    std::vector<std::string_view> all;
    for (const Json& item : *list.array()) all.push_back(*item.string());
    return all;
}

class GgufPreTokenizers : public testing::Test {
  protected:
    BpeTokenizer tokenizer(std::string_view pre) const {
        GgufMetadata metadata("m.gguf");
        metadata.add("tokenizer.ggml.model", GgufValue::of(std::string_view("gpt2")));
        metadata.add("tokenizer.ggml.pre", GgufValue::of(pre));
        metadata.add("tokenizer.ggml.tokens", GgufValue::list(strings(*golden_.find("tokens"))));
        metadata.add("tokenizer.ggml.merges", GgufValue::list(strings(*golden_.find("merges"))));
        return gguf_tokenizer(metadata).bpe;
    }

    const std::string path_ = (test::test_data_dir() / "gguf" / "cuts.json").string();
    const Json golden_ = Json::parse(read_text(path_, 1 << 20), path_);
    const std::vector<std::string_view> texts_ = strings(*golden_.find("texts"));
};

// Ids are null where llama.cpp does not cut like the published tokenizer.json
// (tests/data/README.md).
TEST_F(GgufPreTokenizers, GiveTheIdsOfLlamaCpp) {
    std::set<std::string> seen;
    size_t compared = 0;
    for (const Json& entry : *golden_.find("cuts")->array()) {
        const Json::Array& ids = *entry.find("ids")->array();
        ASSERT_EQ(ids.size(), texts_.size());
        for (const std::string_view name : strings(*entry.find("names"))) {
            const BpeTokenizer own = tokenizer(name);
            for (size_t i = 0; i < texts_.size(); ++i) {
                if (ids[i].is_null()) continue;
                std::vector<int> expected;
                for (const Json& id : *ids[i].array()) expected.push_back(int(id.number()));
                EXPECT_EQ(own.encode(texts_[i], Recognised::none), expected)
                    << name << " " << i << " " << testing::PrintToString(texts_[i]);
                ++compared;
            }
            EXPECT_TRUE(seen.insert(std::string(name)).second) << name;
        }
    }
    EXPECT_GE(compared, 6000u);
    std::string all = gguf_pre_tokenizer_names() + ", ";
    for (const std::string& name : seen) {
        const size_t at = (", " + all).find(", " + name + ", ");
        ASSERT_NE(at, std::string::npos) << name;
        all.erase(at, name.size() + 2);
    }
    EXPECT_EQ(all, "") << "names without ids of llama.cpp";
}

// A tokenizer that was made for a way to cut is recognised as that way.
TEST_F(GgufPreTokenizers, AreFoundByWhatTheyCut) {
    for (const Json& entry : *golden_.find("cuts")->array()) {
        for (const std::string_view name : strings(*entry.find("names"))) {
            const GgufPreTokenizer* known = find_gguf_pre_tokenizer(name);
            ASSERT_TRUE(known) << name;
            const BpeTokenizer own = tokenizer(name);
            const GgufPreTokenizer* found = find_gguf_pre_tokenizer(own.parts());
            ASSERT_TRUE(found) << name;
            EXPECT_EQ(found->splits, known->splits) << name;
            EXPECT_EQ(found->nfc, known->nfc);
            EXPECT_EQ(found->ignore_merges, known->ignore_merges);
        }
    }
    EXPECT_EQ(find_gguf_pre_tokenizer("unheard-of"), nullptr);
}

}  // namespace
}  // namespace aerie
