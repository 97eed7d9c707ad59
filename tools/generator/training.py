# SPDX-License-Identifier: Apache-2.0
"""A data-parallel training step: forward, backward on the autograd thread
with bucketed all-reduces on a stream of their own, optimizer.

Workloads are Python generators: they yield a Collective when their rank
launches one and get the time at which it ends on all ranks (see ranks.py).
"""
import dataclasses

from machine import Kernel
from transformer import (ADD, MUL, NAMES, SILU, elementwise, gemm, linear,
                         roofline_ns, simple)

COMM_STREAM = 20
BACKWARD_THREAD = 2


@dataclasses.dataclass
class Collective:
    """A member's arrival at a collective of its group."""
    group: str
    sequence: int
    arrived_ns: int
    transfer_ns: int
    finish: callable  # called with the end on all ranks
    size: int = 0  # of the group; 0: all ranks
    late_end_ns: int = 0  # of this rank after the others


def all_reduce(rank, ranks, sequence, elements, group="0",
               waits_for=7, name="AllReduce_Sum_bf16", op="allreduce"):
    """Launches one on the communication stream; a generator."""
    rank.wait_stream(COMM_STREAM, waits_for)
    facts = {"Collective name": op, "In msg nelems": elements,
             "Out msg nelems": elements, "Group size": len(ranks),
             "dtype": "BFloat16", "In split size": "[]",
             "Out split size": "[]", "Process Group Name": group,
             "Process Group Description": "default_pg",
             "Process Group Ranks": str(list(ranks)), "Seq": sequence}
    with rank.op(f"c10d::{op}_", [(elements,)], host_ns=6000):
        with rank.op("record_param_comms", [(elements,)], extra=facts):
            correlation = rank.next("correlation")
            called = rank.api("cudaLaunchKernelExC", correlation, flow=True)
            arrived = rank.ready(COMM_STREAM, called)
            kernel = Kernel(NAMES["nccl"].format(name), 0, COMM_STREAM,
                            (16, 1, 1), (544, 1, 1), args=facts,
                            tags=rank.tags())
            size = 2 * elements
            n = len(ranks)
            transfer = 12000 + int(2 * (n - 1) / n * size / 200.0)
            held = []
            yield Collective(group, sequence, arrived, transfer, held.append)
            rank.run(kernel, correlation, called, arrived, held[0])


def forward_layer(rank, model, tokens, layer, saved):
    h, f = model.hidden, model.ffn
    rank.labels["layer"] = layer
    with rank.module("DecoderLayer", 120, layer):
        norm(rank, tokens, h, (layer, "in"), saved)
        with rank.module("Attention", 60, layer):
            saved.append(linear(rank, tokens, 3 * h, h, (layer, "qkv")))
            attention(rank, model, tokens, saved)
            saved.append(linear(rank, tokens, h, h, (layer, "o")))
        add(rank, tokens, h, saved)
        norm(rank, tokens, h, (layer, "post"), saved)
        with rank.module("MLP", 90, layer):
            saved.append(linear(rank, tokens, 2 * f, h, (layer, "up")))
            sequence = rank.next("sequence")
            elementwise(rank, "aten::silu", [(tokens, f)], SILU, 1,
                        sequence=sequence)
            saved.append(("SiluBackward0", sequence,
                          ("elementwise", "aten::silu_backward", tokens, f),
                          rank.path()))
            elementwise(rank, "aten::mul", [(tokens, f), (tokens, f)], MUL,
                        sequence=rank.next("sequence"))
            saved.append(linear(rank, tokens, h, f, (layer, "down")))
        add(rank, tokens, h, saved)
    rank.labels.pop("layer")


def norm(rank, tokens, h, key, saved):
    with rank.module("LayerNorm", 30, key):
        sequence = rank.next("sequence")
        with rank.op("aten::layer_norm", [(tokens, h), (h,), (h,)]):
            simple(rank, "aten::native_layer_norm", [(tokens, h), (h,), (h,)],
                   NAMES["norm"], 4 * tokens * h, sequence=sequence)
        saved.append(("NativeLayerNormBackward0", sequence,
                      ("norm", tokens, h), rank.path()))


def add(rank, tokens, h, saved):
    sequence = rank.next("sequence")
    elementwise(rank, "aten::add", [(tokens, h), (tokens, h)], ADD,
                sequence=sequence, concrete=["1"])
    saved.append(("AddBackward0", sequence, None, rank.path()))


