#!/usr/bin/env bash
# Brings real kernels that this project did not write, each pinned to one version, into a folder of cubins:
#
#   tests/oracles/corpora.sh [TOOLS] [OUT] [SMS] [SIZE]      .oracles/tools, .oracles/corpus, 86,87,88 and small unless given
#
#   OUT/warp-lang/sm_*/       NVIDIA Warp (Apache-2.0), the wheel for the Jetson: about 370,000 sm_87 instructions
#   OUT/bitsandbytes/sm_*/    bitsandbytes (MIT)
#   if SIZE is full also      JAX's plugin for CUDA 12 (Apache-2.0), Faiss (MIT), xFormers (BSD-3-Clause)
#   OUT/llama/*.sm_87.cubin   llama.cpp (MIT): its q4_K matrix, vector, rope and softmax kernels, compiled here
#
# TOOLS is the folder that setup.sh filled. SMS are numbers of targets, or `all`. Every file stays other people's work and none is committed.
# What is already there is not brought again.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
tools=$(cd "${1:-$top/.oracles/tools}" && pwd)
mkdir -p "${2:-$top/.oracles/corpus}"
out=$(cd "${2:-$top/.oracles/corpus}" && pwd)
sms=${3:-86,87,88}
size=${4:-small}
[ "$size" = small ] || [ "$size" = full ] || { echo "corpora.sh: a corpus is small or full, not $size" >&2; exit 2; }
python="$tools/venv/bin/python"
export PATH="$tools/venv/bin:$tools/bin:$PATH"
pip() { "$python" -m pip "$@" --quiet --disable-pip-version-check; }

# cmake and ninja: pip asks the build system of a source package for its metadata before it hands the file over.
"$python" -c 'import zstandard, lz4.block, scikit_build_core' 2>/dev/null && [ -x "$tools/venv/bin/cmake" ] ||
  pip install zstandard lz4 scikit-build-core cmake ninja

# package version pip-option...: the cubins of one wheel
wheel() {
  local stamp="$out/.$1-$2-$sms" spec="$1==$2"
  [ -f "$stamp" ] && return
  local tmp
  tmp=$(mktemp -d)
  pip download --no-deps --dest "$tmp" --only-binary=:all: --python-version 3.12 "${@:3}" "$spec"
  "$python" "$here/extract.py" --sm "${sms/#all/}" --out "$out/$1" "$tmp"/*.whl
  rm -rf "$tmp"
  touch "$stamp"
}
wheel warp-lang 1.19.0 --platform manylinux_2_34_aarch64
wheel bitsandbytes 0.50.2 --platform manylinux_2_24_x86_64
if [ "$size" = full ]; then
  linux=(--platform manylinux_2_27_x86_64 --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64)
  wheel jax-cuda12-plugin 0.10.2 "${linux[@]}"
  wheel faiss-gpu-cu12 1.14.1.post1 "${linux[@]}"
  wheel xformers 0.0.35 "${linux[@]}"
fi

# llama.cpp comes inside the source package of its Python binding.
version=0.3.36
llama="$out/.llama/llama_cpp_python-$version"
if [ ! -f "$llama/.whole" ]; then
  mkdir -p "$out/.llama"
  pip download --no-deps --no-binary=:all: --no-build-isolation --dest "$out/.llama" "llama-cpp-python==$version"
  tar xzf "$llama.tar.gz" -C "$out/.llama"
  rm "$llama.tar.gz"
  touch "$llama/.whole"
fi
ggml="$llama/vendor/llama.cpp/ggml"
mkdir -p "$out/llama" "$out/.llama/include"
# The kernels only name cuBLAS's types; this header of ours spares a package of 400 MB.
cat > "$out/.llama/include/cublas_v2.h" <<'H'
#pragma once
#include <library_types.h>
struct cublasContext;
typedef cublasContext *cublasHandle_t;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasMath_t { CUBLAS_DEFAULT_MATH, CUBLAS_TF32_TENSOR_OP_MATH };
enum cublasComputeType_t { CUBLAS_COMPUTE_16F, CUBLAS_COMPUTE_32F };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT_TENSOR_OP };
const char *cublasGetStatusString(cublasStatus_t);
cublasStatus_t cublasCreate(cublasHandle_t *);
cublasStatus_t cublasDestroy(cublasHandle_t);
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t);
cublasStatus_t cublasSetStream(cublasHandle_t, struct CUstream_st *);
H
for name in template-instances/mmq-instance-q4_k mmvq rope softmax; do
  cubin="$out/llama/$(basename "$name").sm_87.cubin"
  [ -f "$cubin" ] && continue
  echo "compiling $(basename "$cubin")"
  nvcc -cubin -arch=sm_87 -std=c++17 -O3 -use_fast_math --extended-lambda --expt-relaxed-constexpr \
    -DGGML_CUDA_NO_VMM -DGGML_CUDA_USE_GRAPHS \
    -I"$out/.llama/include" -I"$ggml/include" -I"$ggml/src" -I"$ggml/src/ggml-cuda" \
    -o "$cubin.part" "$ggml/src/ggml-cuda/$name.cu"
  mv "$cubin.part" "$cubin"
done
echo "$(find "$out" -name '*.cubin' | wc -l) cubins in $out"
