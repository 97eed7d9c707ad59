#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Advice that must not be wrong: reviews of a run against itself, tests that
say nothing, paths without a kernel, rules whose examples do not hold."""
import gzip
import json
import pathlib
import re
import shutil

from common import SAMPLES, Checks, lamina, temporary

RULE = "fuse_add_rms_norm"
OPS = """
import torch
@torch.library.custom_op("auto_deploy::flashinfer_rms_norm", mutates_args=())
def flashinfer_rms_norm(x, w, eps): ...
def flashinfer_fused_add_rms_norm(x, r, w, eps): ...
"""
MODEL = """
def build(second=True):
    y = torch.ops.aten.add.Tensor(x, r)
    return torch.ops.auto_deploy.flashinfer_rms_norm(y, w, 1e-5)
"""
# The tests of a tree, what a review says of them, and words of its evidence.
TESTS = [
    ("both, in one file", MODEL + """
def test_fuse_add_rms_norm():
    info = run("fuse_add_rms_norm", build())
    assert info.num_matches == 2
def test_two_users():
    info = run("fuse_add_rms_norm", build(False))
    assert info.num_matches == 0
""", "pass", ["test_x.py:8", "test_x.py:11"]),
    ("by a name alone", MODEL + """
def test_fuse_add_rms_norm_not_matched_multi_skip():
    info = run("fuse_add_rms_norm", build())
    assert info.num_matches > 0
""", "unknown", ["no assert that nothing matches"]),
    ("none matches, on something else", MODEL + """
def test_one():
    assert run("fuse_add_rms_norm", build()).num_matches == 1
def test_empty():
    gm = torch.ops.aten.relu(x)
    assert run("fuse_add_rms_norm", gm).num_matches == 0
""", "unknown", ["unrelated"]),
    ("no assert at all", MODEL + """
def test_fuse_add_rms_norm():
    print(run("fuse_add_rms_norm", build()).num_matches)
""", "unknown", ["no assert of a match"]),
    ("a comment is no assert", MODEL + """
def test_a():
    # assert run("fuse_add_rms_norm", build()).num_matches == 0
    assert run("fuse_add_rms_norm", build()).num_matches == 3
""", "unknown", []),
    ("counts of the op that is made", MODEL + """
def targets(gm):
    return [n.target for n in gm.graph.nodes]
def test_a():
    gm = fuse(build())
    assert targets(gm).count(flashinfer_fused_add_rms_norm) == 1
    bad = fuse(build(False))
    assert flashinfer_fused_add_rms_norm not in targets(bad)
""", "pass", []),
    ("the class of the transform", MODEL + """
def test_a():
    assert FuseAddRmsNorm(c)(build()).num_matches >= 1
def test_b():
    assert FuseAddRmsNorm(c)(build(False)).skipped
""", "pass", []),
    ("another transform", """
def test_a():
    assert run("fuse_l2norm", m).num_matches == 1
    assert run("fuse_l2norm", m).num_matches == 0
""", "fail", ["no test names it"]),
]


def review(before, after, *args):
    ran = lamina("graph", "review", before, after, "--rule", RULE, "--format",
                 "json", *args, status=None)
    rows = json.loads(ran.stdout[:ran.stdout.rindex("}") + 1])["tables"]["review"]
    rows = rows["rows"] if isinstance(rows, dict) else rows
    return ran, {row["item"]: row for row in rows}


def tree_with(work, test, ops=OPS):
    tree = work / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    root = tree / "tensorrt_llm/_torch/auto_deploy"
    for folder, text in (("custom_ops/norm.py", ops),
                         ("transform/library/x.py",
                          f'@TransformRegistry.register("{RULE}")\n'
                          "class FuseAddRmsNorm: ...\n")):
        (root / folder).parent.mkdir(parents=True, exist_ok=True)
        (root / folder).write_text(text)
    tests = tree / "tests/unittest/auto_deploy"
    tests.mkdir(parents=True)
    (tests / "test_x.py").write_text("import torch\n" + test.lstrip("\n"))
    return tree


def check_reviews(checks, work):
    sample = work / "001_export_export_to_gm.txt"
    sample.write_bytes(gzip.decompress(
        (SAMPLES / "fusions/001_export_export_to_gm.txt.gz").read_bytes()))
    run = work / "run"
    lamina("graph", "rewrite", sample, "--config",
           SAMPLES / "fusions/pipeline.yaml", "-d", run)
    before = work / "before"
    shutil.copytree(run, before)
    last = sorted(before.glob("*.txt"))[-1]
    last.unlink()
    copy = work / "copy"
    shutil.copytree(run, copy)
    for what, other in (("one folder twice", run), ("a copy of it", copy),
                        ("by another name", work / "before/../run")):
        ran, items = review(run, other)
        for item in ("saved", "drift"):
            checks.equal(f"{what}: {item}", items[item]["answer"], "fail")
            checks.true(f"{what}: {item} says why",
                        "the same run" in items[item]["evidence"])
        checks.equal(f"{what}: status", ran.returncode, 1)
    _, items = review(before, run)
    checks.equal("two runs: saved", items["saved"]["answer"], "pass")
    checks.equal("two runs: drift", items["drift"]["answer"], "pass")
    for what, test, answer, words in TESTS:
        _, items = review(before, run, "--tree", tree_with(work, test))
        checks.equal(f"tests: {what}", items["tested"]["answer"], answer)
        for word in words:
            checks.true(f"tests: {what}: {word}",
                        word in items["tested"]["evidence"])
    jit = "@triton.jit\ndef kernel(x): ...\n"
    for what, ops, path in (
            ("a function of the tree", OPS, "existing_kernel_path"),
            ("no such function", OPS.replace("fused_add", "other"),
             "triton_fallback_path"),
            ("with a kernel of its own", OPS + jit, "triton_fallback_path")):
        ran, _ = review(before, run, "--tree", tree_with(work, "", ops),
                        "--note")
        checks.equal(f"path: {what}",
                     re.search(r"^Path: (\w+)", ran.stdout + ran.stderr, re.M)[1],
                     path)
    return sample


GOOD = """rules:
  - rule: my_rule
    title: Two ops
    stage: post_load_fusion
    before: |
      %r = aten.relu(%x)
      %o = aten.neg(%r)
    outputs: [o]
    examples:
      - |
        %x : 2x16 : torch.bfloat16
        %r = aten.relu.default(%x : 2x16 : torch.bfloat16) : 2x16 : torch.bfloat16
        %o = aten.neg.default(%r : 2x16 : torch.bfloat16) : 2x16 : torch.bfloat16
        output %o
