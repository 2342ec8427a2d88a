// Which devices this build has code for.
#pragma once

#include <string>
#include <string_view>

namespace aerie::cuda {

// The architectures of this build, as CMake names them: "75-real,90" has machine code for 7.5 and
// 9.0, and code for 9.0 that a driver can compile for later ones.
std::string_view built_for();

// Whether code for these architectures runs on a device of this compute capability. Asks no device:
// the question itself would take hundreds of megabytes of each GPU that is listed.
bool runs_on(std::string_view architectures, int major, int minor);

// Throws Error where the driver finds no code for the calling thread's current device, which the
// error calls `device`.
void check_code(const std::string& device);

// Whether kernels may begin before those that they wait for have ended: the code that the current
// device runs must have the instruction by which they wait (that of the architectures before 9.0
// has not, whatever device runs it), and the driver must be able to record such launches.
bool kernels_may_begin_early();

}  // namespace aerie::cuda
