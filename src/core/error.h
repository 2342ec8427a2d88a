// The exceptions: a file, a device or a request cannot be used. One line for the user.
#pragma once

#include <stdexcept>
#include <string>

namespace aerie {

// The kind of a failure, for programs that decide by it what to offer. Where it is thrown, a cause
// is only named if a program could do something about it.
enum class Cause {
    unknown,
    argument,       // the request is impossible
    too_long,       // a text has no room in the context
    no_room,        // there are as many sequences as the model was loaded for
    not_found,      // no such file, folder or model
    inaccessible,   // the system does not let a file be read or written
    damaged,        // a file does not hold what it should
    unsupported,    // a file is as it should be, and aerie cannot run what it holds
    other_model,    // a saved conversation belongs to another model
    no_device,      // no such device, or it cannot be used here
    device_failed,  // a device was lost or failed while it worked
    device_memory,  // the device has too little memory
};

// The message is one line. It names what failed (a file, a device) and what was expected.
class Error : public std::runtime_error {
  public:
    explicit Error(const std::string& message, Cause cause = Cause::unknown)
        : std::runtime_error(message), cause_(cause) {}
    Cause cause() const { return cause_; }
    // Names the cause of an error whose place of origin did not know it.
    void suppose(Cause cause) {
        if (cause_ == Cause::unknown) cause_ = cause;
    }

  private:
    Cause cause_;
};

// The caller asked for something impossible (a bad option value, a prompt that is too long).
class UsageError : public Error {
  public:
    explicit UsageError(const std::string& message, Cause cause = Cause::argument)
        : Error(message, cause) {}
};

// Runs some work, whose errors have this cause if they name none.
template <class Do>
decltype(auto) with_cause(Cause cause, Do&& work) {
    try {
        return work();
    } catch (Error& error) {
        error.suppose(cause);
        throw;
    }
}

}  // namespace aerie
