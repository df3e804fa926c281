//===- Portable.cpp - the passes that the engine has, on live functions --------------------------------------===//
//
// A portable pass is written once, in Rust, over the engine's own representation, and asks for edits. Here they are applied to the
// function as it is: ops that no edit names keep their identity, location and foreign attributes.
//
//===----------------------------------------------------------------------------------------------------===//

#include "Sass/Kernel.h"
#include "Sass/Passes.h"

#include "mlir/IR/PatternMatch.h"

namespace sass {
#define GEN_PASS_DEF_SASSCONSTBANKFOLD
#define GEN_PASS_DEF_SASSCOPYPROP
#define GEN_PASS_DEF_SASSDCE
#define GEN_PASS_DEF_SASSFFMADEFTZ
#define GEN_PASS_DEF_SASSLDGVECTORIZE
#define GEN_PASS_DEF_SASSREGSHRINK
#define GEN_PASS_DEF_SASSRESCHEDULE
#define GEN_PASS_DEF_SASSRETARGETPARAM
#define GEN_PASS_DEF_SASSREUSEFLAGS
#define GEN_PASS_DEF_SASSSCALARTOUNIFORM
#define GEN_PASS_DEF_SASSSPILLELIM
#define GEN_PASS_DEF_SASSYIELDTUNE
#include "Sass/Passes.h.inc"
} // namespace sass

using namespace mlir;
using namespace sass;

static StringRef ref(SassStr s) { return {s.data, s.size}; }
static void appendTo(void *user, const char *data, size_t size) { static_cast<std::string *>(user)->append(data, size); }

namespace {
/// Applies edits, whose operations and values are numbered as in KernelArrays: in text order, block arguments behind all results.
class Applier {
public:
  explicit Applier(FuncOp func) : func(func), rewriter(func.getContext()) {
    for (Block &block : func.getBody()) {
      blocks.push_back(&block);
      for (Operation &op : block) {
        ops.push_back(&op);
        llvm::append_range(values, op.getResults());
      }
    }
    for (Block &block : func.getBody())
      llvm::append_range(values, block.getArguments());
  }

  LogicalResult apply(const SassEdit &edit);
  /// What is left once all edits are applied.
  LogicalResult finish();
  bool changed = false;

private:
  Value operand(uint32_t number);
  SassInst build(const SassEdit &edit, Operation *before);
  LogicalResult insert(const SassEdit &edit, Operation *before);
  LogicalResult replace(const SassEdit &edit, Operation *op);
  LogicalResult readInstead(uint32_t number, Value by);
  LogicalResult addArgument(const SassEdit &edit);
  LogicalResult setPin(const SassEdit &edit);

  FuncOp func;
  IRRewriter rewriter;
  SmallVector<Operation *> ops; // null once it is erased
  SmallVector<Value> values;
  SmallVector<Value> made; // by the edits
  SmallVector<Block *> blocks;
  /// New block arguments with the numbers of what is passed to them, by edge.
  SmallVector<std::pair<BlockArgument, SmallVector<uint32_t>>> arguments;
};
} // namespace

/// The value of that number, or that edits have made; of a constant register, which is made where the function has none. Null if there is none.
Value Applier::operand(uint32_t number) {
  if (number < SASS_VALUE_MADE)
    return number < values.size() ? values[number] : Value();
  if (number < SASS_VALUE_CONSTANT)
    return number - SASS_VALUE_MADE < made.size() ? made[number - SASS_VALUE_MADE] : Value();
  unsigned file = number - SASS_VALUE_CONSTANT;
  auto fileOf = [](Operation &op) -> unsigned {
    return isa<RZOp>(op) ? SASS_FILE_R : isa<URZOp>(op) ? SASS_FILE_UR : isa<PTOp>(op) ? SASS_FILE_P : isa<UPTOp>(op) ? SASS_FILE_UP : ~0u;
  };
  // Constants stand first, in the order of the files.
  Block *entry = ops.front()->getBlock();
  Operation &next = *llvm::find_if(*entry, [&](Operation &op) { return fileOf(op) >= file; });
  if (fileOf(next) == file)
    return next.getResult(0);
  rewriter.setInsertionPoint(&next);
  Location loc = entry->getParentOp()->getLoc();
  Type type = getRegisterType(rewriter.getContext(), file);
  switch (file) {
  case SASS_FILE_R:
    return RZOp::create(rewriter, loc, type);
  case SASS_FILE_UR:
    return URZOp::create(rewriter, loc, type);
  case SASS_FILE_P:
    return PTOp::create(rewriter, loc, type);
  case SASS_FILE_UP:
    return UPTOp::create(rewriter, loc, type);
  }
  return Value();
}

