#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report, diagnose, host and path tell one story of a trace: what is the same
is equal in all of them, and what one says is worth much another does not call
nothing. On the samples and on all reference traces of every format."""
import json
import os
import pathlib

from common import ROOT, SAMPLES, Checks, lamina

HALVES = (("scale:class=host:0.5", "saved_host_half_us"),
          ("scale:class=compute:0.5", "saved_device_half_us"),
          ("scale:class=comm:0.5", "saved_comm_half_us"))
# All that can be asked of a run; together at least what a mend can bring.
WHOLE = ("scale:class=host:0", "scale:class=device:0", "scale:class=comm:0",
         "scale:class=copy:0", "zero:launch", "zero:gaps", "drop:sync")
ENDINGS = (".json.gz", ".sqlite", ".db", ".xplane.pb", ".pftrace")
MUCH = 0.05       # of the window: worth being asked about
ROUNDED = 0.0015  # us: of a sum of printed times each may be off by half


def traces():
    found = [SAMPLES / f"{name}.json.gz" for name in ("serve", "train_step",
                                                      "moe", "ranks/rank0")]
    folder = pathlib.Path(
        os.environ.get("LAMINA_SHARED", ROOT.parent / "shared")) / "traces"
    if not folder.is_dir():
        print(f"left out: reference traces, none in {folder}")
    return found + sorted(
        p for p in folder.rglob("*") if p.name.endswith(ENDINGS) and
        "truth" not in p.name and "/capture/" not in str(p))


def ask(command, trace, *args):
    answer = lamina(command, trace, "--format", "json", *args, status=None)
    return json.loads(answer.stdout) if answer.returncode == 0 else None


def with_what_ifs(trace, specs):
    """Without those that a trace has nothing for."""
    path = ask("path", trace, *[a for s in specs for a in ("--what-if", s)])
    if path is None and len(specs) > 0:
        fit = tuple(s for s in specs if ask("path", trace, "--what-if", s))
        path = with_what_ifs(trace, fit) if fit != specs else None
    return path


def idle_causes(tables):
    """Of each device by cause and what the host did."""
    return sorted((row["device"], row["cause"], row["activity"] or "",
                   row["detail"] or "", row["time_us"])
                  for row in tables.get("idle_causes", ())
                  if row["scope"] == "device")


def by_device(rows):
    sums = {}
    for device, *_, time in rows:
        sums[device] = sums.get(device, 0) + time
    return sums


def same_sums(check, name, report, found, host):
    """Idle and busy time, by cause, device and step."""
    rows = idle_causes(report)
    check.equal(f"{name}: idle causes of report and host", rows,
                idle_causes(host))
    sums = by_device(rows)
    window = found["window"]
    check.true(f"{name}: idle time of causes {sums} and of diagnose "
               f"{window['idle_ns'] / 1000}",
               abs(sum(sums.values()) - window["idle_ns"] / 1000) <
               ROUNDED * (1 + len(rows)))
    total = {row["type"]: row["time_us"] for row in report["gpu_timeline"]
             if row["device"] == "all"}
    if len(window["devices"]) == 1:
        for kind, key in (("idle_time", "idle_ns"), ("busy_time", "busy_ns")):
            check.equal(f"{name}: {kind} of report and diagnose", total[kind],
                        window[key] / 1000)


def same_findings(check, name, report, found):
    gains = {row["id"]: row["gain_us"] for row in report.get("findings", ())}
    check.equal(f"{name}: gains of report and diagnose", gains,
                {f["id"]: f["gain_ns"] / 1000 for f in found["findings"]})
    shown = [f for f in found["findings"] if f["gain_ns"] > 0]
    check.true(f"{name}: gains lie in their ranges", all(
        f["gain_low_ns"] <= f["gain_ns"] <= f["gain_high_ns"] for f in shown))
    if "at most" in found["headline"]:
        most = sum(max(f["gain_high_ns"], f.get("gain_after_ns") or 0)
                   for f in shown)
        check.true(f"{name}: together at most {found['together_ns']}, {most}",
                   most <= found["together_ns"])


def same_path(check, name, report, found, path):
    """The chain and its steps; ranges and what halves save."""
    window = next(row for row in path["verdicts"] if row["scope"] == "window")
    length = window["window_us"]
    check.true(f"{name}: path_summary adds up to {length}",
               abs(sum(row["time_us"] for row in path["path_summary"]) -
                   length) < ROUNDED * len(path["path_summary"]))
    devices = max(1, len(found["window"]["devices"]))
    if window["device_busy_percent"] is not None and devices == 1:
        check.true(
            f"{name}: busy for {window['device_busy_percent']} % of {length}, "
            f"{found['window']['busy_ns'] / 1000}",
            abs(window["device_busy_percent"] / 100 * length -
                found["window"]["busy_ns"] / 1000) < 0.002 * length)
    # Names of steps are not theirs alone.
    steps = {(row["name"], row["verdict"], row["host_us"], row["device_us"])
             for row in path["verdicts"] if row["scope"] == "step"}
    for row in report.get("steps", ()):
        if row.get("verdict") is None:
            continue
        own = (row["name"], row["verdict"], row["path_host_us"],
               row["path_device_us"])
        check.true(f"{name}: {own} of report is a step of path", own in steps)
    saved = {row["spec"]: row for row in path["what_if"]}
    for spec, row in saved.items():
        check.true(f"{name}: range of {spec}",
                   row["saved_low_us"] <= row["saved_us"] <=
                   row["saved_high_us"])
    for spec, column in HALVES:
        if spec in saved:
            check.equal(f"{name}: {spec} and {column}",
                        saved[spec]["saved_us"], window[column])
    return length, saved, window["confidence"] != "weak"


def no_contradiction(check, name, found, length, saved, sure):
    """Gains and what-ifs, where much is at stake. What the recording itself
    holds (a start, a missing buffer) is no time of the run."""
    most = sum(row["saved_high_us"] for spec, row in saved.items()
               if spec in WHOLE)
    for f in found["findings"]:
        gain = f["gain_ns"] / 1000
        if f["rule"].startswith("trace.") or gain < MUCH * length:
            continue
        check.true(f"{name}: {f['id']} gains {gain:.0f} us and all what-ifs "
                   f"together at most {most:.0f}", most >= 0.8 * gain)
    host = saved.get("scale:class=host:0.5")
    if host is None:
        return
    # Half the host time is worth a fifth of the window, however it is read.
    if sure and host["saved_low_us"] >= 0.2 * length:
        check.true(f"{name}: half the host time saves {host['saved_us']:.0f} "
                   f"of {length:.0f} us, and diagnose says "
                   f"'{found['headline']}'",
                   any(f["gain_ns"] / 1000 >= 0.1 * host["saved_low_us"]
                       for f in found["findings"]))


def main():
    check = Checks()
    looked = 0
    for trace in traces():
        name = "/".join(trace.parts[-2:])
        report = ask("report", trace)
        found = ask("diagnose", trace)
        host = ask("host", trace)
        path = with_what_ifs(trace, (*[s for s, _ in HALVES], *WHOLE))
        if None in (report, found, host, path):
            continue  # no device work, or not the program's to read
        looked += 1
        same_sums(check, name, report["tables"], found, host["tables"])
        same_findings(check, name, report["tables"], found)
        if not path["tables"].get("verdicts"):
            continue
        path["tables"].setdefault("what_if", [])
        no_contradiction(check, name, found, *same_path(
            check, name, report["tables"], found, path["tables"]))
    print(f"{looked} traces")
    check.true("there are traces", looked >= 4)
    check.finish()


main()
