//===- Kernel.h - whole functions to and from the arrays of sass_engine.h ---------------------------------===//

#ifndef SASS_KERNEL_H
#define SASS_KERNEL_H

#include "Sass/Sass.h"
#include "mlir/IR/BuiltinOps.h"

namespace sass {

/// File and line that the instruction at a byte offset comes from, where that is known.
using LineAt = llvm::function_ref<std::optional<std::pair<llvm::StringRef, unsigned>>(uint64_t offset)>;

/// Appends a sass.func to a module. Locations are file:offset with the kernel's name as file, if wanted, and `lineAt`'s beside them. Null on
/// failure, with a diagnostic.
FuncOp makeFunc(mlir::ModuleOp module, const SassKernel &kernel, bool locations, LineAt lineAt = nullptr);

/// A function as the arrays of a SassKernel.
class KernelArrays {
public:
  explicit KernelArrays(FuncOp func) : func(func) {}

  /// Fails with a diagnostic when the function holds ops that are no part of a kernel.
  mlir::LogicalResult fill();
  /// Valid as long as this object and the function are.
  SassKernel view();

private:
  mlir::LogicalResult define(mlir::Operation &op);
  mlir::LogicalResult define(SassInst inst, mlir::Operation &op);
  mlir::LogicalResult uses(mlir::Operation &op, uint32_t first, uint32_t count, std::vector<uint32_t> &out);
  mlir::LogicalResult tail();

  /// Values that were made one after the other lie side by side in memory: a hash that keeps them so saves most cache misses.
  struct NearbyInfo : llvm::DenseMapInfo<mlir::Value> {
    static unsigned getHashValue(mlir::Value value) { return reinterpret_cast<uintptr_t>(value.getAsOpaquePointer()) >> 6; }
  };

  FuncOp func;
  const SassEngine *engine = getEngine();
  llvm::DenseMap<mlir::Value, uint32_t, NearbyInfo> ids; // first results and block arguments
  std::vector<uint8_t> kinds;
  std::vector<SassWord> words, tailWords;
  std::vector<uint32_t> layout, labels, operandStart{0}, operands, resultStart{0}, blockStart, argStart, edgeStart{0}, edgeArgs;
  std::vector<SassPin> pins;
  std::vector<SassEdge> edges;
  std::vector<const SassLayout *> layouts;
  llvm::DenseMap<const SassLayout *, uint32_t> layoutIds;
};

} // namespace sass

#endif // SASS_KERNEL_H
