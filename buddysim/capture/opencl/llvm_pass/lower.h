// Lowering of memory copies and fills to loads and stores.
#pragma once
#include <llvm/IR/Function.h>

namespace capture {

void lower_memory_intrinsics(llvm::Function& kernel);

}  // namespace capture
