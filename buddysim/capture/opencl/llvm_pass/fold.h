// Folding: SASS has instructions that do two of LLVM's operations. The first operation then costs nothing.
#pragma once
#include <llvm/IR/Instruction.h>

namespace capture {

// Whether the user of the result computes it: FFMA, IMAD, LEA, IADD3, LOP3, ISETP and FSETP with a predicate, negated
// or absolute operands, widened indices. Also true for offsets of ids, which CUDA's launches don't have. Only with
// --emulate-gpu-compiler.
bool folds(const llvm::Instruction& instruction);

}  // namespace capture
