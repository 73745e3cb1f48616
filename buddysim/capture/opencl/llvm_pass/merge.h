// One computation for equal values of several blocks.
#pragma once
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Function.h>

namespace capture {

// Integers and addresses that several blocks compute alike are computed once, where the paths to all of them have parted,
// as NVIDIA's assembler does: what is left of an unrolled loop's addresses without their offsets is the same in each copy.
void merge_equal(llvm::Function& kernel, const llvm::DominatorTree& tree, const llvm::LoopInfo& loops);

}  // namespace capture
