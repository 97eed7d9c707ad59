#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina ranks on generated jobs against their truth: every match, skew and
transfer to within a microsecond on aligned clocks, what was lost, and who held
the others up.

usage: ranks_test.py LAMINA [--large]
"""
import collections
import gzip
import json
import pathlib
import subprocess
import sys

from common import ROOT, Checks, Exact, lamina, temporary

GENERATOR = ROOT / "tools" / "generator" / "job.py"
MICROSECOND = 1000
CLOCKS = ["--offset-us", "5000", "--drift-ppm", "20"]
# Takes a minute to generate: with --large only.
LARGE = {"1024 ranks": ["--tp", "8", "--pp", "8", "--dp", "16", "--layers", "1",
                        "--steps", "3", "--straggler", "333", "--lose", "20"]}
JOBS = {
    "8 ranks": ["--straggler", "3", "--lose", "3"],
    "8 ranks by order": ["--straggler", "5", "--cause", "launch", "--lose", "3",
                         "--no-sequence"],
    "64 ranks": ["--tp", "4", "--pp", "4", "--dp", "4", "--straggler", "21",
                 "--lose", "8", "--experts"],
    "64 ranks by order": ["--tp", "8", "--pp", "2", "--dp", "4", "--straggler",
                          "9", "--lose", "8", "--no-sequence"],
}


def ranks(folder, *args):
    document = json.loads(lamina("ranks", folder, "--format", "json",
                                 *args).stdout, parse_float=Exact)
    return document["tables"], document["notes"]


def records(truth):
    """(group, rank) -> what the trace holds, as (start, number of the call)."""
    found = collections.defaultdict(list)
    for number, call in enumerate(truth["calls"]):
        for rank, (start, _) in call["members"].items():
            if int(rank) not in call["lost"]:
                found[call["group"], int(rank)].append((start, number))
    return {key: sorted(rows) for key, rows in found.items()}


def check_matches(checks, name, truth, tables):
    """Pairs records of truth and trace rank by rank, in order; then whatever
    is one collective in one of them must be one in the other."""
    rows = collections.defaultdict(list)
    for row in tables["collective_waits"]:
        rows[row["group"], row["rank"]].append(row)
    expected = records(truth)
    checks.equal(f"{name}: groups and ranks", sorted(rows), sorted(expected))
    call_of, worst, starts = {}, 0, []
    for key, list_of_rank in rows.items():
        list_of_rank.sort(key=lambda r: r["start_us"].ns)
        checks.equal(f"{name}: calls of {key}", len(list_of_rank),
                     len(expected[key]))
        for row, (start, number) in zip(list_of_rank, expected[key]):
            call_of.setdefault(row["id"], set()).add(number)
            starts.append((row["start_us"].ns - start, row))
    checks.true(f"{name}: no row joins two collectives",
                all(len(numbers) == 1 for numbers in call_of.values()))
    checks.equal(f"{name}: no collective is in two rows",
                 len({n for numbers in call_of.values() for n in numbers}),
                 len(call_of))
    middle = sorted(starts, key=lambda s: s[0])[len(starts) // 2][0]
    worst = max(abs(s[0] - middle) for s in starts)
    checks.true(f"{name}: aligned starts within 1 us of truth ({worst} ns)",
                worst < MICROSECOND)
    return {i: min(numbers) for i, numbers in call_of.items()}


def check_times(checks, name, truth, tables, call_of):
    worst = collections.Counter()
    compared = late = 0
    for row in tables["collectives"]:
        call = truth["calls"][call_of[row["id"]]]
        members = {int(r): m for r, m in call["members"].items()
                   if int(r) not in call["lost"]}
        if len(members) < 2:
            checks.equal(f"{name}: skew of a single rank",
                         row["start_skew_us"], None)
            continue
        checks.equal(f"{name}: doubt about {row['id']}", row["doubt"], "")
        compared += 1
        starts = {r: s for r, (s, _) in members.items()}
        skew = max(starts.values()) - min(starts.values())
        ends = [s + d for s, d in members.values()]
        for what, true in (("start_skew_us", skew),
                           ("end_skew_us", max(ends) - min(ends)),
                           ("transfer_us", min(d for _, d in
                                               members.values()))):
            worst[what] = max(worst[what], abs(row[what].ns - true))
        in_order = sorted(starts.values())
        if in_order[-1] - in_order[-2] > MICROSECOND:
            late += 1
            checks.equal(f"{name}: late rank of {row['id']}",
                         row["late_rank"], max(starts, key=starts.get))
        checks.equal(f"{name}: bytes of {row['id']}", row["bytes"],
                     call["bytes"])
    checks.true(f"{name}: collectives compared", compared > 100 and late > 10)
    for what, ns in worst.items():
        checks.true(f"{name}: {what} within 1 us ({ns} ns)", ns < MICROSECOND)


def check_clocks(checks, name, truth, tables):
    """Drift to within its stated error; offsets are checked by the starts."""
    reference = truth["clocks"][0]
    for row, clock in zip(tables["clock_offsets"], truth["clocks"]):
        checks.equal(f"{name}: reference", row["reference_rank"], 0)
        # Fewer than 8 collectives say nothing about drift.
        if row["rank"] == 0 or row["drift_ppm"] is None:
            continue
        drift = clock["drift_ppm"] - reference["drift_ppm"]
        checks.true(f"{name}: drift of rank {row['rank']}: {row['drift_ppm']} "
                    f"+- {row['drift_error_ppm']}, truth {drift}",
                    abs(row["drift_ppm"] - drift) <
                    4 * row["drift_error_ppm"] + 0.1)


def check_job(checks, name, arguments):
    with temporary() as folder:
        subprocess.run(["python3", GENERATOR, "-o", folder, *CLOCKS,
                        *arguments], check=True)
        truth = json.loads(gzip.decompress(
            (pathlib.Path(folder) / "job.truth.json.gz").read_bytes()))
        tables, notes = ranks(folder)
        call_of = check_matches(checks, name, truth, tables)
        check_times(checks, name, truth, tables, call_of)
        check_clocks(checks, name, truth, tables)
        lost = sorted((c["group"], r) for c in truth["calls"]
                      for r in c["lost"])
        checks.equal(f"{name}: lost", sorted((r["group"], r["rank"]) for r in
                                             tables["lost_calls"]), lost)
        checks.true(f"{name}: lost inside", all(
            r["place"] == "inside" for r in tables["lost_calls"]) and lost)
        worst = tables["stragglers"][0]
        checks.equal(f"{name}: straggler",
                     {"rank": worst["rank"], "cause": worst["cause"],
                      "op": worst["cause_name"]}, truth["straggler"])
        checks.true(f"{name}: the note names it", any(
            n["id"] == "straggler" and f"rank {worst['rank']} " in n["text"]
            for n in notes))
        raw, _ = ranks(folder, "--raw-clocks")
        checks.true(f"{name}: raw clocks show the offsets", max(
            r["start_skew_us"].ns for r in raw["collectives"]
            if r["start_skew_us"] is not None) > 1_000_000)


def main():
    checks = Checks()
    jobs = LARGE if "--large" in sys.argv else JOBS
    for name, arguments in jobs.items():
        check_job(checks, name, arguments)
    checks.finish()


main()
