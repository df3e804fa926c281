// Integers and bits.
// SPDX-License-Identifier: CC0-1.0
#include "both.h"

#ifndef __CUDACC__
static int __popc(u32 x) { return __builtin_popcount(x); }
static int __clz(u32 x) { return x ? __builtin_clz(x) : 32; }
static int __ffs(u32 x) { return __builtin_ffs(x); }
static int __popcll(u64 x) { return __builtin_popcountll(x); }
static int __clzll(u64 x) { return x ? __builtin_clzll(x) : 64; }
static u32 __brev(u32 x) { u32 r = 0; for (int k = 0; k < 32; k++) r |= (x >> k & 1) << (31 - k); return r; }
static u64 __brevll(u64 x) { return (u64)__brev((u32)x) << 32 | __brev((u32)(x >> 32)); }
static int __mulhi(int x, int y) { return (int)((i64)x * y >> 32); }
static u32 __umulhi(u32 x, u32 y) { return (u32)((u64)x * y >> 32); }
static u64 __umul64hi(u64 x, u64 y) { return (u64)((unsigned __int128)x * y >> 64); }
static i64 __mul64hi(i64 x, i64 y) { return (i64)((__int128)x * y >> 64); }
static u32 __funnelshift_l(u32 lo, u32 hi, u32 s) { return (u32)(wide(lo, hi) << (s & 31) >> 32); }
static u32 __funnelshift_r(u32 lo, u32 hi, u32 s) { return (u32)(wide(lo, hi) >> (s & 31)); }
static u32 __funnelshift_lc(u32 lo, u32 hi, u32 s) { return s >= 32 ? lo : (u32)(wide(lo, hi) << s >> 32); }
static u32 __funnelshift_rc(u32 lo, u32 hi, u32 s) { return s >= 32 ? hi : (u32)(wide(lo, hi) >> s); }
static u32 __byte_perm(u32 x, u32 y, u32 s) {
    u32 r = 0;
    for (int k = 0; k < 4; k++) r |= (u32)(wide(x, y) >> 8 * (s >> 4 * k & 7) & 255) << 8 * k;
    return r;
}
static u32 __sad(int x, int y, u32 z) { return (u32)llabs((i64)x - y) + z; }
static u32 __usad(u32 x, u32 y, u32 z) { return (x > y ? x - y : y - x) + z; }
static int __dp4a(int x, int y, int z) {
    for (int k = 0; k < 4; k++) z = (int)((u32)z + (u32)((int8_t)(x >> 8 * k) * (int8_t)(y >> 8 * k)));
    return z;
}
static u32 __dp4a(u32 x, u32 y, u32 z) {
    for (int k = 0; k < 4; k++) z += (x >> 8 * k & 255) * (y >> 8 * k & 255);
    return z;
}
static int __dp2a_lo(int x, int y, int z) {
    for (int k = 0; k < 2; k++) z = (int)((u32)z + (u32)((int16_t)(x >> 16 * k) * (int8_t)(y >> 8 * k)));
    return z;
}
static int __dp2a_hi(int x, int y, int z) {
    for (int k = 0; k < 2; k++) z = (int)((u32)z + (u32)((int16_t)(x >> 16 * k) * (int8_t)(y >> (8 * k + 16))));
    return z;
}
static u32 each_byte(u32 x, u32 y, u32 (*f)(u32, u32)) {
    u32 r = 0;
    for (int k = 0; k < 32; k += 8) r |= (f(x >> k & 255, y >> k & 255) & 255) << k;
    return r;
}
static u32 __vabsdiffu4(u32 x, u32 y) { return each_byte(x, y, [](u32 p, u32 q) { return p > q ? p - q : q - p; }); }
static u32 __vadd4(u32 x, u32 y) { return each_byte(x, y, [](u32 p, u32 q) { return p + q; }); }
static u32 __vmaxs4(u32 x, u32 y) { return each_byte(x, y, [](u32 p, u32 q) { return (int8_t)p > (int8_t)q ? p : q; }); }
static u32 __vminu4(u32 x, u32 y) { return each_byte(x, y, [](u32 p, u32 q) { return p < q ? p : q; }); }
static u32 __vcmpgtu4(u32 x, u32 y) { return each_byte(x, y, [](u32 p, u32 q) { return p > q ? 255u : 0u; }); }
static u32 __vsadu4(u32 x, u32 y) {
    u32 r = 0, d = __vabsdiffu4(x, y);
    for (int k = 0; k < 32; k += 8) r += d >> k & 255;
    return r;
}
template <class T> T min(T x, T y) { return x < y ? x : y; }
template <class T> T max(T x, T y) { return x > y ? x : y; }
#define abs(x) ((int)((x) < 0 ? 0u - (u32)(x) : (u32)(x)))
#endif

