#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands for a server of a language model under load: writes a trace of its
device and what a client recorded of the same requests.

usage: serving.py TRACE [RECORDS] [--seed N] [--engine vllm|sglang|atom]
                  [--policy chunked|prefill_first] [--records FORM]
                  [--requests N] [--batch N]

FORM is vllm, sglang, aiperf, genai-perf, trtllm or csv. With --batch the trace
holds decodes of that batch alone, for a sweep. Kernels have the names of PyTorch
and vLLM; times are those of no device.
"""
import argparse
import json
import random

EPOCH_NS = 1_790_000_000_000_000_000  # wall clock at time 0 of the trace
DEVICE = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9,
          "computeMinor": 0, "numSms": 132, "totalGlobalMem": 85520809984}
GEMM = ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_"
        "warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas")
NORM = "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(...)"
ROPE = "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(...)"
FLASH = "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128>>"
SILU = "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel>(...)"
EMBEDDING = "void at::native::indexSelectLargeIndex<c10::BFloat16, long>(...)"
SAMPLE = "void at::native::reduce_kernel<512, 1, ArgMaxOps<float>>(...)"
LAYERS = 3
KNEE = 200  # tokens above which products of matrices take longer


def kernels(tokens, context, prompt_context):
    """Names and microseconds of one pass."""
    def gemm(us):
        return GEMM, us * max(1.0, tokens / KNEE)
    attention = 4 + context / 3000 + prompt_context / 700
    layer = [(NORM, 2.0), gemm(14), (ROPE, 2.0), (FLASH, attention), gemm(6),
             (NORM, 2.0), gemm(24), (SILU, 3.0), gemm(13)]
    return [(EMBEDDING, 2.0), *layer * LAYERS, (NORM, 2.0), gemm(20),
            (SAMPLE, 6.0)]


def annotation(engine, prompts, generating):
    """What an engine writes beside a pass; prompts: (tokens, context)."""
    c, g = len(prompts), len(generating)
    ct, ck = sum(t for t, _ in prompts), sum(k for _, k in prompts)
    gk = sum(generating)
    if engine == "sglang":
        if not g:
            return f"step[EXTEND bs={c} toks={ct}]"
        if not c:
            return f"step[DECODE bs={g} toks={g} g_sk={gk}]"
        return (f"step[MIXED bs={c + g} toks={ct + g} c={c} c_sq={ct} "
                f"g={g} g_sk={gk}]")
    if engine == "atom" and not (c and g):
        return (f"prefill[bs={c} tok={ct}]" if c else f"decode[bs={g} sk={gk}]")
    return (f"execute_{ct + g}_context_{c}(sq{ct}sk{ck}sqsq{ct * ct}"
            f"sqsk{ct * ck})_generation_{g}(sq{g}sk{gk}sqsq{g}sqsk{gk})")


class Server:
    """Time in microseconds; passes one after the other."""

    def __init__(self, engine, seed):
        self.engine, self.random = engine, random.Random(seed)
        self.now, self.events, self.passes, self.correlation = 500.0, [], 0, 0

    def event(self, cat, name, ts, dur, pid, tid, **args):
        self.events.append({"ph": "X", "cat": cat, "name": name,
                            "ts": round(ts, 3), "dur": round(dur, 3),
                            "pid": pid, "tid": tid, "args": args})

    def run(self, prompts, generating):
        """One pass; its number, and when its device work began and ended."""
        begin = self.now
        tokens = sum(t for t, _ in prompts) + len(generating)
        device = begin + 5
        work = kernels(tokens, sum(generating),
                       sum(t * k for t, k in prompts) / 1000)
        for number, (name, us) in enumerate(work):
            self.correlation += 1
            us *= self.random.gauss(1, 0.004)
            self.event("kernel", name, device, us, 0, 7, device=0, context=1,
                       stream=7, correlation=self.correlation,
                       grid=[tokens, 1, 1], block=[128, 1, 1])
            self.event("cuda_runtime", "cudaLaunchKernel",
                       begin + 0.5 * number, 0.4, 1, 1,
                       correlation=self.correlation)
            device += us + 0.2
        end = device - 0.2
        self.event("user_annotation",
                   annotation(self.engine, prompts, generating), begin,
                   end - begin + 1, 1, 1)
        # The scheduler, before the next pass.
        self.now = end + 12 + abs(self.random.gauss(0, 2))
        self.passes += 1
        return self.passes - 1, begin + 5, end

    def document(self):
        return {"schemaVersion": 1, "deviceProperties": [DEVICE],
                "baseTimeNanoseconds": EPOCH_NS,
                "traceEvents": sorted(self.events, key=lambda e: e["ts"])}


class Request:
    def __init__(self, number, arrival, tokens, output, name):
        self.id = name or f"req-{number:03}"
        self.arrival, self.input, self.output = arrival, tokens, output
        self.read, self.tokens, self.passes, self.chunks = 0, [], [], []

    @property
    def waits(self):
        return self.read < self.input

    @property
    def runs(self):
        return not self.waits and len(self.tokens) < self.output

    @property
    def context(self):
        return self.input + len(self.tokens)


def serve(server, requests, policy="chunked", budget=512, slots=16, delay=300,
          jitter=12):
    """Passes until all requests are done; first come, first served."""
    while any(r.waits or r.runs for r in requests):
        running = [r for r in requests if r.runs]
        queue = [r for r in requests if r.waits and r.arrival <= server.now]
        if not running and not queue:
            server.now = min(r.arrival for r in requests if r.waits) + 1
            continue
        taken, chunks = len(running), []
        left = budget - (taken if policy == "chunked" else 0)
        for r in queue:
            if left <= 0 or (not r.read and taken >= slots):
                break
            chunks.append((r, min(left, r.input - r.read)))
            left -= chunks[-1][1]
            taken += 1
        if chunks and policy != "chunked":
            running = []
        number, begin, end = server.run(
            [(n, r.read + n) for r, n in chunks], [r.context for r in running])
        for r, n in chunks:
            r.read += n
            r.chunks.append((number, begin, end))
        for r in running + [r for r, _ in chunks if not r.waits]:
            r.passes.append(number)
            r.tokens.append(end + delay + abs(server.random.gauss(0, jitter)))


def load(seed, count, gap=2600, names=()):
    """Requests that arrive at random."""
    draw, arrival, out = random.Random(seed), 800.0, []
    for i in range(count):
        out.append(Request(i, arrival, draw.choice([128, 256, 384, 900]),
                           draw.randint(8, 40),
                           names[i] if i < len(names) else None))
        arrival += draw.expovariate(1 / gap)
    return out


def gaps(request):
    return [b - a for a, b in zip(request.tokens, request.tokens[1:])]


def records(requests, form, offset_s=4321.25, shift_ns=0):
    """The text of a file of records. `offset_s`: a client's own clock minus that
    of the trace; `shift_ns`: the wall clock of the client minus the true one."""
    def ns(us):
        return EPOCH_NS + shift_ns + round(us * 1000)
    if form in ("vllm", "sglang"):
        return json.dumps({
            "backend": form, "completed": len(requests),
            "input_lens": [r.input for r in requests],
            "output_lens": [len(r.tokens) for r in requests],
            "ttfts": [(r.tokens[0] - r.arrival) / 1e6 for r in requests],
            "itls": [[g / 1e6 for g in gaps(r)] for r in requests],
            "start_times": [r.arrival / 1e6 + offset_s for r in requests],
            "errors": [""] * len(requests)}) + "\n"
    if form == "aiperf":
        return "".join(json.dumps({
            "metadata": {"x_request_id": r.id, "benchmark_phase": "profiling",
                         "request_start_ns": ns(r.arrival),
                         "was_cancelled": False},
            "metrics": {
                "input_sequence_length": {"value": r.input},
                "output_sequence_length": {"value": len(r.tokens)},
                "time_to_first_token": {
                    "value": (r.tokens[0] - r.arrival) / 1000, "unit": "ms"},
                "inter_chunk_latency": {"value": [g / 1000 for g in gaps(r)],
                                        "unit": "ms"}},
            "error": None}) + "\n" for r in requests)
    if form == "genai-perf":
        return json.dumps({"experiments": [{"requests": [{
            "timestamp": ns(r.arrival),
            "response_timestamps": [*map(ns, r.tokens), ns(r.tokens[-1] + 50)],
            "response_outputs": [{"response": "data: {}"}] * len(r.tokens)
            + [{"response": "data: [DONE]\n\n"}]} for r in requests]}]})
    if form == "trtllm":
        return json.dumps([{
            "request_id": r.id, "perf_metrics": {"timing_metrics": {
                "arrival_time": offset_s + r.arrival / 1e6,
                "first_scheduled_time": offset_s + r.chunks[0][1] / 1e6,
                "first_token_time": offset_s + r.tokens[0] / 1e6,
                "last_token_time": offset_s + r.tokens[-1] / 1e6}},
            "num_prompt_tokens": r.input,
            "num_generation_tokens": len(r.tokens)} for r in requests])
    return "request,start_ns,first_ns,last_ns,input,output\n" + "".join(
        f"{r.id},{ns(r.arrival)},{ns(r.tokens[0])},{ns(r.tokens[-1])},"
        f"{r.input},{len(r.tokens)}\n" for r in requests)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trace")
    parser.add_argument("records_file", nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", default="vllm")
    parser.add_argument("--policy", default="chunked")
    parser.add_argument("--records", default="vllm")
    parser.add_argument("--requests", type=int, default=24)
    parser.add_argument("--batch", type=int)
    args = parser.parse_args()
    server = Server(args.engine, args.seed)
    if args.batch:
        for i in range(8):
            server.run([], [512 + i] * args.batch)
    else:
        requests = load(args.seed, args.requests)
        serve(server, requests, args.policy)
        if args.records_file:
            with open(args.records_file, "w", encoding="utf-8") as f:
                f.write(records(requests, args.records))
    with open(args.trace, "w", encoding="utf-8") as f:
        json.dump(server.document(), f)


if __name__ == "__main__":
    main()
