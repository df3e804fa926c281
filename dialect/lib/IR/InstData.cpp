//===- InstData.cpp - the inline property, equality, effects, verification -----------------------------===//

#include "Sass/Sass.h"

using namespace mlir;
using namespace sass;

#include "Sass/SassEnums.cpp.inc"

static SassStr str(StringRef s) { return {s.data(), s.size()}; }
static StringRef ref(SassStr s) { return {s.data, s.size}; }

//===-- The property ------------------------------------------------------------------------------------===//

bool InstData::set(unsigned target, SassWord newWord) {
  const SassEngine *engine = getEngine();
  const SassLayout *found = engine ? engine->layout(target, newWord) : nullptr;
  if (!found)
    return false;
  word = newWord;
  layout = found;
  return true;
}

bool InstData::isGuarded() const {
  return layout && ((word.lo & layout->guard.lo) != layout->unguarded.lo || (word.hi & layout->guard.hi) != layout->unguarded.hi);
}

/// The bits of the word that decide what is computed.
static SassWord semanticBits(const InstData &data) {
  if (data.isOpaque())
    return data.word;
  return {data.word.lo & data.layout->semantic.lo, data.word.hi & data.layout->semantic.hi};
}

constexpr uint8_t kIdentity = SASS_EFFECT_CONVERGENCE | SASS_EFFECT_UNKNOWN;

bool InstData::operator==(const InstData &o) const {
  if (this == &o)
    return true;
  // Some instructions are unique: neither CSE nor the merging of blocks may find their like.
  if (layout != o.layout || isOpaque() || (layout->effects & kIdentity) || isWarpState() || o.isWarpState() || isGuarded() != o.isGuarded() || label != o.label)
    return false;
  SassWord a = semanticBits(*this), b = semanticBits(o);
  return a.lo == b.lo && a.hi == b.hi;
}

llvm::hash_code sass::hash_value(const InstData &data) {
  SassWord bits = semanticBits(data);
  return llvm::hash_combine(bits.lo, bits.hi, data.layout, data.label);
}

static StringRef targetName(const InstData &data) {
  const SassEngine *engine = getEngine();
  return engine && data.layout ? ref(engine->targetName(data.layout->target)) : StringRef();
}

Attribute sass::toAttribute(MLIRContext *context, const InstData &data) {
  Builder b(context);
  uint64_t halves[2] = {data.word.lo, data.word.hi};
  SmallVector<NamedAttribute> entries;
  if (data.converged)
    entries.push_back(b.getNamedAttr("converged", b.getUnitAttr()));
  if (data.label == SASS_LABEL_SUCCESSOR)
    entries.push_back(b.getNamedAttr("label", b.getUnitAttr()));
  else if (data.label != SASS_LABEL_NONE)
    entries.push_back(b.getNamedAttr("label", b.getI32IntegerAttr(data.label)));
  entries.push_back(b.getNamedAttr("sm", b.getStringAttr(targetName(data))));
  entries.push_back(b.getNamedAttr("word", b.getIntegerAttr(b.getIntegerType(128), APInt(128, halves))));
  return b.getDictionaryAttr(entries);
}

/// Shared by both ways to read one.
static LogicalResult setWord(InstData &data, StringRef target, SassWord word,
                             llvm::function_ref<InFlightDiagnostic()> emitError) {
  const SassEngine *engine = getEngine();
  if (!engine)
    return emitError() << "no sass engine is loaded, so instructions cannot be read";
  int32_t id = engine->targetId(str(target));
  if (id < 0)
    return emitError() << "unknown target '" << target << "'";
  if (!data.set(id, word))
    return emitError() << "the tables of " << target << " are not built in";
  return success();
}

LogicalResult sass::fromAttribute(InstData &data, Attribute attribute,
                                  llvm::function_ref<InFlightDiagnostic()> emitError) {
  auto dict = dyn_cast_or_null<DictionaryAttr>(attribute);
  auto word = dict ? dict.getAs<IntegerAttr>("word") : IntegerAttr();
  auto sm = dict ? dict.getAs<StringAttr>("sm") : StringAttr();
  if (!word || !word.getType().isInteger(128) || !sm)
    return emitError() << "expected `inst = {sm = \"sm_..\", word = 0x... : i128}`";
  data.converged = bool(dict.get("converged"));
  Attribute label = dict.get("label");
  if (auto id = dyn_cast_or_null<IntegerAttr>(label))
    data.label = id.getInt();
  else
    data.label = label ? SASS_LABEL_SUCCESSOR : SASS_LABEL_NONE;
  APInt value = word.getValue();
  return setWord(data, sm.getValue(), {value.extractBitsAsZExtValue(64, 0), value.extractBitsAsZExtValue(64, 64)},
                 emitError);
}

