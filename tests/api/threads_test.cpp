// Sessions of one model in eight threads, with cancels, forks and frees among them. The tests are
// meant to run under ThreadSanitizer, too.
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "api/embedded.h"

namespace aerie::test {
namespace {

constexpr int kThreads = 8, kRounds = 6;

// Sessions that an unrelated thread may cancel at any time.
class Cancelled {
  public:
    Cancelled() : thread_([this] { run(); }) {}
    ~Cancelled() {
        ends_ = true;
        thread_.join();
    }
    void set(int thread, Session* session) {
        const std::lock_guard lock(mutex_);
        sessions_[thread] = session;
    }

  private:
    void run() {
        for (int i = 0; !ends_; ++i) {
            {
                const std::lock_guard lock(mutex_);
                if (Session* session = sessions_[i % kThreads]) session->cancel();
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
    }

    std::mutex mutex_;
    Session* sessions_[kThreads] = {};
    std::atomic<bool> ends_ = false;
    std::thread thread_;  // last, because it uses all other members
};

// Odd threads are cancelled; the answers of the others must not depend on it.
void converse(const Model& model, int thread, const std::string& whole, Cancelled& cancelled) {
    for (int round = 0; round < kRounds; ++round) {
        Session session(model);
        if (thread % 2) cancelled.set(thread, &session);
        const std::string text = answer_to(session, small_request(24));
        const int32_t finish = session.answer().finish;
        cancelled.set(thread, nullptr);
        if (finish == AERIE_FINISH_CANCELLED) {
            EXPECT_TRUE(thread % 2);
            EXPECT_EQ(whole.find(text), 0u) << text;
        } else {
            EXPECT_EQ(text, whole);
        }
        EXPECT_EQ(aerie_session_rewind(session.handle(), 1 << 20), AERIE_USAGE);
        Session fork = session.fork(session.ids().size() / 2);
        EXPECT_EQ(answer_to(fork, small_request(24)), whole);
    }
}

// Calls the model's own functions beside its sessions; each thread has its own failures.
void ask(const Model& model, int thread) {
    const std::string text = "thread " + std::to_string(thread);
    for (int round = 0; round < 50 * kRounds; ++round) {
        EXPECT_EQ(model.detokenize(model.tokenize(text)), text);
        EXPECT_EQ(
            aerie_model_tokenize(model.handle(), text.c_str(), 0, 8u << thread, nullptr, nullptr),
            AERIE_USAGE);
        EXPECT_STREQ(aerie_model_message(model.handle()), "ids is null");
        EXPECT_GT(model.info().vocab, 0);
    }
}

TEST(Threads, SessionsOfOneModel) {
    const Context context;
    aerie_model_options options = small_options();
    options.sessions = 2 * kThreads;
    const Model model(context, options);
    std::string whole;
    {
        Session session(model);
        whole = answer_to(session, small_request(24));
    }
    Cancelled cancelled;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&, i] { converse(model, i, whole, cancelled); });
    for (int i = 0; i < 2; ++i) threads.emplace_back([&, i] { ask(model, i); });
    for (std::thread& thread : threads) thread.join();
}

// The last session frees the model, in whatever thread that is.
TEST(Threads, TheModelGoesWithItsLastSession) {
    const Context context;
    aerie_model_options options = small_options();
    options.sessions = kThreads;
    auto model = std::make_unique<Model>(context, options);
    std::vector<Session> sessions;
    for (int i = 0; i < kThreads; ++i) sessions.emplace_back(*model);
    model.reset();
    std::vector<std::thread> threads;
    for (Session& session : sessions)
        threads.emplace_back([own = std::move(session)]() mutable {
            EXPECT_FALSE(answer_to(own, small_request(6)).empty());
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace aerie::test
