# SPDX-License-Identifier: Apache-2.0
"""Healthy jobs of several ranks into which faults are put: data parallel,
experts, pipelines. As in lab.py noise is drawn by the key of an event, so that
a job and its twin differ by the fault alone."""
import contextlib

from lab import COMM, Lab, kernel, norm, product
from machine import Kernel
from ranks import run_together
from training import Collective
from transformer import NAMES, roofline_ns

RECEIVE, SEND = 24, 25
SLOW = 1  # the rank with the fault


class JobRun:
    """The ranks of a job, to be written into a folder."""

    def __init__(self, ranks):
        self.ranks = ranks

    @property
    def events(self):
        return [event for rank in self.ranks for event in rank.events]

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        for rank in self.ranks:
            rank.write(folder / f"rank{rank.rank}.json.gz")


def together(lab, meeting, count, op, name, stream, transfer, facts, size,
             waits_for=7):
    """A collective or transfer; a generator."""
    lab.wait_stream(stream, waits_for)
    with lab.op(f"c10d::{op}", [(1,)], host_ns=6000):
        with lab.op("record_param_comms", [(1,)], extra=facts):
            correlation = lab.next("correlation")
            called = lab.api("cudaLaunchKernelExC", correlation, flow=True)
            arrived = lab.ready(stream, called)
            work = Kernel(NAMES["nccl"].format(name), 0, stream, (16, 1, 1),
                          (544, 1, 1), args=facts, tags=lab.tags())
            held = []
            yield Collective(meeting, count, arrived, int(transfer),
                             held.append, size)
            lab.run(work, correlation, called, arrived, held[0])


def facts_of(kind, world, taken, given, sequence, group="0", **more):
    return {"Collective name": kind, "In msg nelems": int(taken),
            "Out msg nelems": int(given), "Group size": len(world),
            "dtype": "BFloat16", "In split size": "[]",
            "Out split size": "[]", "Process Group Name": group,
            "Process Group Description": "default_pg",
            "Process Group Ranks": str(list(world)), "Seq": sequence, **more}


