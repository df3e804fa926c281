// What came with sm_80 and later: barriers in memory, matrices between registers and shared memory, 8-bit floats, bulk copies.
// SPDX-License-Identifier: CC0-1.0
#include "both.h"

#define THREAD int i = blockIdx.x * blockDim.x + threadIdx.x; int t = threadIdx.x; (void)t;
#define ADDRESS(p) ((u32)__cvta_generic_to_shared(p))
#define LANES for (int w = 0; w < n; w += 32) for (int l = 0; l < 32; l++)

// An 8x8 matrix of halves, two a lane, gets rows for columns.
WHOLE(newer_transpose, {
    THREAD
    if (i >= n) return;
    u32 r;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(a[i]));
    o[i] = r;
}, {
    LANES {
        u32 r = 0;
        for (int k = 0; k < 2; k++) { int row = l % 4 * 2 + k, column = l / 4; r |= (a[w + row * 4 + column / 2] >> column % 2 * 16 & 0xffff) << k * 16; }
        o[w + l] = r;
    }
})
#if SINCE(80)
// Every thread arrives, waits, and sees what the others wrote before; three times, so that phases alternate.
WHOLE(newer_barrier, {
    __shared__ alignas(8) u64 barrier;
    __shared__ u32 s[2][96];
    THREAD
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(ADDRESS(&barrier)), "r"(96));
    __syncthreads();
    u32 r = i < n ? a[i] : 0;
    for (int k = 0; k < 3; k++) {
        s[k % 2][t] = r;
        u64 state; u32 done = 0;
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(ADDRESS(&barrier)) : "memory");
        while (!done) asm volatile("{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(ADDRESS(&barrier)), "l"(state) : "memory");
        r = r * 3 + s[k % 2][(t + 17) % 96];
    }
    if (i < n) o[i] = r;
}, {
    for (int first = 0; first < n; first += 96) {
        u32 s[96]; u32 r[96];
        for (int t = 0; t < 96; t++) r[t] = first + t < n ? a[first + t] : 0;
        for (int k = 0; k < 3; k++) { memcpy(s, r, sizeof s); for (int t = 0; t < 96; t++) r[t] = r[t] * 3 + s[(t + 17) % 96]; }
        for (int t = 0; t < 96 && first + t < n; t++) o[first + t] = r[t];
    }
})
#endif

#if SINCE(89)
#ifdef __CUDACC__
FN u32 pack_e4m3(float high, float low) { unsigned short r; asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(high), "f"(low)); return r; }
FN u32 pack_e5m2(float high, float low) { unsigned short r; asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(r) : "f"(high), "f"(low)); return r; }
FN u32 halves_e4m3(u32 x) { u32 r; asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r) : "h"((unsigned short)x)); return r; }
FN u32 halves_e5m2(u32 x) { u32 r; asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(r) : "h"((unsigned short)x)); return r; }
#else
// The value of a byte; the greatest finite one is `most`.
static double value8(u32 x, int fraction) {
    int e = (x & 0x7f) >> fraction, m = x & ((1 << fraction) - 1), bias = fraction == 3 ? 7 : 15;
    double size = e ? ldexp(m + (1 << fraction), e - bias - fraction) : ldexp(m, 1 - bias - fraction);
    return x & 0x80 ? -size : size;
}
static u32 nearest8(float x, int fraction, u32 most) {
    u32 sign = bits(x) >> 31 << 7, best = 0;
    if (x != x) return 0x7f;
    for (u32 k = 0; k <= most; k++) {
        double here = fabs(value8(k, fraction) - fabs((double)x)), there = fabs(value8(best, fraction) - fabs((double)x));
        if (here < there || (here == there && !(k & 1))) best = k;
    }
    return sign | (fabs((double)x) > value8(most, fraction) ? most : best);
}
static u32 pack_e4m3(float high, float low) { return nearest8(high, 3, 0x7e) << 8 | nearest8(low, 3, 0x7e); }
static u32 pack_e5m2(float high, float low) { return nearest8(high, 2, 0x7b) << 8 | nearest8(low, 2, 0x7b); }
static u32 half8(u32 x, int fraction) {
    if (fraction == 2) return (x & 0x7f) > 0x7c ? 0x7fff : x << 8;
    if ((x & 0x7f) == 0x7f) return 0x7fff;
    double v = fabs(value8(x, 3));
    if (v == 0) return (x & 0x80) << 8;
    int e = 0;
    double m = frexp(v, &e);
    return (x & 0x80) << 8 | (u32)(e + 14) << 10 | ((u32)(m * 2048) & 0x3ff);
}
static u32 halves_e4m3(u32 x) { return half8(x >> 8 & 255, 3) << 16 | half8(x & 255, 3); }
static u32 halves_e5m2(u32 x) { return half8(x >> 8 & 255, 2) << 16 | half8(x & 255, 2); }
#endif
EACH(byte_e4m3, { o[i] = pack_e4m3(AF, BF); })
EACH(byte_e5m2, { o[i] = pack_e5m2(AF, BF); })
EACH(byte_e4m3_range, { o[i] = pack_e4m3((float)(int)a[i] * 0x1p-22f, f32(0x3f800000u | b[i] >> 9) * 0.01f); })
EACH(f16_from_e4m3, { o[i] = halves_e4m3(a[i]); })
EACH(f16_from_e5m2, { o[i] = halves_e5m2(a[i] >> 16); })
#endif

