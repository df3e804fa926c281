//===- InstAsm.cpp - the text of instructions -----------------------------------------------------------===//
//
// lit/GRAMMAR.md is the text. Its operand syntax belongs to the engine: here the tokens between the op's name and the word are
// gathered into a skeleton, in which SASS_MARK stands for each SSA value, which is held against that of the word. Printing is the
// same the other way round.
//
//===----------------------------------------------------------------------------------------------------===//

#include "InstAsm.h"
#include "Sass/Sass.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sass;

static StringRef ref(SassStr s) { return {s.data, s.size}; }
static void appendTo(void *user, const char *data, size_t size) { static_cast<std::string *>(user)->append(data, size); }

static thread_local int currentTarget = -1;

asmparse::FunctionScope::FunctionScope(uint8_t target) : outer(currentTarget) { currentTarget = target; }
asmparse::FunctionScope::~FunctionScope() { currentTarget = outer; }

//===-- Names -------------------------------------------------------------------------------------------===//

/// The registered op of "sass.LDG_0x981.E.128" or "sass.opaque".
static std::optional<RegisteredOperationName> lookup(StringRef name, MLIRContext *context) {
  StringRef base = name.take_front(name.find('.', name.find('.') + 1));
  size_t opcode = base.rfind("_0x");
  if (opcode == StringRef::npos && base != "sass.opaque")
    return std::nullopt;
  auto registered = RegisteredOperationName::lookup(base.take_front(opcode), context);
  if (!registered || !registered->hasInterface<SassInst>())
    return std::nullopt;
  return registered;
}

bool asmparse::isInstructionName(StringRef name, MLIRContext *context) { return lookup(name, context).has_value(); }

//===-- Parsing -----------------------------------------------------------------------------------------===//

namespace {
/// Gathers the tokens of an instruction.
class Scanner {
public:
  explicit Scanner(OpAsmParser &parser) : parser(parser) {}

  std::string text;
  SmallVector<OpAsmParser::UnresolvedOperand, 8> operands;

  /// Reads up to a colon, a successor, a clause behind the operands, the word `raw` or the end, none of which it consumes but `raw` and the
  /// colon.
  ParseResult run();
  bool sawRaw = false, sawColon = false;
  bool hasOffset = false;            // a `rel(...)`
  uint32_t label = SASS_LABEL_NONE; // of a `label(...)`

private:
  /// The source from the next token on; it ends with a NUL. (Its length is that of the rest of the file: never ask for it.)
  const char *source() { return parser.getCurrentLocation().getPointer(); }
  /// Whether a clause of that name comes next.
  bool clause(StringRef name) {
    const char *at = source();
    if (strncmp(at, name.data(), name.size()))
      return false;
    for (at += name.size(); llvm::isSpace(*at);)
      ++at;
    return *at == '(';
  }
  /// Appends a token. Only two words side by side need a space, whatever the source had.
  void append(StringRef token, bool word = false) {
    if (word && lastWasWord)
      text += ' ';
    text += token;
    lastWasWord = word;
  }
  bool punctuation();

  OpAsmParser &parser;
  bool lastWasWord = true; // the op's name
  int depth = 0;
};
} // namespace

bool Scanner::punctuation() {
  auto one = [&](ParseResult result, StringRef spelling, int change = 0) {
    if (failed(result))
      return false;
    append(spelling);
    depth += change;
    return true;
  };
  return one(parser.parseOptionalComma(), ",") || one(parser.parseOptionalMinus(), "-") ||
         one(parser.parseOptionalVerticalBar(), "|") || one(parser.parseOptionalLParen(), "(", 1) ||
         one(parser.parseOptionalRParen(), ")", -1) || one(parser.parseOptionalLSquare(), "[", 1) ||
         one(parser.parseOptionalRSquare(), "]", -1) || one(parser.parseOptionalLess(), "<", 1) ||
         one(parser.parseOptionalGreater(), ">", -1) || one(parser.parseOptionalLBrace(), "{", 1) ||
         one(parser.parseOptionalRBrace(), "}", -1) || one(parser.parseOptionalPlus(), "+") ||
         one(parser.parseOptionalStar(), "*") || one(parser.parseOptionalEqual(), "=");
}

