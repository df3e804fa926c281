// Single precision. The reference sets the processor's rounding direction.
// SPDX-License-Identifier: CC0-1.0
#include "both.h"

#ifndef __CUDACC__
#include <fenv.h>
template <class F> static float rounded(int direction, F f) {
    fesetround(direction);
    volatile float r = f();
    fesetround(FE_TONEAREST);
    return r;
}
#define ROUNDED(suffix, direction)                                                                                          \
    static float __fadd_##suffix(float x, float y) { volatile float p = x, q = y; return rounded(direction, [&] { return p + q; }); } \
    static float __fmul_##suffix(float x, float y) { volatile float p = x, q = y; return rounded(direction, [&] { return p * q; }); } \
    static float __fmaf_##suffix(float x, float y, float z) { volatile float p = x, q = y, r = z; return rounded(direction, [&] { return fmaf(p, q, r); }); }
ROUNDED(rd, FE_DOWNWARD)
ROUNDED(ru, FE_UPWARD)
ROUNDED(rz, FE_TOWARDZERO)
static float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
static float __fdiv_rn(float x, float y) { return x / y; }
static float __fsqrt_rn(float x) { return sqrtf(x); }
static float __frcp_rn(float x) { return 1 / x; }
// The GPU's minimum counts -0 below +0.
static float lesser(float x, float y) {
    if (x != x) return y;
    if (y != y) return x;
    return x < y || (x == y && signbit(x)) ? x : y;
}
static float greater(float x, float y) { return -lesser(-x, -y); }
#define fminf lesser
#define fmaxf greater
static float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
static float fadd_ftz(float x, float y) { return flushed(flushed(x) + flushed(y)); }
static float fmul_ftz(float x, float y) { return flushed(flushed(x) * flushed(y)); }
static float fma_ftz(float x, float y, float z) { return flushed(fmaf(flushed(x), flushed(y), flushed(z))); }
static bool less_ftz(float x, float y) { return flushed(x) < flushed(y); }
static float max_ftz(float x, float y) { return greater(flushed(x), flushed(y)); }
static float fma_sat(float x, float y, float z) { return __saturatef(fmaf(x, y, z)); }
#else
FN float fadd_ftz(float x, float y) { float r; asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); return r; }
FN float fmul_ftz(float x, float y) { float r; asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); return r; }
FN float fma_ftz(float x, float y, float z) { float r; asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(x), "f"(y), "f"(z)); return r; }
FN float max_ftz(float x, float y) { float r; asm("max.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); return r; }
FN float fma_sat(float x, float y, float z) { float r; asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(x), "f"(y), "f"(z)); return r; }
FN bool less_ftz(float x, float y) { int r; asm("{.reg .pred p; setp.lt.ftz.f32 p, %1, %2; selp.s32 %0, 1, 0, p;}" : "=r"(r) : "f"(x), "f"(y)); return r; }
#endif

EACH(f32_add, { o[i] = bits(AF + BF); })
EACH(f32_sub, { o[i] = bits(AF - BF); })
EACH(f32_mul, { o[i] = bits(AF * BF); })
EACH(f32_fma, { o[i] = bits(fmaf(AF, BF, CF)); })
EACH(f32_fma_signs, { o[i] = bits(fmaf(-AF, fabsf(BF), -CF)); })
EACH(f32_fma_constant, { o[i] = bits(fmaf(AF, 1.5f, -0.25f)); })
EACH(f32_add_rd, { o[i] = bits(__fadd_rd(AF, BF)); })
EACH(f32_add_ru, { o[i] = bits(__fadd_ru(AF, BF)); })
EACH(f32_add_rz, { o[i] = bits(__fadd_rz(AF, BF)); })
EACH(f32_mul_rd, { o[i] = bits(__fmul_rd(AF, BF)); })
EACH(f32_mul_ru, { o[i] = bits(__fmul_ru(AF, BF)); })
EACH(f32_mul_rz, { o[i] = bits(__fmul_rz(AF, BF)); })
EACH(f32_fma_rd, { o[i] = bits(__fmaf_rd(AF, BF, CF)); })
EACH(f32_fma_ru, { o[i] = bits(__fmaf_ru(AF, BF, CF)); })
EACH(f32_fma_rz, { o[i] = bits(__fmaf_rz(AF, BF, CF)); })
EACH(f32_add_ftz, { o[i] = bits(fadd_ftz(AF, BF)); })
EACH(f32_mul_ftz, { o[i] = bits(fmul_ftz(AF, BF)); })
EACH(f32_fma_ftz, { o[i] = bits(fma_ftz(AF, BF, CF)); })
EACH(f32_fma_sat, { o[i] = bits(fma_sat(AF, BF, CF)); })
EACH(f32_saturate, { o[i] = bits(__saturatef(AF)); })
EACH(f32_min, { o[i] = bits(fminf(AF, BF)); })
EACH(f32_max, { o[i] = bits(fmaxf(AF, BF)); })
EACH(f32_max_ftz, { o[i] = bits(max_ftz(AF, BF)); })
EACH(f32_compare, { o[i] = (AF < BF) + 2 * (AF <= BF) + 4 * (AF > BF) + 8 * (AF >= BF) + 16 * (AF == BF) + 32 * (AF != BF); })
EACH(f32_compare_unordered, { o[i] = !(AF < BF) + 2 * !(AF <= BF) + 4 * !(AF > BF) + 8 * !(AF >= BF) + 16 * (AF != AF) + 32 * !(AF != AF || BF != BF); })
EACH(f32_compare_ftz, { o[i] = less_ftz(AF, BF); })
EACH(f32_select, { o[i] = bits(AF < BF ? -CF : fabsf(AF)); })
EACH(f32_negate, { o[i] = bits(-AF); })
EACH(f32_abs, { o[i] = bits(fabsf(AF)); })
EACH(f32_copysign, { o[i] = bits(copysignf(AF, BF)); })
EACH(f32_divide, { o[i] = bits(__fdiv_rn(AF, BF)); })
EACH(f32_reciprocal, { o[i] = bits(__frcp_rn(AF)); })
EACH(f32_sqrt, { o[i] = bits(__fsqrt_rn(AF)); })
EACH(f32_floor, { o[i] = bits(floorf(AF)); })
EACH(f32_ceil, { o[i] = bits(ceilf(AF)); })
EACH(f32_trunc, { o[i] = bits(truncf(AF)); })
EACH(f32_rint, { o[i] = bits(rintf(AF)); })
EACH(f32_round, { o[i] = bits(roundf(AF)); })
EACH(f32_fmod, { o[i] = bits(fmodf(AF, BF)); })
EACH(f32_ldexp, { o[i] = bits(ldexpf(AF, (int)(b[i] % 300) - 150)); })
