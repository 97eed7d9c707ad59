#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts of lamina replay: they compile, hold what was recorded, and nothing
from a trace becomes code; with PyTorch at hand, small ones run."""
import ast
import base64
import hashlib
import json
import os
import pathlib
import py_compile
import subprocess

from common import Checks, lamina, sample_and_reference_traces, temporary

HOSTILE = ["aten::mm'); import os; os.system('touch pwned') #",
           "aten::\"\"\"\nimport os\n\"\"\"", "aten::mm\\", "../../aten::x",
           "aten::{0}", "aten::'''+str(1)+'''", "__import__::system",
           "\u202eaten::mm", "aten::mm\x00"]
# A Python that has PyTorch; Debian's belongs to the system's Python.
PYTHONS = ("python3", "/usr/bin/python3")


def python_with_torch():
    for python in PYTHONS:
        r = subprocess.run([python, "-c", "import torch"], check=False,
                           capture_output=True)
        if r.returncode == 0:
            return python
    return None


def spec_of(script):
    """The only statement that differs between scripts, as data."""
    tree = ast.parse(script.read_text())
    assign = tree.body[0]
    assert isinstance(assign, ast.Assign) and assign.targets[0].id == "SPEC"
    return json.loads(ast.literal_eval(assign.value)), tree


def check_folder(checks, what, folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    bodies = set()
    for entry in manifest["ops"]:
        script = folder / entry["script"]
        py_compile.compile(str(script), doraise=True,
                           cfile=str(folder / "compiled"))
        spec, tree = spec_of(script)
        checks.equal(f"{what}: {script.name}: manifest",
                     {k: v for k, v in entry.items() if k != "script"}, spec)
        bodies.add(ast.dump(ast.Module(tree.body[1:], [])))
    checks.true(f"{what}: all scripts have the same code", len(bodies) <= 1)
    py_compile.compile(str(folder / "run_all.py"), doraise=True,
                       cfile=str(folder / "compiled"))
    (folder / "compiled").unlink()
    files = {p.name for p in folder.iterdir()}
    checks.equal(f"{what}: no other file", files - {
        e["script"] for e in manifest["ops"]}, {
            "manifest.json", "run_all.py"} | (
                {"hipblaslt-bench.sh"} if manifest["gemms"] else set()))
    return manifest


def event(i, name, args):
    op = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1,
          "ts": 10 * i, "dur": 8, "args": {"External id": i + 1, **args}}
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel",
              "pid": 1, "tid": 1, "ts": 10 * i + 1, "dur": 2,
              "args": {"correlation": i + 1}}
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,
              "ts": 10 * i + 5, "dur": 3,
              "args": {"correlation": i + 1, "device": 0, "stream": 7}}
    return [op, launch, kernel]


def check_hostile(checks, folder):
    args = {"Input Dims": [[2, 2], [2, 2], [], [1 << 60]],
            "Input type": ["float", "x'y", "Scalar", "float"],
            "Concrete Inputs": ["", "__import__('os')", "'); exit()", ""]}
    events = []
    for name in HOSTILE:
        events += event(len(events), name, args)
    # A good name with arguments that are not.
    for bad in ("__import__('os').system('true')", "model.layers.0.self_attn",
                "[1, [2, exit()]]", "1e", "--1", "[1", "NaN; import os"):
        events += event(len(events), "aten::softmax",
                        {"Input Dims": [[2, 2], [], []],
                         "Input type": ["float", "Scalar", ""],
                         "Concrete Inputs": ["", bad, ""]})
    trace = folder / "hostile.json"
    trace.write_text(json.dumps({"traceEvents": events}))
    out = folder / "hostile"
    lamina("replay", trace, "--all", "-o", out)
    manifest = check_folder(checks, "hostile names", out)
    checks.equal("hostile names: only real names have scripts",
                 {e["op"] for e in manifest["ops"]} - {"aten::softmax"}, set())
    text = "".join(p.read_text() for p in out.iterdir())
    for bad in ("os.system", "exit()", "self_attn", "pwned"):
        checks.true(f"hostile text does not come along: {bad}",
                    bad not in text)


def check_runs(checks, python, folder):
    """The ops of a small trace of our own, on the CPU."""
    events = []
    calls = [
        ("aten::mm", [[3, 4], [4, 5]], ["float", "float"], ["", ""],
         [[4, 1], [1, 4]]),
        ("aten::addmm", [[5], [3, 4], [4, 5], [], []],
         ["c10::BFloat16"] * 3 + ["Scalar"] * 2, ["", "", "", "1", "1"],
         [[1], [4, 1], [5, 1], [], []]),
        ("aten::embedding", [[10, 4], [2, 3], [], [], []],
         ["float", "long int", "Scalar", "Scalar", "Scalar"],
         ["", "", "-1", "False", "False"], [[4, 1], [3, 1], [], [], []]),
        ("aten::cat", [[[2, 3], [2, 3]], []], ["TensorList", "Scalar"],
         ["", "-1"], [[], []]),
        ("aten::_softmax", [[2, 3], [], []], ["double", "Scalar", "Scalar"],
         ["", "-1", "False"], [[3, 1], [], []]),
        ("aten::masked_fill_", [[2, 3], [2, 3], []],
         ["c10::Half", "bool", "Scalar"], ["", "", "0"],
         [[3, 1], [3, 1], []]),
        ("aten::index_select", [[6, 4], [], [3]],
         ["float", "Scalar", "long int"], ["", "0", ""], [[4, 1], [], [1]]),
        ("aten::gelu", [[2, 3], []], ["float", ""], ["", "tanh"],
         [[3, 1], []]),
        ("aten::mul", [[2, 3], []], ["float", "double"], ["", ""],
         [[3, 1], []]),
        ("aten::sum", [[2, 3], [], [], []],
         ["float", "ScalarList", "Scalar", ""], ["", "[1]", "True", ""],
         [[3, 1], [], [], []]),
        ("aten::no_such_op", [[2, 3]], ["float"], [""], [[3, 1]]),
    ]
    for name, dims, types, concrete, strides in calls:
        events += event(len(events), name,
                        {"Input Dims": dims, "Input type": types,
                         "Concrete Inputs": concrete,
                         "Input Strides": strides})
    trace = folder / "small.json"
    trace.write_text(json.dumps({"traceEvents": events}))
    out = folder / "small"
    lamina("replay", trace, "--all", "-o", out)
    check_folder(checks, "small trace", out)
    run = subprocess.run([python, str(out / "run_all.py"), "--device", "cpu",
                          "--runs", "1", "--warmup", "0"], check=False,
                         capture_output=True, text=True, timeout=600)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    for line in lines[:-1]:
        checks.equal(f"small trace: {line['op']}: {line.get('reason')}",
                     line["status"],
                     "cannot_run" if line["op"] == "aten::no_such_op" else "ok")
    checks.equal("small trace: all ran", lines[-1]["scripts"], len(calls))
    script = next(out.glob("*_aten_mm.py"))
    run = subprocess.run([python, str(script), "--device", "cpu", "--runs", "2",
                          "--backward"], check=False, capture_output=True,
                         text=True, timeout=600)
    checks.equal("backward of mm", json.loads(run.stdout)["status"], "ok")


# A compiled kernel as the compiler's cache holds it, but one that runs anywhere.
KERNEL = '''
class Kernel:
    def run(self, a, b, out, xnumel, stream):
        assert a.shape == (10, 10) and a.stride() == (1, 10), a.stride()
        assert int(b.sum()) == 0 and xnumel == 100
        out.copy_(a.float() + b)


triton_poi_fused_add_0 = Kernel()
'''


def triton_event(i, digest, name="triton_poi_fused_add_0"):
    return event(i, name, {
        "Input Dims": [[10, 10], [10, 10], [10, 10], []],
        "Input Strides": [[1, 10], [10, 1], [10, 1], []],
        "Input type": ["c10::BFloat16", "long int", "float", "Scalar"],
        "Concrete Inputs": ["", "", "", "100"], "kernel_backend": "triton",
        "kernel_file": "/home/somebody/secret.py", "kernel_hash": digest})


def check_triton(checks, python, folder):
    """A compiled kernel is run from the file of the cache whose text has the
    recorded hash, and from no other."""
    digest = "c" + base64.b32encode(hashlib.sha256(
        KERNEL.strip().encode()).digest())[:51].decode().lower()
    trace = folder / "triton.json"
    trace.write_text(json.dumps({"traceEvents": [
        *triton_event(0, digest),
        *triton_event(3, "../../x", "triton_red_1"),
        *triton_event(6, digest, "triton_'); import os #")]}))
    out = folder / "triton"
    table = json.loads(lamina("replay", trace, "--all", "-o", out, "--format",
                              "json").stdout)["tables"]["replay"]
    checks.equal("triton: what has a script",
                 [(r["op"], bool(r["script"]), r["reason"][:40])
                  for r in table],
                 [("triton_poi_fused_add_0", True, ""),
                  ("triton_red_1", False,
                   "a compiled Triton kernel: the recording "),
                  ("triton_'); import os #", False,
                   "the name is not that of an op of a libra")])
    check_folder(checks, "triton", out)
    script = next(out.glob("*_triton_poi_fused_add_0.py"))
    checks.true("triton: no path of the recording in the script",
                "somebody" not in script.read_text())
    if not python:
        return
    cache = folder / "cache"
    place = cache / digest[1:3] / f"{digest}.py"

    def run(*args):
        done = subprocess.run(
            [python, str(script), "--device", "cpu", "--runs", "2", *args],
            check=False, capture_output=True, text=True, timeout=600,
            env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache)})
        line = json.loads(done.stdout)
        return line["status"], line.get("reason", "")

    checks.equal("triton: without the file", run()[0], "cannot_run")
    place.parent.mkdir(parents=True)
    place.write_text(KERNEL + "\nimport os\nos.remove(__file__)\n")
    status, reason = run()
    checks.true(f"triton: another text is not run: {reason}",
                status == "cannot_run" and "hash" in reason and place.exists())
    place.write_text(KERNEL)
    checks.equal("triton: the recorded text is", run(), ("ok", ""))
    other = folder / "given.py"
    other.write_text(KERNEL + "\n# as the user wishes\n")
    checks.equal("triton: a file that the user gives",
                 run("--kernel-file", str(other)), ("ok", ""))


def main():
    checks = Checks()
    paths = sample_and_reference_traces()
    python = python_with_torch()
    with temporary() as name:
        folder = pathlib.Path(name)
        for path in paths:
            out = folder / path.name
            if lamina("replay", path, "--all", "--outer", "-o", out,
                      status=None).returncode == 0:
                manifest = check_folder(checks, path.name, out)
                print(f"{path.name}: {len(manifest['ops'])} scripts, "
                      f"{len(manifest['skipped'])} ops without")
        check_hostile(checks, folder)
        check_triton(checks, python, folder)
        if python:
            check_runs(checks, python, folder)
        else:
            print("PyTorch is not installed: the scripts were not run")
    checks.finish()


main()
