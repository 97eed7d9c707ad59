#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina layers on cases whose truth is known: each stack with its layers in
every uncut pass and its number of passes. Random cases of tools/generator, with
and without noise, and the made and recorded ones of the shared folder."""
import collections
import json
import os
import pathlib
import sys

from common import ROOT, Checks, lamina, temporary

sys.path.insert(0, str(ROOT / "tools" / "generator"))
import layer_cases  # noqa: E402

CASES = 200
# Noise, and the share of the cases that must be exact.
LEVELS = [(0.0, 0.98), (0.02, 0.95)]
# Of the stacks called high or certain so many are right.
CALIBRATED = 0.99
NSYS = {
    "llama_32l_decode_graph.sqlite": [(4, 190), (32, 20)],
    "synthetic-graph-nodes.sqlite": [(6, 6)],
}


def tables(path, *args):
    return json.loads(lamina("layers", path, "--format", "json",
                             *args).stdout)["tables"]


def stacks_of(found):
    """[(layers, passes, confidence)]; layers is a tuple where uncut passes
    differ."""
    cut = {p["pass"] for p in found["passes"] if p["cut"]}
    per = collections.defaultdict(collections.Counter)
    for row in found["layers"]:
        per[row["stack"]][row["pass"]] += 1
    confidence = {s["stack"]: s["confidence"] for s in found["layer_stacks"]}
    out = []
    for stack, passes in per.items():
        sizes = {n for p, n in passes.items() if p not in cut} or \
            set(passes.values())
        out.append((min(sizes) if len(sizes) == 1 else tuple(sorted(sizes)),
                    len(passes), confidence[stack]))
    return out


def same(truth, found, at_once=False):
    """Whether the stacks are those of the truth. Two batches on two streams may
    stand in one pass."""
    left = [stack[:2] for stack in found]
    for layers, passes in truth:
        if at_once and (2 * layers, passes // 2) in left:
            left.remove((2 * layers, passes // 2))
        elif (layers, passes) in left:
            left.remove((layers, passes))
        else:
            return False
    return not left


class Confident:
    """How many of the stacks called high or certain are right."""

    def __init__(self):
        self.right = 0
        self.all = 0

    def add(self, truth, found, at_once):
        for layers, passes, confidence in found:
            if confidence not in ("high", "certain"):
                continue
            self.all += 1
            self.right += (layers, passes) in truth or (
                at_once and isinstance(layers, int) and
                (layers // 2, passes * 2) in truth)


def random_cases(checks):
    confident = Confident()
    for noise, least in LEVELS:
        by_kind = collections.defaultdict(lambda: [0, 0])
        misses = []
        with temporary() as out:
            path = pathlib.Path(out) / "trace.json"
            for seed in range(CASES):
                case, trace = layer_cases.case(seed, noise)
                path.write_text(json.dumps(trace))
                found = stacks_of(tables(path))
                at_once = case.kind == "two streams"
                right = same(case.stacks, found, at_once)
                confident.add(case.stacks, found, at_once)
                kind = by_kind[case.kind]
                kind[0] += right
                kind[1] += 1
                if not right:
                    misses.append(f"seed {seed} ({case.kind}, {case.note}): "
                                  f"{found}, truth {case.stacks}")
        exact = sum(right for right, _ in by_kind.values())
        print(f"noise {noise:.0%}: {exact} of {CASES} cases exact")
        for kind, (right, count) in sorted(by_kind.items()):
            print(f"  {kind:20} {right} of {count}")
        for miss in misses:
            print("  " + miss)
        checks.true(f"noise {noise}: {exact} exact", exact >= least * CASES)
    print(f"{confident.right} of {confident.all} stacks called high or certain "
          "are right")
    checks.true("confidence is calibrated",
                confident.right >= CALIBRATED * confident.all)


def block_cases(checks):
    """Layers of one block, and layers without their dense half, which are not
    to be cut."""
    for kind, least in ((layer_cases.blocks, 9), (layer_cases.pruned, 11)):
        right = 0
        with temporary() as out:
            path = pathlib.Path(out) / "trace.json"
            for seed in range(12):
                case, trace = layer_cases.case(seed, 0.0, kind)
                path.write_text(json.dumps(trace))
                right += same(case.stacks, stacks_of(tables(path)))
        checks.true(f"{kind.__name__}: {right} of 12 exact", right >= least)


def shared_cases(checks, folder):
    truth = json.loads((folder / "truth.json").read_text())
    for name, case in truth.items():
        found = tables(folder / f"{name}.trace.gz")
        expected = [(s["layers"], s["passes"]) for s in case["stacks"]]
        stacks = stacks_of(found)
        checks.true(f"{name}: {stacks}, truth {expected}",
                    same(expected, stacks, at_once="two" in name))
        if "type" in case:
            checks.equal(f"{name}: types beside {case['type']}",
                         {row["type"] for row in found["layers"]}
                         - set(case["type"].split()), set())
    # By names, too, a pass is an iteration.
    lamina("layers", folder / "grok-64x3.trace.gz", "--detector", "classic",
           "--layers-per-pass", "64")


def main():
    checks = Checks()
    random_cases(checks)
    block_cases(checks)
    folder = pathlib.Path(os.environ.get("LAMINA_SHARED",
                                         ROOT.parent / "shared"))
    if not folder.is_dir():
        print(f"without the shared cases: none in {folder}")
    if (folder / "layer-cases").is_dir():
        shared_cases(checks, folder / "layer-cases")
    for name, expected in NSYS.items():
        path = folder / "traces" / "nsys" / name
        if not path.is_file():
            continue
        found = [stack[:2] for stack in stacks_of(tables(path))]
        checks.true(f"{name}: {found} holds {expected}",
                    all(stack in found for stack in expected))
    checks.finish()


main()
