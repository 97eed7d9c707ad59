#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina slice --where: the smaller trace reports the rows of the whole one
that meet the conditions, to the nanosecond."""
import json
import pathlib

from common import (SAMPLES, Checks, Exact, lamina, report,
                    sample_and_reference_traces, temporary)


def layers(trace):
    return json.loads(lamina("layers", trace, "--format", "json").stdout,
                      parse_float=Exact)["tables"]


def by_kernel(rows):
    sums = {}
    for row in rows:
        key = (row["kernel"], row["op"], row["family"], row["device_index"],
               row["stream"])
        time, count = sums.get(key, (0, 0))
        sums[key] = (time + row["kernel_time_us"].ns, count + row["count"])
    return sums


def total(rows, time="kernel_time_us"):
    return sum(row[time].ns for row in rows)


class Slices:
    def __init__(self, checks, path, folder):
        self.checks = checks
        self.path = path
        self.out = pathlib.Path(folder) / "part.json.gz"

    def tables(self, *conditions):
        words = [w for c in conditions for w in ("--where", c)]
        lamina("slice", self.path, *words, "-o", self.out)
        return report(self.out)[0]

    def kernels(self, expected, *conditions):
        """The rows of the table kernels are these."""
        self.checks.equal(f"{self.path.name} {conditions}",
                          by_kernel(self.tables(*conditions)["kernels"]),
                          by_kernel(expected))

    def sums(self, time, count, *conditions):
        rows = self.tables(*conditions)["kernels"]
        self.checks.equal(f"{self.path.name} {conditions}",
                          (total(rows), sum(row["count"] for row in rows)),
                          (time, count))


def check_kernels(of, whole):
    kernels = whole["kernels"]
    longest = kernels[0]["kernel"]
    of.kernels([k for k in kernels if k["kernel"] == longest],
               f"kernel={longest}")
    if len(kernels) > 1:
        of.kernels([k for k in kernels if k["kernel"] != longest],
                   f"kernel!={longest}")
        second = kernels[-1]["kernel"]
        of.kernels([k for k in kernels if k["kernel"] in (longest, second)],
                   f"kernel={longest}", f"kernel={second}")
    ops = sorted({k["op"] for k in kernels if k["op"]})
    if ops:
        of.kernels([k for k in kernels if k["op"] == ops[0]], f"op={ops[0]}")
        families = {k["family"] for k in kernels if k["op"] == ops[0]}
        family = sorted(families)[0]
        of.kernels([k for k in kernels if k["op"] == ops[0] and
                    k["family"] == family],
                   f"op={ops[0]}", f"family={family}")
    groups = {c["category"]: c["group"] for c in whole["op_categories"]}
    group = groups.get(kernels[0]["family"])
    if group:
        of.kernels([k for k in kernels if groups.get(k["family"]) == group],
                   f"group={group}")
    stream = f"{kernels[0]['device_index']}/{kernels[0]['stream']}"
    of.kernels([k for k in kernels
                if f"{k['device_index']}/{k['stream']}" == stream],
               f"stream={stream}")
    word = kernels[0]["kernel"].split("<")[0].split("(")[0][-12:].lower()
    if word.isascii() and " " not in word and not whole["modules"]:
        of.kernels([k for k in kernels if word in k["kernel"].lower() or
                    word in k["op"].lower()], f"text={word}")


def check_rows(of, whole, layer_tables):
    """Rows of other tables, by their sums."""
    everything = total(whole["kernels"])
    for row in whole["op_efficiency"][:2]:
        of.sums(row["kernel_time_us"].ns, row["kernels"],
                f"op_efficiency={row['first_uid']}")
    inner = [m for m in whole["modules"] if m["depth"] == 1 and m["kernels"]]
    for row in inner[:2]:
        of.sums(row["kernel_time_us"].ns, row["kernels"],
                f"module={row['module']}")
        # The module is still a module in the slice, with the same time.
        again = [m for m in of.tables(f"module={row['module']}")["modules"]
                 if m["module"] == row["module"]]
        of.checks.equal(f"{of.path.name} modules row {row['module']}",
                        [m["kernel_time_us"].ns for m in again],
                        [row["kernel_time_us"].ns])
    for name in sorted({s["name"] for s in whole["steps"]
                        if s["kernels"]})[:2]:
        same = [s for s in whole["steps"] if s["name"] == name]
        of.sums(total(same), sum(s["kernels"] for s in same), f"step={name}")
    for row in [p for p in layer_tables["passes"] if p["kernels"]][-1:]:
        of.sums(row["kernel_time_us"].ns, row["kernels"],
                f"pass={row['pass']}")
        rest = everything - row["kernel_time_us"].ns
        if rest > 0:
            of.sums(rest, sum(k["count"] for k in whole["kernels"]) -
                    row["kernels"], f"pass!={row['pass']}")
    for row in layer_tables["layers"][:1]:
        of.sums(row["kernel_time_us"].ns, row["kernels"],
                f"layers={row['first_uid']}")
        same = [r for r in layer_tables["layers"]
                if r["layer"] == row["layer"]]
        of.sums(total(same), sum(r["kernels"] for r in same),
                f"layer={row['layer']}")


def main():
    checks = Checks()
    paths = sample_and_reference_traces((
        "h100-qwen1.5-0.5b", "mi300-falconsai-vit", "h100-bert-small"))
    paths.append(SAMPLES / "graphs" / "replay.json.gz")
    with temporary() as folder:
        for path in paths:
            of = Slices(checks, path, folder)
            whole = report(path)[0]
            check_kernels(of, whole)
            check_rows(of, whole, layers(path))
    checks.finish()


main()