EACH(int_add, { o[i] = a[i] + b[i]; })
EACH(int_sub, { o[i] = a[i] - b[i]; })
EACH(int_add3, { o[i] = a[i] + b[i] - c[i]; })
EACH(int_mul, { o[i] = a[i] * b[i]; })
EACH(int_mad, { o[i] = a[i] * b[i] + c[i]; })
EACH(int_mad_constant, { o[i] = a[i] * 1103515245u + 12345u; })
EACH(int_mulhi_s, { o[i] = __mulhi(a[i], b[i]); })
EACH(int_mulhi_u, { o[i] = __umulhi(a[i], b[i]); })
EACH(int_mul_wide_s, { OUT64((i64)(int)a[i] * (int)b[i]) })
EACH(int_mul_wide_u, { OUT64((u64)a[i] * b[i]) })
EACH(int_mad_wide, { OUT64((i64)(int)a[i] * (int)b[i] + (i64)B64) })
EACH(int_div_s, { int d = (int)b[i] | 1; o[i] = a[i] == 0x80000000u && d == -1 ? 0 : (u32)((int)a[i] / d); })
EACH(int_div_u, { o[i] = a[i] / (b[i] | 1); })
EACH(int_rem_u, { o[i] = a[i] % (b[i] | 1); })
EACH(int_div_by_7, { o[i] = (u32)((int)a[i] / 7); })
EACH(int_rem_by_1000003, { o[i] = a[i] % 1000003u; })
EACH(int_shl, { o[i] = a[i] << (b[i] & 31); })
EACH(int_shr_s, { o[i] = (u32)((int)a[i] >> (b[i] & 31)); })
EACH(int_shr_u, { o[i] = a[i] >> (b[i] & 31); })
EACH(int_funnel_l, { o[i] = __funnelshift_l(a[i], b[i], c[i]); })
EACH(int_funnel_r, { o[i] = __funnelshift_r(a[i], b[i], c[i]); })
EACH(int_funnel_lc, { o[i] = __funnelshift_lc(a[i], b[i], c[i] & 63); })
EACH(int_funnel_rc, { o[i] = __funnelshift_rc(a[i], b[i], c[i] & 63); })
EACH(int_logic, { o[i] = ((a[i] & ~b[i]) | (c[i] ^ a[i])) & (b[i] | c[i]); })
EACH(int_majority, { o[i] = (a[i] & b[i]) | (b[i] & c[i]) | (a[i] & c[i]); })
EACH(int_xor3, { o[i] = a[i] ^ b[i] ^ c[i]; })
EACH(int_select, { o[i] = (int)a[i] < (int)b[i] ? c[i] : a[i]; })
EACH(int_compare_s, { o[i] = ((int)a[i] < (int)b[i]) + 2 * ((int)a[i] >= (int)c[i]) + 4 * (a[i] == b[i]) + 8 * ((int)b[i] > (int)c[i]); })
EACH(int_compare_u, { o[i] = (a[i] < b[i]) + 2 * (a[i] >= c[i]) + 4 * (a[i] != b[i]) + 8 * (b[i] <= c[i]); })
EACH(int_compare_many, { o[i] = (a[i] < b[i] && (b[i] < c[i] || a[i] == 5)) != (c[i] > 100 && (int)a[i] < 0); })
EACH(int_min_max_s, { o[i] = (u32)(min((int)a[i], (int)b[i]) ^ max((int)b[i], (int)c[i])); })
EACH(int_min_max_u, { o[i] = min(a[i], b[i]) ^ max(b[i], c[i]); })
EACH(int_abs, { o[i] = (u32)abs((int)a[i]); })
EACH(int_popc, { o[i] = __popc(a[i]); })
EACH(int_clz, { o[i] = __clz(a[i]); })
EACH(int_clz_small, { o[i] = __clz(a[i] & 0xff) + 64 * __clz(0 * b[i]); })
EACH(int_ffs, { o[i] = __ffs(a[i]); })
EACH(int_brev, { o[i] = __brev(a[i]); })
EACH(int_permute, { o[i] = __byte_perm(a[i], b[i], c[i]); })
EACH(int_permute_constant, { o[i] = __byte_perm(a[i], b[i], 0x3715); })
EACH(int_sign_extend, { o[i] = (u32)((int)(int8_t)a[i] + (int16_t)b[i] - (uint8_t)c[i]); })
EACH(int_bit_field, { o[i] = (a[i] >> 5 & 0x7ff) | (u32)((int)(b[i] << 9) >> 20); })
EACH(int_sad_s, { o[i] = __sad((int)a[i], (int)b[i], c[i]); })
EACH(int_sad_u, { o[i] = __usad(a[i], b[i], c[i]); })
EACH(int_dp4a_s, { o[i] = (u32)__dp4a((int)a[i], (int)b[i], (int)c[i]); })
EACH(int_dp4a_u, { o[i] = __dp4a(a[i], b[i], c[i]); })
EACH(int_dp2a_lo, { o[i] = (u32)__dp2a_lo((int)a[i], (int)b[i], (int)c[i]); })
EACH(int_dp2a_hi, { o[i] = (u32)__dp2a_hi((int)a[i], (int)b[i], (int)c[i]); })
EACH(int_video, { o[i] = __vadd4(a[i], b[i]) ^ __vmaxs4(b[i], c[i]) ^ __vminu4(a[i], c[i]) ^ __vcmpgtu4(a[i], b[i]); })
EACH(int_video_absdiff, { o[i] = __vabsdiffu4(a[i], b[i]) + __vsadu4(b[i], c[i]); })

