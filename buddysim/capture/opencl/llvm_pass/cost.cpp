// Latencies are those of sm_70 in buddysim/importers/accelsim/opcodes.py, from which units.h is written.
// Numbers of instructions: an operation without an instruction on NVIDIA GPUs is a sequence. Its length is an
// assumption, listed in docs/how-to/capture-opencl.md.
#include "cost.h"

#include "fold.h"
#include "gpu_compiler.h"
#include "times.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <map>
#include <queue>

using namespace llvm;

namespace capture {
namespace {

unsigned lanes_of(const Type* type) {
  auto* vector = dyn_cast<FixedVectorType>(type);
  return vector ? vector->getNumElements() : 1;
}

Unit arithmetic_unit(const Type* type) {
  return type->getScalarType()->isDoubleTy() ? DOUBLE : type->getScalarType()->isFloatingPointTy() ? SINGLE : INTEGER;
}

bool is_wide(const Type* type) { return type->getScalarSizeInBits() > 32; }

Busy busy(Unit unit, unsigned instructions) {
  Busy result{};
  result[unit] = instructions * UNIT_CYCLES[unit];
  return result;
}

// The cost of a vector operation: independent copies of the cost of an element.
Cost each(unsigned lanes, Unit unit) { return {lanes, LATENCY[unit], 1, LATENCY[unit], busy(unit, lanes)}; }

Cost one(Unit unit) { return each(1, unit); }

// An instruction that uses none of the execution units.
Cost one_elsewhere(unsigned latency) { return {1, latency, 1, latency}; }

// EXIT as in opcodes.py: one cycle of the integer unit.
Cost exit_cost() {
  Cost cost{1, 1, 1, 1};
  cost.busy[INTEGER] = 1;
  return cost;
}

// A sequence in which each instruction depends on the previous one.
Cost sequence(unsigned lanes, unsigned length, Unit unit) {
  return {lanes * length, length * LATENCY[unit], length, LATENCY[unit], busy(unit, lanes * length)};
}

// The path through a built-in function with the fewest instructions: slow cases are rare.
Cost call_cost(const Function& f) {
  static std::map<const Function*, Cost> known;
  auto known_cost = known.find(&f);
  if (known_cost != known.end()) return known_cost->second;
  known[&f] = one(SPECIAL);  // for recursion
  std::map<const BasicBlock*, Cost> best;
  using Entry = std::pair<Cost, const BasicBlock*>;
  auto later = [](const Entry& a, const Entry& b) { return a.first.instructions > b.first.instructions; };
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> open(later);
  open.push({Cost{}, &f.getEntryBlock()});
  Cost least = one(SPECIAL);
  while (!open.empty()) {
    auto [sum, block] = open.top();
    open.pop();
    if (!best.emplace(block, sum).second) continue;
    BlockTimes times(*block);
    sum.instructions += times.instructions;
    sum.cycles += times.end.cycles;
    sum.hops += times.end.hops;
    add(sum.busy, times.busy);
    if (isa<ReturnInst>(block->getTerminator())) {
      least = {sum.instructions, sum.cycles, sum.hops, LATENCY[SINGLE], sum.busy};
      break;
    }
    for (const BasicBlock* next : successors(block)) open.push({sum, next});
  }
  return known[&f] = least;
}

Cost intrinsic_cost(const IntrinsicInst& call) {
  unsigned lanes = lanes_of(call.getType());
  Unit unit = arithmetic_unit(call.getType());
  switch (call.getIntrinsicID()) {
    case Intrinsic::lifetime_start:
    case Intrinsic::lifetime_end:
    case Intrinsic::assume:
    case Intrinsic::dbg_declare:
    case Intrinsic::dbg_value:
    case Intrinsic::dbg_label:
    case Intrinsic::experimental_noalias_scope_decl:
      return {};
    case Intrinsic::sqrt: {  // an estimate, and steps that refine it
      unsigned latency = LATENCY[SPECIAL] / 4;
      Cost cost = {8 * lanes, 8 * latency, 8, latency, busy(unit, 7 * lanes)};
      add(cost.busy, busy(SPECIAL, lanes));
      return cost;
    }
    case Intrinsic::smax:
    case Intrinsic::smin:
    case Intrinsic::umax:
    case Intrinsic::umin:  // sm_70 compares, then selects
      return sequence(lanes, emulates_gpu_compiler() ? 2 : 1, unit);
    default:
      return each(lanes, unit);
  }
}

// SASS has seven predicates: a condition of a branch in another block is compared there again.
bool is_compared_elsewhere(const BranchInst& branch) {
  auto* comparison = dyn_cast<CmpInst>(branch.getCondition());
  return emulates_gpu_compiler() && comparison && comparison->getParent() != branch.getParent();
}

Cost branch_cost(const BranchInst& branch) {
  Cost cost = one(BRANCH);
  if (!is_compared_elsewhere(branch)) return cost;
  add(cost.busy, busy(INTEGER, 1));
  return {2, LATENCY[INTEGER] + LATENCY[BRANCH], 2, LATENCY[BRANCH], cost.busy};
}

// A wide multiply-add for each index, or two additions where an element is a byte; in local memory addresses are narrow.
Cost address_cost(const GetElementPtrInst& address) {
  if (!emulates_gpu_compiler()) return one(INTEGER);
  unsigned length = 0;
  for (auto at = gep_type_begin(address); at != gep_type_end(address); ++at) {
    if (isa<Constant>(at.getOperand())) continue;
    bool bytes = address.getModule()->getDataLayout().getTypeAllocSize(at.getIndexedType()) == 1;
    length += bytes && space_of(&address) == Space::GLOBAL ? 2 : 1;
  }
  return sequence(1, std::max(length, 1u), INTEGER);
}

bool only_addresses(const Instruction& i) {
  for (const User* user : i.users()) {
    auto* load = dyn_cast<LoadInst>(user);
    auto* store = dyn_cast<StoreInst>(user);
    if (!load && !(store && store->getPointerOperand() == &i) && !isa<GetElementPtrInst>(user)) return false;
  }
  return true;
}

}  // namespace

StringRef type_of(const llvm::Argument& argument) {
  auto* types = argument.getParent()->getMetadata("kernel_arg_type");
  if (!types || argument.getArgNo() >= types->getNumOperands()) return "";
  return cast<MDString>(types->getOperand(argument.getArgNo()))->getString();
}

Space space_of(const Value* pointer) {
  SmallVector<const Value*, 4> objects;
  getUnderlyingObjects(pointer, objects, nullptr, 0);
  bool local = false, global = objects.empty();
  for (const Value* object : objects) {
    if (isa<AllocaInst>(object) || isa<ConstantPointerNull>(object) || isa<UndefValue>(object)) continue;
    if (auto* variable = dyn_cast<GlobalVariable>(object)) {
      local |= !variable->isConstant() && !variable->isDeclaration();
      continue;
    }
    if (auto* argument = dyn_cast<llvm::Argument>(object)) {
      if (argument->hasByValAttr()) continue;
      if (type_of(*argument).startswith("image")) continue;  // its description, which is in a GPU's texture units
      auto* spaces = argument->getParent()->getMetadata("kernel_arg_addr_space");
      if (spaces && argument->getArgNo() < spaces->getNumOperands()) {
        auto* space = mdconst::dyn_extract<ConstantInt>(spaces->getOperand(argument->getArgNo()));
        if (space && space->getZExtValue() == 3) {
          local = true;
          continue;
        }
      }
    }
    global = true;
  }
  return global ? Space::GLOBAL : local ? Space::LOCAL : Space::PRIVATE;
}

Cost cost_of(const Instruction& i) {
  Type* type = i.getType();
  unsigned lanes = lanes_of(type);
  Unit unit = arithmetic_unit(type);
  if (folds(i)) return {};
  switch (i.getOpcode()) {
    case Instruction::PHI:
    case Instruction::BitCast:
    case Instruction::AddrSpaceCast:
    case Instruction::PtrToInt:
    case Instruction::IntToPtr:
    case Instruction::Freeze:
    case Instruction::Alloca:
    case Instruction::Trunc:
    case Instruction::ZExt:
    case Instruction::SExt:  // part of the wide multiply-add that makes an address
    case Instruction::ExtractElement:
    case Instruction::InsertElement:
    case Instruction::ExtractValue:
    case Instruction::InsertValue:
    case Instruction::ShuffleVector:
    case Instruction::Unreachable:
    case Instruction::Fence:
      return {};
    case Instruction::GetElementPtr:  // constant offsets are part of the access
      return cast<GetElementPtrInst>(i).hasAllConstantIndices() && only_addresses(i)
                 ? Cost{}
                 : address_cost(cast<GetElementPtrInst>(i));
    case Instruction::Br:
      return cast<BranchInst>(i).isConditional() ? branch_cost(cast<BranchInst>(i)) : Cost{};
    case Instruction::Switch:
      return sequence(1, 2 * cast<SwitchInst>(i).getNumCases() + 1, BRANCH);
    case Instruction::Ret:
      return i.getFunction()->getMetadata("kernel_arg_addr_space") ? exit_cost() : one(BRANCH);
    case Instruction::Load:
    case Instruction::Store: {
      if (auto* variable = dyn_cast<GlobalVariable>(getLoadStorePointerOperand(&i)))
        if (variable->isDeclaration())  // ids are special registers, sizes are constants
          return variable->getName().contains("_id_") ? one(INTEGER) : Cost{};
      Space space = space_of(getLoadStorePointerOperand(&i));
      return space == Space::LOCAL ? one(SHARED) : one_elsewhere(LATENCY[INTEGER]);
    }
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem:
      return sequence(lanes, is_wide(type) ? 70 : 20, INTEGER);
    case Instruction::FDiv:
      return sequence(lanes, is_wide(type) ? 16 : 8, unit);
    case Instruction::FRem:
      return sequence(lanes, 30, unit);
    case Instruction::Mul:
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
      return each(lanes, INTEGER);  // 64 bits are mostly indices: narrowed, or part of a wide multiply-add
    case Instruction::Call:
      if (auto* intrinsic = dyn_cast<IntrinsicInst>(&i)) return intrinsic_cost(*intrinsic);
      if (auto* callee = cast<CallInst>(i).getCalledFunction()) {
        if (!callee->isDeclaration()) return call_cost(*callee);
        if (emulates_gpu_compiler() && callee->getName() == "bs_barrier")  // sm_70 has a NOP before each
          return {2, LATENCY[SINGLE], 1, LATENCY[SINGLE]};
      }
      return one_elsewhere(LATENCY[SINGLE]);
    case Instruction::AtomicRMW:
    case Instruction::AtomicCmpXchg:
      return one_elsewhere(LATENCY[unit]);
    default:
      return each(lanes, unit);
  }
}

}  // namespace capture
