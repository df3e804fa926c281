//===- DropFtz.cpp - an example of a pass in C++: FADD.FTZ becomes FADD --------------------------------------===//
//
// Built as a plugin: sass-opt --load-pass-plugin=SassDropFtz.so --pass-pipeline='builtin.module(sass.func(example-drop-ftz))'
//
//===---------------------------------------------------------------------------------------------------------===//

#include "Sass/Sass.h"
#include "llvm/Config/llvm-config.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

namespace {
struct DropFtz : PassWrapper<DropFtz, OperationPass<sass::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DropFtz)

  StringRef getArgument() const final { return "example-drop-ftz"; }
  StringRef getDescription() const final { return "keep denormals in additions"; }

  void runOnOperation() final {
    getOperation().walk([&](sass::SassInst inst) {
      sass::InstView view = inst.view();
      if (view.getMnemonic() != "FADD" || !view.hasModifier("FTZ"))
        return;
      // Moves exactly the bits of the modifier; a diagnostic says why if the form has no such spelling.
      if (failed(view.editModifiers(/*drop=*/".FTZ", /*add=*/"")))
        return signalPassFailure();
      inst->emitRemark() << "now " << view.getFullName() << ", stall " << (view.getControl() & 0xf);
    });
  }
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "SassDropFtz", LLVM_VERSION_STRING, [] { PassRegistration<DropFtz>(); }};
}
