#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The answer over a trace, on the samples and on all reference traces: its bar
tiles the window, its sentence is short, what limits agrees with the bar, fixes
stand by what they save, and every front has the same object: a terminal of any
width, the page, Markdown, the module of Python, the tool of agents."""
import html
import json
import os
import pathlib
import pty
import re
import subprocess
import tempfile
import unicodedata

from common import LAMINA, ROOT, SAMPLES, Checks, cached, lamina
from mcp_client import Client

ENDINGS = (".json.gz", ".sqlite", ".db", ".xplane.pb", ".pftrace")
HOST = ("input", "host", "launch", "sync")
WIDTHS = (60, 80, 120, 200)
LARGE = 1 << 20  # bytes of a trace for which the usual widths do


def traces():
    found = [SAMPLES / f"{name}.json.gz" for name in (
        "serve", "train_step", "moe", "ranks/rank0")]
    found += [SAMPLES / "compiled.json", SAMPLES / "jax.xplane.pb"]
    folder = pathlib.Path(
        os.environ.get("LAMINA_SHARED", ROOT.parent / "shared")) / "traces"
    if not folder.is_dir():
        print(f"left out: reference traces, none in {folder}")
    return found + sorted(p for p in folder.rglob("*")
                          if p.name.endswith(ENDINGS) and
                          "truth" not in p.name)


def holds(check, what, condition, seen=""):
    check.true(what if condition else f"{what}\n{seen}", condition)


def percent(share):
    """As a screen shows it."""
    value = 100 * share
    if 0 < value < 0.05:
        return "<0.1 %"
    if share < 1 and value >= 99.5:
        return f"{int(value * 10) / 10:.1f} %"
    return f"{value:.1f} %" if value < 9.95 else f"{value:.0f} %"


def cells(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in line if not unicodedata.combining(c))


def parts_of(answer):
    return {part["key"]: part["ns"] for part in answer["bar"]}


def check_bar(check, name, answer, tables):
    parts = parts_of(answer)
    devices = len(answer["devices"])
    total = answer["window_ns"] * devices
    check.equal(f"{name}: the bar tiles the window", sum(parts.values()), total)
    holds(check, f"{name}: no part is negative", min(parts.values()) >= 0)
    families = answer["bar"][0]["families"]
    check.equal(f"{name}: families tile the compute part",
                sum(f["ns"] for f in families), parts["compute"])
    if devices == 0:
        return
    timeline = {}
    for row in tables["gpu_timeline"]:
        timeline.setdefault(row["type"], {})[row["device"]] = round(
            row["time_us"] * 1000)
    check.equal(f"{name}: window of gpu_timeline",
                timeline["total_time"]["all"], answer["window_ns"])
    names = ("computation_time", "exposed_comm_time", "exposed_memcpy_time")
    for key, kind in zip(("compute", "communication", "copies"), names):
        of = timeline[kind]
        each = [of[d] for d in of if d not in ("all", "mean")] or [of["all"]]
        check.equal(f"{name}: {key} of gpu_timeline", sum(each), parts[key])


def check_limit(check, name, answer):
    parts = parts_of(answer)
    total = sum(parts.values())
    if total == 0:
        return
    groups = {"host": sum(parts[key] for key in HOST),
              "communication": parts["communication"],
              "copies": parts["copies"],
              "waits": parts["wait"] + parts["outside"],
              "unknown": parts["unknown"]}
    most = max(groups.values())
    said = answer["limited_by"]
    if most > 0 and (most >= 0.25 * total or most > parts["compute"]):
        check.equal(f"{name}: limited by the largest", groups[said["class"]],
                    most)
        if said["class"] == "host":
            words = {p["words"]: p["ns"] for p in answer["bar"]
                     if p["key"] in HOST}
            check.equal(f"{name}: and by most of it", words[said["detail"]],
                        max(words.values()))
    else:
        check.equal(f"{name}: limited by the device", said["class"], "GPU")
    # The sentence names a part of the bar, and its share.
    lost = max((p for p in answer["bar"] if p["key"] != "compute"),
               key=lambda p: p["ns"])
    share = lost["share"] if lost["share"] >= 0.1 else answer["bar"][0]["share"]
    holds(check, f"{name}: the sentence says {percent(share)}",
               percent(share) in answer["sentence"], answer["sentence"])


def check_sentence(check, name, answer):
    words = [w for w in answer["sentence"].split() if w != "%"]
    holds(check, f"{name}: at most 15 words", len(words) <= 15,
               answer["sentence"])
    numbers = re.findall(r"\d[\d.]*(?= [%a-zµ])", answer["sentence"])
    if answer["devices"] and len(answer["devices"]) == 1:
        holds(check, f"{name}: at most two numbers", len(numbers) <= 2,
                   answer["sentence"])
    mfu = answer["mfu"]
    holds(check, f"{name}: MFU, or why there is none in six words",
               mfu["value"] is not None or 1 <= len(mfu["why"].split()) <= 6,
               mfu)


def check_fixes(check, name, answer):
    fixes = answer["fixes"]
    gains = [fix["gain_ns"] for fix in fixes]
    check.equal(f"{name}: fixes by gain", gains, sorted(gains, reverse=True))
    holds(check, f"{name}: at most five", len(fixes) <= 5)
    todo = [fix["do"] for fix in fixes]
    check.equal(f"{name}: no two alike", len(set(todo)), len(todo))
    for fix in fixes:
        holds(check, f"{name}: {fix['do']}: short",
                   len(fix["do"]) <= 32 and fix["do"][0].isupper())
        holds(check, f"{name}: {fix['do']}: numbers agree",
                   fix["before_ns"] == answer["window_ns"] and
                   fix["after_ns"] == fix["before_ns"] - fix["gain_ns"] and
                   0 <= fix["low_ns"] <= fix["gain_ns"] <= fix["high_ns"] <=
                   answer["window_ns"], fix)
        holds(check, f"{name}: {fix['do']}: open is a ceiling",
                   (fix["sure"] == "open") == (fix["how"] == "ceiling") and
              (fix["sure"] == "open" or fix["rule"] != ""))
    holds(check, f"{name}: at most two lines of what takes much time, each "
          "with a number", len(answer["hot"]) <= 2 and
          all(re.search(r"\d", text) for text in answer["hot"]),
          answer["hot"])
    holds(check, f"{name}: together no more than the window",
               0 <= answer["together_ns"] <= answer["window_ns"])


def check_open(check, name, answer):
    """A large part without a fix or a warning is an open fix."""
    if not answer["fixes"] and not answer["warnings"]:
        large = [p["key"] for p in answer["bar"]
                 if p["key"] != "compute" and p["share"] >= 0.1]
        check.equal(f"{name}: no loss is silent", large, [])


def check_screens(check, name, trace, answer):
    usual = trace.stat().st_size > LARGE
    for width in WIDTHS[1::2] if usual else WIDTHS:
        environment = {**os.environ, "COLUMNS": str(width), "LC_ALL": "C.UTF-8"}
        text = lamina("report", trace, env=environment).stdout
        lines = text.splitlines()
        holds(check, f"{name}: at most 20 lines of {width}",
                   len(lines) <= 20 and all(cells(l) <= width for l in lines),
                   text)
        holds(check, f"{name}: no style in a pipe", "\x1b" not in text)
        flat = " ".join(text.split())
        holds(check, f"{name}: the same sentence at {width}",
                   flat.startswith(answer["sentence"]), text)
        if answer["mfu"]["value"] is not None:
            holds(check, f"{name}: the same MFU at {width}",
                       f"MFU {percent(answer['mfu']['value'])}" in flat, text)
        for rank, fix in enumerate(answer["fixes"], 1):
            line = next((l for l in lines if l.startswith(f"{rank}  ")), "")
            holds(check, f"{name}: fix {rank} at {width}",
                       fix["do"] in line and
                       "−" + percent(fix["share"]) in line, text)
            if width >= 80:
                holds(check, f"{name}: how fix {rank} is known at {width}",
                           fix["how"] in line and fix["sure"] in line, line)


# --- other fronts ---

MANIFEST = re.compile(r'<script[^>]*id="manifest"[^>]*>(.*?)</script>', re.S)
PYTHON = """
import json, sys, lamina
for path in sys.argv[1:]:
    trace = lamina.open(path, cache=False)
    print(json.dumps([trace.answer, trace._repr_html_()]))