SassInst Applier::build(const SassEdit &edit, Operation *before) {
  SmallVector<Value> operands;
  for (uint32_t number : ArrayRef(edit.operands, edit.operandCount)) {
    operands.push_back(operand(number));
    if (!operands.back())
      return before->emitOpError("cannot get an instruction before it that reads a value which is not there"), nullptr;
  }
  InstData data;
  auto func = before->getParentOfType<FuncOp>();
  const SassEngine *engine = getEngine();
  int32_t target = engine->targetId({func.getSm().data(), func.getSm().size()});
  if (target < 0 || !data.set(target, edit.word) || data.isOpaque())
    return before->emitOpError("cannot get an instruction before it that the tables do not know"), nullptr;
  rewriter.setInsertionPoint(before);
  return buildInst(rewriter, before->getLoc(), data, operands);
}

LogicalResult Applier::insert(const SassEdit &edit, Operation *before) {
  SassInst inst = build(edit, before);
  if (inst)
    llvm::append_range(made, inst->getResults());
  return success(bool(inst));
}

/// Lets all that reads a value read another one.
LogicalResult Applier::readInstead(uint32_t number, Value by) {
  if (number >= values.size() || !by || values[number].getType() != by.getType())
    return func.emitOpError("cannot read one value instead of another: one of them is not there, or they are of different kinds");
  Value old = values[number];
  rewriter.replaceAllUsesWith(old, by);
  llvm::replace(values, old, by);
  return success();
}

/// Gives a block an argument. What is passed to it may be made later.
LogicalResult Applier::addArgument(const SassEdit &edit) {
  if (edit.op >= blocks.size())
    return func.emitOpError("has no block of that number to give an argument");
  BlockArgument argument =
      blocks[edit.op]->addArgument(getRegisterType(func.getContext(), getPinFile(SassPin(edit.operand))), func.getLoc());
  arguments.emplace_back(argument, llvm::to_vector(ArrayRef(edit.operands, edit.operandCount)));
  made.push_back(argument);
  func->removeAttr(kPinsAttr); // what is passed has the registers
  return success();
}

/// Puts a value into a register: that is in the word, or the attribute, of what defines it. An argument is where what is passed is.
LogicalResult Applier::setPin(const SassEdit &edit) {
  if (edit.newValue >= values.size())
    return func.emitOpError("cannot have a value elsewhere: it is not there");
  func->removeAttr(kPinsAttr);
  Operation *op = values[edit.newValue].getDefiningOp();
  if (!op)
    return success();
  if (auto inst = dyn_cast<SassInst>(op)) {
    InstData &data = inst.getInstData();
    rewriter.modifyOpInPlace(op, [&] { data.set(data.layout->target, edit.word); });
  } else {
    op->setAttr(kPinAttr, rewriter.getStringAttr(getPinName(SassPin(edit.operand))));
  }
  return success();
}

LogicalResult Applier::finish() {
  for (auto &[argument, passed] : arguments) {
    Block *to = argument.getOwner();
    auto next = passed.begin();
    for (Block *from : blocks) {
      auto branch = dyn_cast<BranchOpInterface>(from->getTerminator());
      for (unsigned index = 0; branch && index < branch->getNumSuccessors(); ++index) {
        if (branch->getSuccessor(index) != to)
          continue;
        Value value = next == passed.end() ? Value() : operand(*next++);
        if (!value)
          return branch->emitOpError("has no value to pass to a new block argument");
        rewriter.modifyOpInPlace(branch, [&] { branch.getSuccessorOperands(index).append(value); });
      }
    }
  }
  return success();
}

LogicalResult Applier::replace(const SassEdit &edit, Operation *op) {
  SassInst made = op->hasTrait<OpTrait::IsTerminator>() ? nullptr : build(edit, op);
  if (!made || made->getNumResults() != op->getNumResults())
    return op->emitOpError("cannot be replaced: it ends its block, or the new instruction has not as many results");
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  for (auto [old, now] : llvm::zip_equal(op->getResults(), made->getResults())) {
    rewriter.replaceAllUsesWith(old, now);
    llvm::replace(values, Value(old), Value(now));
  }
  ops[edit.op] = made;
  rewriter.eraseOp(op);
  return success();
}

