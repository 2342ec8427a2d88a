// The exceptions: a file, a device or a request cannot be used. One line for the user.
#pragma once

#include <stdexcept>

namespace aerie {

// The message is one line. It names what failed (a file, a device) and what was expected.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The caller asked for something impossible (a bad option value, a prompt that is too long).
class UsageError : public Error {
  public:
    using Error::Error;
};

}  // namespace aerie