ParseResult Scanner::run() {
  while (true) {
    OpAsmParser::UnresolvedOperand operand;
    OptionalParseResult found = parser.parseOptionalOperand(operand);
    if (found.has_value()) {
      if (failed(*found))
        return failure();
      operands.push_back(operand);
      append(StringRef("\x01@@", 3), /*word=*/true);
      continue;
    }
    if (depth == 0 && succeeded(parser.parseOptionalKeyword("raw"))) {
      sawRaw = true;
      return success();
    }
    StringRef keyword;
    if (depth == 0 && (clause("reads") || clause("writes") || clause("regs") || clause("sched")))
      return success();
    if (succeeded(parser.parseOptionalKeyword("label"))) {
      uint64_t id;
      if (parser.parseLParen() || parser.parseInteger(id) || parser.parseRParen())
        return failure();
      label = id;
      append("label(" + std::to_string(id) + ")");
      continue;
    }
    if (succeeded(parser.parseOptionalKeyword(&keyword))) {
      hasOffset |= keyword == "rel";
      append(keyword, /*word=*/true);
      continue;
    }
    // The spelling of a number counts: its digits give the width. So it is taken from the source.
    if (const char *digits = source(), *end = digits; llvm::isDigit(*digits)) {
      while (llvm::isAlnum(*end))
        ++end;
      APInt value;
      if (parser.parseOptionalInteger(value).has_value()) {
        append({digits, size_t(end - digits)}, /*word=*/true);
        continue;
      }
    }
    std::string quoted;
    if (succeeded(parser.parseOptionalString(&quoted))) {
      append("\"" + quoted + "\"", /*word=*/true);
      continue;
    }
    if (depth == 0 && succeeded(parser.parseOptionalColon())) {
      sawColon = true;
      return success();
    }
    if (!punctuation())
      return success();
    if (depth < 0)
      return parser.emitError(parser.getCurrentLocation(), "unbalanced bracket in an instruction");
  }
}

OptionalParseResult asmparse::parseOptionalSuccessor(OpAsmParser &parser, OperationState &state,
                                                     SmallVectorImpl<Value> &values, SmallVectorImpl<int32_t> &segments) {
  Block *block;
  OptionalParseResult found = parser.parseOptionalSuccessor(block);
  if (!found.has_value() || failed(*found))
    return found;
  size_t before = values.size();
  if (succeeded(parser.parseOptionalLParen())) {
    SmallVector<OpAsmParser::UnresolvedOperand, 4> operands;
    SmallVector<Type, 4> types;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseOperandList(operands) || parser.parseColonTypeList(types) || parser.parseRParen() ||
        parser.resolveOperands(operands, types, loc, values))
      return ParseResult(failure());
  }
  state.addSuccessors(block);
  segments.push_back(values.size() - before);
  return ParseResult(success());
}

static StringRef getTypeName(Type type) {
  return llvm::TypeSwitch<Type, StringRef>(type)
      .Case([](RegType) { return "!sass.reg"; })
      .Case([](URegType) { return "!sass.ureg"; })
      .Case([](PredType) { return "!sass.pred"; })
      .Case([](UPredType) { return "!sass.upred"; })
      .Case([](BarrierType) { return "!sass.barrier"; })
      .Case([](ImmType) { return "!sass.imm"; })
      .Default(StringRef());
}

/// `(t, t) -> (t)`: the operands' as text, the results' as types.
static ParseResult parseTypes(OpAsmParser &parser, std::string &inputs, SmallVectorImpl<Type> &results) {
  auto list = [&](auto each) {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&]() -> ParseResult {
      Type type;
      if (parser.parseType(type))
        return failure();
      each(type);
      return success();
    });
  };
  auto input = [&](Type type) {
    inputs += inputs.empty() ? "" : ", ";
    inputs += getTypeName(type);
  };
  return failure(list(input) || parser.parseArrow() || list([&](Type type) { results.push_back(type); }));
}

