// A call through a pointer of which the code itself makes the address, in a section that also holds what the compiler calls for the
// long way of a division: that is called by name only. CC0-1.0.

__device__ __noinline__ float twice(float x, unsigned n) { return x * 2.0f + float(n); }
__device__ __noinline__ float over(float x, unsigned n) { return x - float(n) * 3.0f; }

typedef float (*Function)(float, unsigned);

extern "C" __global__ void chosen(float *out, const float *in, const unsigned *which) {
    unsigned i = threadIdx.x;
    float x = in[i] / in[i + 1];
    Function f = which[i] > 5 ? twice : over;
    out[i] = f(x, i);
}
