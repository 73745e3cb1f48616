#include "fold.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

#include "gpu_compiler.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace capture {
namespace {

const Instruction* folded_operand(const Instruction& user);

bool is_modifier(const Instruction& i) {
  auto* call = dyn_cast<IntrinsicInst>(&i);
  return i.getOpcode() == Instruction::FNeg || (call && call->getIntrinsicID() == Intrinsic::fabs);
}

// A negated summand: sums of SASS negate their operands.
bool is_negation(const Instruction& i) {
  return match(&i, m_Neg(m_Value())) && all_of(i.users(), [](const User* user) {
    return isa<BinaryOperator>(user) && (match(user, m_Add(m_Value(), m_Value())) || match(user, m_Sub(m_Value(), m_Value())));
  });
}

bool is_bitwise(const Instruction& i) {
  return i.getOpcode() == Instruction::And || i.getOpcode() == Instruction::Or || i.getOpcode() == Instruction::Xor;
}

bool is_sum(const Instruction& i) { return i.getOpcode() == Instruction::Add || i.getOpcode() == Instruction::Sub; }

bool is_scaled(const Instruction& i) {
  return i.getOpcode() == Instruction::Mul ||
         (i.getOpcode() == Instruction::Shl && isa<ConstantInt>(i.getOperand(1)));
}

// Whether a value is a sign-extended 32-bit number: (x << 32) >> 32.
bool is_widening(const Instruction& i) {
  return match(&i, m_AShr(m_Shl(m_Value(), m_SpecificInt(32)), m_SpecificInt(32)));
}

bool is_widened(const Instruction& i) {
  auto* user = i.hasOneUse() ? dyn_cast<Instruction>(*i.user_begin()) : nullptr;
  return user && is_widening(*user);
}

// CUDA's launches have no offset.
bool adds_offset(const Instruction& i) {
  return i.getOpcode() == Instruction::Add && any_of(i.operands(), [](const Value* operand) {
    auto* load = dyn_cast<LoadInst>(operand);
    return load && load->getPointerOperand()->getName().startswith("_global_offset_");
  });
}

// Whether an instruction only returns its first operand.
bool is_free(const Instruction& i) {
  return isa<SExtInst>(i) || isa<ZExtInst>(i) || isa<TruncInst>(i) || adds_offset(i);
}

// Whether one SASS instruction does both operations.
bool fits(const Instruction& first, const Instruction& user) {
  if (user.getType()->isIntOrIntVectorTy(1) && (is_bitwise(user) || isa<SelectInst>(user))) return isa<CmpInst>(first);
  switch (user.getOpcode()) {
    case Instruction::FAdd:
    case Instruction::FSub:
      return first.getOpcode() == Instruction::FMul;
    case Instruction::Add:
    case Instruction::Sub:
      return is_scaled(first) || (is_sum(first) && !folded_operand(first) && !adds_offset(first));
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
      return is_bitwise(first) && !folded_operand(first);
    default:
      return false;
  }
}

// The instruction that computes an operand for this user alone, behind widening and narrowing, which cost nothing.
const Instruction* source(const Value* operand, const Instruction& user) {
  auto* i = dyn_cast<Instruction>(operand);
  while (i && i->hasOneUse() && is_free(*i)) i = dyn_cast<Instruction>(i->getOperand(0));
  return i && i->hasOneUse() && i->getParent() == user.getParent() ? i : nullptr;
}

// The operand whose operation is folded into the user; products before sums.
const Instruction* folded_operand(const Instruction& user) {
  const Instruction* folded = nullptr;
  for (const Value* operand : user.operands()) {
    const Instruction* first = source(operand, user);
    if (first && fits(*first, user) && (!folded || (is_sum(*folded) && is_scaled(*first)))) folded = first;
  }
  return folded;
}

}  // namespace

bool folds(const Instruction& i) {
  if (!emulates_gpu_compiler()) return false;
  if (is_modifier(i) || is_negation(i) || is_widening(i) || is_widened(i) || adds_offset(i)) return true;
  const Instruction* user = &i;
  do {
    if (!user->hasOneUse()) return false;
    user = dyn_cast<Instruction>(*user->user_begin());
  } while (user && is_free(*user));
  return user && folded_operand(*user) == &i;
}

}  // namespace capture
