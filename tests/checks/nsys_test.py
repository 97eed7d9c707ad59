#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports of Nsight Systems: figures against plain SQL over the same file,
graph nodes against the truth, recordings through the exporter."""
import json
import os
import pathlib
import sqlite3

from common import SAMPLES, Checks, lamina, report, shared, temporary
from profilers import Work, write_nsys

# File, kernels, API calls; what the others lack is read as zero.
EXPORTS = {"mfu-2gpu-before": (4010, 7466), "mfu-2gpu-after": (3587, 6682),
           "reduced-columns-400k": (400, 400),
           "synthetic-graph-nodes": (324, 130),
           "llama_32l_decode_graph": (21516, 462)}
DEVICE = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")


def ns(value):
    return round(value * 1000)


def query(path, sql):
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as db:
        return db.execute(sql).fetchall()


def device_rows(path):
    rows = []
    for kind in DEVICE:
        table = f"CUPTI_ACTIVITY_KIND_{kind}"
        if query(path, f"select 1 from sqlite_master where name = '{table}'"):
            rows += query(path, f'select start, "end" from {table}')
    return rows


def union_ns(rows):
    busy, end = 0, None
    for start, stop in sorted(rows):
        if end is None or start >= end:
            busy += stop - start
            end = stop
        elif stop > end:
            busy += stop - end
            end = stop
    return busy


def check_export(checks, path, kernels, calls):
    name = path.stem
    tables, _ = report(path)
    rows = device_rows(path)
    total = sum(stop - start for start, stop in rows)
    checks.equal(f"{name}: device events",
                 sum(r["count"] for r in tables["kernels"]), len(rows))
    checks.equal(f"{name}: kernels in the file",
                 query(path, "select count(*) from CUPTI_ACTIVITY_KIND_KERNEL")
                 [0][0], kernels)
    checks.equal(f"{name}: kernel time",
                 sum(ns(r["kernel_time_us"]) for r in tables["kernels"]), total)
    checks.equal(f"{name}: categories add up",
                 sum(ns(r["kernel_time_us"]) for r in tables["op_categories"]),
                 total)
    busy = {r["device"]: ns(r["time_us"]) for r in tables["gpu_timeline"]
            if r["type"] == "busy_time"}
    checks.equal(f"{name}: busy", busy.get("all", next(iter(busy.values()))),
                 union_ns(rows))
    by_name = {}
    for text, start, stop in query(
            path, 'select s.value, start, "end" from CUPTI_ACTIVITY_KIND_KERNEL'
            " join StringIds s on s.id = demangledName"):
        count, time = by_name.get(text, (0, 0))
        by_name[text] = (count + 1, time + stop - start)
    found = {}
    for r in tables["kernels"]:
        if r["kernel"] in by_name:
            count, time = found.get(r["kernel"], (0, 0))
            found[r["kernel"]] = (count + r["count"],
                                  time + ns(r["kernel_time_us"]))
    checks.equal(f"{name}: kernels by name", found, by_name)
    # Work whose call is in the file is linked to it.
    keys = "correlationId, globalPid >> 24" if query(
        path, "select 1 from pragma_table_info('CUPTI_ACTIVITY_KIND_KERNEL') "
        "where name = 'globalPid'") else "correlationId, 0"
    launched = set(query(path, "select correlationId, "
                         + ("(globalTid >> 24)" if "Pid" in keys else "0")
                         + " from CUPTI_ACTIVITY_KIND_RUNTIME"))
    expected = sum(row in launched for row in query(
        path, f"select {keys} from CUPTI_ACTIVITY_KIND_KERNEL"))
    health = {r["check"]: r for r in tables["trace_health"]}
    linked = health["linked_device_time"]["count"]
    others = len(rows) - kernels
    checks.true(f"{name}: {linked} of {len(rows)} events linked",
                expected <= linked <= expected + others)
    layers = json.loads(lamina("layers", path, "--format", "json").stdout)
    stages = sum(ns(r["kernel_time_us"])
                 for r in layers["tables"]["stage_kernel_type"])
    checks.equal(f"{name}: layers add up", stages, total)
    print(f"{name}: {len(rows)} events, {total / 1e6:.3f} ms, {calls} calls")


def block_calls(path):
    """Calls of FSDP's blocks on each thread: begin and end of a call are
    ranges; the window of the recording may cut the first and the last."""
    parts = query(path, 'select n.globalTid, n.start, n."end", '
                  "coalesce(n.text, s.value) from NVTX_EVENTS n "
                  "left join StringIds s on s.id = n.textId "
                  "where coalesce(n.text, s.value) like 'FSDP::p%_forward (%' "
                  "order by n.globalTid, n.start")
    calls, open_call = [], {}
    for thread, start, stop, text in parts:
        block = text[text.index("(") + 1:text.index(")")].split(".")
        name = f"{block[0]}_{block[1]}"
        if text.startswith("FSDP::pre"):
            open_call[thread] = (name, start)
        else:
            name, start = open_call.pop(thread, (name, 0))
            calls.append((thread, name, start, stop))
    return calls + [(thread, name, start, 1 << 62)
                    for thread, (name, start) in open_call.items()]


def check_modules(checks, path, name):
    """Ranges give modules: against the calls between begin and end."""
    calls = block_calls(path)
    expected = {}
    for _, block, _, _ in calls:
        expected.setdefault(block, [0, 0, 0])[0] += 1
    starts = {}
    for thread, start, correlation in query(
            path, "select globalTid, start, correlationId from "
            "CUPTI_ACTIVITY_KIND_RUNTIME"):
        starts[(thread >> 24, correlation)] = (thread, start)
    for kind in ("KERNEL", "MEMCPY", "MEMSET"):
        for process, correlation, start, stop in query(
                path, "select globalPid >> 24, correlationId, start, "
                f'"end" from CUPTI_ACTIVITY_KIND_{kind}'):
            thread, at = starts.get((process, correlation), (None, 0))
            for on, block, begin, end in calls:
                if on == thread and begin <= at < end:
                    expected[block][1] += 1
                    expected[block][2] += stop - start
    rows = json.loads(lamina("report", path, "--format", "json", "--only",
                             "modules").stdout)["tables"]["modules"]
    found = {r["module"]: [r["calls"], r["kernels"], ns(r["kernel_time_us"])]
             for r in rows if r["module"] != "(outside)"}
    checks.equal(f"{name}: modules", found, expected)
    checks.true(f"{name}: {len(found)} modules", len(found) > 10)


def check_modules_converted(checks, path, folder):
    """Frames from ranges are not written: what reads the trace again makes the
    same ones."""
    def modules(trace):
        return json.loads(lamina("report", trace, "--format", "json", "--only",
                                 "modules").stdout)["tables"]["modules"]

    expected = modules(path)
    for name in ("out.pftrace", "out.json"):
        written = pathlib.Path(folder) / name
        lamina("convert", path, "-o", written)
        checks.equal(f"{path.name} as {name}: modules", modules(written),
                     expected)


def check_graph_nodes(checks, folder):
    truth = json.loads((folder / "synthetic-graph-nodes.truth.json")
                       .read_text())
    run = lamina("annotate", folder / "synthetic-graph-nodes.sqlite",
                 "--format", "json", "--require", "100")
    tables = json.loads(run.stdout)["tables"]
    checks.equal("nodes: replays", [r["kernels"] for r in
                                    tables["annotate_replays"]],
                 [r["activities"] for r in truth["replays"]])
    checks.equal("nodes: batches", [r["batch"] for r in
                                    tables["annotate_replays"]],
                 [int(r["capture"].split("_")[1]) for r in truth["replays"]])
    rows = tables["annotate_kernels"]
    checks.equal("nodes: all exact-id", {r["level"] for r in rows},
                 {"exact-id"})
    expected = {}
    index = {r["correlationId"]: i for i, r in enumerate(truth["replays"])}
    starts = {}
    for kind in ("KERNEL", "MEMSET"):
        for start, correlation in query(
                folder / "synthetic-graph-nodes.sqlite",
                f"select start, correlationId from CUPTI_ACTIVITY_KIND_{kind}"):
            starts[start] = index[correlation]
    for kernel in sorted(truth["kernels"], key=lambda k: k["graphNodeId"]):
        expected.setdefault(starts[kernel["start"]], []).append(
            (kernel["op"], kernel["layer"]))
    found = {}
    for r in rows:
        found.setdefault(r["replay"], []).append((r["op"], r["layer"]))
    checks.equal("nodes: op and layer of every kernel", found, expected)


def check_recording(checks, export, folder):
    """The exporter is asked where there is one; else the message says how."""
    recording = folder / "trace.nsys-rep"
    recording.write_bytes(b"QD\0\1 a recording")
    bare = {**os.environ, "PATH": "/nowhere"}
    run = lamina("report", recording, status=3, env=bare)
    checks.true("recording: says how to export",
                "nsys export --type sqlite" in run.stderr)
    tools = folder / "tools"
    tools.mkdir()
    exporter = tools / "nsys"
    exporter.write_text('#!/bin/sh\n[ "$1 $2 $3 $4" = "export --type sqlite '
                        '--output" ] && cat "$LAMINA_EXPORT" > "$5"\n')
    exporter.chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}",
           "LAMINA_EXPORT": str(export), "TMPDIR": str(folder)}
    args = ("--only", "kernels", "--format", "csv")
    checks.equal("recording: as its export",
                 lamina("report", recording, *args, env=env).stdout,
                 lamina("report", export, *args).stdout)
    checks.equal("recording: nothing left behind",
                 [p.name for p in folder.glob("lamina-*")], [])
    exporter.write_text("#!/bin/sh\necho too new >&2; exit 1\n")
    run = lamina("report", recording, status=3, env=env)
    checks.true("recording: why it failed",
                "nsys export failed: too new" in run.stderr)


def check_damage(checks, export, folder):
    """Cut and blanked files: an error or what is left, never a wrong word."""
    data = export.read_bytes()
    blank = folder / "blank.sqlite"
    blank.write_bytes(bytes(4096) + data[4096:])
    run = lamina("report", blank, status=3)
    checks.true("blank header: named", "incomplete export" in run.stderr)
    cut = folder / "cut.sqlite"
    for share in (0.2, 0.5, 0.9):
        cut.write_bytes(data[:int(len(data) * share)])
        run = lamina("report", cut, "--format", "json", status=None)
        if run.returncode == 0:
            health = {r["check"]: r["status"] for r in
                      json.loads(run.stdout)["tables"]["trace_health"]}
            checks.equal(f"cut at {share}: said so",
                         health.get("file_cut_off"), "lost")
        else:
            checks.equal(f"cut at {share}: refused", run.returncode, 3)


def main():
    checks = Checks()
    # The samples as an export would have them.
    with temporary() as out:
        for name in ("train_step", "serve", "moe"):
            work = Work(SAMPLES / f"{name}.json.gz")
            path = pathlib.Path(out) / f"{name}.sqlite"
            write_nsys(work, path)
            check_export(checks, path, sum(e[2] == "kernel"
                                           for e in work.device),
                         len(work.calls))
    folder = shared() / "traces/nsys"
    for name, (kernels, calls) in EXPORTS.items():
        check_export(checks, folder / f"{name}.sqlite", kernels, calls)
    for name in ("mfu-2gpu-before", "mfu-2gpu-after"):
        check_modules(checks, folder / f"{name}.sqlite", name)
    check_graph_nodes(checks, folder)
    llama = folder / "llama_32l_decode_graph.sqlite"
    tables = report(llama, "--only", "trace_health")[0]["trace_health"]
    graphs = [r for r in tables if r["check"] == "graph_launches"][0]
    checks.equal("llama: graph launches", graphs["count"], 210)
    with temporary() as out:
        for name in ("mfu-2gpu-before", "mfu-2gpu-after"):
            check_modules_converted(checks, folder / f"{name}.sqlite", out)
        check_recording(checks, folder / "reduced-columns-400k.sqlite",
                        pathlib.Path(out))
        check_damage(checks, folder / "mfu-2gpu-before.sqlite",
                     pathlib.Path(out))
    checks.finish()


main()
