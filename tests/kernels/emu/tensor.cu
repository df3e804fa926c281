// Matrix products of a warp. The inputs are small integers, so that every order of summation gives the same.
// SPDX-License-Identifier: CC0-1.0
#include "both.h"

// A small integer from a word, as a half, a bfloat16, a byte.
FN int small(u32 x) { return (int)(x % 17) - 8; }
FN u32 half_of(int v) { u32 s = v < 0 ? 0x8000u : 0; u32 m = v < 0 ? -v : v; if (!m) return 0; int e = 0; while (m >> e > 1) e++; return s | (15 + e) << 10 | (m << 10 >> e & 0x3ff); }
FN u32 bf_of(int v) { return bits((float)v) >> 16; }
FN u32 two(u32 low, u32 high) { return low | high << 16; }
FN u32 four(int p, int q, int r, int s) { return (p & 255) | (q & 255) << 8 | (r & 255) << 16 | (u32)s << 24; }
#define LANE int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; int l = i & 31; int g = l / 4; int t = l % 4; int w = i - l; const u32 *A = a + w; const u32 *B = b + w;
// Element (row, k) of A and (k, column) of B of the warp whose inputs begin at A and B.
FN int ea(const u32 *A, int row, int k) { return small(A[(row * 5 + k * 3) & 31] + row + k * k); }
FN int eb(const u32 *B, int k, int column) { return small(B[(column * 7 + k) & 31] ^ (u32)(k + column)); }
FN int ec(int row, int column) { return row * 3 - column; }

#ifndef __CUDACC__
// The four (or two) results of every lane: rows g and g + 8, columns 2t and 2t + 1.
#define PRODUCT(rows, K, store)                                                                                    \
    for (int w = 0; w < n; w += 32) for (int l = 0; l < 32; l++) for (int q = 0; q < rows / 4; q++) {              \
        int row = l / 4 + q / 2 * 8, column = l % 4 * 2 + q % 2, sum = ec(row, column);                            \
        for (int k = 0; k < K; k++) sum += ea(a + w, row, k) * eb(b + w, k, column);                               \
        store                                                                                                      \
    }
#else
#define C4(type) type d[4] = {(type)ec(g, 2 * t), (type)ec(g, 2 * t + 1), (type)ec(g + 8, 2 * t), (type)ec(g + 8, 2 * t + 1)}
#define P2(of, f, x, y, z, u) two(of(f(x, y)), of(f(z, u)))
#endif

#define SINGLE { if (w * 2 < n) o[(w + l) * 4 + q] = bits((float)sum); }
#define INTEGER { if (w * 2 < n) o[(w + l) * 4 + q] = (u32)sum; }
#define PUT(value) if (w * 2 < n) for (int q = 0; q < 4; q++) o[(w + l) * 4 + q] = value;