#if SINCE(90)
// The inverse of a load of matrices.
WHOLE(newer_matrix_store, {
    __shared__ alignas(16) u32 s[96 * 4];
    THREAD
    for (int k = 0; k < 4; k++) s[t * 4 + k] = 0;
    __syncthreads();
    u32 x = i < n ? a[i] : 0;
    u32 y = i < n ? b[i] : 0;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(ADDRESS(s + t * 4)), "r"(x), "r"(y), "r"(x + 1), "r"(y ^ x) : "memory");
    __syncthreads();
    if (i < n) { o[i] = s[t * 4] + 3 * s[t * 4 + 1] + 5 * s[t * 4 + 2] + 7 * s[t * 4 + 3]; }
    __syncthreads();
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(ADDRESS(s + t * 4)), "r"(x) : "memory");
    __syncthreads();
    if (i < n) o[n + i] = s[t * 4] + 3 * s[t * 4 + 1] + 5 * s[t * 4 + 2] + 7 * s[t * 4 + 3];
}, {
    for (int w = 0; w < n; w += 32) {
        auto reg = [&](int l, int m) -> u32 { u32 x = a[w + l], y = b[w + l]; return m == 0 ? x : m == 1 ? y : m == 2 ? x + 1 : y ^ x; };
        auto half = [&](int m, int row, int column) -> u32 { return reg(row * 4 + column / 2, m) >> column % 2 * 16 & 0xffff; };
        u32 rows[32][4];
        for (int l = 0; l < 32; l++) for (int k = 0; k < 4; k++) rows[l][k] = half(l / 8, l % 8, 2 * k) | half(l / 8, l % 8, 2 * k + 1) << 16;
        for (int l = 0; l < 32; l++) o[w + l] = rows[l][0] + 3 * rows[l][1] + 5 * rows[l][2] + 7 * rows[l][3];
        for (int l = 0; l < 8; l++) for (int k = 0; k < 4; k++) rows[l][k] = half(0, 2 * k, l) | half(0, 2 * k + 1, l) << 16;
        for (int l = 0; l < 32; l++) o[n + w + l] = rows[l][0] + 3 * rows[l][1] + 5 * rows[l][2] + 7 * rows[l][3];
    }
})
WHOLE(newer_elect, {
    THREAD
    if (i >= n) return;
    u32 leader = 0;
    o[i] = a[i];
    if (a[i] & 1) asm volatile("{.reg .pred p; elect.sync _|p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(leader) : "r"(__activemask()));
    u32 all = __ballot_sync(~0u, leader);
    o[i] = __popc(all);
}, {
    LANES { u32 any = 0; for (int k = 0; k < 32; k++) any |= a[w + k] & 1; o[w + l] = any; }
})
// Four numbers at once; small integers, so that the order does not matter.
WHOLE(newer_reduce_vector, {
    THREAD
    if (i >= n) return;
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"((float *)o + (a[i] & 15) * 4), "f"((float)(b[i] & 7)), "f"(1.0f), "f"((float)(c[i] & 3)), "f"(0.5f) : "memory");
}, {
    for (int i = 0; i < n; i++) {
        u32 *p = o + (a[i] & 15) * 4;
        float v[4] = {(float)(b[i] & 7), 1.0f, (float)(c[i] & 3), 0.5f};
        for (int k = 0; k < 4; k++) p[k] = bits(f32(p[k]) + v[k]);
    }
})
// One thread asks for 128 words; all wait for the bytes, and for the next ones.
WHOLE(newer_bulk_copy, {
    __shared__ alignas(16) u32 s[128];
    __shared__ alignas(8) u64 barrier;
    THREAD
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(ADDRESS(&barrier)));
    __syncthreads();
    u32 r = 0;
    for (u32 phase = 0; phase < 2; phase++) {
        const u32 *from = (phase ? b : a) + blockIdx.x * 32;
        if (t == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;" ::"r"(ADDRESS(&barrier)) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::"r"(ADDRESS(s)), "l"(from), "r"(ADDRESS(&barrier)) : "memory");
        }
        asm volatile("{.reg .pred p;\nL_%=: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra L_%=;}" ::"r"(ADDRESS(&barrier)), "r"(phase) : "memory");
        r = r * 3 + s[t] + s[t + 32];
        __syncthreads();
    }
    if (i < n) o[i] = r;
}, {
    for (int i = 0; i < n; i++) { int t = i % 96, f = i / 96 * 32; o[i] = (a[f + t] + a[f + t + 32]) * 3 + b[f + t] + b[f + t + 32]; }
})
#endif
