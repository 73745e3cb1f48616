// Whether kernels are compiled and counted as a GPU's compiler would (capture opencl --emulate-gpu-compiler).
#pragma once
#include <cstdlib>

namespace capture {

inline bool emulates_gpu_compiler() {
  static const bool asked = std::getenv("BUDDYSIM_CAPTURE_EMULATE_GPU_COMPILER");
  return asked;
}

}  // namespace capture
