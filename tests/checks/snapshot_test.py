# SPDX-License-Identifier: Apache-2.0
"""A trace that is opened from the cache gives the bytes that it gives when it
is parsed: all tables, commands and formats. Damage and a cache that cannot be
written change nothing."""
import os
import pathlib
import random
import re
import shutil
import subprocess
import time

from common import Checks, LAMINA, SAMPLES, shared, temporary, traces
from profilers import FORMATS, Work, write_xplane

# Exit status and output of a run, and what --timing says of the cache.
MAPPED, KEPT = "mapped ", "kept "


class Program:
    def __init__(self, folder):
        self.folder = folder
        self.cache = folder / "cache"
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith("LAMINA_CACHE")}
        self.env["XDG_CACHE_HOME"] = str(self.cache)

    def run(self, *args, mode="always"):
        env = dict(self.env)
        if mode:
            env["LAMINA_CACHE"] = mode
        r = subprocess.run([LAMINA, *map(str, args), "--timing"], env=env,
                           capture_output=True, timeout=600)
        says = [line[len("cache"):].strip() for line in
                r.stderr.decode(errors="replace").splitlines()
                if line.startswith("cache ")]
        # Errors and warnings, without times.
        words = [line for line in r.stderr.splitlines()
                 if line.startswith(b"lamina:")]
        return (r.returncode, r.stdout, words), says

    def files(self):
        return sorted((self.cache / "lamina").glob("*.lsnap"))


def tree_of(path):
    """The content of a file or of all files of a folder."""
    if path.is_file():
        return path.read_bytes()
    return {str(p.relative_to(path)): p.read_bytes()
            for p in sorted(path.rglob("*")) if p.is_file()}


WAYS = ("without", "first", "again")


def all_ways(checks, program, trace, *args, out=None, kept=True, ways=WAYS):
    """Runs a command without a cache, with an empty one and with a full one."""
    results = []
    shutil.rmtree(program.cache, ignore_errors=True)
    for way in ways:
        target = program.folder / ("out" if out is None else out)
        if target.is_dir():
            shutil.rmtree(target)
        target.unlink(missing_ok=True)
        words = [*args] if out is None else [*args, "-o", target]
        # A page shows the options, so the environment says it.
        result, says = program.run(
            *words, mode="off" if way == "without" else "always")
        results.append((result, tree_of(target) if target.exists() else None))
        name = f"{pathlib.Path(trace).name} {args[0]} {way}"
        if way == "without":
            checks.equal(f"{name}: says nothing", says, [])
            checks.equal(f"{name}: keeps nothing", program.files(), [])
        else:
            sign = KEPT if way == "first" else MAPPED
            checks.equal(f"{name}: {sign}", any(s.startswith(sign)
                                                for s in says), kept)
        checks.true(f"{name}: same", results[-1] == results[0])
    return results[0]


def check_commands(checks, program, trace):
    """Whatever a command makes of a trace."""
    for args, out in (
            (("report", trace, "--format", "csv"), "tables"),
            (("report", trace), "report.json"),
            (("report", trace), "report.html"),
            (("report", trace, "--layout", "tracelens", "--format", "csv"),
             "sheets"),
            (("query", trace), "all.sqlite"),
            (("query", trace, "select * from slice"), None),
            (("layers", trace), None),
            (("tree", trace), None),
            (("host", trace), None),
            (("path", trace), None),
            (("diagnose", trace), None),
            (("event", trace, "--uid", 40), None),
            (("diff", trace, trace), None),
            (("convert", trace), "copy.pftrace"),
            (("list", "rules", "--unused", trace), None)):
        (status, _, words), _ = all_ways(checks, program, trace, *args, out=out)
        checks.true(f"{args[0]}: {status} {words}", status in (0, 1))


def check_tables(checks, program, trace, kept=True, more=(), ways=WAYS):
    all_ways(checks, program, trace, "report", trace, "--format", "csv", *more,
             out="tables", kept=kept, ways=ways)
    # All rows of all tables, of those that are not large.
    if not more and (not kept or trace.stat().st_size < 1 << 20):
        all_ways(checks, program, trace, "query", trace, out="all.sqlite",
                 kept=kept, ways=ways)


def check_formats(checks, program):
    """One workload in all formats. A folder is none that is kept."""
    work = Work(SAMPLES / "train_step.json.gz").repeated(4)
    made = program.folder / "made"
    made.mkdir()
    for file, write in (*FORMATS.values(), ("a.xplane.pb", write_xplane)):
        write(work, made / file)
    program.run("convert", made / FORMATS["rocprof"][0], "-o",
                made / "a.pftrace", mode="off")
    shutil.copy(SAMPLES / "train_step.json.gz", made / "a.json.gz")
    subprocess.run("gzip -dc a.json.gz > plain.json; gzip -k a.sqlite", shell=True,
                   cwd=made, check=False)
    time.sleep(4)  # what was changed just now is not kept
    for path in sorted(made.iterdir()):
        check_tables(checks, program, path, kept=path.is_file())


