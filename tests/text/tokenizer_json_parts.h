// A tokenizer.json written part by part.
#pragma once

#include <string>

namespace aerie::test {

// A good file, of which a test can replace single parts.
struct TokenizerParts {
    std::string added = "[]", normalizer = "null", pre = "null", post = "null", decoder = "null";
    std::string vocab = R"({"a":0,"b":1,"ab":2})", merges = R"(["a b"])", more = "";

    std::string file() const {
        return R"({"added_tokens":)" + added + R"(,"normalizer":)" + normalizer +
               R"(,"pre_tokenizer":)" + pre + R"(,"post_processor":)" + post + R"(,"decoder":)" +
               decoder + R"(,"model":{"type":"BPE","vocab":)" + vocab + R"(,"merges":)" + merges +
               more + "}}";
    }
};

inline std::string split_by(const std::string& regex) {
    return R"({"type":"Split","pattern":{"Regex":")" + regex +
           R"("},"behavior":"Isolated","invert":false})";
}

inline std::string repeated(const std::string& text, size_t count, const std::string& between) {
    std::string out = count > 0 ? text : "";
    for (size_t i = 1; i < count; ++i) out += between + text;
    return out;
}

}  // namespace aerie::test
