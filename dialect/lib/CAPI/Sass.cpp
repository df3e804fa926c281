//===- Sass.cpp - kernels as arrays, to and from sass.func ------------------------------------------------===//

#include "Sass-c/Sass.h"
#include "Sass/Passes.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;
using namespace sass;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Sass, sass, ::sass::SassDialect)

void sassRegisterPasses() { registerSassPasses(); }

static StringRef ref(SassStr s) { return {s.data, s.size}; }

//===-- To MLIR -----------------------------------------------------------------------------------------===//

namespace {
/// How to make the ops of one layout.
struct Maker {
  std::optional<RegisteredOperationName> name;
  const SassInst::Concept *inst = nullptr;
  bool terminator = false;
};

class FuncBuilder {
public:
  FuncBuilder(ModuleOp module, const SassKernel &k, bool locations)
      : context(module.getContext()), builder(context), module(module), k(k), locations(locations) {}
  FuncOp run();

private:
  Attribute pinsAttr();
  Attribute tailAttr();
  Type typeOf(SassPin pin) { return types[getPinFile(pin)]; }
  /// The value, or for one that comes later in the text a stand-in that is replaced at the end.
  Value use(uint32_t id, unsigned operand);
  LogicalResult operation(uint32_t op, uint32_t block, bool last);
  void edges(uint32_t block, unsigned first);

  MLIRContext *context;
  OpBuilder builder;
  ModuleOp module;
  const SassKernel &k;
  bool locations;
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

LogicalResult FuncBuilder::operation(uint32_t i, uint32_t block, bool last) {
  bool isCode = k.kinds[i] == SASS_OP_INST || k.kinds[i] == SASS_OP_OPAQUE;
  Location loc = locations && isCode ? Location(FileLineColLoc::get(file, offset, 0)) : unknown;
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
  return func;
}

MlirOperation sassKernelToFunc(MlirModule module, const SassKernel *kernel, bool noLocations) {
  return wrap(FuncBuilder(unwrap(module), *kernel, !noLocations).run().getOperation());
}

//===-- From MLIR ---------------------------------------------------------------------------------------===//

namespace {
/// Values that were made one after the other lie side by side in memory: a hash that keeps them so saves most cache misses.
struct NearbyInfo : llvm::DenseMapInfo<Value> {
  static unsigned getHashValue(Value value) { return reinterpret_cast<uintptr_t>(value.getAsOpaquePointer()) >> 6; }
};

/// The arrays of a SassKernel while they grow.
class KernelBuilder {
public:
  explicit KernelBuilder(FuncOp func) : func(func) {}
  LogicalResult run();
  void emit(void (*out)(void *, const SassKernel *), void *user);

private:
  LogicalResult define(Operation &op);
  LogicalResult define(SassInst inst, Operation &op);
  LogicalResult uses(Operation &op, uint32_t first, uint32_t count, std::vector<uint32_t> &out);
  LogicalResult tail();

