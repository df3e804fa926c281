// Across the lanes of a warp.
// SPDX-License-Identifier: CC0-1.0
#include "both.h"

#define THREAD int i = blockIdx.x * blockDim.x + threadIdx.x; int l = threadIdx.x & 31; (void)l; if (i >= n) return;
// All n elements are in full warps; w is the first of one, l a lane.
#define LANES for (int w = 0; w < n; w += 32) for (int l = 0; l < 32; l++)
#define SUM_OVER(condition, term) ({ u32 s = 0; for (int k = 0; k < 32; k++) if (condition) s += (term); s; })
#define BALLOT(condition) SUM_OVER(condition, 1u << k)

WHOLE(warp_shfl_xor, { THREAD o[i] = __shfl_xor_sync(~0u, a[i], 5) + b[i]; }, { LANES o[w + l] = a[w + (l ^ 5)] + b[w + l]; })
WHOLE(warp_shfl_down, { THREAD o[i] = __shfl_down_sync(~0u, a[i], 3); }, { LANES o[w + l] = a[w + (l + 3 < 32 ? l + 3 : l)]; })
WHOLE(warp_shfl_up, { THREAD o[i] = __shfl_up_sync(~0u, a[i], 7); }, { LANES o[w + l] = a[w + (l >= 7 ? l - 7 : l)]; })
WHOLE(warp_shfl_index, { THREAD o[i] = __shfl_sync(~0u, a[i], b[i]); }, { LANES o[w + l] = a[w + (b[w + l] & 31)]; })
WHOLE(warp_shfl_down_8, { THREAD o[i] = __shfl_down_sync(~0u, a[i], 3, 8); }, { LANES o[w + l] = a[w + ((l & 7) + 3 < 8 ? l + 3 : l)]; })
WHOLE(warp_shfl_up_16, { THREAD o[i] = __shfl_up_sync(~0u, a[i], b[0] & 15, 16); }, { LANES { int d = b[0] & 15; o[w + l] = a[w + ((l & 15) >= d ? l - d : l)]; } })
WHOLE(warp_shfl_index_4, { THREAD o[i] = __shfl_sync(~0u, a[i], b[i], 4); }, { LANES o[w + l] = a[w + (l & 28) + (b[w + l] & 3)]; })
WHOLE(warp_shfl_wide, { THREAD u64 v = __shfl_xor_sync(~0u, wide(a[i], b[i]), 16); o[i] = (u32)(v >> 16); }, { LANES o[w + l] = (u32)(wide(a[w + (l ^ 16)], b[w + (l ^ 16)]) >> 16); })
WHOLE(warp_shfl_predicate, {
    THREAD
    u32 r; u32 inside;
    asm("{.reg .pred p; shfl.sync.up.b32 %0|p, %2, %3, 0, 0xffffffff; selp.u32 %1, 1, 0, p;}" : "=r"(r), "=r"(inside) : "r"(a[i]), "r"(b[i] & 7));
    o[i] = r * 2 + inside;
}, { LANES { int d = b[w + l] & 7; o[w + l] = l >= d ? a[w + l - d] * 2 + 1 : a[w + l] * 2; } })
WHOLE(warp_scan, {
    THREAD
    u32 v = a[i];
    for (int k = 1; k < 32; k *= 2) { u32 x = __shfl_up_sync(~0u, v, k); if (l >= k) v += x; }
    o[i] = v;
}, { LANES o[w + l] = SUM_OVER(k <= l, a[w + k]); })
WHOLE(warp_ballot, { THREAD o[i] = __ballot_sync(~0u, a[i] & 1); }, { LANES o[w + l] = BALLOT(a[w + k] & 1); })
WHOLE(warp_vote, {
    THREAD
    o[i] = __any_sync(~0u, a[i] % 40 == 0) + 2 * __all_sync(~0u, a[i] % 40 != 0) + 4 * (__popc(__ballot_sync(~0u, b[i] < a[i])) > 16);
}, { LANES { u32 hit = BALLOT(a[w + k] % 40 == 0); o[w + l] = (hit != 0) + 2 * (hit == 0) + 4 * (SUM_OVER(b[w + k] < a[w + k], 1) > 16); } })
WHOLE(warp_ballot_divergent, {
    THREAD
    if (a[i] & 1) { u32 m = __activemask(); o[i] = __ballot_sync(m, b[i] & 1); } else o[i] = 7;
}, { LANES o[w + l] = a[w + l] & 1 ? BALLOT(a[w + k] & 1 && b[w + k] & 1) : 7; })
WHOLE(warp_match_any, { THREAD o[i] = __match_any_sync(~0u, a[i] % 5); }, { LANES o[w + l] = BALLOT(a[w + k] % 5 == a[w + l] % 5); })
WHOLE(warp_match_any_wide, { THREAD o[i] = __match_any_sync(~0u, (u64)(a[i] % 3) << 32 | b[i] % 2); }, { LANES o[w + l] = BALLOT(a[w + k] % 3 == a[w + l] % 3 && b[w + k] % 2 == b[w + l] % 2); })
#define MATCHED(k) (w / 64 % 2 ? 5u : a[w + (k)] % 5)
WHOLE(warp_match_all, { THREAD int p; u32 m = __match_all_sync(~0u, i / 64 % 2 ? 5u : a[i] % 5, &p); o[i] = m / 2 + p; }, {
    LANES o[w + l] = BALLOT(MATCHED(k) == MATCHED(0)) == ~0u ? ~0u / 2 + 1 : 0;
})
#if SINCE(80)
WHOLE(warp_redux_add, { THREAD o[i] = __reduce_add_sync(~0u, a[i]); }, { LANES o[w + l] = SUM_OVER(true, a[w + k]); })
WHOLE(warp_redux_min_s, { THREAD o[i] = (u32)__reduce_min_sync(~0u, (int)a[i]); }, { LANES { int m = 0x7fffffff; for (int k = 0; k < 32; k++) if ((int)a[w + k] < m) m = a[w + k]; o[w + l] = m; } })
WHOLE(warp_redux_max_u, { THREAD o[i] = __reduce_max_sync(~0u, a[i]); }, { LANES { u32 m = 0; for (int k = 0; k < 32; k++) if (a[w + k] > m) m = a[w + k]; o[w + l] = m; } })
WHOLE(warp_redux_and, { THREAD o[i] = __reduce_and_sync(~0u, a[i] | 0xff << (l & 3) * 8); }, { LANES { u32 m = ~0u; for (int k = 0; k < 32; k++) m &= a[w + k] | 0xffu << (k & 3) * 8; o[w + l] = m; } })
WHOLE(warp_redux_or, { THREAD o[i] = __reduce_or_sync(~0u, a[i] & 1 << l); }, { LANES o[w + l] = BALLOT(a[w + k] >> k & 1); })
WHOLE(warp_redux_xor, { THREAD o[i] = __reduce_xor_sync(~0u, a[i]); }, { LANES { u32 m = 0; for (int k = 0; k < 32; k++) m ^= a[w + k]; o[w + l] = m; } })
#endif
WHOLE(warp_sum_float, {
    THREAD
    float v = (float)(a[i] & 0xfff);
    for (int k = 16; k > 0; k /= 2) v += __shfl_xor_sync(~0u, v, k);
    o[i] = bits(v);
}, { LANES o[w + l] = bits((float)SUM_OVER(true, a[w + k] & 0xfff)); })
WHOLE(warp_sync_exchange, {
    __shared__ u32 s[96];
    THREAD
    s[threadIdx.x] = a[i];
    __syncwarp();
    u32 r = s[threadIdx.x ^ 1];
    if (a[i] & 1) { __syncwarp(__activemask()); r *= 3; }
    __syncwarp();
    s[threadIdx.x] = r;
    __syncwarp();
    o[i] = s[threadIdx.x ^ 2];
}, { LANES { int other = l ^ 2; o[w + l] = a[w + (other ^ 1)] * (a[w + other] & 1 ? 3 : 1); } })
#if SINCE(80)
WHOLE(warp_half_masks, {
    THREAD
    if (l < 16) o[i] = __shfl_xor_sync(0xffffu, a[i], 3) + __reduce_add_sync(0xffffu, b[i]);
    else o[i] = __shfl_xor_sync(0xffff0000u, b[i], 5) - __reduce_add_sync(0xffff0000u, a[i]);
}, { LANES o[w + l] = l < 16 ? a[w + (l ^ 3)] + SUM_OVER(k < 16, b[w + k]) : b[w + (l ^ 5)] - SUM_OVER(k >= 16, a[w + k]); })
#endif
// The lanes' masks are the same in every other warp.
WHOLE(warp_variable_mask, {
    THREAD
    u32 mask = ~0u;
    if (i / 32 & 1) mask = l < 16 ? 0xffffu : 0xffff0000u;
    o[i] = __ballot_sync(mask, a[i] & 1);
}, {
    LANES {
        u32 mask = w / 32 & 1 ? l < 16 ? 0xffffu : 0xffff0000u : ~0u;
        o[w + l] = BALLOT(a[w + k] & 1) & mask;
    }
})
WHOLE(warp_block_counts, {
    THREAD
    int yes = __syncthreads_count(a[i] & 1);
    int any = __syncthreads_or(b[i] == 3);
    int all = __syncthreads_and(c[i] < 0xf0000000u);
    o[i] = yes + 1000 * (any != 0) + 2000 * (all != 0);
}, {
    for (int first = 0; first < n; first += 96) {
        int yes = 0, any = 0, all = 1, end = first + 96 < n ? first + 96 : n;
        for (int k = first; k < end; k++) { yes += a[k] & 1; any |= b[k] == 3; all &= c[k] < 0xf0000000u; }
        for (int k = first; k < end; k++) o[k] = yes + 1000 * any + 2000 * all;
    }
})
