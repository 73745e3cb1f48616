// Functions that may change memory without record in the trace: their names are noted.
#pragma once
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_icd.h>

namespace capture {

void install_unknown(cl_icd_dispatch& table);

}  // namespace capture
