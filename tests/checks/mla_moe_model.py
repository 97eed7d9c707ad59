# SPDX-License-Identifier: Apache-2.0
"""A made model with latent attention and experts, as AutoDeploy dumps it behind
its last transform: layers with dense projections first, then with a router,
routed experts on the main stream, shared experts on a second one, their sum and
an all-reduce. And a made trace that replays it.

usage: mla_moe_model.py FOLDER   writes 086_compile_compile_model.txt, trace.json
"""
import json
import pathlib
import random
import sys

HIDDEN = 7168
HEADS = 16  # of this rank


class Dump:
    def __init__(self):
        self.lines = []
        self.shapes = {}
        self.count = {}

    def value(self, name, shape, dtype="bfloat16"):
        self.shapes[name] = (shape, dtype)
        self.lines.append(f"%{name} : {shape} : torch.{dtype}")
        return name

    def op(self, name, target, operands, shape, dtype="bfloat16"):
        """operands: names, ("weight", shape) or literals as text."""
        at = self.count.get(name, 0)
        self.count[name] = at + 1
        name = f"{name}_{at}" if at else name
        texts = []
        for one in operands:
            if isinstance(one, tuple):
                texts.append(f"%{one[0]} : {one[1]} : torch.{one[2]}")
            elif one.startswith("="):
                texts.append(one[1:])
            else:
                of, kind = self.shapes[one]
                kind = kind if kind in ("tuple",) else "torch." + kind
                texts.append(f"%{one} : {of} : {kind}")
        if isinstance(shape, list):
            result = ("(" + ", ".join(shape) + ") : (" +
                      ", ".join("torch." + d for d in dtype) + ")")
            self.shapes[name] = ("?", "tuple")
        else:
            result = f"{shape} : torch.{dtype}"
            self.shapes[name] = (shape, dtype)
        self.lines.append(f"%{name} = {target}({', '.join(texts)}) : {result}")
        return name

    def item(self, of, number, shape, dtype="bfloat16"):
        return self.op("getitem", "<built-in function getitem>",
                       [of, f"={number}"], shape, dtype)


def weight(layer, name, shape, dtype="bfloat16"):
    return (f"model_layers_{layer}_{name}", shape, dtype)


def linear(d, x, layer, name, rows, cols):
    return d.op("trtllm_finegrained_fp8_linear",
                "auto_deploy.trtllm_finegrained_fp8_linear.default",
                [x, weight(layer, name + "_weight", f"{rows}x{cols}",
                           "float8_e4m3fn"), "=None",
                 weight(layer, name + "_weight_scale_inv",
                        f"{rows // 128}x{cols // 128}", "float32")],
                f"s0x1x{rows}")


ADD_NORM = "<function flashinfer_fused_add_rms_norm at 0x7f30c5a2e0>"


def passthrough(d, what, x, device="0"):
    return d.op(f"{what}_aux_stream_passthrough",
                f"<function {what}_aux_stream_passthrough at 0x7f30c5b3f0>",
                [x, f"={device}"], d.shapes[x][0])


def dump_text(layers=6, dense=3):
    """The dump; layers before `dense` have no experts."""
    d = Dump()
    d.value("input_ids", "s0x1", "int32")
    d.value("position_ids", "s0x1", "int32")
    d.value("batch_info_host", "3", "int32")
    d.value("cu_seqlen", "65", "int32")
    d.value("cache_loc", "1024", "int32")
    for i in range(layers):
        d.value(f"mla_cache_{i}", "2048x64x576")
    x = d.op("embedding", "aten.embedding.default",
             [("model_embed_tokens_weight", f"129280x{HIDDEN}", "bfloat16"),
              "input_ids"], f"s0x1x{HIDDEN}")
    residual = x
    for i in range(layers):
        norm = weight(i, "input_layernorm_weight", f"{HIDDEN}")
        if i == 0:
            h = d.op("flashinfer_rms_norm", "auto_deploy.flashinfer_rms_norm."
                     "default", [x, norm, "=1e-06"], f"s0x1x{HIDDEN}")
        else:
            both = d.op("fused_add_rms_norm", ADD_NORM,
                        [x, residual, norm, "=1e-06"],
                        [f"s0x1x{HIDDEN}"] * 2, ["bfloat16"] * 2)
            h = d.item(both, 0, f"s0x1x{HIDDEN}")
            residual = d.item(both, 1, f"s0x1x{HIDDEN}")
        x = attention(d, h, i)
        both = d.op("fused_add_rms_norm", ADD_NORM,
                    [x, residual, weight(i, "post_attention_layernorm_weight",
                                         f"{HIDDEN}"), "=1e-06"],
                    [f"s0x1x{HIDDEN}"] * 2, ["bfloat16"] * 2)
        h = d.item(both, 0, f"s0x1x{HIDDEN}")
        residual = d.item(both, 1, f"s0x1x{HIDDEN}")
        x = swiglu(d, h, i, "mlp", 2304) if i < dense else experts(d, h, i)
        x = d.op("trtllm_dist_all_reduce",
                 "auto_deploy.trtllm_dist_all_reduce.default", [x, "='AUTO'"],
                 f"s0x1x{HIDDEN}")
    both = d.op("fused_add_rms_norm", ADD_NORM,
                [x, residual, ("model_norm_weight", f"{HIDDEN}", "bfloat16"),
                 "=1e-06"], [f"s0x1x{HIDDEN}"] * 2, ["bfloat16"] * 2)
    h = d.item(both, 0, f"s0x1x{HIDDEN}")
    out = d.op("torch_linear_simple", "auto_deploy.torch_linear_simple.default",
               [h, ("lm_head_weight", f"16160x{HIDDEN}", "bfloat16"), "=None"],
               "s0x1x16160")
    line = "=" * 80
    return ("# Transform: compile_model\n# Stage: compile\n"
            f"# GraphModules found: 1\n\n\n{line}\n# GraphModule: model\n{line}"
            "\n\n" + "\n".join(d.lines) + f"\noutput %{out}\n")


