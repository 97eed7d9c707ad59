#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of AMD's profilers against their truth files: every count, sum, median
and configuration exactly."""
import gzip
import json
import pathlib

from common import SAMPLES, Checks, lamina, report, shared, temporary
from profilers import Work, write_rocpd, write_rocprof


def ns(value):
    return round(value * 1000)


def rows_by(rows, key):
    found = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


def check_json(checks, folder, goldens):
    path = folder / "rocprof-908.json.gz"
    truth = json.loads((goldens / "rocprof-908.truth.json").read_text())[0]
    tables, notes = report(path)
    kernels = tables["kernels"]
    checks.equal("908: dispatches", sum(r["count"] for r in kernels),
                 truth["records"]["kernel_dispatch"])
    checks.equal("908: kernel time",
                 sum(ns(r["kernel_time_us"]) for r in kernels),
                 truth["kernel_time_sum_ns"])
    checks.equal("908: names", len({r["kernel"] for r in kernels}),
                 truth["distinct_kernel_names"])
    checks.equal("908: shortest", min(ns(r["min_us"]) for r in kernels),
                 truth["shortest_ns"])
    checks.equal("908: longest", max(ns(r["max_us"]) for r in kernels),
                 truth["longest_ns"])
    times = {r["type"]: ns(r["time_us"]) for r in tables["gpu_timeline"]}
    checks.equal("908: busy", times["busy_time"], truth["busy_ns"])
    checks.equal("908: first to last", times["total_time"],
                 truth["first_to_last_ns"])
    checks.equal("908: streams", len({r["stream"] for r in kernels}),
                 truth["streams"])
    health = {r["check"]: r for r in tables["trace_health"]}
    checks.equal("908: overlaps", health["overlaps_on_a_stream"]["count"],
                 truth["overlaps_within_a_stream"])
    checks.true("908: says which option is missing",
                "--hip-trace" in health["no_api_calls"]["meaning"])
    # Kernels by name, over streams; the truth cuts names off.
    whole = lamina("report", path, "--only", "kernels", "--format", "json")
    named = rows_by(json.loads(whole.stdout)["tables"]["kernels"], "kernel")
    for top in truth["top_kernels"]:
        found = [(sum(r["count"] for r in rows),
                  sum(ns(r["kernel_time_us"]) for r in rows),
                  min(ns(r["min_us"]) for r in rows),
                  max(ns(r["max_us"]) for r in rows))
                 for name, rows in named.items()
                 if name.startswith(top["name"])]
        expected = (top["count"], top["sum_ns"], top["min_ns"], top["max_ns"])
        checks.true(f"908: {top['name'][:60]}: {found}", expected in found)
    nccl = [r for r in kernels if r["kernel"].startswith("ncclDevKernel")]
    mean = sum(r["kernel_time_us"] for r in nccl) / sum(r["count"]
                                                        for r in nccl)
    checks.equal("908: mean of the collectives in us", round(mean, 1), 3174.6)
    kinds = {}
    for r in kernels:
        count, time = kinds.get(r["kind"], (0, 0))
        kinds[r["kind"]] = (count + r["count"], time + ns(r["kernel_time_us"]))
    checks.equal("908: fills", kinds["memset"], (3213, 13_047_568))
    checks.equal("908: copies", kinds["memcpy"], (3153, 10_051_659))
    checks.true("908: the first lines speak of collectives",
                "communication" in notes[0]["text"]
                or "collective" in notes[0]["text"])
    plain = json.loads(gzip.decompress(path.read_bytes()))
    secret = plain["rocprofiler-sdk-tool"][0]["metadata"]["node"]
    for word in (secret["hostname"], secret["machine_id"]):
        checks.true("908: no word about the machine", word not in whole.stdout)


def check_rocpd(checks, folder):
    truth = json.loads((folder / "rocpd.truth.json").read_text())
    path = folder / "rocpd-layout-a.db"
    tables, _ = report(path)
    rows = tables["kernels"]
    work = [r for r in rows if r["kind"] == "kernel"]
    expected = {}
    for k in truth["kernels"]:
        key = (k["name"], k["stream"])
        expected.setdefault(key, []).append(k["dur_ns"])
    found = {(r["kernel"], r["stream"]): (r["count"], ns(r["kernel_time_us"]))
             for r in work}
    checks.equal("rocpd: kernels by stream", found,
                 {k: (len(v), sum(v)) for k, v in expected.items()})
    copies = [(r["kernel"], r["count"], ns(r["kernel_time_us"]))
              for r in rows if r["kind"] == "memcpy"]
    checks.equal("rocpd: copies", copies,
                 [(c["name"], 1, c["dur_ns"]) for c in truth["copies"]])
    times = {r["type"]: ns(r["time_us"]) for r in tables["gpu_timeline"]}
    checks.equal("rocpd: busy", times["busy_time"], truth["gpu_busy_ns"])
    health = {r["check"]: r for r in tables["trace_health"]}
    checks.equal("rocpd: all linked", health["linked_device_time"]["count"],
                 len(truth["kernels"]) + len(truth["copies"]))
    tree = json.loads(lamina("tree", path, "--by", "op", "--format",
                             "json").stdout)["tables"]
    launchers = {}
    for k in truth["kernels"]:
        launchers.setdefault(k["launched_by"], []).append(k["dur_ns"])
    table = next(iter(tree.values()))
    by_call = {}
    for r in table:
        name = r.get("op") or r.get("name") or ""
        if name.strip() in launchers:
            by_call[name.strip()] = ns(r["kernel_time_us"])
    checks.equal("rocpd: time by launching call", by_call,
                 {k: sum(v) for k, v in launchers.items()})
    # The range is the first record.
    event = json.loads(lamina("event", path, "--uid", "0", "--format",
                              "json").stdout)["tables"]
    table = next(iter(event.values()))
    ranges = [(r["name"], ns(r["dur_us"])) for r in table
              if r["relation"] == "self"]
    checks.equal("rocpd: range", ranges,
                 [(a["name"], a["dur_ns"]) for a in truth["annotations"]])


def check_threads(checks, folder):
    path = folder / "rocprof-908.json.gz"
    one = lamina("report", path, "--format", "csv", "--threads", "1").stdout
    four = lamina("report", path, "--format", "csv", "--threads", "4").stdout
    checks.true("908: equal for any number of threads", one == four)


def check_cut(checks, folder):
    """A cut file keeps its records, by byte."""
    data = gzip.decompress((folder / "rocprof-908.json.gz").read_bytes())
    with temporary() as out:
        path = pathlib.Path(out) / "cut.json"
        path.write_bytes(data[:len(data) * 9 // 10])
        tables, _ = report(path)
        count = sum(r["count"] for r in tables["kernels"])
        checks.true(f"cut: {count} dispatches", 10_000 < count < 43_915)
        checks.true("cut: said so", any(r["status"] == "lost"
                                        for r in tables["trace_health"]))


def check_written(checks, sample, folder):
    """A sample as AMD's profilers would have recorded it: the same kernels,
    and every nanosecond of them."""
    work = Work(sample)
    expected = {}
    for start, end, cat, name, args in work.device:
        if cat == "kernel":
            key = (name, str(args["stream"]))
            count, time = expected.get(key, (0, 0))
            expected[key] = (count + 1, time + end - start)
    for form, write in (("json", write_rocprof), ("db", write_rocpd)):
        path = folder / f"{sample.name.split('.')[0]}.{form}"
        write(work, path)
        tables, _ = report(path)
        found = {(r["kernel"], str(r["stream"])):
                 (r["count"], ns(r["kernel_time_us"]))
                 for r in tables["kernels"] if r["kind"] == "kernel"}
        checks.equal(f"{path.name}: kernels by stream", found, expected)
        checks.equal(f"{path.name}: categories add up",
                     sum(ns(r["kernel_time_us"])
                         for r in tables["op_categories"]),
                     sum(e[1] - e[0] for e in work.device))


def main():
    checks = Checks()
    with temporary() as folder:
        for name in ("train_step", "serve", "moe"):
            check_written(checks, SAMPLES / f"{name}.json.gz",
                          pathlib.Path(folder))
    root = shared()
    check_json(checks, root / "traces", root / "goldens")
    check_rocpd(checks, root / "traces/rocpd")
    check_threads(checks, root / "traces")
    check_cut(checks, root / "traces")
    checks.finish()


main()
