# SPDX-License-Identifier: Apache-2.0
# Usage: [--device cuda|cpu] [--runs N] [--warmup N] [--backward] [--profile]
#        [--kernel-file FILE]
#
# Rebuilds the arguments that the profiler recorded, runs the op, and prints one
# JSON line: its time beside that of the trace and the least time of a roofline.
import argparse
import base64
import getpass
import hashlib
import importlib.util
import inspect
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

try:
    import torch
except ImportError:
    print(json.dumps({"op": json.loads(SPEC)["op"], "status": "no_torch"}))
    sys.exit(3)

SCALAR_TYPES = ["uint8", "int8", "int16", "int32", "int64", "float16",
                "float32", "float64", "complex32", "complex64", "complex128",
                "bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2",
                "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16",
                "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz",
                "float8_e4m3fnuz"]
MEMORY_FORMATS = ["contiguous_format", "preserve_format", "channels_last",
                  "channels_last_3d"]
# Which argument an index points into, and along which dimension: a number, or
# the name of the argument that says so.
INDEX_INTO = {
    "embedding": {"indices": ("weight", 0)},
    "_embedding_bag": {"indices": ("weight", 0)},
    "_embedding_bag_forward_only": {"indices": ("weight", 0)},
    "index_select": {"index": ("self", "dim")},
    "gather": {"index": ("self", "dim")},
    "scatter": {"index": ("self", "dim")},
    "scatter_": {"index": ("self", "dim")},
    "scatter_add": {"index": ("self", "dim")},
    "scatter_add_": {"index": ("self", "dim")},
    "index_add": {"index": ("self", "dim")},
    "index_add_": {"index": ("self", "dim")},
    "index_copy": {"index": ("self", "dim")},
    "index_copy_": {"index": ("self", "dim")},
    "index_fill_": {"index": ("self", "dim")},
    "nll_loss_forward": {"target": ("self", 1)},
    "nll_loss_backward": {"target": ("self", 1)},
    "nll_loss2d_forward": {"target": ("self", 1)},
    "cross_entropy_loss": {"target": ("self", 1)},
}


class CannotRun(Exception):
    """The op is not in this PyTorch, or its arguments cannot be rebuilt."""


def dtype_of(name):
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise CannotRun("this PyTorch has no " + name)
    return dtype


class Builder:
    def __init__(self, spec, names, device):
        self.spec = spec
        self.op = spec["op"].split("::")[-1].split(".")[0]
        self.names = names
        self.device = device
        self.generator = torch.Generator().manual_seed(0)

    def named(self, name):
        at = self.names.index(name) if name in self.names else -1
        return self.spec["args"][at] if 0 <= at < len(self.spec["args"]) else None

    def bound(self, name, position):
        """How many values an integer tensor may have."""
        into, dim = INDEX_INTO.get(self.op, {}).get(name, (None, None))
        if self.op.startswith("index") and position is not None:
            into, dim = "self", position
        if name == "indices" and self.op == "embedding_dense_backward":
            rows = self.named("num_weights")
            return rows["value"] if rows else 1
        if isinstance(dim, str):
            dim = (self.named(dim) or {}).get("value", 0)
        target = self.named(into) if into else None
        if target and target.get("dims") and isinstance(dim, int) and \
                -len(target["dims"]) <= dim < len(target["dims"]):
            return target["dims"][dim]
        sizes = [d for a in self.spec["args"] if a["kind"] == "tensor"
                 for d in a["dims"] if d > 0]
        return min(sizes, default=1)

    def tensor(self, arg, name, position=None):
        dtype = dtype_of(arg["dtype"])
        dims = arg["dims"]
        strides = arg.get("strides")
        size = 1
        if 0 in dims:
            size = 0
        elif strides is not None and len(strides) == len(dims):
            size = 1 + sum((d - 1) * s for d, s in zip(dims, strides))
        else:
            strides = None
            for d in dims:
                size *= d
        if dtype.is_floating_point or dtype.is_complex:
            made = torch.float64 if dtype == torch.float64 else torch.float32
            if dtype.is_complex:
                made = dtype
            data = torch.randn(size, generator=self.generator, dtype=made)
            data = data.to(dtype)
        elif "triton" in self.spec:  # it may be an index into anything
            data = torch.zeros(size, dtype=dtype)
        elif dtype == torch.bool:
            data = torch.randint(0, 2, (size,), generator=self.generator) > 0
        elif name.startswith(("cum_seq", "cu_seqlen", "offsets")):
            # Even parts of the rows of the first tensor.
            first = next((a for a in self.spec["args"]
                          if a["kind"] == "tensor" and len(a["dims"]) > 1), None)
            rows = first["dims"][0] if first else 0
            data = torch.linspace(0, rows, size).to(dtype)
        else:
            bound = max(1, min(int(self.bound(name, position)),
                               torch.iinfo(dtype).max))
            data = torch.randint(0, bound, (size,), generator=self.generator)
            data = data.to(dtype)
        data = data.to(self.device)
        if strides is None or size == 0:
            return data.reshape(dims)
        return torch.as_strided(data, dims, strides)

    def value(self, arg, argument, kind):
        name = argument.name
        if name in ("dtype", "out_dtype", "output_dtype"):
            if isinstance(arg, int) and 0 <= arg < len(SCALAR_TYPES):
                return dtype_of(SCALAR_TYPES[arg])
            return None
        if name == "memory_format":
            return getattr(torch, MEMORY_FORMATS[arg]) \
                if isinstance(arg, int) and 0 <= arg < len(MEMORY_FORMATS) \
                else None
        if name == "device":
            return torch.device(self.device)
        if name in ("layout", "pin_memory", "generator"):
            return None
        if "float" in kind and isinstance(arg, int):
            return float(arg)
        return arg

    def argument(self, arg, argument):
        kind = str(argument.type)
        if arg["kind"] == "tensor":
            return self.tensor(arg, argument.name)
        if arg["kind"] == "tensors":
            return [self.tensor(t, argument.name, i)
                    for i, t in enumerate(arg["tensors"])]
        if arg["kind"] == "value":
            return self.value(arg["value"], argument, kind)
        if argument.name == "device":
            return torch.device(self.device)
        if kind.startswith("Optional") or kind == "NoneType":
            return None
        if argument.has_default_value():
            return argument.default_value
        raise CannotRun("the trace does not say what " + argument.name + " was")


