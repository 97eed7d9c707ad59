#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina path over several ranks, on made jobs with one late rank and a planted
cause: the chain must go through that rank and name that cause; the rows must
add up; a healthy job must blame nobody. So of pipelines, whose stages come to
sends and receives one after the other: one is late whose own host lags or that
computes more than the others."""
import json
import pathlib
import random
import sys

from common import Checks, lamina, temporary

CASES = int(sys.argv[2]) if len(sys.argv) > 2 else 20
CAUSES = ("host_op", "slow_kernel", "copy", "host_gap", "extra_kernel",
          "synchronize")
LATENCY = 6000  # ns from a launch to the start of its kernel


class Rank:
    """One host thread, one stream for work and one for communication."""

    def __init__(self, number, world, offset, rng):
        self.number, self.world, self.rng = number, world, rng
        # Whole nanoseconds: neighbours must touch and not overlap by rounding.
        self.offset = round(offset)
        self.host = round(1000000 + rng.random() * 50000)
        self.stream = 0
        self.events, self.id = [], 1
        self.collectives = []
        self.step, self.facts = 0, []  # of each event: its op and step

    def event(self, cat, name, ts, dur, tid, args, pid=100, op=None):
        self.facts.append((op, self.step))
        self.events.append({
            "ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid,
            "ts": (ts + self.offset) / 1000, "dur": dur / 1000, "args": args})

    def noisy(self, us):
        return round(us * 1000 * (1 + self.rng.uniform(-0.02, 0.02)))

    def op(self, name, us):
        ns = self.noisy(us)
        self.event("cpu_op", name, self.host, ns, 1, {}, op=name)
        self.host += ns

    def call(self, op, call):
        """An op that launches; returns the correlation id and when its work
        can start."""
        begin = self.host
        self.event("cuda_runtime", call, begin + 1000, 3000, 1,
                   {"correlation": self.id}, op=op)
        self.event("cpu_op", op, begin, 5000, 1, {}, op=op)
        self.host = begin + 5500
        self.id += 1
        return self.id - 1, max(self.stream, begin + 1000 + LATENCY)

    def launch(self, op, kernel, us, cat="kernel", call="cudaLaunchKernel",
               args=None):
        ident, start = self.call(op, call)
        ns = self.noisy(us)
        self.stream = start + ns
        self.event(cat, kernel, start, ns, 7,
                   {"device": 0, "stream": 7, "correlation": ident,
                    **(args or {})}, pid=0, op=op)

    def collective(self, sequence):
        ident, start = self.call("c10d::allreduce_", "cudaLaunchKernel")
        self.collectives.append((ident, sequence, start))

    def finish(self, start, end, ident, sequence):
        self.stream = end
        self.event("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", start,
                   end - start, 7,
                   {"device": 0, "stream": 7, "correlation": ident,
                    "Collective name": "allreduce", "Process Group Name": "0",
                    "Process Group Ranks": str(list(range(self.world))),
                    "Group size": self.world, "In msg nelems": 1 << 20,
                    "Out msg nelems": 1 << 20, "dtype": "BFloat16",
                    "Seq": sequence}, pid=0, op="c10d::allreduce_")

    def wait(self):
        begin = self.host
        end = max(begin + 4000, self.stream + 2000)
        self.event("cuda_runtime", "cudaStreamSynchronize", begin, end - begin,
                   1, {"correlation": self.id})
        self.id += 1
        self.host = end

    def document(self):
        return {"schemaVersion": 1,
                "distributedInfo": {"backend": "nccl", "rank": self.number,
                                    "world_size": self.world},
                "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
                "traceEvents": self.events}


def job(seed, cause):
    rng = random.Random(seed)
    world, steps = rng.choice((2, 3, 4, 8)), rng.randrange(4, 9)
    layers, kernel_us = rng.randrange(3, 9), rng.choice((40, 150, 400))
    late = rng.randrange(world)
    bound = rng.choice(("host", "device"))
    ranks = [Rank(r, world, rng.uniform(-5e7, 5e7), random.Random(seed * 97 + r))
             for r in range(world)]
    # What is planted is well above the noise of all that a step holds.
    plant = layers * kernel_us * rng.uniform(0.3, 1.2) + 300
    for step in range(steps):
        begins = [rank.host for rank in ranks]
        for rank in ranks:
            rank.step = 10 + step
            guilty = cause is not None and rank.number == late
            if guilty and cause == "host_op":
                rank.op("DataLoader.__next__", plant)
            if guilty and cause == "host_gap":
                rank.host += round(plant * 1000)
            for layer in range(layers):
                if bound == "host":
                    rank.op("aten::layer_norm", kernel_us * 1.1)
                us = kernel_us
                if guilty and cause == "slow_kernel":
                    us += plant / layers
                rank.launch("aten::mm", "ampere_bf16_s16816gemm_128x64", us)
                rank.launch("aten::gelu", "vectorized_gelu_kernel", 12)
            if guilty and cause == "copy":
                rank.launch("aten::copy_", "Memcpy HtoD (Pinned -> Device)",
                            plant, "gpu_memcpy", "cudaMemcpyAsync",
                            {"bytes": int(plant * 20000)})
            if guilty and cause == "extra_kernel":
                rank.launch("aten::nonzero", "nonzero_scan_kernel", plant)
            if guilty and cause == "synchronize":
                # The host waits for its own device, then prepares on.
                rank.wait()
                rank.op("aten::item_checks", plant)
            rank.collective(step)
        # All end together, the transfer after the last has come.
        begin = max(r.collectives[-1][2] for r in ranks)
        end = begin + round(rng.uniform(60000, 90000))
        for rank in ranks:
            ident, sequence, start = rank.collectives[-1]
            rank.finish(start, end + rng.randrange(300), ident, sequence)
            rank.launch("aten::add_", "optimizer_step_kernel", 25)
            rank.wait()
        for rank, begin in zip(ranks, begins):
            rank.event("user_annotation", f"ProfilerStep#{rank.step}", begin,
                       rank.host - begin, 1, {})
    expected = {
        "host_op": ("host", "DataLoader.__next__"),
        "host_gap": ("host_gap", "-"),
        "slow_kernel": ("compute", "ampere_bf16_s16816gemm_128x64"),
        "copy": ("copy", "Memcpy HtoD (Pinned -> Device)"),
        "extra_kernel": ("compute", "nonzero_scan_kernel"),
        "synchronize": ("host", "aten::item_checks"), None: None}[cause]
    return ranks, late, expected, steps, plant


def pair(first, second, group, latency):
    """A send and its receive behind all on the communication streams of both;
    what follows on the streams waits for it."""
    starts = []
    for rank in (first, second):
        ident, start = rank.call("nccl:send", "cudaLaunchKernel")
        starts.append((ident, max(start, rank.comm, rank.stream)))
    end = max(start for _, start in starts) + latency
    for rank, (ident, start) in zip((first, second), starts):
        rank.event("kernel", "ncclDevKernel_SendRecv", start, end - start, 20,
                   {"device": 0, "stream": 20, "correlation": ident,
                    "Collective name": "sendrecv", "Group size": 2,
                    "Process Group Name": str(group),
                    "Process Group Ranks": str(list(group)),
                    "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20,
                    "dtype": "BFloat16"}, pid=0)
        rank.stream = rank.comm = end


def pipeline(seed, cause, alone=False):
    """Micro-batches through three stages, forward and back again; `alone`:
    without the gradients of all, so that only sends tell the clocks."""
    rng = random.Random(seed)
    ranks = [Rank(r, 3, rng.uniform(-5e7, 5e7), random.Random(seed * 97 + r))
             for r in range(3)]
    late = rng.randrange(3)
    for rank in ranks:
        rank.comm = 0
    for batch in range(8):
        begins = [rank.host for rank in ranks]
        for way in (1, -1):
            stages = ranks[::way]
            for place, rank in enumerate(stages):
                rank.step = 10 + batch
                if cause == "host_op" and rank.number == late:
                    rank.op("DataLoader.__next__", 1500)
                for _ in range(4):
                    us = 150 if cause == "compute" and rank.number == late \
                        else 60
                    rank.launch("aten::mm", "ampere_bf16_s16816gemm_128x64", us)
                if place < 2:
                    both = sorted((rank.number, stages[place + 1].number))
                    pair(rank, stages[place + 1], tuple(both), 90_000)
        # Gradients of all: the first stage comes last.
        for rank in ranks if not alone else ():
            rank.collective(batch)
        end = max((r.collectives[-1][2] for r in ranks if r.collectives),
                  default=0) + 75_000
        for rank in ranks if not alone else ():
            ident, sequence, start = rank.collectives[-1]
            rank.finish(start, end, ident, sequence)
        for rank, begin in zip(ranks, begins):
            rank.wait()
            rank.event("user_annotation", f"ProfilerStep#{10 + batch}", begin,
                       rank.host - begin, 1, {})
    return ranks, late


def check_pipelines(check, folder):
    for case in range(12):
        cause = (None, "host_op", "compute")[case % 3]
        ranks, late = pipeline(9000 + case, cause, alone=case >= 6)
        place = folder / f"pipeline{case}"
        write(place, ranks)
        document = path(place)
        named = [n["text"] for n in document["notes"] if n["id"] == "late_rank"]
        what = f"pipeline {case} ({cause}, rank {late})"
        if cause is None:
            check.equal(f"{what}: nobody is late", named, [])
        else:
            check.true(f"{what}: {named}", len(named) == 1 and
                       named[0].startswith(f"Rank {late} "))
            rows = {r["rank"]: r for r in document["tables"]["path_ranks"]}
            check.equal(f"{what}: cause", rows[late]["cause_kind"],
                        {"host_op": "host"}.get(cause, cause))
        blamed = [n["text"] for n in json.loads(
            lamina("ranks", place, "--format", "json").stdout)["notes"]
            if n["id"] == "straggler"]
        check.true(f"{what}: ranks says {blamed}", not blamed or
                   (cause is not None and f"rank {late} " in blamed[0]))


def write(folder, ranks):
    folder.mkdir(parents=True)
    files = []
    for rank in ranks:
        files.append(folder / f"rank{rank.number}.json")
        files[-1].write_text(json.dumps(rank.document()))
    return files


def path(folder, *args):
    return json.loads(lamina("path", folder, "--format", "json", *args).stdout)


def check_owners(check, what, ranks, segments):
    """What a segment belongs to is what its rank was made with."""
    seen = set()
    for row in segments:
        if row["uid"] is None:
            continue
        op, step = ranks[row["rank"]].facts[row["uid"]]
        device = row["class"] in ("device", "comm", "copy")
        check.equal(f"{what}: op and step of {row['kind']} {row['name']}",
                    (row["op"], row["step"]), (op, step))
        if device:
            check.equal(f"{what}: stream of {row['name']}",
                        (row["device_index"], row["stream"], row["thread"]),
                        (0, 7, None))
        elif row["kind"] in ("host", "sync"):
            check.equal(f"{what}: thread of {row['name']}",
                        (row["device_index"], row["thread"]), (None, "1"))
        seen.add((row["rank"], device))
    check.true(f"{what}: host and device of a rank: {seen}",
               any((rank, not device) in seen for rank, device in seen))


def main():
    check = Checks()
    right = 0
    with temporary() as name:
        folder = pathlib.Path(name)
        for case in range(CASES):
            cause = CAUSES[case % len(CAUSES)]
            ranks, late, expected, steps, plant = job(1000 + case, cause)
            write(folder / str(case), ranks)
            document = path(folder / str(case), "--what-if",
                          "scale:class=comm:1")
            tables = document["tables"]
            by_rank = {r["rank"]: r for r in tables["path_ranks"]}
            window = sum(r["time_us"] for r in tables["path_summary"])
            what = f"case {case} ({cause}, {len(ranks)} ranks)"
            check.equal(f"{what}: ranks add up",
                        round(sum(r["path_us"] for r in by_rank.values()), 3),
                        round(window, 3))
            segments = tables["path_segments"]
            check.equal(f"{what}: segments add up",
                        round(sum(s["dur_us"] for s in segments), 3),
                        round(window, 3))
            check.true(f"{what}: segments touch", all(
                abs(a["start_us"] + a["dur_us"] - b["start_us"]) < 0.0015
                for a, b in zip(segments, segments[1:])))
            check_owners(check, what, ranks, segments)
            check.equal(f"{what}: nothing changed, nothing saved",
                        tables["what_if"][0]["saved_us"], 0)
            worst = max(by_rank.values(), key=lambda r: r["late_us"])
            ok = (worst["rank"] == late and
                  (worst["cause_kind"], worst["cause"]) == expected)
            right += ok
            check.true(f"{what}: rank {late}, {expected}; found rank "
                       f"{worst['rank']}, {worst['cause_kind']}, "
                       f"{worst['cause']}", ok)
            if cause not in ("synchronize",):
                # By about what was planted; the host may hide a part of it.
                check.true(f"{what}: late by {worst['late_us']} of "
                           f"{plant * steps}",
                           0 < worst["late_us"] <= 1.15 * plant * steps)
            check.true(f"{what}: said",
                       any(n["id"] == "late_rank" for n in document["notes"]))
        for case in range(max(4, CASES // 2)):
            ranks, _, _, _, _ = job(5000 + case, None)
            write(folder / f"healthy{case}", ranks)
            document = path(folder / f"healthy{case}")
            check.true(f"healthy {case}: nobody is blamed",
                       not any(n["id"] == "late_rank"
                               for n in document["notes"]))
        check_pipelines(check, folder)
    print(f"{right} of {CASES} late ranks with their cause")
    check.finish()


main()
