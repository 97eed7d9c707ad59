#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the traces of a training job with tensor, pipeline and data parallel
groups, one per rank, and the truth about its collectives.

usage: job.py -o DIR --tp 2 --pp 2 --dp 2 [--steps 4 --offset-us 5000
       --drift-ppm 20 --straggler 3 --cause compute|launch --lose 2
       --no-sequence --experts --pad-mb 20]

DIR/rank<N>.json.gz are the traces. DIR/job.truth.json.gz holds the clock of
every rank, the straggler, and for every collective its members, their true
start and duration, and which of them were left out of the traces. Same
arguments, same bytes. Rank = (stage * dp + replica) * tp + part.
"""
import argparse
import gzip
import json
import pathlib
import random

from machine import HOST_PID, Kernel, Micros, Rank
from ranks import run_together
from training import Collective
from transformer import ADD, NAMES, elementwise

TP_STREAM, PP_STREAM, DP_STREAM = 20, 24, 28
TRANSFER_GB_S = 180.0
KERNELS = {"allreduce": "AllReduce_Sum_bf16", "_allgather_base": "AllGather",
           "_reduce_scatter_base": "ReduceScatter_Sum_bf16",
           "all_to_allv": "SendRecv", "send": "SendRecv", "recv": "SendRecv",
           "broadcast": "Broadcast", "barrier": "AllReduce_Sum_f32"}


class Group:
    def __init__(self, name, description, ranks):
        self.name, self.description, self.ranks = name, description, ranks


class Member:
    """One rank of the job with its groups and the count of its calls."""

    def __init__(self, job, number):
        self.job, self.number = job, number
        a = job.args
        self.part = number % a.tp
        self.replica = number // a.tp % a.dp
        self.stage = number // (a.tp * a.dp)
        self.rank = Rank(number, job.world, a.seed, stacks=False, shapes=False)
        if number > 0:
            draw = self.rank.random.uniform
            self.rank.offset_ns = int(draw(-1, 1) * a.offset_us * 1000)
            self.rank.drift_ppm = draw(-1, 1) * a.drift_ppm
        self.step = -1
        self.sequences = {}
        self.groups = {g.description: g for g in job.groups
                       if number in g.ranks}

    @property
    def slow(self):
        return (self.number == self.job.args.straggler or
                (self.number, self.step) in self.job.late)

    def compute(self, op, dur_ns):
        """A kernel below an op; the straggler's matrix products are slow."""
        if self.slow and op == "aten::mm" and self.job.args.cause == "compute":
            dur_ns = int(dur_ns * self.job.args.slowdown)
        with self.rank.op(op):
            self.rank.launch(Kernel(NAMES["gemm"].format("nn", 128), dur_ns))

    def call(self, kind, elements, group, stream, dtype="BFloat16",
             peer=None, splits=None, overlap=False):
        """A collective or transfer; a generator."""
        rank, group = self.rank, self.groups[group]
        n = len(group.ranks)
        key = (group.name, kind in ("send", "recv"))
        sequence = self.sequences[key] = self.sequences.get(key, 0) + 1
        size = {"BFloat16": 2, "Float": 4, "Byte": 1}[dtype]
        gathers = kind == "_allgather_base"
        scatters = kind == "_reduce_scatter_base"
        facts = {"Collective name": kind,
                 "In msg nelems": elements // n if gathers else elements,
                 "Out msg nelems": elements // n if scatters else elements,
                 "Group size": n, "dtype": dtype,
                 "In split size": str(splits or []),
                 "Out split size": "[]", "Process Group Name": group.name,
                 "Process Group Description": group.description,
                 "Process Group Ranks": str(group.ranks)}
        if not self.job.args.no_sequence:
            facts["Seq"] = sequence
        # The meeting of a transfer is told by its ends and their count.
        meeting, members = (group.name, kind), group.ranks
        if kind == "send":
            facts["Dst Rank"] = peer
            meeting, members = (self.number, peer), [self.number, peer]
        elif kind == "recv":
            facts["Src Rank"] = peer
            meeting, members = (peer, self.number), [peer, self.number]
        if kind in ("send", "recv"):
            count = self.sequences.setdefault(meeting, 0)
            self.sequences[meeting] += 1
        else:
            count = sequence
        rank.wait_stream(stream, 7)
        with rank.op(f"c10d::{kind.strip('_')}_", host_ns=6000):
            with rank.op("record_param_comms", extra=facts):
                correlation = rank.next("correlation")
                called = rank.api("cudaLaunchKernelExC", correlation,
                                  flow=True)
                arrived = rank.ready(stream, called)
                kernel = Kernel(NAMES["nccl"].format(KERNELS[kind]), 0, stream,
                                (16, 1, 1), (544, 1, 1), args=facts)
                transfer = 9000 + int(elements * size / TRANSFER_GB_S)
                held = []
                jitter = int(rank.random.uniform(0, 1) *
                             self.job.args.jitter_us * 1000)
                yield Collective(meeting, count, arrived, transfer,
                                 held.append, len(members), jitter)
                rank.run(kernel, correlation, called, arrived, held[0])
                self.job.record(meeting, count, group, kind, sequence,
                                elements * size, self, arrived,
                                held[0] - arrived, len(rank.events) - 2)
        if not overlap:
            rank.wait_stream(7, stream)

    def layer(self, backward):
        factor = 2 if backward else 1
        hidden = self.job.args.hidden
        elements = 512 * hidden
        for _ in range(2):
            self.compute("aten::mm", factor * 22000)
            yield from self.call("allreduce", elements, "tp", TP_STREAM)
        if self.job.args.experts:
            n = len(self.groups["dp"].ranks)
            # The first expert is popular.
            splits = [elements // n + (elements // (2 * n) if i == 0 else
                                       -elements // (2 * n * max(n - 1, 1)))
                      for i in range(n)]
            if self.replica == 0:
                splits = [2 * s for s in splits]
            yield from self.call("all_to_allv", sum(splits), "dp", DP_STREAM,
                                 splits=splits)
        elementwise(self.rank, "aten::add", [(512, hidden)] * 2,
                    ADD)

    def micro_batch(self, backward):
        a = self.job.args
        step = a.tp * a.dp
        before = self.number + (step if backward else -step)
        after = self.number - (step if backward else -step)
        elements = 512 * a.hidden
        if 0 <= before < self.job.world:
            yield from self.call("recv", elements, "pp", PP_STREAM, peer=before)
        if self.slow and a.cause == "launch":
            self.rank.synchronize()
            with self.rank.op("aten::_local_scalar_dense", host_ns=a.delay_ns):
                pass
        for _ in range(a.layers):
            yield from self.layer(backward)
        if 0 <= after < self.job.world:
            yield from self.call("send", elements, "pp", PP_STREAM, peer=after)

    def run(self):
        a = self.job.args
        weights = a.layers * a.hidden * a.hidden
        yield from self.call("broadcast", 1024, "world", DP_STREAM, "Float")
        for number in range(a.steps):
            self.rank.labels = {"step": number}
            self.step = number
            with self.rank.annotation(f"ProfilerStep#{number}"):
                for backward in (False, True):
                    for _ in range(a.micro_batches):
                        yield from self.micro_batch(backward)
                yield from self.call("_reduce_scatter_base", weights, "dp",
                                     DP_STREAM)
                for _ in range(2):  # gradient norm, overflow check
                    yield from self.call("allreduce", 1, "mp", DP_STREAM,
                                         "Float")
                self.compute("aten::_fused_adamw_", 60000)
                yield from self.call("_allgather_base", weights, "dp",
                                     DP_STREAM)
                yield from self.call("barrier", 1, "world", DP_STREAM, "Byte")
                self.rank.synchronize()


