// The cost of an LLVM instruction on a GPU: SASS instructions, and the latency of its result.
#pragma once
#include <llvm/IR/Instruction.h>

#include "../table.h"

namespace capture {

struct Cost {
  unsigned instructions = 0;  // issued by a warp for it
  unsigned cycles = 0;        // execution latency of their critical path, core cycles
  unsigned hops = 0;          // instructions on that path
  unsigned last = 0;          // cycles of the last instruction on that path
  Busy busy{};                // cycles for which they keep execution units busy
};

enum class Space { PRIVATE, LOCAL, GLOBAL };

// The type of a kernel's argument in OpenCL C.
llvm::StringRef type_of(const llvm::Argument& argument);

// The memory space of a pointer, as far as the module defines it; GLOBAL if it may be a buffer.
Space space_of(const llvm::Value* pointer);

Cost cost_of(const llvm::Instruction& instruction);

}  // namespace capture
