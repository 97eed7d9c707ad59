# SPDX-License-Identifier: Apache-2.0
"""What a viewer makes of the traces that lamina writes: which process a track
stands below, which slices an arrow connects, of which types arguments are, and
that nothing overlaps on a thread of Chrome JSON."""
import collections
import gzip
import json
import os
import pathlib
import struct

from common import Checks, ROOT, SAMPLES, lamina, temporary


def fields(data):
    """(number, value) of a protocol buffer; lengths give bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
        elif kind == 1:
            yield key >> 3, struct.unpack("<Q", data[at:at + 8])[0]
            at += 8
        elif kind == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        else:
            yield key >> 3, struct.unpack("<I", data[at:at + 4])[0]
            at += 4


def one(data, number, default=None):
    for n, value in fields(data):
        if n == number:
            return value
    return default


class Perfetto:
    """Tracks and begun slices of a file, as a viewer sees them."""

    def __init__(self, path):
        data = path.read_bytes()
        if path.name.endswith(".gz"):
            data = gzip.decompress(data)
        self.tracks = {}
        self.slices = []
        self.instants = []
        self.sequences_of_events = set()
        self.sequences_of_threads = set()
        tables = collections.defaultdict(dict)
        for number, packet in fields(data):
            assert number == 1
            parts = collections.defaultdict(list)
            for n, value in fields(packet):
                parts[n].append(value)
            sequence = parts[10][0]
            if parts[13] and parts[13][0] & 1:
                tables.clear()
            for interned in parts[12]:
                for table, entry in fields(interned):
                    text = one(entry, 2, b"").decode()
                    tables[table][one(entry, 1)] = text
            for descriptor in parts[60]:
                track = {"name": one(descriptor, 2, b"").decode(),
                         "parent": one(descriptor, 5, 0), "process": None}
                process, thread = one(descriptor, 3), one(descriptor, 4)
                if process is not None:
                    track["process"] = one(process, 6, b"").decode()
                    track["pid"] = one(process, 1)
                if thread is not None:
                    track["name"] = one(thread, 5, b"").decode()
                    track["pid"] = one(thread, 1)
                    self.sequences_of_threads.add(sequence)
                self.tracks[one(descriptor, 1)] = track
            for event in parts[11]:
                self.sequences_of_events.add(sequence)
                self.event(event, tables)

    def event(self, event, tables):
        kind = one(event, 9)
        if kind not in (1, 3):
            return
        found = {"track": one(event, 11), "name": tables[2][one(event, 10)],
                 "category": tables[1].get(one(event, 3)), "flows": [],
                 "args": {}}
        for number, value in fields(event):
            if number == 47:
                found["flows"].append(value)
            if number == 4:
                name = tables[3][one(value, 1)]
                found["args"][name] = self.value(value, tables)
        (self.slices if kind == 1 else self.instants).append(found)

    def value(self, annotation, tables):
        items = [self.value(v, tables) for n, v in fields(annotation)
                 if n == 12]
        if items:
            return items
        for number, value in fields(annotation):
            if number == 4:
                return value
            if number == 5:
                return struct.unpack("<d", struct.pack("<Q", value))[0]
            if number == 17:
                return tables[29][value]
        return []

    def process_of(self, uuid):
        """Name of the process (or topmost track) above a track."""
        while True:
            track = self.tracks[uuid]
            if track["process"] is not None or not track["parent"]:
                return track["process"] or track["name"]
            uuid = track["parent"]

    def ends(self):
        """Slices by flow, in the order of the file, which is that of time."""
        arrows = collections.defaultdict(list)
        for s in self.slices:
            for flow in s["flows"]:
                arrows[flow].append(s)
        return arrows


def convert(source, folder, name="out.pftrace", *args):
    out = pathlib.Path(folder) / name
    lamina(*(args or ("convert", source)), "-o", out)
    return out


def on_device(s):
    return s["category"] in ("kernel", "gpu_memcpy", "gpu_memset")


def check_ranks(checks, folder):
    """23: the streams of a rank stand below that rank."""
    out = convert(None, folder, "ranks.pftrace", "merge", SAMPLES / "ranks")
    again = convert(out, folder, "again.pftrace")
    for path in (out, again):
        trace = Perfetto(path)
        counts = collections.Counter(
            (trace.process_of(s["track"]).split(" - ")[0], on_device(s))
            for s in trace.slices if s["category"] != "python_function")
        ranks = {rank for rank, device in counts if device}
        checks.equal(f"{path.name}: ranks with device work",
                     sorted(ranks), [f"RANK {r}" for r in range(len(ranks))])
        checks.true(f"{path.name}: more than one rank", len(ranks) > 1)


def check_arrows(checks, path, folder):
    """24: an arrow from the launch to each kernel that it launched."""
    trace = Perfetto(convert(path, folder))
    name = path.name
    fan = collections.Counter()
    for flow, ends in trace.ends().items():
        if not any(on_device(s) for s in ends):
            continue
        checks.equal(f"{name}: ends of flow {flow}",
                     [on_device(s) for s in ends], [False, True])
        fan[id(ends[0])] += 1
    calls = {s["args"].get("correlation") for s in trace.slices
             if s["category"] in ("cuda_runtime", "cuda_driver")}
    launched = [s for s in trace.slices if on_device(s)
                and s["args"].get("correlation") in calls]
    checks.equal(f"{name}: arrows", sum(fan.values()), len(launched))
    others = [s for s in trace.slices if on_device(s)
              and s["args"].get("correlation") not in calls]
    checks.equal(f"{name}: kernels without a launch have no arrows",
                 sum(len(s["flows"]) for s in others), 0)
    return max(fan.values(), default=0)


def check_arguments(checks, path, folder):
    """26: lists are lists, and counts are integers."""
    trace = Perfetto(convert(path, folder))
    seen = collections.Counter()
    for s in trace.slices:
        for key in ("Input Dims", "Input type", "Input Strides", "grid"):
            if key in s["args"] and s["args"][key] != "[]":
                seen[key, type(s["args"][key]).__name__] += 1
        for key in ("lamina.flops", "lamina.bytes"):
            if key in s["args"]:
                seen[key, type(s["args"][key]).__name__] += 1
    wrong = {k: v for k, v in seen.items()
             if k[1] != ("int" if k[0].startswith("lamina") else "list")}
    checks.equal(f"{path.name}: arguments of another type", wrong, {})
    # Threads of descriptors would show at every event behind them.
    checks.equal(f"{path.name}: sequences with threads and events",
                 trace.sequences_of_threads & trace.sequences_of_events, set())
    return seen


def check_names(checks, folder):
    """26: what a recording says of a stream stays in its name; lines with
    names of their own keep them, and the arrows and arguments at hand."""
    def event(name, category, tid, ts, dur, **args):
        return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": tid,
                "ts": ts, "dur": dur, "args": args}

    records = [
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7,
         "args": {"name": "stream 7 compute"}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 20,
         "args": {"name": "stream 20 nccl"}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel",
         "pid": 99, "tid": 99, "ts": 1, "dur": 2,
         "args": {"correlation": 5}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize",
         "pid": 99, "tid": 99, "ts": 4, "dur": 9,
         "args": {"correlation": 6}},
        event("gemm", "kernel", 7, 4, 5, device=0, stream=7, correlation=5),
        event("ncclKernel", "kernel", 20, 4, 5, device=0, stream=20,
              correlation=8),
        event("Stream Sync", "cuda_sync", 7, 9, 4, stream=7, correlation=6),
        {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 6, "pid": 99,
         "tid": 99, "ts": 4},
        {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 6, "pid": 0, "tid": 7,
         "ts": 9, "bp": "e"},
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 99,
         "tid": 99, "ts": 2, "s": "t", "args": {"Bytes": 8, "Addr": 1,
                                                "Device Type": 1,
                                                "Device Id": 0,
                                                "Total Allocated": 8}}]
    source = pathlib.Path(folder) / "names.json"
    source.write_text(json.dumps({"traceEvents": records}))
    trace = Perfetto(convert(source, folder))
    names = {s["name"]: trace.tracks[s["track"]]["name"] for s in trace.slices}
    checks.equal("name of a compute stream", names["gemm"],
                 "GPU 0 stream 7 compute")
    checks.equal("name of a stream of NCCL", names["ncclKernel"],
                 "GPU 0 stream 20 nccl")
    arrows = sorted(sorted(s["name"] for s in ends)
                    for ends in trace.ends().values())
    checks.equal("arrows", arrows, [["Stream Sync", "cudaStreamSynchronize"],
                                    ["cudaLaunchKernel", "gemm"]])
    checks.equal("category of an instant",
                 [i["category"] for i in trace.instants],
                 ["cpu_instant_event"])
    back = convert(pathlib.Path(folder) / "out.pftrace", folder, "back.json")
    events = json.loads(back.read_text())["traceEvents"]
    checks.equal("category of an instant in JSON",
                 [e.get("cat") for e in events if e["ph"] == "i"],
                 ["cpu_instant_event"])


def check_lanes(checks, path, folder):
    """25: no time below 0, and on a thread what overlaps nests."""
    out = convert(path, folder, "out.json")
    events = json.loads(out.read_text())["traceEvents"]
    checks.equal(f"{path.name}: times below 0",
                 [e for e in events if e.get("ts", 0) < 0][:3], [])
    threads = collections.defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            start = round(e["ts"] * 1000)
            threads[e["pid"], e["tid"]].append(
                (start, -round(e["dur"] * 1000)))
    overlaps = 0
    for spans in threads.values():
        stack = []
        for start, minus in sorted(spans):
            end = start - minus
            while stack and stack[-1] <= start:
                stack.pop()
            overlaps += bool(stack) and end > stack[-1]
            stack.append(end)
    checks.equal(f"{path.name}: overlaps on one thread", overlaps, 0)
    return len(events)


def check_made_lanes(checks, folder):
    """Nsight's times may begin below 0; two kernels of one stream overlap."""
    records = [{"ph": "X", "cat": "kernel", "name": n, "pid": 0, "tid": 7,
                "ts": ts, "dur": 10, "args": {"device": 0, "stream": 7}}
               for n, ts in (("a", -3), ("b", 2), ("c", 4), ("d", 30))]
    source = pathlib.Path(folder) / "lanes.json"
    source.write_text(json.dumps({"traceEvents": records}))
    middle = convert(source, folder, "middle.pftrace")
    check_lanes(checks, middle, folder)
    out = json.loads((pathlib.Path(folder) / "out.json").read_text())
    times = sorted((e["name"], e["ts"], e["dur"])
                   for e in out["traceEvents"] if e["ph"] == "X")
    checks.equal("made lanes: all spans, apart by as much",
                 [(n, t - times[0][1], d) for n, t, d in times],
                 [("a", 0, 10), ("b", 5, 10), ("c", 7, 10), ("d", 33, 10)])