class Job:
    def __init__(self, args):
        self.args = args
        a = args
        self.late = {tuple(map(int, item.split("@")))
                     for item in a.late.split(",") if item}
        self.world = a.tp * a.pp * a.dp
        number = lambda stage, replica, part: \
            (stage * a.dp + replica) * a.tp + part
        rows = [("world", [list(range(self.world))]),
                ("tp", [[number(s, r, p) for p in range(a.tp)]
                        for s in range(a.pp) for r in range(a.dp)]),
                ("pp", [[number(s, r, p) for s in range(a.pp)]
                        for r in range(a.dp) for p in range(a.tp)]),
                ("dp", [[number(s, r, p) for r in range(a.dp)]
                        for s in range(a.pp) for p in range(a.tp)]),
                ("mp", [[number(s, r, p) for s in range(a.pp)
                         for p in range(a.tp)] for r in range(a.dp)])]
        self.groups = []
        for description, lists in rows:
            for ranks in lists:
                self.groups.append(Group(str(len(self.groups)), description,
                                         ranks))
        self.calls = {}
        self.members = [Member(self, n) for n in range(self.world)]

    def record(self, meeting, count, group, kind, sequence, size, member,
               start, dur, event):
        call = self.calls.setdefault((meeting, count), {
            "group": group.name, "ranks": group.ranks, "collective": kind,
            "sequence": sequence, "bytes": size, "members": {}, "lost": []})
        call["members"][member.number] = [start, dur, event]

    def lose(self):
        """Takes single collectives out of the traces, not the first or last
        of their group on a rank."""
        draw = random.Random(self.args.seed)
        inner = [key for key, call in self.calls.items()
                 if call["collective"] in ("allreduce", "_allgather_base")
                 and 2 < call["sequence"] < 0.8 * max(
                     c["sequence"] for c in self.calls.values()
                     if c["group"] == call["group"])]
        for key in draw.sample(sorted(inner, key=str), self.args.lose):
            call = self.calls[key]
            rank = draw.choice(sorted(call["members"]))
            events = self.members[rank].rank.events
            event = call["members"][rank][2]
            assert events[event]["cat"] == "kernel", events[event]
            events[event] = None
            events[event + 1] = None
            call["lost"].append(rank)

    def write(self):
        out = self.args.output
        out.mkdir(parents=True, exist_ok=True)
        filler = make_filler(self.args.pad_mb)
        for member in self.members:
            rank = member.rank
            rank.events = [e for e in rank.events if e is not None]
            groups = [{"pg_name": g.name, "pg_desc": g.description,
                       "backend_config": "cuda:nccl", "pg_size": len(g.ranks),
                       "ranks": g.ranks} for g in member.groups.values()]
            path = out / f"rank{rank.rank}.json.gz"
            write_trace(rank, groups, path, filler)
        truth = {
            "world": self.world,
            "straggler": {"rank": self.args.straggler,
                          "cause": self.args.cause,
                          "op": {"compute": "aten::mm", "launch":
                                 "aten::_local_scalar_dense"}[self.args.cause]}
            if self.args.straggler >= 0 else None,
            "clocks": [{"rank": m.number, "offset_ns": m.rank.offset_ns,
                        "drift_ppm": m.rank.drift_ppm} for m in self.members],
            "calls": [{**call, "members": {str(r): m[:2] for r, m in
                                           sorted(call["members"].items())}}
                      for call in self.calls.values()]}
        with gzip.GzipFile(out / "job.truth.json.gz", "wb", 9, mtime=0) as f:
            f.write(json.dumps(truth, separators=(",", ":")).encode() + b"\n")


