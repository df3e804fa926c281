/* evict-first: loads of global memory tell the cache that nobody is going to read the same again soon.
 *
 * What: `LDG.E` becomes `LDG.E.EF`, or what the option `hint` says. Loads that have a hint already, are volatile or are ordered stay, and are
 * listed. Legal everywhere: a hint changes no value. Worth it where data is read once.
 *
 *   cc -shared -fPIC -O2 -Isrc/engine/include evict_first.c -o passes/evict_first.so
 */
#include <stdio.h>
#include <string.h>

#include "sass_plugin.h"

static const SassStr hints[] = {SASS_STR("EF"), SASS_STR("EL"), SASS_STR("LU"), SASS_STR("EU"), SASS_STR("NA")};

static const SassPluginOption options[] = {{
    .name = SASS_STR("hint"),
    .help = SASS_STR("the hint to give, EF where it is left out"),
    .kind = SASS_OPTION_CHOICE,
    .choices = hints,
    .choiceCount = sizeof(hints) / sizeof(hints[0]),
}};

static int is(SassStr text, const char *word) { return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0; }

/* Sets the flag behind `user` when a modifier says that the load is no plain one: it has a hint or an order. */
static void lookForHint(void *user, const char *data, size_t size) {
  static const char *const plain[] = {"E", "U8", "S8", "U16", "S16", "64", "128", "CONSTANT"};
  SassStr modifier = {data, size};
  for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
    if (is(modifier, plain[i]))
      return;
  *(int *)user = 1;
}

static SassStatus run(const SassPluginHost *host, SassPluginRun *self, const SassKernel *kernel, const SassPassContext *context) {
  (void)context;
  SassStr hint = hints[0];
  host->optionText(self, (SassStr)SASS_STR("hint"), &hint);
  unsigned hinted = 0;
  for (uint32_t op = 0; op < kernel->opCount; op++) {
    if (kernel->kinds[op] != SASS_OP_INST)
      continue;
    const SassLayout *layout = kernel->layouts[kernel->layout[op]];
    if (!is(layout->mnemonic, "LDG"))
      continue;
    int special = 0;
    host->engine->modifiers(layout, kernel->words[op], lookForHint, &special);
    if (special) {
      host->skip(self, op, (SassStr)SASS_STR("it has a hint or an order of its own"));
      continue;
    }
    SassEdit edit = {.kind = SASS_EDIT_MODIFIERS, .op = op, .add = hint};
    if (host->edit(self, &edit, NULL, NULL) != 0)
      return SASS_DONE; /* the host says why */
    hinted++;
  }
  char done[48];
  int size = snprintf(done, sizeof(done), "%u load%s hinted", hinted, hinted == 1 ? "" : "s");
  host->headline(self, (SassStr){done, (size_t)size});
  return SASS_DONE;
}

static const SassPluginPass passes[] = {{
    .name = SASS_STR("evict-first"),
    .summary = SASS_STR("tell the cache that loads of global memory are read once"),
    .options = options,
    .optionCount = 1,
    .run = run,
}};

const SassPlugin *sassGetPlugin(void) {
  static const SassPlugin plugin = {SASS_PLUGIN_ABI, SASS_ENGINE_ABI, passes, 1};
  return &plugin;
}
