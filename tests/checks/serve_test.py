#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina serve: what it answers, to whom, and what attacks do to it. With
`--long` its clients go on for 60 seconds.

Longer than most: most parts ask one server, so that they also show that what
one of them does leaves the others alone."""
import gzip
import itertools
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

from common import (LAMINA, ROOT, SAMPLES, Checks, lamina, run_parts, shared,
                    skip, temporary, without_browser)
from profilers import Work, write_csv, write_nsys
from serve_client import Serve

checks = Checks()
HOST = "127.0.0.1"


def start(*arguments, **kwargs):
    return Serve(LAMINA, *arguments, "--threads", 1, **kwargs)


def command_line():
    r = lamina("serve", "--help")
    checks.true("help has an example", "lamina serve runs/" in r.stdout)
    checks.true("help says nothing of workers", "--worker" not in r.stdout)
    r = lamina("help", "serve")
    checks.true("nor does the manual", "--worker" not in r.stdout and
                "--token-file" in r.stdout)
    for arguments, status in ((["--port", "x"], 2), (["--nosuch"], 2),
                              (["/nowhere/at/all"], 3)):
        r = lamina("serve", *arguments, status=None)
        checks.equal(f"serve {arguments}", r.returncode, status)
        checks.equal(f"serve {arguments}: no address", r.stdout, "")
    with temporary() as folder:
        r = lamina("serve", folder, status=None)
        checks.equal("a folder without traces", r.returncode, 3)
        for number in (signal.SIGTERM, signal.SIGINT):
            with start(SAMPLES / "serve.json.gz",
                       env={"TMPDIR": folder}) as s:
                checks.true("an address", s.port > 0)
                s.opened(s.id_of("serve.json.gz"))
                checks.equal("one process for one trace", len(s.workers()), 1)
                workers = s.workers()
                checks.equal(f"ends by {number}", s.stop(number), 0)
                time.sleep(0.3)
                checks.equal("no process is left",
                             [w for w in workers if alive(w)], [])
                checks.equal("no file is left", os.listdir(folder), [])
        with start(SAMPLES / "serve.json.gz") as s:
            r = lamina("serve", SAMPLES / "serve.json.gz", "--port", s.port,
                       status=None)
            checks.equal("a port that is taken", r.returncode, 3)
            # Killed without a chance to tell anyone.
            s.opened(s.id_of("serve.json.gz"))
            workers = s.workers()
            s.process.kill()
            s.process.wait()
            time.sleep(0.5)
            checks.equal("no process outlives the server",
                         [w for w in workers if alive(w)], [])


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def addresses():
    """Loopback or a Unix socket, and nothing else."""
    with temporary() as folder, \
            start(SAMPLES / "serve.json.gz", "--unix",
                  f"{folder}/s", "--token-file", f"{folder}/token") as s:
        mode = os.stat(f"{folder}/s").st_mode
        checks.true("a socket of this user", stat.S_ISSOCK(mode) and
                    mode & 0o77 == 0)
        mode = os.stat(f"{folder}/token").st_mode
        checks.equal("a token of this user", mode & 0o777, 0o600)
        checks.equal("the token", pathlib.Path(f"{folder}/token").read_text(),
                     s.token + "\n")
        with socket.socket(socket.AF_UNIX) as c:
            c.connect(f"{folder}/s")
            c.sendall(f"GET /api/v1/info HTTP/1.1\r\nHost: localhost\r\n"
                      f"Authorization: Bearer {s.token}\r\n"
                      "Connection: close\r\n\r\n".encode())
            out = b""
            while part := c.recv(65536):
                out += part
        checks.true("the socket answers", out.startswith(b"HTTP/1.1 200"))
        r = lamina("serve", SAMPLES, "--unix", f"{folder}/s", status=None)
        checks.equal("a socket that is taken", r.returncode, 3)
        checks.equal("ends", s.stop(), 0)
        checks.true("the socket is gone", not os.path.exists(f"{folder}/s"))
        os.chmod(f"{folder}/token", 0o644)
        r = lamina("serve", SAMPLES, "--token-file", f"{folder}/token",
                   status=None)
        checks.equal("a token that others read", r.returncode, 3)
        os.chmod(f"{folder}/token", 0o600)
        token = s.token
        with start(SAMPLES, "--token-file", f"{folder}/token") as s:
            checks.equal("the same token again", s.token, token)
            listening = subprocess.run(
                ["cat", f"/proc/{s.process.pid}/net/tcp"], text=True,
                capture_output=True, check=True).stdout
            ours = [line.split()[1] for line in listening.splitlines()[1:]
                    if line.split()[1].endswith(f":{s.port:04X}") and
                    line.split()[3] == "0A"]
            checks.equal("listens on 127.0.0.1 alone", ours,
                         [f"0100007F:{s.port:04X}"])


def who_may_ask(s):
    port = s.port
    ours = f"{HOST}:{port}"
    for host, status in (
            (ours, 200), (f"localhost:{port}", 200), ("localhost", 200),
            ("LOCALHOST", 200), (f"[::1]:{port}", 200), ("127.0.0.1:1", 200),
            ("evil.test", 421), (f"evil.test:{port}", 421), ("", 421),
            ("127.0.0.1.evil.test", 421), ("localhost.evil.test", 421),
            ("evil.test@localhost", 421), ("localhost:x", 421),
            ("localhost:", 421), ("[::1", 421), ("[::2]", 421),
            ("127.0.0.2", 421), ("0.0.0.0", 421), ("localhost:999999", 421)):
        for path in ("/api/v1/info", "/"):
            got, _, _ = s.ask("GET", path, headers={"Host": host})
            checks.equal(f"Host {host!r} {path}", got, status)
    for origin, status in (
            (f"http://{ours}", 200), (f"HTTP://{ours}", 200), ("null", 403),
            ("http://evil.test", 403), (f"https://{ours}", 403),
            (f"http://localhost:{port}", 403), ("http://127.0.0.1", 403),
            (f"http://127.0.0.1:{port + 1}", 403),
            (f"http://{ours}.evil.test", 403), ("file://", 403)):
        for path in ("/api/v1/info", "/"):
            got, _, _ = s.ask("GET", path, headers={"Origin": origin})
            checks.equal(f"Origin {origin!r} {path}", got, status)
    for site, status in (("none", 200), ("same-origin", 200),
                         ("same-site", 403), ("cross-site", 403),
                         ("other", 403)):
        got, _, _ = s.ask("GET", "/api/v1/info",
                          headers={"Sec-Fetch-Site": site})
        checks.equal(f"Sec-Fetch-Site {site}", got, status)
    wrong = s.token[:-1] + ("A" if s.token[-1] != "A" else "B")
    for given in (None, "", "Bearer", "Bearer ", f"Bearer {wrong}",
                  f"Bearer {s.token}x", f"bearer {s.token}", s.token,
                  f"Basic {s.token}", f"Bearer  {s.token}"):
        for path in ("/api/v1/info", "/api/v1/traces", "/mcp", "/api/",
                     "/api/v1/nothing", "/api/v1/traces/" + 24 * "0"):
            if given and path != "/api/v1/info":
                continue
            got, _, body = s.ask("GET", path, token=False,
                                 headers={"Authorization": given})
            checks.equal(f"token {given!r} {path}", got, 401)
            checks.true("no token is told", s.token.encode() not in body)
    begin = time.monotonic()
    for _ in range(8):
        s.ask("GET", "/api/v1/info", token=False,
              headers={"Authorization": f"Bearer {wrong}"})
    checks.true("guessing takes its time", time.monotonic() - begin > 0.9)
    got, _, _ = s.ask("GET", f"/api/v1/info?token={s.token}", token=False)
    checks.equal("no token in the address", got, 401)
    got, _, _ = s.ask("GET", "/api/v1/info", token=False,
                      headers={"Cookie": f"token={s.token}"})
    checks.equal("no token in a cookie", got, 401)
    for method in ("PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "PATCH",
                   "CONNECT", "NONSENSE"):
        got, _, _ = s.ask(method, "/api/v1/info")
        checks.true(f"method {method}: {got}", got in (400, 405))
    for kind in (None, "text/plain", "application/x-www-form-urlencoded",
                 "multipart/form-data; boundary=x", "application/jsonx"):
        got, _, _ = s.ask("POST", "/api/v1/compare", b"{}",
                          headers={"Content-Type": kind})
        checks.equal(f"body of type {kind}", got, 415)
    for path in ("/", "/api/v1/info", "/nothing", "/t/" + 24 * "0"):
        _, headers, _ = s.ask("GET", path)
        policy = headers["Content-Security-Policy"]
        checks.true(f"{path}: policy", policy.startswith("default-src 'none'")
                    and "frame-ancestors 'none'" in policy and
                    "unsafe" not in policy)
        for name, value in (("X-Content-Type-Options", "nosniff"),
                            ("Referrer-Policy", "no-referrer"),
                            ("Cross-Origin-Opener-Policy", "same-origin"),
                            ("Cross-Origin-Resource-Policy", "same-origin"),
                            ("Cache-Control", "no-store")):
            checks.equal(f"{path}: {name}", headers.get(name), value)
        checks.true(f"{path}: nothing for other origins",
                    not any(h.startswith("Access-Control") for h in headers))
    _, _, page = s.ask("GET", "/", token=False)
    checks.true("the page holds no token", s.token.encode() not in page)


def opening(s):
    traces = s.traces()
    names = [t["name"] for t in traces]
    checks.true("traces by name", "samples/train_step.json.gz" in names and
                "samples/ranks/rank0.json.gz" in names)
    checks.true("no truth files", not any("truth" in n for n in names))
    checks.true("sizes", all(
        t["bytes"] == os.path.getsize(SAMPLES / t["name"][len("samples/"):])
        for t in traces))
    checks.true("ids say no path", all(
        set(t["id"]) <= set("0123456789abcdef") and len(t["id"]) == 24
        for t in traces))
    id = s.id_of("/train_step.json.gz")
    status, error = s.query(id, "SELECT 1")
    checks.equal("a query before it is open", status, 409)
    status, _ = s.get(f"traces/{id}/page")
    checks.equal("a page before it is open", status, 409)
    trace = s.opened(id)
    checks.equal("opens", trace["state"], "open")
    facts = trace["facts"]
    report = lamina("report", SAMPLES / "train_step.json.gz", "--format",
                    "json")
    document = json.loads(report.stdout)
    answer = document["answer"]
    verdict = answer["sentence"] + f" First: {answer['fixes'][0]['do']}"
    times = {r["type"]: round(1000 * r["time_us"])
             for r in document["tables"]["gpu_timeline"]
             if r["device"] == "all"}
    checks.true(f"the answer of the report: {facts['verdict']}",
                facts["verdict"].startswith(verdict))
    checks.equal("format", facts["format"], "kineto")
    checks.equal("device", facts["devices"], "NVIDIA H100 80GB HBM3")
    checks.equal("steps", facts["steps"], len(document["tables"]["steps"]))
    checks.equal("busy and wall", (facts["busy_ns"], facts["wall_ns"]),
                 (times["busy_time"], times["total_time"]))
    again, same = s.post(f"traces/{id}/open")
    checks.equal("open stays open", (again, same["state"]), (200, "open"))
    # The page is the file of the report, byte for byte.
    with temporary() as folder:
        path = os.path.realpath(SAMPLES / "train_step.json.gz")
        lamina("report", path, "--format", "html", "-o", f"{folder}/a.html")
        status, headers, data = s.ask("GET", f"/api/v1/traces/{id}/page")
        checks.equal("page", status, 200)
        checks.equal("is no page by itself", headers["Content-Type"],
                     "application/octet-stream")
        checks.true("the page is that of lamina report",
                    data == pathlib.Path(f"{folder}/a.html").read_bytes())
    status, _, page = s.ask("GET", f"/t/{id}", token=False)
    checks.equal("program of the page", status, 200)
    checks.true("it holds no data", b"aten::mm" not in page and
                b'id="live"' in page and b"NVIDIA H100 80GB" not in page)
    for other in ("0" * 24, "../" + id, id.upper(), id[:-1], id + "/..",
                  "..%2f" * 5 + "etc/passwd", "%00"):
        status, _, _ = s.ask("GET", f"/api/v1/traces/{other}")
        checks.true(f"no trace {other}: {status}", status in (400, 404))
    status, closed = s.post(f"traces/{id}/close")
    checks.equal("closes", (status, closed["state"]), (200, "closed"))
    time.sleep(0.5)
    checks.equal("its process is gone", s.workers(), [])


def comparing(s):
    a, b = s.id_of("ranks/rank0.json.gz"), s.id_of("ranks/rank2.json.gz")
    status, made = s.post("compare", {"a": a, "b": b})
    checks.equal("compare", status, 202)
    both = s.settled(made["id"])
    checks.equal("compares", (both["state"], both["kind"]),
                 ("open", "comparison"))
    diff = lamina("diff", SAMPLES / "ranks/rank0.json.gz",
                  SAMPLES / "ranks/rank2.json.gz", "--format", "json")
    notes = [n["text"] for n in json.loads(diff.stdout)["notes"]
             if n["severity"] == "verdict"]
    checks.equal("the verdict of diff", both["facts"]["verdict"], notes[0])
    status, result = s.query(
        made["id"], "SELECT (SELECT count(*) FROM a.kernel), "
        "(SELECT count(*) FROM b.kernel)")
    checks.equal("SQL over both", status, 200)
    checks.true("rows of both", all(
        n > 0 for n in result["tables"][0]["rows"][0]))
    for body, expected in (({"a": a}, 400), ({"a": a, "b": a}, 400), ([], 400),
                           ({"a": a, "b": "0" * 24}, 404),
                           ({"a": a, "b": made["id"]}, 404),
                           ({"a": 1, "b": 2}, 400)):
        checks.equal(f"compare {body}", s.post("compare", body or [])[0]
                     if body else s.ask("POST", "/api/v1/compare", b"[]")[0],
                     expected)
    s.post(f"traces/{made['id']}/close")
    checks.true("removed", made["id"] not in [t["id"] for t in s.traces()])


def asking(s):
    id = s.id_of("/serve.json.gz")
    s.opened(id)
    sql = "SELECT name, count(*) AS n, sum(dur_ns) AS ns FROM kernel " \
          "GROUP BY name ORDER BY ns DESC, name"
    status, result = s.query(id, sql)
    expected = lamina("query", SAMPLES / "serve.json.gz", sql, "--format",
                      "csv").stdout.splitlines()
    table = result["tables"][0]
    checks.equal("query", status, 200)
    checks.equal("columns", [c["name"] for c in table["columns"]],
                 expected[0].split(","))
    checks.equal("rows", len(table["rows"]), len(expected) - 1)
    checks.equal("sums", [r[2] for r in table["rows"]],
                 [int(line.rsplit(",", 1)[1]) for line in expected[1:]])
    status, result = s.query(id, "SELECT uid FROM kernel", max_rows=3)
    table = result["tables"][0]
    checks.equal("rows that are kept", len(table["rows"]), 3)
    checks.true("rows that there are", table["total_rows"] > 3)
    status, result = s.query(id, "SELECT 9007199254740993, :x, NULL, 1.5",
                             params={"x": "a\"<b>\u0000c"})
    checks.equal("cells", result["tables"][0]["rows"][0],
                 ["9007199254740993", "a\"<b>\u0000c", None, 1.5])
    status, result = s.query(id, "SELECT nope FROM kernel")
    checks.equal("wrong SQL", (status, result["error"]["code"]),
                 (400, "usage"))
    for bad in ("ATTACH '/etc/passwd' AS x", "CREATE TABLE x(a)",
                "PRAGMA journal_mode=off", "SELECT load_extension('x')",
                "SELECT readfile('/etc/passwd')", "VACUUM INTO '/tmp/x'",
                "INSERT INTO kernel VALUES (1)", "SELECT 1; DROP TABLE kernel"):
        status, result = s.query(id, bad)
        checks.equal(f"refused: {bad}", status, 400)
    status, result = s.query(id, "SELECT :x", params={"x": 2**63 - 1})
    checks.equal("the greatest number", result["tables"][0]["rows"][0],
                 [str(2**63 - 1)])
    status, result = s.query(id, "SELECT :x", params={"x": 2**63})
    checks.equal("a number beyond it", (status, result["error"]["code"]),
                 (400, "usage"))
    for body in (b"", b"[]", b"1", b"{", b'{"sql": 1}', b'{"sql": "SELECT 1", '
                 b'"max_rows": -1}', b'{"sql": "SELECT 1", "max_rows": 1e9}',
                 b'{"sql":"SELECT 1","sql":"SELECT 2"}', b"[" * 100000,
                 b'{"sql": "SELECT 1", "params": []}', b"\xff\xfe",
                 json.dumps({"sql": "SELECT " + "(" * 5000}).encode()):
        status, _, _ = s.ask("POST", f"/api/v1/traces/{id}/query", body)
        checks.equal(f"query {body[:40]!r}", status, 400)
    status, _ = s.query(id, "SELECT 1")
    checks.equal("goes on", status, 200)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 " \
              "FROM n) SELECT count(*) FROM n"
    status, result = s.query(id, endless)
    checks.equal("a query without end", (status, result["error"]["code"]),
                 (504, "limit"))
    status, result = s.query(
        id, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
        "LIMIT 100000) SELECT hex(zeroblob(100000)) FROM n", max_rows=10000)
    checks.equal("a result without end", status, 504)
    # Who goes away ends the query: others are not kept from asking.
    for _ in range(8):
        c = socket.create_connection((HOST, s.port))
        body = json.dumps({"sql": endless}).encode()
        c.sendall((f"POST /api/v1/traces/{id}/query HTTP/1.1\r\nHost: "
                   f"localhost\r\nAuthorization: Bearer {s.token}\r\n"
                   "Content-Type: application/json\r\nContent-Length: "
                   f"{len(body)}\r\n\r\n").encode() + body)
        time.sleep(0.1)
        c.close()
        time.sleep(0.6)
    status, _ = s.query(id, "SELECT 1")
    checks.equal("cancelled by leaving", status, 200)


MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {}}


def thinned():
    """A page that may not be large is thinned as the file is."""
    trace = os.path.realpath(SAMPLES / "train_step.json.gz")
    with temporary() as folder, start(trace, "--page-mb", 0.001) as s:
        id = s.id_of("train_step.json.gz")
        s.opened(id)
        _, _, data = s.ask("GET", f"/api/v1/traces/{id}/page")
        for size, same in ((0.001, True), (25, False)):
            lamina("report", trace, "--format", "html", "-o",
                   f"{folder}/a.html", "--html-max-mb", size)
            checks.equal(f"page of {size} MB", data == pathlib.Path(
                f"{folder}/a.html").read_bytes(), same)


def with_captures():
    """Captures of replayed graphs: pages, SQL and agents know their ops."""
    folder = SAMPLES / "graphs"
    with start(folder / "replay.json.gz", "--capture",
               folder / "capture.json.gz") as s:
        id = s.id_of("replay.json.gz")
        s.opened(id)
        sql = "SELECT count(*) AS n FROM kernel WHERE op = 'aten::mm'"
        checks.equal("served with a capture",
                     s.query(id, sql)[1]["tables"][0]["rows"],
                     [[204]])
        status, _, page = s.ask("GET", f"/api/v1/traces/{id}/page")
        checks.equal("its page is there", status, 200)
        status, _, reply = s.ask("POST", "/mcp", {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
                "name": "query", "arguments": {
                    "trace": str(folder / "replay.json.gz"), "sql": sql}}})
        checks.true(f"agents know them: {status}", b"204" in reply)


def late_findings():
    """The page of a large trace is there before its findings, which follow."""
    with temporary() as folder:
        trace = os.path.realpath(folder) + "/a.json"
        # So many that findings take longer than a few answers.
        many_kernels(trace, 300_000)
        with start(trace, "--late-findings-mb", 0) as s:
            id = s.id_of("a.json")
            first = s.opened(id, 0.005)
            checks.equal("opens", first["state"], "open")
            early = s.ask("GET", f"/api/v1/traces/{id}/page")[2]
            checks.equal("findings follow", first["facts"]["findings"],
                         "coming")
            checks.true("the page says so", b"findings follow" in early)
            status, sums = s.post(f"traces/{id}/sum")
            checks.equal("sums meanwhile", (status, sums["events"]),
                         (200, 300_000))
            status, rows = s.query(id, "SELECT count(*) FROM kernel")
            checks.equal("SQL is answered", (status, rows["tables"][0]["rows"]),
                         (200, [[300_000]]))
            then = s.get(f"traces/{id}")[1]
            # The verdict names the first fix when the findings are here.
            verdict = then["facts"]["verdict"]
            checks.true(f"the verdict: {verdict}", ". First: " in verdict and
                        ". First: " not in first["facts"]["verdict"])
            facts = {**first["facts"], "verdict": verdict}
            checks.equal("when they are here", (then["state"], then["facts"]),
                         ("open", {**facts, "findings": "here"}))
            lamina("report", trace, "--format", "html", "-o",
                   f"{folder}/a.html")
            checks.true("then the page is that of lamina report",
                        s.ask("GET", f"/api/v1/traces/{id}/page")[2] ==
                        pathlib.Path(f"{folder}/a.html").read_bytes())
            # What is known of findings is of one opening.
            closed = s.post(f"traces/{id}/close")[1]
            checks.equal("closed", (closed["state"], closed["facts"]), (
                "closed", {k: v for k, v in facts.items() if k != "findings"}))
            checks.equal("opens anew", s.opened(id, 0.005)["state"], "open")
            os.kill(s.workers()[0], signal.SIGKILL)
            until = time.monotonic() + 60
            while (then := s.get(f"traces/{id}")[1])["state"] == "open":
                assert time.monotonic() < until, then
                time.sleep(0.005)
            checks.equal("its process was ended", (
                then["state"], "findings" in then["facts"]), ("failed", False))
            checks.equal("ends", s.stop(), 0)
            checks.equal("said nothing else", s.errors, [])


def frame_of(stream):
    """(kind, id, status, body) of what a process of a trace says next."""
    kind, id, status, size = stream.readline().split()
    return kind.decode(), int(id), int(status), stream.read(int(size))


def waiting_queries():
    """SQL that is asked while findings are looked for begins behind them, and
    may be given up before."""
    with temporary() as folder:
        trace = os.path.realpath(folder) + "/a.json"
        many_kernels(trace, 60_000)
        sent = b""
        for kind, id, body in (
                ("q", 1, {"sql": "SELECT count(*) FROM kernel"}),
                ("q", 2, {"sql": "SELECT count(*) FROM kernel"}), ("c", 2, "")):
            body = json.dumps(body).encode()
            sent += f"{kind} {id} 0 {len(body)}\n".encode() + body
        # Asked before the trace is open: it is read as soon as it is.
        with subprocess.Popen(
                [LAMINA, "serve", "--worker", f"{folder}/a.html", "--threads",
                 "1", "--late-findings-mb", "0", trace],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
            worker.stdin.write(sent)
            worker.stdin.flush()
            said = []
            while len(said) < 4:
                kind, id, status, body = frame_of(worker.stdout)
                if kind != "p":
                    said.append((kind, id, status, json.loads(body)))
            worker.stdin.close()
        checks.equal("what is said", [
            (kind, id, status, body.get("findings") or
             body.get("tables", [{}])[0].get("rows"))
            for kind, id, status, body in said],
            [("o", 0, 200, "coming"), ("r", 2, 499, None),
             ("o", 0, 200, "here"), ("r", 1, 200, [[60_000]])])


def no_room_for_findings():
    """Where findings would need more memory than there is, the trace stays open
    without them: no limit opens a trace and ends its process then."""
    with temporary() as folder:
        trace = os.path.realpath(folder) + "/a.json"
        many_kernels(trace, 300_000)
        body = json.dumps({"sql": "SELECT count(*) FROM kernel"})
        ends = []
        limit = 100_000_000
        while "here" not in ends and limit < 4e9:
            with subprocess.Popen(
                    [LAMINA, "serve", "--worker", f"{folder}/a.html",
                     "--threads", "1", "--late-findings-mb", "0", trace],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL, text=True,
                    preexec_fn=lambda: resource.setrlimit(
                        resource.RLIMIT_DATA, (limit, limit))) as worker:
                try:
                    worker.stdin.write(f"q 1 0 {len(body)}\n{body}")
                    worker.stdin.flush()
                except BrokenPipeError:
                    pass
                end = "not opened"
                while head := worker.stdout.readline():
                    kind, _, _, size = head.split()
                    said = worker.stdout.read(int(size))
                    if kind == "o":
                        end = json.loads(said)["findings"]
                        # A query need not wait for them.
                        end = "here" if end == "coming" else end
                    if kind == "r":
                        checks.equal("SQL is answered", json.loads(said)[
                            "tables"][0]["rows"], [[300_000]])
                        break
                worker.stdin.close()
            ends.append(end)
            limit = int(limit * 1.2)
        checks.equal("more memory, more answers", [
            end for end, _ in itertools.groupby(
                "no room" if "--memory-gb" in end else end for end in ends)],
            ["not opened", "no room", "here"])


def snapshots():
    """Memory snapshots stand beside traces and have the page of lamina
    memory."""
    with temporary() as folder:
        folder = os.path.realpath(folder)
        for name in ("oom", "train"):
            shutil.copy(SAMPLES / f"memory/{name}.pickle", folder)
        shutil.copy(SAMPLES / "serve.json.gz", folder)
        pathlib.Path(folder, "bad.pickle").write_bytes(
            b"\x80\x04cos\nsystem\n(S'touch " + folder.encode() +
            b"/made'\ntR.")
        with start(folder) as s:
            checks.equal("listed", sorted(
                t["name"].rpartition("/")[2] for t in s.traces()),
                ["bad.pickle", "oom.pickle", "serve.json.gz", "train.pickle"])
            id = s.id_of("train.pickle")
            trace = s.opened(id)
            document = json.loads(lamina(
                "memory", f"{folder}/train.pickle", "--format", "json").stdout)
            verdict = [n["text"] for n in document["notes"]
                       if n["severity"] == "verdict"]
            checks.equal("a snapshot opens", (
                trace["state"], trace["facts"]["format"],
                trace["facts"]["verdict"]),
                ("open", "memory snapshot", verdict[0]))
            _, _, page = s.ask("GET", f"/api/v1/traces/{id}/page")
            checks.true("with its allocations", len(page) > 10_000)
            status, _, program = s.ask("GET", f"/m/{id}", token=False)
            checks.true("and a program without data", status == 200 and
                        b'id="live"' in program and b"train.pickle" not in program)
            for what, body in (("query", {"sql": "SELECT 1"}), ("tiles", {}),
                               ("sum", {}), ("find", {})):
                status, error = s.post(f"traces/{id}/{what}", body)
                checks.equal(f"{what} of a snapshot", status, 400)
                checks.true("names the command",
                            "lamina memory" in error["error"]["hint"])
            bad = s.opened(s.id_of("bad.pickle"))
            checks.equal("one that would run a command", bad["state"],
                         "failed")
            checks.true("runs nothing", not os.path.exists(f"{folder}/made"))
            _, made = s.post("compare", {"a": s.id_of("oom.pickle"), "b": id})
            both = s.settled(made["id"])
            checks.equal("two snapshots", both["state"], "open")
            _, _, page = s.ask("GET", f"/api/v1/traces/{made['id']}/page")
            checks.true("with the page of both", len(page) > 10_000)
            _, made = s.post("compare", {"a": s.id_of("serve.json.gz"),
                                         "b": id})
            both = s.settled(made["id"])
            checks.equal("a trace and a snapshot", both["state"], "failed")
            checks.equal("ends", s.stop(), 0)
            checks.equal("said nothing else", s.errors, [])


def device_events(path):
    """Rows of all device work, by SQL; times from the first event on."""
    sql = "SELECT uid, name, start_ns - (SELECT min(start_ns) FROM slice) " \
          "AS start, dur_ns AS dur FROM kernel ORDER BY uid"
    rows = lamina("query", path, sql, "--format", "json").stdout
    return json.loads(rows)["tables"]["result"]


def live(s):
    """Tiles, sums and events of a trace: those of SQL, however asked."""
    path = SAMPLES / "serve.json.gz"
    id = s.id_of("/serve.json.gz")
    status, _ = s.post(f"traces/{s.id_of('/moe.json.gz')}/tiles", {})
    checks.equal("tiles before it is open", status, 409)
    s.opened(id)
    rows = device_events(path)
    checks.true("SQL has rows", len(rows) > 100)
    last = max(r["start"] + r["dur"] for r in rows)

    def ask(what, **body):
        status, answer = s.post(f"traces/{id}/{what}", body)
        checks.equal(f"{what} {body}", status, 200)
        return answer

    # Every event once, longest first, part by part.
    found, after = [], {}
    while True:
        part = ask("find", limit=70, **after)
        columns = part["found"]
        found += zip(columns["uid"], columns["name"], columns["start_ns"],
                     columns["dur_ns"])
        checks.equal("all of them", (part["events"], part["time_ns"]),
                     (len(rows), sum(r["dur"] for r in rows)))
        if part["after"] is None:
            break
        after = {"after": part["after"]}
    checks.equal("longest first", [f[3] for f in found],
                 sorted((r["dur"] for r in rows), reverse=True))
    checks.equal("each once", sorted(found),
                 sorted((r["uid"], r["name"], r["start"], r["dur"])
                        for r in rows))
    # Without a window it is the whole trace, in as many parts as asked for.
    for window in ({}, {"from_ns": 0}, {"to_ns": last}):
        lane, = ask("tiles", columns=40, **window)["lanes"]
        checks.true(f"tiles {window} are of the trace", 20 < len(
            lane["busy_ns"]) <= 41 and lane["first_ns"] <= 0 and
            lane["width_ns"] * 40 < 3 * last)
        checks.equal(f"tiles {window} hold all", sum(lane["busy_ns"]),
                     sum(r["dur"] for r in rows))
    for window in ({"from_ns": 2 * last}, {"to_ns": -5}):
        checks.equal(f"nothing is there: {window}",
                     ask("find", **window)["events"], 0)
    # From the whole trace to a few events.
    span, at, exact = last, 0, 0
    while span > 50:
        inside = [r for r in rows
                  if r["start"] < at + span and
                  (r["start"] + r["dur"] > at or r["start"] == at)]
        answer = ask("tiles", from_ns=at, to_ns=at + span, columns=40)
        uids, lost = [], 0
        for lane in answer["lanes"]:
            if "events" in lane:
                uids += lane["events"]["uid"]
                exact += 1
            else:
                width, first = lane["width_ns"], lane["first_ns"]
                end = first + width * len(lane["busy_ns"])
                checks.true("covers the window", first <= at and
                            end >= at + span and
                            len(lane["busy_ns"]) <= 41)
                lost += sum(lane["busy_ns"])
                checks.equal("no filter", lane["pass_ns"], lane["busy_ns"])
        if not lost:
            checks.equal(f"events of {span} ns", sorted(uids),
                         sorted(r["uid"] for r in inside))
        elif span == last and not uids:
            checks.equal("buckets hold all", lost,
                         sum(r["dur"] for r in rows))
        found = ask("find", from_ns=at, to_ns=at + span, limit=0)
        checks.equal(f"sums of {span} ns", (found["events"], found["time_ns"]), (
            len(inside), sum(min(r["start"] + r["dur"], at + span) -
                             max(r["start"], at) for r in inside)))
        at, span = at + span // 3, span // 2
    checks.true("some were exact", exact > 0)
    # Sums by what the tables count.
    with_op = json.loads(lamina("report", path, "--format", "json",
                                "--only", "kernels").stdout)
    table = with_op["tables"]["kernels"]
    sums = ask("sum", by=["kernel", "lane"])
    known = s.post(f"traces/{id}/sum", {"by": ["?"]})[1]["error"]["hint"]
    known = known.split(", ")
    docs = (ROOT / "docs/serve.md").read_text()
    section = docs[docs.index("| column | number of |"):]
    section = section[:section.index("\n\n")]
    checks.equal("columns of the docs", sorted(re.findall(
        r"`(\w+)`", "".join(line.split("|")[1] for line in
                            section.splitlines()))), sorted(known))
    checks.equal("sums by all of them", s.post(
        f"traces/{id}/sum", {"by": known})[1]["by"].keys(),
                 dict.fromkeys(known).keys())
    own = dict(zip(sums["by"]["kernel"]["row"], sums["by"]["kernel"]["time_ns"]))
    checks.equal("by kernel", [own.get(i + 1) for i in range(len(table))],
                 [round(1000 * row["kernel_time_us"]) for row in table])
    family = table[0]["family"]
    half = last // 2
    for where, test, clip in (
            ([f"family={family}"], lambda r, i: i["family"] == family, None),
            ([f"time=..{half}ns"], lambda r, i: r["start"] < half, (0, half)),
            (["length=5us.."], lambda r, i: r["dur"] >= 5000, None),
            (["time!=0ns..1ms", "length!=..2us"], lambda r, i:
             r["start"] >= 10**6 and r["dur"] >= 2000, None),
            ([f"event={rows[5]['uid']}"],
             lambda r, i: r["uid"] == rows[5]["uid"], None)):
        sums = ask("sum", where=where)
        names = {row["kernel"]: row for row in table}
        passing = [r for r in rows if test(r, names.get(r["name"], {
            "family": None}))]
        checks.equal(f"sum {where}", (sums["events"], sums["time_ns"]), (
            len(passing), sum(
                min(r["start"] + r["dur"], clip[1]) - max(r["start"], clip[0])
                if clip else r["dur"] for r in passing)))
    for what, body in (
            ("tiles", {"from_ns": 5, "to_ns": 5}), ("tiles", {"columns": 0}),
            ("tiles", {"from_ns": "0"}), ("tiles", {"columns": 10**30}),
            ("tiles", {"lanes": [99]}), ("tiles", {"lanes": [-1]}),
            ("tiles", {"lanes": 0}), ("tiles", {"columns": 1.5}),
            ("sum", {"by": ["nope"]}), ("sum", {"by": "kernel"}),
            ("sum", {"where": ["nope=1"]}), ("sum", {"where": ["time=x"]}),
            ("sum", {"by": ["op", "kernel", "op"]}),
            ("sum", {"where": ["text=" + "a " * 101]}),
            ("sum", {"where": ["text=" + "a " * 40_000]}),
            ("sum", {"where": [1]}), ("sum", {"where": ["op"]}),
            ("find", {"limit": 1001}), ("find", {"order": "x"}),
            ("find", {"after": 10**9}), ("find", {"to_ns": 2**63})):
        status, error = s.post(f"traces/{id}/{what}", body)
        checks.equal(f"{what} {body}", (status, error["error"]["code"]),
                     (400, "usage"))
    for body in (b"[]", b"{", b"", b"null", b'{"where":["op=' +
                 b"x" * 900_000 + b'"]}'):
        status, _, _ = s.ask("POST", f"/api/v1/traces/{id}/sum", body)
        checks.equal(f"sum {body[:20]}", status,
                     400)
    noise = random.Random(3)
    odd = [None, True, -1, 0, 1, 7, 1e300, -0.5, 2**63 - 1, 2**64, -2**63, "",
           "x", "longest", "start", [], {}, [[]], [0], [0, 0], ["kernel"],
           ["op", "op"], ["time=1us..9us"], ["event=5", "event!=5"],
           ["text=\u202e\0"], ["module=" + "a/" * 9000], [None], {"a": 1}]
    answers = {}
    for _ in range(300):
        what = noise.choice(("tiles", "sum", "find"))
        body = {name: noise.choice(odd) for name in (
            "from_ns", "to_ns", "columns", "lanes", "where", "by", "order",
            "limit", "after", "nope") if noise.random() < 0.25}
        status, error = s.post(f"traces/{id}/{what}", body)
        answers[status] = answers.get(status, 0) + 1
        checks.true(f"{what} {str(body)[:200]}: {status}", status in (200, 400))
    checks.true(f"some are answered: {answers}", len(answers) == 2)
    a, b = s.id_of("ranks/rank0.json.gz"), s.id_of("ranks/rank2.json.gz")
    _, made = s.post("compare", {"a": a, "b": b})
    s.settled(made["id"])
    status, _ = s.post(f"traces/{made['id']}/tiles")
    checks.equal("tiles of a comparison", status, 400)
    s.post(f"traces/{made['id']}/close")


def reference(folder):
    """Every format, through fewer places than there are traces."""
    with start(folder / "traces", "--sessions", 3) as s:
        for trace in s.traces():
            opened = s.opened(trace["id"])
            facts = opened.get("facts", {})
            checks.equal(f"{trace['name']} opens", (
                opened["state"], bool(facts.get("verdict")),
                0 <= facts.get("busy_ns", -1) <= facts.get("wall_ns", -1),
                s.query(trace["id"], "SELECT count(*) FROM slice")[0]),
                ("open", True, True, 200))
        checks.equal("ends", s.stop(), 0)
        checks.equal("said nothing else", s.errors, [])


def agents(s):
    """The Model Context Protocol; the official clients ask in mcp_sdk."""
    def ask(message, headers=None, method="POST"):
        body = message if isinstance(message, bytes) else \
            json.dumps(message).encode()
        status, headers, data = s.ask(method, "/mcp", body, headers)
        return status, headers, json.loads(data) if data else None

    def modern(name, params=None, id=1, headers=None):
        sent = {"MCP-Protocol-Version": MODERN, "Mcp-Method": name,
                **({"Mcp-Name": params["name"]} if params else {})}
        sent.update(headers or {})
        return ask({"jsonrpc": "2.0", "id": id, "method": name, "params":
                    {**(params or {}), "_meta": META}}, sent)

    query = {"name": "query", "arguments": {
        "trace": "serve.json.gz", "sql": "SELECT count(*) AS n FROM kernel"}}
    status, headers, answer = ask({
        "jsonrpc": "2.0", "id": 7, "method": "initialize", "params":
        {"protocolVersion": "2025-06-18", "capabilities": {},
         "clientInfo": {"name": "x", "version": "1"}}})
    checks.equal("initialize", (status, answer["id"], answer["result"][
        "protocolVersion"]), (200, 7, "2025-06-18"))
    session = headers["Mcp-Session-Id"]
    status, _, answer = ask({"jsonrpc": "2.0", "method":
                             "notifications/initialized"})
    checks.equal("a notification", (status, answer), (202, None))
    count = lamina("query", SAMPLES / "serve.json.gz",
                   "SELECT count(*) AS n FROM kernel", "--format", "csv")
    count = int(count.stdout.split()[1])
    for id in (1, "1", -5, "\u202e", 2**40):
        _, _, answer = ask({"jsonrpc": "2.0", "id": id, "method":
                            "tools/call", "params": query})
        checks.equal(f"legacy call {id!r}", (answer["id"], answer["result"][
            "structuredContent"]["tables"][0]["rows"]), (id, [[count]]))
        status, _, answer = modern("tools/call", query, id)
        checks.equal(f"modern call {id!r}", (status, answer["id"], answer[
            "result"]["structuredContent"]["tables"][0]["rows"]),
            (200, id, [[count]]))
    for wrong in ({"MCP-Protocol-Version": "2025-11-25"},
                  {"MCP-Protocol-Version": None}, {"Mcp-Method": "tools/list"},
                  {"Mcp-Method": None}, {"Mcp-Name": "report"},
                  {"Mcp-Name": None}, {"Mcp-Name": "=?base64?%%?="}):
        status, _, answer = modern("tools/call", query, headers=wrong)
        checks.equal(f"headers {wrong}", (status, answer["error"]["code"]),
                     (400, -32020))
    status, _, _ = modern("tools/call", query,
                          headers={"Mcp-Name": "=?base64?cXVlcnk=?="})
    checks.equal("a packed name", status, 200)
    status, _, answer = modern("no/such")
    checks.equal("no method", (status, answer["error"]["code"]),
                 (404, -32601))
    status, _, answer = ask({"jsonrpc": "2.0", "id": 1, "method":
                             "tools/call", "params":
                             {"name": "query", "arguments": {
                                 "trace": "/etc/passwd", "sql": "SELECT 1"}}})
    checks.true("other folders", answer["result"]["isError"])
    for body in (b"", b"{", b"[]", b"1", b"null", b"\xff", b"[" * 100000,
                 b'{"id": 1}', b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
                 b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
                 b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
                 b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}'):
        status, _, answer = ask(body)
        checks.true(f"message {body[:40]!r}: {status} {answer}",
                    status == 400 and "error" in answer)
    status, headers, _ = s.ask("GET", "/mcp")
    checks.equal("no stream of its own", (status, headers["Allow"]),
                 (405, "POST"))
    out = s.raw(b"POST /mcp HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n")
    checks.equal("a large body", out.split()[1], b"413")
    noise = random.Random(11)
    good = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": query}).encode()
    for i in range(200):
        data = bytearray(good)
        for _ in range(noise.randint(1, 5)):
            at = noise.randrange(len(data))
            if noise.random() < 0.5:
                data[at] = noise.randrange(256)
            else:
                data[at:at + noise.randint(0, 8)] = noise.choice(
                    [b"{", b"[", b'"', b"\n", b"\0", b"null", b"1e999", b"}"])
        status, _, answer = ask(bytes(data))
        checks.true(f"noise {i}: {status}", status in (200, 202, 400) and (
            status == 202 or "jsonrpc" in answer))
    # Progress comes as events; a cancel ends the call of this session alone.
    endless = {"name": "query", "_meta": {"progressToken": "mine"},
               "arguments": {"trace": "serve.json.gz", "sql":
                             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                             "SELECT i + 1 FROM n) SELECT count(*) FROM n"}}
    got = {}

    def stream(name, session):
        begin = time.monotonic()
        _, headers, data = s.ask(
            "POST", "/mcp", {"jsonrpc": "2.0", "id": 99, "method":
                             "tools/call", "params": endless},
            {"Accept": "application/json, text/event-stream",
             "Mcp-Session-Id": session})
        got[name] = (headers["Content-Type"], [
            json.loads(line[6:]) for line in data.decode().splitlines()
            if line.startswith("data: ")], time.monotonic() - begin)

    threads = [threading.Thread(target=stream, args=a)
               for a in (("ours", session), ("other", "else"))]
    for t in threads:
        t.start()
    time.sleep(0.7)
    ask({"jsonrpc": "2.0", "method": "notifications/cancelled", "params":
         {"requestId": 99}}, {"Mcp-Session-Id": session})
    for t in threads:
        t.join()
    checks.equal("events", got["ours"][0], "text/event-stream")
    checks.true("ours was ended", not any("id" in m for m in got["ours"][1]))
    checks.true("the other told of progress", any(
        m.get("method") == "notifications/progress" and
        m["params"]["progressToken"] == "mine" for m in got["other"][1]))
    checks.true("and was answered", got["other"][1][-1].get("id") == 99)
    # Whoever answers may fall.
    worker, = [w for w in s.workers() if b"\0mcp\0" in
               pathlib.Path(f"/proc/{w}/cmdline").read_bytes()]
    answers = []
    t = threading.Thread(target=lambda: answers.append(ask(
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call",
         "params": {**endless, "_meta": {}}})))
    t.start()
    time.sleep(0.4)
    os.kill(worker, signal.SIGKILL)
    t.join(30)
    checks.true(f"told that it fell: {answers}", answers and "signal 9" in
                answers[0][2]["error"]["message"])
    status, _, answer = modern("tools/call", query)
    checks.equal("asked again", status, 200)


def many_kernels(path, count):
    """A trace that takes a while to be read."""
    events = [{"ph": "X", "cat": "kernel", "name": f"k{i % 50}", "ts": i,
               "dur": 0.5, "pid": 0, "tid": 7,
               "args": {"device": 0, "stream": 7, "correlation": i}}
              for i in range(count)]
    pathlib.Path(path).write_text(json.dumps({"traceEvents": events}))


def cancelling():
    """Whenever an opening is ended, nothing of it stays."""
    with temporary() as folder:
        traces, private = folder + "/traces", folder + "/private"
        os.mkdir(traces)
        os.mkdir(private)
        many_kernels(f"{traces}/a.json", 30_000)
        with start(traces, env={"TMPDIR": private}) as s:
            id = s.id_of("/a.json")
            states = set()
            for i in range(12):
                s.post(f"traces/{id}/open")
                time.sleep(0.03 * i)
                states.add(s.get(f"traces/{id}")[1]["state"])
                status, trace = s.post(f"traces/{id}/close")
                checks.equal("cancelled", (status, trace["state"]),
                             (200, "closed"))
            checks.true(f"some were on their way: {states}",
                        "opening" in states)
            left = ["?"]
            for _ in range(100):
                left = [f for _, _, files in os.walk(private) for f in files]
                if not left and not s.workers():
                    break
                time.sleep(0.05)
            checks.equal("no file of what was cancelled", left, [])
            checks.equal("no process either", s.workers(), [])
            checks.equal("then it opens", s.opened(id)["state"], "open")
            checks.equal("and has a page", s.ask(
                "GET", f"/api/v1/traces/{id}/page")[0], 200)


def change_until_settled(s, id, path):
    """Touches a file until what is opened of it has settled."""
    for i in range(20_000):
        os.utime(path, ns=(i, i))
        time.sleep(0.001)
        if i % 50 == 0 and s.get(f"traces/{id}")[1]["state"] not in (
                "waiting", "opening"):
            break
    return s.get(f"traces/{id}")[1]


def changing():
    """A file that changes while it is opened: nothing of two readings."""
    with temporary() as folder:
        path = pathlib.Path(folder, "a.json")
        many_kernels(path, 30_000)
        with start(folder) as s:
            id = s.id_of("/a.json")
            s.post(f"traces/{id}/open")
            trace = change_until_settled(s, id, path)
            checks.equal("a file that changes", trace["state"], "failed")
            checks.true(f"says so: {trace['error']}",
                        "changed while it was opened" in trace["error"])
            checks.equal("opens when it does not",
                         s.opened(id)["state"], "open")
            status, sums = s.post(f"traces/{id}/sum", {"where": ["event=5"]})
            checks.equal("and answers", (status, sums["events"]), (200, 1))
            s.post(f"traces/{id}/close")
            shutil.copy(path, pathlib.Path(folder, "b.json"))
            time.sleep(2.2)
            body = {"a": id, "b": s.id_of("/b.json")}
            _, made = s.post("compare", body)
            both = change_until_settled(s, made["id"], path)
            checks.equal("a comparison of one", both["state"], "failed")
            checks.true(f"says so, too: {both['error']}",
                        "changed while it was opened" in both["error"])
            both = s.settled(s.post("compare", body)[1]["id"])
            checks.equal("which opens as well",
                         (both["state"], both["stale"]), ("open", False))
            with open(f"/proc/{s.workers()[0]}/io", encoding="ascii") as io:
                read = int(io.readline().split()[1])
            size = path.stat().st_size
            checks.true(f"each file is read once: {read} bytes of two files of "
                        f"{size}", read < 3 * size)
            # Either of the two may be replaced while both are open.
            for name in ("a.json", "b.json"):
                new = pathlib.Path(folder, "new")
                many_kernels(new, 20_000)
                os.replace(new, pathlib.Path(folder, name))
                time.sleep(2.2)
                listed = next(t for t in s.traces() if t["id"] == both["id"])
                checks.equal(f"{name} was replaced: the comparison is stale",
                             (listed["state"], listed["stale"]), ("open", True))
                both = s.opened(both["id"])
                checks.equal("and is made anew", (both["state"], s.get(
                    f"traces/{both['id']}")[1]["stale"]), ("open", False))


def falling_children():
    with temporary() as folder:
        for name in ("a", "b", "c"):
            shutil.copy(SAMPLES / "serve.json.gz", f"{folder}/{name}.json.gz")
        pathlib.Path(f"{folder}/broken.json").write_text('{"traceEvents": [{"n')
        pathlib.Path(f"{folder}/noise.json.gz").write_bytes(
            random.Random(1).randbytes(50000))
        pathlib.Path(f"{folder}/empty.json").write_bytes(b"")
        bomb = gzip.compress(b'{"traceEvents": [' + b" " * (1 << 28), 9)
        pathlib.Path(f"{folder}/bomb.json.gz").write_bytes(bomb)
        os.mkfifo(f"{folder}/pipe.json")
        with start(folder) as s:
            names = [t["name"].split("/")[-1] for t in s.traces()]
            checks.true("no pipes", "pipe.json" not in names)
            for name in ("noise.json.gz", "empty.json", "bomb.json.gz"):
                trace = s.opened(s.id_of(name))
                checks.equal(f"{name} fails", trace["state"], "failed")
                checks.true(f"{name} says why: {trace['error']}",
                            len(trace["error"]) > 10)
            a, b = s.id_of("/a.json.gz"), s.id_of("/b.json.gz")
            s.opened(a)
            for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT):
                before = s.workers()
                s.opened(b)
                (mine,) = set(s.workers()) - set(before)
                os.kill(mine, number)
                trace = s.settled(b)
                for _ in range(100):
                    if trace["state"] != "open":
                        break
                    time.sleep(0.05)
                    trace = s.settled(b)
                checks.equal(f"killed by {number}", trace["state"], "failed")
                checks.true("says so", f"signal {int(number)}" in
                            trace["error"])
                checks.equal("the other goes on",
                             s.query(a, "SELECT 1")[0], 200)
            # A process that is stopped does not stop the server.
            before = s.workers()
            s.opened(b)
            (mine,) = set(s.workers()) - set(before)
            waiting = threading.Thread(target=s.query, args=(b, "SELECT 1"))
            os.kill(mine, signal.SIGSTOP)
            waiting.start()
            checks.equal("while one stands still",
                         s.query(a, "SELECT 1")[0], 200)
            checks.equal("closing it", s.post(f"traces/{b}/close")[0], 200)
            waiting.join(20)
            checks.true("who waited is told", not waiting.is_alive())
            # A file that is replaced is said to be stale, and opens anew.
            shutil.copy(SAMPLES / "moe.json.gz", f"{folder}/n")
            os.replace(f"{folder}/n", f"{folder}/a.json.gz")
            time.sleep(2.2)
            trace = next(t for t in s.traces() if t["id"] == a)
            checks.equal("stale", trace.get("stale"), True)
            trace = s.opened(a)
            checks.equal("opened anew", (trace["state"], s.get(
                f"traces/{a}")[1]["stale"]), ("open", False))
            # A link that is bent to the outside is not followed.
            c = s.id_of("/c.json.gz")
            os.remove(f"{folder}/c.json.gz")
            os.symlink("/etc/passwd", f"{folder}/c.json.gz")
            trace = s.opened(c)
            checks.equal("bent link", (trace["state"], trace["error"]), (
                "failed", "a link has taken its place, which is not followed"))
        with start(folder, "--sessions", 1) as s:
            s.opened(s.id_of("/a.json.gz"))
            s.opened(s.id_of("/b.json.gz"))
            states = {t["name"].split("/")[-1]: t["state"]
                      for t in s.traces()}
            checks.equal("only one is open",
                         (states["a.json.gz"], states["b.json.gz"]),
                         ("closed", "open"))
        # One after the other through fewer places than there are traces.
        for name in "defgh":
            shutil.copy(SAMPLES / "serve.json.gz", f"{folder}/{name}.json.gz")
        with start(folder, "--sessions", 2) as s:
            ids = [s.id_of(f"/{name}.json.gz") for name in "abdefgh"]
            checks.equal("each opens", [s.opened(id)["state"] for id in ids],
                         ["open"] * len(ids))
            checks.equal("two are open", sum(t["state"] == "open"
                                             for t in s.traces()), 2)
            for _ in range(50):
                if len(s.workers()) == 2:
                    break
                time.sleep(0.05)
            checks.equal("by two processes", len(s.workers()), 2)
            for id in ids:
                s.post(f"traces/{id}/open")
            states = [s.settled(id)["state"] for id in ids]
            checks.true(f"all at once: {states}",
                        set(states) <= {"open", "closed"})
            checks.true("no more than two", states.count("open") <= 2)
        with start(folder, "--memory-gb", 0.01) as s:
            trace = s.opened(s.id_of("/a.json.gz"))
            checks.equal("too large for the limit", trace["state"], "failed")
            checks.equal("the server goes on", s.get("info")[0], 200)


def own_bytes(pid):
    """Memory of a process that is its own, as the server counts it."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        _, resident, mapped = map(int, file.read().split()[:3])
    return (resident - mapped) * os.sysconf("SC_PAGESIZE")


