#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the sources below src/.

usage: tools/tidy.py BUILD [--jobs N] [FOLDER...]

BUILD is a configured build folder without precompiled headers. Most of the
time of clang-tidy goes into the headers of the system, which it looks at anew
for each source: so the sources of a target are checked as one unit of
translation. Where unnamed namespaces clash the unit is cut in two. The last
line says how many units and sources were checked; the exit status is 1 where
clang-tidy found something.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIDY = ["clang-tidy-14", "--quiet", "--extra-arg=-Wno-unknown-warning-option",
        # That is how a unit is made.
        "--checks=-bugprone-suspicious-include"]


def flags_of(entry):
    """The command of an entry, as a list, without its source and its object."""
    words = shlex.split(entry["command"])
    flags = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in ("-o", "-c"):
            skip = True
        else:
            flags.append(word)
    return flags


def groups_of(build, folders):
    """Sources that are compiled alike into one target: (flags, [source])."""
    groups = collections.defaultdict(list)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if not source.is_relative_to(ROOT / "src"):
            continue
        if folders and not any(source.is_relative_to(f) for f in folders):
            continue
        target = re.search(r"CMakeFiles/([^/]+)\.dir/", entry["command"])[1]
        groups[target, entry["directory"], tuple(flags_of(entry))].append(source)
    return groups


class Tidy:
    def __init__(self, build, jobs):
        self.build = build
        self.units = build / "units"
        self.units.mkdir(exist_ok=True)
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self.checked = self.sources = 0

    def unit(self, name, directory, flags, sources):
        """Writes a unit of these sources; whether they compile together."""
        folder = self.units / name
        folder.mkdir(exist_ok=True)
        file = folder / "unit.cc"
        file.write_text("".join(f'#include "{s}"\n' for s in sources))
        (folder / "compile_commands.json").write_text(json.dumps([{
            "directory": directory, "file": str(file),
            "command": shlex.join([*flags, "-c", str(file)])}]))
        if len(sources) == 1:
            return file, True
        done = subprocess.run([*flags, "-fsyntax-only", str(file)],
                              cwd=directory, capture_output=True, check=False)
        return file, done.returncode == 0

    def check(self, name, directory, flags, sources):
        """What clang-tidy says of the sources: [(status, text)]."""
        file, together = self.unit(name, directory, flags, sources)
        if not together:
            half = len(sources) // 2
            return (self.check(name + "a", directory, flags, sources[:half]) +
                    self.check(name + "b", directory, flags, sources[half:]))
        done = subprocess.run([*TIDY, "-p", str(file.parent), str(file)],
                              capture_output=True, text=True, check=False)
        self.checked += 1
        self.sources += len(sources)
        return [(done.returncode, done.stdout)]

    def run(self, groups):
        """Whether all sources pass."""
        waits = []
        for number, ((target, directory, flags), sources) in enumerate(
                sorted(groups.items(), key=lambda g: -len(g[1]))):
            waits.append(self.pool.submit(
                self.check, f"{target}.{number}.", directory, flags,
                sorted(sources)))
        good = True
        for wait in concurrent.futures.as_completed(waits):
            for status, text in wait.result():
                if status:
                    good = False
                    print(text, flush=True)
        return good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("folders", nargs="*",
                        type=lambda p: pathlib.Path(p).resolve())
    args = parser.parse_intermixed_args()
    groups = groups_of(args.build, args.folders)
    if not groups:
        sys.exit(f"{args.build}: no sources there")
    tidy = Tidy(args.build, args.jobs)
    good = tidy.run(groups)
    print(f"{tidy.sources} sources in {tidy.checked} units: "
          f"{'fine' if good else 'see above'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
