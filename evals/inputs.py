# SPDX-License-Identifier: Apache-2.0
"""The folder that questions are asked about: samples/, and what is made from
them because it is too large or too plain to be kept."""
import gzip
import json
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MANY = 100_000


def run(program, *words):
    subprocess.run([program, *map(str, words)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make(program, folder, many=False):
    """Fills `folder`: the samples; runs/before and runs/after, dumps of a
    pipeline with and without one fusion; cut.json, a trace whose end is
    missing; server.json with bench.json, what its clients recorded, and
    b16.json, b256.json, b400.json, its decodes at these batches; with `many`
    many.json.gz, MANY kernels."""
    folder = pathlib.Path(folder)
    shutil.copytree(ROOT / "samples", folder, dirs_exist_ok=True)
    dump = folder / "fusions/001_export_export_to_gm.txt.gz"
    config = (folder / "fusions/pipeline.yaml").read_text()
    run(program, "graph", "rewrite", dump, "--config",
        folder / "fusions/pipeline.yaml", "-o", folder / "runs/before")
    without = config.replace("fuse_rmsnorm: {stage",
                             "fuse_rmsnorm: {enabled: false, stage")
    assert without != config
    (folder / "runs/after.yaml").write_text(without)
    run(program, "graph", "rewrite", dump, "--config",
        folder / "runs/after.yaml", "-o", folder / "runs/after")
    whole = gzip.decompress((folder / "serve.json.gz").read_bytes())
    (folder / "cut.json").write_bytes(whole[:len(whole) * 2 // 3])
    serve = (sys.executable, folder / "serving.py")
    run(*serve, folder / "server.json", folder / "bench.json")
    for batch in (16, 256, 400):
        run(*serve, folder / f"b{batch}.json", "--batch", batch)
    if many:
        # Lengths between 1 us and 2 ms by a fixed rule, 512 names.
        events = [{"ph": "X", "cat": "kernel", "name": f"kernel_{i % 512:03}",
                   "pid": 0, "tid": 7, "ts": 2100 * i,
                   "dur": 1 + (i * 7919 % 512) * 4,
                   "args": {"device": 0, "stream": 7, "correlation": i}}
                  for i in range(MANY)]
        with gzip.open(folder / "many.json.gz", "wt", compresslevel=1) as file:
            json.dump({"traceEvents": events}, file)
