// Conversions. What C++ leaves open (NaN, overflow) the reference does as the PTX ISA says: saturate; a NaN is 0, or the top bit where a
// 64-bit type takes part.
// SPDX-License-Identifier: CC0-1.0
#include "both.h"

#ifndef __CUDACC__
static double toward(double x, int how) { return how == 'n' ? rint(x) : how == 'd' ? floor(x) : how == 'u' ? ceil(x) : trunc(x); }
static u64 to_integer(double x, int how, bool is_signed, int width, bool nan_to_zero) {
    if (x != x) return nan_to_zero ? 0 : 1ull << (width - 1);
    x = toward(x, how);
    double top = ldexp(1, is_signed ? width - 1 : width), bottom = is_signed ? -top : 0;
    if (x >= top) return is_signed ? (1ull << (width - 1)) - 1 : ~0ull >> (64 - width);
    if (x < bottom) x = bottom;
    return is_signed ? (u64)(i64)x : (u64)x;
}
static int __float2int_rn(float x) { return (int)to_integer(x, 'n', true, 32, true); }
static int __float2int_rz(float x) { return (int)to_integer(x, 'z', true, 32, true); }
static int __float2int_rd(float x) { return (int)to_integer(x, 'd', true, 32, true); }
static int __float2int_ru(float x) { return (int)to_integer(x, 'u', true, 32, true); }
static u32 __float2uint_rn(float x) { return (u32)to_integer(x, 'n', false, 32, true); }
static u32 __float2uint_rz(float x) { return (u32)to_integer(x, 'z', false, 32, true); }
static i64 __float2ll_rz(float x) { return (i64)to_integer(x, 'z', true, 64, false); }
static i64 __float2ll_rn(float x) { return (i64)to_integer(x, 'n', true, 64, false); }
static u64 __float2ull_rz(float x) { return to_integer(x, 'z', false, 64, false); }
static int __double2int_rz(double x) { return (int)to_integer(x, 'z', true, 32, false); }
static u32 __double2uint_rn(double x) { return (u32)to_integer(x, 'n', false, 32, false); }
static i64 __double2ll_rd(double x) { return (i64)to_integer(x, 'd', true, 64, false); }
static u64 __double2ull_ru(double x) { return to_integer(x, 'u', false, 64, false); }
#include <fenv.h>
template <class R, class T> static R rounded(int direction, T x) {
    fesetround(direction);
    volatile T v = x;
    volatile R r = (R)v;
    fesetround(FE_TONEAREST);
    return r;
}
static float __int2float_rn(int x) { return (float)x; }
static float __int2float_rz(int x) { return rounded<float>(FE_TOWARDZERO, x); }
static float __int2float_rd(int x) { return rounded<float>(FE_DOWNWARD, x); }
static float __uint2float_rn(u32 x) { return (float)x; }
static float __uint2float_ru(u32 x) { return rounded<float>(FE_UPWARD, x); }
static float __ll2float_rn(i64 x) { return (float)x; }
static float __ull2float_rn(u64 x) { return (float)x; }
static float __ull2float_ru(u64 x) { return rounded<float>(FE_UPWARD, x); }
static double __int2double_rn(int x) { return x; }
static double __ll2double_rn(i64 x) { return (double)x; }
static double __ll2double_rd(i64 x) { return rounded<double>(FE_DOWNWARD, x); }
static double __ull2double_rn(u64 x) { return (double)x; }
static float __double2float_rn(double x) { return (float)x; }
static float __double2float_rz(double x) { return rounded<float>(FE_TOWARDZERO, x); }
static float __double2float_ru(double x) { return rounded<float>(FE_UPWARD, x); }
#endif

EACH(cvt_f32_s32_rn, { o[i] = (u32)__float2int_rn(AF); })
EACH(cvt_f32_s32_rz, { o[i] = (u32)__float2int_rz(AF); })
EACH(cvt_f32_s32_rd, { o[i] = (u32)__float2int_rd(AF); })
EACH(cvt_f32_s32_ru, { o[i] = (u32)__float2int_ru(AF); })
EACH(cvt_f32_u32_rn, { o[i] = __float2uint_rn(AF); })
EACH(cvt_f32_u32_rz, { o[i] = __float2uint_rz(AF); })
EACH(cvt_f32_s64_rz, { OUT64(__float2ll_rz(AF)) })
EACH(cvt_f32_s64_rn, { OUT64(__float2ll_rn(AF)) })
EACH(cvt_f32_u64_rz, { OUT64(__float2ull_rz(AF)) })
EACH(cvt_f64_s32_rz, { o[i] = (u32)__double2int_rz(AD); })
EACH(cvt_f64_u32_rn, { o[i] = __double2uint_rn(AD); })
EACH(cvt_f64_s64_rd, { OUT64(__double2ll_rd(AD)) })
EACH(cvt_f64_u64_ru, { OUT64(__double2ull_ru(AD)) })
EACH(f32_from_s32, { o[i] = bits(__int2float_rn((int)a[i])); })
EACH(f32_from_s32_rz, { o[i] = bits(__int2float_rz((int)a[i])); })
EACH(f32_from_s32_rd, { o[i] = bits(__int2float_rd((int)a[i])); })
EACH(f32_from_u32, { o[i] = bits(__uint2float_rn(a[i])); })
EACH(f32_from_u32_ru, { o[i] = bits(__uint2float_ru(a[i])); })
EACH(f32_from_s64, { o[i] = bits(__ll2float_rn((i64)A64)); })
EACH(f32_from_u64, { o[i] = bits(__ull2float_rn(A64)); })
EACH(f32_from_u64_ru, { o[i] = bits(__ull2float_ru(A64)); })
EACH(f32_from_small, { o[i] = bits((float)(int8_t)a[i] + (float)(uint8_t)b[i] + (float)(int16_t)c[i] + (float)(uint16_t)a[i]); })
EACH(f64_from_s32, { OUT64(bits(__int2double_rn((int)a[i]))) })
EACH(f64_from_u32, { OUT64(bits((double)a[i])) })
EACH(f64_from_s64, { OUT64(bits(__ll2double_rn((i64)A64))) })
EACH(f64_from_s64_rd, { OUT64(bits(__ll2double_rd((i64)A64))) })
EACH(f64_from_u64, { OUT64(bits(__ull2double_rn(A64))) })
EACH(f32_from_f64, { o[i] = bits(__double2float_rn(AD)); })
EACH(f32_from_f64_rz, { o[i] = bits(__double2float_rz(AD)); })
EACH(f32_from_f64_ru, { o[i] = bits(__double2float_ru(AD)); })
EACH(f64_from_f32, { OUT64(bits((double)AF)) })
