#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina diagnose: what must hold of any diagnosis, faults put into simulated
runs and their healthy twins, the options of CI, and what the shared traces are
known to show."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from common import (LAMINA, ROOT, SAMPLES, lamina, run_parts, shared,
                    temporary)

sys.path.insert(0, str(ROOT / "tools" / "generator"))
from faults import FAULTS, NOISE, make, make_healthy  # noqa: E402

STATES = {"found", "silent", "abstained", "suppressed", "failed"}


def diagnose(trace, *args):
    return json.loads(lamina("diagnose", trace, "--format", "json",
                             *args).stdout)


def promised(document):
    """Findings without lines of what is open."""
    return [f for f in document["findings"] if not f["open_ns"]]


def status(*args):
    done = subprocess.run([LAMINA, "diagnose", *map(str, args)],
                          capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def check_any(checks, trace):
    """Time is owned once, every rule has a state, nothing is shown twice."""
    name = trace.name
    document = diagnose(trace, "--all")
    window = document["window"]
    checks.true(f"{name}: owned idle time is idle time",
                0 <= window["owned_idle_ns"] <= window["idle_ns"])
    runs = document["rules_run"]
    checks.true(f"{name}: states", all(r["state"] in STATES for r in runs))
    checks.equal(f"{name}: no rule fails",
                 [r for r in runs if r["state"] == "failed"], [])
    checks.true(f"{name}: who abstains says why",
                all(r["reason"] for r in runs if r["abstained"]))
    devices = max(1, len(window["devices"]))
    owned = sum(f["owned_ns"] for f in document["findings"])
    checks.true(f"{name}: no nanosecond is owned twice",
                owned <= devices * window["window_ns"])
    for f in document["findings"]:
        checks.true(f"{name} {f['id']}: gain within what is owned",
                    f["gain_ns"] * devices <= f["owned_ns"])
        checks.true(f"{name} {f['id']}: range holds the gain",
                    f["gain_low_ns"] <= f["gain_ns"] <= f["gain_high_ns"])
        checks.true(f"{name} {f['id']}: a fix and a sentence with a number",
                    f["fix"] and any(c.isdigit() for c in f["what"]) and
                    "{" not in f["what"])
    ids = [f["id"] for f in document["findings"]]
    checks.equal(f"{name}: ids are unique", len(ids), len(set(ids)))
    checks.equal(f"{name}: threads change nothing",
                 diagnose(trace, "--all", "--threads", "1"), document)


def write_examples(folder):
    subprocess.run([sys.executable, ROOT / "bench/diagnose", "--write",
                    folder], check=True)
    # Bytes behind the end are none of a packed file.
    run, _ = make("stray_bytes", 1, 0.08, NOISE[0])
    run.write(folder / "fault-stray_bytes.json")


def check_faults(checks, folder, examples):
    """Of each kind one run with the fault: its rule speaks, and nothing that
    the truth does not allow; its gain is near the truth where it is
    measured."""
    for name in ("gc_pause", "loader_in_thread", "device_sync", "alloc_churn",
                 "reserve_limit", "near_capacity", "memory_roomy",
                 "h2d_main_stream", "fp32_matmul", "cast_storm", "cpu_item",
                 "graph_gaps", "detokenize", "host_work", "rank_slow_compute",
                 "rank_late_host", "rank_more_data", "moe_imbalance",
                 "pipeline_uneven", "idle_device", "uneven_devices",
                 "clock_counter", "clock_steady", "default_stream",
                 "full_streams", "padded_batch", "little_padding",
                 "lock_held", "second_thread", "graph_breaks", "clock_idle",
                 "stray_device", "compiled_blocks", "strided_groups",
                 "regions_in_a_row", "full_recompute", "recompute_when_full",
                 "dense_table_grad", "small_table_grad", "graph_padding",
                 "sampler_sync", "d2h_metrics", "pcie_path", "loop_work",
                 "queued_batches", "compile_worker", "trials",
                 "tuning_lookup", "extra_copies", "custom_op",
                 "device_swaps", "fsdp_offload", "hooked_weights",
                 "weights_by_module", "eager_drafts", "pipeline_late_host",
                 "cut_file",
                 "stray_bytes", "bad_record"):
        truth = json.loads((examples / f"fault-{name}.truth").read_text())
        document = diagnose(next(
            path for ending in (".json", "", ".json.gz")
            if (path := examples / f"fault-{name}{ending}").exists()))
        rest = FAULTS[name].rules and FAULTS[name].rules[0].endswith("_rest")
        spoken = {f["rule"] for f in (document["findings"] if rest else
                                      promised(document))
                  if f["gain_kind"] != "none" or FAULTS[name].no_gain}
        if rest:
            spoken &= set(FAULTS[name].rules)
        for fault in truth["faults"]:
            checks.true(f"{name}: found", spoken & set(fault["rules"]))
            gain = sum(f["gain_ns"] for f in document["findings"]
                       if f["rule"] in fault["rules"])
            if fault["measured"]:
                checks.true(f"{name}: gain {gain} of {fault['gain_ns']}",
                            0.93 < gain / fault["gain_ns"] < 1.07)
        checks.equal(f"{name}: nothing else",
                     spoken - set(FAULTS[name].rules) -
                     set(FAULTS[name].also_ok), set())
    # Kernels that vary by 8 % keep ranks waiting whatever is mended.
    for name in ("rank_more_data", "moe_imbalance"):
        run, truth = make(name, 920000, 0.025, NOISE[2])
        path = folder / f"noisy-{name}"
        run.write(path)
        rules, true_ns = (truth["faults"][0][k] for k in ("rules", "gain_ns"))
        gain = sum(f["gain_ns"] for f in diagnose(path)["findings"]
                   if f["rule"] in rules)
        checks.true(f"noisy {name}: gain {gain} of {true_ns}",
                    0.94 < gain / true_ns < 1.06)
    for kind, seed in (("train", 12), ("serve", 12), ("job", 12), ("job", 13),
                       ("job", 14)):
        run, _ = make_healthy(kind, seed, NOISE[1])
        path = folder / (f"healthy-{kind}{seed}" +
                         (".json" if kind != "job" else ""))
        run.write(path)
        checks.equal(f"healthy {kind}: nothing above 1 %",
                     [f["id"] for f in diagnose(path)["findings"]
                      if f["share"] >= 0.01], [])


def check_options(checks, folder):
    run, _ = make("host_work", 11, 0.08, NOISE[0])
    trace = folder / "options.json"
    run.write(trace)
    checks.equal("exit status without --fail-on", status(trace)[0], 0)
    checks.equal("--fail-on hit", status(trace, "--fail-on", "host.other")[0],
                 1)
    checks.equal("--fail-on below", status(trace, "--fail-on",
                                           "host.other:99")[0], 0)
    checks.equal("--fail-on any", status(trace, "--fail-on", "any:5")[0], 1)
    checks.equal("no such rule", status(trace, "--fail-on", "host.othr")[0], 2)
    checks.equal("--fail-on also counts what is below --min-share", status(
        trace, "--min-share", "50", "--fail-on", "host.other:5")[0], 1)
    code, _, error = status(trace, "--category", "hots")
    checks.true("no such category", code == 2 and
                "--category: there is no category hots" in error)
    bare, _ = make_healthy("train", 3, NOISE[0])
    for event in bare.events:
        for key in ("Input Dims", "Input type"):
            event.get("args", {}).pop(key, None)
    blind = folder / "blind.json"
    bare.write(blind)
    code, _, error = status(blind, "--fail-on", "kernel.attention_math")
    checks.equal("a rule that cannot look fails its check", code, 1)
    checks.true("and says so", "could not look" in error)
    checks.equal("unless told otherwise", status(
        blind, "--fail-on", "kernel.attention_math", "--abstain", "ok")[0], 0)
    run, _ = make("loader_in_thread", 5, 0.08, NOISE[0])
    for event in run.events:
        event.get("args", {}).pop("correlation", None)
    loose = folder / "loose.json"
    run.write(loose)
    document = json.loads(loose.read_text())
    document["traceEvents"] = [e for e in document["traceEvents"]
                               if e.get("ph") not in ("s", "f")]
    loose.write_text(json.dumps(document))
    checks.equal("kernels that only name their op: launches are not known", {
        r["rule"]: r["reason"] for r in diagnose(loose)["rules_run"]
        if r["rule"] in ("data.main_thread", "host.other")},
        {"data.main_thread": "weak_links", "host.other": "weak_links"})
    run, _ = make("recompile", 3, 0.15, NOISE[0])
    run.events = [e for e in run.events
                  if not e.get("name", "").startswith("ProfilerStep#")]
    again = folder / "again.json"
    run.write(again)
    checks.equal("without steps: what is compiled again is no start",
                 [f["rule"] for f in diagnose(again)["findings"]
                  if f["rule"] in ("trace.cold_start", "host.other")],
                 ["host.other"])
    known = folder / ".lamina-findings.yaml"
    known.write_text("- {rule: host.other, reason: known}\n")
    checks.equal("suppressed", promised(diagnose(trace)), [])
    checks.equal("no hit", status(trace, "--fail-on", "any:5")[0], 0)
    code, _, error = status(trace, "--fail-on", "any:5")
    checks.true(f"the file is named: {error}", str(known) in error)
    deep = folder / "project" / "traces"
    deep.mkdir(parents=True)
    inner = deep / trace.name
    shutil.copy(trace, inner)
    checks.equal("outside of a repository what lies above is nobody's",
                 status(inner, "--fail-on", "any:5")[0], 1)
    (folder / "project" / ".git").mkdir()
    checks.equal("nor is what lies above the repository",
                 status(inner, "--fail-on", "any:5")[0], 1)
    shutil.copy(known, folder / "project")
    checks.equal("in the repository it is used",
                 status(inner, "--fail-on", "any:5")[0], 0)
    if os.geteuid() == 0:
        own = folder / "project" / known.name
        os.chown(own, 12345, -1)
        code, _, error = status(inner, "--fail-on", "any:5")
        checks.true(f"a file of another user is not: {code} {error}",
                    code == 1 and f"{own} belongs to another user" in error)
        checks.equal("but where it is asked for",
                     status(inner, "--fail-on", "any:5", "--suppress",
                            own)[0], 0)
    known.write_text("- {rule: host.other, max_share: 0.01, reason: known}\n")
    checks.equal("back above its share",
                 [f["rule"] for f in promised(diagnose(trace))],
                 ["host.other"])
    known.write_text("- {rule: host.gc_pause, reason: gone}\n"
                     "- {rule: host.othr, reason: misspelt}\n")
    code, _, error = status(trace)
    checks.true("suppressions of nothing are told", code == 0 and
                "host.gc_pause matches no finding" in error and
                "host.othr names no rule" in error)
    known.write_text("- {rule: host.other}\n")
    code, _, error = status(trace)
    checks.equal("a suppression needs a reason", code, 3 if code == 3 else 2)
    known.unlink()
    sarif = json.loads(status(trace, "--format", "sarif")[1])
    results = sarif["runs"][0]["results"]
    checks.equal("SARIF results", [r["ruleId"] for r in results],
                 ["host.other"])
    for name in ("review.sarif", "review.sarif.json"):
        lamina("diagnose", trace, "-o", folder / name)
        checks.equal(f"the ending of {name} says the format",
                     json.loads((folder / name).read_text()), sarif)
    checks.equal("which other commands do not write", subprocess.run(
        [LAMINA, "report", trace, "-o", folder / "report.sarif"],
        capture_output=True).returncode, 2)
    rules = {r["id"] for r in sarif["runs"][0]["tool"]["driver"]["rules"]}
    checks.true("SARIF names its rules", "host.other" in rules)
    text = status(trace, "--format", "markdown")[1]
    checks.true("Markdown", text.startswith("1 finding") and "| 1 |" in text)
    checks.true("--explain", "owner rank" in status("--explain",
                                                    "host.other")[1])


def check_report(checks, folder):
    """The first screen of a report: the verdict, then findings, each with
    events of the trace."""
    run, truth = make("gc_pause", 11, 0.08, NOISE[0])
    trace = folder / "report.json"
    run.write(trace)
    document = json.loads(lamina("report", trace, "--format", "json").stdout)
    notes = document["notes"]
    rules = [f["id"].split("@")[0] for f in document["tables"]["findings"]]
    checks.equal("report: findings are those of diagnose", rules,
                 [f["rule"] for f in diagnose(trace)["findings"]])
    worth = [n.get("worth_us", 0) for n in notes
             if n["severity"] == "opportunity"]
    checks.equal("report: what could be won falls", worth,
                 sorted(worth, reverse=True))
    told = [f for f in diagnose(trace)["findings"] if f["rule"] == rules[0]]
    first = next(n for n in notes if n["id"] == rules[0])
    checks.true("report: a finding says what diagnose says",
                first["text"].startswith(told[0]["what"]))
    events = first["evidence"][0]["events"]
    checks.true("report: idle time leads to the work that ended it", events)
    rows = json.loads(lamina(
        "query", trace, "SELECT count(*) AS n FROM device_events WHERE uid IN "
        f"({','.join(map(str, events))})", "--format", "json").stdout)
    checks.equal("report: and that is work of the device",
                 rows["tables"]["result"][0]["n"], len(events))
    checks.true("report: not more than five findings", sum(
        n["evidence"][0]["table"] == "findings" for n in notes
        if n["evidence"]) <= 5)
    checks.true("report: no sentence about what a finding explains",
                "device_idle" not in [n["id"] for n in notes])
    only = json.loads(lamina("report", trace, "--only", "findings,ops",
                             "--format", "json").stdout)["tables"]
    checks.equal("report: --only findings,ops", list(only),
                 ["findings", "ops"])
    done = lamina("report", trace, "--only", "rules_run", "--format", "csv")
    checks.true("report: --only rules_run", "host.gc_pause,found" in
                done.stdout)


def check_diff(checks, folder):
    """A fault that is gone is fixed, with its gain beside the real change;
    what could not be looked at any more is not."""
    run, truth = make("gc_pause", 11, 0.08, NOISE[0])
    faulty = folder / "faulty.json"
    run.write(faulty)
    fixed, _ = make_healthy("train", 11, NOISE[0])
    healthy = folder / "fixed.json"
    fixed.write(healthy)
    document = json.loads(lamina("diff", faulty, healthy, "--findings",
                                 "--format", "json").stdout)
    rows = document["tables"]["finding_changes"]
    checks.equal("diff: fixed", [(r["change"], r["id"].split("@")[0])
                                 for r in rows], [("fixed", "host.gc_pause")])
    checks.true("diff: predicted and got",
                "predicted" in document["notes"][0]["text"])
    same = json.loads(lamina("diff", faulty, faulty, "--findings", "--format",
                             "json").stdout)["tables"]["finding_changes"]
    checks.equal("diff: same", [r["change"] for r in same], ["same"])


def check_ranks_and_examples(checks, folder, examples):
    document = diagnose(SAMPLES / "ranks")
    checks.equal("ranks: devices", len(document["window"]["devices"]), 4)
    checks.true("ranks: who shows it", all(
        f["what"].endswith("of 4 ranks.") for f in document["findings"]
        if not f["rule"].startswith("rank.")))
    late = [f for f in document["findings"]
            if f["rule"] == "rank.straggler_compute"]
    checks.true("ranks: the slow one", len(late) == 1 and
                late[0]["what"].startswith("Rank 2 "))
    each = sorted((SAMPLES / "ranks").glob("rank?.json.gz"))
    checks.equal("ranks that are named one by one are those of the folder",
                 diagnose(each[0], *each[1:])["findings"][0]["what"],
                 document["findings"][0]["what"])
    copy = folder / "ranks"
    shutil.copytree(SAMPLES / "ranks", copy)
    (copy / ".lamina-findings.yaml").write_text(
        "- {rule: rank.straggler_compute, reason: known}\n")
    checks.equal("suppressions beside the traces of a folder",
                 [f["rule"] for f in diagnose(copy)["findings"]
                  if f["rule"] == "rank.straggler_compute"], [])
    checks.equal("--check of a folder that is not there",
                 status("--check", folder / "none")[0], 3)
    one = diagnose(SAMPLES / "ranks" / "rank0.json.gz")
    states = {r["rule"]: r for r in one["rules_run"]}
    checks.equal("one rank: rules over ranks could not look",
                 states["rank.straggler_compute"]["state"], "abstained")
    done = subprocess.run([LAMINA, "diagnose", "--check", str(examples),
                           "--format", "json"], capture_output=True, text=True)
    rows = json.loads(done.stdout)["tables"]["rule_examples"]
    checks.equal("examples that do not hold",
                 [r for r in rows if r["holds"] is not True], [])
    checks.equal("--check", done.returncode, 0)
    for row in rows[:1]:
        (examples / row["example"].replace(":", "-")).with_suffix(
            ".json.gz").unlink(missing_ok=True)
    healthy = examples / "healthy-train.json.gz"
    (examples / "fault-gc_pause.json.gz").write_bytes(healthy.read_bytes())
    checks.equal("--check fails when a find is missed",
                 status("--check", examples)[0], 1)


def check_rules(checks, folder):
    """Rules of users: what is wrong is said with its place."""
    rules = folder / "rules" / "findings"
    rules.mkdir(parents=True)
    file = rules / "mine.yaml"
    good = """rules:
  - rule: mine.long_gaps
    title: Long gaps
    owner_rank: 20
    claims: "SELECT device, start_ns, dur_ns FROM idle_parts WHERE dur_ns > 1000000"
    when: "owned_ns > 0"
    gain: {kind: measured}
    confidence: [{is: fact, reason: "recorded"}]
    texts: {what: "{claims} gaps of {owned}."}
    fix: [{layer: model, effort: lines, text: "Mend it."}]
"""
    file.write_text(good)
    run, _ = make("host_work", 11, 0.08, NOISE[0])
    trace = folder / "mine.json"
    run.write(trace)
    found = [f for f in diagnose(trace, "--rules", folder / "rules")["findings"]
             if f["rule"] == "mine.long_gaps"]
    checks.equal("a user's rule without examples is a hint",
                 [f["confidence"] for f in found], ["hint"])
    check_groups(checks, trace, rules, good)
    for what, text in (
            ("an unknown key", good.replace("title:", "titel:")),
            ("an unknown kind", good.replace("measured", "guessed")),
            ("an open placeholder", good.replace("{owned}.", "{owned.")),
            ("words of a number", good.replace("{claims} gaps",
                                               "{claims:gap}")),
            ("no fix for the rest", good.replace("[{layer: model",
                                                 "[{if: \"1\", layer: model")),
            ("a wrong layer", good.replace("layer: model", "layer: modle")),
            ("a wrong need", good.replace("    title", "    needs: [shape]\n"
                                          "    title"))):
        file.write_text(text)
        code, _, error = status(trace, "--rules", folder / "rules")
        checks.equal(what, code, 3)
        checks.true(f"{what}: names the place", "mine.yaml" in error)
    file.write_text(good.replace("    fix: [", "    fix: [" + ", ".join(
        f"{{if: \"claims > {least}\", layer: kernel, effort: work, text: "
        f"\"More than {least}.\"}}" for least in (2, 1_000_000)) + ", "))
    checks.equal("a fix is told where its condition holds", [
        [fix["text"] for fix in f["fix"]] for f in
        diagnose(trace, "--rules", folder / "rules")["findings"]
        if f["rule"] == "mine.long_gaps"], [["More than 2.", "Mend it."]])
    ours = good.replace("mine.long_gaps", "host.other")
    file.write_text(ours)
    code, _, error = status(trace, "--rules", folder / "rules")
    checks.equal("a rule of ours is not replaced unasked", code, 3)
    file.write_text(ours.replace("    title", "    replaces: true\n    title"))
    checks.equal("a rule of a user takes the place of ours", [
        f["title"] for f in diagnose(trace, "--rules",
                                     folder / "rules")["findings"]
        if f["rule"] == "host.other"], ["Long gaps"])
    file.write_text("disable: [host.other, trace.too_short]\n")
    document = diagnose(trace, "--rules", folder / "rules")
    checks.equal("rules that are switched off do not run", (
        [r["rule"] for r in document["rules_run"]
         if r["rule"] in ("host.other", "trace.too_short")],
        [f["rule"] for f in document["findings"] if f["open_ns"] == 0]),
        ([], []))
    file.write_text(good.replace("    title", "    abstain: [{if: \"NOT EXISTS"
                                 " (SELECT 1 FROM counter)\", reason: no "
                                 "clock, hint: record it}]\n    title", 1))
    checks.equal("a rule abstains by a condition of its own", [
        (r["state"], r["reason"], r["could_tell_with"]) for r in
        diagnose(trace, "--rules", folder / "rules")["rules_run"]
        if r["rule"] == "mine.long_gaps"],
        [("abstained", "no clock", "record it")])
    file.write_text(good.replace("idle_parts", "idle_partz"))
    document = diagnose(trace, "--rules", folder / "rules")
    checks.equal("SQL that is wrong fails its rule alone",
                 [r["state"] for r in document["rules_run"]
                  if r["rule"] == "mine.long_gaps"], ["failed"])


def check_groups(checks, trace, rules, good):
    """Claims make one finding, or one for each group of them."""
    def run(text):
        (rules / "mine.yaml").write_text(text)
        document = diagnose(trace, "--rules", rules.parent)
        rule = [r for r in document["rules_run"]
                if r["rule"] == "mine.long_gaps"][0]
        return (rule["state"], rule["reason"],
                [f["claims"] for f in document["findings"]
                 if f["rule"] == "mine.long_gaps"])

    state, _, (claims,) = run(good)
    checks.true("a rule without groups has more than a claim", claims > 2)
    # A total that is no aggregate would say something of every claim.
    checks.equal("a total of facts alone", run(good.replace(
        "    when", "    totals: {part: \"1.0 * :idle_ns / :window_ns\"}\n"
        "    when"))[::2], (state, [claims]))
    checks.equal("a column of a group that claims lack", run(
        good.replace("SELECT device,", "SELECT device, detail,")
        .replace("{claims} gaps", "{claims} gaps in {detail}")
        .replace("    when", "    group: [Detail]\n    when"))[:2],
        ("failed", "claims have no column Detail"))
    # Texts of two columns that would read alike behind one another.
    both = [run(good.replace("SELECT device,", f"SELECT {column} device,")
                .replace("    when", "    group: [one, two]\n"
                         "    anchor: [one, two]\n    when"))[2]
            for column in (
                "iif(row_number() OVER () % 2, 'a', 'b') AS one, 'c' AS two,",
                "iif(row_number() OVER () % 2, 'a', 'a' || char(31) || '1b') "
                "AS one, iif(row_number() OVER () % 2, "
                "'b' || char(31) || '1c', 'c') AS two,")]
    checks.equal("groups are apart whatever their texts hold",
                 (len(both[1]), sorted(both[1])), (2, sorted(both[0])))


# What the shared traces are known to show: rule -> (low, high) of owned time
# in nanoseconds, or None for silent.
KNOWN = {
    "h100-owlv2.json.gz": {
        "data.main_thread": (480e6, 495e6),
        "kernel.attention_math": (250e6, 500e6),
        # The same products: what fuses them takes their copies with it.
        "kernel.unaligned_gemm": None},
    "ns-resolution.json.gz": {"kernel.fp32_matmul": (120e6, 240e6)},
    "simple-add.json.gz": {"trace.cold_start": (15e9, 16e9)},
    "normalization.json.gz": {"trace.cold_start": (0.9e9, 1.068e9)},
    "h100-bert-small.json.gz": {"host.launch_bound": (2.8e6, 3.54e6),
                                "host.sync_scalar": None},
    "mi300-falconsai-vit.json.gz": {"host.launch_bound": (4e6, 5.3e6)},
    "h100-qwen1.5-0.5b.json.gz": {
        "kernel.layout_copies": (1.5e6, 6.8e6),
        "kernel.cast_storm": (2e6, 3.4e6)},
    "compile-triton.json.gz": {"host.launch_bound": None},
    "rocprof-908.json.gz": {"kernel.cast_storm": None},
    "queue-length.json.gz": {
        "host.sync_scalar": None, "host.launch_bound": None,
        "comm.exposed_p2p": (150e6, 171.5e6),
        # Waiting alone is no proof that records are missing.
        "trace.missing_device_records": None,
        "device.idle_rest": (500e6, 800e6)},
    "nccl-fields.json.gz": {"comm.grad_copies": (70e6, 110e6)},
    "h100-falconsai-vit.json.gz": {"host.launch_bound": (4e6, 30e6)},
    "alexnet.json.gz": {"trace.cold_start": (12.7e9, 12.9e9)},
    "vllm-decode-full/capture/graph_capture_rank_0.1773709742341309550.pt."
    "trace.json.gz": {"trace.graph_capture": (50e6, 58e6)},
}


def check_shared(checks, folder):
    for name, rules in KNOWN.items():
        trace = folder / "traces" / name
        document = diagnose(trace, "--all")
        owned = {}
        for f in document["findings"]:
            owned[f["rule"]] = owned.get(f["rule"], 0) + f["owned_ns"]
        for rule, wanted in rules.items():
            if wanted is None:
                checks.true(f"{name}: {rule} does not speak",
                            rule not in owned)
            else:
                low, high = wanted
                checks.true(f"{name}: {rule} owns {owned.get(rule, 0)}",
                            low <= owned.get(rule, 0) <= high)


PARTS = "samples examples options rules reports traces"


def part_samples(checks):
    for sample in ("train_step.json.gz", "serve.json.gz", "moe.json.gz",
                   "graphs/replay.json.gz", "ranks/rank2.json.gz",
                   "jax.xplane.pb"):
        check_any(checks, SAMPLES / sample)


def part_examples(checks):
    with temporary() as temp:
        folder = pathlib.Path(temp)
        write_examples(folder / "examples")
        check_faults(checks, folder, folder / "examples")
        check_ranks_and_examples(checks, folder, folder / "examples")


def part_options(checks):
    with temporary() as temp:
        check_options(checks, pathlib.Path(temp))


def part_rules(checks):
    with temporary() as temp:
        check_rules(checks, pathlib.Path(temp))


def part_reports(checks):
    with temporary() as temp:
        check_report(checks, pathlib.Path(temp))
        check_diff(checks, pathlib.Path(temp))


def part_traces(checks):
    check_shared(checks, shared())


run_parts(PARTS, globals())
