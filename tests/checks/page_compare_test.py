# SPDX-License-Identifier: Apache-2.0
"""Pages of several traces: no number without its events.

Events of a row of a comparison add up to its time in each trace, and the
events of a collective are those of its ranks.
"""
import json
import pathlib
import subprocess
import sys
from decimal import Decimal

import trace_edits
from common import ROOT, Checks, SAMPLES, lamina, skip, temporary
from page_test import Page, decode, find_shared


def check_diff(checks, before, after, folder):
    """Events of a row add up to its times in A and in B; all events of both
    traces are in the page, each with its number in its own trace."""
    name = f"diff {before.name} {after.name}"
    out = folder / "diff.html"
    lamina("diff", before, after, "--format", "html", "-o", out)
    page = Page(out.read_text(encoding="utf-8"))
    manifest = page.data["manifest"]
    result = json.loads(lamina("diff", before, after, "--format",
                               "json").stdout)
    events = decode(page, "device")
    side = [0] * len(events["dur"])
    for lane in manifest["lanes"]:
        for i in range(lane["begin"], lane["end"]):
            side[i] = lane.get("trace", 0)

    def sums(column, rows):
        out = [[0, 0] for _ in range(rows + 1)]
        # A page leaves out a column that names no row.
        of = events.get(column, [0] * len(side))
        for row, dur, s in zip(of, events["dur"], side):
            out[row][s] += dur
        return out[1:]

    def ns(us):
        return int(Decimal(repr(us)) * 1000)

    columns = {"diffop": ("diff_ops", "kernel_time_"),
               "diffkernel": ("diff_kernels", "kernel_time_"),
               "diffcause": ("diff_causes", "time_")}
    for column, (table, prefix) in columns.items():
        rows = result["tables"][table]
        expected = [[ns(r[prefix + "a_us"]), ns(r[prefix + "b_us"])]
                    for r in rows]
        if table == "diff_causes":  # times without events
            for row, cells in zip(rows, expected):
                if row["cause"] in ("(overlap)", "(idle)"):
                    cells[:] = [0, 0]
        checks.equal(f"{name}: {table}", sums(column, len(rows)), expected)
    by = result["tables"]["diff_by"]
    found = [[0, 0] for _ in by]
    for column in ("diffcategory", "diffmodule", "difflayer"):
        for row, cells in enumerate(sums(column, len(by))):
            found[row] = [a + b for a, b in zip(found[row], cells)]
    checks.equal(f"{name}: diff_by", found, [
        [0, 0] if r["dimension"] == "timeline" else
        [ns(r["time_a_us"]), ns(r["time_b_us"])] for r in by])
    totals = result["tables"]["diff_totals"]
    checks.equal(f"{name}: all events", [
        sum(d for d, s in zip(events["dur"], side) if s == t)
        for t in (0, 1)], [ns(r["kernel_time_us"]) for r in totals])
    # One axis: what both have begins together.
    traces = manifest["traces"]
    checks.equal(f"{name}: names", [t["name"] for t in traces], ["A", "B"])
    numbers = set(events["uid"]) | set(decode(page, "host")["uid"])
    checks.equal(f"{name}: numbers are unique", len(numbers),
                 len(events["uid"]) + len(decode(page, "host")["uid"]))
    checks.equal(f"{name}: numbers of B", min(
        uid for uid, s in zip(events["uid"], side) if s == 1) >=
        traces[1]["first_uid"], True)
    note = next(n for n in manifest["notes"] if n["id"] == "page_alignment")
    checks.true(f"{name}: says where they lie over each other",
                "lie over each other at the first device work" in note["text"])


# What a slower kernel costs, in microseconds.
EXTRA_US = 250


def slower_kernels(source, folder):
    """A copy in which five kernels, of different names, take longer."""
    document = trace_edits.load(source)
    seen = set()
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel" and len(seen) < 5 and \
                event["name"] not in seen:
            seen.add(event["name"])
            event["dur"] = round(event["dur"] + EXTRA_US, 3)
    trace_edits.save(document, folder / "slower.json")
    return folder / "slower.json", seen


def check_slower(checks, before, folder):
    """The five kernels lead the list, by what they were made slower."""
    after, names = slower_kernels(before, folder)
    result = json.loads(lamina("diff", before, after, "--format",
                               "json").stdout)
    rows = result["tables"]["diff_kernels"]
    checks.equal("five kernels differ", {r["kernel_a"] for r in rows}, names)
    checks.equal("by what was added", [r["delta_us"] for r in rows],
                 [EXTRA_US] * len(rows))
    check_diff(checks, before, after, folder)


def check_reports(checks, trace, folder):
    """Reports have no events, and more than two traces have no one axis."""
    report = folder / "report.json"
    lamina("report", trace, "--format", "json", "-o", report)
    for inputs in ((trace, report), (trace, trace, trace)):
        out = folder / "none.html"
        lamina("diff", *inputs, "--format", "html", "-o", out)
        manifest = Page(out.read_text(encoding="utf-8")).data["manifest"]
        checks.true(f"{len(inputs)} inputs: no events",
                    not any(b["name"] == "device" for b in manifest["blocks"]))
        checks.true(f"{len(inputs)} inputs: the page says why", any(
            n["id"] == "page_no_events" for n in manifest["notes"]))


