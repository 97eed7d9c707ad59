#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina host and lamina path on input that is wrong or lacks something: what
is left out is counted, what is left adds up, nothing hangs."""
import json
import pathlib
import subprocess
import time

from common import LAMINA, Checks, temporary

S = 1_000_000_000


def event(cat, name, start, dur, tid=1, pid=100, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid,
            "ts": start / 1000, "dur": dur / 1000, "args": args}


def call(start, number, dur=3000, name="cudaLaunchKernel", **more):
    return event("cuda_runtime", name, start, dur, correlation=number, **more)


def kernel(start, dur, number, stream=7, pid=0, **more):
    return event("kernel", f"gemm_{number % 3}", start, dur, tid=stream,
                 pid=pid, device=pid, stream=stream, correlation=number, **more)


def healthy(count=40):
    """Launches 8 us before kernels of 20 us, 30 us apart."""
    events = [event("cpu_op", "aten::mm", 0, count * 30_000 + 20_000)]
    for i in range(count):
        events += [call(i * 30_000 + 1000, i + 1),
                   kernel(i * 30_000 + 9000, 20_000, i + 1)]
    return events


class Run:
    def __init__(self, checks, folder, name, events):
        self.checks, self.name = checks, name
        self.trace = folder / f"{name.replace(' ', '_')}.json"
        self.trace.write_text(json.dumps({"traceEvents": events}))
        self.host, self.host_notes = self.tables("host", "--by", "stream")
        self.path, self.path_notes = self.tables("path")
        self.add_up()

    def run(self, *args):
        return subprocess.run([LAMINA, *args], capture_output=True, text=True,
                              timeout=120)

    def tables(self, command, *args):
        done = self.run(command, str(self.trace), "--format", "json", *args)
        self.checks.equal(f"{self.name}: {command} ends well: "
                          f"{done.stderr[:300]}", done.returncode, 0)
        if done.returncode != 0:
            return {}, []
        document = json.loads(done.stdout)
        return document["tables"], document["notes"]

    def health(self):
        done = self.run("report", str(self.trace), "--only", "trace_health",
                        "--format", "json")
        return {r["check"]: r for r in
                json.loads(done.stdout)["tables"]["trace_health"]}

    def causes(self):
        out = {}
        for row in self.host.get("idle_causes", []):
            if row["scope"] == "device":
                out[row["cause"]] = round(
                    out.get(row["cause"], 0) + row["time_us"] * 1000)
        return out

    def graph(self):
        return {r["what"]: r["count"] for r in self.path["path_graph"]}

    def add_up(self):
        parts = sum(round(p["dur_us"] * 1000)
                    for p in self.host.get("idle_parts", []))
        self.checks.equal(f"{self.name}: parts add up to causes",
                          parts, sum(self.causes().values()))
        verdicts = self.path.get("verdicts", [])
        if verdicts:
            self.checks.equal(
                f"{self.name}: segments add up to the window",
                sum(round(s["dur_us"] * 1000)
                    for s in self.path["path_segments"]),
                round(verdicts[0]["window_us"] * 1000))


def check_missing(checks, folder):
    ops = [event("cpu_op", "aten::mm", i * 1000, 900) for i in range(50)]
    run = Run(checks, folder, "no device events", ops)
    checks.equal("no device events: no idle time", run.causes(), {})
    checks.equal("no device events: no verdict",
                 [(r["verdict"], r["confidence"] is not None,
                   r["device_busy_percent"]) for r in run.path["verdicts"]],
                 [(None, True, None)])
    checks.equal("no device events: said by host, too",
                 [n["id"] for n in run.host_notes], ["no_device_work"])
    checks.equal("no device events: said", [
        n["id"] for n in run.path_notes
        if n["id"] in ("path_verdict", "no_device_work")], ["no_device_work"])
    checks.equal("no device events: the path is of the host",
                 {s["class"] for s in run.path["path_segments"]}, {"host"})

    alone = [e for e in healthy() if e["cat"] == "kernel"]
    run = Run(checks, folder, "no host events", alone)
    checks.equal("no host events: all unlinked", set(run.causes()),
                 {"unlinked"})
    checks.equal("no host events: said",
                 run.health()["unlinked_no_host_events"]["count"], len(alone))
    checks.equal("no host events: classes on the path",
                 {s["class"] for s in run.path["path_segments"]} -
                 {"device", "compute", "wait", "device_gap", "lead_in"}, set())

    late = [e for e in healthy() if e["cat"] == "kernel" or
            e["ts"] > 0.3 * 40 * 30]
    run = Run(checks, folder, "calls missing at the start", late)
    checks.true("calls missing at the start: unlinked and linked parts",
                "unlinked" in run.causes() and len(run.causes()) > 1)


def check_times(checks, folder):
    events = healthy()
    events.insert(20, kernel(300_000, -5000, 900))
    events.insert(30, kernel(400_000, 8 * 86400 * S, 901))
    run = Run(checks, folder, "wrong durations", events)
    health = run.health()
    said = [r for r in health.values() if r["status"] in ("lost", "warn") and
            r["first_offset"] is not None]
    checks.true(f"wrong durations: counted with an offset: {list(health)}",
                sum(r["count"] or 0 for r in said) >= 2)
    checks.true("wrong durations: window of the rest",
                run.path["verdicts"][0]["window_us"] < 1e7)

    events = healthy()
    events += [kernel(2_000_000, 20_000, 777), call(2_010_000, 777)]
    run = Run(checks, folder, "kernel before its call", events)
    row = [r for r in run.host["launch_events"]
           if r["latency_us"] is not None and r["latency_us"] < 0]
    checks.equal("kernel before its call: no latency below 0", row, [])
    checks.true(f"kernel before its call: counted in {run.graph()}",
                any("before" in what and count > 0
                    for what, count in run.graph().items()))

    events = healthy()
    events += [call(100_500, 801), kernel(109_000, 25_000, 801)]
    run = Run(checks, folder, "overlap on a stream", events)
    checks.true(f"overlap on a stream: counted in {run.graph()}",
                any("overlap" in what and count > 0
                    for what, count in run.graph().items()))

    events = healthy()
    events += [event("cpu_op", "outer", 100_000, 50_000),
               event("cpu_op", "bleeds", 140_000, 50_000)]
    run = Run(checks, folder, "host events that are not nested", events)
    checks.true(f"host events that are not nested: counted in {run.graph()}",
                run.graph().get("host_bleed_clamped", 0) > 0)

    whole = [{**e, "ts": e["ts"] // 1, "dur": max(1, e["dur"] // 1)}
             for e in healthy()]
    Run(checks, folder, "whole microseconds", whole)


def check_ids(checks, folder):
    events = healthy()
    for e in healthy():
        shifted = dict(e, ts=e["ts"] + 5, pid=e["pid"] + 1)
        if e["cat"] == "kernel":
            shifted["args"] = dict(e["args"], device=1)
        events.append(shifted)
    run = Run(checks, folder, "one id in two processes", events)
    checks.equal("one id in two processes: two devices",
                 len({r["device"] for r in run.host["idle_parts"]}), 2)
    events = healthy() + [call(900_000, 5), kernel(908_500, 500, 5)]
    run = Run(checks, folder, "one id twice in a process", events)
    first = [r["device_uid"] for r in run.host["launch_events"]
             if r["call_uid"] == 9]
    checks.equal("one id twice in a process: each call has its own work",
                 first, [10])
    checks.equal("one id twice in a process: that is said",
                 run.health()["shared_correlation"]["value"],
                 "2 device events")


def check_syncs(checks, folder):
    events = healthy(20)
    for i in range(20):  # the call returns before its work has ended
        events.append(event("cuda_runtime", "cudaStreamSynchronize",
                            i * 30_000 + 5000, 2000, correlation=500 + i))
        events.append(event("cuda_sync", "Stream Synchronize",
                            i * 30_000 + 5000, 2000, pid=0, tid=7, stream=7,
                            device=0, correlation=500 + i,
                            cuda_sync_kind="Stream Synchronize"))
    run = Run(checks, folder, "work ends after its sync", events)
    said = [[n["text"] for n in notes if n["id"] == "clocks_differ"]
            for notes in (run.host_notes, run.path_notes)]
    # The call returns 7 us after its step began, the work ends after 29 us.
    checks.equal("work ends after its sync: said", said, 2 * [[
        "Host and device clocks differ: of 20 calls that wait for the device "
        "20 return before its work has ended, by 22.0 us (median). Times from "
        "launch to start may be wrong by that."]])
    checks.equal("work ends after its sync: counted",
                 run.graph()["sync_target_after_return"], 20)
    run = Run(checks, folder, "one of many", events + [
        event("cuda_runtime", "cudaDeviceSynchronize", 700_000 + i * 5000,
              4000, correlation=800 + i) for i in range(400)])
    checks.equal("one of many syncs: nothing is said", [
        n["id"] for n in run.path_notes if n["id"] == "clocks_differ"], [])
    checks.true("work ends after its sync: no wait of it on the path",
                all(s["kind"] != "sync" or s["dur_us"] <= 2
                    for s in run.path["path_segments"]))


def check_many(checks, folder):
    count = 20_000
    threads = healthy(10) + [
        event("cpu_op", "x", i * 10, 5, tid=i + 10) for i in range(count)]
    begin = time.monotonic()
    Run(checks, folder, "many threads", threads)
    streams = []
    for i in range(count):
        streams += [call(i * 100, i + 1, 50),
                    kernel(i * 100 + 60, 30, i + 1, stream=i)]
    run = Run(checks, folder, "many streams", streams)
    checks.true("many streams: tables are limited",
                len(run.host["queue_depth"]) <= count)
    steps = healthy(10) + [
        event("user_annotation", f"ProfilerStep#{i}", i * 20, 15)
        for i in range(count)]
    Run(checks, folder, "many steps", steps)
    deep = healthy(10) + [
        event("cpu_op", "deep", i, 2 * count * 10 - 2 * i)
        for i in range(count)]
    Run(checks, folder, "deep stacks", deep)
    # 20,000 of each: what is quadratic takes minutes.
    print(f"many of everything: {time.monotonic() - begin:.1f} s")


def check_memory(checks, folder):
    events = healthy(10)
    for i in range(10):
        args = {"Total Allocated": -5 * i, "Bytes": -100, "Device Type": 1,
                "Device Id": 0}
        if i % 2:
            args = {}
        events.append({"ph": "i", "cat": "cpu_instant_event",
                       "name": "[memory]", "pid": 100, "tid": 1, "ts": i * 10,
                       "s": "t", "args": args})
    run = Run(checks, folder, "memory below zero", events)
    checks.true("memory below zero: the rest is there",
                len(run.host["launch_apis"]) > 0)


def check_what_if(checks, folder):
    run = Run(checks, folder, "what-if of nothing", healthy())
    done = run.run("path", str(run.trace), "--what-if", "scale:kernel~gemn:0.5")
    checks.equal("what-if of nothing: wrong usage", done.returncode, 2)
    checks.true(f"what-if of nothing: nearest names: {done.stderr}",
                "gemm_" in done.stderr)
    # Nothing but what the scenario could change is offered.
    events = healthy(8) + [event("cpu_op", "aten::cpu_only", 300_000, 9000)]
    for i, events in enumerate((events, events + [
            event("user_annotation", f"ProfilerStep#{n}", n * 310_000, 300_000)
            for n in (0, 1)])):
        run = Run(checks, folder, f"what-if of less {i}", events)
        # No call waits: nothing is saved, and that is no error.
        done = run.run("path", str(run.trace), "--what-if", "drop:sync",
                       "--only", "what_if", "--format", "json")
        checks.equal("drop:sync: an answer", done.returncode, 0)
        checks.equal("drop:sync: saves nothing", [
            (row["saved_us"], row["saved_low_us"], row["saved_high_us"])
            for row in json.loads(done.stdout)["tables"]["what_if"]],
            [(0, 0, 0)])
        for spec, said in (
                ("scale:op~cpu_only:0.5", "aten::mm"),
                ("graph:step=1", "a step without device work" if i else
                 "a step that the trace does not have")):
            done = run.run("path", str(run.trace), "--what-if", spec)
            checks.equal(f"{spec}: wrong usage", done.returncode, 2)
            checks.true(f"{spec}: {done.stderr}", said in done.stderr)


def check_overlapped(checks, folder):
    """Too many collectives at one time to say what lies beside each."""
    def made(count):
        events = healthy()
        for i in range(count):
            events += [kernel(1_000 + i, 900_000, 1000 + i, stream=20 + i),
                       event("kernel", "ncclDevKernel_AllReduce", 2_000 + i,
                             900_000, tid=500 + i, pid=0, device=0,
                             stream=500 + i)]
        return events

    for count in (5, 200):
        run = Run(checks, folder, f"{count} collectives at once", made(count))
        empty = {name: sum(r["overlapped_by"] is None and
                           r["hidden_us"] > 0 for r in run.host[name])
                 for name in ("comm_exposure", "comm_events")}
        checks.equal(f"{count} at once: some are left out",
                     all(empty.values()), count > 5)
        said = [n["text"] for n in run.host_notes
                if n["id"] == "overlapped_by_left_out"]
        checks.equal(f"{count} at once: said", [
            f"in {empty['comm_exposure']} row" in text and
            f"in {empty['comm_events']} row" in text for text in said],
            [True] * (count > 5))


def check_reads(checks, folder):
    """What a wait outside of any op is for, by what it waits for."""
    def copy(start, size, number):
        return [call(start, number, name="cudaMemcpyAsync"),
                event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)",
                      start + 5000, 2000, tid=7, pid=0, device=0, stream=7,
                      correlation=number, bytes=size)]

    events = [call(1000, 1), kernel(9000, 50_000, 1)]
    for i, (size, name) in enumerate([
            (4, "cudaStreamSynchronize"), (4096, "cudaStreamSynchronize"),
            (4, "cudaDeviceSynchronize")]):
        start = 100_000 * (i + 1)
        events += copy(start, size, 10 + i)
        events.append(call(start + 3500, 20 + i, dur=6000, name=name))
    trace = folder / "reads.json"
    trace.write_text(json.dumps({"traceEvents": events}))
    done = subprocess.run(
        [LAMINA, "query", str(trace), "SELECT reader, bytes FROM sync_calls "
         "ORDER BY start_ns", "--format", "csv"], capture_output=True,
        text=True)
    checks.equal("reads outside of ops", done.stdout.split()[1:],
                 ["scalar,4", "copy,4096", "explicit,4"])


def check_rounded(checks, folder):
    """Ranges of one thread that rounding lets overlap follow each other."""
    for overlap in (0, 1, 1000):
        events = [event("user_annotation", "first", 0, 100_000 + overlap),
                  event("user_annotation", "second", 100_000, 300_000),
                  event("cpu_op", "aten::mm", 500, 20_000),
                  call(1000, 1), kernel(9000, 20_000, 1),
                  call(250_000, 2), kernel(258_000, 20_000, 2)]
        run = Run(checks, folder, f"overlap of {overlap} ns", events)
        checks.equal(f"overlap of {overlap} ns: what the host did", [
            (p["detail"], round(p["dur_us"] * 1000))
            for p in run.host["idle_parts"] if p["cause"] == "host_bound"],
            [("first", 71_000), ("second", 150_000)])


def check_only(checks, folder):
    """The notes do not depend on the tables that are asked for."""
    events = [event("cpu_op", "aten::mm", 0, 40 * 30_000 + 20_000)]
    for i in range(40):
        # The host launches late, and the device works nearly all the time.
        events += [call(i * 30_000 + 1000, i + 1),
                   kernel(i * 30_000 + 9000, 29_000, i + 1)]
    run = Run(checks, folder, "busy while the host is late", events)
    checks.true(f"busy while the host is late: {run.path_notes}",
                any("But the device worked" in n["text"]
                    for n in run.path_notes))
    for names in ("path_summary", "path_owners", "path_segments", "verdicts",
                  "path_summary,path_graph"):
        _, notes = run.tables("path", "--only", names)
        checks.equal(f"notes with --only {names}",
                     [n["text"] for n in notes],
                     [n["text"] for n in run.path_notes])
    _, notes = run.tables("path", "--only", "what_if", "--what-if",
                          "zero:launch")
    checks.equal("notes with --only what_if", [n["text"] for n in notes],
                 [n["text"] for n in run.path_notes])


def main():
    checks = Checks()
    with temporary() as name:
        folder = pathlib.Path(name)
        for check in (check_missing, check_times, check_ids, check_syncs,
                      check_many, check_memory, check_what_if,
                      check_overlapped, check_reads, check_rounded,
                      check_only):
            check(checks, folder)
    checks.finish()


if __name__ == "__main__":
    main()
