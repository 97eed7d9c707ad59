# SPDX-License-Identifier: Apache-2.0
"""The file of a report page, read by a decoder of its own.

Columns of events add up to the engine's tables to the nanosecond, the policy
names the one script by its hash, and text of the trace stays text. The views
are checked in a browser by page_browser_test.py.
"""
import base64
import csv
import gzip
import hashlib
import html.parser
import json
import os
import pathlib
import re
import struct
import subprocess
from decimal import Decimal

from common import Checks, LAMINA, ROOT, SAMPLES, lamina, skip, temporary

DEVICE_TABLES = {"kernel": "kernels", "op": "op_efficiency",
                 "layer": "layers", "pass": "passes", "step": "steps"}


class Page(html.parser.HTMLParser):
    """Scripts, styles and the policy of a page."""

    def __init__(self, text):
        super().__init__()
        self.policy, self.styles, self.scripts, self.data = "", [], [], {}
        self.tags, self.open = [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if attrs.get("http-equiv") == "Content-Security-Policy":
            self.policy = attrs["content"]
        if tag in ("script", "style"):
            self.open = (tag, attrs)
            self.content = ""

    def handle_data(self, data):
        if self.open:
            self.content += data

    def handle_endtag(self, tag):
        if not self.open or tag != self.open[0]:
            return
        attrs = self.open[1]
        if tag == "style":
            self.styles.append(self.content)
        elif attrs.get("type") == "application/json":
            self.data[attrs["id"]] = json.loads(self.content)
        else:
            self.scripts.append(self.content)
        self.open = None


def decode(page, name):
    """A block as {column: list of integers or floats}."""
    block = next(b for b in page.data["manifest"]["blocks"]
                 if b["name"] == name)
    raw = gzip.decompress(base64.b64decode(page.data["block-" + name]))
    assert len(raw) == block["bytes"], name
    rows, at, columns = block["rows"], 0, {}
    for column in block["columns"]:
        width = column["width"]
        planes = [raw[at + p * rows:at + (p + 1) * rows] for p in range(width)]
        at += width * rows
        cells = [bytes(b) for b in zip(*planes)] if rows else []
        if width == 8:
            values = [struct.unpack("<d", cell)[0] for cell in cells]
        else:
            values = [int.from_bytes(cell, "little") for cell in cells]
        wide, out, last = dict(column.get("wide", [])), [], 0
        for i, code in enumerate(values):
            if i in wide:
                last = wide[i]
            elif column.get("delta"):
                last += code // 2 if code % 2 == 0 else -(code + 1) // 2
            else:
                last = code
            out.append(last)
        columns[column["name"]] = out
    return columns


def nanoseconds(text):
    return int(Decimal(text) * 1000)


def check_sums(checks, trace, page, folder):
    name = trace.name
    # A folder holds the tables of one command.
    lamina("report", trace, "--format", "csv", "-o", folder / "report")
    lamina("layers", trace, "--format", "csv", "-o", folder / "layers")
    events = decode(page, "device")

    def table(which):
        path = folder / "report" / f"{which}.csv"
        if not path.exists():
            path = folder / "layers" / f"{which}.csv"
        if not path.exists():
            return []
        with open(path, newline="", encoding="utf-8") as f:
            return list(csv.DictReader(f))

    kernels = table("kernels")
    checks.equal(f"{name}: events", len(events["dur"]),
                 sum(int(r["count"]) for r in kernels))
    for column, which in DEVICE_TABLES.items():
        rows = table(which)
        sums = [0] * (len(rows) + 2)
        for row, dur in zip(events[column], events["dur"]):
            sums[row] += dur
        checks.equal(f"{name}: {which}", sums[1:len(rows) + 1],
                     [nanoseconds(r["kernel_time_us"]) for r in rows])
        if which != "steps":
            checks.equal(f"{name}: {which} and the rest", sum(sums),
                         sum(nanoseconds(r["kernel_time_us"])
                             for r in kernels))
    families = page.data["manifest"]["families"]
    found = {}
    for family, dur in zip(events["family"], events["dur"]):
        key = families[family]["name"]
        found[key] = found.get(key, 0) + dur
    expected = {}
    for row in kernels:
        expected[row["family"]] = (expected.get(row["family"], 0) +
                                   nanoseconds(row["kernel_time_us"]))
    checks.equal(f"{name}: families", found, expected)
    # A module counts what is below it: paths are joined by slashes.
    modules = table("modules")
    below = {r["module"]: 0 for r in modules}
    paths = [r["module"] for r in modules]
    parents = {r["module"]: r["parent"] for r in modules}
    for row, dur in zip(events["module"], events["dur"]):
        if row == 0:  # without a launch: in no row of the table
            continue
        path = paths[row - 1]
        while path:
            below[path] += dur
            path = parents[path]
    if modules:
        checks.equal(f"{name}: modules", [below[p] for p in paths],
                     [nanoseconds(r["kernel_time_us"]) for r in modules])


def check_file(checks, name, text, page):
    def digest(content):
        return "sha256-" + base64.b64encode(
            hashlib.sha256(content.encode()).digest()).decode()

    checks.equal(f"{name}: scripts and styles",
                 (len(page.scripts), len(page.styles)), (1, 1))
    checks.true(f"{name}: hash of the script",
                f"script-src '{digest(page.scripts[0])}'" in page.policy)
    checks.true(f"{name}: hash of the style",
                f"style-src '{digest(page.styles[0])}'" in page.policy)
    checks.true(f"{name}: nothing else may load",
                "default-src 'none'" in page.policy and
                "unsafe" not in page.policy and "http" not in page.policy)
    checks.equal(f"{name}: attributes that run or load", [
        (tag, key) for tag, attrs in page.tags for key in attrs
        if key.startswith("on") or key in ("src", "href", "style", "srcdoc")],
        [])
    checks.equal(f"{name}: words that make elements of text", re.findall(
        r"\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|document\.write|"
        r"\beval\(|new Function|setTimeout\([\"']|javascript:",
        page.scripts[0]), [])
    # What is shown without scripts is of the trace, too.
    shown = re.search(r'<div id="static">.*?\n</div>', text, re.S).group()
    checks.true(f"{name}: page without data is small",
                len(text) - len(shown) - sum(
                    len(json.dumps(d)) for d in page.data.values()) < 300_000)


# What the folders of web/src may import; a view knows no other view.
MAY_IMPORT = {"data": {"data"}, "ui": {"data", "ui"},
              "draw": {"data", "draw", "ui"},
              "views": {"data", "draw", "ui"}}


def check_imports(checks):
    source = ROOT / "web/src"
    for file in sorted(source.glob("*/*.ts")):
        if file.name == "list.ts":
            continue
        folder = file.parent.name
        for path in re.findall(r'from\s+"(\.[^"]+)"',
                               file.read_text(encoding="utf-8")):
            target = (file.parent / path).resolve().parent.name
            checks.true(f"{folder}/{file.name} imports {path}",
                        target in MAY_IMPORT[folder])


def check_limits(checks, trace, folder):
    """A smaller page has no Python functions and no stacks, then fewer host
    events, and every device event."""
    counts = []
    without_python = []
    stacks = []
    for limit in ("25", "0.01", "0.007", "0.005", "0.003", "0.001"):
        out = folder / "limit.html"
        lamina("report", trace, "--format", "html", "-o", out,
               "--html-max-mb", limit)
        page = Page(out.read_text(encoding="utf-8"))
        manifest = page.data["manifest"]
        device, host = decode(page, "device"), decode(page, "host")
        counts.append(len(host["start"]))
        stacks.append(any(b["name"] == "frames" for b in manifest["blocks"]))
        without_python.append(sum(t["end"] - t["begin"]
                                  for t in manifest["host_tracks"]
                                  if t["kind"] != "python"))
        checks.equal(f"{limit} MB: device events", len(device["start"]), 212)
        checks.true(f"{limit} MB: launches are in the page",
                    max(device["launch"]) <= len(host["start"]))
        checks.equal(f"{limit} MB: the page says so",
                     any(n["id"] == "page_left_out"
                         for n in manifest["notes"]),
                     counts[-1] < counts[0] or not stacks[-1])
    checks.equal("smaller pages hold less", counts,
                 sorted(counts, reverse=True))
    checks.true("Python functions are there first", counts[0] >
                without_python[0])
    checks.true("they and call stacks go first",
                stacks == sorted(stacks, reverse=True) and stacks[0] and
                any(not kept and held == without_python[0] and
                    all_held == held
                    for kept, held, all_held in zip(stacks, without_python,
                                                    counts)))
    checks.true("some hold less, the smallest nothing",
                len(set(counts)) >= 3 and counts[-1] == 0)


def main():
    with temporary() as folder:
        folder = pathlib.Path(folder)
        probe = lamina("report", SAMPLES / "train_step.json.gz", "--format",
                       "html", "-o", folder / "a.html", status=None)
        if "has no report page" in probe.stderr:
            skip("this build has no report page (node is missing)")
        checks = Checks()
        check_imports(checks)
        traces = sorted(SAMPLES.glob("[!r]*.json.gz"))
        traces = [t for t in traces if ".truth." not in t.name]
        for extra in ("h100-owlv2", "sglang-qwen3-8b-prefilldecode",
                      "mi300-qwen1.5-0.5b"):
            if (path := find_shared(extra)) is not None:
                traces.append(path)
        for i, trace in enumerate(traces):
            out = folder / f"{i}.html"
            lamina("report", trace, "--format", "html", "-o", out)
            text = out.read_text(encoding="utf-8")
            page = Page(text)
            check_file(checks, trace.name, text, page)
            (folder / str(i)).mkdir()
            check_sums(checks, trace, page, folder / str(i))
            again = folder / "again.html"
            lamina("report", trace, "--format", "html", "-o", again,
                   "--threads", "1")
            checks.true(f"{trace.name}: same bytes with one thread",
                        again.read_bytes() == out.read_bytes())
        check_limits(checks, SAMPLES / "train_step.json.gz", folder)
        # Standard input and another layout have a page, too.
        with open(SAMPLES / "serve.json.gz", "rb") as f:
            r = subprocess.run([LAMINA, "report", "-", "--format", "html"],
                               stdin=f, capture_output=True, timeout=120)
        checks.equal("page on standard output", r.returncode, 0)
        checks.true("page on standard output", r.stdout.startswith(
            b"<!DOCTYPE html>"))
        checks.finish()


def find_shared(name):
    folder = pathlib.Path(os.environ.get("LAMINA_SHARED",
                                         ROOT.parent / "shared"))
    path = folder / "traces" / f"{name}.json.gz"
    return path if path.exists() else None


if __name__ == "__main__":
    main()
