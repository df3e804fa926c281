// Textures and surfaces over the bytes of the third input. What each is like, the test has in a table, and the reference in the line of its own.
// SPDX-License-Identifier: CC0-1.0
#include "both.h"

#ifdef __CUDACC__
#define IMAGE(name, device, ...)                                                                                                   \
    extern "C" __global__ void name(u32 *o, const u32 *a, const u32 *b, const u32 *c, int n, unsigned long long t) {               \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                                             \
        if (i < n) device                                                                                                          \
    }
#else
#define IMAGE(name, device, ...) WHOLE(name, device, __VA_ARGS__)
// Channel k of the texel at an index, by bytes of a channel and channels of a texel; 0 outside.
static u32 texel(const u32 *c, int w, int h, int d, int size, int channels, int x, int y, int z, int k) {
    if (x < 0 || x >= w || y < 0 || y >= h || z < 0 || z >= d) return 0;
    u32 v = 0;
    memcpy(&v, (const char *)c + (((z * h + y) * w + x) * channels + k) * size, size);
    return v;
}
static int clamp(int x, int n) { return x < 0 ? 0 : x >= n ? n - 1 : x; }
static int wrap(int x, int n) { return (x % n + n) % n; }
static int mirror(int x, int n) { int m = wrap(x, 2 * n); return m < n ? m : 2 * n - 1 - m; }
// Between the texels around x, y, z.
template <class F> static float between(float x, float y, float z, F f) {
    double at[3] = {x - 0.5, y - 0.5, z - 0.5}, sum = 0;
    int low[3]; double part[3];
    for (int k = 0; k < 3; k++) low[k] = (int)floor(at[k]), part[k] = rint((at[k] - low[k]) * 256) / 256;
    for (int k = 0; k < 8; k++) {
        double weight = 1;
        for (int q = 0; q < 3; q++) weight *= k >> q & 1 ? part[q] : 1 - part[q];
        if (weight != 0) sum += weight * f(low[0] + (k & 1), low[1] + (k >> 1 & 1), low[2] + (k >> 2));
    }
    return (float)sum;
}
#define ALL for (int i = 0; i < n; i++)
#endif
// Coordinates on both sides of an image of that size, never in the middle between two texels.
FN float coordinate(u32 x, float size) { return ((float)(x % 4096) / 2048.0f - 0.5f) * size * 1.5f + 0.013f; }
FN float unit(u32 x) { return ((float)(x % 4096) / 1024.0f - 1.5f) + 0.0007f; }

