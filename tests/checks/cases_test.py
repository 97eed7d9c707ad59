#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Given cases with their runners, each with its truth.

* cases: traces that lie, lack or surprise, of the kinds that lamina answers
  rightly: one that does not hold is a step back.
* cases-path: what-ifs of lamina path against programs that were simulated again
  with other costs, laws of the path, and small traces with answers in closed
  form. Where dependence is recorded the answers are within 5 points of the
  truth, elsewhere their ranges hold it.
* cases-compare: pairs of traces with a planted change, or with none, for lamina
  diff; series of 30 runs with a step, a drift or noise alone, for lamina runs."""
import os
import pathlib
import subprocess
import sys

from common import LAMINA, ROOT, skip

RUNS = (
    ("run_cases.py", "cases", "T1 T2 T3 T4 T5 T6 T7 T8 T9 T10 T11 T12 T13 T15 "
     "T22 T23"),
    ("score_path_cases.py", "cases-path", ""),
    ("run_compare_cases.py", "cases-compare", "clocks-drop graph-replays "
     "real-cut-copy serve-other-mix train- ranks-subset series-"),
)

shared = pathlib.Path(os.environ.get("LAMINA_SHARED", ROOT.parent / "shared"))
status = 0
for runner, folder, kinds in RUNS:
    command = [shared / "tools" / runner, LAMINA, shared / folder]
    if not all(path.exists() for path in (command[0], command[2])):
        skip(f"no {folder} in {shared}")
    status |= subprocess.run([sys.executable, *command, *kinds.split()],
                             check=False).returncode
sys.exit(status)
