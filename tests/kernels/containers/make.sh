#!/usr/bin/env bash
# Makes the files in this folder again: make.sh FOLDER, with nvcc, fatbinary, ptxas (CUDA 13.5), gcc and ar on PATH.
set -euo pipefail
cd "$(dirname "$0")"
out=$1
mkdir -p "$out"
cp two_kernels.cu host.c "$out"
cd "$out"
targets=(-gencode arch=compute_75,code=sm_75 -gencode arch=compute_87,code=sm_87 -gencode "arch=compute_100,code=[sm_100,compute_100]")
nvcc -fatbin --compress-mode=none "${targets[@]}" two_kernels.cu -o stored.fatbin
nvcc -fatbin --compress-mode=size "${targets[@]}" two_kernels.cu -o zstd.fatbin
nvcc -fatbin --compress-mode=size --concat "${targets[@]}" two_kernels.cu -o concat.fatbin
nvcc -cubin -rdc=true -arch=sm_87 two_kernels.cu -o two_kernels.sm_87.rel.cubin
images=()
for sm in 75 87 100; do
    nvcc -cubin -arch=sm_$sm two_kernels.cu -o two_kernels.sm_$sm.cubin
    images+=("--image3=kind=elf,sm=$sm,file=two_kernels.sm_$sm.cubin")
done
fatbinary -64 --compress-all --compress-mode=speed --create lz4.fatbin "${images[@]}"
fatbinary -64 --compress-all --compress-mode=speed --concat --create concat_lz4.fatbin "${images[@]}"
gcc -O1 -shared -nostdlib -fPIC -fno-asynchronous-unwind-tables host.c -o libtwo.so
gcc -O1 -c -fPIC -fno-asynchronous-unwind-tables host.c -o host.o
rm -f libtwo.a
ar rcsD libtwo.a host.o two_kernels.sm_87.rel.cubin host.c
