# SPDX-License-Identifier: Apache-2.0
"""Random cases of many shapes for `lamina layers`, each with its truth: which
stacks there are, how many layers one pass of each holds and in how many passes
it stands. Kernels, launches, graph launches, step annotations and host waits as
profilers write them, without module frames."""
import random

# What the kernels of a layer are called by different programs. A role that a
# dialect lacks is left out of its layers; several names are several kernels.
DIALECTS = {
    "vllm": {
        "norm": ["void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>"],
        "qkv": ["sm90_xmma_gemm_bf16bf16_bf16f32_qkv_tn_n"],
        "rope": ["void vllm::rotary_embedding_kernel<c10::BFloat16, true>"],
        "cache": ["void vllm::reshape_and_cache_flash_kernel<bf16>"],
        "attn": ["void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128>>"],
        "prefill": ["void flash_fwd_kernel<Flash_fwd_kernel_traits<128>>"],
        "o": ["sm90_xmma_gemm_bf16bf16_bf16f32_o_tn_n"],
        "up": ["sm90_xmma_gemm_bf16bf16_bf16f32_up_tn_n"],
        "act": ["void vllm::act_and_mul_kernel<c10::BFloat16, silu>"],
        "down": ["sm90_xmma_gemm_bf16bf16_bf16f32_down_tn_n"],
        "embed": ["void at::native::indexSelectLargeIndex<embedding>"],
        "head": ["sm90_xmma_gemm_bf16bf16_bf16f32_lmhead_tn_n"],
        "sample": ["void at::native::reduce_kernel<512, 1, ArgMaxOps>"],
    },
    "trtllm": {
        "norm": ["void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bf16>"],
        "qkv": ["nvjet_tst_192x128_64x4_2x1_v_bz_TNT"],
        "rope": ["void tensorrt_llm::kernels::applyBiasRopeUpdateKVCacheV2"],
        "attn": ["fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausal"],
        "prefill": ["fmhaSm100fKernel_QkvBfloat16OBfloat16H128VarSeqQ128"],
        "o": ["nvjet_tst_64x16_64x16_2x1_v_bz_splitK_TNT",
              "void cublasLt::splitKreduce_kernel<32, 16, int, bf16>"],
        "up": ["nvjet_tst_256x128_64x4_2x1_v_bz_TNT"],
        "act": ["void flashinfer::activation::act_and_mul_kernel<__nv_bf16>"],
        "down": ["nvjet_tst_128x256_64x4_1x2_h_bz_TNT"],
        "embed": ["void at::native::vectorized_gather_kernel<16, long>"],
        "head": ["nvjet_tst_320x128_64x3_1x2_h_bz_TNN"],
        "sample": ["void at::native::cunn_SoftMaxForward<8, float>",
                   "void tensorrt_llm::kernels::topPSampleKernel"],
    },
    "rocm": {
        "norm": ["_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16E"],
        "qkv": ["Cijk_Alik_Bljk_BBS_BH_MT128x128x64_MI16x16x1_qkv"],
        "rope": ["void aiter::fused_qk_rope_kernel"],
        "cache": ["void vllm::reshape_and_cache_kernel<hip_bfloat16>"],
        "attn": ["void paged_attention_ll4mi_QKV_mfma16_kernel<0, bf16>",
                 "void paged_attention_ll4mi_reduce_kernel<bf16>"],
        "prefill": ["aiter::fmha_fwd_hd128_bf16_causal_rtz"],
        "o": ["Cijk_Alik_Bljk_BBS_BH_MT64x64x128_MI16x16x1_o"],
        "up": ["Cijk_Alik_Bljk_BBS_BH_MT256x256x64_MI16x16x1_up"],
        "act": ["void vllm::act_and_mul_kernel<hip_bfloat16, silu>"],
        "down": ["Cijk_Alik_Bljk_BBS_BH_MT192x128x64_MI16x16x1_down"],
        "embed": ["void at::native::indexSelectSmallIndex<embedding>"],
        "head": ["Cijk_Alik_Bljk_BBS_BH_MT512x160x64_MI16x16x1_head"],
        "sample": ["void at::native::reduce_kernel<512, 1, ArgMaxOps>"],
    },
    "aten": {
        "norm": ["void at::native::vectorized_layer_norm_kernel<bf16, float>"],
        "qkv": ["ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_tn"],
        "rope": ["void at::native::CatArrayBatchedCopy<bf16, 4>",
                 "void at::native::elementwise_kernel<128, 4, mul>"],
        "attn": ["void pytorch_flash::flash_fwd_kernel<Flash_traits<64>>"],
        "prefill": ["void pytorch_flash::flash_fwd_kernel<Flash_traits<64>>"],
        "o": ["ampere_bf16_s16816gemm_bf16_64x64_ldg8_f2f_stages_tn"],
        "up": ["ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_tn"],
        "act": ["void at::native::vectorized_elementwise_kernel<4, "
                "GeluCUDAKernelImpl>"],
        "down": ["ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_tn",
                 "void at::native::vectorized_elementwise_kernel<4, "
                 "CUDAFunctor_add<bf16>>"],
        "embed": ["void at::native::indexSelectLargeIndex<float, embedding>"],
        "head": ["ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_nn"],
        "sample": ["void at::native::reduce_kernel<512, 1, ArgMaxOps>"],
    },
    # Names that say nothing.
    "opaque": {role: [f"kernel_{i:03d}"] for i, role in enumerate(
        ["norm", "qkv", "rope", "cache", "attn", "prefill", "o", "up", "act",
         "down", "embed", "head", "sample"])},
}
MOE = ["topkGatingSoftmax_kernel", "moe_align_block_size_kernel",
       "fused_moe_gemm_{a}", "act_and_mul_kernel<silu>", "fused_moe_gemm_{b}",
       "moe_sum_kernel"]