def check_rules(checks, program):
    """Rules that add frames to what the cache holds."""
    rules = program.folder / "rules"
    (rules / "modules").mkdir(parents=True)
    (rules / "modules" / "more.yaml").write_text(EXTRA_RULE)
    trace = program.folder / "ranges.json"
    spans = [f'{{"ph":"X","cat":"user_annotation","name":"range of part.{i % 3}","pid":1,'
             f'"tid":1,"ts":{i * 100},"dur":90}},'
             f'{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel",'
             f'"pid":1,"tid":1,"ts":{i * 100 + 5},"dur":5,'
             f'"args":{{"correlation":{i + 1}}}}},'
             f'{{"ph":"X","cat":"kernel","name":"k{i % 5}","pid":0,"tid":7,'
             f'"ts":{i * 100 + 20},"dur":30,"args":{{"device":0,"stream":7,'
             f'"correlation":{i + 1}}}}}' for i in range(40)]
    trace.write_text('{"traceEvents":[' + ",\n".join(spans) + "]}")
    time.sleep(4)
    plain = all_ways(checks, program, trace, "report", trace, "--format", "csv",
                     out="tables")
    # Kept without rules, opened with them, and the other way round.
    ruled, says = program.run("report", trace, "--rules", rules, "--format",
                              "json")
    checks.true("rules on a kept trace", any(s.startswith(MAPPED)
                                             for s in says))
    parsed, _ = program.run("report", trace, "--rules", rules, "--format",
                            "json", "--no-cache")
    checks.true("rules: same", ruled == parsed)
    checks.true("rules add modules", b"part_1" in ruled[1])
    with_rules = all_ways(checks, program, trace, "report", trace, "--rules",
                          rules, "--format", "csv", out="tables")
    checks.true("rules change the report", with_rules != plain)


EXTRA_RULE = """\
table: module_marker
rules:
  - id: test-part
    match: '^range of (?P<path>part\\.\\d)$'
    why: 'ranges of this check'
    examples:
      - {text: 'range of part.1', module: part_1}
"""


def check_damage(checks, program):
    """Whatever happens to the file, the report stays."""
    trace = SAMPLES / "moe.json.gz"
    shutil.rmtree(program.cache, ignore_errors=True)
    good, _ = program.run("report", trace, "--format", "json")
    rng = random.Random(5)
    kept = program.files()[0]
    whole = kept.read_bytes()
    for way in ("flip", "cut", "zero", "swap", "grow", "empty") * 3:
        data = bytearray(whole)
        at = rng.randrange(len(data) - 200)
        if way == "flip":
            data[at] ^= 1 << rng.randrange(8)
        elif way == "cut":
            del data[at:]
        elif way == "zero":
            data[at:at + 200] = bytes(200)
        elif way == "swap":
            data[at:at + 64], data[88:152] = data[88:152], data[at:at + 64]
        elif way == "grow":
            data += b"more"
        else:
            data = b""
        kept.write_bytes(data)
        kept.chmod(0o600)
        found, _ = program.run("report", trace, "--format", "json")
        checks.true(f"{way} at {at}: same", found == good)
        again, says = program.run("report", trace, "--format", "json")
        checks.true(f"{way} at {at}: kept again", again == good and any(
            s.startswith(MAPPED) for s in says))


def check_places(checks, program):
    """Folders that cannot be used are as none, without a word."""
    trace = SAMPLES / "moe.json.gz"
    good, _ = program.run("report", trace, "--format", "json", mode="off")
    shutil.rmtree(program.cache, ignore_errors=True)
    blocked = program.folder / "file"
    blocked.write_text("")
    for where in (blocked / "below", pathlib.Path("/proc"),
                  pathlib.Path("/dev/full")):
        program.env["XDG_CACHE_HOME"] = str(where)
        found, says = program.run("report", trace, "--format", "json")
        checks.true(f"{where}: same, and no word", found == good)
        checks.true(f"{where}: --timing says why", says)
    program.env["XDG_CACHE_HOME"] = str(program.cache)
    program.run("report", trace, mode=None)
    checks.equal("small ones are not kept by default", program.files(), [])
    program.run("report", trace, "--no-cache")
    checks.equal("--no-cache keeps nothing", program.files(), [])
    program.run("report", trace)
    checks.equal("a file is kept", len(program.files()), 1)
    found, says = program.run("report", trace, "--format", "json", "--no-cache")
    checks.equal("--no-cache maps nothing", (found == good, says), (True, []))
    shutil.rmtree(program.cache)
    # Not -o: what is read must not be written.
    copy = program.folder / "copy.json.gz"
    shutil.copy(trace, copy)
    time.sleep(4)
    for _ in range(2):
        (status, _, words), _ = program.run("annotate", copy, "-o", copy)
        checks.equal(f"an input that was mapped is no output: {words}", status,
                     2)


