#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verdicts about several ranks, devices and steps on made cases with a truth:
who is late, what was lost, what a device does in the mean, how long a step
takes. Cases are many shapes of the same mistake, by seeds."""
import json
import pathlib
import random

from common import Checks, lamina, report, temporary

SEND_RECV = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)"
ALL_TO_ALL = "ncclDevKernel_AllToAll_RING(ncclWorkElem)"
ALL_REDUCE = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"
BROADCAST = "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)"


def us(ns):
    return ns / 1000


class Rank:
    """Events of one rank: gemms, and collectives of all ranks."""

    def __init__(self, rank, world, process=0):
        self.rank, self.world, self.process = rank, world, process
        self.events, self.number, self.time = [], 0, 0

    def event(self, category, name, start, dur, pid, tid, **args):
        self.events.append({"ph": "X", "cat": category, "name": name,
                            "pid": pid, "tid": tid, "ts": us(start),
                            "dur": us(dur), "args": args})

    def launch(self, name, start, dur, category="kernel", around=None,
               host=None, stream=7, **args):
        """A device event with its call, and a range or op around the call."""
        self.number += 1
        pid, device = 100 + self.process, self.process
        at = start - 8000 if host is None else host
        if around:
            self.event(around[0], around[1], at - 1000, 5000, pid, pid)
        self.event("cuda_runtime", "cudaLaunchKernel", at, 2000, pid, pid,
                   correlation=self.number)
        self.event(category, name, start, dur, device, stream, device=device,
                   stream=stream, correlation=self.number, **args)

    def write(self, path):
        path.write_text(json.dumps({
            "distributedInfo": {"rank": self.rank, "world_size": self.world},
            "traceEvents": self.events}))


def ranks(folder):
    document = json.loads(lamina("ranks", folder, "--format", "json").stdout)
    return document["tables"], document["notes"]


def note(notes, name):
    return next((n["text"] for n in notes if n["id"] == name), "")


def make_job(seed, late, kernel, around, folder, world=8, calls=12,
             jitter=40_000, end_apart=1000):
    """Ranks compute and meet; those of `late` compute longer. Returns what the
    others wait in all."""
    rng = random.Random(seed)
    job = [Rank(r, world) for r in range(world)]
    clock = [100_000] * world
    waited = 0
    for _ in range(calls):
        starts = []
        for r, rank in enumerate(job):
            work = 1_000_000 + rng.randrange(jitter)
            if r in late:
                work += 900_000 + rng.randrange(30_000)
            rank.launch("volta_sgemm_128x64_nn", clock[r], work,
                        around=("cpu_op", "aten::mm"))
            starts.append(clock[r] + work + 10_000)
        end = max(starts) + 200_000
        for r, rank in enumerate(job):
            finish = end + rng.randrange(end_apart)
            rank.launch(kernel, starts[r], finish - starts[r], around=around,
                        stream=20)
            waited += max(starts) - starts[r]
            clock[r] = finish + 20_000
    for rank in job:
        rank.write(folder / f"rank{rank.rank}.json")
    return waited


def check_stragglers(checks):
    arounds = {"annotation": ("user_annotation", "nccl:all_to_all"),
               "op": ("cpu_op", "c10d::alltoall_base_"), "nothing": None}
    for seed in range(4):
        rng = random.Random(seed)
        slow = rng.randrange(8)
        pair = sorted(rng.sample(range(8), 2))
        expected = {}
        for how, around in arounds.items():
            with temporary() as tmp:
                folder = pathlib.Path(tmp)
                waited = make_job(seed, {slow}, SEND_RECV, around, folder)
                tables, notes = ranks(folder)
                name = f"all-to-all as SendRecv, {how}, seed {seed}"
                text = note(notes, "straggler")
                checks.true(f"{name}: rank {slow} in '{text}'",
                            text.startswith(f"rank {slow} "))
                blamed = sum(round(r["blamed_wait_us"] * 1000)
                             for r in tables["stragglers"])
                waits = sum(round(r["wait_us"] * 1000)
                            for r in tables["collective_waits"]
                            if r["wait_us"] is not None)
                checks.equal(f"{name}: blame adds up", blamed, waits)
                checks.true(f"{name}: waiting of {waited} is {waits}",
                            abs(waits - waited) < waited / 50)
                expected[how] = tables["stragglers"][0]["rank"]
        with temporary() as tmp:
            folder = pathlib.Path(tmp)
            make_job(seed, {slow}, ALL_TO_ALL, None, folder)
            tables, _ = ranks(folder)
            checks.equal(f"seed {seed}: as with kernels of the true name",
                         set(expected.values()),
                         {tables["stragglers"][0]["rank"]})
        with temporary() as tmp:
            folder = pathlib.Path(tmp)
            make_job(seed, set(pair), ALL_REDUCE, None, folder)
            tables, notes = ranks(folder)
            text = note(notes, "straggler")
            checks.true(f"two late together, {pair}: '{text}'",
                        all(f"rank {r} " in text for r in pair))
            shares = sorted(tables["stragglers"],
                            key=lambda r: -r["blamed_wait_us"])[:2]
            checks.equal("two late together: both are charged",
                         sorted(r["rank"] for r in shares), pair)
            checks.true("two late together: about half each",
                        shares[1]["blamed_wait_us"] * 3 >
                        shares[0]["blamed_wait_us"])
        with temporary() as tmp:
            folder = pathlib.Path(tmp)
            make_job(seed, set(), ALL_REDUCE, None, folder, calls=40)
            _, notes = ranks(folder)
            checks.equal(f"seed {seed}: nobody late, nobody blamed",
                         note(notes, "straggler"), "")


def make_merged(seed, lost, world=4, calls=21):
    """Ranks in one file, as a merge writes them: broadcasts first, whose root
    leaves early, then all-reduces. `lost`: (rank, call) that are missing."""
    rng = random.Random(seed)
    parts = [Rank(r, world, process=r) for r in range(world)]
    time = 1_000_000
    for call in range(calls):
        broadcast = call < 3 or rng.random() < 0.3
        elements = rng.choice([512, 4096, 70_000])
        starts = [time + rng.randrange(900_000) for _ in parts]
        end = max(starts) + 50_000
        for r, part in enumerate(parts):
            finish = end + rng.randrange(3_000)
            if broadcast:  # nobody waits for the last
                finish = starts[r] + 8_000 + rng.randrange(400_000)
            if (r, call) in lost:
                continue
            args = {"Collective name": "broadcast" if broadcast else
                    "allreduce", "In msg nelems": elements,
                    "Out msg nelems": elements, "Group size": world,
                    "dtype": "Float", "Process Group Name": "0",
                    "Process Group Ranks": str(list(range(world)))}
            part.launch(BROADCAST if broadcast else ALL_REDUCE, starts[r],
                        finish - starts[r], **args)
        time = end + 500_000 + rng.randrange(2_000_000)
    return {"traceEvents": [e for p in parts for e in p.events]}


def check_losses(checks):
    for seed in range(12):
        with temporary() as tmp:
            path = pathlib.Path(tmp) / "node.json"
            path.write_text(json.dumps(make_merged(seed, set())))
            tables, notes = ranks(path)
            name = f"equal lists, seed {seed}"
            checks.equal(f"{name}: nothing lost", tables["lost_calls"], [])
            checks.equal(f"{name}: no note", note(notes, "lost_calls"), "")
            checks.equal(f"{name}: calls of four ranks",
                         {len([w for w in tables["collective_waits"]
                               if w["id"] == c["id"]])
                          for c in tables["collectives"]}, {4})
            checks.equal(f"{name}: ranks", len(tables["ranks"]), 4)


def check_devices(checks):
    """Devices that work one after the other: each is mostly idle."""
    for devices in (2, 4):
        parts = [Rank(0, 1, process=d) for d in range(devices)]
        window = devices * 10_000_000
        for d, part in enumerate(parts):
            # All begin and end together; in between only one works.
            part.launch("volta_sgemm_128x64_nn", 100_000, 1_000_000)
            part.launch("volta_sgemm_128x64_nn", 1_100_000 + d * 10_000_000,
                        10_000_000)
            part.launch("volta_sgemm_128x64_nn", window + 1_100_000, 1_000_000)
        with temporary() as tmp:
            path = pathlib.Path(tmp) / "t.json"
            path.write_text(json.dumps(
                {"traceEvents": [e for p in parts for e in p.events]}))
            tables, notes = report(path)
            mean = {r["type"]: r["time_us"].ns for r in tables["gpu_timeline"]
                    if r["device"] == "mean"}
            name = f"{devices} devices"
            checks.equal(f"{name}: mean busy", mean["busy_time"], 12_000_000)
            checks.equal(f"{name}: mean idle", mean["idle_time"],
                         window - 10_000_000)
            checks.equal(f"{name}: parts add up", mean["computation_time"] +
                         mean["exposed_comm_time"] +
                         mean["exposed_memcpy_time"] + mean["idle_time"],
                         mean["total_time"])
            for n in notes:
                if n.get("worth_us") is not None:
                    checks.true(f"{name}: '{n['text']}' fits the window",
                                float(n["worth_us"]) * 1000 <= window)


def check_steps(checks):
    """The device runs far behind the host: windows of steps overlap."""
    for late in (0, 3_000_000, 12_000_000):
        rank = Rank(0, 1)
        period, steps, per_step = 5_000_000, 6, 4
        for step in range(steps):
            begin = step * period
            rank.event("Operator" if late else "user_annotation",
                       f"ProfilerStep#{step + 3}", begin, period - 1000, 100,
                       100)
            for k in range(per_step):
                # The last kernel of a step runs on a slow second stream.
                slow = late if k == per_step - 1 else 0
                start = begin + 1_000_000 + k * 800_000
                rank.launch("volta_sgemm_128x64_nn", start + slow, 700_000,
                            host=start - 500_000, stream=9 if slow else 7)
        with temporary() as tmp:
            path = pathlib.Path(tmp) / "t.json"
            path.write_text(json.dumps({"traceEvents": rank.events}))
            tables, _ = report(path)
            rows = [r for r in tables["steps"] if r["step"] is not None]
            name = f"steps, {late} ns behind"
            checks.equal(f"{name}: number of steps",
                         [r["step"] for r in rows], list(range(3, 3 + steps)))
            checks.equal(f"{name}: periods",
                         [r["period_us"].ns for r in rows[:-1]],
                         [period] * (steps - 1))
            expected = max(0, 3 * 800_000 + 700_000 + late - period)
            checks.equal(f"{name}: overlap",
                         {r["overlap_us"].ns for r in rows[:-1]}, {expected})
            idle = [r["time_us"].ns for r in tables["gpu_timeline"]
                    if r["type"] == "idle_time"][0]
            checks.equal(f"{name}: idle adds up",
                         sum(r["idle_us"].ns for r in tables["steps"]), idle)


def main():
    checks = Checks()
    check_stragglers(checks)
    check_losses(checks)
    check_devices(checks)
    check_steps(checks)
    checks.finish()


main()
