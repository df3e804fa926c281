/* NVIDIA's own occupancy calculation (cuda_occupancy.h of the CUDA toolkit), asked for one launch a line:
 *
 *   CC_MAJOR CC_MINOR REGISTERS_A_THREAD THREADS_A_BLOCK SHARED_BYTES_A_BLOCK  ->  resident warps, or "unknown"
 *
 * What a multiprocessor has is from the tables "Device and Streaming Multiprocessor Information per Compute Capability" and "Memory
 * Information per Compute Capability" of the CUDA Programming Guide. */
#include <stdio.h>
#include <limits.h>
#include "cuda_occupancy.h"

struct { int major, minor, threads, shared, reserved; } limits[] = { /* KiB */
    {7, 0, 2048, 96, 0},  {7, 2, 2048, 96, 0},  {7, 5, 1024, 64, 0},   {8, 0, 2048, 164, 1}, {8, 6, 1536, 100, 1},
    {8, 7, 1536, 164, 1}, {8, 9, 1536, 100, 1}, {9, 0, 2048, 228, 1},  {10, 0, 2048, 228, 1}, {10, 1, 1536, 228, 1},
    {10, 3, 2048, 228, 1}, {11, 0, 1536, 228, 1}, {12, 0, 1536, 100, 1}, {12, 1, 1536, 100, 1},
};

static int resident(int major, int minor, int registers, int threads, int shared) {
    for (unsigned n = 0; n < sizeof limits / sizeof *limits; n++) {
        if (limits[n].major != major || limits[n].minor != minor) continue;
        cudaOccDeviceProp device = {0};
        device.computeMajor = major;
        device.computeMinor = minor;
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = limits[n].threads;
        device.regsPerBlock = device.regsPerMultiprocessor = 65536;
        device.warpSize = 32;
        device.numSms = 1;
        device.sharedMemPerBlock = 48 << 10;
        device.sharedMemPerMultiprocessor = limits[n].shared << 10;
        device.sharedMemPerBlockOptin = (limits[n].shared - limits[n].reserved) << 10;
        device.reservedSharedMemPerBlock = limits[n].reserved << 10;
        cudaOccFuncAttributes function = {0};
        function.maxThreadsPerBlock = INT_MAX;
        function.numRegs = registers;
        function.partitionedGCConfig = PARTITIONED_GC_OFF;
        function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        function.maxDynamicSharedSizeBytes = device.sharedMemPerBlockOptin;
        function.numBlockBarriers = 1;
        cudaOccDeviceState state = {CACHE_PREFER_NONE, SHAREDMEM_CARVEOUT_MAX_SHARED};
        cudaOccResult result;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, threads, shared)) return -1;
        return result.activeBlocksPerMultiprocessor * ((threads + 31) / 32);
    }
    return -1;
}

int main(void) {
    int major, minor, registers, threads, shared;
    while (scanf("%d %d %d %d %d", &major, &minor, &registers, &threads, &shared) == 5) {
        int warps = resident(major, minor, registers, threads, shared);
        warps < 0 ? puts("unknown") : printf("%d\n", warps);
    }
    return 0;
}
