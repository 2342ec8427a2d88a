// Starts several threads, or none of them.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace aerie {

// Starts `count` threads that run `work`. Throws Error if the system cannot start so many; then
// `stop` was called to make the threads return that had started, and they have ended.
std::vector<std::thread> start_threads(int count, const std::function<void()>& work,
                                       const std::function<void()>& stop);

}  // namespace aerie