MAMBA = ["sm90_xmma_gemm_inproj", "causal_conv1d_fwd_kernel",
         "mamba_chunk_scan_kernel", "layernorm_gated_kernel",
         "sm90_xmma_gemm_outproj"]
GDN = ["sm90_xmma_gemm_qkvz", "_causal_conv1d_update_kernel",
       "fused_sigmoid_gating_delta_rule_update_kernel", "layer_norm_gated",
       "sm90_xmma_gemm_gdn_out"]
MLA = ["sm90_gemm_qa", "rms_norm_q", "sm90_gemm_qb", "concat_mla_rope",
       "flash_mla_decode_kernel", "flash_mla_combine", "sm90_gemm_uv",
       "sm90_gemm_o"]
ALLREDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


class Model:
    """The kernels of one model: names of a dialect with a tag of its own."""

    def __init__(self, rng, tag="", dialect=None):
        self.rng = rng
        self.tag = tag
        self.dialect = dialect or rng.choice(
            ["vllm", "vllm", "trtllm", "rocm", "aten"])
        self.names = DIALECTS[self.dialect]
        self.reduce = dialect != "opaque" and rng.random() < 0.2
        self.extra = [] if dialect == "opaque" or rng.random() < 0.7 else \
            ["void at::native::elementwise_kernel<128, 2, direct_copy>"]
        self.qk_norm = self.dialect == "vllm" and rng.random() < 0.15
        self.sandwich = self.dialect == "vllm" and rng.random() < 0.1

    def of(self, *roles):
        out = []
        for role in roles:
            names = self.names.get(role, [])
            # Products and attention have a shape of their own per model.
            tagged = role in ("qkv", "o", "up", "down", "attn", "prefill")
            out += [n + self.tag if tagged else n for n in names]
        return out

    def mixer(self, stage="attn", names=None):
        body = list(names) if names else self.of("qkv")
        if names is None:
            if self.qk_norm:
                body += ["rms_norm_head_q", "rms_norm_head_k"]
            body += self.of("rope", "cache") + self.of(stage) + self.of("o")
        tail = [ALLREDUCE] if self.reduce else []
        if self.sandwich:
            tail += self.of("norm")
        return self.of("norm") + self.extra + body + tail

    def feed(self, names=None):
        body = list(names) if names else self.of("up", "act", "down")
        tail = [ALLREDUCE] if self.reduce else []
        if self.sandwich:
            tail += self.of("norm")
        return self.of("norm") + body + tail

    def moe(self, a="128x128", b="64x128"):
        return [n.format(a=a, b=b) for n in MOE]

    def layer(self, stage="attn"):
        return self.mixer(stage) + self.feed()

    def backward(self, recompute):
        t = self.tag
        if self.dialect == "opaque":
            own = [f"kernel_b{i}" for i in range(11)]
        else:
            own = ["dgrad_gemm_down" + t, "wgrad_gemm_down" + t,
                   "silu_backward_kernel", "dgrad_gemm_up" + t,
                   "wgrad_gemm_up" + t, "rms_norm_backward_kernel",
                   "dgrad_gemm_o" + t, "wgrad_gemm_o" + t,
                   "flash_bwd_dq_dk_dv_loop_kernel", "rope_backward_kernel",
                   "dgrad_gemm_qkv" + t, "wgrad_gemm_qkv" + t,
                   "rms_norm_backward_kernel"]
        return (self.layer("prefill") if recompute else []) + own

    def head(self):
        return self.of("embed")

    def tail(self):
        return self.of("norm", "head", "sample")


