# SPDX-License-Identifier: Apache-2.0
"""The types of the report page: esbuild drops them without a look."""
import pathlib
import shutil
import subprocess
import sys

from common import LAMINA, ROOT, skip, temporary

PACKAGES = pathlib.Path(LAMINA).parent / "web/node_modules"
COMPILER = PACKAGES / "typescript/bin/tsc"


def main():
    if not shutil.which("node") or not COMPILER.exists():
        skip("node or typescript is not installed")
    with temporary() as folder:
        web = pathlib.Path(folder)
        # The packages stand in the build folder, the compiler looks for them
        # above the sources.
        shutil.copytree(ROOT / "web/src", web / "src")
        shutil.copy(ROOT / "web/tsconfig.json", web)
        (web / "node_modules").symlink_to(PACKAGES)
        done = subprocess.run(["node", COMPILER, "--project", web],
                              check=False)
    if done.returncode == 0:
        print("all types hold")
    sys.exit(done.returncode)


main()
