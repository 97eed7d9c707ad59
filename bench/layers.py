#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time that `lamina layers` takes beyond loading.

usage: bench/run layers [--kernels N] [--noise SHARE] [--repeats N]

A trace of N kernels (default 5,000,000) without a host side: passes of 32
layers of a decoder, prefills and decodes, with the given share of its kernels
missing, added or renamed (default 0). The figure is the median of --repeats
(default 3) runs of the stage "layers" of --timing: passes, layers and all
tables; loading is a stage of its own. On a machine that does other work, too,
the CPU time of the whole run says more.
"""
import argparse
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
LAMINA = ROOT / "build" / os.environ.get("LAMINA_PRESET", "release") / "lamina"
sys.path.insert(0, str(ROOT / "tools" / "generator"))
import layer_cases  # noqa: E402

LAYERS = 32


def make(path, count, noise):
    rng = random.Random(1)
    model = layer_cases.Model(rng, dialect="vllm")
    passes = [model.head() + LAYERS * model.layer(stage) + model.tail()
              for stage in ("prefill", "attn", "attn", "attn")]
    line = ('{{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":7,"ts":{},'
            '"dur":3,"args":{{"device":0,"stream":7}}}}')
    written = 0
    number = 0
    with open(path, "w", buffering=1 << 22) as out:
        out.write('{"traceEvents":[\n')
        while written < count:
            number += 1
            for name in passes[number % len(passes)]:
                chance = rng.random()
                if chance < noise / 3:
                    continue
                if chance < noise:
                    name = f"stray_{rng.randrange(4)}"
                out.write(",\n" if written else "")
                out.write(line.format(name, 4 * written))
                written += 1
        out.write("\n]}\n")
    return written


def run(path):
    """Milliseconds of the stage, CPU seconds of all, what --timing says."""
    child = subprocess.Popen(
        [LAMINA, "layers", path, "--timing", "--only", "layer_stacks"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    found = re.search(r"^layers\s+([\d.]+) s$", said, re.M)
    if status or found is None:
        sys.exit("no stage layers in --timing:\n" + said)
    return (1000 * float(found.group(1)), usage.ru_utime + usage.ru_stime, said)


def main():
    ap = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:])
    ap.add_argument("--kernels", type=int, default=5_000_000)
    ap.add_argument("--noise", type=float, default=0)
    ap.add_argument("--repeats", type=int, default=3)
    args = ap.parse_args()
    with tempfile.TemporaryDirectory(prefix="lamina_bench") as folder:
        path = pathlib.Path(folder) / "kernels.json"
        count = make(path, args.kernels, args.noise)
        runs = [run(path) for _ in range(args.repeats)]
    stage = statistics.median(r[0] for r in runs)
    cpu = statistics.median(r[1] for r in runs)
    print(f"{count:,} kernels: {stage:,.0f} ms beyond loading; the whole run "
          f"took {cpu:.1f} s of CPU time")
    print(runs[0][2].rstrip())


main()
