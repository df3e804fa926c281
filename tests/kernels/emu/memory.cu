// Loads and stores of every width, spaces, atomics.
// SPDX-License-Identifier: CC0-1.0
#include "both.h"

#ifdef __CUDACC__
#define CONSTANT static __constant__
#define NOINLINE static __device__ __noinline__
#else
#define CONSTANT static const
#define NOINLINE static __attribute__((noinline))
struct alignas(8) uint2 { u32 x, y; };
struct alignas(16) uint4 { u32 x, y, z, w; };
static uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }
#endif

EACH(mem_bytes, { const uint8_t *p = (const uint8_t *)a; const int8_t *q = (const int8_t *)b; o[i] = p[i * 3] + 256 * (u32)q[i * 2 + 1]; })
EACH(mem_halves, { const uint16_t *p = (const uint16_t *)a; const int16_t *q = (const int16_t *)b; o[i] = p[i * 2 + 1] + 65536 * (u32)q[i]; })
EACH(mem_vector2, { if (i < n / 2) { uint2 v = ((const uint2 *)a)[i]; v.x += b[i]; v.y ^= c[i]; ((uint2 *)o)[i] = v; } })
EACH(mem_vector4, { if (i < n / 4) { uint4 v = ((const uint4 *)a)[i]; ((uint4 *)o)[i] = make_uint4(v.w, v.z + b[i], v.y, v.x ^ c[i]); } })
EACH(mem_store_bytes, { uint8_t *p = (uint8_t *)o; p[i * 4] = a[i]; p[i * 4 + 1] = a[i] >> 8; *(uint16_t *)(p + i * 4 + 2) = b[i]; })
EACH(mem_wide, { ((u64 *)o)[i] = ((const u64 *)a)[i / 2] * 3 + b[i]; })
EACH(mem_gather, { o[i] = a[b[i] % n] + b[c[i] % n]; })
EACH(mem_local, {
    u32 t[32];
    for (int k = 0; k < 32; k++) t[k] = a[(i + k) % n];
    for (int k = 0; k < 32; k++) t[t[k] & 31] += t[(k + b[i]) & 31];
    u32 h = 0;
    for (int k = 0; k < 32; k++) h = h * 17 + t[k];
    o[i] = h + t[c[i] & 31];
})
EACH(mem_local_bytes, {
    uint8_t t[64];
    for (int k = 0; k < 64; k++) t[k] = a[(i + k) % n] >> (k & 7);
    u32 h = 0;
    for (int k = 0; k < 64; k++) h = h * 33 + t[(k * 7 + b[i]) & 63];
    *(u32 *)(t + (c[i] & 15) * 4) = h;
    o[i] = t[b[i] & 63] + h;
})
CONSTANT u32 table[16] = {1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987};
CONSTANT uint16_t short_table[8] = {9, 8, 7, 6, 5, 4, 3, 2};
EACH(mem_constant, { o[i] = table[a[i] & 15] * short_table[b[i] & 7] + table[3]; })
NOINLINE u32 through(const u32 *p, u32 k) { return p[k & 3] + 1; }
EACH(mem_generic_local, { u32 t[4] = {a[i], b[i], c[i], 5}; t[a[i] & 3] ^= 9; const u32 *p = b[i] & 1 ? t : c; o[i] = through(p, a[i]); })

#define THREAD int i = blockIdx.x * blockDim.x + threadIdx.x; int t = threadIdx.x;
// Blocks have 96 threads, 2048 elements make 21 full blocks and a third.
#define BLOCKS for (int first = 0; first < n; first += 96) for (int t = 0, i = first; t < 96 && i < n; t++, i++)

