//===- Passes.td - passes over sass.func ------------------------------------------------------------------===//

#ifndef SASS_PASSES_TD
#define SASS_PASSES_TD

include "mlir/Pass/PassBase.td"

//===-- Passes of the engine, which run without MLIR too (lib/Transforms/Portable.cpp) ----------------------===//

class Sass_PortablePass<string name, list<Option> own = []> : Pass<"sass-" # name, "::sass::FuncOp"> {
  let options = own # [
    Option<"entry", "entry", "int", "-1", "only functions whose attribute sass.entries has this number">,
    Option<"report", "report", "bool", "false", "count the places, change nothing">];
}

def SassConstBankFold : Sass_PortablePass<"const-bank-fold"> {
  let summary = "read numbers of the constant banks where they are used";
}

def SassCopyProp : Sass_PortablePass<"copy-prop"> {
  let summary = "read copied registers where they were copied from";
}

def SassDce : Sass_PortablePass<"dce", [
    Option<"remove", "remove", "bool", "false", "take the instructions out instead: the code behind them moves">]> {
  let summary = "make NOPs of instructions whose results nobody reads";
}

def SassFfmaDeftz : Sass_PortablePass<"ffma-deftz"> {
  let summary = "drop .FTZ from FFMA: denormal operands and results are kept";
}

def SassLdgVectorize : Sass_PortablePass<"ldg-vectorize", [
    Option<"widest", "widest", "int64_t", "0", "bits of a joined load at most: 64 or 128; 0: 128">]> {
  let summary = "join loads of neighbouring words of global memory";
}

def SassRegShrink : Sass_PortablePass<"reg-shrink", [
    Option<"registers", "registers", "int64_t", "0", "how many registers a thread is to be given at most; 0: as many as let more warps be resident">,
    Option<"threads", "threads", "int64_t", "0", "threads of a block where the kernel does not say; 0: 256">]> {
  let summary = "use so few registers that more warps are resident";
}

def SassReschedule : Sass_PortablePass<"reschedule"> {
  let summary = "put instructions into an order in which less time is spent waiting";
}

def SassRetargetParam : Sass_PortablePass<"retarget-param", [
    Option<"from", "from", "int64_t", "-1", "byte offset in c[0x0] whose reads move">,
    Option<"to", "to", "int64_t", "-1", "byte offset in c[0x0] to read instead">]> {
  let summary = "move reads of a kernel parameter (constant bank 0) to another offset";
}

def SassReuseFlags : Sass_PortablePass<"reuse-flags"> {
  let summary = "keep operands in the operand cache for the next instruction";
}

def SassScalarToUniform : Sass_PortablePass<"scalar-to-uniform"> {
  let summary = "compute what all lanes of a warp share in uniform registers";
}

def SassSpillElim : Sass_PortablePass<"spill-elim", [
    Option<"registers", "registers", "int64_t", "0", "how many registers a thread may be given; 0: as leave as many warps resident">]> {
  let summary = "keep values in free registers instead of local memory";
}

def SassYieldTune : Sass_PortablePass<"yield-tune"> {
  let summary = "keep warps issuing over long runs of products";
}

//===-- Any other pass, where a configuration names it --------------------------------------------------------===//

def SassOnEntry : Pass<"sass-on-entry", "::sass::FuncOp"> {
  let summary = "run a pipeline on the functions whose attribute sass.entries has a number";
  let description = [{
    For passes that know nothing of `sass2mlir apply`. The attribute `sass.changed_<entry>` of the function says afterwards how many
    instructions the pipeline changed, put in or took out.
  }];
  let options = [Option<"entry", "entry", "int", "0", "the number">,
                 Option<"report", "report", "bool", "false", "count the instructions that change, and keep the function as it was">,
                 Option<"pipeline", "pipeline", "std::string", "\"\"", "passes over sass.func">];
}

//===-- Passes that say something and change nothing --------------------------------------------------------===//

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
