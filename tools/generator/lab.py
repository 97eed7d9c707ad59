# SPDX-License-Identifier: Apache-2.0
"""Healthy training and serving runs into which faults are put.

Noise is drawn by the key of an event (where it is and how often it was there
before), not from one stream: a run and its twin without a fault share all
noise, and the difference of their windows is what the fault costs. No formula
of lamina's rules stands here.

A fault is a name with a magnitude. See FAULTS for what each does, and which
rule must find it.
"""
import contextlib
import hashlib
import struct

from machine import HOST_PID, Kernel, Micros, Rank
from transformer import ADD, ELEMENTWISE, MUL, NAMES, SILU, Model, roofline_ns

BACKWARD = 2
COMM = 20


class Lab(Rank):
    """A rank with keyed noise, blocking copies and calls that wait."""

    def __init__(self, seed, kernel_noise=0.02, host_noise=0.08, **options):
        super().__init__(seed=seed, **options)
        self.seed = seed
        self.kernel_noise, self.host_noise = kernel_noise, host_noise
        self.seen = {}
        self.op_factor = 1.0
        self.slow_library = 1
        self.kernel_factor = lambda kernel, begin: 1.0
        self.lost = lambda kernel: False
        self.launches = 0
        self.after_launch = None
        self.before_launch = None
        self.queue_limit = 0  # launches that a stream takes; 0: any number
        self.starts = {}  # of the work of each stream
        self.shared_streams = ()  # that take turns, as a default stream does

    def draw(self, *key):
        """A number in [-1, 1) that depends on the key and nothing else."""
        place = (key, *self.modules, None,
                 *[name for name, _ in self.op_stack], None,
                 *sorted(self.labels.items()))
        known = self.seen.get(place)
        if known is None:
            path = (key, self.path(),
                    tuple(name for name, _ in self.op_stack),
                    str(sorted(self.labels.items())))
            known = self.seen[place] = [
                repr((self.seed, self.rank, path))[:-1], 0]
        known[1] += 1
        text = f"{known[0]}, {known[1]})".encode()
        word, = struct.unpack("<Q", hashlib.blake2b(text,
                                                    digest_size=8).digest())
        return word / 2**63 - 1

    def spend(self, ns, what="host"):
        factor = self.op_factor if what == "host" else 1.0
        noise = 1 + self.host_noise * self.draw(what, ns)
        self.now[self.thread] += max(1, int(ns * factor * noise))

    def busy(self, ns):
        """Host time of exactly this length: the cost of a fault."""
        self.now[self.thread] += int(ns)

    def range(self, cat, name, ns, inner=None):
        """A host event of its own that takes so long."""
        start = self.now[self.thread]
        if inner is not None:
            inner()
        self.busy(ns)
        args = {"External id": self.next("external")}
        if cat == "python_function":
            stack = self.python_stack.setdefault(self.thread, [])
            args = {"Python parent id": stack[-1] if stack else None,
                    "Python id": self.next("python")}
        self.span(cat, name, start, self.now[self.thread], args)

    def call(self, name, ns):
        """A runtime call that launches nothing."""
        start = self.now[self.thread]
        self.busy(ns)
        self.span("cuda_runtime", name, start, self.now[self.thread],
                  {"cbid": 1, "correlation": self.next("correlation")})

    def api(self, name, correlation, flow=False, host_ns=3500):
        if self.before_launch is not None and self.op_stack:
            hook, self.before_launch = self.before_launch, None
            hook()
            self.before_launch = hook
        return super().api(name, correlation, flow, host_ns)

    def wait_for_room(self, stream):
        """A launch call of a full queue lasts until something starts."""
        starts = self.starts.get(stream, [])
        if self.queue_limit and len(starts) >= self.queue_limit:
            self.now[self.thread] = max(self.now[self.thread],
                                        starts[-self.queue_limit])

    def counter(self, name, series, value, at):
        self.events.append({"ph": "C", "name": name, "pid": self.rank % 8,
                            "tid": 0, "ts": Micros(self.local(at)),
                            "args": {series: value}})

    def memory(self, size, allocated, reserved):
        """What profile_memory=True records; parts of the device's memory."""
        whole = 85520809984
        at = self.now[self.thread]
        self.events.append(
            {"ph": "i", "s": "t", "cat": "cpu_instant_event",
             "name": "[memory]", "pid": HOST_PID + self.rank,
             "tid": self.thread, "ts": Micros(self.local(at)),
             "args": {"Device Type": 1, "Device Id": self.rank % 8,
                      "Addr": 0x7f0000000000, "Bytes": int(size * whole),
                      "Total Allocated": int(allocated * whole),
                      "Total Reserved": int(reserved * whole),
                      "Ev Idx": len(self.events)}})

    def run(self, kernel, correlation, launched, start=None, end=None,
            extra=None):
        begin = self.ready(kernel.stream, launched) if start is None else start
        if kernel.stream in self.shared_streams:
            begin = max([begin] + [self.stream_free.get(other, 0) + 1000
                                   for other in self.shared_streams])
        if end is None:
            noise = 1 + self.kernel_noise * self.draw("kernel", kernel.name)
            took = max(500, int(kernel.dur_ns * noise *
                                self.kernel_factor(kernel, begin)))
            if kernel.kind == "gpu_memcpy":
                took = kernel.dur_ns
            end = begin + took
        self.launches += 1
        if self.queue_limit:
            self.starts.setdefault(kernel.stream, []).append(begin)
        if self.lost(kernel):
            self.stream_free[kernel.stream] = end
            return end
        ended = super().run(kernel, correlation, launched, begin, end, extra)
        if self.after_launch is not None:
            hook, self.after_launch = self.after_launch, None
            hook()
            self.after_launch = hook
        return ended

    def launch(self, kernel, api="cudaLaunchKernel"):
        if not self.queue_limit or self.capture is not None:
            return super().launch(kernel, api)
        kernel.tags = self.tags()
        correlation = self.next("correlation")
        start = self.now[self.thread]
        called = super().api(api, correlation, flow=True)
        self.wait_for_room(kernel.stream)
        self.events[-2]["dur"] = Micros(self.now[self.thread] - start)
        return self.run(kernel, correlation,
                        max(called, self.now[self.thread] - 2000))

    # -- what waits ---------------------------------------------------------

    def wait_call(self, name, end):
        start = self.now[self.thread]
        done = max(start + 1500, end + 1500)
        self.now[self.thread] = done
        self.span("cuda_runtime", name, start, done,
                  {"cbid": 131, "correlation": self.next("correlation")})

    def stream_sync(self, stream=7):
        self.wait_call("cudaStreamSynchronize",
                       self.stream_free.get(stream, 0))

    def device_sync(self):
        self.wait_call("cudaDeviceSynchronize",
                       max([0, *self.stream_free.values()]))

    def free(self):
        self.wait_call("cudaFree", max([0, *self.stream_free.values()]))

    def item(self):
        with self.op("aten::item", [()]):
            with self.op("aten::_local_scalar_dense", [()]):
                self.copy("DtoH", 4)
                self.stream_sync()

    def slow_copy(self, direction, size, rate, memory="Pageable"):
        """A copy for which the call lasts as long as the copy."""
        name = {"HtoD": f"Memcpy HtoD ({memory} -> Device)",
                "DtoH": f"Memcpy DtoH (Device -> {memory})"}[direction]
        kernel = Kernel(name, 2000 + int(size / rate), 7, kind="gpu_memcpy",
                        args={"bytes": size})
        kernel.tags = self.tags()
        correlation = self.next("correlation")
        start = self.now[self.thread]
        end = self.run(kernel, correlation, start + 1500)
        self.now[self.thread] = end + 1500
        args = {"cbid": 41, "correlation": correlation}
        if self.op_stack:
            args["External id"] = self.op_stack[-1][1]
        self.span("cuda_runtime", "cudaMemcpyAsync", start,
                  self.now[self.thread], args)
        self.flow("s", "ac2g", correlation, start, 4000 + self.rank,
                  self.thread)


