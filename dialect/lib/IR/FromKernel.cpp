//===- FromKernel.cpp - a kernel's arrays to a sass.func --------------------------------------------------===//

#include "Sass/Kernel.h"
#include "WarpState.h"

using namespace mlir;
using namespace sass;

static StringRef ref(SassStr s) { return {s.data, s.size}; }

namespace {
/// How to make the ops of one layout.
struct Maker {
  std::optional<RegisteredOperationName> name;
  const SassInst::Concept *inst = nullptr;
  bool terminator = false;
};

class FuncBuilder {
public:
  FuncBuilder(ModuleOp module, const SassKernel &k, bool locations, LineAt lineAt)
      : context(module.getContext()), builder(context), module(module), k(k), locations(locations), lineAt(lineAt) {}
  FuncOp run();

private:
  Attribute pinsAttr();
  Attribute tailAttr();
  Type typeOf(SassPin pin) { return types[getPinFile(pin)]; }
  /// The value, or for one that comes later in the text a stand-in that is replaced at the end.
  Value use(uint32_t id, unsigned operand);
  LogicalResult operation(uint32_t op, uint32_t block, bool last);
  /// Of the instruction at `offset`.
  Location location();
  void edges(uint32_t block, unsigned first);

  MLIRContext *context;
  OpBuilder builder;
  ModuleOp module;
  const SassKernel &k;
  bool locations;
  LineAt lineAt;
  Type types[8];
  std::vector<Value> values;
  std::vector<Maker> makers; // by layout, then that of opaque words, then that of calls that are branches
  Maker maker(StringRef className);
  std::vector<Block *> blocks;
  struct Fixup {
    Operation *op;
    unsigned operand;
    uint32_t value;
  };
  std::vector<Fixup> fixups;
  const SassEngine *engine = getEngine();
  const SassLayout *opaque = nullptr;
  StringAttr succName = StringAttr::get(context, "succ"), writesName = StringAttr::get(context, "writes");
  uint32_t offset = 0; // of the next instruction, in bytes
  StringAttr file;
  size_t pending = 0; // fixups whose op does not exist yet start here
  Operation *standIn = nullptr;
  Location unknown = UnknownLoc::get(context);
  DictionaryAttr noAttributes = DictionaryAttr::get(context);
  // of the op that is being made
  SmallVector<Value, 8> operands;
  SmallVector<int32_t, 2> segments;
  SmallVector<Block *, 2> successors;
  SmallVector<Type, 8> resultTypes;
};
} // namespace

Attribute FuncBuilder::pinsAttr() {
  if (!k.argStart[k.blockCount])
    return {};
  SmallVector<Attribute> all;
  const SassPin *pins = k.pins + k.resultStart[k.opCount];
  for (uint32_t b = 0; b < k.blockCount; ++b) {
    SmallVector<Attribute> names;
    for (uint32_t a = k.argStart[b]; a < k.argStart[b + 1]; ++a)
      names.push_back(builder.getStringAttr(getPinName(pins[a])));
    all.push_back(builder.getArrayAttr(names));
  }
  return builder.getArrayAttr(all);
}

Attribute FuncBuilder::tailAttr() {
  SmallVector<Attribute> runs;
  for (uint32_t i = 0; i < k.tailCount;) {
    uint32_t end = i + 1;
    while (end < k.tailCount && k.tail[end].lo == k.tail[i].lo && k.tail[end].hi == k.tail[i].hi)
      ++end;
    char digits[kWordDigits];
    std::string text = formatWord(k.tail[i], digits).str();
    if (end - i > 1)
      text += " x" + std::to_string(end - i);
    runs.push_back(builder.getStringAttr(text));
    i = end;
  }
  return builder.getArrayAttr(runs);
}