EACH(int64_add, { OUT64(A64 + B64) })
EACH(int64_sub, { OUT64(A64 - B64) })
EACH(int64_add3, { OUT64(A64 + B64 + wide(c[i], b[i])) })
EACH(int64_add_mixed, { OUT64(A64 - B64 + wide(c[i], b[i]) - a[i]) })
EACH(int64_neg, { OUT64(0 - A64) })
EACH(int64_mul, { OUT64(A64 * B64) })
EACH(int64_mulhi_u, { OUT64(__umul64hi(A64, B64)) })
EACH(int64_mulhi_s, { OUT64(__mul64hi((i64)A64, (i64)B64)) })
EACH(int64_shl, { OUT64(A64 << (b[i] & 63)) })
EACH(int64_shr_u, { OUT64(A64 >> (b[i] & 63)) })
EACH(int64_shr_s, { OUT64((i64)A64 >> (b[i] & 63)) })
EACH(int64_shift_constant, { OUT64((A64 << 13) ^ (B64 >> 40) ^ (u64)((i64)B64 >> 35)) })
EACH(int64_compare, { o[i] = ((i64)A64 < (i64)B64) + 2 * (A64 < B64) + 4 * (A64 == B64) + 8 * ((i64)A64 > (i64)c[i]) + 16 * (A64 <= wide(a[i], b[i])); })
EACH(int64_min_max, { OUT64(min((i64)A64, (i64)B64) ^ (i64)max(A64, B64)) })
EACH(int64_div_u, { OUT64(A64 / (B64 >> (c[i] & 31) | 1)) })
EACH(int64_rem_u, { OUT64(A64 % (B64 >> (c[i] & 31) | 1)) })
EACH(int64_div_s, { i64 d = (i64)B64 | 1; OUT64(d == -1 ? 0 : (i64)A64 / d) })
EACH(int64_popc_clz, { o[i] = __popcll(A64) + 100 * __clzll(B64 >> (c[i] & 63)); })
EACH(int64_brev, { OUT64(__brevll(A64)) })
// Addresses: shifted additions with a carry between the words.
EACH(int64_index, { OUT64(A64 + (u64)b[i] * 8 + (i64)(int)c[i] * 4) })