def memory_limit():
    """Above the limit the trace goes that nobody asked for longest."""
    with temporary() as folder:
        for name in "abc":
            many_kernels(f"{folder}/{name}.json", 60_000)
        with start(folder) as s:
            s.opened(s.id_of("/a.json"))
            one = own_bytes(s.workers()[0])
        # Room for two of them, and for what opening needs besides.
        with start(folder, "--memory-gb", 2.7 * one / 2**30) as s:
            ids = {name: s.id_of(f"/{name}.json") for name in "abc"}
            for name in "ab":
                checks.equal(f"{name} opens", s.opened(ids[name])["state"],
                             "open")
            # The first is now the one that was asked for last.
            checks.equal("a answers", s.query(ids["a"], "SELECT 1")[0], 200)
            checks.equal("c opens", s.opened(ids["c"])["state"], "open")
            states = {}
            for _ in range(600):
                states = {name: s.get(f"traces/{ids[name]}")[1]["state"]
                          for name in "abc"}
                if states["c"] == "open" and states["b"] == "closed":
                    break
                time.sleep(0.05)
            checks.equal("the one that was not asked for is closed", states,
                         {"a": "open", "b": "closed", "c": "open"})
            time.sleep(0.7)
            held = sum(own_bytes(w) for w in s.workers())
            checks.true(f"the limit holds: {held} of {2.7 * one}",
                        held < 2.7 * one)
            checks.equal("what was closed opens again",
                         s.opened(ids["b"])["state"], "open")
            checks.equal("and answers", s.query(ids["b"], "SELECT 1")[0], 200)


