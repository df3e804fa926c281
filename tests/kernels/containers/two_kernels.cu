// SPDX-License-Identifier: CC0-1.0
// sass2mlir: two small kernels (own code), for files that hold cubins
extern "C" __global__ void scale(float *out, const float *in, float factor, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) out[i] = in[i] * factor;
}
__device__ __noinline__ float square_plus_one(float x) { return x * x + 1.0f; }
extern "C" __global__ void poly(float *out, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = square_plus_one(out[i]);
}
