#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An op is advised for a chain only when it computes what the chain computes:
layers of many chains, with what each known op is to them."""
import json
import pathlib
import tempfile

import common

T = "s0xs1x512 : torch.bfloat16"
W = "512 : torch.bfloat16"


class Dump:
    """Layers of one chain between matrix products."""

    def __init__(self):
        self.lines = ["# Transform: export_to_gm", "# Stage: export",
                      "# GraphModules found: 1", "", "", "=" * 80,
                      "# GraphModule: (root)", "=" * 80, "", f"%x : {T}"]
        self.types = {"x": T}
        self.count = 0

    def op(self, target, *operands, result=T):
        self.count += 1
        name = f"v{self.count}"
        shown = [f"%{o} : {self.types[o]}" if o in self.types else str(o)
                 for o in operands]
        self.lines.append(f"%{name} = {target}({', '.join(shown)}) : {result}")
        self.types[name] = result
        return name

    def weight(self, name, result=W):
        self.types[name] = result
        return name

    def linear(self, value, layer, name, result=T):
        weight = self.weight(f"model_layers_{layer}_{name}_weight",
                             "512x512 : torch.bfloat16")
        return self.op("auto_deploy.torch_linear_simple.default", value, weight,
                       "None", result=result)

    def norm_weight(self, layer):
        return self.weight(f"model_layers_{layer}_norm_weight")


def rms(d, x, weight=None, plus_one=False, dtype=True):
    f = "s0xs1x512 : torch.float32"
    one = "s0xs1x1 : torch.float32"
    y = d.op("aten.to.dtype", x, "torch.float32", result=f) if dtype else x
    p = d.op("aten.pow.Tensor_Scalar", y, "2", result=f)
    m = d.op("aten.mean.dim", p, "[-1]", "True", result=one)
    e = d.op("aten.add.Tensor", m, "1e-06", result=one)
    r = d.op("aten.rsqrt.default", e, result=one)
    n = d.op("aten.mul.Tensor", y, r, result=f)
    if plus_one:
        w = d.op("aten.add.Tensor", weight, "1.0", result=W)
        n = d.op("aten.mul.Tensor", n, w, result=f)
        return d.op("aten.to.dtype", n, "torch.bfloat16")
    n = d.op("aten.to.dtype", n, "torch.bfloat16")
    return d.op("aten.mul.Tensor", weight, n) if weight else n


def gate(act, *between, swapped=False, packed=False):
    def chain(d, x, i):
        if packed:
            both = d.linear(x, i, "gate_up", "s0xs1x1024 : torch.bfloat16")
            a = d.op("aten.slice.Tensor", both, "-1", "0", "512")
            b = d.op("aten.slice.Tensor", both, "-1", "512", "1024")
        else:
            a, b = d.linear(x, i, "gate"), d.linear(x, i, "up")
        for target, *more in act:
            a = d.op(target, a, *more)
        for target, *more in between:
            a = d.op(target, a, *more)
        return d.op("aten.mul.Tensor", *((b, a) if swapped else (a, b)))
    return chain


SILU = ("aten.silu.default",)
CLAMP = ("aten.clamp.default", "-7.0", "7.0")
CAST = ("aten.to.dtype", "torch.bfloat16")


def sigmoid_silu(d, x, i):
    a, b = d.linear(x, i, "gate"), d.linear(x, i, "up")
    s = d.op("aten.sigmoid.default", a)
    return d.op("aten.mul.Tensor", d.op("aten.mul.Tensor", s, a), b)


def gated_norm(before):
    def chain(d, x, i):
        a, g = d.linear(x, i, "in"), d.linear(x, i, "z")
        w = d.norm_weight(i)
        if before:
            n = rms(d, a, w)
            return d.op("aten.mul.Tensor", n, d.op("aten.silu.default", g))
        return rms(d, d.op("aten.mul.Tensor", a,
                           d.op("aten.silu.default", g)), w)
    return chain


def plus_one(d, x, i):
    return d.op("aten.neg.default",
                rms(d, d.linear(x, i, "in"), d.norm_weight(i), plus_one=True))


def add_norm(target, *more, alpha=()):
    def chain(d, x, i):
        s = d.op("aten.add.Tensor", x, d.linear(x, i, "in"), *alpha)
        n = d.op(target, s, *more[:1], d.norm_weight(i), *more[1:])
        return d.op("aten.add.Tensor", s, d.linear(n, i, "out"))
    return chain


def rope(swapped=False):
    """x * cos + cat(-second half, first half) * sin."""
    half = "s0xs1x256 : torch.bfloat16"

    def chain(d, x, i):
        y = d.linear(x, i, "in")
        c, s = (d.linear(x, i, name) for name in ("cos", "sin"))
        a = d.op("aten.slice.Tensor", y, "-1", "0", "256", result=half)
        b = d.op("aten.slice.Tensor", y, "-1", "256", "9223372036854775807",
                 result=half)
        if swapped:
            a, b = b, a
        turned = d.op("aten.cat.default",
                      f"[%{d.op('aten.neg.default', b, result=half)}, %{a}]",
                      "-1")
        return d.op("aten.add.Tensor", d.op("aten.mul.Tensor", y, c),
                    d.op("aten.mul.Tensor", turned, s))
    return chain


def wide_norm(d, x, i):
    """The norm gives float32: a fused op would give the type that comes in."""
    f = "s0xs1x512 : torch.float32"
    s = d.op("aten.add.Tensor", d.linear(x, i, "in"), d.linear(x, i, "b"))
    y = d.op("aten.to.dtype", s, "torch.float32", result=f)
    n = d.op("aten.mul.Tensor", d.op("auto_deploy.torch_rmsnorm.default", y,
                                     d.norm_weight(i), "1e-06", result=f), y,
             result=f)
    return d.linear(n, i, "out")


def relu2(d, x, i):
    a = d.op("aten.relu.default", d.linear(x, i, "up"))
    return d.op("aten.pow.Tensor_Scalar", a, "2")


def gelu(*more):
    return gate([("aten.gelu.default", *more)])


def topk_only(d, x, i):
    k = "s0xs1x2"
    t = d.op("aten.topk.default", d.op("aten.neg.default", d.linear(x, i, "r")),
             "2", result=f"({k}, {k}) : (torch.bfloat16, torch.int64)")
    v = d.op("builtin.getitem", t, "0", result=f"{k} : torch.bfloat16")
    s = d.op("aten.sigmoid.default", v, result=f"{k} : torch.bfloat16")
    return d.op("aten.mul.Tensor", x, d.op(
        "aten.sum.dim_IntList", s, "[-1]", "True",
        result="s0xs1x1 : torch.bfloat16"))


# chain, op, its fit (None: the op is not to be named with a score)
CASES = [
    ("mul silu", gate([SILU], swapped=True), "flashinfer_silu_and_mul", "layout"),
    ("silu mul packed", gate([SILU], packed=True), "flashinfer_silu_and_mul",
     "equal"),
    ("silu by sigmoid", sigmoid_silu, "flashinfer_silu_and_mul", "layout"),
    ("silu clamp mul", gate([SILU, CLAMP]), "flashinfer_silu_and_mul",
     "conflict"),
    ("silu clamp mul packed", gate([SILU, CLAMP], packed=True),
     "flashinfer_silu_and_mul", "conflict"),
    ("clamp silu mul", gate([CLAMP, SILU]), "flashinfer_silu_and_mul", "part"),
    ("silu scale mul", gate([SILU, ("aten.mul.Tensor", "1.702")]),
     "flashinfer_silu_and_mul", "conflict"),
    ("silu abs mul", gate([SILU, ("aten.abs.default",)]),
     "flashinfer_silu_and_mul", "conflict"),
    ("gelu mul, variant not shown", gelu(), "flashinfer_silu_and_mul", None),
    ("gelu mul, variant not shown, is no tanh", gelu(), "gelu_tanh_and_mul",
     "unknown"),
    ("add with alpha", add_norm("auto_deploy.torch_rmsnorm.default",
                                alpha=("alpha = 2",)),
     "flashinfer_fused_add_rms_norm", None),
    ("rope", rope(), "triton_rope_with_input_pos", "layout"),
    ("rope of halves in the other order", rope(swapped=True),
     "triton_rope_with_input_pos", None),
    ("gelu tanh mul", gelu("approximate = tanh"), "gelu_tanh_and_mul", "layout"),
    ("sigmoid mul", gate([("aten.sigmoid.default",)]), "fused_sigmoid_mul",
     "equal"),
    ("sigmoid mul is no silu", gate([("aten.sigmoid.default",)]),
     "flashinfer_silu_and_mul", None),
    ("gated norm", gated_norm(True), "triton_rmsnorm_gated", "equal"),
    ("norm of gated", gated_norm(False), "triton_rmsnorm_gated", "equal"),
    ("gated norm is no norm", gated_norm(True), "flashinfer_rms_norm", "part"),
    ("gated norm is no silu_and_mul", gated_norm(True),
     "flashinfer_silu_and_mul", "part"),
    ("one plus weight", plus_one, "flashinfer_rms_norm", None),
    ("add norm", add_norm("auto_deploy.torch_rmsnorm.default"),
     "flashinfer_fused_add_rms_norm", "equal"),
    ("add layer norm", add_norm("aten.layer_norm.default", "[512]"),
     "flashinfer_fused_add_rms_norm", None),
    ("norm in float32", wide_norm, "flashinfer_fused_add_rms_norm", None),
    ("relu2 without quantising", relu2, "trtllm_fused_relu2_quant_nvfp4",
     "conflict"),
    ("topk is no topk softmax", topk_only, "triton_fused_topk_softmax", None),
]


def write(path, chain, layers=4):
    d = Dump()
    last = "x"
    for i in range(layers):
        last = d.linear(chain(d, last, i), i, "down")
    path.write_text("\n".join(d.lines + [f"output %{last}", ""]))


def main():
    checks = common.Checks()
    right = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, chain, op, fit in CASES:
            path = pathlib.Path(folder) / "dump.txt"
            write(path, chain)
            done = common.lamina("graph", "candidates", path, "--format", "json")
            found = json.loads(done.stdout)["tables"]
            mined = {r["candidate"] for r in found["candidates"]
                     if not r["rule"]}
            rows = [r for r in found["candidate_kernels"]
                    if r["op"] == f"auto_deploy.{op}"
                    and r["candidate"] in mined]
            best = max(rows, key=lambda r: r["score"], default=None)
            if fit in ("equal", "layout"):
                fine = best is not None and best["score"] == 1
                fine = fine and any(r["fit"] == fit for r in rows)
            else:
                # Never advised, and if the fit is told, with its reason.
                fine = best is None or best["score"] == 0
                if fit is not None:
                    fine = fine and any(
                        r["fit"] == fit and r["why_not"] for r in rows)
            if not fine:
                print(name, rows, [
                    (r["candidate"], r["recommendation"], r["pattern"])
                    for r in found["candidates"]])
            checks.true(f"{name}: {op} is {fit}", fine)
            right += fine
            for row in found["candidates"]:
                if row["recommendation"] != "use_existing_kernel" or row["rule"]:
                    continue
                fits = [r for r in found["candidate_kernels"]
                        if r["candidate"] == row["candidate"]
                        and r["fit"] == "equal"]
                checks.true(f"{name}: {row['candidate']} is advised for a "
                            "reason", bool(fits))
    print(f"{right} of {len(CASES)} chains are judged right")
    checks.finish()


if __name__ == "__main__":
    main()
