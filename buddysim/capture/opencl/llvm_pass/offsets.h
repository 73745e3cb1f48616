#pragma once
#include <llvm/Analysis/LazyValueInfo.h>
#include <llvm/IR/Function.h>

namespace capture {

// Constants come out of products and of bits that an OR sets: (k | 1) << 9 becomes (k << 9) + 512. Indices that can't be
// negative are widened with their sign, as the program has them. So that the passes that take constant offsets out of
// addresses see them, as a GPU's compiler does.
void expose_offsets(llvm::Function& kernel, llvm::LazyValueInfo& ranges);

}  // namespace capture
