# SPDX-License-Identifier: Apache-2.0
"""What an answer is worth: 1 or 0, and why. An answer is the text of one JSON
object {"value": ..., "unit": ...}; prose is not graded."""
import json
import math


def _number(found, expected, rel=0, abs=0):
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return "is no number"
    if not math.isfinite(found) or \
            math.fabs(found - expected) > max(abs, rel * math.fabs(expected)):
        return f"is {found}, not {expected}"
    return None


def _exact(found, expected):
    if type(found) is not type(expected) or found != expected:
        return f"is {found!r}, not {expected!r}"
    return None


def _set(found, expected):
    if not isinstance(found, list):
        return "is no list"
    try:
        same = sorted(found) == sorted(expected)
    except TypeError:
        same = False
    return None if same else "is another set"


def _fields(found, expected, fields):
    """Each field by its own grader; nothing is missing and nothing more."""
    if not isinstance(found, dict) or set(found) != set(expected):
        return f"has not the fields {sorted(expected)}"
    for name, grader in fields.items():
        wrong = judge(found[name], expected[name], grader)
        if wrong:
            return f"{name} {wrong}"
    return None


def _no_claim(found, expected):
    return None if found is None else "claims what is not known"


GRADERS = {"exact": _exact, "number": _number, "set": _set, "fields": _fields,
           "no_claim": _no_claim}


def judge(found, expected, grader):
    """What is wrong with a value; None: nothing."""
    options = dict(grader)
    return GRADERS[options.pop("kind")](found, expected, **options)


def grade(text, task):
    """(score, why) of the text of an answer."""
    try:
        answer = json.loads(text)
    except (json.JSONDecodeError, TypeError):
        return 0, "no JSON"
    if not isinstance(answer, dict) or "value" not in answer:
        return 0, "no object with a value"
    if answer.get("unit", "") != task["unit"]:
        return 0, f"unit {answer.get('unit')!r}, not {task['unit']!r}"
    wrong = judge(answer["value"], task["answer"], task["grader"])
    return (0, f"value {wrong}") if wrong else (1, "right")


def variants(value):
    """Wrong values near a right one."""
    if value is None:
        return [0, 50.0, "low", {"value": 1}, [None]]
    if isinstance(value, bool):
        return [not value, "yes", 1, None, []]
    if isinstance(value, (int, float)):
        return [value * 1000, value / 1000, -value, value * 1.05 + 1,
                str(value)]
    if isinstance(value, str):
        return [value + " ", value[:-1], value.swapcase() + "x", None,
                [value]]
    if isinstance(value, list):
        return [value[1:], value + ["x"], value[:-1] + [str(value[-1]) + "x"],
                [], ", ".join(value)]
    out = []
    for name, one in value.items():
        out += [{**value, name: wrong} for wrong in variants(one)]
    return out + [{}, {**value, "more": 1}, list(value.values())]
