#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A table of an Nsight Systems export whose pages are damaged: what other
threads have read behind the damage by then must leave no trace. Every number
of threads says the same, again and again: the end of the recording, the
threads that are known, the names of streams."""
import json
import pathlib
import sqlite3

from common import Checks, lamina, temporary
from profilers import Strings, insert

PID = 77 << 24
ROWS = 150_000  # ten pieces
MAIN, LATE = PID | 1, PID | 2


def leaves(data, page, size):
    """Numbers of the leaves of a table, by row id."""
    at = (page - 1) * size
    header = at + (100 if page == 1 else 0)
    if data[header] == 13:
        return [page]
    assert data[header] == 5, data[header]
    cells = int.from_bytes(data[header + 3:header + 5], "big")
    children = []
    for i in range(cells):
        place = header + 12 + 2 * i
        cell = at + int.from_bytes(data[place:place + 2], "big")
        children.append(int.from_bytes(data[cell:cell + 4], "big"))
    children.append(int.from_bytes(data[header + 8:header + 12], "big"))
    return [leaf for child in children for leaf in leaves(data, child, size)]


def damage(path, table, part):
    """Makes one leaf unreadable."""
    with sqlite3.connect(path) as db:
        root = db.execute("select rootpage from sqlite_master where name = ?",
                          (table,)).fetchone()[0]
        size = db.execute("pragma page_size").fetchone()[0]
    data = bytearray(path.read_bytes())
    pages = leaves(data, root, size)
    page = pages[int(len(pages) * part)]
    data[(page - 1) * size] = 0xFF
    path.write_bytes(data)


def write(path):
    """Late rows show a later end, another thread, another stream."""
    strings = Strings()
    launch, wait = strings["cudaLaunchKernel_v7000"], strings["poll"]
    gemm = strings["gemm"]
    late = ROWS // 4  # from which row on
    calls = [(i * 1000, i * 1000 + 500, LATE if i >= late else MAIN, i + 1,
              launch) for i in range(ROWS)]
    work = [(i * 1000 + 600, i * 1000 + 900, 0, 9 if i >= late else 7, i + 1,
             PID, gemm) for i in range(ROWS)]
    fills = [(100, 200, 0, 9, 0, PID, 4096, 0)]
    with sqlite3.connect(path) as db:
        insert(db, "CUPTI_ACTIVITY_KIND_RUNTIME",
               "start, end, globalTid, correlationId, nameId", calls)
        insert(db, "CUPTI_ACTIVITY_KIND_KERNEL", "start, end, deviceId, "
               "streamId, correlationId, globalPid, demangledName", work)
        insert(db, "CUPTI_ACTIVITY_KIND_MEMSET", "start, end, deviceId, "
               "streamId, correlationId, globalPid, bytes, value", fills)
        insert(db, "OSRT_API", "start, end, globalTid, nameId",
               [(50, None, MAIN, wait)])
        insert(db, "SCHED_EVENTS", "start, cpu, isSchedIn, globalTid",
               [(10, 0, 1, MAIN), (20, 0, 1, LATE)])
        insert(db, "ThreadNames", "globalTid, nameId",
               [(MAIN, strings["main"]), (LATE, strings["late"])])
        insert(db, "StringIds", "id integer primary key, value",
               strings.rows())


def seen(path, threads):
    out = []
    for sql in ("SELECT pid, tid, thread_name FROM track "
                "ORDER BY 1, 2, 3",
                "SELECT name, start_ns, dur_ns FROM slice WHERE name IN "
                "('poll', 'running', 'off processor') ORDER BY 1, 2, 3",
                "SELECT count(*) AS n, max(start_ns + dur_ns) AS last FROM slice",
                "SELECT * FROM diagnostic ORDER BY 1, 2, 3"):
        run = lamina("query", path, sql, "--format", "json", "--threads",
                     threads)
        out.append(list(json.loads(run.stdout)["tables"].values()))
    return out


def main():
    checks = Checks()
    with temporary() as folder:
        whole = pathlib.Path(folder) / "whole.sqlite"
        write(whole)
        for tables in (("CUPTI_ACTIVITY_KIND_RUNTIME",),
                       ("CUPTI_ACTIVITY_KIND_KERNEL",),
                       ("CUPTI_ACTIVITY_KIND_RUNTIME",
                        "CUPTI_ACTIVITY_KIND_KERNEL")):
            path = pathlib.Path(folder) / "damaged.sqlite"
            path.write_bytes(whole.read_bytes())
            for table in tables:
                damage(path, table, 0.05)
            alone = seen(path, 1)
            last = alone[2][0][0]["last"]
            checks.true(f"{tables}: rows are lost",
                        alone[2][0][0]["n"] < 2 * ROWS)
            poll = [r for r in alone[1][0] if r["name"] == "poll"]
            checks.equal(f"{tables}: what is open lasts to the end",
                         [r["start_ns"] + r["dur_ns"] for r in poll], [last])
            for threads in (2, 4, 8, 8, 8):
                checks.equal(f"{tables}: {threads} threads",
                             seen(path, threads), alone)
    checks.finish()


main()