WHOLE(mem_shared_reverse, {
    __shared__ u32 s[96];
    THREAD
    s[t] = i < n ? a[i] : 0;
    __syncthreads();
    if (i < n) o[i] = s[95 - t] + b[i];
}, {
    BLOCKS { int from = first + 95 - t; o[i] = (from < n ? a[from] : 0) + b[i]; }
})
WHOLE(mem_shared_widths, {
    __shared__ uint8_t s[96 * 8];
    THREAD
    if (i < n) { *(uint16_t *)(s + t * 8) = a[i]; s[t * 8 + 2] = b[i]; s[t * 8 + 3] = c[i]; *(u32 *)(s + t * 8 + 4) = a[i] ^ b[i]; }
    else *(u64 *)(s + t * 8) = 0;
    __syncthreads();
    int other = t ^ 1;
    if (i < n) { uint2 v = *(uint2 *)(s + other * 8); o[i] = v.x * 3 + v.y + s[t * 8 + 2] + *(int16_t *)(s + t * 8); }
}, {
    BLOCKS { int j = i ^ 1; u32 x = (a[j] & 0xffff) | (b[j] & 255) << 16 | c[j] << 24; o[i] = x * 3 + (a[j] ^ b[j]) + (b[i] & 255) + (u32)(int16_t)a[i]; }
})
WHOLE(mem_shared_sum, {
    __shared__ u32 s[128];
    THREAD
    s[t] = i < n ? a[i] : 0;
    if (t < 32) s[96 + t] = 0;
    __syncthreads();
    for (int k = 64; k > 0; k /= 2) { if (t < k) s[t] += s[t + k]; __syncthreads(); }
    if (i < n) o[i] = s[0] + b[i];
}, {
    BLOCKS { u32 sum = 0; for (int k = first; k < first + 96 && k < n; k++) sum += a[k]; o[i] = sum + b[i]; }
})
WHOLE(mem_shared_dynamic_loop, {
    __shared__ u32 s[2][96];
    THREAD
    u32 r = i < n ? a[i] : 1;
    for (int k = 0; k < 10; k++) { s[k & 1][t] = r; __syncthreads(); r = r * 3 + s[k & 1][(t + 33) % 96]; }
    if (i < n) o[i] = r;
}, {
    for (int first = 0; first < n; first += 96) {
        std::vector<u32> r(96), s(96);
        for (int t = 0; t < 96; t++) r[t] = first + t < n ? a[first + t] : 1;
        for (int k = 0; k < 10; k++) { s = r; for (int t = 0; t < 96; t++) r[t] = s[t] * 3 + s[(t + 33) % 96]; }
        for (int t = 0; t < 96 && first + t < n; t++) o[first + t] = r[t];
    }
})
WHOLE(mem_atomics, {
    THREAD
    if (i >= n) return;
    u32 *g = o + (a[i] % 64) * 8;
    atomicAdd(g, b[i]);
    atomicMin((int *)g + 1, (int)b[i]);
    atomicMax(g + 2, c[i]);
    atomicAnd(g + 3, b[i] | 0xff);
    atomicOr(g + 4, c[i] & 0xf0f0);
    atomicXor(g + 5, b[i]);
    atomicInc(g + 6, 1000000);
    atomicSub(g + 7, c[i]);
}, {
    for (int i = 0; i < n; i++) {
        u32 *g = o + (a[i] % 64) * 8;
        g[0] += b[i]; if ((int)b[i] < (int)g[1]) g[1] = b[i]; if (c[i] > g[2]) g[2] = c[i];
        g[3] &= b[i] | 0xff; g[4] |= c[i] & 0xf0f0; g[5] ^= b[i]; g[6] = g[6] >= 1000000 ? 0 : g[6] + 1; g[7] -= c[i];
    }
})
WHOLE(mem_atomics_wide, {
    THREAD
    if (i >= n) return;
    u64 *g = (u64 *)o + (a[i] % 32) * 4;
    atomicAdd(g, wide(b[i], c[i]));
    atomicMax((i64 *)g + 1, (i64)wide(c[i], b[i]));
    atomicOr(g + 2, wide(b[i], c[i]) & 0x00ff00ff00ff00ffull);
    atomicMin(g + 3, wide(a[i], b[i]));
}, {
    for (int i = 0; i < n; i++) {
        u64 g[4];
        memcpy(g, o + (a[i] % 32) * 8, 32);
        g[0] += wide(b[i], c[i]);
        i64 v = (i64)wide(c[i], b[i]);
        if (v > (i64)g[1]) g[1] = (u64)v;
        g[2] |= wide(b[i], c[i]) & 0x00ff00ff00ff00ffull;
        if (wide(a[i], b[i]) < g[3]) g[3] = wide(a[i], b[i]);
        memcpy(o + (a[i] % 32) * 8, g, 32);
    }
})
// Each element is touched by one thread, so that the old values are known.
WHOLE(mem_atomics_old, {
    THREAD
    if (i >= n) return;
    o[i] = a[i];
    u32 x = atomicExch(o + i, b[i]);
    u32 y = atomicCAS(o + i, b[i], c[i]);
    u32 z = atomicCAS(o + i, c[i] + 1, 7);
    u32 w = atomicDec(o + i, 50);
    o[n + i] = x + 3 * y + 5 * z + 7 * w;
}, {
    for (int i = 0; i < n; i++) { o[i] = c[i] == 0 || c[i] > 50 ? 50 : c[i] - 1; o[n + i] = a[i] + 3 * b[i] + 5 * c[i] + 7 * c[i]; }
})
WHOLE(mem_atomics_float, {
    THREAD
    if (i >= n) return;
    if (i < 64) o[i] = 0;
    __syncthreads();
    if (blockIdx.x == 0 && i < 64) { atomicAdd((float *)o + i, (float)(a[i] % 1000)); atomicAdd((float *)o + i, 0.5f); }
    if (i >= 64 && i < 80) { ((double *)o)[i] = 1.5; atomicAdd((double *)o + i, (double)b[i]); }
}, {
    for (int i = 0; i < 64; i++) o[i] = bits((float)(a[i] % 1000) + 0.5f);
    for (int i = 64; i < 80; i++) { u64 v = bits(1.5 + b[i]); memcpy(o + 2 * i, &v, 8); }
})
WHOLE(mem_shared_histogram, {
    __shared__ u32 bins[32];
    THREAD
    if (t < 32) bins[t] = 0;
    __syncthreads();
    if (i < n) atomicAdd(&bins[a[i] & 31], 1);
    __syncthreads();
    if (t < 32) o[blockIdx.x * 32 + t] = bins[t];
}, {
    for (int k = 0; k < (n + 95) / 96 * 32; k++) o[k] = 0;
    for (int i = 0; i < n; i++) o[i / 96 * 32 + (a[i] & 31)]++;
})
WHOLE(mem_lock, {
    __shared__ u32 lock;
    __shared__ u32 total;
    THREAD
    if (t == 0) { lock = 0; total = 0; }
    __syncthreads();
    // Every lane takes the lock in turn: lanes that wait must not keep the holder from going on.
    bool done = i >= n;
    while (!done) { if (atomicCAS(&lock, 0u, 1u) == 0) { *(volatile u32 *)&total = *(volatile u32 *)&total + a[i]; __threadfence_block(); atomicExch(&lock, 0u); done = true; } }
    __syncthreads();
    if (i < n) o[i] = total;
}, {
    BLOCKS { u32 sum = 0; for (int k = first; k < first + 96 && k < n; k++) sum += a[k]; o[i] = sum; }
})
#if SINCE(80)
WHOLE(mem_async_copy, {
    __shared__ alignas(16) u32 s[96 * 4];
    THREAD
    u32 at = (u32)__cvta_generic_to_shared(s + t * 4);
    const u32 *from = a + (i * 4) % n;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;" ::"r"(at), "l"(from) : "memory");
    __syncthreads();
    if (i < n) o[i] = s[(t ^ 1) * 4 + (t & 3)];
}, {
    for (int i = 0; i < n; i++) { int t = i % 96, other = i - t + (t ^ 1); o[i] = a[(other * 4) % n + (t & 3)]; }
})
#endif
