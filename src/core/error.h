// The one exception type: a file, device or request that cannot be used. One line for the user.
#pragma once

#include <stdexcept>

namespace aerie {

// The message names what failed (a file, a device) and what was expected; no line break in it.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The caller asked for something that cannot be done (bad option value, prompt too long).
class UsageError : public Error {
  public:
    using Error::Error;
};

}  // namespace aerie
