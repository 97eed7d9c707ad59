#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina annotate gives replayed kernels what they were captured from, says how
sure it is, and leaves the rest of the trace alone."""
import bisect
import collections
import gzip
import json
import pathlib
import subprocess

from common import ROOT, SAMPLES, Checks, is_added, lamina, shared, temporary

# By kind of tag: kernels whose name has one tag only.
NAMES = {"vllm-decode-full": {"instance": 2, "op": 421, "line": 373},
         "vllm-prefilldecode-piecewise": {"instance": 2, "op": 361,
                                          "line": 313},
         "xdit-flux1-sage": {"instance": 64, "op": 5200, "line": 6264}}
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
    after = [e for e in events(out) if not is_added(e)]
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
    check_tracks(checks, out, what)
    before = events(folder / "replay.json.gz")
    checks.equal(f"{what}: nothing else changed",
                 [without_additions(e) for e in after], before)


def nanoseconds(value):
    return round(value * 1000)


def check_tracks(checks, path, what):
    """Spans of ops and modules nest, and every kernel lies in its own."""
    all_events = events(path)
    spans = collections.defaultdict(list)
    names = {}
    for e in all_events:
        if not is_added(e):
            continue
        if e["ph"] == "M" and e["name"] == "thread_name":
            names[e["pid"], e["tid"]] = e["args"]["name"]
        if e["ph"] == "X":
            start = nanoseconds(e["ts"])
            spans[e["pid"], e["tid"]].append(
                (start, -(start + nanoseconds(e["dur"])), e["name"]))
    misnested = 0
    stacks = {"ops": collections.defaultdict(list),
              "modules": collections.defaultdict(list)}
    for track, list_ in spans.items():
        stack = []
        stream = names[track].split()[-1]
        for start, end, name in sorted(list_):
            end = -end
            while stack and stack[-1][1] <= start:
                stack.pop()
            misnested += bool(stack) and stack[-1][1] < end
            stack.append((start, end, name))
            stacks[names[track].split()[0]][stream].append(
                (start, end, [s[2] for s in stack]))
    checks.equal(f"{what}: spans nest", misnested, 0)
    wrong = kernels = 0
    for kind, tag in (("ops", "lamina_op"), ("modules", "lamina_module")):
        starts = {stream: [s[0] for s in list_]
                  for stream, list_ in stacks[kind].items()}
        for e in all_events:
            text = e.get("args", {}).get(tag)
            if is_added(e) or not text or not e["dur"]:
                continue
            kernels += 1
            stream = str(e["args"]["stream"])
            at = nanoseconds(e["ts"])
            k = bisect.bisect_right(starts[stream], at) - 1
            # The innermost that has not ended.
            while k >= 0 and stacks[kind][stream][k][1] <= at:
                k -= 1
            wrong += k < 0 or "/".join(stacks[kind][stream][k][2]) != text
    print(f"{what}: {kernels} places of kernels in tracks, {wrong} wrong")
    checks.true(f"{what}: tracks", kernels > 0)
    checks.equal(f"{what}: kernels outside their span", wrong, 0)


def simple_method(eager, replay):
    """What the simple method writes, by number of the replayed kernel: the
    first range of the file around each cudaLaunchKernel, by kernel name."""
    ranges = [e for e in eager if e.get("cat") in ("user_annotation", "cpu_op")
              and e["name"].startswith("line_")]
    tag_of = {}
    for e in eager:
        if e.get("name") != "cudaLaunchKernel":
            continue
        for r in ranges:
            if (r["pid"], r["tid"]) == (e["pid"], e["tid"]) and \
                    r["ts"] <= e["ts"] <= r["ts"] + r["dur"]:
                tag_of[e["args"]["correlation"]] = r["name"]
                break
    tags = {}
    for e in eager:
        tag = tag_of.get(e.get("args", {}).get("correlation"))
        if e.get("cat") == "kernel" and tag is not None:
            list_ = tags.setdefault(e["name"], [])
            if tag not in list_:
                list_.append(tag)
    launches = {e["args"]["correlation"] for e in replay
                if "GraphLaunch" in str(e.get("name"))}
    return {uid: ", ".join(tags[e["name"]]) for uid, e in enumerate(replay)
            if e.get("cat") == "kernel" and e["name"] in tags
            and e["args"].get("correlation") in launches}


def check_simple_method(checks):
    graphs = SAMPLES / "graphs"
    eager = events(graphs / "eager.json.gz")
    # A tag around every third op and a wide one around some of them, as
    # record_function and its fast form write them.
    tagged = []
    number = 0
    for e in eager:
        if e.get("cat") == "cpu_op":
            number += 1
            if number % 3 == 0:
                cat = "cpu_op" if number % 2 else "user_annotation"
                tagged.append({**e, "cat": cat, "args": {},
                               "name": f"line_{number % 40}_{cat}"})
            if number % 31 == 0:
                tagged.append({**e, "cat": "user_annotation", "args": {},
                               "dur": e["dur"] * 30, "name": f"line_{number}"})
        tagged.append(e)
    with temporary() as out:
        folder = pathlib.Path(out)
        (folder / "eager.json").write_text(json.dumps({"traceEvents": tagged}))
        run = lamina("annotate", graphs / "replay.json.gz", "--from",
                     folder / "eager.json", "--method", "name", "--trace",
                     folder / "out.json.gz", "--format", "json")
        before = events(graphs / "replay.json.gz")
        expected = simple_method(tagged, before)
        after = events(folder / "out.json.gz")
        found = {uid: e["args"]["source_lines"] for uid, e in enumerate(after)
                 if "source_lines" in e.get("args", {})}
        checks.true("simple method: has tags", len(expected) > 100)
        checks.true("simple method: some names have several",
                    any("," in t for t in expected.values()))
        checks.equal("simple method: source_lines", found, expected)
        checks.equal("simple method: nothing else",
                     [without_additions(e) for e in after], before)
        tables = json.loads(run.stdout)["tables"]
        checks.equal("simple method: table", sum(
            r["kernels"] for r in tables["annotate_names"] if r["tags"]),
            len(expected))


def rewritten(folder, name, change):
    """A replay of the sample with its events changed in place; returns the
    path and, by event of the new file, its number in the truth."""
    document = json.loads(gzip.decompress(
        (SAMPLES / "graphs/replay.json.gz").read_bytes()))
    numbered = list(enumerate(document["traceEvents"]))
    kept = [(uid, e) for uid, e in numbered if change(uid, e)]
    document["traceEvents"] = [e for _, e in kept]
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    return path, [uid for uid, _ in kept]


def check_variants(checks):
    """Replays that differ from what was captured."""
    graphs = SAMPLES / "graphs"
    columns = json.loads(gzip.decompress(
        (graphs / "replay.truth.json.gz").read_bytes()))["device_work"]
    truth = {uid: dict(zip(columns, row)) for uid, *row in
             zip(columns["uid"], *columns.values())}
    launches = sorted({t["replay"] for t in truth.values() if t["replay"]})
    cut = [uid for uid in sorted(truth)
           if truth[uid]["replay"] == launches[0]]
    cut = set(cut[:5] + cut[-7:])

    def other_software(uid, event):
        if truth.get(uid, {}).get("op") in (
                "aten::mm", "vllm::unified_attention_with_output"):
            event["name"] = "other_" + event["name"][::-1]
        return True

    def other_threads(uid, event):
        for key in ("pid", "tid"):
            if isinstance(event.get(key), int):
                event[key] += 4000
        return True

    variants = [("other software", other_software, "eager"),
                ("other threads", other_threads, "capture"),
                ("cut at both ends", lambda uid, e: uid not in cut, "capture")]
    with temporary() as out:
        folder = pathlib.Path(out)
        for name, change, source in variants:
            path, uids = rewritten(folder, name.replace(" ", "_"), change)
            annotate(path, "--from", graphs / f"{source}.json.gz", "--trace",
                     folder / "out.json")
            after = [e for e in json.loads(
                (folder / "out.json").read_text())["traceEvents"]
                if not is_added(e)]
            levels = collections.Counter()
            wrong = wrong_layers = 0
            for uid, event in zip(uids, after):
                args = event.get("args", {})
                if "lamina_evidence" not in args:
                    continue
                levels[args["lamina_evidence"]] += 1
                true = truth[uid]
                if args["lamina_confidence"] == "fact":
                    wrong += (args["lamina_op"], args["lamina_module"]) != \
                        (true["op"], true["module"])
                if "lamina_layer" in args:
                    wrong_layers += args["lamina_layer"] != true["layer"]
            print(f"{name}: {dict(levels)}")
            checks.equal(f"{name}: wrong facts", wrong, 0)
            checks.equal(f"{name}: wrong layers", wrong_layers, 0)
            checks.true(f"{name}: facts", levels.total() > 600 and
                        levels["exact"] + levels["fifo"] + levels["sure"] >
                        levels.total() / 3)


class Made:
    """A trace of ops on one thread, each under the range of its source line and
    with one kernel, or of graph launches. `expected` is the line of each
    replayed kernel."""

    def __init__(self):
        self.events = []
        self.expected = {}
        self.now = 0
        self.correlation = 0

    def host(self, category, name, dur, **args):
        self.events.append({"ph": "X", "cat": category, "name": name,
                            "pid": 1, "tid": 1, "ts": self.now, "dur": dur,
                            "args": args})

    def kernel(self, name, at):
        self.events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0,
                            "tid": 7, "ts": at, "dur": 3, "args": {
                                "device": 0, "stream": 7,
                                "correlation": self.correlation}})

    def eager(self, program):
        for line, kernel in program:
            self.correlation += 1
            self.host("user_annotation", f"line_{line}", 9)
            self.now += 1
            self.host("cpu_op", f"aten::{kernel}", 7)
            self.now += 1
            self.host("cuda_runtime", "cudaLaunchKernel", 2,
                      correlation=self.correlation)
            self.kernel(kernel, self.now + 4)
            self.now += 10

    def replay(self, program):
        self.correlation += 1
        self.host("cuda_runtime", "cudaGraphLaunch", 5,
                  correlation=self.correlation)
        for k, (line, kernel) in enumerate(program):
            at = self.now + 6 + 4 * k
            self.expected[at] = f"line_{line}"
            self.kernel(kernel, at)
        self.now += 20 + 4 * len(program)

    def write(self, path):
        path.write_text(json.dumps({"traceEvents": self.events}))
        return path


def program(line, kernels):
    """Source lines from `line` on, of kernels whose names repeat."""
    return [(line + k, name) for k, name in enumerate(kernels.split())]


FUNCTION = program(10, "mul add gemm add relu gemm mul sum add gemm mul add")
OTHER = program(50, "gemm add gemm gemm relu mul add sum gemm add mul mul add")
SETUP = program(90, "fill fill rand copy")


def check_eager_shapes(checks):
    """An eager trace rarely holds just what a graph replays. Each kernel here
    has one line that it can come from."""
    layer = [program(100 + 20 * k, "norm gemm rope attn gemm norm gemm silu "
                                   "gemm") for k in range(6)]
    shapes = {
        "eager once, four launches": ([SETUP, FUNCTION, SETUP],
                                      [FUNCTION] * 4),
        "eager once, four times in a launch": ([FUNCTION], [FUNCTION * 4]),
        "and the last kernel lost": ([FUNCTION], [(FUNCTION * 4)[:-1]]),
        "three equal iterations": ([FUNCTION] * 3, [FUNCTION]),
        "three equal iterations, five launches": ([SETUP] + [FUNCTION] * 3,
                                                  [FUNCTION] * 5),
        "two models": ([SETUP, FUNCTION, SETUP, OTHER],
                       [OTHER, FUNCTION, FUNCTION, OTHER]),
        "two models, three iterations": ([FUNCTION, OTHER] * 3,
                                         [FUNCTION, FUNCTION, OTHER]),
        "layers by launch": ([SETUP, sum(layer, [])], layer * 3),
        "layers in a launch, two cut": ([SETUP, sum(layer, [])],
                                        [sum(layer, [])[5:],
                                         sum(layer, [])[:-5]]),
        "a kernel more, a kernel less": (
            [SETUP, FUNCTION, OTHER],
            [OTHER[:6] + OTHER[7:], FUNCTION[:5] + FUNCTION[6:]]),
    }
    with temporary() as out:
        folder = pathlib.Path(out)
        for name, (eager, launches) in shapes.items():
            source, replay = Made(), Made()
            for part in eager:
                source.eager(part)
            for part in launches:
                replay.replay(part)
            annotate(replay.write(folder / "replay.json"), "--from",
                     source.write(folder / "eager.json"), "--trace",
                     folder / "out.json")
            facts = wrong = 0
            for e in json.loads((folder / "out.json").read_text())[
                    "traceEvents"]:
                if e.get("cat") != "kernel" or is_added(e):
                    continue
                if e["args"]["lamina_confidence"] == "fact":
                    facts += 1
                    wrong += e["args"]["source_lines"] != \
                        replay.expected[e["ts"]]
            checks.equal(f"{name}: facts", facts, len(replay.expected))
            checks.equal(f"{name}: wrong facts", wrong, 0)


def check_ranks(checks):
    """A folder of replays is annotated rank by rank."""
    graphs = SAMPLES / "graphs"
    with temporary() as out:
        folder = pathlib.Path(out)
        for part in ("replay", "capture"):
            (folder / part).mkdir()
        # Rank 1 ran another model: only its own capture explains it.
        for rank, name in ((0, "replay"), (1, "other")):
            document = json.loads(gzip.decompress(
                (graphs / "replay.json.gz").read_bytes()))
            capture = json.loads(gzip.decompress(
                (graphs / "capture.json.gz").read_bytes()))
            for d in (document, capture):
                d["distributedInfo"] = {"rank": rank, "world_size": 2}
            if rank == 1:
                for e in capture["traceEvents"]:
                    if e.get("cat") == "cpu_op":
                        e["name"] = "other::" + e["name"]
            (folder / f"replay/rank{rank}.json").write_text(
                json.dumps(document))
            (folder / f"capture/rank{rank}.json").write_text(
                json.dumps(capture))
        tables = annotate(folder / "replay", "--from", folder / "capture",
                          "--trace", folder / "out", "--require", "100")
        checks.equal("ranks: replays", {r["trace"]
                                        for r in tables["annotate_replays"]},
                     {0, 1})
        for rank in (0, 1):
            after = json.loads(
                (folder / f"out/rank{rank}.json").read_text())["traceEvents"]
            ops = {e["args"]["lamina_op"] for e in after
                   if "lamina_op" in e.get("args", {})}
            checks.true(f"ranks: ops of rank {rank}", ops and all(
                o.startswith("other::") == (rank == 1) for o in ops))


def main():
    checks = Checks()
    check_simple_method(checks)
    check_ranks(checks)
    check_variants(checks)
    check_eager_shapes(checks)
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
    run = lamina("annotate", SAMPLES / "graphs/replay.json.gz", "--from",
                 SAMPLES / "train_step.json.gz", "--require", "90%", status=1)
    checks.true("unrelated: no match", "No match for 12 of 12" in run.stdout)
    tables = annotate(SAMPLES / "graphs/replay.json.gz", "--from",
                      SAMPLES / "train_step.json.gz", "--require", "90%",
                      status=1)
    facts = sum(r["kernels"] for r in tables["annotate_levels"]
                if r["confidence"] == "fact")
    total = sum(r["kernels"] for r in tables["annotate_levels"])
    checks.equal(f"unrelated: facts of {total}", facts, 0)
    root = shared() / "traces"
    for name, count, level, launches in PAIRS:
        tables = annotate(root / name / "replay.json.gz", "--from",
                          root / name / "capture", "--require", "100")
        levels = {r["level"]: r["kernels"] for r in tables["annotate_levels"]}
        checks.equal(f"{name}: {level}", levels[level], count)
        checks.equal(f"{name}: all", sum(levels.values()), count)
        checks.equal(f"{name}: launches", len(tables["annotate_replays"]),
                     launches)
        for row in tables["annotate_methods"]:
            if row["tag"] in NAMES[name]:
                checks.equal(f"{name}: one {row['tag']} by name",
                             row["name_one"], NAMES[name][row["tag"]])
                checks.equal(f"{name}: {row['tag']} by alignment",
                             row["aligned_fact"], count)
        times = sum(round(r["time_us"] * 1000)
                    for r in tables["annotate_levels"])
        for key in ("annotate_ops", "annotate_modules", "annotate_kernels"):
            column = "dur_us" if key == "annotate_kernels" else "time_us"
            checks.equal(f"{name}: {key} add up",
                         sum(round(r[column] * 1000) for r in tables[key]),
                         times)
    checks.finish()


main()
