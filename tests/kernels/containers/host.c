// SPDX-License-Identifier: CC0-1.0
// sass2mlir: a host library that holds device code in every way seen, written by hand (no CUDA runtime in it).
asm(".section .nv_fatbin,\"a\"\n"
    ".balign 8\n"
    "stored: .incbin \"stored.fatbin\"\n"
    ".balign 8\n"
    "lz4: .incbin \"lz4.fatbin\"\n"
    ".section __nv_relfatbin,\"a\"\n"
    ".balign 8\n"
    "zstd: .incbin \"zstd.fatbin\"\n"
    ".section .rodata\n"
    ".balign 16\n"
    "decoy: .long 0xba55ed50, 7\n" // the magic as a constant, and no fatbin behind it
    ".balign 16\n"
    "bare: .incbin \"two_kernels.sm_87.cubin\"\n"
    ".balign 16\n"
    "loose: .incbin \"lz4.fatbin\"\n"
    ".previous\n");
extern const char stored[], lz4[], zstd[];
struct wrapper {
    int magic, version;
    const void *data;
    void *rest;
};
__attribute__((section(".nvFatBinSegment"), used)) static struct wrapper wrappers[] = {
    {0x466243b1, 1, stored, 0}, {0x466243b1, 1, lz4, 0}, {0x466243b1, 2, zstd, 0}};
