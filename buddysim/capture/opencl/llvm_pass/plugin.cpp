// A plugin of clang (-fpass-plugin): its passes run before and after the optimisation pipeline.
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SeparateConstOffsetFromGEP.h>
#include <llvm/Transforms/Scalar/StraightLineStrengthReduce.h>
#include <llvm/Transforms/Scalar/NaryReassociate.h>

#include "gpu_compiler.h"
#include "instrument.h"
#include "local_offsets.h"
#include "merge.h"
#include "offsets.h"
#include "prepare.h"
#include "schedule.h"

using namespace llvm;

namespace {

struct Prepare : PassInfoMixin<Prepare> {
  PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    capture::prepare(module);
    if (capture::emulates_gpu_compiler()) capture::allow_unrolling(module);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

struct Instrument : PassInfoMixin<Instrument> {
  PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    capture::instrument(module);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

// Passes of a GPU's compiler after the optimisation pipeline: NVPTX's passes for addresses, then earlier loads.
struct Schedule : PassInfoMixin<Schedule> {
  PreservedAnalyses run(Function& function, FunctionAnalysisManager&) {
    if (function.getMetadata("kernel_arg_addr_space")) capture::schedule(function);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

struct ExposeOffsets : PassInfoMixin<ExposeOffsets> {
  PreservedAnalyses run(Function& function, FunctionAnalysisManager& analyses) {
    if (function.getMetadata("kernel_arg_addr_space"))
      capture::expose_offsets(function, analyses.getResult<LazyValueAnalysis>(function));
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

struct ExposeLocalOffsets : PassInfoMixin<ExposeLocalOffsets> {
  PreservedAnalyses run(Function& function, FunctionAnalysisManager&) {
    if (function.getMetadata("kernel_arg_addr_space")) capture::expose_local_offsets(function);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

struct MergeEqual : PassInfoMixin<MergeEqual> {
  PreservedAnalyses run(Function& function, FunctionAnalysisManager& analyses) {
    if (function.getMetadata("kernel_arg_addr_space"))
      capture::merge_equal(
          function, analyses.getResult<DominatorTreeAnalysis>(function), analyses.getResult<LoopAnalysis>(function));
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

FunctionPassManager gpu_compiler_passes() {
  FunctionPassManager passes;
  passes.addPass(ExposeLocalOffsets());
  passes.addPass(ExposeOffsets());
  passes.addPass(SeparateConstOffsetFromGEPPass());
  passes.addPass(StraightLineStrengthReducePass());
  passes.addPass(EarlyCSEPass());
  passes.addPass(NaryReassociatePass());
  passes.addPass(EarlyCSEPass());
  passes.addPass(MergeEqual());
  passes.addPass(DCEPass());
  passes.addPass(Schedule());
  return passes;
}

}  // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "buddysim-capture", "1", [](PassBuilder& builder) {
            builder.registerPipelineStartEPCallback(
                [](ModulePassManager& manager, auto) { manager.addPass(Prepare()); });
            builder.registerOptimizerLastEPCallback(
                [](ModulePassManager& manager, auto) {
                  if (capture::emulates_gpu_compiler())
                    manager.addPass(createModuleToFunctionPassAdaptor(gpu_compiler_passes()));
                  manager.addPass(Instrument());
                });
          }};
}
