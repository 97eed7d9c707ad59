#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""skills/lamina is a skill as agents load one: its head, its size, its links,
its references as the program has them, its commands and tools as there are.
What its commands print is held by docs_test.py."""
import re
import subprocess
import sys

from common import LAMINA, ROOT, SAMPLES, Checks, lamina
from mcp_client import Client

SKILL = ROOT / "skills/lamina"
COMMAND = re.compile(r"`lamina ([a-z-]+(?: [a-z-]+)?)([^`]*)`")
TOOL = re.compile(r"`([a-z_]+) \{([^}]*)\}`")


def head_of(text):
    """Keys of the head of a page; a value may go on in indented lines."""
    lines = re.match(r"---\n(.*?)\n---\n", text, re.S).group(1).splitlines()
    keys, last = {}, None
    for line in lines:
        if line.startswith(" "):
            keys[last] = (keys[last] + " " + line.strip()).strip()
        else:
            last, _, value = line.partition(":")
            keys[last] = value.strip().lstrip(">-").strip()
    return keys


def main():
    checks = Checks()
    page = (SKILL / "SKILL.md").read_text()
    head = head_of(page)
    checks.equal("keys", set(head),
                 {"name", "description", "license", "compatibility"})
    checks.equal("its name is that of the folder", head["name"], SKILL.name)
    checks.true("name", re.fullmatch(r"[a-z0-9-]{1,64}", head["name"]))
    checks.true("description", 0 < len(head["description"]) <= 1024)
    checks.true("compatibility", len(head["compatibility"]) <= 500)
    checks.true("lines", len(page.splitlines()) < 500)
    checks.true("tokens", len(page.encode()) / 3.5 <= 5000)
    pages = sorted(SKILL.rglob("*.md"))
    linked = set()
    for file in pages:
        text = file.read_text()
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            path = (file.parent / target).resolve()
            checks.true(f"{file.name}: {target}", path.exists() and
                        path.is_relative_to(SKILL))
            linked.add(path)
    checks.equal("every page is linked",
                 [p.name for p in pages if p not in linked and
                  p.name != "SKILL.md"], [])
    help_of = {}
    with Client(LAMINA, "--allow", SAMPLES) as client:
        tools = {t["name"]: set(t["inputSchema"]["properties"])
                 for t in client.request("tools/list")["tools"]}
    named = set()
    for file in pages:
        if file.parent.name == "references":
            continue  # made by the program, held below
        text = file.read_text()
        for command, rest in COMMAND.findall(text):
            words = command.split()
            if words[0] not in ("graph", "list"):
                words = words[:1]
            key = " ".join(words)
            if key not in help_of:
                r = lamina(*words[:2 if words[0] == "graph" else 1], "--help",
                           status=None)
                help_of[key] = r.stdout if r.returncode == 0 else ""
            checks.true(f"{file.name}: command {key}",
                        help_of[key] or key == "--version")
            for option in re.findall(r"--[a-z-]+", rest):
                checks.true(f"{file.name}: {key} {option}",
                            option in help_of[key])
        for tool, arguments in TOOL.findall(text):
            named.add(tool)
            checks.true(f"{file.name}: tool {tool}", tool in tools)
            for argument in re.findall(r"(\w+)(?::[^,]*)?",
                                       re.sub(r"\[[^]]*\]", "x", arguments)):
                if argument not in ("x", "folder"):
                    checks.true(f"{file.name}: {tool} {argument}",
                                argument in tools.get(tool, ()))
        for tool in re.findall(r"`(graph_\w+|open_trace)`", text):
            named.add(tool)
            checks.true(f"{file.name}: tool {tool}", tool in tools)
    checks.true("most tools are named", len(named) >= 12)
    done = subprocess.run([sys.executable, ROOT / "skills/make.py", LAMINA,
                           "--check"], capture_output=True, text=True)
    checks.equal("references are as the program says", done.stdout, "")
    checks.finish()


main()
