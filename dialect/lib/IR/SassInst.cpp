//===- SassInst.cpp - what authors of passes do with instructions ---------------------------------------===//

#include "Sass/Sass.h"

using namespace mlir;
using namespace sass;

static SassStr str(StringRef s) { return {s.data(), s.size()}; }
static StringRef ref(SassStr s) { return {s.data, s.size}; }
static void appendTo(void *user, const char *data, size_t size) { static_cast<std::string *>(user)->append(data, size); }

//===-- What it is --------------------------------------------------------------------------------------===//

FormId SassInst::getForm() { return getLayout() ? FormId(getLayout()->form) : kOpaqueForm; }
StringRef SassInst::getFormName() { return getInstData().isOpaque() ? StringRef() : ref(getLayout()->formName); }
StringRef SassInst::getMnemonic() { return getInstData().isOpaque() ? StringRef() : ref(getLayout()->mnemonic); }
StringRef SassInst::getFullName() { return getInstData().isOpaque() ? StringRef() : ref(getLayout()->name); }
OpcodeClass SassInst::getOpcodeClass() { return getLayout() ? OpcodeClass(getLayout()->pipe) : OpcodeClass::None; }
unsigned SassInst::getEffects() { return getLayout() ? getLayout()->effects : unsigned(SASS_EFFECT_UNKNOWN); }

/// The modifiers of a full name.
static SmallVector<StringRef> splitModifiers(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, '.', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  return parts;
}

bool SassInst::hasModifier(StringRef modifier) {
  return llvm::is_contained(splitModifiers(getFullName().split('.').second), modifier);
}
bool SassInst::hasModifier(Modifier modifier) { return hasModifier(stringifyModifier(modifier)); }

//===-- Fields ------------------------------------------------------------------------------------------===//

std::optional<int64_t> SassInst::getField(StringRef name) {
  const SassEngine *engine = getEngine();
  int64_t value;
  std::string error;
  if (!engine || getInstData().isOpaque() || engine->getField(getLayout(), getWord(), str(name), &value, appendTo, &error))
    return std::nullopt;
  return value;
}

/// Gives an instruction the word that `change` makes of its own. `change` returns a status of the engine.
static LogicalResult edit(SassInst inst, const Twine &what,
                          function_ref<SassStatus(const SassEngine &, SassWord &, std::string &)> change) {
  const SassEngine *engine = getEngine();
  InstData &data = inst.getInstData();
  if (!engine || data.isOpaque())
    return inst->emitOpError() << "cannot " << what << (engine ? ": no table knows its word" : ": no sass engine is loaded");
  SassWord word = data.word;
  std::string error;
  if (change(*engine, word, error))
    return inst->emitOpError() << "cannot " << what << ": " << error;
  data.set(data.layout->target, word);
  return success();
}

LogicalResult SassInst::setField(StringRef name, int64_t value) {
  return edit(*this, "set field " + name, [&](const SassEngine &engine, SassWord &word, std::string &error) {
    return engine.setField(getLayout(), &word, str(name), value, appendTo, &error);
  });
}

LogicalResult SassInst::editModifiers(StringRef drop, StringRef add) {
  return edit(*this, "replace modifiers '" + drop + "' by '" + add + "'",
              [&](const SassEngine &engine, SassWord &word, std::string &error) {
                return engine.editModifiers(getLayout(), &word, str(drop), str(add), appendTo, &error);
              });
}

StringRef SassInst::getShape(unsigned operand) {
  const SassEngine *engine = getEngine();
  return engine && !getInstData().isOpaque() ? ref(engine->getShape(getLayout(), getWord(), operand)) : StringRef();
}

LogicalResult SassInst::setShape(unsigned operand, StringRef shape) {
  return edit(*this, "write operand " + Twine(operand) + " as " + shape, [&](const SassEngine &engine, SassWord &word, std::string &error) {
    return engine.setShape(getLayout(), &word, operand, str(shape), appendTo, &error);
  });
}

//===-- Guard and operands ------------------------------------------------------------------------------===//

Value SassInst::getGuard() { return getLayout() && getLayout()->hasGuard ? getOperation()->getOperand(0) : Value(); }

