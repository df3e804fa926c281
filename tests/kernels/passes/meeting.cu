// Lanes that come from different places meet in one operation of the warp: from sm_90 on in collectives (WARPSYNC.COLLECTIVE).

// Two arms, each with a shuffle of its own; what they give and take is in other registers in each.
extern "C" __global__ void two_arms(unsigned *out, const unsigned *in, float *side, int lane) {
  unsigned const t = threadIdx.x;
  unsigned const x = in[t];
  unsigned sum = x;
  if (x & 4) {
    float const root = sqrtf((float)(x & 0xff));
    sum += __shfl_sync(~0u, __float_as_uint(root) ^ x, lane) * 5;
    side[t] = root;
  } else {
    unsigned const y = in[t + 32], z = in[t + 64];
    sum ^= __shfl_sync(~0u, y * z + x, lane + 1) + (y >> 3);
    side[t] = (float)z;
  }
  out[t] = sum;
}

// Three arms in a loop: shuffles and votes take turns, and lanes change arms from round to round.
extern "C" __global__ void three_arms(unsigned *out, const unsigned *in, int given) {
  unsigned const t = threadIdx.x;
  int const rounds = given & 15;
  unsigned x = in[t], hits = 0;
  for (int n = 0; n < rounds; ++n) {
    unsigned heard;
    if (x % 3 == 0) {
      heard = __shfl_down_sync(~0u, x + n, 1);
      hits += __any_sync(~0u, heard > 40) ? 1 : 2;
      x += 7;
    } else if (x % 3 == 1) {
      heard = __shfl_down_sync(~0u, x * in[n], 1);
      hits ^= __any_sync(~0u, x > 90) ? heard : n;
      x ^= heard >> 2;
    } else {
      heard = __shfl_down_sync(~0u, hits, 1);
      hits += heard;
      x -= __any_sync(~0u, hits & 8) ? 5 : 1;
    }
  }
  out[t] = hits + x;
}
