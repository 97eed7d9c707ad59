#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina annotate against a planted map: the replays of a sample and of three
real pairs with kernels dropped, exchanged, renamed and inserted.

Every noisy copy is a launch of its own in one trace, so that all of them are
annotated by one run. No clock, fixed seeds.
"""
import collections
import gzip
import json
import pathlib
import random

from common import ROOT, Checks, is_added, lamina, shared, temporary

# Chance that a kernel is deleted (of each seed), that one is inserted before it, share of
# neighbours exchanged, chance that a GEMM is renamed; least share right.
ROWS = [((0, 0, .02, 0), 1.0),
        ((.01, 0, .02, 0), .994),
        ((.01, .01, .02, .1), .985),
        ((.05, .05, .05, .3), .955),
        (((.05, .1, .2), 0, 0, 0), .99)]
# And of the inserted kernels with a borrowed name: most that may get an op.
REAL_LIMITS = {"rows": [least for _, least in ROWS], "borrowed": .20}
# The same of the sample, whose capture knows no names of kernels, and what is
# else less there: few kernels, of which one that is lost and one that is
# inserted are often of one name.
SAMPLE = {"rows": [1.0, .99, .985, .8, .99], "borrowed": .3}
SEEDS = 3
REAL = ["vllm-decode-full", "vllm-prefilldecode-piecewise",
        "xdit-flux1-sage"]
# Least share right by level; nothing wrong above "sure".
LEVELS = {"exact": 1.0, "fifo": 1.0, "sure": .994, "gap-fifo": .75,
          "family": .75, "lcs": .40}
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}


def is_gemm(name):
    return name.startswith("Cijk_") or "matmul_ogs" in name


class Replay:
    """The launches of one step with their kernels and the steps' ranges."""

    def __init__(self, path):
        document = json.loads(gzip.decompress(path.read_bytes()))
        events = document.pop("traceEvents")
        self.rest = document
        self.meta = [e for e in events if e.get("ph") == "M"]
        launches = [e for e in events if "GraphLaunch" in str(e.get("name"))]
        if path.parent.name == "xdit-flux1-sage":
            launches = launches[:1]
        self.launches = launches
        wanted = {e["args"]["correlation"] for e in launches}
        self.work = {c: [] for c in wanted}
        for e in events:
            if e.get("ph") == "X" and e.get("cat") in DEVICE and \
                    e["args"].get("correlation") in wanted:
                self.work[e["args"]["correlation"]].append(e)
        for list_ in self.work.values():
            list_.sort(key=lambda e: e["ts"])
        self.ranges = [e for e in events
                       if e.get("cat") == "user_annotation"
                       and e["name"].startswith("execute_")]
        self.begin = min(e["ts"] for e in self.ranges + launches)
        self.length = 10 + max(
            e["ts"] + e["dur"] for e in self.ranges + launches + sum(
                self.work.values(), [])) - self.begin


def noisy(work, noise, rng, names):
    """A sequence of (name, category, planted position or None)."""
    d, i, s, r = noise
    sequence = [[e["name"], e["cat"], k] for k, e in enumerate(work)]
    for _ in range(round(s * len(sequence))):
        k = rng.randrange(max(1, len(sequence) - 1))
        if k + 1 < len(sequence) and sequence[k][0] != sequence[k + 1][0]:
            sequence[k], sequence[k + 1] = sequence[k + 1], sequence[k]
    out = []
    for name, cat, k in sequence:
        if rng.random() < i:
            other = rng.choice(
                [("fillBufferAligned", "gpu_memset"),
                 ("copyBuffer", "gpu_memcpy")] + names)
            out.append((*other, None))
        if rng.random() < d:
            continue
        if is_gemm(name) and rng.random() < r:
            name += f"_alt{rng.randrange(3)}"
        out.append((name, cat, k))
    return out


def build(replay, rng, in_order):
    """All noisy copies in one document, and by the number of the kernel event:
    the row of ROWS, the original correlation and the planted position."""
    kernels = sorted({(e["name"], e["cat"])
                      for list_ in replay.work.values() for e in list_})
    names = rng.sample(kernels, 3)
    events = list(replay.meta)
    planted = {}
    copy = 0
    for row, (noise, _) in enumerate(ROWS):
        for seed in range(SEEDS):
            shift = copy * replay.length
            copy += 1
            for e in replay.ranges:
                events.append({**e, "ts": round(e["ts"] - replay.begin + shift,
                                                3)})
            for launch in replay.launches:
                old = launch["args"]["correlation"]
                new = copy * 1000000 + old % 1000000
                events.append(
                    {**launch, "ts": round(launch["ts"] - replay.begin + shift,
                                           3),
                     "args": {**launch["args"], "correlation": new}})
                work = replay.work[old]
                if not work:
                    continue
                d, i, s, r = noise
                d = d[seed] if isinstance(d, tuple) else d
                s = 0 if in_order else s
                sequence = noisy(work, (d, i, s, r), rng, names)
                # Ids of nodes would say what was exchanged.
                args = {key: value for key, value in work[0]["args"].items()
                        if key != "graph node id"}
                first, last = work[0]["ts"], work[-1]["ts"]
                gap = (last - first + 1) / (len(sequence) + 1)
                for k, (name, cat, place) in enumerate(sequence):
                    planted[len(events)] = (row, old, place,
                                            (name, cat) in names)
                    events.append(
                        {**work[0], "name": name, "cat": cat,
                         "ts": round(first - replay.begin + shift + k * gap,
                                     3),
                         "dur": round(gap / 2, 3),
                         "args": {**args, "correlation": new}})
    return {**replay.rest, "traceEvents": events}, planted


