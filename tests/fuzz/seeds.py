#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the seeds of the fuzzers from the golden pages, data/ and samples/.

usage: seeds.py FOLDER         (FOLDER/<target>/<seed>)
"""
import gzip
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/golden"))
import run_golden  # noqa: E402
sys.path.insert(0, str(ROOT / "samples"))
import serving  # noqa: E402

DATABASES = {".sqlite": "nsys", ".db": "rocpd", ".rpd": "rpd"}
MAX_BYTES = 60000  # -max_len of tests/fuzz/run


class Seeds:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def add(self, target, name, data):
        if isinstance(data, str):
            data = data.encode()
        if len(data) > MAX_BYTES:
            return
        path = self.folder / target / name.replace("/", "_")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def rules_target(name, text):
    if re.search(r"^(formulas|models):", text, re.M):
        return "cost_rules"
    if re.search(r"^ *- rule: ", text, re.M) or "/fusions/" in name:
        return "fusion_rules"
    if re.search(r"^table: *module_marker", text, re.M):
        return "marker_rules"
    if re.search(r"^table:", text, re.M):
        return "pattern_rules"
    return None


def add_section(seeds, page, name, body):
    """One input of a golden page."""
    head, *flags = re.split(r"\s*\(|\)\s*\(?", name.rstrip(")"))
    seed = f"{page.parent.name}_{page.stem}_{pathlib.Path(head).name}"
    with tempfile.TemporaryDirectory() as tmp:
        run_golden.write_input(pathlib.Path(tmp), name, body)
        data = (pathlib.Path(tmp) / head).read_bytes()
    suffix = pathlib.Path(head).suffix
    if "sql" in flags:
        target = DATABASES.get(suffix)
        if target:
            seeds.add(target, seed + ".sql", body)
            seeds.add(target, seed, data)
    elif "xplane" in flags or head.endswith(".xplane.pb"):
        seeds.add("xplane", seed, data)
    elif "perfetto" in flags:
        seeds.add("pftrace", seed, data)
    elif suffix == ".json":
        target = "rocprof" if page.parent.name == "rocm" else "kineto"
        seeds.add(target, seed, data)
    elif suffix == ".txt" and b"%" in data:
        seeds.add("graph", seed, data)
    elif suffix == ".log":
        seeds.add("transform_log", seed, data)
    elif suffix == ".yaml":
        target = rules_target(head, body)
        if target:
            seeds.add(target, seed, data)


def from_pages(seeds):
    for page in sorted((ROOT / "tests/golden").glob("*/*.test")):
        _, _, sections = run_golden.parse(page.read_text())
        inputs = [(n, b) for n, b in sections
                  if n not in ("out", "err") and not n.startswith("file ")]
        for name, body in inputs:
            add_section(seeds, page, name, body)
        tables = [b for n, b in inputs if n.endswith(".csv")]
        if tables:
            seeds.add("rocprof_csv", page.stem, "\0".join(tables))


def from_data(seeds):
    """Single rules of the built-in files: whole files are too large."""
    kinds = {"fusions": ("rules:\n", r"^  - rule: ", "fusion_rules"),
             "costs": ("formulas:\n", r"^  - model: ", "cost_rules")}
    for folder, (head, begin, target) in kinds.items():
        for file in sorted((ROOT / "data" / folder).glob("*.yaml")):
            text = file.read_text()
            if head not in text:
                continue
            text = re.split(r"^[a-z_]+:\n", text.split(head, 1)[1],
                            flags=re.M)[0]
            starts = [m.start() for m in re.finditer(begin, text, re.M)]
            for i, (at, end) in enumerate(zip(starts, starts[1:] +
                                              [len(text)])):
                rule = head + text[at:end]
                model = re.match(r"formulas:\n  - model: (\S+)", rule)
                if model:
                    rule += (f"native:\n  - {{model: {model.group(1)}, "
                             "unit: vector, ops: ['a::b']}\n")
                seeds.add(target, f"{file.stem}_{i}.yaml", rule)
    seeds.add("marker_rules", "markers.yaml",
              (ROOT / "data/modules/markers.yaml").read_text())
    text = (ROOT / "data/kernels/families.yaml").read_text()
    rules = re.findall(r"^  - (?:\{.*\}|id:.*(?:\n    .*)*)", text, re.M)
    for i in range(0, len(rules), 8):
        seeds.add("pattern_rules", f"families_{i}.yaml",
                  "table: kernel_family\nrules:\n" +
                  "\n".join(rules[i:i + 8]) + "\n")


def from_samples(seeds):
    """The begin of each sample: a reader salvages what was cut off."""
    for file in sorted((ROOT / "samples").glob("*.json.gz")):
        if ".truth." not in file.name:
            seeds.add("kineto", file.stem, gzip.open(file).read(MAX_BYTES // 4))
    data = (ROOT / "samples/jax.xplane.pb").read_bytes()
    seeds.add("xplane", "jax.pb", data[:MAX_BYTES // 2])
    for file in sorted((ROOT / "samples/memory").glob("*.pickle")):
        seeds.add("memsnap", file.name, file.read_bytes())
    for file in sorted((ROOT / "samples/dumps").rglob("*.txt")):
        seeds.add("graph", file.name, file.read_bytes()[:MAX_BYTES // 4])
    for file in sorted((ROOT / "samples/dialects").iterdir()):
        seeds.add("graph_dialects", file.name,
                  file.read_bytes()[:MAX_BYTES // 4])


def from_servers(seeds):
    """Records of requests in each form."""
    server = serving.Server("vllm", 1)
    requests = serving.load(1, 4)
    serving.serve(server, requests)
    for form in ("vllm", "aiperf", "genai-perf", "trtllm", "csv"):
        seeds.add("requests", form, serving.records(requests, form))


def from_messages(seeds):
    """Messages of both eras of the Model Context Protocol."""
    meta = ('"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
            '"io.modelcontextprotocol/clientCapabilities":{}}')
    call = ('"method":"tools/call","params":{%s"name":"echo","arguments":'
            '{"text":"a","n":5,"flag":true,"many":["b"],"path":"x",'
            '"max_tokens":500,"cursor":"AAAA"}}}')
    start = ('{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
             '{"protocolVersion":"2025-11-25","capabilities":{}}}\n')
    seeds.add("http", "get", "GET /api/v1/info?a=%20b HTTP/1.1\r\nHost: "
              "localhost\r\nAuthorization: Bearer x\r\n")
    seeds.add("http", "post", "POST /mcp HTTP/1.1\r\nHost: [::1]:80\r\n"
              "Content-Length: 2\r\nContent-Type: application/json\r\n")
    seeds.add("http", "frames", "p 0 0 3\n1 2o 0 200 2\n{}r 7 400 0\n")
    seeds.add("mcp", "legacy", start + '{"jsonrpc":"2.0","id":2,' +
              call % "" + '\n{"jsonrpc":"2.0","id":"3","method":"tools/list"}')
    seeds.add("mcp", "modern", '{"jsonrpc":"2.0","id":2,' +
              call % (meta + ",") + '\n{"jsonrpc":"2.0","id":3,"method":'
              '"server/discover","params":{' + meta + "}}")
    seeds.add("mcp", "notifications", start + '{"jsonrpc":"2.0","method":'
              '"notifications/cancelled","params":{"requestId":2}}\n[]\n')


def from_queries(seeds):
    """Queries of the page about SQL, and what the tests refuse."""
    page = (ROOT / "docs/sql.md").read_text()
    queries = re.findall(r'^\$ lamina query [^"]*"(.*?)"$', page, re.M | re.S)
    for i, query in enumerate(queries):
        seeds.add("query", f"page_{i}", query.replace("\\\n", " "))
    test = (ROOT / "src/sql/sql_test.cc").read_text()
    attacks = test[test.index("kAttacks[] = {"):]
    attacks = attacks[:attacks.index("};")]
    for i, attack in enumerate(re.findall(r'^ +"(.*)",$', attacks, re.M)):
        seeds.add("query", f"attack_{i}", attack)


def from_seed_files(seeds):
    """Inputs of their own; messages as text (*.txtpb)."""
    for file in sorted((ROOT / "tests/fuzz/seeds").glob("*/*")):
        data = file.read_bytes()
        if file.suffix == ".txtpb":
            message = {"pftrace": "perfetto"}[file.parent.name]
            data = run_golden.encode(message, data)
        seeds.add(file.parent.name, file.name, data)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    seeds = Seeds(sys.argv[1])
    from_pages(seeds)
    from_data(seeds)
    from_samples(seeds)
    from_servers(seeds)
    from_queries(seeds)
    from_messages(seeds)
    from_seed_files(seeds)
    # A report reads what the reader of its format reads.
    for file in sorted((seeds.folder / "kineto").glob("*")):
        seeds.add("report", file.name, file.read_bytes())


if __name__ == "__main__":
    main()
