# SPDX-License-Identifier: Apache-2.0
"""The reference reports of TraceLens: which there are, of which traces, and how
a report of ours is compared with one."""
import pathlib
import subprocess
import sys

TRAINING = ["h100-bert-small", "h100-falconsai-vit", "h100-owlv2",
            "h100-qwen1.5-0.5b", "mi300-falconsai-vit", "mi300-qwen1.5-0.5b",
            "compile-triton", "normalization"]
INFERENCE = ["sglang-qwen3-8b-prefilldecode"]
# Replayed graphs with the trace of their capture.
CAPTURED = ["vllm-decode-full", "vllm-prefilldecode-piecewise",
            "xdit-flux1-sage"]
ALL = TRAINING + INFERENCE + CAPTURED


def inputs(folder, name):
    traces = folder / "traces"
    if name in CAPTURED:
        return [traces / name / "replay.json.gz", "--capture",
                traces / name / "capture"]
    return [traces / f"{name}.json.gz"]


def layout(name):
    return "tracelens" if name in TRAINING else "tracelens-inference"


def compare(folder, name, out):
    """With the list of the reference's defects, and the one beside this
    file."""
    allow = pathlib.Path(out) / "allow.toml"
    allow.write_text(
        (folder / "goldens/allow.toml").read_text() +
        pathlib.Path(__file__).with_name("allow_splits.toml").read_text())
    return subprocess.run(
        [sys.executable, folder / "tools/check_golden.py",
         folder / "goldens" / name, out, "--allow", allow],
        capture_output=True, text=True)