def attention(d, h, i):
    a = "self_attn_"
    q = linear(d, h, i, a + "q_a_proj", 1536, HIDDEN)
    q = d.op("flashinfer_rms_norm", "auto_deploy.flashinfer_rms_norm.default",
             [q, weight(i, a + "q_a_layernorm_weight", "1536"), "=1e-06"],
             "s0x1x1536")
    q = linear(d, q, i, a + "q_b_proj", HEADS * 192, 1536)
    q = d.op("view", "aten.view.default", [q, f"=[s0, 1, {HEADS}, 192]"],
             f"s0x1x{HEADS}x192")
    parts = d.op("split_with_sizes", "aten.split_with_sizes.default",
                 [q, "=[128, 64]", "=-1"],
                 [f"s0x1x{HEADS}x128", f"s0x1x{HEADS}x64"], ["bfloat16"] * 2)
    q_nope = d.item(parts, 0, f"s0x1x{HEADS}x128")
    q_pe = d.item(parts, 1, f"s0x1x{HEADS}x64")
    kv = d.op("torch_linear_simple", "auto_deploy.torch_linear_simple.default",
              [h, weight(i, a + "kv_a_proj_with_mqa_weight", f"576x{HIDDEN}"),
               "=None"], "s0x1x576")
    parts = d.op("split_with_sizes", "aten.split_with_sizes.default",
                 [kv, "=[512, 64]", "=-1"], ["s0x1x512", "s0x1x64"],
                 ["bfloat16"] * 2)
    latent = d.item(parts, 0, "s0x1x512")
    k_pe = d.item(parts, 1, "s0x1x64")
    latent = d.op("flashinfer_rms_norm",
                  "auto_deploy.flashinfer_rms_norm.default",
                  [latent, weight(i, a + "kv_a_layernorm_weight", "512"),
                   "=1e-06"], "s0x1x512")
    k_pe = d.op("view", "aten.view.default", [k_pe, "=[s0, 1, 1, 64]"],
                "s0x1x1x64")
    both = d.op("triton_rope_on_interleaved_qk_inputs", "auto_deploy.triton_"
                "rope_on_interleaved_qk_inputs.default",
                [q_pe, k_pe, ("_ad_cos_sin_0", "4096x64", "float32"),
                 "position_ids"],
                [f"s0x1x{HEADS}x64", "s0x1x1x64"], ["bfloat16"] * 2)
    q_pe = d.item(both, 0, f"s0x1x{HEADS}x64")
    k_pe = d.item(both, 1, "s0x1x1x64")
    o = d.op("flashinfer_mla_with_cache",
             "auto_deploy.flashinfer_mla_with_cache.default",
             [q_nope, q_pe, latent, k_pe,
              weight(i, a + "kv_b_proj_weight", f"{HEADS * 256}x512"),
              "batch_info_host", "cu_seqlen", "cache_loc", f"mla_cache_{i}",
              "=0.1352"], f"s0x1x{HEADS}x128")
    o = d.op("view", "aten.view.default", [o, f"=[s0, 1, {HEADS * 128}]"],
             f"s0x1x{HEADS * 128}")
    o = linear(d, o, i, a + "o_proj", HIDDEN, HEADS * 128)
    return d.op("trtllm_dist_all_reduce",
                "auto_deploy.trtllm_dist_all_reduce.default", [o, "='AUTO'"],
                f"s0x1x{HIDDEN}")