def bad_http(s):
    good = (f"GET /api/v1/info HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {s.token}\r\n").encode()
    for what, data, statuses in (
            ("no HTTP", b"hello\r\n\r\n", (400,)),
            ("TLS", bytes.fromhex("16030100c8010000c40303") + b"\r\n\r\n",
             (400,)),
            ("HTTP/0.9", b"GET /\r\n\r\n", (400,)),
            ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400, 505)),
            ("a proxy", b"GET http://evil.test/ HTTP/1.1\r\n\r\n", (400,)),
            ("bare LF", b"GET / HTTP/1.1\nHost: localhost\n\n", (400,)),
            ("bare CR", b"GET / HTTP/1.1\rHost: localhost\r\r", (400,)),
            ("LF CR", b"GET / HTTP/1.1\n\rHost: localhost\n\r\n\r", (400,)),
            ("CR CR LF", b"GET / HTTP/1.1\r\r\nHost: localhost\r\r\n\r\r\n",
             (400,)),
            ("an empty line first", b"\r\n" + good + b"\r\n", (400,)),
            ("LF in a value", good + b"X: a\nOrigin: b\r\n\r\n", (400,)),
            ("no host", b"GET / HTTP/1.1\r\n\r\n", (421,)),
            ("a zero byte", good + b"X: a\0b\r\n\r\n", (400,)),
            ("a folded header", good + b"X: a\r\n b\r\n\r\n", (400,)),
            ("a blank before the colon", good + b"X : a\r\n\r\n", (400,)),
            ("no colon", good + b"nonsense\r\n\r\n", (400,)),
            ("two hosts", good + b"Host: localhost\r\n\r\n", (421,)),
            ("two tokens", good + f"Authorization: Bearer {s.token}\r\n\r\n"
             .encode(), (401,)),
            ("two lengths", good + b"Content-Length: 1\r\nContent-Length: 2"
             b"\r\n\r\nab", (400,)),
            ("a negative length", good + b"Content-Length: -1\r\n\r\n", (400,)),
            ("a list of lengths", good + b"Content-Length: 1, 1\r\n\r\na",
             (400,)),
            ("a huge length", good + b"Content-Length: 99999999999999\r\n\r\n",
             (413,)),
            ("chunks", good + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
             (411,)),
            ("smuggled chunks", good + b"Content-Length: 3\r\nTransfer-"
             b"Encoding: xchunked\r\n\r\nabc", (411,)),
            ("ranges", good + b"Range: bytes=0-1,1-2,2-3\r\n\r\n", (416,)),
            ("expect", good + b"Expect: 100-continue\r\n\r\n", (417,)),
            ("a long line", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
             (414, 431)),
            ("a long header", good + b"X: " + b"a" * 20000 + b"\r\n\r\n",
             (431,)),
            ("many headers", good + b"".join(
                b"X%d: a\r\n" % i for i in range(500)) + b"\r\n", (431,)),
            ("a million headers", b"GET / HTTP/1.1\r\n" + b"".join(
                b"X%d: a\r\n" % i for i in range(10**6)) + b"\r\n", (431,)),
            ("no line at all", b"A" * 5_000_000, (431,)),
            ("a line without end", good + b"X: " + b"a" * 5_000_000, (431,))):
        out = s.raw(data, close=True)
        first = out.split(b"\r\n")[0] if out else out
        # A reset may overtake the answer to who sends on and on.
        checks.true(f"{what}: {first!r}", (out is None and len(data) > 60000) or
                    (out and int(out.split()[1]) in statuses))
    checks.true("none of it is kept", s.memory() < (256 << 20))
    for what, data in (("a request", good + b"\r\n"), (
            "a body", f"POST /api/v1/compare HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {s.token}\r\nContent-Type: application/"
            "json\r\nContent-Length: 2\r\n\r\n{}".encode())):
        whole = s.raw(data, close=True)
        with socket.create_connection((HOST, s.port), timeout=30) as c:
            c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in data:
                c.sendall(bytes([byte]))
            c.shutdown(socket.SHUT_WR)
            out = b""
            while part := c.recv(65536):
                out += part
        checks.equal(f"{what} byte by byte", out, whole)
    # Two requests in one piece are two answers.
    out = s.raw(good + b"\r\n" + good + b"Connection: close\r\n\r\n")
    checks.equal("pipelined", out.count(b"HTTP/1.1 200 OK"), 2)
    noise = random.Random(7)
    whole = good + b"Content-Length: 2\r\n\r\n{}"
    for i in range(400):
        data = bytearray(whole)
        for _ in range(noise.randint(1, 6)):
            at = noise.randrange(len(data))
            kind = noise.randrange(4)
            if kind == 0:
                data[at] = noise.randrange(256)
            elif kind == 1:
                del data[at:at + noise.randint(1, 20)]
            elif kind == 2:
                data[at:at] = noise.randbytes(noise.randint(1, 20))
            else:
                data[at:at] = noise.choice(
                    [b"\r\n", b"\r\n\r\n", b"\0", b" ", b":", b"%", b"../",
                     b"Host: a\r\n", b"Content-Length: 5\r\n"])
            if not data:
                data = bytearray(b"x")
        out = s.raw(bytes(data), close=True)
        checks.true(f"noise {i}", out is None or out == b"" or
                    out.startswith(b"HTTP/1.1 "))
    checks.equal("still there", s.get("info")[0], 200)


