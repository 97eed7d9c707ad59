#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the answers of tasks/ from truth.py; no answer is typed by hand.

usage: make.py LAMINA [--check]

LAMINA only makes inputs (dumps of a pipeline). --check writes nothing and ends
with 1 when an answer is another."""
import json
import pathlib
import sys
import tempfile

import inputs
import truth

TASKS = pathlib.Path(__file__).resolve().parent / "tasks"


def main():
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="lamina_evals_") as folder:
        folder = pathlib.Path(folder)
        inputs.make(str(pathlib.Path(sys.argv[1]).resolve()), folder,
                    many=True)
        for path in sorted(TASKS.iterdir()):
            task = json.loads(path.read_text())
            if task["truth"] == "refused":
                continue  # nothing to know: the call must fail
            task["answer"] = getattr(truth, task["id"].split("_")[0])(folder)
            text = json.dumps(task, indent=1) + "\n"
            if "--check" not in sys.argv:
                path.write_text(text)
            elif path.read_text() != text:
                print(f"{path.name} has another answer")
                wrong = 1
    sys.exit(wrong)


main()
