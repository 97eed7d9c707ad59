#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the graph dump of a small decoder as an exporter would print it: RMS
norms, rotary embedding, grouped attention, SwiGLU, all unfused.

usage: make_fusion_dump.py -o FOLDER [--layers N] [--hidden N] [--heads N] [--kv N]
"""
import argparse
import gzip
import pathlib

END = 9223372036854775807


class Graph:
    def __init__(self):
        self.lines, self.count, self.values = [], {}, {}

    def name(self, base):
        n = self.count.get(base, 0)
        self.count[base] = n + 1
        return base if n == 0 else f"{base}_{n}"

    def placeholder(self, name, shape, dtype):
        self.values[name] = f"{shape} : {dtype}"
        self.lines.append(f"%{name} : {shape} : {dtype}")
        return name

    def use(self, operand):
        if isinstance(operand, tuple):  # a weight with its shape
            return f"%{operand[0]} : {operand[1]} : torch.bfloat16"
        if isinstance(operand, str) and operand in self.values:
            return f"%{operand} : {self.values[operand]}"
        return str(operand)

    def op(self, base, target, operands, shape, dtype="torch.bfloat16"):
        name = self.name(base)
        self.values[name] = f"{shape} : {dtype}"
        self.lines.append(f"%{name} = {target}("
                          + ", ".join(self.use(o) for o in operands)
                          + f") : {shape} : {dtype}")
        return name


def norm(g, x, weight, d):
    full, one, f32 = f"s0xs1x{d}", "s0xs1x1", "torch.float32"
    a = g.op("to", "aten.to.dtype", [x, f32], full, f32)
    p = g.op("pow_", "aten.pow.Tensor_Scalar", [a, 2], full, f32)
    m = g.op("mean", "aten.mean.dim", [p, "[-1]", True], one, f32)
    e = g.op("add", "aten.add.Tensor", [m, "1e-05"], one, f32)
    r = g.op("rsqrt", "aten.rsqrt.default", [e], one, f32)
    n = g.op("mul", "aten.mul.Tensor", [a, r], full, f32)
    t = g.op("to", "aten.to.dtype", [n, "torch.bfloat16"], full)
    return g.op("mul", "aten.mul.Tensor", [(weight, d), t], full)


def linear(g, x, weight, rows, columns):
    return g.op("torch_linear_simple", "auto_deploy.torch_linear_simple.default",
                [x, (weight, f"{rows}x{columns}"), None], f"s0xs1x{rows}")


def rope(g, x, cos, sin, heads, size):
    full, half = f"s0x{heads}xs1x{size}", f"s0x{heads}xs1x{size // 2}"
    a = g.op("mul", "aten.mul.Tensor", [x, cos], full)
    s1 = g.op("slice_", "aten.slice.Tensor", [x, 3, 0, size // 2], half)
    s2 = g.op("slice_", "aten.slice.Tensor", [x, 3, size // 2, END], half)
    n = g.op("neg", "aten.neg.default", [s2], half)
    c = g.op("cat", "aten.cat.default", [f"[{n}, {s1}]", -1], full)
    b = g.op("mul", "aten.mul.Tensor", [c, sin], full)
    return g.op("add", "aten.add.Tensor", [a, b], full)


def repeat(g, x, kv, times, size):
    five = f"s0x{kv}x{times}xs1x{size}"
    u = g.op("unsqueeze", "aten.unsqueeze.default", [x, 2],
             f"s0x{kv}x1xs1x{size}")
    e = g.op("expand", "aten.expand.default",
             [u, f"[sym_size_int, {kv}, {times}, sym_size_int_1, {size}]"],
             five)
    c = g.op("contiguous", "aten.contiguous.default", [e], five)
    return g.op("reshape", "aten.reshape.default",
                [c, f"[sym_size_int, {kv * times}, sym_size_int_1, {size}]"],
                f"s0x{kv * times}xs1x{size}")


def layer(g, x, index, cos, sin, options):
    d, heads, kv = options.hidden, options.heads, options.kv
    size, weight = d // heads, f"model_layers_{index}_"
    full = f"s0xs1x{d}"
    h = norm(g, x, weight + "input_layernorm_weight", d)
    parts = []
    for part, count in (("q", heads), ("k", kv), ("v", kv)):
        p = linear(g, h, f"{weight}self_attn_{part}_proj_weight", count * size,
                   d)
        v = g.op("view", "aten.view.default",
                 [p, f"[sym_size_int, sym_size_int_1, -1, {size}]"],
                 f"s0xs1x{count}x{size}")
        parts.append(g.op("transpose", "aten.transpose.int", [v, 1, 2],
                          f"s0x{count}xs1x{size}"))
    c = g.op("unsqueeze", "aten.unsqueeze.default", [cos, 1], f"s0x1xs1x{size}")
    s = g.op("unsqueeze", "aten.unsqueeze.default", [sin, 1], f"s0x1xs1x{size}")
    q = rope(g, parts[0], c, s, heads, size)
    k = rope(g, parts[1], c, s, kv, size)
    k = repeat(g, k, kv, heads // kv, size)
    v = repeat(g, parts[2], kv, heads // kv, size)
    a = g.op("torch_attention_sdpa", "auto_deploy.torch_attention_sdpa.default",
             [q, k, v, None, 0.0, True, size ** -0.5], f"s0x{heads}xs1x{size}")
    t = g.op("transpose", "aten.transpose.int", [a, 1, 2],
             f"s0xs1x{heads}x{size}")
    t = g.op("contiguous", "aten.contiguous.default", [t],
             f"s0xs1x{heads}x{size}")
    t = g.op("view", "aten.view.default",
             [t, "[sym_size_int, sym_size_int_1, -1]"], full)
    o = linear(g, t, weight + "self_attn_o_proj_weight", d, d)
    x = g.op("add", "aten.add.Tensor", [x, o], full)
    h = norm(g, x, weight + "post_attention_layernorm_weight", d)
    gate = linear(g, h, weight + "mlp_gate_proj_weight", 4 * d, d)
    s = g.op("silu", "aten.silu.default", [gate], f"s0xs1x{4 * d}")
    up = linear(g, h, weight + "mlp_up_proj_weight", 4 * d, d)
    m = g.op("mul", "aten.mul.Tensor", [s, up], f"s0xs1x{4 * d}")
    down = linear(g, m, weight + "mlp_down_proj_weight", d, 4 * d)
    return g.op("add", "aten.add.Tensor", [x, down], full)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", required=True)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--kv", type=int, default=4)
    options = parser.parse_args()
    g = Graph()
    # A bare name of a builtin never occurs.
    g.count = {"pow_": 1, "slice_": 1}
    g.name = lambda base: (Graph.name(g, base) if not base.endswith("_")
                           else Graph.name(g, base).replace("__", "_"))
    d, size = options.hidden, options.hidden // options.heads
    g.placeholder("input_ids", "s0xs1", "torch.int64")
    g.placeholder("position_ids", "s0xs1", "torch.int64")
    for i in range(2):
        g.op("sym_size_int", "aten.sym_size.int", ["input_ids", i], "?",
             "SymInt")
    x = g.op("embedding", "aten.embedding.default",
             [("model_embed_tokens_weight", f"32000x{d}"), "input_ids"],
             f"s0xs1x{d}")
    cos, sin = (g.op("index", "aten.index.Tensor",
                     [(f"model_rotary_{name}", f"4096x{size}"),
                      "[position_ids]"], f"s0xs1x{size}")
                for name in ("cos", "sin"))
    for index in range(options.layers):
        x = layer(g, x, index, cos, sin, options)
    x = norm(g, x, "model_norm_weight", d)
    x = linear(g, x, "lm_head_weight", 32000, d)
    g.lines.append(f"output %{x}")

    folder = pathlib.Path(options.o)
    folder.mkdir(parents=True, exist_ok=True)
    ruler = "=" * 80
    head = ["# Transform: export_to_gm", "# Stage: export",
            "# GraphModules found: 1", "", "", ruler,
            "# GraphModule: (root)", ruler, ""]
    text = "\n".join(head + g.lines) + "\n"
    (folder / "001_export_export_to_gm.txt.gz").write_bytes(
        gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
