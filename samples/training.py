#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands for a training that is recorded: writes a trace of 8 steps.

usage: training.py RUN [SLOWER] > trace.json

RUN: a number; runs differ by 0.6 %, their steps by less, equal numbers by
nothing. SLOWER: by how much matrix products take longer, 1.04."""
import json
import random
import sys

KERNELS = (("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", 90),
           ("flash_fwd_kernel<Flash_fwd_kernel_traits<128>>", 40),
           ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n", 70))


def trace(run, slower=1.0):
    chance = random.Random(run)
    speed = chance.gauss(1, 0.006)
    host = {"ph": "X", "pid": 1, "tid": 1}
    events, now, launch = [], 1000.0, 0
    for step in range(8):
        begin = now
        for name, us in KERNELS * 4:
            launch += 1
            us *= speed * chance.gauss(1, 0.002)
            us = round(us * slower if "gemm" in name else us, 3)
            ids = {"correlation": launch}
            events.append({**host, "cat": "cuda_runtime", "ts": now, "dur": 2,
                           "name": "cudaLaunchKernel", "args": ids})
            events.append({"ph": "X", "cat": "kernel", "pid": 0, "tid": 7,
                           "ts": now + 3, "dur": us, "name": name,
                           "args": {"device": 0, "stream": 7, **ids}})
            now = round(now + us + 4, 3)
        events.append({**host, "cat": "user_annotation", "ts": begin,
                       "dur": now - begin, "name": f"ProfilerStep#{step}"})
    return json.dumps({
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
        "baseTimeNanoseconds": (1750000000 + 86400 * run) * 10**9,
        "traceEvents": events})


if __name__ == "__main__":
    print(trace(int(sys.argv[1]), *map(float, sys.argv[2:])))