def fit(schema, args):
    """How well recorded arguments fit a schema; None: they do not."""
    arguments = schema.arguments
    if len(args) > len(arguments):
        return None
    score = 0
    for i, argument in enumerate(arguments):
        kind = str(argument.type)
        if i >= len(args):
            if not argument.has_default_value():
                return None
            continue
        arg = args[i]
        optional = kind.startswith("Optional")
        plain = kind[9:-1] if optional else kind
        if arg["kind"] == "tensor":
            if plain != "Tensor":
                return None
            score += 3
        elif arg["kind"] == "tensors":
            if plain not in ("List[Tensor]", "List[Optional[Tensor]]"):
                return None
            score += 3
        elif arg["kind"] == "value":
            value = arg["value"]
            if "Tensor" in plain:
                return None
            if isinstance(value, list):
                if not plain.startswith("List["):
                    return None
                score += 2
            elif isinstance(value, bool):
                score += 2 if plain == "bool" else 0
            elif isinstance(value, int):
                if plain in ("bool", "str") or plain.startswith("List[Tensor"):
                    return None
                score += 2 if plain in ("int", "number", "SymInt") else 1
            elif isinstance(value, float):
                if plain not in ("float", "number"):
                    return None
                score += 2
            elif plain not in ("str", "Device", "Optional[str]"):
                return None
        elif not optional:
            if "Tensor" in plain:
                return None
            score -= 1
    return score - (len(arguments) - len(args))


def find_overload(spec):
    namespace, name = spec["op"].split("::")
    name, _, wanted = name.partition(".")
    try:
        packet = getattr(getattr(torch.ops, namespace), name)
        overloads = packet.overloads()
    except (AttributeError, RuntimeError) as e:
        raise CannotRun("this PyTorch has no op " + spec["op"]) from e
    best = None
    for overload in overloads:
        if wanted and overload != wanted:
            continue
        function = getattr(packet, overload)
        score = fit(function._schema, spec["args"])
        if score is not None and (best is None or score > best[0]):
            best = (score, function)
    if best is None:
        raise CannotRun("no overload takes the recorded arguments")
    return best[1]


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    return []


def prepare(spec, device, backward):
    """A function of no arguments that runs the op once."""
    function = find_overload(spec)
    schema = function._schema
    builder = Builder(spec, [a.name for a in schema.arguments], device)
    args, kwargs = [], {}
    for arg, argument in zip(spec["args"], schema.arguments):
        value = builder.argument(arg, argument)
        if argument.kwarg_only:
            kwargs[argument.name] = value
        else:
            args.append(value)
    if not backward:
        def forward():
            with torch.no_grad():
                return function(*args, **kwargs)
        return forward
    inputs = [t for t in tensors_in(args) if t.dtype.is_floating_point]
    for t in inputs:
        t.requires_grad_(True)
    outputs = [t for t in tensors_in(function(*args, **kwargs))
               if t.requires_grad]
    if not outputs:
        raise CannotRun("the op has no gradient")
    gradients = [torch.ones_like(t) for t in outputs]

    def run():
        return torch.autograd.grad(outputs, inputs, gradients,
                                   retain_graph=True, allow_unused=True)
    return run


