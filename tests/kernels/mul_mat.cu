// Kernels of the kind that local language models run, in our own words: 4-bit weights times activations, a norm, a rope.
// SPDX-License-Identifier: CC0-1.0
//
// Built with -ftz=true, so that ptxas writes FFMA.FTZ:
//   nvcc -arch=sm_87 -cubin -ftz=true -O3 -o sm_87/own_mul_mat.cubin mul_mat.cu

#include <cuda_fp16.h>

// 256 weights: eight groups of 32, each with a 6-bit scale and a 6-bit minimum under one pair of half-precision factors.
struct BlockQ4 {
    half2 factors;
    unsigned char scales[12];
    unsigned char nibbles[128];
};

static __device__ void scale_and_min(int group, const unsigned char *q, float &scale, float &minimum) {
    int s, m;
    if (group < 4) {
        s = q[group] & 63;
        m = q[group + 4] & 63;
    } else {
        s = (q[group + 4] & 15) | ((q[group - 4] >> 6) << 4);
        m = (q[group + 4] >> 4) | ((q[group] >> 6) << 4);
    }
    scale = s;
    minimum = m;
}

// One row of the result per warp.
extern "C" __global__ void mul_mat_q4_K(const BlockQ4 *weights, const float *x, float *y, int columns, int rows) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    int blocks = columns / 256;
    float sum = 0.0f;
    for (int b = 0; b < blocks; b++) {
        const BlockQ4 &w = weights[row * blocks + b];
        float2 factors = __half22float2(w.factors);
        for (int group = 0; group < 8; group++) {
            float scale, minimum;
            scale_and_min(group, w.scales, scale, minimum);
            int byte = w.nibbles[(group / 2) * 32 + threadIdx.x];
            float q = group & 1 ? byte >> 4 : byte & 15;
            float weight = factors.x * scale * q - factors.y * minimum;
            sum = fmaf(weight, x[b * 256 + group * 32 + threadIdx.x], sum);
        }
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x == 0) y[row] = sum;
}

// Tiles in shared memory; a warp-uniform loop over the columns.
extern "C" __global__ void mul_mat_f32(const float *a, const float *b, float *c, int n) {
    __shared__ float ta[16][16], tb[16][16];
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 16) {
        ta[threadIdx.y][threadIdx.x] = a[i * n + k + threadIdx.x];
        tb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + j];
        __syncthreads();
#pragma unroll
        for (int t = 0; t < 16; t++) sum = fmaf(ta[threadIdx.y][t], tb[t][threadIdx.x], sum);
        __syncthreads();
    }
    c[i * n + j] = sum;
}

extern "C" __global__ void rms_norm(const float *x, float *y, int columns, float epsilon) {
    const float *row = x + (size_t)blockIdx.x * columns;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += 32) sum = fmaf(row[i], row[i], sum);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    float scale = rsqrtf(sum / columns + epsilon);
    for (int i = threadIdx.x; i < columns; i += 32) y[(size_t)blockIdx.x * columns + i] = scale * row[i];
}

extern "C" __global__ void scale_add(const float *x, float *y, float scale, float bias, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaf(x[i], scale, bias);
}
