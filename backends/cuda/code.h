// The devices that this build has code for.
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

// Whether such a device's driver has to compile the code from PTX first: once, in about half a
// minute.
bool is_compiled_by_driver(std::string_view architectures, int major, int minor);

// A message that says why a driver for CUDA `driver` cannot run a program of CUDA `needed`, and
// what to do. Versions are as the runtime counts them: 12040 is 12.4.
std::string driver_problem(int driver, int needed);

// Throws Error if the driver finds no code for the calling thread's current device, which the error
// calls `device`.
void check_code(const std::string& device);

// Whether kernels may begin before those that they wait for have ended. The code that the current
// device runs must have the instruction by which they wait (code for architectures before 9.0 does
// not, whatever device runs it), and the driver must be able to record such launches. The
// environment variable AERIE_CUDA_EARLY_LAUNCH=0 forbids it. Throws Error if the variable is
// neither 0 nor 1.
bool kernels_may_begin_early();

}  // namespace aerie::cuda
