#include "module.h"

#include <dlfcn.h>

#include <stdexcept>

namespace capture {

template <class T>
void Module::find(T& pointer, const std::string& name) {
  pointer = (T)dlsym(handle_, name.c_str());
  if (!pointer) throw std::runtime_error("the compiled program lacks " + name);
}

Module::Module(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
  if (!handle_) throw std::runtime_error(dlerror());
  for (int d = 0; d < 3; d++) {
    std::string axis(1, "xyz"[d]);
    find(local_id[d], "_local_id_" + axis);
    find(group_id[d], "_group_id_" + axis);
    find(local_size[d], "_local_size_" + axis);
    find(num_groups[d], "_num_groups_" + axis);
    find(global_offset[d], "_global_offset_" + axis);
  }
  find(work_dim, "_work_dim");
  find(printf_buffer, "_printf_buffer");
  find(printf_capacity, "_printf_buffer_capacity");
  find(printf_position, "_printf_buffer_position");
  find(log, "bs_log");
  find(log_full, "bs_log_full");
  find(wait, "bs_wait");
  const uint32_t* table;
  find(table, "bs_table");
  WordReader reader(table);
  for (uint32_t n = reader.number(); n > 0; n--) {
    Kernel kernel = reader.kernel();
    kernels_[kernel.name] = kernel;
  }
}

Module::~Module() { dlclose(handle_); }

const Kernel* Module::kernel(const std::string& name) const {
  auto match = kernels_.find(name);
  return match == kernels_.end() ? nullptr : &match->second;
}

Module::Entry Module::entry(const std::string& name) const {
  return (Entry)dlsym(handle_, ("bs_run_" + name).c_str());
}

}  // namespace capture
