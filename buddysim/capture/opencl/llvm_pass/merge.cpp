#include "merge.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Local.h>

#include <map>
#include <vector>

using namespace llvm;

namespace capture {
namespace {

// Whether an instruction can be computed anywhere, even if its result is unused.
bool is_movable(const Instruction& i) {
  switch (i.getOpcode()) {
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Mul:
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
    case Instruction::SExt:
    case Instruction::ZExt:
    case Instruction::Trunc:
    case Instruction::GetElementPtr:
      return true;
    default:
      return false;
  }
}

using Key = std::vector<const void*>;

Key key_of(const Instruction& i) {
  Key key = {reinterpret_cast<const void*>(uintptr_t(i.getOpcode())), i.getType()};
  if (auto* address = dyn_cast<GetElementPtrInst>(&i)) key.push_back(address->getSourceElementType());
  for (const Value* operand : i.operands()) key.push_back(operand);
  return key;
}

bool merge(const std::vector<Instruction*>& equal, const DominatorTree& tree, const LoopInfo& loops) {
  BasicBlock* common = equal.front()->getParent();
  for (Instruction* i : equal) common = tree.findNearestCommonDominator(common, i->getParent());
  const Loop* loop = loops.getLoopFor(common);
  Instruction* end = common->getTerminator();
  Instruction* first = equal.front();
  if (first->getParent() != common) {
    for (Instruction* i : equal)
      if (i->getParent() == common || (loop && !loop->contains(i))) return false;
    for (const Value* operand : first->operands())
      if (auto* i = dyn_cast<Instruction>(operand); i && !tree.dominates(i, end)) return false;
    first->moveBefore(end);
  }
  for (Instruction* i : equal) {
    if (i == first) continue;
    first->andIRFlags(i);
    i->replaceAllUsesWith(first);
    i->eraseFromParent();
  }
  first->dropPoisonGeneratingFlags();
  return true;
}

}  // namespace

void merge_equal(Function& kernel, const DominatorTree& tree, const LoopInfo& loops) {
  for (bool merged = true; merged;) {
    merged = false;
    std::map<Key, std::vector<Instruction*>> groups;
    std::vector<Key> order;  // of the keys: the result must not depend on addresses of values
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&kernel))
      for (Instruction& i : *block) {
        if (!is_movable(i)) continue;
        Key key = key_of(i);
        auto& group = groups[key];
        if (group.empty()) order.push_back(std::move(key));
        group.push_back(&i);
      }
    for (const Key& key : order) {
      auto& group = groups[key];
      if (group.size() > 1) merged |= merge(group, tree, loops);
    }
  }
}

}  // namespace capture
