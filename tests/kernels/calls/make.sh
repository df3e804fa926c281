#!/bin/sh
# Compiles the kernels of this folder: nvcc of CUDA 13.5 in PATH.
set -e
cd "$(dirname "$0")"
for sm in sm_75 sm_80; do
    mkdir -p $sm
    for kernel in chosen table; do
        nvcc -cubin -arch=$sm $kernel.cu -o $sm/$kernel.cubin
    done
done
nvcc -cubin -arch=sm_80 printed.cu -o sm_80/printed.cubin
