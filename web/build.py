#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the template of the report page.

usage: build.py WEB_DIR WORK_DIR OUT_TRACE OUT_RANKS OUT_GRAPH OUT_MEMORY
                OUT_LIBRARY

Installs the locked packages into WORK_DIR (not into the source tree) when the
lock file has changed, then bundles with esbuild. Where node or npm is missing
or the packages cannot be had, all OUT become empty, which builds lamina
without the page, and says so; a broken bundle is an error.
"""
import os
import pathlib
import shutil
import subprocess
import sys


def install(web, work):
    """npm ci, once per lock file."""
    lock = (web / "package-lock.json").read_bytes()
    stamp = work / "installed"
    if stamp.exists() and stamp.read_bytes() == lock:
        return
    work.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(web / name, work / name)
    subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund",
                    "--loglevel=error"], cwd=work, check=True)
    stamp.write_bytes(lock)


def main():
    web, work, *outs = (pathlib.Path(arg).resolve() for arg in sys.argv[1:])
    if not shutil.which("node") or not shutil.which("npm"):
        return leave_out(outs, "node or npm is missing")
    try:
        install(web, work)
    except subprocess.CalledProcessError as error:
        return leave_out(outs, f"the packages cannot be installed ({error})")
    try:
        subprocess.run(["node", str(web / "build.mjs"), str(web), str(work),
                        *map(str, outs)], check=True)
    except subprocess.CalledProcessError as error:
        print(f"the report page could not be built: {error}", file=sys.stderr)
        return 1
    return 0


def leave_out(outs, why):
    print(f"warning: {why}: lamina is built without the report page "
          "(--format html)", file=sys.stderr)
    for out in outs:
        out.write_bytes(b"")
    return 0


if __name__ == "__main__":
    sys.exit(main())
