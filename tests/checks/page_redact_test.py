# SPDX-License-Identifier: Apache-2.0
"""Pages with --redact: no path, host or user of the trace by any road.

Words that must not be seen are planted in every field of generated traces and
dumps. The whole page is searched, all blocks unpacked; without --redact they
are found, so the search works. All numbers stay.
"""
import base64
import gzip
import json
import pathlib
import re

from common import Checks, SAMPLES, lamina, skip, temporary
from page_test import Page, decode

USER, HOST, DOMAIN = "zaphodb", "magrathea-17", "deepthought.acme.com"
FOLDER, PROJECT = "vogonfleet", "krikkit"
ADDRESS = "10.42.7.99"
SECRETS = [USER, HOST, DOMAIN, FOLDER, PROJECT, ADDRESS, "slartibart",
           "marvin", "ip-10-42-7-98", "babelfish"]

# What must stay as it is.
KEPT = ["jit(f)/layer_3/dot_general", "model/layers.0/self_attn",
        "/model/layers.0/mlp/MatMul", "torch/nn/modules/linear.py(114): forward",
        "void at::native::vectorized<4, c10::add<float> >(int)", "aten::mm"]


def trace(rank=0):
    """A trace with secrets in names, arguments, tracks and metadata."""
    home = f"/home/{USER}/{PROJECT}"
    frames = [f"{home}/model.py(12): forward",
              f"/mnt/{FOLDER}/run.py(3): <module>",
              f"/srv2/{FOLDER}/{PROJECT}.py(3): call",
              f"C:\\Users\\{USER} Smith\\{PROJECT}\\x y.py(7): step",
              f"file://{home}/a b/y.py(1): z", f"~{USER}/bin/x",
              f"{home}/lib/python3.10/site-packages/"
              "torch/nn/modules/linear.py(114): forward", KEPT[3]]
    words = [f"run of {USER}", f"{USER.upper()}_kernel", f"on {HOST}",
             f"rank 3 at {HOST}.{DOMAIN}", f"tcp://{ADDRESS}:29500",
             f"{USER}@{HOST}", "hostname=slartibart", f"of {USER}'s {home}",
             f"https://git.{DOMAIN}/{PROJECT}?x=1", "slartibart 2",
             "copy to ip-10-42-7-98", f"open {home}/data.bin", *KEPT[:3]]
    events, ts = [], 0

    def add(name, cat, begin, dur, tid=1, pid=1, **args):
        events.append({"ph": "X", "cat": cat, "name": name, "ts": begin,
                       "dur": dur, "pid": pid, "tid": tid, "args": args})

    add("ProfilerStep#1", "user_annotation", 0, 1000 * len(words))
    for i, word in enumerate(words):
        ts = 1000 * i
        add(word, "user_annotation", ts, 900)
        for k, frame in enumerate(frames):
            add(frame, "python_function", ts + k, 800 - 2 * k,
                **{"Python id": 100 * i + k + 1,
                   "Python parent id": 100 * i + k if k else None})
        add("aten::mm" if i % 2 else word, "cpu_op", ts + 50, 300,
            **{"External id": i + 1, "Input Dims": [[64, 64], [64, 64]],
               "Input type": ["float", "float"],
               "Concrete Inputs": [f"{home}/w.pt", HOST]})
        add("cudaLaunchKernel", "cuda_runtime", ts + 60, 5, correlation=i + 1)
        add(KEPT[4] if i % 3 else word, "kernel", ts + 100, 300 + i, tid=7,
            pid=0, device=0, stream=7, correlation=i + 1, context=1,
            **{"External id": i + 1})
        events.append({"ph": "C", "name": f"memory of {USER}", "pid": 1,
                       "ts": ts, "args": {f"MB {HOST}": i}})
    for pid in (0, 1):
        events.append({"ph": "M", "name": "process_name", "pid": pid,
                       "args": {"name": f"python {home}/train.py on {HOST}"}})
        events.append({"ph": "M", "name": "process_labels", "pid": pid,
                       "args": {"labels": f"{HOST} {USER}"}})
    events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": 1,
                   "args": {"name": f"thread of marvin {USER}"}})
    return {"schemaVersion": 1, "hostname": f"{HOST}.{DOMAIN}",
            "tw_user": "marvin", "traceName": f"{home}/out.json",
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3",
                                  "totalGlobalMem": 85018279936,
                                  "computeMajor": 9, "computeMinor": 0,
                                  "numSms": 132}],
            "distributedInfo": {"backend": "nccl", "rank": rank,
                                "world_size": 2},
            "metadata": {"user": USER}, "traceEvents": events}


