#include "serve/failure.h"

#include <chrono>
#include <new>
#include <thread>

#include "serve/requests/problem.h"

namespace aerie {

namespace {

constexpr int kAttempts = 20;
constexpr std::chrono::milliseconds kPause(50);

// A client learns no more than this: the message of the exception may name files.
constexpr const char* kOurFault = "the server could not answer; its log says why";

Problem problem_of(const std::exception_ptr& failure, std::string& line) {
    try {
        std::rethrow_exception(failure);
    } catch (const Problem& problem) {
        return problem;
    } catch (const std::bad_alloc&) {
        line = "out of memory";
        return {500, "out_of_memory", kOurFault};
    } catch (const std::exception& error) {
        line = shortened(error.what());
        return {500, "internal_error", kOurFault};
    }
}

struct Telling {
    bool is_logged = false, is_said = false;  // at an earlier attempt
};

// True once the client has got the error.
bool tell(Exchange& exchange, ReplyState state, const std::exception_ptr& failure, const Log& log,
          Telling& so_far) {
    std::string line;
    const Problem problem = problem_of(failure, line);
    const std::string json = problem.json();
    if (!line.empty() && !so_far.is_logged) log(line);
    so_far.is_logged = true;
    if (state == ReplyState::whole) return false;
    if (state == ReplyState::none) {
        exchange.reply({.status = problem.status, .body = json});
    } else {
        if (!so_far.is_said) exchange.say("data: " + json + "\n\n");
        so_far.is_said = true;
        exchange.end();
    }
    return true;
}

}  // namespace

void tell_failure(Exchange& exchange, ReplyState state, const Log& log) noexcept {
    const std::exception_ptr failure = std::current_exception();
    Telling so_far;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        try {
            if (tell(exchange, state, failure, log, so_far)) return;
            break;
        } catch (const std::bad_alloc&) {
            std::this_thread::sleep_for(kPause);
        } catch (...) {
            break;
        }
    }
    exchange.abandon();
}

}  // namespace aerie
