// Compiled with -lineinfo: the code has line tables, also for what is inlined.
__device__ __forceinline__ float twice(float x)
{
    return x * 2.0f;
}

extern "C" __global__ void lined(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = in[i];
    out[i] = twice(x);
}

extern "C" __global__ void other(int *out)
{
    out[threadIdx.x] = 7;
}
