// After optimisation: kernels get calls that log a lane's control flow and accesses, and a table that explains the log.
#pragma once
#include <llvm/IR/Module.h>

namespace capture {

void instrument(llvm::Module& module);

}  // namespace capture
