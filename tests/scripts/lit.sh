#!/usr/bin/env bash
# Runs the tests in lit/ on the program and the tools of a profile: lit.sh PROFILE (debug or release)
set -euo pipefail
cd "$(dirname "$0")/../.."
profile=$1
if [ -n "$(tests/scripts/features.sh 2>/dev/null)" ]; then
  echo "lit: skipped, it needs LLVM 22"
  exit 0
fi
out=${CARGO_TARGET_DIR:-$PWD/target}
release=()
[ "$profile" = debug ] || release=(--release)
cargo build "${release[@]}" --quiet --package sass2mlir
tests/scripts/tools.sh "$profile"
SASS_TOOLS="$out/$profile" SASS_LIT_OUT="$out/lit" "${SASS_LLVM_DIR:-/usr/lib/llvm-22}/bin/lit" -sv lit
