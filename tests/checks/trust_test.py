#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inputs that lack, hide or change: logs beside databases, files that grow
while they are read, ranks that are no files, and the shared cases with truth of
what a trace that lies must give."""
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

from common import LAMINA, Checks, shared, skip

KINDS = ["T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11",
         "T12", "T13", "T15"]


def run(*args, status=(0,)):
    done = subprocess.run([LAMINA, *map(str, args)], capture_output=True,
                          text=True)
    assert done.returncode in status, (args, done.returncode, done.stderr)
    return done


def count(path):
    out = run("query", path, "SELECT count(*) FROM kernel", "--format", "csv")
    return int(out.stdout.split("\n")[1])


def make_export(path, mode):
    """An export whose last kernels are in the log beside it; the connection
    stays open, or the log would be applied."""
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA journal_mode = {mode}")
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, "
               "end INTEGER, deviceId INTEGER, streamId INTEGER, "
               "shortName TEXT)")
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,0,7,'k')",
                   [(1000 * i, 1000 * i + 500) for i in range(20)])
    db.commit()
    return db


def check_logs(checks, folder):
    path = folder / "wal.sqlite"
    db = make_export(path, "WAL")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,0,7,'k')",
                   [(1000 * i, 1000 * i + 500) for i in range(20, 50)])
    db.commit()
    before = {p.name: p.read_bytes() for p in folder.iterdir()
              if not p.name.endswith("-shm")}
    checks.equal("rows of the -wal are read", count(path), 50)
    health = run("report", path, "--only", "trace_health", "--format", "csv")
    checks.true("the log is named", "database_log" in health.stdout)
    after = {p.name: p.read_bytes() for p in folder.iterdir()
             if not p.name.endswith("-shm")}
    checks.equal("the input stays as it was", before, after)
    db.close()
    # A journal with what a transaction that did not end has overwritten.
    path = folder / "journal.sqlite"
    db = make_export(path, "DELETE")
    db.execute("PRAGMA cache_size = 1")
    db.execute("BEGIN IMMEDIATE")
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,0,7,'k')",
                   [(1000 * i, 1000 * i + 500) for i in range(20, 20000)])
    copy = folder / "crashed.sqlite"
    copy.write_bytes(path.read_bytes())
    journal = pathlib.Path(str(path) + "-journal")
    checks.true("the sample has a journal", journal.exists())
    pathlib.Path(str(copy) + "-journal").write_bytes(journal.read_bytes())
    db.rollback()
    db.close()
    checks.equal("what was half written is undone", count(copy), 20)


def check_changes(checks, folder):
    """A trace that is written while it is copied: no copy, or a whole one."""
    events = [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,
               "ts": 10 * i, "dur": 5, "args": {"device": 0, "stream": 7}}
              for i in range(60000)]
    path = folder / "grows.json"
    refused = whole = 0
    for _ in range(6):
        path.write_text(json.dumps({"traceEvents": events}))
        out = folder / "copy.json"
        out.unlink(missing_ok=True)
        stop = threading.Event()

        def touch():
            while not stop.is_set():
                with open(path, "r+") as file:
                    file.seek(0, os.SEEK_END)
                    file.write("\n")
                time.sleep(0.002)

        writer = threading.Thread(target=touch)
        writer.start()
        done = subprocess.run([LAMINA, "layers", path, "--perfetto", out,
                               "--no-cache"], capture_output=True, text=True)
        stop.set()
        writer.join()
        if done.returncode == 0:
            whole += 1
            checks.true("a copy is whole",
                        len(json.loads(out.read_text())["traceEvents"]) >=
                        len(events))
        else:
            refused += 1
            checks.true("no output is left", not out.exists())
            checks.true("the change is named", "changed while" in done.stderr)
    checks.true("a growing trace is noticed", refused > 0)


def check_ranks(checks, folder):
    runs = folder / "ranks"
    runs.mkdir()
    sample = {"traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,
         "ts": 10 + 10 * i, "dur": 5, "args": {"device": 0, "stream": 7}}
        for i in range(9)]}
    for rank in range(2):
        (runs / f"rank{rank}.json").write_text(json.dumps(
            {**sample, "distributedInfo": {"rank": rank, "world_size": 4}}))
    (runs / "rank2.json").symlink_to("nowhere.json")
    (runs / "rank3.json").write_text("")
    for command in (["ranks"], ["diagnose"], ["merge", "-o", folder / "m.json"]):
        done = subprocess.run([LAMINA, command[0], runs, *command[1:]],
                              capture_output=True, text=True)
        said = done.stdout + done.stderr
        checks.true(f"{command[0]}: a link to nothing is named",
                    "rank2.json" in said)
        checks.true(f"{command[0]}: no crash", done.returncode in (0, 1, 3))
    os.mkfifo(runs / "rank4.json")
    for command in (["ranks"], ["diagnose"], ["merge", "-o", folder / "m.json"]):
        done = subprocess.run([LAMINA, command[0], runs, *command[1:]],
                              capture_output=True, text=True, timeout=60)
        checks.equal(f"{command[0]}: a pipe is refused", done.returncode, 3)
        checks.true(f"{command[0]}: and named", "rank4.json" in done.stderr)


def check_cases(checks):
    folder = shared()
    if not (folder / "cases").is_dir():
        skip("no shared cases")
    done = subprocess.run(
        [sys.executable, folder / "tools/run_cases.py", LAMINA,
         folder / "cases", *KINDS], capture_output=True, text=True)
    failed = [line for line in done.stdout.splitlines()
              if line.startswith("FAIL")]
    checks.equal("cases with truth", failed, [])


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_logs(checks, folder)
        check_changes(checks, folder)
        check_ranks(checks, folder)
    check_cases(checks)
    checks.finish()


main()
