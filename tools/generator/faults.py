# SPDX-License-Identifier: Apache-2.0
"""What can be put into a healthy run, and which rule must find it.

Sizes are not chosen by hand: a fault grows until the run is longer than its
twin by a wanted share of the window.
"""
import atexit
import dataclasses
import functools
import json
import os
import pathlib
import random

from lab import Plan, simulate, window_ns
from machine import Micros

NOISE = ({"kernel_noise": 0.01, "host_noise": 0.04},
         {"kernel_noise": 0.03, "host_noise": 0.10},
         {"kernel_noise": 0.08, "host_noise": 0.20})


@dataclasses.dataclass(frozen=True)
class Fault:
    kind: str                # train or serve
    rules: tuple             # any of these finds it
    start: float             # the smallest size
    whole: bool = False      # a count
    also_ok: tuple = ()      # may speak beside it
    no_gain: bool = False    # nothing is longer by it
    untimed: bool = False    # its rule names no gain
    fixed: bool = False      # its size is `start`
    measured: bool = False   # its gain must be within 10 %
    decoy: bool = False      # nothing must be found
    least: float = 0.02      # share of the window that its rule can see
    options: tuple = ()      # of the plan, as (name, value)


# How a run is recorded; what is true of it does not change.
RECORDINGS = ("plain", "coarse", "lossy", "crowded")


def record(run, how, seed):
    """The run as another profiler, or one in another process, writes it."""
    if hasattr(run, "ranks"):
        for rank in run.ranks:
            record(rank, how, seed)
        return run
    pick = random.Random(f"{how} {seed}")
    if how == "coarse":  # whole microseconds
        for event in run.events:
            if "ts" in event:
                begin = event["ts"].ns // 1000 * 1000
                if "dur" in event:
                    end = (event["ts"].ns + event["dur"].ns) // 1000 * 1000
                    event["dur"] = Micros(max(1000, end - begin))
                event["ts"] = Micros(begin)
    elif how == "lossy":  # one flow in a hundred is missing
        lost = {event["id"] for event in run.events
                if event["ph"] == "s" and pick.random() < 0.01}
        run.events = [event for event in run.events
                      if event["ph"] not in "sf" or event["id"] not in lost]
    elif how == "crowded":  # other threads, other ranges, hashes in names
        spans = [e for e in run.events if e["ph"] == "X"]
        first = min(e["ts"].ns for e in spans)
        last = max(e["ts"].ns + e["dur"].ns for e in spans)
        for event in run.events:
            if event["name"].startswith("triton_"):
                event["name"] += f"_{seed % 4096:03x}d"
        for thread in (51, 52):
            at = first
            while at < last:
                took = int((last - first) * pick.uniform(0.02, 0.1))
                run.span("python_function", "threading.py(600): wait", at,
                         min(last, at + took), {}, tid=thread)
                at += took + 50_000
        run.span("user_annotation", "epoch 7", first, last, {}, tid=53)
        for event in run.events:
            if "ts" in event:
                event["ts"] = Micros(event["ts"].ns + 777_000_000_123)
    return run