Value FuncBuilder::use(uint32_t id, unsigned operand) {
  if (Value value = values[id])
    return value;
  fixups.push_back({nullptr, operand, id});
  if (!standIn) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(blocks.front());
    standIn = UnrealizedConversionCastOp::create(builder, unknown, TypeRange{types[SASS_FILE_R], types[SASS_FILE_UR],
                                                 types[SASS_FILE_P], types[SASS_FILE_UP], types[SASS_FILE_B]}, ValueRange());
  }
  return standIn->getResult(getPinFile(k.pins[id]));
}

/// Gathers the successors of a block's terminator; their values go behind the `first` operands it has.
void FuncBuilder::edges(uint32_t block, unsigned first) {
  for (uint32_t e = k.edgeStart[block]; e < k.edgeStart[block + 1]; ++e) {
    uint32_t to = k.edges[e].to, count = k.argStart[to + 1] - k.argStart[to];
    for (uint32_t i = 0; i < count; ++i)
      operands.push_back(use(k.edgeArgs[k.edges[e].args + i], first++));
    successors.push_back(blocks[to]);
    segments.push_back(count);
  }
}

Location FuncBuilder::location() {
  Location inCode = FileLineColLoc::get(file, offset, 0);
  auto line = lineAt ? lineAt(offset) : std::nullopt;
  if (!line)
    return inCode;
  return FusedLoc::get(context, {inCode, FileLineColLoc::get(builder.getStringAttr(line->first), line->second, 0)});
}

LogicalResult FuncBuilder::operation(uint32_t i, uint32_t block, bool last) {
  bool isCode = k.kinds[i] == SASS_OP_INST || k.kinds[i] == SASS_OP_OPAQUE;
  Location loc = locations && isCode ? location() : unknown;
  offset += isCode ? 16 : 0;
  uint32_t firstResult = k.resultStart[i], resultCount = k.resultStart[i + 1] - firstResult;
  operands.clear();
  segments.clear();
  successors.clear();
  Operation *op = nullptr;
  switch (k.kinds[i]) {
  case SASS_OP_CONSTANT:
    switch (getPinFile(k.pins[firstResult])) {
    case SASS_FILE_R:
      op = RZOp::create(builder, loc, types[SASS_FILE_R]);
      break;
    case SASS_FILE_UR:
      op = URZOp::create(builder, loc, types[SASS_FILE_UR]);
      break;
    case SASS_FILE_P:
      op = PTOp::create(builder, loc, types[SASS_FILE_P]);
      break;
    default:
      op = UPTOp::create(builder, loc, types[SASS_FILE_UP]);
    }
    break;
  case SASS_OP_LIVE_IN:
    op = UnrealizedConversionCastOp::create(builder, loc, TypeRange(typeOf(k.pins[firstResult])), ValueRange());
    op->setDiscardableAttr(kPinAttr, builder.getStringAttr(getPinName(k.pins[firstResult])));
    break;
  case SASS_OP_LABEL:
    op = LabelOp::create(builder, loc, k.labels[i]);
    break;
  case SASS_OP_ENTRY:
    edges(block, 0);
    op = EntryOp::create(builder, loc, operands, successors, segments);
    break;
  case SASS_OP_FALL:
    edges(block, 0);
    op = FallOp::create(builder, loc, operands, successors, segments);
    break;
  case SASS_OP_END:
    op = EndOp::create(builder, loc);
    break;
  default: {
    bool hasEdges = last && k.edgeStart[block] != k.edgeStart[block + 1];
    const Maker *chosen = &makers[k.layout[i] == SASS_NONE ? k.layoutCount : k.layout[i]];
    if (hasEdges && !chosen->terminator)
      chosen = &makers.back();
    const Maker &maker = *chosen;
    InstData data;
    data.word = k.words[i];
    data.label = k.labels[i];
    data.layout = k.layout[i] == SASS_NONE ? opaque : k.layouts[k.layout[i]];
    if (!maker.inst)
      return emitError(unknown) << "the dialect has no op for " << ref(data.layout->mnemonic) << ": regenerate SassInsts.td";
    unsigned n = 0;
    for (uint32_t o = k.operandStart[i]; o < k.operandStart[i + 1]; ++o)
      operands.push_back(use(k.operands[o], n++));
    if (hasEdges)
      edges(block, n);
    resultTypes.clear();
    for (uint32_t r = 0; r < resultCount; ++r)
      resultTypes.push_back(typeOf(k.pins[firstResult + r]));
    op = Operation::create(loc, *maker.name, resultTypes, operands, noAttributes, /*properties=*/nullptr, successors, 0);
    maker.inst->getInstData(maker.inst, op) = data;
    builder.insert(op);
    if (!segments.empty())
      op->setInherentAttr(succName, builder.getDenseI32ArrayAttr(segments));
    if (data.layout->isCall && resultCount) {
      unsigned own = engine->results(data.layout, data.word, nullptr, 0);
      SmallVector<Attribute> writes;
      for (uint32_t r = own; r < resultCount; ++r)
        writes.push_back(builder.getStringAttr(getPinName(k.pins[firstResult + r])));
      if (!writes.empty())
        op->setInherentAttr(writesName, builder.getArrayAttr(writes));
    }
  }
  }
  for (; pending < fixups.size(); ++pending)
    fixups[pending].op = op;
  for (uint32_t r = 0; r < resultCount; ++r)
    values[firstResult + r] = op->getResult(r);
  return success();
}

