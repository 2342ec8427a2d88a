// The `aerie` program: one line of error on stderr, and its exit code.
#include <cstdio>
#include <exception>
#include <new>

#include "commands.h"
#include "core/error.h"

namespace {

int run(int argc, char** argv) {
    const aerie::CommandLine line = aerie::parse_command_line(argc, argv);
    if (line.generate) return aerie::run_generate(*line.generate);
    if (line.info) return aerie::run_info(*line.info);
    if (line.devices) return aerie::run_devices(*line.devices);
    return line.exit_code;
}

int fail(const char* message, int code) {
    std::fprintf(stderr, "aerie: %s\n", message);
    return code;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const aerie::UsageError& error) {
        return fail(error.what(), 2);
    } catch (const std::bad_alloc&) {
        return fail("out of memory", 1);
    } catch (const std::exception& error) {
        return fail(error.what(), 1);
    }
}
