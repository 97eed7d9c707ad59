#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graph dumps of other compilers: what is read prints back byte for byte, the
same model in ten forms gives the same layers, damaged files say where, and the
real dumps of the reference data equal their truth."""
import json
import os
import pathlib
import re
import subprocess
import tempfile

import common
import profilers


def call(*args):
    return subprocess.run([common.LAMINA, "graph", *map(str, args)],
                          capture_output=True)


def tables(path, *args):
    done = call("print", path, "--format", "json", *args)
    if done.returncode != 0:
        raise SystemExit(f"{path}: {done.stderr.decode()}")
    return json.loads(done.stdout)["tables"]


def layer_count(path):
    found = json.loads(call("layers", path, "--format", "json").stdout)
    return sum(row["count"] for row in found["tables"]["kinds"])


def prints_back(checks, path, folder):
    text = path.read_bytes()
    checks.true(f"{path.name}: prints the same", call("print", path).stdout == text)
    for name, other in (("CRLF", text.replace(b"\n", b"\r\n")),
                        ("indented", re.sub(rb"(?m)^(?=.)", b"  ", text)),
                        ("coloured", text.replace(b" = ", b" \x1b[31m=\x1b[0m "))):
        if name == "indented" and (path.suffix == ".log" or "table" in path.name
                                   or "tabular" in path.name):
            continue  # columns and prefixes begin a line
        if name == "coloured" and path.suffix != ".py":
            continue
        made = pathlib.Path(folder) / f"{name}_{path.name}"
        made.write_bytes(other)
        done = call("print", made)
        checks.true(f"{path.name}: {name} prints the same",
                    done.returncode == 0 and done.stdout == other)


def check_samples(checks, folder):
    """Layer 2 of 4 has one op more in every form that shows layers."""
    samples = common.SAMPLES / "dialects"
    files = sorted(samples.iterdir())
    checks.equal("samples", len(files), 10)
    edges = {}
    for path in files:
        prints_back(checks, path, folder)
        got = tables(path)
        checks.equal(f"{path.name}: fine", call("print", path, "--check").returncode, 0)
        checks.true(f"{path.name}: nothing is opaque",
                    "opaque" not in {r["op"] for r in got["ops"]})
        main = got["sections"][0]["section"]
        edges[path.name] = sum(r["section"] == main for r in got["edges"])
        if path.name != "output_code.py":
            checks.equal(f"{path.name}: layers", layer_count(path), 4)
            kinds = json.loads(call("layers", path, "--format", "json").stdout)
            checks.true(f"{path.name}: layer 2 is odd", any(
                "2" == r["layers"] for r in kinds["tables"]["kinds"]))
        for command in ("census", "candidates"):
            done = call(command, path)
            checks.equal(f"{path.name}: {command}", done.returncode, 0)
        done = call("diff", path, path)
        checks.equal(f"{path.name}: no difference to itself", done.returncode, 0)
    full = {n: e for n, e in edges.items() if n != "output_code.py"}
    checks.equal("edges of all forms", set(full.values()),
                 {full["exported_program.txt"]})
    weights = {r["name"] for r in tables(samples / "dynamo_graph.py")["weights"]}
    checks.true("paths of weights", "layers_0_mlp_gate_proj_weight" in weights)
    nodes = tables(samples / "exported_program.txt")["nodes"]
    checks.true("source lines", any("model.py:10 in forward" in (r["source"] or "")
                                    for r in nodes))
    done = call("rewrite", samples / "dynamo_graph.py", "-o", folder)
    checks.true("only AutoDeploy dumps are rewritten", done.returncode in (2, 3))


def check_autodeploy(checks, folder):
    """Every form in the grammar of AutoDeploy has the same nodes and edges, and
    can be rewritten."""
    config = pathlib.Path(folder) / "config.yaml"
    config.write_text("transforms:\n  match_rmsnorm_pattern:\n"
                      "    stage: pattern_matcher\n")
    for path in sorted((common.SAMPLES / "dialects").iterdir()):
        made = pathlib.Path(folder) / "as_autodeploy.txt"
        made.write_bytes(call("print", path, "--as", "autodeploy").stdout)
        done = call("print", made, "--check")
        checks.true(f"{path.name} as autodeploy: read: "
                    f"{done.stdout.decode()[:200]}",
                    b"error" not in done.stdout)
        was, now = tables(path), tables(made)
        for key in ("ops", "placeholders", "weights"):
            checks.equal(f"{path.name} as autodeploy: {key}",
                         [r[key] for r in now["sections"]],
                         [r[key] for r in was["sections"]])
        if "mlir" in path.name or "hlo" in path.name:
            continue  # attributes are operands there
        checks.equal(f"{path.name} as autodeploy: edges", len(now["edges"]),
                     len(was["edges"]))
        done = call("rewrite", made, "--config", config, "--format", "json")
        checks.equal(f"{path.name} as autodeploy: rewritten", done.returncode,
                     0)
    done = call("print", path, "--as", "other")
    checks.equal("another grammar", done.returncode, 2)


def check_damage(checks, folder):
    """A file that is cut anywhere is read or refused with its place."""
    bad = []
    for name in ("graph_str.txt", "exported_program.txt", "module.hlo",
                 "stablehlo.mlir", "graph_table.txt", "torch_trace.log"):
        text = (common.SAMPLES / "dialects" / name).read_bytes()
        for at in range(1, len(text), max(1, len(text) // 25)):
            made = pathlib.Path(folder) / f"cut_{name}"
            made.write_bytes(text[:at])
            done = call("print", made)
            said = done.stderr.decode()
            if done.returncode not in (0, 3):
                bad.append(f"{name} at {at}: status {done.returncode}")
            if done.returncode == 0 and done.stdout != text[:at]:
                bad.append(f"{name} at {at}: prints differently")
            if done.returncode == 3 and (made.name not in said
                                         or "expected" not in said):
                bad.append(f"{name} at {at}: {said.strip()[:150]}")
    for line in bad[:10]:
        print(line)
    checks.equal("cut files", len(bad), 0)
    made = pathlib.Path(folder) / "broken.py"
    made.write_text("class M(torch.nn.Module):\n    def forward(self, x):\n"
                    "        y = torch.relu(x\n")
    done = call("print", made)
    checks.true("place of an open bracket",
                "broken.py:3:9" in done.stderr.decode())


def written(target):
    """Targets as the truth names them."""
    target = target.replace("torch.ops.", "")
    if target.startswith("."):
        target = "method" + target
    return {"getitem": "operator.getitem",
            "operator.mult": "operator.mul"}.get(target, target)


def compare(checks, path, want):
    """One file against its entry of the truth."""
    got = tables(path)
    name = path.name
    if isinstance(want, dict) and "payloads" in want:
        checks.equal(f"{name}: graphs",
                     [r["section"] for r in got["sections"]
                      if r["section"] != "inductor_output_code"],
                     want["graphs"])
        return
    if isinstance(want, dict) and "fragment_nodes" in want:
        checks.equal(f"{name}: nodes", got["sections"][0]["ops"],
                     # 2.9 repeats a node in the kernels that compute it.
                     want["fragment_nodes"])
        return
    for key in ("computations", "functions"):
        if key in want:
            checks.equal(f"{name}: {key}", len(got["sections"]), want[key])
    truth = want[0] if isinstance(want, list) else want
    ops = {}
    for row in got["nodes"]:
        target = row["target"]
        if row["kind"] == "placeholder" and "computations" in want:
            target = "hlo.parameter"
        elif row["kind"] != "op":
            continue
        if "computations" in want:
            target = target.removeprefix("hlo.")
        if "functions" in want and not re.match("(stablehlo|mhlo)[.]", target):
            continue
        if target.startswith("module."):
            target = "module"
        # The truth does not count what stands as `x += y`.
        if target == "operator.iadd":
            continue
        ops[target] = ops.get(target, 0) + 1
    checks.equal(f"{name}: ops", ops,
                 {written(k): v for k, v in truth["ops"].items()})
    inputs = sum(r["placeholders"] + r["weights"] for r in got["sections"])
    if "nodes" in truth:
        nodes = truth["nodes"]
        checks.equal(f"{name}: inputs", inputs,
                     nodes["placeholder"] + nodes.get("get_attr", 0))
        checks.equal(f"{name}: edges", len(got["edges"]), truth["edges"])
    elif "placeholders" in truth and b"fx_pytree" not in path.read_bytes():
        # Those of a tree are what it holds, not the tree.
        checks.equal(f"{name}: inputs", inputs, truth["placeholders"])
    if truth.get("layers") is not None:
        checks.equal(f"{name}: layers", layer_count(path), truth["layers"])


def weights(path, section):
    return [row["name"] for row in tables(path, "--section",
                                          section)["weights"]]


def check_primals(checks, folder):
    """Graphs of AOT have the parameters of the graph of dynamo, where every
    input agrees."""
    text = (common.SAMPLES / "dialects/torch_trace.log").read_text()
    made = pathlib.Path(folder) / "primals.log"

    def found(changed, section="aot_forward_graph"):
        made.write_text(changed)
        return weights(made, section)

    of_dynamo = weights(common.SAMPLES / "dialects/torch_trace.log",
                        "dynamo_output_graph")
    checks.true("parameters of dynamo", len(of_dynamo) >= 17 and
                "layers_2_mlp_gate_proj_weight" in of_dynamo)
    checks.equal("of AOT", found(text), of_dynamo)
    for name, changed in (
            ("another shape", text.replace('primals_3: "bf16[64, 64]"',
                                           'primals_3: "bf16[64, 32]"')),
            ("another type", text.replace('primals_3: "bf16[64, 64]"',
                                          'primals_3: "f32[64, 64]"')),
            ("an input less", re.sub(r"\n\s*primals_20: [^\n]*", "", text)),
            ("another compilation", re.sub(
                r'("aot_forward_graph": {}, "frame_id": 0, '
                r'"frame_compile_id": )0', r"\g<1>1", text))):
        checks.true(f"{name}: changed", changed != text)
        section = ("0/1 " if "compilation" in name else "") + \
            "aot_forward_graph"
        checks.equal(f"{name}: no names", found(changed, section), [])


def check_keywords(checks, folder):
    """Keywords of a table have quotes, strings of a printed graph have none."""
    printed = pathlib.Path(folder) / "graph.txt"
    printed.write_text("""graph():
    %x : [num_users=2] = placeholder[target=x]
    %mean : [num_users=1] = call_method[target=mean](args = (%x, -1), \
kwargs = {keepdim: True})
    %getattr_1 : [num_users=1] = call_function[target=builtins.getattr]\
