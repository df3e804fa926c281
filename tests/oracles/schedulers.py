#!/usr/bin/env python3
"""Schedulers side by side: control words of the same kernels, thrown away and assigned from scratch, ours and basalt-sass's.

    schedulers.py --tools ORACLES --program SASS2MLIR --basalt BASALT [--sm sm_120a] [--sample N] SOURCE.cu...

basalt schedules files of one kernel, so each kernel of the sources becomes a cubin of its own. Both keep NVIDIA's order of the instructions.
Issue cycles are the sums of stall counts, ratios are geometric means over the kernels that both schedule. Each result is checked by both
tools' checkers, which know nothing of each other. BASALT is the program that basalt-sass from PyPI installs.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


def kernels(tools, sm, source, folder):
    """Cubins of one kernel each."""
    ptx = folder / (source.stem + ".ptx")
    made = run(tools / "bin/nvcc", "-ptx", f"-arch={sm.replace('sm_', 'compute_')}", "-std=c++17", "-o", ptx, source)
    if made.returncode:
        sys.exit(f"{source}: {made.stderr.strip()}")
    text = ptx.read_text()
    entry = re.compile(r"^(?:\.visible |\.weak )?\.entry (\w+)\(.*?^}$", re.M | re.S)
    shared = entry.sub("", text)
    for found in entry.finditer(text):
        one, cubin = folder / "one.ptx", folder / f"{source.stem}.{found[1]}.cubin"
        one.write_text(shared + found[0] + "\n")
        if run(tools / "bin/ptxas", f"-arch={sm}", "-o", cubin, one).returncode == 0:
            yield cubin


def cycles(program, cubin):
    """Cycles of stalls of a file's kernel, and its verdict."""
    estimate = json.loads(run(program, "info", cubin, "--cycles", "--json").stdout)
    verdict = json.loads(run(program, "check", cubin, "--json").stdout)
    return estimate[0]["issue_cycles"], verdict[0]["verdict"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tools", type=Path, required=True)
    p.add_argument("--program", type=Path, required=True)
    p.add_argument("--basalt", type=Path, required=True)
    p.add_argument("--sm", default="sm_120a")
    p.add_argument("--sample", type=int, default=1, help="take every n-th kernel")
    p.add_argument("sources", nargs="+", type=Path)
    a = p.parse_args()
    basalt = (a.basalt, "--cuda-bin", a.tools / "bin", "--arch", a.sm)
    ratios, refused, unclean, count = [], {"ours": 0, "basalt": 0}, {"ours": 0, "basalt": 0, "NVIDIA's": 0}, 0
    objections = {"ours": 0, "basalt": 0, "NVIDIA's": 0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cubins = [c for source in a.sources for c in kernels(a.tools, a.sm, source, folder)]
        for cubin in cubins[:: a.sample]:
            count += 1
            ours, theirs = folder / "ours.cubin", folder / "theirs.cubin"
            for old in (ours, theirs):
                old.unlink(missing_ok=True)
            done = run(a.program, "schedule", cubin, "--keep-order", "-o", ours)
            refused["ours"] += done.returncode != 0
            run(*basalt, "schedule", cubin, "-o", theirs)
            refused["basalt"] += not theirs.exists()
            lengths = {}
            for who, file in (("NVIDIA's", cubin), ("ours", ours), ("basalt", theirs)):
                if file.exists() and not (who == "ours" and done.returncode):
                    lengths[who], verdict = cycles(a.program, file)
                    unclean[who] += verdict != "clean"
                    objections[who] += run(*basalt, "verify", file).returncode != 0
            if len(lengths) == 3:
                ratios.append((lengths["ours"] / lengths["NVIDIA's"], lengths["basalt"] / lengths["NVIDIA's"]))
    mean = lambda n: math.exp(sum(math.log(r[n]) for r in ratios) / len(ratios))
    print(f"{a.sm}: {count} kernels, {len(ratios)} scheduled by both")
    for n, who in enumerate(("ours", "basalt")):
        print(
            f"{who}: {refused[who]} refused, issue cycles {mean(n):.3f} of NVIDIA's, "
            f"{unclean[who]} not clean by sass2mlir check, {objections[who]} not clean by basalt verify"
        )
    who = "NVIDIA's"
    print(f"{who}: {unclean[who]} not clean by sass2mlir check, {objections[who]} not clean by basalt verify")
    sys.exit(unclean["ours"] + objections["ours"] > 0)


if __name__ == "__main__":
    main()
