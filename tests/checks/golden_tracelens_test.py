# SPDX-License-Identifier: Apache-2.0
"""The TraceLens layout against the reference reports of that tool."""
import pathlib
import subprocess
import sys

from common import Checks, lamina, shared, temporary

TRAINING = ["h100-bert-small", "h100-falconsai-vit", "h100-owlv2",
            "h100-qwen1.5-0.5b", "mi300-falconsai-vit", "mi300-qwen1.5-0.5b",
            "compile-triton", "normalization"]
INFERENCE = ["sglang-qwen3-8b-prefilldecode"]
# Replayed graphs with the trace of their capture.
CAPTURED = ["vllm-decode-full", "vllm-prefilldecode-piecewise",
            "xdit-flux1-sage"]


def main():
    folder = shared()
    checks = Checks()
    for name in TRAINING + INFERENCE + CAPTURED:
        traces = folder / "traces"
        inputs = [traces / f"{name}.json.gz"]
        if name in CAPTURED:
            inputs = [traces / name / "replay.json.gz", "--capture",
                      traces / name / "capture"]
        with temporary() as out:
            lamina("report", *inputs,
                   "--layout", "tracelens" if name in TRAINING
                   else "tracelens-inference", "--format", "csv", "-o", out)
            # The list of the reference's defects, and the one beside this file.
            allow = pathlib.Path(out) / "allow.toml"
            allow.write_text(
                (folder / "goldens/allow.toml").read_text() +
                pathlib.Path(__file__).with_name("allow_splits.toml")
                .read_text())
            r = subprocess.run(
                [sys.executable, folder / "tools/check_golden.py",
                 folder / "goldens" / name, out,
                 "--allow", allow],
                capture_output=True, text=True)
            print(name, r.stdout.splitlines()[-1])
            if r.returncode:
                print(r.stdout)
            checks.equal(name, r.returncode, 0)
    checks.finish()


main()
