#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drawings of a layer with kernels: shade, time and share of a box, the title;
a trace that fits the dump badly puts no kernel on a node."""
import json
import pathlib
import re
import shutil
import sqlite3
import struct
import subprocess
import zlib

import common
import mla_moe_model
from common import lamina, temporary


def draw(dump, trace, out, *args):
    done = lamina("graph", "layer", dump, "-n", "5", "--trace", trace, "-o",
                  out, "--render", "dot", *args)
    dot = out.with_suffix(".dot").read_text()
    return json.loads(out.read_text()), dot, done.stderr


def seconds(text):
    number, unit = text.split(" ")
    return float(number) * {"ns": 1e-3, "us": 1, "ms": 1e3}[unit]


def check_heat(checks, shared, work):
    dump = shared / "dumps/llama_32l_gqa_symbolic/086_compile_compile_model.txt"
    trace = shared / "traces/nsys/llama_32l_decode_graph.sqlite"
    layer, dot, _ = draw(dump, trace, work / "layer.json")
    busy = layer["trace_summary"]["total_duration_us"]
    checks.true("no warning", "warning" not in layer["trace_summary"])
    title = re.search(r'label="(Layer 5 [^"]*)"', dot)[1]
    checks.true(f"title: {title}", re.search(
        r"^Layer 5 of 32, kind B \(layers 1-31\)\\n\S+, 086_compile_compile_"
        r"model.txt \| wall \S+ us, busy \S+ us, \d+ kernels on \d+ streams? "
        r"\| median of 20 replays$", title))
    colours = [(20, "#fc9a5f"), (10, "#fdc28c"), (5, "#fee0b6"), (2, "#fff1dc"),
               (0, "#ffffff")]
    boxes = 0
    for node in layer["nodes"]:
        kernels = node.get("trace_kernels", [])
        if not kernels:
            continue
        line = [x for x in dot.splitlines()
                if x.strip().startswith(f'"{node["id"]}" [')]
        checks.equal(f"{node['id']}: one box", len(line), 1)
        share = 100 * sum(k["duration_us"] for k in kernels) / busy
        want = next(c for least, c in colours if share >= least)
        checks.true(f"{node['id']}: shade of {share:.1f} %",
                    f'fillcolor="{want}"' in line[0])
        if share >= 0.5:
            checks.true(f"{node['id']}: badge", f"{share:.1f} %" in line[0])
        checks.equal(f"{node['id']}: border", "penwidth=2" in line[0],
                     share >= 10)
        boxes += 1
    checks.true("boxes", boxes >= 5)
    if shutil.which("dot") is not None:
        check_white(checks, "llama with kernels", work / "layer.dot", work)
    # Views stand in the way of kernels and are shown when asked for.
    _, shown, _ = draw(dump, trace, work / "views.json", "--show-views")
    checks.true("views", shown.count("aten.view") > dot.count("aten.view"))


def check_misfit(checks, shared, work):
    dump = shared / "dumps/llama_32l_gqa_symbolic/086_compile_compile_model.txt"
    other = work / "other.sqlite"
    other.write_bytes((shared / "traces/nsys/llama_32l_decode_graph.sqlite"
                       ).read_bytes())
    other.chmod(0o644)
    db = sqlite3.connect(other)
    names = [r[0] for r in db.execute(
        "select distinct shortName from CUPTI_ACTIVITY_KIND_KERNEL")]
    for i, name in enumerate(names):
        db.execute("update StringIds set value = ? where id = ?",
                   (f"kernel_of_another_model_{i}", name))
        db.execute("update StringIds set value = ? where id in (select "
                   "demangledName from CUPTI_ACTIVITY_KIND_KERNEL where "
                   "shortName = ?)", (f"kernel_of_another_model_{i}()", name))
    db.commit()
    db.close()
    layer, dot, said = draw(dump, other, work / "other.json")
    checks.true("another model: said", "80 % are needed" in said)
    checks.true("another model: in the file",
                "80 % are needed" in layer["trace_summary"]["warning"])
    checks.true("another model: in the title", "80 % are needed" in dot)
    checks.true("another model: no kernel is claimed", all(
        "trace_kernels" not in n for n in layer["nodes"]))
    checks.true("another model: hollow", "? kernel_of_another" in dot)
    checks.true("another model: no shade", "#fc9a5f" not in dot)
    checks.true("another model: no file of kernels",
                not (work / "other_kernels.json").exists())
    said = lamina("graph", "kernels", other, "--dump", dump).stdout
    checks.true("another model: said of its kernels",
                "80 % are needed" in " ".join(said.split()))
    layer, dot, _ = draw(dump, other, work / "forced.json", "--force")
    checks.true("forced: kernels", any("trace_kernels" in n
                                       for n in layer["nodes"]))
    checks.true("forced: the warning stays", "80 % are needed" in dot and
                "80 % are needed" in layer["trace_summary"]["warning"])


def check_residuals(checks, folder, work):
    """The addition to the stream of the layers is none of the experts."""
    for dump in sorted(folder.glob("0*.txt")):
        out = work / "residual.json"
        lamina("graph", "layer", dump, "-n", "2", "-o", out)
        layer = json.loads(out.read_text())
        outside = {e["id"] for e in layer["external_inputs"]}
        stream, experts = set(outside), 0
        for node in layer["nodes"]:
            part = node.get("sub_group")
            if "add" in node["op"] and "norm" not in node["op"] and \
                    len(node["inputs"]) > 1 and stream & set(node["inputs"]):
                stream.add(node["id"])
                checks.true(f"{dump.name}: {node['id']} has no part",
                            not part)
            experts += part == "moe_experts"
        checks.true(f"{dump.name}: experts", experts >= 1)


def check_experts(checks, work):
    """Latent attention and experts, shared ones on a second stream."""
    dump, trace = mla_moe_model.write(work)
    out = work / "experts.json"
    lamina("graph", "layer", dump, "-n", "4", "--trace", trace, "-o", out,
           "--render", "dot")
    nodes = {n["id"]: n for n in json.loads(out.read_text())["nodes"]}
    part = {i: (n["group"], n.get("sub_group")) for i, n in nodes.items()}
    # What routed and shared experts give is summed for both.
    checks.equal("sum", part["add_1"], ("moe", None))
    checks.equal("its all-reduce", part["trtllm_dist_all_reduce_9"],
                 ("moe", None))
    checks.equal("shared", part["fused_finegrained_fp8_swiglu_mlp_4"],
                 ("mlp", "shared_experts"))
    checks.equal("routed", part["trtllm_quant_finegrained_fp8_moe_fused_1"],
                 ("moe", "moe_experts"))
    kernels = {i: [k["kernel"] for k in n.get("trace_kernels", [])]
               for i, n in nodes.items()}
    want = mla_moe_model.layer_kernels(4, 3)
    found = [k for list_ in kernels.values() for k in list_]
    checks.equal("kernels", len(found), sum(len(k) for _, k, _ in want))
    checks.equal("kernels of the shared experts",
                 len(kernels["fused_finegrained_fp8_swiglu_mlp_4"]), 5)
    checks.equal("kernels of the routed ones", len(
        kernels["trtllm_quant_finegrained_fp8_moe_fused_1"]), 5)
    dot = out.with_suffix(".dot").read_text()
    if shutil.which("dot") is not None:
        check_white(checks, "MLA and experts", out.with_suffix(".dot"), work)
    # Views are hidden, forks and joins are not.
    checks.equal("circles", sorted(re.findall(
        r'"(\w+)_aux_stream_passthrough_1" \[label="", shape=circle', dot)),
                 ["begin", "end", "wait"])
    checks.true("no views", "aten.view" not in dot)
    checks.true("the second stream", re.search(
        r"stream 2 \(\d+ in the trace\): 5 kernels, ", dot))
    checks.true("the main stream", re.search(
        r"main stream \(\d+ in the trace\): \d+ kernels, ", dot))
    frames = re.findall(r'^ +label="([^"]*)"; labeljust', dot, re.M)
    checks.equal("frames", frames, ["Inputs", "Self attention", "Q", "KV",
                                    "FFN", "Router", "Experts",
                                    "Shared experts"])
    for text in (">q_a_proj<", ">input norm<", ">post-attention norm<",
                 ">q_a norm<", ">router<", ">experts \u00d732<",
                 ">shared experts gate up down<",
                 ">router_gemm_kernel_float_output  ",
                 ">norm::FusedAddRMSNormKernel  "):
        checks.true(f"drawn: {text}", text in dot)
    checks.true("no scales", "scale_inv" not in
                re.sub(r'tooltip="[^"]*"', "", dot))


def check_parts(checks, work):
    """What is no layer, and graphs without any, can be drawn."""
    dump, trace = mla_moe_model.write(work)
    out = work / "part.json"
    for part, op in (("shared", "aten.embedding.default"),
                     ("epilogue", "auto_deploy.torch_linear_simple.default")):
        lamina("graph", "layer", dump, "-n", part, "-o", out, "--trace", trace,
               "--render", "dot,html")
        layer = json.loads(out.read_text())
        checks.equal(f"{part}: named", layer["layer"], part)
        checks.true(f"{part}: its op", op in [n["op"] for n in layer["nodes"]])
        checks.true(f"{part}: title", f'label="{part}\\nmodel, {dump.name}'
                    in out.with_suffix(".dot").read_text())
    plain = work / "plain.py"
    plain.write_text("""class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[8, 4]"):
        y: "f32[8, 4]" = torch.ops.aten.relu.default(x);  x = None
        return (y,)
