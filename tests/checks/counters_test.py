#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counters, energy and fallen clocks of lamina host against a slow twin that
looks at every nanosecond step of made recordings, and what must hold of any.

usage: counters_test.py LAMINA [FIRST_SEED [SEEDS]]
"""
import gzip
import json
import os
import pathlib
import random
import sys

from common import ROOT, SAMPLES, Checks, Exact, lamina, temporary

NAMES = ("counters", "energy", "clock_drop")
SHOWN = {}  # rows that were compared
OPS = ("aten::mm", "aten::add", "aten::copy_")


def tables(trace, *args):
    found = json.loads(
        lamina("host", trace, "--format", "json", "--only", ",".join(NAMES),
               *args).stdout, parse_float=Exact)["tables"]
    return {name: found.get(name, []) for name in NAMES}


class Made:
    """Kernels of some ops on two streams, steps, and counters."""

    def __init__(self, seed):
        draw = self.draw = random.Random(seed)
        self.events, self.work, self.steps = [], [], []
        self.samples = {}  # by (name, key)
        self.devices = draw.choice((1, 1, 2))
        time, ident = 1000, 0
        for step in range(draw.randrange(0, 4)):
            begin = time
            for _ in range(draw.randrange(1, 12)):
                ident += 1
                time = self.launch(ident, time)
            self.steps.append((f"ProfilerStep#{step}", begin, time))
            self.add("user_annotation", f"ProfilerStep#{step}", begin,
                     time - begin, 1, 1, {})
        self.end = time
        milli = draw.random() < 0.3
        power = draw.choice(["Power (mW)"] if milli else
                            ["power.draw [W]", "Power"])
        for device in range(self.devices):
            self.sample(f"GPU {device} {power}", "value", 5, 90_000
                        if milli else 700)
            self.sample(f"GPU {device} SM clock", "MHz", 800, 1980)
            if draw.random() < 0.5:
                self.sample(f"GPU {device} throttle_reasons", "thermal", 0, 1)
        self.sample("requests", "value", 0, 9)
        self.watts = 1e-3 if milli else 1
        self.power = [k for k in self.samples if "ower" in k[0]]

    def add(self, cat, name, ts, dur, pid, tid, args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": pid,
                            "tid": tid, "ts": ts / 1000, "dur": dur / 1000,
                            "args": args})

    def launch(self, ident, time):
        draw = self.draw
        op = draw.choice(OPS)
        self.add("cpu_op", op, time, 5000, 1, 1, {})
        self.add("cuda_runtime", "cudaLaunchKernel", time + 1000, 3000, 1, 1,
                 {"correlation": ident})
        device, stream = draw.randrange(self.devices), draw.choice((7, 8))
        start = time + 6000 + draw.randrange(20_000)
        dur = draw.randrange(1, 40_000)
        own = [w for w in self.work if w[2:4] == (device, stream)]
        start = max([start] + [w[1] for w in own])
        self.add("kernel", "k", start, dur, device, stream,
                 {"device": device, "stream": stream, "correlation": ident})
        self.work.append((start, start + dur, device, stream, op))
        return time + 6000 + draw.randrange(30_000)

    def sample(self, name, key, least, most):
        draw, time = self.draw, self.draw.randrange(0, 20_000)
        points = {}
        for _ in range(draw.randrange(1, 40)):
            value = draw.choice((least, most, draw.randrange(least, most + 1)))
            points[time] = value
            self.events.append({"ph": "C", "name": name, "pid": 1, "tid": 9,
                                "ts": time / 1000, "args": {key: value}})
            time += draw.randrange(0, 60_000)
        self.samples[name, key] = sorted(points.items())

    def write(self, path):
        self.draw.shuffle(self.events)
        path.write_text(json.dumps({"traceEvents": self.events}))

    # --- the twin ---

    def integral(self, points, begin, end):
        """(joules or the like, known time, samples inside)."""
        total = known = inside = 0
        for (at, value), (behind, _) in zip(points, points[1:]):
            length = max(0, min(end, behind) - max(begin, at))
            total += value * length
            known += length
        first, last = max(begin, points[0][0]), min(end, points[-1][0])
        if first < last:
            inside = sum(begin <= at < end for at, _ in points)
        return total, known, inside

    def busy(self, device):
        """[(begin, end, op)]: each moment belongs to who began first."""
        out, reached = [], 0
        for w in sorted((w for w in self.work if w[2] == device),
                        key=lambda w: w[0]):
            if w[1] > max(w[0], reached):
                out.append((max(w[0], reached), w[1], w[4]))
            reached = max(reached, w[1])
        return out

    def device(self, name):
        """Of the number that the name has; none if it has no work."""
        number = int(name.split()[1])
        return number if number in {w[2] for w in self.work} else None

    def unique_starts(self):
        starts = [w[:1] + w[2:3] for w in self.work]
        return len(set(starts)) == len(starts)


def close(a, b):
    a, b = float(str(a)), float(str(b))
    return abs(a - b) <= 1e-9 + 1e-7 * max(abs(a), abs(b))


def check_energy(checks, made, rows, label):
    for name, key in made.power:
        points = made.samples[name, key]
        device = int(name.split()[1])
        own = [r for r in rows if r["series"].startswith(name)]
        if len(points) < 2:
            checks.equal(f"{label}: one sample, no energy", own, [])
            continue
        whole = made.integral(points, points[0][0], points[-1][0])
        means = []  # power in steps
        for _, begin, end in made.steps:
            total, known, _ = made.integral(points, begin, end)
            means.append((begin, end, total / known if known else None))
        by = {(r["scope"], r["name"]): r for r in own}

        def same(scope, what, total, known, inside, held=None):
            row = by.pop((scope, what), None)
            # Fewer than two samples: the mean of the steps around it.
            if held is not None and inside < 2:
                total = held
            if known == 0:
                return checks.equal(f"{label}: {scope} {what}", row, None)
            checks.true(f"{label}: {scope} {what} is there", row is not None)
            joules = total * made.watts * 1e-9
            checks.true(
                f"{label}: {scope} {what}: {row} for {joules}",
                row["time_us"].ns == known and close(row["joules"], joules)
                and row["samples"] == inside and
                row["evidence"] == ("samples" if inside > 1 else "held") and
                close(row["mean_watts"], joules / (known * 1e-9)))

        same("samples", "", *whole[:2], len(points))
        for step, begin, end in made.steps:
            same("step", step, *made.integral(points, begin, end))
        ops, busy = {}, [0, 0, 0]
        for begin, end, op in made.busy(device):
            found = made.integral(points, begin, end)
            mean = next((m for b, e, m in means if b <= begin < e), None)
            held = found[0] if mean is None else mean * found[1]
            sums = ops.setdefault(op, [0, 0, 0, 0])
            for i, value in enumerate((*found, held)):
                sums[i] += value
            for i in range(3):
                busy[i] += found[i]
        same("busy", "", *busy)
        for op, sums in ops.items():
            same("op", op, *sums)
        check_sum(checks, own, label)
        checks.equal(f"{label}: nothing else", list(by), [])


def check_sum(checks, rows, label):
    """Ops add up to the busy time."""
    busy = [r for r in rows if r["scope"] == "busy"]
    ops = [r for r in rows if r["scope"] == "op"]
    checks.equal(f"{label}: time of ops", sum(r["time_us"].ns for r in ops),
                 sum(r["time_us"].ns for r in busy))
    # What has too few samples is a guess by other means.
    if all(r["evidence"] == "samples" for r in ops):
        checks.true(f"{label}: joules of ops",
                    close(sum(float(str(r["joules"])) for r in ops),
                          sum(float(str(r["joules"])) for r in busy)))


def check_drops(checks, made, rows, zero, label):
    expected = []
    for (name, key), points in made.samples.items():
        if "clock" not in name or len(points) < 2:
            continue
        device = int(name.split()[1])
        most = max(v for _, v in points)
        throttle = [p for (n, _), p in made.samples.items()
                    if n == f"GPU {device} throttle_reasons"]
        low = []
        for (at, value), (behind, _) in zip(points, points[1:]):
            if value >= 0.9 * most:
                continue
            if low and low[-1][1] == at:
                low[-1] = (low[-1][0], behind, min(low[-1][2], value))
            else:
                low.append((at, behind, value))
        for begin, end, least in low:
            worked = sum(max(0, min(e, end) - max(b, begin))
                         for b, e, _ in made.busy(device))
            why = any(v and max(at, begin) < min(behind, end)
                      for p in throttle for (at, v), (behind, _) in
                      zip(p, p[1:] + [(10 ** 15, 0)]))
            if worked:
                expected.append((device, begin - zero, end - begin, worked,
                                 least, why))
    found = [(r["device_index"], r["start_us"].ns, r["dur_us"].ns, r["busy_us"].ns,
              float(str(r["lowest"])), r["reason"] is not None) for r in rows]
    checks.equal(f"{label}: fallen clocks", sorted(found), sorted(expected))


def check_made(checks, seed, folder):
    made, label = Made(seed), f"seed {seed}"
    path = folder / "made.json"
    made.write(path)
    found = tables(path)
    # The first event of the trace is a span; a sample may lie before it.
    spans = [e["ts"] for e in made.events if e["ph"] == "X"]
    if not spans or not made.unique_starts():
        return
    zero = round(min(spans) * 1000)
    rows = {r["series"]: r for r in found["counters"]}
    checks.equal(f"{label}: series", len(rows), len(made.samples))
    for (name, key), points in made.samples.items():
        row = rows[name if key == "value" else f"{name} {key}"]
        total, known, _ = made.integral(points, points[0][0], points[-1][0])
        values = [v for _, v in points]
        checks.true(f"{label}: {name}: {row}",
                    row["samples"] == len(points) and
                    close(row["min"], min(values)) and
                    close(row["max"], max(values)) and
                    close(row["mean_time_weighted"],
                          total / known if known else values[0]))
        unit = ("mW" if "mW" in name else "W" if "ower" in name else
                "MHz" if "clock" in name else None)
        checks.equal(f"{label}: unit of {name}", row["unit"], unit)
        parts = [made.integral(points, b, e) for _, b, e in made.steps]
        time = sum(p[1] for p in parts)
        checks.true(f"{label}: {name}: mean of steps {row}",
                    (row["mean_steps"] is None) == (time == 0) and
                    (time == 0 or close(row["mean_steps"],
                                        sum(p[0] for p in parts) / time)))
        if "GPU" in name:
            parts = [made.integral(points, *w[:2])
                     for w in made.busy(int(name.split()[1]))]
            time = sum(p[1] for p in parts)
            checks.true(f"{label}: {name}: mean busy {row}",
                        (row["mean_busy"] is None) == (time == 0) and
                        (time == 0 or close(row["mean_busy"],
                                            sum(p[0] for p in parts) / time)))
            checks.equal(f"{label}: device of {name}", row["device_index"],
                         made.device(name))
    for name in NAMES:
        SHOWN[name] = SHOWN.get(name, 0) + len(found[name])
    for row in found["energy"]:
        key = row["scope"], row["evidence"]
        SHOWN[key] = SHOWN.get(key, 0) + 1
    check_energy(checks, made, found["energy"], label)
    check_drops(checks, made, found["clock_drop"], zero, label)
    checks.equal(f"{label}: one thread", tables(path, "--threads", "1"), found)


def kernels(ops, device=0):
    """Kernels of 10 us, one after the other, each of an op of its own."""
    out = []
    for i, op in enumerate(ops):
        at = 10 * i
        out += [
            {"ph": "X", "cat": "cpu_op", "name": op, "pid": 1, "tid": 1,
             "ts": at, "dur": 8},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel",
             "pid": 1, "tid": 1, "ts": at + 1, "dur": 2,
             "args": {"correlation": i + 1}},
            {"ph": "X", "cat": "kernel", "name": "k", "pid": device, "tid": 7,
             "ts": at + 5, "dur": 10,
             "args": {"device": device, "stream": 7, "correlation": i + 1}}]
    return out


def counter(name, points):
    return [{"ph": "C", "name": name, "pid": 1, "ts": at,
             "args": {"value": value}} for at, value in points]


def written(folder, events):
    path = pathlib.Path(folder) / "case.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def check_many_ops(checks, folder):
    """Ops beyond the 500 of the most time are one row."""
    watts = [(at, 100 + at % 7) for at in range(0, 6100, 3)]
    rows = tables(written(folder, kernels(f"op{i:03}" for i in range(600)) +
                          counter("power", watts)))["energy"]
    by = {r["name"]: r for r in rows if r["scope"] == "op"}
    checks.equal("rows of ops", len(by), 501)
    checks.equal("other ops", by["(other)"]["time_us"].ns, 100 * 10_000)
    check_sum(checks, rows, "600 ops")


def check_units(checks, folder):
    """What has power in its name need not be power in W."""
    names = {"power.draw [W]": ("W", 1), "GPU 0 power [kW]": ("kW", 1e3),
             "power1_average (uW)": ("uW", 1e-6),
             "power_usage_mW": ("mW", 1e-3),
             "GPU Power Utilization [%]": ("%", None),
             "power_violation_time_us": (None, None),
             "System Power Mode": (None, None), "powerState": (None, None),
             "power.limit [W]": ("W", None), "power.limit [mW]": (None, None)}
    events = kernels(["op"])
    for name in names:
        events += counter(name, [(0, 300), (10, 300)])
    found = tables(written(folder, events))
    checks.equal("units", {r["series"]: r["unit"] for r in found["counters"]},
                 {name: unit for name, (unit, _) in names.items()})
    joules = {r["series"]: float(str(r["joules"])) for r in found["energy"]
              if r["scope"] == "samples"}
    checks.equal("power", sorted(joules),
                 sorted(n for n, (_, scale) in names.items() if scale))
    for name, value in joules.items():
        checks.true(f"joules of {name}: {value}",
                    close(value, 300 * names[name][1] * 1e-5))


def check_devices(checks, folder):
    """Which device a name means, where the trace has 0 and 1, or only 0."""
    names = {"GPU 1 power": 1, "gpu_0": 0, "device[1] power": 1,
             "card1.power": 1, "power GPU-1d2e (W)": None,
             "GPU-8f1a2b3c power": None,
             "GPU-0a1b gpu 1 power": 1, "GPU 7 power": None,
             "GPU 0000001 power": None, "GPU 99999999999999999999": None,
             "power": None, "gpu1x power": None}
    for devices in (1, 2):
        events = kernels(["op"])
        if devices > 1:
            events += kernels(["op"], 1)
        for name in names:
            events += counter(name, [(0, 1), (5, 1)])
        found = {r["series"]: r["device_index"]
                 for r in tables(written(folder, events))["counters"]}
        if devices == 2:
            checks.equal("devices of names", found, names)
            continue
        # What has no number is of the only device, but not what is of another.
        checks.equal("of the only device", found,
                     {n: 0 if d == 0 or n in (
                         "power", "power GPU-1d2e (W)", "GPU-8f1a2b3c power",
                         "gpu1x power", "GPU 0000001 power",
                         "GPU 99999999999999999999") else None
                      for n, d in names.items()})


def check_left_out(checks, folder):
    """Series that the tables do not take are counted."""
    for more, said in ((0, []), (1, ["1 series"]), (1500, ["1,500 series"])):
        events = kernels(["op"])
        for i in range(10_000 + more):
            events += counter(f"c{i}", [(0, 1)]) * (1 + i % 2)
        found = json.loads(lamina(
            "host", written(folder, events), "--format", "json", "--only",
            "counters").stdout)
        checks.equal("rows of counters", len(found["tables"]["counters"]),
                     10_000)
        text = [n["text"] for n in found["notes"]
                if n["id"] == "counters_left_out"]
        checks.equal("note", text, [
            f"The tables of counters have the first 10,000 series; left out: "
            f"{s}." for s in said])


def check_reasons(checks, folder):
    """Many counters of throttling: some are named, the others counted."""
    events = kernels(["op"] * 40) + counter(
        "sm clock", [(0, 1000), (50, 500), (100, 1000), (200, 500), (250, 1000),
                     (300, 500), (350, 1000)])
    for i in range(23):
        events += counter(f"throttle {i:02}",
                          [(0, 0), (60, 1), (70, 0), (80, 1), (200, 0)])
    events += counter("throttle last", [(0, 0), (210, 1)])
    events += counter("clocks_event_reasons.gpu_idle", [(0, 1), (400, 1)])
    events += counter("clocks_event_reasons.applications_clocks_setting",
                      [(0, 1), (400, 1)])
    rows = tables(written(folder, events))["clock_drop"]
    checks.equal("reasons", [r["reason"] for r in rows],
                 [", ".join(f"throttle {i:02}" for i in range(20)) + ", 3 more",
                  "throttle last", "throttle last"])


METRICS = ("smsp__inst_executed.sum", "dram__bytes_read.sum")


def ranges(names, metrics=METRICS, pid=0):
    """What CUPTI's range profiler writes: one range after the other."""
    return [{"ph": "X", "cat": "cuda_profiler_range", "name": name, "pid": pid,
             "tid": 0, "ts": 10_000 + 100 * i, "dur": 100,
             "args": {"text": "no number", "quoted": "7", "mode": "inf",
                      **{m: 1000 * i + k + 0.5 for k, m in
                         enumerate(metrics)}}}
            for i, name in enumerate(names)]


