#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Output code of Inductor joined to traces: which ops and lines a compiled
kernel is. Traces are made from the calls of the code, in many variants; kernels
that cannot be told apart are not explained."""
import html
import json
import pathlib
import re

import common
from common import lamina, temporary
from serve_client import Serve

FUSED = """
# kernel path: /tmp/x/ab/cabc.py
# Topologically Sorted Source Nodes: [{source}], Original ATen: [{ops}]
# Source node to ATen node mapping:
#   {source} => {nodes}
# Graph fragment:
{fragment}
{name} = async_compile.triton('{shown}', '''
import triton
# Graph fragment: a comment inside is the kernel's own
@triton.jit
def {name}(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    extern_kernels.mm(nothing)
''', device_str='cuda')
"""
CODE = """# AOT ID: ['0_inference']
from torch._inductor.async_compile import AsyncCompile
aten = torch.ops.aten
inductor_ops = torch.ops.inductor
async_compile = AsyncCompile()
{kernels}
async_compile.wait(globals())
del async_compile

def call(args):
    arg0_1, = args
    args.clear()
    with torch.cuda._DeviceGuard(0):
{calls}
    return (buf9, )

def benchmark_compiled_module(times=10, repeat=10):
    triton_nothing.run(1)
"""
GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[8, 16][16, 1]cuda:0"):
{body}
        return ({last},)
"""


def kernel(name, ops, nodes, source="x", shown=None, fragment=True):
    lines = "".join(
        f"#   %{n} : [num_users=1] = call_function[target=torch.ops."
        f"{o}.default](args = (%arg0_1,), kwargs = {{}})\n"
        for n, o in zip(nodes, ops)) if fragment else ""
    return FUSED.format(name=name, shown=shown or name, ops=", ".join(ops),
                        nodes=", ".join(nodes), source=source,
                        fragment=lines.rstrip("\n") or "#")


def code(kernels, calls):
    """`calls`: names of kernels, or ("mm", ops) for a library's."""
    text = []
    for one in calls:
        if isinstance(one, tuple):
            text.append("        # Topologically Sorted Source Nodes: [y], "
                        f"Original ATen: [{one[1]}]")
            call = (f"extern_kernels.{one[0]}(arg0_1, out=buf1)"
                    if "." not in one[0] else
                    f"buf3 = torch.ops.{one[0]}(arg0_1)")
            text.append("        " + call)
        else:
            text.append("        stream0 = get_raw_stream(0)")
            text.append(f"        {one}.run(arg0_1, buf0, 128, stream=stream0)")
    return CODE.format(kernels="".join(kernels), calls="\n".join(text))


def graph(nodes):
    """Nodes with their op and line of the model."""
    body = []
    for name, op, line in nodes:
        body.append(f"         # File: /w/model.py:{line} in forward, code: "
                    f"line{line}(x)")
        body.append(f'        {name}: "f32[8, 16][16, 1]cuda:0" = torch.ops.'
                    f"{op}.default(arg0_1)")
    return GRAPH.format(body="\n".join(body), last=nodes[-1][0])


def trace(regions, ranges=True, frames=None):
    """A Kineto trace: for each region its kernels in order, as (kernel name, op
    around its launch)."""
    events, ts, corr = [], 100, 1
    for number, kernels in enumerate(regions):
        begin = ts
        for name, op in kernels:
            events.append({"ph": "X", "cat": "cpu_op", "name": op, "pid": 1,
                           "tid": 1, "ts": ts + 2, "dur": 6,
                           "args": {"External id": corr}})
            events.append({"ph": "X", "cat": "cuda_driver",
                           "name": "cuLaunchKernel", "pid": 1, "tid": 1,
                           "ts": ts + 3, "dur": 4,
                           "args": {"correlation": corr}})
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0,
                           "tid": 7, "ts": ts + 5, "dur": 7,
                           "args": {"correlation": corr, "device": 0,
                                    "stream": 7}})
            ts += 10
            corr += 1
        if ranges:
            frame = frames[number] if frames else "0/0"
            events.append({"ph": "X", "cat": "cpu_op",
                           "name": f"Torch-Compiled Region: {frame}", "pid": 1,
                           "tid": 1, "ts": begin, "dur": ts - begin, "args": {}})
            events.append({"ph": "X", "cat": "user_annotation", "name":
                           f"## Call CompiledFxGraph f{number}abc ##",
                           "pid": 1, "tid": 1, "ts": begin + 1,
                           "dur": ts - begin - 1, "args": {}})
        ts += 20
    return json.dumps({"schemaVersion": 1, "traceEvents": events})


