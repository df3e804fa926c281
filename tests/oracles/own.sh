#!/usr/bin/env bash
# Compiles tests/kernels/features.cu for every target that has tables here and that nvcc knows:
#
#   tests/oracles/own.sh [TOOLS] [OUT]      .oracles/tools and .oracles/own unless given
#
# TOOLS is the folder that setup.sh filled. What is already there is not compiled again.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
tools=${1:-$top/.oracles/tools}
out=${2:-$top/.oracles/own}
mkdir -p "$out"
for tables in "$top"/opcodes/SM*/; do
  sm=$(basename "$tables")
  sm=sm_${sm#SM}
  cubin=$out/$sm.cubin
  [ ! -f "$cubin" ] || continue
  log=$("$tools/bin/nvcc" -cubin -arch="$sm" -std=c++17 -o "$cubin.part" "$top/tests/kernels/features.cu" 2>&1) || {
    echo "own.sh: $sm is left out: $(tail -n 1 <<< "$log")"
    continue
  }
  mv "$cubin.part" "$cubin"
done
echo "$(find "$out" -name '*.cubin' | wc -l) own cubins in $out"
