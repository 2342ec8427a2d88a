// Runs a test program. Its status tells ctest whether anything was tested: GoogleTest's own main
// calls it a success when every test was skipped, and when the filter names none.
#include <gtest/gtest.h>

#include <cstdio>

namespace {

constexpr int kSkipped = 77;  // as tests/CMakeLists.txt tells ctest

class Runs : public testing::EmptyTestEventListener {
  public:
    int count = 0;

  private:
    void OnTestEnd(const testing::TestInfo& test) override {
        if (!test.result()->Skipped()) ++count;
    }
};

}  // namespace

int main(int count, char** arguments) {
    testing::InitGoogleTest(&count, arguments);
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
