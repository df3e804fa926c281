#!/usr/bin/env bash
# Makes the cubins of this folder from their sources:
#
#   tests/kernels/emu/make.sh [SM]...       sm_87 unless given; nvcc of CUDA 13.5 in PATH (tests/oracles/setup.sh brings it)
set -euo pipefail
cd "$(dirname "$0")"
for sm in "${@:-sm_87}"; do
  mkdir -p "$sm"
  for source in *.cu; do nvcc -cubin -arch="$sm" -O3 -std=c++17 -o "$sm/${source%.cu}.cubin" "$source"; done
done
