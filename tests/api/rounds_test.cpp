// Opening and closing a thousand times leaves nothing behind.
#include <filesystem>
#include <fstream>

#include "api/embedded.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

struct Held {
    size_t bytes = 0, threads = 0, files = 0;
};

size_t entries(const char* folder) {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++count;
    return count;
}

// Memory, threads and open files of this process.
Held held_now() {
    size_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return {resident * 4096, entries("/proc/self/task"), entries("/proc/self/fd")};
}

void expect_baseline(const Held& now, const Held& before, size_t slack_bytes) {
    EXPECT_EQ(now.threads, before.threads);
    EXPECT_EQ(now.files, before.files);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LT(now.bytes, before.bytes + slack_bytes);
#endif
    std::printf("resident memory %+.2f MiB\n",
                (double(now.bytes) - double(before.bytes)) / (1 << 20));
}

TEST(Rounds, AThousandSessions) {
    const Context context;
    aerie_model_options options = small_options();
    options.threads = 2;
    const Model model(context, options);
    const auto round = [&](int i) {
        Session session(model);
        answer_to(session, small_request(3));
        if (i % 3 == 0) {
            aerie_session* none = nullptr;
            EXPECT_EQ(aerie_session_create(model.handle(), &none), AERIE_ERROR);
        }
    };
    for (int i = 0; i < 100; ++i) round(i);
    const Held before = held_now();
    for (int i = 0; i < 1000; ++i) round(i);
    expect_baseline(held_now(), before, 1 << 20);
}

TEST(Rounds, TwentyModels) {
    const auto round = [] {
        const Context context;
        aerie_model_options options = small_options();
        options.threads = 2;
        const Model model(context, options);
        Session session(model);
        answer_to(session, small_request(3));
        aerie_model* none = nullptr;
        options.model = "no-such-model";
        EXPECT_EQ(aerie_model_open(context.handle(), &options, &none), AERIE_ERROR);
    };
    for (int i = 0; i < 5; ++i) round();
    const Held before = held_now();
    for (int i = 0; i < 20; ++i) round();
    expect_baseline(held_now(), before, 4 << 20);
}

}  // namespace
}  // namespace aerie::test