def slow_senders(s):
    """They hold their own connections, and not for long."""
    slow = []
    for i in range(40):
        c = socket.create_connection((HOST, s.port))
        if i % 2:
            c.sendall(b"GET /api/v1/info HTTP/1.1\r\nHost: loc")
        else:
            c.sendall(b"POST /api/v1/compare HTTP/1.1\r\nHost: localhost\r\n"
                      b"Content-Length: 1000\r\n\r\n{")
        slow.append(c)
    checks.equal("beside slow senders", s.get("info")[0], 200)
    deadline = time.monotonic() + 40
    ended = 0
    for c in slow:
        c.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            while True:
                try:
                    c.sendall(b"a")  # a byte now and then
                except OSError:
                    pass
                got = c.recv(4096)
                ended += not got or got.startswith(b"HTTP/1.1 408")
                break
        except OSError:
            ended += isinstance(sys.exc_info()[1], ConnectionError)
        c.close()
    checks.equal("slow senders are sent away", ended, len(slow))
    # Nor is it enough to go on with a byte a second.
    c = socket.create_connection((HOST, s.port), timeout=40)
    sent, out = 0, b""
    for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 9:
        try:
            c.sendall(bytes([byte]))
            sent += 1
            c.settimeout(1)
            out = c.recv(100)
            break
        except TimeoutError:
            pass
        except OSError:
            break
    checks.true(f"a byte a second: {sent} bytes, {out[:20]!r}",
                out.startswith(b"HTTP/1.1 408") and sent > 5)
    c.close()
    # More connections than there may be: those that sent half of a request go,
    # the oldest first, and the owner is served.
    held = [socket.create_connection((HOST, s.port)) for _ in range(140)]
    for c in held:
        c.sendall(b"GET /api/v1/info HTTP/1.1\r\nHost: loc")
    for _ in range(5):
        checks.equal("beside half requests", s.get("info")[0], 200)
    held[0].settimeout(20)
    checks.equal("the oldest is gone", held[0].recv(100), b"")
    # Nor do wrong tokens at the same time keep the owner out.
    wrong = (b"GET /api/v1/info HTTP/1.1\r\nHost: localhost\r\n"
             b"Authorization: Bearer " + 43 * b"x" + b"\r\n\r\n")
    for c in held[20:]:
        try:
            c.close()
        except OSError:
            pass
    held = [socket.create_connection((HOST, s.port)) for _ in range(60)]
    for c in held:
        c.sendall(wrong)
    for _ in range(5):
        checks.equal("beside wrong tokens", s.get("info")[0], 200)
    answers = []
    for c in held:
        c.settimeout(40)
        answers.append(c.recv(12)[9:12])
    checks.true(f"of wrong tokens one waits: {answers}",
                answers.count(b"429") > 40 and b"200" not in answers)
    for c in held:
        c.close()
    for _ in range(50):
        try:
            if s.get("info")[0] == 200:
                break
        except (OSError, ValueError):
            pass
        time.sleep(0.1)
    checks.equal("then as before", s.get("info")[0], 200)
    # A reader that takes nothing.
    id = s.id_of("/serve.json.gz")
    s.opened(id)
    c = socket.socket()
    c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    c.connect((HOST, s.port))
    c.sendall((f"GET /api/v1/traces/{id}/page HTTP/1.1\r\nHost: localhost\r\n"
               f"Authorization: Bearer {s.token}\r\n\r\n").encode())
    checks.equal("beside a slow reader", s.get("info")[0], 200)
    c.close()


