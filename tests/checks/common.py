# SPDX-License-Identifier: Apache-2.0
"""What the checks share: the program, the reference data, and results."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAMINA = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "lamina"
SAMPLES = ROOT / "samples"
# Checks look at parsing, and leave nothing in the cache of the user.
os.environ["LAMINA_CACHE"] = "off"


def skip(reason):
    """Ends the check where something that it needs is missing. A skip never
    hides what was found before: failures fail; what held on the samples
    passes, and the line "left out" says what was not looked at. With
    LAMINA_NO_SKIP=1, for machines that have everything, a skip fails."""
    if os.environ.get("LAMINA_NO_SKIP") == "1":
        print(f"FAILED LAMINA_NO_SKIP is set, and there is something to skip: "
              f"{reason}")
        sys.exit(1)
    if any(checks.passed or checks.failures for checks in Checks.all):
        for checks in Checks.all:
            checks.show()
        print(f"left out: {reason}")
        sys.exit(1 if any(checks.failures for checks in Checks.all) else 0)
    print(f"skipped: {reason}")
    sys.exit(77)


def without_browser():
    """Why tests/web cannot run here; empty where it can."""
    packages = pathlib.Path(LAMINA).parent / "web/node_modules"
    if not shutil.which("node"):
        return "node is not installed"
    if "LAMINA_CHROMIUM" not in os.environ and not any(
            os.path.exists(f"/usr/bin/{name}")
            for name in ("chromium-headless-shell", "chromium")):
        return "chromium is not installed"
    if not (packages / "playwright-core").is_dir():
        return "playwright-core is not installed"
    return ""


def shared():
    """The folder of reference traces; without it the check ends here, see
    skip()."""
    folder = pathlib.Path(os.environ.get("LAMINA_SHARED", ROOT.parent / "shared"))
    if not (folder / "traces").is_dir():
        skip(f"no reference traces in {folder} (set LAMINA_SHARED)")
    return folder


def reference_dumps():
    """The folder of reference data and what is true of its dumps; without
    them the check ends here, see skip()."""
    folder = shared()
    if not (folder / "dumps").is_dir():
        skip("no reference dumps")
    return folder, json.loads(
        (folder / "goldens/dumps_truth.json").read_text())


def sample_and_reference_traces(names=None):
    """Traces of the samples and, where there are any, the reference traces of
    these names, or all."""
    paths = [SAMPLES / f"{n}.json.gz" for n in ("serve", "train_step", "moe")]
    folder = pathlib.Path(
        os.environ.get("LAMINA_SHARED", ROOT.parent / "shared")) / "traces"
    if not folder.is_dir():
        if os.environ.get("LAMINA_NO_SKIP") == "1":
            skip(f"no reference traces in {folder}")
        print(f"left out: reference traces, none in {folder}")
    elif names is None:
        paths += sorted(p for p in folder.glob("*.json.gz")
                        if "rocprof" not in p.name)
    else:
        paths += [folder / f"{n}.json.gz" for n in names]
    return paths


def cached(name):
    """A variable of the build that LAMINA belongs to; None: there is none."""
    file = pathlib.Path(LAMINA).parent / "CMakeCache.txt"
    if file.exists():
        for line in file.read_text().splitlines():
            if line.startswith(name + ":"):
                return line.partition("=")[2]
    return None


def traces(folder):
    """All Kineto traces below a folder, sorted."""
    return sorted(p for p in folder.rglob("*.json.gz")
                  if "rocprof" not in p.name and ".truth." not in p.name)


def lamina(*args, status=0, **kwargs):
    r = subprocess.run([LAMINA, *map(str, args)], capture_output=True,
                       text=True, timeout=600, **kwargs)
    if status is not None and r.returncode != status:
        raise AssertionError(f"lamina {' '.join(map(str, args))}: status "
                             f"{r.returncode}, expected {status}\n{r.stderr}")
    return r


def report(trace, *args):
    """Tables of a native report, times as integers of nanoseconds."""
    document = json.loads(lamina("report", trace, "--format", "json",
                                 *args).stdout, parse_float=Exact)
    return document["tables"], document["notes"]


def is_added(event):
    """Whether lamina added this event to a copy of a trace."""
    pid = event.get("pid")
    return (isinstance(pid, int) and pid >= 2000000000 or
            event.get("args", {}).get("added_by") == "lamina")


class Exact(float):
    """A JSON number that remembers its decimal text."""

    def __new__(cls, text):
        self = super().__new__(cls, text)
        self.text = text
        return self

    @property
    def ns(self):
        """Microseconds with three decimals as nanoseconds, exactly."""
        whole, _, fraction = self.text.partition(".")
        assert len(fraction) == 3, self.text
        sign = -1 if whole.startswith("-") else 1
        return int(whole) * 1000 + sign * int(fraction)


class Checks:
    """Collects failures; the check ends with the number of each."""

    all = []  # of this process

    def __init__(self):
        self.passed = 0
        self.failures = []
        Checks.all.append(self)

    def equal(self, what, found, expected):
        if found == expected:
            self.passed += 1
        else:
            self.failures.append(f"{what}: found {found!r}, expected "
                                 f"{expected!r}")

    def true(self, what, condition):
        self.equal(what, bool(condition), True)

    def show(self):
        for failure in self.failures[:50]:
            print("FAILED", failure)
        print(f"{self.passed} held, {len(self.failures)} did not")

    def finish(self):
        self.show()
        sys.exit(1 if self.failures or not self.passed else 0)


def run_parts(names, functions):
    """Runs the parts of a check that the arguments behind the program name, or
    all. A line `PARTS = "a b"` of a check makes each an entry of the tests,
    so that two run at the same time: the functions part_a and part_b, which
    take the Checks."""
    checks = Checks.all[0] if Checks.all else Checks()
    wanted = [word for word in sys.argv[2:] if not word.startswith("-")]
    for name in wanted or names.split():
        functions["part_" + name](checks)
    checks.finish()


def temporary():
    return tempfile.TemporaryDirectory(prefix="lamina_check_")
