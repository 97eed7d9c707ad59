# SPDX-License-Identifier: Apache-2.0
"""The TraceLens layout against the reference reports of that tool."""
import subprocess
import sys

from common import Checks, lamina, shared, temporary

TRAINING = ["h100-bert-small", "h100-falconsai-vit", "h100-owlv2",
            "h100-qwen1.5-0.5b", "mi300-falconsai-vit", "mi300-qwen1.5-0.5b",
            "compile-triton", "normalization"]
SHEETS = ("gpu_timeline,ops_summary_by_category,ops_summary,ops_unique_args,"
          "kernel_summary,short_kernels_summary,short_kernel_histogram")


def main():
    folder = shared()
    checks = Checks()
    for name in TRAINING:
        with temporary() as out:
            lamina("report", folder / "traces" / f"{name}.json.gz",
                   "--layout", "tracelens", "--format", "csv", "-o", out)
            r = subprocess.run(
                [sys.executable, folder / "tools/check_golden.py",
                 folder / "goldens" / name, out,
                 "--allow", folder / "goldens/allow.toml",
                 "--sheets", SHEETS],
                capture_output=True, text=True)
            print(name, r.stdout.splitlines()[-1])
            if r.returncode:
                print(r.stdout)
            checks.equal(name, r.returncode, 0)
    checks.finish()


main()
