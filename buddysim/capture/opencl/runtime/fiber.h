// A suspended work-item: it has its own stack, and a switch of registers enters and leaves it.
#pragma once
#include <cstddef>

namespace capture {

class Fiber {
 public:
  Fiber(size_t stack_bytes, size_t number);
  ~Fiber();
  Fiber(const Fiber&) = delete;

  void start(void (*body)(void*), void* argument);
  void resume();            // from the scheduler: until the body suspends or returns
  void suspend();           // from the body
  bool ended() const { return ended_; }

 private:
  static void enter();
  char* stack_ = nullptr;  // below it lies a guard page
  size_t bytes_, colour_;
  void *stack_pointer_ = nullptr, *scheduler_ = nullptr;  // of the body, of the scheduler, while the other runs
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
};

}  // namespace capture
