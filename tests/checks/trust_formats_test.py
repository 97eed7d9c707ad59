#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a recording that lies must give, in every format that can have the lie:
one made program is written as each profiler writes it, whole and with one thing
wrong. The row of trace_health, the window and the numbers that the lie would
move are compared with those of the whole recording."""
import copy
import gzip
import json
import pathlib

from broken_files_test import kineto, small
from common import Checks, lamina, temporary
from profilers import FORMATS, varint, write_xplane

US, MS, S = 1000, 1000 ** 2, 1000 ** 3
QUERY = ("SELECT (SELECT time_ns FROM gpu_timeline WHERE device = 'all' AND "
         "type = 'total_time') AS window, count(*) AS events, "
         "min(latency_ns) AS least, max(latency_ns) AS most, "
         "sum(dur_ns) AS ns, count(grid_x) AS grids, "
         "(SELECT group_concat(\"check\" || '=' || meaning, char(10)) "
         "FROM trace_health) AS health FROM kernel")


def field(number, value):
    """Of a protocol buffer; text and messages by length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def write_kineto(work, path):
    document = json.loads(kineto(work))
    document["traceEvents"] += [
        {"ph": "X", "cat": "user_annotation", "name": name, "pid": 9,
         "tid": work.tid[tid], "ts": start / US, "dur": (end - start) / US}
        for start, end, name, tid in work.ranges]
    path.write_text(json.dumps(document))


def write_pftrace(work, path):
    """As PyTorch writes it: a track per stream and thread, begins and ends."""
    tracks, packets = {}, []

    def span(track, category, name, start, end, correlation=None):
        uuid = tracks.setdefault(track, len(tracks) + 1)
        event = (field(9, 1) + field(11, uuid) + field(23, name.encode()) +
                 field(22, category.encode()))
        if correlation is not None:
            event += field(4, field(10, b"correlation") +
                           field(4, correlation))
        packets.append((start, 1, event))
        packets.append((end, 0, field(9, 2) + field(11, uuid)))

    for start, end, cat, name, args in work.device:
        span(f"GPU 0 stream {args['stream']}", cat, name, start, end,
             args["correlation"])
    for start, end, name, tid, correlation in work.calls:
        span(f"thread {work.tid[tid]}", "cuda_runtime", name, start, end,
             correlation)
    data = b""
    for track, uuid in tracks.items():
        data += field(1, field(60, field(1, uuid) + field(2, track.encode())))
    for time, _, event in sorted(packets, key=lambda p: p[:2]):
        data += field(1, field(10, 1) + field(8, time) + field(11, event))
    path.write_bytes(data)


WRITERS = {"kineto": ("a.json", write_kineto), **FORMATS,
           "xplane": ("a.xplane.pb", write_xplane),
           "pftrace": ("a.pftrace", write_pftrace)}


def moved(work, by):
    """Device work begins `by(start)` later; durations stay."""
    out = copy.copy(work)
    out.device = [(s + by(s), e + by(s), *rest)
                  for s, e, *rest in work.device]
    return out


def base():
    """Launches one by one on an idle device: the delay of all is 10 us. Times
    begin at a second, so that nothing of it falls below zero."""
    work = small(60)
    kernels = [(name, args) for _, _, cat, name, args in work.device
               if cat == "kernel"]
    tid = next(iter(work.tid))
    work.device, work.calls, work.ranges = [], [], []
    for i in range(60):
        name, args = kernels[i % len(kernels)]
        at = S + i * 200 * US
        args = {**args, "correlation": i + 1, "stream": 7, "device": 0}
        work.calls.append((at, at + 5 * US, "hipLaunchKernel", tid, i + 1))
        work.device.append((at + 10 * US, at + 90 * US, "kernel", name, args))
    return work


def longer(work):
    out = copy.copy(work)
    out.device = list(work.device)
    start, end, *rest = out.device[20]
    out.device[20] = (start, end + 3 * S, *rest)
    return out


def later(work):
    out = copy.copy(work)
    start, end, *rest = work.device[20]
    out.device = work.device + [(start + 7200 * S, end + 7200 * S, *rest)]
    return out


def halved(work):
    out = copy.copy(work)
    out.device = work.device[::2]
    return out


def ungridded(work):
    out = copy.copy(work)
    out.device = [(s, e, c, n, {**a, "grid": [0, 0, 0], "block": [0, 0, 0]})
                  for s, e, c, n, a in work.device]
    return out


def stepped(work):
    out = copy.copy(work)
    tid = work.calls[0][3]
    # Each begins 1.5 us before the one before it ends.
    out.ranges = [(S + i * 2000 * US - 1500, S + (i + 1) * 2000 * US,
                   f"iteration {i}", tid) for i in range(6)]
    return out


def negative(work):
    """All times 2 s earlier."""
    out = copy.copy(work)
    out.device = [(s - 2 * S, e - 2 * S, *r) for s, e, *r in work.device]
    out.calls = [(s - 2 * S, e - 2 * S, *r) for s, e, *r in work.calls]
    return out


def doubled(work):
    """One correlation id on three launches."""
    out = copy.copy(work)
    out.calls = [(*c[:4], 1 if c[4] <= 3 else c[4]) for c in work.calls]
    out.device = [(*d[:4], {**d[4], "correlation": 1})
                  if d[4]["correlation"] <= 3 else d for d in work.device]
    return out


