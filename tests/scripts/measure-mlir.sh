#!/usr/bin/env bash
# What the default build costs: from nothing, and after a change of one pass, in C++ and in Rust. Then the bridge's speed.
set -euo pipefail
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
cargo fetch --quiet
export CARGO_TARGET_DIR=$target

cost() {
  echo "== $1"
  shift
  tests/scripts/build_cost.py cargo build --quiet --jobs 2 "$@"
}
cost "default build, release, from nothing" --release
cost "default build, development, from nothing"
touch dialect/lib/Transforms/ToNvgpuReport.cpp
cost "development, after a pass in C++"
touch src/passes/src/ffma_deftz.rs
cost "development, after a pass in Rust"
echo "== the bridge"
cargo bench --package sass2mlir-mlir --features mlir --bench bridge -- --noplot
