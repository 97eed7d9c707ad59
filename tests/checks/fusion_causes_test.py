#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Why a place does not match: every reason of a place is told, and shapes that
were lost are told as such, in the form in which a dump shows them. Why a
transform finds less than in another run."""
import gzip
import json
import pathlib
import re

import common
from common import lamina, temporary

DUMP = gzip.decompress((common.SAMPLES / "fusions/001_export_export_to_gm.txt.gz"
                        ).read_bytes()).decode()
SWIGLU = "match_swiglu_pattern"
RMS = "match_rmsnorm_pattern"
KV = "match_repeat_kv"


def census(text, path):
    path.write_text(text)
    tables = json.loads(lamina("graph", "census", path, "--format",
                               "json").stdout)["tables"]
    rules = {r["rule"]: r for r in tables["census_rules"]}
    return rules, tables.get("near_misses", [])


def line(text, name, change):
    """`change` of the line that defines a value."""
    found = re.search(rf"(?m)^%{name} = .*$", text)
    return text[:found.start()] + change(found[0]) + text[found.end():]


def swapped(text, name):
    """The two operands of a value in the other order."""
    return line(text, name, lambda one: re.sub(
        r"\((%\w+ : \S+ : \S+), (%\w+ : \S+ : [^,)]+)", r"(\2, \1", one))


def read_twice(text, name):
    return text.rstrip("\n") + f", %{name}\n"


def literal(text, name, old, new):
    return line(text, name, lambda one: one.replace(f", {old})", f", {new})"))


def lost(text, *names):
    """As the writer prints values without meta: at their definition and at
    every use."""
    for name in names:
        text = line(text, name, lambda one: re.sub(
            r" : \S+ : torch\.\w+$", " : ? : N/A", one))
        text = re.sub(rf"%{name} : [^,()\[\]]+? : torch\.\w+",
                      f"%{name} : ? : unknown", text)
    return text


def check_causes(checks, work):
    path = work / "dump.txt"
    rules, misses = census(DUMP, path)
    base = {r: rules[r]["matches"] for r in (SWIGLU, RMS, KV)}
    checks.equal("as it is", (base, misses),
                 ({SWIGLU: 4, RMS: 9, KV: 8}, []))
    output = DUMP.rstrip("\n").rsplit("\n", 1)[1]
    checks.true("the output is one line", output.startswith("output "))
    two = swapped(read_twice(DUMP, "silu"), "mul_8")
    cases = [
        ("swapped", swapped(DUMP, "mul_8"), SWIGLU, {"operand_order"}),
        ("read twice", read_twice(DUMP, "silu"), SWIGLU, {"extra_user"}),
        ("swapped and read twice", two, SWIGLU,
         {"operand_order", "extra_user"}),
        ("read twice at two values",
         read_twice(read_twice(DUMP, "pow_1"), "mean"), RMS, {"extra_user"}),
        ("another power", literal(DUMP, "pow_1", 2, 3), RMS, {"literal"}),
        ("another power, read twice",
         read_twice(literal(DUMP, "pow_1", 2, 3), "rsqrt"), RMS,
         {"literal", "extra_user"}),
        ("three reasons", swapped(read_twice(read_twice(two, "mul_8"),
                                             "torch_linear_simple_5"), "mul_8"),
         SWIGLU, None),
    ]
    for what, text, rule, classes in cases:
        rules, misses = census(text, path)
        own = [m for m in misses if m["rule"] == rule]
        if classes is None:
            checks.true(f"{what}: no more than two", all(
                m["causes"] <= 2 for m in own))
            continue
        checks.equal(f"{what}: matches", rules[rule]["matches"], base[rule] - 1)
        checks.equal(f"{what}: places", rules[rule]["near_misses"], 1)
        checks.equal(f"{what}: reasons", {m["class"] for m in own}, classes)
        number = 2 if "two" in what else len(classes)
        checks.equal(f"{what}: causes", [m["causes"] for m in own],
                     [number] * number)
        checks.equal(f"{what}: the set", rules[rule]["reasons"],
                     "1 " + "+".join(sorted(classes)))
        for miss in own:
            checks.equal(f"{what}: the other reason is named",
                         bool(miss["with"]), number > 1)
    # One reason comes before two.
    text = swapped(swapped(read_twice(DUMP, "silu"), "mul_8"), "mul_17")
    checks.equal("one first", [m["causes"] for m in census(text, path)[1]
                               if m["rule"] == SWIGLU], [1, 2, 2])


def check_metadata(checks, work):
    path = work / "lost.txt"
    rules, misses = census(lost(DUMP, "silu"), path)
    checks.equal("one value", [(m["rule"], m["node"], m["class"])
                               for m in misses], [("", "silu", "metadata_loss")])
    checks.true("one value: its evidence",
                "users still show" not in misses[0]["evidence"])
    silus = re.findall(r"(?m)^%(silu\w*) = ", DUMP)
    _, misses = census(lost(DUMP, *silus), path)
    checks.equal("all of an op", [m["node"] for m in misses], silus)
    stale = line(DUMP, "silu", lambda one: re.sub(
        r" : \S+ : torch\.\w+$", " : ? : N/A", one))
    _, misses = census(stale, path)
    checks.true("edited by hand", "stale_use" in misses[0]["evidence"])
    # A guard that reads it: the transform cannot answer it either.
    rules, misses = census(lost(DUMP, "expand"), path)
    own = [m for m in misses if m["rule"] == KV]
    checks.equal("a guard reads it: matches", rules[KV]["matches"], 7)
    checks.equal("a guard reads it: why", [(m["class"], m["node"])
                                           for m in own],
                 [("metadata_loss", "expand")])
    # Nothing has shapes: nothing was lost.
    names = re.findall(r"(?m)^%(\w+) = ", DUMP)
    rules, misses = census(lost(DUMP, *names), path)
    checks.equal("nothing has shapes", [m for m in misses if not m["rule"]], [])
    checks.true("nothing has shapes: possible",
                rules[KV]["matches"] == 8 and rules[KV]["possible"] == 8)
    # A folder says since when.
    folder = work / "run"
    folder.mkdir()
    (folder / "001_export_export_to_gm.txt").write_text(DUMP)
    (folder / "002_pattern_matcher_match_x.txt").write_text(lost(DUMP, "silu"))
    rows = json.loads(lamina("graph", "census", folder, "--format",
                             "json").stdout)["tables"]["near_misses"]
    checks.equal("since", [m["evidence"] for m in rows if not m["rule"]],
                 ["no shape and dtype since 001_export_export_to_gm.txt"])


def check_lost_matches(checks, work):
    """The verdict of log-diff is that of the dumps in front of the transform;
    without dumps nothing is known."""
    def run(name, text, rule, matches, more=()):
        folder = work / name
        folder.mkdir()
        (folder / "001_export_export_to_gm.txt").write_text(text)
        for file, other in more:
            (folder / file).write_text(other)
        (folder / "transform.log").write_text(
            f"[stage=pattern_matcher, transform={rule}] [SUMMARY] "
            f"matches={matches} | time: 0.001s\n")
        return folder

    def verdict(a, b, *options, status=1):
        done = lamina("graph", "log-diff", a / "transform.log",
                      b / "transform.log", *options, "--format", "json",
                      status=status)
        return json.loads(done.stdout)["tables"]["log_diff"][0]["class"]

    silu = f"004_pattern_matcher_{SWIGLU}.txt"
    no_rsqrt = re.sub(r"aten\.rsqrt\.default", "aten.reciprocal.default", DUMP)
    cases = [
        ("two", KV, 8, 6, lost(DUMP, "expand", "expand_1"), (),
         "metadata loss: 2 values without shape since 001_export_export_to_gm"),
        # Only the dump behind the transform lacks them: it is not why.
        ("behind", SWIGLU, 4, 3, read_twice(DUMP, "silu"),
         [(silu, lost(DUMP, "silu"))], "extra_user (1 more)"),
        ("one", SWIGLU, 4, 3, read_twice(DUMP, "silu"), (),
         "extra_user (1 more)"),
        ("gone", RMS, 9, 0, no_rsqrt, (), "pattern lost: aten.rsqrt 9 -> 0"),
        ("same", RMS, 9, 8, DUMP, (), "unknown cause"),
    ]
    # A run that found nothing wrote no dump of it: the other one has its place.
    norms = f"004_pattern_matcher_{RMS}.txt"
    kv = f"002_pattern_matcher_{KV}.txt"
    a = run("no_dump_a", DUMP, RMS, 9, [(kv, DUMP), (norms, DUMP)])
    b = run("no_dump_b", DUMP, RMS, 0, [(kv, no_rsqrt)])
    checks.equal("no dump of it", verdict(a, b, "--dumps", a, b),
                 "pattern lost: aten.rsqrt 9 -> 0")
    # What both runs lack is not why.
    less = lost(DUMP, "silu")
    a = run("both_a", less, KV, 8, [(kv, less), (norms, less)])
    b = run("both_b", less, KV, 6, [
        ("002_pattern_matcher_match_x.txt", lost(less, "expand", "expand_1")),
        (f"003_pattern_matcher_{KV}.txt", lost(less, "expand", "expand_1"))])
    checks.equal("what both lack", verdict(a, b, "--dumps", a, b),
                 "metadata loss: 2 values without shape since "
                 "002_pattern_matcher_match_x")
    # A dump that is cut off is said, as by every command that reads one.
    half = run("half", DUMP[:len(DUMP) // 2], KV, 6)
    done = lamina("graph", "log-diff", a / "transform.log",
                  half / "transform.log", "--dumps", a, half, status=1)
    checks.true("a dump that is cut off", "001_export" in done.stderr and
                "truncated" in done.stderr)
    # What the log says of it is known.
    log = b / "transform.log"
    log.write_text(log.read_text().replace("matches=6", "skipped"))
    checks.equal("skipped", verdict(a, b, "--dumps", a, b), "skipped")
    for name, rule, matches, left, text, more, wanted in cases:
        a = run(f"{name}_a", DUMP, rule, matches,
                [(file, DUMP) for file, _ in more])
        b = run(f"{name}_b", text, rule, left, more)
        checks.equal(f"{name}: with dumps", verdict(a, b, "--dumps", a, b),
                     wanted)
        checks.equal(f"{name}: without", verdict(a, b), "unknown cause")


def main():
    checks = common.Checks()
    with temporary() as folder:
        work = pathlib.Path(folder)
        check_causes(checks, work)
        check_metadata(checks, work)
        check_lost_matches(checks, work)
    checks.finish()


if __name__ == "__main__":
    main()
