// Bad input as tables: the damage, and what the one line on stderr must say about it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "io/damage.h"
#include "tools/run_program.h"

namespace aerie::test {

// A good target and its head, small random models with the bundled tokenizer, in a folder that is
// also the working folder. A case damages them.
class ModelPair {
  public:
    ModelPair();

    const std::filesystem::path& folder() const { return folder_.path(); }
    std::string read(const std::string& file) const;
    void write(const std::string& file, const std::string& bytes) const;
    void remove(const std::string& file) const;
    void truncate(const std::string& file, size_t bytes) const;
    // Replaces one field of a JSON object, or removes it if `json` is empty.
    void set(const std::string& file, const std::string& key, const std::string& json) const;
    // Replaces the weights by these bytes; model.safetensors is removed if `file` is another.
    void write_weights(const std::string& file, const std::string& bytes) const;

  private:
    TestFolder folder_;
};

constexpr const char* kConfig = "target/config.json";
constexpr const char* kWeights = "target/model.safetensors";
constexpr const char* kHeadConfig = "target-eagle/config.json";
constexpr const char* kHeadWeights = "target-eagle/model.safetensors";

struct BadCase {
    std::string name;
    std::vector<std::string> says;  // each must be in the error line
    std::function<void(const ModelPair&)> damage = {};
    std::vector<std::string> flags = {};  // after the command
    std::vector<std::string> command = {"generate", "-m", "target", "-p", "x", "-n", "1", "-q"};
    std::vector<std::pair<std::string, std::string>> variables = {};
    std::string input = {};
    int exit_code = 1;
    size_t most_bytes = 0;  // memory that the program may ask for; 0: any
};

inline void PrintTo(const BadCase& bad, std::ostream* out) {  // GoogleTest prints this
    *out << bad.name;
}

// The test over such tables: BadInput.IsRefusedInOneLine.
class BadInput : public testing::TestWithParam<BadCase> {};

inline std::string case_name(const testing::TestParamInfo<BadCase>& info) {
    return info.param.name;
}

}  // namespace aerie::test

#define AERIE_BAD_INPUT(topic, cases)                                               \
    namespace aerie::test {                                                         \
    INSTANTIATE_TEST_SUITE_P(topic, BadInput, testing::ValuesIn(cases), case_name); \
    }
