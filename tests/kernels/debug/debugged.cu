// Compiled for a debugger: no instruction has scheduling bits of its own.
// SPDX-License-Identifier: CC0-1.0
//   nvcc -arch=sm_87 -cubin -Xptxas -O0 -o debugged.cubin debugged.cu

extern "C" __global__ void debugged(const float *in, float *out, int n) {
    __shared__ float tile[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x & 31] = i < n ? in[i] : 0.0f;
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < 4; k++)
        sum += tile[(threadIdx.x + k) & 31] / (1.0f + k);
    if (i < n)
        out[i] = sum;
}