(args = (%x, dtype), kwargs = {})
    return (mean, getattr_1)
""")
    table = pathlib.Path(folder) / "table.txt"
    rows = [("placeholder", "x", "x", "()", "{}"),
            ("call_method", "mean", "mean", "(x, -1)", "{'keepdim': True}"),
            ("call_function", "getattr_1", "<built-in function getattr>",
             "(x, 'dtype')", "{}"),
            ("output", "output", "output", "((mean, getattr_1),)", "{}")]
    head = ("opcode", "name", "target", "args", "kwargs")
    widths = [max(len(row[i]) for row in [head] + rows) for i in range(5)]
    table.write_text("\n".join("  ".join(
        cell.ljust(w) for cell, w in zip(row, widths)) for row in
        [head, ["-" * w for w in widths]] + rows) + "\n")
    for file in (printed, table):
        nodes = {row["name"]: row for row in tables(file)["nodes"]}
        checks.true(f"{file.name}: a keyword is a position",
                    nodes["mean"]["operands"].endswith("x, -1, True"))
    done = common.lamina("graph", "diff", printed, table)
    checks.true("both forms compute the same",
                "compute the same" in done.stdout)
    table.write_text(table.read_text().replace("True", "None"))
    done = common.lamina("graph", "diff", printed, table, status=None)
    checks.true("another keyword", "None instead of True" in done.stdout)


def check_answers(checks, folder):
    """Nothing found is said, and dumps with keywords lack none."""
    plain = pathlib.Path(folder) / "plain.py"
    plain.write_text("""class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[8, 4]"):
        y: "f32[8, 4]" = torch.ops.aten.relu.default(x);  x = None
        return (y,)
