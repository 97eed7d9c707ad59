#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Passes that `lamina graph pass` writes, for two versions of the API: they
compile, fit a small tree with the files of a checkout (tests/autodeploy), and
their own tests pass there; a pass that is broken on purpose fails them."""
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from common import ROOT, SAMPLES, Checks, lamina, temporary

HERE = ROOT / "tests" / "autodeploy"
LIBRARY = "tensorrt_llm/_torch/auto_deploy/transform/library"

# Two forms of one fusion: as a walk (either order, guards) and as a pattern.
RULES = """
rules:
  - rule: fuse_silu_clamp_mul
    title: SiLU, clamp and the product with the other half
    stage: post_load_fusion
    default: off
    before: |
      %s = aten.silu(%g)
      %c = aten.clamp(%s, $low, $high)
      %o = ~aten.mul(%c, %u)
    outputs: [o]
    after: |
      %o = auto_deploy.silu_clamp_mul.default(%g, %u, $low, $high)
    guards:
      - {id: dtype, text: both have one type, check: 'same_dtype(%g, %u)'}
      - {id: shape, text: both have one shape, check: 'same_shape(%g, %u)'}
    examples:
      - |
        %g : 2x16x4096 : torch.bfloat16
        %u : 2x16x4096 : torch.bfloat16
        %s = aten.silu.default(%g : 2x16x4096 : torch.bfloat16) : 2x16x4096 : torch.bfloat16
        %c = aten.clamp.default(%s : 2x16x4096 : torch.bfloat16, -7.0, 7.0) : 2x16x4096 : torch.bfloat16
        %o = aten.mul.Tensor(%c : 2x16x4096 : torch.bfloat16, %u : 2x16x4096 : torch.bfloat16) : 2x16x4096 : torch.bfloat16
        output %o
  - rule: fuse_silu_clamp_mul_plain
    title: The same in one order of operands
    stage: post_load_fusion
    default: off
    before: |
      %s = aten.silu.default(%g)
      %c = aten.clamp.default(%s, $low, $high)
      %o = aten.mul.Tensor(%c, %u)
    outputs: [o]
    after: |
      %o = auto_deploy.silu_clamp_mul.default(%g, %u, $low, $high)
  - rule: fuse_with_question
    title: A guard that no dump shows
    stage: post_load_fusion
    before: |
      %r = aten.relu(%x)
      %o = aten.neg(%r)
    outputs: [o]
    after: |
      %o = auto_deploy.silu_and_mul.default(%x)
    guards:
      - {id: scale, text: the scale is one, visible: value}
    examples:
      - |
        %x : 2x16 : torch.bfloat16
        %r = aten.relu.default(%x : 2x16 : torch.bfloat16) : 2x16 : torch.bfloat16
        %o = aten.neg.default(%r : 2x16 : torch.bfloat16) : 2x16 : torch.bfloat16
        output %o
