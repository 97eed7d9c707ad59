#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nothing is lost in silence: what an archive holds beside the trace, events of
unknown categories, copies of damaged traces, tables of an earlier report, rule
files that would not be read, and files of other forms than traces."""
import csv
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import zipfile

from common import LAMINA, ROOT, SAMPLES, Checks, lamina, temporary

sys.path.insert(0, str(ROOT / "tools" / "generator"))
import faults  # noqa: E402


def event(cat, name="k", ts=1, dur=2, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, "ts": ts,
            "dur": dur, "args": {"stream": 7, "device": 0, **args}}


def write_trace(path, events):
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def health(trace, *args):
    document = json.loads(lamina("report", trace, "--only",
                                 "trace_health,kernels", "--format", "json",
                                 *args).stdout)
    return document["tables"]["trace_health"], document["tables"]["kernels"]


def run(*arguments, **kwargs):
    return subprocess.run([LAMINA, *map(str, arguments)], capture_output=True,
                          text=True, timeout=120, **kwargs)


def check_archives(checks, folder):
    one = write_trace(folder / "one.json", [event("kernel", "first")])
    two = write_trace(folder / "two.json", [event("kernel", "second")])

    def archive(name, members, how=zipfile.ZIP_DEFLATED):
        path = folder / name
        with zipfile.ZipFile(path, "w", how) as file:
            for member, data in members:
                if data is None:
                    file.mkdir(member)
                else:
                    file.writestr(member, data)
        return path

    text = one.read_text()
    packed = gzip.compress(text.encode())
    cases = {
        "alone.zip": [("one.json", text)],
        "readme.zip": [("README.md", "about"), ("run/one.json", text)],
        "folder.zip": [("run/", None), ("run/one.json", text)],
        "packed.zip": [("one.json.gz", packed)],
        "both.zip": [("one.json", text), ("two.json", two.read_text())],
    }
    for name, members in cases.items():
        for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            path = archive(name, members, how)
            rows, kernels = health(path)
            checks.equal(f"{name}: its kernel", [k["kernel"] for k in kernels],
                         ["first"])
            others = [(r["status"], r["meaning"]) for r in rows
                      if r["check"].startswith("archive_member")]
            checks.equal(f"{name}: rows of other members", len(others),
                         len([m for m in members if m[1] is not None]) - 1)
            checks.equal(f"{name}: lost", [s for s, _ in others if
                                           s == "lost"],
                         ["lost"] if name == "both.zip" else [])
            if name == "both.zip":
                checks.true("the second trace is named",
                            "two.json" in others[0][1])
            with open(path, "rb") as file:
                piped = run("report", "-", "--only", "kernels", "--format",
                            "csv", input=None, stdin=file)
            checks.true(f"{name} from a file as stdin", "first" in piped.stdout)
            piped = subprocess.run(
                [LAMINA, "report", "-", "--only", "kernels", "--format",
                 "csv"], input=path.read_bytes(), capture_output=True)
            checks.true(f"{name} from a pipe: {piped.stderr}",
                        b"first" in piped.stdout)
    empty = archive("empty.zip", [("run/", None)])
    result = run("report", empty)
    checks.equal("no file in it", result.returncode, 3)
    checks.true("says so: " + result.stderr, "holds no file" in result.stderr)
    cut = folder / "cut.zip"
    cut.write_bytes((folder / "alone.zip").read_bytes()[:-30])
    rows, kernels = health(cut)
    checks.equal("a cut archive: what is left", len(kernels), 1)


def check_categories(checks, folder):
    trace = write_trace(folder / "unknown.json", [
        event("kernel"), event("gpu_kernel_new", dur=5),
        event("gpu_kernel_new", ts=9, dur=5), event("tpu_thing", dur=1.5),
        event("mtia_insight"), event("xpu_kernel"), event("cuda_sync")])
    rows, _ = health(trace)
    found = {r["value"]: (r["status"], r["count"]) for r in rows
             if r["check"] == "unknown_category"}
    checks.equal("a row for each", len(found), 5)
    checks.equal("with count and time",
                 [v for v in found if v.startswith("gpu_kernel_new")],
                 ["gpu_kernel_new: 2 events, 10.0 us"])
    checks.equal("lost", sorted(v.split(":")[0] for v, (s, _) in found.items()
                                if s == "lost"),
                 ["gpu_kernel_new", "mtia_insight", "tpu_thing",
                  "xpu_kernel"])


def strict(path):
    def refuse(word):
        raise ValueError(word)
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    return json.loads(data, parse_constant=refuse)


def check_copies(checks, folder):
    whole = (SAMPLES / "serve.json.gz")
    text = gzip.decompress(whole.read_bytes()).decode()
    events = strict(whole)["traceEvents"]
    middle = text.index('{"ph"', len(text) // 2) if '{"ph"' in text else \
        text.index('"ph"', len(text) // 2)
    numbers = text.replace('"dur": ', '"dur": 0', 3) if '"dur": ' in text \
        else text.replace('"dur":', '"dur":0', 3)
    damages = {
        "cut": text[:len(text) // 2],
        "numbers": numbers,
        "text": text.replace('"name": "', '"name": "\\x\t', 2)
        if '"name": "' in text else text.replace('"name":"',
                                                 '"name":"\\x\t', 2),
        "record": text[:middle] + '{"ph": , "x"},' + text[middle:],
        "nan": text.replace('"args": {', '"args": {"x": NaN, ', 2)
        if '"args": {' in text else text.replace('"args":{',
                                                 '"args":{"x":NaN,', 2),
        "comma": text.rstrip()[:-1] + ",}",
    }
    for name, damaged in damages.items():
        checks.true(f"{name}: the damage is one", damaged != text)
        path = folder / f"{name}.json"
        path.write_text(damaged)
        out = folder / f"{name}.out.json"
        runs = {
            "convert": ["convert", path, "-o", out],
            "layers": ["layers", path, "--perfetto", out],
            "annotate": ["annotate", path, "--capture", whole, "--trace", out],
            "slice": ["slice", path, "--time", "0ms..100s", "-o", out],
            "merge": ["merge", path, "-o", out],
        }
        for command, arguments in runs.items():
            out.unlink(missing_ok=True)
            result = run(*arguments)
            what = f"{command} of {name}"
            if result.returncode not in (0, 1):
                checks.equal(f"{what}: {result.stderr}", out.exists(), False)
                continue
            try:
                copy = strict(out)["traceEvents"]
            except ValueError as error:
                checks.equal(what, str(error), "JSON")
                continue
            checks.true(f"{what}: most of it is there",
                        len(copy) > len(events) * 0.3)
            if command in ("convert", "layers", "annotate"):
                checks.true(f"{what}: the loss is printed: {result.stderr}",
                            "no JSON throughout" in result.stderr)
    # A whole one stays as it is, byte for byte.
    path = folder / "whole.json"
    path.write_text(text)
    result = run("convert", path, "-o", folder / "copy.json")
    checks.equal("a whole one", ((folder / "copy.json").read_text() == text,
                                 result.stderr), (True, ""))


def check_folders(checks, folder):
    out = folder / "tables"
    out.mkdir()
    (out / "notes.csv").write_text("mine")
    (out / "mine.txt").write_text("mine")
    a, b = SAMPLES / "train_step.json.gz", SAMPLES / "serve.json.gz"
    lamina("report", a, "--format", "csv", "-o", out)
    first = {p.name for p in out.iterdir()}
    lamina("report", b, "--format", "csv", "-o", out, "--only",
           "kernels,steps")
    left = {p.name for p in out.iterdir()}
    checks.equal("tables of the second alone", left, {
        "kernels.csv", "steps.csv", "lamina_manifest.json", "notes.csv",
        "mine.txt"})
    checks.true("there were more", len(first) > len(left))
    manifest = json.loads((out / "lamina_manifest.json").read_text())
    checks.equal("the input is named", manifest["lamina"]["inputs"], [str(b)])
    checks.equal("files", sorted(manifest["files"]),
                 ["kernels.csv", "steps.csv"])
    checks.equal("of others", (out / "notes.csv").read_text(), "mine")
    # A manifest names nothing outside.
    victim = folder / "victim.csv"
    victim.write_text("precious")
    (out / "lamina_manifest.json").write_text(json.dumps(
        {"lamina": {}, "files": ["../victim.csv", "/etc/x.csv", 3]}))
    lamina("report", b, "--format", "csv", "-o", out)
    checks.equal("outside", victim.read_text(), "precious")
    # All or none.
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    result = run("report", a, "--format", "csv", "-o", out,
                 preexec_fn=lambda: __import__("resource").setrlimit(
                     1, (300, 300)))
    checks.equal("no room", result.returncode, 3)
    checks.equal("none of it", {p.name: p.read_bytes()
                                for p in out.iterdir()}, before)


def check_rules(checks, folder):
    trace = SAMPLES / "serve.json.gz"
    rule = "rules:\n- {id: mine, match: x, family: moe}\n"
    cases = [
        ("kernels/x.yaml", "table: kernel_famly\n" + rule, "kernel_family"),
        ("kernels/x.yaml", rule, "kernel_family"),
        ("kernels/x.yaml", "table: kernel_family\nrule:\n- {}\n", "rules"),
        ("kernels/x.yaml", "table: kernel_family\nrules: {id: x}\n", "list"),
        ("kernels/x.yml", "table: kernel_family\n" + rule, ".yaml"),
        ("kernel/x.yaml", "table: kernel_family\n" + rule, "kernels"),
        ("x.yaml", "table: kernel_family\n" + rule, "kernels"),
        ("ops/x.yaml", "table: kernel_family\n" + rule, "kernels"),
        ("layers/x.yaml", "stages:\n- {}\n", "stage"),
        ("devices/x.yaml", "device:\n- {}\n", "devices"),
        ("labels/x.yaml", "- a\n", "families"),
        ("modules/x.yaml", "table: module_markers\nrules: []\n",
         "module_marker"),
    ]
    for i, (name, text, hint) in enumerate(cases):
        rules = folder / f"rules{i}"
        (rules / name).parent.mkdir(parents=True)
        (rules / name).write_text(text)
        for command in (["report", trace, "--rules", rules],
                        ["list", "rules", "--check", "--rules", rules]):
            result = run(*command)
            checks.true(f"{name} {text!r}: status {result.returncode}",
                        result.returncode in (1, 2, 3))
            said = result.stdout + result.stderr
            checks.true(f"{name} {text!r}: says what is right: {said}",
                        hint in said and pathlib.Path(name).name in said)
    good = folder / "good"
    (good / "kernels").mkdir(parents=True)
    (good / "README.txt").write_text("notes")
    (good / "kernels/mine.yaml").write_text("table: kernel_family\n" + rule)
    lamina("report", trace, "--rules", good)
    (folder / "bare").mkdir()
    result = run("report", trace, "--rules", folder / "bare")
    checks.true("a folder without rules", result.returncode in (2, 3))
    for path in sorted((SAMPLES.parent / "data").rglob("*.yaml")):
        rules = folder / "copy" / path.relative_to(SAMPLES.parent / "data")
        rules.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, rules)
    lamina("list", "rules", "--check", "--rules", folder / "copy")


def check_messages(checks, folder):
    forms = {
        "execution trace": b'{"schema": "1.1.0-chakra.0.0.4", "pid": 2, "nodes": '
                  b'[{"id": 2, "name": "[pytorch|profiler|execution_trace|'
                  b'thread]", "rf_id": 3}]}',
        "TensorRT": b'[\n  { "count" : 4216 }\n, { "name" : "Conv", "timeMs" :'
                    b' 51.4, "averageMs" : 0.01, "percentage" : 1.8 }\n]\n',
        "proton": b'[{"children": [], "frame": {"name": "f", "type": '
                  b'"function"}, "metrics": {"count": 1, "time (ns)": 5}}]',
        "pmc_perf": b'Dispatch_ID,GPU_ID,Grid_Size,Kernel_Name,'
                    b'Start_Timestamp,End_Timestamp,SQ_WAVES\n'
                    b'0,2,64,"k",0,0,5\n',
        "timeline of memory": b"[[-1, 1, 37888, 7], [-1, 1, 512, 7]]",
    }
    for name, data in forms.items():
        path = folder / f"{name.replace(' ', '_')}.csv"
        path.write_bytes(data)
        result = run("report", path)
        checks.equal(f"{name}: status", result.returncode, 3)
        checks.true(f"{name}: named: {result.stderr}", name in result.stderr)
    trace = SAMPLES / "serve.json.gz"
    result = run("diff", "-", "-")
    checks.true("diff - -: " + result.stderr, result.returncode == 2 and
                "only once" in result.stderr)
    result = run("report", trace, "--device", "h200x")
    checks.true("the nearest device: " + result.stderr,
                "did you mean 'h200" in result.stderr)
    host = write_trace(folder / "host.json",
                       [event("cpu_op", "aten::mm"), event("cuda_runtime")])
    result = run("layers", host)
    checks.true("layers without device events: " + result.stderr,
                result.returncode == 3 and "no device events" in
                result.stderr and "was recorded" in result.stderr)
    for op, word in (("aten::_mps_convolution", "Apple"),):
        other = write_trace(folder / "other.json", [event("cpu_op", op)])
        said = run("report", other).stdout
        checks.true(f"{op}: " + said, word in said and
                    "ProfilerActivity.CUDA" not in said)


def cut(path, source, share):
    """The beginning of a file, as a full disk leaves it."""
    data = pathlib.Path(source).read_bytes()
    path.write_bytes(data[:int(len(data) * share)])
    return path


def check_damage(checks, folder):
    """Every command that opens a trace says on stderr what of it could not be
    used, with the counts; whole traces are not spoken of."""
    sample = SAMPLES / "train_step.json.gz"
    plain = folder / "whole.json"
    plain.write_bytes(gzip.decompress(sample.read_bytes()))
    proto = folder / "whole.pftrace"
    lamina("convert", plain, "-o", proto)
    ranks = folder / "ranks"
    ranks.mkdir()
    for i in range(2):
        rank = SAMPLES / f"ranks/rank{i}.json.gz"
        if i == 0:
            shutil.copy(rank, ranks)
        else:
            cut(ranks / rank.name, rank, 0.8)
    out = folder / "out"
    out.mkdir()
    commands = {
        "report": (), "layers": (), "host": (), "path": (), "diagnose": (),
        "tree": (), "event": ("--uid", "40"), "replay": ("--op", "aten::mm", "-o", out / "mm"),
        "convert": ("-o", out / "copy.pftrace"),
        "slice": ("--time", "0ms..2ms", "-o", out / "part.json"),
        "query": ("SELECT count(*) FROM slice",)}
    for trace, share in ((plain, 0.8), (sample, 0.8), (proto, 0.7)):
        broken = cut(folder / f"cut{''.join(trace.suffixes)}", trace, share)
        said = set()
        for command, rest in commands.items():
            if command in ("replay", "slice", "event") and trace == proto:
                continue  # shapes, copies of JSON, and other numbers
            what = f"{command} {broken.name}"
            whole = run(command, trace, *rest)
            checks.equal(f"{what}: silent on a whole one", (
                whole.returncode, "could not be used" in whole.stderr),
                (0, False))
            done = run(command, broken, *rest)
            checks.equal(f"{what}: exit status", done.returncode, 0)
            lines = [line for line in done.stderr.splitlines() if
                     "of the input could not be used: " in line]
            checks.equal(f"{what}: says once what is lost", len(lines), 1)
            said.update(lines)
        checks.equal(f"{broken.name}: all say the same", len(said), 1)
        rows, _ = health(broken)
        lost = sum(r["count"] for r in rows if r["status"] == "lost")
        checks.true(f"{broken.name}: {lost} records, {said}", all(
            line.startswith(f"lamina: warning: {broken}: {lost} record")
            for line in said))
    both = run("diff", folder / "cut.json", plain)
    checks.equal("diff: one of two", both.stderr.count("could not be used"), 1)
    for command in ("ranks", "diagnose", "path", "merge"):
        rest = ("-o", out / "ranks.json") if command == "merge" else ()
        done = run(command, *(sorted(ranks.iterdir()) if command == "path"
                              else [ranks]), *rest)
        checks.equal(f"{command}: the damaged rank is named",
                     [line.split(": ")[2] for line in done.stderr.splitlines()
                      if "could not be used" in line],
                     [str(ranks / "rank1.json.gz")])
    found = json.loads(run("diagnose", folder / "cut.json", "--format",
                           "json", "--all").stdout)["findings"]
    checks.equal("diagnose: what is damaged stands first",
                 (found[0]["rule"], found[0]["severity"]),
                 ("trace.damaged", "blocker"))
    checks.equal("diagnose: all else is a hint",
                 {f["confidence"] for f in found[1:]}, {"hint"})
    sql = json.loads(run("query", folder / "cut.json", "SELECT number FROM "
                         "recording WHERE key IN ('damaged', 'lost_records')",
                         "--format", "json").stdout)["tables"]["result"]
    checks.equal("recording", [r["number"] for r in sql], [1, 1])
    # Of what happened on the host alone as well.
    host = folder / "host.json"
    host.write_text(json.dumps({"traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 1,
         "ts": i, "dur": 1, "args": {}} for i in range(50)]}))
    state = {}
    for trace in (host, cut(folder / "less.json", host, 0.5)):
        runs = json.loads(run("diagnose", trace, "--format", "json").stdout)
        state[trace.name] = [r["state"] for r in runs["rules_run"]
                             if r["rule"] == "trace.damaged"]
    checks.equal("a recording of the host", state, {
        "host.json": ["abstained"], "less.json": ["found"]})
    # What a rule that can see no more says nothing of is not fixed.
    run_a, _ = faults.make("gc_pause", 11, 0.08, faults.NOISE[0])
    faulty = folder / "faulty.json"
    run_a.write(faulty)
    healthy, _ = faults.make_healthy("train", 11, faults.NOISE[0])
    healthy.write(folder / "mended.json")
    changes = json.loads(run("diff", faulty, cut(
        folder / "mended-cut.json", folder / "mended.json", 0.9),
        "--findings", "--format", "json").stdout)["tables"]["finding_changes"]
    checks.equal("diff --findings: not fixed", [
        r["change"] for r in changes if r["id"].startswith("host.gc_pause")],
        ["lost_sight"])


def check_open_list(checks, folder):
    """The format lets a list of events go without its end."""
    events = ",\n".join(json.dumps(event("kernel", f"k{i}", ts=10 * i))
                        for i in range(20))
    for what, text in (("a comma", "[" + events + ",\n"),
                       ("nothing", "[" + events + "\n")):
        path = folder / "open.json"
        path.write_text(text)
        rows, kernels = health(path)
        checks.equal(f"{what} at the end: all kernels",
                     sum(k["count"] for k in kernels), 20)
        checks.equal(f"{what} at the end: said, not as a loss",
                     [r["status"] for r in rows
                      if r["check"] == "list_without_end"], ["warn"])
        result = run("diagnose", path, "--format", "json")
        checks.equal(f"{what} at the end: no warning", result.stderr, "")
        checks.equal(f"{what} at the end: not damaged", [
            f["rule"] for f in json.loads(result.stdout)["findings"]
            if f["rule"] == "trace.damaged"], [])
        run("convert", path, "-o", folder / "closed.json")
        checks.equal(f"{what} at the end: the copy has an end",
                     len(strict(folder / "closed.json")["traceEvents"])
                     if isinstance(strict(folder / "closed.json"), dict)
                     else len(strict(folder / "closed.json")), 20)
    path.write_text("[" + events + ",\n" + '{"ph":"X","cat":"kern')
    checks.true("a list that is cut inside of an event is damaged", any(
        f["rule"] == "trace.damaged" for f in json.loads(
            run("diagnose", path, "--format", "json").stdout)["findings"]))


def check_cut_rank(checks, folder):
    """The trust in what ranks show does not depend on what is asked for."""
    ranks = folder / "cut_ranks"
    shutil.copytree(SAMPLES / "ranks", ranks,
                    ignore=shutil.ignore_patterns("*truth*"))
    text = gzip.decompress((ranks / "rank1.json.gz").read_bytes())
    (ranks / "rank1.json.gz").unlink()
    (ranks / "rank1.json").write_bytes(text[:len(text) * 9 // 10])

    def sure(*args):
        result = run("diagnose", ranks, "--format", "json", *args)
        return {f["rule"]: f["confidence"]
                for f in json.loads(result.stdout)["findings"]}, result.stderr
    whole, said = sure()
    checks.true("the cut rank is said once: " + said,
                said.count("could not be used") == 1 and "rank1" in said)
    checks.true("findings: " + str(whole), "trace.damaged" in whole and
                len(whole) > 1)
    for rule, confidence in whole.items():
        checks.equal(f"alone: {rule}", sure("--only", rule)[0],
                     {rule: confidence})


def main():
    checks = Checks()
    for check in (check_archives, check_categories, check_copies,
                  check_folders, check_rules, check_messages, check_damage,
                  check_open_list, check_cut_rank):
        with temporary() as name:
            check(checks, pathlib.Path(name))
    checks.finish()


if __name__ == "__main__":
    main()
