/* Passes that go wrong, each in its own way, for the test that none of them does harm. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sass_plugin.h"

#define RUN(name)                                                                                                                       \
  static SassStatus name(const SassPluginHost *host, SassPluginRun *run, const SassKernel *kernel, const SassPassContext *context)
#define UNUSED ((void)host, (void)run, (void)kernel, (void)context)

/* The first instruction of a mnemonic, SASS_NONE if there is none. */
static uint32_t first(const SassKernel *kernel, const char *mnemonic) {
  for (uint32_t op = 0; op < kernel->opCount; op++) {
    if (kernel->kinds[op] != SASS_OP_INST)
      continue;
    SassStr found = kernel->layouts[kernel->layout[op]]->mnemonic;
    if (found.size == strlen(mnemonic) && memcmp(found.data, mnemonic, found.size) == 0)
      return op;
  }
  return SASS_NONE;
}

static SassStatus ask(const SassPluginHost *host, SassPluginRun *run, SassEdit edit) {
  host->edit(run, &edit, NULL, NULL);
  return SASS_DONE; /* as if nothing had happened */
}

RUN(crash) {
  UNUSED;
  volatile int *volatile nowhere = NULL;
  *nowhere = 1;
  return SASS_DONE;
}

/* Only on one kernel: the next needs another process. */
RUN(crashOnce) { return memcmp(kernel->name.data, "scale_add", 9) == 0 ? crash(host, run, kernel, context) : SASS_DONE; }

RUN(aborts) {
  UNUSED;
  abort();
}

RUN(leaves) {
  UNUSED;
  exit(0);
}

RUN(overflow) {
  volatile char page[4096];
  page[0] = 0;
  SassStatus status = overflow(host, run, kernel, context);
  return status + page[0];
}

RUN(loop) {
  UNUSED;
  for (volatile int i = 0;; i++)
    ;
  return SASS_DONE;
}

/* Catches what it can. */
RUN(stubborn) {
  for (int n = 1; n < 32; n++)
    signal(n, SIG_IGN);
  return loop(host, run, kernel, context);
}

/* As long as it gets something. */
RUN(asksForEver) {
  (void)context;
  SassEdit edit = {.kind = SASS_EDIT_ERASE, .op = first(kernel, "EXIT")};
  while (host->edit(run, &edit, NULL, NULL) == 0)
    host->skip(run, edit.op, (SassStr)SASS_STR("no reason"));
  return SASS_DONE;
}

/* Uses the streams that the process talks through. */
RUN(chatty) {
  (void)kernel, (void)context;
  printf("{\"Ok\": []}\n");
  fflush(stdout);
  char line[16];
  host->note(run, fgets(line, sizeof(line), stdin) ? (SassStr)SASS_STR("read something") : (SassStr)SASS_STR("read nothing"));
  return SASS_DONE;
}

RUN(refuses) {
  (void)kernel, (void)context;
  host->refuse(run, (SassStr)SASS_STR("not this one"));
  return SASS_REFUSED;
}

RUN(farSkip) { return (void)context, host->skip(run, kernel->opCount, (SassStr)SASS_STR("no reason")), SASS_DONE; }

RUN(farSites) { return (void)kernel, (void)context, host->sites(run, 0xffffffffu), SASS_DONE; }

/* Writes into whatever is open, the pipe that its answer goes through too. */
RUN(garbles) {
  UNUSED;
  for (int file = 3; file < 64; file++)
    if (write(file, "\xff\n", 2) < 0)
      continue;
  return SASS_DONE;
}

/* Leaves a process behind. */
RUN(forks) { return fork() == 0 ? loop(host, run, kernel, context) : SASS_DONE; }

RUN(fails) {
  UNUSED;
  return 77;
}

RUN(farOp) { return (void)context, ask(host, run, (SassEdit){.kind = SASS_EDIT_ERASE, .op = kernel->opCount}); }

RUN(farOperand) {
  (void)context;
  return ask(host, run, (SassEdit){.kind = SASS_EDIT_OPERAND, .op = first(kernel, "LDG"), .operand = 1000000000});
}