def own(name):
    return (name, name)


def rows(path, *sources, only="compiled_kernels,kernels"):
    args = [a for s in sources for a in ("--compiled", s)]
    done = lamina("report", path, *args, "--only", only, "--format", "json")
    return json.loads(done.stdout)


A = "triton_poi_fused_relu_0"
B = "triton_poi_fused_add_1"
KA = kernel(A, ["aten.relu", "aten.neg"], ["relu", "neg"])
KB = kernel(B, ["aten.add"], ["add"])
PLAIN = code([KA, KB], [A, ("mm", "aten.mm"), B, A])
REGION = [own(A), ("sm90_gemm", "aten::mm"), own(B), own(A)]
NODES = [("relu", "aten.relu", 10), ("neg", "aten.neg", 11),
         ("mm", "aten.mm", 12), ("add", "aten.add", 13)]


def check_variants(checks, work):
    said = 0
    wrong = 0

    def joins(what, regions, codes, want, frames=None, ranges=True, notes=()):
        """`want`: kernel name of the code: (join, count)."""
        nonlocal said, wrong
        path = work / "trace.json"
        path.write_text(trace(regions, ranges, frames))
        files = []
        for number, text in enumerate(codes):
            files.append(work / f"code_{number}")
            files[-1].write_text(text)
        found = rows(path, *files)
        got = {(r["program"], r["kernel"]) if len(codes) > 1 else r["kernel"]:
               (r["join"], r["count"])
               for r in found["tables"]["compiled_kernels"] if r["count"]}
        checks.equal(what, got, want)
        said += 1
        wrong += got != want
        told = {n["id"] for n in found["notes"]}
        checks.true(f"{what}: notes {sorted(told)}", set(notes) <= told)
        return found

    full = {A: ("exact", 2), B: ("exact", 1), "mm": ("sure", 1)}
    joins("one call", [REGION], [PLAIN], full)
    two = {k: (j, 2 * n) for k, (j, n) in full.items()}
    found = joins("two calls", [REGION, REGION], [PLAIN], two)
    for row in found["tables"]["kernels"]:
        if row["kernel"] == A:
            checks.equal("kernels: what it computes", row["computes"],
                         "aten.relu, aten.neg")
    suffix = [(A + "_0d1d2de", A), ("sm90_gemm", "aten::mm"),
              (B + "_0d1d2de", B), (A + "_0d1d2de", A)]
    joins("names with a suffix", [suffix], [PLAIN], full)
    joins("names of HIP", [[(k + ".kd", o) for k, o in REGION]], [PLAIN], full)
    joins("two kernels of one product",
          [[own(A), ("gemm", "aten::mm"), own(B), own(A)]], [PLAIN], full)
    joins("the recording begins inside", [REGION[2:]], [PLAIN],
          {A: ("likely", 1), B: ("exact", 1)})
    joins("no call around", [REGION], [PLAIN],
          {A: ("exact", 2), B: ("exact", 1)}, ranges=False)
    joins("no call around, three steps", [REGION] * 3, [PLAIN],
          {A: ("likely", 6), B: ("likely", 3)}, ranges=False)
    joins("another library in between",
          [[own(A), ("conv", "aten::convolution"), own(B), own(A)]], [PLAIN],
          {A: ("exact", 2), B: ("exact", 1)})
    joins("nameless kernels",
          [[("triton_", "triton_")] * 2 + [("triton__0d1d2d", "triton_")]],
          [code([kernel(A, ["aten.relu"], ["relu"], shown="triton_")], [A, A])],
          {}, notes=["compiled_none"])
    joins("another run", [[own("triton_red_fused_sum_9")]], [PLAIN], {},
          notes=["compiled_none"])
    joins("more graphs than code", [REGION, [own("triton_red_fused_sum_9")]],
          [PLAIN], full, notes=["compiled_strangers"])
    # Two programs whose kernels have one name and compute other things.
    other = code([kernel(A, ["aten.relu", "aten.exp"], ["relu", "exp"])], [A])
    logs = []
    for frame, text in (("0/0", PLAIN), ("1/0", other)):
        logs.append("".join(
            f"V1117 12:00:00.000000 1 torch/_inductor/graph.py:1] [{frame}] "
            f"[__output_code] {line}\n" for line in text.split("\n")))
    joins("told apart by the call", [REGION, [own(A)]], ["".join(logs)],
          {A: ("exact", 1), B: ("exact", 1), "mm": ("sure", 1)},
          frames=["0/0", "1/0"])
    joins("told apart by what a call runs", [REGION], [PLAIN, other],
          {("code_0", A): ("exact", 2), ("code_0", B): ("exact", 1),
           ("code_0", "mm"): ("sure", 1)})
    joins("not told apart", [REGION], [PLAIN, other],
          {("code_0", B): ("exact", 1)}, ranges=False,
          notes=["compiled_ambiguous"])
    joins("the same code twice", [REGION], [PLAIN, PLAIN],
          {("code_0", A): ("exact", 2), ("code_0", B): ("exact", 1),
           ("code_0", "mm"): ("sure", 1)})
    old = PLAIN.replace("Topologically Sorted Source Nodes", "Source Nodes")
    joins("comments of 2.3", [REGION], [old], full)
    cut = PLAIN[:PLAIN.index("def " + B)]
    joins("code that ends inside", [REGION], [cut],
          {A: ("likely", 2), B: ("likely", 1)}, notes=["compiled_cut"])
    user = code([kernel("my_add_0", ["aten.add"], ["add"], shown="my_add")],
                ["my_add_0"])
    joins("a kernel of the user", [[own("my_add")]], [user],
          {"my_add": ("exact", 1)})
    print(f"{said - wrong} of {said} variants are joined right")


