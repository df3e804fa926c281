// Half precision and bfloat16, two numbers a word.
// SPDX-License-Identifier: CC0-1.0
#include "both.h"

#ifdef __CUDACC__
#define TWO(name, ptx) FN u32 name(u32 x, u32 y) { u32 r; asm(ptx " %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); return r; }
#define THREE(name, ptx) FN u32 name(u32 x, u32 y, u32 z) { u32 r; asm(ptx " %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); return r; }
#define ONE(name, ptx) FN u32 name(u32 x) { u32 r; asm(ptx " %0, %1;" : "=r"(r) : "r"(x)); return r; }
TWO(add, "add.rn.f16x2")
TWO(sub, "sub.rn.f16x2")
TWO(mul, "mul.rn.f16x2")
TWO(add_sat, "add.rn.sat.f16x2")
TWO(add_ftz, "add.rn.ftz.f16x2")
THREE(h_fma, "fma.rn.f16x2")
THREE(fma_sat, "fma.rn.sat.f16x2")
THREE(fma_relu, "fma.rn.relu.f16x2")
TWO(minimum, "min.f16x2")
TWO(maximum, "max.f16x2")
TWO(maximum_nan, "max.NaN.f16x2")
ONE(negate, "neg.f16x2")
ONE(absolute, "abs.f16x2")
TWO(less, "set.lt.f16x2.f16x2")
TWO(not_equal, "set.neu.f16x2.f16x2")
THREE(bf_fma, "fma.rn.bf16x2")
THREE(bf_fma_relu, "fma.rn.relu.bf16x2")
TWO(bf_minimum, "min.bf16x2")
TWO(bf_maximum, "max.bf16x2")
FN u32 compare(u32 x, u32 y) {
    u32 r;
    asm("{.reg .pred p, q; setp.lt.f16x2 p|q, %1, %2; selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2;}" : "=r"(r) : "r"(x), "r"(y));
    return r;
}
FN u32 pack(float high, float low) { u32 r; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }
FN u32 pack_relu(float high, float low) { u32 r; asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }
FN u32 bf_pack(float high, float low) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }
FN float widen(unsigned short h) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(h)); return r; }
FN unsigned short narrow(float f) { unsigned short r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(f)); return r; }
FN unsigned short from_int(int x) { unsigned short r; asm("cvt.rn.f16.s32 %0, %1;" : "=h"(r) : "r"(x)); return r; }
FN int to_int(unsigned short h) { int r; asm("cvt.rzi.s32.f16 %0, %1;" : "=r"(r) : "h"(h)); return r; }
FN float bf_widen(unsigned short h) { return f32((u32)h << 16); }
#else
// A format by its bits of exponent and fraction; numbers go through quadruple precision, where products and most sums are exact.
template <int E, int M> struct Format {
    static const u32 infinity = ((1 << E) - 1) << M;
    static bool is_nan(u32 h) { return (h & 0x7fff) > infinity; }
    static double value(u32 h) {
        int e = h >> M & ((1 << E) - 1), bias = (1 << (E - 1)) - 1;
        double m = h & ((1 << M) - 1);
        if (e == (1 << E) - 1) return m ? NAN : h & 0x8000 ? -INFINITY : INFINITY;
        double size = e ? ldexp(m + (1 << M), e - bias - M) : ldexp(m, 1 - bias - M);
        return h & 0x8000 ? -size : size;
    }
    static u32 nearest(__float128 x) {
        if (x != x) return 0x7fff;
        u32 sign = signbit((double)x) ? 0x8000 : 0;
        __float128 size = x < 0 ? -x : x;
        // The pattern below: patterns are in the order of their values.
        u32 low = 0, high = infinity;
        if (size >= value(infinity - 1)) {
            __float128 limit = value(infinity - 1) + (value(infinity - 1) - value(infinity - 2)) / 2;
            if (size == (__float128)INFINITY) return sign | infinity;
            return sign | (size < limit ? infinity - 1 : infinity);
        }
        while (high - low > 1) {
            u32 middle = (low + high) / 2;
            (value(middle) <= size ? low : high) = middle;
        }
        __float128 below = size - value(low), above = value(high) - size;
        if (below < above || (below == above && !(low & 1))) return sign | low;
        return sign | high;
    }
};
typedef Format<5, 10> H;
typedef Format<8, 7> B;
template <class F> static u32 each(F f) { return f(0) | f(16) << 16; }
#define PAIR(f) each([&](int k) -> u32 { u32 p = x >> k & 0xffff, q = y >> k & 0xffff; (void)q; return f; })
#define TRIPLE(f) each([&](int k) -> u32 { u32 p = x >> k & 0xffff, q = y >> k & 0xffff, r = z >> k & 0xffff; return f; })
static u32 flush(u32 h) { return h & 0x7c00 ? h : h & 0x8000; }
static u32 sat(u32 h) { return H::is_nan(h) || h & 0x8000 ? 0 : h < 0x3c00 ? h : 0x3c00; }
template <class F> static u32 relu(u32 h) { return !F::is_nan(h) && h & 0x8000 ? 0 : h; }
template <class F> static u32 sum(u32 p, u32 q) { return F::nearest((__float128)F::value(p) + F::value(q)); }
// An addend too small for quadruple precision still breaks a tie.
static __float128 exact_sum(__float128 x, __float128 y) {
    if (!(x - x == 0 && y - y == 0)) return x + y;
    __float128 p = x < 0 ? -x : x, q = y < 0 ? -y : y;
    if (p < q) return exact_sum(y, x);
    return q && q < p * 0x1p-100 ? x + (y < 0 ? -p : p) * 0x1p-100 : x + y;
}
template <class F> static u32 product_sum(u32 p, u32 q, u32 r) { return F::nearest(exact_sum((__float128)F::value(p) * F::value(q), F::value(r))); }
static int rank(u32 h) { return h & 0x8000 ? -(int)(h & 0x7fff) - 1 : (int)h; }
template <class F> static u32 least(u32 p, u32 q, int s) { return F::is_nan(p) ? (F::is_nan(q) ? 0x7fff : q) : F::is_nan(q) ? p : s * rank(p) < s * rank(q) ? p : q; }
static u32 add(u32 x, u32 y) { return PAIR(sum<H>(p, q)); }
static u32 sub(u32 x, u32 y) { return PAIR(sum<H>(p, q ^ 0x8000)); }
static u32 mul(u32 x, u32 y) { return PAIR(H::nearest((__float128)H::value(p) * H::value(q))); }
static u32 add_sat(u32 x, u32 y) { return PAIR(sat(sum<H>(p, q))); }
static u32 add_ftz(u32 x, u32 y) { return PAIR(flush(sum<H>(flush(p), flush(q)))); }
static u32 h_fma(u32 x, u32 y, u32 z) { return TRIPLE(product_sum<H>(p, q, r)); }
static u32 fma_sat(u32 x, u32 y, u32 z) { return TRIPLE(sat(product_sum<H>(p, q, r))); }
static u32 fma_relu(u32 x, u32 y, u32 z) { return TRIPLE(relu<H>(product_sum<H>(p, q, r))); }
static u32 minimum(u32 x, u32 y) { return PAIR(least<H>(p, q, 1)); }
static u32 maximum(u32 x, u32 y) { return PAIR(least<H>(p, q, -1)); }
static u32 maximum_nan(u32 x, u32 y) { return PAIR(H::is_nan(p) || H::is_nan(q) ? 0x7fff : least<H>(p, q, -1)); }
static u32 negate(u32 x) { return x ^ 0x80008000; }
static u32 absolute(u32 x) { return x & 0x7fff7fff; }
static u32 less(u32 x, u32 y) { return PAIR(H::value(p) < H::value(q) ? 0x3c00 : 0); }
static u32 not_equal(u32 x, u32 y) { return PAIR(H::value(p) != H::value(q) ? 0x3c00 : 0); }
static u32 compare(u32 x, u32 y) { return (H::value(x & 0xffff) < H::value(y & 0xffff)) + 2 * (H::value(x >> 16) < H::value(y >> 16)); }
static u32 bf_fma(u32 x, u32 y, u32 z) { return TRIPLE(product_sum<B>(p, q, r)); }
static u32 bf_fma_relu(u32 x, u32 y, u32 z) { return TRIPLE(relu<B>(product_sum<B>(p, q, r))); }
static u32 bf_minimum(u32 x, u32 y) { return PAIR(least<B>(p, q, 1)); }
static u32 bf_maximum(u32 x, u32 y) { return PAIR(least<B>(p, q, -1)); }
static u32 pack(float high, float low) { return H::nearest(high) << 16 | H::nearest(low); }
static u32 pack_relu(float high, float low) { return relu<H>(H::nearest(high)) << 16 | relu<H>(H::nearest(low)); }
static u32 bf_pack(float high, float low) { return B::nearest(high) << 16 | B::nearest(low); }
static float widen(u32 h) { return (float)H::value(h & 0xffff); }
static float bf_widen(u32 h) { return (float)B::value(h & 0xffff); }
static u32 narrow(float f) { return H::nearest(f); }
static u32 from_int(int x) { return H::nearest(x); }
static int to_int(u32 h) { double x = H::value(h & 0xffff); return x != x ? 0 : x >= 2147483647.0 ? 2147483647 : x <= -2147483648.0 ? -2147483647 - 1 : (int)x; }
#endif

