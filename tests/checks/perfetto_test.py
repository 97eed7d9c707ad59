#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perfetto traces: what is written reads back the same, protoc knows every
field, and the fixtures of other producers give their known figures."""
import json
import pathlib
import re
import subprocess

from common import Checks, ROOT, SAMPLES, lamina, report, shared, temporary

TABLES = "gpu_timeline,kernels,ops,op_shapes,modules,steps,collectives"
# The order of events in the file is another one.
# The number of a process is another one, too.
NUMBERS_OF_EVENTS = {"first_uid", "uid", "device"}
TRACES = ("h100-owlv2", "h100-qwen1.5-0.5b", "mi300-falconsai-vit",
          "ns-resolution", "nccl-fields")


def rows(tables, name, without=()):
    """Rows without event numbers, as a sorted list: equal times may come in
    another order."""
    return sorted(json.dumps({k: v for k, v in row.items()
                              if k not in NUMBERS_OF_EVENTS
                              and k not in without}, sort_keys=True)
                  for row in tables[name])


def unknown_fields(path):
    """Lines of protoc's text that name a field by number."""
    decoded = subprocess.run(
        ["protoc", "--decode", "lamina.perfetto.Trace",
         f"-I{ROOT / 'tests/proto'}", "perfetto.proto"],
        stdin=path.open("rb"), capture_output=True, check=True).stdout
    return re.findall(rb"^ *\d+[:{ ]", decoded, re.M), decoded


def check_round_trip(checks, path, folder):
    name = path.name
    written = pathlib.Path(folder) / "out.pftrace"
    lamina("convert", path, "-o", written)
    before, _ = report(path, "--only", TABLES)
    after, _ = report(written, "--only", TABLES)
    for table in before:
        checks.equal(f"{name}: {table}", rows(after, table),
                     rows(before, table))
    unknown, decoded = unknown_fields(written)
    checks.equal(f"{name}: fields that protoc does not know", unknown, [])
    checks.true(f"{name}: protoc sees events", b"TYPE_SLICE_BEGIN" in decoded)
    begins = decoded.count(b"TYPE_SLICE_BEGIN")
    checks.equal(f"{name}: every begin has an end", begins,
                 decoded.count(b"TYPE_SLICE_END"))
    print(f"{name}: {path.stat().st_size} bytes as stored, "
          f"{written.stat().st_size} as pftrace, {begins} spans")


def check_packed(checks, path, folder):
    plain = pathlib.Path(folder) / "plain.pftrace"
    packed = pathlib.Path(folder) / "packed.pftrace.gz"
    lamina("convert", path, "-o", plain)
    lamina("convert", path, "-o", packed)
    command = ("report", "--only", "kernels", "--format", "csv")
    checks.equal(f"{path.name}: packed", lamina(*command, packed).stdout,
                 lamina(*command, plain).stdout)
    checks.true(f"{path.name}: packed is smaller",
                packed.stat().st_size < plain.stat().st_size)


def check_json(checks, path, folder):
    """A trace of another format as Chrome JSON, which has no place for the
    program that tells families."""
    written = pathlib.Path(folder) / "out.json.gz"
    lamina("convert", path, "-o", written)
    before, _ = report(path, "--only", TABLES)
    after, _ = report(written, "--only", TABLES)
    for table in ("gpu_timeline", "kernels", "modules"):
        checks.equal(f"{path.name} as JSON: {table}",
                     rows(after, table, {"family"}),
                     rows(before, table, {"family"}))


def check_layers(checks, path, folder):
    """Tracks of layers, beside all slices of the trace."""
    plain = pathlib.Path(folder) / "plain.pftrace"
    tracks = pathlib.Path(folder) / "tracks.pftrace"
    lamina("convert", path, "-o", plain)
    tables = json.loads(lamina("layers", path, "--perfetto", tracks,
                               "--format", "json").stdout)["tables"]
    unknown, decoded = unknown_fields(tracks)
    checks.equal(f"{path.name}: layers: unknown fields", unknown, [])
    _, without = unknown_fields(plain)
    more = (decoded.count(b"TYPE_SLICE_BEGIN")
            - without.count(b"TYPE_SLICE_BEGIN"))
    layers = len(tables["layers"])
    checks.true(f"{path.name}: {more} spans more for {layers} layers",
                layers > 0 and more > layers)
    for lane in (b'"layer"', b'"pass"', b'"part"'):
        checks.true(f"{path.name}: track {lane}", b"name: " + lane in decoded)


