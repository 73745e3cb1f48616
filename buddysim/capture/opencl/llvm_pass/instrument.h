// After optimisation: kernels get calls that log where a lane goes and what it accesses, and a table that explains the log.
#pragma once
#include <llvm/IR/Module.h>

namespace capture {

void instrument(llvm::Module& module);

}  // namespace capture
