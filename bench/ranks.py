#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time that `lamina ranks` takes for a job of many ranks.

usage: bench/run ranks [--ranks N] [--megabytes N] [--repeats N] [--keep DIR]

The generator makes a training job of N ranks (default 256, a multiple of 4)
with two stages and tensor parallel pairs; each trace is filled up to the given
size (default 20 MB). Printed are the medians of --repeats (default 3) runs in
one process and, where there is mpirun, in two of one thread each.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
LAMINA = ROOT / "build" / os.environ.get("LAMINA_PRESET", "release") / "lamina"


def seconds(command, repeats):
    walls = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        walls.append(time.perf_counter() - start)
    return statistics.median(walls)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--ranks", type=int, default=256)
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--keep", type=pathlib.Path,
                        help="the traces: made unless they are there")
    args = parser.parse_args()
    if args.ranks < 4 or args.ranks % 4:
        parser.error("--ranks: a multiple of 4")
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or pathlib.Path(temporary) / "job"
        if not folder.is_dir():
            subprocess.run(
                [sys.executable, ROOT / "tools/generator/job.py", "-o", folder,
                 "--tp", "2", "--pp", "2", "--dp", str(args.ranks // 4),
                 "--pad-mb", str(args.megabytes)], check=True)
        traces = sorted(folder.glob("rank*.json*"))
        size = sum(t.stat().st_size for t in traces)
        print(f"{len(traces)} traces, {size / 1e6:,.0f} MB as stored")
        command = [LAMINA, "ranks", folder]
        print(f"one process   {seconds(command, args.repeats):8.2f} s")
        if not shutil.which("mpirun"):
            print("two processes: no mpirun")
            return
        # As root and with fewer slots than processes, as in a container.
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
        command = [*mpirun, *command, "--engine", "mpi", "--threads", "1"]
        print(f"two processes {seconds(command, args.repeats):8.2f} s")


if __name__ == "__main__":
    main()
