/* The table of functions through which C++ reaches sass2mlir's knowledge of instructions (C ABI, versioned).
 *
 * The Rust side fills one `SassEngine` and hands it out with `sassEngineTable`; the dialect stores it with `sassSetEngine`. The
 * dialect library refers to no symbol of the Rust side, so it links and loads without it; then parsing an instruction fails with a
 * diagnostic and printing falls back to MLIR's generic form.
 *
 * Rules: every function is thread-safe and never unwinds; strings are not NUL-terminated; a returned `SassStr` lives as long as the
 * process; text of variable size goes to a sink. New members are only ever appended, `size` tells how many there are.
 */
#ifndef SASS_ENGINE_H
#define SASS_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SASS_ENGINE_ABI 4u

/* Form of a word that no table knows. */
#define SASS_FORM_OPAQUE 0xffffu

/* In skeleton text: stands for the name of an SSA operand. Two bytes follow: 0x40 + its index, low six bits, then high six bits. */
#define SASS_MARK '\x01'

/* Instead of a label id: the operand is a byte offset that no label stands for; or the code label is a successor of the op. */
#define SASS_LABEL_NONE 0xffffffffu
#define SASS_LABEL_SUCCESSOR 0xfffffffeu

typedef struct SassStr {
  const char *data;
  size_t size;
} SassStr;

/* Receives pieces of text. */
typedef void (*SassSink)(void *user, const char *data, size_t size);

/* The 128-bit instruction word. */
typedef struct SassWord {
  uint64_t lo, hi;
} SassWord;

/* Register files; also the types of the dialect. */
enum { SASS_FILE_R = 0, SASS_FILE_UR = 1, SASS_FILE_P = 2, SASS_FILE_UP = 3, SASS_FILE_B = 4, SASS_FILE_IMM = 5 };

/* A register: number in bits 7:0, file in 10:8, bit 11 for RZ, URZ, PT and UPT (the number is then 0). */
typedef uint16_t SassPin;

/* Where control goes after an instruction. */
enum {
  SASS_TERM_NONE = 0,
  SASS_TERM_BRANCH = 1,
  SASS_TERM_BRANCH_INDIRECT = 2,
  SASS_TERM_EXIT = 3,
  SASS_TERM_RETURN = 4,
  SASS_TERM_CALL = 5,
  SASS_TERM_KILL = 6,
  SASS_TERM_TRAP = 7
};

/* Effect bits. No bit at all means that the instruction computes its results from its operands and nothing else. */
enum {
  SASS_EFFECT_READ = 1,        /* reads memory */
  SASS_EFFECT_WRITE = 2,       /* writes memory */
  SASS_EFFECT_CONVERGENCE = 4, /* depends on, or changes, which lanes are active; or is a clock or another volatile special */
  SASS_EFFECT_UNKNOWN = 16     /* no row of semantics.tsv: anything may happen */
};

/* Memory spaces. Constant memory does not change while a kernel runs. */
enum {
  SASS_SPACE_NONE = 0,
  SASS_SPACE_GENERIC = 1,
  SASS_SPACE_GLOBAL = 2,
  SASS_SPACE_SHARED = 3,
  SASS_SPACE_LOCAL = 4,
  SASS_SPACE_CONSTANT = 5,
  SASS_SPACE_TEXTURE = 6,
  SASS_SPACE_SURFACE = 7,
  SASS_SPACE_ATTRIBUTE = 8,
  SASS_SPACE_TENSOR = 9
};

/* What all instructions of one form with the same modifiers share. Lives as long as the process; two instructions of the same
 * target, form and modifiers have the same address here. */
typedef struct SassLayout {
  uint16_t form;   /* SASS_FORM_OPAQUE for a word that no table knows; everything below but `target` is then empty */
  uint16_t reads;  /* operands that the word names as read, the guard included */
  uint8_t target;
  uint8_t effects;    /* SASS_EFFECT_* */
  uint8_t terminator; /* SASS_TERM_* */
  uint8_t hasGuard;   /* operand 0 is the guard */
  uint8_t hasLabel;   /* it names a place in the code */
  uint8_t isCall;     /* a call or a return: may have operands and results beyond those its word names */
  uint8_t space;      /* SASS_SPACE_*: what memory the effects are on */
  uint8_t pipe;       /* class of the opcode, as in SassEnums.td */
  uint8_t isUniform;  /* writes what a warp has once: UR, UP or B */
  SassWord registers; /* bits that name registers, or are reuse flags */
  SassWord semantic;  /* bits that decide what is computed */
  SassWord guard;     /* bits of the guard: its register and its negation */
  SassWord unguarded; /* what they are where the guard is constant true */
  SassStr mnemonic;   /* "FFMA" */
  SassStr name;       /* "FFMA_0x223.FTZ" */
  SassStr formName;   /* "FFMA_0x223_R_R_R_R" */
  SassStr types;      /* of the operands in the text: "!sass.reg, !sass.imm" */
} SassLayout;

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