HOSTILE = ("</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>",
           "a\"b'c`d", "\u202eevil\u202c", "javascript:alert(1)", "${7*7}",
           "\x1b[31mred", "a\nb\tc", "..", "x" * 5000, "{{title}}")


def hostile_traces(folder):
    """Names and kernels that want to be something else; gives the files."""
    names = [n.replace("/", "_")[:100] + ".json" for n in HOSTILE
             if "\n" not in n and n[0] != "."]
    events = [{"ph": "X", "cat": "kernel", "name": n, "ts": 10 * i, "dur": 5,
               "pid": 0, "tid": 7,
               "args": {"device": 0, "stream": 7, "correlation": i}}
              for i, n in enumerate(HOSTILE)]
    for name in names:
        (folder / name).write_text(json.dumps({"traceEvents": events}))
    return names


def swapped():
    """A process reads the file that it was given, not what its name leads to
    when it looks."""
    with temporary() as folder:
        shutil.copy(SAMPLES / "serve.json.gz", f"{folder}/trace.json.gz")
        shutil.copy(SAMPLES / "memory/train.pickle", f"{folder}/memory.pickle")
        shutil.copy(SAMPLES / "jax.xplane.pb", folder)
        write_nsys(Work(SAMPLES / "serve.json.gz"),
                   pathlib.Path(folder, "trace.sqlite"))
        data = pathlib.Path(folder, "trace.sqlite").read_bytes()
        pathlib.Path(folder, "packed.sqlite.gz").write_bytes(
            gzip.compress(data))
        tables = pathlib.Path(folder, "tables")
        write_csv(Work(SAMPLES / "moe.json.gz"), tables)
        for name in ("trace.json.gz", "memory.pickle", "jax.xplane.pb",
                     "trace.sqlite", "packed.sqlite.gz"):
            path = pathlib.Path(folder, name)
            wanted = facts_of_worker(folder, path, [])
            checks.true(f"{name} is read", isinstance(wanted, dict) and
                        "error" not in wanted)
            with open(path, "rb") as file:
                for other in (SAMPLES / "moe.json.gz", tables, None):
                    path.unlink()
                    if other is None:
                        os.mkfifo(path)
                    else:
                        path.symlink_to(other)
                    facts = facts_of_worker(folder, path, [file.fileno()])
                    checks.equal(f"{name}: what was given is read, not {other}",
                                 facts, wanted)
                    checks.true(f"{name}: its name leads elsewhere",
                                other is None or
                                facts_of_worker(folder, path, []) != wanted)


