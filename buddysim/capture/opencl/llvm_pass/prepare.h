// Before optimisation: all code that accesses a kernel's memory is inlined into the kernel.
#pragma once
#include <llvm/IR/Module.h>

namespace capture {

// Whether calls of `f` need no inlining: a built-in function of PoCL without access to buffers or other work-items.
bool stays_call(const llvm::Function& f);

void prepare(llvm::Module& module);

// Allows the unrolling of loops, which PoCL forbids, and of loops with barriers, which is the same for all work-items.
void allow_unrolling(llvm::Module& module);

}  // namespace capture
