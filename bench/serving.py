#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What lamina serve takes to answer the timeline of a large trace.

usage: bench/run serving [--events N] [--clients N] [--seconds N] [--opens N]
                         [--memory-gb N] [--keep DIR]

A trace of --events (default 10,000,000) kernels on four streams is made and
opened. Then windows from the whole trace to a few events are asked for, as
the page does while somebody zooms: by one client, then by --clients (default
64) at a time for --seconds (default 60) each. Every answer of many clients is
held against that of one. Memory is that of the process that has the trace
open: what is its own, and what is mapped from files and can be taken back; it
is ended above --memory-gb (default 8). Last, queries without end are left alone
by who asked, which must free their places, and two small traces are opened
--opens (default 1000) times in turn where one may be open.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / os.environ.get("LAMINA_PRESET", "release")
LAMINA = pathlib.Path(os.environ.get("LAMINA", BUILD / "lamina"))
sys.path.insert(0, str(ROOT / "tests" / "checks"))
from serve_client import Serve  # noqa: E402

STREAMS = 4
KERNELS = 200


def make(path, events):
    """Kernels of different lengths, back to back with short gaps."""
    noise = random.Random(1)
    shapes = [(f"kernel_{i:03d}_{'gemm' if i % 3 else 'elementwise'}_tile",
               noise.randrange(800, 40_000)) for i in range(KERNELS)]
    at = [0] * STREAMS
    with open(path, "w", encoding="ascii") as file:
        file.write('{"traceEvents":[\n{"name":"process_name","ph":"M","pid":0,'
                   '"args":{"name":"python"}}')
        lines = []
        for i in range(events):
            stream = i % STREAMS
            name, least = shapes[noise.randrange(KERNELS)]
            dur = least + noise.randrange(least)
            at[stream] += noise.randrange(100, 900)
            start = at[stream]
            at[stream] += dur
            lines.append(
                f',\n{{"ph":"X","cat":"kernel","name":"{name}","pid":0,'
                f'"tid":{stream + 7},"ts":{start // 1000}.{start % 1000:03d},'
                f'"dur":{dur // 1000}.{dur % 1000:03d},"args":{{"device":0,'
                f'"stream":{stream + 7}}}}}')
            if len(lines) == 50_000:
                file.write("".join(lines))
                lines = []
        file.write("".join(lines) + "\n]}\n")
    return max(at)


def memory(pid):
    """(own, mapped) bytes in RAM."""
    own = mapped = 0
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(("RssAnon:", "RssShmem:")):
                own += int(line.split()[1]) * 1024
            elif line.startswith("RssFile:"):
                mapped += int(line.split()[1]) * 1024
    return own, mapped


