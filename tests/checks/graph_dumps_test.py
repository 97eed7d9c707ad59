#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads and prints every reference dump: byte identity, and the counts of the
truth file."""

import gzip
import json
import pathlib
import subprocess
import tempfile

import common


def run(lamina, *args, status=0):
    done = subprocess.run([lamina, "graph", *args], capture_output=True)
    if done.returncode != status:
        raise SystemExit(f"lamina graph {' '.join(args)}: status "
                         f"{done.returncode}\n{done.stderr.decode()}")
    return done.stdout


def check_samples(checks, lamina):
    """What is read is printed again, byte for byte, with either line end."""
    files = sorted((common.SAMPLES / "dumps").glob("*.txt"))
    with tempfile.TemporaryDirectory() as folder:
        large = pathlib.Path(folder) / "001_export_export_to_gm.txt"
        large.write_bytes(gzip.decompress(
            (common.SAMPLES / "fusions" / f"{large.name}.gz").read_bytes()))
        for path in [*files, large]:
            text = path.read_bytes()
            checks.true(f"{path}: prints the same",
                        run(lamina, "print", path) == text)
            crlf = pathlib.Path(folder) / "crlf.txt"
            crlf.write_bytes(text.replace(b"\n", b"\r\n"))
            checks.true(f"{path}: CRLF prints the same",
                        run(lamina, "print", crlf) == crlf.read_bytes())
            run(lamina, "print", path, "--check")
            tables = json.loads(run(lamina, "print", path, "--stats",
                                    "--format", "json"))["tables"]
            checks.equal(f"{path}: ops add up",
                         sum(r["count"] for r in tables["ops"]),
                         sum(r["ops"] for r in tables["sections"]))
    checks.true("samples", len(files) >= 3)


def deleted_lines(lamina, path):
    """How many of some lines whose results are used are missed when they are
    deleted, and how many were deleted."""
    lines = path.read_text().splitlines(keepends=True)
    ops = [i for i, line in enumerate(lines) if " = " in line and
           line.startswith("%")]
    found = tried = 0
    for i in ops[:: max(1, len(ops) // 40)]:
        name = lines[i].split(" ")[0]
        if not any(name + " " in line for line in lines[i + 1:]):
            continue
        tried += 1
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as cut:
            cut.write("".join(lines[:i] + lines[i + 1:]))
            cut.flush()
            done = subprocess.run(
                [lamina, "graph", "print", "--check", cut.name],
                capture_output=True, text=True)
        text = done.stdout + done.stderr
        found += done.returncode == 1 and f"'{name}' is used and" in text
    return found, tried


def main():
    lamina = common.LAMINA
    checks = common.Checks()
    check_samples(checks, lamina)
    shared = common.shared()
    truth = json.load(open(shared / "goldens/dumps_truth.json"))
    bad = []
    files = sections = 0
    deleted = told = 0
    for folder, entry in sorted(truth.items()):
        if folder.startswith("_"):
            continue
        if folder != "edge_cases":
            for name in sorted(entry["files"]):
                found, tried = deleted_lines(
                    lamina, shared / "dumps" / folder / name)
                told, deleted = told + found, deleted + tried
        for name, want in sorted(entry["files"].items()):
            path = shared / "dumps" / folder / name
            text = path.read_bytes()
            files += 1
            if run(lamina, "print", path) != text:
                bad.append(f"{folder}/{name}: prints differently")
            with tempfile.NamedTemporaryFile(suffix=".txt") as crlf:
                crlf.write(text.replace(b"\n", b"\r\n"))
                crlf.flush()
                if run(lamina, "print", crlf.name) != text.replace(
                        b"\n", b"\r\n"):
                    bad.append(f"{folder}/{name}: CRLF prints differently")
            # Strings without quotes are a finding.
            run(lamina, "print", path, "--check",
                status=1 if folder == "edge_cases" else 0)
            tables = json.loads(run(lamina, "print", path, "--stats", "--format",
                                    "json"))["tables"]
            got = {row["section"]: row for row in tables["sections"]}
            if list(got) != [s["name"] for s in want["sections"]]:
                bad.append(f"{folder}/{name}: sections {list(got)}")
                continue
            for section in want["sections"]:
                sections += 1
                row = got[section["name"]]
                ops = {r["op"]: r["count"] for r in tables["ops"]
                       if r["section"] == section["name"]}
                for key, mine in [("placeholders", row["placeholders"]),
                                  ("ops", row["ops"]),
                                  ("undefined_names", row["weights"]),
                                  ("edges", row["edges"]),
                                  ("edges_hidden_in_lists",
                                   row["references_in_lists"]),
                                  ("op_counts", ops)]:
                    if section[key] != mine:
                        bad.append(f"{folder}/{name} {section['name']}: {key} "
                                   f"{mine}, expected {section[key]}")
    for line in bad[:20]:
        print(line)
    print(f"{files} dumps with {sections} graphs, {len(bad)} differences")
    print(f"{told} of {deleted} deleted lines are told")
    checks.true("deleted lines are told", deleted and told >= 0.9 * deleted)
    checks.true("reference dumps", not bad and files >= 20)
    checks.finish()


if __name__ == "__main__":
    main()
