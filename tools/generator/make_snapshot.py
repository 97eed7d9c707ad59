#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory snapshots of a simulated caching allocator, with what is true of them.

usage: make_snapshot.py train|oom|random -o DIR [--seed N]

train: five steps of a small model with AdamW, a list that keeps the logits of
every step, and native stacks. oom: every second block is freed, then a larger
one is asked for. random: requests of all sizes on two streams. Writes
NAME.pickle and NAME.truth.json.
"""
import argparse
import json
import pathlib
import pickle
import random

MIB = 1 << 20
PY = "/home/me/project/"
TORCH = "/opt/venv/lib/python3.11/site-packages/torch/"


def frame(name, file="??", line=0):
    return {"name": name, "filename": file, "line": line}


ENGINE = [frame("torch::autograd::Engine::evaluate_function"),
          frame("torch::autograd::Engine::thread_main")]


def op(name, *python):
    return [frame("at::native::empty_cuda"),
            frame(f"at::_ops::{name}::redispatch"),
            frame(f"at::_ops::{name}::call"), *python]


class Allocator:
    """Best fit within a stream and size class, as the real one splits."""

    def __init__(self, capacity=1 << 40):
        self.capacity, self.next = capacity, 0x7F0000000000
        self.segments = []  # dicts with a list of blocks
        self.events, self.time = [], 1_700_000_000_000_000
        self.level = dict(requested=0, allocated=0, active=0, reserved=0)
        self.peak = {k: dict(bytes=0, moment=0) for k in self.level}
        self.sizes = []

    def event(self, action, address, size, stream, frames=None, **more):
        self.time += 7
        e = dict(action=action, addr=address, size=size, stream=stream,
                 time_us=self.time, compile_context="N/A", user_metadata="")
        if address is None:
            del e["addr"]
        if frames is not None:
            e["frames"] = frames
        e.update(more)
        self.events.append(e)
        for k, bytes_ in self.level.items():
            if bytes_ > self.peak[k]["bytes"]:
                self.peak[k] = dict(bytes=bytes_, moment=len(self.events))

    def alloc(self, requested, frames, stream=0):
        size = max(512, -(-requested // 512) * 512)
        small = size <= MIB
        fits = [(b["size"], b["address"], s, b) for s in self.segments
                if s["stream"] == stream and s["small"] == small
                for b in s["blocks"]
                if b["state"] == "inactive" and b["size"] >= size]
        if fits:
            _, _, segment, block = min(fits, key=lambda t: t[:2])
        else:
            total = 2 * MIB if small else \
                20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
            if self.level["reserved"] + total > self.capacity:
                self.event("oom", None, size, stream, frames,
                           device_free=self.capacity - self.level["reserved"])
                return None
            block = dict(address=self.next, size=total, state="inactive",
                         requested_size=0, frames=[])
            segment = dict(address=self.next, total_size=total, stream=stream,
                           small=small, blocks=[block])
            self.segments.append(segment)
            self.next += total + 64 * MIB
            self.level["reserved"] += total
            self.event("segment_alloc", segment["address"], total, stream,
                       frames)
        rest = block["size"] - size
        if rest >= 512 if small else rest > MIB:
            at = segment["blocks"].index(block)
            segment["blocks"].insert(at + 1, dict(
                address=block["address"] + size, size=rest, state="inactive",
                requested_size=0, frames=[]))
            block["size"] = size
        block.update(state="active_allocated", requested_size=requested,
                     frames=frames)
        self.level["requested"] += requested
        self.level["allocated"] += block["size"]
        self.level["active"] += block["size"]
        self.sizes.append(block["size"])
        self.event("alloc", block["address"], requested, stream, frames)
        return segment, block

    def free(self, handle, frames=()):
        segment, block = handle
        requested, stream = block["requested_size"], segment["stream"]
        self.level["requested"] -= requested
        self.level["allocated"] -= block["size"]
        self.event("free_requested", block["address"], requested, stream,
                   list(frames))
        self.level["active"] -= block["size"]
        self.event("free_completed", block["address"], requested, stream,
                   list(frames))
        block["state"] = "inactive"
        blocks = segment["blocks"]
        at = blocks.index(block)
        for first in (at, at - 1):  # with the next one, then the one before
            if 0 <= first and first + 1 < len(blocks) and \
                    blocks[first]["state"] == "inactive" == \
                    blocks[first + 1]["state"]:
                blocks[first]["size"] += blocks.pop(first + 1)["size"]

    def snapshot(self, annotations=()):
        segments = []
        for s in sorted(self.segments, key=lambda s: s["address"]):
            live = [b for b in s["blocks"] if b["state"] != "inactive"]
            segments.append(dict(
                device=0, address=s["address"], total_size=s["total_size"],
                allocated_size=sum(b["size"] for b in live),
                active_size=sum(b["size"] for b in live),
                requested_size=sum(b["requested_size"] for b in live),
                stream=s["stream"], segment_pool_id=(0, 0),
                segment_type="small" if s["small"] else "large",
                is_expandable=False, frames=[], blocks=s["blocks"]))
        settings = dict(PYTORCH_CUDA_ALLOC_CONF="", max_split_size=-1,
                        expandable_segments=False, roundup_power2_divisions={})
        return dict(segments=segments, device_traces=[self.events],
                    allocator_settings=settings,
                    external_annotations=list(annotations))

    def truth(self):
        free = [b["size"] for s in self.segments for b in s["blocks"]
                if b["state"] == "inactive"]
        return dict(events=len(self.events), peak=self.peak,
                    at_end=dict(self.level), block_sizes=self.sizes,
                    free_bytes=sum(free), free_ranges=len(free),
                    largest_free_bytes=max(free, default=0))


def train(_):
    a = Allocator()
    main = [frame("main", PY + "train.py", 40),
            frame("<module>", PY + "train.py", 60), frame("_start")]
    init = [frame("__init__", TORCH + "nn/modules/linear.py", 106),
            frame("__init__", PY + "model.py", 12), *main]
    forward = lambda line: [
        frame("forward", TORCH + "nn/modules/linear.py", 125),
        frame("_call_impl", TORCH + "nn/modules/module.py", 1527),
        frame("forward", PY + "model.py", line), *main]
    optim = [frame("_init_group", TORCH + "optim/adamw.py", 90),
             frame("step", TORCH + "optim/adamw.py", 180), *main]
    weights = [a.alloc(3_000_000 + 700 * k, op("empty_memory_format", *init))
               for k in range(4)]
    states, kept, annotations = [], [], []
    for step in range(5):
        annotations.append(dict(stage="START", name=f"ProfilerStep#{step}",
                                device=0, time_us=a.time + 1))
        saved = [a.alloc(5_000_000, op("linear", *forward(20 + k)))
                 for k in range(4)]
        a.free(a.alloc(1_200_000, op("gelu", *forward(30))))
        kept.append(a.alloc(1_500_000, op(
            "clone", frame("keep_logits", PY + "metrics.py", 17), *main)))
        grads = []
        for k in reversed(range(4)):
            grads.append(a.alloc(3_000_000 + 700 * k, [
                frame("at::_ops::mm::call"),
                frame("torch::autograd::AccumulateGrad::apply"), *ENGINE]))
            a.free(saved[k], ENGINE)
        if not states:
            states = [a.alloc(3_000_000 + 700 * (k % 4),
                              op("zeros_like", *optim)) for k in range(8)]
        for grad in grads:
            a.free(grad, [frame("zero_grad", TORCH + "optim/optimizer.py",
                                900), *main])
        annotations.append(dict(stage="END", name=f"ProfilerStep#{step}",
                                device=0, time_us=a.time + 1))
    assert weights and kept
    truth = a.truth()
    truth["leak"] = dict(line="metrics.py:17 keep_logits", steps=5)
    truth["categories_at_end"] = dict(
        parameter=sum(h[1]["size"] for h in weights),
        optimizer_state=sum(h[1]["size"] for h in states))
    return a.snapshot(annotations), truth


def oom(_):
    a = Allocator(400 * MIB)
    stack = op("empty_memory_format", frame("main", PY + "serve.py", 9))
    blocks = [a.alloc(9 * MIB, stack) for _ in range(40)]
    blocks = [b for b in blocks if b]
    for block in blocks[::2]:
        a.free(block)
    a.alloc(60 * MIB, stack)
    truth = a.truth()
    truth["cause"] = "fragmentation"
    return a.snapshot(), truth


def random_(seed):
    rng = random.Random(seed)
    a, live = Allocator(), []
    for _ in range(400):
        if live and rng.random() < 0.45:
            a.free(live.pop(rng.randrange(len(live))))
        else:
            size = int(2 ** rng.uniform(4, 25))
            live.append(a.alloc(size, op("empty", frame(
                "main", PY + "fuzz.py", rng.randrange(1, 9))),
                rng.choice((0, 7))))
    return a.snapshot(), a.truth()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("kind", choices=["train", "oom", "random"])
    p.add_argument("-o", "--output", type=pathlib.Path, required=True)
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    snapshot, truth = {"train": train, "oom": oom,
                       "random": random_}[args.kind](args.seed)
    args.output.mkdir(parents=True, exist_ok=True)
    path = args.output / args.kind
    path.with_suffix(".pickle").write_bytes(pickle.dumps(snapshot, protocol=4))
    path.with_suffix(".truth.json").write_text(
        json.dumps(truth, indent=1) + "\n")


main()