def check_lines(checks, work):
    """Lines of the model from graphs beside the code, in each kind of folder."""
    path = work / "lines.json"
    path.write_text(trace([REGION]))
    want = {A: ["model.py:10", "model.py:11"], B: ["model.py:13"],
            "mm": ["model.py:12"]}

    def lines(what, source, expected):
        found = rows(path, source)["tables"]["compiled_kernels"]
        got = {r["kernel"]: re.findall(r"model\.py:\d+", r["lines"] or "")
               for r in found}
        checks.equal(f"lines: {what}", got, expected)

    alone = work / "alone.py"
    alone.write_text(PLAIN)
    lines("code alone", alone, {k: [] for k in want})
    debug = work / "torch_compile_debug/run_1/torchinductor/model__0_forward_1.0"
    debug.mkdir(parents=True)
    (debug / "output_code.py").write_text(PLAIN)
    (debug / "fx_graph_readable.py").write_text(graph(NODES))
    lines("debug folder", work / "torch_compile_debug", want)
    tlparse = work / "tlparse/-_0_0_0"
    tlparse.mkdir(parents=True)
    (work / "tlparse/index.html").write_text("<html></html>")
    (work / "tlparse/compile_directory.json").write_text("{}")
    (tlparse / "inductor_post_grad_graph_5.txt").write_text(graph(NODES))
    (tlparse / "inductor_output_code_6.html").write_text(
        "<html><body><pre>" + html.escape(PLAIN) + "</pre></body></html>")
    lines("tlparse folder", work / "tlparse", want)
    # Forward and backward of one frame: the same names of nodes.
    back = [(n, o, line + 100) for n, o, line in NODES]
    second = work / "both"
    second.mkdir()
    for number, nodes in ((4, NODES), (10, back)):
        (second / f"after_post_grad_graph_{number}.txt").write_text(graph(nodes))
        (second / f"inductor_output_code_{number + 1}.txt").write_text(PLAIN)
    found = rows(path, second)["tables"]["compiled_kernels"]
    checks.equal("lines: the graph in front of the code", sorted(
        r["lines"].split(" in ")[0] for r in found if r["kernel"] == B),
        ["/w/model.py:113", "/w/model.py:13"])
    # Annotate: the copy says it, and nothing else changes.
    out = work / "out.json"
    lamina("annotate", path, "--compiled", work / "torch_compile_debug",
           "--trace", out)
    before = json.loads(path.read_text())["traceEvents"]
    after = json.loads(out.read_text())["traceEvents"]
    checks.equal("annotate: events", len(after), len(before))
    for one, two in zip(before, after):
        if one.get("cat") == "kernel":
            added = {k: v for k, v in two["args"].items() if k not in one["args"]}
            checks.true(f"annotate: {one['name']} has its line",
                        "model.py:" in added.get("lamina_lines", ""))
            two["args"] = one["args"]
        checks.equal("annotate: the rest stays", two, one)
    tree = json.loads(lamina("tree", path, "--by", "op", "--compiled",
                             work / "torch_compile_debug", "--format",
                             "json").stdout)["tables"]["op_tree"]
    checks.true("tree: an op says what it computes", any(
        r["name"] == A and r["computes"] == "aten.relu, aten.neg" and
        "model.py:10" in r["lines"] for r in tree))
    # The folder as graphs: those of the largest compilation, in order.
    (tlparse / "dynamo_output_graph_1.txt").write_text(graph(NODES[:2]))
    (tlparse / "before_post_grad_graph_4.txt").write_text(graph(NODES[:3]))
    (tlparse / "compilation_metrics_9.html").write_text("<html></html>")
    small = work / "tlparse/-_1_0_0"
    small.mkdir()
    (small / "dynamo_output_graph_2.txt").write_text(graph(NODES[:1]))
    for folder, stages in (
            (work / "tlparse", ["dynamo_output_graph", "before_post_grad_graph",
                                "inductor_post_grad_graph"]),
            (work / "torch_compile_debug", ["fx_graph_readable"])):
        found = json.loads(lamina("graph", "pipeline", folder, "--all",
                                  "--format", "json").stdout)
        checks.equal(f"{folder.name}: stages", [
            r["transform"] for r in found["tables"]["pipeline"]], stages)
        lamina("graph", "census", folder)
        lamina("graph", "layers", folder)
    page = work / "page.html"
    lamina("report", path, "--compiled", work / "torch_compile_debug",
           "-o", page)
    nodes = rows(path, debug / "output_code.py",
                 only="compiled_nodes,compiled_kernels")
    parts = nodes["tables"]["compiled_nodes"]
    checks.equal("nodes: they add up to the kernels",
                 sum(r["kernel_time_us"] for r in parts),
                 sum(r["kernel_time_us"]
                     for r in nodes["tables"]["compiled_kernels"]))
    checks.equal("nodes: the time of a kernel is divided",
                 {r["node"]: r["kernel_time_us"] for r in parts},
                 {"relu": 7.0, "neg": 7.0, "add": 7.0, None: 7.0})


