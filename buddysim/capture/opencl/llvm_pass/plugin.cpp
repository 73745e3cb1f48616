// A plugin of clang: -fpass-plugin. What it adds runs before and after the optimisation pipeline.
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>

#include "instrument.h"
#include "prepare.h"

using namespace llvm;

namespace {

struct Prepare : PassInfoMixin<Prepare> {
  PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    capture::prepare(module);
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

}  // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "buddysim-capture", "1", [](PassBuilder& builder) {
            builder.registerPipelineStartEPCallback(
                [](ModulePassManager& manager, auto) { manager.addPass(Prepare()); });
            builder.registerOptimizerLastEPCallback(
                [](ModulePassManager& manager, auto) { manager.addPass(Instrument()); });
          }};
}