RUN(farValue) {
  (void)context;
  return ask(host, run, (SassEdit){.kind = SASS_EDIT_OPERAND, .op = first(kernel, "LDG"), .operand = 1, .newValue = 4000000000u});
}

RUN(manyOperands) {
  (void)context;
  return ask(host, run, (SassEdit){.kind = SASS_EDIT_INSERT, .op = first(kernel, "LDG"), .operandCount = 0xffffffffu});
}

RUN(noKind) { return (void)context, ask(host, run, (SassEdit){.kind = 99, .op = first(kernel, "LDG")}); }

RUN(noField) {
  (void)context;
  return ask(host, run, (SassEdit){.kind = SASS_EDIT_FIELD, .op = first(kernel, "LDG"), .field = SASS_STR("9.Z9"), .value = 1});
}

RUN(noModifier) {
  (void)context;
  return ask(host, run, (SassEdit){.kind = SASS_EDIT_MODIFIERS, .op = first(kernel, "LDG"), .add = SASS_STR("FASTER")});
}

RUN(wideValue) {
  (void)context;
  return ask(host, run, (SassEdit){.kind = SASS_EDIT_FIELD, .op = first(kernel, "LDG"), .field = SASS_STR("1.X0"), .value = 1 << 30});
}

RUN(setsRegister) {
  (void)context;
  return ask(host, run, (SassEdit){.kind = SASS_EDIT_FIELD, .op = first(kernel, "LDG"), .field = SASS_STR("2.R0"), .value = 200});
}

RUN(noWord) {
  (void)context;
  return ask(host, run, (SassEdit){.kind = SASS_EDIT_REPLACE, .op = first(kernel, "LDG"), .word = {0xffffffffffffffffu, 0xffffffffffffffffu}});
}

RUN(noExit) { return (void)context, ask(host, run, (SassEdit){.kind = SASS_EDIT_ERASE, .op = first(kernel, "EXIT")}); }

#ifdef ON_LOAD
__attribute__((constructor)) static void onLoad(void) { ON_LOAD; }
#endif
#ifndef PLUGIN_ABI
#define PLUGIN_ABI SASS_PLUGIN_ABI
#endif
#ifndef ENGINE_ABI
#define ENGINE_ABI SASS_ENGINE_ABI
#endif
#ifndef EXTRA
#define EXTRA
#endif

#define PASS(title, function) {.name = SASS_STR(title), .summary = SASS_STR("goes wrong"), .run = function}

const SassPlugin *sassGetPlugin(void) {
  static const SassPluginOption twice[] = {{.name = SASS_STR("depth"), .kind = SASS_OPTION_INT, .min = 1, .max = 8},
                                           {.name = SASS_STR("depth")}};
  static const SassPluginOption own[] = {{.name = SASS_STR("mode")}}, untyped[] = {{.name = SASS_STR("depth"), .kind = 9}};
  (void)twice, (void)own, (void)untyped;
  static const SassPluginPass passes[] = {
      PASS("crash", crash),
      PASS("crash-once", crashOnce),
      PASS("aborts", aborts),
      PASS("leaves", leaves),
      PASS("overflow", overflow),
      PASS("loop", loop),
      PASS("stubborn", stubborn),
      PASS("asks-for-ever", asksForEver),
      PASS("chatty", chatty),
      PASS("refuses", refuses),
      PASS("far-skip", farSkip),
      PASS("far-sites", farSites),
      PASS("garbles", garbles),
      PASS("forks", forks),
      PASS("fails", fails),
      PASS("far-op", farOp),
      PASS("far-operand", farOperand),
      PASS("far-value", farValue),
      PASS("many-operands", manyOperands),
      PASS("no-kind", noKind),
      PASS("no-field", noField),
      PASS("no-modifier", noModifier),
      PASS("wide-value", wideValue),
      PASS("sets-register", setsRegister),
      PASS("no-word", noWord),
      PASS("no-exit", noExit),
      {.name = SASS_STR("deep"), .options = twice, .optionCount = 1, .run = refuses},
      EXTRA};
  static const SassPlugin plugin = {PLUGIN_ABI, ENGINE_ABI, passes, sizeof(passes) / sizeof(passes[0])};
#ifdef NOTHING
  return NULL;
#endif
  return &plugin;
}
