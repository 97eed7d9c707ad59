# SPDX-License-Identifier: Apache-2.0
"""What is true of the inputs, without lamina: from what was simulated
(samples/*.truth.json.gz), or counted anew in the raw files. A function per
task; it is given the folder of inputs.py."""
import collections
import gzip
import json
import re

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def simulated(folder, name):
    """Rows of what was simulated, and facts of the rank."""
    facts = json.loads(gzip.decompress(
        (folder / f"{name}.truth.json.gz").read_bytes()))
    columns = facts.pop("device_work")
    return [dict(zip(columns, row)) for row in zip(*columns.values())], facts


def events(folder, name):
    return json.loads(gzip.decompress((folder / name).read_bytes()),
                      parse_float=str, parse_int=str)["traceEvents"]


def ns(text):
    """Decimal microseconds as integer nanoseconds, exactly."""
    whole, _, fraction = text.partition(".")
    return int(whole) * 1000 + int((fraction + "000")[:3])


def spans(folder, name, wanted=lambda event: True):
    return [(ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e)
            for e in events(folder, name)
            if e.get("cat") in DEVICE and wanted(e)]


def union(parts):
    total, reached = 0, None
    for start, end, *_ in sorted(parts, key=lambda p: p[:2]):
        if reached is None or start > reached:
            total += end - start
            reached = end
        elif end > reached:
            total += end - reached
            reached = end
    return total


def busy_and_window(folder, name):
    parts = spans(folder, name)
    return union(parts), max(p[1] for p in parts) - min(p[0] for p in parts)


def by_op(rows):
    sums = collections.Counter()
    for row in rows:
        sums[row["op"] or "cudaMemcpyAsync"] += row["dur_ns"]
    return sums


def t01(folder):
    busy, window = busy_and_window(folder, "train_step.json.gz")
    return 100 * busy / window


def t02(folder):
    busy, window = busy_and_window(folder, "train_step.json.gz")
    return (window - busy) / 1000


def t03(folder):
    rows, _ = simulated(folder, "train_step")
    op, most = by_op(rows).most_common(1)[0]
    return {"op": op, "percent": 100 * most / sum(by_op(rows).values())}


def t04(folder):
    rows, _ = simulated(folder, "serve")
    return next(row["op"] for row in rows if row["uid"] == 40)


def t05(folder):
    """FLOPs and bytes of each aten::mm against 989.4 TFLOP/s and 3.35 TB/s, the
    peaks of an H100 SXM in bfloat16."""
    every = events(folder, "train_step.json.gz")
    ops = {e["args"]["External id"]: e for e in every
           if e.get("cat") == "cpu_op" and e["name"] == "aten::mm"}
    above = collections.Counter()
    for e in every:
        op = ops.get(e.get("args", {}).get("External id"))
        if e.get("cat") != "kernel" or op is None:
            continue
        dims = op["args"]["Input Dims"][:2]
        (m, k), (_, n) = [[int(d) for d in one] for one in dims]
        best_s = max(2 * m * n * k / 989.4e12,
                     2 * (m * k + k * n + m * n) / 3.35e12)
        above[json.dumps([[m, k], [k, n]])] += ns(e["dur"]) - 1e9 * best_s
    return above.most_common(1)[0][0].replace(" ", "")


def t06(folder):
    rows, _ = simulated(folder, "graphs/replay")
    layers = {row["layer"] for row in rows} - {None}
    phases = {row["phase"] for row in rows}
    return {"passes": len({row["replay"] for row in rows} - {None}),
            "layers": len(layers), "stage": phases.pop()}


def lines_of(folder, name):
    data = (folder / name).read_bytes()
    if name.endswith(".gz"):
        data = gzip.decompress(data)
    return data.decode().splitlines()


def t07(folder):
    """The layer whose norms were left as single ops. Layer 0 has no residual
    in front of its first norm, so it differs by that alone."""
    layer, found = None, set()
    for line in lines_of(folder, "dumps/016_pattern_matcher_match_rmsnorm_"
                                 "pattern.txt"):
        weight = re.search(r"model_layers_(\d+)_", line)
        if weight:
            layer = int(weight.group(1))
        if "aten.rsqrt" in line:
            # The weight of an unfused norm comes behind its ops.
            found.add("next")
        elif weight and "next" in found:
            found = (found - {"next"}) | {layer}
    assert len(found) == 1, found
    return found.pop()


def t08(folder):
    slow = max(range(4), key=lambda rank: simulated(
        folder, f"ranks/rank{rank}")[1]["slowdown"])
    sums = [by_op(simulated(folder, f"ranks/rank{rank}")[0])
            for rank in range(4)]
    own = sums.pop(slow)
    more = {op: own[op] - sum(s[op] for s in sums) / len(sums) for op in own}
    return {"rank": slow, "cause": max(more, key=more.get)}


