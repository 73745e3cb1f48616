#include "local_offsets.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

#include "cost.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace capture {
namespace {

constexpr int64_t MAX_OFFSET = 1 << 30;  // local memory is smaller: see `expose_local_offsets`
constexpr unsigned MAX_DEPTH = 8;

// A 32-bit number as the sum of a variable part (none: 0) and a constant.
struct Sum {
  Value* rest = nullptr;
  int32_t offset = 0;
};

class Splitter {
 public:
  Splitter(Instruction& at, const DataLayout& layout) : builder_(&at), layout_(layout) {}

  // The low 32 bits of a value.
  Sum split(Value* value, unsigned depth = 0) {
    Value *a, *b;
    ConstantInt* constant;
    if (match(value, m_ConstantInt(constant))) return {nullptr, low(constant)};
    if (depth == MAX_DEPTH) return whole(value);
    if (match(value, m_CombineOr(m_SExt(m_Value(a)), m_ZExt(m_Value(a)))) && a->getType()->isIntegerTy(32))
      return split(a, depth + 1);
    if (match(value, m_Trunc(m_Value(a))) || match(value, m_AShr(m_Shl(m_Value(a), m_SpecificInt(32)), m_SpecificInt(32))))
      return split(a, depth + 1);
    if (match(value, m_Add(m_Value(a), m_Value(b)))) return sum(split(a, depth + 1), split(b, depth + 1), false);
    if (match(value, m_Sub(m_Value(a), m_Value(b)))) return sum(split(a, depth + 1), split(b, depth + 1), true);
    if (match(value, m_Or(m_Value(a), m_ConstantInt(constant))) && haveNoCommonBitsSet(a, constant, layout_))
      return sum(split(a, depth + 1), {nullptr, low(constant)}, false);
    if (match(value, m_Mul(m_Value(a), m_ConstantInt(constant)))) return product(split(a, depth + 1), low(constant));
    if (match(value, m_Shl(m_Value(a), m_ConstantInt(constant))) && constant->getValue().ult(31))
      return product(split(a, depth + 1), 1 << constant->getZExtValue());
    return whole(value);
  }

  IRBuilder<>& builder() { return builder_; }

 private:
  static int32_t low(const ConstantInt* constant) { return constant->getValue().sextOrTrunc(32).getSExtValue(); }

  Sum whole(Value* value) { return {builder_.CreateTrunc(value, builder_.getInt32Ty()), 0}; }

  Sum sum(Sum a, Sum b, bool minus) {
    if (minus) b.offset = int32_t(-uint32_t(b.offset));
    Value* rest = a.rest;
    if (b.rest && minus) rest = builder_.CreateSub(a.rest ? a.rest : builder_.getInt32(0), b.rest);
    if (b.rest && !minus) rest = a.rest ? builder_.CreateAdd(a.rest, b.rest) : b.rest;
    return {rest, int32_t(uint32_t(a.offset) + uint32_t(b.offset))};
  }

  Sum product(Sum a, int32_t factor) {
    Value* rest = a.rest ? builder_.CreateMul(a.rest, builder_.getInt32(factor)) : nullptr;
    return {rest, int32_t(uint32_t(a.offset) * uint32_t(factor))};
  }

  IRBuilder<> builder_;
  const DataLayout& layout_;
};

bool is_accessed(const GetElementPtrInst& address) {
  return all_of(address.users(), [&](const User* user) { return getLoadStorePointerOperand(user) == &address; });
}

}  // namespace

void expose_local_offsets(Function& kernel) {
  for (BasicBlock& block : kernel)
    for (Instruction& i : make_early_inc_range(block)) {
      auto* address = dyn_cast<GetElementPtrInst>(&i);
      if (!address || !address->isInBounds() || address->getNumIndices() != 1 || isa<Constant>(address->getOperand(1)))
        continue;
      if (address->getType()->isVectorTy() || space_of(address) != Space::LOCAL || !is_accessed(*address)) continue;
      Splitter splitter(i, i.getModule()->getDataLayout());
      auto [rest, offset] = splitter.split(address->getOperand(1));
      if (!rest || !offset || std::abs(int64_t(offset)) > MAX_OFFSET) continue;
      auto& builder = splitter.builder();
      Type* element = address->getSourceElementType();
      Value* base = builder.CreateGEP(element, address->getPointerOperand(), builder.CreateSExt(rest, builder.getInt64Ty()));
      i.replaceAllUsesWith(builder.CreateGEP(element, base, builder.getInt64(offset)));
      i.eraseFromParent();
    }
}

}  // namespace capture