class Tape:
    """Writes a trace: kernels of streams with their launches."""

    def __init__(self, rng, noise):
        self.rng = rng
        self.noise = noise
        self.events = []
        self.now = 1000.0   # of the device
        self.correlation = 100
        self.graph = None
        self.in_graph = None
        self.stream_now = {}

    def put(self, name, stream=7):
        start = max(self.now, self.stream_now.get(stream, 0.0))
        dur = 4 + 12 * self.rng.random()
        if self.in_graph is None:
            self.correlation += 1
            launch = self.correlation
            host = start - 30
            self.events.append({
                "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel",
                "pid": 1, "tid": 1, "ts": round(host, 3), "dur": 3.0,
                "args": {"correlation": launch}})
        else:
            launch = self.in_graph
        self.events.append({
            "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream,
            "ts": round(start, 3), "dur": round(dur, 3),
            "args": {"device": 0, "stream": stream, "context": 1,
                     "correlation": launch}})
        end = start + dur + 0.6 + 0.8 * self.rng.random()
        self.stream_now[stream] = end
        return end

    def kernels(self, names, stream=7):
        """Names one behind the other, with noise."""
        for name in names:
            chance = self.rng.random()
            if chance < self.noise / 3:
                continue
            if chance < 2 * self.noise / 3:
                self.now = self.put(name, stream)
                self.now = self.put(f"extra_{self.rng.randrange(4)}", stream)
            elif chance < self.noise:
                self.now = self.put(f"renamed_{self.rng.randrange(4)}", stream)
            else:
                self.now = self.put(name, stream)

    def launch(self):
        """Begins a graph launch."""
        self.correlation += 1
        self.in_graph = self.correlation
        self.events.append({
            "ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch",
            "pid": 1, "tid": 1, "ts": round(self.now - 20, 3), "dur": 8.0,
            "args": {"correlation": self.in_graph}})

    def end(self):
        self.in_graph = None

    def idle(self, us):
        self.now += us

    def sync(self, us):
        """The host waits for the device, then the device for the host."""
        self.correlation += 1
        self.events.append({
            "ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize",
            "pid": 1, "tid": 1, "ts": round(self.now - 12, 3), "dur": 14.0,
            "args": {"correlation": self.correlation}})
        self.now += us

    def step(self, name, begin):
        self.events.append({
            "ph": "X", "cat": "user_annotation", "name": name, "pid": 1,
            "tid": 1, "ts": round(begin, 3),
            "dur": round(self.now - 31 - begin, 3), "args": {}})


class Case:
    def __init__(self, kind, stacks, note=""):
        self.kind = kind
        self.stacks = stacks  # (layers, passes)
        self.note = note


