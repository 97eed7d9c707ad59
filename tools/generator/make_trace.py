#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes traces of simulated workloads, and beside each the truth about it.

usage: make_trace.py train -o step.json.gz [--steps 2 --layers 4 ...]
       make_trace.py train -o DIR --ranks 8 [--offset-us 500 --slow-rank 3]
       make_trace.py serve -o serve.json.gz [--prefills 1 --decodes 8 ...]
       make_trace.py graphs -o DIR [--replays 50 --streams 2]

`train` writes a data-parallel training run (FILE, or DIR/rank<N>.json.gz with
--ranks). `serve` writes prefill and decode steps. `graphs` writes the three
traces that belong to one graph workload: DIR/capture.json.gz,
DIR/replay.json.gz and DIR/eager.json.gz. Same arguments, same bytes. The truth
(NAME.truth.json.gz) says of every piece of device work, in the order of the
file, its op, module, layer, phase and step, and of a rank its clock offset,
drift and slowdown.
"""
import argparse
import pathlib

import serving
import training
from machine import Rank
from ranks import run_together
from transformer import Model


def arguments():
    ap = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("workload", choices=["train", "serve", "graphs"])
    ap.add_argument("-o", "--output", type=pathlib.Path, required=True)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--layers", type=int, default=4)
    ap.add_argument("--hidden", type=int, default=2048)
    ap.add_argument("--experts", type=int, default=0, help="0: dense")
    ap.add_argument("--no-stacks", action="store_true")
    ap.add_argument("--no-shapes", action="store_true")
    ap.add_argument("--steps", type=int, default=2)
    ap.add_argument("--tokens", type=int, default=2048)
    ap.add_argument("--bucket", type=int, default=25_000_000,
                    help="elements of a gradient bucket")
    ap.add_argument("--ranks", type=int, default=1)
    ap.add_argument("--offset-us", type=float, default=0,
                    help="clocks differ by up to this")
    ap.add_argument("--drift-ppm", type=float, default=0,
                    help="clocks run apart by up to this")
    ap.add_argument("--slow-rank", type=int, default=-1)
    ap.add_argument("--slowdown", type=float, default=1.3,
                    help="of the kernels of the slow rank")
    ap.add_argument("--prefills", type=int, default=1)
    ap.add_argument("--decodes", type=int, default=8)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--prompt", type=int, default=512)
    ap.add_argument("--context", type=int, default=1024)
    ap.add_argument("--replays", type=int, default=8)
    ap.add_argument("--streams", type=int, choices=[1, 2], default=1)
    ap.add_argument("--no-node-ids", action="store_true")
    return ap.parse_args()


def save(rank, path, groups=()):
    path.parent.mkdir(parents=True, exist_ok=True)
    rank.write(path, groups)
    name = path.name.removesuffix(".gz").removesuffix(".json")
    rank.write_truth(path.with_name(f"{name}.truth.json.gz"))


def train(args, model, options):
    def steps(rank, members):
        for number in range(args.steps):
            yield from training.training_step(rank, model, args.tokens, number,
                                              members, args.bucket)

    if args.ranks == 1:
        rank = Rank(seed=args.seed, **options)
        run_together([steps(rank, (0,))])
        save(rank, args.output)
        return
    members = tuple(range(args.ranks))
    ranks = []
    for number in members:
        rank = Rank(number, args.ranks, args.seed, slowdown=args.slowdown
                    if number == args.slow_rank else 1.0, **options)
        if number > 0:
            rank.offset_ns = int(rank.random.uniform(-1, 1) *
                                 args.offset_us * 1000)
            rank.drift_ppm = rank.random.uniform(-1, 1) * args.drift_ppm
        ranks.append(rank)
    run_together([steps(rank, members) for rank in ranks])
    groups = [{"pg_name": "0", "pg_desc": "default_pg", "backend_config":
               "cuda:nccl", "pg_size": args.ranks, "ranks": list(members)}]
    for rank in ranks:
        save(rank, args.output / f"rank{rank.rank}.json.gz", groups)


def serve(args, model, options):
    rank = Rank(seed=args.seed, **options)
    for _ in range(args.prefills):
        serving.prefill(rank, model, args.batch, args.prompt)
    for step in range(args.decodes):
        serving.decode(rank, model, args.batch, args.context + step)
    save(rank, args.output)


def graphs(args, model, options):
    """Two batch sizes, replayed in turn by a seeded shuffle."""
    side = 21 if args.streams == 2 else 0
    sizes = (args.batch, args.batch // 2)
    capturing = Rank(seed=args.seed, **options)
    recorded = [serving.capture(capturing, model, size, args.context, side)
                for size in sizes]
    save(capturing, args.output / "capture.json.gz")

    replaying = Rank(seed=args.seed + 1, **{**options, "stacks": False})
    replaying.ids["correlation"] = 500_000
    for _ in range(args.replays):
        which = replaying.random.randrange(len(sizes))
        serving.decode(replaying, model, sizes[which], args.context,
                       recorded[which], side, not args.no_node_ids)
    save(replaying, args.output / "replay.json.gz")

    eager = Rank(seed=args.seed + 2, **options)
    for size in sizes:
        serving.decode(eager, model, size, args.context, None, side)
    save(eager, args.output / "eager.json.gz")


def main():
    args = arguments()
    model = Model(layers=args.layers, hidden=args.hidden,
                  heads=args.hidden // 128, ffn=args.hidden * 11 // 4,
                  experts=args.experts, ffn_expert=args.hidden * 11 // 16)
    options = {"stacks": not args.no_stacks, "shapes": not args.no_shapes}
    {"train": train, "serve": serve, "graphs": graphs}[args.workload](
        args, model, options)


main()