void sass::writeBytecode(DialectBytecodeWriter &writer, const InstData &data) {
  writer.writeOwnedString(targetName(data));
  writer.writeVarInt(uint64_t(data.label) << 1 | data.converged);
  writer.writeVarInt(data.word.lo);
  writer.writeVarInt(data.word.hi);
}

LogicalResult sass::readBytecode(DialectBytecodeReader &reader, InstData &data) {
  StringRef name;
  uint64_t flags;
  SassWord word;
  if (failed(reader.readString(name)) || failed(reader.readVarInt(flags)) || failed(reader.readVarInt(word.lo)) ||
      failed(reader.readVarInt(word.hi)))
    return failure();
  data.converged = flags & 1;
  data.label = flags >> 1;
  return setWord(data, name, word, [&] { return reader.emitError(); });
}

StringRef sass::getClassName(const SassLayout *layout, bool hasSuccessors) {
  if (!layout || layout->form == SASS_FORM_OPAQUE)
    return "opaque";
  StringRef mnemonic = ref(layout->mnemonic);
  return mnemonic == "CALL" && hasSuccessors ? "CALL_" : mnemonic;
}

//===-- Registers ---------------------------------------------------------------------------------------===//

template <typename Fn> static Pins getPins(const InstData &data, Fn query) {
  Pins pins;
  if (data.isOpaque() || !getEngine())
    return pins;
  pins.resize_for_overwrite(pins.capacity());
  uint32_t count = query(data.layout, data.word, pins.data(), pins.size());
  if (count > pins.size()) {
    pins.resize_for_overwrite(count);
    query(data.layout, data.word, pins.data(), pins.size());
  }
  pins.truncate(count);
  return pins;
}
Pins sass::getOperandPins(const InstData &data) { return getPins(data, [](auto... a) { return getEngine()->operands(a...); }); }
Pins sass::getResultPins(const InstData &data) { return getPins(data, [](auto... a) { return getEngine()->results(a...); }); }

std::string sass::getPinName(SassPin pin) {
  unsigned file = getPinFile(pin);
  std::string name = getFileName(file).str();
  if (isZeroPin(pin))
    return name + (file == SASS_FILE_P || file == SASS_FILE_UP ? "T" : "Z");
  return name + std::to_string(pin & 0xff);
}

std::optional<SassPin> sass::parsePin(StringRef name) {
  for (unsigned file : {SASS_FILE_UR, SASS_FILE_UP, SASS_FILE_R, SASS_FILE_P, SASS_FILE_B}) {
    StringRef digits = name;
    unsigned number;
    if (digits.consume_front(getFileName(file)) && (digits.size() == 1 || !digits.starts_with("0")) && !digits.getAsInteger(10, number) &&
        number < 256)
      return SassPin(file << 8 | number);
  }
  return std::nullopt;
}

//===-- Effects -----------------------------------------------------------------------------------------===//

void sass::detail::getInstEffects(const InstData &data, SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  auto *convergence = ConvergenceResource::get();
  auto *warp = WarpStateResource::get();
  unsigned bits = data.layout ? data.layout->effects : unsigned(SASS_EFFECT_UNKNOWN);
  bool unknown = bits & SASS_EFFECT_UNKNOWN;
  if (unknown || (bits & SASS_EFFECT_READ))
    effects.emplace_back(MemoryEffects::Read::get());
  if (unknown || (bits & SASS_EFFECT_WRITE))
    effects.emplace_back(MemoryEffects::Write::get());
  if (unknown || (bits & SASS_EFFECT_CONVERGENCE)) {
    effects.emplace_back(MemoryEffects::Read::get(), convergence);
    effects.emplace_back(MemoryEffects::Write::get(), convergence);
  }
  if (unknown || data.isWarpState()) {
    effects.emplace_back(MemoryEffects::Read::get(), warp);
    effects.emplace_back(MemoryEffects::Write::get(), warp);
  }
}

Speculation::Speculatability sass::detail::getInstSpeculatability(const InstData &data) {
  return data.layout && data.layout->effects == 0 && !data.isWarpState() ? Speculation::Speculatable : Speculation::NotSpeculatable;
}

