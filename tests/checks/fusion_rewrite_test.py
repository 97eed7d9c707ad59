#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina graph rewrite over a whole pipeline: dumps, log and page; the census
of what it wrote; a regression of the log that is cut."""
import gzip
import json
import pathlib

from common import SAMPLES, Checks, lamina, reference_dumps, temporary

CONFIG = """transforms:
  match_repeat_kv: {stage: pattern_matcher}
  match_grouped_attention: {stage: pattern_matcher}
  match_attention_layout: {stage: pattern_matcher}
  match_rope_pattern: {stage: pattern_matcher}
  match_rope_layout: {stage: pattern_matcher}
  match_rmsnorm_pattern: {stage: pattern_matcher}
  match_moe_routing_pattern: {stage: pattern_matcher}
  eliminate_redundant_transposes: {stage: pattern_matcher}
  match_swiglu_pattern: {stage: pattern_matcher}
  detect_sharding: {stage: sharding}
  fuse_gemms: {stage: post_load_fusion, enabled: false}
  fuse_moe: {stage: post_load_fusion}
  fuse_rmsnorm: {stage: post_load_fusion, rmsnorm_backend: flashinfer}
  fuse_swiglu: {stage: post_load_fusion}
  fuse_add_rms_norm: {stage: post_load_fusion}
  optimize_rope: {stage: post_load_fusion}
