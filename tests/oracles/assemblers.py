#!/usr/bin/env python3
"""Assemblers side by side: from the text of every distinct word in cubins, and its scheduling, back to the word.

    assemblers.py --sm sm_86 --tools ORACLES [--cuassembler DIR] [--basalt] [--sample N] CUBIN...

nvdisasm (in ORACLES/bin) gives the text of the words. sass2mlir runs through `asmcheck`, an example of src/isa. CuAssembler is a checkout of
github.com/cloudcores/CuAssembler (needs sympy and pyelftools); basalt is basalt-sass from PyPI. assemblers.sh brings both and runs all. A word that differs is wrong, a refusal
is none. Only executable code sections are looked at. --sample takes every n-th word, for assemblers that would take hours.
"""

import argparse
import re
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONTROL = ((1 << 21) - 1) << 105


def code_words(path):
    """Every word in the .text sections of an ELF file."""
    b = path.read_bytes()
    (table,), (size, count, names) = struct.unpack_from("<Q", b, 40), struct.unpack_from("<HHH", b, 58)
    header = lambda n: struct.unpack_from("<IIQQQQ", b, table + n * size)
    strings = header(names)[4]
    for n in range(count):
        name, kind, _, _, offset, length = header(n)
        start = strings + name
        if kind == 1 and b[start : b.index(0, start)].startswith(b".text."):
            for at in range(offset, offset + length - 15, 16):
                yield int.from_bytes(b[at : at + 16], "little")


def texts(tool, sm, words):
    """The words with their texts, each at 16 times its place in the list."""
    with tempfile.NamedTemporaryFile() as f:
        f.write(b"".join(w.to_bytes(16, "little") for w in words))
        f.flush()
        arch = "SM" + sm.removeprefix("sm_")
        out = subprocess.run([tool, "-b", arch, "-ndf", f.name], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", out, re.M)
    return [(words[int(address, 16) // 16], int(address, 16), text) for address, text in found]


def report(name, exact, wrong, refused, total, seconds, examples):
    print(f"{name}: {exact} of {total} words exact, {refused} refused, {wrong} wrong, {total / seconds:,.0f} words/s")
    for e in examples[:3]:
        print(f"  wrong: {e}")


def run(name, rows, assemble, mask=(1 << 128) - 1):
    exact, wrong, refused, examples = 0, 0, 0, []
    start = time.time()
    for word, address, text in rows:
        try:
            got = assemble(word, address, text)
        except Exception:  # whatever it raises, it gives no word
            got = None
        if got is None:
            refused += 1
        elif got & mask == word & mask:
            exact += 1
        else:
            wrong += 1
            examples.append(f"{text}: {word:032x} becomes {got:032x}")
    report(name, exact, wrong, refused, len(rows), time.time() - start, examples)


def cuassembler(folder, sm, rows):
    sys.path.insert(0, str(folder))
    from CuAsm.CuAsmLogger import CuAsmLogger
    from CuAsm.CuInsAssemblerRepos import CuInsAssemblerRepos

    CuAsmLogger.disable()
    repos = CuInsAssemblerRepos.getDefaultRepos(sm)
    # It assembles what is not scheduling; that is taken as right.
    run("CuAssembler", rows, lambda w, address, text: repos.assemble(address, text + " ;", showCandidates=False) & ~CONTROL, ~CONTROL)


def basalt(rows):
    import basalt as package
    from basalt.asm.assemble import Assembler
    from basalt.encoding import Word
    from basalt.isa.database import IsaDatabase

    data = Path(package.__file__).parent / "data/isa/sm_120a.json"
    assembler = Assembler(IsaDatabase.read(data))
    run("basalt-sass", rows, lambda w, address, text: int(assembler.assemble(text, control=Word(w)).value))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sm", required=True)
    p.add_argument("--tools", required=True, type=Path)
    p.add_argument("--asmcheck", default="target/release/examples/asmcheck")
    p.add_argument("--cuassembler", type=Path)
    p.add_argument("--basalt", action="store_true")
    p.add_argument("--sample", type=int, default=1)
    p.add_argument("cubins", nargs="+", type=Path)
    a = p.parse_args()
    words = list(dict.fromkeys(w for c in a.cubins for w in code_words(c)))
    # Version 13 forgot Volta.
    tool = "nvdisasm-12.8" if a.sm in ("sm_70", "sm_72") else "nvdisasm"
    rows = texts(a.tools / "bin" / tool, a.sm, words)
    lines = "".join(f"{w:032x}\t{address:x}\t{t}\n" for w, address, t in rows)
    ours = subprocess.run([a.asmcheck, a.sm], input=lines, text=True)
    sample = rows[:: a.sample]
    if a.sample > 1:
        print(f"every {a.sample}th word:")
    if a.cuassembler:
        cuassembler(a.cuassembler, a.sm, sample)
    if a.basalt:
        basalt(sample)
    sys.exit(ours.returncode)


if __name__ == "__main__":
    main()
