#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official clients of the Model Context Protocol against lamina mcp, on its
pipes and over the HTTP of lamina serve: both eras, every tool, pages, errors,
progress, cancel; and the official inspector on its pipes. npm brings them into
the build folder the first time. (The newest inspector needs a newer node.)"""
import json
import pathlib
import shutil
import subprocess
import sys

from common import LAMINA, ROOT, skip, temporary
from mcp_client import SAMPLE_CALLS
from serve_client import Serve

sys.path.insert(0, str(ROOT / "evals"))
import inputs  # noqa: E402

PACKAGES = pathlib.Path(LAMINA).parent / "mcp_clients"
FILES = ("package.json", "package-lock.json")


def install(source, target):
    """The packages of tests/mcp/`source` as its lock has them, in `target`;
    false when they cannot be had."""
    same = all((target / name).exists() and
               (target / name).read_bytes() == (source / name).read_bytes()
               for name in FILES)
    if not (same and (target / "node_modules/.package-lock.json").exists()):
        target.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copy(source / name, target)
        try:
            subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit",
                            "--no-fund"], cwd=target, check=True,
                           timeout=240, capture_output=True)
        except (subprocess.SubprocessError, OSError):
            return False
    return True


def find_node():
    """A node that the clients run on: the machine's, or where that is older
    than they need (Debian's is) one that npm brings."""
    node = shutil.which("node")
    if not node:
        skip("node is not installed")
    version = subprocess.run([node, "--version"], capture_output=True,
                             text=True, check=True).stdout.strip()
    if int(version[1:].split(".")[0]) >= 20:
        return node
    folder = PACKAGES / "node"
    found = install(ROOT / "tests/mcp/node", folder) and next(
        folder.glob("node_modules/node-*/bin/node"), None)
    return found or skip(f"the clients need node 20, this is {version}, and "
                         "npm cannot bring one")


def inspect(node, folder):
    """What the inspector is told; lines as clients.mjs prints them."""
    program = PACKAGES / "node_modules/@modelcontextprotocol/inspector-cli"
    lines = []

    def ask(method, *words):
        done = subprocess.run(
            [node, program / "build/cli.js", "--cli", LAMINA, "mcp", "--allow",
             folder, "--method", method, *words], text=True, timeout=120,
            capture_output=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def check(what, holds):
        lines.append(f"{'ok' if holds else 'FAILED'} inspector: {what}")

    tools = [tool["name"] for tool in ask("tools/list").get("tools", [])]
    check("tools", sorted(tools) == sorted(name for name, _ in SAMPLE_CALLS))
    for name, arguments in SAMPLE_CALLS:
        if any(isinstance(value, list) for value in arguments.values()):
            continue  # it sends texts alone
        words = [w for key, value in arguments.items() for w in (
            "--tool-arg", f"{key}={str(value).lower()}"
            if isinstance(value, bool) else f"{key}={value}")]
        answer = ask("tools/call", "--tool-name", name, *words)
        check(name, answer.get("isError") is False and
              answer["structuredContent"]["question"] == name)
    answer = ask("tools/call", "--tool-name", "open_trace", "--tool-arg",
                 "path=/etc/passwd")
    check("a tool that refuses", answer.get("isError") is True)
    pages = ask("resources/list").get("resources", [])
    check("resources", len(pages) > 5)
    check("templates", ask("resources/templates/list").get("resourceTemplates"))
    text = ask("resources/read", "--uri", "lamina://table/kernel")
    check("a resource", "dur_ns" in str(text))
    check("prompts", len(ask("prompts/list").get("prompts", [])) == 6)
    check("a prompt", "serve.json.gz" in str(ask(
        "prompts/get", "--prompt-name", "why_slow", "--prompt-args",
        "trace=serve.json.gz")))
    return lines


def main():
    node = find_node()
    if not install(ROOT / "tests/mcp", PACKAGES):
        skip("npm cannot bring the official clients")
    # Modules are looked for beside the script.
    script = PACKAGES / "clients.mjs"
    shutil.copy(ROOT / "tests/mcp/clients.mjs", script)
    lines, status = [], 0
    with temporary() as folder:
        inputs.make(LAMINA, folder)
        command = [node, script, LAMINA, folder, json.dumps(SAMPLE_CALLS)]
        with Serve(LAMINA, folder) as served:
            for how in ([], [served.address + "mcp", served.token]):
                done = subprocess.run(command + how, text=True, timeout=600,
                                      stdout=subprocess.PIPE, check=False)
                said = done.stdout.splitlines()
                status |= done.returncode or not said
                lines += said
        lines += inspect(node, folder)
    failures = [line for line in lines if line.startswith("FAILED")]
    for line in failures:
        print(line[:2000])
    print(f"{len(lines) - len(failures)} held, {len(failures)} did not")
    sys.exit(1 if status or failures else 0)


main()