def swiglu(d, h, i, name, inner):
    operands = [h]
    for one, shape in (("gate_proj", f"{inner}x{HIDDEN}"),
                       ("up_proj", f"{inner}x{HIDDEN}"),
                       ("down_proj", f"{HIDDEN}x{inner}")):
        operands.append(weight(i, f"{name}_{one}_weight", shape,
                               "float8_e4m3fn"))
    return d.op("fused_finegrained_fp8_swiglu_mlp",
                "auto_deploy.fused_finegrained_fp8_swiglu_mlp.default",
                operands, f"s0x1x{HIDDEN}")


def experts(d, h, i):
    fork = passthrough(d, "begin", h)
    logits = d.op("trtllm_dsv3_router_gemm_op",
                  "trtllm.dsv3_router_gemm_op.default",
                  [h, weight(i, "mlp_gate_weight", f"256x{HIDDEN}"), "=None",
                   "=torch.float32"], "s0x1x256", "float32")
    routed = d.op("noaux_tc_op", "trtllm.noaux_tc_op.default",
                  [logits, weight(i, "mlp_gate_e_score_correction_bias",
                                  "256", "float32"), "=8", "=4", "=8",
                   "=2.5"], ["s0x1x8", "s0x1x8"], ["float32", "int32"])
    scale = d.item(routed, 0, "s0x1x8", "float32")
    chosen = d.item(routed, 1, "s0x1x8", "int32")
    moe = d.op("trtllm_quant_finegrained_fp8_moe_fused", "auto_deploy.trtllm_"
               "quant_finegrained_fp8_moe_fused.default",
               [h, chosen, scale,
                (f"fused_moe_w3_w1_stacked_{i}", f"32x4096x{HIDDEN}",
                 "float8_e4m3fn"),
                (f"fused_moe_w2_stacked_{i}", f"32x{HIDDEN}x2048",
                 "float8_e4m3fn")], f"s0x1x{HIDDEN}")
    shared = swiglu(d, fork, i, "mlp_shared_experts", 256)
    shared = passthrough(d, "end", shared)
    moe = passthrough(d, "wait", moe)
    return d.op("add", "aten.add.Tensor", [moe, shared], f"s0x1x{HIDDEN}")


QUANT = ("void tensorrt_llm::kernels::fp8_blockscale_gemm::"
         "scale_1x128_kernel<__nv_bfloat16, __nv_fp8_e4m3>(...)", 2100)


def fp8(name, ns):
    return [QUANT, ("void deep_gemm::fp8_gemm_kernel<" + name + ", 64u, 128u, "
                    "128u, 1u, 4u>(__nv_bfloat16*, float*, int*)", ns)]


ALL_REDUCE = ("ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16("
              "ncclSymkDevWorkArgs)", 11200)


def attention_kernels():
    return [
        ("fused_add_rms_norm", [("void flashinfer::norm::FusedAddRMSNormKernel"
                                 "<8u, __nv_bfloat16>(...)", 3100)]),
        ("q_a_proj", fp8("1536u, 7168u", 8900)),
        ("q_a_layernorm", [("void flashinfer::norm::RMSNormKernel<8u, "
                            "__nv_bfloat16>(...)", 2050)]),
        ("q_b_proj", fp8("3072u, 1536u", 6300)),
        ("kv_a_proj", [("nvjet_sm100_tst_64x8_64x16_4x1_v_bz_splitK_TNT",
                        7400), ("void cublasLt::splitKreduce_kernel<32, 16, "
                                "int, float>(...)", 2300)]),
        ("kv_a_layernorm", [("void flashinfer::norm::RMSNormKernel<8u, "
                             "__nv_bfloat16>(...)", 1990)]),
        ("rope", [("void applyMLARopeAndAssignQKVKernelGeneration<"
                   "__nv_bfloat16, 256, 512, 64>(...)", 3300)]),
        ("mla", [("fmhaSm100fKernel_QkvBfloat16OBfloat16HQk576HV512"
                  "PagedKvDenseP64VarSeqQ16Kv128StaticSwapsAbForGen", 24100)]),
        ("o_proj", fp8("7168u, 2048u", 12800)),
        ("all_reduce", [ALL_REDUCE]),
        ("post_norm", [("void flashinfer::norm::FusedAddRMSNormKernel"
                        "<8u, __nv_bfloat16>(...)", 3080)])]


