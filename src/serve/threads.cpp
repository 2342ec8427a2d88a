#include "serve/threads.h"

#include <string>
#include <system_error>

#include "core/error.h"

namespace aerie {

std::vector<std::thread> start_threads(int count, const std::function<void()>& work,
                                       const std::function<void()>& stop) {
    std::vector<std::thread> threads;
    const auto end = [&] {
        stop();
        for (std::thread& thread : threads) thread.join();
    };
    try {
        threads.reserve(size_t(count));
        for (int i = 0; i < count; ++i) threads.emplace_back(work);
    } catch (const std::system_error&) {
        end();
        throw Error("serve: cannot start " + std::to_string(count) +
                    " threads: raise the limit of processes (ulimit -u, TasksMax, pids)");
    } catch (...) {
        end();
        throw;
    }
    return threads;
}

}  // namespace aerie