/// The bit that negates the guard: what belongs to it and is no register.
static SassWord negationBit(const SassLayout *layout) {
  return {layout->guard.lo & ~layout->registers.lo, layout->guard.hi & ~layout->registers.hi};
}

bool SassInst::isGuardNegated() {
  if (!getGuard())
    return false;
  SassWord bit = negationBit(getLayout());
  return (getWord().lo & bit.lo) || (getWord().hi & bit.hi);
}

LogicalResult SassInst::setGuard(Value guard, bool negated, ValueRange previous) {
  Operation *op = getOperation();
  if (!getGuard())
    return op->emitOpError("has no guard");
  std::optional<SassPin> pin = getValuePin(guard);
  if (!pin || guard.getType() != getGuard().getType())
    return op->emitOpError("cannot have that guard: it is no predicate in a register");
  size_t before = getOperandPins(getInstData()).size();
  InstData changed = getInstData();
  SassWord bit = negationBit(changed.layout);
  changed.word = {negated ? changed.word.lo | bit.lo : changed.word.lo & ~bit.lo,
                  negated ? changed.word.hi | bit.hi : changed.word.hi & ~bit.hi};
  std::string error;
  if (getEngine()->setOperand(changed.layout, &changed.word, 0, *pin, appendTo, &error))
    return op->emitOpError() << "cannot have that guard: " << error;
  Pins pins = getOperandPins(changed);
  unsigned reads = getLayout()->reads;
  if (previous.size() != pins.size() - reads)
    return op->emitOpError() << "needs " << pins.size() - reads << " previous values of what it writes, not " << previous.size();
  for (auto [value, wanted] : llvm::zip(previous, ArrayRef(pins).drop_front(reads)))
    if (getValuePin(value) != wanted)
      return op->emitOpError() << "needs what " << getPinName(wanted) << " held before";
  SmallVector<Value> operands(op->operand_begin(), op->operand_begin() + reads);
  operands[0] = guard;
  llvm::append_range(operands, previous);
  operands.append(op->operand_begin() + before, op->operand_end());
  getInstData() = changed;
  op->setOperands(operands);
  return success();
}

OperandRange SassInst::getReads() {
  const SassLayout *layout = getLayout();
  if (!layout)
    return getOperation()->getOperands().take_front(0);
  return getOperation()->getOperands().slice(layout->hasGuard, layout->reads - layout->hasGuard);
}

Value SassInst::getMergeOperand(unsigned result) {
  // The previous values follow the reads, in the order of the results they belong to.
  Pins operands = getOperandPins(getInstData()), results = getResultPins(getInstData());
  if (result >= results.size())
    return {};
  for (unsigned i = getLayout()->reads; i < operands.size(); ++i)
    if (operands[i] == results[result])
      return getOperation()->getOperand(i);
  return {};
}

//===-- Registers and scheduling --------------------------------------------------------------------------===//

std::optional<SassPin> SassInst::getPin(unsigned result) {
  Pins results = getResultPins(getInstData());
  if (result >= results.size())
    return std::nullopt;
  return results[result];
}

void SassInst::setControl(uint32_t control) {
  constexpr uint64_t mask = uint64_t(0x1fffff) << 41;
  InstData &data = getInstData();
  data.word.hi = (data.word.hi & ~mask) | (uint64_t(control) << 41 & mask);
}

//===-- Making instructions -------------------------------------------------------------------------------===//

SassInst sass::buildInst(RewriterBase &rewriter, Location loc, const InstData &data, ValueRange operands) {
  auto name = RegisteredOperationName::lookup(("sass." + getClassName(data.layout, false)).str(), rewriter.getContext());
  if (!name || data.isOpaque())
    return emitError(loc) << "the dialect has no op for this word", nullptr;
  if (name->hasTrait<OpTrait::IsTerminator>() || data.layout->isCall)
    return emitError(loc) << *name << " controls flow and cannot be put in", nullptr;
  Pins reads = getOperandPins(data);
  if (reads.size() != operands.size())
    return emitError(loc) << ref(data.layout->formName) << " reads " << reads.size() << " registers, not " << operands.size(), nullptr;
  for (auto [index, pin] : llvm::enumerate(reads))
    if (Type wanted = getRegisterType(rewriter.getContext(), getPinFile(pin)); operands[index].getType() != wanted)
      return emitError(loc) << "operand " << index << " of " << ref(data.layout->formName) << " is " << wanted << ", not "
                            << operands[index].getType(), nullptr;
  OperationState state(loc, *name);
  state.addOperands(operands);
  for (SassPin pin : getResultPins(data))
    state.addTypes(getRegisterType(rewriter.getContext(), getPinFile(pin)));
  name->getInterface<SassInst>()->initState(state, data);
  return cast<SassInst>(rewriter.create(state));
}

