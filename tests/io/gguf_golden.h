// Values of GGUF files according to independent programs (tests/data/gguf).
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "io/gguf/gguf.h"
#include "io/input_file.h"
#include "io/json.h"
#include "paths.h"

namespace aerie::test {

inline std::filesystem::path gguf_dir() {
    return test_data_dir() / "gguf";
}

inline Json gguf_json(const std::string& name) {
    const std::string file = (gguf_dir() / name).string();
    return Json::parse(read_text(file, 1 << 20), file);
}

inline std::vector<int64_t> integers_of(const Json& array) {
    std::vector<int64_t> integers;
    for (const Json& element : *array.array()) {
        EXPECT_TRUE(element.integer(integers.emplace_back()));
    }
    return integers;
}

// All values of a tensor.
inline std::vector<float> values_of(const Gguf& model, const GgufTensor& tensor) {
    std::vector<float> values(size_t(tensor.rows() * tensor.row_elements()));
    model.read_rows(tensor, 0, values);
    return values;
}

// Compares values with the sum, the sum of squares and some values of the other program.
inline void expect_values(const std::vector<float>& values, const Json& expected) {
    double sum = 0, sum2 = 0;
    for (const float value : values) {
        sum += value;
        sum2 += double(value) * value;
    }
    const double true_sum2 = expected.find("sum2")->number();
    const double tolerance = 1e-5 * std::sqrt(double(values.size()) * true_sum2);
    EXPECT_NEAR(sum, expected.find("sum")->number(), tolerance);
    EXPECT_NEAR(sum2, true_sum2, 1e-5 * true_sum2);
    const std::vector<int64_t> at = integers_of(*expected.find("at"));
    const Json::Array& probes = *expected.find("values")->array();
    ASSERT_EQ(at.size(), probes.size());
    for (size_t i = 0; i < at.size(); ++i) {
        const double probe = probes[i].number();
        ASSERT_LT(size_t(at[i]), values.size());
        EXPECT_NEAR(values[size_t(at[i])], probe, 1e-6 * std::fabs(probe)) << "at " << at[i];
    }
}

}  // namespace aerie::test
