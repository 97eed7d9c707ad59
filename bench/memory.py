#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of lamina memory against pickle.load, on one snapshot.

usage: bench/memory.py LAMINA SNAPSHOT [COMMAND...]
       bench/memory.py LAMINA --made EVENTS

COMMAND, if any, is another program that reads the snapshot, whose name is put
behind it. pickle.load runs code of the file: give trusted snapshots only. A
snapshot that is made has EVENTS events as a C++ writer has them, 110 bytes
each: live blocks of 64 KiB that are taken and given back by 1000 stacks.
"""
import os
import struct
import subprocess
import sys
import tempfile
import time

LIVE = 10_000
BLOCK = 65536
STACKS = 1000
DEPTH = 8


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


class Writer:
    """Opcodes of protocol 2; texts and frames are written once."""

    def __init__(self, out):
        self.out = out
        self.known = {}

    def text(self, value):
        return self.once(value, b"X" + struct.pack("<I", len(value)) +
                         value.encode())

    def once(self, key, code):
        if key in self.known:
            return b"j" + struct.pack("<I", self.known[key])
        self.known[key] = len(self.known)
        return code + b"r" + struct.pack("<I", self.known[key])

    def number(self, value):
        if -2**31 <= value < 2**31:
            return b"J" + struct.pack("<i", value)
        return b"\x8a\x08" + struct.pack("<q", value)

    def dict(self, **items):
        return b"}(" + b"".join(self.text(key) + value
                                for key, value in items.items()) + b"u"

    def frame(self, stack, depth):
        line = stack * DEPTH + depth
        if ("frame", line) in self.known:
            return self.once(("frame", line), b"")
        code = self.dict(name=self.text(f"step_{line % 97}"),
                         filename=self.text(f"model_{line % 53}.py"),
                         line=self.number(line))
        return self.once(("frame", line), code)

    def event(self, action, address, size, moment, stack=None):
        frames = b"" if stack is None else b"".join(
            self.frame(stack, depth) for depth in range(DEPTH))
        self.out.write(self.dict(
            action=self.text(action), addr=self.number(address),
            size=self.number(size), stream=self.number(0),
            time_us=self.number(1_700_000_000_000_000 + moment),
            frames=b"](" + frames + b"e"))


def make(out, events):
    """Nothing is left at the end, so the final state is empty."""
    writer = Writer(out)
    base = 1 << 40
    out.write(b"\x80\x02}(" + writer.text("segments") + b"]" +
              writer.text("device_traces") + b"](](")
    writer.event("segment_alloc", base, LIVE * BLOCK, 0, 0)
    for i in range(events // 3):
        at = base + i % LIVE * BLOCK
        if i >= LIVE:
            writer.event("free_requested", at, BLOCK, i, i % STACKS)
            writer.event("free_completed", at, BLOCK, i)
        writer.event("alloc", at, BLOCK, i, i * 7 % STACKS)
    for i in range(min(events // 3, LIVE)):
        writer.event("free_requested", base + i * BLOCK, BLOCK, events, 1)
        writer.event("free_completed", base + i * BLOCK, BLOCK, events)
    writer.event("segment_free", base, LIVE * BLOCK, events)
    out.write(b"eeu.")


def main():
    lamina, path, *other = sys.argv[1:]
    if path == "--made":
        with tempfile.NamedTemporaryFile(suffix=".pickle") as out:
            make(out, int(other[0]))
            out.flush()
            size = os.path.getsize(out.name)
            print(f"{int(other[0]):,} events, {size / 1e9:.2f} GB")
            run("lamina memory", [lamina, "memory", out.name, "--format",
                                  "json"])
        return
    run("lamina memory", [lamina, "memory", path, "--format", "json"])
    run("pickle.load", [sys.executable, "-c", "import pickle, sys\n"
                        "pickle.load(open(sys.argv[1], 'rb'))", path])
    if other:
        run(" ".join(other)[-24:], [*other, path])


main()
