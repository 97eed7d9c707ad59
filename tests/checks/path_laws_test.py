#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The critical path and the causes of idle time do not depend on what says
nothing of the run: names of threads, the zero of the clock, the order of events
in the file. Each of it is changed in recordings, and the tables compared."""
import gzip
import json
import pathlib
import random
import re

from common import (Checks, Exact, lamina, sample_and_reference_traces,
                    temporary)

NAMES = ("alexnet", "h100-bert-small", "nccl-fields", "mi300-falconsai-vit",
         "ddp-2ranks/rank-0", "vllm-prefilldecode-piecewise/replay",
         "queue-length")
SPECS = ("scale:class=compute:0.5", "scale:class=host:0.5", "zero:launch",
         "zero:gaps")
TIMED = ("ts", "dur")


def load(path):
    """Numbers with a point as text between marks: no digit is lost."""
    return json.loads(gzip.decompress(path.read_bytes()),
                      parse_float=lambda text: f"@@{text}@@")


def save(document, path):
    path.write_text(re.sub(r'"@@([-+0-9.eE]+)@@"', r"\1", json.dumps(document)))


def shifted(document, _):
    """90.001 us later; the zero of a recording is its first event."""
    for event in document["traceEvents"]:
        if "ts" not in event:
            continue
        text = str(event["ts"]).strip("@")
        whole, _, part = text.partition(".")
        ns = int(whole) * 1000 + int((part + "000")[:3]) + 90_001
        event["ts"] = f"@@{ns // 1000}.{ns % 1000:03}{part[3:]}@@"


def renamed(document, rng):
    """Threads of the host get other numbers, in another order."""
    host = {e.get("pid") for e in document["traceEvents"]
            if str(e.get("cat", "")).lower() in ("cpu_op", "operator",
                                                 "cuda_runtime", "runtime")}
    work = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
    devices = {(e.get("pid"), e.get("tid")) for e in document["traceEvents"]
               if str(e.get("cat", "")).lower() in work}
    threads = sorted({(str(e["pid"]), str(e["tid"]))
                      for e in document["traceEvents"]
                      if e.get("pid") in host and "tid" in e and
                      (e["pid"], e["tid"]) not in devices})
    numbers = list(range(7_000_000, 7_000_000 + len(threads)))
    rng.shuffle(numbers)
    names = dict(zip(threads, numbers))
    for event in document["traceEvents"]:
        key = str(event.get("pid")), str(event.get("tid"))
        if event.get("pid") in host and key in names:
            event["tid"] = names[key]


def reordered(document, rng):
    """Events of one start stay in their order, and metadata in front."""
    events = document["traceEvents"]
    keys = {}
    for event in events:
        keys.setdefault(str(event.get("ts")), rng.random())
    events.sort(key=lambda e: (0 if e.get("ph") == "M" else 1,
                               keys[str(e.get("ts"))]))


def tables(path, *args):
    found = {}
    for command, more in (("path", [a for s in SPECS
                                    for a in ("--what-if", s)]),
                          ("host", [])):
        found.update(json.loads(
            lamina(command, path, "--format", "json", *more, *args).stdout,
            parse_float=Exact)["tables"])
    return {name: [{k: v for k, v in row.items()
                    if "uid" not in k and
                    k not in ("thread", "track", "touched_nodes")}
                   for row in found.get(name, [])]
            for name in ("path_summary", "verdicts", "what_if",
                         "path_segments", "idle_causes", "launch_apis",
                         "queue_depth")}


def main():
    checks = Checks()
    with temporary() as folder:
        out = pathlib.Path(folder) / "changed.json"
        for path in sample_and_reference_traces(NAMES):
            recorded = tables(path)
            checks.true(f"{path.name}: there is a path",
                        len(recorded["path_segments"]) > 0)
            for change in (shifted, renamed, reordered):
                document = load(path)
                change(document, random.Random(1))
                save(document, out)
                found = tables(out)
                for name, rows in recorded.items():
                    same = found[name] == rows
                    first = next((pair for pair in zip(rows, found[name])
                                  if pair[0] != pair[1]), "number of rows")
                    checks.true(f"{path.name}, {change.__name__}: {name}: "
                                f"{'' if same else first}", same)
    checks.finish()


main()
