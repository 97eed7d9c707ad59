#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina ranks says the same, byte for byte, whoever reads the traces: threads,
runs that share a folder of partial results (also after one was killed), and
processes under MPI."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from common import LAMINA, ROOT, Checks, lamina, temporary

PROCESSES = (1, 2, 4, 7)


def make_job(folder):
    subprocess.run(["python3", ROOT / "tools/generator/job.py", "-o", folder,
                    "--tp", "2", "--pp", "2", "--dp", "4", "--offset-us",
                    "3000", "--drift-ppm", "10", "--straggler", "5", "--lose",
                    "4", "--experts", "--no-sequence", "--pad-mb", "1"],
                   check=True)
    # One rank that cannot be read.
    (pathlib.Path(folder) / "rank16.json").write_text("no trace\n")


def ranks(job, *args):
    return lamina("ranks", job, "--format", "json", *args).stdout


def check_threads(checks, job, expected):
    for threads in (1, 3):
        checks.true(f"{threads} threads",
                    ranks(job, "--threads", threads) == expected)


def check_files(checks, job, expected, folder):
    for count in PROCESSES:
        partials = folder / f"partials{count}"
        runs = [subprocess.Popen(
            [LAMINA, "ranks", job, "--engine", "files", "--partials", partials,
             "--shard", f"{k}/{count}", "--threads", "1"],
            stdout=subprocess.DEVNULL) for k in range(1, count + 1)]
        checks.equal(f"{count} runs with files", [r.wait() for r in runs],
                     [0] * count)
        made = sorted(partials.iterdir())
        checks.equal(f"{count} runs: partials", len(made), 16)
        stamps = [p.stat().st_mtime_ns for p in made]
        checks.true(f"files joined from {count} runs", ranks(
            job, "--engine", "files", "--partials", partials) == expected)
        checks.equal(f"{count} runs: nothing was made again",
                     [p.stat().st_mtime_ns for p in made], stamps)


def check_killed(checks, job, expected, folder):
    partials = folder / "killed"
    run = subprocess.Popen([LAMINA, "ranks", job, "--engine", "files",
                            "--partials", partials, "--threads", "1"],
                           stdout=subprocess.DEVNULL)

    def made():
        return list(partials.glob("*.lamina-partial"))

    deadline = time.time() + 60
    while len(made()) < 3 and run.poll() is None and time.time() < deadline:
        time.sleep(0.001)
    run.send_signal(signal.SIGKILL)
    run.wait()
    left = len(made())
    checks.true(f"killed with {left} partials made", 3 <= left < 16)
    checks.true("goes on after a kill", ranks(
        job, "--engine", "files", "--partials", partials) == expected)
    # Damage, a cut, and a partial of something else.
    first, second, third = sorted(made())[:3]
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(data)
    second.write_bytes(second.read_bytes()[:100])
    third.write_text("something else")
    checks.true("damaged partials are made again", ranks(
        job, "--engine", "files", "--partials", partials) == expected)
    # A trace that has changed since.
    trace = pathlib.Path(job) / "rank3.json.gz"
    shutil.copy(trace, folder / "kept")
    shutil.copy(pathlib.Path(job) / "rank2.json.gz", trace)
    changed = ranks(job, "--engine", "files", "--partials", partials)
    checks.true("a changed trace is read again",
                changed != expected and changed == ranks(job))
    shutil.copy(folder / "kept", trace)


def mpi(processes, *args):
    return subprocess.run(
        ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n",
         str(processes), LAMINA, *args, "--engine", "mpi", "--threads", "2"],
        capture_output=True, text=True, timeout=600, env={
            **os.environ, "OMPI_MCA_btl_vader_single_copy_mechanism": "none"})


def check_mpi(checks, job, expected):
    loaded = subprocess.run(["ldd", LAMINA], capture_output=True, text=True)
    checks.true("the program starts without libmpi",
                "libmpi" not in loaded.stdout)
    plugin = pathlib.Path(LAMINA).with_name("lamina_mpi.so")
    if shutil.which("mpirun") is None or not plugin.exists():
        r = lamina("ranks", job, "--engine", "mpi", status=None)
        if not plugin.exists():
            checks.equal("status without the plug-in", r.returncode, 2)
            checks.true("message without the plug-in",
                        "lamina_mpi.so is not beside the program" in r.stderr)
        return False
    for count in PROCESSES:
        r = mpi(count, "ranks", job, "--format", "json")
        checks.equal(f"mpi with {count} processes: status", r.returncode, 0)
        checks.true(f"mpi with {count} processes", r.stdout == expected)
    r = mpi(3, "ranks", "nothing*")
    checks.equal("mpi: no input", r.returncode, 3)
    checks.equal("mpi: said once", r.stderr.count("no file matches"), 1)
    return True


def check_pages(checks, job, folder, with_mpi):
    """Pages hold the same events, also with less room than partials have."""
    for size in (25, 0.01):
        args = [job, "--format", "html", "--html-max-mb", str(size), "-o"]
        out = folder / "page.html"
        lamina("ranks", *args, out)
        expected = out.read_bytes()
        checks.true(f"{size} MB: a page of events",
                    b'"name":"device"' in expected)
        checks.equal(f"{size} MB: some are left out", size < 25,
                     b"the longest" in expected and
                     b"other device events, to stay below" in expected)
        lamina("ranks", *args, out, "--engine", "files", "--partials",
               folder / "partials2")
        checks.true(f"{size} MB: page of partials",
                    out.read_bytes() == expected)
        lamina("ranks", *args, out, "--engine", "files", "--partials",
               folder / f"new{size}")
        checks.true(f"{size} MB: page of new partials",
                    out.read_bytes() == expected)
        if not with_mpi:
            continue
        mpi(3, "ranks", *args, out)
        checks.true(f"{size} MB: page of three processes",
                    out.read_bytes() == expected)


def main():
    checks = Checks()
    with temporary() as name:
        folder = pathlib.Path(name)
        job = folder / "job"
        make_job(job)
        expected = ranks(job)
        check_threads(checks, job, expected)
        check_files(checks, job, expected, folder)
        check_killed(checks, job, expected, folder)
        with_mpi = check_mpi(checks, job, expected)
        check_pages(checks, job, folder, with_mpi)
        if not with_mpi:
            print("without mpirun or lamina_mpi.so: the engine mpi is not "
                  "tested")
    checks.finish()


main()
