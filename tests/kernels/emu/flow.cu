// Control flow: lanes that go different ways, loops, calls, tables.
// SPDX-License-Identifier: CC0-1.0
#include "both.h"

#ifdef __CUDACC__
#define CALLED static __device__ __noinline__
#define TABLE static __device__
#else
#define CALLED static __attribute__((noinline))
#define TABLE static
#endif

EACH(flow_if, { if (a[i] & 1) o[i] = b[i] * 3; else o[i] = c[i] + 7; })
EACH(flow_nested, {
    u32 r = 1;
    if (a[i] & 1) { if (b[i] & 1) r += c[i]; else if (b[i] & 2) r *= a[i]; r ^= 5; }
    else { for (u32 k = 0; k < (b[i] & 7); k++) { if (c[i] >> k & 1) r += k; else r *= 3; } }
    o[i] = r;
})
EACH(flow_collatz, {
    u32 x = (a[i] & 0xfff) + 1, steps = 0;
    while (x != 1) { if (x & 1) x = 3 * x + 1; else { x >>= 1; if (x == 5) break; } if (++steps > 500) break; }
    o[i] = steps * 65536 + x;
})
EACH(flow_break_continue, {
    u32 s = 0;
    for (u32 k = 0; k < 20; k++) {
        u32 v = a[(i + k) % n] ^ b[i];
        if (v % 3 == 0) continue;
        if (v % 17 == 5) break;
        for (u32 j = 0; j < v % 5; j++) { if ((s ^ j) % 11 == 3) { s += 100; break; } s += j * k; }
    }
    o[i] = s;
})
EACH(flow_early_return, {
    if (a[i] % 3 == 0) { o[i] = 1; return; }
    u32 r = b[i];
    if (r % 5 == 0) { o[i] = r; return; }
    o[i] = r + c[i];
})
EACH(flow_switch, {
    u32 r = 0;
    switch (a[i] % 13) {
    case 0: r = b[i]; break;
    case 1: r = b[i] * c[i]; break;
    case 2: r = b[i] - c[i]; break;
    case 3: r = b[i] / (c[i] | 1);
    case 4: r += b[i] ^ c[i]; break;
    case 5: r = b[i] << (c[i] & 31); break;
    case 6: r = b[i] >> (c[i] & 31); break;
    case 7: r = ~b[i]; break;
    case 9: r = b[(i + 1) % n]; break;
    case 11: r = c[(i + 3) % n] % 7; break;
    default: r = 0xffffu;
    }
    o[i] = r;
})
EACH(flow_short_circuit, { o[i] = (a[i] > 10 && (100 / a[i] > 3 || b[(a[i] + i) % n] > c[i])) ? 1 : (b[i] < 5 || c[i] / (b[i] | 1) == 0) ? 2 : 3; })
EACH(flow_goto, {
    u32 k = 0, r = a[i];
    if (b[i] & 1) goto inside;
again:
    r = r * 5 + 1;
    if (++k > (c[i] & 7) + 8) goto done;
inside:
    r ^= r >> 3;
    if (r & 0x100) { k += 2; goto again; }
    r += k++;
    if (k < 12) goto again;
done:
    o[i] = r;
})
CALLED u32 twice(u32 x, u32 y) { return x * 2 + y % 7; }
CALLED u32 deeper(u32 x, u32 y) { return x & 1 ? twice(x, y) + twice(y, x) : twice(x + y, 3); }
EACH(flow_call, { u32 r = deeper(a[i], b[i]); if (c[i] & 1) r ^= twice(r, c[i]); o[i] = r; })
CALLED u32 fibonacci(u32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
EACH(flow_recursion, { o[i] = fibonacci(a[i] % 12); })
CALLED u32 op_add(u32 x, u32 y) { return x + y; }
CALLED u32 op_mix(u32 x, u32 y) { return (x ^ y) * 3; }
CALLED u32 op_call(u32 x, u32 y) { return op_add(x, 5) - op_mix(y, x); }
typedef u32 (*Operation)(u32, u32);
TABLE Operation operations[3] = {op_add, op_mix, op_call};
EACH(flow_indirect, { o[i] = operations[a[i] % 3](b[i], c[i]); })
struct Shape { 
#ifdef __CUDACC__
    __device__
#endif
    virtual u32 area(u32 x) = 0; };
struct Square : Shape { u32 s;
#ifdef __CUDACC__
    __device__
#endif
    Square(u32 s) : s(s) {}
#ifdef __CUDACC__
    __device__
#endif
    u32 area(u32 x) override { return s * s + x; } };
struct Line : Shape { 
#ifdef __CUDACC__
    __device__
#endif
    u32 area(u32 x) override { return x * 2; } };
CALLED u32 measure(Shape *s, u32 x) { return s->area(x); }
EACH(flow_virtual, { Square q(b[i] & 0xff); Line l; Shape *s = a[i] & 1 ? (Shape *)&q : (Shape *)&l; o[i] = measure(s, c[i]); })
EACH(flow_binary_search, {
    u32 low = 0, high = 1000, want = a[i] % 997;
    while (low < high) { u32 m = (low + high) / 2; if (m * 7 % 1009 * 0 + m < want) low = m + 1; else high = m; }
    o[i] = low;
})
EACH(flow_gcd, { u32 x = a[i] | 1, y = b[i] | 1; while (y) { u32 t = x % y; x = y; y = t; } o[i] = x; })
EACH(flow_newton, { float x = fabsf(AF); if (!(x > 1e-10f && x < 1e10f)) x = 2; float r = x; for (int k = 0; k < 60; k++) { float t = 0.5f * (r + x / r); if (t == r) break; r = t; } o[i] = bits(r); })
EACH(flow_sort, {
    u32 v[8];
    for (int k = 0; k < 8; k++) v[k] = a[(i + k) % n] ^ c[i];
    for (int k = 1; k < 8; k++) { u32 x = v[k]; int j = k - 1; while (j >= 0 && v[j] > x) { v[j + 1] = v[j]; j--; } v[j + 1] = x; }
    u32 h = 0;
    for (int k = 0; k < 8; k++) h = h * 31 + v[k];
    o[i] = h;
})
