//===- AddToMul.cpp - an example of a pass in C++: x + x becomes x * 2 --------------------------------------===//
//
// Built as a plugin: sass-opt --load-pass-plugin=SassAddToMul.so --pass-pipeline='builtin.module(sass.func(example-add-to-mul))'
//
//===--------------------------------------------------------------------------------------------------------===//

#include "Sass/Sass.h"
#include "llvm/Config/llvm-config.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

namespace {
struct AddToMul : PassWrapper<AddToMul, OperationPass<sass::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AddToMul)
  StringRef getArgument() const final { return "example-add-to-mul"; }
  StringRef getDescription() const final { return "the same bits from the same pipe in the same time"; }

  void runOnOperation() final {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](sass::SassInst add) {
      if (add.getFormName() != "FADD_0x221_R_R_R" || add.isGuarded() || add.getShape(1) != "R#" || add.getShape(2) != "R#")
        return; // in any other shape an operand is negated, or its absolute value
      OperandRange reads = add.getReads();
      std::optional<SassPin> pin = add.getPin(0);
      if (reads[0] != reads[1] || !pin)
        return;
      rewriter.setInsertionPoint(add);
      sass::SassInst mul = sass::buildInst(rewriter, add.getLoc(), "FMUL_0x820_R_R_F", {add.getGuard(), reads[0]},
                                           {{"0.R0", *pin & 0xff}, {"2.F0", 0x40000000}}, add.getFullName().split('.').second);
      if (!mul) // a diagnostic has said why
        return signalPassFailure();
      mul.setControl(add.getControl() & 0x1ffff); // stall and scoreboards; operand-cache flags are not kept
      mul->emitRemark() << "was " << add.getFullName();
      rewriter.replaceOp(add, mul);
    });
  }
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "SassAddToMul", LLVM_VERSION_STRING, [] { PassRegistration<AddToMul>(); }};
}
