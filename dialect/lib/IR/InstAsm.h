//===- InstAsm.h - the text of instructions -------------------------------------------------------------===//

#ifndef SASS_LIB_IR_INSTASM_H
#define SASS_LIB_IR_INSTASM_H

#include "mlir/IR/OpImplementation.h"

namespace sass::asmparse {

/// While one exists, instructions that this thread parses are those of its target: op hooks cannot see the enclosing function.
class FunctionScope {
public:
  explicit FunctionScope(uint8_t target);
  ~FunctionScope();
  FunctionScope(const FunctionScope &) = delete;

private:
  int outer;
};

/// Whether `name` ("sass.FFMA_0x223.FTZ") is an instruction's.
bool isInstructionName(llvm::StringRef name, mlir::MLIRContext *context);
mlir::ParseResult parseInst(mlir::OpAsmParser &parser, mlir::OperationState &state);

/// Whether `op` is an instruction whose text the engine can give.
bool canPrint(mlir::Operation *op);
void printInst(mlir::Operation *op, mlir::OpAsmPrinter &printer);

/// `^bb1(%2, %3 : !sass.reg, !sass.reg)`, or nothing (has_value() is false).
mlir::OptionalParseResult parseOptionalSuccessor(mlir::OpAsmParser &parser, mlir::OperationState &state,
                                                 llvm::SmallVectorImpl<mlir::Value> &values,
                                                 llvm::SmallVectorImpl<int32_t> &segments);
void printSuccessors(mlir::OpAsmPrinter &printer, mlir::Operation *op, unsigned first, llvm::ArrayRef<int32_t> segments);

} // namespace sass::asmparse

#endif // SASS_LIB_IR_INSTASM_H