LAUNCH = ("host.launch_bound", "host.other")
FAULTS = {
    "op_overhead": Fault("train", ("host.launch_bound",), 1.5, least=0.065),
    "gc_pause": Fault("train", ("host.gc_pause",), 2e5, measured=True),
    "loader_in_thread": Fault("train", ("data.main_thread",), 2e5,
                              measured=True, least=0.03),
    "worker_starved": Fault("train", ("data.worker_starved",), 2e5,
                            measured=True, least=0.03,
                            also_ok=("trace.steps_unlike",)),
    "sync_item": Fault("train", ("host.sync_scalar",), 1, whole=True,
                       measured=True, options=(("small", True),)),
    "device_sync": Fault("train", ("host.sync_explicit",), 1, whole=True,
                         measured=True, options=(("small", True),)),
    "mask_reads": Fault("train", ("host.sync_scalar",), 4e4,
                        options=(("small", True),)),
    "cpu_item": Fault("train", (), 200, fixed=True, decoy=True),
    "pageable_batch": Fault("train", ("copy.pageable",), 1e6,
                            also_ok=("copy.d2h_blocking",)),
    "h2d_main_stream": Fault("train", ("copy.h2d_critical",), 1e6,
                             measured=True),
    "many_small_copies": Fault("train", ("copy.many_small",), 110, whole=True,
                               also_ok=LAUNCH),
    "d2h_print": Fault("train", ("copy.d2h_blocking", "copy.pageable"), 1e6),
    "d2h_metrics": Fault("train", ("copy.d2h_blocking",), 1e5,
                         measured=True),
    "alloc_churn": Fault("train", ("memory.alloc_churn",), 1, whole=True,
                         measured=True),
    "reserve_limit": Fault("train", ("memory.retry",), 1, whole=True,
                           measured=True,
                           also_ok=("memory.near_capacity",)),
    "near_capacity": Fault("train", ("memory.near_capacity",), 0.97,
                           fixed=True, no_gain=True),
    "memory_roomy": Fault("train", (), 0.6, fixed=True, decoy=True),
    "module_load": Fault("train", ("host.module_load",), 3e5, measured=True,
                         also_ok=("trace.steps_unlike",)),
    "recompile": Fault("train", ("compile.recompile",), 3e5, measured=True,
                       also_ok=("trace.steps_unlike",)),
    "autotune": Fault("train", ("compile.autotune",), 3e5, measured=True,
                      also_ok=("trace.steps_unlike",)),
    "checkpoint": Fault("train", ("host.step_edge",), 3e5, measured=True,
                        also_ok=("trace.steps_unlike",)),
    "host_work": Fault("train", ("host.other",), 3e5, measured=True),
    "optimizer_per_tensor": Fault("train", ("opt.eager",), 30, whole=True,
                                  also_ok=LAUNCH),
    "profiler_overhead": Fault("train", ("trace.profiler_overhead",), 1e5,
                               measured=True),
    "warmup_steps": Fault("train", ("trace.warmup",), 1e6, measured=True),
    "cold_start": Fault("train", ("trace.cold_start",), 1e6, measured=True),
    "set_up": Fault("train", ("trace.once",), 4e6, fixed=True, no_gain=True,
                     untimed=True, also_ok=("trace.warmup",
                                            "trace.steps_unlike")),
    "one_allocation": Fault("train", ("trace.once",), 4e6, fixed=True, no_gain=True,
                     untimed=True, also_ok=("trace.warmup",
                                            "trace.steps_unlike")),
    "graph_capture": Fault("train", ("trace.graph_capture",), 1e6,
                           measured=True),
    "two_steps": Fault("train", ("trace.too_short",), 1, fixed=True,
                       no_gain=True, options=(("steps", 2),)),
    # The file of the run is written anew: see damage().
    "cut_file": Fault("train", ("trace.damaged",), 1, fixed=True, no_gain=True,
                      also_ok=("trace.too_short", "trace.steps_unlike",
                               "trace.missing_device_records",
                               "host.other")),
    "endless_record": Fault("train", ("trace.impossible_durations",), 1,
                            fixed=True, no_gain=True),
    "stray_time": Fault("train", ("trace.time_outliers",), 1, fixed=True,
                        no_gain=True),
    "early_clock": Fault("train", ("trace.clocks",), 1, fixed=True,
                         no_gain=True),
    "stray_bytes": Fault("train", (), 1, fixed=True, decoy=True),
    "bad_record": Fault("train", (), 1, fixed=True, decoy=True),
    "steps_unlike": Fault("train", ("trace.steps_unlike",), 60, fixed=True,
                          no_gain=True),
    "missing_records": Fault("train", ("trace.lost_device_records",
                                       "trace.missing_device_records",
                                       "device.unexplained_wait"), 1,
                             fixed=True, no_gain=True),
    "callback": Fault("train", ("device.unexplained_wait",
                                "trace.missing_device_records"), 2e4,
                      untimed=True),
    "short_waits": Fault("train", ("device.unexplained_wait",), 12000,
                         fixed=True, untimed=True),
    "fp32_matmul": Fault("train", ("kernel.fp32_matmul",), 1.2),
    "unaligned_gemm": Fault("train", ("kernel.unaligned_gemm",), 1.4,
                            fixed=True),
    "low_grid": Fault("train", ("kernel.low_grid",), 1.2),
    "slow_library": Fault("train", ("kernel.below_roofline",), 2.2,
                          least=0.1),
    "wave_tail": Fault("train", ("kernel.wave_tail",), 1.5,
                       also_ok=("kernel.below_roofline",), least=0.05),
    "sm_contention": Fault("train", ("comm.sm_contention",), 0.2, least=0.04,
                           options=(("ranks", 2),)),
    "layout_copies": Fault("train", ("kernel.layout_copies",), 1, least=0.04, whole=True,
                           measured=True),
    "cast_storm": Fault("train", ("kernel.cast_storm",), 1, least=0.04, whole=True,
                        measured=True),
    "attention_math": Fault("train", ("kernel.attention_math",), 1,
                            whole=True),
    # The rule sees those that follow another one: two of three.
    "elementwise_chain": Fault("train", ("kernel.elementwise_chain",), 3,
                               whole=True, least=0.036),
    "adapters": Fault("train", ("kernel.low_rank",), 1, whole=True,
                      least=0.03),
    "staged_unnamed": Fault("train", ("copy.pageable",), 4e6,
                            also_ok=("copy.d2h_blocking",)),
    "plots": Fault("train", ("host.step_edge",), 3e5,
                   also_ok=("trace.steps_unlike", "host.sync_scalar")),
    "reads_in_a_row": Fault("train", ("host.sync_scalar",), 20, whole=True),
    "library_layouts": Fault("train", ("kernel.layout_copies",), 1,
                             least=0.04, whole=True, measured=True),
    "odd_vocabulary": Fault("train", ("kernel.unaligned_gemm",), 1.6,
                            fixed=True),
    "legacy_stream": Fault("train", ("stream.legacy",), 2, whole=True,
                           # The same kernels also beside those of stream 7.
                           least=0.12, also_ok=("kernel.low_grid",)),
    "unshaped": Fault("train", ("kernel.dominant",), 1.6e7, fixed=True,
                      no_gain=True),
    "saved_copies": Fault("train", ("host.step_edge",), 1e6, measured=True,
                          also_ok=("trace.steps_unlike",)),
    "cpu_loading": Fault("train", ("cpu.loading",), 4e6, fixed=True,
                         no_gain=True, untimed=True, also_ok=("cpu.small_ops",)),
    "cpu_checkpoint": Fault("train", ("cpu.other_work",), 6e6, fixed=True,
                            no_gain=True, untimed=True, also_ok=("cpu.small_ops",)),
    "cpu_waits": Fault("train", ("cpu.waits",), 4e6, fixed=True, no_gain=True,
                       untimed=True, also_ok=("cpu.small_ops",)),
    "cpu_sort": Fault("train", ("cpu.dominant_op",), 8e6, fixed=True, no_gain=True,
                      untimed=True, also_ok=("cpu.small_ops",)),
    "cpu_small_ops": Fault("train", ("cpu.small_ops",), 1, fixed=True,
                           no_gain=True, untimed=True),
    "clock_drop": Fault("train", ("kernel.slower_with_time",), 0.06),
    "late_bucket": Fault("train", ("comm.exposed_reduce",), 1, fixed=True,
                         least=0.045, options=(("ranks", 2),)),
    "gather_no_prefetch": Fault("train", ("comm.exposed_gather",), 3e5, least=0.04,
                                measured=True, options=(("ranks", 2),)),
    "all_to_all_exposed": Fault("train", ("comm.exposed_p2p",), 3e5, least=0.04,
                                measured=True, options=(("ranks", 2),)),
    "bucket_copies": Fault("train", ("comm.grad_copies",), 40, whole=True,
                           measured=True, options=(("ranks", 2),)),
    "graph_gaps": Fault("serve", ("graph.inner_gaps",), 1500, least=0.065),
    "eager_decode": Fault("serve", ("serve.no_graph",), 1, fixed=True,
                          also_ok=LAUNCH, options=(("small", True),)),
    # A third of the steps must take twice as long as the others.
    "prefill_in_decode": Fault("serve", ("serve.prefill_interference",), 512,
                               least=0.28),
    "low_batch": Fault("serve", ("serve.low_batch",), 8, fixed=True,
                       also_ok=("graph.inner_gaps",), no_gain=True),
    "slow_optimizer": Fault("train", ("opt.share",), 4, least=0.06),
    "tiny_kernels": Fault("train", ("host.tiny_kernels",), 8, whole=True,
                          least=0.06, also_ok=LAUNCH,
                          options=(("small", True),)),
    "small_buckets": Fault("train", ("comm.small",), 8, whole=True,
                           also_ok=("comm.exposed_reduce",),
                           options=(("ranks", 2),)),
    "same_stream": Fault("train", ("comm.same_stream",), 1, fixed=True,
                         least=0.025, options=(("ranks", 2),)),
    "idle_device": Fault("train", ("device.idle_device",), 0.25, fixed=True,
                         no_gain=True),
    "uneven_devices": Fault("train", (), 0.6, fixed=True, decoy=True),
    # Steps at a lower clock do differ.
    "clock_counter": Fault("train", ("device.clock_drop",), 0.15,
                           measured=True, also_ok=("trace.steps_unlike",)),
    "clock_steady": Fault("train", (), 0.2, fixed=True, decoy=True),
    "clock_idle": Fault("train", (), 1, fixed=True, decoy=True),
    "stray_device": Fault("train", (), 1, fixed=True, decoy=True),
    "default_stream": Fault("train", ("stream.serialized",), 2, whole=True,
                            least=0.06, also_ok=("kernel.low_grid",)),
    "full_streams": Fault("train", (), 8, fixed=True, decoy=True),
    "padded_batch": Fault("train", ("work.padding",), 1.3, least=0.05),
    "little_padding": Fault("train", (), 1, fixed=True, decoy=True),
    "lock_held": Fault("train", ("host.lock_contention",), 1e6, least=0.03,
                       also_ok=("trace.steps_unlike",)),
    "second_thread": Fault("train", (), 1, fixed=True, decoy=True),
    "thread_stopped": Fault("train", ("host.preempted",), 1e6, measured=True,
                            least=0.03, also_ok=("trace.steps_unlike",
                                                 "host.other")),
    "queue_full": Fault("train", ("host.queue_full",), 200, fixed=True,
                        no_gain=True),
    "graph_breaks": Fault("train", ("compile.graph_breaks",), 2e5,
                          least=0.03, also_ok=("host.other",)),
    "regions_in_a_row": Fault("train", (), 1, fixed=True, decoy=True),
    "compiled_blocks": Fault("train", (), 2e5, fixed=True, decoy=True,
                             also_ok=("host.other", "host.launch_bound")),
    "full_recompute": Fault("train", ("kernel.recompute",), 1, fixed=True),
    "recompute_when_full": Fault("train", (), 1, fixed=True, decoy=True),
    "dense_table_grad": Fault("train", ("kernel.embedding_dense_grad",), 1e5,
                              least=0.04),
    "small_table_grad": Fault("train", (), 1, fixed=True, decoy=True),
    "slow_link": Fault("job", ("comm.low_busbw", "comm.pcie_path"), 2.5,
                       least=0.05,
                       also_ok=("comm.exposed_reduce",)),
    "pcie_path": Fault("job", ("comm.pcie_path",), 1, fixed=True, least=0.03,
                       also_ok=("comm.exposed_reduce", "comm.low_busbw")),
    "fair_link": Fault("job", (), 1.7, fixed=True, decoy=True),
    "strided_groups": Fault("job", (), 1, fixed=True, decoy=True,
                            also_ok=("comm.exposed_reduce",)),
    "poor_drafts": Fault("serve", ("serve.spec_share",), 110, fixed=True,
                         least=0.1, also_ok=("kernel.below_roofline",
                                             "kernel.low_grid")),
    "good_drafts": Fault("serve", (), 6, fixed=True, decoy=True),
    "graph_padding": Fault("serve", ("serve.graph_padding",), 1.3, least=0.06,
                           also_ok=("graph.inner_gaps",),
                           options=(("small", True),)),
    "small_graph_padding": Fault("serve", (), 1.06, fixed=True, decoy=True),
    "sampler_sync": Fault("serve", ("serve.sampler_sync",), 1e5,
                          measured=True),
    "detokenize": Fault("serve", ("serve.detokenize_gap",), 2e5,
                        measured=True),
    "serve_gc": Fault("serve", ("host.gc_pause",), 2e6, measured=True),
    "serve_logging": Fault("serve", ("host.step_edge",), 2e5, measured=True),
    "serve_host_work": Fault("serve", ("host.other",), 2e5, measured=True),
    "rank_slow_compute": Fault("job", ("rank.straggler_compute",), 0.03,
                               measured=True),
    "rank_late_host": Fault("job", ("rank.straggler_host",), 2e4,
                            measured=True, also_ok=LAUNCH),
    "rank_more_data": Fault("job", ("rank.straggler_data",), 0.07,
                            least=0.04, measured=True),
    "rank_jitter": Fault("job", ("rank.rotating",), 1, whole=True, least=0.08,
                         also_ok=("trace.steps_unlike",)),
    # Each rank has kernels of its own speed in each layer.
    "rank_even_noise": Fault("job", ("rank.waits", "rank.rotating"), 0.25,
                             fixed=True, untimed=True, no_gain=True,
                             options=(("job", "experts"),)),
    "rank_start_skew": Fault("job", ("trace.rank_start_skew",), 5e7,
                             fixed=True, untimed=True),
    "moe_imbalance": Fault("job", ("moe.imbalance",), 0.35, least=0.04,
                           measured=True, options=(("job", "experts"),),
                           also_ok=("comm.exposed_p2p",)),
    "hot_expert": Fault("job", ("moe.hot_experts",), 0.35, least=0.04,
                        options=(("job", "experts"),),
                        also_ok=("comm.exposed_p2p",)),
    "pipeline_uneven": Fault("job", ("pipeline.stage_imbalance",), 1,
                             fixed=True, options=(("job", "pipeline"),),
                             also_ok=("comm.exposed_p2p",)),
    "few_micro_batches": Fault("job", ("pipeline.bubbles",), 1, fixed=True,
                               options=(("job", "pipeline"), ("micro", 1)),
                               also_ok=("comm.exposed_p2p",)),
    # The same causes under other names, and names that are no causes.
    "loop_work": Fault("train", ("host.other",), 3e5, measured=True),
    "queued_batches": Fault("train", ("data.worker_starved",), 2e5,
                            measured=True, least=0.03),
    "compile_worker": Fault("train", ("compile.recompile",), 3e5,
                            measured=True, also_ok=("trace.steps_unlike",)),
    "trials": Fault("train", ("compile.autotune",), 3e4,
                    also_ok=("trace.steps_unlike",)),
    "tuning_lookup": Fault("train", (), 1, fixed=True, decoy=True),
    "extra_copies": Fault("train", (), 1, fixed=True, decoy=True),
    "custom_op": Fault("train", ("kernel.unmodelled",), 8e6, fixed=True,
                       no_gain=True),
    "device_swaps": Fault("train", ("copy.exposed_rest",), 8, whole=True,
                          no_gain=True, untimed=True),
    "page_migrations": Fault("train", ("copy.unified",), 5e5, least=0.03,
                             also_ok=("copy.exposed_rest",)),
    "cpu_optimizer": Fault("train", ("opt.on_host",), 2e5),
    "swapped_blocks": Fault("train", ("serve.kv_copies",), 1e6, least=0.05),
    "offloaded_tensors": Fault("train", ("copy.h2d_critical",), 1e6),
    "fsdp_offload": Fault("train", ("copy.parameters",), 1e6),
    "hooked_weights": Fault("train", ("copy.parameters",), 1e6),
    "weights_by_module": Fault("train", ("copy.parameters",), 1e6),
    "eager_drafts": Fault("serve", ("serve.no_graph",), 4000, least=0.03,
                          also_ok=("kernel.low_grid",)),
    "pipeline_late_host": Fault("job", ("rank.straggler_host",), 2e4,
                                options=(("job", "pipeline"),),
                                also_ok=LAUNCH + ("comm.exposed_p2p",
                                                  "host.other")),
    "kv_copies": Fault("serve", ("serve.kv_copies",), 1, least=0.04, whole=True,
                       measured=True),
}
# The name in the plan, where it differs.
PLAN_NAMES = {"serve_gc": "gc_pause", "serve_logging": "logging",
              "serve_host_work": "host_work",
              "pipeline_late_host": "rank_late_host"}


