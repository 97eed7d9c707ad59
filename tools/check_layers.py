#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the #include lines of src/ against the declared dependencies.

usage: check_layers.py [--root DIR] [--print]

Every folder with a CMakeLists.txt declares `lamina_library(NAME DEPS ...)`. A
file may include headers of its own folder and of folders named in DEPS, and of
nothing else in src/; a public header of include/ belongs to the library that
names it after API, and includes only public headers. The declarations
themselves must not form a cycle. Fronts (cli, api, mcp, serve, and python/)
stand beside each other over the questions: none knows another, and nothing
else knows questions. The program (src/program) puts them together. With --print
the layers are printed, lowest first. Exit status 1 when a rule is broken, with
one line per offence.
"""
import argparse
import pathlib
import re
import sys

DECLARATION = re.compile(r"lamina_library\(\s*(\w+)(.*?)\)", re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
FRONTS = {"api", "cli", "mcp", "serve"}
KEYWORDS = {"DEPS", "LIBS", "EXCLUDE", "TEST_LIBS", "API"}


def read_libraries(src):
    """Folder -> (library, declared dependencies), and public header ->
    folder."""
    libraries, api = {}, {}
    for cmake in sorted(src.rglob("CMakeLists.txt")):
        text = re.sub(r"#.*", "", cmake.read_text())
        for name, rest in DECLARATION.findall(text):
            section, deps = None, []
            for word in rest.split():
                if word in KEYWORDS:
                    section = word
                elif section == "DEPS":
                    deps.append(word)
                elif section == "API":
                    api[word] = cmake.parent.relative_to(src)
            libraries[cmake.parent.relative_to(src)] = (name, deps)
    return libraries, api


def owner(path, libraries):
    """The nearest folder above a file that declares a library."""
    for folder in path.parents:
        if folder in libraries:
            return folder
    return None


def layers(libraries):
    """Names from lowest to highest, or the names left in a cycle."""
    deps = {name: set(d) for name, d in libraries.values()}
    order = []
    while deps:
        free = sorted(n for n, d in deps.items() if not (d & deps.keys()))
        if not free:
            return order, sorted(deps)
        order += free
        for name in free:
            del deps[name]
    return order, []


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", default=pathlib.Path(__file__).parents[1],
                    type=pathlib.Path)
    ap.add_argument("--print", action="store_true")
    args = ap.parse_args()
    src = args.root / "src"
    libraries, api = read_libraries(src)
    public = args.root / "include"
    names = {name for name, _ in libraries.values()}
    problems = []
    for folder, (name, deps) in libraries.items():
        for dep in deps:
            # Lists made by CMake from folders stand for all of them.
            if dep not in names and not dep.startswith("$"):
                problems.append(f"src/{folder}/CMakeLists.txt: "
                                f"unknown dependency '{dep}'")
    for folder, (name, deps) in libraries.items():
        for dep in deps:
            if dep in FRONTS:
                problems.append(f"src/{folder}/CMakeLists.txt: '{name}' knows "
                                f"the front '{dep}'")
        if "questions" in deps and name not in FRONTS:
            problems.append(f"src/{folder}/CMakeLists.txt: '{name}' is no "
                            "front and knows 'questions'")
    order, cycle = layers(libraries)
    if cycle:
        problems.append("dependency cycle among: " + ", ".join(cycle))
    files = 0
    for path in sorted(src.rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        files += 1
        folder = owner(path.relative_to(src), libraries)
        if folder is None:
            continue  # the program may see everything
        name, deps = libraries[folder]
        for include in INCLUDE.findall(path.read_text(errors="replace")):
            target = src / include
            if include in api:
                other = api[include]
            elif target.exists():
                other = owner(target.relative_to(src), libraries)
            else:
                continue  # generated
            if other is None:
                problems.append(f"{path}: includes {include}, which belongs "
                                "to no library")
            elif other != folder and libraries[other][0] not in deps:
                problems.append(
                    f"src/{path.relative_to(src)}: includes {include} of "
                    f"'{libraries[other][0]}', which '{name}' does not "
                    "declare in DEPS")
    for path in sorted(public.rglob("*.h")):
        files += 1
        name = str(path.relative_to(public))
        if name not in api:
            problems.append(f"include/{name}: no library names it after API")
        for include in INCLUDE.findall(path.read_text(errors="replace")):
            if include not in api:
                problems.append(f"include/{name}: includes {include}, which "
                                "is not public")
    for path in sorted((args.root / "python").rglob("*.cc")):
        files += 1
        for include in INCLUDE.findall(path.read_text(errors="replace")):
            front = include.split("/")[0]
            if front in FRONTS or front == "questions":
                problems.append(f"python/{path.name}: includes {include} of "
                                f"'{front}'")
    if args.print:
        for name in order:
            print(name)
    for problem in problems:
        print(problem)
    print(f"{files} files, {len(libraries)} libraries, "
          f"{len(problems)} problems")
    return 1 if problems else 0


sys.exit(main())
