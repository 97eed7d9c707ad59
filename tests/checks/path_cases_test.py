#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What-ifs of lamina path against programs that were simulated again with other
costs, laws of the path, and small traces with answers in closed form: the given
cases with their runner. Where dependence is recorded the answers are within 5
points of the truth, elsewhere their ranges hold it."""
import os
import pathlib
import subprocess
import sys

from common import LAMINA, ROOT, skip

shared = pathlib.Path(os.environ.get("LAMINA_SHARED", ROOT.parent / "shared"))
runner, cases = shared / "tools/score_path_cases.py", shared / "cases-path"
if not (runner.exists() and cases.is_dir()):
    skip(f"no cases in {shared}")
sys.exit(subprocess.run([sys.executable, runner, LAMINA, cases],
                        check=False).returncode)
