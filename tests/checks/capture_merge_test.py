#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report --capture: replayed kernels have the ops, shapes, modules, layers and
costs of the calls that they were captured from, and nothing is counted twice."""
import collections
import gzip
import json
import pathlib

from common import SAMPLES, Checks, lamina, report, shared, temporary

PAIRS = [("vllm-decode-full", 421), ("vllm-prefilldecode-piecewise", 361),
         ("xdit-flux1-sage", 6264)]


def ns(rows, column):
    return sum(r[column].ns for r in rows if r[column] is not None)


def by(rows, key, column):
    sums = collections.Counter()
    for row in rows:
        sums[row[key]] += row[column].ns if row[column] is not None else 0
    return sums


def health(tables, check):
    return next(r for r in tables["trace_health"] if r["check"] == check)


def check_sums(checks, name, tables, alone):
    """The whole is what it was without the capture."""
    total = ns(tables["kernels"], "kernel_time_us")
    checks.equal(f"{name}: kernel time", total,
                 ns(alone["kernels"], "kernel_time_us"))
    # (No collectives and nothing unlinked in these traces.)
    checks.equal(f"{name}: ops add up", ns(tables["ops"], "kernel_time_us"),
                 total)
    checks.equal(f"{name}: categories add up",
                 ns(tables["op_categories"], "kernel_time_us"), total)
    checks.equal(f"{name}: timeline as without",
                 [(r["type"], r["time_us"].ns) for r in tables["gpu_timeline"]],
                 [(r["type"], r["time_us"].ns) for r in alone["gpu_timeline"]])
    checks.equal(f"{name}: gaps as without", ns(tables["gaps"], "dur_us"),
                 ns(alone["gaps"], "dur_us"))
    # Captured calls took no time of the recorded host.
    for table in ("ops", "modules"):
        known = by(alone[table], table[:-1], "host_us")
        found = by(tables[table], table[:-1], "host_us")
        checks.equal(f"{name}: host time of {table}",
                     {k for k, v in found.items() if v > known[k]}, set())
    events = int(health(tables, "events")["value"].replace(",", ""))
    for table, column in (("ops", "first_uid"), ("op_shapes", "first_uid"),
                          ("launchers", "uid"), ("op_efficiency", "first_uid")):
        uids = [r[column] for r in tables[table]]
        checks.true(f"{name}: {table} points at events of the input",
                    uids and max(uids) < events)


def check_sample(checks):
    """Against what was simulated."""
    folder = SAMPLES / "graphs"
    alone, _ = report(folder / "replay.json.gz")
    truth = json.loads(gzip.decompress(
        (folder / "replay.truth.json.gz").read_bytes()))["device_work"]
    ops = collections.Counter()
    modules = collections.Counter()
    for op, module, replay, dur in zip(truth["op"], truth["module"],
                                       truth["replay"], truth["dur_ns"]):
        ops[op or "cudaMemcpyAsync"] += dur
        # The recording of the replay itself knows no modules.
        modules[module if replay else "(outside)"] += dur
    for source in ("capture", "eager"):
        name = f"sample from {source}"
        tables, _ = report(folder / "replay.json.gz", "--capture",
                           folder / f"{source}.json.gz")
        check_sums(checks, name, tables, alone)
        checks.equal(f"{name}: time by op",
                     by(tables["ops"], "op", "kernel_time_us"), ops)
        checks.equal(f"{name}: self time by module",
                     +by(tables["modules"], "module", "self_kernel_time_us"),
                     modules)
        checks.equal(f"{name}: all joined", health(
            tables, "graph_launches")["status"], "ok")
        checks.true(f"{name}: shapes", all(
            r["input_dims"] for r in tables["op_shapes"]
            if r["op"] == "aten::mm"))
    # Without a partner nothing is joined and nothing is lost.
    tables, _ = report(folder / "replay.json.gz", "--capture",
                       SAMPLES / "ranks/rank0.json.gz")
    checks.equal("unrelated: kernel time",
                 ns(tables["kernels"], "kernel_time_us"),
                 ns(alone["kernels"], "kernel_time_us"))


def table(name, *args):
    run = lamina(*args, "--only", name, "--format", "json")
    return json.loads(run.stdout)["tables"][name]


def check_everywhere(checks):
    """Each command that opens a trace takes captures, and then knows the ops of
    replayed kernels."""
    folder = SAMPLES / "graphs"
    replay, capture = folder / "replay.json.gz", folder / "capture.json.gz"
    known = ("--capture", capture)

    def ops(*args):
        return {row.get("op") for row in table(*args)}

    checks.true("path: its kernels have ops",
                "vllm::fused_experts" in ops("path_owners", "path", replay,
                                             *known))
    checks.true("path: and none without",
                "vllm::fused_experts" not in ops("path_owners", "path", replay))
    uid = table("kernels", "report", replay)[0]["first_uid"]
    names = [row["name"] for row in table("event", "event", replay, "--uid",
                                          uid, *known)]
    checks.true(f"event: the callers of a kernel: {names}",
                any(name.startswith(("vllm::", "aten::")) for name in names))
    with temporary() as made:
        made = pathlib.Path(made)
        # aten::mm outside of the graphs, and inside with the capture.
        for args, count in (((), 12), (known, 204)):
            lamina("slice", replay, *args, "--where", "op=aten::mm", "-o",
                   made / "part.json.gz")
            part = json.loads(gzip.decompress(
                (made / "part.json.gz").read_bytes()))["traceEvents"]
            checks.equal(f"slice {args}: kernels", count, sum(
                e.get("cat") == "kernel" for e in part))
            checks.true("slice: nothing of the capture is in it", len(part) <
                        1000 and not any("nn.Module" in e.get("name", "")
                                         for e in part))
        lamina("replay", replay, *known, "--top", 1, "-o", made / "scripts")
        checks.true("replay: a script of a captured op", any(
            "vllm" in path.name for path in (made / "scripts").iterdir()))
    checks.true("diagnose: findings name captured ops",
                "vllm::" in lamina("diagnose", replay, *known, "--all").stdout)
    checks.true("diagnose: and none without",
                "vllm::" not in lamina("diagnose", replay, "--all").stdout)
    for args in (("--capture", capture), ("--capture-b", capture)):
        rows = table("diff_aligned", "diff", folder / "eager.json.gz", replay,
                     *args)
        checks.true(f"diff {args[0]}: ops on both sides", rows and all(
            row["op_a"] == row["op_b"] for row in rows
            if row["kind"] == "changed"))
    run = lamina("diff", folder / "eager.json.gz", replay, "--findings",
                 "--capture-b", capture, "--format", "json")
    checks.true("diff --findings takes them", "finding_changes" in run.stdout)
    run = lamina("ranks", replay, "--capture", capture, "--engine", "files",
                 "--partials", "unused", status=2)
    checks.true("partial results have none", "capture" in run.stderr)


def main():
    checks = Checks()
    check_sample(checks)
    check_everywhere(checks)
    root = shared() / "traces"
    for name, count in PAIRS:
        alone, _ = report(root / name / "replay.json.gz")
        tables, _ = report(root / name / "replay.json.gz", "--capture",
                           root / name / "capture")
        check_sums(checks, name, tables, alone)
        joined = health(tables, "graph_launches")
        checks.equal(f"{name}: joined for sure", joined["count"], count)
        checks.equal(f"{name}: nothing below the launch", joined["status"],
                     "ok")
        checks.true(f"{name}: no op is a graph launch",
                    not any("GraphLaunch" in r["op"] for r in tables["ops"]))
        share = health(tables, "modelled_device_time")["percent"]
        print(f"{name}: {share} % of the device time has a cost model")
        if name == "xdit-flux1-sage":
            checks.true(f"{name}: 95 % have a cost model", float(share) >= 95)
    checks.finish()


main()
