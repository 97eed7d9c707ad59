# SPDX-License-Identifier: Apache-2.0
"""Writes the spans of a PyTorch trace as other profilers would have written
them: the same workload in every format."""
import copy
import csv
import gzip
import json
import sqlite3

PID = 4242
KINDS = ("kernel", "gpu_memcpy", "gpu_memset")
COPY = "Copy: "  # how types of copies begin in rpd


class Work:
    """The spans of a Kineto trace that other profilers see, too."""

    def __init__(self, path):
        data = path.read_bytes()
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        events = json.loads(data)["traceEvents"]
        spans = [e for e in events if e.get("ph") == "X"]
        zero = min(e["ts"] for e in spans)

        def times(e):
            start = round((e["ts"] - zero) * 1000)
            return start, start + round(e["dur"] * 1000)

        self.device, self.calls, self.ranges = [], [], []
        for e in spans:
            cat, args = e.get("cat"), e.get("args", {})
            if cat in KINDS:
                self.device.append((*times(e), cat, e["name"], args))
            elif cat in ("cuda_runtime", "cuda_driver"):
                self.calls.append((*times(e), e["name"], e["tid"],
                                   args.get("correlation", 0)))
            elif cat == "cpu_op":
                text = e["name"] + f", op_id = {args['External id']}"
                if args.get("Input Dims"):
                    text += ", sizes = " + json.dumps(args["Input Dims"])
                self.ranges.append((*times(e), text, e["tid"]))
            elif cat == "user_annotation":
                self.ranges.append((*times(e), e["name"], e["tid"]))
        tids = sorted({c[3] for c in self.calls} | {r[3] for r in self.ranges})
        self.tid = {tid: 100 + i for i, tid in enumerate(tids)}

    def repeated(self, copies):
        """The workload `copies` times, one after the other."""
        out = copy.copy(self)
        length = max(s[1] for s in self.device + self.calls + self.ranges)
        length += 1000
        step = 1 + max(e[4]["correlation"] for e in self.device)
        out.device, out.calls, out.ranges = [], [], []
        for i in range(copies):
            at, more = i * length, i * step
            out.device += [(s + at, e + at, c, n,
                            a | {"correlation": a["correlation"] + more})
                           for s, e, c, n, a in self.device]
            out.calls += [(s + at, e + at, n, t, c + more if c else 0)
                          for s, e, n, t, c in self.calls]
            out.ranges += [(s + at, e + at, n, t)
                           for s, e, n, t in self.ranges]
        return out


class Strings:
    def __init__(self):
        self.ids = {}

    def __getitem__(self, text):
        return self.ids.setdefault(text, len(self.ids) + 1)

    def rows(self):
        return [(i, t) for t, i in self.ids.items()]


def insert(db, table, columns, rows):
    db.execute(f'create table "{table}" ({columns})')
    if rows:
        marks = ",".join("?" * len(rows[0]))
        db.executemany(f'insert into "{table}" values ({marks})', rows)


def write_nsys(work, path):
    strings, pid = Strings(), PID << 24
    kernels, copies, fills = [], [], []
    for start, end, cat, name, a in work.device:
        row = (start, end, a["device"], a["stream"], a["correlation"], pid)
        if cat == "kernel":
            kernels.append((*row, strings[name], *a["grid"], *a["block"]))
        elif cat == "gpu_memcpy":
            kind = 1 if "HtoD" in name else 2 if "DtoH" in name else 8
            memory = {"Pageable": 0, "Pinned": 1, "Device": 2}
            source, target = name[name.index("(") + 1:-1].split(" -> ")
            copies.append((*row, a["bytes"], kind, memory[source],
                           memory[target]))
        else:
            fills.append((*row, a["bytes"], 2))
    common = "start, end, deviceId, streamId, correlationId, globalPid"
    calls = [(s, e, pid | work.tid[t], c, strings[n + "_v7000"])
             for s, e, n, t, c in work.calls]
    ranges = [(s, e, 59, n, pid | work.tid[t]) for s, e, n, t in work.ranges]
    with sqlite3.connect(path) as db:
        insert(db, "CUPTI_ACTIVITY_KIND_KERNEL", common +
               ", demangledName, gridX, gridY, gridZ, blockX, blockY, blockZ",
               kernels)
        insert(db, "CUPTI_ACTIVITY_KIND_MEMCPY",
               common + ", bytes, copyKind, srcKind, dstKind", copies)
        insert(db, "CUPTI_ACTIVITY_KIND_MEMSET", common + ", bytes, memKind",
               fills)
        insert(db, "CUPTI_ACTIVITY_KIND_RUNTIME",
               "start, end, globalTid, correlationId, nameId", calls)
        insert(db, "NVTX_EVENTS", "start, end, eventType, text, globalTid",
               ranges)
        insert(db, "StringIds", "id integer primary key, value",
               strings.rows())


def items(args):
    return [g * b for g, b in zip(args["grid"], args["block"])]


def axes(values):
    return dict(zip("xyz", values))


