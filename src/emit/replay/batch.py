#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the scripts of manifest.json beside it, one process each, and prints
their JSON lines; the last line counts them.

usage: run_all.py [--timeout SECONDS] [arguments for the scripts...]
"""
import collections
import json
import pathlib
import subprocess
import sys


def main():
    arguments = sys.argv[1:]
    timeout = 600.0
    if "--timeout" in arguments:
        at = arguments.index("--timeout")
        timeout = float(arguments[at + 1])
        del arguments[at:at + 2]
    folder = pathlib.Path(__file__).resolve().parent
    manifest = json.loads((folder / "manifest.json").read_text())
    counts = collections.Counter()
    for entry in manifest["ops"]:
        script = folder / pathlib.Path(entry["script"]).name
        try:
            r = subprocess.run([sys.executable, str(script), *arguments],
                               capture_output=True, text=True, timeout=timeout)
            lines = r.stdout.strip().splitlines()
            line = json.loads(lines[-1]) if lines else {
                "op": entry["op"], "id": entry["id"], "status": "crashed",
                "reason": r.stderr.strip()[-300:]}
        except subprocess.TimeoutExpired:
            line = {"op": entry["op"], "id": entry["id"], "status": "timeout"}
        line["script"] = entry["script"]
        counts[line["status"]] += 1
        print(json.dumps(line), flush=True)
    print(json.dumps({"scripts": sum(counts.values()), **counts}))
    return 0 if set(counts) <= {"ok"} else 1


if __name__ == "__main__":
    sys.exit(main())