LogicalResult Applier::apply(const SassEdit &edit) {
  changed = true;
  switch (edit.kind) {
  case SASS_EDIT_ARGUMENT:
    return addArgument(edit);
  case SASS_EDIT_VALUE:
    return readInstead(edit.operand, operand(edit.newValue));
  case SASS_EDIT_PIN:
    return setPin(edit);
  }
  Operation *op = edit.op < ops.size() ? ops[edit.op] : nullptr;
  if (!op)
    return emitError(UnknownLoc::get(rewriter.getContext()), "an edit names an operation that is not there");
  if (edit.kind == SASS_EDIT_INSERT)
    return insert(edit, op);
  auto inst = dyn_cast<SassInst>(op);
  if (!inst)
    return op->emitOpError("is no instruction and cannot be edited");
  auto modify = [&](auto change) {
    LogicalResult result = success();
    rewriter.modifyOpInPlace(op, [&] { result = change(inst); });
    return result;
  };
  switch (edit.kind) {
  case SASS_EDIT_FIELD:
    return modify([&](SassInst inst) { return inst.setField(ref(edit.field), edit.value); });
  case SASS_EDIT_MODIFIERS:
    return modify([&](SassInst inst) { return inst.editModifiers(ref(edit.drop), ref(edit.add)); });
  case SASS_EDIT_OPERAND:
    if (edit.operand >= op->getNumOperands() || !operand(edit.newValue))
      return op->emitOpError("cannot read that value: it is not there");
    rewriter.modifyOpInPlace(op, [&] { op->setOperand(edit.operand, operand(edit.newValue)); });
    return success();
  case SASS_EDIT_CONTROL:
    return modify([&](SassInst inst) { return inst.setControl(uint32_t(edit.value)), success(); });
  case SASS_EDIT_REPLACE:
    return replace(edit, op);
  case SASS_EDIT_MOVE:
    if (edit.operand >= ops.size() || !ops[edit.operand] || op->hasTrait<OpTrait::IsTerminator>())
      return op->emitOpError("cannot be moved: it ends its block, or there is no operation to put it before");
    rewriter.moveOpBefore(op, ops[edit.operand]);
    return success();
  case SASS_EDIT_ERASE:
    if (!op->use_empty() || op->hasTrait<OpTrait::IsTerminator>())
      return op->emitOpError("cannot be taken out: it ends its block, or its results are read");
    ops[edit.op] = nullptr;
    rewriter.eraseOp(op);
    return success();
  }
  return op->emitOpError("gets an edit of a kind that this dialect does not know; build it and the engine from the same source");
}

/// What `sass2mlir apply` says about a function, where it does. `fixed` has to live as long as it.
static SassPassContext contextOf(FuncOp func, bool report, Pins &fixed) {
  SassPassContext context = {report, {0, 0}, nullptr, 0, 0, 0, 0, nullptr, SASS_NONE};
  if (auto numbers = func->getAttrOfType<DenseI32ArrayAttr>(kResourcesAttr); numbers && numbers.size() == 3) {
    context.registers = numbers[0];
    context.threads = numbers[1];
    context.shared = numbers[2];
  }
  if (auto pins = func->getAttrOfType<DenseI32ArrayAttr>(kFixedAttr)) {
    llvm::append_range(fixed, pins.asArrayRef());
    context.fixed = fixed.data();
    context.fixedCount = fixed.size();
  }
  if (auto params = func->getAttrOfType<DenseI32ArrayAttr>(kParamsAttr); params && params.size() == 2)
    for (unsigned i = 0; i < 2; ++i)
      context.params[i] = params[i];
  if (auto pinned = func->getAttrOfType<DenseI64ArrayAttr>(kPinnedAttr)) {
    context.pinned = reinterpret_cast<const uint64_t *>(pinned.asArrayRef().data());
    context.pinnedCount = pinned.size();
  }
  return context;
}

static void sayRemarks(FuncOp func, const SassPassRun *run) {
  SmallVector<Operation *> ops;
  for (Block &block : func.getBody())
    for (Operation &op : block)
      ops.push_back(&op);
  std::pair<FuncOp, ArrayRef<Operation *>> place(func, ops);
  auto say = [](void *user, uint32_t op, SassStr text) {
    auto &[func, ops] = *static_cast<decltype(place) *>(user);
    emitRemark((op < ops.size() ? ops[op] : func.getOperation())->getLoc()) << ref(text);
  };
  getEngine()->passRemarks(run, say, &place);
}