/// `reads(%1, %2 : !sass.reg, !sass.reg) writes("R4", "P0")` of a call or return. The scanner has left the first keyword unread.
static ParseResult parseCallEffects(OpAsmParser &parser, SmallVectorImpl<Value> &reads, SmallVectorImpl<Attribute> &writes) {
  if (succeeded(parser.parseOptionalKeyword("reads"))) {
    SmallVector<OpAsmParser::UnresolvedOperand> operands;
    SmallVector<Type> types;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseLParen() || parser.parseOperandList(operands) || parser.parseColonTypeList(types) || parser.parseRParen() ||
        parser.resolveOperands(operands, types, loc, reads))
      return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("writes")))
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&]() -> ParseResult {
      std::string name;
      SMLoc loc = parser.getCurrentLocation();
      if (parser.parseString(&name))
        return failure();
      if (!parsePin(name))
        return parser.emitError(loc, "expected a register");
      writes.push_back(parser.getBuilder().getStringAttr(name));
      return success();
    });
  return success();
}

/// White space between tokens does not count, and skeletons come without it from the scanner.
static std::string squeeze(StringRef text) {
  std::string out;
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$' || c == SASS_MARK || c == '"'; };
  bool quoted = false, space = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ' ' && !quoted) {
      space = true;
      continue;
    }
    if (space && !out.empty() && isWord(out.back()) && isWord(c))
      out += ' ';
    space = false;
    quoted ^= c == '"';
    out += c;
    if (c == SASS_MARK)
      i += 2; // the index
  }
  return out;
}

/// The operand of each mark, in the order of the text.
static SmallVector<unsigned> markedOperands(StringRef skeleton) {
  SmallVector<unsigned> order;
  for (size_t i = 0; i + 2 < skeleton.size(); ++i)
    if (skeleton[i] == SASS_MARK)
      order.push_back((skeleton[i + 1] & 0x3f) | (skeleton[i + 2] & 0x3f) << 6);
  return order;
}

/// A squeezed skeleton as people read it.
static std::string readable(StringRef skeleton) {
  std::string out;
  for (char c : skeleton)
    out += c == SASS_MARK ? std::string("%_") : std::string(1, c);
  return out;
}

/// The digits behind `raw`.
static ParseResult parseWord(OpAsmParser &parser, SassWord &word) {
  SMLoc loc = parser.getCurrentLocation();
  const char *end = loc.getPointer();
  while (llvm::isAlnum(*end))
    ++end;
  APInt bits;
  if (parser.parseInteger(bits))
    return failure();
  if (end - loc.getPointer() != kWordDigits || bits.getActiveBits() > 128)
    return parser.emitError(loc, "expected `0x` and 32 hexadecimal digits");
  bits = bits.zextOrTrunc(128);
  word = {bits.extractBitsAsZExtValue(64, 0), bits.extractBitsAsZExtValue(64, 64)};
  return success();
}

