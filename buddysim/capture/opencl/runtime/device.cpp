// With --report-as-gpu, PoCL's device reports the properties of a GPU, so that programs choose their GPU settings.
// Limits are those that NVIDIA's OpenCL drivers report; compute units are those of a P100 (CUDA C Programming Guide,
// technical specifications per compute capability; NVIDIA Tesla P100 whitepaper).
#include <cstdlib>
#include <cstring>
#include <optional>

#include "device.h"

namespace capture {
namespace {

std::optional<uint64_t> reported(cl_device_info what) {
  switch (what) {
    case CL_DEVICE_TYPE:
      return CL_DEVICE_TYPE_GPU;
    case CL_DEVICE_LOCAL_MEM_TYPE:
      return CL_LOCAL;
    case CL_DEVICE_LOCAL_MEM_SIZE:
      return 48 << 10;
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
      return 1024;
    case CL_DEVICE_MAX_COMPUTE_UNITS:
      return 56;
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
      return 0;
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_INT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE:
      return 1;
    default:
      return std::nullopt;
  }
}

// Writes a number of the width that PoCL writes.
void overwrite(void* value, size_t bytes, uint64_t number) { memcpy(value, &number, bytes < 8 ? bytes : 8); }

cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info what, size_t value_bytes, void* value, size_t* size) {
  size_t bytes = 0;
  cl_int error = Capture::get().real.clGetDeviceInfo(device, what, value_bytes, value, &bytes);
  if (size) *size = bytes;
  if (error || !value) return error;
  if (auto number = reported(what)) overwrite(value, bytes, *number);
  if (what == CL_DEVICE_MAX_WORK_ITEM_SIZES) {
    const size_t sizes[3] = {1024, 1024, 64};
    memcpy(value, sizes, bytes < sizeof sizes ? bytes : sizeof sizes);
  }
  return error;
}

cl_int CL_API_CALL get_kernel_work_group_info(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what,
                                              size_t value_bytes, void* value, size_t* size) {
  size_t bytes = 0;
  cl_int error = Capture::get().real.clGetKernelWorkGroupInfo(kernel, device, what, value_bytes, value, &bytes);
  if (size) *size = bytes;
  if (error || !value) return error;
  if (what == CL_KERNEL_WORK_GROUP_SIZE) overwrite(value, bytes, 1024);
  if (what == CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE) overwrite(value, bytes, 32);
  return error;
}

}  // namespace

void install_gpu(cl_icd_dispatch& table) {
  if (!getenv("BUDDYSIM_CAPTURE_REPORT_AS_GPU")) return;
  table.clGetDeviceInfo = get_device_info;
  table.clGetKernelWorkGroupInfo = get_kernel_work_group_info;
}

}  // namespace capture