/// The instructions in text order: the one of number n is at byte offset 16 n.
static SmallVector<Operation *> codeOf(FuncOp func) {
  SmallVector<Operation *> code;
  for (Block &block : func.getBody())
    for (Operation &op : block)
      if (isa<SassInst>(op))
        code.push_back(&op);
  return code;
}

/// The instructions that the file names.
static SmallVector<Operation *> pinnedOf(FuncOp func) {
  SmallVector<Operation *> pinned, code = codeOf(func);
  if (auto offsets = func->getAttrOfType<DenseI64ArrayAttr>(kPinnedAttr))
    for (int64_t offset : offsets.asArrayRef())
      if (offset >= 0 && size_t(offset) / 16 < code.size())
        pinned.push_back(code[offset / 16]);
  return pinned;
}

/// Says where these are now.
static void setPinned(FuncOp func, ArrayRef<Operation *> pinned) {
  SmallVector<int64_t> offsets;
  for (auto [n, op] : llvm::enumerate(codeOf(func)))
    if (llvm::is_contained(pinned, op))
      offsets.push_back(16 * n);
  func->setAttr(kPinnedAttr, DenseI64ArrayAttr::get(func.getContext(), offsets));
}

LogicalResult sass::applyPassRun(FuncOp func, SassPassRun *raw) {
  const SassEngine *engine = getEngine();
  std::unique_ptr<SassPassRun, void (*)(SassPassRun *)> run(raw, engine->freePassRun);
  const auto &listener = func->getContext()->getLoadedDialect<SassDialect>()->getPassListener();
  if (!listener)
    sayRemarks(func, raw); // before the edits: it counts operations
  std::pair<Applier, LogicalResult> state(func, success());
  auto each = [](void *user, const SassEdit *edit) {
    auto &[applier, result] = *static_cast<decltype(state) *>(user);
    if (succeeded(result))
      result = applier.apply(*edit);
  };
  SmallVector<Operation *> pinned = pinnedOf(func);
  engine->passEdits(raw, each, &state);
  if (succeeded(state.second))
    state.second = state.first.finish();
  if (!pinned.empty() && state.first.changed)
    setPinned(func, pinned);
  if (listener)
    listener(func, run.release());
  return state.second;
}

/// Runs the pass of that name and options. What it found goes to whoever listens (see sassOnPassRun), or is said as remarks.
static LogicalResult runPortable(FuncOp func, Pass &pass, int entry, bool report) {
  if (entry >= 0) {
    auto named = func->getAttrOfType<DenseI32ArrayAttr>(kEntriesAttr);
    if (!named || !llvm::is_contained(named.asArrayRef(), entry))
      return success();
  }
  const SassEngine *engine = getEngine();
  if (!engine)
    return func.emitError() << pass.getArgument() << ": no sass engine is loaded";
  KernelArrays arrays(func);
  if (failed(arrays.fill()))
    return failure();
  std::string name, error;
  llvm::raw_string_ostream os(name);
  pass.printAsTextualPipeline(os);
  SassKernel kernel = arrays.view();
  Pins fixed;
  SassPassContext context = contextOf(func, report, fixed);
  SassPassRun *raw = nullptr;
  if (engine->runPass({name.data(), name.size()}, &kernel, &context, &raw, appendTo, &error))
    return func.emitError() << pass.getArgument() << ": " << error;
  return applyPassRun(func, raw);
}

// One line for each pass; src/mlir does not compile when Passes.td and the engine list others.
#define PORTABLE(Name)                                                                                                         \
  struct Name : sass::impl::Sass##Name##Base<Name> {                                                                          \
    using Sass##Name##Base::Sass##Name##Base;                                                                                  \
    void runOnOperation() override {                                                                                           \
      if (failed(runPortable(getOperation(), *this, entry, report)))                                                           \
        signalPassFailure();                                                                                                   \
    }                                                                                                                          \
  };
namespace {
PORTABLE(ConstBankFold)
PORTABLE(CopyProp)
PORTABLE(Dce)
PORTABLE(FfmaDeftz)
PORTABLE(LdgVectorize)
PORTABLE(RegShrink)
PORTABLE(Reschedule)
PORTABLE(RetargetParam)
PORTABLE(ReuseFlags)
PORTABLE(ScalarToUniform)
PORTABLE(SpillElim)
PORTABLE(YieldTune)
} // namespace
