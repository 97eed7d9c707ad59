#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Conversations with lamina mcp, tests/mcp/*.jsonl: a request a line, and the
answer that comes, on its pipes and over the HTTP of lamina serve. Every message
of them, and the answer of every tool, is held against the published schema of
its revision of the protocol.

usage: mcp_transcripts_test.py LAMINA [--update]    writes the answers anew

In an answer "*" stands for anything: what is listed elsewhere or has the version
of the program. FOLDER is where the samples lie, CURSOR the cursor of an answer,
in a request the one that came last."""
import json
import os
import pathlib
import sys

from common import LAMINA, ROOT, Checks, temporary
from json_schema import why_not
from mcp_client import META, MODERN, SAMPLE_CALLS, Client
from serve_client import Serve

sys.path.insert(0, str(ROOT / "evals"))
import inputs  # noqa: E402

TRANSCRIPTS = sorted((ROOT / "tests/mcp").glob("*.jsonl"))
# Long, and held by mcp_test.
ANYTHING = ("instructions", "tools", "resources", "prompts", "version")
RESULTS = {"initialize": "InitializeResult", "ping": "EmptyResult",
           "server/discover": "DiscoverResult", "tools/list": "ListToolsResult",
           "tools/call": "CallToolResult",
           "resources/list": "ListResourcesResult",
           "resources/templates/list": "ListResourceTemplatesResult",
           "resources/read": "ReadResourceResult",
           "prompts/list": "ListPromptsResult",
           "prompts/get": "GetPromptResult",
           "completion/complete": "CompleteResult"}
ERRORS = {-32022: "UnsupportedProtocolVersionError",
          -32020: "HeaderMismatchError", -32601: "MethodNotFoundError",
          -32602: "InvalidParamsError"}


class Published:
    """The schema of a revision of the protocol."""

    def __init__(self, revision):
        self.whole = json.loads(
            (ROOT / f"tests/mcp/schema/{revision}.json").read_text())
        self.key = "$defs" if "$defs" in self.whole else "definitions"

    def knows(self, name):
        return name in self.whole[self.key]

    def why_not(self, value, name):
        return why_not(value, {"$ref": f"#/{self.key}/{name}"}, self.whole)

    def of_request(self, message):
        """What is wrong with what a client sends; the wrong ones of a
        transcript are wrong in their values."""
        return self.why_not(message, "JSONRPCRequest" if "id" in message
                            else "JSONRPCNotification")

    def of_answer(self, message, method):
        if "error" in message:
            name = next(n for n in ("JSONRPCErrorResponse", "JSONRPCError")
                        if self.knows(n))
            wrong = self.why_not(message, name)
            special = ERRORS.get(message["error"]["code"])
            if not wrong and special and self.knows(special):
                # That of a code by itself, or that of the whole message.
                one = self.whole[self.key][special]
                whole = "jsonrpc" in one.get("properties", {})
                wrong = self.why_not(message if whole else message["error"],
                                     special)
            return wrong
        name = next(n for n in ("JSONRPCResultResponse", "JSONRPCResponse")
                    if self.knows(n))
        return self.why_not(message, name) or \
            self.why_not(message["result"], RESULTS[method])

    def of_notification(self, message):
        return self.why_not(message, "ServerNotification")


def masked(value, names):
    """`names`: what stands for texts that are others each time."""
    if isinstance(value, dict):
        return {k: "*" if k in ANYTHING else masked(v, names)
                for k, v in value.items()}
    if isinstance(value, list):
        return [masked(one, names) for one in value]
    if isinstance(value, str):
        for text, name in names.items():
            value = value.replace(text, name)
    return value


class Cursors:
    """Puts the last cursor where a request says CURSOR."""

    def __init__(self):
        self.last = ""

    def fill(self, message):
        return json.loads(json.dumps(message).replace('"CURSOR"', json.dumps(
            self.last)))

    def note(self, answer):
        found = answer.get("result", {}).get("structuredContent", {})
        self.last = found.get("next_cursor") or self.last


def on_pipes(folder, lines, era, checks, published):
    """The answers of a conversation."""
    cursors = Cursors()
    with Client(LAMINA, "--allow", folder, era=None) as c:
        for line in lines:
            sent = cursors.fill(line["send"])
            c.send(sent)
            if "id" not in sent:
                continue
            answer = c.reply(sent["id"])
            cursors.note(answer)
            yield sent, answer
        for one in c.notifications:
            checks.equal(f"{era} {one['method']}",
                         published.of_notification(one), None)
        checks.equal(f"{era}: end of input", c.close(), 0)


def over_http(served, lines, era):
    cursors = Cursors()
    for line in lines:
        sent = cursors.fill(line["send"])
        version = sent.get("params", {}).get("_meta", {}).get(
            "io.modelcontextprotocol/protocolVersion")
        headers = {"Accept": "application/json, text/event-stream"}
        if version:
            headers.update({"MCP-Protocol-Version": version,
                            "Mcp-Method": sent["method"]})
            name = sent["params"].get("name") or sent["params"].get("uri")
            if name:
                headers["Mcp-Name"] = name
        status, _, data = served.ask("POST", "/mcp", sent, headers)
        if "id" not in sent:
            assert (status, data) == (202, b""), (era, status, data)
            continue
        answer = json.loads(data)
        cursors.note(answer)
        yield sent, answer


def check_transcripts(checks, folder, served, update):
    for path in TRANSCRIPTS:
        era = path.stem
        published = Published(era)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        checks.true(f"{era}: a conversation", len(lines) > 25)
        asked = [line for line in lines if "id" in line["send"]]
        for line in lines:
            checks.equal(f"{era} request {line['send'].get('id')}",
                         published.of_request(line["send"]), None)
        for way, answers in (
                ("pipes", on_pipes(folder, lines, era, checks, published)),
                ("HTTP", over_http(served, lines, era))):
            for line, (sent, answer) in zip(asked, answers, strict=True):
                what = f"{era} on {way}, {sent['id']} {sent['method']}"
                checks.equal(f"{what}: as published",
                             published.of_answer(answer, sent["method"]), None)
                names = {str(folder): "FOLDER"}
                if cursor := answer.get("result", {}).get(
                        "structuredContent", {}).get("next_cursor"):
                    names[cursor] = "CURSOR"
                found = masked(answer, names)
                if update and way == "pipes":
                    line["answer"] = found
                checks.equal(what, found, line.get("answer"))
        if update:
            path.write_text("".join(
                json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def check_tools(checks, folder):
    """Each tool's answer and errors, as each revision has them."""
    for path in TRANSCRIPTS:
        era = path.stem
        published = Published(era)
        with Client(LAMINA, "--allow", folder, era=era) as c:
            tools = {t["name"]: t for t in c.request("tools/list")["tools"]}
            checks.equal(f"{era}: every tool is called", set(tools),
                         {name for name, _ in SAMPLE_CALLS})
            for name, arguments in SAMPLE_CALLS:
                for given in (arguments, {}, {**arguments, "nope": 1}):
                    answer = c.ask("tools/call", {"name": name,
                                                  "arguments": given})
                    checks.equal(f"{era} {name} {given}: as published",
                                 published.of_answer(answer, "tools/call"),
                                 None)
                    result = answer["result"]
                    if not result["isError"]:
                        schema = tools[name]["outputSchema"]
                        checks.equal(
                            f"{era} {name}: as its own schema", why_not(
                                result["structuredContent"], schema, schema),
                            None)
            slow = c.start("tools/call", {
                "name": "query", "_meta": {"progressToken": "p"}, "arguments": {
                    "trace": "serve.json.gz", "sql":
                    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 "
                    "FROM c WHERE x < 10000000) SELECT count(*) FROM c"}})
            c.reply(slow)
            checks.true(f"{era}: progress", len(c.notifications) > 0)
            for one in c.notifications:
                checks.equal(f"{era} {one['method']}: as published",
                             published.of_notification(one), None)


