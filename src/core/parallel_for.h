// Distributes work on a range over the cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace aerie {

// Calls body(first, last) for parts of [0, count) that begin at multiples of `grain`, one part per
// core. If a call throws, the exception is thrown here after all have ended.
template <class Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
    const int64_t grains = (count + grain - 1) / grain;
    const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
    const int64_t parts = std::clamp<int64_t>(grains, 1, cores);
    std::mutex guard;
    std::exception_ptr error;
    const auto run = [&](int64_t part) {
        const auto at = [&](int64_t i) { return std::min(count, grains * i / parts * grain); };
        try {
            body(at(part), at(part + 1));
        } catch (...) {
            const std::lock_guard lock(guard);
            error = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> threads;
        for (int64_t part = 1; part < parts; ++part) threads.emplace_back(run, part);
        run(0);
    }
    if (error) std::rethrow_exception(error);
}

}  // namespace aerie
