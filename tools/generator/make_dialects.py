#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One small decoder as graph dumps of many compilers: what torch.export, FX,
TORCH_LOGS, TORCH_TRACE, Inductor, StableHLO and HLO would print of it. Layer
--odd has a clamp that the others lack. Same arguments, same bytes."""
import argparse
import json
import pathlib
import re

HIDDEN = 64


class Model:
    """Nodes (name, aten op, operands, shape) and weights (name, path)."""

    def __init__(self, layers, odd):
        self.nodes, self.weights = [], []
        self.count = {}
        ids = "ids"
        w = self.weight("embed_tokens.weight", "100, 64")
        h = self.op("embedding", "embedding.default", [w, ids])
        for i in range(layers):
            n = self.norm(h, f"layers.{i}.input_layernorm.weight")
            g = self.linear(n, f"layers.{i}.mlp.gate_proj.weight")
            u = self.linear(n, f"layers.{i}.mlp.up_proj.weight")
            g = self.op("silu", "silu.default", [g])
            if i == odd:
                g = self.op("clamp", "clamp.default", [g, "-7.0", "7.0"])
            p = self.op("mul", "mul.Tensor", [g, u])
            h = self.op("add", "add.Tensor",
                        [h, self.linear(p, f"layers.{i}.mlp.down_proj.weight")])
        n = self.norm(h, "norm.weight")
        self.out = self.linear(n, "lm_head.weight")

    def op(self, base, target, args, shape="8, 64"):
        k = self.count.get(base, 0)
        self.count[base] = k + 1
        name = base if k == 0 else f"{base}_{k}"
        self.nodes.append((name, target, args, shape))
        return name

    def weight(self, path, shape="64, 64"):
        name = "p_" + path.replace(".", "_")
        self.weights.append((name, path, shape))
        return name

    def norm(self, x, path):
        w = self.weight(path, "64")
        sq = self.op("pow", "pow.Tensor_Scalar", [x, "2"])
        m = self.op("mean", "mean.dim", [sq, "[-1]", "True"], "8, 1")
        e = self.op("add", "add.Tensor", [m, "1e-05"], "8, 1")
        r = self.op("rsqrt", "rsqrt.default", [e], "8, 1")
        return self.op("mul", "mul.Tensor",
                       [w, self.op("mul", "mul.Tensor", [x, r])])

    def linear(self, x, path):
        return self.op("linear", "linear.default", [x, self.weight(path)])


def body(model, indent, renames=()):
    lines = [f"{new} = {old}" for new, old in renames] + [""]
    for i, (name, target, args, shape) in enumerate(model.nodes):
        if i % 7 == 0:
            lines += ["", f" # File: model.py:{10 + i} in forward, code: "
                      f"h = step{i}(h)"]
        lines.append(f'{name}: "bf16[{shape}]" = torch.ops.aten.{target}'
                     f'({", ".join(args)})')
    lines.append(f"return ({model.out},)")
    return "".join((indent + x if x else "") + "\n" for x in lines)


def exported(model):
    params = ", ".join(f'{n}: "bf16[{s}]"' for n, _, s in model.weights)
    signature = "".join(f"    {n}: PARAMETER target='{p}'\n"
                        for n, p, _ in model.weights)
    return ("ExportedProgram:\n    class GraphModule(torch.nn.Module):\n"
            f'        def forward(self, {params}, ids: "i64[8]"):\n'
            + body(model, " " * 12)
            + "\nGraph signature: \n    # inputs\n" + signature
            + "    ids: USER_INPUT\n\n    # outputs\n"
            f"    {model.out}: USER_OUTPUT\n\nRange constraints: {{}}\n")


def aot(model):
    """Without names of weights."""
    names = {n: f"primals_{i + 1}" for i, (n, _, _) in enumerate(model.weights)}
    names["ids"] = f"primals_{len(names) + 1}"
    params = "".join(f'        {names[n]}: "bf16[{s}]",\n'
                     for n, _, s in model.weights)
    lines = [f'        {name}: "bf16[{shape}]" = torch.ops.aten.{target}'
             f'({", ".join(names.get(a, a) for a in args)});  '
             f"{name}_unused = None\n"
             for name, target, args, shape in model.nodes]
    return ("class GraphModule(torch.nn.Module):\n    def forward(\n"
            f'        self,\n{params}        {names["ids"]}: "i64[8]",\n    ):\n'
            + "".join(lines) + f"        return ({model.out},)\n")


def dynamo(model):
    def long(path):
        *modules, last = path.split(".")
        return ("L_self_modules_" + "_modules_".join(modules)
                + f"_parameters_{last}_")
    params = ", ".join(f'{long(p)}: "bf16[{s}]"' for _, p, s in model.weights)
    renames = [(n, long(p)) for n, p, _ in model.weights]
    renames.append(("ids", "L_ids_"))
    return ("class GraphModule(torch.nn.Module):\n"
            f'    def forward(self, {params}, L_ids_: "i64[8]"):\n'
            + body(model, " " * 8, renames))


def log(model):
    stamp = "V1206 15:18:{:02}.925000 1500233 torch/x.py:1288] [0/0] [__{}] "
    out = ""
    for second, artifact, title, text in (
            (1, "graph_code", " ===== __compiled_fn_1 =====", dynamo(model)),
            (2, "aot_graphs", " ===== Forward graph 0 =====", aot(model))):
        lines = ["TRACED GRAPH", title, *text.splitlines()]
        out += "".join(stamp.format(second, artifact) + x + "\n" for x in lines)
    return out


def trace(model):
    out = ""
    for second, key, text in (
            (1, '"chromium_event": {}', '{"ph": "B"}\n'),
            (2, '"dynamo_output_graph": {"sizes": {}}', dynamo(model)),
            (3, '"aot_forward_graph": {}', aot(model)),
            (4, '"inductor_output_code": {"filename": "x.py"}',
             inductor(model))):
        out += (f"V1206 15:18:{second:02}.925000 1500233 torch/x.py:1288] "
                f'{{{key}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0, '
                '"has_payload": "490a3a38ce10390374e403dd6e063c7f"}\n')
        out += "".join("\t" + x + "\n" if x else "\n"
                       for x in text.splitlines())
    return out


def percent(args, names):
    return ", ".join("%" + a if a in names else a for a in args)


def users(model, name):
    return sum(name in args for _, _, args, _ in model.nodes) or 1


def graph_str(model):
    names = {n for n, *_ in model.nodes} | {n for n, *_ in model.weights}
    names.add("ids")
    out = "graph():\n    %ids : [num_users=1] = placeholder[target=ids]\n"
    for name, path, _ in model.weights:
        out += f"    %{name} : [num_users=1] = get_attr[target={path}]\n"
    for name, target, args, _ in model.nodes:
        out += (f"    %{name} : [num_users={users(model, name)}] = "
                f"call_function[target=torch.ops.aten.{target}]"
                f"(args = ({percent(args, names)}), kwargs = {{}})\n")
    return out + f"    return ({model.out},)\n"


def table(model):
    rows = [("opcode", "name", "target", "args", "kwargs"), None,
            ("placeholder", "ids", "ids", "()", "{}")]
    rows += [("get_attr", n, p, "()", "{}") for n, p, _ in model.weights]
    rows += [("call_function", n, "aten." + t,
              f'({", ".join(a)}{"," if len(a) == 1 else ""})', "{}")
             for n, t, a, _ in model.nodes]
    rows.append(("output", "output", "output", f"(({model.out},),)", "{}"))
    width = [max(len(r[i]) for r in rows if r) for i in range(5)]
    rows[1] = tuple("-" * w for w in width)
    return "".join("  ".join(c.ljust(w) for c, w in zip(r, width)) + "\n"
                   for r in rows)


def inductor(model):
    names = {n for n, *_ in model.nodes} | {n for n, *_ in model.weights}
    names.add("ids")
    out = ("from torch._inductor.async_compile import AsyncCompile\n"
           "async_compile = AsyncCompile()\n\n")
    calls, part, number = "", [], 0
    for node in model.nodes:
        if not node[1].startswith("linear"):
            part.append(node)
            continue
        if part:
            kernel = f"triton_poi_fused_{part[0][1].split('.')[0]}_{number}"
            source = ("# Topologically Sorted Source Nodes: ["
                      f"{', '.join(n for n, *_ in part)}], Original ATen: ["
                      + ", ".join(sorted({"aten." + t.split(".")[0]
                                          for _, t, _, _ in part})) + "]\n")
            out += (source + "# Graph fragment:\n" + "".join(
                f"#   %{n} : [num_users={users(model, n)}] = call_function["
                f"target=torch.ops.aten.{t}](args = ({percent(a, names)}), "
                "kwargs = {})\n" for n, t, a, _ in part))
            out += (f"{kernel} = async_compile.triton('{kernel}', '''\n"
                    "@triton.jit\n''', device_str='cuda')\n\n")
            calls += f"    {source}    {kernel}.run(buf{number}, 512)\n"
            number, part = number + 1, []
        calls += (f"    # Topologically Sorted Source Nodes: [{node[0]}], "
                  "Original ATen: [aten.linear]\n"
                  f"    extern_kernels.mm(buf{number}, out=buf{number})\n")
    return out + "def call(args):\n" + calls + "    return (buf0,)\n"


def run(model, steps=3):
    """A Kineto trace of the compiled program: its calls in order, `steps`
    times."""
    events, now, number = [], 1000.0, 1
    calls = re.findall(r"^    (triton_\w+|extern_kernels)\.", inductor(model),
                       re.M)
    for step in range(steps):
        begin = now
        for position, call in enumerate(calls):
            product = call == "extern_kernels"
            launch = dict(pid=1, tid=1, ph="X")
            events.append({**launch, "cat": "cpu_op",
                           "name": "aten::mm" if product else call,
                           "ts": now, "dur": 9.0,
                           "args": {"External id": number}})
            events.append({**launch, "cat": "cuda_runtime",
                           "name": "cudaLaunchKernel", "ts": now + 3,
                           "dur": 4.0, "args": {"correlation": number}})
            events.append({
                "ph": "X", "cat": "kernel", "pid": 0, "tid": 7,
                "name": "sm90_xmma_gemm_bf16bf16_bf16f32" if product else call,
                "ts": now + 8, "dur": (12.0 if product else 4.0) + position % 3,
                "args": {"correlation": number, "device": 0, "stream": 7}})
            now, number = now + 20, number + 1
        for cat, name, early in (
                ("cpu_op", "Torch-Compiled Region: 0/0", 8.0),
                ("user_annotation", "## Call CompiledFxGraph fab12 ##", 4.0)):
            events.append({"ph": "X", "cat": cat, "name": name, "pid": 1,
                           "tid": 1, "ts": begin - early,
                           "dur": now - begin + early, "args": {}})
        now += 50
    return json.dumps({"schemaVersion": 1, "traceEvents": events},
                      separators=(",", ":")).replace("},{", "},\n{") + "\n"


HLO = {"add": "add", "mul": "multiply", "silu": "logistic", "rsqrt": "rsqrt",
       "pow": "power", "mean": "negate", "clamp": "abs", "embedding": "gather",
       "linear": "dot"}


def stablehlo(model):
    """The same dataflow; a StableHLO op for each node."""
    def kind(shape):
        return "tensor<" + shape.replace(", ", "x") + "xbf16>"
    shape = {n: s for n, _, s in model.weights}
    shape.update({n: s for n, _, _, s in model.nodes}, ids="8")
    params = ", ".join(f"%{n}: {kind(s)} loc(\"params['{p}']\")"
                       for n, p, s in model.weights)
    out = ("module @jit_forward attributes {mhlo.num_partitions = 1 : i32} {\n"
           f"  func.func public @main({params}, %ids: tensor<8xbf16>) -> "
           "(tensor<8x64xbf16> {jax.result_info = \"\"}) {\n")
    for name, target, args, s in model.nodes:
        values = [a for a in args if a in shape]
        op = HLO[target.split(".")[0]]
        types = ", ".join(kind(shape[a]) for a in values)
        out += (f"    %{name} = stablehlo.{op} "
                f"{', '.join('%' + a for a in values)} : ({types}) -> "
                f"{kind(s)}\n")
    return out + f"    return %{model.out} : tensor<8x64xbf16>\n  }}\n}}\n"


def hlo(model):
    def kind(shape):
        return f"bf16[{shape.replace(' ', '')}]"
    shape = {n: s for n, _, s in model.weights}
    out = "HloModule jit_forward, is_scheduled=true\n\nENTRY %main.1 {\n"
    for i, (name, path, s) in enumerate(model.weights):
        out += (f"  %{name} = {kind(s)} parameter({i}), metadata={{"
                f"op_name=\"params['{path}']\"}}\n")
    out += f"  %ids = bf16[8] parameter({len(model.weights)})\n"
    shape.update({n: s for n, _, _, s in model.nodes}, ids="8")
    for name, target, args, s in model.nodes:
        values = [a for a in args if a in shape]
        root = "ROOT " if name == model.out else ""
        out += (f"  {root}%{name} = {kind(s)} {HLO[target.split('.')[0]]}("
                + ", ".join(f"{kind(shape[a])} %{a}" for a in values) + ")\n")
    return out + "}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--odd", type=int, default=2)
    parser.add_argument("--run", type=pathlib.Path,
                        help="also a trace of the compiled program")
    args = parser.parse_args()
    model = Model(args.layers, args.odd)
    args.output.mkdir(parents=True, exist_ok=True)
    for name, text in (("exported_program.txt", exported(model)),
                       ("dynamo_graph.py", dynamo(model)),
                       ("aot_forward_graph.txt", aot(model)),
                       ("torch_logs.log", log(model)),
                       ("torch_trace.log", trace(model)),
                       ("graph_str.txt", graph_str(model)),
                       ("graph_table.txt", table(model)),
                       ("output_code.py", inductor(model)),
                       ("stablehlo.mlir", stablehlo(model)),
                       ("module.hlo", hlo(model))):
        (args.output / name).write_text(text)
    if args.run:
        args.run.write_text(run(model))


if __name__ == "__main__":
    main()
