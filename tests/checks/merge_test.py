#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina merge: the events of one rank, taken out of the merged file again, give
the tables of that rank's own trace; ids of ranks are apart; aligned clocks make
collectives end together."""
import collections
import gzip
import json
import pathlib
import subprocess

from common import ROOT, SAMPLES, Checks, lamina, report, shared, temporary

TABLES = "gpu_timeline,kernels,ops,op_shapes,steps,collectives"


def load(path):
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt") as f:
        return json.load(f, parse_float=str)


def write_rank(document, rank, path):
    """One rank's events as a trace of their own."""
    events = [e for e in document["traceEvents"]
              if e.get("args", {}).get("rank") == rank]
    text = json.dumps({**document, "traceEvents": events})
    # Numbers with decimals were kept as text to stay exact.
    out = json.loads(text)
    for event in out["traceEvents"]:
        for key in ("ts", "dur"):
            if isinstance(event.get(key), str):
                event[key] = "@" + event[key] + "@"
    path.write_text(json.dumps(out).replace('"@', "").replace('@"', ""))


def check_same_tables(checks, name, traces, merged, folder):
    document = load(merged)
    for rank, trace in enumerate(traces):
        own = folder / f"own{rank}.json"
        write_rank(document, rank, own)
        first, _ = report(trace, "--only", TABLES)
        again, _ = report(own, "--only", TABLES)
        for table in first:
            # The zero of times is the first event, which may be the profiler's.
            for row in first[table] + again[table]:
                row.pop("start_us", None)
                row.pop("device", None)  # has the process in its name
            checks.equal(f"{name}: rank {rank}: {table}", again[table],
                         first[table])
        checks.true(f"{name}: rank {rank} has kernels", first["kernels"])


def check_apart(checks, name, document, ranks):
    owners = collections.defaultdict(set)
    for event in document["traceEvents"]:
        rank = event.get("args", {}).get("rank")
        if rank is None:
            continue
        owners["pid", event["pid"]].add(rank)
        if "id" in event:
            owners["id", event["id"]].add(rank)
        for key in ("correlation", "External id"):
            value = event["args"].get(key)
            if value not in (None, 0):
                owners[key, value].add(rank)
                checks.true(f"{name}: {key} keeps the original",
                            key + "_raw" in event["args"])
    checks.true(f"{name}: no id or process of two ranks",
                all(len(r) == 1 for r in owners.values()))
    names = {e["args"]["name"] for e in document["traceEvents"]
             if e["ph"] == "M" and e["name"] == "process_name"}
    for rank in range(ranks):
        checks.true(f"{name}: rank {rank} is named",
                    any(n.startswith(f"RANK {rank} - CPU") for n in names) and
                    any(n.startswith(f"RANK {rank} - GPU") for n in names))


def ends(document):
    """Ends of each collective on its ranks, in nanoseconds."""
    found = collections.defaultdict(list)
    for event in document["traceEvents"]:
        args = event.get("args", {})
        if event.get("cat") == "kernel" and "Collective name" in args and \
                args["Collective name"] not in ("send", "recv", "broadcast"):
            end = (float(event["ts"]) + float(event["dur"])) * 1000
            found[args["Process Group Name"], args["Seq"],
                  args["Collective name"]].append(end)
    return [max(e) - min(e) for e in found.values() if len(e) > 1]


def main():
    checks = Checks()
    with temporary() as name:
        folder = pathlib.Path(name)
        traces = sorted((SAMPLES / "ranks").glob("rank[0-9].json.gz"))
        merged = folder / "samples.json.gz"
        lamina("merge", SAMPLES / "ranks", "-o", merged, "--python")
        check_same_tables(checks, "samples", traces, merged, folder)
        check_apart(checks, "samples", load(merged), len(traces))
        one = merged.read_bytes()
        lamina("merge", SAMPLES / "ranks", "-o", merged, "--python",
               "--threads", "1")
        checks.true("same bytes with one thread",
                    gzip.decompress(merged.read_bytes()) == gzip.decompress(one))

        job = folder / "job"
        subprocess.run(["python3", ROOT / "tools/generator/job.py", "-o", job,
                        "--offset-us", "5000", "--drift-ppm", "20"], check=True)
        aligned, raw = folder / "aligned.json", folder / "raw.json"
        lamina("merge", job, "-o", aligned, "--align-clocks")
        lamina("merge", job, "-o", raw)
        checks.true("clocks apart in the inputs",
                    max(ends(load(raw))) > 1_000_000)
        apart = ends(load(aligned))
        checks.true(f"collectives end together ({max(apart)} ns)",
                    len(apart) > 100 and max(apart) < 2000)
        check_apart(checks, "aligned", load(aligned), 8)
        # What was merged can be merged with nothing but read.
        tables, _ = report(aligned, "--only", "kernels")
        checks.true("lamina reads the merged trace", tables["kernels"])

        real = folder / "real.json.gz"
        real_traces = sorted((shared() / "traces" / "ddp-2ranks")
                             .glob("*.json.gz"))
        lamina("merge", *real_traces, "-o", real, "--python")
        check_same_tables(checks, "ddp-2ranks", real_traces, real, folder)
        check_apart(checks, "ddp-2ranks", load(real), 2)
    checks.finish()


main()
