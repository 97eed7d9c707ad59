#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina slice: a step alone reports what it did in the whole trace; no flow
dangles; kernels come with their launches and all that encloses these."""
import gzip
import json
import pathlib
import re

from common import (SAMPLES, Checks, lamina, report,
                    sample_and_reference_traces, temporary)

HOST = ("cpu_op", "cuda_runtime", "cuda_driver", "python_function")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def events(path):
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    document = json.loads(text)
    return document["traceEvents"] if isinstance(document, dict) else document


def key(event):
    return json.dumps(event, sort_keys=True)


def check_form(checks, what, whole, part):
    """`part` is a part of `whole`, and complete in itself."""
    known = {key(e) for e in whole}
    checks.true(f"{what}: nothing is new",
                all(key(e) in known for e in part))
    order = [key(e) for e in whole]
    kept = {key(e) for e in part}
    checks.equal(f"{what}: in the order of the whole",
                 [k for k in order if k in kept], [key(e) for e in part])
    ends = {}
    for e in part:
        if e["ph"] in "sf" and "id" in e:
            ends.setdefault((e.get("cat"), e["id"]), set()).add(e["ph"])
    checks.true(f"{what}: no flow dangles",
                all(v == {"s", "f"} for v in ends.values()))
    starts = {(e["pid"], e["tid"], e["ts"]) for e in part if e["ph"] == "X"}
    checks.true(f"{what}: flows begin and end at slices", all(
        (e["pid"], e["tid"], e["ts"]) in starts
        for e in part if e["ph"] in "sf"))
    # The launch of every kernel and what holds it.
    calls = {e["args"]["correlation"]: e for e in whole
             if e.get("cat") in ("cuda_runtime", "cuda_driver") and
             "correlation" in e.get("args", {})}
    launched = [calls[e["args"]["correlation"]] for e in part
                if e.get("cat") in DEVICE and
                e["args"].get("correlation") in calls]
    checks.true(f"{what}: launches come along",
                all(key(e) in kept for e in launched))
    by_thread = {}
    for e in whole:
        if e.get("cat") in HOST and "dur" in e:
            by_thread.setdefault((e["pid"], e["tid"]), []).append(e)
    missing = 0
    for call in launched[:20]:
        for e in by_thread[call["pid"], call["tid"]]:
            if e["ts"] <= call["ts"] and \
                    e["ts"] + e["dur"] >= call["ts"] + call["dur"]:
                missing += key(e) not in kept
    checks.equal(f"{what}: enclosing events come along", missing, 0)
    names = [e for e in whole if e["ph"] == "M"]
    checks.equal(f"{what}: metadata comes along", len(names),
                 sum(e["ph"] == "M" for e in part))


def check_trace(checks, path, out):
    whole = events(path)
    tables, _ = report(path, "--only", "steps")
    steps = [s for s in tables["steps"] if s["step"] is not None]
    picked = {s["step"]: s for s in (steps[:1] + steps[len(steps) // 2:][:1] +
                                     steps[-1:])}
    for number, step in picked.items():
        what = f"{path.name} step {number}"
        lamina("slice", path, "--step", number, "-o", out)
        own, _ = report(out, "--only", "steps")
        rows = [s for s in own["steps"] if s["step"] is not None]
        checks.equal(f"{what}: one step", len(rows), 1)
        for column in step:
            # What comes behind the step says when it ended, what comes before
            # it may hold up its first work: so does the chain through it. A
            # flag says how it is beside the others.
            if not column.startswith("path_") and column not in (
                    "step", "start_us", "period_us", "overlap_us", "idle_us",
                    "strength_percent", "flag"):
                checks.equal(f"{what}: {column}", rows[0][column],
                             step[column])
        check_form(checks, what, whole, events(out))
    kernel = next((e["name"] for e in whole if e.get("cat") == "kernel"), None)
    if kernel is None:
        return
    what = f"{path.name} by name"
    lamina("slice", path, "--name", "^" + re.escape(kernel) + "$", "-o", out)
    part = events(out)
    checks.equal(f"{what}: all kernels of that name",
                 sum(e["name"] == kernel for e in part if
                     e.get("cat") == "kernel"),
                 sum(e["name"] == kernel for e in whole if
                     e.get("cat") == "kernel"))
    checks.true(f"{what}: no other", all(
        e["name"] == kernel for e in part if e.get("cat") in DEVICE))
    check_form(checks, what, whole, part)


def main():
    checks = Checks()
    paths = sample_and_reference_traces((
        "h100-qwen1.5-0.5b", "mi300-falconsai-vit", "ns-resolution",
        "sglang-qwen3-8b-prefilldecode", "h100-bert-small"))
    paths.append(SAMPLES / "graphs" / "replay.json.gz")
    with temporary() as name:
        for path in paths:
            check_trace(checks, path, pathlib.Path(name) / "part.json.gz")
    checks.finish()


main()
