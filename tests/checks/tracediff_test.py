#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina diff --layout tracelens: every device event that is joined to a launch
is in one row of diff_stats, under an ancestor that both traces have; the made
pair says which."""
import collections
import csv
import io
import json
import os
import pathlib

from common import SAMPLES, Checks, lamina, report, temporary


def sheets(a, b, *args):
    text = lamina("diff", a, b, "--layout", "tracelens", "--format", "csv",
                  *args).stdout
    out = {}
    for part in text.split("# ")[1:]:
        name, _, rows = part.partition("\n")
        out[name] = list(csv.DictReader(io.StringIO(rows.rstrip("\n") + "\n")))
    return out


def ns(text):
    return round(float(text) * 1000)


def check_pair(checks, what, a, b):
    tables = sheets(a, b)
    rows = tables["diff_stats"]
    for source, path in (("trace1", a), ("trace2", b)):
        own, _ = report(path, "--only", "kernels")
        linked = [r for r in own["kernels"] if r["op"]]
        mine = [r for r in rows if r["source"] == source]
        checks.equal(f"{what}: kernel time of {source}",
                     sum(ns(r["kernel_time"]) for r in mine),
                     sum(r["kernel_time_us"].ns for r in linked))
        checks.equal(f"{what}: events of {source}", len(mine),
                     sum(r["count"] for r in linked))
        checks.equal(f"{what}: each event of {source} once",
                     len({r["gpu_op_uid"] for r in mine}), len(mine))
        groups = collections.defaultdict(list)
        for row in mine:
            groups[row["lowest_common_ancestor_id"]].append(row)
        for group in groups.values():
            busy = {r["busy_time"] for r in group}
            longest = max(ns(r["kernel_time"]) for r in group)
            total = sum(ns(r["kernel_time"]) for r in group)
            checks.true(f"{what}: busy time of a group",
                        len(busy) == 1 and longest <= ns(*busy) <= total)
    summary = tables["diff_stats_unique_args_summary"]
    for source in ("trace1", "trace2"):
        checks.equal(f"{what}: the summary of {source}",
                     sum(ns(r["kernel_time_sum"]) for r in summary
                         if r["source"] == source),
                     sum(ns(r["kernel_time"]) for r in rows
                         if r["source"] == source))
    checks.equal(f"{what}: calls of the summary",
                 sum(int(r["operation_count"]) for r in summary), len(rows))
    return rows


def check_self(checks, path):
    """Against itself every launch has its equal."""
    rows = sheets(path, path)["diff_stats"]
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        groups[row["lowest_common_ancestor_id"]][row["source"]].append(
            (row["name"], row["gpu_op_uid"]))
    checks.true(f"{path.name} against itself: the same events on both sides",
                all(sorted(g["trace1"]) == sorted(g["trace2"])
                    for g in groups.values()))


def op(name, start, end, dims):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1,
            "ts": start, "dur": end - start,
            "args": {"Input Dims": dims, "Input type": ["float"] * len(dims)}}


def launch(number, call, at, kernel, start, duration):
    return [{"ph": "X", "cat": "cuda_runtime", "name": call, "pid": 1,
             "tid": 1, "ts": at, "dur": 1, "args": {"correlation": number}},
            {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7,
             "ts": start, "dur": duration,
             "args": {"correlation": number, "device": 0, "stream": 7}}]


def made(folder):
    """Of two vendors: a product that is one kernel here and two there, a
    kernel that both launch by the same call, an op that only one has."""
    a = [op("aten::linear", 0, 20, [[4, 8], [8, 8]]),
         op("aten::addmm", 1, 18, [[8], [4, 8], [8, 8]]),
         *launch(1, "hipLaunchKernel", 2, "Cijk_gemm", 30, 10),
         op("triton_add", 20, 30, [[4]]),
         *launch(2, "hipModuleLaunchKernel", 22, "triton_add_1", 45, 3),
         op("aten::only_here", 40, 50, [[2]]),
         *launch(3, "hipLaunchKernel", 42, "extra", 50, 4)]
    b = [op("aten::linear", 0, 20, [[4, 8], [8, 8]]),
         op("aten::addmm", 1, 18, [[8], [4, 8], [8, 8]]),
         *launch(1, "cudaLaunchKernel", 2, "splitk_gemm", 30, 7),
         *launch(2, "cudaLaunchKernel", 4, "splitk_sum", 38, 2),
         op("triton_add", 20, 30, [[4]]),
         *launch(3, "cuLaunchKernel", 22, "triton_add_1", 45, 2)]
    paths = []
    for name, events in (("a", a), ("b", b)):
        path = folder / f"{name}.json"
        path.write_text(json.dumps({"traceEvents": events}))
        paths.append(path)
    return paths


def check_made(checks, folder):
    rows = check_pair(checks, "made pair", *made(folder))
    found = [(r["source"], r["name"], r["cpu_op_name"], ns(r["kernel_time"]),
              ns(r["busy_time"]), r["lowest_common_ancestor_name"])
             for r in rows]
    checks.equal("made pair: rows", found, [
        ("trace1", "extra", "aten::only_here", 4000, 4000, ""),
        ("trace1", "Cijk_gemm", "aten::addmm", 10000, 10000, "aten::addmm"),
        ("trace2", "splitk_gemm", "aten::addmm", 7000, 9000, "aten::addmm"),
        ("trace2", "splitk_sum", "aten::addmm", 2000, 9000, "aten::addmm"),
        ("trace1", "triton_add_1", "triton_add", 3000, 3000, "triton_add_1"),
        ("trace2", "triton_add_1", "triton_add", 2000, 2000, "triton_add_1")])
    checks.equal("made pair: arguments",
                 rows[1]["Input Dims"], "((8,), (4, 8), (8, 8))")
    for args in (("--fail-above", "3%"), (folder / "a.json",)):
        lamina("diff", folder / "a.json", folder / "b.json", "--layout",
               "tracelens", *args, status=2)


def main():
    checks = Checks()
    with temporary() as name:
        check_made(checks, pathlib.Path(name))
    for name in ("serve", "train_step"):
        check_self(checks, SAMPLES / f"{name}.json.gz")
    check_pair(checks, "ranks", SAMPLES / "ranks/rank0.json.gz",
               SAMPLES / "ranks/rank2.json.gz")
    check_pair(checks, "eager and replay", SAMPLES / "graphs/eager.json.gz",
               SAMPLES / "graphs/replay.json.gz")
    traces = pathlib.Path(os.environ.get(
        "LAMINA_SHARED", SAMPLES.parent.parent / "shared")) / "traces"
    if traces.is_dir():
        for model in ("qwen1.5-0.5b", "falconsai-vit"):
            check_pair(checks, model, traces / f"h100-{model}.json.gz",
                       traces / f"mi300-{model}.json.gz")
        check_self(checks, traces / "h100-bert-small.json.gz")
    else:
        print(f"without reference traces: none in {traces}")
    checks.finish()


main()