class Member:
    """One rank of a job."""

    def __init__(self, plan, lab):
        self.plan, self.lab = plan, lab
        self.world = list(range(plan.world))
        self.calls = {}
        self.slow = lab.rank == SLOW % plan.world

    def next(self, key):
        self.calls[key] = self.calls.get(key, 0) + 1
        return self.calls[key]

    def size(self, fault):
        return self.plan.size(fault) if self.slow else 0

    def all_reduce(self, count):
        number = self.next("all")
        # Every eighth rank: each is on a node of its own.
        apart = 8 if self.plan.size("strided_groups") else 1
        facts = facts_of("allreduce", [apart * r for r in self.world], count,
                         count, number)
        rate, ranks = 400.0, len(self.world)
        if slower := self.plan.size("slow_link") or \
                self.plan.size("fair_link"):
            rate = 450 / slower * ranks / (2 * (ranks - 1))
        if self.plan.size("pcie_path") or apart > 1:  # what PCIe of this device gives
            rate = 50 * ranks / (2 * (ranks - 1))
        return together(self.lab, "0", number, "allreduce_",
                        "AllReduce_Sum_bf16", COMM,
                        12000 + 2 * count / rate, facts, ranks)

    def exchange(self, taken, given, most):
        number = self.next("all")
        facts = facts_of("all_to_allv", self.world, taken, given, number)
        return together(self.lab, "0", number, "alltoall_base_", "SendRecv",
                        COMM, 9000 + 2 * most / 400.0, facts, len(self.world))

    def transfer(self, source, target, count):
        kind = "send" if source == self.lab.rank else "recv"
        number = self.next((source, target))
        facts = facts_of(kind, self.world, count, count,
                         self.next("peer"), group="pp",
                         **{"Dst Rank" if kind == "send" else "Src Rank":
                            target if kind == "send" else source})
        stream = SEND if kind == "send" else RECEIVE
        return together(self.lab, (source, target), number, kind, "SendRecv",
                        stream, 9000 + 2 * count / 400.0, facts, 2,
                        7 if kind == "send" else stream)

    # -- parts of a step ----------------------------------------------------

    def blocks(self, tokens, layers, backward=False):
        """Layers of dense products; yields after each."""
        lab, plan = self.lab, self.plan
        h, f = plan.hidden, plan.ffn
        for number in reversed(range(layers)) if backward else range(layers):
            lab.labels["layer"] = number
            if backward and self.size("rank_late_host"):
                lab.busy(self.size("rank_late_host"))
            if backward and plan.size("rank_jitter"):
                turn = (plan.seed + lab.labels["step"]) % plan.world
                for _ in range(plan.size("rank_jitter") *
                               (turn == lab.rank)):
                    product(lab, tokens, h, h)
            for _ in range(2 if backward else 1):
                norm(lab, tokens, h, backward)
                for n, k in ((3 * h, h), (h, h), (2 * f, h), (h, f)):
                    product(lab, tokens, n, k)
            yield number
        lab.labels.pop("layer", None)

    def optimizer(self):
        plan, lab = self.plan, self.lab
        count = plan.layers * (4 * plan.hidden ** 2 +
                               3 * plan.hidden * plan.ffn)
        with lab.annotation("Optimizer.step#AdamW.step"):
            for _ in range(4):
                kernel(lab, "aten::_fused_adamw_", [(count // 4,)],
                       NAMES["adam"], roofline_ns(0, 7 * count / 2), 512)

    def dense(self):
        plan, lab = self.plan, self.lab
        tokens = plan.tokens
        if more := self.size("rank_more_data"):
            tokens = int(tokens * (1 + more)) // 64 * 64 + 64
        bucket = 4 * plan.hidden ** 2 + 3 * plan.hidden * plan.ffn
        for _ in self.blocks(tokens, plan.layers):
            pass
        for _ in self.blocks(tokens, plan.layers, backward=True):
            yield from self.all_reduce(bucket)
        lab.wait_stream(7, COMM)
        self.optimizer()

    def experts(self):
        """A dispatch, the experts and a combine per layer."""
        plan, lab = self.plan, self.lab
        h, f, world = plan.hidden, plan.ffn, plan.world
        plan.tokens = max(plan.tokens, 8192)
        shares = [1.0] * world
        if more := plan.size("moe_imbalance"):
            # The others share what is left.
            shares = [(world - 1 - more) / (world - 1)] * world
            shares[SLOW % world] = 1 + more
        own = shares[lab.rank]
        tokens = plan.tokens
        received = int(tokens * own) // 64 * 64 + 64
        most = int(tokens * max(shares))
        for part in (1, 2):  # forward, and twice the work backward
            for number in range(plan.layers):
                lab.labels["layer"] = number
                for _ in range(part):
                    norm(lab, tokens, h)
                    for n, k in ((3 * h, h), (h, h)):
                        product(lab, tokens, n, k)
                yield from self.exchange(tokens * 64, received * 64, most * 64)
                lab.wait_stream(7, COMM)
                for _ in range(part):
                    if "hot_expert" in self.plan.faults or \
                            "hot_expert" in getattr(self.plan, "base", {}):
                        # One kernel for all of them, which says no tokens.
                        more = 1 + self.size("hot_expert")
                        kernel(lab, "vllm::fused_moe", [(tokens, h)],
                               "fused_moe_kernel", more * roofline_ns(
                                   6 * tokens * f * h, 2 * tokens * h, 0.6))
                        continue
                    for n, k in ((2 * f, h), (h, f)):
                        product(lab, received, n, k)
                yield from self.exchange(received * 64, tokens * 64, most * 64)
                lab.wait_stream(7, COMM)
        lab.labels.pop("layer", None)
        self.optimizer()

    def pipeline(self):
        """All micro-batches forward, then all backward."""
        plan, lab = self.plan, self.lab
        rank, last = lab.rank, plan.world - 1
        layers = plan.layers
        if more := self.size("pipeline_uneven"):
            layers += int(more)
        micro, tokens = plan.micro, plan.tokens // plan.micro
        count = tokens * plan.hidden
        for backward in (False, True):
            before, behind = (rank - 1, rank + 1) if not backward else \
                (rank + 1, rank - 1)
            for index in range(micro):
                lab.labels["micro"] = index
                if 0 <= before <= last:
                    yield from self.transfer(before, rank, count)
                    lab.wait_stream(7, RECEIVE)
                for _ in self.blocks(tokens, layers, backward):
                    pass
                if 0 <= behind <= last:
                    yield from self.transfer(rank, behind, count)
        lab.labels.pop("micro", None)
        lab.wait_stream(7, SEND)
        self.optimizer()

    def run(self):
        plan, lab = self.plan, self.lab
        if self.slow and plan.size("rank_slow_compute"):
            factor = 1 + plan.size("rank_slow_compute")
            lab.kernel_factor = lambda work, begin: \
                1.0 if "nccl" in work.name else factor
        if self.slow and plan.size("rank_start_skew"):
            lab.busy(plan.size("rank_start_skew"))
        if noise := plan.size("rank_even_noise"):
            lab.kernel_factor = lambda work, begin: 1 + noise * (
                "nccl" not in work.name) * lab.draw("speed")
        body = {"dense": self.dense, "experts": self.experts,
                "pipeline": self.pipeline}[plan.options.get("job", "dense")]
        for number in range(plan.steps):
            lab.labels = {"step": number}
            with contextlib.ExitStack() as around:
                around.enter_context(lab.annotation(f"ProfilerStep#{number}"))
                around.enter_context(lab.frame("train.py(88): train_step"))
                lab.copy("HtoD", 8 * plan.tokens, 13)
                yield from body()
        lab.device_sync()


def job(plan, **options):
    labs = [Lab(plan.seed, rank=rank, world=plan.world, **options)
            for rank in range(plan.world)]
    run_together([Member(plan, lab).run() for lab in labs])
    return JobRun(labs)