"""


def check_rules(checks, work, sample):
    file = work / "rules.yaml"
    for what, text, status, said in (
            ("an example that holds", GOOD, 0, ""),
            ("one that does not", GOOD.replace("aten.neg.default", "aten.exp.default"),
             2, "my_rule: example 1 has 0 matches"),
            ("a counter-example that matches",
             GOOD.replace("    examples:\n", "    not:\n").replace(
                 "      - |\n", "      - why: ''\n        text: |\n").replace(
                 "\n        %", "\n          %").replace(
                 "\n        output", "\n          output"),
             2, "counter-example 1 matches"),
            ("no examples", GOOD[:GOOD.index("    examples")], 0,
             "has no examples")):
        file.write_text(text)
        ran = lamina("graph", "census", sample, "--rules", file, status=None)
        checks.equal(f"rules: {what}: status", ran.returncode, status)
        checks.true(f"rules: {what}: {said}", said in ran.stderr)
        if said:
            checks.true(f"rules: {what}: its place",
                        "rules.yaml:2" in ran.stderr)


BETWEEN = [
    ("nothing", [], None),
    ("a clamp", ["aten.clamp.default(%IN : T, -7.0, 7.0)"], "extra_op"),
    ("a view", ["aten.view.default(%IN : T, [2, 16])"], "extra_view"),
    ("a cast", ["aten.to.dtype(%IN : T, torch.bfloat16)"], "extra_cast"),
    ("two ops", ["aten.clamp.default(%IN : T, -7.0, 7.0)",
                 "aten.tanh.default(%IN : T)"], ""),
    ("an op of two values", ["aten.mul.Tensor(%IN : T, %x : T)"], ""),
]


def check_between(checks, work):
    """One op between the lines of a rule is a near miss of its own class."""
    rules = work / "between.yaml"
    rules.write_text(GOOD)
    dump = work / "between.txt"
    for what, ops, miss in BETWEEN:
        lines, last = ["%x : T", "%r = aten.relu.default(%x : T) : T"], "r"
        for i, op in enumerate(ops):
            lines.append(f"%m{i} = {op.replace('IN', last)} : T")
            last = f"m{i}"
        lines += [f"%o = aten.neg.default(%{last} : T) : T", "output %o"]
        dump.write_text("# Transform: x\n# Stage: y\n# GraphModules found: 1\n\n\n"
                        + "=" * 80 + "\n# GraphModule: (root)\n" + "=" * 80 +
                        "\n\n" + "\n".join(lines).replace(
                            " T", " 2x16 : torch.bfloat16") + "\n")
        tables = json.loads(lamina("graph", "census", dump, "--rules", rules,
                                   "--format", "json").stdout)["tables"]
        def rows(name):
            found = tables.get(name, [])
            found = found["rows"] if isinstance(found, dict) else found
            return [r for r in found if r["rule"] == "my_rule"]
        checks.equal(f"between: {what}: matches",
                     sum(r["matches"] for r in rows("census_rules")),
                     1 if miss is None else 0)
        checks.equal(f"between: {what}: near miss",
                     [r["class"]
                      for r in rows("near_misses")], [miss] if miss else [])


def main():
    checks = Checks()
    with temporary() as folder:
        work = pathlib.Path(folder)
        sample = check_reviews(checks, work)
        check_rules(checks, work, sample)
        check_between(checks, work)
    checks.finish()


if __name__ == "__main__":
    main()
