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
} // namespace sass

#endif // SASS_PASSES_H