def annotated(path, source, out):
    lamina("annotate", path, "--from", source, "--trace", out)
    return [e for e in json.loads(out.read_bytes())["traceEvents"]
            if not is_added(e)]


def place(event):
    return event["args"].get("lamina_source")


def measure(checks, pairs, limits):
    """All pairs (replay, capture) with noise, counted together. Captures without
    names of kernels know places alone, so nothing is exchanged in theirs."""
    levels = collections.Counter()
    right_at = collections.Counter()
    rows = collections.Counter()
    right_in = collections.Counter()
    foreign = foreign_wrong = 0
    borrowed = collections.Counter()
    borrowed_named = collections.Counter()
    with temporary() as folder:
        folder = pathlib.Path(folder)
        for number, (path, capture) in enumerate(pairs):
            replay = Replay(path)
            # The map without noise.
            clean = [*replay.meta, *replay.ranges, *replay.launches,
                     *sum(replay.work.values(), [])]
            (folder / "clean.json").write_text(
                json.dumps({**replay.rest, "traceEvents": clean}))
            truth = collections.defaultdict(list)
            for e in annotated(folder / "clean.json", capture,
                               folder / "clean_out.json"):
                if e.get("cat") in DEVICE:
                    truth[e["args"]["correlation"]].append(place(e))
            document, planted = build(replay, random.Random(7 + number),
                                      limits is SAMPLE)
            (folder / "noisy.json").write_text(json.dumps(document))
            after = annotated(folder / "noisy.json", capture,
                              folder / "noisy_out.json")
            for uid, (row, launch, k, is_borrowed) in planted.items():
                args = after[uid]["args"]
                level = args["lamina_evidence"]
                if k is None:
                    named = "lamina_op" in args
                    if is_borrowed:
                        borrowed[row] += 1
                        borrowed_named[row] += named
                    else:
                        foreign += 1
                        foreign_wrong += named
                    continue
                ok = place(after[uid]) == truth[launch][k]
                rows[row] += 1
                right_in[row] += ok
                levels[level] += 1
                right_at[level] += ok
    for row, (noise, _) in enumerate(ROWS):
        share = right_in[row] / rows[row]
        wanted = limits["rows"][row]
        print(f"d, i, s, r = {noise}: {100 * share:.2f} % of {rows[row]} right")
        checks.true(f"noise {noise}: {share:.4f} >= {wanted}",
                    share >= wanted)
    for level, count in sorted(levels.items()):
        share = right_at[level] / count
        print(f"{level}: {100 * share:.2f} % of {count} right")
        checks.true(f"{level}: {share:.4f} of {count}",
                    share >= limits.get(level, LEVELS.get(level, 0)))
    print(f"{foreign} inserted copies and fills, {foreign_wrong} have an op")
    checks.equal("inserted copies and fills without an op", foreign_wrong, 0)
    for row, count in borrowed.items():
        share = borrowed_named[row] / count
        print(f"d, i, s, r = {ROWS[row][0]}: {borrowed_named[row]} of {count} "
              "inserted kernels with a borrowed name have an op")
        checks.true(f"borrowed names: {share:.3f}", share <= limits["borrowed"])


def check_other_graph(checks):
    """One replay of a graph beside many of another, whose nodes stand in another
    order: what they look like says nothing of it."""
    graphs = ROOT / "samples/graphs"
    document = json.loads(gzip.decompress(
        (graphs / "replay.json.gz").read_bytes()))
    work = collections.defaultdict(list)
    for e in document["traceEvents"]:
        if e.get("cat") == "kernel":
            work[e["args"]["correlation"]].append(e)
    for own in (True, False):  # whether the nodes have numbers
        first, *rest = sorted(work)
        for one in rest:
            kernels = sorted(work[one], key=lambda e: e["ts"])
            for a, b in zip(kernels, kernels[1:]):
                if "rotary" in a["name"] and "reshape_and" in b["name"]:
                    a["name"], b["name"] = b["name"], a["name"]
            for e in kernels:
                e["args"]["graph id"] = 9
        if not own:
            for e in document["traceEvents"]:
                e.get("args", {}).pop("graph node id", None)
        with temporary() as folder:
            path = pathlib.Path(folder) / "other.json"
            path.write_text(json.dumps(document))
            found = [e["args"] for e in annotated(
                path, graphs / "capture.json.gz", pathlib.Path(folder) / "out")
                if e.get("cat") == "kernel" and
                e["args"]["correlation"] == first and "rotary" in e["name"]]
        checks.true(f"numbered {own}: rotary kernels", len(found) >= 4)
        checks.equal(f"numbered {own}: no fact of another graph's order",
                     [a["lamina_op"] for a in found
                      if a.get("lamina_op", "vllm::rotary_embedding") !=
                      "vllm::rotary_embedding"], [])


def main():
    checks = Checks()
    check_other_graph(checks)
    graphs = ROOT / "samples/graphs"
    measure(checks, [(graphs / "replay.json.gz", graphs / "capture.json.gz")],
            SAMPLE)
    root = shared() / "traces"
    measure(checks, [(root / name / "replay.json.gz", root / name / "capture")
                     for name in REAL], REAL_LIMITS)
    checks.finish()


main()