ParseResult asmparse::parseInst(OpAsmParser &parser, OperationState &state) {
  MLIRContext *context = parser.getContext();
  SMLoc loc = parser.getNameLoc();
  const SassEngine *engine = getEngine();
  if (!engine)
    return parser.emitError(loc, "no sass engine is loaded, so instructions cannot be read");
  if (currentTarget < 0)
    return parser.emitError(loc, "an instruction has this form only inside a sass.func that is not in generic form");
  uint8_t target = currentTarget;
  StringRef fullName = state.name.getStringRef();
  RegisteredOperationName registered = *lookup(fullName, context);

  Scanner scanner(parser);
  scanner.text = fullName.drop_front(strlen("sass.")).str();
  SmallVector<Value> reads, successorValues;
  SmallVector<Attribute> writes;
  SmallVector<int32_t> segments;
  if (scanner.run())
    return failure();
  if (!scanner.sawRaw && !scanner.sawColon) {
    if (parseCallEffects(parser, reads, writes))
      return failure();
    while (true) {
      OptionalParseResult found = parseOptionalSuccessor(parser, state, successorValues, segments);
      if (found.has_value() && failed(*found))
        return failure();
      if (!found.has_value() || failed(parser.parseOptionalComma()))
        break;
    }
    scanner.sawRaw = succeeded(parser.parseOptionalKeyword("raw"));
  }

  InstData data;
  data.label = scanner.label;
  Wordless wordless;
  SMLoc wordLoc = parser.getCurrentLocation();
  SassWord word;
  if (scanner.sawRaw ? parseWord(parser, word) : wordless.parse(parser, loc))
    return failure();
  bool hasTypes = scanner.sawColon || succeeded(parser.parseOptionalColon());
  std::string textInputs;
  SmallVector<Type> textResults;
  SMLoc typeLoc = parser.getCurrentLocation();
  if (hasTypes && parseTypes(parser, textInputs, textResults))
    return failure();
  if (!scanner.sawRaw && wordless.assemble(parser, loc, target, squeeze(scanner.text), textInputs, word))
    return failure();
  if (!data.set(target, word))
    return parser.emitError(wordLoc, "the tables of ") << ref(engine->targetName(target)) << " are not built in";
  data.unbound = !scanner.sawRaw;
  if (data.layout->hasLabel && data.label == SASS_LABEL_NONE && !scanner.hasOffset)
    data.label = SASS_LABEL_SUCCESSOR;
  std::string actual;
  if (!data.isOpaque())
    engine->skeleton(data.layout, data.word, data.label, appendTo, &actual);
  std::string wanted = data.isOpaque() ? "opaque" : squeeze(actual);
  if (wanted != squeeze(scanner.text))
    return parser.emitError(loc, "the instruction disagrees with its word, which is `") << readable(wanted) << "`";

  SmallVector<Type> operandTypes, resultTypes;
  for (SassPin pin : getOperandPins(data))
    operandTypes.push_back(getRegisterType(context, getPinFile(pin)));
  for (SassPin pin : getResultPins(data))
    resultTypes.push_back(getRegisterType(context, getPinFile(pin)));
  for (Attribute pin : writes)
    resultTypes.push_back(getRegisterType(context, getPinFile(*parsePin(cast<StringAttr>(pin).getValue()))));
  // In the text merged values stand before hidden operands: the marks tell the order.
  SmallVector<unsigned> order = markedOperands(actual);
  if (order.size() != scanner.operands.size() || order.size() != operandTypes.size())
    return parser.emitError(loc) << "expected " << operandTypes.size() << " values, found " << scanner.operands.size();
  SmallVector<Value> operands(order.size());
  for (auto [index, operand] : llvm::zip(order, scanner.operands)) {
    SmallVector<Value, 1> resolved;
    if (index >= operands.size() || parser.resolveOperand(operand, operandTypes[index], resolved))
      return failure();
    operands[index] = resolved.front();
  }
  // The types follow from the word; a list in the text has to agree.
  if (hasTypes && (textInputs != (data.isOpaque() ? StringRef() : ref(data.layout->types)) || textResults != resultTypes))
    return parser.emitError(typeLoc, "the types disagree with the instruction's word");
  if (parser.parseOptionalAttrDict(state.attributes))
    return failure();
  state.addOperands(operands);
  state.addOperands(reads);
  state.addOperands(successorValues);
  state.addTypes(resultTypes);
  if (registered.getStringRef() == "sass.CALL" && !segments.empty())
    registered = *RegisteredOperationName::lookup("sass.CALL_", context);
  state.name = registered; // the text's dotted name is no registered op's
  registered.getInterface<SassInst>()->initState(state, data);
  if (!segments.empty())
    state.addAttribute("succ", parser.getBuilder().getDenseI32ArrayAttr(segments));
  if (!writes.empty())
    state.addAttribute("writes", parser.getBuilder().getArrayAttr(writes));
  return success();
}

//===-- Printing ----------------------------------------------------------------------------------------===//

