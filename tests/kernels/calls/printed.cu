// A call of a function that the driver brings: its return address is reckoned from the place of an instruction. CC0-1.0.
#include <cstdio>

extern "C" __global__ void printed(float *out, const float *in) {
    unsigned i = threadIdx.x;
    float x = in[i] / in[i + 1];
    if (x > 3.0f)
        printf("%u\n", i);
    out[i] = x + 1.0f;
    out[i + 32] = in[i + 32] / x;
}
