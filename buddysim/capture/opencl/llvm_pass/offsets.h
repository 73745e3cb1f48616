#pragma once
#include <llvm/Analysis/LazyValueInfo.h>
#include <llvm/IR/Function.h>

namespace capture {

// Extracts constants from products and from bits that an OR sets: (k | 1) << 9 becomes (k << 9) + 512. Nonnegative
// indices are sign-extended, as in the program. Then the passes that extract constant offsets from addresses find them,
// as in a GPU's compiler.
void expose_offsets(llvm::Function& kernel, llvm::LazyValueInfo& ranges);

}  // namespace capture
