//===- Sass.h - the dialect, its types, and all ops that are no instructions --------------------------===//

#ifndef SASS_SASS_H
#define SASS_SASS_H

#include "Sass/InstData.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"

namespace sass {
class FuncOp;
} // namespace sass

#include "Sass/SassDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "Sass/SassTypes.h.inc"

#include "Sass/SassInterfaces.h.inc"

#define GET_OP_CLASSES
#include "Sass/SassOps.h.inc"

namespace sass {
/// Attribute of the builtin.unrealized_conversion_cast that stands for a register's value at entry: "R4".
constexpr llvm::StringLiteral kPinAttr = "sass.pin";
/// Attribute of a function: for every block the registers of its arguments.
constexpr llvm::StringLiteral kPinsAttr = "pins";
/// Attribute of a function: the words behind the code, as runs ("0x..." or "0x... x7").
constexpr llvm::StringLiteral kTailAttr = "tail";

/// Attribute of a function while `sass2mlir apply` runs passes over it: the entries of its configuration that name it.
constexpr llvm::StringLiteral kEntriesAttr = "sass.entries";
/// Attribute of a function: where its parameters begin and end in constant bank 0, in bytes.
constexpr llvm::StringLiteral kParamsAttr = "sass.params";
/// Attribute of a function: byte offsets, ascending, of instructions that its file names, and that stay what and where they are.
constexpr llvm::StringLiteral kPinnedAttr = "sass.pinned";
/// Attribute of a function: registers, threads of a block (0: not known), bytes of shared memory.
constexpr llvm::StringLiteral kResourcesAttr = "sass.resources";
/// Attribute of a function: registers that the file names, as SassPin.
constexpr llvm::StringLiteral kFixedAttr = "sass.fixed";

/// A field of an instruction's word, by its name in the tables ("2.X0"), and what it is to be.
struct FieldValue {
  llvm::StringRef name;
  int64_t value;
};

/// A form of a target by name ("MOV_0x202_R_R_X"). None, with a diagnostic that says which there are.
std::optional<FormId> findForm(mlir::Location loc, llvm::StringRef sm, llvm::StringRef name);

/// Makes an instruction for the function that it is put into.
///
/// `operands` are what it reads: the guard, then its sources in the order of the text, and where the guard is not constant true the previous
/// values of what it writes. Their registers go into the word. `fields` are the rest: immediates, and the registers of the results ("0.R0");
/// a destination that is not given is RZ or PT, and no result. `modifiers` are all of them (".FTZ.RZ"). Whatever is not said is as in the
/// form's filler, scheduling included. Null with a diagnostic when they do not fit, or when it would end a block.
SassInst buildInst(mlir::RewriterBase &rewriter, mlir::Location loc, FormId form, mlir::ValueRange operands,
                   llvm::ArrayRef<FieldValue> fields = {}, llvm::StringRef modifiers = "");
SassInst buildInst(mlir::RewriterBase &rewriter, mlir::Location loc, llvm::StringRef form, mlir::ValueRange operands,
                   llvm::ArrayRef<FieldValue> fields = {}, llvm::StringRef modifiers = "");
/// Of a word that is complete: what it names as read are `operands`, in its order.
SassInst buildInst(mlir::RewriterBase &rewriter, mlir::Location loc, const InstData &data, mlir::ValueRange operands);

/// The registers of all block arguments, by block. What an edit made the attribute forget follows from what flows into the block.
llvm::SmallVector<Pins> getArgumentPins(FuncOp func);
/// The same of code whose function has that attribute `pins`, or none.
llvm::SmallVector<Pins> getArgumentPins(mlir::Region &code, mlir::ArrayAttr pins);
/// How many values each successor of an op of this dialect gets; they are its last operands.
llvm::ArrayRef<int32_t> getSuccessorSegments(mlir::Operation *op);
/// `0x` and 32 digits.
constexpr size_t kWordDigits = 34;
llvm::StringRef formatWord(SassWord word, char (&text)[kWordDigits]);
} // namespace sass

#endif // SASS_SASS_H
