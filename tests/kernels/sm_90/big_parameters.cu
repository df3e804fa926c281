// SPDX-License-Identifier: CC0-1.0
// sass2mlir: parameters that are larger than the first form of EIATTR_KPARAM_INFO can say (own code)
struct Large { char bytes[20000]; };
struct Three { int values[3]; };
extern "C" __global__ void big_parameters(const __grid_constant__ Large large, int *out, Three three) {
    out[0] = large.bytes[threadIdx.x] + three.values[1];
}
