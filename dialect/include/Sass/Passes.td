//===- Passes.td - passes over sass.func ------------------------------------------------------------------===//

#ifndef SASS_PASSES_TD
#define SASS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SassPrintLiveness : Pass<"sass-print-liveness", "::sass::FuncOp"> {
  let summary = "say for every block how many registers of each file are live at its start, and the peak inside it";
  let statistics = [Statistic<"peakRegs", "peak-regs", "largest number of R registers live at once">];
}

def SassPrintUniformity : Pass<"sass-print-uniformity", "::sass::FuncOp"> {
  let summary = "say for every result whether all lanes of a warp that are active together hold the same value";
  let statistics = [Statistic<"uniformValues", "uniform-values", "values that are uniform">,
                    Statistic<"divergentValues", "divergent-values", "values that may differ">];
}

def SassToNvgpuReport : Pass<"sass-to-nvgpu-report", "::sass::FuncOp"> {
  let summary = "say as remarks which nvgpu and nvvm ops mean the same as tensor-core and asynchronous-copy instructions";
}

#endif // SASS_PASSES_TD