def swiglu_kernels(ns):
    return (fp8("gate_up", ns) +
            [("void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, "
              "&silu>(...)", 2500)] + fp8("down", ns * 2 // 3))


def layer_kernels(i, dense):
    """(node, kernels, on the second stream) in order of the launches."""
    out = [(name, list(kernels), False)
           for name, kernels in attention_kernels()]
    if i == 0:
        out[0] = ("rms_norm", [("void flashinfer::norm::RMSNormKernel<8u, "
                                "__nv_bfloat16>(...)", 2900)], False)
    if i < dense:
        out.append(("mlp", swiglu_kernels(26100), False))
    else:
        out += [
            ("router", [("void tensorrt_llm::kernels::dsv3MinLatencyKernels::"
                         "router_gemm_kernel_float_output<__nv_bfloat16, 128, "
                         "8, 16, 256, 7168>(...)", 5100)], False),
            ("topk", [("void tensorrt_llm::kernels::deepseek_v3_topk_kernel<"
                       "float, __nv_bfloat16, int, 256, true, 8>(...)", 4600)],
             False),
            ("moe", [("void moe::dev::routing::routingRenormalize::"
                      "routingIndicesClusterKernel<...>(...)", 6300),
                     ("bmm_E4m3_E4m3E4m3_Fp32_t128x8x128u2_s6_et64x8_m64x8x32_"
                      "cga1x1x1_16dp256b_rM_TN_transOut_schedS_bN_dsFp8_sm100f",
                      61200),
                     ("void moe::dev::activation::activationDeepSeekKernel<"
                      "...>(...)", 3900),
                     ("bmm_Bfloat16_E4m3E4m3_Fp32_t128x8x128u2_s6_et128x8_"
                      "m64x8x32_cga1x1x1_16dp256b_rM_TN_transOut_schedS_bN_"
                      "dsFp8_sm100f", 33800),
                     ("void moe::dev::finalize::finalizeKernelVecLoad<...>("
                      "...)", 4700)], False),
            ("shared", swiglu_kernels(7200), True),
            ("add", [("void at::native::vectorized_elementwise_kernel<4, "
                      "at::native::CUDAFunctor_add<c10::BFloat16>, "
                      "std::array<char*, 3ul> >(...)", 2200)], False)]
    return out + [("ffn_all_reduce", [ALL_REDUCE], False)]


def trace_text(layers=6, dense=3, replays=12):
    """Kineto JSON: each replay has the kernels of all layers, with the ids of
    their nodes in the device graph; shared experts run beside the others."""
    noise = random.Random(5)
    events, now = [], 1_000_000

    def kernel(name, start, dur, stream, node, correlation):
        events.append({
            "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream,
            "ts": start / 1000, "dur": dur / 1000,
            "args": {"device": 0, "context": 1, "stream": stream,
                     "correlation": correlation, "graph id": 1,
                     "graph node id": node, "grid": [64, 1, 1],
                     "block": [128, 1, 1]}})

    for replay in range(replays):
        correlation = 1000 + replay
        events.append({"ph": "X", "cat": "cuda_runtime",
                       "name": "cudaGraphLaunch", "pid": 7, "tid": 7,
                       "ts": now / 1000, "dur": 30,
                       "args": {"correlation": correlation}})
        now += 40_000
        node = (1 << 32) + 1
        for name, dur in [("void at::native::vectorized_gather_kernel<16, "
                           "long>(...)", 2400)]:
            kernel(name, now, dur, 7, node, correlation)
            now += dur + 600
            node += 1
        for i in range(layers):
            beside = begin = now
            for what, kernels, second in layer_kernels(i, dense):
                if what == "router":
                    begin = now
                if what == "shared":
                    beside = begin + 1500
                for name, dur in kernels:
                    took = int(dur * noise.uniform(0.97, 1.05))
                    at = beside if second else now
                    kernel(name, at, took, 11 if second else 7, node,
                           correlation)
                    node += 1
                    if second:
                        beside += took + 500
                    else:
                        now += took + 500
            now = max(now, beside)
        for name, dur in [("void flashinfer::norm::FusedAddRMSNormKernel<8u, "
                           "__nv_bfloat16>(...)", 3100),
                          ("nvjet_sm100_tst_64x32_64x16_2x4_v_bz_TNT", 39000)]:
            kernel(name, now, dur, 7, node, correlation)
            now += dur + 600
            node += 1
        now += 120_000
    return json.dumps({"schemaVersion": 1, "deviceProperties": [
        {"id": 0, "name": "NVIDIA B200"}], "traceEvents": events})


def write(folder):
    """(dump, trace)"""
    dump = pathlib.Path(folder) / "086_compile_compile_model.txt"
    dump.write_text(dump_text())
    trace = pathlib.Path(folder) / "trace.json"
    trace.write_text(trace_text())
    return dump, trace


if __name__ == "__main__":
    write(sys.argv[1])
