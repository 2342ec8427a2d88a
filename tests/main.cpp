// The main function of the test programs. Its exit status says whether any test ran: GoogleTest's
// own main reports success even if every test was skipped or no test matches the filter.
//   --from=FILE,FILE...: only tests of these source files, such as lossless_test.cpp, as far as the
//   filter matches them. A folder of tests is one program; ctest runs it a source file at a time.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

namespace {

constexpr int kSkipped = 77;  // the SKIP_RETURN_CODE of tests/CMakeLists.txt

class Runs : public testing::EmptyTestEventListener {
  public:
    int count = 0;

  private:
    void OnTestEnd(const testing::TestInfo& test) override {
        if (!test.result()->Skipped()) ++count;
    }
};

// Whether a name matches one of GoogleTest's patterns, in which * is any text and ? any character.
bool matches_pattern(std::string_view pattern, std::string_view name) {
    if (pattern.empty()) return name.empty();
    if (pattern[0] == '*')
        return matches_pattern(pattern.substr(1), name) ||
               (!name.empty() && matches_pattern(pattern, name.substr(1)));
    return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) &&
           matches_pattern(pattern.substr(1), name.substr(1));
}

// Calls `use` with each part of a list.
template <class Use>
void for_each_part(std::string_view list, char separator, const Use& use) {
    while (true) {
        const size_t end = list.find(separator);
        use(list.substr(0, end));
        if (end == std::string_view::npos) return;
        list.remove_prefix(end + 1);
    }
}

// Whether a filter of GoogleTest, "PATTERN:PATTERN-PATTERN:PATTERN", lets this test run.
bool lets_run(std::string_view filter, std::string_view name) {
    const auto is_listed = [&](std::string_view patterns) {
        bool found = false;
        for_each_part(patterns, ':', [&](std::string_view pattern) {
            found = found || matches_pattern(pattern, name);
        });
        return found;
    };
    const size_t minus = filter.find('-');
    const std::string_view wanted = filter.substr(0, minus);
    if (!is_listed(wanted.empty() ? "*" : wanted)) return false;
    return minus == std::string_view::npos || !is_listed(filter.substr(minus + 1));
}

// Narrows the filter to the tests of these source files.
void keep_tests_from(std::string_view files) {
    const std::string filter = testing::GTEST_FLAG(filter);
    const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    std::string kept;
    for (int i = 0; i < tests.total_test_suite_count(); ++i) {
        const testing::TestSuite& suite = *tests.GetTestSuite(i);
        for (int j = 0; j < suite.total_test_count(); ++j) {
            const testing::TestInfo& test = *suite.GetTestInfo(j);
            const std::string name = std::string(suite.name()) + "." + test.name();
            const std::string file = std::filesystem::path(test.file()).filename().string();
            bool is_from = false;
            for_each_part(files, ',',
                          [&](std::string_view wanted) { is_from = is_from || wanted == file; });
            if (is_from && lets_run(filter, name)) kept += name + ":";
        }
    }
    testing::GTEST_FLAG(filter) = kept.empty() ? "-*" : kept;
}

}  // namespace

#ifdef __SANITIZE_THREAD__
// Mesa's CPU driver and Vulkan's loader are not instrumented, so the sanitizer does not see their
// locks. Reports from inside them are suppressed; reports about our own code are not.
extern "C" const char* __tsan_default_suppressions() {
    return "race:libvulkan_lvp.so\nrace:libLLVM\nrace:libvulkan.so\n"
           "deadlock:libvulkan_lvp.so\ndeadlock:libLLVM\ndeadlock:libvulkan.so\n";
}
#endif

int main(int count, char** arguments) {
    testing::InitGoogleTest(&count, arguments);
    for (int i = 1; i < count; ++i)
        if (std::strncmp(arguments[i], "--from=", 7) == 0) keep_tests_from(arguments[i] + 7);
    testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    auto* runs = new Runs;  // GoogleTest deletes it
    tests.listeners().Append(runs);
    const int status = RUN_ALL_TESTS();
    if (tests.test_to_run_count() == 0) {
        std::fprintf(stderr, "error: there is no such test\n");
        return 1;
    }
    if (status != 0 || testing::GTEST_FLAG(list_tests)) return status;
    return runs->count > 0 ? 0 : kSkipped;
}
