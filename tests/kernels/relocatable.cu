// A file that still has to be linked: calls, shared memory and globals are relocations.
// SPDX-License-Identifier: CC0-1.0
//   nvcc -arch=sm_87 -cubin -rdc=true -o sm_87/relocatable.cubin relocatable.cu

extern __device__ float elsewhere(float x);
extern __device__ int counters[4];

extern "C" __global__ void relocated(float *out) {
    __shared__ float tile[32];
    extern __shared__ float dynamic[];
    tile[threadIdx.x] = elsewhere(out[threadIdx.x]);
    dynamic[threadIdx.x + 1] = tile[31 - threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = dynamic[threadIdx.x ^ 1] + counters[2];
}
