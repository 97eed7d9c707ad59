# SPDX-License-Identifier: Apache-2.0
"""The report page in a real browser; see tests/web/."""
import pathlib
import shutil
import subprocess
import sys

from common import LAMINA, ROOT, SAMPLES, lamina, skip, temporary


def missing():
    if not shutil.which("node"):
        return "node is not installed"
    if not pathlib.Path("/usr/bin/chromium").exists():
        return "chromium is not installed"
    if not (pathlib.Path(LAMINA).parent /
            "web/node_modules/playwright-core").is_dir():
        return "playwright-core is not installed"
    with temporary() as folder:
        r = lamina("report", SAMPLES / "serve.json.gz", "--format", "html",
                   "-o", f"{folder}/a.html", status=None)
    return "this build has no report page" if r.returncode else ""


if reason := missing():
    skip(reason)
sys.exit(subprocess.run(["node", ROOT / "tests/web/run.mjs", LAMINA,
                         *sys.argv[2:]], check=False).returncode)
