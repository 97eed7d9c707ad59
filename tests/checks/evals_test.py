#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""evals/: answers are what the inputs say, the tools can give them within the
budget in both eras of the protocol, and graders tell right from wrong."""
import json
import subprocess
import sys

from common import LAMINA, ROOT, Checks

sys.path.insert(0, str(ROOT / "evals"))
import graders  # noqa: E402


def run(*words):
    return subprocess.run([sys.executable, *map(str, words)],
                          capture_output=True, text=True, timeout=600,
                          check=False)


def check_graders(checks, task):
    """A right answer scores 1; everything near it 0."""
    name = task["id"]

    def score(value, unit=task["unit"]):
        return graders.grade(json.dumps({"value": value, "unit": unit}),
                             task)[0]

    checks.equal(f"{name}: right", score(task["answer"]), 1)
    wrong = graders.variants(task["answer"], task["grader"])
    checks.true(f"{name}: {len(wrong)} wrong values", len(wrong) >= 5)
    for value in wrong:
        checks.equal(f"{name}: {str(value)[:60]}", score(value), 0)
    if task["grader"]["kind"] in ("order", "contains_all"):
        checks.equal(f"{name}: more than was asked for",
                     score(task["answer"] + ["x"]), 1)
    if task["grader"]["kind"] in ("uid_set", "set", "contains_all"):
        checks.equal(f"{name}: in another order",
                     score(task["answer"][::-1]), 1)
    checks.equal(f"{name}: another unit", score(task["answer"], "parsecs"), 0)
    for text in ("", "42", "null", "[]", "not known", "{", "{}",
                 '{"value": NaN, "unit": 5}', "I refuse."):
        checks.equal(f"{name}: {text!r}", graders.grade(text, task)[0], 0)
    checks.equal(f"{name}: no answer", graders.grade(None, task)[0], 0)


def main():
    checks = Checks()
    tasks = [json.loads(path.read_text())
             for path in sorted((ROOT / "evals/tasks").iterdir())]
    checks.true("tasks", len(tasks) >= 28)
    checks.equal("each grader has a task", sorted(graders.GRADERS),
                 sorted({task["grader"]["kind"] for task in tasks}))
    for task in tasks:
        check_graders(checks, task)
        checks.true(f"{task['id']}: its page of the skill",
                    (ROOT / "skills/lamina" / task["route"]).exists())
    made = run(ROOT / "evals/make.py", LAMINA, "--check")
    checks.equal("answers made anew", (made.returncode, made.stdout), (0, ""))
    for era in ((), ("--modern",)):
        replayed = run(ROOT / "evals/run.py", LAMINA, *era)
        lines = [json.loads(line) for line in replayed.stdout.splitlines()]
        checks.equal(f"replayed {era}: {replayed.stderr[-500:]}",
                     [line["id"] for line in lines],
                     [task["id"] for task in tasks])
        for line in lines:
            checks.equal(f"{line['id']} {era}", (line["score"], line["why"]),
                         (1, "right"))
    # An agent that does not know is right only where nothing can be known.
    done = run(ROOT / "evals/run.py", LAMINA, "--agent",
               """cat > /dev/null; echo '{"value": null, "unit": ""}'""",
               "t04_launcher", "n01_outside")
    checks.equal("an agent", {line["id"]: line["score"] for line in
                              map(json.loads, done.stdout.splitlines())},
                 {"t04_launcher": 0, "n01_outside": 1})
    checks.finish()


main()
