// Fibers for x86-64 (System V calling convention), announced to AddressSanitizer.
#include "simt/fiber.h"

#include <cstdint>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// Saves the registers that a callee must keep, changes the stack, and returns on the other side.
extern "C" void simt_switch(void** from, void* to);
asm(R"(
.text
.globl simt_switch
.type simt_switch, @function
simt_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    retq
.size simt_switch, .-simt_switch
.globl simt_begin
.type simt_begin, @function
simt_begin:
    movq %rbx, %rdi
    callq *%r12
.size simt_begin, .-simt_begin
)");
extern "C" void simt_begin();

namespace simt {

struct Fiber::Stack {
    static constexpr size_t kBytes = 64 << 10;
    alignas(64) std::byte bytes[kBytes];
};

namespace {

void before_switch([[maybe_unused]] void** fake, [[maybe_unused]] const void* stack,
                   [[maybe_unused]] size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(fake, stack, bytes);
#endif
}

void after_switch([[maybe_unused]] void* fake, [[maybe_unused]] const void** stack,
                  [[maybe_unused]] size_t* bytes) {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake, stack, bytes);
#endif
}

}  // namespace

Fiber::Fiber() : stack_(new Stack) {}  // not zeroed: most pages are never touched
Fiber::~Fiber() = default;

void Fiber::start(void (*body)(void*), void* argument) {
    body_ = body;
    argument_ = argument;
    inside_fake_ = nullptr;
#ifdef __SANITIZE_ADDRESS__
    // A body that was given up after a fault leaves the marks of its frames behind.
    if (given_up_) __asan_unpoison_memory_region(stack_->bytes, Stack::kBytes);
#endif
    given_up_ = true;
    // The words that simt_switch pops: r15, r14, r13, r12, rbx, rbp, the return address.
    void** top = reinterpret_cast<void**>(stack_->bytes + Stack::kBytes) - 9;
    top[3] = reinterpret_cast<void*>(&Fiber::run);
    top[4] = this;
    top[6] = reinterpret_cast<void*>(&simt_begin);
    inside_ = top;
}

void Fiber::run(Fiber* self) {
    after_switch(nullptr, &self->caller_stack_, &self->caller_size_);
    self->body_(self->argument_);
}

void Fiber::enter() {
    before_switch(&outside_fake_, stack_->bytes, Stack::kBytes);
    simt_switch(&outside_, inside_);
    after_switch(outside_fake_, nullptr, nullptr);
}

void Fiber::leave(bool for_good) {
    given_up_ = !for_good;
    before_switch(for_good ? nullptr : &inside_fake_, caller_stack_, caller_size_);
    simt_switch(&inside_, outside_);
    after_switch(inside_fake_, &caller_stack_, &caller_size_);
}

}  // namespace simt
