#!/usr/bin/env bash
# Compiles the project's own kernels for every target that has tables here and that the compilers know:
#
#   tests/oracles/own.sh [TOOLS] [OUT] [PROBE]      .oracles/tools, .oracles/own and target/release/probe unless given
#
#   OUT/kernels/sm_NN.cubin        tests/kernels/features.cu
#   OUT/kernels/sm_NN.rel.cubin    tests/kernels/relocatable.cu, not linked
#   OUT/lines/sm_NN.*.cubin        both with line tables, and compiled for a debugger
#   OUT/emu/sm_NN/*.cubin          tests/kernels/emu, whose results on the emulator are compared with a C++ compiler's, for a target of each family
#   OUT/seeds/sm_NN/*.cubin        src/probe/seeds, every choice of every line that exists on the target
#
# TOOLS is the folder that setup.sh filled. What is already there is not compiled again.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
tools=${1:-$top/.oracles/tools}
out=${2:-$top/.oracles/own}
probe=${3:-$top/target/release/probe}
mkdir -p "$out/kernels" "$out/lines"

# cubin source flag...
compile() {
  local cubin=$1 source=$top/tests/kernels/$2 log
  shift 2
  [ ! -f "$cubin" ] || return 0
  log=$("$tools/bin/nvcc" -cubin -arch="$sm" -std=c++17 "$@" -o "$cubin.part" "$source" 2>&1) || {
    echo "own.sh: $(basename "$cubin") is left out: $(tail -n 1 <<< "$log")"
    return 0
  }
  mv "$cubin.part" "$cubin"
}

for tables in "$top"/opcodes/SM*/; do
  sm=$(basename "$tables")
  sm=sm_${sm#SM}
  compile "$out/kernels/$sm.cubin" features.cu
  compile "$out/kernels/$sm.rel.cubin" relocatable.cu -rdc=true
  for lines in lineinfo G; do
    compile "$out/lines/$sm.$lines.cubin" features.cu -$lines
    compile "$out/lines/$sm.rel.$lines.cubin" relocatable.cu -$lines -rdc=true
  done
  seeds=$out/seeds/$sm
  if [ ! -d "$seeds" ]; then
    "$probe" seeds --sm "$sm" --ptxas "$tools/bin/ptxas" --every --out "$seeds.part" "$top/src/probe/seeds" > /dev/null
    mv "$seeds.part" "$seeds"
  fi
done
for sm in sm_75 sm_80 sm_89 sm_90a sm_100a sm_120a; do
  mkdir -p "$out/emu/$sm"
  for source in "$top"/tests/kernels/emu/*.cu; do
    compile "$out/emu/$sm/$(basename "$source" .cu).cubin" "emu/$(basename "$source")"
  done
done
echo "$(find "$out" -name '*.cubin' | wc -l) own cubins in $out"
