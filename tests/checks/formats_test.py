#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One workload in every format: a generated trace of PyTorch is written as each
profiler would have written it, and the tables that the format can fill are
those of the original."""
import csv
import gzip
import json
import pathlib
import sqlite3

from common import SAMPLES, Checks, lamina, temporary

PID = 4242
KINDS = ("kernel", "gpu_memcpy", "gpu_memset")
COPY = "Copy: "  # how types of copies begin in rpd


class Work:
    """The spans of a Kineto trace that other profilers see, too."""

    def __init__(self, path):
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
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


# What is compared: tables, and the columns that every format can fill.
TABLES = {
    "kernels": ("kernel", "op", "family", "device", "stream", "count",
                "kernel_time_us", "min_us", "max_us", "launch_latency_us"),
    "ops": ("op", "family", "count", "kernels", "kernel_time_us", "busy_us",
            "host_us"),
    "op_shapes": ("op", "input_dims", "count", "kernel_time_us"),
    "op_categories": ("category", "kernels", "kernel_time_us"),
    "gpu_timeline": ("type", "time_us"),
    "steps": ("step", "name", "host_us", "kernel_time_us", "kernels"),
}
FORMATS = {"nsys": ("a.sqlite", write_nsys),
           "rocprof": ("a.json", write_rocprof), "rocpd": ("a.db", write_rocpd),
           "rpd": ("a.rpd", write_rpd), "rocprof_csv": ("run", write_csv)}


def facts(path):
    run = lamina("report", path, "--format", "json")
    tables = json.loads(run.stdout)["tables"]
    found = {}
    for name, columns in TABLES.items():
        rows = []
        for r in tables[name]:
            row = [r[c] for c in columns]
            if "input_dims" in columns and row[1]:
                row[1] = row[1].replace(" ", "")
            rows.append(tuple(str(v).removeprefix(COPY) for v in row))
        found[name] = sorted(rows)
    return found, {r["check"]: r for r in tables["trace_health"]}


def main():
    checks = Checks()
    for sample in ("train_step", "moe"):
        source = SAMPLES / f"{sample}.json.gz"
        work = Work(source)
        expected, _ = facts(source)
        with temporary() as out:
            for name, (file, write) in FORMATS.items():
                path = pathlib.Path(out) / file
                write(work, path)
                found, health = facts(path)
                checks.equal(f"{sample} as {name}: recognised",
                             health["format"]["value"], name)
                for table in TABLES:
                    checks.equal(f"{sample} as {name}: {table}",
                                 found[table], expected[table])
    checks.finish()


main()
