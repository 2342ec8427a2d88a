// The floating-point environment of all computation: round to nearest, denormals kept, no traps.
#pragma once

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace aerie {

#if defined(__x86_64__) || defined(__i386__)

inline void set_default_float_environment() {
    _mm_setcsr(0x1f80);
}

// Audio and game hosts set flush-to-zero. The caller's setting is restored at the end of the scope.
class FloatEnvironment {
  public:
    FloatEnvironment() : callers_(_mm_getcsr()) { set_default_float_environment(); }
    ~FloatEnvironment() { _mm_setcsr(callers_); }
    FloatEnvironment(const FloatEnvironment&) = delete;
    FloatEnvironment& operator=(const FloatEnvironment&) = delete;

  private:
    unsigned callers_;
};

#else

inline void set_default_float_environment() {
    std::fesetenv(FE_DFL_ENV);
}

class FloatEnvironment {
  public:
    FloatEnvironment() {
        std::fegetenv(&callers_);
        set_default_float_environment();
    }
    ~FloatEnvironment() { std::fesetenv(&callers_); }
    FloatEnvironment(const FloatEnvironment&) = delete;
    FloatEnvironment& operator=(const FloatEnvironment&) = delete;

  private:
    std::fenv_t callers_;
};

#endif

}  // namespace aerie
