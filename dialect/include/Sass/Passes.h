//===- Passes.h - passes over sass.func -------------------------------------------------------------------===//

#ifndef SASS_PASSES_H
#define SASS_PASSES_H

#include "Sass/Sass.h"
#include "mlir/Pass/Pass.h"

namespace sass {
#define GEN_PASS_DECL
#include "Sass/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Sass/Passes.h.inc"

/// Applies the edits of a pass that the engine ran on a function as it is now, and hands on what it found: to whoever listens (see
/// sassOnPassRun), or as remarks. Takes the run.
llvm::LogicalResult applyPassRun(FuncOp func, SassPassRun *run);
} // namespace sass

#endif // SASS_PASSES_H