def separator(tape, rng, way, number, body):
    """One pass of `body()`, told apart in a way of its own."""
    if way == "graph":
        tape.launch()
        body()
        tape.end()
        tape.idle(rng.choice([1, 10, 40]))
    elif way == "step":
        begin = tape.now - 31
        body()
        tape.step(f"ProfilerStep#{number}" if number % 1 == 0 else "", begin)
    elif way == "vllm":
        begin = tape.now - 31
        body()
        tape.step("execute_context_0(0)_generation_8(8)", begin)
    elif way == "sync":
        body()
        tape.sync(rng.choice([60, 200]))
    else:
        body()


WAYS = ["graph", "step", "vllm", "sync", "edges"]


def plain(tape, rng, dialect=None):
    layers = rng.choice([2, 3, 4, 6, 12, 16, 24, 28, 32, 48])
    passes = rng.randrange(3, 13)
    way = rng.choice(WAYS)
    model = Model(rng, dialect=dialect)
    ends = rng.randrange(4)
    if way == "edges" and ends == 0:
        ends = 3
    if dialect == "opaque" and way == "edges":
        layers = max(layers, 4)

    def body():
        if ends & 1:
            tape.kernels(model.head())
        for _ in range(layers):
            tape.kernels(model.layer())
        if ends & 2:
            tape.kernels(model.tail())
    for number in range(passes):
        separator(tape, rng, way, number, body)
    return Case("plain " + way, [(layers, passes)])


def opaque(tape, rng):
    case = plain(tape, rng, "opaque")
    case.kind = "opaque"
    return case


def eager_then_graph(tape, rng):
    layers = rng.choice([4, 8, 16, 28, 32])
    prefills = rng.randrange(1, 3)
    passes = rng.randrange(4, 20)
    model = Model(rng)
    for _ in range(prefills):
        tape.kernels(model.head())
        for _ in range(layers):
            tape.kernels(model.layer("prefill"))
        tape.kernels(model.tail())
        tape.sync(rng.choice([5, 80]))
    for _ in range(passes):
        tape.launch()
        tape.kernels(model.head())
        for _ in range(layers):
            tape.kernels(model.layer())
        tape.kernels(model.tail())
        tape.end()
        tape.idle(rng.choice([1, 15]))
    return Case("eager then graph", [(layers, prefills + passes)])


def encoder_decoder(tape, rng):
    deep = rng.choice([4, 6, 12, 24])
    layers = rng.choice([3, 4, 6, 12])
    tokens = rng.randrange(4, 14)
    model = Model(rng, dialect=rng.choice(["vllm", "aten", "rocm"]))
    cross = ["gemm_cross_q" + model.tag, "flash_cross_attn_kernel",
             "gemm_cross_o" + model.tag]
    encoder = Model(rng, "_enc", model.dialect)
    graph = rng.random() < 0.4
    tape.kernels(["conv1d_kernel", "gelu_kernel"])
    for _ in range(deep):
        tape.kernels(encoder.layer("prefill"))
    tape.kernels(encoder.of("norm"))
    for _ in range(tokens):
        if graph:
            tape.launch()
        tape.kernels(model.head())
        for _ in range(layers):
            tape.kernels(model.mixer() + model.mixer(names=cross)
                         + model.feed())
        tape.kernels(model.tail())
        tape.end()
    return Case("encoder decoder", [(deep, 1), (layers, tokens)])


