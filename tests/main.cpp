// The main function of the test programs. Its exit status says whether any test ran: GoogleTest's
// own main reports success even if every test was skipped or no test matches the filter.
#include <gtest/gtest.h>

#include <cstdio>

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
