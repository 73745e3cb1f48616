#include "offsets.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LazyValueInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace capture {
namespace {

// An equal value with its constant as last summand, or with sign extension; or none. New sums have no nuw or nsw flags.
Value* with_offset_outside(Instruction& i, LazyValueInfo& ranges) {
  IRBuilder<> builder(&i);
  Value* value;
  ConstantInt *offset, *factor;
  if (match(&i, m_Or(m_Value(value), m_ConstantInt(offset))) &&
      haveNoCommonBitsSet(value, offset, i.getModule()->getDataLayout()))
    return builder.CreateAdd(value, offset);
  if (match(&i, m_Shl(m_Add(m_Value(value), m_ConstantInt(offset)), m_ConstantInt(factor))))
    return builder.CreateAdd(builder.CreateShl(value, factor), ConstantExpr::getShl(offset, factor));
  if (match(&i, m_Mul(m_Add(m_Value(value), m_ConstantInt(offset)), m_ConstantInt(factor))))
    return builder.CreateAdd(builder.CreateMul(value, factor), ConstantExpr::getMul(offset, factor));
  if (match(&i, m_Shl(m_Sub(m_ConstantInt(offset), m_Value(value)), m_ConstantInt(factor))))
    return builder.CreateSub(ConstantExpr::getShl(offset, factor), builder.CreateShl(value, factor));
  if (match(&i, m_Mul(m_Sub(m_ConstantInt(offset), m_Value(value)), m_ConstantInt(factor))))
    return builder.CreateSub(ConstantExpr::getMul(offset, factor), builder.CreateMul(value, factor));
  if (isa<ZExtInst>(i) && i.getType()->isIntegerTy() &&
      ranges.getConstantRange(i.getOperand(0), &i).getSignedMin().isNonNegative())
    return builder.CreateSExt(i.getOperand(0), i.getType());
  return nullptr;
}

}  // namespace

void expose_offsets(Function& kernel, LazyValueInfo& ranges) {
  for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&kernel))
    for (Instruction& i : make_early_inc_range(*block))
      if (Value* equal = with_offset_outside(i, ranges)) {
        i.replaceAllUsesWith(equal);
        i.eraseFromParent();
      }
}

}  // namespace capture