#if SINCE(80)
WHOLE(tensor_f16_k16, {
    LANE
    float d[4]; u32 x[4]; u32 y[2];
    for (int q = 0; q < 4; q++) d[q] = ec(g + q / 2 * 8, 2 * t + q % 2);
    for (int q = 0; q < 4; q++) x[q] = two(half_of(ea(A, g + q % 2 * 8, 2 * t + q / 2 * 8)), half_of(ea(A, g + q % 2 * 8, 2 * t + q / 2 * 8 + 1)));
    for (int q = 0; q < 2; q++) y[q] = two(half_of(eb(B, 2 * t + q * 8, g)), half_of(eb(B, 2 * t + q * 8 + 1, g)));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    PUT(bits(d[q]))
}, { PRODUCT(16, 16, SINGLE) })
WHOLE(tensor_bf16_k16, {
    LANE
    float d[4]; u32 x[4]; u32 y[2];
    for (int q = 0; q < 4; q++) d[q] = ec(g + q / 2 * 8, 2 * t + q % 2);
    for (int q = 0; q < 4; q++) x[q] = two(bf_of(ea(A, g + q % 2 * 8, 2 * t + q / 2 * 8)), bf_of(ea(A, g + q % 2 * 8, 2 * t + q / 2 * 8 + 1)));
    for (int q = 0; q < 2; q++) y[q] = two(bf_of(eb(B, 2 * t + q * 8, g)), bf_of(eb(B, 2 * t + q * 8 + 1, g)));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    PUT(bits(d[q]))
}, { PRODUCT(16, 16, SINGLE) })
#endif
WHOLE(tensor_f16_k8, {
    LANE
    float d[4]; u32 x[2];
    for (int q = 0; q < 4; q++) d[q] = ec(g + q / 2 * 8, 2 * t + q % 2);
    for (int q = 0; q < 2; q++) x[q] = two(half_of(ea(A, g + q * 8, 2 * t)), half_of(ea(A, g + q * 8, 2 * t + 1)));
    u32 y = two(half_of(eb(B, 2 * t, g)), half_of(eb(B, 2 * t + 1, g)));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(x[0]), "r"(x[1]), "r"(y));
    PUT(bits(d[q]))
}, { PRODUCT(16, 8, SINGLE) })
#if SINCE(80)
WHOLE(tensor_f16_sum_f16, {
    LANE
    u32 d[2]; u32 x[4]; u32 y[2];
    for (int q = 0; q < 2; q++) d[q] = two(half_of(ec(g + q * 8, 2 * t)), half_of(ec(g + q * 8, 2 * t + 1)));
    for (int q = 0; q < 4; q++) x[q] = two(half_of(ea(A, g + q % 2 * 8, 2 * t + q / 2 * 8)), half_of(ea(A, g + q % 2 * 8, 2 * t + q / 2 * 8 + 1)));
    for (int q = 0; q < 2; q++) y[q] = two(half_of(eb(B, 2 * t + q * 8, g)), half_of(eb(B, 2 * t + q * 8 + 1, g)));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3,%4,%5},{%6,%7},{%0,%1};" : "+r"(d[0]), "+r"(d[1]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    PUT(d[q / 2] >> q % 2 * 16 & 0xffff)
}, { PRODUCT(16, 16, { if (w * 2 < n) o[(w + l) * 4 + q] = half_of(sum); }) })
WHOLE(tensor_tf32_k8, {
    LANE
    float d[4]; u32 x[4]; u32 y[2];
    for (int q = 0; q < 4; q++) d[q] = ec(g + q / 2 * 8, 2 * t + q % 2);
    for (int q = 0; q < 4; q++) x[q] = bits((float)ea(A, g + q % 2 * 8, t + q / 2 * 4));
    for (int q = 0; q < 2; q++) y[q] = bits((float)eb(B, t + q * 4, g));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    PUT(bits(d[q]))
}, { PRODUCT(16, 8, SINGLE) })
WHOLE(tensor_s8_k32, {
    LANE
    int d[4]; u32 x[4]; u32 y[2];
    for (int q = 0; q < 4; q++) d[q] = ec(g + q / 2 * 8, 2 * t + q % 2);
    for (int q = 0; q < 4; q++) { int r = g + q % 2 * 8; int k = 4 * t + q / 2 * 16; x[q] = four(ea(A, r, k), ea(A, r, k + 1), ea(A, r, k + 2), ea(A, r, k + 3)); }
    for (int q = 0; q < 2; q++) { int k = 4 * t + q * 16; y[q] = four(eb(B, k, g), eb(B, k + 1, g), eb(B, k + 2, g), eb(B, k + 3, g)); }
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    PUT((u32)d[q])
}, { PRODUCT(16, 32, INTEGER) })
WHOLE(tensor_s8_k16, {
    LANE
    int d[4]; u32 x[2];
    for (int q = 0; q < 4; q++) d[q] = ec(g + q / 2 * 8, 2 * t + q % 2);
    for (int q = 0; q < 2; q++) { int r = g + q * 8; int k = 4 * t; x[q] = four(ea(A, r, k), ea(A, r, k + 1), ea(A, r, k + 2), ea(A, r, k + 3)); }
    u32 y = four(eb(B, 4 * t, g), eb(B, 4 * t + 1, g), eb(B, 4 * t + 2, g), eb(B, 4 * t + 3, g));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(x[0]), "r"(x[1]), "r"(y));
    PUT((u32)d[q])
}, { PRODUCT(16, 16, INTEGER) })
WHOLE(tensor_f64, {
    LANE
    double d[2];
    for (int q = 0; q < 2; q++) d[q] = ec(g, 2 * t + q);
    double x = ea(A, g, t); double y = eb(B, t, g);
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};" : "+d"(d[0]), "+d"(d[1]) : "d"(x), "d"(y));
    for (int q = 0; q < 2; q++) o[i * 2 + q] = bits((float)d[q]);
}, { PRODUCT(8, 4, { o[(w + l) * 2 + q] = bits((float)sum); }) })
#endif
// Eight matrices of 8x8 halves in shared memory, one row a thread; every warp loads four of them, straight and transposed.
WHOLE(tensor_load, {
    __shared__ alignas(16) unsigned short s[96 * 8];
    int i = blockIdx.x * blockDim.x + threadIdx.x; int t = threadIdx.x;
    for (int k = 0; k < 8; k++) s[t * 8 + k] = i < n ? a[i] + k * 1000 : 0;
    __syncthreads();
    u32 at = (u32)__cvta_generic_to_shared(s + ((t + 32) % 96) * 8);
    u32 r[4]; u32 q[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1},[%2];" : "=r"(q[0]), "=r"(q[1]) : "r"(at));
    if (i < n) { o[i] = r[0] + 3 * r[1] + 5 * r[2] + 7 * r[3]; o[n + i] = q[0] + 3 * q[1]; }
}, {
    for (int i = 0; i < n; i++) {
        int t = i % 96, l = t & 31, block = i - t;
        auto s = [&](int row, int k) -> u32 { int e = block + row; return (uint16_t)(e < n ? a[e] + k * 1000 : 0); };
        auto row = [&](int m) { return ((t & ~31) + 32) % 96 + m * 8; };
        u32 r = 0, q = 0;
        for (int m = 0; m < 4; m++) r += (2 * m + 1) * two(s(row(m) + l / 4, 2 * (l % 4)), s(row(m) + l / 4, 2 * (l % 4) + 1));
        for (int m = 0; m < 2; m++) q += (2 * m + 1) * two(s(row(m) + 2 * (l % 4), l / 4), s(row(m) + 2 * (l % 4) + 1, l / 4));
        o[i] = r, o[n + i] = q;
    }
})
