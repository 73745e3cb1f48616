// Issue times of a block's instructions, in order. Values from earlier blocks are ready at the block's start.
//
// A time is a pair as in the trace file: execution cycles, and dependent waits (hops); the machine adds a
// latency for each hop. Of two times the later one has more cycles + 6 * hops, as for imported SASS traces.
#pragma once
#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/BasicBlock.h>

#include "cost.h"

namespace capture {

struct Time {
  unsigned cycles = 0, hops = 0;
  unsigned weight() const { return cycles + 6 * hops; }
};

inline Time later(Time a, Time b) { return b.weight() > a.weight() ? b : a; }

struct IssuePoint {
  unsigned index = 0;  // instructions of the block before it
  Time issue;
  Busy busy{};         // of those instructions
};

// Whether an instruction accesses a buffer. Its result counts as ready at once: the wait belongs to the first use.
bool is_traced_access(const llvm::Instruction& instruction);

struct BlockTimes {
  explicit BlockTimes(const llvm::BasicBlock& block);
  llvm::DenseMap<const llvm::Instruction*, IssuePoint> points;
  unsigned instructions = 0;
  Time end;
  Busy busy{};
};

}  // namespace capture
