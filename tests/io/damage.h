// Damage that every reader of untrusted bytes must survive: any truncation, any changed byte.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"

namespace aerie::test {

// The message of the Error that `action` throws; empty if it throws none. Fails the test if the
// message is not one line.
template <typename Action>
std::string error_of(Action action) {
    try {
        action();
    } catch (const Error& error) {
        const std::string message = error.what();
        EXPECT_FALSE(message.empty());
        EXPECT_EQ(message.find('\n'), std::string::npos) << message;
        EXPECT_LE(message.size(), 2000u);
        return message;
    }
    return "";
}

// Calls `read` with every truncation of `seed`, and with each byte changed in 12 ways; it may
// accept or throw Error, no more.
template <typename Read>
void expect_survives_damage(const std::string& seed, Read read) {
    ASSERT_EQ(error_of([&] { read(seed); }), "") << "the seed itself must be good";
    for (size_t length = 0; length < seed.size(); ++length) {
        error_of([&] { read(seed.substr(0, length)); });
    }
    for (size_t i = 0; i < seed.size(); ++i) {
        std::string damaged = seed;
        for (int bit = 0; bit < 8; ++bit) {
            damaged[i] = char(seed[i] ^ (1 << bit));
            error_of([&] { read(damaged); });
        }
        for (const int value : {0x00, 0x7F, 0x80, 0xFF}) {
            damaged[i] = char(value);
            error_of([&] { read(damaged); });
        }
    }
}

// A folder of its own for one test, removed at the end.
class TestFolder {
  public:
    TestFolder() {
        const auto* test = testing::UnitTest::GetInstance()->current_test_info();
        std::string name = "aerie_" + std::to_string(::getpid()) + "_" + test->name();
        std::replace(name.begin(), name.end(), '/', '_');  // in names of parameterised tests
        path_ = std::filesystem::temp_directory_path() / name;
        std::filesystem::remove_all(path_);
        std::filesystem::create_directories(path_);
    }
    ~TestFolder() { std::filesystem::remove_all(path_); }
    TestFolder(const TestFolder&) = delete;
    TestFolder& operator=(const TestFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }
    std::filesystem::path write(const std::string& name, const std::string& bytes) const {
        std::filesystem::create_directories((path_ / name).parent_path());
        std::ofstream(path_ / name, std::ios::binary) << bytes;
        return path_ / name;
    }

  private:
    std::filesystem::path path_;
};

}  // namespace aerie::test
