/* C API of the sass dialect: registration, and whole kernels to and from modules in one call each way. */
#ifndef SASS_C_SASS_H
#define SASS_C_SASS_H

#include "mlir-c/IR.h"
#include "mlir-c/Pass.h"
#include "sass_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(Sass, sass);

/* Adds the passes of Passes.td to MLIR's registry. */
MLIR_CAPI_EXPORTED void sassRegisterPasses(void);

/* Which line of which file the instruction at a byte offset comes from. False where that is not known. */
typedef bool (*SassLineAt)(void *user, uint64_t offset, SassStr *file, uint32_t *line);

/* Appends a sass.func to a module's body. Locations are file:offset with the kernel's name as file, unless `noLocations`, and beside it
 * what `lineAt` says, which may be null. The result is null on failure, with a diagnostic. */
MLIR_CAPI_EXPORTED MlirOperation sassKernelToFunc(MlirModule module, const SassKernel *kernel, bool noLocations, SassLineAt lineAt,
                                                  void *user);

/* Calls `out` with the arrays of a sass.func, which live during the call. False, with a diagnostic, when
 * the function holds ops that are no part of a kernel. */
MLIR_CAPI_EXPORTED bool sassFuncToKernel(MlirOperation func, void (*out)(void *user, const SassKernel *kernel), void *user);

/* The text of a module that verifies. (MLIR's own C function makes a call for every token.) */
MLIR_CAPI_EXPORTED void sassPrint(MlirModule module, SassSink sink, void *user);

/* Calls `each` with every sass.func in a module. */
MLIR_CAPI_EXPORTED void sassForEachFunc(MlirModule module, void (*each)(void *user, MlirOperation func), void *user);

/* Takes what portable passes find in functions, instead of remarks, from any thread. `run` belongs to the listener. Null: nobody. */
typedef void (*SassPassListener)(void *user, MlirStringRef func, SassPassRun *run);
MLIR_CAPI_EXPORTED void sassOnPassRun(MlirContext context, SassPassListener listener, void *user);

/* Applies what a pass that is no part of Passes.td found in a sass.func, as it is now, and hands it on as above. Takes the run. False, with a
 * diagnostic, when an edit does not fit. */
MLIR_CAPI_EXPORTED bool sassApplyPassRun(MlirOperation func, SassPassRun *run);

/* What people want to see of a pipeline. */
typedef struct SassPipelineOptions {
  bool timing;              /* a table of times on the standard error output */
  bool printAfterAll;       /* the text after every pass that changed it, there too; the context has to be without threads */
  MlirStringRef reproducer; /* file for the module and the pipeline when a pass fails or crashes; empty: none */
} SassPipelineOptions;
MLIR_CAPI_EXPORTED void sassSetPipelineOptions(MlirPassManager manager, const SassPipelineOptions *options);

/* Whether a pass of that name is registered. */
MLIR_CAPI_EXPORTED bool sassHasPass(MlirStringRef name);

/* Whether `passes` names passes over sass.func with options that they take. False with a message otherwise. */
MLIR_CAPI_EXPORTED bool sassCheckPasses(MlirStringRef passes, SassSink error, void *user);

/* Major, minor and patch version of the LLVM whose headers this library was built with. */
MLIR_CAPI_EXPORTED void sassLlvmVersion(unsigned version[3]);

/* Loads a dialect or pass plugin made for this LLVM. False with a message otherwise. */
MLIR_CAPI_EXPORTED bool sassLoadPassPlugin(MlirStringRef path, SassSink error, void *user);

#ifdef __cplusplus
}
#endif

#endif /* SASS_C_SASS_H */
