#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes an XPlane file as JAX's profiler writes it: a training step of a small
transformer on two GPUs, with the compiled program inside.

usage: make_xplane.py -o FILE.xplane.pb [--layers N] [--steps N]

Everything is derived from the shapes below: kernel times from FLOPs and bytes
at fixed rates, so files are the same in every run.
"""
import argparse

BATCH, LENGTH, HIDDEN, FFN, HEADS = 4, 512, 1024, 4096, 16
TOKENS = BATCH * LENGTH
BF16, F32, TUPLE = 16, 11, 13
RATE, BANDWIDTH = 400e12, 2e12  # what kernels reach


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def shape(kind, dims):
    return number(2, kind) + b"".join(number(3, d) for d in dims)


class Program:
    """Instructions of one computation, with what their kernels take."""

    def __init__(self, name):
        self.name = name
        self.bodies = []
        self.runs = []  # op, op name, kernels, nanoseconds, stream

    def add(self, name, opcode, kind, dims, operands=(), op_name="", more=b""):
        body = data(1, name) + data(2, opcode) + data(3, shape(kind, dims))
        if op_name:
            body += data(7, data(2, op_name) + data(3, "train.py")
                         + number(4, 10 + len(self.bodies)))
        body += number(35, len(self.bodies) + 1)
        body += b"".join(number(36, o) for o in operands) + more
        self.bodies.append(body)
        return len(self.bodies)

    def parameter(self, name, dims):
        return self.add(name, "parameter", BF16, dims)

    def run(self, name, op_name, kernels, seconds, stream=7):
        self.runs.append((name, op_name, kernels, round(seconds * 1e9),
                          stream))

    def dot(self, name, op_name, m, k, n, lhs, rhs):
        result = self.add(name, "dot", BF16, (m, n), (lhs, rhs), op_name,
                          data(30, number(1, 1) + number(2, 0)))
        self.run(name, op_name, [f"nvjet_tst_128x256_64x4_{m}x{n}"],
                 2 * m * n * k / RATE)
        return result

    def proto(self):
        computation = data(1, "main") + b"".join(
            data(2, body) for body in self.bodies)
        computation += number(5, 1) + number(6, len(self.bodies))
        module = data(1, self.name) + data(2, "main") + data(3, computation)
        module += number(5, 1) + number(6, 1)
        module += data(15, number(1, 1) + number(2, 2))
        return data(1, module)


def transformer(layers):
    program = Program("jit_train_step")
    x = program.parameter("x", (TOKENS, HIDDEN))
    w1 = program.parameter("w1", (HIDDEN, FFN))
    w2 = program.parameter("w2", (FFN, HIDDEN))
    count = 0
    for layer in range(layers):
        scope = f"jit(train_step)/jvp(Transformer)/layers_{layer}"
        count += 1
        norm = program.add(f"loop_multiply_fusion.{count}", "fusion", BF16,
                           (TOKENS, HIDDEN), (x,), scope + "/norm/mul")
        program.run(f"loop_multiply_fusion.{count}", scope + "/norm/mul",
                    ["loop_multiply_fusion"], 4 * TOKENS * HIDDEN / BANDWIDTH)
        up = program.dot(f"dot.{count}", scope + "/mlp/up/dot_general",
                         TOKENS, HIDDEN, FFN, norm, w1)
        count += 1
        x = program.dot(f"dot.{count}", scope + "/mlp/down/dot_general",
                        TOKENS, FFN, HIDDEN, up, w2)
    for layer in reversed(range(layers)):
        scope = (f"jit(train_step)/transpose(jvp(Transformer))/"
                 f"layers_{layer}")
        count += 1
        x = program.dot(f"dot.{count}", scope + "/mlp/down/dot_general",
                        TOKENS, HIDDEN, FFN, x, w1)
        count += 1
        x = program.dot(f"dot.{count}", scope + "/mlp/up/dot_general",
                        TOKENS, FFN, HIDDEN, x, w2)
        name = f"all-reduce-start.{layer}"
        group = data(1, number(1, 0) + number(1, 1))
        program.add(name, "all-reduce-start", F32, (HIDDEN, FFN), (w1,),
                    scope + "/psum", number(26, layer + 1) + number(71, 1)
                    + data(87, group))
        program.run(name, scope + "/psum",
                    ["ncclDevKernel_AllReduce_Sum_f32_RING_LL("
                     "ncclDevKernelArgsStorage<4096ul>)"],
                    4 * HIDDEN * FFN / 150e9, stream=13)
    return program


class Plane:
    """Names get numbers as they come."""

    def __init__(self, name):
        self.name, self.events, self.stats, self.lines = name, {}, {}, []
        self.own = b""

    def event(self, title, offset_ns, duration_ns, **stats):
        key = self.events.setdefault(title, len(self.events) + 1)
        body = number(1, key) + number(2, offset_ns * 1000)
        body += number(3, duration_ns * 1000)
        return data(4, body + b"".join(
            data(4, self.stat(k, v)) for k, v in stats.items()))

    def stat(self, name, value):
        key = self.stats.setdefault(name, len(self.stats) + 1)
        if isinstance(value, int):
            return number(1, key) + number(4, value)
        reference = self.stats.setdefault(value, len(self.stats) + 1)
        return number(1, key) + number(7, reference)

    def line(self, number_, name, timestamp_ns, events):
        self.lines.append(number(1, number_) + data(2, name)
                          + number(3, timestamp_ns) + b"".join(events))

    def proto(self):
        out = data(2, self.name)
        out += b"".join(data(3, line) for line in self.lines)
        for field, names in ((4, self.events), (5, self.stats)):
            for name, key in names.items():
                out += data(field, number(1, key)
                            + data(2, number(1, key) + data(2, name)))
        return data(1, out + self.own)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", required=True)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    program = transformer(options.layers)

    metadata = (data(2, "/host:metadata")
                + data(4, number(1, 9) + data(2, number(1, 9)
                       + data(2, "jit_train_step(9)")
                       + data(5, number(1, 1) + data(6, program.proto()))))
                + data(5, number(1, 1)
                       + data(2, number(1, 1) + data(2, "Hlo Proto"))))
    host = Plane("/host:CPU")
    gpus = [Plane(f"/device:GPU:{n}") for n in range(2)]
    threads = [[], [], []]
    correlation = 0
    start = 5_000
    for step in range(options.steps):
        begin = start
        ends = []
        for n, gpu in enumerate(gpus):
            launch, at, reduced = begin + 20_000, begin + 60_000, 0
            streams = gpu.__dict__.setdefault("streams", {7: [], 13: []})
            for op, op_name, kernels, ns, stream in program.runs:
                for kernel in kernels:
                    correlation += 1
                    threads[n].append(host.event(
                        "cuLaunchKernelEx", launch, 3_000,
                        correlation_id=correlation))
                    launch += 5_000
                    if stream == 13:
                        first = max(at, reduced)
                        reduced = first + ns + 15_000 * n
                    else:
                        first = at = max(at, launch + 4_000)
                        at += ns
                    last = reduced if stream == 13 else at
                    streams[stream].append(gpu.event(
                        kernel, first, last - first,
                        correlation_id=correlation, hlo_op=op,
                        hlo_module=program.name, program_id=9, name=op_name,
                        kernel_details="regs:168 static_shared:0 "
                        "dynamic_shared:98304 grid:132,1,1 block:384,1,1 "
                        "occ_pct:18.75"))
            threads[n].append(host.event(
                "GpuExecutable::ExecuteThunks", begin + 10_000,
                launch - begin - 10_000))
            ends.append(max(at, reduced))
        start = max(ends) + 30_000
        threads[2].append(host.event("train", begin, start - begin - 1_000,
                                     step_num=step, _r=1))
        threads[2].append(host.event("$train.py:31 train_step", begin + 1_000,
                                     start - begin - 3_000))
    for n, events in enumerate(threads):
        name = "python" if n == 2 else f"tf_XLATfrtCpuClient/{n}"
        host.line(100 + n, name, 1_000_000, events)
    out = data(1, metadata)
    for n, gpu in enumerate(gpus):
        for stream, events in gpu.streams.items():
            gpu.line(stream, f"Stream #{stream}", 1_000_000, events)
        facts = {"device_vendor": "Nvidia", "core_count": 132,
                 "clock_rate": 1980000, "memory_size": 85_000_000_000,
                 "compute_cap_major": 9, "compute_cap_minor": 0}
        gpu.own = b"".join(data(6, gpu.stat(k, v)) for k, v in facts.items())
        out += gpu.proto()
    out += host.proto()
    settings = Plane("Task Environment")
    settings.own = data(6, settings.stat("profile_start_time",
                                         1_760_000_000_000_000_000))
    out += settings.proto()
    with open(options.o, "wb") as file:
        file.write(out)


main()
