#include "schedule.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <vector>

#include "cost.h"

using namespace llvm;

namespace capture {
namespace {

enum : unsigned { BUFFERS = 1, OTHERS = 2 };  // memory of the program's buffers; local and private memory

// Which memory a pointer may point to: buffers never overlap with local and private memory.
unsigned memory_of(const Value* pointer) {
  SmallVector<const Value*, 4> objects;
  getUnderlyingObjects(pointer, objects, nullptr, 0);
  unsigned memory = 0;
  for (const Value* object : objects) {
    if (isa<AllocaInst>(object) || isa<GlobalVariable>(object))
      memory |= OTHERS;
    else if (isa<llvm::Argument>(object))
      memory |= space_of(object) == Space::GLOBAL ? BUFFERS : OTHERS;
    else
      memory |= BUFFERS | OTHERS;
  }
  return memory ? memory : BUFFERS | OTHERS;
}

// Whether no instruction may move across an instruction.
bool is_fence(const Instruction& i) {
  if (isa<PHINode>(i) || i.isTerminator() || isa<AllocaInst>(i)) return true;
  if (auto* load = dyn_cast<LoadInst>(&i)) return !load->isUnordered() || load->isVolatile();
  if (auto* store = dyn_cast<StoreInst>(&i)) return !store->isUnordered() || store->isVolatile();
  return i.mayReadOrWriteMemory() || i.mayHaveSideEffects();
}

struct Node {
  Instruction* instruction;
  unsigned level = 0;    // loads on the longest path to it
  bool leads = false;    // to a load
  std::vector<unsigned> dependencies;
};

// Schedules the instructions in [first, end), none of which is a fence.
void schedule_range(BasicBlock::iterator first, BasicBlock::iterator end) {
  std::vector<Node> nodes;
  DenseMap<const Value*, unsigned> number;
  std::vector<unsigned> stores[2], loads[2];  // of each memory, since its last store
  for (auto at = first; at != end; ++at) {
    unsigned n = nodes.size();
    Node node{&*at};
    for (const Value* operand : at->operands()) {
      auto definition = number.find(operand);
      if (definition == number.end()) continue;
      node.dependencies.push_back(definition->second);
      const Node& needed = nodes[definition->second];
      node.level = std::max(node.level, needed.level + isa<LoadInst>(needed.instruction));
    }
    auto wait_for = [&](const std::vector<unsigned>& others) {
      for (unsigned other : others) {
        node.dependencies.push_back(other);
        node.level = std::max(node.level, nodes[other].level);
      }
    };
    if (const Value* pointer = getLoadStorePointerOperand(&*at)) {
      unsigned memory = memory_of(pointer);
      for (unsigned m = 0; m < 2; m++) {
        if (!(memory >> m & 1)) continue;
        wait_for(stores[m]);
        if (isa<LoadInst>(*at)) {
          loads[m].push_back(n);
        } else {
          wait_for(loads[m]);
          loads[m].clear();
          stores[m] = {n};
        }
      }
    }
    number[&*at] = n;
    nodes.push_back(node);
  }
  for (unsigned n = nodes.size(); n-- > 0;) {
    nodes[n].leads |= isa<LoadInst>(nodes[n].instruction);
    if (nodes[n].leads)
      for (unsigned needed : nodes[n].dependencies) nodes[needed].leads = true;
  }
  // Dependences of a node have no higher level, and lead to a load if the node does. So they come before the node.
  std::vector<unsigned> order(nodes.size());
  for (unsigned n = 0; n < order.size(); n++) order[n] = n;
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) {
    if (nodes[a].level != nodes[b].level) return nodes[a].level < nodes[b].level;
    return nodes[a].leads > nodes[b].leads;
  });
  for (unsigned n : order) nodes[n].instruction->moveBefore(*end->getParent(), end);
}

}  // namespace

void schedule(Function& kernel) {
  for (BasicBlock& block : kernel)
    for (auto at = block.begin(); at != block.end();) {
      if (is_fence(*at)) {
        ++at;
        continue;
      }
      auto first = at;
      while (!is_fence(*at)) ++at;
      schedule_range(first, at);
    }
}

}  // namespace capture
