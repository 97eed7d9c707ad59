#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina diff: totals that add up, no row for a trace against itself, and
exactly the known edits of edited copies."""
import gzip
import json
import os
import pathlib
import re
import sys

from common import SAMPLES, Checks, Exact, lamina, report, temporary
from trace_edits import Editor, load, save

TABLES = ("diff_ops", "diff_kernels", "diff_by", "diff_causes", "diff_calls",
          "diff_moved")


def diff(a, b, *args, status=0):
    run = lamina("diff", a, b, "--format", "json", *args, status=status)
    document = json.loads(run.stdout, parse_float=Exact)
    return document["tables"]


def total(rows, column):
    return sum(row[column].ns for row in rows)


def check_sums(checks, what, a, b):
    tables = diff(a, b)
    sides = tables["diff_totals"]
    for side, row, path in zip("ab", sides, (a, b)):
        listed = total(tables["diff_ops"], f"kernel_time_{side}_us")
        checks.equal(f"{what}: listed of {side}", row["listed_us"].ns, listed)
        checks.equal(f"{what}: kernel time of {side}",
                     row["kernel_time_us"].ns,
                     listed + row["unchanged_us"].ns + row["unlinked_us"].ns)
        own, _ = report(path, "--only", "kernels")
        checks.equal(f"{what}: device events of {side}",
                     row["kernel_time_us"].ns,
                     total(own["kernels"], "kernel_time_us"))
        checks.equal(f"{what}: unlinked of {side}", row["unlinked_us"].ns,
                     total([r for r in own["kernels"] if not r["op"]],
                           "kernel_time_us"))
    for column in ("kernel_time_us", "total_us"):
        delta = sides[1][column].ns - sides[0][column].ns
        if column == "total_us":
            checks.equal(f"{what}: causes", delta,
                         total(tables["diff_causes"], "delta_us"))
            continue
        checks.equal(f"{what}: kernels", delta,
                     total(tables["diff_kernels"], "delta_us"))
        for dimension in {r["dimension"] for r in tables["diff_by"]} - {
                "timeline"}:
            rows = [r for r in tables["diff_by"]
                    if r["dimension"] == dimension]
            checks.equal(f"{what}: {dimension}", delta,
                         total(rows, "delta_us"))
    for row in tables["diff_ops"]:
        checks.equal(f"{what}: delta", row["delta_us"].ns,
                     row["kernel_time_b_us"].ns - row["kernel_time_a_us"].ns)
    return tables


def check_self(checks, path):
    tables = diff(path, path, "--fail-above", "0%")
    for name in TABLES:
        checks.equal(f"{path.name} against itself: {name}", tables[name], [])


def check_reports(checks, a, b, folder):
    """Reports say what the traces say; a trace beside a report is reported."""
    paths = []
    for number, path in enumerate((a, b)):
        paths.append(folder / f"report{number}.json")
        lamina("report", path, "--format", "json", "-o", paths[-1])
    what = f"reports of {a.name} and {b.name}"
    of_traces = diff(a, b)
    of_reports = diff(*paths)
    for side, row in zip("ab", of_reports["diff_totals"]):
        listed = total(of_reports["diff_ops"], f"kernel_time_{side}_us")
        checks.equal(f"{what}: listed", row["listed_us"].ns, listed)
        checks.equal(f"{what}: sum", row["kernel_time_us"].ns, listed +
                     row["unchanged_us"].ns + row["unlinked_us"].ns)
    for column in ("kernel_time_us", "unlinked_us", "busy_us", "total_us",
                   "device_slices", "steps"):
        checks.equal(f"{what}: {column}",
                     [r[column] for r in of_reports["diff_totals"]],
                     [r[column] for r in of_traces["diff_totals"]])
    for dimension in ("timeline", "category"):
        def rows(tables):
            return sorted((r["key"], r["time_a_us"], r["time_b_us"])
                          for r in tables["diff_by"]
                          if r["dimension"] == dimension)
        checks.equal(f"{what}: {dimension}", rows(of_reports),
                     rows(of_traces))
    for name in ("diff_ops", "diff_kernels", "diff_by", "diff_causes"):
        checks.equal(f"{what}: {name} of a report against itself",
                     diff(paths[0], paths[0])[name], [])
        checks.equal(f"{what}: {name} of a trace against its report",
                     diff(a, paths[0])[name], [])
    cut = json.loads(paths[1].read_text())
    del cut["tables"]["op_shapes"][0]
    paths[1].write_text(json.dumps(cut))
    lamina("diff", *paths, status=2)


def check_many(checks, paths):
    """Several against the first are as each alone."""
    tables = diff(*paths)
    for letter, path in zip("bcd", paths[1:]):
        alone = diff(paths[0], path)
        for name in TABLES:
            own = [{k: v for k, v in r.items() if k != "with"}
                   for r in tables[name] if r["with"] == letter]
            checks.equal(f"{path.name} of several: {name}", own, alone[name])


def short(rows):
    return sorted((r["op"], r["module"].split("/")[-1], r["kind"],
                   r["count_a"], r["count_b"]) for r in rows)


def check_edits(checks, path, folder, layer, ops):
    """`layer`: prefix of the layers' module names; `ops`: one to slow down,
    one to remove, one to add, each with the layer that it is in and the calls
    that it shares its row with."""
    original = load(path)
    copy_path = folder / "edited.json"

    def find(editor, number, op, _=1):
        span = next(e for e in editor.events
                    if e.get("name") == f"nn.Module: {layer}{number}")
        return next(e for e in editor.inside(span)
                    if e.get("cat") == "cpu_op" and e["name"] == op)

    def layer_span(editor, number):
        return next(e for e in editor.events
                    if e.get("name") == f"nn.Module: {layer}{number}")

    what = path.name
    slow_op, gone_op, new_op = ops
    # Each alone.
    editor = Editor(original)
    editor.slow(find(editor, *slow_op), 1.2)
    save(editor.document, copy_path)
    slow = diff(path, copy_path)
    checks.equal(f"{what}: one op is slower",
                 [(r["op"], r["kind"], r["count_a"], r["count_b"])
                  for r in slow["diff_ops"]], 
                 [(slow_op[1], "changed", slow_op[2], slow_op[2])])
    checks.true(f"{what}: by a fifth",
                abs(slow["diff_ops"][0]["ratio"] - 1 - 0.2 / slow_op[2]) <
                0.01)
    checks.equal(f"{what}: nothing moved", slow["diff_moved"], [])

    editor = Editor(original)
    editor.remove(find(editor, *gone_op))
    save(editor.document, copy_path)
    gone = diff(path, copy_path)
    checks.equal(f"{what}: one op is gone",
                 [(r["op"], r["kind"], r["count_a"], r["count_b"])
                  for r in gone["diff_ops"]], [(gone_op[1], "only_a", 1, 0)])

    editor = Editor(original)
    editor.add(find(editor, *new_op))
    save(editor.document, copy_path)
    new = diff(path, copy_path)
    checks.equal(f"{what}: one op is new",
                 [(r["op"], r["kind"], r["count_a"], r["count_b"])
                  for r in new["diff_ops"]], [(new_op[1], "only_b", 0, 1)])
    check_sums(checks, f"{what} with a new op", path, copy_path)

    editor = Editor(original)
    editor.swap(layer_span(editor, 1), layer_span(editor, 2))
    save(editor.document, copy_path)
    moved = diff(path, copy_path)
    checks.equal(f"{what}: swapped layers cost nothing",
                 short(moved["diff_ops"]), [])
    names = [r["name"] for r in moved["diff_moved"]]
    checks.true(f"{what}: one of two swapped layers has moved: {names}",
                names in ([f"nn.Module: {layer}1"], [f"nn.Module: {layer}2"]))

    # All at once.
    editor = Editor(original)
    editor.swap(layer_span(editor, 1), layer_span(editor, 2))
    editor.slow(find(editor, *slow_op), 1.2)
    editor.remove(find(editor, *gone_op))
    editor.add(find(editor, *new_op))
    save(editor.document, copy_path)
    both = diff(path, copy_path)
    alone = short(slow["diff_ops"] + gone["diff_ops"] + new["diff_ops"])
    checks.equal(f"{what}: all edits at once", short(both["diff_ops"]), alone)
    checks.equal(f"{what}: and the layer", len(both["diff_moved"]), 1)
    check_sums(checks, f"{what} with all edits", path, copy_path)

    # The check for CI: a slower op is above, the way back is not.
    slower = Editor(original)
    for event in slower.events:
        if event.get("cat") == "kernel":
            event["dur"] = round(event["dur"] * 1.05, 3)
    save(slower.document, copy_path)
    window = ("--unit", "window", "--fail-above")
    lamina("diff", path, copy_path, *window, "4%", status=1)
    lamina("diff", path, copy_path, *window, "6%", status=0)
    lamina("diff", copy_path, path, *window, "0%", status=0)
    check_units(checks, what, path, copy_path)


def check_units(checks, what, path, copy_path):
    """Unit by unit: parts add up to the change of their phase."""
    tables = diff(path, copy_path)
    checks.true(f"{what}: units are matched", tables["diff_units"] != [])
    for row in tables["diff_verdict"][1:]:
        if row["delta_us"] is None:
            continue
        parts = [r for r in tables["diff_parts"]
                 if r["phase"] == row["scope"]]
        checks.true(f"{what}: parts of {row['scope']}",
                    abs(total(parts, "delta_us") - row["delta_us"].ns) <=
                    len(parts) + 1)
    slower = [r for r in tables["diff_parts"]
              if r["family"] not in ("idle", "overlap")]
    checks.true(f"{what}: every family takes more",
                all(r["delta_us"].ns >= 0 for r in slower))
    same = diff(path, path, "--fail-above", "0%")["diff_verdict"]
    checks.equal(f"{what}: a trace against itself",
                 {(r["verdict"], r["reason"]) for r in same},
                 {("pass", "same_recording")})


def steps(path, count, gemm_us, wait=False, dtype="c10::BFloat16",
          reduce_us=0, hidden=False, shape=512, inner=512, period=2000,
          bmm_us=0, device_name=None):
    """A training of `count` steps: 10 products, perhaps a wait for the device,
    a collective that no call launches, beside the products or behind, and two
    products of another op."""
    events, now, correlation = [], 1000.0, 0
    host = {"ph": "X", "pid": 1, "tid": 1}
    device = {"ph": "X", "pid": 0}
    for step in range(count):
        events.append({**host, "cat": "user_annotation", "ts": now,
                       "dur": period, "name": f"ProfilerStep#{step}"})
        at = now + 50
        for i in range(12 if bmm_us else 10):
            correlation += 1
            start = now + 10 + 5 * i
            us = gemm_us if i < 10 else bmm_us
            events.append({**host, "cat": "cpu_op",
                           "name": "aten::mm" if i < 10 else "aten::bmm",
                           "ts": start, "dur": 4, "args": {
                               "Input Dims": [[shape, inner], [inner, inner]]
                               if i < 10 else [[8, 64, 512], [8, 512, 64]],
                               "Input type": [dtype, dtype]}})
            events.append({**host, "cat": "cuda_runtime", "ts": start + 1,
                           "dur": 2, "name": "cudaLaunchKernel",
                           "args": {"correlation": correlation}})
            events.append({**device, "cat": "kernel", "tid": 7, "ts": at,
                           "dur": us, "name": "sm90_gemm", "args": {
                               "device": 0, "stream": 7,
                               "correlation": correlation}})
            at += us
        if reduce_us:
            events.append({**device, "cat": "kernel", "tid": 9,
                           "ts": now + 60 if hidden else at, "dur": reduce_us,
                           "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
                           "args": {"device": 0, "stream": 9}})
        if wait:
            events.append({**host, "cat": "cpu_op", "name": "aten::item",
                           "ts": now + 100, "dur": 40})
            events.append({**host, "cat": "cuda_runtime", "ts": now + 105,
                           "dur": 30, "name": "cudaStreamSynchronize",
                           "args": {"correlation": 10**6 + step}})
        now += period
    more = {"deviceProperties": [{"id": 0, "name": device_name}]
            } if device_name else {}
    path.write_text(json.dumps({**more, "traceEvents": events}))
    return path


def check_waits(checks, folder):
    """What is said of a unit beside its time."""
    plain = steps(folder / "plain.json", 8, 100)

    def said(b, *args, status=0, a=plain):
        return lamina("diff", a, b, *args, status=status).stdout

    slow = steps(folder / "slow.json", 12, 110)
    text = said(slow, "--fail-above", "3%", status=1)
    checks.true(f"hidden device work fails: {text[:200]}",
                "works 10.0 % longer" in text and "most in aten::mm" in text
                and "times are of whole traces" not in text)
    lamina("diff", slow, plain, "--fail-above", "3%", status=0)
    lamina("diff", plain, slow, "--fail-above", "3%", "--measure", "busy",
           status=1)
    waits = steps(folder / "waits.json", 8, 101, wait=True)
    text = said(waits)
    checks.true(f"a new wait is named: {text[:300]}",
                "StreamSynchronize in aten::item (1 per unit, 30.0 us)" in text
                and "in B alone" in text)
    text = said(plain, a=waits)
    checks.true(f"one that is gone, too: {text[:300]}",
                "waits no more in B for: StreamSynchronize" in text)
    row = next(r for r in diff(plain, waits)["diff_waits"]
               if r["kind"] == "synchronisation")
    checks.equal("with its time", (row["calls_a"], row["calls_b"],
                                   row["delta_us"].ns), (0, 1, 30_000))
    beside = steps(folder / "beside.json", 8, 100, reduce_us=300, hidden=True)
    behind = steps(folder / "behind.json", 8, 100, reduce_us=300)
    text = said(behind, a=beside)
    checks.true(f"a collective without a launch is exposed: {text[:300]}",
                "no computation hides: 300 us against 0 ns" in text
                and "ncclDevKernel_AllReduce" in text)
    checks.equal("and is in the parts of a unit", [300_000, 300_000], [
        row[f"{side}_us"].ns for row in diff(beside, behind)["diff_parts"]
        if row["family"] == "communication" for side in "ab"])
    for other, words in (({"dtype": "float"}, "bf16 -> fp32: "),
                         ({"dtype": "c10::Half"}, "bf16 -> fp16: ")):
        changed = steps(folder / "type.json", 8, 150, **other)
        checks.true(f"the type is said first: {words}",
                    said(changed).startswith(words))
        kinds = {r["kind"] for r in diff(plain, changed)["diff_aligned"]}
        checks.equal("rows are of another type", kinds, {"dtype"})
        # A single step is no repetition: whole windows are compared.
        one = steps(folder / "one.json", 1, 100)
        changed = steps(folder / "type.json", 1, 150, **other)
        checks.true(f"and of whole windows: {words}",
                    said(changed, a=one).startswith(words))
    # A wait that is longer is not better because the rest is longer, too; and
    # one that is shorter in each step is, however many steps there are.
    short = steps(folder / "short.json", 8, 100, wait=True)
    for count, gemm, period, change in ((8, 200, 3200, "worse"),
                                        (24, 100, 1500, "better"),
                                        (24, 100, 2000, "same")):
        other = steps(folder / "other.json", count, gemm, wait=True,
                      period=period)
        row = next(r for r in diff(short, other, "--findings")[
            "finding_changes"] if r["id"].startswith("host."))
        checks.equal(f"a wait of {count} steps of {period} us", row["change"],
                     change)
        checks.equal("by its time per step",
                     row["unit_b_us"].ns > row["unit_a_us"].ns,
                     change == "worse" or row["unit_b_us"].ns >
                     row["unit_a_us"].ns and change == "same")
    # One op that is 28 times slower does not hide in ten that are faster.
    faster = steps(folder / "faster.json", 8, 90, bmm_us=140)
    text = said(faster, a=steps(folder / "mixed.json", 8, 120, bmm_us=5))
    checks.true(f"what others hide is said: {text[:400]}",
                "aten::bmm [[8,64,512],[8,512,64]] takes 28 times as long, +270 "
                "us" in " ".join(text.split()))
    # 8192 x 4096 x 4096 take 278 us at the peak of an H100.
    big = {"shape": 8192, "inner": 4096, "period": 5000,
           "device_name": "NVIDIA H100 80GB HBM3"}
    usual = steps(folder / "usual.json", 8, 300, **big)
    beyond = steps(folder / "beyond.json", 8, 128, **big)
    words = "aten::mm of B takes 46 % of the least time that NVIDIA H100"
    checks.true("B is faster than its device can be", words in " ".join(
        said(beyond, a=usual).split()))
    checks.true("which is not said of what both do", words not in " ".join(
        said(steps(folder / "again.json", 8, 130, **big), a=beyond).split()))
    # Whole windows: what replays and unlinked work are, waits that came.
    window = ("--unit", "window")
    text = " ".join(said(waits, *window).split())
    checks.true(f"waits of whole windows: {text[:300]}",
                "waits in B alone for: StreamSynchronize (8 calls, 240 us)"
                in text)
    text = " ".join(said(behind, *window, a=plain).split())
    checks.true(f"work without a launch has a name: {text[:300]}",
                "without a launch (most in ncclDevKernel_AllReduce" in text
                and "no computation hides: 2.40 ms in B against 0 ns" in text)
    wider = steps(folder / "wider.json", 8, 150, shape=768)
    kinds = {r["kind"] for r in diff(plain, wider)["diff_aligned"]}
    checks.equal("other shapes are said", kinds, {"other_shape"})


def check_comparable(checks, folder):
    """Whether two can be compared, and modules under other names."""
    sample = SAMPLES / "serve.json.gz"
    text = gzip.decompress(sample.read_bytes()).decode()
    names = sorted(set(re.findall(r"nn\.Module: (\w+?)_\d+", text)))
    checks.true(f"the sample has modules: {names}", "DecoderLayer" in names)
    inner = next(n for n in names if n not in ("DecoderLayer",) and
                 "Layer" not in n and "LM" not in n and "Model" not in n)
    other = folder / "renamed.json"
    other.write_text(re.sub(rf"nn\.Module: {inner}_", "nn.Module: Fused" +
                            inner + "_", text))
    rows = [r for r in diff(sample, other)["diff_modules"]
            if r["path_b"] and r["class"] == inner]
    checks.true(f"{inner} meets Fused{inner}", rows and all(
        r["path_b"] == r["path"].replace(inner, "Fused" + inner)
        and f"-> Fused{inner}" in r["title"]
        and r["instances_a"] == r["instances_b"] and r["delta_us"].ns == 0
        for r in rows))
    checks.equal("nothing is in one of them alone", [
        r["title"] for r in diff(sample, other)["diff_modules"]
        if (r["a_us"].ns == 0) != (r["b_us"].ns == 0)], [])
    fewer = folder / "fewer.json"
    document = json.loads(text)
    last = max(int(n) for n in re.findall(r"DecoderLayer_(\d+)", text))
    document["traceEvents"] = [
        e for e in document["traceEvents"]
        if e.get("name") != f"nn.Module: DecoderLayer_{last}"]
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel":
            event["dur"] = round(event["dur"] * 1.01, 3)
    fewer.write_text(json.dumps(document))
    tables = diff(sample, fewer, "--fail-above", "3%")
    checks.equal("other numbers of layers stop a gate", [
        (r["status"], r["effect"]) for r in tables["diff_comparable"]
        if r["check"] == "model"] + [tables["diff_verdict"][0]["reason"]],
        [("differs", "stops"), "model"])
    graphs = SAMPLES / "graphs"
    checks.equal("replays against launches are said", {"graphs", "recorder"}, {
        r["check"] for r in diff(graphs / "eager.json.gz",
                                 graphs / "replay.json.gz")["diff_comparable"]
        if r["effect"] == "care"} & {"graphs", "recorder"})


def check_several(checks, folder):
    """Recordings of two programs: their own noise decides."""
    sys.path.insert(0, str(SAMPLES))
    from training import trace
    paths = {}
    for run, slower in ((1, 1), (2, 1), (3, 1), (4, 1.05), (5, 1.05), (6, 1.05),
                        (7, 1), (8, 1)):
        paths[run] = folder / f"run{run}.json"
        paths[run].write_text(trace(run, slower))

    def verdict(a, b, *args, status=0):
        return diff(*[paths[i] for i in a], "--against", *[paths[i] for i in b],
                    *args, status=status)["diff_verdict"]

    rows = verdict((1, 2, 3), (4, 5, 6), "--fail-above", "1%", status=1)
    checks.equal("slower recordings fail", (rows[1]["verdict"],
                                            rows[1]["run_noise_from"],
                                            rows[1]["units_a"]),
                 ("fail", "recordings", 24))
    rows = verdict((1, 2, 3), (7, 8), "--fail-above", "3%")
    checks.equal("equal ones pass", rows[1]["verdict"], "pass")
    ranks = SAMPLES / "ranks"
    of_folders = diff(ranks, ranks)["diff_verdict"]
    of_files = diff(*sorted(ranks.glob("rank?.json.gz")), "--against",
                    *sorted(ranks.glob("rank?.json.gz")))["diff_verdict"]
    checks.equal("ranks meet by number", of_files, of_folders)
    lamina("diff", paths[1], status=2)


def main():
    checks = Checks()
    with temporary() as name:
        check_waits(checks, pathlib.Path(name))
        check_comparable(checks, pathlib.Path(name))
        check_several(checks, pathlib.Path(name))
    for name in ("serve", "train_step", "moe"):
        check_self(checks, SAMPLES / f"{name}.json.gz")
    check_self(checks, SAMPLES / "graphs" / "replay.json.gz")
    check_sums(checks, "eager and replay", SAMPLES / "graphs/eager.json.gz",
               SAMPLES / "graphs/replay.json.gz")
    check_sums(checks, "ranks", SAMPLES / "ranks/rank0.json.gz",
               SAMPLES / "ranks/rank2.json.gz")
    with temporary() as name:
        folder = pathlib.Path(name)
        for a, b in ((SAMPLES / "ranks/rank0.json.gz",
                      SAMPLES / "ranks/rank2.json.gz"),
                     (SAMPLES / "graphs/eager.json.gz",
                      SAMPLES / "graphs/replay.json.gz")):
            check_reports(checks, a, b, folder)
        check_many(checks, [SAMPLES / f"ranks/rank{n}.json.gz"
                            for n in (0, 2, 1, 0)])
        check_edits(checks, SAMPLES / "serve.json.gz", folder, "DecoderLayer_",
                    ((0, "aten::mm", 2), (3, "vllm::rotary_embedding"),
                     (3, "vllm::fused_add_rms_norm")))
        shared = pathlib.Path(os.environ.get(
            "LAMINA_SHARED", SAMPLES.parent.parent / "shared"))
        traces = shared / "traces"
        if traces.is_dir():
            for model in ("qwen1.5-0.5b", "falconsai-vit"):
                tables = check_sums(checks, model,
                                    traces / f"h100-{model}.json.gz",
                                    traces / f"mi300-{model}.json.gz")
                # Both sides name the modules of one model.
                both = [r for r in tables["diff_ops"]
                        if r["count_a"] and r["count_b"]]
                checks.true(f"{model}: matched ops", len(both) > 100)
                checks.equal(f"{model}: modules of matched ops differ",
                             [r for r in both if r["module_b"]], [])
            for path in sorted(traces.glob("*.json.gz")):
                if "rocprof" not in path.name:
                    check_self(checks, path)
            check_reports(checks, traces / "h100-qwen1.5-0.5b.json.gz",
                          traces / "mi300-qwen1.5-0.5b.json.gz", folder)
            check_edits(checks, traces / "h100-qwen1.5-0.5b.json.gz", folder,
                        "Qwen2DecoderLayer_",
                        ((3, "aten::addmm", 1), (5, "aten::silu"),
                         (7, "aten::rsqrt")))
        else:
            print(f"without reference traces: none in {shared}")
    checks.finish()


main()