"""


def from_python(paths):
    """The answers and their HTML, or None where the module is not built."""
    build = pathlib.Path(LAMINA).parent
    if not list((build / "python/lamina").glob("_core.*.so")) or \
            cached("CMAKE_BUILD_TYPE") != "Release":
        print("left out: the module of Python, which is not built")
        return None
    run = subprocess.run(
        [cached("LAMINA_PYTHON"), "-c", PYTHON, *map(str, paths)],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(build / "python"),
             "PYTHONDONTWRITEBYTECODE": "1"})
    if run.returncode != 0:
        print(run.stderr)
    return [json.loads(line) for line in run.stdout.splitlines()]


def from_agents(paths):
    folders = sorted({str(path.parent) for path in paths})
    allowed = [word for folder in folders for word in ("--allow", folder)]
    out = []
    with Client(LAMINA, *allowed) as client:
        for path in paths:
            out.append(client.call("report", trace=str(path),
                                   max_tokens=20000))
    return out


def words_of(answer):
    """What every front that shows words must show."""
    words = [answer["sentence"]]
    if answer["devices"]:
        words += [answer["window"], answer["mfu"]["shown"],
                  answer["limited_by"]["shown"]]
    words += answer["hot"]
    for fix in answer["fixes"]:
        words += [fix["do"], fix["shown"]["before"], fix["shown"]["after"],
                  fix["shown"]["gain"], fix["how"], fix["sure"]]
    return words + [part["shown"]["time"] for part in answer["bar"]
                    if part["ns"] > 0 and answer["devices"]]


def plain_markdown(text):
    """Without what escapes and marks code."""
    return re.sub(r"\\(.)", r"\1", html.unescape(text)).replace("`", "")


def check_shown(check, name, answer):
    """The words beside the numbers say the numbers."""
    for part in answer["bar"]:
        check.equal(f"{name}: {part['key']}: share in words",
                    part["shown"]["share"], percent(part["share"]))
    for fix in answer["fixes"]:
        check.equal(f"{name}: {fix['do']}: gain in words",
                    fix["shown"]["gain"], "\u2212" + percent(fix["share"]))
    if answer["mfu"]["value"] is not None:
        check.equal(f"{name}: MFU in words", answer["mfu"]["shown"],
                    percent(answer["mfu"]["value"]))


def check_page(check, name, trace, answer, folder):
    page = folder / "page.html"
    lamina("report", trace, "-o", page)
    found = MANIFEST.search(page.read_text())
    manifest = json.loads(found.group(1)) if found else {}
    check.equal(f"{name}: the page has the same answer",
                manifest.get("answer"), answer)
    blocks = {block["name"]: block["rows"]
              for block in manifest.get("blocks", [])}
    idle = sum(part["ns"] for part in answer["bar"] if part["key"] in
               (*HOST, "wait", "unknown"))
    check.equal(f"{name}: idle time is drawn by cause",
                blocks.get("idle_spans", 0) > 0, idle > 0)
    check.equal(f"{name}: a lane for each device",
                len(manifest.get("answer_lanes", [])), len(answer["devices"]))


def check_markdown(check, name, trace, answer):
    text = plain_markdown(
        lamina("report", trace, "--format", "markdown").stdout)
    for word in words_of(answer):
        holds(check, f"{name}: Markdown has {word}", word in text, text[:3000])


def check_fronts(check, answers):
    """Page, Markdown, Python and agents against the JSON of the program."""
    paths = [trace for _, trace, _ in answers]
    with tempfile.TemporaryDirectory() as folder:
        for name, trace, answer in answers:
            check_shown(check, name, answer)
            check_page(check, name, trace, answer, pathlib.Path(folder))
            check_markdown(check, name, trace, answer)
    for (name, _, answer), call in zip(answers, from_agents(paths),
                                       strict=True):
        check.equal(f"{name}: agents have the same answer",
                    call["structuredContent"].get("answer"), answer)
        text = call["content"][0]["text"]
        for word in words_of(answer):
            holds(check, f"{name}: the text of agents has {word}",
                  word in text, text[:2000])
    python = from_python(paths)
    for (name, _, answer), (found, shown) in zip(answers, python or (),
                                                 strict=python is not None):
        check.equal(f"{name}: Python has the same answer", found, answer)
        for word in words_of(answer):
            holds(check, f"{name}: a notebook has {word}",
                  word in html.unescape(shown), shown[:2000])


def on_terminal(trace, **environment):
    """What the program writes to a terminal of 80 columns."""
    main, side = pty.openpty()
    clean = {k: v for k, v in os.environ.items()
             if k not in ("NO_COLOR", "COLORTERM", "COLUMNS")}
    with subprocess.Popen([LAMINA, "report", str(trace)], stdout=side,
                          stderr=subprocess.PIPE,
                          env={**clean, "LC_ALL": "C.UTF-8",
                               **environment}) as process:
        os.close(side)
        out = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:
                break
            if not part:
                break
            out += part
    os.close(main)
    return out.decode()


def check_terminal(check):
    trace = SAMPLES / "train_step.json.gz"
    coloured = on_terminal(trace, TERM="xterm")
    holds(check, "colour on a terminal", "\x1b[1m" in coloured, coloured)
    holds(check, "16 colours", "\x1b[34m" in coloured and "38;2" not in coloured)
    holds(check, "24 bit where it is said", "\x1b[38;2;" in on_terminal(
        trace, TERM="xterm", COLORTERM="truecolor"))
    holds(check, "no colour by NO_COLOR",
               "\x1b" not in on_terminal(trace, TERM="xterm", NO_COLOR="1"))
    holds(check, "no colour on a dumb one",
               "\x1b" not in on_terminal(trace, TERM="dumb"))
    plain = on_terminal(trace, TERM="dumb", LC_ALL="C")
    holds(check, "ASCII without UTF-8", plain.isascii() and "####" in plain,
               plain)


def check_tables_named(check):
    """What texts send the reader to is there."""
    texts = (ROOT / "src/findings/answer.cc").read_text().replace('"\n     "',
                                                                  "")
    named = re.findall(r"see (\w+) of lamina (\w+)", texts)
    holds(check, "texts name tables", len(named) > 1)
    trace = SAMPLES / "train_step.json.gz"
    for table, command in named + [("gpu_timeline", "report")]:
        holds(check, f"{table} of lamina {command}",
              lamina(command, trace, "--only", table, "--format", "json",
                     status=None).returncode == 0)


def main():
    check = Checks()
    check_tables_named(check)
    answers = []
    for trace in traces():
        name = f"{trace.parent.name}/{trace.name}"
        run = lamina("report", trace, "--format", "json", status=None)
        if run.returncode != 0:
            continue  # that of a trace without events
        document = json.loads(run.stdout)
        answer = document["answer"]
        check_bar(check, name, answer, document["tables"])
        check_limit(check, name, answer)
        check_sentence(check, name, answer)
        check_fixes(check, name, answer)
        check_open(check, name, answer)
        check_screens(check, name, trace, answer)
        answers.append((name, trace, answer))
    check_fronts(check, answers)
    check_terminal(check)
    check.finish()


if __name__ == "__main__":
    main()
