# SPDX-License-Identifier: Apache-2.0
"""The report page in a real browser; see tests/web/. Parts are groups of its
files; `node tests/web/run.mjs LAMINA FILE...` runs some by name."""
import subprocess
import sys

from common import (LAMINA, ROOT, SAMPLES, lamina, skip, temporary,
                    without_browser)

PARTS = "command access timeline tables documents"
FILES = {
    "command": "command",
    "access": "access axe hostile lengths names",
    "timeline": "area gaps host interaction steps tasks thinned tracks",
    "tables": "comparing details folding layers manyrows numbers panel polish "
              "roofline",
    "documents": "answer apart fusions memory opening print redacted",
}


def missing():
    if reason := without_browser():
        return reason
    with temporary() as folder:
        r = lamina("report", SAMPLES / "serve.json.gz", "--format", "html",
                   "-o", f"{folder}/a.html", status=None)
    return "this build has no report page" if r.returncode else ""


if reason := missing():
    skip(reason)
there = sorted(p.name.removesuffix(".spec.mjs")
               for p in (ROOT / "tests/web").glob("*.spec.mjs"))
if sorted(" ".join(FILES.values()).split()) != there:
    sys.exit("FAILED each file of tests/web belongs to one part")
sys.exit(subprocess.run(
    ["node", ROOT / "tests/web/run.mjs", LAMINA,
     *" ".join(FILES[part] for part in sys.argv[2:] or PARTS.split()).split()],
    check=False).returncode)
