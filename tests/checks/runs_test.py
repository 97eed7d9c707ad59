#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The store of runs through the program: two that write at once, one that is
killed, a disk that is full, the size of a run, pages, and the statuses of check
and judge. What trend and check say of series is in src/runstore/runstore_test.cc
and cases_test.py.

usage: runs_test.py LAMINA"""
import json
import pathlib
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time

from common import LAMINA, SAMPLES, Checks, temporary

sys.path.insert(0, str(SAMPLES))
from training import KERNELS, trace  # noqa: E402


checks = Checks()


def record(path, run, slower=1.0):
    path.write_text(trace(run, slower))
    return path


def runs(*words, store, **more):
    return subprocess.run([LAMINA, "runs", *map(str, words), "--store", store],
                          capture_output=True, text=True, timeout=300, **more)


def tables(*words, store):
    r = runs(*words, "--format", "json", store=store)
    return json.loads(r.stdout)["tables"] if r.stdout else {}


def names(store):
    return [row["name"] for row in tables("list", store=store)["runs"]]


with temporary() as traces_folder, temporary() as stores:
    folder, stores = pathlib.Path(traces_folder), pathlib.Path(stores)
    traces = [record(folder / f"r{i:02}.json", i) for i in range(24)]
    store = stores / "two.sqlite"
    writers = [subprocess.Popen(
        [LAMINA, "runs", "add", *traces[i::2], "--store", store],
        stdout=subprocess.DEVNULL) for i in (0, 1)]
    checks.equal("two that add at once end well",
                 [w.wait(timeout=300) for w in writers], [0, 0])
    checks.equal("and lose nothing, in order of recording", names(store),
                 [t.stem for t in traces])
    again = tables("add", *traces[:3], "--tag", "config=a", store=store)
    checks.equal("what is there is the same",
                 [row["status"] for row in again["imported"]], ["same"] * 3)
    checks.true("and has its tags",
                tables("list", "--where", "config=a", store=store)["runs"])
    size = store.stat().st_size
    checks.true(f"a run takes at most 200 kB: {size}",
                size <= 200_000 * len(traces))
    page = stores / "trend.html"
    runs("trend", "-o", page, store=store)
    text = page.read_text()
    checks.true("a page of the trend stands alone",
                len(text) < 3_000_000
                and not re.search(r"(src|href)=[\"']https?:", text))

    # Killed at any moment: what was there stays, and the rest can be added.
    store = stores / "killed.sqlite"
    for wait in (0.05, 0.1, 0.2, 0.4):
        writer = subprocess.Popen(
            [LAMINA, "runs", "import", folder, "--store", store],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = len(names(store)) if store.exists() else 0
        time.sleep(wait)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        if not store.exists():
            continue
        after = names(store)
        checks.true(f"nothing lost after {wait} s: {before}, {len(after)}",
                    len(after) >= before)
        database = sqlite3.connect(store)
        checks.equal("the file is whole",
                     database.execute("PRAGMA integrity_check").fetchall(),
                     [("ok",)])
        checks.equal("each run has all of its kernels", database.execute(
            "SELECT count(*) FROM run WHERE (SELECT count(*) FROM kernel WHERE "
            "kernel.run = run.id) <> ?", (len(KERNELS),)).fetchone(), (0,))
        database.close()
    runs("import", folder, store=store)
    checks.equal("the rest is added", len(names(store)), len(traces))

    # A disk that is full: the run is refused, and the others are as before.
    store = stores / "full.sqlite"
    runs("add", *traces[:2], store=store)
    before = store.read_bytes()
    limit = len(before) // 2048  # in KiB: pages behind the half fail
    r = subprocess.run(
        ["bash", "-c", f'ulimit -f {limit}; exec "$@"', "-", LAMINA, "runs",
         "add", SAMPLES / "train_step.json.gz", "--store", store],
        capture_output=True, text=True, timeout=300)
    checks.equal("a full disk is status 3", r.returncode, 3)
    checks.equal("and leaves the runs that were there", names(store),
                 ["r00", "r01"])

    # Traces of a training and of a server, and what is no trace.
    store = stores / "kinds.sqlite"
    bad = stores / "bad.json"
    bad.write_text("nothing")
    r = runs("add", SAMPLES / "serve.json.gz", bad, SAMPLES / "train_step.json.gz",
             SAMPLES / "ranks", "--format", "json", store=store)
    checks.equal("one bad trace of many is status 1", r.returncode, 1)
    checks.equal("and the others are added",
                 [row["status"] for row in json.loads(r.stdout)["tables"]["imported"]],
                 ["added", "failed", "added", "added"])
    checks.equal("one bad trace alone is status 3",
                 runs("add", bad, store=store).returncode, 3)
    shown = {row["metric"] for row in tables("trend", store=store)["trend"]}
    checks.true(f"a server has its phases: {shown}", "decode" in shown)

    # The statuses of a gate.
    store = stores / "gate.sqlite"
    runs("add", *traces[:12], store=store)
    runs("baseline", "set", "main", "r11", "--reason", "known good", store=store)
    checks.equal("check passes", runs("check", store=store).returncode, 0)
    slow = [record(stores / f"slow{i}.json", 100 + i, 1.08) for i in range(3)]
    runs("add", slow[0], store=store)
    suspect = tables("check", store=store)["runs_verdict"][0]
    checks.equal("one slow run is suspect", suspect["verdict"], "suspect")
    checks.equal("which passes", runs("check", store=store).returncode, 0)
    checks.equal("unless it may not", runs("check", "--suspect", "fail",
                                           store=store).returncode, 1)
    runs("add", *slow[1:], store=store)
    checks.equal("three fail", runs("check", store=store).returncode, 1)
    checks.equal("below another limit they pass", runs(
        "check", "--fail-above", "20%", store=store).returncode, 0)
    checks.equal("against the baseline", runs(
        "check", "--against", "baseline:main", store=store).returncode, 1)
    checks.equal("as it was before them", runs(
        "check", "r11", store=store).returncode, 0)

    def judge(command, *more):
        words = [LAMINA, "runs", "judge", "--store", store, "--against",
                 "baseline:main", *more, "--", "sh", "-c", command]
        return subprocess.run(words, capture_output=True, text=True,
                              timeout=300).returncode

    fast = record(stores / "fast.json", 200, 1.0)
    copy = 'cp {} "$LAMINA_OUT"'
    checks.equal("judge", [
        judge(copy.format(slow[0])), judge(copy.format(fast)), judge("exit 7"),
        judge("true"), judge("exit 7", "--for-git-bisect"),
        judge(copy.format(bad), "--for-git-bisect"),
        judge(copy.format(fast), "--metric", "speed")],
        [1, 0, 3, 3, 125, 125, 2])

    # Prune keeps baselines and the newest.
    checks.equal("a dry run removes nothing", runs(
        "prune", "--keep", 3, "--dry-run", store=store).returncode, 0)
    count = len(names(store))
    runs("prune", "--keep", 3, store=store)
    left = names(store)
    checks.true(f"prune keeps the baseline: {count}, {left}",
                len(left) == 3 and "r11" in left)
    checks.equal("prune wants one rule", runs(
        "prune", store=store).returncode, 2)

checks.finish()
