//===- TestUniformity.cpp - writes down what the uniformity analysis finds ---------------------------------===//
//
// sass-opt --load-pass-plugin=SassTestPasses.so --pass-pipeline='builtin.module(sass.func(test-sass-uniformity))', for FileCheck:
// results say in `test.results` whether they are uniform, blocks on their first op in `test.args` whether their arguments are,
// terminators in `test.divergent` that lanes part there.
//
//===--------------------------------------------------------------------------------------------------------===//

#include "Sass/Analysis/UniformityAnalysis.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace {
struct TestUniformity : PassWrapper<TestUniformity, OperationPass<sass::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestUniformity)
  StringRef getArgument() const final { return "test-sass-uniformity"; }
  StringRef getDescription() const final { return "annotate ops with the results of the uniformity analysis"; }

  void runOnOperation() final {
    const auto &analysis = getAnalysis<sass::UniformityAnalysis>();
    Builder builder(&getContext());
    auto annotate = [&](Operation &op, StringRef name, ValueRange values) {
      SmallVector<StringRef> found;
      for (Value value : values)
        found.push_back(analysis.isUniform(value) ? "uniform" : "divergent");
      if (!found.empty())
        op.setDiscardableAttr(name, builder.getStrArrayAttr(found));
    };
    for (Block &block : getOperation().getBody()) {
      annotate(block.front(), "test.args", block.getArguments());
      for (Operation &op : block)
        annotate(op, "test.results", op.getResults());
      if (analysis.isDivergentBranch(&block))
        block.back().setDiscardableAttr("test.divergent", builder.getUnitAttr());
    }
  }
};
} // namespace

namespace sass {
void registerTestUniformity() { PassRegistration<TestUniformity>(); }
} // namespace sass