/* What a pass may know beside the kernel. */
typedef struct SassPassContext {
  uint32_t report;    /* not 0: only look */
  uint32_t params[2]; /* where the parameters begin and end in constant bank 0 (bytes); both 0 where that is not known */
  const uint64_t *pinned; /* byte offsets, ascending, of instructions that the file names: they have to stay what and where they are */
  uint32_t pinnedCount;
  uint32_t registers; /* how many registers the file gives a thread, how many threads a block may have; 0 where it does not say */
  uint32_t threads;
  uint32_t shared;         /* bytes of shared memory of a block */
  const SassPin *fixed;    /* registers that the file names: they keep their values */
  uint32_t fixedCount;     /* SASS_NONE where they cannot be told */
} SassPassContext;

/* What a pass found in a kernel. */
typedef struct SassPassRun SassPassRun;

enum {
  SASS_EDIT_FIELD = 0,     /* gives `field` of `op` the value `value` */
  SASS_EDIT_MODIFIERS = 1, /* takes modifiers `drop` from `op` and adds `add`: dotted lists */
  SASS_EDIT_OPERAND = 2,   /* lets operand `operand` of `op` read the value `newValue` */
  SASS_EDIT_INSERT = 3,    /* puts `word`, which reads `operands`, before `op` */
  SASS_EDIT_ERASE = 4,     /* takes `op` out */
  SASS_EDIT_REPLACE = 5,   /* puts `word`, which reads `operands`, in the place of `op`: its results are those of `op` */
  SASS_EDIT_MOVE = 6,      /* takes `op` from its place and puts it before operation `operand` */
  SASS_EDIT_CONTROL = 7,   /* gives `op` the scheduling bits `value`, which are bits 125:105 of its word */
  SASS_EDIT_ARGUMENT = 8,  /* gives block `op` (a number) an argument in register `operand` (a SassPin), to which `operands` are passed: one
                            * for each edge that leads there, in the order of the blocks and their successors */
  SASS_EDIT_VALUE = 9,     /* lets all that reads value `operand` read `newValue`, which is in the same register; `op` does not count */
  SASS_EDIT_PIN = 10       /* puts value `newValue` into register `operand` (a SassPin); `op` does not count. From the engine, `word` is what
                            * defines the value, with all registers where they are to be */
};

/* Among the operands of an edit: this plus the number of a register file (of SassPin) stands for the file's constant register, whether the
 * kernel has a value for it or not. */
#define SASS_VALUE_CONSTANT 0xfffffff0u

/* Among the values of an edit: this plus n stands for the n-th value that the edits make, counting in their order the results of what they
 * put in and the arguments that they add. Instructions name only values made before them; what is passed to an argument may be any. */
#define SASS_VALUE_MADE 0x80000000u

/* One change that a pass asks for. Operations and values are those of the kernel before any edit. */
typedef struct SassEdit {
  uint32_t kind, op;
  SassStr field;
  int64_t value;
  SassStr drop, add;
  uint32_t operand, newValue;
  SassWord word;
  const uint32_t *operands;
  uint32_t operandCount;
} SassEdit;

/* A status: 0 is success; otherwise the message went to the sink. */
typedef int32_t SassStatus;

