# SPDX-License-Identifier: Apache-2.0
"""The report page in a real browser; see tests/web/."""
import subprocess
import sys

from common import (LAMINA, ROOT, SAMPLES, lamina, skip, temporary,
                    without_browser)


def missing():
    if reason := without_browser():
        return reason
    with temporary() as folder:
        r = lamina("report", SAMPLES / "serve.json.gz", "--format", "html",
                   "-o", f"{folder}/a.html", status=None)
    return "this build has no report page" if r.returncode else ""


if reason := missing():
    skip(reason)
sys.exit(subprocess.run(["node", ROOT / "tests/web/run.mjs", LAMINA,
                         *sys.argv[2:]], check=False).returncode)