""")
    done = lamina("graph", "layer", plain, "-n", "0", "-o", out, status=None)
    checks.equal("no layers", (done.returncode, "-n shared" in done.stderr),
                 (3, True))
    lamina("graph", "layer", plain, "-n", "shared", "-o", out)
    checks.equal("all of it", [n["id"] for n in json.loads(
        out.read_text())["nodes"]], ["y"])
    done = lamina("graph", "layer", plain, "-n", "epilogue", "-o", out,
                  status=None)
    checks.equal("an empty part", done.returncode, 2)
    done = lamina("graph", "pipeline", plain, status=None)
    checks.equal("a file is no run", (done.returncode, "give the folder" in
                                      done.stderr), (3, True))


def png_size(file):
    head = file.read_bytes()[:24]
    return struct.unpack(">II", head[16:24])


def check_png(checks, work):
    """A picture is at most 4,000 pixels wide, however wide the graph is."""
    if shutil.which("dot") is None:
        print("left out: no Graphviz")
        return
    out = work / "wide.json"
    for ops, least in ((2, 100), (60, 3900), (900, 3900)):
        wide = work / "wide.py"
        wide.write_text(
            "class GraphModule(torch.nn.Module):\n"
            '    def forward(self, x: "f32[8, 4]"):\n' + "".join(
                f'        y{i}: "f32[8, 4]" = torch.ops.aten.relu.default(x)\n'
                for i in range(ops)) + "        return (" + ", ".join(
                    f"y{i}" for i in range(ops)) + ",)\n")
        lamina("graph", "layer", wide, "-n", "shared", "-o", out,
               "--render", "png")
        width, height = png_size(out.with_suffix(".png"))
        checks.true(f"{ops} boxes side by side: {width} x {height}",
                    least <= width <= 4000 and height <= 32767)


def places(dot_file):
    """Boxes as Graphviz places them: id -> (x, y, width, height), inches."""
    plain = subprocess.run(["dot", "-Tplain", dot_file], check=True,
                           capture_output=True, text=True).stdout
    out = {}
    for line in plain.splitlines():
        found = re.match(r'node ("(?:[^"\\]|\\.)*"|\S+) (\S+) (\S+) (\S+) (\S+)',
                         line)
        if found:
            out[found[1].strip('"')] = tuple(map(float, found.groups()[1:]))
    return out


def grey_rows(dot_file, work):
    """Rows of a small picture as grey values; its layout is that of the
    large one."""
    png = work / "small.png"
    subprocess.run(["dot", "-Tpng", "-Gdpi=24", dot_file, "-o", png],
                   check=True)
    data, at, parts = png.read_bytes(), 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB",
                                                     data[at + 8:at + 18])
        if kind == b"IDAT":
            parts += data[at + 8:at + 8 + size]
        at += size + 12
    step = {0: 1, 2: 3, 6: 4}[colour]
    raw, rows = zlib.decompress(parts), []
    above = bytearray(width * step)
    for y in range(height):
        begin = y * (width * step + 1)
        how, line = raw[begin], bytearray(
            raw[begin + 1:begin + 1 + width * step])
        for x in range(len(line)):
            a = line[x - step] if x >= step else 0
            b, c = above[x], above[x - step] if x >= step else 0
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b),
                        (abs(p - c), 2, c))[2]
            line[x] = (line[x] + (0, a, b, (a + b) // 2, paeth)[how]) & 255
        above = line
        rows.append([min(line[x * step:x * step + min(step, 3)])
                     for x in range(width)])
    return rows


def check_white(checks, name, dot_file, work):
    """Not more than 30 % of the columns of a picture are white; the title,
    which is as wide as it must, is left out."""
    rows = grey_rows(dot_file, work)
    body = rows[len(rows) // 20:]
    white = sum(all(row[x] > 250 for row in body)
                for x in range(len(rows[0])))
    share = 100 * white / len(rows[0])
    print(f"{name}: {share:.0f} % of the columns are white")
    checks.true(f"{name}: {share:.0f} % of the columns are white", share <= 30)


def check_columns(checks, work):
    """Above 80 boxes attention and FFN stand beside each other, up to that
    below each other."""
    if shutil.which("dot") is None:
        print("left out: no Graphviz")
        return
    for chain, columns in ((30, False), (45, True)):
        made = work / f"chain{chain}.py"
        lines, last = [], "x"
        for layer in range(2):
            for part, weight in (("attn", "self_attn_q_proj"),
                                 ("ffn", "mlp_up_proj")):
                for k in range(chain):
                    name = f"{part}_{layer}_{k}"
                    lines.append(
                        f'        {name}: "f32[8, 8]" = torch.ops.aten.linear.'
                        f'default({last}, p_layers_{layer}_{weight}_weight)')
                    last = name
        weights = "".join(
            f', p_layers_{layer}_{weight}_weight: "f32[8, 8]"'
            for layer in range(2) for weight in ("self_attn_q_proj",
                                                 "mlp_up_proj"))
        made.write_text(
            "ExportedProgram:\n    class GraphModule(torch.nn.Module):\n"
            f'        def forward(self{weights}, x: "f32[8, 8]"):\n' + "".join(
                f"    {line}\n" for line in lines) +
            f"            return ({last},)\n")
        out = work / "columns.json"
        lamina("graph", "layer", made, "-n", "1", "-o", out, "--render", "dot")
        at = places(out.with_suffix(".dot"))

        def rows(part):
            mine = [box for name, box in at.items()
                    if name.startswith(f"{part}_1")]
            checks.equal(f"{chain}: boxes of {part}", len(mine), chain)
            return (min(b[1] - b[3] / 2 for b in mine),
                    max(b[1] + b[3] / 2 for b in mine),
                    min(b[0] - b[2] / 2 for b in mine),
                    max(b[0] + b[2] / 2 for b in mine))
        a, f = rows("attn"), rows("ffn")
        beside = a[3] < f[2] or f[3] < a[2]
        overlap = min(a[1], f[1]) - max(a[0], f[0])
        checks.equal(f"{chain}: beside each other", beside and
                     overlap > 0.8 * min(a[1] - a[0], f[1] - f[0]), columns)
        checks.equal(f"{chain}: below each other", f[1] < a[0], not columns)


def main():
    checks = common.Checks()
    with temporary() as folder:
        work = pathlib.Path(folder)
        check_experts(checks, work)
        check_parts(checks, work)
        check_png(checks, work)
        check_columns(checks, work)
        check_residuals(checks, common.SAMPLES / "dumps", work)
        shared = common.shared()
        check_heat(checks, shared, work)
        check_misfit(checks, shared, work)
        check_residuals(checks, shared / "dumps/mixtral_4l_moe_symbolic", work)
    checks.finish()


if __name__ == "__main__":
    main()
