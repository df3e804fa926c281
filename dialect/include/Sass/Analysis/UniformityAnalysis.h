//===- UniformityAnalysis.h - which values all active lanes of a warp share -------------------------------===//

#ifndef SASS_ANALYSIS_UNIFORMITYANALYSIS_H
#define SASS_ANALYSIS_UNIFORMITYANALYSIS_H

#include "Sass/Sass.h"
#include "llvm/ADT/DenseSet.h"

namespace sass {

/// A value is uniform if all lanes of a warp that are active together hold the same bits in it. Unknown means divergent.
///
/// Data dependences are a sparse forward analysis of MLIR's dataflow framework. Control dependences are added around it: where a branch
/// is divergent, the arguments of blocks that its paths join in are divergent, and so is what a loop with a divergent exit defines.
class UniformityAnalysis {
public:
  explicit UniformityAnalysis(FuncOp func);

  bool isUniform(mlir::Value value) const { return uniform.contains(value); }
  /// Whether lanes of one warp may leave the block by different ways.
  bool isDivergentBranch(mlir::Block *block) const { return divergentBranches.contains(block); }

private:
  llvm::DenseSet<mlir::Value> uniform;
  llvm::DenseSet<mlir::Block *> divergentBranches;
};

} // namespace sass

#endif // SASS_ANALYSIS_UNIFORMITYANALYSIS_H
