// Kernels with more values than registers: with -maxrregcount=24 the compiler keeps some of them in local memory.

// Spilled before a loop, in it, and behind it.
extern "C" __global__ void sums(const float *in, float *out, int n, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v[24];
#pragma unroll
  for (int k = 0; k < 24; ++k) v[k] = in[i + k];
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int k = 0; k < 24; ++k) v[k] = v[k] * v[(k + 1) % 24] + v[(k + 7) % 24];
  }
#pragma unroll
  for (int k = 0; k < 24; ++k) out[i + k * n] = v[k];
}

// Pairs, spilled at once, on ways that part and meet.
extern "C" __global__ void pairs(const double *in, double *out, int n, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double v[12];
#pragma unroll
  for (int k = 0; k < 12; ++k) v[k] = in[i + k];
  for (int r = 0; r < rounds; ++r) {
    if ((i + r) % 3 == 0) {
#pragma unroll
      for (int k = 0; k < 12; ++k) v[k] = v[k] + v[(k + 5) % 12];
    } else {
#pragma unroll
      for (int k = 0; k < 12; ++k) v[k] = v[k] - v[(k + 7) % 12];
    }
  }
#pragma unroll
  for (int k = 0; k < 12; ++k) out[i + k * n] = v[k];
}

// An array that is indexed stays in the frame, and so does all beside it.
extern "C" __global__ void indexed(const int *in, int *out, int n, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v[20];
  int w[24];
  for (int k = 0; k < 20; ++k) v[k] = in[i + k];
#pragma unroll
  for (int k = 0; k < 24; ++k) w[k] = in[i + 3 * k];
  for (int r = 0; r < rounds; ++r) {
    v[(i + r) % 20] += w[r & 7];
#pragma unroll
    for (int k = 0; k < 24; ++k) w[k] = w[k] * w[(k + 1) % 24] + w[(k + 5) % 24];
  }
#pragma unroll
  for (int k = 0; k < 24; ++k) out[i + k * n] = w[k] + v[k % 20];
}
