#!/usr/bin/env bash
# The text of a cubin's kernels, through sass-opt as text, generic form and bytecode and through the plugin, is the same text, and lowers to
# the same file: both-ways.sh CUBIN WORK MLIR-OPT...
set -euo pipefail
cubin=$1 work=$2
shift 2
mkdir -p "$work"
sass2mlir --ir internal lift "$cubin" -o "$work/internal.mlir"
sass2mlir --ir mlir lift "$cubin" -o "$work/k.mlir"
cmp "$work/internal.mlir" "$work/k.mlir"
same() { diff -B "$work/k.mlir" "$work/again.mlir"; } # mlir-opt ends with an empty line
sass-opt "$work/k.mlir" -o "$work/again.mlir" && same
sass-opt "$work/k.mlir" --mlir-print-op-generic | sass-opt -o "$work/again.mlir" && same
sass-opt "$work/k.mlir" --emit-bytecode | sass-opt -o "$work/again.mlir" && same
"$@" "$work/k.mlir" -o "$work/again.mlir" && same
for ir in mlir internal; do
  sass2mlir --ir $ir lower "$work/again.mlir" --into "$cubin" -o "$work/k.cubin"
  cmp "$cubin" "$work/k.cubin"
done