Maker FuncBuilder::maker(StringRef className) {
  Maker maker;
  maker.name = RegisteredOperationName::lookup(("sass." + className).str(), context);
  if (maker.name) {
    maker.inst = maker.name->getInterface<SassInst>();
    maker.terminator = maker.name->hasTrait<OpTrait::IsTerminator>();
  }
  return maker;
}

FuncOp FuncBuilder::run() {
  if (!engine) {
    emitError(unknown, "no sass engine is loaded");
    return {};
  }
  int32_t target = engine->targetId(k.sm);
  if (target < 0 || !(opaque = engine->opaque(target))) {
    emitError(unknown) << "the tables of " << ref(k.sm) << " are not built in";
    return {};
  }
  for (unsigned f = SASS_FILE_R; f <= SASS_FILE_B; ++f)
    types[f] = getRegisterType(context, f);
  file = builder.getStringAttr(ref(k.name));
  builder.setInsertionPointToEnd(module.getBody());
  FuncOp func = FuncOp::create(builder, unknown, ref(k.name), ref(k.sm));
  if (Attribute pins = pinsAttr())
    func->setDiscardableAttr(kPinsAttr, pins);
  if (k.tailCount)
    func->setDiscardableAttr(kTailAttr, tailAttr());

  for (uint32_t l = 0; l < k.layoutCount; ++l)
    makers.push_back(maker(getClassName(k.layouts[l], false)));
  makers.push_back(maker("opaque"));
  makers.push_back(maker("CALL_"));

  uint32_t results = k.resultStart[k.opCount];
  values.resize(results + k.argStart[k.blockCount]);
  for (uint32_t b = 0; b < k.blockCount; ++b) {
    Block *block = new Block();
    func.getBody().push_back(block);
    blocks.push_back(block);
    for (uint32_t a = k.argStart[b]; a < k.argStart[b + 1]; ++a)
      values[results + a] = block->addArgument(typeOf(k.pins[results + a]), unknown);
  }
  for (uint32_t b = 0; b < k.blockCount; ++b) {
    builder.setInsertionPointToEnd(blocks[b]);
    for (uint32_t i = k.blockStart[b]; i < k.blockStart[b + 1]; ++i)
      if (failed(operation(i, b, i + 1 == k.blockStart[b + 1]))) {
        func.erase();
        return {};
      }
  }
  for (const Fixup &fixup : fixups)
    fixup.op->setOperand(fixup.operand, values[fixup.value]);
  if (standIn)
    standIn->erase();
  markConverged(func.getBody());
  return func;
}

FuncOp sass::makeFunc(ModuleOp module, const SassKernel &kernel, bool locations, LineAt lineAt) {
  return FuncBuilder(module, kernel, locations, lineAt).run();
}
