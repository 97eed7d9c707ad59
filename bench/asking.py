#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What asking an opened trace costs, as ratios within one run.

usage: bench/asking.py LAMINA TRACE

Needs the module lamina on PYTHONPATH, numpy and pandas, and prints a line per
ratio with the limit that it is held to. Each time is the best of some rounds.
"""
import io
import sqlite3
import subprocess
import sys
import time

import lamina
import pandas


def best(work, rounds=5):
    least = None
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        seconds = time.perf_counter() - start
        least = seconds if least is None else min(least, seconds)
    return least


def show(what, ratio, limit):
    print(f"{what:64} {ratio:10.5f}  at most {limit:g}"
          f"{'' if ratio <= limit else '  MISSED'}")


def main():
    program, path = sys.argv[1:]
    start = time.perf_counter()
    t = lamina.open(path)
    opening = time.perf_counter() - start
    print(f"{path}: {t.info.slices:,} slices, opened in {opening:.3f} s, "
          f"{t.info.file_bytes / opening / 1e6:,.0f} MB/s as stored")

    start = time.perf_counter()
    t.table("kernels")
    first = time.perf_counter() - start
    # Both ways go through a thread that Ctrl-C can stop.
    show("a table of an analysis again / the first time",
         best(lambda: t.table("kernels"), 50) / first, 1e-2)

    sql = "SELECT uid, name, kind, start_ns, dur_ns, track_id FROM slice"
    csv = subprocess.run([program, "query", path, sql, "--format", "csv"],
                         capture_output=True, text=True, check=True).stdout
    show("query(slice).to_pandas() / pandas.read_csv of the same rows",
         best(lambda: t.query(sql).to_pandas(), 3) /
         best(lambda: pandas.read_csv(io.StringIO(csv)), 3), 1)
    table = t.query(sql)
    show("to_pandas() of the table alone / pandas.read_csv",
         best(table.to_pandas) /
         best(lambda: pandas.read_csv(io.StringIO(csv)), 3), 0.1)

    uids = table["uid"][:2000]
    by_column = best(lambda: int(table["dur_ns"].sum())) / len(table)
    by_event = best(lambda: sum(t.event(int(u)).dur_ns for u in uids), 1) / \
        len(uids)
    show("an event as a column / as an object", by_column / by_event, 0.05)

    copy = sqlite3.connect(":memory:")
    copy.execute("CREATE TABLE slice(uid INTEGER, name TEXT, kind TEXT, "
                 "start_ns INTEGER, dur_ns INTEGER, track_id INTEGER)")
    copy.executemany("INSERT INTO slice VALUES(?,?,?,?,?,?)", list(table))
    for what, query, limit in (
            ("count and sum over slice / plain SQLite",
             "SELECT count(*), sum(dur_ns) FROM slice", 1.5),
            ("LIKE over names / plain SQLite",
             "SELECT count(*) FROM slice WHERE name LIKE '%gemm%'", 0.5),
            ("GROUP BY name / plain SQLite",
             "SELECT count(*) FROM (SELECT name, sum(dur_ns) FROM slice "
             "GROUP BY name)", 1.5)):
        assert list(t.query(query))[0][0] == \
            copy.execute(query).fetchone()[0], query
        show(what, best(lambda: t.query(query)) /
             best(lambda: copy.execute(query).fetchall()), limit)
    some = int(uids[len(uids) // 2])
    t.query("SELECT name FROM slice WHERE uid = :u", {"u": some})
    show("look-up by uid / a full scan",
         best(lambda: t.query("SELECT name FROM slice WHERE uid = :u",
                              {"u": some}), 50) /
         best(lambda: t.query("SELECT count(*) FROM slice WHERE +uid = :u",
                              {"u": some})), 1)


main()
