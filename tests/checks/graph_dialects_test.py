#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graph dumps of other compilers: what is read prints back byte for byte, the
same model in ten forms gives the same layers, damaged files say where, and the
real dumps of the reference data equal their truth."""
import json
import pathlib
import re
import subprocess
import tempfile

import common


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


def check_real_primals(checks, log):
    for section in ("aot_forward_graph", "aot_joint_graph",
                    "before_post_grad_graph", "after_post_grad_graph"):
        checks.equal(section, weights(log, section),
                     ["fc1_weight", "fc1_bias"])
    checks.equal("no parameter in it", weights(log, "aot_backward_graph"), [])


def main():
    checks = common.Checks()
    with tempfile.TemporaryDirectory() as folder:
        check_samples(checks, folder)
        check_damage(checks, folder)
        check_primals(checks, folder)
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
