// Double precision.
// SPDX-License-Identifier: CC0-1.0
#include "both.h"

#ifndef __CUDACC__
#include <fenv.h>
template <class F> static double rounded(int direction, F f) {
    fesetround(direction);
    volatile double r = f();
    fesetround(FE_TONEAREST);
    return r;
}
#define ROUNDED(suffix, direction)                                                                                          \
    static double __dadd_##suffix(double x, double y) { volatile double p = x, q = y; return rounded(direction, [&] { return p + q; }); } \
    static double __dmul_##suffix(double x, double y) { volatile double p = x, q = y; return rounded(direction, [&] { return p * q; }); } \
    static double __fma_##suffix(double x, double y, double z) { volatile double p = x, q = y, r = z; return rounded(direction, [&] { return fma(p, q, r); }); }
ROUNDED(rd, FE_DOWNWARD)
ROUNDED(ru, FE_UPWARD)
ROUNDED(rz, FE_TOWARDZERO)
static double lesser(double x, double y) {
    if (x != x) return y;
    if (y != y) return x;
    return x < y || (x == y && signbit(x)) ? x : y;
}
static double greater(double x, double y) { return -lesser(-x, -y); }
#define fmin lesser
#define fmax greater
#endif

EACH(f64_add, { OUT64(bits(AD + BD)) })
EACH(f64_sub, { OUT64(bits(AD - BD)) })
EACH(f64_mul, { OUT64(bits(AD * BD)) })
EACH(f64_fma, { OUT64(bits(fma(AD, BD, CD))) })
EACH(f64_fma_signs, { OUT64(bits(fma(-AD, fabs(BD), -CD))) })
EACH(f64_fma_constant, { OUT64(bits(fma(AD, 1.5, -0.25))) })
EACH(f64_add_rd, { OUT64(bits(__dadd_rd(AD, BD))) })
EACH(f64_add_ru, { OUT64(bits(__dadd_ru(AD, BD))) })
EACH(f64_mul_rz, { OUT64(bits(__dmul_rz(AD, BD))) })
EACH(f64_fma_rd, { OUT64(bits(__fma_rd(AD, BD, CD))) })
EACH(f64_fma_ru, { OUT64(bits(__fma_ru(AD, BD, CD))) })
EACH(f64_fma_rz, { OUT64(bits(__fma_rz(AD, BD, CD))) })
EACH(f64_min, { OUT64(bits(fmin(AD, BD))) })
EACH(f64_max, { OUT64(bits(fmax(AD, BD))) })
EACH(f64_compare, { o[i] = (AD < BD) + 2 * (AD <= BD) + 4 * (AD > BD) + 8 * (AD >= BD) + 16 * (AD == BD) + 32 * (AD != BD); })
EACH(f64_compare_unordered, { o[i] = !(AD < BD) + 2 * !(AD <= BD) + 4 * !(AD > BD) + 8 * !(AD >= BD) + 16 * (AD != AD); })
EACH(f64_divide, { OUT64(bits(AD / BD)) })
EACH(f64_sqrt, { OUT64(bits(sqrt(AD))) })
EACH(f64_floor, { OUT64(bits(floor(AD))) })
EACH(f64_ceil, { OUT64(bits(ceil(AD))) })
EACH(f64_trunc, { OUT64(bits(trunc(AD))) })
EACH(f64_rint, { OUT64(bits(rint(AD))) })
EACH(f64_negate, { OUT64(bits(-AD)) })
EACH(f64_abs, { OUT64(bits(fabs(AD))) })