def processor(pid):
    """Seconds that a process has run for."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        times = file.read().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def questions(last, kernels, count):
    """What one who zooms asks, and some filters."""
    noise = random.Random(2)
    asked = []
    for i in range(count):
        span = max(2000, int(last / 10 ** noise.uniform(0, 6)))
        start = noise.randrange(max(1, last - span))
        window = {"from_ns": start, "to_ns": start + span}
        where = [] if i % 4 else [
            f"kernel={kernels[noise.randrange(3)]}"]
        asked.append(("tiles", {**window, "columns": 1200, "where": where}))
        if i % 4 == 0:
            asked.append(("find", {**window, "limit": 60}))
    asked.append(("tiles", {"from_ns": 0, "to_ns": last, "columns": 1200}))
    return asked


def spread(times):
    times = sorted(times)
    return (f"{statistics.median(times) * 1e3:8.1f} ms median "
            f"{times[int(len(times) * 0.99)] * 1e3:8.1f} ms p99 "
            f"{times[-1] * 1e3:8.1f} ms most  ({len(times)} answers)")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--events", type=int, default=10_000_000)
    ap.add_argument("--clients", type=int, default=64)
    ap.add_argument("--seconds", type=float, default=60)
    ap.add_argument("--opens", type=int, default=1000)
    ap.add_argument("--memory-gb", type=float, default=8)
    ap.add_argument("--keep")
    args = ap.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(args.keep or folder) / f"{args.events}.json"
        if not path.exists():
            make(path, args.events)
        print(f"{args.events:,} device events, "
              f"{path.stat().st_size / 1e6:,.0f} MB of JSON")
        with Serve(LAMINA, path, "--memory-gb", args.memory_gb, "--time-limit",
                   60) as s:
            id = measure(s, args)
            leave_alone(s, id)
            s.stop()
        open_often(pathlib.Path(folder), args.opens)


def measure(s, args):
    id = s.id_of(".json")
    begin = time.perf_counter()
    trace = s.settled(s.post(f"traces/{id}/open")[1]["id"], timeout=3600)
    assert trace["state"] == "open", trace
    page = len(s.ask("GET", f"/api/v1/traces/{id}/page")[2])
    pid = s.workers()[0]
    print(f"opened in {time.perf_counter() - begin:.1f} s, "
          f"{processor(pid):.1f} s of the processor, page of "
          f"{page / 1e6:.1f} MB", flush=True)
    show = lambda when: print(f"{when}: own memory {memory(pid)[0] / 1e6:,.0f} "
                              f"MB, mapped {memory(pid)[1] / 1e6:,.0f} MB")
    show("opened")
    while (facts := s.get(f"traces/{id}")[1]["facts"]).get(
            "findings") == "coming":
        time.sleep(0.05)
    assert facts.get("findings", "here") == "here", facts
    print(f"its findings were here after {time.perf_counter() - begin:.1f} s, "
          f"{processor(pid):.1f} s of the processor", flush=True)
    show("with findings")

    def ask(what, body):
        begin = time.perf_counter()
        status, _, data = s.ask("POST", f"/api/v1/traces/{id}/{what}", body,
                                timeout=120)
        return time.perf_counter() - begin, status, data

    def one(name, what, body):
        seconds, status, data = ask(what, body)
        assert status == 200, data[:300]
        print(f"{name}: {seconds * 1e3:.1f} ms, {len(data) / 1e3:.0f} kB")
        return json.loads(data)

    whole = one("first tile, of the whole trace", "tiles", {"columns": 1200})
    last = max(lane["first_ns"] + lane["width_ns"] * len(lane["busy_ns"])
               for lane in whole["lanes"])
    top = one("ten longest", "find", {"limit": 10})
    busy = sum(sum(lane["busy_ns"]) for lane in whole["lanes"])
    assert busy == top["time_ns"], (busy, top["time_ns"])
    kernels = list(dict.fromkeys(top["found"]["name"]))
    kernels = (kernels * 3)[:3]
    one("sums of half of the time by 7 columns", "sum", {
        "where": [f"time=..{last // 2}ns"],
        "by": ["kernel", "family", "op", "module", "layer", "step", "lane"]})
    one("the same again", "sum", {
        "where": [f"time=..{last // 2}ns"],
        "by": ["kernel", "family", "op", "module", "layer", "step", "lane"]})
    asked = questions(last, kernels, 300)
    for _ in range(2):  # filters are made by the first
        alone = [ask(*q) for q in asked]
    assert all(a[1] == 200 for a in alone)
    tiles = [a[0] for a, q in zip(alone, asked) if q[0] == "tiles"]
    finds = [a[0] for a, q in zip(alone, asked) if q[0] == "find"]
    print("one client, tiles:", spread(tiles))
    print("one client, finds:", spread(finds))
    show("after one client")

    until = time.monotonic() + args.seconds
    times, wrong, told = [], [], [0]

    def client(number):
        noise = random.Random(number)
        while time.monotonic() < until:
            i = noise.randrange(len(asked))
            try:
                seconds, status, data = ask(*asked[i])
            except OSError as error:
                wrong.append(str(error))
                continue
            if status in (429, 503):
                told[0] += 1
                time.sleep(0.05)
            elif data != alone[i][2]:
                wrong.append((asked[i], status, data[:200]))
            else:
                times.append(seconds)

    threads = [threading.Thread(target=client, args=(n,))
               for n in range(args.clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(f"{args.clients} clients:", spread(times),
          f"{len(times) / args.seconds:.0f}/s, {told[0]} told to wait, "
          f"{len(wrong)} wrong", *wrong[:3])
    show(f"after {args.clients} clients")
    print(f"p99 of {args.clients} clients by the median of one:",
          f"{sorted(times)[int(len(times) * 0.99)] / statistics.median(tiles):.1f}")
    print(f"server itself: {s.memory() / 1e6:,.0f} MB", flush=True)
    return id


def leave_alone(s, id):
    """How long a query waits for places of others who have gone."""
    body = json.dumps({"sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                       "SELECT i + 1 FROM n) SELECT count(*) FROM n"}).encode()
    times = []
    for _ in range(10):
        left = [socket.create_connection(("127.0.0.1", s.port))
                for _ in range(3)]  # as much SQL as runs at a time
        for one in left:
            one.sendall((f"POST /api/v1/traces/{id}/query HTTP/1.1\r\nHost: "
                         f"localhost\r\nAuthorization: Bearer {s.token}\r\n"
                         "Content-Type: application/json\r\nContent-Length: "
                         f"{len(body)}\r\n\r\n").encode() + body)
        time.sleep(0.5)
        begin = time.perf_counter()
        for one in left:
            one.close()
        status, _ = s.query(id, "SELECT 1")
        assert status == 200
        times.append(time.perf_counter() - begin)
    print("a query behind three that were left alone:", spread(times))


def open_often(folder, times):
    """What opening and closing again and again leaves in the server."""
    if times == 0:
        return
    traces = folder / "two"
    traces.mkdir()
    for name in "ab":
        shutil.copy(ROOT / "samples/serve.json.gz", traces / f"{name}.json.gz")
    with Serve(LAMINA, traces, "--sessions", 1, "--threads", 1) as s:
        ids = [t["id"] for t in s.traces()]
        files = lambda: len(os.listdir(f"/proc/{s.process.pid}/fd"))
        seen = []
        for i in range(times):
            assert s.opened(ids[i % 2])["state"] == "open"
            # What is kept to be used again is kept by then.
            if i == times // 10:
                seen = [s.memory(), files()]
        print(f"opened {times} times in turn: memory of the server "
              f"{seen[0] / 1e6:.1f} -> {s.memory() / 1e6:.1f} MB, open files "
              f"{seen[1]} -> {files()}, processes {len(s.workers())}")
        s.stop()


main()
