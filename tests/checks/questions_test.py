#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every question has one answer, whoever asks: the program, the C++ library, a
session of it, the module for Python, lamina mcp.

usage: questions_test.py LAMINA

The library writes, byte for byte, what the program writes with --format json
(of diagnose, which has a JSON of its own, the tables as CSV), but for the names
of options and commands in notes; Python and agents get the same tables, rows and
notes. A question without a case here fails.

Longer than most: a case for each question, and a way to ask for each of those
who ask.
"""
import decimal
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

from common import LAMINA, ROOT, Checks, cached, skip, temporary
from mcp_client import Client

sys.path.insert(0, str(ROOT / "evals"))
from inputs import make  # noqa: E402

BUILD = pathlib.Path(LAMINA).parent
ASK = BUILD / "tests/ask_any"
DUMP = "dumps/001_export_export_to_gm.txt"
FUSIONS = "fusions/001_export_export_to_gm.txt.gz"
OUTPUT = "@output"

# Parameters of each question, some with more than one set.
CASES = [
    ("report", {"trace": "train_step.json.gz"}),
    ("report", {"trace": "serve.json.gz", "only": ["kernels", "findings"],
                "top": 3}),
    ("report", {"trace": "graphs/replay.json.gz", "only": ["ops"],
                "capture": ["graphs/capture.json.gz"]}),
    ("diagnose", {"trace": "serve.json.gz", "all": True}),
    ("diagnose", {"trace": "ranks", "min_share": 0.5}),
    ("layers", {"trace": "graphs/replay.json.gz"}),
    ("layers", {"trace": "serve.json.gz", "stage": "decode", "layer": "0-1",
                "variants": True}),
    ("event", {"trace": "serve.json.gz", "uid": 40}),
    ("tree", {"trace": "moe.json.gz", "by": "module", "depth": 4,
              "min_share": 2.5, "expand": True}),
    ("host", {"trace": "train_step.json.gz", "by": "step"}),
    ("host", {"trace": "ranks/rank0.json.gz", "ranks": ["ranks"],
              "infer": "off"}),
    ("path", {"trace": ["serve.json.gz"], "by": "layer",
              "what_if": ["scale:class=compute:0.5", "zero:launch"]}),
    ("path", {"trace": ["ranks"], "only": ["path_summary", "path_ranks"]}),
    ("diff", {"a": "ranks/rank0.json.gz", "b": "ranks/rank2.json.gz"}),
    ("diff", {"a": "serve.json.gz", "b": "moe.json.gz", "findings": True}),
    ("ranks", {"paths": ["ranks"]}),
    ("requests", {"trace": "server.json", "bench": "bench.json",
                  "slo": "ttft=2ms,itl=1ms", "request": "3"}),
    ("sweep", {"paths": ["b16.json", "b256.json", "b400.json"]}),
    ("annotate", {"trace": "graphs/replay.json.gz",
                  "from": ["graphs/capture.json.gz"]}),
    ("graph_layers", {"dump": "dumps"}),
    ("graph_layer", {"dump": "dumps", "layer": "3"}),
    ("graph_census", {"dump": "dumps"}),
    ("graph_census", {"dump": DUMP, "explain": True}),
    ("graph_candidates", {"dump": DUMP, "bind": ["s72=1"]}),
    ("graph_review", {"before": "runs/after", "after": "runs/before",
                      "rule": "fuse_rmsnorm"}),
    ("graph_rewrite", {"dump": FUSIONS, "config": "fusions/pipeline.yaml"}),
    ("graph_log_diff", {"log_a": "runs/before/transform.log",
                        "log_b": "runs/after/transform.log",
                        "dumps": ["runs/before", "runs/after"]}),
    ("graph_diff", {"a": DUMP,
                    "b": "dumps/064_post_load_fusion_fuse_add_rms_norm.txt"}),
    ("graph_kernels", {"trace": "graphs/replay.json.gz"}),
    ("graph_pipeline", {"folder": "dumps", "all": True}),
    ("graph_print", {"dump": DUMP, "bind": ["s72=1", "s70=128"]}),
    ("cost", {"op": "aten::mm", "shapes": "[[8192,4096],[4096,4096]]",
              "dtypes": ["bf16"], "device": "h100"}),
    ("memory", {"files": ["memory/train.pickle"], "by": "line"}),
    ("memory", {"files": ["memory/train.pickle", "memory/oom.pickle"]}),
    ("slice", {"trace": "train_step.json.gz", "step": 1, "output": OUTPUT}),
    ("replay", {"trace": "train_step.json.gz", "op": "aten::mm",
                "output": OUTPUT}),
    ("annotate_trace", {"trace": "graphs/replay.json.gz",
                        "from": ["graphs/capture.json.gz"],
                        "output": OUTPUT}),
    ("convert", {"trace": "jax.xplane.pb", "output": OUTPUT}),
    ("merge", {"paths": ["ranks"], "align_clocks": True, "output": OUTPUT}),
    ("graph_pass", {"name": "fuse_rmsnorm", "dump": FUSIONS,
                    "tree": str(ROOT / "tests/autodeploy/tree"),
                    "output": OUTPUT}),
]
# The program writes the layer itself, which other checks hold.
NO_DOCUMENT = {"graph_layer"}
# Its JSON is not that of a document.
OWN_JSON = {"diagnose", "report"}


def python_module():
    """The module, in the Python that it is for, which then runs this check;
    or nothing."""
    python = cached("LAMINA_PYTHON")
    if not list((BUILD / "python/lamina").glob("_core.*.so")) or \
            cached("CMAKE_BUILD_TYPE") != "Release":
        return None
    if os.path.realpath(python) != os.path.realpath(sys.executable):
        sys.stdout.flush()
        os.execv(python, [python, *sys.argv])
    if importlib.util.find_spec("numpy") is None:
        return None
    sys.path.insert(0, str(BUILD / "python"))
    import lamina
    return lamina


def run(words, cwd):
    r = subprocess.run([*map(str, words)], capture_output=True, text=True,
                       cwd=cwd, timeout=600)
    # Checks of a command (a review, a log) end with 1.
    if r.returncode not in (0, 1):
        raise AssertionError(f"{words}: {r.stdout[-500:]}{r.stderr}")
    return r.stdout


def content(path):
    """What was written, a file or a folder."""
    path = pathlib.Path(path)
    if path.is_dir():
        return {str(p.relative_to(path)): p.read_bytes()
                for p in sorted(path.rglob("*")) if p.is_file()}
    return path.read_bytes() if path.exists() else None


class Question:
    def __init__(self, command, of_trace):
        self.command = command
        self.of_trace = of_trace
        self.options = {}  # by parameter
        self.at_opening = set()

    def words(self, params):
        """The command line that a user would type, and its inputs."""
        words, inputs = self.command.split(), []
        for name, option in self.options.items():
            values = params.get(name, [])
            for value in values if isinstance(values, list) else [values]:
                if not option.startswith("--"):
                    inputs.append(value)
                elif value is True:
                    words.append(option)
                elif value is not False:
                    words.append(f"{option}={value}")
        return words, ["--", *inputs]


def questions_of_library():
    out = {}
    for line in run([ASK, "list"], ROOT).splitlines():
        first, *rest = line.split("\t")
        if first:
            question = out[first] = Question(rest[0], rest[1] == "trace")
        else:
            question.options[rest[0]] = rest[1]
            if rest[2]:
                question.at_opening.add(rest[0])
    return out


def plain(text):
    """Without what notes of a command line have: --layer, lamina report."""
    text = re.sub(rb"(?<![\w-])--([a-z-]+)",
                  lambda m: m[1].replace(b"-", b"_"), text)
    return re.sub(rb"\blamina (?=[a-z])", b"", text)


def said_of(document):
    """A document, or a folder of them."""
    if isinstance(document, dict):
        return {name: plain(text) for name, text in document.items()}
    return plain(document)


def arguments_of(params):
    """NAME=VALUE for ask_any."""
    out = []
    for name, values in params.items():
        for value in values if isinstance(values, list) else [values]:
            text = str(value).lower() if isinstance(value, bool) else value
            out.append(f"{name}={text}")
    return out


class Expected:
    """What a JSON document says."""

    def __init__(self, text):
        document = json.loads(text, parse_float=decimal.Decimal)
        self.tables = document["tables"]
        self.notes = [note["text"] for note in document["notes"]]

    def rows(self, table, columns):
        """Rows of a table as those have it who give its columns other names:
        times are then nanoseconds, exactly."""
        def cell(value, key, name):
            if key == name or value is None:
                return (float(value) if isinstance(value, decimal.Decimal)
                        else value)
            return int(value * 1000)
        return [[cell(value, key, name) for (key, value), name
                 in zip(row.items(), columns, strict=True)]
                for row in self.tables[table]]


def check_python(checks, name, module, question, params, expected):
    """The function, the trace that is open, and the notes."""
    answers = [module.ask(name, allow_write=True, **params)]
    if question.of_trace and isinstance(params["trace"], str) and \
            pathlib.Path(params["trace"]).is_file():
        with module.open(params["trace"],
                         captures=params.get("capture", ())) as t:
            answers.append(t.ask(name, allow_write=True, **{
                k: v for k, v in params.items()
                if k != "trace" and k not in question.at_opening}))
    for answer in answers:
        checks.equal(f"python {name}: tables", list(answer.tables),
                     list(expected.tables))
        for table in answer.tables.values():
            checks.equal(f"python {name} {table.name}: rows",
                         [list(row) for row in table],
                         expected.rows(table.name, table.column_names))
        checks.equal(f"python {name}: notes",
                     [note.text for note in answer.notes], expected.notes)


def check_agent(checks, name, client, params, expected):
    """The first page of an answer holds the first rows."""
    result = client.call(name, full_names=True, **params)
    checks.equal(f"mcp {name}: no error", result["isError"], False)
    answer = result["structuredContent"]
    for table in answer["tables"]:
        columns = [column["name"] for column in table["columns"]]
        rows = expected.rows(table["name"], columns)
        checks.equal(f"mcp {name} {table['name']}: rows", table["rows"],
                     rows[:len(table["rows"])])
    checks.equal(f"mcp {name}: notes", [
        n["text"] for n in answer["notes"]
        if n["id"] != "inputs" and n["text"] not in expected.notes], [])


def main():
    if not ASK.exists():
        skip("what asks the library is not built (target ask_any)")
    checks = Checks()
    module = python_module()
    with temporary() as folder:
        folder = pathlib.Path(folder)
        make(LAMINA, folder)
        os.chdir(folder)
        client = Client(LAMINA, "--allow", folder)
        tools = {t["name"]: set(t["inputSchema"]["properties"])
                 for t in client.request("tools/list")["tools"]}
        questions = questions_of_library()
        checks.equal("every question has a case", sorted(questions),
                     sorted({name for name, _ in CASES}))
        checks.true("tools of agents are questions",
                    len(set(tools) & set(questions)) >= 16)
        for number, (name, params) in enumerate(CASES):
            ending = {"slice": ".json", "annotate_trace": ".json.gz",
                      "convert": ".pftrace", "merge": ".json.gz"}.get(name, "")
            written = folder / f"out/written{ending}"
            written.parent.mkdir(exist_ok=True)
            params = {k: str(written) if v == OUTPUT else v
                      for k, v in params.items()}

            def made():
                found = content(written)
                subprocess.run(["rm", "-rf", written], check=True)
                return found

            def library(how, form, output):
                run([ASK, how, form, output, name, *arguments_of(params)],
                    folder)
                return content(output), made()

            form = "csv" if name in OWN_JSON else "json"
            target = folder / (f"out/{number}" + ("" if form == "csv"
                                                  else ".json"))
            document = library("library", form, target)
            question = questions[name]
            if name not in NO_DOCUMENT:
                words, inputs = question.words(params)
                if form == "csv":
                    run([LAMINA, *words, "--format", "csv", "-o",
                         folder / f"out/{number}c", *inputs], folder)
                    said = content(folder / f"out/{number}c")
                else:
                    said = run([LAMINA, *words, "--format", "json", *inputs],
                               folder).encode()
                checks.equal(f"{name} {number}: the library writes what the "
                             "program writes", said_of(document[0]),
                             said_of(said))
                checks.equal(f"{name} {number}: the library makes the files "
                             "that the program makes", document[1], made())
            if question.of_trace and "capture" not in params and \
                    isinstance(params["trace"], str) and \
                    pathlib.Path(params["trace"]).is_file():
                again = library("session", form, f"{target}s")
                checks.equal(f"{name} {number}: a session says the same",
                             again, document)
            everything = target.with_suffix(".j")
            library("library", "json", everything)
            expected = Expected(everything.read_bytes())
            if module:
                check_python(checks, name, module, question, params, expected)
                made()
            if name in tools and set(params) <= tools[name]:
                check_agent(checks, name, client, params, expected)
        if not module:
            skip("no module for this Python, or no numpy: what it answers was "
                 "not looked at")
    checks.finish()


main()
