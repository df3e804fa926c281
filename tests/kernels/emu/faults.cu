// Kernels with a mistake each, for the memory checker.
// SPDX-License-Identifier: CC0-1.0
typedef unsigned u32;
#define KERNEL(name) extern "C" __global__ void name(u32 *o, const u32 *a, int n)
#define I int i = blockIdx.x * blockDim.x + threadIdx.x;

KERNEL(good) {
    __shared__ u32 s[64];
    I s[threadIdx.x] = a[i];
    __syncthreads();
    o[i] = s[63 - threadIdx.x];
}
KERNEL(race) {
    __shared__ u32 s[64];
    I s[threadIdx.x] = a[i];
    o[i] = s[63 - threadIdx.x];
}
KERNEL(write_after_read) {
    __shared__ u32 s[64];
    I s[threadIdx.x] = a[i];
    __syncthreads();
    u32 v = s[63 - threadIdx.x];
    s[threadIdx.x] = v + 1;
    __syncthreads();
    o[i] = s[threadIdx.x ^ 32];
}
KERNEL(unwritten_shared) {
    __shared__ u32 s[128];
    I if (threadIdx.x < 32) s[threadIdx.x] = a[i];
    __syncthreads();
    o[i] = s[threadIdx.x];
}
KERNEL(unwritten_global) { I o[i] += a[i]; }
KERNEL(out_of_bounds) { I o[i] = a[i + n]; }
KERNEL(misaligned) { I o[i] = *(const u32 *)((const char *)a + i); }
KERNEL(endless) { I while (*(volatile const u32 *)a == 0) o[i] = 1; }
KERNEL(trapped) { I if (a[i] > 40) __trap(); o[i] = 1; }
KERNEL(never_meets) {
    I if (threadIdx.x < 32) asm volatile("bar.sync 1, 96;");
    o[i] = 1;
}
KERNEL(part_of_warp) {
    I if (threadIdx.x & 1) {
        int d[4] = {0, 0, 0, 0};
        asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[i]), "r"(i), "r"(n));
        o[i] = d[0] + d[3];
    }
}
