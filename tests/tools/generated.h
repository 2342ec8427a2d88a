// `aerie generate --json` as a function.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "io/json.h"
#include "tools/run_program.h"

namespace aerie::test {

// The object that `generate --json -q` prints with these flags; null (and a failed test) if it
// prints anything else.
inline Json generated(const std::vector<std::string>& flags, const Surroundings& around = {}) {
    std::vector<std::string> arguments = {"generate", "--json", "-q"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Outcome outcome = run(arguments, around);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1) << outcome.out;
    return outcome.exit_code == 0 ? Json::parse(outcome.out, "stdout") : Json();
}

// A field as JSON text; empty if it is missing.
inline std::string field(const Json& json, const char* key) {
    const Json* value = json.find(key);
    return value ? value->dump() : "";
}

inline std::string text_of(const Json& json) {
    const Json* text = json.find("text");
    return text && text->string() ? *text->string() : "";
}

// The arguments, followed by `more`.
inline std::vector<std::string> with(std::vector<std::string> arguments,
                                     const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

}  // namespace aerie::test
