# SPDX-License-Identifier: Apache-2.0
"""A simulated rank: host threads that launch, streams that work, a clock.

Times are integer nanoseconds of one true clock; a rank writes them with the
offset and drift of its own. Everything that happens is an event of the trace
and, for device work, a row of the truth.
"""
import contextlib
import dataclasses
import gzip
import json
import random
import re

HOST_PID = 4000


@dataclasses.dataclass
class Kernel:
    """Device work as it is launched, and as a graph remembers it."""
    name: str
    dur_ns: int
    stream: int = 7
    grid: tuple = (1, 1, 1)
    block: tuple = (128, 1, 1)
    kind: str = "kernel"
    args: dict = dataclasses.field(default_factory=dict)
    tags: dict = dataclasses.field(default_factory=dict)
    after: int = -1  # the node of its graph that it waits for


@dataclasses.dataclass
class Graph:
    """A captured graph: its nodes in the order of capture."""
    graph_id: int
    nodes: list
    replays: int = 0
    # Waits recorded so far: stream -> number of the awaited node.
    waits: dict = dataclasses.field(default_factory=dict)

    def last(self, stream):
        return max((i for i, node in enumerate(self.nodes)
                    if node.stream == stream), default=-1)


class Rank:
    """One process with one device. See workloads.py for what it runs."""

    def __init__(self, rank=0, world=1, seed=1, offset_ns=0, drift_ppm=0.0,
                 slowdown=1.0, device_name="NVIDIA H100 80GB HBM3",
                 stacks=True, shapes=True):
        self.rank, self.world = rank, world
        self.random = random.Random(seed * 1000003 + rank)
        self.offset_ns, self.drift_ppm = offset_ns, drift_ppm
        self.slowdown = slowdown
        self.device_name = device_name
        self.stacks, self.shapes = stacks, shapes
        self.events = []  # (ts_ns, text without ts) in the order of the file
        self.truth = []
        self.now = {1: 1_000_000}  # host clock of each thread
        self.thread = 1
        self.stream_free = {}
        self.python_stack = {}
        self.op_stack = []
        self.modules = []
        self.module_counts = {}
        self.labels = {}  # step, phase, layer: what the truth says of work
        self.capture = None
        self.ids = dict.fromkeys(
            ("external", "correlation", "python", "sequence", "graph",
             "flow"), 0)

    # -- the file -----------------------------------------------------------

    def local(self, t):
        """True time on this rank's clock."""
        return t + self.offset_ns + int(t * self.drift_ppm / 1e6)

    def span(self, cat, name, start, end, args, pid=None, tid=None):
        first, last = self.local(start), self.local(end)
        self.events.append(
            {"ph": "X", "cat": cat, "name": name,
             "pid": HOST_PID + self.rank if pid is None else pid,
             "tid": self.thread if tid is None else tid,
             "ts": Micros(first), "dur": Micros(last - first), "args": args})
        return len(self.events) - 1

    def flow(self, phase, cat, flow_id, t, pid, tid):
        event = {"ph": phase, "cat": cat, "name": cat, "id": flow_id,
                 "pid": pid, "tid": tid, "ts": Micros(self.local(t))}
        if phase == "f":
            event["bp"] = "e"
        self.events.append(event)

    def next(self, what):
        self.ids[what] += 1
        return self.ids[what]

    # -- the host -----------------------------------------------------------

    def spend(self, ns):
        """Host time that passes on the current thread."""
        self.now[self.thread] += max(1, int(ns * self.random.uniform(0.9, 1.1)))

    @contextlib.contextmanager
    def on_thread(self, thread):
        before, self.thread = self.thread, thread
        self.now[thread] = max(self.now.get(thread, 0), self.now[before])
        yield
        self.thread = before
        self.now[before] = max(self.now[before], self.now[thread])

    @contextlib.contextmanager
    def frame(self, name, module=None):
        """A Python frame; `module` is the number of an nn.Module."""
        if not self.stacks:
            yield
            return
        stack = self.python_stack.setdefault(self.thread, [])
        number = self.next("python")
        args = {"Python parent id": stack[-1] if stack else None,
                "Python id": number}
        if module is not None:
            args["Python module id"] = module
        start = self.now[self.thread]
        stack.append(number)
        self.spend(300)
        yield
        self.spend(200)
        stack.pop()
        self.span("python_function", name, start, self.now[self.thread], args)

    @contextlib.contextmanager
    def module(self, kind, line, key):
        """A call of an nn.Module; `key` tells instances of a class apart."""
        instances = self.module_counts.setdefault(kind, {})
        number = instances.setdefault(key, len(instances))
        label = f"{kind}_{number}"
        self.modules.append(label)
        with self.frame(f"nn.Module: {label}", number):
            with self.frame(f"model.py({line}): forward"):
                yield
        self.modules.pop()

    @contextlib.contextmanager
    def annotation(self, name):
        start = self.now[self.thread]
        self.spend(500)
        yield
        self.spend(200)
        self.span("user_annotation", name, start, self.now[self.thread],
                  {"External id": self.next("external")})

    @contextlib.contextmanager
    def op(self, name, dims=(), dtype="c10::BFloat16", concrete=None,
           sequence=None, forward_thread=None, extra=None, host_ns=2500):
        """A framework op; `dims` are the shapes of its tensor arguments."""
        start = self.now[self.thread]
        args = {"External id": self.next("external")}
        if sequence is not None:
            args["Sequence number"] = sequence
            args["Fwd thread id"] = forward_thread or 0
        if self.shapes:
            concrete = concrete or []
            args["Input Dims"] = [list(d) for d in dims] + [[]] * len(concrete)
            args["Input Strides"] = ([strides(d) for d in dims] +
                                     [[]] * len(concrete))
            args["Input type"] = ([dtype] * len(dims) +
                                  ["Scalar"] * len(concrete))
            args["Concrete Inputs"] = [""] * len(dims) + concrete
        args.update(extra or {})
        self.op_stack.append((name, args["External id"]))
        self.spend(host_ns)
        yield
        self.spend(400)
        self.op_stack.pop()
        self.span("cpu_op", name, start, self.now[self.thread], args)

    # -- the device ---------------------------------------------------------

    def launch(self, kernel, api="cudaLaunchKernel"):
        """Launches work, or records it while a graph is captured. Returns
        the time at which it ends."""
        kernel.tags = self.tags()
        if self.capture is not None:
            self.api(api, self.next("correlation"))
            kernel.after = self.capture.waits.pop(kernel.stream, -1)
            self.capture.nodes.append(kernel)
            return self.now[self.thread]
        correlation = self.next("correlation")
        called = self.api(api, correlation, flow=True)
        return self.run(kernel, correlation, called)

    def tags(self):
        return {"op": self.op_stack[-1][0] if self.op_stack else "",
                "op_path": " > ".join(name for name, _ in self.op_stack),
                "module": self.path(), **self.labels}

    def path(self):
        """The modules that are running, outermost first."""
        return "/".join(self.modules)

    def api(self, name, correlation, flow=False, host_ns=3500):
        """A runtime call; returns the middle of it."""
        start = self.now[self.thread]
        self.spend(host_ns)
        args = {"cbid": 211, "correlation": correlation}
        if self.op_stack:
            args["External id"] = self.op_stack[-1][1]
        self.span("cuda_runtime", name, start, self.now[self.thread], args)
        if flow:
            self.flow("s", "ac2g", correlation, start,
                      HOST_PID + self.rank, self.thread)
        return start + host_ns // 2

    def ready(self, stream, launched):
        """When work that is launched now may start on a stream."""
        return max(launched + 2500, self.stream_free.get(stream, 0) + 1000)

    def run(self, kernel, correlation, launched, start=None, end=None,
            extra=None):
        begin = self.ready(kernel.stream, launched) if start is None else start
        if end is None:
            slow = self.slowdown if kernel.kind == "kernel" else 1.0
            end = begin + max(1, int(kernel.dur_ns * slow *
                                     self.random.uniform(0.97, 1.03)))
        args = {"device": self.rank % 8, "context": 1,
                "stream": kernel.stream, "correlation": correlation}
        if self.op_stack and not (extra and "graph id" in extra):
            args["External id"] = self.op_stack[-1][1]
        if kernel.kind == "kernel":
            args.update({"registers per thread": 96, "shared memory": 0,
                         "grid": list(kernel.grid),
                         "block": list(kernel.block)})
        args.update(kernel.args)
        args.update(extra or {})
        uid = self.span(kernel.kind, kernel.name, begin, end, args,
                        pid=self.rank % 8, tid=kernel.stream)
        self.flow("f", "ac2g", correlation, begin, self.rank % 8,
                  kernel.stream)
        self.stream_free[kernel.stream] = end
        self.truth.append({"uid": uid, "name": kernel.name, "dur_ns":
                           self.local(end) - self.local(begin), **kernel.tags,
                           **({"replay": extra["lamina replay"]}
                              if extra and "lamina replay" in extra else {})})
        if extra:
            args.pop("lamina replay", None)
        return end

    def copy(self, name, size, stream=7):
        kind = {"HtoD": "Memcpy HtoD (Pinned -> Device)",
                "DtoD": "Memcpy DtoD (Device -> Device)",
                "DtoH": "Memcpy DtoH (Device -> Pinned)"}[name]
        rate = 50.0 if "to" in name and "H" in name else 1200.0
        kernel = Kernel(kind, 1500 + int(size / rate), stream,
                        kind="gpu_memcpy", args={"bytes": size})
        return self.launch(kernel, "cudaMemcpyAsync")

    def wait_stream(self, waiting, awaited):
        """A device-side wait: an event recorded on one stream holds another."""
        self.api("cudaEventRecord", self.next("correlation"), host_ns=900)
        self.api("cudaStreamWaitEvent", self.next("correlation"), host_ns=900)
        if self.capture is not None:
            self.capture.waits[waiting] = self.capture.last(awaited)
            return
        self.stream_free[waiting] = max(self.stream_free.get(waiting, 0),
                                        self.stream_free.get(awaited, 0))

    def synchronize(self):
        """The host waits for the device."""
        start = self.now[self.thread]
        end = max([start + 1000, *self.stream_free.values()]) + 3000
        self.now[self.thread] = end
        self.span("cuda_runtime", "cudaDeviceSynchronize", start, end,
                  {"cbid": 165, "correlation": self.next("correlation")})

    # -- graphs ---------------------------------------------------------------

    @contextlib.contextmanager
    def capturing(self):
        """Launches inside are recorded, not run. Yields the graph."""
        graph = Graph(self.next("graph"), [])
        self.api("cudaStreamBeginCapture", self.next("correlation"))
        self.capture = graph
        yield graph
        self.capture = None
        self.api("cudaStreamEndCapture", self.next("correlation"))

    def replay(self, graph, node_ids=True):
        """One host call; all nodes carry its correlation."""
        correlation = self.next("correlation")
        called = self.api("cudaGraphLaunch", correlation, flow=True,
                          host_ns=9000)
        ends = []
        for index, node in enumerate(graph.nodes):
            extra = {"lamina replay": f"{graph.graph_id}.{graph.replays}"}
            if node_ids:
                extra["graph id"] = graph.graph_id
                extra["graph node id"] = (graph.graph_id << 32) + index
            if node.after >= 0:
                self.stream_free[node.stream] = max(
                    self.stream_free.get(node.stream, 0), ends[node.after])
            ends.append(self.run(dataclasses.replace(node), correlation,
                                 called, extra=extra))
        graph.replays += 1

    # -- output ---------------------------------------------------------------

    def document(self, groups):
        properties = {"id": self.rank % 8, "name": self.device_name,
                      "totalGlobalMem": 85520809984, "computeMajor": 9,
                      "computeMinor": 0, "maxThreadsPerBlock": 1024,
                      "maxThreadsPerMultiprocessor": 2048,
                      "regsPerBlock": 65536, "warpSize": 32,
                      "sharedMemPerBlock": 49152, "numSms": 132}
        head = {"schemaVersion": 1, "deviceProperties": [properties],
                "record_shapes": int(self.shapes),
                "with_stack": int(self.stacks),
                "displayTimeUnit": "ms", "baseTimeNanoseconds": 0,
                "traceName": f"rank{self.rank}.json"}
        if self.world > 1:
            head["distributedInfo"] = {
                "backend": "nccl", "rank": self.rank,
                "world_size": self.world, "pg_count": len(groups),
                "pg_config": groups}
        return head

    def write(self, path, groups=()):
        out = gzip.GzipFile(path, "wb", compresslevel=9, mtime=0) \
            if str(path).endswith(".gz") else open(path, "wb")
        with out:
            head = json.dumps(self.document(list(groups)))
            out.write(head[:-1].encode() + b', "traceEvents": [\n')
            for pid, name in ((HOST_PID + self.rank, "python"),
                              (self.rank % 8, "python")):
                self.events.append({"ph": "M", "name": "process_name",
                                    "pid": pid, "tid": 0,
                                    "ts": Micros(0), "args": {"name": name}})
            encode = json.JSONEncoder(separators=(",", ":"),
                                      default=Micros.text).encode
            text = ",\n".join(map(encode, self.events))
            out.write(Micros.MARK.sub(r"\1", text).encode() + b"\n]}\n")

    def write_truth(self, path):
        """Columns of the device work in the order of the file."""
        keys = sorted({key for row in self.truth for key in row})
        columns = {key: [row.get(key) for row in self.truth] for key in keys}
        text = json.dumps({"rank": self.rank, "offset_ns": self.offset_ns,
                           "drift_ppm": self.drift_ppm,
                           "slowdown": self.slowdown, "device_work": columns},
                          separators=(",", ":"))
        opener = (lambda: gzip.GzipFile(path, "wb", compresslevel=9, mtime=0)) \
            if str(path).endswith(".gz") else (lambda: open(path, "wb"))
        with opener() as out:
            out.write(text.encode() + b"\n")


class Micros:
    """Nanoseconds that are written as microseconds with three decimals."""

    MARK = re.compile(r'"@(-?\d+\.\d{3})@"')

    def __init__(self, ns):
        self.ns = ns

    @staticmethod
    def text(value):
        sign = "-" if value.ns < 0 else ""
        whole, rest = divmod(abs(value.ns), 1000)
        return f"@{sign}{whole}.{rest:03d}@"


def strides(dims):
    out, step = [], 1
    for size in reversed(dims):
        out.append(step)
        step *= size
    return out[::-1]
