//===- SassDialect.cpp - registration, the engine, types ------------------------------------------------===//

#include "Sass/Sass.h"
#include "InstAsm.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <atomic>

using namespace mlir;
using namespace sass;

static std::atomic<const SassEngine *> engine = nullptr;

const SassEngine *sass::getEngine() { return engine.load(std::memory_order_acquire); }

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT int32_t sassSetEngine(const SassEngine *table) {
  if (table && (table->abi != SASS_ENGINE_ABI || table->size < sizeof(SassEngine)))
    return -1;
  engine.store(table, std::memory_order_release);
  return 0;
}

Type sass::getRegisterType(MLIRContext *context, uint8_t file) {
  switch (file) {
  case SASS_FILE_R:
    return RegType::get(context);
  case SASS_FILE_UR:
    return URegType::get(context);
  case SASS_FILE_P:
    return PredType::get(context);
  case SASS_FILE_UP:
    return UPredType::get(context);
  case SASS_FILE_B:
    return BarrierType::get(context);
  }
  llvm_unreachable("the engine hands out register files of its header only");
}

StringRef sass::getFileName(uint8_t file) {
  constexpr StringLiteral names[] = {"R", "UR", "P", "UP", "B"};
  return file < std::size(names) ? StringRef(names[file]) : StringRef("?");
}

void SassDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "Sass/SassTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Sass/SassOps.cpp.inc"
      >();
  registerInstructions();
}

std::optional<Dialect::ParseOpHook> SassDialect::getParseOperationHook(StringRef name) const {
  if (asmparse::isInstructionName(name, getContext()))
    return ParseOpHook(asmparse::parseInst);
  return std::nullopt;
}

llvm::unique_function<void(Operation *, OpAsmPrinter &)> SassDialect::getOperationPrinter(Operation *op) const {
  if (asmparse::canPrint(op))
    return asmparse::printInst;
  return nullptr; // generic form
}

#include "Sass/SassDialect.cpp.inc"
#include "Sass/SassInterfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "Sass/SassTypes.cpp.inc"