def write_trace(path, rank=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(trace(rank)), encoding="utf-8")
    return path


def all_text(path):
    """Everything in the file of a page, blocks unpacked."""
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    blocks = [gzip.decompress(base64.b64decode(data)).decode("latin-1")
              for name, data in page.data.items() if name != "manifest"]
    strings = page.data["block-string_bytes"]
    texts = gzip.decompress(base64.b64decode(strings)).decode("utf-8")
    return page, "\n".join([text, json.dumps(page.data["manifest"],
                                             ensure_ascii=False),
                            texts, *blocks])


def found(text):
    lower = text.lower()
    return [secret for secret in SECRETS if secret in lower]


def texts_of(page):
    """The string table as a list."""
    lengths = decode(page, "string_lengths")["length"]
    raw = gzip.decompress(base64.b64decode(page.data["block-string_bytes"]))
    out, at = [], 0
    for length in lengths:
        out.append(raw[at:at + length].decode("utf-8"))
        at += length
    return out


def check_pair(checks, name, args, folder, planted=SECRETS[:5]):
    """A command with and without --redact: (page, redacted page)."""
    plain, hidden = folder / "plain.html", folder / "hidden.html"
    lamina(*args, "-o", plain)
    lamina(*args, "-o", hidden, "--redact")
    page, text = all_text(plain)
    checks.equal(f"{name}: the page holds what is planted",
                 [s for s in planted if s not in text.lower()], [])
    redacted, text = all_text(hidden)
    checks.equal(f"{name}: the redacted page", found(text), [])
    checks.true(f"{name}: it says so",
                redacted.data["manifest"].get("redacted") == 1 and
                "This page is redacted: " in
                redacted.data["manifest"]["privacy"] and
                "This page is redacted: " in text.split("<script")[0])
    checks.true(f"{name}: and the other one, too",
                "redacted" not in page.data["manifest"] and
                "--redact replaces" in page.data["manifest"]["privacy"])
    return page, redacted


def check_numbers(checks, name, page, redacted):
    """All columns are the same, and rows keep their texts apart."""
    blocks = [b["name"] for b in page.data["manifest"]["blocks"]]
    checks.equal(f"{name}: blocks", blocks,
                 [b["name"] for b in redacted.data["manifest"]["blocks"]])
    for block in blocks:
        if not block.startswith("string_"):
            checks.equal(f"{name}: {block}", decode(page, block),
                         decode(redacted, block))
    before, after = texts_of(page), texts_of(redacted)
    checks.equal(f"{name}: texts", len(before), len(after))
    # What has no secret in it is not touched.
    changed = [(a, b) for a, b in zip(before, after)
               if a != b and not found(a) and "/" not in a]
    checks.equal(f"{name}: nothing else changes", changed, [])
    return before, after


