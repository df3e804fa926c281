//===- OnEntry.cpp - passes that know nothing of a configuration, on the functions that it names -------------===//

#include "Sass/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

namespace sass {
#define GEN_PASS_DEF_SASSONENTRY
#include "Sass/Passes.h.inc"
} // namespace sass

using namespace mlir;
using namespace sass;

namespace {
struct OnEntry : sass::impl::SassOnEntryBase<OnEntry> {
  using SassOnEntryBase::SassOnEntryBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    OpPassManager passes(FuncOp::getOperationName());
    if (succeeded(parsePassPipeline(pipeline, passes, llvm::nulls())))
      passes.getDependentDialects(registry);
  }

  void runOnOperation() override {
    FuncOp func = getOperation();
    auto named = func->getAttrOfType<DenseI32ArrayAttr>(kEntriesAttr);
    if (!named || !llvm::is_contained(named.asArrayRef(), entry))
      return;
    OpPassManager passes(FuncOp::getOperationName());
    std::string why;
    llvm::raw_string_ostream os(why);
    if (failed(parsePassPipeline(pipeline, passes, os))) {
      emitError(func.getLoc()) << "pipeline '" << pipeline << "': " << why;
      return signalPassFailure();
    }
    OwningOpRef<FuncOp> original = report ? func.clone() : FuncOp();
    auto before = words(func);
    if (failed(runPipeline(passes, func)))
      return signalPassFailure();
    auto after = words(func);
    unsigned common = std::min(before.size(), after.size()), changed = std::max(before.size(), after.size()) - common;
    for (unsigned i = 0; i < common; ++i)
      changed += before[i] != after[i];
    if (report) {
      func.getBody().takeBody(original->getBody());
      func->setAttrs(original.get()->getAttrDictionary());
    }
    func->setAttr("sass.changed_" + std::to_string(entry), Builder(func.getContext()).getI32IntegerAttr(changed));
  }

  static SmallVector<std::pair<uint64_t, uint64_t>> words(FuncOp func) {
    SmallVector<std::pair<uint64_t, uint64_t>> all;
    for (Block &block : func.getBody())
      for (auto inst : block.getOps<SassInst>())
        all.emplace_back(inst.getInstData().word.lo, inst.getInstData().word.hi);
    return all;
  }
};
} // namespace
