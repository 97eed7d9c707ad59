#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run writes and what it leaves: no input is replaced however it was
found, a file is there whole or not at all, and no signal leaves half files,
temporary folders or children behind."""
import fcntl
import hashlib
import os
import pathlib
import resource
import shutil
import signal
import stat
import subprocess
import time

from common import LAMINA, SAMPLES, Checks, lamina, temporary

RANKS = SAMPLES / "ranks"
DUMPS = SAMPLES / "dumps"


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def run(*arguments, **kwargs):
    return subprocess.run([LAMINA, *map(str, arguments)],
                          capture_output=True, timeout=120, **kwargs)


def check_kept(checks, folder):
    """No output replaces what was read, however that was named or found."""
    ranks = folder / "oi"
    shutil.copytree(RANKS, ranks)
    traces = sorted(ranks.glob("rank*.json.gz"))
    dumps = folder / "dumps"
    shutil.copytree(DUMPS, dumps)
    dump = sorted(dumps.glob("0*.txt"))[0]
    rules = folder / "rl"
    (rules / "kernels").mkdir(parents=True)
    shutil.copy(SAMPLES.parent / "data/kernels/families.yaml",
                rules / "kernels/families.yaml")
    device = folder / "dev.yaml"
    shutil.copy(SAMPLES.parent / "data/devices/nvidia.yaml", device)
    link = folder / "link.json.gz"
    link.symlink_to(traces[0])
    trace = traces[0]
    cases = [
        (["ranks", ranks, "--format", "json"], trace),
        (["ranks", ranks / "rank*.json.gz", "--format", "json"], traces[-1]),
        (["merge", ranks], trace),
        (["report", trace, "--capture", ranks], traces[2]),
        (["report", trace, "--device", device], device),
        (["report", trace, "--rules", rules],
         rules / "kernels/families.yaml"),
        (["list", "rules", "--rules", rules],
         rules / "kernels/families.yaml"),
        (["convert", trace], link),
        (["convert", link], trace),
        (["slice", trace, "--time", "0ms..1ms"], trace),
    ]
    cases += [(["graph", verb, dumps], dump) for verb in
              ("print", "layers", "pipeline", "census", "candidates")]
    for arguments, output in cases:
        before = digest(output)
        result = run(*arguments, "-o", output)
        what = f"{' '.join(map(str, arguments))} -o {output.name}"
        checks.equal(f"{what}: kept", digest(output), before)
        checks.true(f"{what}: refused: {result.stderr}",
                    result.returncode in (2, 3))
        checks.true(f"{what}: says why: {result.stderr}",
                    b"input" in result.stderr)
    for command in (["convert", "-"], ["report", "-", "--format", "json"],
                    ["report", "/dev/stdin", "--format", "json"]):
        before = digest(trace)
        with open(trace, "rb") as file:
            result = run(*command, "-o", trace, stdin=file)
        checks.equal(f"{command} from its own output", result.returncode, 2)
        checks.equal(f"{command}: kept", digest(trace), before)
    before = digest(trace)
    with open(trace, "ab") as file:
        result = subprocess.run([LAMINA, "report", str(trace)], stdout=file,
                                stderr=subprocess.PIPE, timeout=120)
    checks.equal("report T >> T", (result.returncode, digest(trace)),
                 (2, before))
    # What is no input may be replaced, as ever.
    other = folder / "other.json"
    for _ in range(2):
        checks.equal("an output is replaced",
                     run("report", trace, "--format", "json", "-o",
                         other).returncode, 0)


def check_sqlite(checks, folder):
    """A database is an output like any other."""
    folder = folder / "sqlite"
    folder.mkdir()
    trace = SAMPLES / "train_step.json.gz"
    real, link = folder / "real.db", folder / "link.sqlite"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    lamina("query", trace, "SELECT 1 AS one", "-o", link)
    checks.true("a link stays", link.is_symlink())
    checks.equal("what it names is written", real.read_bytes()[:6], b"SQLite")
    checks.equal("with its mode", stat.S_IMODE(real.stat().st_mode), 0o640)
    old = os.umask(0o027)
    lamina("query", trace, "SELECT 1 AS one", "-o", folder / "new.sqlite")
    os.umask(old)
    checks.equal("a new one has the mode that the umask leaves",
                 stat.S_IMODE((folder / "new.sqlite").stat().st_mode), 0o640)
    before = digest(real)
    for what, arguments, status in (
            ("a wrong query", (trace, "SELECT nothing FROM none"), 2),
            ("its own input", (real, "SELECT 1"), None)):
        result = run("query", *arguments, "-o", real)
        checks.true(f"{what}: refused: {result.stderr}",
                    result.returncode in ((status,) if status else (2, 3)))
        checks.equal(f"{what}: kept", digest(real), before)
    missing = run("query", trace, "SELECT 1", "-o", folder / "no/x.sqlite")
    checks.true(f"no folder: {missing.stderr}",
                missing.returncode in (2, 3) and b"no/x.sqlite" in missing.stderr)
    full = run("query", trace, "-o", folder / "full.sqlite",
               preexec_fn=lambda: resource.setrlimit(
                   resource.RLIMIT_FSIZE, (20000, 20000)))
    checks.true(f"no room: {full.stderr}", full.returncode in (2, 3))
    checks.equal("nothing is left", sorted(p.name for p in folder.iterdir()),
                 ["link.sqlite", "new.sqlite", "real.db"])


def check_loops(checks, folder):
    """Links that lead around: each file once."""
    loop = folder / "loop"
    loop.mkdir()
    shutil.copy(RANKS / "rank0.json.gz", loop)
    shutil.copy(RANKS / "rank1.json.gz", loop)
    (loop / "a").symlink_to(".")
    (loop / "b").symlink_to(".")
    (loop / "latest").symlink_to(".")
    (loop / "newest.json.gz").symlink_to("rank1.json.gz")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(RANKS / "rank2.json.gz", elsewhere)
    (elsewhere / "back").symlink_to(loop)
    (loop / "more").symlink_to(elsewhere)
    result = lamina("ranks", loop, "--format", "csv", "--only", "ranks")
    files = [line.split(",") for line in result.stdout.splitlines()[1:]]
    checks.equal("every file once", sum(
        1 for line in files if any(".json.gz" in cell for cell in line)), 3)
    checks.equal("without a warning", result.stderr, "")
    lamina("merge", loop, "-o", folder / "merged.json")
    checks.true("merged", (folder / "merged.json").stat().st_size > 0)
    lamina("report", RANKS / "rank0.json.gz", "--capture", loop)


def check_temporary(checks, folder):
    """A folder for temporary files that is missing or full."""
    trace = SAMPLES / "serve.json.gz"
    out = folder / "x.xlsx"
    result = run("report", trace, "--format", "xlsx", "-o", out,
                 env={**os.environ, "TMPDIR": "/nonexistent"})
    error = result.stderr.decode()
    checks.equal("xlsx without TMPDIR", result.returncode, 3)
    checks.true("one line that names it: " + error,
                error.startswith("lamina: error: /nonexistent") and
                "TMPDIR" in error and error.count("\n") == 1)
    checks.true("no workbook", not out.exists())
    limited = run("report", trace, "--format", "xlsx", "-o", out,
                  preexec_fn=lambda: resource.setrlimit(
                      resource.RLIMIT_FSIZE, (4096, 4096)))
    error = limited.stderr.decode()
    checks.equal("xlsx with too little room", limited.returncode, 3)
    checks.true("one line: " + error, error.startswith("lamina: error: ") and
                error.count("\n") == 1)
    for name in ("r.json", "r.html"):
        target = folder / name
        limited = run("report", trace, "--format", name[2:], "-o", target,
                      preexec_fn=lambda: resource.setrlimit(
                          resource.RLIMIT_FSIZE, (4096, 4096)))
        checks.equal(f"{name} with too little room", limited.returncode, 3)
        checks.true(f"{name}: nothing is left", not any(
            p.name.startswith(name) for p in folder.iterdir()))


def children_of(pid):
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(status.parent.name))
    return found


def alive(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rsplit(")", 1)[1].split()[0] != "Z"


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def check_signals(checks, folder):
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    # Stand-ins that never end, and start a child of their own.
    (bin_folder / "nsys").write_text(
        "#!/bin/sh\n"
        'while [ "$1" != --output ]; do shift; done\n'
        'echo half > "$2"\nsleep 600 & echo > "$2.ready"; wait\n')
    (bin_folder / "dot").write_text("#!/bin/sh\nsleep 600\n")
    for name in ("nsys", "dot"):
        (bin_folder / name).chmod(0o755)
    recording = folder / "r.nsys-rep"
    recording.write_bytes(b"QD\0\1 a recording")
    scratch = folder / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch),
                   "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT,
                   signal.SIGKILL):
        process = subprocess.Popen(
            [LAMINA, "report", str(recording)], env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        started = wait_for(lambda: any(scratch.rglob("*.ready")))
        checks.true(f"{number.name}: the exporter runs", started)
        family = children_of(process.pid)
        family += [c for p in family for c in children_of(p)]
        checks.true(f"{number.name}: with children", len(family) >= 2)
        process.send_signal(number)
        checks.equal(f"{number.name}: ends by it", process.wait(30), -number)
        mine = family[:1] if number == signal.SIGKILL else family
        checks.true(f"{number.name}: no child runs on",
                    wait_for(lambda: not any(map(alive, mine)), 5))
        if number != signal.SIGKILL:
            checks.equal(f"{number.name}: no folder is left",
                         list(scratch.iterdir()), [])
        for child in family:
            if alive(child):
                os.kill(child, signal.SIGKILL)
        shutil.rmtree(scratch)
        scratch.mkdir()

    # A pipe that nobody ends keeps the program in the middle of its output.
    ignored = subprocess.Popen(
        [LAMINA, "report", str(recording)], env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_for(lambda: any(scratch.rglob("*.ready")))
    ignored.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    checks.equal("nohup: goes on", ignored.poll(), None)
    ignored.terminate()
    ignored.wait(30)

    big = folder / "big"
    big.mkdir()
    output = big / "out.json"
    # Half a file: a disk quota of the process that is reached, then a signal
    # at many moments of a run.
    for delay in range(0, 30):
        process = subprocess.Popen(
            [LAMINA, "merge", str(RANKS), "-o", str(output)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay / 100)
        process.send_signal(signal.SIGTERM)
        status = process.wait(30)
        left = [p.name for p in big.iterdir() if p.name != "out.json"]
        checks.true(f"stopped after {delay}0 ms: nothing is left",
                    status in (0, -signal.SIGTERM) and not left)


def check_places(checks, folder):
    trace = RANKS / "rank0.json.gz"
    place = folder / "places"
    place.mkdir()

    def write(output, **kwargs):
        return run("report", trace, "--format", "json", "-o", output, **kwargs)

    # The mode of a file that is replaced; that of others by the umask.
    kept = place / "kept.json"
    kept.write_text("before")
    kept.chmod(0o640)
    write(kept)
    checks.equal("mode is kept", oct(stat.S_IMODE(kept.stat().st_mode)),
                 oct(0o640))
    write(place / "new.json", preexec_fn=lambda: os.umask(0o027))
    checks.equal("mode of a new file",
                 oct(stat.S_IMODE((place / "new.json").stat().st_mode)),
                 oct(0o640))
    # A link is written through.
    target = place / "target.json"
    target.write_text("before")
    (place / "link.json").symlink_to("target.json")
    write(place / "link.json")
    checks.true("a link stays a link", (place / "link.json").is_symlink())
    checks.true("its target is written",
                target.read_text().startswith("{"))
    (place / "dangling.json").symlink_to("made.json")
    write(place / "dangling.json")
    checks.true("through a link to nothing",
                (place / "made.json").is_file() and
                (place / "dangling.json").is_symlink())
    # A name that others can guess is not taken.
    victim = place / "victim"
    victim.write_text("precious")
    process = subprocess.Popen(
        ["sh", "-c", f'ln -s victim "{place}/guess.json.part$$"; exec "$@"',
         "sh", LAMINA, "report", str(trace), "--format", "json", "-o",
         str(place / "guess.json")], stderr=subprocess.DEVNULL)
    process.wait(60)
    checks.equal("a planted link", victim.read_text(), "precious")
    checks.true("is not followed", (place / "guess.json").is_file())
    # Standard output by its other name.
    with open(place / "stdout.json", "w+") as file:
        result = subprocess.run(
            [LAMINA, "report", str(trace), "--format", "json", "-o",
             "/dev/stdout"], stdout=file, stderr=subprocess.PIPE, timeout=60)
    checks.equal("/dev/stdout", (result.returncode, (
        place / "stdout.json").read_text()[:1]), (0, "{"))
    # Two runs at once into one name: one of them, whole.
    both = place / "both.json"
    runs = [subprocess.Popen([LAMINA, "report", str(trace), "--format",
                              "json", "-o", str(both)]) for _ in range(4)]
    checks.equal("runs at once", [r.wait(60) for r in runs], [0] * 4)
    checks.equal("whole", both.read_text(), kept.read_text())
    checks.equal("nothing else is left", [
        p.name for p in place.iterdir()
        if ".part" in p.name and not p.is_symlink()], [])


def main():
    checks = Checks()
    for check in (check_kept, check_sqlite, check_loops, check_temporary,
                  check_signals, check_places):
        with temporary() as name:
            check(checks, pathlib.Path(name))
    checks.finish()


main()
