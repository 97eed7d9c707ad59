#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tasks and prints a line of JSON for each.

usage: run.py LAMINA [--modern] [TASK...]         replays the fixed calls
       run.py LAMINA --agent CMD [TASK...]        asks an agent

Replay makes the calls of a task against `lamina mcp` and takes the answer from
what comes back: it shows that the tools can answer, within the budget. No model
runs. CMD is a program that is given the question on standard input, runs in the
folder of inputs, and prints its answer as the last line; connecting it to lamina
is up to it. Status 1: a task scored 0.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] /
                       "tests/checks"))
import graders  # noqa: E402
import inputs  # noqa: E402
from mcp_client import MODERN, Client  # noqa: E402

TASKS = pathlib.Path(__file__).resolve().parent / "tasks"


def tasks(names=()):
    return [json.loads(path.read_text()) for path in sorted(TASKS.iterdir())
            if not names or path.stem in names]


def at(value, path):
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def rows_of(answer, name):
    for table in answer["tables"]:
        if table["name"] == name:
            names = [column["name"] for column in table["columns"]]
            return [dict(zip(names, row)) for row in table["rows"]]
    return []


def value_of(rule, results):
    """What a rule of a task takes from the results of its calls: rows of a
    table (`where` holds), of which one (`take`: first, last, max) gives a
    `column`, or all of them a list, a sum or a count; or a `path` in an
    error."""
    if "fields" in rule:
        return {name: value_of(one, results)
                for name, one in rule["fields"].items()}
    result = results[rule.get("call", 0)]
    if "error" in rule:
        value = at(result["_meta"]["lamina/error"], rule["error"])
        return None if value == rule.get("null_if") else value
    rows = [row for row in
            rows_of(result["structuredContent"], rule["table"])
            if all(row[k] == v for k, v in rule.get("where", {}).items())]
    take = rule.get("take", "first")
    if take == "count":
        value = len(rows)
    elif take == "sum":
        value = sum(row[rule["column"]] for row in rows)
    elif take == "all":
        value = [rule["format"].format(**{k: v or 0 for k, v in row.items()})
                 if "format" in rule else row[rule["column"]] for row in rows]
    else:
        row = max(rows, key=lambda r: r[rule["by"]]) if take == "max" else \
            rows[-1 if take == "last" else 0]
        value = row[rule["column"]]
    if "equals" in rule:
        value = value == rule["equals"]
    if rule.get("whole"):
        value = int(value)
    if "scale" in rule:
        value *= rule["scale"]
    return None if "null_if" in rule and value == rule["null_if"] else value


def filled(arguments, results):
    """Arguments, some of which earlier calls gave."""
    return {name: value_of(value, results) if isinstance(value, dict)
            else value for name, value in arguments.items()}


def replay(client, task):
    """The answer of a task as text, and what it took."""
    results, size = [], 0
    for call in task["calls"]:
        result = client.call(call["tool"],
                             **filled(call["arguments"], results))
        size += len(json.dumps(result, separators=(",", ":"),
                               ensure_ascii=False).encode())
        results.append(result)
        if bool(result.get("isError")) != call.get("fails", False):
            return None, len(results), size / 3.5, \
                f"{call['tool']}: {result['content'][0]['text'][:300]}"
    answer = {"value": value_of(task["final"], results), "unit": task["unit"]}
    return json.dumps(answer), len(results), size / 3.5, ""


def outcome(task, text, calls, tokens, trouble=""):
    score, why = (0, trouble) if trouble else graders.grade(text, task)
    if score and calls is not None and (
            calls > task["budget"]["calls"] or
            tokens > task["budget"]["tokens"]):
        score, why = 0, "over the budget"
    return {"id": task["id"], "score": score, "calls": calls,
            "tokens": tokens and round(tokens), "why": why}


def ask_agent(command, task, folder):
    question = (f"{task['question']}\nAnswer with one JSON object on the last "
                f"line: {{\"value\": ..., \"unit\": {json.dumps(task['unit'])}"
                "}. Use null for a value that cannot be known.")
    done = subprocess.run(command, shell=True, cwd=folder, input=question,
                          capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    return lines[-1] if lines else ""


def main():
    words = sys.argv[1:]
    program = str(pathlib.Path(words.pop(0)).resolve())
    agent = None
    if "--agent" in words:
        i = words.index("--agent")
        agent = words[i + 1]
        del words[i:i + 2]
    era = MODERN if "--modern" in words else "2025-11-25"
    chosen = tasks([word for word in words if word != "--modern"])
    scores = []
    with tempfile.TemporaryDirectory(prefix="lamina_evals_") as folder:
        inputs.make(program, folder, many=True)
        if agent:
            for task in chosen:
                text = ask_agent(agent, task, folder)
                scores.append(outcome(task, text, None, None))
                print(json.dumps(scores[-1]), flush=True)
        else:
            with Client(program, "--allow", folder, era=era) as client:
                for task in chosen:
                    scores.append(outcome(task, *replay(client, task)))
                    print(json.dumps(scores[-1]), flush=True)
    sys.exit(0 if all(one["score"] for one in scores) else 1)


if __name__ == "__main__":
    main()
