// Whether kernels are compiled and counted as a GPU's compiler would (capture opencl --gpu-code).
#pragma once
#include <cstdlib>

namespace capture {

inline bool gpu_code() {
  static const bool asked = std::getenv("BUDDYSIM_CAPTURE_GPU_CODE");
  return asked;
}

}  // namespace capture
