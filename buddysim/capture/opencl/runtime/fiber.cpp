#include "fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#if !defined(__x86_64__)
#error "the capture of OpenCL programs is written for x86-64"
#endif

// Saves the registers that a function must keep, and the stack pointer in *save; goes on where `to` was saved.
extern "C" void capture_switch(void** save, void* to);
asm(R"(
.text
.globl capture_switch
.hidden capture_switch
.type capture_switch, @function
capture_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size capture_switch, . - capture_switch
)");

namespace capture {
namespace {

thread_local Fiber* entering;
constexpr size_t PAGE = 4096, MAX_COLOUR = 5 * PAGE;

}  // namespace

// Stacks begin at different cache sets: they are all the same number of pages apart.
Fiber::Fiber(size_t stack_bytes, size_t number)
    : bytes_((stack_bytes + MAX_COLOUR + PAGE - 1) / PAGE * PAGE), colour_(number * 5 * 64 % MAX_COLOUR) {
  void* memory = mmap(nullptr, bytes_ + PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, PAGE, PROT_NONE);
  stack_ = (char*)memory + PAGE;
}

Fiber::~Fiber() { munmap(stack_ - PAGE, bytes_ + PAGE); }

void Fiber::start(void (*body)(void*), void* argument) {
  body_ = body;
  argument_ = argument;
  ended_ = false;
  // As if `enter` had been called: its return address lies at an address that is 8 modulo 16.
  uint64_t* top = (uint64_t*)(stack_ + bytes_ - 64 - colour_);
  *--top = 0;
  *--top = (uint64_t)&Fiber::enter;
  top -= 6;
  memset(top, 0, 6 * sizeof *top);
  stack_pointer_ = top;
}

void Fiber::resume() {
  entering = this;
  capture_switch(&scheduler_, stack_pointer_);
}

void Fiber::suspend() { capture_switch(&stack_pointer_, scheduler_); }

void Fiber::enter() {
  Fiber* self = entering;
  self->body_(self->argument_);
  self->ended_ = true;
  self->suspend();
  abort();
}

}  // namespace capture
