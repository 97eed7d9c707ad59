#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina layers finds the layers that are there, with modules and without, and
gives every device event to exactly one layer or orphan row."""
import gzip
import json
import pathlib

from common import SAMPLES, Checks, Exact, lamina, report, shared, \
    temporary, traces

# Trace, layers of the largest pass, first kernel of the first layer and last
# kernel of the last among the kernels by start; stages of the passes.
TRUTH = [
    ("sglang-qwen3-8b-prefilldecode", 36, 13, 517, {"prefill"}),
    ("vllm-decode-full/replay", 24, 4, 422, {"decode"}),
    ("vllm-prefilldecode-piecewise/replay", 24, 4, 411, {"mixed"}),
    ("h100-qwen1.5-0.5b", 24, 449, None, {"none", "unknown"}),
    ("mi300-qwen1.5-0.5b", 24, 476, 1507, {"none", "unknown"}),
    ("h100-bert-small", 4, 8, 55, {"none", "unknown"}),
    ("h100-falconsai-vit", 12, 7, 150, {"none", "unknown"}),
    ("mi300-falconsai-vit", 12, 8, 151, {"none", "unknown"}),
]
# A model of several stacks: layers of each in one pass.
DIFFUSION = ("xdit-flux1-sage/replay", {12, 24, 19, 38})
# One step of several passes of the same kernels.
STEP_OF_PASSES = ("h100-owlv2", 5, 1033)
NORM_LAST = ("h100-bert-small", [8, 20, 32, 44])
NO_LAYERS = ["alexnet", "simple-add", "normalization", "compile-triton"]
LAYER_PARTS = ["attention_us", "gemm_us", "moe_us", "norm_us", "communication_us",
         "quantization_us", "other_us"]


def layers(trace, *args):
    document = json.loads(lamina("layers", trace, "--format", "json",
                                 *args).stdout, parse_float=Exact)
    return document["tables"]


def kernel_order(path):
    """Event number -> place among the kernels by start."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    order = sorted((e["ts"], i) for i, e in enumerate(events)
                   if e.get("cat") == "kernel" and e.get("ph") == "X")
    return {uid: place for place, (_, uid) in enumerate(order)}


def without_python(path, folder):
    """The same trace without Python frames, so without modules."""
    document = json.loads(gzip.decompress(path.read_bytes()))
    # Removed events leave an instant, so that event numbers stay.
    document["traceEvents"] = [
        {"ph": "i", "name": "gone", "pid": 0, "tid": 0, "ts": 0}
        if e.get("cat") == "python_function" else e
        for e in document["traceEvents"]]
    target = pathlib.Path(folder) / path.name
    target.write_bytes(gzip.compress(json.dumps(document).encode(), 1))
    return target


def check_truth(checks, folder, out, name, count, first, last, stages):
    path = folder / "traces" / f"{name}.json.gz"
    order = kernel_order(path)
    stripped = without_python(path, out)
    for what, trace, args in [("auto", path, []),
                              ("repeat", path, ["--detector", "repeat"]),
                              ("no modules", stripped, [])]:
        tables = layers(trace, *args)
        largest = max(tables["passes"], key=lambda p: p["layers"])
        own = [r for r in tables["layers"] if r["pass"] == largest["pass"]]
        checks.equal(f"{name}, {what}: layers", len(own), count)
        begin = order[own[0]["first_uid"]]
        checks.true(f"{name}, {what}: first kernel {begin}, truth {first}",
                    abs(begin - first) <= 3)
        if last is not None:
            end = order[own[-1]["first_uid"]] + own[-1]["kernels"] - 1
            checks.true(f"{name}, {what}: last kernel {end}, truth {last}",
                        abs(end - last) <= 3)
        checks.true(f"{name}, {what}: stage",
                    {p["stage"] for p in tables["passes"]} <= stages)


