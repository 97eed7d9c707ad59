#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The store of runs through the program: two that write at once, one that is
killed, a disk that is full, the size of a run, pages, and the statuses of check,
judge and decide; numbers made anew; the same on a server of PostgreSQL where one
is installed. What trend and check say of series is in
src/runstore/runstore_test.cc and cases_test.py.

usage: runs_test.py LAMINA"""
import contextlib
import glob
import json
import os
import pathlib
import re
import shutil
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


@contextlib.contextmanager
def postgres(folder):
    """The address of a server that listens on a socket in the folder; None: no
    server is installed, or it does not start here."""
    programs = [pathlib.Path(found) for name in ("initdb", "pg_ctl", "psql")
                for found in [shutil.which(name) or next(iter(sorted(glob.glob(
                    f"/usr/lib/postgresql/*/bin/{name}"))), "")]]
    if not all(program.is_file() for program in programs):
        print("without a server: no postgresql is installed")
        yield None, None
        return
    initdb, control, psql = programs
    folder.mkdir()
    folder.parent.chmod(0o755)
    own = []
    if os.getuid() == 0:  # which a server refuses
        own = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        shutil.chown(folder, 65534, 65534)

    def start(*words):
        return subprocess.run([*own, *map(str, words)], cwd=folder, timeout=120,
                              capture_output=True, text=True)

    start(initdb, "-D", folder / "data", "-A", "trust", "-U", "lamina",
          "--no-sync")
    r = start(control, "-D", folder / "data", "-l", folder / "log", "-w", "-o",
              f"-k {folder} -c listen_addresses='' -c fsync=off", "start")
    if r.returncode != 0:
        print("without a server:", (r.stderr or r.stdout).strip()[:200])
        yield None, None
        return
    try:
        yield (f"postgresql://lamina@/postgres?host={folder}",
               lambda sql: start(psql, "-h", folder, "-U", "lamina", "-At",
                                 "-d", "postgres", "-c", sql).stdout.strip())
    finally:
        start(control, "-D", folder / "data", "-m", "immediate", "-w", "stop")


def check_server(address, sql, traces, file):
    """What a file does, by several programs at once."""
    checks.equal("a server without a store",
                 runs("list", store=address).returncode, 3)
    writers = [subprocess.Popen(
        [LAMINA, "runs", "add", *part, "--store", address],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for part in (traces[::2], traces[1::2], traces[::-1])]
    checks.equal("server: three that add at once end well",
                 [w.wait(timeout=300) for w in writers], [0, 0, 0])
    checks.equal("server: and lose nothing, in order of recording",
                 names(address), [t.stem for t in traces])
    for words in (("trend", "--metric", "unit"), ("check",),
                  ("show", "latest"), ("compare", traces[0].stem, "latest"),
                  ("trend", "--metric", "part:gemm")):
        answers = [strip(runs(*words, "--format", "json", store=of).stdout)
                   for of in (file, address)]
        checks.equal(f"server: {words} says what a file says", *answers)
    checks.equal("server: baselines",
                 (runs("baseline", "set", "main", traces[3].stem,
                       store=address).returncode,
                  runs("check", "--against", "baseline:main",
                       store=address).returncode), (0, 0))
    # A name of a kernel that is no UTF-8, or has a zero byte.
    hostile = traces[0].parent / "hostile.json"
    hostile.write_bytes(traces[0].read_bytes().replace(
        b"flash_fwd_kernel", b"flash\\u0000fwd\xff\xfekernel"))
    checks.equal("server: a hostile name is kept",
                 runs("add", hostile, store=address).returncode, 0)
    runs("prune", "--keep", 3, store=address)
    checks.true("server: prune keeps the baseline",
                len(names(address)) == 3 and traces[3].stem in names(address))
    checks.equal("server: kernels of runs that went are gone, too", sql(
        "SELECT count(*) FROM lamina.kernel WHERE run NOT IN (SELECT id FROM "
        "lamina.run)"), "0")
    for wait in (0.02, 0.05, 0.1):
        writer = subprocess.Popen(
            [LAMINA, "runs", "import", traces[0].parent, "--store", address],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        writer.kill()
        writer.wait()
        checks.equal("server: each run has all of its kernels", sql(
            "SELECT count(*) FROM lamina.run r WHERE (SELECT count(*) FROM "
            f"lamina.kernel WHERE run = r.id) <> {len(KERNELS)}"), "0")
    sql("UPDATE lamina.store SET schema = 999, made_by = '99.0'")
    r = runs("list", store=address)
    checks.true("server: a later schema is left alone", r.returncode == 3
                and "made by lamina 99.0" in r.stderr)


def strip(text):
    """Tables of an answer without what differs between two stores."""
    tables = json.loads(text)["tables"]
    for rows in tables.values():
        rows[:] = [row for row in rows if not str(row.get("name", "")).startswith(
            ("env", "tag", "added")) and row.get("name") != "run"]
    return tables


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

    # What is accepted passes, for this pair alone.
    def decide(run, verdict, against):
        return runs("decide", run, verdict, "--against", against, "--reason",
                    "new <checks>", store=store).returncode

    compare = ("compare", "r11", "slow0", "--fail-above", "3%")
    checks.equal("a slower run fails", runs(*compare, store=store).returncode, 1)
    checks.equal("what is accepted passes",
                 (decide("slow0", "accept", "r11"),
                  runs(*compare, store=store).returncode), (0, 0))
    checks.true("and says why", "accepted by" in runs(
        *compare, store=store).stdout)
    checks.equal("also in the series", runs("check", store=store).returncode, 0)
    checks.equal("but not another pair", runs(
        "compare", "r10", "slow1", "--fail-above", "3%",
        store=store).returncode, 1)
    checks.equal("what is rejected later fails again",
                 (decide("slow0", "reject", "r11"),
                  runs(*compare, store=store).returncode,
                  runs("check", store=store).returncode), (0, 1, 1))
    checks.equal("a run is not decided against itself",
                 decide("r11", "accept", "r11"), 2)

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

    # lamina diff with the store: noise as measured, decisions, kept runs.
    def diff(*words, store=store):
        r = subprocess.run([LAMINA, "diff", *map(str, words), "--store", store,
                            "--format", "json"], capture_output=True, text=True,
                           timeout=300)
        verdict = json.loads(r.stdout)["tables"]["diff_verdict"][1]
        return r.returncode, verdict["run_noise_from"], verdict["change_percent"]

    gate = ("--fail-above", "3%")
    status, noise_from, change = diff(traces[11], slow[0], *gate)
    checks.equal("diff of what was accepted, then rejected, fails",
                 (status, noise_from), (1, "measured"))
    checks.equal("and passes when it is accepted", (
        decide("slow0", "accept", "r11"), diff(traces[11], slow[0], *gate)[0],
        diff(traces[10], slow[0], *gate)[0]), (0, 0, 1))
    for a, b in (("baseline:main", slow[0]), (traces[11], "run:slow0"),
                 ("run:r11", "run:slow0")):
        kept = diff(a, b, *gate)
        checks.true(f"diff {a} {b} says what traces say: {kept}",
                    kept[:2] == (0, "measured")
                    and abs(kept[2] - change) < 0.01)
    checks.equal("an unknown run", subprocess.run(
        [LAMINA, "diff", "run:nobody", slow[0], "--store", store],
        capture_output=True, timeout=60).returncode, 2)

    # Numbers of an older version are made anew where the trace is there.
    before = tables("show", "slow1", store=store)
    database = sqlite3.connect(store)
    database.execute("UPDATE run SET analysis = 0 WHERE name IN ('slow1', 'r3', "
                     "'r04', 'r05')")
    database.execute("DELETE FROM kernel WHERE run IN (SELECT id FROM run WHERE "
                     "analysis = 0)")
    database.commit()
    database.close()
    traces[4].rename(traces[4].with_suffix(".gone"))
    again = tables("recompute", store=store)["recomputed"]
    checks.equal("what can be is made anew", sorted(
        (row["name"], row["status"]) for row in again
        if row["status"] != "current"),
        [("r04", "no_trace"), ("r05", "recomputed"), ("slow1", "recomputed")])
    checks.equal("and is as before", tables("show", "slow1", store=store), before)
    traces[4].with_suffix(".gone").rename(traces[4])

    # Prune keeps baselines, decisions and the newest.
    checks.equal("a dry run removes nothing", runs(
        "prune", "--keep", 3, "--dry-run", store=store).returncode, 0)
    count = len(names(store))
    runs("prune", "--keep", 4, store=store)
    left = names(store)
    checks.true(f"prune keeps the baseline: {count}, {left}",
                len(left) == 4 and {"r11", "slow0"} <= set(left))
    checks.equal("prune wants one rule", runs(
        "prune", store=store).returncode, 2)

    with postgres(stores / "server") as (address, sql):
        if address:
            check_server(address, sql, traces, stores / "two.sqlite")
    r = runs("list", store="postgresql://me:secret-word@host/db")
    checks.true("an address with a password is refused", r.returncode == 2 and
                "pgpass" in r.stderr and "secret-word" not in r.stderr)
    r = runs("list", store=f"postgresql://me@/db?host={stores}/nowhere")
    checks.true(f"no server: {r.stderr}", r.returncode == 3)

checks.finish()