def check_other_writers(checks, folder):
    """annotate, slice and merge write what their JSON holds."""
    graphs = SAMPLES / "graphs"
    commands = {
        "annotate": ["annotate", graphs / "replay.json.gz", "--from",
                     graphs / "capture.json.gz"],
        "slice": ["slice", SAMPLES / "serve.json.gz", "--step", "3"],
        "merge": ["merge", SAMPLES / "ranks", "--align-clocks"]}
    for name, command in commands.items():
        json_file = pathlib.Path(folder) / f"{name}.json"
        perfetto = pathlib.Path(folder) / f"{name}.pftrace"
        lamina(*command, "-o", json_file)
        lamina(*command, "-o", perfetto)
        before, _ = report(json_file, "--only", "gpu_timeline,kernels")
        after, _ = report(perfetto, "--only", "gpu_timeline,kernels")
        # Devices of one number are told apart by numbers of processes.
        label = ("device",) if name == "merge" else ()
        for table in before:
            checks.equal(f"{name}: {table}", rows(after, table, label),
                         rows(before, table, label))
        unknown, decoded = unknown_fields(perfetto)
        checks.equal(f"{name}: fields that protoc does not know", unknown, [])
        if name == "annotate":
            for text in (b"lamina_module", b"lamina_evidence", b"ops of stream",
                         b"modules of stream"):
                checks.true(f"annotate: {text} is there", text in decoded)
    checks.equal("nothing is left behind",
                 [p for p in pathlib.Path(folder).iterdir()
                  if ".part" in p.name], [])


def check_fixture(checks, path, folder):
    truth = json.loads(path.with_suffix("").with_suffix(
        ".truth.json").read_text())
    written = pathlib.Path(folder) / "fixture.json"
    lamina("convert", path, "-o", written)
    events = json.loads(written.read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    checks.equal(f"{path.name}: slices", len(spans), truth["slices"])
    if list(truth["by_category"]) != [""]:
        for category, figures in truth["by_category"].items():
            own = [e for e in spans if e["cat"] == category]
            checks.equal(f"{path.name}: {category}",
                         (len(own), round(sum(e["dur"] for e in own) * 1000)),
                         (figures["count"], figures["sum_ns"]))
    else:
        checks.equal(f"{path.name}: time",
                     round(sum(e["dur"] for e in spans) * 1000),
                     truth["by_category"][""]["sum_ns"])
    checks.equal(f"{path.name}: instants",
                 sum(e["ph"] == "i" for e in events), truth["instants"])
    counters = [e for e in events if e["ph"] == "C"]
    checks.equal(f"{path.name}: counters", len(counters),
                 truth["counter_samples"])
    flows = {e["id"] for e in events if e["ph"] in "stf"}
    checks.equal(f"{path.name}: flows", len(flows), truth["flow_ids"])
    return spans, counters


def check_fixtures(checks, folder, out):
    spans, _ = check_fixture(checks, folder / "demo.pftrace", out)
    spans, _ = check_fixture(checks, folder / "pytorch-layout.pftrace", out)
    checks.equal("pytorch: spans",
                 [(e["name"], round(e["dur"] * 1000)) for e in spans],
                 [("cudaLaunchKernel", 900), ("cudaLaunchKernel", 800),
                  ("cudaLaunchKernel", 600), ("gemm_a", 5000),
                  ("gemm_b", 5000), ("Memset (Device)", 0)])
    checks.equal("pytorch: grid", spans[3]["args"]["grid"], [4, 2, 1])
    checks.equal("pytorch: kinds", [e["cat"] for e in spans[3:]],
                 ["kernel", "kernel", "gpu_memset"])
    spans, counters = check_fixture(checks, folder / "rocprofv3-layout.pftrace",
                                    out)
    kernel, = [e for e in spans if e["cat"] == "kernel_dispatch"]
    copy, = [e for e in spans if e["cat"] == "memory_copy"]
    checks.equal("rocprofv3: kernel", (kernel["args"]["correlation"],
                                       kernel["args"]["device"],
                                       kernel["args"]["stream"],
                                       kernel["args"]["block"],
                                       kernel["args"]["grid"]),
                 (41, 2, 5, [256, 1, 1], [512, 1, 1]))
    checks.equal("rocprofv3: copy", (copy["args"]["bytes"],
                                     copy["args"]["correlation"]),
                 (65536, 42))
    checks.equal("rocprofv3: counters in bytes",
                 [e["args"]["value"] for e in counters],
                 [0, 65536, 65536, 0])


def main():
    checks = Checks()
    with temporary() as out:
        for name in ("train_step", "serve", "moe"):
            check_round_trip(checks, SAMPLES / f"{name}.json.gz", out)
        check_packed(checks, SAMPLES / "train_step.json.gz", out)
        check_layers(checks, SAMPLES / "serve.json.gz", out)
        check_other_writers(checks, out)
        folder = shared() / "traces"
        for name in TRACES:
            check_round_trip(checks, folder / f"{name}.json.gz", out)
        check_json(checks, folder / "mi300-jax-conv-08.xplane.pb", out)
        check_json(checks, folder / "jax-te-fused-attn.xplane.pb", out)
        check_fixtures(checks, folder / "pftrace", out)
    checks.finish()


main()
