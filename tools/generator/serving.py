# SPDX-License-Identifier: Apache-2.0
"""Serving with continuous batching: prefill steps, decode steps, decode as
replayed graphs; dense or mixture of experts."""
import dataclasses

from machine import Kernel
from transformer import NAMES, gemm, roofline_ns, simple


def rms_norm(rank, tokens, h, key):
    with rank.module("RMSNorm", 44, key):
        simple(rank, "vllm::fused_add_rms_norm", [(tokens, h), (tokens, h),
                                                  (h,)],
               NAMES["rms"], 6 * tokens * h)


def projection(rank, m, n, k, key):
    with rank.module("Linear", 310, key):
        with rank.op("aten::linear", [(m, k), (n, k)]):
            gemm(rank, m, n, k)


def attention(rank, model, sequences, tokens, context):
    """Flash attention for a prefill, paged attention for a decode."""
    heads, dim = model.heads, model.head_dim
    if tokens > sequences:
        flops = 2 * heads * tokens * tokens // max(1, sequences) * dim
        kernel = Kernel(NAMES["flash"],
                        roofline_ns(flops, 8 * tokens * model.hidden, 0.45),
                        grid=(max(1, tokens // 128), sequences, heads))
    else:
        kernel = Kernel(NAMES["paged"],
                        roofline_ns(0, 4 * sequences * context * heads * dim),
                        grid=(heads, sequences, 1))
    with rank.op("vllm::unified_attention_with_output",
                 [(tokens, heads, dim)] * 4):
        simple(rank, "vllm::reshape_and_cache_flash",
               [(tokens, heads, dim)] * 2, NAMES["cache"],
               4 * tokens * model.hidden)
        rank.launch(kernel)


def experts(rank, model, tokens, layer, side_stream):
    """Router, grouped products; the shared expert on a stream of its own."""
    h, f = model.hidden, model.ffn_expert
    with rank.module("FusedMoE", 500, layer):
        gemm(rank, tokens, model.experts, h)
        if side_stream:
            rank.wait_stream(side_stream, 7)
            with rank.module("SharedExpert", 480, layer):
                with rank.op("aten::mm", [(tokens, h), (h, f)]):
                    rank.launch(Kernel(
                        NAMES["gemm"].format("tn", "64x128x64"),
                        roofline_ns(2 * tokens * h * f, 2 * h * f),
                        side_stream))
        with rank.op("vllm::topk_softmax", [(tokens, model.experts)]):
            rank.launch(Kernel(NAMES["topk"], 2200))
        with rank.op("vllm::fused_experts", [(tokens, h),
                                             (model.experts, 2 * f, h)]):
            rank.launch(Kernel(NAMES["moe_align"], 2600))
            active = min(model.experts, tokens * model.top_k)
            rank.launch(Kernel(NAMES["fused_moe"], roofline_ns(
                4 * tokens * model.top_k * h * f, 4 * active * h * f),
                grid=(active, 1, 1)), "cuLaunchKernel")
            rank.launch(Kernel(NAMES["silu_mul"], roofline_ns(
                0, 6 * tokens * model.top_k * f)))
            rank.launch(Kernel(NAMES["fused_moe"], roofline_ns(
                2 * tokens * model.top_k * h * f, 2 * active * h * f),
                grid=(active, 1, 1)), "cuLaunchKernel")
        if side_stream:
            rank.wait_stream(7, side_stream)


def layer(rank, model, number, sequences, tokens, context, side_stream=0):
    h = model.hidden
    rank.labels["layer"] = number
    with rank.module("DecoderLayer", 120, number):
        rms_norm(rank, tokens, h, (number, "in"))
        with rank.module("Attention", 60, number):
            projection(rank, tokens, 3 * h, h, (number, "qkv"))
            with rank.module("RotaryEmbedding", 20, number):
                simple(rank, "vllm::rotary_embedding",
                       [(tokens,), (tokens, h), (tokens, h)], NAMES["rope"],
                       8 * tokens * h)
            attention(rank, model, sequences, tokens, context)
            projection(rank, tokens, h, h, (number, "o"))
        rms_norm(rank, tokens, h, (number, "post"))
        if model.experts:
            experts(rank, model, tokens, number, side_stream)
        else:
            with rank.module("MLP", 90, number):
                projection(rank, tokens, 2 * model.ffn, h, (number, "up"))
                with rank.module("SiluAndMul", 12, number):
                    simple(rank, "vllm::silu_and_mul",
                           [(tokens, model.ffn), (tokens, 2 * model.ffn)],
                           NAMES["silu_mul"], 6 * tokens * model.ffn)
                projection(rank, tokens, h, model.ffn, (number, "down"))
    rank.labels.pop("layer")


def body(rank, model, sequences, tokens, context, side_stream=0):
    """The part of a step that a graph may hold: embedding to last norm."""
    with rank.module("DecoderModel", 200, 0):
        with rank.module("Embedding", 160, 0):
            simple(rank, "aten::embedding",
                   [(model.vocab, model.hidden), (tokens,)],
                   NAMES["embedding"], 4 * tokens * model.hidden)
        for number in range(model.layers):
            layer(rank, model, number, sequences, tokens, context, side_stream)
        rms_norm(rank, tokens, model.hidden, "final")


def sample(rank, model, sequences):
    with rank.module("LMHead", 220, 0):
        gemm(rank, sequences, model.vocab, model.hidden)
    simple(rank, "aten::argmax", [(sequences, model.vocab)], NAMES["argmax"],
           4 * sequences * model.vocab, concrete=["-1", "False"])
    rank.copy("DtoH", 8 * sequences)


def step_name(prefills, prompt, decodes, context):
    """The name that vLLM gives a step: sequences and tokens of each kind."""
    p, d = prefills * prompt, decodes
    return (f"execute_{p + d}_context_{prefills}(sq{p}sk{p}sqsq{p * prompt}"
            f"sqsk{p * prompt})_generation_{decodes}(sq{d}sk{d * context}"
            f"sqsq{d}sqsk{d * context})")


def prefill(rank, model, sequences, prompt):
    rank.labels = {"phase": "prefill"}
    with rank.annotation(step_name(sequences, prompt, 0, 0)):
        with rank.frame("engine.py(310): execute_model"):
            rank.spend(80_000)
            rank.copy("HtoD", 8 * sequences * prompt)
            body(rank, model, sequences, sequences * prompt, prompt)
            sample(rank, model, sequences)
            rank.synchronize()


def decode(rank, model, sequences, context, graph=None, side_stream=0,
           node_ids=True):
    rank.labels = {"phase": "decode"}
    with rank.annotation(step_name(0, 0, sequences, context)):
        with rank.frame("engine.py(310): execute_model"):
            rank.spend(60_000)
            rank.copy("HtoD", 8 * sequences)
            if graph is None:
                body(rank, model, sequences, sequences, context, side_stream)
            else:
                rank.replay(graph, node_ids)
            sample(rank, model, sequences)
            rank.synchronize()


def capture(rank, model, sequences, context, side_stream=0):
    """Records the body for a batch size; returns the graph."""
    rank.labels = {"phase": "decode"}
    with rank.annotation(f"capture_{sequences}_FULL"):
        with rank.frame("graphs.py(140): capture_model"):
            with rank.capturing() as graph:
                body(rank, model, sequences, sequences, context, side_stream)
    graph.nodes = [dataclasses.replace(node) for node in graph.nodes]
    return graph
