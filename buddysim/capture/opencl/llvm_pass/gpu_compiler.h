// Whether rules on LLVM IR imitate NVIDIA's compiler (capture opencl --emulate-gpu-compiler).
#pragma once
#include <cstdlib>

namespace capture {

inline bool emulates_gpu_compiler() {
  static const bool is_requested = std::getenv("BUDDYSIM_CAPTURE_EMULATE_GPU_COMPILER");
  return is_requested;
}

}  // namespace capture