def launches(names, kernels_too=True):
    out = []
    for i, name in enumerate(names):
        out += [{"ph": "X", "cat": "cpu_op", "name": f"aten::{name}", "pid": 1,
                 "tid": 1, "ts": 50 * i, "dur": 40},
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel",
                 "pid": 1, "tid": 1, "ts": 50 * i + 5, "dur": 5,
                 "args": {"correlation": i + 1}}]
        if kernels_too:
            out.append({"ph": "X", "cat": "kernel", "name": f"{name}<float >",
                        "pid": 0, "tid": 7, "ts": 50 * i + 20, "dur": 20,
                        "args": {"device": 0, "stream": 7,
                                 "correlation": i + 1}})
    return out


def longest(a, b):
    """Length of the longest common subsequence."""
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            best[i + 1][j + 1] = best[i][j] + 1 if x == y else max(
                best[i][j + 1], best[i + 1][j])
    return best[-1][-1]


def check_kernels(checks, folder):
    """Counters of kernels: by order where the numbers agree and names do not
    say otherwise, else by names."""
    def found(events):
        path = written(folder, events)
        document = json.loads(lamina("host", path, "--format", "json").stdout,
                              parse_float=Exact)
        notes = [n["text"] for n in document["notes"]
                 if n["id"] == "kernel_counters"]
        return document["tables"].get("counter_kernels", []), notes

    rng = random.Random(5)
    for case in range(30):
        with_kernels = case % 3 > 0
        names = [rng.choice("abcd") for _ in range(rng.randrange(1, 30))]
        own = list(names)
        if case % 2:  # some are missing on either side
            for side in (own, names):
                for _ in range(rng.randrange(0, 4)):
                    if len(side) > 1:
                        del side[rng.randrange(len(side))]
        first = launches(names, with_kernels)
        # Demanglers write blanks or do not.
        measured = ranges([f"{n}<float>" for n in own])
        events = first + measured
        rows, notes = found(events)
        label = f"kernel counters {case}"
        checks.equal(f"{label}: rows", len(rows), len(own) * len(METRICS))
        checks.equal(f"{label}: values",
                     [(r["counter"], float(str(r["reading"]))) for r in rows],
                     [(m, 1000 * i + k + 0.5) for i in range(len(own))
                      for k, m in enumerate(METRICS)])
        by_range = rows[::len(METRICS)]
        checks.equal(f"{label}: ranges", [r["range_uid"] for r in by_range],
                     list(range(len(first), len(events))))
        partners = [r["uid"] for r in by_range if r["uid"] is not None]
        checks.equal(f"{label}: in order", partners, sorted(set(partners)))
        cat = "kernel" if with_kernels else "cuda_runtime"
        for r in by_range:
            if r["uid"] is None:
                checks.equal(f"{label}: unmatched", (r["evidence"], r["op"]),
                             ("unmatched", None))
                continue
            checks.equal(f"{label}: what it belongs to",
                         events[r["uid"]]["cat"], cat)
            position = sum(e["cat"] == cat for e in events[:r["uid"]])
            checks.equal(f"{label}: op", r["op"], f"aten::{names[position]}")
        # As many, and names do not say that others are missing.
        if len(own) == len(names) and (not with_kernels or sum(
                a == b for a, b in zip(own, names)) >= longest(own, names)):
            checks.equal(f"{label}: by order",
                         [r["evidence"] for r in by_range],
                         ["order"] * len(own))
            checks.equal(f"{label}: all", len(partners), len(own))
        elif with_kernels:
            checks.equal(f"{label}: by name", len(partners),
                         longest(own, names))
            for r in by_range:
                if r["uid"] is not None:
                    checks.equal(f"{label}: names agree",
                                 events[r["uid"]]["name"].replace(" ", ""),
                                 r["name"])
        else:  # calls have no names of kernels
            checks.equal(f"{label}: none", partners, [])
        checks.equal(f"{label}: said", len(notes), 1)
        checks.equal(f"{label}: said what is unmatched",
                     "not known" in notes[0], len(partners) < len(own))
    # Each device has its own ranges.
    second = [dict(e) for e in launches(["x", "y"])]
    for e in second:
        e["ts"] += 7
        if e["cat"] == "kernel":
            e.update(pid=1, args=dict(e["args"], device=1))
        else:
            e["tid"] = 2
        if "args" in e:
            e["args"] = dict(e["args"],
                             correlation=e["args"]["correlation"] + 100)
    events = (launches(["a", "b"]) + second +
              ranges(["y", "x"], pid=1) + ranges(["b", "a"]))
    rows, _ = found(events)
    checks.equal("kernel counters of two devices",
                 sorted((events[r["uid"]]["pid"], r["op"]) for r in
                        rows[::len(METRICS)]),
                 [(0, "aten::a"), (0, "aten::b"), (1, "aten::x"),
                  (1, "aten::y")])
    # Written anew they are still there.
    again = pathlib.Path(folder) / "again.json"
    lamina("convert", folder / "case.json", "-o", again)
    checks.equal("kernel counters of a converted trace",
                 sorted((r["name"], r["counter"], str(r["reading"]), r["op"])
                        for r in found(json.loads(again.read_text())
                                       ["traceEvents"])[0]),
                 sorted((r["name"], r["counter"], str(r["reading"]), r["op"])
                        for r in rows))


