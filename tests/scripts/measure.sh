#!/usr/bin/env bash
# What a build for a small device costs: measure.sh SM. Builds without LLVM, with the tables of one target, from nothing.
set -euo pipefail
sm=$1
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
cargo fetch --quiet
export SASS_ACTIVE_SMS=$sm CARGO_TARGET_DIR=$target
tests/scripts/build_cost.py cargo build --quiet --release --jobs 2 --no-default-features --features internal-ir
program=$target/release/sass2mlir
full=$(stat -c %s "$program")
strip "$program"
echo "binary  $full bytes, $(stat -c %s "$program") stripped"