SuccessorOperands sass::detail::getSuccessorOperands(Operation *op, StringAttr segmentName, ArrayRef<int32_t> segments,
                                               unsigned index) {
  unsigned counted = 0, before = 0;
  for (int32_t n : segments)
    counted += n;
  for (int32_t n : segments.take_front(index))
    before += n;
  unsigned start = op->getNumOperands() - counted + before;
  NamedAttribute attribute(segmentName, DenseI32ArrayAttr::get(op->getContext(), segments));
  return SuccessorOperands(
      MutableOperandRange(op, start, segments[index], MutableOperandRange::OperandSegment(index, attribute)));
}

//===-- Verification ------------------------------------------------------------------------------------===//

LogicalResult sass::detail::verifySuccessorSegments(Operation *op, unsigned first, ArrayRef<int32_t> segments) {
  if (segments.size() != op->getNumSuccessors())
    return op->emitOpError() << "has " << op->getNumSuccessors() << " successors, but values for " << segments.size();
  uint64_t count = first;
  for (int32_t n : segments)
    if (n < 0)
      return op->emitOpError("has a negative number of values for a successor");
    else
      count += n;
  if (count != op->getNumOperands())
    return op->emitOpError() << "has " << op->getNumOperands() << " operands, expected " << count;
  return success();
}

LogicalResult sass::detail::verifyInst(Operation *op) {
  const InstData &data = cast<SassInst>(op).getInstData();
  if (!getEngine())
    return success(); // nothing can be said; reading an instruction has failed before
  auto func = op->getParentOfType<FuncOp>();
  if (!func)
    return op->emitOpError("is outside a sass.func");
  if (!data.layout)
    return op->emitOpError("has no instruction word");
  if (targetName(data) != func.getSm())
    return op->emitOpError() << "is an instruction of " << targetName(data) << " in a function of " << func.getSm();

  StringRef mnemonic = op->getName().stripDialect();
  if (data.isOpaque()) {
    if (mnemonic != "opaque")
      return op->emitOpError() << "has a word that is no instruction of " << func.getSm();
    if (op->getNumOperands() || op->getNumResults())
      return op->emitOpError("cannot have operands or results");
    return success();
  }
  if (getClassName(data.layout, op->getNumSuccessors()) != mnemonic)
    return op->emitOpError() << "has a word of " << ref(data.layout->mnemonic);
  if (data.label == SASS_LABEL_SUCCESSOR && !op->getNumSuccessors())
    return op->emitOpError("names no place to go to");
  if (data.label != SASS_LABEL_NONE && !data.layout->hasLabel)
    return op->emitOpError("names no place in the code and cannot have a label");

  auto check = [&](StringRef what, const Pins &pins, auto types) -> LogicalResult {
    for (auto [index, pin] : llvm::enumerate(pins)) {
      if (index >= types.size())
        return op->emitOpError() << "has " << types.size() << ' ' << what << "s, but its word says " << pins.size();
      Type wanted = getRegisterType(op->getContext(), getPinFile(pin));
      if (types[index] != wanted)
        return op->emitOpError() << what << ' ' << index << " is " << types[index] << ", but its word says " << wanted;
    }
    return success();
  };
  Pins operands = getOperandPins(data), results = getResultPins(data);
  if (failed(check("operand", operands, op->getOperandTypes())) || failed(check("result", results, op->getResultTypes())))
    return failure();

  unsigned extra = op->getNumOperands() - operands.size();
  if (op->hasTrait<OpTrait::IsTerminator>()) {
    ArrayRef<int32_t> segments = getSuccessorSegments(op);
    unsigned passed = 0;
    for (int32_t n : segments)
      passed += n;
    extra -= std::min(passed, extra);
    if (failed(verifySuccessorSegments(op, operands.size() + (data.layout->isCall ? extra : 0), segments)))
      return failure();
  }
  if (extra && !data.layout->isCall)
    return op->emitOpError() << "has " << op->getNumOperands() << " operands, but its word says " << operands.size();
  size_t writes = 0;
  if (auto attribute = op->getInherentAttr("writes"))
    writes = *attribute ? cast<ArrayAttr>(*attribute).size() : 0;
  if (op->getNumResults() != results.size() + writes)
    return op->emitOpError() << "has " << op->getNumResults() << " results, but its word says " << results.size() + writes;
  return success();
}
