// One source, two compilers: nvcc makes kernels of what follows, a C++ compiler makes the reference that they are compared with.
// SPDX-License-Identifier: CC0-1.0
//
//   EACH(name, { ... })           one element a thread: i, n, a[], b[], c[] in, o[] out (32-bit words)
//   WHOLE(name, device, host)     the kernel's text, and the host's text for all n elements at once
//
// Every kernel has the parameters (unsigned *o, const unsigned *a, const unsigned *b, const unsigned *c, int n).
#pragma once
#include <stdint.h>
#include <math.h>
#include <string.h>

typedef unsigned u32;
typedef unsigned long long u64;
typedef long long i64;

// Whether the target has what sm_NN has; the reference has everything.
#ifdef __CUDA_ARCH__
#define SINCE(sm) (__CUDA_ARCH__ >= sm * 10)
#else
#define SINCE(sm) 1
#endif

#ifdef __CUDACC__
#define FN static __device__ __forceinline__
#define EACH(name, ...)                                                                                    \
    extern "C" __global__ void name(u32 *o, const u32 *a, const u32 *b, const u32 *c, int n) {             \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                     \
        if (i < n) __VA_ARGS__                                                                             \
    }
#define WHOLE(name, device, ...) \
    extern "C" __global__ void name(u32 *o, const u32 *a, const u32 *b, const u32 *c, int n) device
#else
#include <stdio.h>
#include <stdlib.h>
#include <vector>
#define FN static inline
typedef void (*Reference)(u32 *o, const u32 *a, const u32 *b, const u32 *c, int n);
struct Entry {
    const char *name;
    Reference run;
    Entry *next;
    static Entry *first;
    Entry(const char *name, Reference run) : name(name), run(run), next(first) { first = this; }
};
Entry *Entry::first = nullptr;
#define EACH(name, ...)                                                                                                     \
    static void name##_one(int i, u32 *o, const u32 *a, const u32 *b, const u32 *c, int n) {                                \
        (void)i, (void)n, (void)a, (void)b, (void)c;                                                                        \
        __VA_ARGS__                                                                                                         \
    }                                                                                                                       \
    static Entry name##_entry(#name, [](u32 *o, const u32 *a, const u32 *b, const u32 *c, int n) {                          \
        for (int i = 0; i < n; i++) name##_one(i, o, a, b, c, n);                                                           \
    });
#define WHOLE(name, device, ...)                                                                                            \
    static void name##_all(u32 *o, const u32 *a, const u32 *b, const u32 *c, int n) {                                       \
        (void)n, (void)a, (void)b, (void)c;                                                                                 \
        __VA_ARGS__                                                                                                                \
    }                                                                                                                       \
    static Entry name##_entry(#name, name##_all);

// reference NAME WORDS N < a, b, c (N words each) > o (WORDS words)
int main(int argc, char **argv) {
    if (argc < 4) return 2;
    int words = atoi(argv[2]), n = atoi(argv[3]);
    for (Entry *e = Entry::first; e; e = e->next) {
        if (strcmp(e->name, argv[1])) continue;
        std::vector<u32> in(3 * (size_t)n), out(words, 0xcdcdcdcdu);
        if (fread(in.data(), 4, in.size(), stdin) != in.size()) return 3;
        e->run(out.data(), &in[0], &in[n], &in[2 * (size_t)n], n);
        fwrite(out.data(), 4, out.size(), stdout);
        return 0;
    }
    return 4;
}
#endif

FN float f32(u32 x) { float f; memcpy(&f, &x, 4); return f; }
FN u32 bits(float f) { u32 x; memcpy(&x, &f, 4); return x; }
FN double f64(u32 low, u32 high) { u64 x = (u64)high << 32 | low; double f; memcpy(&f, &x, 8); return f; }
FN u64 bits(double f) { u64 x; memcpy(&x, &f, 8); return x; }
FN u64 wide(u32 low, u32 high) { return (u64)high << 32 | low; }
// A 64-bit result takes two words.
#define OUT64(x) { u64 v = (u64)(x); o[2 * i] = (u32)v; o[2 * i + 1] = (u32)(v >> 32); }
// The three inputs as 64-bit numbers: a word and the next of another array.
#define A64 wide(a[i], c[i])
#define B64 wide(b[i], a[(i + 1) % n])
#define AF f32(a[i])
#define BF f32(b[i])
#define CF f32(c[i])
#define AD f64(b[i], a[i])
#define BD f64(c[i], b[i])
#define CD f64(a[i], c[i])
