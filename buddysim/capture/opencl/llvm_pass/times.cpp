#include "times.h"

#include "gpu_compiler.h"

#include <llvm/IR/Instructions.h>

using namespace llvm;

namespace capture {

bool is_traced_access(const Instruction& i) {
  const Value* pointer = getLoadStorePointerOperand(&i);
  if (auto* rmw = dyn_cast<AtomicRMWInst>(&i)) pointer = rmw->getPointerOperand();
  if (auto* exchange = dyn_cast<AtomicCmpXchgInst>(&i)) pointer = exchange->getPointerOperand();
  return pointer && space_of(pointer) == Space::GLOBAL;
}

BlockTimes::BlockTimes(const BasicBlock& block) {
  DenseMap<const Value*, Time> ready;
  Time issue;
  for (const Instruction& i : block) {
    Cost cost = cost_of(i);
    Time start = cost.instructions ? issue : Time{};
    if (!isa<PHINode>(i))
      for (const Value* operand : i.operands()) {
        auto operand_time = ready.find(operand);
        if (operand_time != ready.end()) start = later(start, operand_time->second);
      }
    points[&i] = {instructions, start, busy};
    instructions += cost.instructions;
    add(busy, cost.busy);
    if (!cost.instructions) {
      ready[&i] = start;
      continue;
    }
    issue = start;
    if (is_traced_access(i)) {
      ready[&i] = start;
      continue;
    }
    issue.cycles += cost.cycles - cost.last;
    issue.hops += cost.hops - 1;
    ready[&i] = {start.cycles + cost.cycles, start.hops + cost.hops};
  }
  end = issue;
  if (!emulates_gpu_compiler()) return;
  // The next block waits for the branch, and mostly for values of this block.
  for (const Instruction& i : block)
    if (i.isTerminator() || i.isUsedOutsideOfBlock(&block)) end = later(end, ready[&i]);
}

}  // namespace capture