def check_damage(checks, work):
    """Any part of a file is read or refused."""
    path = work / "damage.json"
    path.write_text(trace([REGION]))
    bad = 0
    made = work / "cut.py"
    for at in range(0, len(PLAIN), 37):
        made.write_text(PLAIN[:at])
        done = lamina("report", path, "--compiled", made, "--only",
                      "compiled_kernels", "--format", "json", status=None)
        bad += done.returncode not in (0, 3)
    checks.equal("cut code", bad, 0)
    for text in ("", "{}", "\0\1\2", "async_compile.triton(", "'''" * 99):
        made.write_text(text)
        done = lamina("report", path, "--compiled", made, status=None)
        checks.equal(f"no code {text[:20]!r}", done.returncode, 3)
    # Long lists above many calls, which would be held once for each.
    ops = ", ".join(["aten.add"] * 100_000)
    made.write_text(code([], []).replace(
        "def call(args):", "def call(args):\n"
        f"    # Topologically Sorted Source Nodes: [x], Original ATen: [{ops}]\n"
        + "    extern_kernels.mm(a)\n" * 100_000))
    done = lamina("report", path, "--compiled", made, "--only",
                  "compiled_kernels", status=None)
    checks.true("many calls below a long list", done.returncode in (0, 3))
    done = lamina("report", path, "--compiled", work / "nowhere", status=None)
    checks.equal("no file", done.returncode, 3)


