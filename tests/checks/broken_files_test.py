#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that are empty, cut off, damaged or badly packed, in every format: the
program never crashes or hangs; it reports what is left and says in trace_health
what is lost, or it ends with status 3 and says file, place, what is wrong and
what to do. Pipes give what files give."""
import concurrent.futures
import json
import pathlib
import random
import re
import resource
import struct
import subprocess
import sys
import zlib

from common import LAMINA, SAMPLES, Checks, lamina, temporary
from profilers import FORMATS, Work, write_xplane

LIMIT_S = 120  # of one run; a hang, not a slow machine
CUTS, DAMAGES = 20, 20
DATABASES = ("nsys", "rocpd", "rpd")


def run(path, **kwargs):
    return subprocess.run([LAMINA, "report", str(path), "--only",
                           "trace_health,kernels", "--format", "json"],
                          capture_output=True, timeout=LIMIT_S, **kwargs)


def gzipped(data):
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def zstandard(data):
    """A frame of raw blocks, which needs no compressor."""
    out = b"\x28\xb5\x2f\xfd\x00\x58"
    size = 1 << 16
    blocks = [data[i:i + size] for i in range(0, len(data), size)]
    for i, block in enumerate(blocks):
        head = len(block) << 3 | (i + 1 == len(blocks))
        out += struct.pack("<I", head)[:3] + block
    return out


def small(events=60):
    """The first operations of a sample, so that each run is short."""
    work = Work(SAMPLES / "train_step.json.gz")
    work.device.sort(key=lambda e: e[0])
    work.device = work.device[:events]
    launched = {e[4]["correlation"] for e in work.device}
    work.calls = [c for c in work.calls if c[4] in launched]
    last = max(c[1] for c in work.calls)
    work.ranges = [r for r in work.ranges if r[1] <= last][:events]
    return work


def kineto(work):
    """What is left of the sample as PyTorch writes it."""
    events = [{"ph": "X", "cat": cat, "name": name, "pid": 0,
               "tid": args["stream"], "ts": start / 1000,
               "dur": (end - start) / 1000, "args": args}
              for start, end, cat, name, args in work.device]
    events += [{"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 9,
                "tid": work.tid[tid], "ts": start / 1000,
                "dur": (end - start) / 1000, "args": {"correlation": c}}
               for start, end, name, tid, c in work.calls]
    return json.dumps({"schemaVersion": 1, "traceEvents": events})


def write_all(folder):
    """By format: a small whole file."""
    work = small()
    files = {"kineto": folder / "whole.json"}
    files["kineto"].write_text(kineto(work))
    for name, (file, write) in FORMATS.items():
        write(work, folder / file)
        files[name] = folder / file
    files["rocprof_csv"] = next((folder / "run").glob("*kernel_trace.csv"))
    files["xplane"] = folder / "whole.xplane.pb"
    write_xplane(work, files["xplane"])
    files["pftrace"] = folder / "whole.pftrace"
    lamina("convert", files["kineto"], "-o", files["pftrace"])
    return files


class Case:
    """Bytes that a reader gets, and what must come of them."""

    def __init__(self, name, path, data, lost=False, refused=False,
                 placed=False):
        self.name, self.path = name, path
        self.lost = lost        # the loss must be named
        self.refused = refused  # nothing can be read
        self.placed = placed    # an error must say where
        path.write_bytes(data)

    def check(self):
        """A list of (what, found, expected)."""
        try:
            result = run(self.path)
        except subprocess.TimeoutExpired:
            return [(self.name + ": ends", False, True)]
        error = result.stderr.decode(errors="replace")
        if result.returncode != 0:
            # "lamina: error: FILE:OFFSET: what is wrong; what to do"
            place = r":\d+" if self.placed else r"(:\d+)?"
            text = re.fullmatch(r"lamina: error: (.*?)" + place +
                                r": ([^;]+); (.+)\n", error, re.S)
            return [(self.name + ": status", result.returncode, 3),
                    (self.name + ": one error of all parts: " + error,
                     text is not None and text[1] == str(self.path), True)]
        health = json.loads(result.stdout)["tables"]["trace_health"]
        found = [(self.name + ": refused", False, self.refused)]
        if self.lost:
            found.append((self.name + ": says what is lost", any(
                row["status"] == "lost" for row in health), True))
        return found


def cases(files, folder):
    rng = random.Random(11)
    for name, file in files.items():
        data = file.read_bytes()
        end = file.suffix

        def case(what, content, **kwargs):
            return Case(f"{name} {what}",
                        folder / f"{name}-{re.sub('[^a-z0-9]+', '-', what)}"
                        f"{end}", content, **kwargs)

        yield case("empty", b"", refused=True)
        for i in range(CUTS):
            at = 1 + (len(data) - 2) * i // CUTS + rng.randrange(20)
            # A table of text may end behind any row.
            yield case(f"cut at {at}", data[:at], placed=True,
                       lost=name != "rocprof_csv")
        for i in range(DAMAGES):
            at = rng.randrange(len(data))
            damaged = bytearray(data)
            damaged[at:at + 1 + i % 16] = rng.randbytes(1 + i % 16)
            yield case(f"damage at {at} no {i}", bytes(damaged))
        yield case("zeros", bytes(4096), refused=True)
        yield case("noise", rng.randbytes(4096), refused=True)
        if name in DATABASES:
            yield case("packed", gzipped(data))
            continue
        for kind, packed in (("gz", gzipped(data)), ("zst", zstandard(data))):
            yield case(f"{kind}", packed)
            for part in (0.3, 0.6, 0.95):
                yield case(f"{kind} cut at {part}",
                           packed[:int(len(packed) * part)], lost=True)
            yield case(f"{kind} head only", packed[:5], refused=True)
            yield case(f"{kind} with a tail", packed + b"tail", lost=True)
            damaged = bytearray(packed)
            damaged[len(packed) // 2] ^= 0x55
            yield case(f"{kind} damaged", bytes(damaged))


def tables(result):
    """What a report says, without the names of files."""
    found = json.loads(result.stdout)["tables"]
    health = [r for r in found["trace_health"]
              if r["check"] not in ("input", "file", "offsets")]
    return found["kernels"], [(r["check"], r["status"]) for r in health]


def check_pipes(checks, files):
    for name, file in files.items():
        data = file.read_bytes()
        whole = run(file)
        checks.equal(f"{name} whole", whole.returncode, 0)
        for path in ("-", "/dev/stdin"):
            what = f"{name} through a pipe as {path}"
            result = run(path, input=data)
            if name in DATABASES:
                checks.equal(what, result.returncode, 3)
                checks.true(what + ": says why",
                            b"pipe" in result.stderr)
                continue
            checks.equal(what + ": " + result.stderr.decode(),
                         result.returncode, 0)
            if result.returncode == 0:
                checks.equal(what, tables(result), tables(whole))
            packed = run(path, input=gzipped(data))
            checks.equal(what + ", packed", packed.returncode, 0)
            if packed.returncode == 0:
                checks.equal(what + ", packed", tables(packed)[0],
                             tables(whole)[0])
        checks.equal(f"{name}: an empty pipe", run("-", input=b"").returncode,
                     3)


def within(limit_mb, *arguments):
    """The program with that much address space."""
    size = limit_mb << 20
    return subprocess.run(
        [LAMINA, *map(str, arguments)], capture_output=True, timeout=LIMIT_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS,
                                              (size, size)))


def check_memory(checks, path):
    """With too little memory there is one line of error, whichever thread
    finds none left; with too little for more threads there are fewer."""
    needed = next((mb for mb in range(16, 512, 8)
                   if within(mb, "--version").returncode == 0), None)
    if needed is None:
        print("memory: left out, a sanitizer needs all of the address space")
        return
    statuses = set()
    for limit_mb in range(needed, needed + 240, 8):
        result = within(limit_mb, "report", path, "--threads", 4)
        statuses.add(result.returncode)
        error = result.stderr.decode(errors="replace")
        what = f"{limit_mb} MB: {result.returncode} {error}"
        if result.returncode == 3:
            checks.true(what, re.fullmatch("lamina: error: .+\n", error))
        else:
            checks.equal(what, (result.returncode, error), (0, ""))
    checks.true("240 MB more than to start is enough", 0 in statuses)


def main():
    checks = Checks()
    with temporary() as out:
        folder = pathlib.Path(out)
        (folder / "broken").mkdir()
        files = write_all(folder)
        check_pipes(checks, files)
        check_memory(checks, SAMPLES / "train_step.json.gz")
        empty = folder / "nothing"
        empty.mkdir()
        checks.equal("an empty folder", run(empty).returncode, 3)
        checks.equal("no such file", run(folder / "missing").returncode, 3)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for found in pool.map(Case.check, cases(files, folder / "broken")):
                for what, value, expected in found:
                    checks.equal(what, value, expected)
    checks.finish()


if __name__ == "__main__":
    sys.exit(main())