def check_recorded_kernels(checks):
    """A recording whose 77 launches have 77 ranges and no kernels."""
    path = pathlib.Path(os.environ.get(
        "LAMINA_SHARED", ROOT.parent / "shared")) / \
        "inputs/hta-cupti-counters.trace.gz"
    if not path.exists():
        print("left out: no recording with counters of kernels")
        return
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    rows = json.loads(lamina("host", path, "--format", "json", "--only",
                             "counter_kernels").stdout,
                      parse_float=Exact)["tables"]["counter_kernels"]
    measured = [e for e in events if e.get("cat") == "cuda_profiler_range"]
    checks.equal("recorded kernel counters: all values",
                 [(r["name"], r["counter"], float(str(r["reading"])))
                  for r in rows],
                 [(e["name"], k, float(v)) for e in measured
                  for k, v in e["args"].items()])
    calls = sorted((e["ts"], i) for i, e in enumerate(events)
                   if e.get("name") == "cudaLaunchKernel")
    checks.equal("recorded kernel counters: launches in order",
                 [r["uid"] for r in rows[::len(measured[0]["args"])]],
                 [i for _, i in calls])
    checks.equal("recorded kernel counters: evidence",
                 {r["evidence"] for r in rows}, {"order"})


def main():
    checks = Checks()
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    seeds = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    with temporary() as folder:
        for seed in range(first, first + seeds):
            check_made(checks, seed, pathlib.Path(folder))
        if seeds >= 40:
            for what in NAMES + (("op", "samples"), ("op", "held"),
                                 ("step", "samples"), ("step", "held")):
                checks.true(f"{what}: {SHOWN.get(what)} rows",
                            SHOWN.get(what, 0) > 5)
        check_kernels(checks, pathlib.Path(folder))
        check_many_ops(checks, folder)
        check_reasons(checks, folder)
        check_units(checks, folder)
        check_devices(checks, folder)
        check_left_out(checks, folder)
        # Values that are no numbers leave no series.
        path = pathlib.Path(folder) / "odd.json"
        path.write_text('{"traceEvents": [{"ph":"X","cat":"kernel","name":"k",'
                        '"pid":0,"tid":7,"ts":1,"dur":5,"args":{"device":0,'
                        '"stream":7}},{"ph":"C","name":"power","pid":0,'
                        '"ts":2,"args":{"a":1e999,"b":"nan","c":5}},'
                        '{"ph":"C","name":"power","pid":0,"ts":4,"args":'
                        '{"c":7}}]}')
        checks.equal("values that are no numbers",
                     [r["series"] for r in tables(path)["counters"]],
                     ["power c"])
        # Chrome's format: a track is of a process, a name and an id.
        path.write_text(json.dumps({"traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,
             "ts": 1, "dur": 5, "args": {"device": 0, "stream": 7}}] + [
            {"ph": "C", "name": "queue", "pid": 0, "ts": at, "id": number,
             "args": {"depth": value}} for at, number, value in (
                 (2, 0, 1), (2, "a\"b", 8), (4, 0, 3), (4, "a\"b", 10))]}))
        checks.equal("counters of one name with ids",
                     [(r["series"], r["min"], r["max"])
                      for r in tables(path)["counters"]],
                     [("queue[0] depth", 1, 3), ('queue[a"b] depth', 8, 10)])
        # Of several ids each is the device of its number, or of none.
        path.write_text(json.dumps({"traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,
             "ts": 1, "dur": 5, "args": {"device": 0, "stream": 7}}] + [
            {"ph": "C", "name": "power_usage_mW", "pid": 0, "ts": at, "id": one,
             "args": {"value": 5000}} for one in (0, 1, "x")
            for at in (0, 10)]}))
        found = tables(path)
        checks.equal("devices of ids",
                     [(r["series"], r["device_index"]) for r in found["counters"]],
                     [("power_usage_mW[0]", 0), ("power_usage_mW[1]", None),
                      ("power_usage_mW[x]", None)])
        checks.equal("energy of the device alone",
                     [r["device_index"] for r in found["energy"]
                      if r["scope"] == "busy"], [0])
        # A unit is no id, one id on two threads is one, and rules know names
        # without ids.
        path.write_text(json.dumps({"traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,
             "ts": 1, "dur": 5, "args": {"device": 0, "stream": 7}}] + [
            {"ph": "C", "name": name, "pid": 0, "tid": tid, "ts": at,
             "args": {"value": 50}, **({} if one is None else {"id": one})}
            for name, tid, one in (
                ("Warps [Avg]", 1, None), ("Warps [Throughput %]", 1, None),
                ("load", 1, "x"), ("load", 2, "x"),
                ("power_on_seconds", 1, 0)) for at in (0, 10)]}))
        found = tables(path)
        checks.equal("what is no id", sorted(
            (r["series"], r["device_index"], r["unit"]) for r in found["counters"]),
            [("Warps [Avg]", 0, None), ("Warps [Throughput %]", 0, "%"),
             ("load[x]", 0, None), ("load[x]", 0, None),
             ("power_on_seconds[0]", 0, None)])
        checks.equal("seconds are no watts", found["energy"], [])
    check_recorded_kernels(checks)
    checks.equal("no counters, no rows", tables(SAMPLES / "moe.json.gz"),
                 {name: [] for name in NAMES})
    checks.finish()


main()
