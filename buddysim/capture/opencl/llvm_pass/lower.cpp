#include "lower.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/LowerMemIntrinsics.h>

#include "cost.h"

using namespace llvm;

namespace capture {
namespace {

constexpr uint64_t MAX_UNROLLED_BYTES = 512;  // up to this size a sequence of accesses, beyond it a loop

unsigned fragment_bytes(uint64_t offset, uint64_t bytes, uint64_t alignment) {
  unsigned fragment = 16;
  while (fragment > 1 && (fragment > bytes - offset || fragment > alignment || offset % fragment)) fragment /= 2;
  return fragment;
}

Type* fragment_type(LLVMContext& context, unsigned bytes) {
  if (bytes <= 4) return IntegerType::get(context, 8 * bytes);
  return FixedVectorType::get(Type::getInt32Ty(context), bytes / 4);
}

// A struct assignment: all reads come before the writes, as source and destination may be the same.
void lower_transfer(MemTransferInst& copy, uint64_t bytes) {
  IRBuilder<> builder(&copy);
  uint64_t alignment = std::min(copy.getSourceAlign().valueOrOne().value(), copy.getDestAlign().valueOrOne().value());
  struct Fragment { Value* value; uint64_t offset; };
  SmallVector<Fragment> fragments;
  for (uint64_t offset = 0; offset < bytes;) {
    unsigned size = fragment_bytes(offset, bytes, alignment);
    Value* address = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), copy.getRawSource(), offset);
    Type* type = fragment_type(copy.getContext(), size);
    fragments.push_back({builder.CreateAlignedLoad(type, address, Align(std::min<uint64_t>(size, alignment))), offset});
    offset += size;
  }
  for (auto& fragment : fragments) {
    Value* address = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), copy.getRawDest(), fragment.offset);
    uint64_t size = fragment.value->getType()->getPrimitiveSizeInBits() / 8;
    builder.CreateAlignedStore(fragment.value, address, Align(std::min(size, alignment)));
  }
}

void lower_fill(MemSetInst& fill, uint64_t bytes) {
  IRBuilder<> builder(&fill);
  uint64_t alignment = fill.getDestAlign().valueOrOne().value();
  for (uint64_t offset = 0; offset < bytes;) {
    unsigned size = fragment_bytes(offset, bytes, alignment);
    Value* value = builder.CreateZExt(fill.getValue(), builder.getInt32Ty());
    value = builder.CreateMul(value, builder.getInt32(0x01010101));
    Type* type = fragment_type(fill.getContext(), size);
    value = size > 4 ? builder.CreateVectorSplat(size / 4, value) : builder.CreateTrunc(value, type);
    Value* address = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), fill.getRawDest(), offset);
    builder.CreateAlignedStore(value, address, Align(std::min<uint64_t>(size, alignment)));
    offset += size;
  }
}

}  // namespace

void lower_memory_intrinsics(Function& kernel) {
  SmallVector<MemIntrinsic*> intrinsics;
  for (Instruction& i : instructions(kernel))
    if (auto* intrinsic = dyn_cast<MemIntrinsic>(&i)) {
      auto* copy = dyn_cast<MemTransferInst>(intrinsic);
      bool is_private = space_of(intrinsic->getRawDest()) == Space::PRIVATE &&
                        (!copy || space_of(copy->getRawSource()) == Space::PRIVATE);
      if (!is_private) intrinsics.push_back(intrinsic);
    }
  TargetTransformInfo target(kernel.getParent()->getDataLayout());
  for (MemIntrinsic* intrinsic : intrinsics) {
    auto* length = dyn_cast<ConstantInt>(intrinsic->getLength());
    bool unrolled = length && length->getZExtValue() <= MAX_UNROLLED_BYTES;
    if (auto* copy = dyn_cast<MemTransferInst>(intrinsic); copy && unrolled)
      lower_transfer(*copy, length->getZExtValue());
    else if (auto* fill = dyn_cast<MemSetInst>(intrinsic); fill && unrolled)
      lower_fill(*fill, length->getZExtValue());
    else if (auto* copy = dyn_cast<MemCpyInst>(intrinsic))
      expandMemCpyAsLoop(copy, target);
    else if (auto* move = dyn_cast<MemMoveInst>(intrinsic))
      expandMemMoveAsLoop(move);
    else
      expandMemSetAsLoop(cast<MemSetInst>(intrinsic));
    intrinsic->eraseFromParent();
  }
}

}  // namespace capture