""")
    said = common.lamina("graph", "census", plain).stdout
    checks.true("census of a graph without fusions", "No known fusion" in said)
    said = common.lamina("graph", "census", common.SAMPLES / "dialects" /
                         "aot_forward_graph.txt").stdout
    checks.true("census of numbered inputs", "known to be a weight" in
                said.replace("\n    ", " ") and "No known fusion" not in said)
    said = common.lamina("graph", "census", common.SAMPLES / "dialects" /
                         "module.hlo").stdout
    checks.true("census of HLO", "Not applicable" in said and
                "No known fusion" not in said)
    found = json.loads(common.lamina(
        "graph", "census", common.SAMPLES / "dialects" /
        "exported_program.txt", "--format", "json").stdout)["tables"]
    checks.equal("linears of other compilers", {
        r["rule"]: (r["matches"], r["possible"], r["reasons"])
        for r in found["census_rules"]}["match_swiglu_pattern"],
        (3, 3, "1 extra_op"))
    said = common.lamina("graph", "candidates", plain).stdout
    checks.true("candidates: keywords are there", "keyword" not in said)


def hlo_text(layers, shift=0):
    """An optimised module: a norm, two products and an activation per layer,
    named by the scopes of ops and by the names of weights."""
    head, entry, x = [], ["  %p0 = bf16[32,256]{1,0} parameter(0)"], "p0"
    for i in range(layers):
        for k, (name, shape) in enumerate((("up", "256,1024"),
                                           ("down", "1024,256"))):
            entry.append(
                f"  %p{2 * i + k + 1} = bf16[{shape}]{{1,0}} parameter("
                f"{2 * i + k + 1}), metadata={{op_name=\"params['layers_"
                f"{i + shift}']['{name}']['kernel']\"}}")
    for i in range(layers):
        def meta(what):
            return (f'metadata={{op_name="jit(fwd)/jit(main)/Model/layers_{i}/'
                    f'{what}" source_file="m.py" source_line={i}}}')
        for part, shape in (("norm", "32,256"), ("act", "32,1024")):
            head.append(
                f"%fused_{part}.{i} (q.{part}{i}: bf16[{shape}]) -> "
                f"bf16[{shape}] {{\n  %q.{part}{i} = bf16[{shape}]{{1,0}} "
                f"parameter(0)\n  ROOT %m.{part}{i} = bf16[{shape}]{{1,0}} "
                f"multiply(%q.{part}{i}, %q.{part}{i})\n}}\n")
        for part, shape, weight in (("norm", "32,256", "up"),
                                    ("act", "32,1024", "down")):
            out = "32,1024" if weight == "up" else "32,256"
            number = 2 * i + (weight == "down")
            entry += [
                f"  %loop_{part}_fusion.{i} = bf16[{shape}]{{1,0}} fusion(%{x})"
                f", kind=kLoop, calls=%fused_{part}.{i}, {meta(part)}",
                f"  %custom-call.{number} = (bf16[{out}]{{1,0}}, s8[64]{{0}}) "
                f"custom-call(%loop_{part}_fusion.{i}, %p{number + 1}), "
                f'custom_call_target="__cublas$gemm", {meta(weight)}',
                f"  %get-tuple-element.{number} = bf16[{out}]{{1,0}} get-tuple-"
                f"element(%custom-call.{number}), index=0, {meta(weight)}"]
            x = f"get-tuple-element.{number}"
    return ("HloModule jit_fwd, is_scheduled=true\n\n" + "\n".join(head) +
            "\nENTRY %main (p: bf16[1]) -> (bf16[32,256]) {\n" +
            "\n".join(entry) + f"\n  ROOT %t = (bf16[32,256]) tuple(%{x})\n"
            "}\n")


def check_scopes(checks, folder):
    """Scopes of ops and names of weights that name the same layers."""
    made = pathlib.Path(folder) / "scopes.hlo"
    made.write_text(hlo_text(8))
    kinds = json.loads(common.lamina("graph", "layers", made, "--format",
                                     "json").stdout)["tables"]["kinds"]
    checks.equal("one stack", [(k["layers"], k["nodes"]) for k in kinds],
                 [("0-6", 6), ("7", 7)])  # the last with the tuple of results
    # Numbers that do not agree are two stacks.
    made.write_text(hlo_text(8, shift=1))
    kinds = json.loads(common.lamina("graph", "layers", made, "--format",
                                     "json").stdout)["tables"]["kinds"]
    checks.equal("two stacks", len({k["stack"] for k in kinds}), 2)


def check_xla_kernels(checks, folder):
    """Kernels of a trace on the instructions of HLO that name them, those of a
    library by what runs around them."""
    made = pathlib.Path(folder) / "kernels.hlo"
    made.write_text(hlo_text(3))
    events, time, launch = [], 1000, 0
    wanted = []
    for step in range(4):
        time += 500
        for i in range(3):
            for part, weight in (("norm", "up"), ("act", "down")):
                number = 2 * i + (weight == "down")
                for name, node, fit in (
                        (f"loop_{part}_fusion_{i}", f"loop_{part}_fusion.{i}",
                         "exact"),
                        # Behind the last one that is known: by order alone.
                        ("nvjet_tst_64x8", f"custom-call.{number}",
                         "likely" if number == 5 else "sure")):
                    launch += 1
                    time += 10
                    common_args = {"correlation": launch, "External id": launch}
                    events.append({"ph": "X", "cat": "cuda_runtime", "pid": 1,
                                   "name": "cudaLaunchKernel", "tid": 1,
                                   "ts": time, "dur": 2, "args": common_args})
                    events.append({"ph": "X", "cat": "kernel", "pid": 0,
                                   "name": name, "tid": 7, "ts": time + 3,
                                   "dur": 5, "args": {
                                       **common_args, "device": 0,
                                       "stream": 7}})
                    if step == 0:
                        wanted.append((name, node, fit))
    trace = pathlib.Path(folder) / "xla.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    done = common.lamina("graph", "kernels", trace, "--dump", made, "--format",
                         "json")
    rows = json.loads(done.stdout)["tables"]["graph_kernels"]
    checks.equal("kernels of XLA", [(r["kernel"], r["node"], r["confidence"])
                                    for r in rows], wanted)
    out = pathlib.Path(folder) / "xla_layer.json"
    common.lamina("graph", "layer", made, "-n", "1", "--trace", trace, "-o",
                  out)
    layer = json.loads(out.read_text())
    checks.equal("kernels in the layer", sum(
        len(node.get("trace_kernels", [])) for node in layer["nodes"]), 4)


def check_forced(checks, folder):
    """--dialect decides in place of the content, and names which parts of a
    log are read."""
    samples = common.SAMPLES / "dialects"
    own = {"fx": samples / "exported_program.txt",
           "fx-graph": samples / "graph_str.txt",
           "fx-table": samples / "graph_table.txt",
           "inductor": samples / "output_code.py",
           "mlir": samples / "stablehlo.mlir", "hlo": samples / "module.hlo",
           "log": samples / "torch_logs.log",
           "trace": samples / "torch_trace.log",
           "autodeploy": sorted((common.SAMPLES / "dumps").glob("0*.txt"))[0]}
    # What stands inside of logs and of records.
    inside = {"log": {"fx"}, "trace": {"fx", "inductor"}}
    for name, path in own.items():
        for dialect in own:
            done = call("print", path, "--dialect", dialect)
            what = f"{path.name} as {dialect}"
            if dialect == name or dialect in inside.get(name, ()):
                checks.equal(what, (done.returncode, done.stdout ==
                                    path.read_bytes()), (0, True))
                continue
            said = done.stderr.decode()
            checks.true(f"{what}: {done.returncode} {said}",
                        done.returncode == 3 and "expected " in said and
                        f"dialect '{dialect}'" in said and
                        said.count("\n") == 1)
    graphs = {r["section"] for r in tables(own["trace"], "--dialect", "fx")[
        "sections"]}
    codes = {r["section"] for r in tables(own["trace"], "--dialect",
                                          "inductor")["sections"]}
    both = {r["section"] for r in tables(own["trace"])["sections"]}
    checks.true("parts of a trace", graphs and codes and graphs | codes == both
                and not graphs & codes)
    # More in front than is looked at.
    far = pathlib.Path(folder) / "far.txt"
    far.write_bytes(b"some words\n" * 7000 + own["fx"].read_bytes())
    checks.equal("not recognised", call("layers", far).returncode, 3)
    for command in (("layers",), ("census",), ("candidates",),
                    ("print", "--check"), ("layer", "-n", "1", "-o",
                                           f"{folder}/far.json")):
        done = call(command[0], far, *command[1:], "--dialect", "fx")
        checks.equal(f"{command[0]} of a far one", (done.returncode,
                                                    done.stderr), (0, b"")
                     if command[0] != "layer" else (0, done.stderr))
    checks.equal("diff", call("diff", far, far, "--dialect",
                              "fx").returncode, 0)
    for wrong, near in (("hol", "did you mean 'hlo'?"),
                        ("stablehlo", "did you mean 'mlir'?"),
                        ("onnx", "ONNX is not read"), ("zzzzzz", "expected "),
                        ("fx_graph", "did you mean 'fx-graph'?")):
        for command in ("print", "layers", "census", "candidates"):
            done = call(command, own["fx"], "--dialect", wrong)
            said = done.stderr.decode()
            checks.true(f"{command} --dialect {wrong}: {said}",
                        done.returncode == 2 and near in said)
    said = call("census", own["trace"]).stdout.decode()
    checks.true("census of several graphs names them", re.search(
        r"(?m)^section +rule +default", said))
    said = call("census", own["autodeploy"]).stdout.decode()
    checks.true("census of one graph", re.search(r"(?m)^rule +default", said))
    done = call("census", own["trace"], "--section", "nothing")
    checks.true("census of no section", done.returncode == 2 and
                b"no graph is called" in done.stderr)
    done = call("print", own["trace"], "--section", "dynamo_output_grap")
    checks.true(f"the nearest section: {done.stderr}", done.returncode == 2 and
                b"did you mean 'dynamo_output_graph'?" in done.stderr)


def write_instructions(path, steps):
    """A recording of XLA: kernels whose names say nothing, with the instruction
    that each ran, and those of another program between."""
    gpu, host = profilers.Plane("/device:GPU:0"), profilers.Plane("/host:CPU")
    kernels, calls, time, number = [], [], 1000, 0
    for _ in range(steps):
        for module, op, kernel in (
                ("jit_init", "loop_norm_fusion.0", "init_kernel"),
                *(("jit_fwd", op, kernel) for i in range(3) for op, kernel in (
                    (f"loop_norm_fusion.{i}", "kernel_a"),
                    (f"custom-call.{2 * i}", "nvjet_tst_64x8"),
                    (f"custom-call.{2 * i}", "splitKreduce"),
                    (f"loop_act_fusion.{i}", "kernel_a"),
                    (f"custom-call.{2 * i + 1}", "nvjet_tst_64x8"))),
                ("jit_fwd", "fusion.of_another_computation", "kernel_b")):
            number += 1
            calls.append(host.event("cudaLaunchKernel", time, time + 40, {
                "correlation_id": number}))
            kernels.append(gpu.event(kernel, time + 100, time + 150, {
                "correlation_id": number, "hlo_op": op, "hlo_module": module,
                "program_id": 1 if module == "jit_fwd" else 2}))
            time += 200
        time += 5000
    gpu.line(7, "Stream #7", kernels)
    host.line(9, "python/9", calls)
    path.write_bytes(gpu.proto() + host.proto())


def check_xla_instructions(checks, folder):
    """hlo_op and hlo_module of a recording join before any name does."""
    made = pathlib.Path(folder) / "instructions.hlo"
    made.write_text(hlo_text(3))
    trace = pathlib.Path(folder) / "run.xplane.pb"
    write_instructions(trace, 4)
    done = common.lamina("graph", "kernels", trace, "--dump", made, "--format",
                         "json")
    rows = json.loads(done.stdout)["tables"]["graph_kernels"]
    wanted = []
    for i in range(3):
        wanted += [("kernel_a", f"loop_norm_fusion.{i}", "exact"),
                   ("nvjet_tst_64x8", f"custom-call.{2 * i}", "exact"),
                   ("splitKreduce", f"custom-call.{2 * i}", "exact"),
                   ("kernel_a", f"loop_act_fusion.{i}", "exact"),
                   ("nvjet_tst_64x8", f"custom-call.{2 * i + 1}", "exact")]
    # Of no instruction of this computation: order would give it one.
    wanted.append(("kernel_b", None, None))
    checks.equal("instructions of a recording", [
        (r["kernel"], r["node"] or None, r["confidence"] if r["node"] else None)
        for r in rows], wanted)
    # Another program than that of the dump: nothing is exact.
    made.write_text(hlo_text(3).replace("jit_fwd", "jit_other"))
    done = common.lamina("graph", "kernels", trace, "--dump", made, "--format",
                         "json", status=None)
    checks.true("another program", done.returncode != 0 or not any(
        r["confidence"] == "exact" for r in json.loads(done.stdout)["tables"][
            "graph_kernels"]))


def payloads(text):
    """(name, text) of the graphs of a structured trace, as tlparse splits it:
    a payload is the lines with a tab behind its record."""
    name, lines = None, []
    for line in text.splitlines() + ["V0 end"]:
        if line.startswith("\t") or not line:
            lines.append(line[1:])
            continue
        if name:
            yield name, "\n".join(lines) + "\n"
        found = re.search(r'\{"(\w+_graph)": \{', line)
        name, lines = found and found[1], []


def check_folder_primals(checks, folder):
    """The same in a folder with a file per graph."""
    text = (common.SAMPLES / "dialects/torch_trace.log").read_text()
    parts = dict(payloads(text))
    checks.true(f"payloads {sorted(parts)}", {"dynamo_output_graph",
                                              "aot_forward_graph"} <= set(parts))
    of_dynamo = weights(common.SAMPLES / "dialects/torch_trace.log",
                        "dynamo_output_graph")

    def found(name, files):
        made = pathlib.Path(folder) / name
        made.mkdir()
        for file, part in files.items():
            (made / file).write_text(part)
        return [row["name"] for row in tables(made / list(files)[0])["weights"]]

    aot, dynamo = parts["aot_forward_graph"], parts["dynamo_output_graph"]
    other = dynamo.replace("_layers_", "_blocks_").replace("_mlp_", "_ffn_")
    checks.true("another model", other != dynamo)
    for name, files, want in (
            ("tlparse", {"aot_forward_graph_5.txt": aot,
                         "dynamo_output_graph_1.txt": dynamo}, of_dynamo),
            ("no numbers", {"aot_forward_graph.txt": aot,
                            "dynamo_output_graph.txt": dynamo}, of_dynamo),
            ("a word in front", {"run.aot_forward_graph.txt": aot,
                                 "run.dynamo_output_graph.txt": dynamo,
                                 "x.dynamo_output_graph.txt": other},
             of_dynamo),
            ("two compilations", {"aot_forward_graph_5.txt": aot,
                                  "dynamo_output_graph_4.txt": dynamo,
                                  "dynamo_output_graph_1.txt": other,
                                  "dynamo_output_graph_7.txt": other},
             of_dynamo),
            ("two that may be it", {"aot_forward_graph.txt": aot,
                                    "dynamo_output_graph_1.txt": dynamo,
                                    "dynamo_output_graph_2.txt": other}, []),
            ("another shape", {"aot_forward_graph_5.txt": aot.replace(
                'primals_3: "bf16[64, 64]"', 'primals_3: "bf16[64, 32]"'),
                "dynamo_output_graph_1.txt": dynamo}, []),
            ("not a graph", {"aot_forward_graph_5.txt": aot,
                             "dynamo_output_graph_1.txt": "nothing\n"}, []),
            ("alone", {"aot_forward_graph_5.txt": aot}, [])):
        checks.equal(f"a folder, {name}", found(name, files), want)
    check_later_backward(checks, found, dynamo, other, of_dynamo)
    # Which file it was is told, whoever reads it, and to hosts.
    made = pathlib.Path(folder) / "tlparse"
    aot_file = made / "aot_forward_graph_5.txt"
    said = (f"{aot_file.name}: weights are named as in "
            "dynamo_output_graph_1.txt")
    for command in (["layers", aot_file], ["print", aot_file],
                    ["census", aot_file], ["census", made],
                    ["candidates", aot_file], ["diff", aot_file, aot_file]):
        checks.true(f"told by {command}", said in
                    call(*command).stderr.decode())
    checks.true("a check tells findings alone", "weights are named" not in
                call("print", aot_file, "--check").stderr.decode())
    for tool, named in (("graph_census", "dump"), ("graph_layers", "dump"),
                        ("graph_candidates", "dump"), ("graph_diff", "a")):
        request = {named: aot_file.name}
        if named == "a":
            request["b"] = aot_file.name
        answer = common.lamina("mcp", "--allow", made, "--call",
                               f"{tool} {json.dumps(request)}").stdout
        checks.true(f"{tool} tells a host", said in answer)
    done = call("layers", pathlib.Path(folder) / "alone" /
                "aot_forward_graph_5.txt")
    checks.true("nothing to tell", "weights are named" not in
                done.stderr.decode())
    check_run_of_graphs(checks, folder, aot, dynamo)
    # All that read a folder see the names: layers of its last graph.
    checks.equal("layers of a folder", layer_count(
        pathlib.Path(folder) / "tlparse"), 4)


def check_later_backward(checks, found, dynamo, other, of_dynamo):
    """A backward graph comes behind graphs of other frames: where several fit
    and differ in names, it is of none."""
    backward = """class GraphModule(torch.nn.Module):
    def forward(self, primals_3: "bf16[64, 64]", mm: "bf16[8, 64]", \
tangents_1: "bf16[8, 64]"):
        mul: "bf16[8, 64]" = torch.ops.aten.mul.Tensor(tangents_1, mm)
        mm_1: "bf16[8, 64]" = torch.ops.aten.mm.default(mul, primals_3)
        return (mm_1,)
