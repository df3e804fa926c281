//===- PrintLiveness.cpp - how many registers of each file are live -------------------------------------------===//

#include "Sass/Passes.h"

#include "mlir/Analysis/Liveness.h"

namespace sass {
#define GEN_PASS_DEF_SASSPRINTLIVENESS
#include "Sass/Passes.h.inc"
} // namespace sass

using namespace mlir;
using namespace sass;

namespace {

constexpr unsigned kFiles = SASS_FILE_B + 1;
using Counts = std::array<unsigned, kFiles>;

/// The register file of a value that occupies a register; none for constants.
std::optional<unsigned> fileOf(Value value) {
  if (isa_and_nonnull<PTOp, UPTOp, RZOp, URZOp>(value.getDefiningOp()))
    return std::nullopt;
  for (unsigned file = 0; file < kFiles; ++file)
    if (value.getType() == getRegisterType(value.getContext(), file))
      return file;
  return std::nullopt;
}

void printCounts(raw_ostream &os, const Counts &counts) {
  for (unsigned file = 0; file < kFiles; ++file)
    if (counts[file])
      os << ' ' << getFileName(file) << ' ' << counts[file];
}

struct PrintLiveness : sass::impl::SassPrintLivenessBase<PrintLiveness> {
  void runOnOperation() override {
    const Liveness &liveness = getAnalysis<Liveness>();
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "liveness of " << getOperation().getSymName() << '\n';
    unsigned index = 0;
    for (Block &block : getOperation().getBody()) {
      // Backwards through the block: a value is live from its definition to its last use.
      llvm::SmallDenseSet<Value, 64> live;
      Counts now{}, start{}, peak{};
      auto change = [&](Value value, bool isLive) {
        auto file = fileOf(value);
        if (!file || (isLive ? !live.insert(value).second : !live.erase(value)))
          return;
        now[*file] += isLive ? 1 : -1;
        peak[*file] = std::max(peak[*file], now[*file]);
      };
      for (Value value : liveness.getLiveOut(&block))
        change(value, true);
      for (Operation &op : llvm::reverse(block)) {
        for (Value result : op.getResults())
          change(result, true); // also a result that nobody reads needs a place
        for (Value result : op.getResults())
          change(result, false);
        for (Value operand : op.getOperands())
          change(operand, true);
      }
      for (BlockArgument arg : block.getArguments())
        change(arg, true);
      start = now;
      os << "  ^bb" << index++ << ": live in";
      printCounts(os, start);
      os << ", peak";
      printCounts(os, peak);
      os << '\n';
      if (peak[SASS_FILE_R] > peakRegs.getValue())
        peakRegs = peak[SASS_FILE_R];
    }
    llvm::errs() << os.str(); // at once: functions are handled in parallel
    markAllAnalysesPreserved();
  }
};

} // namespace