def main():
    checks = Checks()
    with temporary() as out:
        check_ranks(checks, out)
        graph = SAMPLES / "graphs" / "replay.json.gz"
        widest = check_arrows(checks, graph, out)
        checks.true(f"a graph launch has a fan of {widest}", widest > 10)
        for name in ("train_step", "serve"):
            check_arrows(checks, SAMPLES / f"{name}.json.gz", out)
            seen = check_arguments(checks, SAMPLES / f"{name}.json.gz", out)
            checks.true(f"{name}: shapes", seen["Input Dims", "list"] > 0)
        seen = check_arguments(checks, SAMPLES / "jax.xplane.pb", out)
        checks.true("jax: FLOPs", seen["lamina.flops", "int"] > 0)
        check_names(checks, out)
        check_made_lanes(checks, out)
        check_lanes(checks, SAMPLES / "jax.xplane.pb", out)
        folder = pathlib.Path(os.environ.get("LAMINA_SHARED",
                                             ROOT.parent / "shared")) / "traces"
        if not folder.is_dir():
            print(f"without reference traces: none in {folder}")
        else:
            for name in ("h100-qwen1.5-0.5b.json.gz", "queue-length.json.gz"):
                check_arrows(checks, folder / name, out)
            for path in ("rocprof-908.json.gz",
                         "mi300-jax-conv-08.xplane.pb",
                         "jax-te-fused-attn.xplane.pb"):
                check_lanes(checks, folder / path, out)
            for path in sorted((folder / "nsys").glob("*.sqlite")):
                check_lanes(checks, path, out)
    checks.finish()


main()