bool asmparse::canPrint(Operation *op) {
  auto inst = dyn_cast<SassInst>(op);
  if (!inst || !getEngine())
    return false;
  const InstData &data = inst.getInstData();
  if (!data.layout)
    return false;
  return getClassName(data.layout, op->getNumSuccessors()) == op->getName().stripDialect() &&
         (data.isOpaque() || data.layout->reads <= op->getNumOperands());
}

namespace {
struct Filler {
  OpAsmPrinter &printer;
  Operation *op;
  size_t skip; // the part of the text that the printer has written: the op's registered name
};
} // namespace

/// Prints a piece of a skeleton with the names of values in place of marks. Marks are not split over pieces.
static void fill(void *user, const char *data, size_t size) {
  auto &filler = *static_cast<Filler *>(user);
  raw_ostream &os = filler.printer.getStream();
  StringRef text(data, size);
  size_t skip = std::min(filler.skip, size);
  filler.skip -= skip;
  text = text.drop_front(skip);
  while (true) {
    size_t mark = text.find(SASS_MARK);
    os << text.take_front(mark);
    if (mark == StringRef::npos)
      return;
    unsigned index = (text[mark + 1] & 0x3f) | (text[mark + 2] & 0x3f) << 6;
    if (index < filler.op->getNumOperands())
      filler.printer.printOperand(filler.op->getOperand(index));
    text = text.drop_front(mark + 3);
  }
}

static void printTypedValues(OpAsmPrinter &printer, OperandRange values) {
  printer << values << " : ";
  llvm::interleaveComma(values.getTypes(), printer.getStream(), [&](Type type) { printer.getStream() << getTypeName(type); });
}

void asmparse::printSuccessors(OpAsmPrinter &printer, Operation *op, unsigned first, ArrayRef<int32_t> segments) {
  for (auto [index, successor] : llvm::enumerate(op->getSuccessors())) {
    printer << (index ? ", " : " ");
    unsigned count = index < segments.size() ? segments[index] : 0;
    printer.printSuccessorAndUseList(successor, op->getOperands().slice(first, count));
    first += count;
  }
}

void asmparse::printInst(Operation *op, OpAsmPrinter &printer) {
  const SassEngine *engine = getEngine();
  const InstData &data = cast<SassInst>(op).getInstData();
  raw_ostream &os = printer.getStream();
  // MLIR prints everything twice, first into a stream that keeps nothing, to find the attributes and types that need an alias. The op's
  // name is in front, so a position of 0 tells.
  if (os.tell() == 0)
    return printer.printOptionalAttrDict(op->getDiscardableAttrDictionary().getValue());
  ArrayRef<int32_t> segments = getSuccessorSegments(op);
  unsigned passed = 0;
  for (int32_t n : segments)
    passed += n;
  if (!data.isOpaque()) {
    Filler filler{printer, op, op->getName().stripDialect().size()};
    engine->skeleton(data.layout, data.word, data.label, fill, &filler);
    if (data.layout->isCall) {
      unsigned own = engine->operands(data.layout, data.word, nullptr, 0);
      if (own + passed < op->getNumOperands()) {
        os << " reads(";
        printTypedValues(printer, op->getOperands().slice(own, op->getNumOperands() - passed - own));
        os << ')';
      }
      if (auto writes = op->getInherentAttr("writes"); writes && *writes && !cast<ArrayAttr>(*writes).empty()) {
        os << " writes(";
        llvm::interleaveComma(cast<ArrayAttr>(*writes), os);
        os << ')';
      }
    }
  }
  printSuccessors(printer, op, op->getNumOperands() - passed, segments);
  char text[kWordDigits];
  os << " raw " << formatWord(data.word, text);
  StringRef types = data.isOpaque() ? StringRef() : ref(data.layout->types);
  if (!types.empty() || op->getNumResults()) {
    os << " : (" << types << ") -> (";
    llvm::interleaveComma(op->getResultTypes(), os, [&](Type type) { os << getTypeName(type); });
    os << ')';
  }
  printer.printOptionalAttrDict(op->getDiscardableAttrDictionary().getValue());
}
