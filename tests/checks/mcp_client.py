# SPDX-License-Identifier: Apache-2.0
"""A plain client of lamina mcp: lines of JSON to a child process and back.
Every line that comes must be JSON, or the client fails."""
import collections
import json
import queue
import subprocess
import threading

MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "check",
                                               "version": "1"}}

# Every tool once, with what it needs, below a folder of evals/inputs.py.
SAMPLE_CALLS = [
    ("open_trace", {"path": "train_step.json.gz"}),
    ("list_traces", {}),
    ("tables", {"name": ["kernel"]}),
    ("query", {"trace": "serve.json.gz",
               "sql": "SELECT name, dur_ns FROM kernel ORDER BY uid"}),
    ("report", {"trace": "train_step.json.gz"}),
    ("diagnose", {"trace": "serve.json.gz", "all": True}),
    ("layers", {"trace": "graphs/replay.json.gz"}),
    ("event", {"trace": "serve.json.gz", "uid": 40}),
    ("tree", {"trace": "moe.json.gz"}),
    ("diff", {"a": "ranks/rank0.json.gz", "b": "ranks/rank2.json.gz"}),
    ("requests", {"trace": "server.json", "bench": "bench.json"}),
    ("ranks", {"paths": ["ranks"]}),
    ("annotate", {"trace": "graphs/replay.json.gz",
                  "from": ["graphs/capture.json.gz"]}),
    ("graph_layers", {"dump": "dumps"}),
    ("graph_layer", {"dump": "dumps", "layer": "3"}),
    ("graph_census", {"dump": "dumps"}),
    ("graph_candidates", {"dump": "dumps/001_export_export_to_gm.txt"}),
    ("graph_review", {"before": "runs/after", "after": "runs/before",
                      "rule": "fuse_rmsnorm"}),
    ("graph_rewrite", {"dump": "fusions/001_export_export_to_gm.txt.gz",
                       "config": "fusions/pipeline.yaml"}),
    ("graph_log_diff", {"log_a": "runs/before/transform.log",
                        "log_b": "runs/after/transform.log",
                        "dumps": ["runs/before", "runs/after"]}),
    ("graph_diff", {"a": "dumps/001_export_export_to_gm.txt",
                    "b": "dumps/064_post_load_fusion_fuse_add_rms_norm.txt"}),
]


class Client:
    """One server. `era`: "2025-11-25" and so on, MODERN, or None: the caller
    begins by itself."""

    def __init__(self, program, *options, era="2025-11-25", cwd=None,
                 env=None):
        self.process = subprocess.Popen(
            [program, "mcp", *map(str, options)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, env=env)
        self.modern = era == MODERN
        self.number = 0
        self.waiting = collections.defaultdict(list)
        self.notifications = []
        self.lines = queue.Queue()
        self.bytes_of = {}
        self.errors = b""
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._read_errors, daemon=True).start()
        if era and not self.modern:
            self.started = self.request("initialize", {
                "protocolVersion": era, "capabilities": {},
                "clientInfo": {"name": "check", "version": "1"}})
            self.notify("notifications/initialized")

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors += line

    def send_bytes(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def receive(self, timeout=120):
        """The next message, whatever it is; None: the server has ended."""
        line = self.lines.get(timeout=timeout)
        if line is None:
            return None
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0", line
        self.bytes_of[json.dumps(message.get("id"))] = len(line)
        return message

    def notify(self, method, params=None):
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)

    def start(self, method, params=None, id=None):
        """Sends a request and gives its id."""
        if id is None:
            self.number += 1
            id = self.number
        params = dict(params or {})
        if self.modern:
            params["_meta"] = {**META, **params.get("_meta", {})}
        self.send({"jsonrpc": "2.0", "id": id, "method": method,
                   "params": params})
        return id

    def reply(self, id, timeout=120):
        """The message that answers a request; others are kept."""
        key = json.dumps(id)
        while not self.waiting[key]:
            message = self.receive(timeout)
            assert message is not None, f"server ended: {self.errors!r}"
            if "id" in message:
                self.waiting[json.dumps(message["id"])].append(message)
            else:
                self.notifications.append(message)
        return self.waiting[key].pop(0)

    def ask(self, method, params=None):
        return self.reply(self.start(method, params))

    def request(self, method, params=None):
        message = self.ask(method, params)
        assert "result" in message, message
        return message["result"]

    def call(self, tool, **arguments):
        """The result of a tool, also one that is an error."""
        return self.request("tools/call",
                            {"name": tool, "arguments": arguments})

    def answer(self, tool, **arguments):
        """The structured content of a tool that must not fail."""
        result = self.call(tool, **arguments)
        assert not result.get("isError"), (tool, arguments, result)
        return result["structuredContent"]

    def close(self):
        """Exit status after the end of the input."""
        self.process.stdin.close()
        return self.process.wait(timeout=30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def table(answer, name):
    """Rows of a table of an answer as dictionaries."""
    for one in answer["tables"]:
        if one["name"] == name:
            names = [column["name"] for column in one["columns"]]
            return [dict(zip(names, row)) for row in one["rows"]]
    raise AssertionError(f"no table {name} in "
                         f"{[t['name'] for t in answer['tables']]}")


def all_pages(client, tool, **arguments):
    """Rows of all tables over all pages, and how many pages there were."""
    rows = collections.defaultdict(list)
    notes, pages, cursor = [], 0, {}
    while True:
        answer = client.answer(tool, **arguments, **cursor)
        pages += 1
        notes += answer["notes"]
        for one in answer["tables"]:
            assert one["first"] == len(rows[one["name"]]), one["name"]
            rows[one["name"]] += one["rows"]
        if answer["next_cursor"] is None:
            assert not answer["truncated"]
            return rows, notes, pages
        cursor = {"cursor": answer["next_cursor"]}
