//===- Wordless.cpp - instructions whose text has no word -----------------------------------------------===//
//
// The engine puts the word together from the text, the registers that are written and the scheduling. The registers of the operands are
// those of their values, which are known when the whole function is read.
//
//===----------------------------------------------------------------------------------------------------===//

#include "InstAsm.h"
#include "Sass/Sass.h"

#include <map>

using namespace mlir;
using namespace sass;

static SassStr str(StringRef s) { return {s.data(), s.size()}; }
static void appendTo(void *user, const char *data, size_t size) { static_cast<std::string *>(user)->append(data, size); }

/// "R4", "PT".
static std::optional<SassPin> parseRegister(StringRef name) {
  for (unsigned file : {SASS_FILE_R, SASS_FILE_UR, SASS_FILE_P, SASS_FILE_UP})
    if (SassPin zero = file << 8 | 0x800; name == getPinName(zero))
      return zero;
  return parsePin(name);
}

ParseResult asmparse::Wordless::parse(OpAsmParser &parser, SMLoc loc) {
  auto pin = [&]() -> ParseResult {
    std::string name;
    SMLoc nameLoc = parser.getCurrentLocation();
    if (parser.parseString(&name))
      return failure();
    std::optional<SassPin> found = parseRegister(name);
    if (!found)
      return parser.emitError(nameLoc, "`") << name << "` is no register";
    registers.push_back(*found);
    return success();
  };
  if (succeeded(parser.parseOptionalKeyword("regs")) && parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, pin))
    return failure();
  if (failed(parser.parseOptionalKeyword("sched")))
    return parser.emitError(loc, "the instruction has no `raw 0x<32 digits>` and no `sched(\"...\")`, and its text tells neither registers "
                                 "nor scheduling");
  return failure(parser.parseLParen() || parser.parseString(&schedule) || parser.parseRParen());
}

ParseResult asmparse::Wordless::assemble(OpAsmParser &parser, SMLoc loc, uint8_t target, StringRef text, StringRef types,
                                         SassWord &word) {
  std::string error;
  if (getEngine()->assemble(target, str(text), str(types), registers.data(), registers.size(), str(schedule), &word, appendTo, &error))
    return parser.emitError(loc) << error;
  return success();
}

namespace {
/// Where everything is in the code, as byte offsets.
class Places {
public:
  explicit Places(Region &code) {
    int64_t at = 0;
    for (Block &block : code) {
      blocks[&block] = at;
      for (Operation &op : block)
        if (auto label = dyn_cast<LabelOp>(op))
          labels[label.getId()] = at;
        else if (isa<SassInst>(op))
          behind[&op] = at += 16;
    }
  }

  /// How far the place that the code label of an instruction names is from the next instruction. None without one; a label that does not
  /// exist is found wrong later.
  std::optional<int64_t> distance(SassInst inst) {
    uint32_t label = inst.getInstData().label;
    int64_t from = behind.lookup(inst);
    if (label == SASS_LABEL_SUCCESSOR && inst->getNumSuccessors())
      return blocks.lookup(inst->getSuccessor(0)) - from;
    auto found = labels.find(label);
    return found == labels.end() ? std::nullopt : std::optional(found->second - from);
  }

private:
  llvm::DenseMap<Block *, int64_t> blocks;
  llvm::DenseMap<Operation *, int64_t> behind;
  std::map<uint32_t, int64_t> labels;
};
} // namespace

LogicalResult asmparse::bindOperands(Region &code, ArrayAttr pins) {
  // Most functions have none.
  SmallVector<SassInst> unbound;
  code.walk([&](SassInst inst) {
    if (inst.getInstData().unbound)
      unbound.push_back(inst);
  });
  if (unbound.empty())
    return success();
  llvm::DenseMap<Value, SassPin> arguments;
  for (auto [block, own] : llvm::zip(code, getArgumentPins(code, pins)))
    for (auto [argument, pin] : llvm::zip(block.getArguments(), own))
      arguments[argument] = pin;
  Places places(code);
  for (SassInst inst : unbound) {
    InstData &data = inst.getInstData();
    Pins operands;
    for (Value value : inst->getOperands().take_front(getOperandPins(data).size())) {
      auto known = arguments.find(value);
      std::optional<SassPin> pin = known != arguments.end() ? known->second : isa<OpResult>(value) ? getValuePin(value) : std::nullopt;
      if (!pin)
        return inst->emitOpError("reads a value that is in no known register");
      operands.push_back(*pin);
    }
    SassWord word = data.word;
    std::optional<int64_t> label = places.distance(inst);
    std::string error;
    if (getEngine()->bind(data.layout, &word, operands.data(), operands.size(), label ? &*label : nullptr, appendTo, &error))
      return inst->emitOpError() << "cannot be put together: " << error;
    data.set(data.layout->target, word);
    data.unbound = false;
  }
  return success();
}
