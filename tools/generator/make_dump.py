#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a folder of graph dumps of a made decoder model.

usage: make_dump.py -o DIR [--layers N] [--experts N] [--miss LAYER]

Three files in the form of the AutoDeploy graph writer: the export, the same
after its norms were fused (not in layer MISS, as a pattern that misses one
layer would leave it), and the last one with residual addition and norm as one
op. Shapes hold the symbols s0 (batch) and s1 (sequence).
"""
import argparse
import pathlib

HIDDEN = 1024
INNER = 2816
HEADS, KV_HEADS, HEAD = 16, 4, 64
BF16 = "torch.bfloat16"


class Graph:
    """Lines of one graph; values are (name, shape, dtype)."""

    def __init__(self):
        self.lines = []
        self.count = {}

    def name(self, base):
        number = self.count.get(base, 0)
        self.count[base] = number + 1
        return f"{base}_{number}" if number else base

    def input(self, name, shape, dtype):
        self.lines.append(f"%{name} : {shape} : {dtype}")
        return name, shape, dtype

    def op(self, target, operands, shape, dtype=BF16):
        base = target.split(".")[1] if "." in target else target
        base = base.split(" ")[-1].rstrip(">") if "<" in target else base
        name = self.name(base)
        text = ", ".join(x if isinstance(x, str) else self.use(x)
                         for x in operands)
        self.lines.append(f"%{name} = {target}({text}) : {shape} : {dtype}")
        return name, shape, dtype

    @staticmethod
    def use(value):
        name, shape, dtype = value
        if shape.startswith("("):
            return f"%{name} : ? : tuple"
        return f"%{name} : {shape} : {dtype}"

    def item(self, value, index):
        shapes = value[1][1:-1].split(", ")
        dtypes = value[2][1:-1].split(", ")
        return self.op("<built-in function getitem>", [value, str(index)],
                       shapes[index], dtypes[index])


def weight(name, shape, dtype=BF16):
    return name, shape, dtype


def norm(g, x, name, fused):
    w = weight(name, str(HIDDEN))
    if fused:
        return g.op("auto_deploy.torch_rmsnorm.default", [x, w, "1e-06"], x[1])
    wide = g.op("aten.to.dtype", [x, "torch.float32"], x[1], "torch.float32")
    one = x[1].rsplit("x", 1)[0] + "x1"
    p = g.op("aten.pow.Tensor_Scalar", [wide, "2"], x[1], "torch.float32")
    m = g.op("aten.mean.dim", [p, "[-1]", "True"], one, "torch.float32")
    e = g.op("aten.add.Tensor", [m, "1e-06"], one, "torch.float32")
    r = g.op("aten.rsqrt.default", [e], one, "torch.float32")
    y = g.op("aten.mul.Tensor", [wide, r], x[1], "torch.float32")
    y = g.op("aten.to.dtype", [y, BF16], x[1])
    return g.op("aten.mul.Tensor", [y, w], x[1])


def model(layers, experts, stage, miss):
    g = Graph()
    tokens = "s0xs1"
    hidden = f"{tokens}x{HIDDEN}"
    ids = g.input("input_ids", tokens, "torch.int64")
    position = g.input("position_ids", tokens, "torch.int64")
    caches = [g.input(f"kv_cache_{i}", f"512x2x32x{KV_HEADS}x{HEAD}", BF16)
              for i in range(layers)]
    x = g.op("aten.embedding.default",
             [weight("model_embed_tokens_weight", f"32000x{HIDDEN}"), ids],
             hidden)
    table = weight("model_rotary_cos_sin", f"4096x{HEAD}", "torch.float32")
    residual = None

    def linear(x, name, out):
        inside = x[1].rsplit("x", 1)[1]
        return g.op("auto_deploy.torch_linear_simple.default",
                    [x, weight(name, f"{out}x{inside}"), "None"],
                    x[1].rsplit("x", 1)[0] + f"x{out}")

    def add_and_norm(x, residual, name, fused):
        """The sum with the residual, normed, and the sum itself."""
        if stage == 2 and residual is not None:
            both = g.op("<function fused_add_rms_norm at 0x7f30c5a2e0>",
                        [x, residual, weight(name, str(HIDDEN)), "1e-06"],
                        f"({hidden}, {hidden})", f"({BF16}, {BF16})")
            return g.item(both, 0), g.item(both, 1)
        if residual is not None:
            x = g.op("aten.add.Tensor", [residual, x], hidden)
        return norm(g, x, name, fused), x

    for i in range(layers):
        p = f"model_layers_{i}_"
        fused = stage == 2 or (stage == 1 and i != miss)
        y, residual = add_and_norm(x, residual, p + "input_layernorm_weight",
                                   fused)
        q = linear(y, p + "self_attn_q_proj_weight", HEADS * HEAD)
        k = linear(y, p + "self_attn_k_proj_weight", KV_HEADS * HEAD)
        v = linear(y, p + "self_attn_v_proj_weight", KV_HEADS * HEAD)
        q = g.op("aten.view.default", [q, f"[s0, s1, {HEADS}, {HEAD}]"],
                 f"{tokens}x{HEADS}x{HEAD}")
        k = g.op("aten.view.default", [k, f"[s0, s1, {KV_HEADS}, {HEAD}]"],
                 f"{tokens}x{KV_HEADS}x{HEAD}")
        v = g.op("aten.view.default", [v, f"[s0, s1, {KV_HEADS}, {HEAD}]"],
                 f"{tokens}x{KV_HEADS}x{HEAD}")
        rope = g.op("auto_deploy.flashinfer_rope.default",
                    [q, k, position, table], f"({q[1]}, {k[1]})",
                    f"({BF16}, {BF16})")
        y = g.op("auto_deploy.flashinfer_attention_mha_with_cache.default",
                 [g.item(rope, 0), g.item(rope, 1), v, caches[i]], q[1])
        y = g.op("aten.view.default", [y, "[s0, s1, -1]"], hidden)
        y = linear(y, p + "self_attn_o_proj_weight", HIDDEN)
        y, residual = add_and_norm(
            y, residual, p + "post_attention_layernorm_weight", fused)
        logits = linear(y, p + "mlp_gate_weight", experts)
        top = g.op("auto_deploy.triton_fused_topk_softmax.default",
                   [logits, "2"], f"({tokens}x2, {tokens}x2)",
                   "(torch.float32, torch.int32)")
        lists = ["[" + ", ".join(f"{p}mlp_experts_{e}_{part}_proj_weight"
                                 for e in range(experts)) + "]"
                 for part in ("gate", "up", "down")]
        x = g.op("auto_deploy.torch_moe.default",
                 [y, g.item(top, 1), g.item(top, 0)] + lists, hidden)
    y, _ = add_and_norm(x, residual, "model_norm_weight", stage > 0)
    y = linear(y, "lm_head_weight", 32000)
    g.lines.append(f"output %{y[0]}")
    # The sizes in views are values of the graph.
    sizes = [f"%s{k} = aten.sym_size.int(%input_ids : {tokens} : torch.int64, "
             f"{k}) : ? : SymInt" for k in (0, 1)]
    at = next(i for i, line in enumerate(g.lines) if " = " in line)
    return g.lines[:at] + sizes + g.lines[at:]


STAGES = [(1, "export", "export_to_gm"),
          (16, "pattern_matcher", "match_rmsnorm_pattern"),
          (64, "post_load_fusion", "fuse_add_rms_norm")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", required=True, type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--experts", type=int, default=8)
    parser.add_argument("--miss", type=int, default=-1)
    options = parser.parse_args()
    options.o.mkdir(parents=True, exist_ok=True)
    for stage, (number, group, transform) in enumerate(STAGES):
        lines = model(options.layers, options.experts, stage, options.miss)
        ruler = "=" * 80
        text = "\n".join([f"# Transform: {transform}", f"# Stage: {group}",
                          "# GraphModules found: 1", "", "", ruler,
                          "# GraphModule: model", ruler, ""] + lines) + "\n"
        path = options.o / f"{number:03d}_{group}_{transform}.txt"
        path.write_text(text)


if __name__ == "__main__":
    main()
