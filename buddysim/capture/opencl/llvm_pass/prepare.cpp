#include "prepare.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

using namespace llvm;

namespace capture {
namespace {

bool is_kernel(const Function& f) { return !f.isDeclaration() && f.getMetadata("kernel_arg_addr_space"); }

// A built-in function of PoCL's library has its mangled name, _Z<length>_cl_<name>...; a program's have plain names.
bool is_builtin(const Function& f) {
  StringRef name = f.getName();
  if (!name.consume_front("_Z")) return false;
  return name.drop_while([](char c) { return c >= '0' && c <= '9'; }).startswith("_cl_");
}

// Whether the function or a function that it calls uses a variable with ids or one common to work-items.
bool reaches_variables(const Function& f, SmallPtrSetImpl<const Function*>& seen) {
  if (!seen.insert(&f).second) return false;
  if (f.isDeclaration()) return !f.isIntrinsic() && f.getName() != "snprintf";
  for (const Instruction& i : instructions(f))
    for (const Value* operand : i.operands()) {
      operand = operand->stripPointerCasts();
      if (auto* variable = dyn_cast<GlobalVariable>(operand)) {
        if (!variable->isConstant()) return true;
      } else if (auto* callee = dyn_cast<Function>(operand)) {
        if (reaches_variables(*callee, seen)) return true;
      }
    }
  return false;
}

// void bs_run_NAME(void** arguments): calls the kernel with the values at the pointers.
void add_entry(Function& kernel) {
  Module& module = *kernel.getParent();
  LLVMContext& context = module.getContext();
  auto* type = FunctionType::get(Type::getVoidTy(context), {PointerType::get(context, 0)}, false);
  auto* entry = Function::Create(type, GlobalValue::ExternalLinkage, "bs_run_" + kernel.getName(), module);
  entry->addFnAttr(Attribute::NoInline);
  for (const char* name : {"target-cpu", "target-features"})
    if (kernel.hasFnAttribute(name)) entry->addFnAttr(kernel.getFnAttribute(name));
  IRBuilder<> builder(BasicBlock::Create(context, "entry", entry));
  SmallVector<Value*> values;
  for (Argument& argument : kernel.args()) {
    Value* at = builder.CreateConstGEP1_64(builder.getPtrTy(), entry->getArg(0), argument.getArgNo());
    Value* pointer = builder.CreateLoad(builder.getPtrTy(), at);
    values.push_back(argument.hasByValAttr() ? pointer
                                             : builder.CreateAlignedLoad(argument.getType(), pointer, Align(1)));
  }
  CallInst* call = builder.CreateCall(&kernel, values);
  call->setAttributes(kernel.getAttributes().removeFnAttributes(context));
  builder.CreateRetVoid();
}

// PoCL's printf has an extra call of __pocl_printf without output, only to link it.
void complete_printf(Module& module) {
  Function* print = module.getFunction("printf");
  if (!print || print->isDeclaration()) return;
  for (Instruction& i : make_early_inc_range(instructions(*print))) {
    auto* call = dyn_cast<CallInst>(&i);
    if (!call || !call->getCalledFunction() || call->getCalledFunction()->getName() != "__pocl_printf") continue;
    call->replaceAllUsesWith(Constant::getNullValue(call->getType()));
    call->eraseFromParent();
  }
}

// Replaces clang's function that creates a sampler constant: samplers are numbers.
void make_samplers(Module& module) {
  Function* maker = module.getFunction("__translate_sampler_initializer");
  if (!maker) return;
  for (User* user : make_early_inc_range(maker->users())) {
    auto* call = dyn_cast<CallInst>(user);
    if (!call) continue;
    IRBuilder<> builder(call);
    Value* bits = builder.CreateZExt(call->getArgOperand(0), builder.getInt64Ty());
    call->replaceAllUsesWith(builder.CreateIntToPtr(bits, call->getType()));
    call->eraseFromParent();
  }
}

}  // namespace

bool stays_call(const Function& f) {
  if (f.isDeclaration() || f.isVarArg()) return true;
  if (!is_builtin(f)) return f.getName().startswith("__pocl_print");
  for (const Argument& argument : f.args())
    if (argument.getType()->isPointerTy() && !argument.hasByValAttr() && !argument.hasStructRetAttr()) return false;
  if (f.getReturnType()->isPointerTy()) return false;
  SmallPtrSet<const Function*, 16> seen;
  return !reaches_variables(f, seen);
}

void prepare(Module& module) {
  complete_printf(module);
  make_samplers(module);
  SmallVector<Function*> kernels;
  for (Function& f : module)
    if (is_kernel(f)) kernels.push_back(&f);
  for (Function* kernel : kernels) {
    if (!kernel->use_empty()) {  // kernels may call kernels
      ValueToValueMapTy map;
      Function* copy = CloneFunction(kernel, map);
      copy->setName(kernel->getName() + ".called");
      copy->clearMetadata();
      kernel->replaceAllUsesWith(copy);
    }
  }
  SmallPtrSet<Function*, 32> calls;
  for (Function& f : module)
    if (!f.isDeclaration() && stays_call(f)) calls.insert(&f);
  for (Function& f : module) {
    if (f.isDeclaration()) continue;
    f.setCallingConv(CallingConv::C);
    f.removeFnAttr(Attribute::OptimizeNone);
    f.removeFnAttr(Attribute::NoInline);
    f.removeFnAttr(Attribute::AlwaysInline);
    if (is_kernel(f)) {
      f.setLinkage(GlobalValue::ExternalLinkage);
      f.addFnAttr(Attribute::NoInline);
      continue;
    }
    f.setLinkage(GlobalValue::InternalLinkage);
    f.addFnAttr(calls.count(&f) ? Attribute::NoInline : Attribute::AlwaysInline);
  }
  for (Function& f : module)
    for (Instruction& i : instructions(f))
      if (auto* call = dyn_cast<CallInst>(&i))
        if (Function* callee = call->getCalledFunction()) {
          call->setCallingConv(callee->getCallingConv());
          call->removeFnAttr(Attribute::NoInline);
        }
  // Work-items of a group share these variables. The optimiser must assume that others access them.
  for (GlobalVariable& variable : module.globals())
    if (!variable.isConstant() && variable.hasLocalLinkage()) {
      variable.setLinkage(GlobalValue::ExternalLinkage);
      variable.setVisibility(GlobalValue::HiddenVisibility);
    }
  if (Function* barrier = module.getFunction("pocl.barrier")) {
    barrier->setName("bs_barrier");
    barrier->addFnAttr(Attribute::Convergent);
    barrier->addFnAttr(Attribute::NoDuplicate);
  }
  for (Function* kernel : kernels) add_entry(*kernel);
}

void allow_unrolling(Module& module) {
  for (Function& f : module)
    for (Instruction& i : instructions(f)) {
      MDNode* loop = i.getMetadata(LLVMContext::MD_loop);
      if (!loop) continue;
      for (const MDOperand& operand : loop->operands()) {
        auto* hint = dyn_cast<MDNode>(operand);
        auto* name = hint && hint->getNumOperands() ? dyn_cast<MDString>(hint->getOperand(0)) : nullptr;
        if (name && name->getString() == "llvm.loop.unroll.disable") {
          i.setMetadata(LLVMContext::MD_loop, nullptr);
          break;
        }
      }
    }
  if (Function* barrier = module.getFunction("bs_barrier")) barrier->removeFnAttr(Attribute::NoDuplicate);
}

}  // namespace capture