/// The target of the function that a rewriter writes to; none, with a diagnostic, outside of one or without an engine.
static std::optional<int32_t> targetAt(RewriterBase &rewriter, Location loc) {
  const SassEngine *engine = getEngine();
  Block *block = rewriter.getInsertionBlock();
  Operation *parent = block ? block->getParentOp() : nullptr;
  auto func = dyn_cast_or_null<FuncOp>(parent);
  if (!engine || !func)
    return emitError(loc) << (engine ? "an instruction is put into a sass.func only" : "no sass engine is loaded"), std::nullopt;
  return engine->targetId(str(func.getSm()));
}

std::optional<FormId> sass::findForm(Location loc, StringRef sm, StringRef name) {
  const SassEngine *engine = getEngine();
  if (!engine)
    return emitError(loc, "no sass engine is loaded"), std::nullopt;
  std::string error;
  int32_t form = engine->findForm(engine->targetId(str(sm)), str(name), appendTo, &error);
  if (form < 0)
    return emitError(loc) << error, std::nullopt;
  return FormId(form);
}

SassInst sass::buildInst(RewriterBase &rewriter, Location loc, StringRef form, ValueRange operands, ArrayRef<FieldValue> fields,
                         StringRef modifiers) {
  std::optional<int32_t> target = targetAt(rewriter, loc);
  if (!target)
    return nullptr;
  std::optional<FormId> id = findForm(loc, ref(getEngine()->targetName(*target)), form);
  return id ? buildInst(rewriter, loc, *id, operands, fields, modifiers) : nullptr;
}

SassInst sass::buildInst(RewriterBase &rewriter, Location loc, FormId form, ValueRange operands, ArrayRef<FieldValue> fields,
                         StringRef modifiers) {
  std::optional<int32_t> target = targetAt(rewriter, loc);
  if (!target)
    return nullptr;
  const SassEngine *engine = getEngine();
  SassStr name = engine->formName(*target, unsigned(form));
  InstData data;
  SassWord word;
  if (engine->filler(*target, name, &word) || !data.set(*target, word))
    return emitError(loc) << "there is no form " << unsigned(form) << " of " << ref(engine->targetName(*target)), nullptr;
  std::string error;
  // Each step leaves the form as it is; what the word means to the next one is in its layout.
  auto step = [&](const Twine &what, auto change) -> LogicalResult {
    if (change())
      return emitError(loc) << ref(name) << ": " << what << ": " << error;
    data.set(*target, word);
    return success();
  };
  // The modifiers that the filler has, and those that are wanted.
  std::string drop, add;
  SmallVector<StringRef> has = splitModifiers(ref(data.layout->name).split('.').second), wants = splitModifiers(modifiers);
  for (StringRef token : has)
    if (!llvm::is_contained(wants, token))
      (drop += '.') += token;
  for (StringRef token : wants)
    if (!llvm::is_contained(has, token))
      (add += '.') += token;
  if (failed(step("modifiers '" + modifiers + "'",
                  [&] { return engine->editModifiers(data.layout, &word, str(drop), str(add), appendTo, &error); })))
    return nullptr;
  for (const FieldValue &field : fields)
    if (failed(step("field " + field.name,
                    [&] { return engine->setField(data.layout, &word, str(field.name), field.value, appendTo, &error); })))
      return nullptr;
  for (auto [index, value] : llvm::enumerate(operands.take_front(std::min<size_t>(data.layout->reads, operands.size())))) {
    std::optional<SassPin> pin = getValuePin(value);
    if (!pin)
      return emitError(loc) << ref(name) << ": operand " << index << " is in no register", nullptr;
    unsigned at = index;
    if (failed(step("operands", [&] { return engine->setOperand(data.layout, &word, at, *pin, appendTo, &error); })))
      return nullptr;
  }
  return buildInst(rewriter, loc, data, operands);
}
