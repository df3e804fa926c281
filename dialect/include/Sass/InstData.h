//===- InstData.h - the word of an instruction, inline in its op --------------------------------------===//

#ifndef SASS_INSTDATA_H
#define SASS_INSTDATA_H

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "sass_engine.h"

#include <string>

#include "Sass/SassEnums.h.inc"

namespace sass {

/// The number of a form among those of its target, within this process.
enum class FormId : uint16_t {};
constexpr FormId kOpaqueForm{SASS_FORM_OPAQUE};

/// The table of functions that `sassSetEngine` installed, or null.
const SassEngine *getEngine();

/// The inline property of every instruction op: the word, and what its target, form and modifiers make of it.
///
/// Two instructions are equal when they compute the same from the same operands: registers, scheduling control and don't-care bits
/// do not count. An instruction that depends on which lanes are active equals only itself.
struct InstData {
  SassWord word = {0, 0};
  const SassLayout *layout = nullptr; // null: no word yet
  uint32_t label = SASS_LABEL_NONE;   // of a code operand that is no successor
  bool converged = false;             // all lanes of the warp get here together
  bool unbound = false;               // the word has no registers for the operands yet: only while a function is read

  /// False when there is no engine or it does not know the target.
  bool set(unsigned target, SassWord word);

  /// Whether the guard is something else than constant true.
  bool isGuarded() const;
  /// Whether it writes what a warp has once (UR, UP, B) where lanes may be apart: no pass may move it or take another for it.
  bool isWarpState() const { return layout && layout->isUniform && !converged; }
  bool isOpaque() const { return !layout || layout->form == SASS_FORM_OPAQUE; }

  bool operator==(const InstData &o) const;
  bool operator!=(const InstData &o) const { return !(*this == o); }
};

llvm::hash_code hash_value(const InstData &data);

// As an attribute (generic form): {sm = "sm_87", word = 0x... : i128}. In bytecode: target name, both halves.
mlir::Attribute toAttribute(mlir::MLIRContext *context, const InstData &data);
mlir::LogicalResult fromAttribute(InstData &data, mlir::Attribute attribute,
                                  llvm::function_ref<mlir::InFlightDiagnostic()> emitError);
void writeBytecode(mlir::DialectBytecodeWriter &writer, const InstData &data);
mlir::LogicalResult readBytecode(mlir::DialectBytecodeReader &reader, InstData &data);

/// The registers that the word names, by operand and by result of the op. Constant registers among them are flagged in the pin.
using Pins = llvm::SmallVector<SassPin, 16>;
Pins getOperandPins(const InstData &data);
Pins getResultPins(const InstData &data);
inline unsigned getPinFile(SassPin pin) { return pin >> 8 & 7; }
inline bool isZeroPin(SassPin pin) { return pin & 0x800; }
/// "R4", "PT".
std::string getPinName(SassPin pin);
std::optional<SassPin> parsePin(llvm::StringRef name);

/// The register of a value where one is said: by the word of what defines it, by `sass.pin`, by the function's list for block arguments.
std::optional<SassPin> getValuePin(mlir::Value value);

/// The type of registers of a file.
mlir::Type getRegisterType(mlir::MLIRContext *context, uint8_t file);
/// "R", "UR", "P", "UP", "B".
llvm::StringRef getFileName(uint8_t file);

/// The resource of everything that depends on, or changes, which lanes of a warp are active. MLIR has no convergence trait.
struct ConvergenceResource : mlir::SideEffects::Resource::Base<ConvergenceResource> {
  llvm::StringRef getName() final { return "sass.convergence"; }
};
/// UR, UP and B where control flow may be divergent: one per warp, so their order is the warp's.
struct WarpStateResource : mlir::SideEffects::Resource::Base<WarpStateResource> {
  llvm::StringRef getName() final { return "sass.warp_state"; }
};

/// The name of the op class of a layout, without "sass.": the mnemonic; "opaque"; "CALL_" for a CALL that is a branch.
llvm::StringRef getClassName(const SassLayout *layout, bool hasSuccessors);

namespace detail {
mlir::LogicalResult verifyInst(mlir::Operation *op);
void getInstEffects(const InstData &data, llvm::SmallVectorImpl<mlir::MemoryEffects::EffectInstance> &effects);
mlir::Speculation::Speculatability getInstSpeculatability(const InstData &data);
mlir::SuccessorOperands getSuccessorOperands(mlir::Operation *op, mlir::StringAttr segmentName,
                                             llvm::ArrayRef<int32_t> segments, unsigned index);
mlir::LogicalResult verifySuccessorSegments(mlir::Operation *op, unsigned first, llvm::ArrayRef<int32_t> segments);
} // namespace detail
} // namespace sass

#endif // SASS_INSTDATA_H
