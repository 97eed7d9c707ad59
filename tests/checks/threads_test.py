# SPDX-License-Identifier: Apache-2.0
"""The same bytes for any number of threads, run after run."""
import filecmp
import os
import pathlib

from common import Checks, SAMPLES, lamina, shared, temporary, traces
from profilers import FORMATS, Work, write_xplane


def check_tables(checks, path):
    """Every file of a report of Kineto traces."""
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


def check_document(checks, path):
    """The report of a trace of another profiler, which is read in parts."""
    one, many = (lamina("report", path, "--format", "json", "--threads",
                        threads).stdout for threads in (1, 8))
    checks.true(f"{path.name}: same report", one == many)


def check_formats(checks):
    """A workload so long that every format has several parts, which are 1 MB
    of JSON or CSV and 16384 rows of a table: 16960 kernels, 38400 ranges."""
    work = Work(SAMPLES / "train_step.json.gz").repeated(80)
    with temporary() as folder:
        folder = pathlib.Path(folder)
        for file, write in (*FORMATS.values(), ("a.xplane.pb", write_xplane)):
            write(work, folder / file)
            check_document(checks, folder / file)
        lamina("convert", folder / FORMATS["rocprof"][0], "-o",
               folder / "a.pftrace")
        check_document(checks, folder / "a.pftrace")


def main():
    checks = Checks()
    check_formats(checks)
    folder = shared() / "traces"
    files = [folder / f"{n}.json.gz" for n in
             ("h100-owlv2", "nccl-fields", "queue-length",
              "sglang-qwen3-8b-prefilldecode")]
    for path in files + traces(SAMPLES):
        check_tables(checks, path)
    for path in (folder / "rocprof-908.json.gz",
                 *sorted((folder / "nsys").glob("*.sqlite"))):
        check_document(checks, path)
    checks.finish()


main()
