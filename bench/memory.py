#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of lamina memory against pickle.load, on one snapshot.

usage: bench/memory.py LAMINA SNAPSHOT [COMMAND...]

COMMAND, if any, is another program that reads the snapshot, whose name is put
behind it. pickle.load runs code of the file: give trusted snapshots only.
"""
import os
import subprocess
import sys
import time


def run(what, command):
    best = None
    for _ in range(3):
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        cpu = usage.ru_utime + usage.ru_stime
        if status != 0:
            sys.exit(f"{what}: failed")
        now = (wall, cpu, usage.ru_maxrss)
        best = now if best is None else min(best, now)
    print(f"{what:24} {best[0]:8.3f} s wall {best[1]:8.3f} s cpu "
          f"{best[2] / 1024:8.1f} MiB")


def main():
    lamina, path, *other = sys.argv[1:]
    run("lamina memory", [lamina, "memory", path, "--format", "json"])
    run("pickle.load", [sys.executable, "-c", "import pickle, sys\n"
                        "pickle.load(open(sys.argv[1], 'rb'))", path])
    if other:
        run(" ".join(other)[-24:], [*other, path])


main()
