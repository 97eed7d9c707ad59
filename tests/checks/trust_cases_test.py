#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces that lie, lack or surprise, each with its truth: the given cases with
their runner. Kinds that lamina answers rightly; one that does not hold is a step
back."""
import os
import pathlib
import subprocess
import sys

from common import LAMINA, ROOT, skip

KINDS = ("T1 T2 T3 T4 T5 T6 T7 T8 T9 T10 T11 T12 T13 T15 T22 T23").split()

shared = pathlib.Path(os.environ.get("LAMINA_SHARED", ROOT.parent / "shared"))
runner, cases = shared / "tools/run_cases.py", shared / "cases"
if not (runner.exists() and cases.is_dir()):
    skip(f"no cases in {shared}")
sys.exit(subprocess.run([sys.executable, runner, LAMINA, cases, *KINDS],
                        check=False).returncode)
