//===- ToKernel.cpp - a sass.func as a kernel's arrays ----------------------------------------------------===//

#include "Sass/Kernel.h"

using namespace mlir;
using namespace sass;

LogicalResult KernelArrays::define(SassInst inst, Operation &op) {
  const InstData &data = inst.getInstData();
  if (!data.layout)
    return op.emitOpError("has no instruction word");
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

LogicalResult KernelArrays::define(Operation &op) {
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

LogicalResult KernelArrays::uses(Operation &op, uint32_t first, uint32_t count, std::vector<uint32_t> &out) {
  for (Value value : op.getOperands().slice(first, count)) {
    auto result = dyn_cast<OpResult>(value);
    auto found = ids.find(result ? result.getOwner()->getResult(0) : value);
    if (found == ids.end())
      return op.emitOpError("uses a value from outside the function");
    out.push_back(found->second + (result ? result.getResultNumber() : 0));
  }
  return success();
}

LogicalResult KernelArrays::tail() {
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

LogicalResult KernelArrays::fill() {
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

SassKernel KernelArrays::view() {
  StringRef name = func.getSymName(), sm = func.getSm();
  return {{name.data(), name.size()},
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
}
