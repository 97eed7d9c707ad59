#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Manual pages and completions say what --help says."""
import pathlib
import re
import shutil
import subprocess

from common import LAMINA, Checks, lamina, temporary


def options_of(help_text):
    """Long options that --help lists."""
    return set(re.findall(r"(--[a-z][a-z0-9-]+)",
                          " ".join(re.findall(r"^  (-\S.*?)(?:  |$)",
                                              help_text, re.M))))


def commands_of(help_text):
    part = re.split(r"^(?:Subcommands|A trace):\n", help_text, flags=re.M)
    return re.findall(r"^  ([a-z][a-z-]*)  ", part[1], re.M) \
        if len(part) > 1 else []


def all_commands(words):
    """The command of these words, and all below it."""
    found = [words]
    for name in commands_of(lamina(*words, "--help").stdout):
        found += all_commands([*words, name])
    return found


def complete(script, words):
    """What bash offers behind the words."""
    quoted = " ".join(f"'{w}'" for w in words)
    run = subprocess.run(
        ["bash", "-c", f"source '{script}'; COMP_WORDS=({quoted}); "
         f"COMP_CWORD={len(words) - 1}; _lamina; "
         'printf "%s\\n" "${COMPREPLY[@]}"'],
        capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def words_of(page):
    """Words of a page as man shows it, without its first and last line."""
    shown = subprocess.run(
        ["nroff", "-man", "-c", "-rLL=900n", "-rHY=0", page],
        capture_output=True, text=True, check=True).stdout
    plain = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", shown).strip().splitlines()
    return " ".join(plain[1:-1]).replace("\u2010", "-").split()


def main():
    checks = Checks()
    with temporary() as out:
        folder = pathlib.Path(out)
        lamina("--manual", folder)
        pages = {p.name: p.read_text()
                 for p in (folder / "share/man/man1").iterdir()}
        script = folder / "share/bash-completion/completions/lamina"
        zsh = folder / "share/zsh/site-functions/_lamina"
        fish = folder / "share/fish/vendor_completions.d/lamina.fish"
        commands = all_commands([])
        checks.true("commands are found", len(commands) > 20)
        for command in commands:
            text = lamina(*command, "--help").stdout
            wide = [line for line in text.splitlines() if len(line) > 80 and
                    not line.startswith("  lamina")]
            checks.equal(f"lamina {' '.join(command)} --help: 80 columns", wide,
                         [])
        checks.equal("a page for each command", len(pages), len(commands))
        for command in commands:
            text = lamina(*command, "--help").stdout
            page = pages.get("-".join(["lamina", *command]) + ".1", "")
            name = " ".join(["lamina", *command])
            own = options_of(text)
            checks.true(f"{name}: options", own)
            missing = [o for o in own
                       if o.replace("-", "\\-") not in page]
            checks.equal(f"{name}: missing in its page", missing, [])
            shown = lamina("help", *command).stdout if command else ""
            if command and shutil.which("nroff"):
                checks.equal(f"lamina help {name}: the words of man",
                             shown.split(), words_of(
                                 folder / "share/man/man1" /
                                 ("-".join(["lamina", *command]) + ".1")))
            wide = [line for line in shown.splitlines() if len(line) > 100 and
                    line.startswith(" " * 14)]
            checks.equal(f"lamina help {name}: lines fit", wide, [])
            offered = complete(script, ["lamina", *command, "--"])
            checks.equal(f"{name}: not offered by bash", own - offered, set())
        checks.equal("values", complete(
            script, ["lamina", "report", "--layout", ""]) >=
            {"native", "tracelens"}, True)
        for words, offered in (
                (["report", "--only", ""], {"ops", "gpu_timeline"}),
                (["query", "--only", ""], set()),
                (["report", "--device", ""], {"h100-sxm", "h100", "mi300x"}),
                (["cost", "--device", "mi3"], {"mi300x", "mi325x"}),
                (["diagnose", "--explain", ""], {"host.launch_bound"}),
                (["diagnose", "--only", "kernel."], {"kernel.low_grid"})):
            checks.equal(f"values of {' '.join(words)}", complete(
                script, ["lamina", *words]) >= offered, True)
        if shutil.which("groff"):
            run = subprocess.run(
                ["groff", "-man", "-Tutf8", "-ww",
                 *sorted((folder / "share/man/man1").iterdir())],
                capture_output=True, text=True)
            checks.equal("groff has no complaint", run.stderr, "")
        for shell, path in (("zsh", zsh), ("fish", fish)):
            checks.true(f"{shell}: knows a command", "census" in
                        path.read_text())
            if shutil.which(shell):
                run = subprocess.run([shell, "-n", path], capture_output=True,
                                     text=True)
                checks.equal(f"{shell}: syntax", run.stderr, "")
    checks.finish()


main()
