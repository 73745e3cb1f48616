// Extraction of constant offsets from addresses in local memory, which are narrow on a GPU.
#pragma once
#include <llvm/IR/Function.h>

namespace capture {

// The counterpart of SeparateConstOffsetFromGEP, which needs sums without overflow. Local indices are small: 32 bits
// are enough for the final sum, whatever overflows in between.
void expose_local_offsets(llvm::Function& kernel);

}  // namespace capture
