#!/usr/bin/env bash
# What a build for a small device costs: measure.sh SM. Builds without LLVM, with the tables of one target, from nothing.
set -euo pipefail
sm=$1
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
cargo fetch --quiet
SASS_ACTIVE_SMS=$sm CARGO_TARGET_DIR=$target python3 - <<'P'
import os, resource, subprocess, threading, time

def rss(root):
    """Resident bytes of a process and all that it started."""
    children, size = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(pid))
        size[int(pid)] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    total, todo = 0, [root]
    while todo:
        pid = todo.pop()
        total += size.get(pid, 0)
        todo += children.get(pid, [])
    return total

start = time.monotonic()
build = subprocess.Popen("cargo build --quiet --release --jobs 2 --no-default-features --features internal-ir".split())
peak = 0
while build.poll() is None:
    peak = max(peak, rss(build.pid))
    time.sleep(0.05)
assert build.returncode == 0, "the build failed"
seconds = time.monotonic() - start
program = os.environ["CARGO_TARGET_DIR"] + "/release/sass2mlir"
full = os.path.getsize(program)
subprocess.run(["strip", program], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"build time on {os.cpu_count()} cores  {seconds:.0f} s ({used.ru_utime + used.ru_stime:.0f} s of processor time)")
print(f"peak memory, all processes together  {peak / 2**20:.0f} MiB")
print(f"largest single process  {used.ru_maxrss / 1024:.0f} MiB")
print(f"binary  {full / 1e6:.2f} MB, {os.path.getsize(program) / 1e6:.2f} MB stripped")
P
