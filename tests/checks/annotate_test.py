#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina annotate gives replayed kernels what they were captured from, says how
sure it is, and leaves the rest of the trace alone."""
import gzip
import json
import pathlib
import subprocess

from common import ROOT, SAMPLES, Checks, lamina, shared, temporary

# Pair, replayed kernels, level of all of them, launches.
PAIRS = [("vllm-decode-full", 421, "exact", 1),
         ("vllm-prefilldecode-piecewise", 361, "exact", 25),
         ("xdit-flux1-sage", 6264, "sure", 4)]
ADDED = ("lamina_", "source_lines")


def annotate(replay, *args, status=0):
    run = lamina("annotate", replay, *args, "--format", "json", status=status)
    return json.loads(run.stdout)["tables"]


def events(path):
    return json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]


def without_additions(event):
    if "args" not in event:
        return event
    return {**event, "args": {k: v for k, v in event["args"].items()
                              if not k.startswith(ADDED)}}


def check_truth(checks, folder, source, what):
    """Ops and modules of a generated replay against the simulation."""
    out = folder / "annotated.json.gz"
    annotate(folder / "replay.json.gz", "--from", source, "--trace", out)
    truth = json.loads(gzip.decompress(
        (folder / "replay.truth.json.gz").read_bytes()))["device_work"]
    after = events(out)
    wrong = facts = replayed = 0
    for uid, op, module, replay in zip(truth["uid"], truth["op"],
                                       truth["module"], truth["replay"]):
        if replay is None:
            continue
        replayed += 1
        args = after[uid]["args"]
        if args["lamina_confidence"] != "fact":
            continue
        facts += 1
        wrong += (args["lamina_op"], args["lamina_module"]) != (op, module)
    print(f"{what}: {facts} of {replayed} replayed kernels are facts, "
          f"{wrong} of them wrong")
    checks.equal(f"{what}: all are facts", facts, replayed)
    checks.equal(f"{what}: none is wrong", wrong, 0)
    before = events(folder / "replay.json.gz")
    checks.equal(f"{what}: nothing else changed",
                 [without_additions(e) for e in after], before)


def main():
    checks = Checks()
    with temporary() as out:
        folder = pathlib.Path(out)
        subprocess.run(
            ["python3", ROOT / "tools/generator/make_trace.py", "graphs", "-o",
             folder, "--replays", "50", "--streams", "2", "--experts", "32"],
            check=True)
        check_truth(checks, folder, folder / "eager.json.gz", "from eager")
        check_truth(checks, folder, folder / "capture.json.gz",
                    "from capture")
    # Work that has nothing to do with it.
    tables = annotate(SAMPLES / "graphs/replay.json.gz", "--from",
                      SAMPLES / "train_step.json.gz", "--require", "90%",
                      status=1)
    facts = sum(r["kernels"] for r in tables["annotate_levels"]
                if r["confidence"] == "fact")
    total = sum(r["kernels"] for r in tables["annotate_levels"])
    checks.true(f"unrelated: {facts} of {total} facts", facts < total / 2)
    root = shared() / "traces"
    for name, count, level, launches in PAIRS:
        tables = annotate(root / name / "replay.json.gz", "--from",
                          root / name / "capture", "--require", "100")
        levels = {r["level"]: r["kernels"] for r in tables["annotate_levels"]}
        checks.equal(f"{name}: {level}", levels[level], count)
        checks.equal(f"{name}: all", sum(levels.values()), count)
        checks.equal(f"{name}: launches", len(tables["annotate_replays"]),
                     launches)
        times = sum(round(r["time_us"] * 1000)
                    for r in tables["annotate_levels"])
        for key in ("annotate_ops", "annotate_modules", "annotate_kernels"):
            column = "dur_us" if key == "annotate_kernels" else "time_us"
            checks.equal(f"{name}: {key} add up",
                         sum(round(r[column] * 1000) for r in tables[key]),
                         times)
    checks.finish()


main()
