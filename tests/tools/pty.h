// A terminal that the program writes to; the test reads its text while the program runs.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace aerie::test {

class Pty {
  public:
    Pty() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
        if (master_ >= 0 && ::grantpt(master_) == 0 && ::unlockpt(master_) == 0)
            name_ = ::ptsname(master_);
    }
    bool opened() const { return !name_.empty(); }
    ~Pty() { ::close(master_); }
    Pty(const Pty&) = delete;
    Pty& operator=(const Pty&) = delete;

    // Called in the child: makes this stream the terminal.
    void serve(int stream) const { ::dup2(::open(name_.c_str(), O_RDWR | O_NOCTTY), stream); }

    // All that was written so far.
    const std::string& text() {
        char block[4096];
        for (ssize_t got; (got = ::read(master_, block, sizeof(block))) > 0;)
            text_.append(block, size_t(got));
        return text_;
    }
    // Waits until this was shown; fails the test if it never is.
    void wait_for(const std::string& part) {
        constexpr int kTries = 600, kMilliseconds = 100;
        for (int i = 0; i < kTries && text().find(part) == std::string::npos; ++i) {
            pollfd change = {master_, POLLIN, 0};
            ::poll(&change, 1, kMilliseconds);
            if (change.revents & POLLHUP) ::usleep(1000 * kMilliseconds);  // not opened yet
        }
        EXPECT_NE(text_.find(part), std::string::npos) << text_;
    }

  private:
    int master_;
    std::string name_, text_;
};

// A minimal root may have no /dev/pts.
class NeedsPty : public testing::Test {
  protected:
    void SetUp() override {
        if (!Pty().opened()) GTEST_SKIP() << "SKIPPED: no pseudo-terminals here";
    }
};

}  // namespace aerie::test
