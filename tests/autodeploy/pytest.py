# SPDX-License-Identifier: Apache-2.0
"""As much of pytest as generated tests need: `python3 -m pytest FILE` runs the
functions test_* of a file and says for each passed, failed or skipped."""
import importlib.util
import sys
import traceback


class Skipped(Exception):
    pass


def skip(reason):
    raise Skipped(reason)


class mark:
    @staticmethod
    def skipif(condition, reason):
        def wrap(function):
            return (lambda: skip(reason)) if condition else function
        return wrap


if __name__ == "__main__":
    sys.modules["pytest"] = sys.modules["__main__"]
    spec = importlib.util.spec_from_file_location("tests_of_a_pass", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, function in list(vars(module).items()):
        if not name.startswith("test_"):
            continue
        try:
            function()
            print(name, "passed")
        except Skipped as reason:
            print(name, "skipped:", reason)
        except NotImplementedError as question:
            print(name, "open:", question)
        except Exception:
            print(name, "failed")
            traceback.print_exc()
