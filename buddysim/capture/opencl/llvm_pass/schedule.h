#pragma once
#include <llvm/IR/Function.h>

namespace capture {

// Moves loads of a block ahead of instructions that they do not depend on, as a GPU's compiler does, so that many loads are
// in flight when the first one is used. Loads do not pass stores that may alias, barriers or calls.
void schedule(llvm::Function& kernel);

}  // namespace capture
