// What an LLVM instruction costs on a GPU: how many instructions, and how long until its result is ready.
#pragma once
#include <llvm/IR/Instruction.h>

#include "../table.h"

namespace capture {

struct Cost {
  unsigned instructions = 0;  // that a warp issues for it
  unsigned cycles = 0;        // execution of the longest chain of dependent ones among them, core cycles
  unsigned steps = 0;         // instructions of that chain
  unsigned last = 0;          // cycles of the chain's last instruction
  Busy busy{};                // cycles that they keep execution units
};

enum class Space { PRIVATE, LOCAL, GLOBAL };

// The type of a kernel's argument in OpenCL C.
llvm::StringRef type_of(const llvm::Argument& argument);

// Where a pointer points, as far as the module says; GLOBAL where it may be a buffer.
Space space_of(const llvm::Value* pointer);

Cost cost_of(const llvm::Instruction& instruction);

}  // namespace capture