def check_schemas(checks):
    """The validator tells right from wrong."""
    for era, message, name, right in (
            (MODERN, {"jsonrpc": "2.0", "id": 1, "method": "tools/list",
                      "params": {"_meta": META}}, "ListToolsRequest", True),
            (MODERN, {"jsonrpc": "2.0", "id": 1, "method": "tools/list",
                      "params": {}}, "ListToolsRequest", False),
            (MODERN, {"content": [], "resultType": "complete"},
             "CallToolResult", True),
            (MODERN, {"content": []}, "CallToolResult", False),
            ("2025-11-25", {"content": [{"type": "text", "text": 5}]},
             "CallToolResult", False),
            ("2025-11-25", {"content": [{"type": "text", "text": ""}]},
             "CallToolResult", True),
            ("2025-06-18", {"tools": [{"name": "x", "inputSchema": {
                "type": "array"}}]}, "ListToolsResult", False),
            ("2025-06-18", {"tools": [{"name": "x", "inputSchema": {
                "type": "object"}}]}, "ListToolsResult", True)):
        wrong = Published(era).why_not(message, name)
        checks.equal(f"{era} {name} {message}: {wrong}", wrong is None, right)


def main():
    checks = Checks()
    checks.equal("revisions", [path.stem for path in TRANSCRIPTS],
                 ["2025-06-18", "2025-11-25", "2026-07-28"])
    check_schemas(checks)
    with temporary() as folder:
        # One place for its traces, whatever the machine calls it.
        folder = pathlib.Path(os.path.realpath(folder), "samples")
        folder.mkdir()
        inputs.make(LAMINA, folder)
        with Serve(LAMINA, folder) as served:
            check_transcripts(checks, folder, served, "--update" in sys.argv)
            checks.equal("serve ends", served.stop(), 0)
        check_tools(checks, folder)
    checks.finish()


main()
