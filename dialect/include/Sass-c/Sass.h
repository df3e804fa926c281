/* C API of the sass dialect: registration, and whole kernels to and from modules in one call each way. */
#ifndef SASS_C_SASS_H
#define SASS_C_SASS_H

#include "mlir-c/IR.h"
#include "sass_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(Sass, sass);

/* Adds the passes of Passes.td to MLIR's registry. */
MLIR_CAPI_EXPORTED void sassRegisterPasses(void);

/* What an operation of a kernel is. */
enum {
  SASS_OP_INST = 0,     /* an instruction */
  SASS_OP_OPAQUE = 1,   /* a word that no table knows */
  SASS_OP_CONSTANT = 2, /* RZ, URZ, PT or UPT, by the file of its pin */
  SASS_OP_LIVE_IN = 3,  /* a register at entry */
  SASS_OP_LABEL = 4,
  SASS_OP_ENTRY = 5, /* pseudo terminators */
  SASS_OP_FALL = 6,
  SASS_OP_END = 7
};

#define SASS_NONE 0xffffffffu

/* A control-flow edge: the block it leads to, and where in `edgeArgs` the values for its arguments start. */
typedef struct SassEdge {
  uint32_t to, args;
} SassEdge;

/* A kernel as arrays. Operations are in text order, those of a block side by side; values are the results of all operations in
 * order, then all block arguments in order. Arrays named `...Start` have one entry more than what they index. */
typedef struct SassKernel {
  SassStr name, sm;
  const SassWord *tail;
  uint32_t tailCount;
  uint32_t opCount, blockCount, layoutCount;
  const uint8_t *kinds;   /* by operation */
  const SassWord *words;  /* by operation */
  const uint32_t *layout; /* by operation: index into `layouts`, SASS_NONE where there is no instruction */
  const uint32_t *labels; /* by operation: label id, SASS_LABEL_NONE or SASS_LABEL_SUCCESSOR */
  const uint32_t *operandStart, *operands;
  const uint32_t *resultStart;
  const SassPin *pins; /* by value */
  const uint32_t *blockStart, *argStart, *edgeStart;
  const SassEdge *edges;
  const uint32_t *edgeArgs;
  const SassLayout *const *layouts;
} SassKernel;

/* Appends a sass.func to a module's body. Locations are file:offset with the kernel's name as file, unless `noLocations`.
 * The result is null on failure, with a diagnostic. */
MLIR_CAPI_EXPORTED MlirOperation sassKernelToFunc(MlirModule module, const SassKernel *kernel, bool noLocations);

/* Calls `out` with the arrays of a sass.func, which live during the call. False, with a diagnostic, when
 * the function holds ops that are no part of a kernel. */
MLIR_CAPI_EXPORTED bool sassFuncToKernel(MlirOperation func, void (*out)(void *user, const SassKernel *kernel), void *user);

/* The text of a module that verifies. (MLIR's own C function makes a call for every token.) */
MLIR_CAPI_EXPORTED void sassPrint(MlirModule module, SassSink sink, void *user);

/* Calls `each` with every sass.func in a module. */
MLIR_CAPI_EXPORTED void sassForEachFunc(MlirModule module, void (*each)(void *user, MlirOperation func), void *user);

/* Loads a dialect or pass plugin made for this LLVM. False with a message otherwise. */
MLIR_CAPI_EXPORTED bool sassLoadPassPlugin(MlirStringRef path, SassSink error, void *user);

#ifdef __cplusplus
}
#endif

#endif /* SASS_C_SASS_H */
