# SPDX-License-Identifier: Apache-2.0
"""Random transformer-like kernel sequences with the layer of every kernel, for
tests of `lamina layers`. Only device events: the name-free path has nothing
else to go by."""
import random

NORM = "void vllm::rms_norm_kernel<c10::BFloat16, 8, 2>(c10::BFloat16*)"
ATTENTION = "flash_fwd_kernel<Flash_fwd_kernel_traits<{}>>"
KINDS = ("dense", "moe", "alternating", "half_layers", "two_stacks")


def block(rng, kind, tag):
    """Names of the kernels of one layer: attention half, feed-forward half."""
    def gemm():
        return f"cutlass_{tag}_gemm_{rng.randrange(1000)}"

    def other():
        return f"elementwise_{tag}_{rng.randrange(1000)}"
    attention = [NORM, gemm()]
    attention += [other() for _ in range(rng.randrange(1, 6))]
    attention += [ATTENTION.format(tag), gemm()]
    if kind == "half_layers":
        attention += [f"ncclDevKernel_AllReduce_{tag}"]
    feed = [f"fused_{NORM}", gemm()]
    if kind == "moe":
        feed += ["topkGating", "moe_align_block_size_kernel", "fused_moe_kernel",
                 "fused_moe_kernel", "moe_sum_kernel"]
    feed += [other() for _ in range(rng.randrange(1, 8))]
    feed += [gemm()]
    if kind == "half_layers":
        feed += [f"ncclDevKernel_AllReduce_{tag}"]
    return attention + feed


def model(seed):
    """(kind, stacks): each stack is a list of layers, each a list of names."""
    rng = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    stacks = []
    for number in range(2 if kind == "two_stacks" else 1):
        layers = rng.randrange(4 if kind == "alternating" else 2, 129)
        tag = f"s{number}"
        unit = block(rng, kind, tag)
        if kind == "alternating":
            # Two kinds of layers that differ in their attention.
            other = [ATTENTION.format("window") if n.startswith("flash")
                     else n for n in unit]
            stacks.append([unit if i % 2 else other for i in range(layers)])
        else:
            stacks.append([unit] * layers)
    return rng, kind, stacks


def sequence(seed, noise):
    """(kind, truth, kernels): `kernels` are (name, layer or None) in order,
    layers counted over all stacks; `truth` is the number of layers. Of all
    kernels a share `noise` is missing, added or replaced."""
    rng, kind, stacks = model(seed)
    kernels = [(f"prologue_{i}", None) for i in range(rng.randrange(1, 12))]
    number = 0
    for at, stack in enumerate(stacks):
        if at > 0:
            kernels += [(f"between_{i}", None)
                        for i in range(rng.randrange(4, 12))]
        for names in stack:
            for name in names:
                chance = rng.random()
                if chance < noise / 3:
                    continue
                if chance < 2 * noise / 3:
                    kernels.append((name, number))
                    kernels.append((f"extra_{rng.randrange(4)}", number))
                elif chance < noise:
                    kernels.append((f"renamed_{rng.randrange(4)}", number))
                else:
                    kernels.append((name, number))
            number += 1
    kernels += [(f"epilogue_{i}", None) for i in range(rng.randrange(1, 12))]
    return kind, number, kernels


def trace(seed, noise):
    """A Chrome trace of sequence(): kernels on one stream, with jitter."""
    kind, truth, kernels = sequence(seed, noise)
    rng = random.Random(seed + 1000003)
    events = []
    now = 1000.0
    for i, (name, _) in enumerate(kernels):
        dur = 2 + (hash_of(name) % 50) * (1 + 0.1 * rng.random())
        events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0,
                       "tid": 7, "ts": round(now, 3), "dur": round(dur, 3),
                       "args": {"device": 0, "stream": 7, "correlation": i}})
        now += dur + 0.5 + rng.random()
    return kind, truth, kernels, {"traceEvents": events}


def hash_of(text):
    """A number that does not change from run to run."""
    value = 0
    for char in text:
        value = (value * 131 + ord(char)) % 1000003
    return value
