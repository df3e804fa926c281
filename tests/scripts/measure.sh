#!/usr/bin/env bash
# What a build without LLVM costs, from nothing: measure.sh SM. With the tables of one target, as for a small device, or of `all`.
set -euo pipefail
sm=$1
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
cargo fetch --quiet
export CARGO_TARGET_DIR=$target
if [ "$sm" = all ]; then unset SASS_ACTIVE_SMS; else export SASS_ACTIVE_SMS=$sm; fi
tests/scripts/build_cost.py cargo build --quiet --release --jobs 2 --no-default-features --features internal-ir
program=$target/release/sass2mlir
full=$(stat -c %s "$program")
strip "$program"
echo "binary  $full bytes, $(stat -c %s "$program") stripped"
