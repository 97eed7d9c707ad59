#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dumps that no compiler's documentation shows: graphs in graphs, loops and
branches, several models in a file, types and shapes that are new, no op at all.
Each is read as what it says, prints back byte for byte, and no command of graphs
fails on it."""
import json
import pathlib
import subprocess

import common
from common import temporary

FILES = {}
FILES["a_while.hlo"] = r'''HloModule jit_scan, entry_computation_layout={(f32[8,64]{1,0}, f32[4,64,64]{2,1,0})->f32[8,64]{1,0}}

%region_add.10 (a.1: f32[], b.1: f32[]) -> f32[] {
  %a.1 = f32[] parameter(0)
  %b.1 = f32[] parameter(1)
  ROOT %add.9 = f32[] add(f32[] %a.1, f32[] %b.1)
}

%body.20 (arg.1: (s32[], f32[8,64], f32[4,64,64])) -> (s32[], f32[8,64], f32[4,64,64]) {
  %arg.1 = (s32[], /*index=1*/f32[8,64]{1,0}, f32[4,64,64]{2,1,0}) parameter(0)
  %gte.0 = s32[] get-tuple-element(%arg.1), index=0
  %gte.1 = f32[8,64]{1,0} get-tuple-element(%arg.1), index=1
  %gte.2 = f32[4,64,64]{2,1,0} get-tuple-element(%arg.1), index=2
  %one.1 = s32[] constant(1)
  %next.1 = s32[] add(%gte.0, %one.1)
  %zero.1 = s32[] constant(0)
  %slice.1 = f32[1,64,64]{2,1,0} dynamic-slice(%gte.2, %gte.0, %zero.1, %zero.1), dynamic_slice_sizes={1,64,64}
  %w.1 = f32[64,64]{1,0} bitcast(%slice.1)
  %dot.1 = f32[8,64]{1,0} dot(%gte.1, %w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(scan)/while/body/mlp/dot_general" source_file="m.py" source_line=12}
  ROOT %tuple.1 = (s32[], f32[8,64]{1,0}, f32[4,64,64]{2,1,0}) tuple(%next.1, %dot.1, %gte.2)
}

%cond.30 (arg.2: (s32[], f32[8,64], f32[4,64,64])) -> pred[] {
  %arg.2 = (s32[], f32[8,64]{1,0}, f32[4,64,64]{2,1,0}) parameter(0)
  %gte.3 = s32[] get-tuple-element(%arg.2), index=0
  %four.1 = s32[] constant(4)
  ROOT %lt.1 = pred[] compare(%gte.3, %four.1), direction=LT
}

ENTRY %main.40 (x.1: f32[8,64], ws.1: f32[4,64,64]) -> f32[8,64] {
  %x.1 = f32[8,64]{1,0} parameter(0), metadata={op_name="x"}
  %ws.1 = f32[4,64,64]{2,1,0} parameter(1), metadata={op_name="params[\'layers\'][\'kernel\']"}
  %zero.2 = s32[] constant(0)
  %init.1 = (s32[], f32[8,64]{1,0}, f32[4,64,64]{2,1,0}) tuple(%zero.2, %x.1, %ws.1)
  %while.1 = (s32[], f32[8,64]{1,0}, f32[4,64,64]{2,1,0}) while(%init.1), condition=%cond.30, body=%body.20, backend_config={"known_trip_count":{"n":"4"}}
  %out.1 = f32[8,64]{1,0} get-tuple-element(%while.1), index=1
  %zf.1 = f32[] constant(0)
  %reduce.1 = f32[8]{0} reduce(%out.1, %zf.1), dimensions={1}, to_apply=%region_add.10
  %b.2 = f32[8,64]{1,0} broadcast(%reduce.1), dimensions={0}
  ROOT %res.1 = f32[8,64]{1,0} add(%out.1, %b.2)
}
'''
FILES["b_nested.hlo"] = r'''HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }

ENTRY e {
  p0 = (f32[2]{0}, (bf16[2,3]{1,0}, s4[8]{0:E(4)})) parameter(0)
  t = (bf16[2,3]{1,0}, s4[8]{0:E(4)}) get-tuple-element(p0), index=1
  a = bf16[2,3]{1,0} get-tuple-element(t), index=0
  q = f8e4m3fn[2,3]{1,0:T(8,128)(4,1)S(1)} convert(a)
  s = f8e5m2fnuz[<=2,3]{1,0} convert(q)
  c = f32[2,2]{1,0} constant({ { 1, 2 }, { 3, 4 } })
  str = f32[] custom-call(q), custom_call_target="my \"quoted\" target", backend_config="{\"a\":{}}"
  tok = token[] after-all()
  snd = (f32[2,2]{1,0}, u32[], token[]) send(c, tok), channel_id=1
  ar-start = (f32[2,2]{1,0}, f32[2,2]{1,0}) all-reduce-start(c), replica_groups={{0,1},{2,3}}, to_apply=add
  ar-done = f32[2,2]{1,0} all-reduce-done(ar-start), control-predecessors={snd}
  cond = f32[2,2]{1,0} conditional(c, ar-done, ar-done), branch_computations={b0, b1}
  ROOT r = (f32[2,2]{1,0}, token[]) tuple(cond, tok)
}

b0 { x = f32[2,2] parameter(0)  ROOT n = f32[2,2] negate(x) }
'''
FILES["c_regions.mlir"] = r'''#loc0 = loc("x")
module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<?x64xbf16> {jax.arg_info = "params['layers_0']['mlp']['kernel']"}, %arg1: tensor<4xi1>) -> (tensor<?xf32> {jax.result_info = ""}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<[0, 1]> : tensor<2xi64>
    %0 = stablehlo.convert %arg0 : (tensor<?x64xbf16>) -> tensor<?x64xf32>
    %1 = stablehlo.reduce(%0 init: %cst) across dimensions = [1] : (tensor<?x64xf32>, tensor<f32>) -> tensor<?xf32>
     reducer(%a: tensor<f32>, %b: tensor<f32>)  {
      %9 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %9 : tensor<f32>
    }
    %2:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %1) : tensor<2xi64>, tensor<?xf32>
     cond {
      %8 = stablehlo.compare  LT, %iterArg, %c,  SIGNED : (tensor<2xi64>, tensor<2xi64>) -> tensor<i1>
      stablehlo.return %8 : tensor<i1>
    } do {
      %8 = func.call @closed_call(%iterArg_0) : (tensor<?xf32>) -> tensor<?xf32>
      stablehlo.return %iterArg, %8 : tensor<2xi64>, tensor<?xf32>
    }
    %3 = "stablehlo.case"(%c) ({
      %8 = stablehlo.negate %2#1 : tensor<?xf32>
      stablehlo.return %8 : tensor<?xf32>
    }, {
      stablehlo.return %2#1 : tensor<?xf32>
    }) : (tensor<2xi64>) -> tensor<?xf32>
    %4 = call @_where(%arg1, %3) : (tensor<4xi1>, tensor<?xf32>) -> tensor<?xf32>
    %5 = stablehlo.custom_call @foo(%4) {backend_config = "{\"k\": [1, 2]}", api_version = 2 : i32} : (tensor<?xf32>) -> tensor<?xf32>
    return %5 : tensor<?xf32>
  }
  func.func private @closed_call(%arg0: tensor<?xf32>) -> tensor<?xf32> {
    %0 = stablehlo.exponential %arg0 : tensor<?xf32>
    return %0 : tensor<?xf32>
  }
  func.func private @_where(%arg0: tensor<4xi1>, %arg1: tensor<?xf32>) -> tensor<?xf32> {
    return %arg1 : tensor<?xf32>
  }
}
'''
FILES["d_cond.py"] = r'''class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[s0, 4]", s0: "Sym(s0)"):
        l_x_ = L_x_

         # File: /a.py:3 in f, code: return torch.cond(p, t, f, (x,))
        sum_1: "f32[]" = l_x_.sum()
        gt: "b8[]" = sum_1 > 0;  sum_1 = None
        cond_true_0 = self.cond_true_0
        cond_false_0 = self.cond_false_0
        cond = torch.ops.higher_order.cond(gt, cond_true_0, cond_false_0, [l_x_]);  gt = cond_true_0 = cond_false_0 = l_x_ = None
        getitem: "f32[s0, 4]" = cond[0];  cond = None
        while_loop_cond_fn_0 = self.while_loop_cond_fn_0
        while_loop_body_fn_0 = self.while_loop_body_fn_0
        while_loop = torch.ops.higher_order.while_loop(while_loop_cond_fn_0, while_loop_body_fn_0, (getitem,), (s0,));  while_loop_cond_fn_0 = while_loop_body_fn_0 = getitem = s0 = None
        getitem_1: "f32[s0, 4]" = while_loop[0];  while_loop = None
        return (getitem_1,)

    class cond_true_0(torch.nn.Module):
        def forward(self, l_x_: "f32[s0, 4]"):
            cos: "f32[s0, 4]" = l_x_.cos();  l_x_ = None
            return (cos,)

    class cond_false_0(torch.nn.Module):
        def forward(self, l_x_: "f32[s0, 4]"):
            return (l_x_,)

    class while_loop_cond_fn_0(torch.nn.Module):
        def forward(self, arg0: "f32[s0, 4]", s0: "Sym(s0)"):
            any_1: "b8[]" = arg0.any();  arg0 = None
            return any_1

    class while_loop_body_fn_0(torch.nn.Module):
        def forward(self, arg0: "f32[s0, 4]", s0: "Sym(s0)"):
            add: "f32[s0, 4]" = arg0 + 1;  arg0 = None
            return (add,)
'''
FILES["h_dtypes.py"] = r'''class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f4_e2m1fn_x2[8, 16]", arg1_1: "bits8[4]", arg2_1: "u8[u0, s1 + 2*s2]", arg3_1: "Sym(s1)", arg4_1: "f8e8m0fnu[8, 1]", arg5_1: "NestedTensor(f32[3, j1, 4])", arg6_1: "DTensor(bf16[8, 16], Shard(dim=0), Replicate())", *rest, flag: "Sym(True)" = True):
        # No stacktrace found for following nodes
        view: "f8e8m0fnu[8]" = torch.ops.aten.view.default(arg4_1, [8]);  arg4_1 = None
        convert: "bf16[8, Max(1, s1//2)]" = torch.ops.prims.convert_element_type.default(arg0_1, torch.bfloat16)
        mul: "Sym(s1*(s1 - 1))" = arg3_1 * (arg3_1 - 1)
        getitem = rest[0]
        add_: "bf16[8, Max(1, s1//2)]" = torch.ops.aten.add_.Tensor(convert, 1, alpha = float('inf'))
        topk = torch.ops.aten.topk.default(add_, 2)
        values: "bf16[8, 2]" = topk[0]
        indices: "i64[8, 2]" = topk.indices
        matmul: "bf16[8, 2]" = values @ indices.T
        not_1: "b8[8, 2]" = ~matmul
        index_put: "bf16[8, 2]" = torch.ops.aten.index_put.default(values, [None, indices], matmul, True)
        s = 'a"b,(c' + "d"
        return [index_put, not_1, {"k": (s, view)}, mul]
'''
FILES["i_two_models.py"] = r'''class A(torch.nn.Module):
    def forward(self, x: "f32[2]"):
        # File: a.py:1 in f, code: return x.relu()
        relu: "f32[2]" = torch.ops.aten.relu.default(x);  x = None
        return relu


class A(torch.nn.Module):
    def forward(self, x: "f32[3]"):
        sin: "f32[3]" = torch.ops.aten.sin.default(x);  x = None
        return (sin, None)
class B(torch.nn.Module):
	def forward(self, x):
		cos = torch.cos(x)
		if_1 = cos if x else None
		for i in range(3):
		    pass
		with torch.no_grad():
		    z = cos + 1
		x.add_(1)
		cos[0] = z
		return cos
'''
FILES["e_two.txt"] = r'''graph():
    %x : [num_users=2] = placeholder[target=x](default=None)
    %y : torch.Tensor [num_users=1] = placeholder[target=y]
    %lin : [num_users=1] = call_module[target=layers.0.fc](args = (%x,), kwargs = {})
    %split : [num_users=2] = call_function[target=torch.split](args = (%lin, [1, 2]), kwargs = {dim: -1})
    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%split, 0), kwargs = {})
    %ein : [num_users=1] = call_function[target=torch.functional.einsum](args = (bij,bjk->bik, %getitem, %x), kwargs = {})
    %cat : [num_users=1] = call_function[target=torch.cat](args = ([%ein, %y],), kwargs = {dim: 1, out: None})
    return {'a': cat, 'b': (x, None)}

graph():
    %x : [num_users=1] = placeholder[target=x]
    %slice_1 : [num_users=1] = call_function[target=operator.getitem](args = (%x, (slice(None, None, None), Ellipsis, None)), kwargs = {})
    return slice_1
'''
# No line is indented: those of values look like nodes of AutoDeploy.
FILES["l_flat.mlir"] = r'''func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
%0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
return %0 : tensor<4xf32>
}
'''
FILES["k_generic.mlir"] = r'''"builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{function_type = (tensor<2x4xf32>) -> tensor<2x4xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<2x4xf32> loc("x")):
    %0 = "stablehlo.constant"() <{value = dense<"0x0000803F000000400000404000008040"> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
    %1:2 = "stablehlo.while"(%arg0, %0) ({
    ^bb0(%a: tensor<2x4xf32>, %b: tensor<2x2xf32>):
      %c = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }, {
    ^bb0(%a: tensor<2x4xf32>, %b: tensor<2x2xf32>):
      %s = "stablehlo.add"(%a, %a) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      "stablehlo.return"(%s, %b) : (tensor<2x4xf32>, tensor<2x2xf32>) -> ()
    }) : (tensor<2x4xf32>, tensor<2x2xf32>) -> (tensor<2x4xf32>, tensor<2x2xf32>)
    %2 = "stablehlo.all_reduce"(%1#0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%z) : (tensor<f32>) -> ()
    }) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    "func.return"(%2) : (tensor<2x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
'''
FILES["l_tab.txt"] = r'''opcode         name      target                                                  args                     kwargs
-------------  --------  ------------------------------------------------------  -----------------------  ------------------
placeholder    x         x                                                       ()                       {}
get_attr       w         layers.0.mlp.up_proj.weight                             ()                       {}
call_function  linear    <built-in function linear>                              (x, w)                   {'bias': None}
call_method    view      view                                                    (linear, -1, 'a  b')     {}
call_module    act       layers.0.act                                            (view,)                  {}
call_function  add       <built-in function add>                                 (act, x)                 {}
output         output    output                                                  ((add,),)                {}
'''
FILES["m_inductor.py"] = r'''# AOT ID: ['0_inference']
import torch
async_compile = AsyncCompile()

# kernel path: /tmp/x.py
# Topologically Sorted Source Nodes: [x, y], Original ATen: [aten.add, aten.relu]
# Source node to ATen node mapping:
#   x => add
#   y => relu
# Graph fragment:
#   %arg0_1 : Tensor "f32[8, 16][16, 1]cuda:0" = PlaceHolder[target=arg0_1]
#   %add : Tensor "f32[8, 16][16, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%arg0_1, 1), kwargs = {alpha: 2})
#   %relu : Tensor "f32[8, 16][16, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%add,), kwargs = {})
#   return %relu
triton_poi_fused_add_relu_0 = async_compile.triton('triton_poi_fused_add_relu_0', """
import triton
""", device_str='cuda')

def call(args):
    arg0_1, = args
    triton_poi_fused_add_relu_0.run(arg0_1, buf0, 128, stream=stream0)
    extern_kernels.mm(buf0, arg1_1, out=buf1)
    return (buf0, )
'''
FILES["empty.py"] = """class GraphModule(torch.nn.Module):
    def forward(self):
        return ()
