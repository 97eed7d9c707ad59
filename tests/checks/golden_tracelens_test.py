# SPDX-License-Identifier: Apache-2.0
"""The TraceLens layout against the reference reports of that tool."""
import golden_names
from common import SAMPLES, Checks, lamina, report, shared, temporary, traces


def check_sample(checks, path):
    """Where both layouts count the same they say the same."""
    native, _ = report(path, "--only", "kernels,gpu_timeline")
    sheets, _ = report(path, "--layout", "tracelens")
    expected, found = {}, {}
    for row in native["kernels"]:
        count, time = expected.get(row["kernel"], (0, 0))
        expected[row["kernel"]] = (count + row["count"],
                                   time + row["kernel_time_us"].ns)
    for row in sheets["kernel_summary"]:
        count, time = found.get(row["Kernel name"], (0, 0))
        found[row["Kernel name"]] = (
            count + row["Kernel duration (\u00b5s)_count"],
            time + round(row["Kernel duration (\u00b5s)_sum"] * 1000))
    checks.equal(f"{path.name}: kernels", found,
                 {name: expected.get(name) for name in found})
    checks.true(f"{path.name}: some kernels", found or not expected)
    checks.equal(f"{path.name}: timeline",
                 {r["type"]: round(r["time ms"] * 1e6)
                  for r in sheets["gpu_timeline"]},
                 {r["type"]: r["time_us"].ns for r in native["gpu_timeline"]
                  if r["device"] == "all"})
    direct = sum(r["total_direct_kernel_time_ms"]
                 for r in sheets.get("ops_summary", []))
    by_category = sum(r["total_direct_kernel_time_ms"]
                      for r in sheets.get("ops_summary_by_category", []))
    checks.equal(f"{path.name}: categories add up to the ops",
                 round(by_category * 1e6), round(direct * 1e6))


def main():
    checks = Checks()
    for path in traces(SAMPLES):
        check_sample(checks, path)
    folder = shared()
    for name in golden_names.ALL:
        with temporary() as out:
            lamina("report", *golden_names.inputs(folder, name), "--layout",
                   golden_names.layout(name), "--format", "csv", "-o", out)
            r = golden_names.compare(folder, name, out)
            print(name, r.stdout.splitlines()[-1])
            if r.returncode:
                print(r.stdout)
            checks.equal(name, r.returncode, 0)
    checks.finish()


main()
