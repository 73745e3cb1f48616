#pragma once
#include "capture.h"

namespace capture {

void install_gpu(cl_icd_dispatch& table);

}  // namespace capture