def facts_of_worker(folder, path, files):
    """What the process of a trace says of it."""
    words = [w for f in files for w in ("--worker-files", str(f))]
    done = subprocess.run(
        [LAMINA, "serve", "--worker", f"{folder}/page.html", *words, path],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False,
        pass_fds=files, timeout=120)
    said = [line for line in done.stdout.split(b"\n") if line.startswith(b"{")]
    return json.loads(said[-1]) if said else done.stdout


def outside():
    """Links in a folder lead out of it where that is asked for."""
    with temporary() as folder:
        for name in ("in", "out"):
            os.mkdir(f"{folder}/{name}")
        shutil.copy(SAMPLES / "serve.json.gz", f"{folder}/in/a.json.gz")
        shutil.copy(SAMPLES / "moe.json.gz", f"{folder}/out/b.json.gz")
        os.symlink("a.json.gz", f"{folder}/in/c.json.gz")
        os.symlink("../out/b.json.gz", f"{folder}/in/b.json.gz")
        os.symlink(f"{folder}/out", f"{folder}/in/more")
        with start(f"{folder}/in") as s:
            checks.equal("links out", [t["name"] for t in s.traces()],
                         ["in/a.json.gz"])
            s.stop()
            checks.true(f"are said: {s.errors}",
                        "--follow-symlinks" in "".join(s.errors))
        with start(f"{folder}/in") as s:
            # What takes its place right after the list.
            id = s.id_of("/a.json.gz")
            place = pathlib.Path(folder, "in/a.json.gz")
            trace = place.read_bytes()
            for make, says in (
                    (lambda: place.symlink_to("../out/b.json.gz"), "a link"),
                    (place.mkdir, "no regular file"),
                    (lambda: os.mkfifo(place), "no regular file"),
                    (lambda: None, "not there any more")):
                os.remove(place)
                make()
                status, _ = s.post(f"traces/{id}/open")
                # A slow machine has looked again, and listed it no more.
                why = s.settled(id)["error"] if status != 404 else says
                checks.true(f"{says}: {why}", says in why)
                if place.is_dir() and not place.is_symlink():
                    place.rmdir()
                place.unlink(missing_ok=True)
                place.write_bytes(trace)
                time.sleep(2.2 if status == 404 else 0)
                checks.equal("listed", s.id_of("/a.json.gz"), id)
        with start(f"{folder}/in", "--follow-symlinks") as s:
            checks.equal("are followed", [t["name"] for t in s.traces()],
                         ["in/a.json.gz", "in/b.json.gz"])
            checks.equal("and open", s.opened(s.id_of("/b.json.gz"))["state"],
                         "open")
            # A folder that is made anew is served as it is then.
            os.rename(f"{folder}/in", f"{folder}/was")
            os.mkdir(f"{folder}/in")
            shutil.copy(SAMPLES / "moe.json.gz", f"{folder}/in/a.json.gz")
            time.sleep(2.2)
            checks.equal("anew", s.opened(s.id_of("/a.json.gz"))["state"],
                         "open")
        patterns(folder)
        # What is named is served, wherever it is.
        with start(f"{folder}/was/b.json.gz") as s:
            checks.equal("a link by its name",
                         s.opened(s.traces()[0]["id"])["state"], "open")
    made_anew()