# By kind: what is done, the row of trace_health that says so, and the formats
# that cannot have it, with why.
KINDS_OF_LIES = {
    "duration": (longer, "impossible_duration", {}),
    "outlier": (later, "time_outlier", {}),
    "early": (lambda w: moved(w, lambda s: -52 * US), "clocks_disagree", {}),
    "days": (lambda w: moved(w, lambda s: 86400 * S), "clocks_disagree", {}),
    "drift": (lambda w: moved(w, lambda s: (S - s) // 200 - 15 * US),
              "clocks_drift", {}),
    "lost": (halved, "launches_without_work", {}),
    "grid": (ungridded, None, {"pftrace": "no grids"}),
    "negative": (negative, "negative_times",
                 {"xplane": "times are unsigned", "pftrace": "so are these"}),
    "shared id": (doubled, "shared_correlation",
                  {"rpd": "a table joins work to calls",
                   "xplane": "runs of instructions join them"}),
}


def facts(path):
    """The numbers, and what rows of trace_health mean by their names."""
    row = json.loads(lamina("query", path, QUERY, "--format",
                            "json").stdout)["tables"]["result"][0]
    return row, dict(line.split("=", 1)
                     for line in row.pop("health").splitlines() if "=" in line)


def write(folder, name, work):
    folder.mkdir(parents=True)
    file, writer = WRITERS[name]
    writer(work, folder / file)
    return folder / file


def check_lie(check, what, kind, whole, found, health):
    row = KINDS_OF_LIES[kind][1]
    if row is not None:
        check.true(f"{what}: {row} in {sorted(health)}", row in health)
    same = {"grid", "negative", "early", "days", "shared id"}
    if kind in same:
        check.equal(f"{what}: the window", found["window"], whole["window"])
    if kind in same | {"duration", "outlier", "drift"}:
        check.equal(f"{what}: events", found["events"], whole["events"])
        check.true(f"{what}: the window {found['window']} is that of the rest",
                   abs(found["window"] - whole["window"]) <= 100 * US)
    if kind in ("early", "days", "drift"):
        check.equal(f"{what}: kernel time", found["ns"], whole["ns"])
        check.true(f"{what}: delays of {found['least']} to {found['most']}",
                   0 <= found["least"] <= found["most"] <= 11 * US)
    if kind == "grid":
        check.equal(f"{what}: grids", found["grids"], 0)


def check_formats(check, folder):
    made = base()
    for name in WRITERS:
        whole, health = facts(write(folder / name / "whole", name, made))
        rows = {row for _, row, _ in KINDS_OF_LIES.values() if row}
        check.equal(f"{name}: nothing is said of a whole recording",
                    sorted(rows & set(health)), [])
        check.equal(f"{name}: delays", (whole["least"], whole["most"]),
                    (10 * US, 10 * US))
        for kind, (lie, _, cannot) in KINDS_OF_LIES.items():
            if name in cannot:
                continue
            path = write(folder / name / kind.replace(" ", "-"), name,
                         lie(made))
            found, health = facts(path)
            check_lie(check, f"{name}, {kind}", kind, whole, found, health)


def check_steps(check, folder):
    """Steps by the user's names, which overlap: none is dropped."""
    for name in WRITERS:
        if name == "pftrace":
            continue  # the ranges of its writer are none
        path = write(folder / name / "steps", name, stepped(base()))
        rows = json.loads(lamina("report", path, "--only", "steps", "--format",
                                 "json").stdout)["tables"].get("steps", [])
        check.equal(f"{name}: steps", len(rows), 6)
        check.equal(f"{name}: kernels of steps",
                    sum(row["kernels"] for row in rows), 60)


def check_two_documents(check, folder):
    """In each format of text and packing, and of databases; messages of protocol
    buffers that follow each other are one message, and tables of text one."""
    for name in ("kineto", "rocprof"):
        path = write(folder / name / "two", name, base())
        one = path.read_bytes()
        for how, data in (("plain", one + b"\n" + one),
                          ("gz", gzip.compress(one) + gzip.compress(one))):
            two = path.with_name(f"{how}.json" + (".gz" if how == "gz" else ""))
            two.write_bytes(data)
            found, health = facts(two)
            head = "\n".join(lamina("report", two).stdout.splitlines()[:6])
            check.true(f"{name}, {how}: {found['events']} events, {head}",
                       found["events"] == 120 or "document" in head)
            check.true(f"{name}, {how}: a row names it", any(
                "another document" in meaning.lower()
                for meaning in health.values()))
    for name in ("nsys", "rocpd", "rpd"):
        path = write(folder / name / "two", name, base())
        path.write_bytes(2 * path.read_bytes())
        found, health = facts(path)
        head = "\n".join(lamina("report", path).stdout.splitlines()[:6])
        check.true(f"{name}: {found['events']} of two, {head}",
                   "another_database" in health and "database" in head)
    for name in ("xplane", "pftrace"):
        path = write(folder / name / "two", name, base())
        path.write_bytes(2 * path.read_bytes())
        found, health = facts(path)
        check.true(f"{name}: {found['events']} events of two messages",
                   found["events"] == 120 or any(
                       "another" in row or "twice" in row for row in health))


def main():
    check = Checks()
    with temporary() as name:
        folder = pathlib.Path(name)
        check_formats(check, folder / "lies")
        check_steps(check, folder / "named")
        check_two_documents(check, folder / "documents")
    check.finish()


main()
