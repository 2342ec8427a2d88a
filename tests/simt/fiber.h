// A thread of control with a stack of its own, entered and left by hand.
#pragma once

#include <cstddef>
#include <memory>

namespace simt {

class Fiber {
  public:
    Fiber();
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Makes the next enter() call body(argument), which must end by leave(true).
    void start(void (*body)(void*), void* argument);
    void enter();               // returns when the fiber leaves
    void leave(bool for_good);  // called by the fiber itself

  private:
    static void run(Fiber* self);

    struct Stack;
    std::unique_ptr<Stack> stack_;
    void (*body_)(void*) = nullptr;
    void* argument_ = nullptr;
    bool given_up_ = false;   // true until the body has ended
    void* inside_ = nullptr;  // stack pointers of the side that waits
    void* outside_ = nullptr;
    void* inside_fake_ = nullptr;  // AddressSanitizer's
    void* outside_fake_ = nullptr;
    const void* caller_stack_ = nullptr;
    size_t caller_size_ = 0;
};

}  // namespace simt
