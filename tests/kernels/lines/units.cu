// One source, two units of a linked program with debug information: what one defines the other calls.
#ifdef CALLEE
__device__ float power(float base, int n) {
    float product = 1;
    for (int i = 0; i < n; i++)
        product = product * base + 1;
    return product;
}
#else
extern __device__ float power(float, int);
#endif

extern "C" __global__ void NAME(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = power(x[i], n);
}
