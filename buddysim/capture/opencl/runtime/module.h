// A program's kernels, compiled with calls that log their control flow and accesses.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "../table.h"

namespace capture {

struct Log {  // hooks.c's bs_log
  uint32_t *block, *blocks_end;
  uint64_t *access, *accesses_end;
};

class Module {
 public:
  explicit Module(const std::string& path);  // throws std::runtime_error
  ~Module();
  Module(const Module&) = delete;

  const Kernel* kernel(const std::string& name) const;
  using Entry = void (*)(void**);
  Entry entry(const std::string& name) const;

  uint64_t *local_id[3], *group_id[3], *local_size[3], *num_groups[3], *global_offset[3];
  uint32_t* work_dim;
  char** printf_buffer;
  uint32_t *printf_capacity, **printf_position;
  Log* log;
  void (**log_full)();
  void (**wait)();

 private:
  template <class T>
  void find(T& pointer, const std::string& name);
  void* handle_;
  std::map<std::string, Kernel> kernels_;
};

}  // namespace capture
