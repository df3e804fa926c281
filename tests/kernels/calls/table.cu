// The same with a table of functions in global memory: their addresses are numbers in the file's data. CC0-1.0.

__device__ __noinline__ float twice(float x, unsigned n) { return x * 2.0f + float(n); }
__device__ __noinline__ float over(float x, unsigned n) { return x - float(n) * 3.0f; }

typedef float (*Function)(float, unsigned);
__device__ const Function functions[] = {twice, over};

extern "C" __global__ void table(float *out, const float *in, const unsigned *which) {
    unsigned i = threadIdx.x;
    float x = in[i] / in[i + 1];
    out[i] = functions[which[i] & 1](x, i);
}