"""
    narrow = other.replace("64, 64]", "64, 32]")
    checks.true("other shapes", narrow != other)
    for file in ("after_post_grad_graph_9.txt", "aot_backward_graph_9.txt"):
        for name, files, want in (
                ("alone", {"1": dynamo}, 1),
                ("another frame in between", {"1": dynamo, "7": other}, 0),
                ("one frame twice", {"1": dynamo, "7": dynamo}, 1),
                ("a frame of other shapes in between",
                 {"1": dynamo, "7": narrow}, 1),
                ("another frame behind", {"1": dynamo, "12": other}, 1)):
            names = found(f"{file} {name}", {file: backward, **{
                f"dynamo_output_graph_{n}.txt": text
                for n, text in files.items()}})
            checks.equal(f"{file}, {name}", len(names), want)
            checks.true(f"{file}, {name}: of dynamo",
                        set(names) <= set(of_dynamo))


def check_run_of_graphs(checks, folder, aot, dynamo):
    """What is kept of graphs of dynamo is what the files say."""
    made = pathlib.Path(folder) / "run"
    made.mkdir()
    for i in range(0, 40, 10):
        (made / f"dynamo_output_graph_{i}.txt").write_text(
            dynamo.replace("_layers_", f"_blocks{i}_"))
        for k in range(1, 10):
            (made / f"aot_forward_graph_{i + k}.txt").write_text(aot)
    fresh = call("pipeline", made, "--format", "json").stdout
    for path in [*made.iterdir(), made]:
        os.utime(path, (1e9, 1e9))
    kept = call("pipeline", made, "--format", "json")
    checks.equal("a run is read", kept.returncode, 0)
    checks.true("the same with what is kept", kept.stdout == fresh)


def check_real_primals(checks, log):
    for stage in ("aot_forward_graph", "aot_joint_graph",
                  "before_post_grad_graph", "after_post_grad_graph"):
        file = log.with_name(f"{log.stem}.{stage}.txt")
        checks.equal(file.name, [row["name"] for row in
                                 tables(file)["weights"]],
                     ["fc1_weight", "fc1_bias"])
    for section in ("aot_forward_graph", "aot_joint_graph",
                    "before_post_grad_graph", "after_post_grad_graph"):
        checks.equal(section, weights(log, section),
                     ["fc1_weight", "fc1_bias"])
    checks.equal("no parameter in it", weights(log, "aot_backward_graph"), [])


def main():
    checks = common.Checks()
    with tempfile.TemporaryDirectory() as folder:
        check_samples(checks, folder)
        check_autodeploy(checks, folder)
        check_damage(checks, folder)
        check_primals(checks, folder)
        check_scopes(checks, folder)
        check_xla_kernels(checks, folder)
        check_xla_instructions(checks, folder)
        check_forced(checks, folder)
        check_keywords(checks, folder)
        check_answers(checks, folder)
        check_folder_primals(checks, folder)
        given = common.shared() / "dumps-other"
        if not (given / "truth.json").is_file():
            common.skip(f"no dumps of other compilers in {given}")
        truth = json.loads((given / "truth.json").read_text())
        check_real_primals(checks, given / "trace_jit_handles.log")
        files = 0
        for name, want in sorted(truth.items()):
            if name.endswith(".json"):
                continue
            files += 1
            prints_back(checks, given / name, folder)
            compare(checks, given / name, want)
        print(f"{files} files of other compilers")
        checks.true("reference dumps", files >= 30)
    checks.finish()


if __name__ == "__main__":
    main()