  FuncOp func;
  const SassEngine *engine = getEngine();
  llvm::DenseMap<Value, uint32_t, NearbyInfo> ids; // first results and block arguments
  std::vector<uint8_t> kinds;
  std::vector<SassWord> words, tailWords;
  std::vector<uint32_t> layout, labels, operandStart{0}, operands, resultStart{0}, blockStart, argStart, edgeStart{0}, edgeArgs;
  std::vector<SassPin> pins;
  std::vector<SassEdge> edges;
  std::vector<const SassLayout *> layouts;
  llvm::DenseMap<const SassLayout *, uint32_t> layoutIds;
};
} // namespace

LogicalResult KernelBuilder::define(SassInst inst, Operation &op) {
  const InstData &data = inst.getInstData();
  if (!data.layout)
    return op.emitOpError("has no instruction word");
  if (!data.pinned)
    return op.emitOpError("has no registers: its word was left out, and nothing has chosen registers yet");
  kinds.push_back(data.isOpaque() ? SASS_OP_OPAQUE : SASS_OP_INST);
  words.push_back(data.word);
  labels.push_back(data.label);
  if (data.isOpaque()) {
    layout.push_back(SASS_NONE);
    return success();
  }
  auto [at, isNew] = layoutIds.try_emplace(data.layout, layouts.size());
  if (isNew)
    layouts.push_back(data.layout);
  layout.push_back(at->second);
  if (!op.getNumResults())
    return success();
  size_t before = pins.size();
  pins.resize(before + op.getNumResults());
  uint32_t own = engine->results(data.layout, data.word, pins.data() + before, op.getNumResults());
  if (own < op.getNumResults()) {
    auto writes = op.getInherentAttr("writes");
    ArrayAttr names = writes ? dyn_cast_or_null<ArrayAttr>(*writes) : ArrayAttr();
    for (uint32_t r = own; r < op.getNumResults(); ++r) {
      auto pin = names && r - own < names.size() ? parsePin(cast<StringAttr>(names[r - own]).getValue()) : std::nullopt;
      if (!pin)
        return op.emitOpError("has a result without a register");
      pins[before + r] = *pin;
    }
  }
  return success();
}

LogicalResult KernelBuilder::define(Operation &op) {
  if (op.getNumResults())
    ids.try_emplace(op.getResult(0), pins.size());
  if (auto inst = dyn_cast<SassInst>(op))
    return define(inst, op);
  words.push_back({0, 0});
  layout.push_back(SASS_NONE);
  uint32_t label = SASS_LABEL_NONE;
  auto constant = [&](uint8_t file) {
    kinds.push_back(SASS_OP_CONSTANT);
    pins.push_back(SassPin(file << 8 | 0x800));
  };
  if (isa<RZOp>(op))
    constant(SASS_FILE_R);
  else if (isa<URZOp>(op))
    constant(SASS_FILE_UR);
  else if (isa<PTOp>(op))
    constant(SASS_FILE_P);
  else if (isa<UPTOp>(op))
    constant(SASS_FILE_UP);
  else if (auto cast = dyn_cast<UnrealizedConversionCastOp>(op); cast && !op.getNumOperands() && op.getNumResults() == 1) {
    auto name = op.getAttrOfType<StringAttr>(kPinAttr);
    auto pin = name ? parsePin(name.getValue()) : std::nullopt;
    if (!pin)
      return op.emitOpError() << "needs a register as " << kPinAttr;
    kinds.push_back(SASS_OP_LIVE_IN);
    pins.push_back(*pin);
  } else if (auto place = dyn_cast<LabelOp>(op)) {
    kinds.push_back(SASS_OP_LABEL);
    label = place.getId();
  } else if (isa<EntryOp>(op))
    kinds.push_back(SASS_OP_ENTRY);
  else if (isa<FallOp>(op))
    kinds.push_back(SASS_OP_FALL);
  else if (isa<EndOp>(op))
    kinds.push_back(SASS_OP_END);
  else
    return op.emitOpError("is no part of a kernel: a function that is lowered holds sass ops only");
  labels.push_back(label);
  return success();
}

LogicalResult KernelBuilder::uses(Operation &op, uint32_t first, uint32_t count, std::vector<uint32_t> &out) {
  for (Value value : op.getOperands().slice(first, count)) {
    auto result = dyn_cast<OpResult>(value);
    auto found = ids.find(result ? result.getOwner()->getResult(0) : value);
    if (found == ids.end())
      return op.emitOpError("uses a value from outside the function");
    out.push_back(found->second + (result ? result.getResultNumber() : 0));
  }
  return success();
}

LogicalResult KernelBuilder::tail() {
  auto runs = func->getAttrOfType<ArrayAttr>(kTailAttr);
  for (Attribute run : runs ? runs.getValue() : ArrayRef<Attribute>()) {
    auto text = dyn_cast<StringAttr>(run);
    auto [word, count] = (text ? text.getValue() : StringRef()).split(" x");
    APInt bits;
    unsigned n = 1;
    if (!word.consume_front("0x") || word.getAsInteger(16, bits) || bits.getActiveBits() > 128 ||
        (!count.empty() && count.getAsInteger(10, n)) || n > (1u << 24))
      return func.emitOpError() << "has a " << kTailAttr << " that is no list of words";
    bits = bits.zextOrTrunc(128);
    tailWords.insert(tailWords.end(), n, {bits.extractBitsAsZExtValue(64, 0), bits.extractBitsAsZExtValue(64, 64)});
  }
  return success();
}

LogicalResult KernelBuilder::run() {
  if (!engine)
    return func.emitOpError("cannot be lowered: no sass engine is loaded");
  if (failed(tail()))
    return failure();
  llvm::DenseMap<Block *, uint32_t> blockIds;
  for (Block &block : func.getBody()) {
    blockIds.try_emplace(&block, blockIds.size());
    blockStart.push_back(kinds.size());
    for (Operation &op : block) {
      if (failed(define(op)))
        return failure();
      resultStart.push_back(pins.size());
    }
  }
  blockStart.push_back(kinds.size());
  for (auto [block, blockPins] : llvm::zip(func.getBody(), getArgumentPins(func))) {
    argStart.push_back(pins.size() - resultStart.back());
    for (auto [arg, pin] : llvm::zip(block.getArguments(), blockPins)) {
      ids.try_emplace(arg, pins.size());
      pins.push_back(pin);
    }
  }
  argStart.push_back(pins.size() - resultStart.back());
  for (Block &block : func.getBody()) {
    for (Operation &op : block) {
      ArrayRef<int32_t> segments = getSuccessorSegments(&op);
      uint32_t passed = 0;
      for (int32_t n : segments)
        passed += n;
      uint32_t own = op.getNumOperands() - passed;
      if (failed(uses(op, 0, own, operands)))
        return failure();
      operandStart.push_back(operands.size());
      for (auto [index, successor] : llvm::enumerate(op.getSuccessors())) {
        uint32_t count = index < segments.size() ? segments[index] : 0;
        edges.push_back({blockIds[successor], uint32_t(edgeArgs.size())});
        if (failed(uses(op, own, count, edgeArgs)))
          return failure();
        own += count;
      }
    }
    edgeStart.push_back(edges.size());
  }
  return success();
}

void KernelBuilder::emit(void (*out)(void *, const SassKernel *), void *user) {
  StringRef name = func.getSymName(), sm = func.getSm();
  SassKernel kernel = {{name.data(), name.size()},
                       {sm.data(), sm.size()},
                       tailWords.data(),
                       uint32_t(tailWords.size()),
                       uint32_t(kinds.size()),
                       uint32_t(blockStart.size() - 1),
                       uint32_t(layouts.size()),
                       kinds.data(),
                       words.data(),
                       layout.data(),
                       labels.data(),
                       operandStart.data(),
                       operands.data(),
                       resultStart.data(),
                       pins.data(),
                       blockStart.data(),
                       argStart.data(),
                       edgeStart.data(),
                       edges.data(),
                       edgeArgs.data(),
                       layouts.data()};
  out(user, &kernel);
}

bool sassFuncToKernel(MlirOperation op, void (*out)(void *user, const SassKernel *kernel), void *user) {
  auto func = dyn_cast<FuncOp>(unwrap(op));
  if (!func)
    return unwrap(op)->emitOpError("is no sass.func"), false;
  KernelBuilder kernel(func);
  if (failed(kernel.run()))
    return false;
  kernel.emit(out, user);
  return true;
}

namespace {
/// Hands text on in large pieces.
class SinkStream : public raw_ostream {
public:
  SinkStream(SassSink sink, void *user) : sink(sink), user(user) { SetBufferSize(1 << 16); }
  ~SinkStream() override { flush(); }

private:
  void write_impl(const char *data, size_t size) override {
    sink(user, data, size);
    passed += size;
  }
  uint64_t current_pos() const override { return passed; }

  SassSink sink;
  void *user;
  uint64_t passed = 0;
};
} // namespace

void sassPrint(MlirModule module, SassSink sink, void *user) {
  SinkStream stream(sink, user);
  unwrap(module)->print(stream, OpPrintingFlags().assumeVerified());
}

void sassForEachFunc(MlirModule module, void (*each)(void *user, MlirOperation func), void *user) {
  for (FuncOp func : unwrap(module).getOps<FuncOp>())
    each(user, wrap(func.getOperation()));
}

bool sassLoadPassPlugin(MlirStringRef path, SassSink error, void *user) {
  auto plugin = PassPlugin::load(unwrap(path).str());
  if (!plugin) {
    std::string message = llvm::toString(plugin.takeError());
    error(user, message.data(), message.size());
    return false;
  }
  plugin->registerPassRegistryCallbacks();
  return true;
}
