#!/usr/bin/env bash
# Builds sass-opt, the plugin, the example pass and those for tests beside the program: tools.sh PROFILE (debug or release)
# The C++ was built by src/mlir's build script; this goes on in the same folder. Nothing happens without LLVM 22.
set -euo pipefail
cd "$(dirname "$0")/../.."
profile=$1
[ -z "$(tests/scripts/features.sh 2>/dev/null)" ] || exit 0
out=${CARGO_TARGET_DIR:-$PWD/target}
release=()
[ "$profile" = debug ] || release=(--release)
cargo rustc "${release[@]}" --quiet --package sass2mlir-engine --crate-type staticlib
cmake -S dialect -B "$out/dialect/build" -DSASS_ENGINE_LIB="$out/$profile/libsass2mlir_engine.a" >"$out/dialect/cmake.log"
cmake --build "$out/dialect/build" --target sass-opt SassDialectPlugin SassAddToMul SassTestPasses >"$out/dialect/cmake.log"
cp "$out/dialect/build/"{sass-opt,libSassDialectPlugin.so,SassAddToMul.so,SassTestPasses.so} "$out/$profile/"