def write_rocprof(work, path):
    symbols, calls, messages = Strings(), Strings(), []
    records = {"kernel_dispatch": [], "memory_copy": [], "hip_api": [],
               "marker_api": []}
    for start, end, cat, name, a in work.device:
        record = {"correlation_id": {"internal": a["correlation"]},
                  "start_timestamp": start, "end_timestamp": end,
                  "stream_id": {"handle": a["stream"]}}
        if cat == "kernel":
            record["dispatch_info"] = {
                "agent_id": {"handle": 9}, "kernel_id": symbols[name],
                "workgroup_size": axes(a["block"]),
                "grid_size": axes(items(a))}
            records["kernel_dispatch"].append(record)
        else:
            record |= {"dst_agent_id": {"handle": 9}, "bytes": a["bytes"],
                       "kind": 1, "operation": calls[name]}
            records["memory_copy"].append(record)
    for start, end, name, tid, correlation in work.calls:
        records["hip_api"].append(
            {"kind": 1, "operation": calls[name], "thread_id": work.tid[tid],
             "correlation_id": {"internal": correlation},
             "start_timestamp": start, "end_timestamp": end})
    for i, (start, end, text, tid) in enumerate(work.ranges):
        messages.append({"key": 10 ** 6 + i, "value": text})
        records["marker_api"].append(
            {"kind": 0, "operation": 0, "thread_id": work.tid[tid],
             "correlation_id": {"internal": 10 ** 6 + i},
             "start_timestamp": start, "end_timestamp": end})
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [{
        "metadata": {"pid": PID},
        "agents": [{"id": {"handle": 9}, "type": 2,
                    "logical_node_type_id": 0}],
        "strings": {"buffer_records": [
            {"operations": ["roctxThreadRangeA"]},
            {"operations": ["NONE"] + list(calls.ids)}],
            "marker_api": messages},
        "kernel_symbols": [{"kernel_id": i, "formatted_kernel_name": t}
                           for i, t in symbols.rows()],
        "buffer_records": records}]}))


def write_rocpd(work, path):
    strings, symbols, events = Strings(), Strings(), []

    def event(category, stack, correlation):
        events.append((len(events) + 1, strings[category], stack, correlation))
        return len(events)

    regions = [(s, e, 1, work.tid[t], strings[n], event("HIP_RUNTIME_API", c,
                                                        c))
               for s, e, n, t, c in work.calls]
    regions += [(s, e, 1, work.tid[t], strings[n],
                 event("MARKER_CORE_RANGE_API", 0, 0))
                for s, e, n, t in work.ranges]
    dispatches, copies = [], []
    for start, end, cat, name, a in work.device:
        row = (start, end, 1, 3, a["stream"],
               event("DEVICE", 0, a["correlation"]))
        if cat == "kernel":
            dispatches.append((*row, symbols[name], *a["block"], *items(a)))
        else:
            copies.append((*row, strings[name], a["bytes"], 3))
    suffix = "_0000000a_1b2c"
    with sqlite3.connect(path) as db:
        def table(name, columns, rows):
            insert(db, f"rocpd_{name}{suffix}", columns, rows)
        table("metadata", "id, tag, value", [(1, "schema_version", "3")])
        table("info_process", "id, pid", [(1, PID)])
        table("info_thread", "id, pid, tid, name",
              [(t, 1, t, "") for t in work.tid.values()])
        table("info_agent", "id, type, type_index", [(3, "GPU", 0)])
        table("info_kernel_symbol", "id, display_name", symbols.rows())
        table("event", "id, category_id, stack_id, correlation_id", events)
        table("region", "start, end, pid, tid, name_id, event_id", regions)
        common = "start, end, pid, agent_id, stream_id, event_id"
        table("kernel_dispatch", common + ", kernel_id, workgroup_size_x, "
              "workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, "
              "grid_size_z", dispatches)
        table("memory_copy", common + ", name_id, size, dst_agent_id", copies)
        table("string", "id integer primary key, string", strings.rows())


def write_rpd(work, path):
    strings, texts = Strings(), Strings()
    api, ops, links, launches, sizes = [], [], [], [], []
    by_correlation = {}
    for start, end, name, tid, correlation in work.calls:
        api.append((len(api) + 1, PID, work.tid[tid], start, end,
                    strings[name], 0))
        by_correlation.setdefault(correlation, len(api))
    for start, end, text, tid in work.ranges:
        api.append((len(api) + 1, PID, work.tid[tid], start, end,
                    strings["UserMarker"], texts[text]))
    for start, end, cat, name, a in work.device:
        number = by_correlation[a["correlation"]]
        kind = {"kernel": "KernelExecution", "gpu_memcpy": "Copy",
                "gpu_memset": "FillBuffer"}[cat]
        # Copies have no description: their type is their name.
        kind = COPY + name if kind == "Copy" else kind
        ops.append((len(ops) + 1, a["device"], a["stream"], start, end,
                    strings[name], strings[kind]))
        links.append((number, len(ops)))
        if cat == "kernel":
            launches.append((number, str(a["stream"]), *a["grid"],
                             *a["block"]))
        else:
            sizes.append((number, a["bytes"]))
    with sqlite3.connect(path) as db:
        insert(db, "rocpd_string", "id integer primary key, string",
               strings.rows())
        insert(db, "rocpd_ustring", "id integer primary key, string",
               texts.rows())
        insert(db, "rocpd_api",
               "id, pid, tid, start, end, apiName_id, args_id", api)
        insert(db, "rocpd_op", "id, gpuId, queueId, start, end, "
               "description_id, opType_id", ops)
        insert(db, "rocpd_api_ops", "api_id, op_id", links)
        insert(db, "rocpd_kernelapi", "api_ptr_id, stream, gridX, gridY, "
               "gridZ, workgroupX, workgroupY, workgroupZ", launches)
        insert(db, "rocpd_copyapi", "api_ptr_id, size", sizes)