EACH(f16_add, { o[i] = add(a[i], b[i]); })
EACH(f16_sub, { o[i] = sub(a[i], b[i]); })
EACH(f16_mul, { o[i] = mul(a[i], b[i]); })
EACH(f16_add_sat, { o[i] = add_sat(a[i], b[i]); })
EACH(f16_add_ftz, { o[i] = add_ftz(a[i], b[i]); })
EACH(f16_fma, { o[i] = h_fma(a[i], b[i], c[i]); })
EACH(f16_fma_sat, { o[i] = fma_sat(a[i], b[i], c[i]); })
#if SINCE(80)
EACH(f16_fma_relu, { o[i] = fma_relu(a[i], b[i], c[i]); })
#endif
EACH(f16_fma_constant, { o[i] = h_fma(a[i], 0x3e003e00, 0xb4003c01); })
EACH(f16_fma_halves, { o[i] = h_fma(a[i] << 16 | (a[i] & 0xffff), b[i] & 0xffff0000u | b[i] >> 16, c[i]); })
#if SINCE(80)
EACH(f16_min, { o[i] = minimum(a[i], b[i]); })
EACH(f16_max, { o[i] = maximum(a[i], b[i]); })
EACH(f16_max_nan, { o[i] = maximum_nan(a[i], b[i]); })
#endif
EACH(f16_negate, { o[i] = negate(a[i]); })
EACH(f16_absolute, { o[i] = absolute(a[i]); })
EACH(half_set_less, { o[i] = less(a[i], b[i]); })
EACH(half_set_not_equal, { o[i] = not_equal(a[i], b[i]); })
EACH(half_compare, { o[i] = compare(a[i], b[i]); })
#if SINCE(80)
EACH(f16_pack, { o[i] = pack(AF, BF); })
EACH(f16_pack_relu, { o[i] = pack_relu(AF, BF); })
#endif
EACH(f32_from_half, { o[i] = bits(widen((unsigned short)a[i])); })
EACH(f32_from_high_half, { o[i] = bits(widen((unsigned short)(a[i] >> 16))); })
EACH(f16_from_f32, { o[i] = narrow(AF); })
EACH(f16_from_int, { o[i] = from_int((int)a[i] >> (b[i] & 31)); })
EACH(cvt_half_int, { o[i] = (u32)to_int((unsigned short)a[i]); })
#if SINCE(80)
EACH(f16b_fma, { o[i] = bf_fma(a[i], b[i], c[i]); })
EACH(f16b_fma_relu, { o[i] = bf_fma_relu(a[i], b[i], c[i]); })
EACH(f16b_min, { o[i] = bf_minimum(a[i], b[i]); })
EACH(f16b_max, { o[i] = bf_maximum(a[i], b[i]); })
EACH(f16b_pack, { o[i] = bf_pack(AF, BF); })
#endif
EACH(f32_from_bf16, { o[i] = bits(bf_widen((unsigned short)a[i]) + 1.0f); })