def check_limits(checks, trace, folder):
    """The size holds for the page, with the events of both traces."""
    host = []
    for limit in ("25", "0.01", "0.001"):
        out = folder / "limit.html"
        lamina("diff", trace, trace, "--format", "html", "-o", out,
               "--html-max-mb", limit)
        page = Page(out.read_text(encoding="utf-8"))
        host.append(len(decode(page, "host")["uid"]))
        checks.equal(f"{limit} MB: device events of both",
                     len(decode(page, "device")["uid"]), 2 * 212)
        checks.equal(f"{limit} MB: the page says what is missing", any(
            n["id"] == "page_left_out"
            for n in page.data["manifest"]["notes"]), host[-1] < host[0])
    checks.true("smaller pages hold less", host[0] > host[1] > host[2])


def check_ranks(checks, job, folder, *options):
    """Every record of a collective is an event of its rank, at its aligned
    time; the page counts what it leaves out."""
    out = folder / "ranks.html"
    lamina("ranks", job, "--format", "html", "-o", out, *options)
    page = Page(out.read_text(encoding="utf-8"))
    manifest = page.data["manifest"]
    result = json.loads(lamina("ranks", job, "--format", "json").stdout)
    events = decode(page, "device")
    found, others = [], 0
    for lane in manifest["lanes"]:
        rank = manifest["traces"][lane.get("trace", 0)]["name"]
        for i in range(lane["begin"], lane["end"]):
            if events["collective"][i] == 0:
                others += 1
                continue
            found.append((events["collective"][i] - 1, rank,
                          events["start"][i], events["dur"][i]))
    checks.equal(f"{job.name}: events of collectives", sorted(found), sorted(
        (r["id"], f"rank {r['rank']}", int(Decimal(repr(r["start_us"])) * 1000),
         int(Decimal(repr(r["dur_us"])) * 1000))
        for r in result["tables"]["collective_waits"]))
    checks.equal(f"{job.name}: numbers are unique", len(set(events["uid"])),
                 len(events["uid"]))
    said = [n["text"] for n in manifest["notes"] if n["id"] == "page_left_out"]
    return others, said


# What the generated jobs do, and how lamina names it.
LATENESS = {
    "One rank: 21 is late again and again": ["--straggler", "21"],
    "Wandering: the late rank changes from step to step": [
        "--late", "5@0,17@1,33@2,48@3,2@4,60@5,40@6,11@7"],
    "Few steps: 3 of 12 hold": ["--steps", "12", "--late", "7@2,31@5,9@8"],
}


def check_lateness(checks, folder):
    for number, (words, options) in enumerate(LATENESS.items()):
        job = folder / f"job{number}"
        subprocess.run([sys.executable, ROOT / "tools/generator/job.py", "-o",
                        job, "--tp", "4", "--pp", "1", "--dp", "16", "--steps",
                        "8", "--micro-batches", "1", "--layers", "1",
                        "--offset-us", "500", *options], check=True,
                       stdout=subprocess.DEVNULL)
        notes = json.loads(lamina("ranks", job, "--format",
                                  "json").stdout)["notes"]
        said = [n["text"] for n in notes if n["id"] == "lateness"]
        checks.true(f"{words}: found {said}",
                    len(said) == 1 and said[0].startswith(words))
    all_others, said = check_ranks(checks, folder / "job0", folder)
    checks.true("64 ranks: all events", all_others > 0 and said == [])
    others, said = check_ranks(checks, folder / "job0", folder,
                               "--html-max-mb", "0.05")
    checks.true("64 ranks: fewer in a smaller page",
                others < all_others and len(said) == 1 and
                f"the longest {others} of" in said[0].replace(",", ""))


def main():
    with temporary() as folder:
        folder = pathlib.Path(folder)
        train = SAMPLES / "train_step.json.gz"
        probe = lamina("report", train, "--format", "html", "-o",
                       folder / "a.html", status=None)
        if "has no report page" in probe.stderr:
            skip("this build has no report page (node is missing)")
        checks = Checks()
        ranks = SAMPLES / "ranks"
        check_diff(checks, ranks / "rank0.json.gz", ranks / "rank2.json.gz",
                   folder)
        check_diff(checks, train, train, folder)
        check_diff(checks, train, SAMPLES / "moe.json.gz", folder)
        check_slower(checks, train, folder)
        check_reports(checks, train, folder)
        check_limits(checks, train, folder)
        pair = [find_shared(f"{device}-qwen1.5-0.5b")
                for device in ("h100", "mi300")]
        if all(pair):
            check_diff(checks, *pair, folder)
        check_ranks(checks, ranks, folder)
        check_lateness(checks, folder)
        checks.finish()


if __name__ == "__main__":
    main()
