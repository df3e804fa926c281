// A kernel as long as those of local language models: three rows of four-bit weights times four columns, with every loop over them unrolled.

#include <cuda_fp16.h>

struct BlockQ4 {
    half2 factors;
    unsigned char scales[12];
    unsigned nibbles[32];
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

const int ROWS = 3, COLUMNS = 4;

extern "C" __global__ void rows_by_columns(
    const BlockQ4 *weights, const int *x, float *y, int blocks, int row_stride, int column_stride, int rows) {
    int row = blockIdx.x * ROWS, left = rows - row;
    float sums[ROWS][COLUMNS] = {};
    for (int b = threadIdx.y; b < blocks; b += blockDim.y) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const BlockQ4 &w = weights[(row + r) * row_stride + b];
            float2 factors = __half22float2(w.factors);
#pragma unroll
            for (int group = 0; group < 8; group++) {
                float scale, minimum;
                scale_and_min(group, w.scales, scale, minimum);
                unsigned q = w.nibbles[(group / 2) * 8 + threadIdx.x % 8] >> (group & 1) * 4 & 0x0f0f0f0f;
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    int v = x[(c * column_stride & ~3) + b * 64 + group * 8 + threadIdx.x % 8];
                    int dot = __dp4a((int)q, v, 0), all = __dp4a(0x01010101, v, 0);
                    sums[r][c] += factors.x * scale * dot - factors.y * minimum * all;
                }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            float sum = sums[r][c];
#pragma unroll
            for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
            if (sum > 0.0f && threadIdx.x % 8 == r && threadIdx.x < left) y[c * rows + row + r] = sum;
        }
    }
}