def check_real(checks, work):
    """Code that PyTorch wrote, against its own mapping."""
    folder = common.shared() / "dumps-other"
    mapping = json.loads((folder / "trace_jit_handles.inductor_provenance_"
                          "tracking_node_mappings.json").read_text())
    text = (folder / "trace_jit_handles.inductor_output_code.py").read_text()
    calls = re.findall(r"^        (extern_kernels\.\w+|triton_\w+)[.(]", text,
                       re.M)
    region = [("gemm", "aten::mm") if c.startswith("extern") else own(c)
              for c in calls]
    path = work / "real.json"
    path.write_text(trace([region, region]))
    for name in ("trace_jit_handles.log",
                 "trace_jit_handles.inductor_output_code.py"):
        found = [r for r in rows(path, folder / name)["tables"][
            "compiled_kernels"] if r["count"]]
        checks.equal(f"{name}: calls", len(calls), 5)
        triton = {r["kernel"]: r for r in found if r["kind"] == "triton"}
        checks.equal(f"{name}: Triton kernels", len(triton), 3)
        for key, nodes in mapping["cppCodeToPost"].items():
            kernel_name = key.split(":")[0]
            if kernel_name in triton:
                row = triton[kernel_name]
                checks.equal(f"{name}: {key}", set(row["nodes"].split(", ")),
                             set(nodes))
                checks.equal(f"{name}: {key}: join", (row["join"],
                                                      row["count"]),
                             ("exact", 2))
        extern = [r for r in found if r["kind"] == "extern"]
        checks.equal(f"{name}: products", [(r["kernel"], r["join"])
                                           for r in extern],
                     [("mm", "sure")] * 2)
        if name.endswith(".log"):
            checks.equal("log: nodes of products",
                         {r["nodes"] for r in extern},
                         {"mm_default", "mm_default_1"})
            for number in range(79, 85):
                checks.true(f"log: line {number}", any(
                    f"test_provenance_tracing.py:{number} in" in r["lines"]
                    for r in found))
    text = (folder / "trace_simple.inductor_output_code.py").read_text()
    calls = re.findall(r"^        (triton_\w+)\.run", text, re.M)
    path.write_text(trace([[("randint", "aten::randint")] +
                           [own(c) for c in calls] + [("baz", "test::baz")]]))
    found = rows(path, folder / "trace_simple.log")["tables"][
        "compiled_kernels"]
    checks.equal("simple: joins", sorted((r["kernel"], r["join"])
                                         for r in found if r["count"]),
                 sorted([("aten.randint", "sure"), ("test.baz", "sure")] +
                        [(c, "exact") for c in calls]))


def check_asked(checks, work):
    """The same of a trace that is asked in SQL, and of one that is served."""
    (work / "code.py").write_text(PLAIN)
    (work / "x").mkdir(exist_ok=True)
    path = work / "x" / "asked.json"
    path.write_text(trace([REGION, REGION]))
    table = rows(path, work / "code.py")["tables"]["compiled_kernels"]
    sql = ("SELECT k.name, c.kernel, c.ops, c.\"join\" FROM kernel k "
           "JOIN compiled_kernel c USING (uid) ORDER BY k.start_ns LIMIT 3")
    wanted = [[A, A, "aten.relu, aten.neg", "exact"],
              ["sm90_gemm", "mm", "aten.mm", "sure"],
              [B, B, "aten.add", "exact"]]
    found = json.loads(lamina("query", path, "--compiled", work / "code.py",
                              sql, "--format", "json").stdout)
    checks.equal("query: rows",
                 [list(r.values()) for r in found["tables"]["result"]], wanted)
    both = ("SELECT kernel, sum(kernel_time_ns) AS ns FROM compiled_kernels "
            "GROUP BY kernel ORDER BY kernel; SELECT kernel, "
            "sum(kernel_time_ns) AS ns FROM compiled_nodes GROUP BY kernel "
            "ORDER BY kernel")
    found = json.loads(lamina("query", path, "--compiled", work / "code.py",
                              both, "--format", "json").stdout)["tables"]
    sums = sorted((r["kernel"], round(r["kernel_time_us"] * 1000))
                  for r in table)
    checks.equal("query: sums", sorted((r["kernel"], r["ns"])
                                       for r in found["result"]), sums)
    checks.equal("query: nodes add up", found["result_2"], found["result"])
    found = json.loads(lamina("query", path, sql, "--format", "json").stdout)
    checks.equal("query: without code", found["tables"]["result"], [])
    done = lamina("query", path, "--compiled", work / "nowhere", sql,
                  status=None)
    checks.equal("query: code that is not there", done.returncode, 3)
    checks.true("query: named", "nowhere" in done.stderr)
    try:
        serve = Serve(common.LAMINA, work / "x", "--compiled",
                      work / "code.py", "--no-mcp")
    except AssertionError as error:
        if "build lamina where" not in str(error):
            raise
        print("left out: lamina serve is not built")
        return
    with serve:
        trace_id = serve.id_of("asked.json")
        checks.equal("serve: state", serve.opened(trace_id)["state"], "open")
        status, answer = serve.query(trace_id, sql)
        checks.equal("serve: query", (status, answer["tables"][0]["rows"]),
                     (200, wanted))
        status, _, page = serve.ask("GET", f"/api/v1/traces/{trace_id}/page")
        checks.equal("serve: page", status, 200)
        checks.true("serve: its kernels say what they compute",
                    b"compiled_kernels" in page and b"computes" in page)


def main():
    checks = common.Checks()
    with temporary() as folder:
        work = pathlib.Path(folder)
        check_variants(checks, work)
        check_lines(checks, work)
        check_damage(checks, work)
        check_real(checks, work)
        check_asked(checks, work)
    checks.finish()


if __name__ == "__main__":
    main()