typedef struct SassEngine {
  uint32_t abi;  /* SASS_ENGINE_ABI */
  uint32_t size; /* sizeof(SassEngine) of the provider */

  /* The small number of a target ("sm_87"), or -1. Stable within a process only. */
  int32_t (*targetId)(SassStr name);
  SassStr (*targetName)(uint32_t target);

  /* The layout of a word; null when the target's tables are not built in. */
  const SassLayout *(*layout)(uint32_t target, SassWord word);
  /* The layout of words that no table knows; null as above. */
  const SassLayout *(*opaque)(uint32_t target);

  /* The registers that a word names, in the order of the op's operands (guard, reads, previous values of what is written under a guard)
   * or results. Writes up to `cap` and returns how many there are. */
  uint32_t (*operands)(const SassLayout *layout, SassWord word, SassPin *out, uint32_t cap);
  uint32_t (*results)(const SassLayout *layout, SassWord word, SassPin *out, uint32_t cap);

  /* The text from the name to the hidden operands, "FFMA_0x223.FTZ guard(\1@@) -\1A@, \1B@, \1C@", with marks for SSA operands. */
  void (*skeleton)(const SassLayout *layout, SassWord word, uint32_t label, SassSink out, void *user);

  SassStatus (*getField)(const SassLayout *layout, SassWord word, SassStr field, int64_t *value, SassSink error, void *user);
  /* Fails when the value does not fit or the word would become another form. */
  SassStatus (*setField)(const SassLayout *layout, SassWord *word, SassStr field, int64_t value, SassSink error, void *user);
  /* `drop` and `add` are dotted lists (".FTZ"). */
  SassStatus (*editModifiers)(const SassLayout *layout, SassWord *word, SassStr drop, SassStr add, SassSink error, void *user);
  /* The filler of a form by name. */
  SassStatus (*filler)(uint32_t target, SassStr formName, SassWord *word);

  /* Runs a portable pass, named with its options as MLIR prints it ("sass-retarget-param{from=352 to=360}"), over a kernel, which it
   * does not change. The result belongs to the caller. */
  SassStatus (*runPass)(SassStr pass, const SassKernel *kernel, const SassPassContext *context, SassPassRun **run, SassSink error,
                        void *user);
  /* The edits, in order. */
  void (*passEdits)(const SassPassRun *run, void (*each)(void *user, const SassEdit *edit), void *user);
  /* What there is to say, for people; `op` is SASS_NONE for what concerns the whole kernel, as does the first. */
  void (*passRemarks)(const SassPassRun *run, void (*each)(void *user, uint32_t op, SassStr text), void *user);
  void (*freePassRun)(SassPassRun *run);

  /* The number of a form by name, or -1 with a message that says which forms there are. */
  int32_t (*findForm)(uint32_t target, SassStr name, SassSink error, void *user);
  /* The name of a form; empty if there is none of that number. */
  SassStr (*formName)(uint32_t target, uint32_t form);
  /* Lets operand `operand` (guard and reads, in the order of `operands`) name a register. Of consecutive registers the word names the first
   * only; the others have to follow it. */
  SassStatus (*setOperand)(const SassLayout *layout, SassWord *word, uint32_t operand, SassPin pin, SassSink error, void *user);
  /* The shape of a printed operand ("-|R#|"), elided ones counted; empty if there is none. */
  SassStr (*getShape)(const SassLayout *layout, SassWord word, uint32_t operand);
  /* Fails when the operand has no such shape beside what else is there. */
  SassStatus (*setShape)(const SassLayout *layout, SassWord *word, uint32_t operand, SassStr shape, SassSink error, void *user);

  /* The word of an instruction that is written without it, but for the registers of its operands. `text` is its skeleton, with SASS_MARK alone
   * for each value, a guard that is the constant too: FADD with the guard @PT is "FADD_0x221.FTZ guard(\x01) \x01, -\x01". `types` are those of its
   * operands, "!sass.reg, !sass.reg" there; `registers` what it writes, the first of each access, constant registers included;
   * `schedule` a column like "B--2---:R0:W-:-:S04". */
  SassStatus (*assemble)(uint32_t target, SassStr text, SassStr types, const SassPin *registers, size_t count, SassStr schedule,
                         SassWord *word, SassSink error, void *user);
  /* Writes the registers of all its operands, in the order of `operands`, into a word of `assemble`, which may become another form. `label`,
   * if it is there, is how far the place that the code label names is from the next instruction, in bytes. */
  SassStatus (*bind)(const SassLayout *layout, SassWord *word, const SassPin *pins, size_t count, const int64_t *label, SassSink error,
                     void *user);

  /* The name of field `index` of a form; empty past the last one. */
  SassStr (*fieldName)(const SassLayout *layout, uint32_t index);
  /* Hands out the modifiers that are printed ("FTZ"), in order, each in one call. */
  void (*modifiers)(const SassLayout *layout, SassWord word, SassSink each, void *user);
  /* The instruction as nvdisasm writes it; `offset` is where it is in its code (bytes), for the targets of branches. */
  void (*text)(const SassLayout *layout, SassWord word, uint64_t offset, SassSink out, void *user);
} SassEngine;

/* Exported by the Rust side (libsass_engine). */
const SassEngine *sassEngineTable(void);

/* Exported by the dialect. Takes a table of this header's ABI, or NULL to clear it; returns 0, or -1 when the ABI does not fit. */
int32_t sassSetEngine(const SassEngine *engine);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SASS_ENGINE_H */