def damage(run, name, seed):
    """Files as they come from a full disk or a process that was stopped, and
    two that lack next to nothing."""
    if name in ("cpu_loading", "cpu_checkpoint", "cpu_waits", "cpu_small_ops",
                "cpu_sort"):
        on_the_host_alone(run)
    if name not in ("cut_file", "stray_bytes", "bad_record", "endless_record",
                    "stray_time", "early_clock"):
        return
    whole = run.write

    def write(path, groups=()):
        if name == "bad_record":  # of many hundred
            middle = run.events[len(run.events) // 2]
            run.events.insert(len(run.events) // 2, {**middle, "ts": "later"})
        kernels = [e for e in run.events if e.get("cat") == "kernel"]
        if name == "endless_record":
            endless = kernels[len(kernels) // 3]
            endless["dur"] = Micros(endless["dur"].ns + 3_000_000_000)
        elif name == "stray_time":
            lost = dict(kernels[0],
                        ts=Micros(kernels[0]["ts"].ns + 8_000_000_000_000))
            lost["args"] = {k: v for k, v in lost["args"].items()
                            if k != "correlation"}
            run.events.append(lost)
        elif name == "early_clock":
            for e in run.events:
                if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset",
                                    "gpu_user_annotation"):
                    e["ts"] = Micros(e["ts"].ns - 60_000)
        whole(path, groups)
        if name == "cut_file":
            share = 0.5 + 0.45 * random.Random(f"cut {seed}").random()
            os.truncate(path, int(os.path.getsize(path) * share))
        elif name == "stray_bytes" and not str(path).endswith(".gz"):
            with open(path, "a") as out:
                out.write("\n{}\n")

    run.write = write


def on_the_host_alone(run):
    """The same program on a machine without a device: ops take the time of
    their kernels."""
    device = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation",
              "ac2g", "cuda_runtime", "cuda_driver", "cuda_sync")
    run.events = [e for e in run.events if e.get("cat") not in device]


def plan_name(fault):
    return PLAN_NAMES.get(fault, fault)


@functools.cache
def step_ns(kind, seed, options):
    """The time of a step of a healthy run without noise."""
    healthy = Plan(kind, seed, {}, **dict(options))
    return window_ns(simulate(healthy)) / healthy.steps


# Sizes that were searched before, by fault, seed, share and noise: a search
# simulates ten runs where a size that is known needs one. What was searched is
# added to the file with LAMINA_KEEP_SIZES=1.
SIZES_FILE = pathlib.Path(__file__).with_name("fault_sizes.json")


def known_sizes():
    return json.loads(SIZES_FILE.read_text()) if SIZES_FILE.exists() else {}


def keep_sizes():
    """Beside those that other processes have found meanwhile."""
    sizes = {**known_sizes(), **SIZES}
    SIZES_FILE.write_text(json.dumps(sizes, indent=0, sort_keys=True) + "\n")


SIZES = known_sizes()
if os.environ.get("LAMINA_KEEP_SIZES") == "1":
    atexit.register(keep_sizes)


def make(name, seed, share, noise):
    """A run with the fault at about this share of its window: the run, and
    what is true of it; nothing when the fault cannot be as large."""
    fault = FAULTS[name]
    options = dict(fault.options)

    hint = step_ns(fault.kind, seed, tuple(
        {"small": True}.items() if name == "op_overhead"
        else options.items()))

    def build(size):
        plan = Plan(fault.kind, seed, {plan_name(name): size}, **options)
        plan.step_hint = hint
        return plan

    # It does not depend on the size, but on the fault: what a fault replaces
    # stands in its twin in another way.
    twin = build(fault.start).without(plan_name(name))
    twin.step_hint = hint
    without_ns = window_ns(simulate(twin, **noise))

    def cost(size):
        faulty = simulate(build(size), **noise)
        window = window_ns(faulty)
        return faulty, window, window - without_ns

    key = f"{name} {seed} {share} {NOISE.index(noise)}"
    share = max(share, fault.least)
    size = SIZES.get(key, fault.start)
    run, window, gain = cost(size)
    if not fault.fixed and size != fault.start and not (
            share * window <= gain <= 2 * share * window):
        size = fault.start  # what a fault does has changed
        run, window, gain = cost(size)
    if not fault.fixed and size == fault.start:
        # Grows fast until the fault is large enough, then halves the way back.
        below = size
        while gain < share * window and size < fault.start * 5000:
            below = size
            size = max(size + 1, int(size * 3)) if fault.whole else size * 3
            run, window, gain = cost(size)
            if gain < 0.02 * share * window and size > fault.start * 4000:
                return None
        while size > below * 1.25 and size - below > (1 if fault.whole else 0):
            middle = (size * below) ** 0.5
            if fault.whole:
                middle = min(size - 1, max(below + 1, round(middle)))
            tried = cost(middle)
            if tried[2] < share * tried[1]:
                below = middle
            else:
                size, (run, window, gain) = middle, tried
        if size != fault.start:
            SIZES[key] = size
    if fault.decoy or fault.no_gain:
        gain = 0
    elif gain < 0.9 * fault.least * window:
        return None
    if fault.untimed:
        gain = 0
    damage(run, name, seed)
    truth = {"window_ns": window, "healthy": fault.decoy,
             "also_ok": list(fault.also_ok) if fault.decoy else [],
             "faults": [] if fault.decoy else [
                 {"fault": name, "rules": list(fault.rules),
                  "also_ok": list(fault.also_ok), "gain_ns": gain,
                  "measured": fault.measured, "size": size}]}
    return run, truth


def make_healthy(kind, seed, noise, ranks=False):
    options = {"ranks": 2} if ranks else {}
    if kind == "job":
        options = {"job": ("dense", "experts", "pipeline")[seed % 3]}
    plan = Plan(kind, seed, {}, **options)
    run = simulate(plan, **noise)
    return run, {"window_ns": window_ns(run), "healthy": True, "faults": []}


def make_pair(seed, noise):
    """Two faults in one run, the larger first in the truth."""
    pick = random.Random(seed)
    names = [n for n, f in FAULTS.items()
             if f.measured and f.kind == "train" and not f.options
             and not f.fixed
             and n not in ("warmup_steps", "cold_start", "graph_capture")]
    for _ in range(8):
        made = try_pair(pick.sample(names, 2), seed, noise)
        if made is not None:
            return made
    return None


def try_pair(names, seed, noise):
    """None when they have no order of size, or one hides the other."""
    sizes = {}
    for name, share in zip(names, (0.2, 0.05)):
        made = make(name, seed, share, noise)
        if made is None:
            return None
        sizes[plan_name(name)] = made[1]["faults"][0]["size"]
    healthy = Plan("train", seed)
    hint = window_ns(simulate(healthy)) / healthy.steps
    plan = Plan("train", seed, sizes)
    plan.step_hint = hint
    run = simulate(plan, **noise)
    window = window_ns(run)
    faults = []
    for name in names:
        twin = plan.without(plan_name(name))
        twin.step_hint = hint
        gain = window - window_ns(simulate(twin, **noise))
        faults.append({"fault": name, "rules": list(FAULTS[name].rules),
                       "also_ok": list(FAULTS[name].also_ok) +
                       ["trace.steps_unlike"],
                       "gain_ns": gain, "measured": FAULTS[name].measured,
                       "size": sizes[plan_name(name)]})
    faults.sort(key=lambda f: -f["gain_ns"])
    if faults[0]["gain_ns"] < 1.3 * faults[1]["gain_ns"] or \
            faults[1]["gain_ns"] < 0.025 * window:
        return None
    twin = plan.without(*sizes)
    twin.step_hint = hint
    union = window - window_ns(simulate(twin, **noise))
    if abs(sum(f["gain_ns"] for f in faults) - union) > 0.15 * union:
        return None  # they wait for each other: no time belongs to one alone
    return run, {"window_ns": window, "healthy": False, "faults": faults}