def check_report(checks, folder):
    path = write_trace(folder / FOLDER / f"{HOST}_{PROJECT}.pt.trace.json")
    page, redacted = check_pair(
        checks, "report", ["report", path, "--format", "html"], folder,
        SECRETS[:8])
    before, after = check_numbers(checks, "report", page, redacted)
    for text in KEPT:
        checks.true(f"kept: {text}", text in before and text in after)
    checks.true("folders of packages keep what is below them", any(
        re.fullmatch(r"path-[0-9a-f]{8}/torch/nn/modules/linear\.py"
                     r"\(114\): forward", t) for t in after))
    checks.true("a frame keeps its line and function", any(
        re.fullmatch(r"path-[0-9a-f]{8}/file-[0-9a-f]{8}\.py"
                     r"\(12\): forward", t) for t in after))
    # From its folder, by its name alone: the same tokens.
    lamina("report", path.name, "--format", "html", "--redact", "-o",
           folder / "again.html", cwd=path.parent)
    again, text = all_text(folder / "again.html")
    checks.equal("by a relative name", found(text), [])
    checks.equal("tokens are those of the trace",
                 set(texts_of(again)) ^ set(after), set())
    # By one thread, from standard input.
    one = folder / "one.html"
    lamina("report", path, "--format", "html", "--redact", "-o", one,
           "--threads", "1")
    checks.true("same bytes with one thread",
                one.read_bytes() == (folder / "hidden.html").read_bytes())
    return path, after


def check_commands(checks, folder, path, tokens):
    other = write_trace(folder / FOLDER / USER / "after.json")
    page, redacted = check_pair(
        checks, "diff", ["diff", path, other, "--format", "html"], folder,
        [USER, HOST])
    check_numbers(checks, "diff", page, redacted)
    shown = {t for t in texts_of(redacted) if re.search("(path|host)-", t)}
    checks.true("diff: tokens of the first trace",
                len(shown & set(tokens)) > 3)
    check_pair(checks, "ranks", [
        "ranks", write_trace(folder / USER / "rank0.json"),
        write_trace(folder / USER / "rank1.json", 1), "--format", "html"],
        folder, [USER])
    for command in (["layers"], ["tree"],
                    ["report", "--only", "kernels"],
                    ["report", "--layout", "tracelens"]):
        check_pair(checks, " ".join(command),
                   [command[0], path, *command[1:], "--format", "html"],
                   folder, [FOLDER])


def check_layer(checks, folder):
    """A page of a dump in a folder that says who made it."""
    place = folder / USER / f"{PROJECT}.txt"
    place.write_bytes(next((SAMPLES / "dumps").glob("*.txt")).read_bytes())
    for options, holds in ((["--redact"], False), ([], True)):
        lamina("graph", "layer", place, "-n", "0", "--render", "html", "-o",
               folder / "layer.json", *options)
        _, text = all_text(folder / "layer.html")
        checks.equal(f"graph layer {options}", bool(found(text)), holds)


def check_refusals(checks, path):
    for args in (["report", path], ["report", path, "--format", "json"],
                 ["diff", path, path, "--format", "csv"],
                 ["graph", "layer", path, "-n", "0"],
                 ["graph", "layer", path, "-n", "0", "--render", "svg"]):
        r = lamina(*args, "--redact", status=None)
        checks.equal(f"refused: {args[0]} {args[-1]}",
                     (r.returncode, "only pages are redacted" in r.stderr,
                      r.stdout), (2, True, ""))


    r = lamina("ranks", path, "--engine", "files", "--partials",
               path.parent / "partials", "--format", "html", "--redact",
               status=None)
    checks.equal("refused: ranks --engine files",
                 (r.returncode, "--redact must read" in r.stderr, r.stdout),
                 (2, True, ""))


def main():
    with temporary() as folder:
        folder = pathlib.Path(folder)
        probe = lamina("report", SAMPLES / "serve.json.gz", "--format", "html",
                       "-o", folder / "probe.html", status=None)
        if "has no report page" in probe.stderr:
            skip("this build has no report page (node is missing)")
        checks = Checks()
        path, tokens = check_report(checks, folder)
        check_commands(checks, folder, path, tokens)
        check_layer(checks, folder)
        check_refusals(checks, path)
        checks.finish()


if __name__ == "__main__":
    main()