"""


def rows(document, table):
    found = document["tables"].get(table, [])
    return found["rows"] if isinstance(found, dict) else found


def check_places(checks, name, places, before, after):
    """The lines that are named define the anchor, and what came."""
    old = before.read_text().splitlines()
    new = after.read_text().splitlines()
    for layer, anchor, line, gone, now, came in places:
        line, gone = int(line), int(gone)
        found = [i + 1 for i, x in enumerate(old)
                 if x.startswith(anchor + " = ")]
        checks.true(f"page: {name}: {anchor} in layer {layer}",
                    len(found) == 1 and line <= found[0] and
                    gone <= found[0] - line + 1)
        checks.true(f"page: {name}: {anchor} is gone", not any(
            x.startswith(anchor + " = ") for x in new))
        checks.true(f"page: {name}: {anchor}: its place is new",
                    not int(came) or new[int(now) - 1] not in old)


def check_sample(checks, dump):
    """Written dumps read back, and their census agrees with their log."""
    out = dump.parent / "sample"
    document = json.loads(
        lamina("graph", "rewrite", dump, "--config",
               SAMPLES / "fusions/pipeline.yaml", "-d", out, "--format",
               "json").stdout)
    found = {r["transform"]: r for r in rows(document, "rewrite")}
    checks.equal("sample: fuse_gemms", found["fuse_gemms"]["status"],
                 "disabled")
    checks.true("sample: norms are matched",
                found["match_rmsnorm_pattern"]["matches"] > 0)
    checks.equal("sample: and none is left",
                 found["match_rmsnorm_pattern"]["left"], 0)
    for name, row in found.items():
        checks.equal(f"sample: {name} has a dump when it changed something",
                     bool(row["file"]) and (out / row["file"]).is_file(),
                     bool(row["matches"]))
    page = (out / "before_after.md").read_text()
    heads = [x[3:] for x in page.splitlines() if x.startswith("## ")]
    changed = [n for n, r in found.items() if r["matches"]]
    before = dump
    checks.equal("page: sections", heads,
                 changed + ["Changed nothing", "In all", "To repeat it"])
    for words in ("- configuration: ", "- sizes: ", "- fuse_gemms: disabled",
                  "passes are not in the configuration", "per step by the"):
        checks.true(f"page: {words}", words in page)
    for name in changed:
        part = page.split(f"## {name}\n")[1].split("\n## ")[0]
        for row in rows(document, "rewrite_ops"):
            if row["transform"] == name:
                checks.true(f"page: {name}: {row['op']}",
                            f"{row['op']} x{row['change']:+}" in part)
        places = [x.strip("| ").split(" | ") for x in
                  part.split("|---|---|--:|--:|--:|--:|\n")[1].splitlines()
                  if x.startswith("| ")]
        checks.equal(f"page: {name}: a row per match", len(places),
                     found[name]["matches"])
        check_places(checks, name, places, before, out / found[name]["file"])
        before = out / found[name]["file"]
    checks.true("page: lines are cut behind an operand", all(
        len(x) < 420 and (not x.endswith(" ...") or x.endswith(", ..."))
        for x in page.splitlines() if x[:2] in ("- ", "+ ") and "%" in x[:4]))
    command = page.split("```sh\n")[1].split("\n")[0].split()
    checks.equal("page: the command runs",
                 lamina(*command[1:], status=None).returncode, 0)
    checks.equal("page: and gives the same page",
                 (out / "before_after.md").read_text(), page)
    for path in sorted(out.glob("*.txt")):
        lamina("graph", "print", path, "--check")
    census = json.loads(lamina("graph", "census", out, "--format",
                               "json").stdout)
    for row in rows(census, "census_stages"):
        checks.true(f"sample: {row['rule']} agrees", row["agrees"] != "no")


def main():
    checks = Checks()
    with temporary() as work:
        dump = pathlib.Path(work) / "001_export_export_to_gm.txt"
        dump.write_bytes(gzip.decompress(
            (SAMPLES / "fusions" / f"{dump.name}.gz").read_bytes()))
        check_sample(checks, dump)
    folder, truth = reference_dumps()
    with temporary() as work:
        work = pathlib.Path(work)
        config = work / "default.yaml"
        config.write_text(CONFIG)
        for name in ("llama_32l_gqa_symbolic", "mixtral_4l_moe_symbolic"):
            out = work / name
            first = folder / "dumps" / name / "001_export_export_to_gm.txt"
            document = json.loads(
                lamina("graph", "rewrite", first, "--config", config, "-d", out,
                       "--format", "json").stdout)
            expected = {t: n for _, t, n in truth[name]["log"]}
            for row in rows(document, "rewrite"):
                if row["transform"] == "detect_sharding":
                    checks.equal("unknown transform", row["status"], "skipped")
                elif row["transform"] == "fuse_gemms":
                    checks.equal("fuse_gemms", row["status"], "disabled")
                else:
                    checks.equal(f"{name} {row['transform']}", row["matches"],
                                 expected[row["transform"]])
                    checks.equal(f"{name} {row['transform']} left", row["left"],
                                 0)
                written = (out / row["file"]).is_file() if row["file"] else None
                checks.equal(f"{name} {row['transform']} dump",
                             bool(written), bool(row["matches"]))
            # What was written reads back without a complaint.
            for dump in sorted(out.glob("*.txt")):
                lamina("graph", "print", dump, "--check")
            checks.true("page", (out / "before_after.md").read_text()
                        .startswith("# 001_export"))
            # The log of the rewrite agrees with its dumps.
            census = json.loads(lamina("graph", "census", out, "--format",
                                       "json").stdout)
            for row in rows(census, "census_stages"):
                checks.true(f"{name} {row['rule']} agrees",
                            row["agrees"] != "no")
            # A second run with a merge of the projections.
            merged = work / "merged.yaml"
            merged.write_text("transforms:\n  fuse_gemms: {enabled: true}\n")
            document = json.loads(
                lamina("graph", "rewrite", first, "--config", config,
                       "--overlay", merged, "--format", "json").stdout)
            gemms = [r for r in rows(document, "rewrite")
                     if r["transform"] == "fuse_gemms"]
            checks.equal(f"{name} merged groups", gemms[0]["matches"],
                         32 if name.startswith("llama") else 4)

        log = (folder / "dumps/llama_32l_gqa_symbolic/transform.log")
        cut = work / "cut.log"
        cut.write_text(log.read_text().replace(
            "transform=fuse_add_rms_norm] [SUMMARY] matches=64",
            "transform=fuse_add_rms_norm] [SUMMARY] matches=60"))
        lamina("graph", "log-diff", log, log)
        result = lamina("graph", "log-diff", log, cut, status=1)
        checks.true("the line of the regression",
                    "fuse_add_rms_norm: 64 -> 60" in result.stdout)
        # 60 is no multiple of the layers, unless there is one only.
        lamina("graph", "log-diff", log, cut, "--max-drop", "10", status=1)
        lamina("graph", "log-diff", log, cut, "--max-drop", "10", "--layers",
               "1")
        lamina("graph", "log-diff", log, config, status=3)
    checks.finish()


if __name__ == "__main__":
    main()