def attention(rank, model, tokens, saved):
    batch, length = 1, tokens
    shape = (batch, model.heads, length, model.head_dim)
    flops = 2 * 2 * batch * model.heads * length * length * model.head_dim // 2
    sequence = rank.next("sequence")
    with rank.op("aten::scaled_dot_product_attention", [shape] * 3,
                 concrete=["", "0.", "True", "", "False"]):
        with rank.op("aten::_scaled_dot_product_flash_attention", [shape] * 3,
                     sequence=sequence, concrete=["0.", "True", "False", ""]):
            rank.launch(Kernel(NAMES["flash"],
                               roofline_ns(flops, 8 * tokens * model.hidden,
                                           0.45),
                               grid=(max(1, length // 128), batch,
                                     model.heads)))
    saved.append(("ScaledDotProductFlashAttentionBackward0", sequence,
                  ("attention", shape, flops, tokens * model.hidden),
                  rank.path()))


def backward(rank, saved, bucket):
    """Runs the saved nodes in reverse. `bucket` is called with the elements
    of each gradient and may yield collectives."""
    for name, sequence, what, module in reversed(saved):
        rank.labels["module"] = module
        with rank.op(f"autograd::engine::evaluate_function: {name}",
                     sequence=sequence, forward_thread=1, host_ns=1200):
            with rank.op(name, sequence=sequence, forward_thread=1,
                         host_ns=1200):
                if what is None:
                    continue
                if what[0] == "linear":
                    _, m, n, k = what
                    gemm(rank, m, k, n, transposed="nn")
                    gemm(rank, n, k, m, transposed="nt")
                elif what[0] == "norm":
                    _, tokens, h = what
                    simple(rank, "aten::native_layer_norm_backward",
                           [(tokens, h), (tokens, h), (h,)],
                           NAMES["norm_bwd"], 8 * tokens * h)
                elif what[0] == "elementwise":
                    _, op, tokens, f = what
                    elementwise(rank, op, [(tokens, f), (tokens, f)], SILU)
                elif what[0] == "attention":
                    _, shape, flops, size = what
                    with rank.op(
                            "aten::_scaled_dot_product_flash_attention_"
                            "backward", [shape] * 5):
                        rank.launch(Kernel(NAMES["flash_bwd"],
                                           roofline_ns(2.5 * flops, 16 * size,
                                                       0.4)))
        rank.labels.pop("module")
        if what and what[0] == "linear":
            yield from bucket(what[2] * what[3])


def training_step(rank, model, tokens, number, ranks=(0,),
                  bucket_elements=25_000_000):
    """One ProfilerStep; a generator of collectives."""
    h = model.hidden
    saved = []
    rank.labels = {"step": number}
    state = {"elements": 0, "sequence": number * 1000}

    def bucket(elements, last=False):
        state["elements"] += elements
        if len(ranks) > 1 and state["elements"] and (
                last or state["elements"] >= bucket_elements):
            state["sequence"] += 1
            yield from all_reduce(rank, ranks, state["sequence"],
                                  state["elements"])
            state["elements"] = 0

    with rank.annotation(f"ProfilerStep#{number}"):
        with rank.frame("train.py(88): train_step"):
            rank.spend(150_000)  # the data loader
            rank.labels["phase"] = "input"
            rank.copy("HtoD", 8 * tokens)
            rank.labels["phase"] = "forward"
            with rank.module("TransformerLM", 200, 0):
                with rank.module("Embedding", 160, 0):
                    simple(rank, "aten::embedding",
                           [(model.vocab, h), (tokens,)], NAMES["embedding"],
                           4 * tokens * h)
                for layer in range(model.layers):
                    forward_layer(rank, model, tokens, layer, saved)
                norm(rank, tokens, h, "final", saved)
                saved.append(linear(rank, tokens, model.vocab, h, "head"))
            with rank.op("aten::cross_entropy_loss",
                         [(tokens, model.vocab), (tokens,)]):
                simple(rank, "aten::_log_softmax", [(tokens, model.vocab)],
                       NAMES["softmax"], 4 * tokens * model.vocab,
                       concrete=["1", "False"])
                simple(rank, "aten::nll_loss_forward",
                       [(tokens, model.vocab), (tokens,)], NAMES["nll"],
                       4 * tokens)
            with rank.on_thread(BACKWARD_THREAD):
                rank.labels["phase"] = "backward"
                yield from backward(rank, saved, bucket)
                yield from bucket(0, last=True)
            rank.wait_stream(7, COMM_STREAM)
            rank.labels["phase"] = "optimizer"
            with rank.annotation("Optimizer.step#AdamW.step"):
                count = model.layers * (4 * h * h + 3 * h * model.ffn)
                for part in range(4):
                    with rank.op("aten::_fused_adamw_", [(count // 4,)]):
                        rank.launch(Kernel(NAMES["adam"],
                                           roofline_ns(0, 7 * count),
                                           grid=(512, 1, 1),
                                           block=(512, 1, 1)))
            rank.labels["phase"] = "loss"
            with rank.op("aten::item", [()]):
                with rank.op("aten::_local_scalar_dense", [()]):
                    rank.copy("DtoH", 4)
            rank.synchronize()
