//===- PrintUniformity.cpp - which results are uniform ---------------------------------------------------------===//

#include "Sass/Analysis/UniformityAnalysis.h"
#include "Sass/Passes.h"

#include "mlir/IR/AsmState.h"

namespace sass {
#define GEN_PASS_DEF_SASSPRINTUNIFORMITY
#include "Sass/Passes.h.inc"
} // namespace sass

using namespace mlir;
using namespace sass;

namespace {
struct PrintUniformity : sass::impl::SassPrintUniformityBase<PrintUniformity> {
  void runOnOperation() override {
    const auto &analysis = getAnalysis<UniformityAnalysis>();
    std::string text;
    llvm::raw_string_ostream os(text);
    AsmState names(getOperation());
    os << "uniformity of " << getOperation().getSymName() << '\n';
    auto say = [&](Value value) {
      bool uniform = analysis.isUniform(value);
      ++(uniform ? uniformValues : divergentValues);
      os << "  ";
      value.printAsOperand(os, names);
      os << (uniform ? ": uniform\n" : ": divergent\n");
    };
    for (Block &block : getOperation().getBody()) {
      llvm::for_each(block.getArguments(), say);
      for (Operation &op : block)
        llvm::for_each(op.getResults(), say);
      if (analysis.isDivergentBranch(&block)) {
        os << "  ";
        block.printAsOperand(os, names);
        os << ": divergent branch\n";
      }
    }
    llvm::errs() << os.str();
    markAllAnalysesPreserved();
  }
};
} // namespace
