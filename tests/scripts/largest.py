#!/usr/bin/env python3
"""Peak memory and time of the kernel model on the largest kernel below some folders; fails above 64 MiB.

largest.py PROGRAM FOLDER...
"""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

LIMIT = 64  # MiB
PROGBITS = 1


def kernels(file):
    """(bytes of code, kernel, file) of every kernel of a cubin."""
    elf = file.read_bytes()
    (table,) = struct.unpack_from("<Q", elf, 40)
    count, names = struct.unpack_from("<HH", elf, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + 64 * n) for n in range(count)]
    strings = headers[names][4]
    for name, kind, _, _, _, size, *_ in headers:
        start = strings + name
        name = elf[start : elf.index(b"\0", start)].decode()
        if kind == PROGBITS and name.startswith(".text."):
            yield size, name.removeprefix(".text."), str(file)


def measured(command):
    """Peak memory of a command in MiB, its seconds of processor time, and how long it took."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{' '.join(command)}: exit code {os.waitstatus_to_exitcode(status)}")
    return used.ru_maxrss / 1024, used.ru_utime + used.ru_stime, time.monotonic() - start


program, *folders = sys.argv[1:]
files = [file for folder in folders for file in pathlib.Path(folder).rglob("*.cubin")]
size, kernel, file = max(found for cubin in files for found in kernels(cubin))
print(f"the largest of {len(files)} files: {size // 16} instructions, {kernel[:60]} in {file}")
with tempfile.TemporaryDirectory() as folder:
    out = ["-o", os.path.join(folder, "out")]
    most = 0
    for command in (
        ["roundtrip", file, "--kernel", kernel],
        ["info", file, "--kernel", kernel, "--pressure"],
        ["regalloc", file, "--kernel", kernel, "--pinned"],
        ["regalloc", file, "--kernel", kernel, "--scramble", "7", "--fresh"],
        ["nops", file, "--list", os.path.join(folder, "list"), *out],
    ):
        memory, busy, elapsed = measured([program, *command])
        words = [word for word in command if word != file and word != kernel and not word.startswith(folder)]
        print(f"{' '.join(words):50} {memory:5.0f} MiB {busy:6.1f} s of processor time, {elapsed:6.1f} s")
        most = max(most, memory)
if most > LIMIT:
    sys.exit(f"{most:.0f} MiB is more than {LIMIT}")
