#!/usr/bin/env bash
# The feature flags for cargo on this machine: none with LLVM 22, those of the build without LLVM otherwise, which it says.
prefix=${SASS_LLVM_DIR:-/usr/lib/llvm-22}
[ -f "$prefix/lib/cmake/mlir/MLIRConfig.cmake" ] && exit 0
echo "note: LLVM 22 is not in $prefix and apt does not have it, so this is the build without MLIR" >&2
echo --no-default-features --features internal-ir
