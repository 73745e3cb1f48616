// Merging of equal computations in several blocks.
#pragma once
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Function.h>

namespace capture {

// Equal integers and addresses of several blocks are computed once, in their nearest common dominator, as NVIDIA's
// assembler does. Without their offsets, the addresses in all copies of an unrolled loop are equal.
void merge_equal(llvm::Function& kernel, const llvm::DominatorTree& tree, const llvm::LoopInfo& loops);

}  // namespace capture