# -- building blocks --------------------------------------------------------

def kernel(lab, op, dims, name, ns, grid=1056, dtype="c10::BFloat16",
           api="cudaLaunchKernel", types=None, stream=7):
    with lab.op(op, dims, dtype, extra={"Input type": types} if types
                else None):
        lab.launch(Kernel(name, int(ns), stream, grid=(max(1, grid), 1, 1),
                          block=(256, 1, 1)), api)


def product(lab, m, n, k, op="aten::mm", fault=None, size=0):
    """A matrix product as a library runs it on H100."""
    name = NAMES["gemm"].format("tn", "128x128x64")
    ns = roofline_ns(2 * m * n * k, 2 * (m * k + k * n + m * n), 0.65)
    grid = max(1, -(-m // 128)) * max(1, -(-n // 128))
    # A library splits the sum where tiles are few.
    while grid < 132:
        grid *= 2
    dtype = "c10::BFloat16"
    if fault == "fp32_matmul":
        name = "void cutlass::Kernel<cutlass_80_simt_sgemm_128x128_8x4_tn_" \
               "align1>(Params)"
        dtype = "float"
        ns = roofline_ns(2 * m * n * k, 4 * (m * k + k * n + m * n),
                         0.65 * 494.7 / 989) * size
    if fault == "fp32_twin":
        dtype = "float"
        name = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_cublas"
        ns = roofline_ns(2 * m * n * k, 4 * (m * k + k * n + m * n),
                         0.65 * 494.7 / 989)
    if fault == "unaligned_gemm":
        name = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_" \
               "bf16_128x128_32x5_tn_align1>(Params)"
        n, ns = n + 1, ns * size
    if fault == "odd_vocabulary":  # no name says what the library chose
        n, ns = n + 1, ns * size
    if fault == "low_grid":
        grid = 32
        ns *= size
    if fault == "wave_tail":  # two waves, the second nearly empty
        grid = 140
        ns *= size
    ns *= lab.slow_library
    kernel(lab, op, [(m, k), (k, n)], name, ns, grid, dtype,
           "cudaLaunchKernelExC")


def mask_read(lab, rows, host_ns):
    """Rows by a mask: their number is read back, and the op is long."""
    with lab.op("aten::index", [(rows, 64)]):
        lab.busy(host_ns / 2)
        with lab.op("aten::nonzero", [(rows,)]):
            kernel(lab, "aten::nonzero", [(rows,)],
                   "void cub::DeviceReduceSingleTileKernel<int>", 3000, 1)
            lab.copy("DtoH", 4)
            lab.stream_sync()
        lab.busy(host_ns / 2)


def pointwise(lab, op, dims, functor, inputs=2):
    count = 1
    for d in dims[0]:
        count *= d
    name = ELEMENTWISE.format(functor, inputs + 1, functor, inputs + 1)
    kernel(lab, op, dims, name,
           roofline_ns(0, 2 * count * (inputs + 1)), max(200, count // 2048))


def norm(lab, tokens, h, backward=False):
    op = "aten::native_layer_norm" + ("_backward" if backward else "")
    kernel(lab, op, [(tokens, h), (h,), (h,)],
           NAMES["norm_bwd" if backward else "norm"],
           roofline_ns(0, (8 if backward else 4) * tokens * h),
           max(200, tokens))


def layout_copy(lab, tokens, h):
    functor = "at::native::direct_copy_kernel_cuda"
    name = ELEMENTWISE.format(functor, 2, functor, 2)
    with lab.op("aten::contiguous", [(tokens, h)]):
        with lab.op("aten::clone", [(tokens, h)]):
            kernel(lab, "aten::copy_", [(tokens, h), (tokens, h)], name,
                   roofline_ns(0, 4 * tokens * h), max(200, tokens))


def cast(lab, tokens, h, to_float):
    functor = "at::native::bfloat16_copy_kernel_cuda"
    name = ELEMENTWISE.format(functor, 2, functor, 2)
    types = ["c10::BFloat16", "float"] if to_float else ["float",
                                                         "c10::BFloat16"]
    with lab.op("aten::_to_copy", [(tokens, h)]):
        kernel(lab, "aten::copy_", [(tokens, h), (tokens, h)], name,
               roofline_ns(0, 6 * tokens * h), max(200, tokens), types=types)


class Plan:
    """What a run is: sizes, and the faults with their magnitudes."""

    def __init__(self, kind, seed, faults=None, **options):
        self.kind, self.seed = kind, seed
        self.faults = dict(faults or {})
        self.options = options
        probe = Lab(seed)
        pick = lambda key, values: values[
            int((probe.draw("plan", key) + 1) / 2 * len(values))]
        small = "op_overhead" in self.faults or options.get("small")
        self.layers = pick("layers", [3, 4, 6])
        self.hidden = pick("hidden", [2048, 3072, 4096])
        self.tokens = pick("tokens", [4096, 6144, 8192])
        self.steps = pick("steps", [5, 6, 7])
        if small:
            self.hidden, self.tokens = (2048, 3072) if kind == "train" \
                else (1024, 1024)
        if options.get("steps"):
            self.steps = options["steps"]
        self.heads = self.hidden // 128
        self.ffn = self.hidden * 11 // 4
        self.world = 2 if options.get("ranks") else 1
        # Of a padded batch; the same share of the tokens in any twin.
        self.valid = self.tokens
        if self.faults.get("padded_batch") or self.faults.get("little_padding"):
            ratio = self.faults.get("padded_batch") or 1.06
            self.valid = self.tokens
            self.tokens = int(self.tokens * ratio) // 64 * 64
        if kind == "job":
            self.world = pick("world", [3, 4, 6])
            pipeline = options.get("job") == "pipeline"
            self.micro = options.get("micro") or 1
            if pipeline:  # few bubbles when healthy
                self.layers = 2
                self.micro = self.world * (options.get("micro") or 12)
                self.tokens = 1024 * self.micro
                self.steps = 3

    def size(self, fault):
        return self.faults.get(fault, 0)

    def without(self, *names):
        """The twin: the same run without some faults."""
        twin = Plan(self.kind, self.seed, self.faults, **self.options)
        for key in ("layers", "hidden", "tokens", "steps", "heads", "ffn",
                    "world"):
            setattr(twin, key, getattr(self, key))
        if "padded_batch" in names:
            twin.tokens = self.valid
        if "few_micro_batches" in names:
            twin.micro *= 2
        twin.base = dict(self.faults)
        for name in names:
            twin.faults.pop(name, None)
        return twin


# -- training ---------------------------------------------------------------

def attention(lab, plan, backward=False):
    t, h = plan.tokens, plan.hidden
    shape = (1, plan.heads, t, 128)
    flops = 2 * 2 * plan.heads * t * t * 128 // 2
    size = plan.size("attention_math")
    part = "_backward" if backward else ""
    if size and not backward:
        # Scores of a shorter sequence, several at once: the same work.
        length = 1024
        batch = plan.heads * t // length
        scores = [(batch, length, length)]
        kernel(lab, "aten::bmm", [(batch, length, 128), (batch, 128, length)],
               NAMES["gemm"].format("tn", "128x128x64"),
               roofline_ns(2 * batch * length * length * 128,
                           2 * batch * length * length, 0.6))
        pointwise(lab, "aten::mul", scores, MUL, 1)
        for _ in range(size):
            pointwise(lab, "aten::add", scores * 2, ADD)
        kernel(lab, "aten::_softmax", scores, NAMES["softmax"],
               roofline_ns(0, 4 * batch * length * length))
        kernel(lab, "aten::bmm", [(batch, length, length),
                                  (batch, length, 128)],
               NAMES["gemm"].format("nn", "128x128x64"),
               roofline_ns(2 * batch * length * length * 128,
                           2 * batch * length * length, 0.6))
        return
    if size or "attention_math" in getattr(plan, "base", {}):
        flops = 4 * plan.heads * t * 1024 * 128 * (2.5 if backward else 1)
    else:
        flops *= 2.5 if backward else 1
    kernel(lab, "aten::_scaled_dot_product_flash_attention" + part,
           [shape] * 3, NAMES["flash_bwd" if backward else "flash"],
           roofline_ns(flops, 8 * t * h, 0.45), 2 * plan.heads * t // 128)


def side_work(lab, plan, number):
    """Work on other streams and devices beside a layer."""
    if share := plan.size("idle_device") or plan.size("uneven_devices"):
        lab.launch(Kernel(NAMES["gemm"].format("tn", "128x128x64"),
                          int(share * getattr(plan, "step_hint", 3e6) /
                              plan.layers), 27, (1056, 1, 1),
                          (256, 1, 1), args={"device": 1}))
    if plan.size("stray_device") and number == 0:
        # The second device has one small kernel of each step.
        lab.launch(Kernel(NAMES["gemm"].format("tn", "64x64x64"), 4000, 27,
                          (8, 1, 1), (256, 1, 1), args={"device": 1}))
    grid = 1056 if plan.size("full_streams") else 48
    for key in ("default_stream", "full_streams"):
        count = plan.size(key) or getattr(plan, "base", {}).get(key, 0)
        for index in range(2 * int(count)):
            kernel(lab, "aten::mm", [(512, 512)] * 2,
                   NAMES["gemm"].format("tn", "64x64x64"), 24000, grid,
                   stream=(7, 28)[index % 2])
    count = plan.size("legacy_stream") or \
        getattr(plan, "base", {}).get("legacy_stream", 0)
    for index in range(2 * int(count)):
        kernel(lab, "aten::mm", [(512, 512)] * 2,
               NAMES["gemm"].format("tn", "64x64x64"), 24000, 48,
               stream=(27, 28)[index % 2])
        lab.launch(Kernel("void bump_counter(unsigned int*)", 2000, 7,
                          (1, 1, 1), (32, 1, 1)))
    for _ in range(int(plan.size("queue_full"))):
        kernel(lab, "aten::mm", [(4096, 1024), (1024, 4096)],
               NAMES["gemm"].format("tn", "128x128x64"), 60000, 1056)


def island(lab, plan, name):
    """Eager code between two compiled regions."""
    if size := plan.size("graph_breaks") or plan.size("compiled_blocks"):
        lab.range("user_annotation", "TorchDynamo Cache Lookup", 9000)
        with lab.frame(f"model.py(77): {name}"):
            lab.busy(size)


def layer(lab, plan, number):
    if plan.size("graph_breaks") or plan.size("regions_in_a_row") or \
            plan.size("compiled_blocks"):
        # After a break a frame of its own goes on; blocks share theirs.
        frame = number if plan.size("graph_breaks") else 0
        with lab.annotation(f"Torch-Compiled Region: {frame}/0"):
            layer_body(lab, plan, number)
        if number + 1 < plan.layers:
            island(lab, plan, "log_norms")
        return
    layer_body(lab, plan, number)


def layer_body(lab, plan, number):
    side_work(lab, plan, number)
    t, h, f = plan.tokens, plan.hidden, plan.ffn
    fp32 = ("fp32_matmul" if plan.size("fp32_matmul") else
            "fp32_twin" if "fp32_matmul" in getattr(plan, "base", {}) else None)
    fault = ("unaligned_gemm" if plan.size("unaligned_gemm") else
             "low_grid" if plan.size("low_grid") else
             "wave_tail" if plan.size("wave_tail") else fp32)
    size = plan.size(fault) if fault else 0

    def linear(n, k, key):
        with lab.module("Linear", 310, (number, key)):
            with lab.op("aten::linear", [(t, k), (n, k)]):
                for _ in range(int(plan.size("cast_storm"))):
                    cast(lab, t, k, True)
                product(lab, t, n, k, fault=fault, size=size)
                for _ in range(int(plan.size("cast_storm"))):
                    cast(lab, t, n, False)
            for _ in range(int(plan.size("adapters"))):
                product(lab, t, 16, k)
                product(lab, t, n, 16)
                pointwise(lab, "aten::add", [(t, n), (t, n)], ADD)

    lab.labels["layer"] = number
    with lab.module("DecoderLayer", 120, number):
        parameters(lab, plan)
        with lab.module("LayerNorm", 30, (number, "in")):
            norm(lab, t, h)
        with lab.module("Attention", 60, number):
            linear(3 * h, h, "qkv")
            for _ in range(int(plan.size("layout_copies"))):
                layout_copy(lab, t, h)
            for _ in range(int(plan.size("library_layouts"))):
                kernel(lab, "aten::cudnn_convolution", [(t, h)],
                       "void cudnn::ops::nchwToNhwcKernel<__half, __half, "
                       "float, false, true, (cudnnKernelDataType_t)0>",
                       roofline_ns(0, 4 * t * h), max(200, t))
            attention(lab, plan)
            for _ in range(int(plan.size("layout_copies"))):
                layout_copy(lab, t, h)
            linear(h, h, "o")
        with lab.module("LayerNorm", 30, (number, "post")):
            norm(lab, t, h)
        with lab.module("MLP", 90, number):
            linear(2 * f, h, "up")
            # One fused kernel for activation and product.
            kernel(lab, "fused_silu_mul", [(t, 2 * f)],
                   "triton_poi_fused_mul_silu_3", roofline_ns(0, 6 * t * f),
                   t * f // 2048)
            for index in range(int(plan.size("elementwise_chain"))):
                pointwise(lab, ("aten::mul", "aten::add")[index % 2],
                          [(t, f), (t, f)], (MUL, ADD)[index % 2])
            linear(h, f, "down")
        for index in range(int(plan.size("tiny_kernels"))):
            kernel(lab, ("aten::mul", "aten::add")[index % 2],
                   [(1024, 64)] * 2, ELEMENTWISE.format(
                       (MUL, ADD)[index % 2], 3, (MUL, ADD)[index % 2], 3),
                   2000, 200)
        for _ in range(int(plan.size("sync_item"))):
            lab.item()
        for _ in range(int(plan.size("device_sync"))):
            lab.device_sync()
        if size := plan.size("mask_reads"):
            mask_read(lab, t, size)
    lab.labels.pop("layer")


def backward(lab, plan):
    t, h, f = plan.tokens, plan.hidden, plan.ffn
    for number in reversed(range(plan.layers)):
        if plan.size("full_recompute") or plan.size("recompute_when_full"):
            with lab.frame("torch/utils/checkpoint.py(1507): recompute_fn"):
                layer_body(lab, plan, number)
        lab.labels["layer"] = number
        for n, k in ((h, f), (2 * f, h)):
            with lab.op("autograd::engine::evaluate_function: MmBackward0",
                        host_ns=1200):
                product(lab, t, k, n)
                product(lab, n, k, t)
        norm(lab, t, h, True)
        for n, k in ((h, h),):
            product(lab, t, k, n)
            product(lab, n, k, t)
        attention(lab, plan, True)
        product(lab, t, h, 3 * h)
        product(lab, 3 * h, h, t)
        norm(lab, t, h, True)
        if plan.world > 1:
            reduce_bucket(lab, plan, number)
        lab.labels.pop("layer")


def collective(lab, plan, name, ns, stream=COMM, wait=True):
    if stream != 7 and wait:
        lab.wait_stream(stream, 7)
    op = "c10d::allreduce_" if "Reduce" in name else "c10d::" + name.lower()
    with lab.op(op, [(1 << 20,)], host_ns=6000):
        lab.launch(Kernel(f"ncclDevKernel_{name}_RING_LL("
                          "ncclDevKernelArgsStorage<4096ul>)", int(ns), stream,
                          (16, 1, 1), (544, 1, 1)), "cudaLaunchKernelExC")


def reduce_bucket(lab, plan, number):
    h, f = plan.hidden, plan.ffn
    slow = "late_bucket" in plan.faults or \
        "late_bucket" in getattr(plan, "base", {})
    ns = 12000 + (4 * h * h + 3 * h * f) * 2 / (200.0 if slow else 400.0)
    for _ in range(int(plan.size("bucket_copies"))):
        copy_on_device(lab, 400_000)
    for _ in range(int(plan.size("small_buckets"))):
        collective(lab, plan, "AllReduce_Sum_bf16", 15000)
    if not plan.size("late_bucket"):
        collective(lab, plan, "AllReduce_Sum_bf16", ns,
                   7 if plan.size("same_stream") else COMM)


def copy_on_device(lab, size):
    lab.launch(Kernel("Memcpy DtoD (Device -> Device)",
                      1500 + int(size / 1200), 7, kind="gpu_memcpy",
                      args={"bytes": size}), "cudaMemcpyAsync")


def step_start(lab, plan, number):
    """Input of a step: prefetched on a stream of its own when healthy."""
    if size := plan.size("loader_in_thread") or plan.size("cpu_loading"):
        lab.range("user_annotation", "enumerate(DataLoader)#"
                  "_SingleProcessDataLoaderIter.__next__", size)
    if size := plan.size("worker_starved"):
        lab.range("user_annotation", "enumerate(DataLoader)#"
                  "_MultiProcessingDataLoaderIter.__next__",
                  size * (1 + 0.5 * lab.draw("starved")))
    if size := plan.size("cpu_waits"):
        lab.range("python_function", "threading.py(355): wait", size)
    if size := plan.size("cpu_sort"):  # below a frame that waits by its name
        lab.range("python_function", "asyncio/base_events.py(1922): _run_once",
                  0, lambda: lab.range("cpu_op", "aten::sort", size))
    if (size := plan.size("one_allocation")) and number == 4:
        lab.free()
        lab.call("cudaMalloc", size)
    beside_names(lab, plan, number)
    if size := plan.size("pageable_batch"):
        with lab.op("aten::to", [(1,)]):
            with lab.op("aten::copy_", [(1,)]):
                lab.slow_copy("HtoD", int(size), 8.0)
    if size := plan.size("h2d_main_stream"):
        lab.copy("HtoD", int(size))
    for _ in range(int(plan.size("many_small_copies"))):
        lab.copy("HtoD", 64)
    for _ in range(int(plan.size("cpu_item"))):
        with lab.op("aten::item", [()], host_ns=300):
            with lab.op("aten::_local_scalar_dense", [()], host_ns=100):
                pass
    lab.copy("HtoD", 8 * plan.tokens, 13)
    if plan.size("alloc_churn"):
        for _ in range(int(plan.size("alloc_churn"))):
            lab.call("cudaMalloc", 120_000)
            lab.free()
    for fault, full in (("near_capacity", 0), ("memory_roomy", 0),
                        ("full_recompute", 0.5),
                        ("recompute_when_full", 0.9)):
        if part := full or plan.size(fault):
            if not plan.size(fault) and \
                    fault not in getattr(plan, "base", {}):
                continue
            lab.memory(0.01, part - 0.1, part)
            lab.memory(-0.01, part - 0.11, part)
    if plan.size("reserve_limit"):
        # An allocation fails, all cached segments go back, it is tried again.
        lab.memory(-0.01, 0.7, 0.97)
        for _ in range(int(plan.size("reserve_limit"))):
            lab.free()
            lab.call("cudaMalloc", 120_000)
        lab.memory(0.02, 0.72, 0.8)
    if number >= 2 and plan.size("module_load"):
        lab.call("cuModuleLoadData", plan.size("module_load"))
    if number >= 2 and plan.size("recompile"):
        lab.range("python_function",
                  "torch/_dynamo/convert_frame.py(1064): _compile",
                  plan.size("recompile"))
    if number >= 2 and plan.size("autotune"):
        lab.range("python_function",
                  "triton/runtime/autotuner.py(122): _bench",
                  plan.size("autotune"))


def beside_names(lab, plan, number):
    """Causes that other frameworks give other names, and those whose names
    mislead: what waits around an act, and what is in a file called so."""
    if size := plan.size("loop_work"):
        with lab.frame("asyncio/runners.py(118): run"), \
                lab.frame("asyncio/base_events.py(1922): _run_once"), \
                lab.frame("asyncio/events.py(84): _run"):
            with lab.op("aten::normal_", [(1 << 20,)], host_ns=100):
                lab.busy(size)
    if size := plan.size("queued_batches"):
        with lab.frame("nvidia/dali/plugin/pytorch.py(194): __next__"), \
                lab.frame("queue.py(171): get"), \
                lab.frame("threading.py(320): wait"):
            lab.range("python_function", "<built-in method acquire of "
                      "_thread.lock object at 0x7f12>", size)
    if number >= 2 and (size := plan.size("compile_worker")):
        with lab.frame("torch/_inductor/async_compile.py(325): wait"), \
                lab.frame("concurrent/futures/_base.py(451): result"):
            lab.range("python_function", "<built-in method acquire of "
                      "_thread.lock object at 0x7f12>", size)
    if number >= 2 and (size := plan.size("trials")):
        with lab.frame("triton/testing.py(96): do_bench"):
            for trial in range(24):
                lab.launch(Kernel(f"_paged_attn_fwd_{trial % 6}", int(size),
                                  7, (1056, 1, 1), (256, 1, 1)))
                if trial % 4 == 3:
                    lab.device_sync()
    if plan.size("tuning_lookup"):
        for _ in range(36):
            with lab.frame("flashinfer/autotuner.py(430): choose_one"):
                lab.busy(2_000)
    if plan.size("extra_copies"):
        for _ in range(40 if number % 2 else 0):
            lab.copy("HtoD", 4096, 13)
    if size := plan.size("custom_op"):
        with lab.op("acme::fused_trunk", [(plan.tokens, plan.hidden)]):
            lab.launch(Kernel("acme_trunk_kernel", int(size), 7,
                              (1056, 1, 1), (256, 1, 1)))
    if size := plan.size("unshaped"):
        lab.launch(Kernel("acme_trunk_kernel", int(size), 7, (1056, 1, 1),
                          (256, 1, 1)))
    if size := plan.size("page_migrations"):
        start = max(lab.now[lab.thread], lab.stream_free.get(7, 0)) + 20_000
        lab.launch(Kernel("stencil_over_managed_memory", int(size), 7,
                          (1056, 1, 1), (256, 1, 1)))
        for page in range(int(size * 0.8) // 9000):
            lab.run(Kernel("Memcpy Unified HtoD (Unknown -> Unknown)", 8000,
                           55, kind="gpu_memcpy", args={"bytes": 65536}),
                    lab.next("correlation"), start + page * 9000)
    for _ in range(int(plan.size("device_swaps"))):
        copy_on_device(lab, 64 << 20)


def parameters(lab, plan):
    """Weights that are kept on the host come before their layer needs them."""
    if size := plan.size("fsdp_offload"):
        with lab.annotation("FullyShardedDataParallel._pre_forward"):
            with lab.op("aten::copy_", [(1,)]):
                lab.copy("HtoD", int(size))
    if size := plan.size("hooked_weights"):
        with lab.frame("accelerate/hooks.py(340): pre_forward"):
            lab.copy("HtoD", int(size))
    if size := plan.size("swapped_blocks"):
        with lab.annotation("swap_blocks cpu->gpu"):
            lab.copy("HtoD", int(size))
    if size := plan.size("weights_by_module"):
        lab.copy("HtoD", int(size))


def step_end(lab, plan, number):
    h = plan.hidden
    count = plan.layers * (4 * h * h + 3 * h * plan.ffn)
    if plan.world > 1:
        if plan.size("late_bucket"):
            collective(lab, plan, "AllReduce_Sum_bf16",
                       plan.layers * 12000 + count * 2 / 200.0)
        if plan.size("all_to_all_exposed"):
            collective(lab, plan, "AllToAll", plan.size("all_to_all_exposed"))
        if plan.size("gather_no_prefetch"):
            collective(lab, plan, "AllGather",
                       plan.size("gather_no_prefetch"))
        lab.wait_stream(7, COMM)
    if size := plan.size("offloaded_tensors"):
        for direction in ("DtoH", "HtoD"):
            for _ in range(4):
                lab.copy(direction, int(size))
    if size := plan.size("cpu_optimizer"):
        with lab.op("aten::copy_", [(1,)]):
            lab.slow_copy("DtoH", 4096, 10.0, "Pinned")
        lab.range("python_function",
                  "deepspeed/ops/adam/cpu_adam.py(148): step", size)
    if size := plan.size("d2h_metrics"):
        with lab.op("aten::to", [(1,)]):
            with lab.op("aten::copy_", [(1,)]):
                lab.slow_copy("DtoH", 4096, 10.0, "Pinned")
        lab.busy(size)
    for fault in ("dense_table_grad", "small_table_grad"):
        if rows := plan.size(fault):
            if fault == "small_table_grad":
                rows = plan.tokens * 5
            with lab.op("aten::embedding_dense_backward",
                        [(plan.tokens, h), (1, plan.tokens)],
                        concrete=[str(int(rows)), "-1", "False"]):
                kernel(lab, "aten::zero_", [(int(rows), h)],
                       ELEMENTWISE.format("at::native::FillFunctor<float>", 1,
                                          "at::native::FillFunctor<float>", 1),
                       roofline_ns(0, 2 * rows * h))
                kernel(lab, "aten::embedding_dense_backward", [],
                       NAMES["embedding"], roofline_ns(0, 6 * plan.tokens * h),
                       plan.tokens)
    with lab.annotation("Optimizer.step#AdamW.step"):
        if plan.size("optimizer_per_tensor"):
            for index in range(int(plan.size("optimizer_per_tensor"))):
                for op in ("aten::lerp_", "aten::mul_", "aten::addcmul_",
                           "aten::sqrt", "aten::div", "aten::add_",
                           "aten::addcdiv_"):
                    kernel(lab, op, [(1024,), (1024,)],
                           ELEMENTWISE.format(MUL, 3, MUL, 3), 1800, 200)
        for part in range(4):
            kernel(lab, "aten::_fused_adamw_", [(count // 4,)], NAMES["adam"],
                   roofline_ns(0, 7 * count / 2) *
                   max(1, plan.size("slow_optimizer")), 512)
    if size := plan.size("d2h_print"):
        with lab.op("aten::to", [(1,)]):
            with lab.op("aten::copy_", [(1,)]):
                lab.slow_copy("DtoH", int(size), 11.0)
    if size := plan.size("checkpoint") or plan.size("cpu_checkpoint"):
        if number % 2 == 1:
            lab.range("python_function", "torch/serialization.py(619): save",
                      size)
    if (size := plan.size("plots")) and number % 2 == 1:
        with lab.frame("ipykernel/kernelapp.py(736): start"), \
                lab.frame("curves.py(20): show_loss"):
            lab.item()
            lab.range("python_function", "matplotlib/backends/"
                      "backend_agg.py(484): print_png", size)
    if size := plan.size("reads_in_a_row"):
        with lab.frame("monitor.py(31): grad_report"):
            for _ in range(int(size)):
                kernel(lab, "aten::linalg_vector_norm", [(1 << 20,)],
                       ELEMENTWISE.format(MUL, 2, MUL, 2), 3000, 200)
                lab.item()
    if (size := plan.size("saved_copies")) and number % 2 == 1:
        with lab.frame("engine/persist.py(55): dump_state"):
            for _ in range(4):
                lab.slow_copy("DtoH", int(size), 4.0)
            lab.range("python_function", "torch/serialization.py(944): save",
                      size / 4)
    if size := plan.size("staged_unnamed"):
        lab.slow_copy("DtoH", int(size), 4.0, "Host")
    if size := plan.size("host_work"):
        with lab.op("custom::post_process", [(1,)], host_ns=100):
            lab.busy(size)
    if plan.size("gc_pause"):
        lab.range("python_function",
                  "<built-in method collect of module object at 0x7f0a>",
                  plan.size("gc_pause"))


def train_step(lab, plan, number):
    t, h = plan.tokens, plan.hidden
    lab.labels = {"step": number}
    plan_ = plan
    with lab.annotation(f"ProfilerStep#{number}"):
        with lab.frame("train.py(88): train_step"):
            step_start(lab, plan_, number)
            for fault in ("padded_batch", "little_padding"):
                if part := plan.size(fault) or \
                        getattr(plan, "base", {}).get(fault):
                    with lab.annotation(f"batch tokens={plan.tokens} "
                                        f"valid={int(plan.valid)}"):
                        pass
            warm = plan.size("warmup_steps") if number < 2 else 0
            if warm:
                lab.busy(warm)
            with lab.module("TransformerLM", 200, 0):
                kernel(lab, "aten::embedding", [(32000, h), (t,)],
                       NAMES["embedding"], roofline_ns(0, 4 * t * h),
                       max(200, t))
                for index in range(plan.layers):
                    layer(lab, plan, index)
                norm(lab, t, h)
                product(lab, t, 32000, h, fault="odd_vocabulary"
                        if plan.size("odd_vocabulary") else None,
                        size=plan.size("odd_vocabulary"))
            kernel(lab, "fused_cross_entropy", [(t, 32000)],
                   "triton_red_fused__log_softmax_nll_loss_4",
                   roofline_ns(0, 4 * t * 32000), t)
            with lab.on_thread(BACKWARD):
                backward(lab, plan)
            step_end(lab, plan, number)
            if size := plan.size("steps_unlike"):
                for _ in range(int(size) if number % 2 else 0):
                    product(lab, t, h, h)


def train(plan, **options):
    lab = Lab(plan.seed, **options)
    if plan.size("op_overhead"):
        lab.op_factor = plan.size("op_overhead")
    lab.slow_library = plan.size("slow_library") or 1
    if slower := plan.size("sm_contention"):
        lab.kernel_factor = lambda work, begin: \
            1 + slower * (work.kind == "kernel" and "nccl" not in work.name and
                        begin < lab.stream_free.get(COMM, 0))
    if drop := plan.size("clock_drop"):
        length = [None]

        def slower(work, begin):
            if length[0] is None:
                length[0] = begin
            return 1 + drop * min(1, (begin - length[0]) /
                                  (plan.steps * plan.step_hint))
        lab.kernel_factor = slower
    for fault in ("clock_counter", "clock_steady"):
        if less := plan.size(fault):
            clock_falls(lab, plan, less if fault == "clock_counter" else 0)
    if plan.size("clock_idle"):
        other_clocks(lab, plan)
    if stop_ns := plan.size("thread_stopped") or plan.size("lock_held"):
        held = plan.size("lock_held")

        def stop():
            if lab.labels.get("step", 0) < 1 or held and lab.thread != 1 or \
                    lab.draw("stopped") < (0.4 if held else 0.8):
                return
            start = lab.now[lab.thread]
            lab.busy(stop_ns * (1 + 0.5 * lab.draw("stop length")))
            if held:
                lab.span("python_function", "metrics.py(40): aggregate",
                         start, lab.now[lab.thread],
                         {"Python parent id": None,
                          "Python id": lab.next("python")}, tid=61)
        lab.before_launch = stop
    if plan.size("queue_full"):
        lab.queue_limit = 1024
    if plan.size("default_stream"):
        lab.shared_streams = (7, 28)
    if plan.size("legacy_stream"):  # stream 7 waits for both, and they for it
        lab.shared_streams = (7, 27, 28)
    if plan.size("full_streams"):  # they fill the device and take turns
        lab.shared_streams = (7, 28)
    if flush_ns := plan.size("profiler_overhead"):
        def flush():
            if lab.draw("flush") > 1 - 2 / 60:
                lab.range("overhead", "Activity Buffer Request", flush_ns)
        lab.after_launch = flush
    if size := plan.size("missing_records"):
        lab.lost = lambda work: "flash" in work.name and work.kind == "kernel"
    if held_ns := plan.size("callback"):
        held = [0]

        def hold():
            held[0] += 1
            if held[0] % 40 == 0:
                lab.stream_free[7] = lab.stream_free.get(7, 0) + int(held_ns)
        lab.after_launch = hold
    if short_ns := plan.size("short_waits"):
        def delay():
            lab.stream_free[7] = lab.stream_free.get(7, 0) + int(short_ns)
        lab.after_launch = delay
    if size := plan.size("cold_start"):
        kernel(lab, "aten::zeros", [(1,)], ELEMENTWISE.format(ADD, 1, ADD, 1),
               2000, 200)
        lab.call("cudaFree", size)
        lab.call("cuModuleLoadData", size / 2)
        lab.call("cudaMalloc", size / 4)
    if size := plan.size("graph_capture"):
        kernel(lab, "aten::zeros", [(1,)], ELEMENTWISE.format(ADD, 1, ADD, 1),
               2000, 200)
        lab.call("cudaStreamBeginCapture", 4_000)
        for _ in range(100):
            lab.range("cpu_op", "aten::linear", size / 125,
                      lambda: lab.call("cudaStreamGetCaptureInfo", size / 500))
        lab.call("cudaStreamEndCapture", 20_000)
    if size := plan.size("set_up"):
        for _ in range(2):
            kernel(lab, "aten::zeros", [(1,)],
                   ELEMENTWISE.format(ADD, 1, ADD, 1), 2000, 200)
            lab.range("python_function", "run.py(30): build", size)
    for number in range(plan.steps):
        train_step(lab, plan, number)
    lab.device_sync()
    if plan.size("second_thread"):
        spans = [e for e in lab.events if e["ph"] == "X"]
        at, last = (f(e["ts"].ns for e in spans) for f in (min, max))
        while at < last:
            lab.span("python_function", "metrics.py(40): aggregate", at,
                     at + 3_000_000, {"Python parent id": None,
                                      "Python id": lab.next("python")}, tid=61)
            at += 5_000_000
    return lab


def clock_falls(lab, plan, drop):
    """The clock of the multiprocessors, which products follow, and samples
    of it every 2 ms of the run. It falls with a step, not at a time: a run
    that is shorter for want of another fault has as much slow work."""
    first_slow = int(0.4 * plan.steps)
    fell, sampled = [None], [None]

    def sample(until):
        while sampled[0] <= until:
            late = fell[0] is not None and sampled[0] >= fell[0]
            lab.counter("GPU 0 SM clock", "MHz",
                        int(1980 / (1 + drop)) if late else 1980, sampled[0])
            lab.counter("GPU 0 throttle reasons", "bits", 4 if late else 0,
                        sampled[0])
            sampled[0] += 2_000_000

    def slower(work, begin):
        if sampled[0] is None:
            sampled[0] = begin
        if fell[0] is None and lab.labels.get("step", 0) >= first_slow:
            fell[0] = begin
        sample(begin)
        bound = "gemm" in work.name or "flash" in work.name
        late = fell[0] is not None and begin >= fell[0]
        return 1 + drop if bound and late else 1.0
    lab.kernel_factor = slower


def other_clocks(lab, plan):
    """Clocks that say nothing of the kernels: of the CPU, and of the device in
    one sample while it was idle, with its load as "Throttle %"."""
    begun = []

    def sample(work, begin):
        if begun:
            return 1.0
        begun.append(begin)
        whole = int(2 * plan.steps * plan.step_hint)
        for at in range(0, whole, 2_000_000):
            low = at == whole // 8_000_000 * 2_000_000
            lab.counter("GPU 0 SM clock", "MHz", 345 if low else 1980,
                        begin + at)
            lab.counter("CPU Core 3 Frequency", "MHz",
                        3800 if at < whole // 4 else 1200, begin + at)
            lab.counter("Throttle %", "%", 100, begin + at)
        return 1.0
    lab.kernel_factor = sample


# -- serving ----------------------------------------------------------------

def decode_body(lab, plan):
    b = int(plan.size("low_batch")) or 64
    h, f = plan.hidden, plan.ffn
    live = b
    for fault in ("graph_padding", "small_graph_padding"):
        if ratio := plan.size(fault) or getattr(plan, "base", {}).get(fault):
            live, b = 512, int(512 * (ratio if plan.size(fault) else 1))
    weights = lambda n, k: roofline_ns(2 * b * n * k, 2 * n * k, 0.65)
    context = 32 if plan.options.get("small") else 1024
    for number in range(plan.layers * 4):
        lab.labels["layer"] = number
        kernel(lab, "vllm::fused_add_rms_norm", [(b, h)], NAMES["rms"], 2500,
               200)
        for n, k in ((3 * h, h), (h, h), (2 * f, h), (h, f)):
            kernel(lab, "aten::mm", [(b, k), (k, n)],
                   NAMES["gemm"].format("tn", "64x128x64_splitK"),
                   weights(n, k), 264, api="cudaLaunchKernelExC")
            if (n, k) == (3 * h, h):
                kernel(lab, "vllm::unified_attention", [(b, plan.heads, 128)],
                       NAMES["paged"], roofline_ns(0, 4 * live * context * h),
                       512)
                for _ in range(int(plan.size("kv_copies"))):
                    kernel(lab, "vllm::copy_blocks", [(b, 16, 128)],
                           "void vllm::copy_blocks_kernel<c10::BFloat16>"
                           "(long*, long*, long const*, int)",
                           roofline_ns(0, 16 * b * h), 512)
    lab.labels.pop("layer")


def serve(plan, **options):
    lab = Lab(plan.seed, **options)
    lab.labels = {"phase": "decode"}
    with lab.capturing() as graph:
        decode_body(lab, plan)
    lab.events.clear()
    lab.seen.clear()
    steps = plan.options.get("decodes", 24)
    for number in range(steps):
        lab.labels = {"step": number}
        b, h = int(plan.size("low_batch")) or 64, plan.hidden
        padded = ""
        for fault in ("graph_padding", "small_graph_padding"):
            if ratio := plan.size(fault) or \
                    getattr(plan, "base", {}).get(fault):
                b = 512
                padded = f"_captured_{int(512 * (plan.size(fault) or 1))}"
        prompt = int(plan.size("prefill_in_decode")) if number % 3 == 2 else 0
        with lab.annotation(
                f"execute_{b + prompt}_context_{int(prompt > 0)}(sq{prompt}"
                f"sk{prompt}sqsq{prompt}sqsk{prompt})_"
                f"generation_{b}(sq{b}sk65536sqsq{b}sqsk65536){padded}"):
            with lab.frame("engine.py(310): execute_model"):
                lab.spend(30_000)
                if size := plan.size("detokenize"):
                    lab.range("python_function", "vllm/transformers_utils/"
                              "detokenizer.py(88): decode_sequence_inplace",
                              size)
                if size := plan.size("gc_pause"):
                    if number % 6 == 2:
                        lab.range("python_function", "<built-in method "
                                  "collect of module object at 0x7f0a>", size)
                if size := plan.size("logging"):
                    lab.range("python_function",
                              "logging/__init__.py(1477): info", size)
                lab.copy("HtoD", 512, 13)
                drafts = plan.size("poor_drafts") or plan.size("good_drafts")
                if drafts:
                    with lab.annotation("draft 4 tokens"):
                        for _ in range(int(drafts)):
                            product(lab, 256, h, h)
                if plan.size("eager_drafts"):
                    with lab.frame("medusa/heads.py(61): propose"):
                        for _ in range(40):
                            with lab.module("MedusaHead", 61, 0):
                                lab.busy(plan.size("eager_drafts"))
                                product(lab, 64, 512, 512)
                accepted = 0.05 if plan.size("poor_drafts") else 3.2
                with lab.annotation(f"verify drafted=4 accepted={accepted}") \
                        if drafts else contextlib.nullcontext():
                    if plan.size("eager_decode"):
                        decode_body(lab, plan)
                    else:
                        replay(lab, plan, graph)
                if prompt:
                    for _ in range(plan.layers):
                        for n, k in ((3 * h, h), (h, h), (h, plan.ffn)):
                            product(lab, prompt, n, k)
                product(lab, b, 32000, h)
                kernel(lab, "aten::argmax", [(b, 32000)], NAMES["argmax"],
                       roofline_ns(0, 4 * b * 32000), 264)
                if size := plan.size("sampler_sync"):
                    with lab.op("aten::to", [(b,)]):
                        with lab.op("aten::copy_", [(b,)]):
                            lab.slow_copy("DtoH", 8 * b, 10.0, "Pinned")
                    lab.busy(size)
                else:
                    lab.copy("DtoH", 8 * b)
                if size := plan.size("host_work"):
                    with lab.op("custom::post_process", [(1,)], host_ns=100):
                        lab.busy(size)
    lab.device_sync()
    return lab


def replay(lab, plan, graph):
    correlation = lab.next("correlation")
    called = lab.api("cudaGraphLaunch", correlation, flow=True, host_ns=9000)
    gap = plan.size("graph_gaps")
    for index, node in enumerate(graph.nodes):
        extra = {"graph id": graph.graph_id,
                 "graph node id": (graph.graph_id << 32) + index}
        if gap and index:
            lab.stream_free[7] += int(gap)
        lab.run(Kernel(node.name, node.dur_ns, node.stream, node.grid,
                       node.block), correlation, called, extra=extra)


def job(plan, **options):
    from lab_job import job as run  # it is made of this file
    return run(plan, **options)


RUNS = {"train": train, "serve": serve, "job": job}


def window_ns(lab):
    """From the first start to the last end of device work."""
    spans = [(e["ts"].ns, e["ts"].ns + e["dur"].ns) for e in lab.events
             if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    return max(end for _, end in spans) - min(start for start, _ in spans)


def simulate(plan, **options):
    return RUNS[plan.kind](plan, **options)
