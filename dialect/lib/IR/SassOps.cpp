//===- SassOps.cpp - sass.func and the pseudo ops -------------------------------------------------------===//

#include "Sass/Sass.h"
#include "InstAsm.h"
#include "WarpState.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace sass;

//===-- sass.func ---------------------------------------------------------------------------------------===//

void FuncOp::build(OpBuilder &builder, OperationState &state, StringRef name, StringRef sm) {
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute(getSmAttrName(state.name), builder.getStringAttr(sm));
  state.addRegion();
}

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseAttribute(name, SymbolTable::getSymbolAttrName(), state.attributes) ||
      parser.parseOptionalAttrDictWithKeyword(state.attributes))
    return failure();
  auto sm = dyn_cast_or_null<StringAttr>(state.attributes.get(getSmAttrName(state.name)));
  if (!sm)
    return parser.emitError(loc, "expected attributes {sm = \"sm_..\"}");
  std::optional<asmparse::FunctionScope> scope;
  if (const SassEngine *engine = getEngine()) {
    int32_t target = engine->targetId({sm.getValue().data(), sm.getValue().size()});
    if (target < 0)
      return parser.emitError(loc, "unknown target ") << sm;
    scope.emplace(target);
  }
  Region *code = state.addRegion();
  if (parser.parseRegion(*code) || failed(asmparse::bindOperands(*code, dyn_cast_or_null<ArrayAttr>(state.attributes.get(kPinsAttr)))))
    return failure();
  markConverged(*code);
  return success();
}

void FuncOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getSymNameAttr();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {SymbolTable::getSymbolAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult FuncOp::verify() {
  if (const SassEngine *engine = getEngine())
    if (engine->targetId({getSm().data(), getSm().size()}) < 0)
      return emitOpError() << "names the unknown target " << getSmAttr();
  return success();
}

LogicalResult FuncOp::verifyRegions() {
  if (getBody().empty())
    return emitOpError("has no code");
  if (getBody().front().getNumArguments())
    return emitOpError("has an entry block with arguments");
  llvm::DenseSet<unsigned> pins;
  for (Operation &op : getBody().front()) {
    auto cast = dyn_cast<UnrealizedConversionCastOp>(op);
    if (!cast || cast.getNumOperands())
      continue;
    auto pin = cast->getAttrOfType<StringAttr>(kPinAttr);
    if (!pin)
      return cast.emitOpError() << "stands for a register at entry and needs the attribute " << kPinAttr;
    std::optional<SassPin> parsed = parsePin(pin.getValue());
    if (!parsed || cast.getResultTypes() != TypeRange(getRegisterType(getContext(), getPinFile(*parsed))))
      return cast.emitOpError() << kPinAttr << " = " << pin << " names no register of its type";
    if (!pins.insert(*parsed).second)
      return cast.emitOpError() << "is the second one with " << kPinAttr << " = " << pin;
  }
  llvm::DenseSet<unsigned> labels;
  for (Block &block : getBody())
    for (LabelOp label : block.getOps<LabelOp>())
      if (!labels.insert(label.getId()).second)
        return label.emitOpError("is there twice");
  return success();
}

//===-- Registers of block arguments --------------------------------------------------------------------===//

/// Instead of the register of a block argument that nobody says.
constexpr SassPin kUnknownPin = 0xffff;

/// The register of a value that is no block argument, if it has one.
static std::optional<SassPin> getDefinedPin(OpResult result) {
  Operation *op = result.getOwner();
  if (auto inst = dyn_cast<SassInst>(op)) {
    Pins own = getResultPins(inst.getInstData());
    if (result.getResultNumber() < own.size())
      return own[result.getResultNumber()];
    auto writes = op->getInherentAttr("writes");
    auto names = writes ? dyn_cast_or_null<ArrayAttr>(*writes) : ArrayAttr();
    unsigned extra = result.getResultNumber() - own.size();
    return names && extra < names.size() ? parsePin(cast<StringAttr>(names[extra]).getValue()) : std::nullopt;
  }
  if (auto pin = op->getAttrOfType<StringAttr>(kPinAttr))
    return parsePin(pin.getValue());
  return std::nullopt;
}

/// The registers of a block's arguments as an attribute lists them, if it does so for all.
static std::optional<Pins> getListedPins(ArrayAttr pins, Block &block, unsigned index) {
  auto names = pins && index < pins.size() ? dyn_cast<ArrayAttr>(pins[index]) : ArrayAttr();
  if (!names || names.size() != block.getNumArguments())
    return std::nullopt;
  Pins listed;
  for (Attribute name : names) {
    auto text = dyn_cast<StringAttr>(name);
    std::optional<SassPin> pin = text ? parsePin(text.getValue()) : std::nullopt;
    if (!pin)
      return std::nullopt;
    listed.push_back(*pin);
  }
  return listed;
}

SmallVector<Pins> sass::getArgumentPins(FuncOp func) {
  return getArgumentPins(func.getBody(), func->getAttrOfType<ArrayAttr>(kPinsAttr));
}

SmallVector<Pins> sass::getArgumentPins(Region &code, ArrayAttr attribute) {
  SmallVector<Pins> pins;
  bool fits = attribute && attribute.size() == code.getBlocks().size();
  for (auto [index, block] : llvm::enumerate(code)) {
    std::optional<Pins> own = fits ? getListedPins(attribute, block, index) : std::nullopt;
    fits = own.has_value();
    pins.push_back(own.value_or(Pins()));
  }
  if (fits)
    return pins;
  // Spread what is known along the edges.
  llvm::DenseMap<Value, SassPin> known;
  auto pinOf = [&](Value value) {
    if (auto result = dyn_cast<OpResult>(value))
      return getDefinedPin(result).value_or(kUnknownPin);
    auto found = known.find(value);
    return found == known.end() ? kUnknownPin : found->second;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (Block &block : code) {
      auto branch = dyn_cast<BranchOpInterface>(block.getTerminator());
      if (!branch)
        continue;
      for (auto [index, successor] : llvm::enumerate(block.getSuccessors()))
        for (auto [arg, value] : llvm::zip(successor->getArguments(), branch.getSuccessorOperands(index).getForwardedOperands()))
          if (SassPin pin = pinOf(value); pin != kUnknownPin)
            changed |= known.try_emplace(arg, pin).second;
    }
  }
  pins.clear();
  for (Block &block : code) {
    Pins &own = pins.emplace_back();
    for (BlockArgument arg : block.getArguments())
      own.push_back(pinOf(arg));
  }
  return pins;
}

std::optional<SassPin> sass::getValuePin(Value value) {
  if (auto result = dyn_cast<OpResult>(value)) {
    if (isa<RZOp, URZOp, PTOp, UPTOp>(result.getOwner()))
      for (unsigned file : {SASS_FILE_R, SASS_FILE_UR, SASS_FILE_P, SASS_FILE_UP})
        if (value.getType() == getRegisterType(value.getContext(), file))
          return SassPin(file << 8 | 0x800);
    return getDefinedPin(result);
  }
  auto arg = cast<BlockArgument>(value);
  auto func = dyn_cast<FuncOp>(arg.getOwner()->getParentOp());
  if (!func)
    return std::nullopt;
  unsigned block = arg.getOwner()->computeBlockNumber();
  auto listed = func->getAttrOfType<ArrayAttr>(kPinsAttr);
  if (listed && listed.size() == func.getBody().getBlocks().size())
    if (std::optional<Pins> pins = getListedPins(listed, *arg.getOwner(), block))
      return (*pins)[arg.getArgNumber()];
  SassPin pin = getArgumentPins(func)[block][arg.getArgNumber()];
  return pin == kUnknownPin ? std::nullopt : std::optional(pin);
}

ArrayRef<int32_t> sass::getSuccessorSegments(Operation *op) {
  if (!op->getNumSuccessors())
    return {};
  auto attribute = op->getInherentAttr("succ");
  auto segments = attribute ? dyn_cast_or_null<DenseI32ArrayAttr>(*attribute) : DenseI32ArrayAttr();
  return segments ? segments.asArrayRef() : ArrayRef<int32_t>();
}

StringRef sass::formatWord(SassWord word, char (&text)[kWordDigits]) {
  text[0] = '0';
  text[1] = 'x';
  for (unsigned i = 0; i < 32; ++i)
    text[2 + i] = "0123456789abcdef"[(i < 16 ? word.hi >> (60 - 4 * i) : word.lo >> (124 - 4 * i)) & 15];
  return {text, kWordDigits};
}

//===-- Pseudo ops --------------------------------------------------------------------------------------===//

static ParseResult parseLabelId(OpAsmParser &parser, IntegerAttr &id) {
  int32_t value;
  if (parser.parseInteger(value))
    return failure();
  id = parser.getBuilder().getI32IntegerAttr(value);
  return success();
}
static void printLabelId(OpAsmPrinter &printer, Operation *, IntegerAttr id) { printer << id.getInt(); }

/// A pseudo op stays where it is.
static void addPlaceEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), ConvergenceResource::get());
}
void LabelOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) { addPlaceEffects(effects); }
void EntryOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) { addPlaceEffects(effects); }
void FallOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &) {}
void EndOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) { addPlaceEffects(effects); }

