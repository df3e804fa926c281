#!/usr/bin/env python3
"""Pulls the cubins of chosen targets out of wheels, libraries and fatbins, without any code of sass2mlir.

    extract.py --sm 86,87 --out DIR FILE...

Writes DIR/sm_NN/NAME.NNN.cubin, and prints one line a target. The checks use what this writes to test the
project's own container reader, so the two share nothing.
"""

import argparse
import collections
import os
import re
import struct
import zipfile

import lz4.block
import zstandard

FATBIN = b"\x50\xed\x55\xba\x01\x00\x10\x00"  # magic, version 1, header of 16 bytes
ELF_ENTRY, LZ4, ZSTD = 2, 0x2000, 0x8000
CUDA_ELF, NOBITS = 190, 8


def expand(data, stored, whole, flags):
    """The payload of a fatbin entry: `stored` bytes of `data`, decompressed to `whole` bytes where flags say so."""
    if flags & LZ4:
        return lz4.block.decompress(data[:stored], uncompressed_size=whole)
    if flags & ZSTD:
        return zstandard.ZstdDecompressor().decompress(data[:stored] if stored else data, max_output_size=whole)
    return data


def entries(blob, at):
    """(end of the container, [cubin, ...]) of the fatbin at offset `at`; the end is None if it is not one."""
    size = struct.unpack_from("<Q", blob, at + 8)[0]
    pos, end = at + 16, at + 16 + size
    if end > len(blob):
        return None, []
    found = []
    while pos + 64 <= end:
        kind, _, header, padded, stored = struct.unpack_from("<HHIQI", blob, pos)
        flags, _, whole = struct.unpack_from("<QQQ", blob, pos + 40)
        if not 64 <= header <= 4096 or pos + header + padded > end:
            break
        if kind == ELF_ENTRY:
            found.append(expand(blob[pos + header : pos + header + padded], stored, whole, flags))
        pos += header + padded
    return end, found


def bare_size(blob, at):
    """Length of the ELF image at `at`: the end of its farthest table or section."""
    phoff, shoff = struct.unpack_from("<QQ", blob, at + 32)
    phsize, phnum, shsize, shnum = struct.unpack_from("<HHHH", blob, at + 54)
    end = max(shoff + shsize * shnum, phoff + phsize * phnum)
    for i in range(shnum):
        kind, _, _, offset, size = struct.unpack_from("<IQQQQ", blob, at + shoff + i * shsize + 4)
        if kind != NOBITS:
            end = max(end, offset + size)
    return end


def cubins(blob):
    """Every cubin in `blob`: those in fatbin containers, then CUDA ELF images that lie bare outside of them."""
    spans = []
    for match in re.finditer(re.escape(FATBIN), blob):
        at = match.start()
        if at + 16 > len(blob) or any(a <= at < b for a, b in spans):
            continue
        end, found = entries(blob, at)
        if end is not None:
            spans.append((at, end))
            yield from found
    for match in re.finditer(b"\x7fELF\x02\x01", blob):
        at = match.start()
        if at + 64 > len(blob) or struct.unpack_from("<H", blob, at + 18)[0] != CUDA_ELF:
            continue
        if not any(a <= at < b for a, b in spans):
            end = at + bare_size(blob, at)
            if end <= len(blob):
                yield blob[at:end]


def target(cubin):
    """The number of the target: bits 7:0 of the flags in ABI 7, bits 23:8 in ABI 8."""
    flags = struct.unpack_from("<I", cubin, 48)[0]
    return flags >> 8 & 0xFFFF if cubin[7] == 0x41 else flags & 0xFF


def files(path):
    """(name, bytes) of every file in a wheel that may hold device code, or of the one file."""
    if not zipfile.is_zipfile(path):
        with open(path, "rb") as f:
            yield os.path.basename(path), f.read()
        return
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            if re.search(r"\.(so[.\d]*|a|o|cubin|fatbin)$", name):
                yield os.path.basename(name), wheel.read(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sm", default="", help="numbers of the targets to write, comma separated; all if left out")
    parser.add_argument("--out", required=True)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    wanted = {int(n) for n in args.sm.split(",") if n}
    seen, count = set(), collections.Counter()
    for path in args.files:
        for name, blob in files(path):
            for i, cubin in enumerate(cubins(blob)):
                sm = target(cubin)
                if cubin in seen or (wanted and sm not in wanted):
                    continue
                seen.add(cubin)
                folder = os.path.join(args.out, f"sm_{sm}")
                os.makedirs(folder, exist_ok=True)
                with open(os.path.join(folder, f"{name}.{i:03}.cubin"), "wb") as f:
                    f.write(cubin)
                count[sm] += 1
    for sm, n in sorted(count.items()):
        print(f"{os.path.basename(args.out)}: {n} cubins of sm_{sm}")


if __name__ == "__main__":
    main()