def make_filler(megabytes):
    """Host events of a thread of its own, compressed once for all ranks."""
    if megabytes <= 0:
        return b""
    lines, size, t = [], 0, 1_000_000
    draw = random.Random(7)
    while size < megabytes * 1e6:
        dur = draw.randrange(400, 900)
        event = {"ph": "X", "cat": "cpu_op", "name": draw.choice(
                     ["aten::empty", "aten::view", "aten::as_strided",
                      "aten::slice", "aten::select", "detach"]),
                 "pid": HOST_PID, "tid": 99, "ts": Micros(t),
                 "dur": Micros(dur), "args": {"External id": 9_000_000 +
                                              len(lines)}}
        text = Micros.MARK.sub(r"\1", json.dumps(
            event, separators=(",", ":"), default=Micros.text)) + ",\n"
        lines.append(text)
        size += len(text)
        t += dur + draw.randrange(100, 300)
    return gzip.compress("".join(lines).encode(), 6, mtime=0)


def write_trace(rank, groups, path, filler):
    """A gzip file of three members: head, filler, events."""
    head = json.dumps(rank.document(groups))[:-1] + ', "traceEvents": [\n'
    body = []
    for event in rank.events:
        text = json.dumps(event, separators=(",", ":"), default=Micros.text)
        body.append(Micros.MARK.sub(r"\1", text))
    text = ",\n".join(body) + "\n]}\n"
    path.write_bytes(gzip.compress(head.encode(), 6, mtime=0) + filler +
                     gzip.compress(text.encode(), 6, mtime=0))


def arguments():
    ap = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("-o", "--output", type=pathlib.Path, required=True)
    ap.add_argument("--tp", type=int, default=2)
    ap.add_argument("--pp", type=int, default=2)
    ap.add_argument("--dp", type=int, default=2)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--steps", type=int, default=4)
    ap.add_argument("--micro-batches", type=int, default=2)
    ap.add_argument("--layers", type=int, default=2, help="per stage")
    ap.add_argument("--hidden", type=int, default=2048)
    ap.add_argument("--experts", action="store_true",
                    help="all-to-all in every layer")
    ap.add_argument("--offset-us", type=float, default=0,
                    help="clocks differ by up to this")
    ap.add_argument("--drift-ppm", type=float, default=0,
                    help="clocks run apart by up to this")
    ap.add_argument("--jitter-us", type=float, default=0.3,
                    help="members of a collective end apart by up to this")
    ap.add_argument("--straggler", type=int, default=-1, help="rank")
    ap.add_argument("--late", default="",
                    help="RANK@STEP,...: stragglers of single steps")
    ap.add_argument("--cause", choices=["compute", "launch"],
                    default="compute")
    ap.add_argument("--slowdown", type=float, default=1.6,
                    help="of its matrix products")
    ap.add_argument("--delay-ns", type=int, default=120_000,
                    help="of its launches, per micro-batch")
    ap.add_argument("--lose", type=int, default=0,
                    help="collectives to take out of one trace each")
    ap.add_argument("--no-sequence", action="store_true",
                    help="write no sequence numbers")
    ap.add_argument("--pad-mb", type=float, default=0,
                    help="host events to make every trace this long")
    return ap.parse_args()


def main():
    job = Job(arguments())
    run_together([member.run() for member in job.members])
    if job.args.lose:
        job.lose()
    job.write()


main()
