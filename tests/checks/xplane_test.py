#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports on recorded XPlane files against the truth files: counts and sums of
device events, links, runs and FLOPs of every op, collectives."""
import gzip
import json
import pathlib

from common import SAMPLES, Checks, lamina, report, shared, temporary

TABLES = "kernels,op_efficiency,trace_health,gpu_timeline,collectives,steps"


def ns(ps):
    assert ps % 1000 == 0, ps
    return ps // 1000


def by_kind(tables):
    sums = {}
    for row in tables["kernels"]:
        count, time = sums.get(row["kind"], (0, 0))
        sums[row["kind"]] = (count + row["count"],
                             time + row["kernel_time_us"].ns)
    return sums


def health(tables):
    return {row["check"]: row for row in tables["trace_health"]}


def check_recorded(checks, path, truth):
    name = path.name
    tables, _ = report(path, "--only", TABLES)
    found = by_kind(tables)
    kinds = {"kernel": "kernel", "copy": "memcpy", "fill": "memset"}
    for kind, figures in truth["device_events"].items():
        checks.equal(f"{name}: {kind}", found.get(kinds[kind]),
                     (figures["count"], ns(figures["time_ps"])))
    checks.equal(f"{name}: linked", health(tables)["linked_device_time"]["count"],
                 truth["links"]["linked"])
    checks.equal(f"{name}: events", health(tables)["events"]["count"],
                 sum(plane["events"] for plane in truth["planes"]))
    ops = {}
    for row in tables["op_efficiency"]:
        ops.setdefault(row["op"], []).append(row)
    for op in truth["ops"]:
        label = f"{name}: {op['hlo_op']}"
        rows = [r for r in ops.get(op["hlo_op"], [])
                if r["kernel_time_us"].ns == ns(op["time_ps"])]
        checks.equal(label, len(rows), 1)
        if not rows:
            continue
        row = rows[0]
        checks.equal(f"{label} runs", row["count"], op["runs"])
        checks.equal(f"{label} kernels", row["kernels"],
                     op["kernel_launches"])
        if "flops_per_run" in op:
            checks.equal(f"{label} FLOP", row["flops"], op["flops_per_run"])


def check_synthetic(checks, path, truth):
    tables, _ = report(path, "--only", TABLES)
    rows = tables["collectives"]
    size = {"f32": 4, "bf16": 2}
    for collective in truth["collectives"]:
        label = f"{path.name}: {collective['op']}"
        mine = [r for r in rows if r["collective"] == collective["kind"]]
        checks.equal(f"{label} rows", len(mine), truth["gpus"])
        for row in mine:
            column = ("out_bytes" if collective["kind"] == "all_gather"
                      else "in_bytes")
            checks.equal(f"{label} bytes", row[column], collective["bytes"])
            checks.equal(f"{label} dtype", row["dtype"], collective["dtype"])
            checks.equal(f"{label} group", row["group_size"],
                         collective.get("group_size",
                                        collective.get("pairs")))
            checks.equal(f"{label} elements", row["in_elements"]
                         * size[row["dtype"]], row["in_bytes"])
    # A row for each device that worked for the step.
    checks.equal(f"{path.name}: steps",
                 sorted({r["step"] for r in tables["steps"]
                         if r["step"] is not None}), truth["steps"])
    ops = {row["op"]: row for row in tables["op_efficiency"]}
    checks.equal(f"{path.name}: dot", ops["dot.1"]["flops"],
                 truth["dot_flops"])
    checks.equal(f"{path.name}: fusion", ops["fusion.3"]["flops"],
                 truth["tpu"]["fusion_flops"])
    for op, time in truth["tpu"]["op_self_time_ps"].items():
        own = [row for row in tables["kernels"]
               if row["kernel"].startswith("%" + op) or row["kernel"] == op]
        checks.equal(f"{path.name}: self time of {op}",
                     sum(row["kernel_time_us"].ns for row in own), ns(time))


def check_packed(checks, path):
    """A gzip copy and a file written twice read like the file."""
    with temporary() as folder:
        packed = pathlib.Path(folder) / "packed.pb.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        command = ("report", "--only", "kernels,ops", "--format", "csv")
        checks.equal(f"{path.name}: gzip", lamina(*command, packed).stdout,
                     lamina(*command, path).stdout)
        twice = pathlib.Path(folder) / "twice.pb"
        twice.write_bytes(path.read_bytes() * 2)
        once, _ = report(path, "--only", "kernels")
        both, _ = report(twice, "--only", "kernels")
        for kind, (count, time) in by_kind(once).items():
            checks.equal(f"{path.name}: twice the {kind}", by_kind(both)[kind],
                         (2 * count, 2 * time))
        # A cut file keeps what is whole and says where it ends.
        data = path.read_bytes()
        cut = pathlib.Path(folder) / "cut.pb"
        cut.write_bytes(data[:len(data) * 3 // 4])
        tables, _ = report(cut, "--only", "trace_health")
        lost = [r for r in tables["trace_health"] if r["status"] == "lost"]
        checks.true(f"{path.name}: a cut file says so", lost)
        checks.true(f"{path.name}: with the place",
                    any(r["first_offset"] is not None for r in lost))


def main():
    checks = Checks()
    check_packed(checks, SAMPLES / "jax.xplane.pb")
    folder = shared()
    for truth in ("mi300-jax-conv-08", "jax-te-fused-attn"):
        path = folder / "traces" / f"{truth}.xplane.pb"
        check_recorded(checks, path, json.loads(
            (folder / "goldens" / f"{truth}.truth.json").read_text()))
        check_packed(checks, path)
    path = folder / "traces" / "synthetic-collectives.xplane.pb"
    check_synthetic(checks, path, json.loads(
        (folder / "traces" / "synthetic-collectives.truth.json").read_text()))
    checks.finish()


main()