def write_csv(work, folder):
    folder.mkdir()

    def table(name, header, rows):
        with open(folder / f"{PID}_{name}.csv", "w", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
            writer.writerow(header)
            writer.writerows(rows)

    time = ("Start_Timestamp", "End_Timestamp")
    sizes = [f"{what}_Size_{axis}" for what in ("Workgroup", "Grid")
             for axis in "XYZ"]
    table("agent_info", ("Node_Id", "Agent_Type"), [(0, "CPU"), (1, "GPU")])
    table("kernel_trace", ("Agent_Id", "Stream_Id", "Kernel_Name",
                           "Correlation_Id", *time, *sizes),
          [("Agent 1", a["stream"], n, a["correlation"], s, e, *a["block"],
            *items(a)) for s, e, c, n, a in work.device if c == "kernel"])
    table("memory_copy_trace", ("Direction", "Stream_Id", "Source_Agent_Id",
                                "Destination_Agent_Id", "Correlation_Id",
                                *time),
          [(n, a["stream"], "Agent 0", "Agent 1", a["correlation"], s, e)
           for s, e, c, n, a in work.device if c != "kernel"])
    header = ("Domain", "Function", "Process_Id", "Thread_Id",
              "Correlation_Id", *time)
    table("hip_api_trace", header,
          [("HIP_RUNTIME_API", n, PID, work.tid[t], c, s, e)
           for s, e, n, t, c in work.calls])
    table("marker_api_trace", header,
          [("MARKER_CORE_RANGE_API", n, PID, work.tid[t], 0, s, e)
           for s, e, n, t in work.ranges])


class Plane:
    """A plane of an XPlane file; gives numbers to names as they come."""

    def __init__(self, name):
        self.name, self.lines = name, []
        self.events, self.stats = Strings(), Strings()

    def event(self, name, start, end, stats):
        out = number(1, self.events[name]) + number(2, start * 1000)
        out += number(3, (end - start) * 1000)
        for key, value in stats.items():
            stat = number(1, self.stats[key])
            # Text by reference, as the profiler stores it.
            stat += (number(7, self.stats[value]) if isinstance(value, str)
                     else number(4, value))
            out += message(4, stat)
        return message(4, out)

    def line(self, id, name, events):
        self.lines.append(message(3, number(1, id) + message(2, name.encode())
                                  + number(3, 1) + b"".join(events)))

    def proto(self):
        def names(field, strings):
            return b"".join(message(field, number(1, i) + message(
                2, number(1, i) + message(2, text.encode())))
                for i, text in strings.rows())
        return message(1, message(2, self.name.encode()) + b"".join(self.lines)
                       + names(4, self.events) + names(5, self.stats))


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def write_xplane(work, path):
    """Kernels carry the instruction that ran, as all of XLA's do."""
    gpu, host = Plane("/device:GPU:0"), Plane("/host:CPU")
    streams, threads = {}, {}
    for start, end, cat, name, a in work.device:
        stats = {"correlation_id": a["correlation"]}
        if cat == "kernel":
            stats |= {"hlo_op": name[:24], "hlo_module": "jit_step",
                      "program_id": 1, "kernel_details":
                      f"regs:{a.get('registers per thread', 0)} grid:"
                      + ",".join(map(str, a["grid"])) + " block:"
                      + ",".join(map(str, a["block"]))}
        else:
            what = "memcpy" if cat == "gpu_memcpy" else "memset"
            stats[f"{what}_details"] = f"size:{a['bytes']} async:1"
        streams.setdefault(a["stream"], []).append(
            gpu.event(name, start, end, stats))
    for start, end, name, tid, correlation in work.calls:
        threads.setdefault(work.tid[tid], []).append(
            host.event(name, start, end, {"correlation_id": correlation}))
    for start, end, text, tid in work.ranges:
        threads.setdefault(work.tid[tid], []).append(
            host.event(text.split(",")[0], start, end, {}))
    for stream, events in streams.items():
        gpu.line(stream, f"Stream #{stream}", events)
    for tid, events in threads.items():
        host.line(tid, f"python/{tid}", events)
    path.write_bytes(gpu.proto() + host.proto())


# By the names of the formats: the file, and what writes it.
FORMATS = {"nsys": ("a.sqlite", write_nsys),
           "rocprof": ("a.json", write_rocprof), "rocpd": ("a.db", write_rocpd),
           "rpd": ("a.rpd", write_rpd), "rocprof_csv": ("run", write_csv)}
