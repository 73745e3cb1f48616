// Constants out of addresses in local memory, which are narrow on a GPU.
#pragma once
#include <llvm/IR/Function.h>

namespace capture {

// As SeparateConstOffsetFromGEP for other memory, which has to know that no sum overflows: here indices are so small that
// 32 bits are enough for all sums that lead to them, whatever overflows on the way.
void expose_local_offsets(llvm::Function& kernel);

}  // namespace capture