IMAGE(tex_fetch, { o[i] = bits(tex1Dfetch<float>(t, (int)(a[i] % 2100) - 20)); }, { ALL o[i] = texel(c, 2048, 1, 1, 4, 1, (int)(a[i] % 2100) - 20, 0, 0, 0); })
IMAGE(tex_row, { o[i] = bits(tex1D<float>(t, coordinate(a[i], 2048))); }, { ALL o[i] = texel(c, 2048, 1, 1, 4, 1, clamp((int)floorf(coordinate(a[i], 2048)), 2048), 0, 0, 0); })
IMAGE(tex_clamp, { o[i] = bits(tex2D<float>(t, coordinate(a[i], 64), coordinate(b[i], 32))); }, {
    ALL o[i] = texel(c, 64, 32, 1, 4, 1, clamp((int)floorf(coordinate(a[i], 64)), 64), clamp((int)floorf(coordinate(b[i], 32)), 32), 0, 0);
})
IMAGE(tex_border, { o[i] = bits(tex2DLod<float>(t, coordinate(a[i], 64), coordinate(b[i], 32), 0.0f)); }, {
    ALL o[i] = texel(c, 64, 32, 1, 4, 1, (int)floorf(coordinate(a[i], 64)), (int)floorf(coordinate(b[i], 32)), 0, 0);
})
IMAGE(tex_wrap, { uchar4 v = tex2D<uchar4>(t, unit(a[i]), unit(b[i])); o[i] = v.x + 256 * v.y + 65536 * v.z; o[n + i] = v.w; }, {
    ALL {
        int x = wrap((int)floorf(unit(a[i]) * 64), 64), y = wrap((int)floorf(unit(b[i]) * 32), 32);
        o[i] = texel(c, 64, 32, 1, 4, 1, x, y, 0, 0) & 0xffffff, o[n + i] = texel(c, 64, 32, 1, 1, 4, x, y, 0, 3);
    }
})
IMAGE(tex_signed, { short2 v = tex2D<short2>(t, coordinate(a[i], 64), coordinate(b[i], 32)); o[i] = (u32)(int)v.x; o[n + i] = (u32)(int)v.y; }, {
    ALL for (int k = 0; k < 2; k++)
        o[k * n + i] = (u32)(int)(short)texel(c, 64, 32, 1, 2, 2, clamp((int)floorf(coordinate(a[i], 64)), 64), clamp((int)floorf(coordinate(b[i], 32)), 32), 0, k);
})
IMAGE(tex_layers, { o[i] = bits(tex2DLayered<float>(t, coordinate(a[i], 32), coordinate(b[i], 16), (int)(b[i] % 6) - 1)); }, {
    ALL {
        int layer = clamp((int)(b[i] % 6) - 1, 4);
        o[i] = texel(c, 32, 16, 4, 4, 1, clamp((int)floorf(coordinate(a[i], 32)), 32), clamp((int)floorf(coordinate(b[i], 16)), 16), (int)(b[i] % 6) - 1 < 0 ? 3 : layer, 0);
    }
})
IMAGE(tex_gather, { uchar4 v = tex2Dgather<uchar4>(t, coordinate(a[i], 64), coordinate(b[i], 32), 1); o[i] = v.x + 256 * v.y + 65536 * v.z; o[n + i] = v.w; }, {
    ALL {
        int x = (int)floor(coordinate(a[i], 64) - 0.5), y = (int)floor(coordinate(b[i], 32) - 0.5);
        auto at = [&](int p, int q) { return texel(c, 64, 32, 1, 1, 4, clamp(x + p, 64), clamp(y + q, 32), 0, 1); };
        o[i] = at(0, 1) + 256 * at(1, 1) + 65536 * at(1, 0), o[n + i] = at(0, 0);
    }
})
IMAGE(abs_linear, { float4 v = tex2D<float4>(t, coordinate(a[i], 64), coordinate(b[i], 32)); o[i] = bits(v.x - v.z); o[n + i] = bits(v.y + v.w); }, {
    ALL {
        float v[4];
        for (int k = 0; k < 4; k++) v[k] = between(coordinate(a[i], 64), coordinate(b[i], 32), 0.5f, [&](int x, int y, int) { return texel(c, 64, 32, 1, 1, 4, clamp(x, 64), clamp(y, 32), 0, k) / 255.0; });
        o[i] = bits(v[0] - v[2]), o[n + i] = bits(v[1] + v[3]);
    }
})
IMAGE(abs_linear_mirror, { float2 v = tex2D<float2>(t, unit(a[i]), unit(b[i])); o[i] = bits(v.x); o[n + i] = bits(v.y); }, {
    ALL for (int k = 0; k < 2; k++)
        o[k * n + i] = bits(between(unit(a[i]) * 64, unit(b[i]) * 32, 0.5f, [&](int x, int y, int) { return texel(c, 64, 32, 1, 2, 2, mirror(x, 64), mirror(y, 32), 0, k) / 65535.0; }));
})
IMAGE(abs_linear_volume, { float4 v = tex3D<float4>(t, coordinate(a[i], 16), coordinate(b[i], 16), coordinate(a[i] ^ b[i], 8)); o[i] = bits(v.x); o[n + i] = bits(v.w); }, {
    ALL for (int k = 0; k < 2; k++)
        o[k * n + i] = bits(between(coordinate(a[i], 16), coordinate(b[i], 16), coordinate(a[i] ^ b[i], 8), [&](int x, int y, int z) { return texel(c, 16, 16, 8, 1, 4, x, y, z, 3 * k) / 255.0; }));
})
// Each thread of the first 512 has a texel of its own; the others are outside.
IMAGE(surf_plane, {
    uint4 v = surf2Dread<uint4>(t, 16 * (i < 512 ? i & 31 : -i), i >> 5, cudaBoundaryModeZero);
    o[i] = v.x + v.w;
    surf2Dwrite(make_uint4(a[i], b[i], i, 7), t, 16 * (i & 31), i >> 5, cudaBoundaryModeZero);
    uint4 w = surf2Dread<uint4>(t, 16 * (i & 31), i >> 5, cudaBoundaryModeZero);
    o[n + i] = w.x + 3 * w.y + 5 * w.z + 7 * w.w;
}, {
    ALL o[i] = i < 512 ? c[4 * i] + c[4 * i + 3] : 0, o[n + i] = i < 512 ? a[i] + 3 * b[i] + 5 * i + 49 : 0;
})
IMAGE(surf_row, {
    o[i] = surf1Dread<unsigned char>(t, (int)(a[i] % 9000) - 300, cudaBoundaryModeClamp);
}, { ALL o[i] = texel(c, 8192, 1, 1, 1, 1, clamp((int)(a[i] % 9000) - 300, 8192), 0, 0, 0); })
IMAGE(surf_volume, {
    o[i] = surf3Dread<unsigned>(t, 4 * ((int)(a[i] % 20) - 2), (int)(b[i] % 20) - 2, (int)(c[i] % 10) - 1, cudaBoundaryModeZero);
}, { ALL o[i] = texel(c, 16, 16, 8, 4, 1, (int)(a[i] % 20) - 2, (int)(b[i] % 20) - 2, (int)(c[i] % 10) - 1, 0); })
