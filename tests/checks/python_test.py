#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The module lamina for Python: what it gives is what the program prints, and
the examples of docs/python.md and docs/tour.md print what the pages say.

usage: python_test.py LAMINA [--update]

Runs tests/python/*.py in the Python that the module was built for, with its
numpy and pandas. --update writes their output into the pages.
"""
import os
import pathlib
import shutil
import subprocess
import sys

from common import LAMINA, ROOT, Checks, cached, skip

BUILD = pathlib.Path(LAMINA).parent


def main():
    if not list((BUILD / "python/lamina").glob("_core.*.so")):
        skip("the module is not built (target lamina_python)")
    if cached("CMAKE_BUILD_TYPE") != "Release":
        skip("the machine's Python knows nothing of sanitizers")
    python = cached("LAMINA_PYTHON")
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"),
                   "LAMINA": LAMINA, "PYTHONDONTWRITEBYTECODE": "1"}
    if subprocess.run([python, "-c", "import numpy, pandas"],
                      capture_output=True).returncode != 0:
        skip(f"no numpy or no pandas for {python}")
    checks = Checks()

    def run(name, *command):
        r = subprocess.run([*map(str, command)], capture_output=True,
                           text=True, cwd=ROOT, env=environment, timeout=600)
        if r.returncode != 0:
            print(r.stdout + r.stderr)
        checks.equal(name, r.returncode, 0)

    run("make_questions.py", python, ROOT / "python/make_questions.py",
        "--check")
    for script in sorted((ROOT / "tests/python").glob("*_test.py")):
        run(script.name, python, script)
    for page in ("docs/python.md", "docs/tour.md"):
        run(page, python, ROOT / "tests/python/examples.py", ROOT / page,
            *sys.argv[2:])
    if shutil.which("mypy"):
        run("types", "mypy", "--strict", "--python-version", "3.11",
            "--python-executable", python, "--cache-dir", "/dev/null",
            ROOT / "python/lamina")
    else:
        print("left out: no mypy")
    checks.finish()


main()
