#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Census of fusion rules on the reference dumps: matches of every rule after
every transform, near misses of an edited dump, agreement with the log."""
import collections
import gzip
import json
import pathlib

from common import SAMPLES, Checks, lamina, reference_dumps, temporary


def census(path, *args):
    return json.loads(lamina("graph", "census", path, "--format", "json",
                             *args).stdout)


def rows(document, table):
    found = document["tables"].get(table, [])
    return found["rows"] if isinstance(found, dict) else found


def misses(document):
    return {(r["rule"], r["layer"], r["node"], r["class"], r["user"])
            for r in rows(document, "near_misses")}


def check_sample(checks, dump):
    """Rules match, and a norm whose power is changed is a near miss of its
    rule and no match."""
    def matches(path):
        found = collections.Counter()
        for row in rows(census(path), "census"):
            found[row["rule"]] += row["matches"]
        return found
    before = matches(dump)
    rule = "match_rmsnorm_pattern"
    checks.true("sample: norms", before[rule] > 1)
    checks.equal("sample: no near miss of the norm",
                 [m for m in misses(census(dump)) if m[0] == rule], [])
    text = dump.read_text()
    place = text.index(", 2)", text.index("aten.pow"))
    dump.write_text(text[:place] + ", 3)" + text[place + 4:])
    checks.equal("sample: one norm less", matches(dump)[rule],
                 before[rule] - 1)
    checks.true("sample: it is a near miss",
                any(m[0] == rule for m in misses(census(dump))))


def main():
    checks = Checks()
    with temporary() as work:
        dump = pathlib.Path(work) / "001_export_export_to_gm.txt"
        dump.write_bytes(gzip.decompress(
            (SAMPLES / "fusions" / f"{dump.name}.gz").read_bytes()))
        check_sample(checks, dump)
    folder, truth = reference_dumps()
    pairs = 0
    for name, model in truth.items():
        if name == "_about":
            continue
        document = census(folder / "dumps" / name)
        found = collections.Counter()
        for row in rows(document, "census"):
            found[row["file"], row["section"], row["rule"]] += row["matches"]
        expected = collections.Counter()
        for file, facts in model["files"].items():
            for section in facts["sections"]:
                for rule, matches in section["rule_matches"].items():
                    expected[file, section["name"], rule] = matches
        for key in sorted(found.keys() | expected.keys()):
            checks.equal(f"{name} {' '.join(key)}", found[key], expected[key])
        for row in rows(document, "census_stages"):
            checks.true(f"{name} {row['rule']} agrees with the log",
                        row["agrees"] != "no")
            pairs += row["agrees"] == "yes" and row["log"] != "0"
    checks.equal("pairs of log and dump that agree", pairs, 24)

    dumps = folder / "dumps"
    plain = misses(census(dumps / "llama_32l_gqa_symbolic" /
                          "001_export_export_to_gm.txt"))
    edited = misses(census(dumps / "llama_32l_mutated" /
                           "001_export_export_to_gm.txt"))
    expected = {(m["rule"] or "", str(m["layer"]), m["node"], m["class"],
                 m.get("user", ""))
                for m in truth["llama_32l_mutated"]["mutations"]}
    checks.equal("near misses of the edited dump", edited - plain, expected)
    checks.equal("near misses that the edits took away", plain - edited, set())
    checks.finish()


if __name__ == "__main__":
    main()
