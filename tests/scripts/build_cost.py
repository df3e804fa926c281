#!/usr/bin/env python3
"""Runs a command and says what it cost: build_cost.py COMMAND..."""
import os, resource, subprocess, sys, time

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
build = subprocess.Popen(sys.argv[1:])
peak = 0
while build.poll() is None:
    peak = max(peak, rss(build.pid))
    time.sleep(0.05)
if build.returncode != 0:
    sys.exit("the build failed")
seconds = time.monotonic() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
load = os.getloadavg()[0]
print(f"time on {os.cpu_count()} cores  {seconds:.0f} s ({used.ru_utime + used.ru_stime:.0f} s of processor time, load {load:.1f})")
print(f"peak memory, all processes together  {peak / 2**20:.0f} MiB")
print(f"largest single process  {used.ru_maxrss / 1024:.0f} MiB")
