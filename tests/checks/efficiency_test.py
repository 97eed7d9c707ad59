#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""op_efficiency holds every linked device event that is no communication once,
and most of the time has a cost model."""
from common import Checks, SAMPLES, report, shared, traces

# At least this share of the time must have a model.
COVERED = {"h100-owlv2": 95, "h100-qwen1.5-0.5b": 95,
           "mi300-qwen1.5-0.5b": 95, "compile-triton": 95}
COSTED = ("exact", "estimated")


def check(checks, path):
    name = path.name.removesuffix(".json.gz")
    tables, _ = report(path, "--only",
                       "op_efficiency,op_categories,opportunities")
    rows = tables["op_efficiency"]
    total = sum(r["kernel_time_us"].ns for r in rows)
    expected = sum(r["kernel_time_us"].ns for r in tables["op_categories"]
                   if r["kind"] == "category")
    checks.equal(f"{name}: time of all rows", total, expected)
    costed = sum(r["kernel_time_us"].ns for r in rows
                 if r["fidelity"] in COSTED)
    if name in COVERED:
        share = 100 * costed / total
        print(f"{name}: {share:.2f} % of the time has a model")
        checks.true(f"{name}: {share:.2f} % has a model, expected "
                    f"{COVERED[name]}", share >= COVERED[name])
    for row in rows:
        checks.true(f"{name}: busy is no longer than the sum",
                    row["busy_us"].ns <= row["kernel_time_us"].ns)
        if row["fidelity"] in COSTED:
            checks.true(f"{name}: {row['op']} has numbers",
                        row["flops"] >= 0 and row["bytes"] >= 0)
        else:
            checks.equal(f"{name}: {row['op']} has none", row["flops"], None)


def check_analytic(checks, path):
    """FLOPs of the whole step of Qwen1.5-0.5B against its configuration."""
    layers, hidden, ffn, heads, batch, length = 24, 1024, 2816, 16, 16, 559
    tokens = batch * length
    linear = 2 * tokens * (4 * hidden * hidden + 3 * hidden * ffn)
    head = hidden // heads
    # Scores and weighted sum over the lower half of a square.
    attention = 2 * batch * heads * (length * length / 2) * 2 * head
    expected = layers * (linear + attention)
    tables, _ = report(path, "--only", "op_efficiency")
    found = sum(r["flops"] * r["count"] for r in tables["op_efficiency"]
                if r["fidelity"] in COSTED)
    print(f"{path.name}: {found:.6g} FLOPs, {expected:.6g} from the "
          "configuration")
    checks.true(f"{found} FLOPs within 2 % of {expected}",
                abs(found / expected - 1) < 0.02)


def main():
    checks = Checks()
    samples = traces(SAMPLES)
    for path in samples:
        check(checks, path)
    folder = shared()
    for path in traces(folder):
        check(checks, path)
    for name in ("h100", "mi300"):
        check_analytic(checks, folder / f"traces/{name}-qwen1.5-0.5b.json.gz")
    checks.finish()


main()
