// What the transcendental unit approximates, within what NVIDIA documents: rel_* to 2 units in the last place, abs_* to 2^-20.
// SPDX-License-Identifier: CC0-1.0
#include "both.h"

#ifdef __CUDACC__
#define APPROX(name, ptx) FN float name(float x) { float r; asm(ptx " %0, %1;" : "=f"(r) : "f"(x)); return r; }
APPROX(reciprocal, "rcp.approx.ftz.f32")
APPROX(root, "sqrt.approx.ftz.f32")
APPROX(inverse_root, "rsqrt.approx.ftz.f32")
APPROX(power_of_2, "ex2.approx.ftz.f32")
APPROX(logarithm_2, "lg2.approx.ftz.f32")
APPROX(sine, "sin.approx.ftz.f32")
APPROX(cosine, "cos.approx.ftz.f32")
APPROX(tangent, "tanh.approx.f32")
#else
static float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
#define APPROX(name, value) static float name(float f) { double x = flushed(f); return flushed((float)(value)); }
APPROX(reciprocal, 1 / x)
APPROX(root, sqrt(x))
APPROX(inverse_root, 1 / sqrt(x))
APPROX(power_of_2, exp2(x))
APPROX(logarithm_2, log2(x))
APPROX(sine, sin(x))
APPROX(cosine, cos(x))
APPROX(tangent, tanh(x))
#endif

// An angle from -pi to pi, for which there is a bound.
FN float angle(u32 x) { return ((float)(x >> 8) - 8388608.0f) * (3.14159265f / 8388608.0f); }
EACH(rel_rcp, { o[i] = bits(reciprocal(AF)); })
EACH(rel_sqrt, { o[i] = bits(root(AF)); })
EACH(rel_rsqrt, { o[i] = bits(inverse_root(AF)); })
EACH(rel_ex2, { o[i] = bits(power_of_2(AF)); })
EACH(abs_lg2, { o[i] = bits(logarithm_2(AF)); })
EACH(abs_sin, { o[i] = bits(sine(angle(a[i]))); })
EACH(abs_cos, { o[i] = bits(cosine(angle(a[i]))); })
EACH(abs_tanh, { o[i] = bits(tangent(AF)); })
