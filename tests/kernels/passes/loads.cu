// Loads of neighbouring words that the compiler leaves apart, though a wide access before them shows that they could be one.

// The store of four words proves that `rows` is aligned, and the elements are 32 bytes apart.
extern "C" __global__ void behind_store(int4 *rows, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  rows[2 * i] = make_int4(i, n, i + n, i - n);
  const int *words = (const int *)rows + 8 * i + 4;
  out[i] = words[0] + 3 * words[1] + 7 * words[2] - words[3];
}

// A pair, and two words behind it where the pair says so.
extern "C" __global__ void behind_load(const int2 *pairs, int *out, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int2 head = pairs[2 * i];
  if (head.x == head.y) return;
  const int *words = (const int *)pairs + 4 * i;
  out[i] = words[2] ^ (words[3] * m);
}

// A store between the words: they stay.
extern "C" __global__ void parted(int4 *rows, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  rows[2 * i] = make_int4(i, n, i + n, i - n);
  const int *words = (const int *)rows + 8 * i + 4;
  int first = words[0];
  out[first & 1] = n;
  out[i + 2] = first - words[1];
}

// Nothing but a parameter: they stay.
extern "C" __global__ void parameter(const int *words, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = words[4 * i] - 5 * words[4 * i + 1] + words[4 * i + 2] * words[4 * i + 3];
}
