#pragma once
#include <llvm/IR/Function.h>

namespace capture {

// Moves loads ahead of what doesn't lead to them, block by block, as a GPU's compiler does: so that many are on their way
// when the first one is used. Loads stay behind stores that may be to the same memory, and behind barriers and calls.
void schedule(llvm::Function& kernel);

}  // namespace capture
