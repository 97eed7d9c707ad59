#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests on a trace against a server whose truth is known (samples/serving.py):
other loads, engines, policies and forms of records; clocks that are shifted,
requests that the records lack, equal and hostile ids, records of another run,
damaged files. No token may be put on another pass than the one that made it.

usage: requests_test.py LAMINA"""
import json
import pathlib
import random
import re
import subprocess
import sys

from common import LAMINA, SAMPLES, Checks, temporary

sys.path.insert(0, str(SAMPLES))
import serving  # noqa: E402

checks = Checks()
HOSTILE = ["<img src=x onerror=alert(1)>", "a\x1b[2J", "'; DROP TABLE", "\u202e",
           "=cmd()", "x" * 3000, "same", "same", "same", ""]


def lamina(*words):
    return subprocess.run([LAMINA, *map(str, words)], capture_output=True,
                          text=True, errors="replace", timeout=120)


def ask(trace, bench, *words):
    r = lamina("requests", trace, "--bench", bench, "--format", "json", *words)
    tables = json.loads(r.stdout)["tables"] if r.stdout else {}
    return r, tables


def made(folder, seed, engine="vllm", policy="chunked", names=(), count=24,
         **more):
    server = serving.Server(engine, seed)
    requests = serving.load(seed, count, names=names)
    serving.serve(server, requests, policy, **more)
    trace = folder / f"t{seed}-{engine}-{policy}.json"
    trace.write_text(json.dumps(server.document()))
    return trace, requests


def wrong_joins(requests, tables, by_number):
    """Requests with a pass that is not theirs, or a time that is off by 1 %."""
    wrong = []
    for i, r in enumerate(requests):
        rows = [x for x in tables["requests"]
                if x["request"] == (str(i) if by_number else r.id)]
        if len(rows) != 1:
            wrong.append((r.id, "rows", len(rows)))
            continue
        row = rows[0]
        ttft = (r.tokens[0] - r.arrival) / 1000
        if (row["first_token_pass"], row["last_pass"]) != \
                (r.passes[0], r.passes[-1]):
            wrong.append((r.id, row["first_token_pass"], r.passes[0]))
        if abs(row["ttft_ms"] - ttft) > 0.01 * ttft:
            wrong.append((r.id, "ttft", row["ttft_ms"], ttft))
        if row["prefill_passes"] is not None and \
                (row["prefill_passes"], row["first_pass"]) != \
                (len(r.chunks), r.chunks[0][0]):
            wrong.append((r.id, "prefill", row["prefill_passes"]))
        queue = (r.chunks[0][1] - r.arrival) / 1000
        slack = tables["requests_join"][0]["uncertainty_ms"] + 0.03
        if row["queue_ms"] is not None and \
                abs(row["queue_ms"] - queue) > slack:
            wrong.append((r.id, "queue", row["queue_ms"], queue))
        parts = [row[k] for k in ("queue_ms", "prefill_ms", "after_ms")]
        if None not in parts and abs(sum(parts) - row["ttft_ms"]) > 1e-5:
            wrong.append((r.id, "sum", parts, row["ttft_ms"]))
    return wrong


def forms(folder):
    seed = 10
    for engine, policy in [("vllm", "chunked"), ("sglang", "prefill_first"),
                           ("sglang", "chunked"), ("atom", "prefill_first")]:
        for form in ["vllm", "sglang", "aiperf", "genai-perf", "trtllm",
                     "csv"]:
            seed += 1
            trace, requests = made(folder, seed, engine, policy)
            bench = folder / f"bench-{seed}"
            bench.write_text(serving.records(requests, form))
            r, tables = ask(trace, bench)
            name = f"{engine} {policy} {form}"
            checks.equal(f"{name}: joined", r.returncode, 0)
            if r.returncode:
                print(r.stderr)
                continue
            checks.equal(f"{name}: all placed",
                         tables["requests_join"][0]["placed"], len(requests))
            checks.equal(f"{name}: no wrong join", wrong_joins(
                requests, tables, form in ("vllm", "sglang", "genai-perf")),
                [])


def path_of_one(folder):
    trace, requests = made(folder, 3)
    bench = folder / "b"
    bench.write_text(serving.records(requests, "aiperf"))
    for r in requests[::5]:
        _, tables = ask(trace, bench, "--request", r.id)
        total = sum(row["time_ms"] for row in tables["request_path"])
        checks.true(f"the path of {r.id} adds up", abs(
            total - (r.tokens[-1] - r.arrival) / 1000) < 1e-3)
    shared = sum(row["extra_ms"] for row in tables["interference_causes"])
    whole = sum(row["extra_ms"] for row in tables["interference"])
    checks.true("whose prompts delayed others explains all of the delay",
                abs(shared - whole) < 0.02 * whole + 0.01)
    _, tables = ask(trace, bench, "--findings", "--slo", "ttft=2ms")
    effects = {row["finding"]: row for row in tables["fix_effects"]}
    gaps = effects["gaps"]
    itl = next(row for row in tables["requests_summary"]
               if row["metric"] == "itl_ms")
    checks.true("no fix makes a token later, none saves more than there is",
                all(-itl["p99"] <= row["itl_p99_ms"] <= row["itl_p99_least_ms"]
                    <= 1e-9 for row in effects.values()))
    checks.true(f"gaps of 12 us and more between passes: {gaps['itl_p50_ms']}",
                -0.02 < gaps["itl_p50_ms"] < -0.011)
    checks.equal("prompts elsewhere are still waited for",
                 effects["interference"]["ttft_p50_ms"], None)
    r, _ = ask(trace, bench, "--request", "nobody")
    checks.equal("a request that is not there", r.returncode, 2)


def clocks(folder):
    trace, requests = made(folder, 4)
    for shift_ms, status in [(0.05, 0), (3, 3), (-3, 3), (40, 3), (5000, 3),
                             (-5000, 3)]:
        bench = folder / "b"
        bench.write_text(serving.records(
            requests, "aiperf", shift_ns=round(shift_ms * 1e6)))
        r, tables = ask(trace, bench)
        checks.equal(f"wall clocks {shift_ms} ms apart", r.returncode, status)
        if status == 0:
            checks.equal(f"and no wrong join at {shift_ms} ms",
                         wrong_joins(requests, tables, False), [])
        r, tables = ask(trace, bench, "--clock", "own")
        checks.equal(f"by tokens alone at {shift_ms} ms", r.returncode, 0)
        checks.equal(f"without a wrong join at {shift_ms} ms",
                     wrong_joins(requests, tables, False), [])
    # A delay that is longer than a pass.
    trace, requests = made(folder, 5, delay=900)
    bench.write_text(serving.records(requests, "aiperf"))
    r, tables = ask(trace, bench)
    checks.equal("a delay of several passes", r.returncode, 0)
    checks.equal("is no wrong join", wrong_joins(requests, tables, False), [])
    offset = 77.125
    bench.write_text(serving.records(requests, "vllm", offset_s=offset))
    r, tables = ask(trace, bench, "--clock-offset", offset)
    checks.equal("an offset by hand", r.returncode, 0)
    checks.equal("gives exact queues", wrong_joins(requests, tables, True), [])
    document = json.loads(serving.records(requests, "vllm"))
    del document["start_times"]
    bench.write_text(json.dumps(document))
    r, tables = ask(trace, bench)
    checks.equal("without start times", r.returncode, 3)
    checks.equal("is said", tables["requests_join"][0]["status"],
                 "no_start_times")


def others(folder):
    """Records of another run never join; those that lack requests do."""
    for seed in range(100, 116):
        trace, _ = made(folder, seed)
        _, requests = made(folder, seed + 1000)
        for form in ("vllm", "aiperf"):
            bench = folder / "b"
            bench.write_text(serving.records(requests, form))
            r, _ = ask(trace, bench)
            checks.equal(f"seed {seed}, {form}: another run", r.returncode, 3)
    for seed in range(30, 42):
        trace, requests = made(folder, seed, count=40)
        some = [r for i, r in enumerate(requests) if i % 8 != seed % 8]
        bench = folder / "b"
        bench.write_text(serving.records(some, ("vllm", "aiperf")[seed % 2]))
        r, tables = ask(trace, bench)
        checks.equal(f"seed {seed}: records that lack requests", r.returncode,
                     0)
        checks.equal(f"seed {seed}: no wrong join of those that are there",
                     [w for w in wrong_joins(some, tables, seed % 2 == 0)
                      if w[1] != "prefill"], [])
        checks.true(f"seed {seed}: other traffic is told",
                    tables["requests_join"][0]["other_tokens_percent"] > 2)


def part_of_a_run(folder):
    """A trace of a part of the bench: requests outside, and cut."""
    server = serving.Server("vllm", 50)
    requests = serving.load(50, 120)
    serving.serve(server, requests)
    document = server.document()
    ends = sorted(e["ts"] for e in document["traceEvents"])
    low, high = ends[len(ends) // 3], ends[len(ends) // 2]
    kept = [e for e in document["traceEvents"]
            if e["cat"] == "user_annotation" and low <= e["ts"]
            and e["ts"] + e["dur"] <= high]
    low = min(e["ts"] for e in kept)
    high = max(e["ts"] + e["dur"] for e in kept)
    document["traceEvents"] = [
        e for e in document["traceEvents"] if low <= e["ts"] <= high]
    before = sum(1 for e in server.events
                 if e["cat"] == "user_annotation" and e["ts"] < low)
    trace = folder / "part.json"
    trace.write_text(json.dumps(document))
    for form in ("vllm", "aiperf"):
        bench = folder / "b"
        bench.write_text(serving.records(requests, form))
        r, tables = ask(trace, bench)
        checks.equal(f"{form}: part of a run {r.stderr}", r.returncode, 0)
        if r.returncode:
            continue
        join = tables["requests_join"][0]
        checks.true(f"{form}: the rest is outside",
                    0 < join["placed"] < 60 and join["cut"] > 0)
        passes = {row["request"]: row["first_token_pass"]
                  for row in tables["requests"]}
        wrong = []
        for i, request in enumerate(requests):
            got = passes.get(str(i) if form == "vllm" else request.id)
            if got is not None and got != request.passes[0] - before:
                wrong.append((i, got, request.passes[0] - before))
        checks.equal(f"{form}: no wrong join", wrong, [])


def strings(folder):
    trace, requests = made(folder, 7, names=HOSTILE)
    bench = folder / "b"
    bench.write_text(serving.records(requests, "aiperf"))
    r, tables = ask(trace, bench)
    checks.equal("hostile and equal ids", r.returncode, 0)
    ids = [row["request"] for row in tables["requests"]]
    checks.equal("are apart", len(set(ids)), len(requests))
    screen = lamina("requests", trace, "--bench", bench)
    checks.true("and do nothing to a terminal", "\x1b[2J" not in screen.stdout)
    page = folder / "page.html"
    checks.equal("a page of them", lamina(
        "requests", trace, "--bench", bench, "-o", page).returncode, 0)
    checks.true("holds no markup of theirs",
                "<img src=x" not in page.read_text())


def damage(folder):
    trace, requests = made(folder, 8)
    bench = folder / "b"
    draw = random.Random(8)
    statuses = set()
    for form in ["vllm", "aiperf", "genai-perf", "trtllm", "csv"]:
        good = serving.records(requests, form)
        for _ in range(8):
            text = bytearray(good.encode())
            for _ in range(draw.randint(1, 30)):
                at = draw.randrange(len(text))
                if draw.random() < 0.3:
                    del text[at:at + draw.randint(1, 200)]
                else:
                    text[at] = draw.randrange(256)
            bench.write_bytes(text)
            statuses.add(lamina("requests", trace, "--bench",
                                bench).returncode)
    checks.true(f"damaged records end in order: {statuses}",
                statuses <= {0, 3})
    for text in ["", "{}", "[]", "nonsense", "{\"ttfts\": [], \"itls\": []}",
                 "{\"ttfts\": [1e400], \"itls\": [[]], \"start_times\": [1]}",
                 "request,start,first\n", "[" * 5000]:
        bench.write_text(text)
        r = lamina("requests", trace, "--bench", bench)
        checks.equal(f"no records: {text[:40]!r}", r.returncode, 3)


def logs(folder):
    """A trace without annotations, and the log of its server."""
    server = serving.Server("vllm", 60)
    requests = serving.load(60, 24)
    serving.serve(server, requests)
    bench, log, trace = folder / "b", folder / "log", folder / "bare.json"
    bench.write_text(serving.records(requests, "vllm"))
    document = server.document()
    draw, lines, trtllm = random.Random(60), ["INFO engine started"], []
    for e in document["traceEvents"]:
        m = re.match(r"execute_\d+_context_(\d+)\(sq(\d+)sk.*_generation_"
                     r"(\d+)\(", e["name"])
        if m:
            ms = e["dur"] / 1000 + 0.02 + draw.random() * 0.01
            lines.append(
                f"INFO Iteration({len(lines)}): {m[1]} context requests, {m[2]}"
                f" context tokens, {m[3]} generation requests, {m[3]} "
                f"generation tokens, iteration elapsed time: {ms:.2f} ms")
            trtllm.append(
                f"[TRT-LLM] [I] iter = {len(trtllm)}, rank = 0, "
                f"host_step_time = {ms}ms, prev_device_step_time = 1ms, states "
                f"= {{'num_ctx_requests': {m[1]}, 'num_ctx_tokens': {m[2]}, "
                f"'num_generation_tokens': {m[3]}}}")
    document["traceEvents"] = [e for e in document["traceEvents"]
                               if e["cat"] != "user_annotation"]
    trace.write_text(json.dumps(document))
    r, _ = ask(trace, bench)
    checks.equal("without annotations", r.returncode, 3)
    # The server ran before and after the recording.
    for text in (lines, trtllm):
        log.write_text("\n".join(text[90:] + text + text[:50]) + "\n")
        r, tables = ask(trace, bench, "--log", log)
        checks.equal(f"with a log {r.stderr}", r.returncode, 0)
        if not r.returncode:
            checks.equal("and no wrong join",
                         wrong_joins(requests, tables, True), [])
    draw.shuffle(lines)
    log.write_text("\n".join(lines) + "\n")
    r, _ = ask(trace, bench, "--log", log)
    checks.equal("a log of another order gives nothing", r.returncode, 3)
    log.write_text("no line of a pass\n")
    checks.equal("no log", ask(trace, bench, "--log", log)[0].returncode, 3)


def sweep(folder):
    paths = []
    for batch in (1, 8, 32, 64, 128, 256, 384, 512):
        server = serving.Server("vllm", batch)
        for i in range(8):
            server.run([], [512 + i] * batch)
        paths.append(folder / f"b{batch:03}.json")
        paths[-1].write_text(json.dumps(server.document()))
    r = lamina("sweep", *paths, "--format", "json")
    checks.equal("a sweep", r.returncode, 0)
    fits = {(row["half"], row["family"]): row
            for row in json.loads(r.stdout)["tables"]["sweep_fit"]}
    gemm = fits["feed_forward", "gemm"]
    checks.equal("products have a knee", gemm["kind"], "knee")
    checks.true(f"where it was planted: {gemm['knee']}",
                abs(gemm["knee"] - serving.KNEE) < 0.05 * serving.KNEE)
    checks.equal("attention grows from the start",
                 fits["attention", "attention"]["kind"], "linear")
    checks.equal("the head is no layer", fits["outside", "gemm"]["kind"],
                 "knee")
    slope = serving.LAYERS * 512 / 3000
    checks.true("by what was planted",
                abs(fits["attention", "attention"]["slope_us"] - slope)
                < 0.02 * slope)
    back = lamina("sweep", *reversed(paths), "--format", "json")
    checks.equal("in any order of traces",
                 json.loads(back.stdout)["tables"]["sweep_fit"],
                 json.loads(r.stdout)["tables"]["sweep_fit"])
    checks.equal("one load is none",
                 lamina("sweep", paths[0]).returncode, 3)
    checks.equal("a training has no load", lamina(
        "sweep", SAMPLES / "train_step.json.gz").returncode, 3)


with temporary() as name:
    for part in (forms, path_of_one, clocks, others, part_of_a_run, strings,
                 damage, logs, sweep):
        part(pathlib.Path(name))
checks.finish()
