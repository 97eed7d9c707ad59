# SPDX-License-Identifier: Apache-2.0
"""The same bytes for any number of threads, run after run."""
import filecmp
import os

from common import Checks, SAMPLES, lamina, shared, temporary, traces


def main():
    checks = Checks()
    folder = shared() / "traces"
    files = [folder / f"{n}.json.gz" for n in
             ("h100-owlv2", "nccl-fields", "queue-length",
              "sglang-qwen3-8b-prefilldecode")]
    files += traces(SAMPLES)
    for path in files:
        with temporary() as out:
            outputs = []
            for threads in (1, 2, 8):
                target = os.path.join(out, str(threads))
                lamina("report", path, "--format", "csv", "-o", target,
                       "--threads", threads)
                lamina("report", path, "--format", "json", "-o",
                       os.path.join(target, "report.json"), "--threads",
                       threads)
                outputs.append(target)
            for name in sorted(os.listdir(outputs[0])):
                for other in outputs[1:]:
                    checks.true(f"{path.name}: {name}", filecmp.cmp(
                        os.path.join(outputs[0], name),
                        os.path.join(other, name), shallow=False))
    checks.finish()


main()
