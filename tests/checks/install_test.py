#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An installed lamina serves programs outside of the tree.

usage: install_test.py LAMINA

Installs the build that LAMINA belongs to, builds tests/install against it with
find_package and with pkg-config, shared and static, and runs the results. What
liblamina.so shows is held against what its headers mark.
"""
import os
import pathlib
import re
import shutil
import subprocess

from common import (LAMINA, ROOT, SAMPLES, Checks, cached, lamina, skip,
                    temporary)

BUILD = pathlib.Path(LAMINA).parent
SOURCE = ROOT / "tests/install"
TRACE = SAMPLES / "train_step.json.gz"


def run(*command, **kwargs):
    r = subprocess.run([*map(str, command)], capture_output=True, text=True,
                       timeout=600, **kwargs)
    if r.returncode != 0:
        raise AssertionError(f"{command}: {r.stdout}{r.stderr}")
    return r.stdout


def check_symbols(checks, library):
    """Only functions that a public header declares, and all of lamina."""
    header = "".join(p.read_text()
                     for p in sorted((ROOT / "include/lamina").glob("*.h")))
    shown = set()
    for line in run("nm", "-DC", "--defined-only", library).splitlines():
        _, kind, name = line.split(" ", 2)
        checks.true(f"{name} is of lamina", name.startswith("lamina::"))
        checks.true(f"{name} is a function or constant", kind in "TWRVBDu")
        # lamina::Session::Open[abi](...) -> Session, Open
        words = re.sub(r"\[.*?\]", "", name.split("(")[0]).split("::")[1:]
        shown.add("::".join(words))
        for word in words:
            if word.startswith("operator"):
                continue
            checks.true(f"{name}: a header knows {word}",
                        re.search(rf"\b{re.escape(word.lstrip('~'))}\b", header)
                        is not None)
    for name in ("Session::Open", "Session::Get", "Session::Query", "Query",
                 "Session::Report", "Session::Ask", "Ask", "ListQuestions", "ListTables", "ExportStream", "MakeReport",
                 "WriteDocument", "Version", "Error::ToString", "Table::Text"):
        checks.true(f"{name} is shown", name in shown)


def main():
    if not (BUILD / "lib/liblamina.so").exists() or \
            not (BUILD / "lib/liblamina.a").exists():
        skip("the libraries are not built (target lamina_shared, lamina_archive)")
    if cached("CMAKE_BUILD_TYPE") != "Release":
        skip("programs of others know nothing of sanitizers")
    checks = Checks()
    checks.equal("soname", re.search(r"SONAME\)\s+Library soname: \[(.*)\]", run(
        "readelf", "-dW", BUILD / "lib/liblamina.so")).group(1), "liblamina.so.0")
    check_symbols(checks, BUILD / "lib/liblamina.so")
    sql = "SELECT count(*), sum(dur_ns) FROM kernel"
    count = len(lamina("report", TRACE, "--only", "kernels", "--format",
                       "csv").stdout.splitlines()) - 1
    ns = lamina("query", TRACE, sql, "--format",
                "csv").stdout.splitlines()[1].split(",")[1]
    passes = len(lamina("layers", TRACE, "--only", "passes", "--format",
                        "csv").stdout.splitlines()) - 1
    # 2 * 8 * 4 * 2
    expected = (f"0.1.0 {count} kernels, {ns} ns, {ns} ns, {passes} passes, "
                "128 flops; did you mean 'kernel'?\n")
    with temporary() as folder:
        prefix = pathlib.Path(folder) / "prefix"
        run("cmake", "--install", BUILD, "--prefix", prefix)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")}
        installed = run(prefix / "bin/lamina", "--version")
        checks.true("the program runs", installed.startswith("lamina 0.1.0"))

        build = pathlib.Path(folder) / "cmake"
        run("cmake", "-S", SOURCE, "-B", build, "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={prefix}")
        run("cmake", "--build", build)
        for program in ("outside", "outside_static"):
            checks.equal(f"find_package: {program}",
                         run(build / program, TRACE, env=environment), expected)
        checks.true("the archive needs no liblamina.so", "liblamina" not in
                    run("ldd", build / "outside_static", env=environment))

        modules = list(prefix.glob("lib/python*/*-packages/lamina"))
        if modules:
            environment["PYTHONPATH"] = str(modules[0].parent)
            checks.equal("the module of Python", run(
                cached("LAMINA_PYTHON"), "-c", "import lamina, sys; print(len(lamina.open("
                "sys.argv[1]).query('SELECT 1 FROM kernel')))", TRACE,
                env=environment), "212\n")

        if shutil.which("pkg-config") is None:
            skip("no pkg-config")
        environment["PKG_CONFIG_PATH"] = str(prefix / "lib/pkgconfig")
        # The prefix of a build is that of its configuration.
        flags = run("pkg-config", "--define-prefix", "--cflags", "--libs",
                    "lamina", env=environment).split()
        arrow = pathlib.Path(folder) / "arrow.o"
        run("cc", "-std=c11", "-Wall", "-Werror", f"-I{prefix}/include", "-c",
            SOURCE / "arrow.c", "-o", arrow)
        program = pathlib.Path(folder) / "outside"
        run("c++", SOURCE / "outside.cc", arrow, "-o", program, *flags)
        checks.equal("pkg-config", run(program, TRACE, env=environment),
                     expected)
        private = run("pkg-config", "--define-prefix", "--static", "--libs",
                      "lamina", env=environment).split()
        private[private.index("-llamina")] = "-l:liblamina.a"
        run("c++", "-std=c++20", f"-I{prefix}/include", SOURCE / "outside.cc",
            arrow, "-o", program, *private)
        checks.equal("pkg-config --static",
                     run(program, TRACE, env=environment), expected)
    checks.finish()


main()
