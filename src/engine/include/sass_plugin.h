/* Passes in shared libraries (C ABI, versioned).
 *
 * A library in the folder of `sass2mlir apply --passes DIR` exports `sassGetPlugin`, which describes its passes: a name, what to say of
 * them, their options with types and ranges. A pass is run on one kernel at a time. It reads the arrays of a `SassKernel`, asks the table
 * of sass_engine.h about words, and asks its host for edits; it changes nothing itself. The host applies them in mode `apply`, and checks
 * what comes out as it does for its own passes.
 *
 * Ownership: nobody frees what another has made. The description lives as long as the library is loaded. What the host lends, strings
 * included, lives until `run` returns. What a pass gives the host, strings included, is copied before the call returns.
 *
 * Threads: runs may overlap, so a pass keeps what it knows of a kernel on its stack.
 *
 * Faults: `apply` runs the passes of libraries in processes of its own. One that crashes, does not come back in time, or asks for an
 * edit that cannot be, leaves its kernel as it was, with the reason in the report. That is against mistakes, not against malice.
 *
 * Versions: a library says which SASS_PLUGIN_ABI and SASS_ENGINE_ABI it was compiled with, and another host refuses it. Within one
 * number members are only ever appended, to `SassEngine` and `SassPluginHost` alone; their `size` tells how many there are.
 */
#ifndef SASS_PLUGIN_H
#define SASS_PLUGIN_H

#include "sass_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SASS_PLUGIN_ABI 1u

/* A literal as a SassStr, in an initialiser. */
#define SASS_STR(literal) {literal, sizeof(literal) - 1}

enum {
  SASS_OPTION_BOOL = 0,
  SASS_OPTION_INT = 1, /* from `min` to `max`, both included */
  SASS_OPTION_TEXT = 2,
  SASS_OPTION_CHOICE = 3 /* a text, one of `choices` */
};

/* A key of the pass's table in pass.toml. The host checks type and range before any kernel is read. */
typedef struct SassPluginOption {
  SassStr name;
  SassStr help;      /* one line */
  uint32_t kind;     /* SASS_OPTION_* */
  uint32_t required; /* not 0: the pass cannot run without it */
  int64_t min, max;
  const SassStr *choices;
  size_t choiceCount;
} SassPluginOption;

/* One run of a pass: the host's own. */
typedef struct SassPluginRun SassPluginRun;

/* What a pass may ask of its host. Operations and values are those of the kernel before any edit. */
typedef struct SassPluginHost {
  uint32_t abi;  /* SASS_PLUGIN_ABI */
  uint32_t size; /* sizeof(SassPluginHost) of the host */

  const SassEngine *engine;

  /* Give what the configuration says of an option and 1, or 0 where it says nothing. SASS_OPTION_BOOL is a number, 0 or 1. */
  int32_t (*optionInt)(SassPluginRun *run, SassStr name, int64_t *value);
  int32_t (*optionText)(SassPluginRun *run, SassStr name, SassStr *value);

  /* Where an operation is in the kernel's code (bytes); one that is no instruction is where the next one is. */
  uint64_t (*offset)(SassPluginRun *run, uint32_t op);

  /* Asks for an edit. One that cannot be fails the run, whatever the pass returns; the message, which goes to `error` (if that is not NULL)
   * and into the report, says why. To try a change, use the engine's functions on a copy of the word. */
  SassStatus (*edit)(SassPluginRun *run, const SassEdit *edit, SassSink error, void *user);

  /* For the report: why an operation stays as it is; a remark; what was done ("3 loads hinted"). */
  void (*skip)(SassPluginRun *run, uint32_t op, SassStr reason);
  void (*note)(SassPluginRun *run, SassStr text);
  void (*headline)(SassPluginRun *run, SassStr text);
  /* How many places the pass fires at, where that is not the number of operations it edits. */
  void (*sites)(SassPluginRun *run, uint32_t count);
  /* Why the pass does not touch this kernel, or why it failed: goes with what it returns. */
  void (*refuse)(SassPluginRun *run, SassStr reason);
} SassPluginHost;

/* What `run` returns; anything else says that the pass failed, which leaves the kernel as it was. */
enum { SASS_DONE = 0, SASS_REFUSED = 1 };

typedef struct SassPluginPass {
  SassStr name;    /* in pass.toml */
  SassStr summary; /* one line: what it does */
  SassStr caution; /* what the user accepts if the kernel may compute other bits; else empty */
  const SassPluginOption *options;
  size_t optionCount;
  /* Looks at one kernel and asks for what it would change, which is the same in both modes; `context->report` is 0. */
  SassStatus (*run)(const SassPluginHost *host, SassPluginRun *run, const SassKernel *kernel, const SassPassContext *context);
} SassPluginPass;

typedef struct SassPlugin {
  uint32_t abi;       /* SASS_PLUGIN_ABI */
  uint32_t engineAbi; /* SASS_ENGINE_ABI */
  const SassPluginPass *passes;
  size_t passCount;
} SassPlugin;

/* Exported by the library. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const SassPlugin *sassGetPlugin(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SASS_PLUGIN_H */