def patterns(folder):
    """A pattern looks below its own folder, and follows no link either."""
    shutil.copy(SAMPLES / "moe.json.gz", f"{folder}/out/secret.json.gz")
    # A link that is called as the pattern is was not named.
    os.symlink("../out/secret.json.gz", f"{folder}/was/*.json.gz")
    with start(f"{folder}/was/*.json.gz") as s:
        checks.equal("a link called as the pattern", s.traces(), [])
        checks.equal("no folder is for agents",
                     s.ask("POST", "/mcp", {})[0], 404)
    os.remove(f"{folder}/was/*.json.gz")
    # The others look below the folder of both.
    for pattern, names, places in (
            ("was/*.json.gz", ["a.json.gz"], ["was"]),
            ("w?s/[bc]*.gz", ["b.json.gz", "c.json.gz"], ["out", "was"]),
            ("*/secret.*", ["secret.json.gz"], ["out"])):
        with start(f"{folder}/{pattern}") as s:
            checks.equal(f"{pattern}", sorted(t["name"] for t in s.traces()),
                         names)
            checks.equal(f"{pattern} for agents", allowed(s),
                         [f"{os.path.realpath(folder)}/{p}" for p in places])
            if pattern == "was/*.json.gz":
                os.symlink("../out/secret.json.gz", f"{folder}/was/new.json.gz")
                time.sleep(2.2)
                checks.equal("nor one that comes later",
                             [t["name"] for t in s.traces()], names)
    # Only that file is one that was named.
    with start(f"{folder}/out/b.json.gz", f"{folder}/was") as s:
        checks.equal("beside one that is named", sorted(
            t["name"] for t in s.traces()), ["b.json.gz", "was/a.json.gz"])


