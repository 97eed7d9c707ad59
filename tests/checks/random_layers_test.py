#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina layers on a hundred random models, whose layers are known: counts and
the layer of every kernel, from names of kernels alone."""
import json
import pathlib
import sys

from common import ROOT, Checks, lamina, temporary

sys.path.insert(0, str(ROOT / "tools" / "generator"))
import random_layers  # noqa: E402

MODELS = 100
NOISE = 0.02


def assigned(tables, count):
    """Layer of every kernel as lamina says, None outside layers."""
    out = [None] * count
    for number, row in enumerate(tables["layers"]):
        for i in range(row["first_kernel"],
                       row["first_kernel"] + row["kernels"]):
            out[i] = number
    return out


def share(found, truth):
    """Share of kernels in the right layer, up to the numbers of the layers:
    each found layer stands for the one that most of its kernels are of."""
    votes = {}
    for own, real in zip(found, truth):
        if own is not None:
            votes.setdefault(own, {}).setdefault(real, 0)
            votes[own][real] += 1
    stands = {own: max(v, key=lambda k: (v[k], str(k)))
              for own, v in votes.items()}
    taken = {}
    for own, real in stands.items():
        taken.setdefault(real, own)
    right = sum((None if own is None else
                 stands[own] if taken[stands[own]] == own else -1) == real
                for own, real in zip(found, truth))
    return right / len(truth)


def main():
    checks = Checks()
    for noise in (0.0, NOISE):
        exact = 0
        shares = []
        misses = []
        with temporary() as out:
            path = pathlib.Path(out) / "trace.json"
            for seed in range(MODELS):
                kind, truth, kernels, trace = random_layers.trace(seed, noise)
                path.write_text(json.dumps(trace))
                tables = json.loads(lamina("layers", path, "--min-layers", "2",
                                           "--format", "json").stdout)["tables"]
                count = len(tables["layers"])
                shares.append(share(assigned(tables, len(kernels)),
                                    [layer for _, layer in kernels]))
                exact += count == truth
                if count != truth:
                    misses.append(f"seed {seed} ({kind}): {count} layers, "
                                  f"truth {truth}")
        mean = sum(shares) / len(shares)
        print(f"noise {noise:.0%}: {exact} of {MODELS} counts exact, "
              f"{mean:.2%} of kernels in the right layer")
        for miss in misses:
            print("  " + miss)
        checks.true(f"noise {noise}: {exact} exact", exact >= 97)
        checks.true(f"noise {noise}: {mean:.4f} assigned", mean >= 0.99)
    checks.finish()


main()