"""
FILES["empty.txt"] = """graph():
    return None
"""


def call(*args):
    return subprocess.run([common.LAMINA, "graph", *map(str, args)],
                          capture_output=True, text=True)


def tables(path, *args):
    done = call("print", path, "--format", "json", *args)
    if done.returncode != 0:
        raise SystemExit(f"{path}: {done.stderr}")
    return json.loads(done.stdout)["tables"]


def nodes(found, section):
    """name -> (op, operands, shape, dtype) of a graph."""
    return {r["name"]: (r["op"], r["operands"], r["shape"], r["dtype"])
            for r in found["nodes"] if r["section"] == section}


def sections(found):
    return {r["section"]: (r["placeholders"], r["ops"], r["weights"])
            for r in found["sections"]}


def check_hlo(checks, work):
    got = tables(work / "a_while.hlo")
    checks.equal("called computations", sections(got), {
        "region_add.10": (2, 1, 0), "body.20": (1, 10, 0), "cond.30": (1, 3, 0),
        "main.40": (1, 8, 1)})
    checks.equal("weight of a loop", [(r["name"], r["shape"])
                                      for r in got["weights"]],
                 [("params_layers_kernel", "4x64x64")])
    got = tables(work / "b_nested.hlo")
    entry = nodes(got, "e")
    checks.equal("a tuple in a tuple", entry["p0"][2:],
                 ("(2, ?)", "(torch.float32, ?)"))
    checks.equal("four bits", entry["t"][3], "(torch.bfloat16, torch.int4)")
    checks.equal("tiles and memory space", entry["q"],
                 ("aten.to.dtype", "a", "2x3", "torch.float8_e4m3fn"))
    checks.equal("quotes in a target", entry["str"][1],
                 'q, custom_call_target="my \\"quoted\\" target"')
    checks.equal("two instructions in a line", nodes(got, "b0").get("n"),
                 ("hlo.negate", "x", "2x2", "torch.float32"))


def check_mlir(checks, work):
    got = tables(work / "c_regions.mlir")
    checks.equal("functions and regions", sections(got), {
        "main": (1, 8, 1), "closed_call": (1, 1, 0), "_where": (2, 0, 0),
        "main.while_0.cond": (3, 1, 0), "main.while_0.body": (2, 1, 0),
        "main.case_0.branch_0": (1, 1, 0), "main.case_0.branch_1": (1, 0, 0)})
    main = nodes(got, "main")
    checks.equal("a loop of two values", main["2"][2:],
                 ("(2, ?)", "(torch.int64, torch.float32)"))
    checks.equal("a call", main["4"][:2], ("call._where", "%arg1, %3"))
    checks.equal("a custom call", main["5"][1].split(", {")[0], "@foo, %4")
    checks.equal("no text of a region", main["3"][1], "%c, %2#1")
    body = nodes(got, "main.while_0.body")
    checks.equal("a call in a loop", body["8"],
                 ("call.closed_call", "%iterArg_0", "?", "torch.float32"))
    line = next(r["line"] for r in got["nodes"]
                if r["section"] == "main.while_0.body" and r["name"] == "8")
    text = (work / "c_regions.mlir").read_text().splitlines()
    checks.true(f"its line {line}", "@closed_call(%iterArg_0)" in text[line - 1])
    checks.equal("argument of a loop", body["iterArg"][2:],
                 ("2", "torch.int64"))
    got = tables(work / "k_generic.mlir")
    checks.equal("regions of the generic form", sections(got), {
        "main": (1, 3, 0), "main.while_0.cond": (2, 1, 0),
        "main.while_0.body": (2, 1, 0)})
    main = nodes(got, "main")
    checks.equal("a generic loop", main["1"], (
        "stablehlo.while", "%arg0, %0", "(2x4, 2x2)",
        "(torch.float32, torch.float32)"))
    checks.equal("attributes without the region", main["2"][1], (
        "%1#0, <{channel_handle = #stablehlo.channel_handle<handle = 1, type = "
        "1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>"))
    # One of them alone.
    flat = tables(work / "l_flat.mlir")
    checks.equal("values at the beginning of lines", sections(flat),
                 {"main": (1, 1, 0)})
    checks.equal("their ops", nodes(flat, "main"),
                 nodes(tables(work / "l_flat.mlir", "--dialect", "mlir"), "main"))
    one = tables(work / "c_regions.mlir", "--section", "main.while_0.body")
    checks.equal("one region", list(sections(one)), ["main.while_0.body"])


def check_fx(checks, work):
    got = tables(work / "d_cond.py")
    checks.equal("graphs in a graph", sections(got), {
        "GraphModule": (2, 6, 0), "GraphModule.cond_true_0": (1, 1, 0),
        "GraphModule.cond_false_0": (1, 0, 0),
        "GraphModule.while_loop_cond_fn_0": (2, 1, 0),
        "GraphModule.while_loop_body_fn_0": (2, 1, 0)})
    main = nodes(got, "GraphModule")
    checks.equal("a branch", main["cond"][:2], (
        "higher_order.cond", "gt, cond_true_0, cond_false_0, [l_x_]"))
    got = nodes(tables(work / "h_dtypes.py"), "<lambda>")
    for name, want in (("arg0_1", ("8x16", "f4_e2m1fn_x2")),
                       ("arg2_1", ("u0x(s1 + 2*s2)", "torch.uint8")),
                       ("arg3_1", ("scalar", "SymInt")),
                       ("arg4_1", ("8x1", "torch.float8_e8m0fnu")),
                       ("arg5_1", ("3xj1x4", "torch.float32")),
                       ("arg6_1", ("8x16", "torch.bfloat16")),
                       ("convert", ("8x(Max(1, s1//2))", "torch.bfloat16"))):
        checks.equal(name, got[name][2:], want)
    checks.equal("several models", list(sections(tables(
        work / "i_two_models.py"))), ["A", "A_1", "B"])
    got = nodes(tables(work / "m_inductor.py"), "output_code")
    checks.equal("inputs of fragments", got["arg0_1"][2:],
                 ("8x16", "torch.float32"))
    got = nodes(tables(work / "l_tab.txt"), "graph")
    checks.equal("two blanks in a cell", got["view"][1], "linear, -1, 'a  b'")
    found = tables(work / "e_two.txt")
    checks.equal("several graphs", sections(found),
                 {"graph": (2, 5, 0), "graph_1": (1, 1, 0)})


def main():
    checks = common.Checks()
    with temporary() as folder:
        work = pathlib.Path(folder)
        for name, text in FILES.items():
            path = work / name
            path.write_text(text)
            done = subprocess.run([common.LAMINA, "graph", "print", path],
                                  capture_output=True)
            checks.equal(f"{name}: prints back", (done.returncode, done.stdout),
                         (0, text.encode()))
            for command in ("layers", "census", "candidates"):
                done = call(command, path)
                checks.true(f"{command} {name}: {done.returncode} "
                            f"{done.stderr[-300:]}", done.returncode == 0)
            done = call("diff", path, path)
            checks.true(f"{name}: equal to itself: {done.stdout[:200]}",
                        done.returncode == 0 and "compute the same" in
                        done.stdout)
            done = call("layer", path, "-n", "shared", "-o",
                        work / "l.json", "--render", "dot")
            checks.true(f"{name}: drawn: {done.stderr[-300:]}",
                        done.returncode == 0 or (
                            done.returncode == 2 and "no op" in done.stderr))
        check_hlo(checks, work)
        check_mlir(checks, work)
        check_fx(checks, work)
    checks.finish()


if __name__ == "__main__":
    main()
