#!/usr/bin/env bash
# Makes the cubins of this folder from their sources with nvcc of CUDA 13.5 in PATH (tests/oracles/setup.sh brings it).
set -euo pipefail
cd "$(dirname "$0")"
for sm in sm_75 sm_80 sm_87 sm_90a sm_120a; do
  mkdir -p "$sm"
  nvcc -cubin -arch="$sm" -O3 -maxrregcount=24 -o "$sm/spills.cubin" spills.cu
  nvcc -cubin -arch="$sm" -O3 -o "$sm/registers.cubin" registers.cu
  nvcc -cubin -arch="$sm" -O3 -o "$sm/loads.cubin" loads.cu
  nvcc -cubin -arch="$sm" -O3 -o "$sm/rows.cubin" rows.cu
  nvcc -cubin -arch="$sm" -O3 -o "$sm/meeting.cubin" meeting.cu
done
