#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Candidates on the reference dumps: every fusion that the log counts later is
among the first ten with a kernel; what a rule matches is found without it."""
import gzip
import json
import pathlib

from common import SAMPLES, Checks, lamina, reference_dumps, temporary

# What replaces nothing by a kernel: two transposes are removed.
NO_KERNEL = {"eliminate_redundant_transposes"}

# Attention that is one op before it has repeated K and V: no fusion.
RENAMES = {("match_grouped_attention", "export_to_gm")}


def rows(document, table):
    found = document["tables"].get(table, [])
    return found["rows"] if isinstance(found, dict) else found


def candidates(path, *args):
    return rows(json.loads(lamina("graph", "candidates", path, "--format",
                                  "json", *args).stdout), "candidates")


def check_measured(checks, folder):
    """With a trace of the replays savings are bounds by measured times."""
    dump = (folder / "dumps/llama_32l_gqa_symbolic" /
            "019_pattern_matcher_eliminate_redundant_transposes.txt")
    trace = folder / "traces/nsys/llama_32l_decode_graph.sqlite"
    # The trace replays the last dump: this one fits in part.
    ran = lamina("graph", "candidates", dump, "--trace", trace, status=2)
    checks.true("measured: a trace that fits badly is refused",
                "% of the kernel time" in ran.stderr and "--force" in ran.stderr)
    found = candidates(dump, "--trace", trace, "--force")
    checks.equal("measured: every claim is unsure then",
                 {r["claim"] for r in found if r["saving_us"] is not None},
                 {"unsure"})
    checks.true("measured: what is not known says why",
                all(r["claim"].startswith("unknown: ") for r in found
                    if r["saving_us"] is None))
    for row in found:
        name = f"measured: {row['candidate']}"
        saving = row["saving_us"]
        if saving is not None:
            checks.true(name + " saves no more than it takes",
                        0 <= saving <= row["measured_us"])
            checks.true(name + " is no more than the step",
                        row["percent_of_step"] <= 100)
        else:
            checks.true(name + " says why it claims nothing",
                        row["measured_us"] == 0 or
                        "fuse_gemms" in row["candidate"])
    swiglu = [r for r in found if r["candidate"] == "match_swiglu_pattern"]
    checks.true("measured: SwiGLU has kernels of the trace",
                len(swiglu) == 1 and swiglu[0]["measured_us"] > 1000)


def check_overlaps(checks, dump):
    """Savings of places that share nodes are not added."""
    document = json.loads(lamina("graph", "candidates", dump, "--format",
                                 "json").stdout)
    found, places = rows(document, "candidates"), rows(document, "candidate_places")
    nodes = {r["candidate"]: [] for r in found}
    for place in places:
        nodes[place["candidate"]].append(set(place["nodes"].split()))
    taken, expected = set(), {}
    for row in found:
        own = nodes[row["candidate"]]
        free = sum(not place & taken for place in own)
        if row["saving_us"] is not None:
            expected[row["candidate"]] = row["saving_us"] * free / len(own)
            taken |= set().union(*own)
    for row in found:
        if row["candidate"] in expected:
            checks.true(f"overlaps: {row['candidate']}: net",
                        abs(row["net_us"] - expected[row["candidate"]]) < 0.01)
    wanted = set()
    for i, a in enumerate(found):
        for b in found[i + 1:]:
            shared = sum(any(x & y for x in nodes[a["candidate"]])
                         for y in nodes[b["candidate"]])
            if shared:
                wanted.add((a["candidate"], b["candidate"], shared))
    checks.equal("overlaps: pairs",
                 {(r["a"], r["b"], r["shared_places"])
                  for r in rows(document, "candidate_overlaps")}, wanted)
    checks.true("overlaps: the sample has some", wanted)
    checks.true("overlaps: a note says so",
                any(n["id"] == "overlaps" for n in document["notes"]))


def check_sample(checks, dump):
    """What a rule matches is a candidate, also where the rule is missing."""
    check_overlaps(checks, dump)
    found = candidates(dump)
    checks.true("sample: candidates", len(found) > 3)
    for row in found:
        checks.true(f"sample: {row['candidate']} has a recommendation",
                    row["recommendation"] in ("use_existing_kernel",
                                              "needs_triton_fallback", "defer"))
    norms = [r for r in found if r["candidate"] == "match_rmsnorm_pattern"]
    checks.equal("sample: the norm by its rule", len(norms), 1)
    without = candidates(dump, "--without-rule", "match_rmsnorm_pattern")
    checks.true("sample: the norm is found without its rule",
                norms and any(r["occurrences"] == norms[0]["occurrences"] and
                              r["kind"] == "norm chain" for r in without))
    checks.true("sample: and not by it",
                all(r["candidate"] != "match_rmsnorm_pattern"
                    for r in without))


def main():
    checks = Checks()
    with temporary() as work:
        dump = pathlib.Path(work) / "001_export_export_to_gm.txt"
        dump.write_bytes(gzip.decompress(
            (SAMPLES / "fusions" / f"{dump.name}.gz").read_bytes()))
        check_sample(checks, dump)
    folder, truth = reference_dumps()
    for name, model in truth.items():
        if name == "_about" or "log" not in model:
            continue
        order = [transform for _, transform, _ in model["log"]]
        counts = {t: n for _, t, n in model["log"]
                  if isinstance(n, int) and n > 0}
        for file, facts in model["files"].items():
            found = candidates(folder / "dumps" / name / file)
            first = {r["candidate"]: r for r in found[:10]}
            listed = {r["candidate"]: r for r in found}
            here = (order.index(facts["transform"])
                    if facts["transform"] in order else -1)
            shown = facts["sections"][0]["rule_matches"]
            for rule in shown:
                if rule in counts and order.index(rule) > here:
                    if (rule, facts["transform"]) in RENAMES:
                        checks.true(f"{file}: {rule} only renames one op",
                                    rule not in listed)
                        continue
                    checks.true(f"{file}: {rule} is among the first ten",
                                rule in first)
                    checks.true(f"{file}: a kernel is named for {rule}",
                                rule in NO_KERNEL or
                                first.get(rule, {}).get("kernels"))
            if "fuse_gemms" in shown:
                checks.true(f"{file}: fuse_gemms is marked as disabled",
                            listed["fuse_gemms"]["in_log"] ==
                            "disabled in the log")
            for row in found:
                checks.true(f"{file}: {row['candidate']} has a recommendation",
                            row["recommendation"] in
                            ("use_existing_kernel", "needs_triton_fallback",
                             "defer"))
                checks.true(f"{file}: {row['candidate']}: look-up and advice "
                            "agree", row["lookup"] == "found" or
                            row["recommendation"] != "use_existing_kernel")
                checks.equal(f"{file}: {row['candidate']}: doubt is settled by "
                             "something", row["recommendation"] == "defer",
                             bool(row["settled_by"]))
                checks.true(f"{file}: {row['candidate']} is no kernel without "
                            "a look-up",
                            row["recommendation"] != "needs_triton_fallback" or
                            row["lookup"] == "not_found")

    export = (folder / "dumps/llama_32l_gqa_symbolic" /
              "001_export_export_to_gm.txt")
    without = candidates(export, "--without-rule", "match_rmsnorm_pattern")
    checks.true("the norm is found without its rule",
                any(r["occurrences"] == 65 and r["kind"] == "norm chain" and
                    r["pattern"].count("\n") == 7 for r in without))
    without = candidates(export, "--without-rule", "match_swiglu_pattern")
    checks.true("the product of SwiGLU is found without its rule",
                any(r["occurrences"] == 32 and "aten.silu" in r["pattern"] and
                    "aten.mul" in r["pattern"] for r in without))
    without = candidates(export, "--without-rule", "match_rope_pattern")
    checks.true("rotary embedding is found without its rule",
                any(r["occurrences"] in (32, 64) and
                    "aten.neg" in r["pattern"] and "aten.cat" in r["pattern"]
                    for r in without))
    check_measured(checks, folder)
    checks.finish()


if __name__ == "__main__":
    main()