"""


def silu_dump(layers):
    """Layers of silu, clamp, mul between matrix products; the clamped value of
    the last layer is read twice."""
    t = "s0xs1x512 : torch.bfloat16"
    w = "512x512 : torch.bfloat16"
    lines = ["# Transform: export_to_gm", "# Stage: export",
             "# GraphModules found: 1", "", "", "=" * 80,
             "# GraphModule: (root)", "=" * 80, "", f"%x : {t}"]
    last, spy = "x", ""
    for i in range(layers):
        def op(name, target, *operands):
            lines.append(f"%{name}_{i} = {target}({', '.join(operands)}) : {t}")
            return f"{name}_{i}"
        for name in ("gate", "up"):
            op(name, "auto_deploy.torch_linear_simple.default",
               f"%{last} : {t}",
               f"%model_layers_{i}_mlp_{name}_proj_weight : {w}", "None")
        op("silu", "aten.silu.default", f"%gate_{i} : {t}")
        op("clamp", "aten.clamp.default", f"%silu_{i} : {t}", "-7.0", "7.0")
        op("mul", "aten.mul.Tensor", f"%clamp_{i} : {t}", f"%up_{i} : {t}")
        last = op("down", "auto_deploy.torch_linear_simple.default",
                  f"%mul_{i} : {t}",
                  f"%model_layers_{i}_mlp_down_proj_weight : {w}", "None")
        spy = f"clamp_{i}"
    return "\n".join(lines + [f"output %{last}, %{spy}", ""])


class Tree:
    """A checkout in small, of one version of the API."""

    def __init__(self, work, version):
        self.version = version
        self.path = work / version
        shutil.copytree(HERE / "tree", self.path)
        if version == "older":
            shutil.copytree(HERE / "older", self.path, dirs_exist_ok=True)
        self.runs = work / f"{version}_runs"

    def write(self, name, out, *args, status=0):
        ran = lamina("graph", "pass", name, "--tree", self.path, "-o", out,
                     *args, status=None)
        if status is not None and ran.returncode != status:
            print(name, *args, ran.stdout[-2000:], ran.stderr)
        return ran

    def install(self, out):
        """A copy of the tree with the files of a pass in it."""
        place = self.runs / out.name
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.path, place)
        for folder in ("tensorrt_llm", "tests"):
            shutil.copytree(out / folder, place / folder, dirs_exist_ok=True)
        if (out / "fallback").is_dir():
            shutil.copytree(
                out / "fallback",
                place / "tensorrt_llm/_torch/auto_deploy/custom_ops",
                dirs_exist_ok=True)
        apply(place, (out / "default.yaml.diff").read_text())
        return place


def apply(place, diff):
    """Applies a unified diff of one hunk."""
    lines = diff.splitlines()
    path = place / lines[1].removeprefix("+++ b/")
    old = path.read_text().splitlines()
    at = int(re.match(r"@@ -(\d+)", lines[2])[1]) - 1
    new = old[:at]
    for line in lines[3:]:
        if line[0] != "+":
            assert old[at] == line[1:], f"{old[at]!r} is not {line[1:]!r}"
            at += 1
        if line[0] != "-":
            new.append(line[1:])
    path.write_text("\n".join(new + old[at:]) + "\n")


def run_tests(place, key):
    """Answers of the tests of a pass by name."""
    test = next(place.glob(f"tests/**/test_{key}.py"))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", test], text=True, capture_output=True,
        cwd=place, env={**os.environ, "PYTHONPATH": f"{place}:{HERE}",
                        "PYTHONDONTWRITEBYTECODE": "1"})
    answers = {}
    for line in ran.stdout.splitlines():
        name, _, answer = line.partition(" ")
        answers[name] = answer.split(":")[0]
    if ran.returncode or "failed" in answers.values():
        print(ran.stdout, ran.stderr)
    return answers


def check_pass(checks, tree, out, key, form, needed):
    """A pass that was written: its record, its files, its own tests."""
    what = f"{tree.version}: {key} ({form})"
    record = json.loads((out / "pass.json").read_text())
    checks.equal(f"{what}: form", record["form"], form)
    checks.equal(f"{what}: checks", {c["answer"] for c in record["checks"]},
                 {"pass"})
    answers = run_tests(tree.install(out), key)
    checks.equal(f"{what}: all tests of the note ran",
                 sorted(answers), sorted(record["tests"]))
    checks.equal(f"{what}: no test fails",
                 [n for n, a in answers.items() if a == "failed"], [])
    checks.equal(f"{what}: switched off", answers.get("test_disabled"), "passed")
    for name in needed:
        checks.equal(f"{what}: {name}", answers.get(name), "passed")
    return record


def check_broken(checks, tree, out, key, breaks):
    """Every fault that is put into a pass fails one of its tests."""
    for old, new in breaks:
        place = tree.install(out)
        file = place / LIBRARY / f"{key}.py"
        text = file.read_text()
        checks.true(f"{key} has {old!r}", old in text)
        file.write_text(text.replace(old, new))
        answers = run_tests(place, key)
        checks.true(f"{tree.version}: {key} with {new!r} in place of {old!r} "
                    "fails a test", "failed" in answers.values())


def check_silu(checks, tree, work):
    rules = work / "rules.yaml"
    rules.write_text(RULES)
    dump = work / "001_export_export_to_gm.txt"
    dump.write_text(silu_dump(4))
    out = work / f"{tree.version}_walk"
    tree.write("fuse_silu_clamp_mul", out, "--rules", rules, "--dump", dump)
    record = check_pass(
        checks, tree, out, "fuse_silu_clamp_mul", "walk",
        ["test_match", "test_two_layers", "test_extra_user_s",
         "test_extra_user_c", "test_operand_order_o", "test_dtype_dtype_u",
         "test_shape_shape_u", "test_no_meta", "test_keyword_c",
         "test_metadata_kept"])
    checks.equal("silu, clamp, mul: a value read twice is no match",
                 record["matches"], 3)
    checks.equal("silu, clamp, mul: path", record["path"],
                 "triton_fallback_path")
    again = work / f"{tree.version}_again"
    tree.write("fuse_silu_clamp_mul", again, "--rules", rules, "--dump", dump)
    for file in out.rglob("*"):
        if file.is_file():
            checks.true(f"{tree.version}: {file.name} is the same twice",
                        file.read_bytes() ==
                        (again / file.relative_to(out)).read_bytes())
    check_broken(checks, tree, out, "fuse_silu_clamp_mul", [
        ("if not _only_inside(closed, inside):", "if False:"),
        ("_value(g).dtype != _value(u).dtype", "False"),
        ("_value(g).shape != _value(u).shape", "False"),
        ("_meta(o, v[\"o\"], v[\"o\"].meta.get(\"val\"))", "pass"),
        ("for o_args in (o_args, o_args[1::-1] + o_args[2:]):",
         "for o_args in (o_args,):"),
        ("for k, v in node.kwargs.items()", "for k, v in ()"),
    ])

    out = work / f"{tree.version}_pattern"
    tree.write("fuse_silu_clamp_mul_plain", out, "--rules", rules, "--dump",
               dump)
    check_pass(checks, tree, out, "fuse_silu_clamp_mul_plain", "pattern",
               ["test_match", "test_two_layers", "test_extra_user_c",
                "test_operand_order_o", "test_keyword_c",
                "test_metadata_kept"])
    text = (out / LIBRARY / "fuse_silu_clamp_mul_plain.py").read_text()
    checks.true("pattern: dummies have the shapes of the dump",
                "tensor((2, 3, 512), torch.bfloat16)" in text)
    checks.true("pattern: literals are scalars",
                '{"low": -7.0, "high": 7.0}' in text)
    out = work / f"{tree.version}_forced"
    tree.write("fuse_silu_clamp_mul", out, "--rules", rules, "--dump", dump,
               "--match", "pattern")
    check_pass(checks, tree, out, "fuse_silu_clamp_mul", "pattern",
               ["test_match", "test_operand_order_o", "test_dtype_dtype_u",
                "test_shape_shape_u"])

    out = work / f"{tree.version}_open"
    tree.write("fuse_with_question", out, "--rules", rules)
    answers = run_tests(tree.install(out), "fuse_with_question")
    checks.equal("a guard that no dump shows is asked", answers["test_guard_scale"],
                 "open")
    checks.equal("and holds where it is answered", answers["test_match"], "passed")
    out = work / f"{tree.version}_assumed"
    tree.write("fuse_with_question", out, "--rules", rules, "--assume", "scale")
    answers = run_tests(tree.install(out), "fuse_with_question")
    checks.true("or vouched for", "test_guard_scale" not in answers)

    found = json.loads(lamina("graph", "candidates", dump, "--format",
                              "json").stdout)["tables"]["candidates"]
    rows = found["rows"] if isinstance(found, dict) else found
    names = [r["candidate"] for r in rows
             if "silu" in r["candidate"] and "clamp" in r["pattern"]]
    checks.true("the chain is a candidate", names)
    if names:
        out = work / f"{tree.version}_mined"
        tree.write(names[0], out, "--dump", dump, "--as", "fuse_mined")
        check_pass(checks, tree, out, "fuse_mined", "walk",
                   ["test_match", "test_two_layers"])


def check_add_norm(checks, tree, work):
    """Results of two lines, a function, and an op behind it that writes."""
    sample = work / "in.txt"
    if not sample.exists():
        sample.write_bytes(gzip.decompress(
            (SAMPLES / "fusions/001_export_export_to_gm.txt.gz").read_bytes()))
    dumps = work / "rewritten"
    if not dumps.exists():
        lamina("graph", "rewrite", sample, "--config",
               SAMPLES / "fusions/pipeline.yaml", "-d", dumps)
    front = sorted(dumps.glob("*_fuse_swiglu.txt"))[0]
    out = work / f"{tree.version}_add_norm"
    tree.write("fuse_add_rms_norm", out, "--dump", front)
    record = check_pass(
        checks, tree, out, "fuse_add_rms_norm", "walk",
        ["test_match", "test_two_layers", "test_operand_order_s", "test_no_meta",
         "test_keyword_s", "test_metadata_kept"])
    checks.equal("add and norm: as many as lamina rewrites",
                 record["matches"], 8)
    checks.equal("add and norm: path", record["path"], "existing_kernel_path")
    text = (out / LIBRARY / "fuse_add_rms_norm.py").read_text()
    checks.true("add and norm: what the function writes to is known",
                "writes to operands (x, y)" in text)
    check_broken(checks, tree, out, "fuse_add_rms_norm", [
        ("count += 1", "count += 2"),
        ("old.replace_all_uses_with(new)", "pass"),
    ])


def check_built_in(checks, tree, work):
    """Every rule is written or says why not."""
    names = re.findall(r"^  - rule: (\S+)", "".join(
        f.read_text() for f in sorted((ROOT / "data/fusions").glob("*.yaml"))),
        re.M)
    written, refused = [], []
    for name in names:
        out = work / f"{tree.version}_rule_{name}"
        ran = tree.write(name, out, status=None)
        if ran.returncode == 2:
            refused.append(name)
            checks.true(f"{tree.version}: {name} says why not",
                        name in ran.stderr and "\n" in ran.stderr)
            continue
        checks.true(f"{tree.version}: {name} is written",
                    ran.returncode in (0, 1))
        if ran.returncode == 1:
            # The small tree lacks ops and functions that the pattern names.
            lines = [c["evidence"] for c in json.loads(
                (out / "pass.json").read_text())["checks"]
                if c["answer"] == "fail"]
            faults = [f for line in lines for f in line.split("; ")
                      if "is defined nowhere in the tree" not in f]
            checks.equal(f"{tree.version}: {name}: checks", faults, [])
        answers = run_tests(tree.install(out), name)
        checks.true(f"{tree.version}: {name}: tests",
                    answers and "failed" not in answers.values())
        written.append(name)
    print(f"{tree.version}: {len(written)} rules written, "
          f"{len(refused)} refused with a reason")
    checks.true(f"{tree.version}: most rules with a replacement are written",
                len(written) >= 20)


def check_refusals(checks, tree, work):
    def refused(what, text, *args):
        ran = tree.write(*args, status=2)
        checks.equal(f"{what}: status", ran.returncode, 2)
        checks.true(f"{what}: {text}", text in ran.stderr)

    out = work / "refused"
    refused("a key that is taken", "drop_nothing.py:15", "fuse_l2norm", out,
            "--as", "drop_nothing")
    refused("no key", "is no key", "fuse_l2norm", out, "--as", "a-b")
    refused("no rule", "did you mean", "fuse_l2nor", out)
    checks.true("nothing is written then", not out.exists())
    ran = lamina("graph", "pass", "fuse_l2norm", "--tree", work, "-o", out,
                 status=None)
    checks.equal("a tree without the API", ran.returncode, 2)
    checks.true("is told", "no transform API" in ran.stderr)
    name = "fuse_add_rms_norm"
    tree.write(name, out)
    refused("files that are there", "--force", name, out)
    checks.equal("are replaced with --force",
                 tree.write(name, out, "--force").returncode, 0)
    checks.equal("an edited pass is checked",
                 tree.write(name, out, "--check-only").returncode, 0)
    file = out / LIBRARY / f"{name}.py"
    file.write_text(file.read_text().replace("BaseTransform)", "object)"))
    ran = tree.write(name, out, "--check-only", status=1)
    checks.equal("and a fault in it is status 1", ran.returncode, 1)
    ran = tree.write(name, out, "--check-only", "--format", "csv", status=1)
    checks.true("with what it is", "derives from" in ran.stdout)
    rule = work / "unknown_op.yaml"
    rule.write_text(RULES.replace("aten.silu(%g)", "auto_deploy.my_silu(%g)")
                    .replace("aten.silu.default(%g :",
                             "auto_deploy.my_silu.default(%g :"))
    ran = tree.write("fuse_silu_clamp_mul", work / "unknown_op", "--rules",
                     rule, "--format", "csv", status=1)
    checks.true("an op that the tree lacks fails a check",
                ran.returncode == 1 and "my_silu is defined nowhere" in
                ran.stdout)


def main():
    checks = Checks()
    with temporary() as folder:
        work = pathlib.Path(folder)
        for version in ("newer", "older"):
            tree = Tree(work, version)
            check_silu(checks, tree, work)
            check_add_norm(checks, tree, work)
            check_built_in(checks, tree, work)
        check_refusals(checks, tree, work)
    checks.finish()


if __name__ == "__main__":
    main()