def t09(folder):
    offsets = [simulated(folder, f"ranks/rank{rank}")[1]["offset_ns"]
               for rank in (0, 2)]
    return (offsets[1] - offsets[0]) / 1000


def t10(folder):
    a, b = (by_op(simulated(folder, f"ranks/rank{rank}")[0])
            for rank in (0, 2))
    cause = max(b, key=lambda op: b[op] - a[op])
    return {"cause": cause, "delta_ms": (b[cause] - a[cause]) / 1e6}


def t11(folder):
    rows, _ = simulated(folder, "graphs/replay")
    replayed = sum(row["replay"] is not None for row in rows)
    return {"matched": replayed, "replayed": replayed}


def t12(folder):
    text = "\n".join(lines_of(folder, "dumps/016_pattern_matcher_match_"
                                      "rmsnorm_pattern.txt"))
    return sorted(set(re.findall(r"\bmodel_layers_3_\w*weight\b", text)))


def t13(folder):
    """By an op that each of them has: one rsqrt in an RMS norm, two neg in a
    rotary embedding, one silu in a SwiGLU; times the launches that go: all
    but one of 8 and 10 ops, and of 3."""
    text = "\n".join(lines_of(folder,
                              "fusions/001_export_export_to_gm.txt.gz"))
    found = [(text.count(f"aten.{op}.") // each, launches, rule)
             for rule, op, each, launches in (
                 ("match_rmsnorm_pattern", "rsqrt", 1, 7),
                 ("match_rope_pattern", "neg", 2, 9),
                 ("match_swiglu_pattern", "silu", 1, 2))]
    found.sort(key=lambda one: -one[0] * one[1])
    return [f"{rule} {count}" for count, _, rule in found]


def t14(folder):
    """By the lines of both logs."""
    def matches(run):
        text = (folder / f"runs/{run}/transform.log").read_text()
        return {name: int(count) for name, count in re.findall(
            r"transform=(\w+)\] \[SUMMARY\] matches=(\d+)", text)}
    before, after = matches("before"), matches("after")
    return sorted(f"{name} {count} -> {after.get(name, 0)}"
                  for name, count in before.items()
                  if after.get(name, 0) < count)


def t15(folder):
    name = "ranks/rank1.json.gz"

    def is_comm(event):
        return "nccl" in event["name"].lower()

    comm = spans(folder, name, is_comm)
    other = spans(folder, name, lambda e: not is_comm(e))
    return (union(comm) + union(other) - union(comm + other)) / 1000


def t16(folder):
    rows, _ = simulated(folder, "moe")
    below = [r for r in rows
             if r["module"].startswith("DecoderModel_0/DecoderLayer_2/")]
    return by_op(below).most_common(1)[0][0]


def t17(folder):
    assert not any("occupancy" in key for e in events(folder, "serve.json.gz")
                   for key in e.get("args", {}))
    return None


def t18(folder):
    """Records that are whole, one by one from the start of the list."""
    text = (folder / "cut.json").read_text(errors="replace")
    at = text.index("[", text.index('"traceEvents"')) + 1
    decoder, count = json.JSONDecoder(), 0
    while True:
        while text[at] in " \n,":
            at += 1
        try:
            event, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            return {"whole": False, "device_events": count}
        count += event.get("cat") in DEVICE


def t19(folder):
    return len({e["name"] for e in events(folder, "many.json.gz")
                if ns(e["dur"]) > 1_000_000})


def t20(folder):
    return len(simulated(folder, "serve")[0])


def t21(folder):
    """The longest time in which no device event runs."""
    parts, reached, best = spans(folder, "train_step.json.gz"), None, (0,)
    first = min(ns(e["ts"]) for e in events(folder, "train_step.json.gz")
                if "ts" in e and e.get("ph") == "X")
    for start, end, _ in sorted(parts, key=lambda p: p[:2]):
        if reached is not None and start > reached:
            best = max(best, (start - reached, reached, start))
        reached = end if reached is None else max(reached, end)
    return [(at - first) / 1000 for at in best[1:]]


def t22(folder):
    rows, _ = simulated(folder, "serve")
    return sorted(row["uid"] for row in rows if row["op"] == "aten::embedding")


def t23(folder):
    rows, _ = simulated(folder, "moe")
    return sorted({row["op"] for row in rows if row["module"].startswith(
        "DecoderModel_0/DecoderLayer_2/")} - {""})