def allowed(s):
    """The folders that its agents may read."""
    before = s.workers()
    s.ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"},
          headers={"Accept": "application/json, text/event-stream"})
    (agents,) = set(s.workers()) - set(before)
    words = pathlib.Path(f"/proc/{agents}/cmdline").read_text().split("\0")
    return sorted(words[i + 1] for i, word in enumerate(words)
                  if word == "--allow")


def made_anew():
    """A folder that is made anew is looked at anew, whatever it was given as
    and without a look at the list."""
    with temporary() as top:
        folder = f"{top}/runs"

        def fill(a, b):
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
            shutil.copy(SAMPLES / a, f"{folder}/a.json.gz")
            shutil.copy(SAMPLES / b, f"{folder}/b.json.gz")

        for what in ([folder], [f"{folder}/*.gz"],
                     [f"{folder}/a.json.gz", f"{folder}/b.json.gz"]):
            fill("serve.json.gz", "moe.json.gz")
            # Each opening ends that of another.
            with start(*what, "--sessions", "1") as s:
                a, b = s.id_of("a.json.gz"), s.id_of("b.json.gz")
                both = s.post("compare", {"a": a, "b": b})[1]["id"]
                checks.equal("a comparison", s.settled(both)["state"], "open")
                before = s.opened(a)["facts"]
                fill("moe.json.gz", "serve.json.gz")
                time.sleep(2.2)
                trace = s.opened(a)
                checks.equal("opens", trace["state"], "open")
                checks.true("what is there now", trace["facts"] != before)
                again = s.post("compare", {"a": a, "b": b})[1]
                checks.equal("is kept", again["id"], both)
                checks.equal("compares what is there now",
                             s.settled(both)["state"], "open")


def long_names():
    """No answer is as long as the names of a trace."""
    with temporary() as folder:
        events = [{"ph": "X", "cat": "kernel", "name": str(i) + "\u00e9" * 200_000,
                   "ts": i, "dur": 0.5, "pid": 0, "tid": 7,
                   "args": {"device": 0, "stream": 7}} for i in range(20)]
        pathlib.Path(folder, "a.json").write_text(
            json.dumps({"traceEvents": events}))
        with start(folder) as s:
            id = s.id_of("/a.json")
            checks.equal("long names open", s.opened(id)["state"], "open")
            for what, body in (("find", {}), ("tiles", {}),
                               ("sum", {"by": ["kernel"]}),
                               ("sum", {"by": ["n" * 100_000]})):
                status, _, data = s.ask("POST", f"/api/v1/traces/{id}/{what}",
                                        body)
                checks.true(f"{what}: {status}, {len(data)} bytes",
                            len(data) < 100_000)
            status, found = s.post(f"traces/{id}/find", {"limit": 1})
            name = found["found"]["name"][0]
            checks.true("names are cut between letters", name.endswith(
                "\u00e9...") and 1900 < len(name.encode()) <= 2003)


def hostile_texts():
    with temporary() as folder:
        names = hostile_traces(pathlib.Path(folder))
        os.mkdir(f"{folder}/<b>&amp;")
        shutil.copy(f"{folder}/{names[0]}", f"{folder}/<b>&amp;/x.json")
        with start(folder) as s:
            listed = [t["name"].split("/", 1)[1] for t in s.traces()]
            checks.equal("hostile names are listed", sorted(listed),
                         sorted([*names, "<b>&amp;/x.json"]))
            id = s.id_of("/x.json")
            checks.equal("opens", s.opened(id)["state"], "open")
            status, result = s.query(id, "SELECT name FROM kernel ORDER BY uid")
            checks.equal("as they are", [r[0] for r in result["tables"][0][
                "rows"]], list(HOSTILE))
            _, headers, data = s.ask("GET", f"/api/v1/traces/{id}/page")
            checks.true("none ends its element",
                        b"<script>alert(1)" not in data and
                        headers["Content-Type"] == "application/octet-stream")


def in_browser():
    """Returns why it was left out."""
    if reason := without_browser():
        return reason
    with temporary() as folder:
        # Real files: a link to another folder is listed by its own name.
        folder = os.path.realpath(folder) + "/samples"
        os.makedirs(folder + "/hostile")
        os.mkdir(folder + "/ranks")
        os.mkdir(folder + "/graphs")
        for name in ("train_step.json.gz", "serve.json.gz", "moe.json.gz",
                     "jax.xplane.pb", "graphs/replay.json.gz",
                     "ranks/rank0.json.gz", "ranks/rank1.json.gz",
                     "ranks/rank2.json.gz"):
            shutil.copy(SAMPLES / name, f"{folder}/{name}")
        many_kernels(f"{folder}/large.json", 200_000)
        hostile_traces(pathlib.Path(folder, "hostile"))
        shutil.copy(SAMPLES / "memory/train.pickle", folder)
        with start(folder) as s:
            done = subprocess.run(
                ["node", ROOT / "tests/web/served.mjs", LAMINA,
                 s.line.strip(), folder], check=False, text=True, timeout=600,
                stdout=subprocess.PIPE)
            print(done.stdout, end="")
            checks.equal("in the browser", done.returncode, 0)
        for name in ("train_step", "serve"):
            trace = f"{folder}/{name}.json.gz"
            with start(trace, "--page-events", 40) as s:
                done = subprocess.run(
                    ["node", ROOT / "tests/web/served_tiles.mjs", LAMINA,
                     s.line.strip(), trace], check=False, text=True,
                    timeout=600, stdout=subprocess.PIPE)
                print(done.stdout, end="")
                checks.equal(f"{name}: tiles in the browser", done.returncode,
                             0)
        many_kernels(f"{folder}/late.json", 300_000)
        with start(f"{folder}/late.json", "--late-findings-mb", 0) as s:
            done = subprocess.run(
                ["node", ROOT / "tests/web/served_late.mjs", LAMINA,
                 s.line.strip()], check=False, text=True, timeout=600,
                stdout=subprocess.PIPE)
            print(done.stdout, end="")
            checks.equal("late findings in the browser", done.returncode, 0)
    return ""


def clients(s, seconds):
    """64 at a time; every answer is that of one client alone."""
    id = s.id_of("/serve.json.gz")
    s.opened(id)
    # Without what changes while they ask.
    asked = [("GET", "/api/v1/info", None), ("GET", "/", None),
             ("GET", f"/api/v1/traces/{id}", None),
             ("GET", f"/api/v1/traces/{id}/page", None),
             ("GET", "/api/v1/nothing", None)]
    for sql in ("SELECT count(*) FROM kernel", "SELECT name, sum(dur_ns) FROM "
                "kernel GROUP BY 1 ORDER BY 2 DESC, 1", "SELECT * FROM step",
                "SELECT nope"):
        asked.append(("POST", f"/api/v1/traces/{id}/query", {"sql": sql}))
    for what, body in (
            ("tiles", {}), ("tiles", {"columns": 20, "where": ["length=5us.."]}),
            ("sum", {"by": ["kernel", "op"], "where": ["time=1ms..9ms"]}),
            ("find", {"limit": 50, "where": ["length=..20us"]})):
        asked.append(("POST", f"/api/v1/traces/{id}/{what}", body))

    def answer(request):
        status, _, data = s.ask(request[0], request[1], request[2])
        if status == 200 and request[1].endswith("query"):
            out = json.loads(data)
            del out["elapsed_ms"]
            data = json.dumps(out).encode()
        return status, data

    alone = [answer(r) for r in asked]
    before = s.memory()
    until = time.monotonic() + seconds
    counts, wrong = {200: 0, 429: 0, 503: 0}, []

    def one(number):
        noise = random.Random(number)
        while time.monotonic() < until:
            i = noise.randrange(len(asked))
            try:
                got = answer(asked[i])
            except OSError as error:
                wrong.append((asked[i], error))
                continue
            if got[0] in (429, 503):
                counts[got[0]] += 1
                time.sleep(0.05)
            elif got != alone[i]:
                wrong.append((asked[i], got[0], got[1][:200]))
            else:
                counts[200] += 1

    threads = [threading.Thread(target=one, args=(n,)) for n in range(64)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(f"64 clients, {seconds} s: {counts[200]} answers as alone, "
          f"{counts[429]} told to wait for a query, {counts[503]} for a "
          f"connection, {len(wrong)} others; memory "
          f"{before >> 20} -> {s.memory() >> 20} MiB")
    checks.equal("answers of 64 clients", wrong[:3], [])
    checks.true("some were answered", counts[200] > 64)
    checks.true("memory stays within its limit", s.memory() < (256 << 20))
    checks.equal("one process a trace, and one for agents",
                 len(s.workers()), 2)


PARTS = "asking children tables pages"


def part_asking(_):
    command_line()
    addresses()
    with start(SAMPLES, "--time-limit", 1) as s:
        who_may_ask(s)
        opening(s)
        comparing(s)
        asking(s)
        live(s)
        bad_http(s)
        slow_senders(s)
        agents(s)
        clients(s, 60 if "--long" in sys.argv else 3)
        checks.equal("ends", s.stop(), 0)
        checks.equal("said nothing else", s.errors, [])


def part_children(_):
    cancelling()
    changing()
    falling_children()
    memory_limit()
    swapped()


def part_tables(_):
    thinned()
    with_captures()
    late_findings()
    no_room_for_findings()
    waiting_queries()
    snapshots()


def part_pages(_):
    outside()
    long_names()
    hostile_texts()
    if reason := in_browser():
        skip(reason)
    reference(shared())


run_parts(PARTS, globals())
