#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutated inputs of every format through every command: no crash, no hang, no
other exit status than 0 to 3, no output that is not JSON, nothing left behind,
and no device event less than before without a row of trace_health that says
why.

    mutations_test.py LAMINA [COUNT [SEED [JOBS]]]

Each input depends on the seed and its own number only, so a failure is found
again by its number. What failed is kept in $LAMINA_KEEP, where that is set."""
import concurrent.futures
import gzip
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib

from broken_files_test import write_all
from common import LAMINA, SAMPLES

COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 150
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
JOBS = int(sys.argv[4]) if len(sys.argv) > 4 else os.cpu_count() or 1
LIMIT_S = 300  # a hang, not a slow machine
NUMBERS = (b"083", b"-0", b"1e999", b"NaN", b"-9223372036854775808",
           b"18446744073709551616", b"0.0000001", b"-1", b"null", b"true",
           b"\"x\"", b"[]", b"{}", b"1.", b"")
TEXTS = (b"\\", b"\"", b"\x00", b"\xff\xfe", b"\\u12", b"\n", b"\xe2\x80\xae",
         b"</script>", b"\x1b[31m", b"," * 3, b"{" * 40, b"[" * 40, b"'", b"%s")


def mutate(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if not data:
            return bytes(data)
        at = rng.randrange(len(data))
        kind = rng.randrange(10)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            del data[at:at + rng.choice((1, 4, 50, 1000))]
        elif kind == 2:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 3:
            size = rng.randrange(1, 17)
            data[at:at + size] = rng.randbytes(size)
        elif kind == 4:
            size = rng.choice((8, 100, 3000))
            other = rng.randrange(len(data))
            data[at:at] = data[other:other + size]
        elif kind == 5:
            size = rng.choice((8, 100, 3000))
            other = rng.randrange(len(data))
            data[at:at + size] = data[other:other + size]
        elif kind == 6:
            data[at:at] = rng.choice(TEXTS)
        elif kind in (7, 8):
            # The number that stands next.
            begin = at
            while begin < len(data) and not 48 <= data[begin] <= 57:
                begin += 1
            end = begin
            while end < len(data) and 48 <= data[end] <= 57:
                end += 1
            data[begin:end] = rng.choice(NUMBERS)
        else:
            data[at:at + rng.choice((4, 64, 512))] = bytes(
                rng.choice((4, 64, 512)))
    return bytes(data)


def packed(rng, data, name):
    """Some are packed before the mutation, some after it."""
    kind = rng.randrange(12)
    if kind == 0:
        return gzip.compress(data, 1)
    if kind == 1:
        with tempfile.TemporaryFile() as file:
            with zipfile.ZipFile(file, "w", rng.choice(
                    (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
                if rng.random() < 0.5:
                    archive.writestr("README.md", "about")
                archive.writestr(name, data)
            file.seek(0)
            return file.read()
    return data


def strict(text):
    def refuse(word):
        raise ValueError(word)
    return json.loads(text, parse_constant=refuse)


def device_events(document):
    return sum(row["count"] or 0 for row in document["tables"]["kernels"])


def checks_of(document):
    return {(row["check"], row["status"], row["value"])
            for row in document["tables"]["trace_health"]}


REPORT = ["report", "IN", "--only", "kernels,trace_health", "--format", "json"]


def commands(folder, whole):
    """Of a trace; OUT is a folder of its own."""
    return [
        ["report", "IN", "--format", "json"],
        ["report", "IN", "--format", "json", "--python-stacks", "--recompute"],
        ["report", "IN", "--format", "csv", "-o", "OUT/csv"],
        ["report", "IN", "--format", "html", "-o", "OUT/x.html"],
        ["report", "IN", "--format", "html", "--redact", "-o", "OUT/x.html"],
        ["report", "IN", "--format", "xlsx", "-o", "OUT/x.xlsx"],
        ["report", "IN", "--format", "markdown"],
        ["report", "IN"],
        ["report", "IN", "--layout", "tracelens", "--format", "csv"],
        ["report", "IN", "--capture", whole, "--format", "json"],
        ["tree", "IN", "--format", "json"],
        ["layers", "IN", "--format", "json"],
        ["layers", "IN", "--perfetto", "OUT/l.json", "--format", "json"],
        ["layers", "IN", "--detector", "classic"],
        ["annotate", "IN", "--capture", whole, "--trace", "OUT/a.json.gz"],
        ["annotate", whole, "--capture", "IN", "--format", "json"],
        ["diff", whole, "IN", "--format", "json"],
        ["diff", "IN", whole],
        ["slice", "IN", "--time", "0ms..1ms", "-o", "OUT/s.json"],
        ["slice", "IN", "--name", "gemm", "-o", "OUT/s.pftrace"],
        ["replay", "IN", "-o", "OUT/replay"],
        ["ranks", "IN", whole, "--format", "json"],
        ["ranks", "IN", "--engine", "files", "--partials", "OUT/p"],
        ["merge", "IN", whole, "-o", "OUT/m.json"],
        ["merge", "IN", "-o", "OUT/m.json.gz", "--python"],
        ["convert", "IN", "-o", "OUT/c.json"],
        ["convert", "IN", "-o", "OUT/c.json.gz"],
        ["convert", "IN", "-o", "OUT/c.pftrace"],
        ["event", "IN", "3", "--format", "json"],
    ]


def graph_commands():
    verbs = [["graph", verb, "IN", "--format", "json"] for verb in
             ("layers", "census", "candidates", "pipeline")]
    return verbs + [["graph", "print", "IN"], ["graph", "verify", "IN"],
                    ["graph", "layer", "IN", "-o", "OUT/l.svg"]]


class Bases:
    """The whole inputs, and what lamina says of them."""

    def __init__(self, folder):
        self.files = dict(write_all(folder))
        for name in ("serve", "train_step", "moe"):
            self.files[name] = SAMPLES / f"{name}.json.gz"
        self.files["jax"] = SAMPLES / "jax.xplane.pb"
        self.dumps = sorted((SAMPLES / "dumps").glob("*.txt"))
        self.data = {}
        self.whole = {}
        for name, path in self.files.items():
            data = path.read_bytes()
            if data.startswith(b"\x1f\x8b"):
                data = gzip.decompress(data)
            self.data[name] = data
            args = [path if a == "IN" else a for a in REPORT]
            result = subprocess.run([LAMINA, *map(str, args)],
                                    capture_output=True, check=True)
            self.whole[name] = strict(result.stdout)
        rules = sorted((SAMPLES.parent / "data").rglob("*.yaml"))
        self.rules = {str(p.relative_to(SAMPLES.parent / "data")):
                      p.read_bytes() for p in rules}


def problems_of(command, result, out):
    found = []
    if result.returncode not in (0, 1, 2, 3):
        found.append(f"exit status {result.returncode}")
    if result.returncode in (2, 3):
        error = result.stderr.decode(errors="replace")
        lines = [l for l in error.splitlines()
                 if l.startswith("lamina: error: ")]
        # Without a rank that can be read the tables say why.
        if len(lines) != 1:
            found.append(f"no one line of error: {error[:300]!r}")
    if result.returncode in (0, 1):
        if "json" in command and command[command.index("json") - 1] == \
                "--format" and "-o" not in command:
            try:
                strict(result.stdout)
            except ValueError as error:
                found.append(f"stdout is not JSON: {error}")
        for path in out.rglob("*"):
            if not path.name.endswith((".json", ".json.gz")) or \
                    not path.is_file():
                continue
            data = path.read_bytes()
            if path.suffix == ".gz":
                data = gzip.decompress(data)
            try:
                strict(data)
            except ValueError as error:
                found.append(f"{path.name} is not JSON: {error}")
    for path in out.rglob("*"):
        if ".part" in path.name or path.name.startswith(".lamina"):
            found.append(f"left behind: {path.name}")
    return found


def events_in(path):
    """Device events of a file that is one JSON document of records; None of any
    other. Bytes that are cut out may take whole records with them, or join two
    to one that is valid: then the file holds fewer, and none is lost."""
    data = path.read_bytes()
    try:
        if data.startswith(b"PK"):
            with zipfile.ZipFile(path) as archive:
                data = archive.read(archive.namelist()[-1])
        elif data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        records = strict(data)["traceEvents"]
        return sum(r.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and
                   r.get("ph") == "X" for r in records)
    except (ValueError, TypeError, LookupError, AttributeError, EOFError,
            OSError, zlib.error, zipfile.BadZipFile, NotImplementedError):
        return None


def lost_silently(path, whole, result):
    """Fewer device events than before, and nothing that says why."""
    if result.returncode != 0:
        return []
    document = strict(result.stdout)
    before, now = device_events(whole), device_events(document)
    if now >= before or now == events_in(path):
        return []
    said = [c for c in checks_of(document) - checks_of(whole)
            if c[1] in ("lost", "warn") or c[0] in (
                "unused_phase", "tables_not_read", "event_type_not_read",
                "unknown_category", "aggregate_event",
                # Bytes that are cut out may join two events to a valid one:
                # then the partner of the lost one is what can be said.
                "launches_without_work", "flows_without_start")]
    if said:
        return []
    return [f"{before - now} of {before} device events lost without a row"]


def one(number, bases, folder):
    rng = random.Random(SEED * 1000003 + number)
    work = folder / str(number)
    out = work / "out"
    out.mkdir(parents=True)
    whole = None
    kind = rng.randrange(20)
    if kind == 0:
        # A rule file or device file of a user.
        name = rng.choice(sorted(bases.rules))
        path = work / "rules" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(mutate(rng, bases.rules[name]))
        command = ["report", bases.files["kineto"], "--format", "json"]
        command += ["--rules", work / "rules"] if rng.random() < 0.7 else [
            "--device", path]
    elif kind < 4:
        dump = rng.choice(bases.dumps)
        path = work / dump.name
        path.write_bytes(packed(rng, mutate(rng, dump.read_bytes()),
                                dump.name))
        command = rng.choice(graph_commands())
    else:
        name = rng.choice(sorted(bases.files))
        path = work / bases.files[name].name.removesuffix(".gz")
        data = bases.data[name]
        if rng.random() < 0.3:
            data = mutate(rng, packed(rng, data, path.name))
        else:
            data = packed(rng, mutate(rng, data), path.name)
        path.write_bytes(data)
        if rng.random() < 0.4:
            command = REPORT
            # A table of text may have any number of rows.
            whole = bases.whole[name] if name != "rocprof_csv" else None
        else:
            command = rng.choice(commands(work, bases.files["kineto"]))
    command = [str(path) if a == "IN" else str(a).replace("OUT", str(out), 1)
               if str(a).startswith("OUT") else str(a) for a in command]
    scratch = work / "tmp"
    scratch.mkdir()
    try:
        result = subprocess.run(
            [LAMINA, *command], capture_output=True, timeout=LIMIT_S,
            stdin=subprocess.DEVNULL, env={**os.environ,
                                           "TMPDIR": str(scratch)})
        found = problems_of(command, result, out)
        if whole is not None:
            found += lost_silently(path, whole, result)
        found += [f"left in TMPDIR: {p.name}" for p in scratch.iterdir()]
        status = result.returncode
    except subprocess.TimeoutExpired:
        found, status = [f"no end after {LIMIT_S} s"], None
    keep = os.environ.get("LAMINA_KEEP")
    if found and keep:
        shutil.copytree(work, pathlib.Path(keep) / str(number),
                        dirs_exist_ok=True)
    shutil.rmtree(work)
    return number, status, [f"input {number}: lamina {' '.join(command)}: {f}"
                            for f in found]


def main():
    with tempfile.TemporaryDirectory(prefix="lamina_mutations_") as name:
        folder = pathlib.Path(name)
        (folder / "whole").mkdir()
        bases = Bases(folder / "whole")
        failures, by_status = [], {}
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            for _, status, found in pool.map(
                    lambda n: one(n, bases, folder), range(COUNT)):
                by_status[status] = by_status.get(status, 0) + 1
                for text in found:
                    print("FAILED", text, flush=True)
                failures += found
    print(f"{COUNT} inputs with seed {SEED}; by exit status: "
          f"{dict(sorted(by_status.items(), key=str))}; "
          f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