def kernel_file(spec, given):
    """The source of a compiled kernel: the file given, or that of the
    compiler's cache whose text has the recorded hash."""
    digest = spec["triton"]["hash"]
    if given:
        return pathlib.Path(given)
    cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR") or os.path.join(
        tempfile.gettempdir(), "torchinductor_" + getpass.getuser())
    path = pathlib.Path(cache, digest[1:3], digest + ".py")
    if not path.is_file():
        raise CannotRun(f"{digest}.py is not in the compiler's cache {cache}: "
                        "compile the model again, or give --kernel-file")
    text = path.read_text(encoding="utf-8").strip().encode("utf-8")
    found = "c" + base64.b32encode(
        hashlib.sha256(text).digest())[:51].decode().lower()
    if found != digest:
        raise CannotRun(f"{path} was changed: its hash is {found}")
    return path


def prepare_triton(spec, device, given):
    """A function of no arguments that launches the kernel once."""
    path = kernel_file(spec, given)
    loader = importlib.util.spec_from_file_location("replayed_kernel", path)
    module = importlib.util.module_from_spec(loader)
    loader.loader.exec_module(module)
    names = (spec["triton"]["kernel"], "triton_")
    kernel = next((getattr(module, n) for n in names
                   if hasattr(getattr(module, n, None), "run")), None)
    if kernel is None:
        raise CannotRun(f"{path} has no kernel {names[0]}")
    builder = Builder(spec, [], device)
    args = [builder.tensor(a, "") if a["kind"] == "tensor" else a.get("value")
            for a in spec["args"]]
    options = {"stream": torch.cuda.current_stream().cuda_stream
               if device == "cuda" else 0}
    # Up to PyTorch 2.6 the caller says the grid, later the file.
    if "grid" in inspect.signature(kernel.run).parameters:
        if not spec["triton"]["grid"]:
            raise CannotRun("the trace does not say the grid")
        from torch._inductor.runtime import triton_heuristics
        options["grid"] = triton_heuristics.grid(*spec["triton"]["grid"])
    return lambda: kernel.run(*args, **options)


def measure(run, device, warmup, runs):
    """Microseconds of each run: one after the other, synchronised once."""
    for _ in range(warmup):
        run()
    if device == "cpu":
        times = []
        for _ in range(runs):
            begin = time.perf_counter()
            run()
            times.append((time.perf_counter() - begin) * 1e6)
        return times
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(runs + 1)]
    torch.cuda.synchronize()
    marks[0].record()
    for mark in marks[1:]:
        run()
        mark.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) * 1e3 for a, b in zip(marks, marks[1:])]


def kernel_time(run, runs):
    """Mean microseconds of device work per run, by the profiler."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as p:
        for _ in range(runs):
            run()
        torch.cuda.synchronize()
    total = sum(getattr(e, "self_device_time_total",
                        getattr(e, "self_cuda_time_total", 0))
                for e in p.key_averages())
    return total / runs


def first_line(error):
    return (str(error).splitlines() or [""])[0][:300]


def main():
    spec = json.loads(SPEC)
    parser = argparse.ArgumentParser(description="Replays " + spec["op"])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available()
                        else "cpu", choices=("cuda", "cpu"))
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--backward", action="store_true",
                        help="time the backward of the op")
    parser.add_argument("--profile", action="store_true",
                        help="sum the device work with the profiler as well")
    parser.add_argument("--kernel-file", help="the source of a compiled "
                        "kernel, instead of that of the compiler's cache")
    options = parser.parse_args()
    result = {"op": spec["op"], "id": spec["id"], "device": options.device,
              "backward": options.backward, "torch": torch.__version__}
    status = 0
    try:
        run = prepare_triton(spec, options.device, options.kernel_file) \
            if "triton" in spec else \
            prepare(spec, options.device, options.backward)
        times = measure(run, options.device, options.warmup,
                        max(1, options.runs))
        result.update(status="ok", runs=len(times),
                      mean_us=statistics.fmean(times),
                      median_us=statistics.median(times), min_us=min(times))
        best = result["median_us"]
        if options.profile and options.device == "cuda":
            best = result["kernel_us"] = kernel_time(run, len(times))
        if not options.backward:
            result["trace_us"] = spec["trace_us"]
            if spec["trace_us"] > 0:
                result["ratio_to_trace"] = best / spec["trace_us"]
            for key in ("flops", "bytes", "roofline_us"):
                if key in spec:
                    result[key] = spec[key]
            if spec.get("roofline_us") and best > 0:
                result["percent_of_roofline"] = \
                    100 * spec["roofline_us"] / best
    except CannotRun as e:
        result.update(status="cannot_run", reason=str(e))
        status = 3
    except NotImplementedError as e:  # no kernel for this kind of device
        result.update(status="cannot_run", reason=first_line(e))
        status = 3
    except (RuntimeError, ValueError, TypeError, IndexError, OSError,
            ImportError, MemoryError) as e:
        result.update(status="failed", reason=first_line(e))
        status = 1
    print(json.dumps(result))
    return status


if __name__ == "__main__":
    sys.exit(main())
