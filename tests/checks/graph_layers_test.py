#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers of every reference dump against the truth file, and layer files
against the reference files, as JSON and byte for byte."""

import json
import pathlib
import random
import re
import tempfile

import common


def tables(path, section):
    args = ["graph", "layers", path, "--format", "json"]
    if section:
        args += ["--section", section]
    document = json.loads(common.lamina(*args).stdout)
    return document["tables"]


def check_section(path, want):
    got = tables(path, want["name"])
    bad = []

    def expect(what, mine, theirs):
        if mine != theirs:
            bad.append(f"{path.parent.name}/{path.name}: {what} {mine}, "
                       f"expected {theirs}")

    expect("layers", [row["layer"] for row in got["layers"]], want["layers"])
    expect("nodes", {str(r["layer"]): r["nodes"] for r in got["layers"]},
           want["nodes_per_layer"])
    parts = {row["part"]: row["ops"] for row in got["parts"]}
    expect("shared ops", parts["shared"], want["prologue_ops"])
    expect("epilogue ops", parts["epilogue"], want["epilogue_ops"])

    ops = {}
    for row in got["layer_nodes"]:
        ops.setdefault(row["layer"], []).append(row["op"])
    kinds = {}
    for row in got["layers"]:
        kinds.setdefault(row["kind"], []).append(row["layer"])
    mine = sorted((layers, ops[str(layers[0])]) for layers in kinds.values())
    theirs = sorted((c["layers"], c["ops"]) for c in want["layer_clusters"])
    expect("kinds", mine, theirs)

    def place(text):
        return int(text) if text.isdigit() else text

    expect("boundaries",
           [[r["node"], place(r["from_layer"]), place(r["to_layer"])]
            for r in got["boundaries"]], want["boundary_nodes"])
    edges = json.loads(common.lamina("graph", "print", path, "--section",
                                     want["name"], "--format",
                                     "json").stdout)["tables"]["edges"]
    layer_of = {row["node"]: row["layer"] for row in got["layer_nodes"]}
    users = {e["from"]: layer_of.get(e["to"]) for e in edges}
    expect("layers of fused weights",
           {w: int(users[w]) for w in want["fused_weight_layer"]},
           want["fused_weight_layer"])
    return bad


DEFINITION = re.compile(r"^%(\S+?)(?: = | : )", re.M)


def renamed(text, random):
    """Every value gets another name: layers come from weights and data flow."""
    names = DEFINITION.findall(text)
    numbers = list(range(len(names)))
    random.shuffle(numbers)
    new = {old: f"value_{number}" for old, number in zip(names, numbers)}
    return re.sub(r"(?<![\w.])[A-Za-z_]\w*(?![\w.(])",
                  lambda m: new.get(m[0], m[0]), text), new


def shuffled(text, random):
    """Another order of independent ops."""
    lines = text.split("\n")
    at = [i for i, line in enumerate(lines) if " = " in line
          and line.startswith("%")]
    defined = {DEFINITION.match(lines[i])[1]: i for i in at}
    waits = {}
    users = {i: [] for i in at}
    for i in at:
        needs = {defined[w] for w in re.findall(r"[A-Za-z_]\w*", lines[i])
                 if w in defined and defined[w] != i}
        waits[i] = len(needs)
        for need in needs:
            users[need].append(i)
    ready = [i for i in at if waits[i] == 0]
    order = []
    while ready:
        i = ready.pop(random.randrange(len(ready)))
        order.append(lines[i])
        for user in users[i]:
            waits[user] -= 1
            if waits[user] == 0:
                ready.append(user)
    assert len(order) == len(at)
    for i, line in zip(at, order):
        lines[i] = line
    return "\n".join(lines)


def check_independence(path, folder, random):
    """Names of values and the order of independent ops do not matter."""
    bad = []
    text = path.read_text()
    want = tables(path, None)
    places = {r["node"]: r["layer"] for r in want["layer_nodes"]}
    other = folder / path.name
    for _ in range(3):
        new_text, new = renamed(text, random)
        other.write_text(new_text)
        got = tables(other, None)
        if got["kinds"] != want["kinds"]:
            kinds = [(k["layers"], k["nodes"]) for k in got["kinds"]]
            if kinds != [(k["layers"], k["nodes"]) for k in want["kinds"]]:
                bad.append(f"{path}: other kinds when renamed")
        mine = {r["node"]: r["layer"] for r in got["layer_nodes"]}
        if mine != {new[n]: layer for n, layer in places.items()}:
            bad.append(f"{path}: other layers when renamed")
        other.write_text(shuffled(text, random))
        got = tables(other, None)
        mine = {r["node"]: r["layer"] for r in got["layer_nodes"]}
        if mine != places:
            wrong = [n for n in places if mine[n] != places[n]]
            bad.append(f"{path}: other layers when shuffled: {wrong[:5]}")
    return bad


def main():
    checks = common.Checks()
    with tempfile.TemporaryDirectory() as folder:
        source = random.Random(5)
        # In the third sample values have names like 0x7f30c5a2e0, which
        # renamed() and shuffled() do not take for names.
        for path in sorted((common.SAMPLES / "dumps").glob("0[01]*.txt")):
            checks.equal(f"{path.name}: names and order do not matter",
                         check_independence(path, pathlib.Path(folder),
                                            source), [])
    shared = common.shared()
    truth = json.load(open(shared / "goldens/dumps_truth.json"))
    bad = []
    sections = 0
    for folder, entry in sorted(truth.items()):
        if folder.startswith("_"):
            continue
        for name, want in sorted(entry["files"].items()):
            for section in want["sections"]:
                bad += check_section(shared / "dumps" / folder / name, section)
                sections += 1
    with tempfile.TemporaryDirectory() as folder:
        source = random.Random(11)
        for path in [
                "llama_32l_gqa_symbolic/001_export_export_to_gm.txt",
                "llama_32l_gqa_symbolic/086_compile_compile_model.txt",
                "mixtral_4l_moe_symbolic/018_pattern_matcher_match_moe_routing_"
                "pattern.txt"]:
            bad += check_independence(shared / "dumps" / path,
                                      pathlib.Path(folder), source)
    files = sorted((shared / "goldens/layers").glob("*.json"))
    for golden in files:
        folder, _, rest = golden.stem.partition("__")
        dump, _, layer = rest.rpartition("_layer")
        mine = common.lamina("graph", "layer",
                             shared / "dumps" / folder / f"{dump}.txt", "-n",
                             layer, "-o", "-").stdout
        # The reference calls the residual addition one of the experts.
        text = re.sub(r'("op": "aten\.add\.Tensor",(?:\n   "(?!op)[^\n]*)*?)'
                      r'\n   "sub_group": "moe_experts",', r"\1",
                      golden.read_text())
        if json.loads(mine) != json.loads(text):
            bad.append(f"{golden.name}: other content")
        elif mine.strip() != text.strip():
            bad.append(f"{golden.name}: other bytes")
    for line in bad[:20]:
        print(line[:2000])
    print(f"{sections} graphs and {len(files)} layer files, "
          f"{len(bad)} differences")
    checks.true("reference dumps",
                not bad and sections >= 20 and len(files) >= 6)
    checks.finish()


if __name__ == "__main__":
    main()
