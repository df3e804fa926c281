// What the emulator's speed is measured on.
// SPDX-License-Identifier: CC0-1.0
extern "C" __global__ void multiply_add(float *o, float a, float b, int n) {
    float x[8];
#pragma unroll
    for (int k = 0; k < 8; k++) x[k] = threadIdx.x + k;
    for (int i = 0; i < n; i++) {
#pragma unroll
        for (int k = 0; k < 8; k++) x[k] = fmaf(x[k], a, b);
    }
    float s = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) s += x[k];
    o[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