static ParseResult parsePseudoBranch(OpAsmParser &parser, OperationState &state, bool mayEnd = false) {
  SmallVector<int32_t> segments;
  do {
    OptionalParseResult found = asmparse::parseOptionalSuccessor(parser, state, state.operands, segments);
    if (!found.has_value() && mayEnd && segments.empty())
      break; // there is no code
    if (!found.has_value())
      return parser.emitError(parser.getCurrentLocation(), "expected a block");
    if (failed(*found))
      return failure();
  } while (succeeded(parser.parseOptionalComma()));
  state.addAttribute("succ", parser.getBuilder().getDenseI32ArrayAttr(segments));
  return parser.parseOptionalAttrDict(state.attributes);
}
static void printPseudoBranch(OpAsmPrinter &printer, Operation *op, ArrayRef<int32_t> segments) {
  asmparse::printSuccessors(printer, op, 0, segments);
  printer.printOptionalAttrDict(op->getDiscardableAttrDictionary().getValue());
}
ParseResult EntryOp::parse(OpAsmParser &parser, OperationState &state) { return parsePseudoBranch(parser, state, /*mayEnd=*/true); }
ParseResult FallOp::parse(OpAsmParser &parser, OperationState &state) { return parsePseudoBranch(parser, state); }
void EntryOp::print(OpAsmPrinter &printer) { printPseudoBranch(printer, *this, getSucc()); }
void FallOp::print(OpAsmPrinter &printer) { printPseudoBranch(printer, *this, getSucc()); }

LogicalResult EntryOp::verify() {
  if ((*this)->getBlock() != &(*this)->getParentRegion()->front())
    return emitOpError("is outside the entry block");
  return sass::detail::verifySuccessorSegments(*this, 0, getSucc());
}
LogicalResult FallOp::verify() {
  if (getDests().size() != 1)
    return emitOpError("needs one successor");
  return sass::detail::verifySuccessorSegments(*this, 0, getSucc());
}

#define GET_OP_CLASSES
#include "Sass/SassOps.cpp.inc"