def check_command(checks, program):
    """lamina cache."""
    shutil.rmtree(program.cache, ignore_errors=True)
    trace = SAMPLES / "moe.json.gz"
    (status, out, _), _ = program.run("cache", "path")
    checks.equal("path", (status, out.decode()),
                 (0, f"{program.cache}/lamina\n"))
    for what, expected in (("list", None), ("prune", b"0 files removed\n"),
                           ("clear", b"0 files removed\n")):
        (status, out, words), _ = program.run("cache", what)
        checks.equal(f"{what} of nothing: {words}", status, 0)
        if expected:
            checks.equal(what, out, expected)
    program.run("report", trace)
    (_, out, _), _ = program.run("cache", "list", "--format", "csv")
    rows = out.decode().splitlines()
    checks.true(f"list: {rows}", len(rows) == 2 and
                rows[1].startswith(f"{trace},current,"))
    (_, out, _), _ = program.run("cache", "prune")
    checks.equal("prune keeps what is current", out, b"0 files removed\n")
    (_, out, _), _ = program.run("cache", "clear")
    checks.equal("clear", (out, program.files()), (b"1 file removed\n", []))
    (status, _, _), _ = program.run("cache", "other")
    checks.equal("usage", status, 2)
    program.run("report", trace)
    foreign = [program.cache / "lamina" / name
               for name in ("notes.lsnap", "0.lsnap.txt", "x.lsnap.part1")]
    for file in foreign:
        file.write_text("mine")
    (_, out, _), _ = program.run("cache", "clear")
    checks.equal("clear leaves files of others",
                 (out, [f.read_text() for f in foreign]),
                 (b"1 file removed\n", ["mine"] * 3))
    program.env["LAMINA_CACHE_LIMIT"] = "lots"
    (status, _, words), _ = program.run("report", trace)
    checks.true(f"a limit that is no size: {words}", status == 0 and any(
        b"LAMINA_CACHE_LIMIT: 'lots'" in line for line in words))
    del program.env["LAMINA_CACHE_LIMIT"]
    # What others can write may be anything.
    (program.cache / "lamina").chmod(0o777)
    _, says = program.run("report", trace)
    checks.true(f"a folder of others: {says}", says and not any(
        s.startswith((MAPPED, KEPT)) for s in says))
    (program.cache / "lamina").chmod(0o700)
    with open("/dev/full", "wb") as full:
        for words in (["--help"], ["help", "report"], ["--version"]):
            done = subprocess.run([LAMINA, *words], stdout=full,
                                  stderr=subprocess.PIPE, check=False)
            checks.equal(f"{words} to a full disk", (
                done.returncode, b"No space left" in done.stderr), (3, True))


def check_facts(checks):
    """A report, its findings and its page find each fact out once, however many
    ask for it (analysis/common/facts.h)."""
    sources = pathlib.Path(__file__).parents[2] / "src"
    facts = {name for header in sources.rglob("*.h") if header.name != "facts.h"
             for name in re.findall(r'kFact = "([^"]+)"', header.read_text())}
    checks.true(f"facts in the sources: {sorted(facts)}", len(facts) > 8)
    made = set()
    for trace in sorted(SAMPLES.glob("*.json.gz")) + [SAMPLES / "jax.xplane.pb"]:
        if ".truth." in trace.name:
            continue
        for more in (["--full"], ["--format", "html"]):
            r = subprocess.run([LAMINA, "report", trace, *more, "--timing",
                                "--no-cache"], capture_output=True, text=True,
                               timeout=600)
            stages = dict(re.findall(r"^(.+?) +[\d.]+ s(?:, (\d+) times)?$",
                                     r.stderr, re.M))
            made |= facts & set(stages)
            checks.equal(f"{trace.name} {more}: made more than once",
                         [f for f in sorted(facts) if stages.get(f)], [])
    checks.true(f"facts made: {sorted(made)}", len(made) > 6)


def main():
    checks = Checks()
    check_facts(checks)
    with temporary() as folder:
        program = Program(pathlib.Path(folder).resolve())
        check_command(checks, program)
        check_places(checks, program)
        check_damage(checks, program)
        check_rules(checks, program)
        check_formats(checks, program)
        for trace in (SAMPLES / "train_step.json.gz",
                      SAMPLES / "jax.xplane.pb"):
            check_commands(checks, program, trace)
        root = shared() / "traces"
        others = [p for suffix in ("*.pb", "*.pftrace", "*.sqlite", "*.db",
                                   "rocprof*.json.gz")
                  for p in sorted(root.rglob(suffix))]
        # What is kept is what was parsed just then: samples show that keeping
        # changes nothing.
        for trace in traces(root) + others:
            check_tables(checks, program, trace, ways=WAYS[1:])
        for name in ("vllm-decode-full",):
            check_tables(checks, program, root / name / "replay.json.gz",
                         more=("--capture", root / name / "capture"))
    checks.finish()


main()
