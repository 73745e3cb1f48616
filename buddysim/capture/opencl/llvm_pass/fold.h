// Folding: SASS has instructions that do two of LLVM's operations. The first operation then costs nothing.
#pragma once
#include <llvm/IR/Instruction.h>

namespace capture {

// Whether the instruction that uses the result computes it too: FFMA, IMAD, LEA, IADD3, LOP3, ISETP and FSETP with a
// predicate, operands that are negated or made positive, indices that are widened. Or CUDA's launches don't have it: offsets
// of ids. Only with --emulate-gpu-compiler.
bool folds(const llvm::Instruction& instruction);

}  // namespace capture
