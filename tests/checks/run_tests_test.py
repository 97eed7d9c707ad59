#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The end of a test run: what tools/run_tests.py says of every way in which a
test can end, with the real CTest on a project of shell commands."""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROJECT = r"""
cmake_minimum_required(VERSION 3.22)
project(endings NONE)
enable_testing()
set(GOOD "" CACHE BOOL "only those that do not fail")
add_test(NAME passes COMMAND sh -c "echo fine")
add_test(NAME partly COMMAND sh -c "seq 1000; echo left out: data")
add_test(NAME skips COMMAND sh -c "echo no data here; exit 77")
set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)
if(NOT GOOD)
  add_test(NAME fails COMMAND sh -c "seq 100; echo 'bad <news> & more'; exit 1")
  add_test(NAME aborts COMMAND sh -c "echo about to abort; kill -ABRT $$")
  add_test(NAME crashes COMMAND sh -c "kill -SEGV $$")
  add_test(NAME hangs COMMAND sleep 1000)
  set_tests_properties(hangs PROPERTIES TIMEOUT 1)
  add_test(NAME is_missing COMMAND /nonexistent/program)
endif()
"""


def run(folder, good, *args, env=None):
    (folder / "CMakeLists.txt").write_text(PROJECT)
    build = folder / f"build_{good}"
    subprocess.run(["cmake", "-G", "Ninja", f"-DGOOD={good}", "-S", folder, "-B", build],
                   check=True, capture_output=True)
    r = subprocess.run(
        [sys.executable, ROOT / "tools/run_tests.py", build, "-j", "2", *args],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=env or os.environ | {"LAMINA_NO_SKIP": ""})
    return r.returncode, r.stdout.splitlines()


def check_skips():
    """A check that ends for want of data fails when something failed before,
    passes when something held, and is skipped only when it looked at
    nothing."""
    program = ("import sys; sys.path.insert(0, sys.argv[2]); import common; "
               "checks = common.Checks(); {}; common.shared(); print('on')")
    for before, no_skip, status, said in (
            ("checks.true('a', False)", "", 1, "FAILED a"),
            ("checks.true('a', True)", "", 0, "left out: "),
            ("checks.true('a', True)", "1", 1, "FAILED LAMINA_NO_SKIP"),
            ("pass", "", 77, "skipped: "),
            ("pass", "1", 1, "FAILED LAMINA_NO_SKIP")):
        r = subprocess.run(
            [sys.executable, "-c", program.format(before), "lamina",
             ROOT / "tests/checks"], stdout=subprocess.PIPE, text=True,
            env=os.environ | {"LAMINA_SHARED": "/nonexistent",
                              "LAMINA_NO_SKIP": no_skip})
        assert r.returncode == status, (before, no_skip, r)
        assert r.stdout.startswith(said) or f"\n{said}" in r.stdout, r


def main():
    check_skips()
    with tempfile.TemporaryDirectory() as temp:
        folder = pathlib.Path(temp)
        status, lines = run(folder, "OFF")
        assert status == 1, status
        assert lines[-1] == "2 passed, 5 failed", lines[-1]
        assert lines[-2] == "1 skipped: skips", lines[-2]
        assert lines[-3] == "1 ran without reference data: partly", lines[-3]
        names = lines.index("failed:")
        assert sorted(lines[names + 1:-3]) == [
            "  aborts", "  crashes", "  fails", "  hangs", "  is_missing"], lines
        # Each with the end of its output, nothing of the others.
        start = lines.index("--- fails failed")
        assert lines[start + 1] == "(41 lines before)", lines[start:]
        assert lines[start + 2:start + 62] == [
            *map(str, range(42, 101)), "bad <news> & more"], lines[start:]
        aborts = lines.index("--- aborts failed")
        assert lines[aborts + 1] == "about to abort", lines[aborts:]

        status, lines = run(folder, "ON")
        assert status == 0, lines
        assert lines[-2:] == ["1 skipped: skips",
                              "2 passed, 0 failed"], lines

        # Where everything should be there a skip is a failure.
        status, lines = run(folder, "ON",
                            env=os.environ | {"LAMINA_NO_SKIP": "1"})
        assert status == 1, lines
        assert lines[-1] == "2 passed, 1 failed", lines
        assert "  skips" in lines, lines

        # Nothing ran, or nothing but skipped tests.
        for pattern, last in (("^none$", "0 passed, 0 failed"),
                              ("^skips$", "0 passed, 0 failed")):
            status, lines = run(folder, "ON", "-R", pattern)
            assert status == 1, lines
            assert lines[-1] == last, lines

        # CTest does not even start: that is no success, and counts.
        status, lines = run(folder, "ON", env={"PATH": str(folder)})
        assert status == 1, lines
        assert lines[-1] == "0 passed, 1 failed", lines
    print("passed")


main()