def hybrid(tape, rng):
    model = Model(rng, dialect="vllm")
    mixer = rng.choice([MAMBA, GDN])
    ratio = rng.choice([1, 2, 3, 3, 5, 7, 7])
    moe = rng.choice([0, 1, 2])     # never, every, every second layer
    periods = rng.choice([1, 2, 4, 6, 12])
    layers = (ratio + 1) * periods
    if layers < 4:
        layers *= 3
    passes = rng.randrange(3, 7)
    at = rng.choice([0, ratio // 2, ratio])
    way = rng.choice(WAYS)

    def body():
        tape.kernels(model.head())
        for i in range(layers):
            tape.kernels(model.mixer(
                names=None if i % (ratio + 1) == at else mixer))
            tape.kernels(model.feed(
                model.moe() if moe == 1 or (moe == 2 and i % 2) else None))
        tape.kernels(model.tail())
    for number in range(passes):
        separator(tape, rng, way, number, body)
    return Case("hybrid", [(layers, passes)], f"{ratio}:1 moe {moe} {way}")


def single_mixer(tape, rng):
    model = Model(rng, dialect="vllm")
    layers = rng.choice([8, 24, 48, 64])
    passes = rng.randrange(3, 7)
    way = rng.choice(WAYS)
    every = rng.choice([0, 0, 8])

    def body():
        tape.kernels(model.head())
        for i in range(layers):
            tape.kernels(model.mixer(
                names=None if every and i % every == every - 1 else MAMBA))
        tape.kernels(model.tail())
    for number in range(passes):
        separator(tape, rng, way, number, body)
    return Case("single mixer", [(layers, passes)])


def blocks(tape, rng):
    """Each block is a layer (Nemotron-H): M a scan, * attention, - dense."""
    model = Model(rng, dialect="vllm")
    mixer = rng.choice([MAMBA, GDN])
    passes = rng.randrange(3, 7)
    way = rng.choice(WAYS)
    alone = rng.sample(range(1, 24), rng.choice([3, 4, 6]))
    attention = rng.sample([i for i in range(2, 24) if i not in alone],
                           rng.choice([3, 4]))
    pattern = ""
    for i in range(24):
        pattern += "M" if i in alone else "*-" if i in attention else "M-"
    names = {"M": model.mixer(names=mixer), "*": model.mixer(),
             "-": model.feed()}

    def body():
        tape.kernels(model.head())
        for block in pattern:
            tape.kernels(names[block])
        tape.kernels(model.tail())
    for number in range(passes):
        separator(tape, rng, way, number, body)
    return Case("blocks", [(len(pattern), passes)], f"{pattern} {way}")


def pruned(tape, rng):
    """Some layers have lost their dense half: they are layers still."""
    model = Model(rng, dialect="vllm")
    passes = rng.randrange(3, 7)
    way = rng.choice(WAYS)
    layers = rng.choice([16, 32])
    without = rng.sample(range(2, layers), rng.choice([3, 5]))

    def body():
        tape.kernels(model.head())
        for i in range(layers):
            tape.kernels(model.mixer() if i in without else model.layer())
        tape.kernels(model.tail())
    for number in range(passes):
        separator(tape, rng, way, number, body)
    return Case("pruned", [(layers, passes)], f"{sorted(without)} {way}")


def dense_first(tape, rng):
    model = Model(rng, dialect="vllm")
    layers = rng.choice([12, 27, 47, 61])
    dense = rng.choice([1, 1, 2, 3])
    passes = rng.randrange(2, 6)
    way = rng.choice(WAYS)
    mla = rng.random() < 0.7

    def body():
        tape.kernels(model.head())
        for i in range(layers):
            tape.kernels(model.mixer(names=MLA if mla else None))
            tape.kernels(model.feed(None if i < dense else model.moe()))
        tape.kernels(model.tail())
    for number in range(passes):
        separator(tape, rng, way, number, body)
    return Case("dense first", [(layers, passes)], f"{dense} dense, {way}")


def moe_varied(tape, rng):
    model = Model(rng, dialect="vllm")
    layers = rng.choice([12, 24, 32])
    passes = rng.randrange(2, 6)
    way = rng.choice(["step", "vllm", "edges", "sync"])
    tiles = ["128x128", "64x128", "256x128", "16x128"]

    def body():
        tape.kernels(model.head())
        for _ in range(layers):
            tape.kernels(model.mixer())
            tape.kernels(model.feed(
                model.moe(rng.choice(tiles), rng.choice(tiles))))
        tape.kernels(model.tail())
    for number in range(passes):
        separator(tape, rng, way, number, body)
    return Case("moe varied", [(layers, passes)])


def draft(tape, rng):
    """A draft of few layers several times before every pass of a target."""
    target = Model(rng)
    same = rng.random() < 0.3
    small = target if same else Model(rng, "_draft", target.dialect)
    layers = rng.choice([1, 1, 2, 4, 4])
    deep = rng.choice([16, 28, 32, 48])
    ahead = rng.randrange(1, 5)
    rounds = rng.randrange(3, 9)
    graph = rng.random() < 0.6

    def run(model, count, mtp):
        if graph:
            tape.launch()
        tape.kernels(model.head())
        if mtp:
            tape.kernels(["rms_norm_enorm", "rms_norm_hnorm",
                          "gemm_eh_proj"] if rng else [])
        for _ in range(count):
            tape.kernels(model.layer())
        tape.kernels(model.tail())
        if graph:
            tape.end()
            tape.idle(rng.choice([2, 12]))
        elif rng.random() < 2:
            tape.sync(20)
    for _ in range(rounds):
        for _ in range(ahead):
            run(small, layers, layers == 1)
        run(target, deep, False)
    return Case("draft", [(deep, rounds), (layers, ahead * rounds)],
                f"{layers} x {ahead} before {deep}, graph {graph}, "
                f"same names {same}")


def tiny(tape, rng):
    layers = rng.choice([1, 1, 2])
    passes = rng.randrange(5, 25)
    way = rng.choice(WAYS)
    model = Model(rng)
    moe = rng.random() < 0.2

    def body():
        tape.kernels(model.head())
        for _ in range(layers):
            tape.kernels(model.mixer() + model.feed(
                model.moe() if moe else None))
        tape.kernels(model.tail())
    for number in range(passes):
        separator(tape, rng, way, number, body)
    return Case("tiny", [(layers, passes)], f"{layers} {way}")


def two_streams(tape, rng):
    """Two batches of one model on two streams at once."""
    layers = rng.choice([4, 8, 16, 32])
    rounds = rng.randrange(2, 7)
    model = Model(rng)
    for _ in range(rounds):
        clocks = {7: tape.now, 8: tape.now + 3}
        names = model.head() + layers * model.layer() + model.tail()
        for name in names:
            for stream in (7, 8):
                tape.now = clocks[stream]
                tape.kernels([name], stream)
                clocks[stream] = tape.now
        tape.now = max(clocks.values())
        tape.sync(50)
    return Case("two streams", [(layers, 2 * rounds)])


def side_stream(tape, rng):
    """A second stream helps: shared experts, all-reduce."""
    layers = rng.choice([4, 12, 24, 32])
    passes = rng.randrange(3, 8)
    way = rng.choice(WAYS)
    model = Model(rng, dialect="vllm")
    model.reduce = False
    helper = rng.choice([
        ["sm90_xmma_gemm_shared_up", "act_and_mul_kernel<silu>",
         "sm90_xmma_gemm_shared_down"], [ALLREDUCE]])

    def body():
        tape.kernels(model.head())
        for _ in range(layers):
            tape.kernels(model.mixer())
            beside = tape.now
            for name in helper:
                beside = max(beside, tape.put(name, 20))
            tape.kernels(model.feed(model.moe()))
        tape.kernels(model.tail())
    for number in range(passes):
        separator(tape, rng, way, number, body)
    return Case("side stream", [(layers, passes)])


def training(tape, rng):
    layers = rng.choice([4, 6, 12, 24])
    steps = rng.randrange(2, 6)
    recompute = rng.random() < 0.5
    batches = rng.choice([1, 1, 2, 4])
    model = Model(rng)
    marked = rng.random() < 0.7
    for number in range(steps):
        begin = tape.now - 31
        for _ in range(batches):
            tape.kernels(model.head())
            for _ in range(layers):
                tape.kernels(model.layer("prefill"))
            tape.kernels(model.of("norm", "head"))
            tape.kernels(["cross_entropy_loss_forward_kernel",
                          "cross_entropy_loss_backward_kernel",
                          "dgrad_gemm_head", "wgrad_gemm_head"])
            for _ in range(layers):
                tape.kernels(model.backward(recompute))
            tape.kernels(["embedding_backward_kernel"])
        tape.kernels(["multi_tensor_apply_kernel<adam>"] * 8)
        if marked:
            tape.step(f"ProfilerStep#{number}", begin)
        else:
            tape.sync(100)
    count = steps * batches
    return Case("training", [(layers, count), (layers, count)],
                f"recompute {recompute}, {batches} batches")


def pipeline(tape, rng):
    """One stage of a pipeline, one forward, one backward."""
    layers = rng.choice([2, 4, 8])
    batches = rng.choice([4, 6, 8])
    warm = rng.randrange(1, 4)
    model = Model(rng)
    recompute = rng.random() < 0.3
    recv = ["ncclDevKernel_SendRecv"]
    order = ["F"] * warm
    for _ in range(batches - warm):
        order += ["F", "B"]
    order += ["B"] * warm
    for part in order:
        tape.kernels(recv)
        for _ in range(layers):
            tape.kernels(model.layer("prefill") if part == "F"
                         else model.backward(recompute))
    return Case("pipeline", [(layers, batches), (layers, batches)])


def convolutions(tape, rng):
    """A network without transformer layers."""
    steps = rng.randrange(3, 20)
    blocks = [rng.randrange(2, 6) for _ in range(4)]
    train = rng.random() < 0.6
    for number in range(steps):
        begin = tape.now - 31
        tape.kernels(["cudnn_convolve_7x7", "batch_norm_transform_kernel",
                      "relu_kernel", "max_pool_forward_nchw"])
        for stage, count in enumerate(blocks):
            for _ in range(count):
                tape.kernels([
                    f"sm80_xmma_fprop_implicit_gemm_1x1_{stage}",
                    "batch_norm_transform_kernel", "relu_kernel",
                    f"sm80_xmma_fprop_implicit_gemm_3x3_{stage}",
                    "batch_norm_transform_kernel", "relu_kernel",
                    f"sm80_xmma_fprop_implicit_gemm_out_{stage}",
                    "batch_norm_transform_kernel",
                    "elementwise_kernel<CUDAFunctor_add>", "relu_kernel"])
        tape.kernels(["adaptive_average_pool", "ampere_sgemm_128x64_fc",
                      "softmax_warp_forward"])
        if train:
            tape.kernels(["nll_loss_forward", "nll_loss_backward",
                          "softmax_warp_backward", "ampere_sgemm_64x64_dgrad"])
            for stage in reversed(range(4)):
                for _ in range(blocks[stage]):
                    tape.kernels([
                        f"sm80_xmma_dgrad_implicit_gemm_{stage}",
                        f"sm80_xmma_wgrad_implicit_gemm_{stage}",
                        "batch_norm_backward_kernel", "threshold_backward"])
            tape.kernels(["multi_tensor_apply_kernel<sgd>"] * 5)
        if train or rng.random() < 0.5:
            tape.step(f"ProfilerStep#{number}", begin)
    return Case("convolutions", [])


def piecewise(tape, rng):
    """One graph launch per layer, attention between them."""
    layers = rng.choice([4, 16, 24, 32])
    passes = rng.randrange(3, 7)
    model = Model(rng, dialect="vllm")
    way = rng.choice(["vllm", "sync", "edges"])
    before = model.of("norm") + model.extra + model.of("qkv", "rope", "cache")
    after = model.of("o") + model.feed()

    def body():
        tape.launch()
        tape.kernels(model.head() + before)
        tape.end()
        for i in range(layers):
            tape.kernels(model.of("attn"))
            tape.launch()
            tape.kernels(after + (before if i + 1 < layers else model.tail()))
            tape.end()
    for number in range(passes):
        separator(tape, rng, way, number, body)
    return Case("piecewise", [(layers, passes)], way)


KINDS = [plain, plain, opaque, eager_then_graph, encoder_decoder, hybrid,
         hybrid, single_mixer, dense_first, moe_varied, draft, draft, tiny,
         two_streams, side_stream, training, pipeline, convolutions, piecewise]


def case(seed, noise, kind=None):
    """(Case, Chrome trace)."""
    rng = random.Random(seed * 7919 + 17)
    tape = Tape(rng, noise)
    made = (kind or KINDS[seed % len(KINDS)])(tape, rng)
    events = sorted(tape.events, key=lambda e: e["ts"])
    return made, {"traceEvents": events}
