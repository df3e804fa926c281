//===- InstAsm.h - the text of instructions -------------------------------------------------------------===//

#ifndef SASS_LIB_IR_INSTASM_H
#define SASS_LIB_IR_INSTASM_H

#include "Sass/InstData.h"
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

/// `regs("R4", "PT") sched("B------:R-:W-:-:S04")`, which stands in place of the word.
class Wordless {
public:
  /// `loc` is that of the instruction.
  mlir::ParseResult parse(mlir::OpAsmParser &parser, llvm::SMLoc loc);
  /// The word, but for the registers of its operands.
  mlir::ParseResult assemble(mlir::OpAsmParser &parser, llvm::SMLoc loc, uint8_t target, llvm::StringRef text, llvm::StringRef types,
                             SassWord &word);

private:
  Pins registers;
  std::string schedule;
};
/// Writes the registers of the operands into words that `Wordless` made. `pins` are the registers of block arguments.
mlir::LogicalResult bindOperands(mlir::Region &code, mlir::ArrayAttr pins);

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
