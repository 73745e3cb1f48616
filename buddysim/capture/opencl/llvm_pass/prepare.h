// Before optimisation: everything that touches a kernel's memory becomes part of the kernel.
#pragma once
#include <llvm/IR/Module.h>

namespace capture {

// Whether calls of `f` may stay calls: one of PoCL's built-in functions that can't reach a buffer or another work-item.
bool stays_call(const llvm::Function& f);

void prepare(llvm::Module& module);

// PoCL forbids the unrolling of every loop; and a barrier may be copied with its loop, for all work-items alike.
void allow_unrolling(llvm::Module& module);

}  // namespace capture