def check_conservation(checks, path):
    if not report(path, "--only", "kernels")[0]["kernels"]:
        # A capture: nothing ran in it.
        lamina("layers", path, status=3)
        return
    tables = layers(path)
    kernels = report(path, "--only", "kernels")[0]["kernels"]
    expected = [sum(r["count"] for r in kernels),
                sum(r["kernel_time_us"].ns for r in kernels)]
    rows = tables.get("layers", []) + tables.get("orphans", [])
    checks.equal(f"{path.name}: layers and orphans are all device events",
                 [sum(r["kernels"] for r in rows),
                  sum(r["kernel_time_us"].ns for r in rows)], expected)
    checks.equal(f"{path.name}: stages are all device time",
                 sum(r["kernel_time_us"].ns
                     for r in tables.get("stage_kernel_type", [])),
                 expected[1])
    unknown = sum(r["kernel_time_us"].ns
                  for r in tables.get("stage_kernel_type", [])
                  if r["kernel_type"] == "other")
    checks.true(f"{path.name}: {unknown} ns of {expected[1]} have no type",
                unknown * 100 <= expected[1])
    for row in tables.get("layers", []):
        checks.equal(f"{path.name}: parts of a layer",
                     sum(row[part].ns for part in LAYER_PARTS),
                     row["kernel_time_us"].ns)


def check_tracks(checks, path):
    """--perfetto changes no event and adds tracks that hold the layers."""
    with temporary() as out:
        target = pathlib.Path(out) / "tracks.json.gz"
        lamina("layers", path, "--perfetto", target)
        before = json.loads(gzip.decompress(path.read_bytes()))
        after = json.loads(gzip.decompress(target.read_bytes()))
    own = [e for e in after["traceEvents"]
           if isinstance(e["pid"], int) and e["pid"] >= 2_000_000_000]
    after["traceEvents"] = [e for e in after["traceEvents"] if e not in own]
    checks.true(f"{path.name}: all else is as it was", before == after)
    tracks = {e["args"]["name"]: e["tid"] for e in own
              if e["name"] == "thread_name"}
    count = len(layers(path)["layers"])
    checks.equal(f"{path.name}: layers on the track",
                 sum(e["ph"] == "X" and e["tid"] == tracks["layer"]
                     for e in own), count)


def main():
    checks = Checks()
    check_tracks(checks, SAMPLES / "serve.json.gz")
    check_tracks(checks, SAMPLES / "graphs/replay.json.gz")
    for path in traces(SAMPLES):
        check_conservation(checks, path)
    for name, count in [("serve", 4), ("moe", 4), ("graphs/replay", 4)]:
        for detector in ("auto", "repeat"):
            tables = layers(SAMPLES / f"{name}.json.gz", "--detector",
                            detector)
            checks.equal(f"{name}, {detector}: layers of every pass",
                         {p["layers"] for p in tables["passes"]}, {count})
    # Forward and backward pass of a layer are one layer of one pass.
    tables = layers(SAMPLES / "train_step.json.gz")
    checks.equal("train_step: layers of every pass",
                 [p["layers"] for p in tables["passes"]], [4, 4])
    checks.equal("train_step: kernels of every layer",
                 {r["kernels"] for r in tables["layers"]}, {23})
    folder = shared()
    for path in traces(folder):
        check_conservation(checks, path)
    with temporary() as out:
        for row in TRUTH:
            check_truth(checks, folder, out, *row)
    name, expected = DIFFUSION
    for args in ([], ["--detector", "repeat"]):
        stacks = layers(folder / "traces" / f"{name}.json.gz",
                        *args)["layer_stacks"]
        found = {int(r["layers_per_pass"]) for r in stacks
                 if r["layers_per_pass"].isdigit()}
        checks.true(f"{name} {args}: {found} holds {expected}",
                    expected <= found)
    # Layers that end with a norm begin behind it, without modules, too.
    name, begins = NORM_LAST
    checks.equal(f"{name}: first kernels by repeats",
                 [r["first_kernel"] for r in
                  layers(folder / "traces" / f"{name}.json.gz", "--detector",
                         "repeat")["layers"]], begins)
    name, passes, kernels = STEP_OF_PASSES
    checks.equal(f"{name}: kernels of every pass",
                 [p["kernels"] for p in
                  layers(folder / "traces" / f"{name}.json.gz")["passes"]],
                 [kernels] * passes)
    for name in NO_LAYERS:
        tables = layers(folder / "traces" / f"{name}.json.gz")
        checks.equal(f"{name}: no layers", tables["layers"], [])
    checks.finish()


main()
