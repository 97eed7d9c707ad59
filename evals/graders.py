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


def _order(found, expected, k):
    """The first `k`; what follows is not graded."""
    if not isinstance(found, list):
        return "is no list"
    same = len(found) >= k and all(
        _exact(*pair) is None for pair in zip(found[:k], expected))
    return None if same else f"does not begin with {expected[:k]}"


def _contains_all(found, expected):
    if not isinstance(found, list):
        return "is no list"
    missing = [one for one in expected if one not in found]
    return f"lacks {missing}" if missing else None


def _interval(found, expected, abs=0):
    """[start, end], each as a number."""
    if not isinstance(found, list) or len(found) != 2:
        return "is no [start, end]"
    for one, other in zip(found, expected):
        wrong = _number(one, other, abs=abs)
        if wrong:
            return wrong
    return None


def _uid_set(found, expected):
    """Event numbers in any order, each once."""
    if not isinstance(found, list) or any(type(one) is not int
                                          for one in found):
        return "is no list of whole numbers"
    return _set(found, expected)


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


GRADERS = {"exact": _exact, "number": _number, "set": _set, "order": _order,
           "contains_all": _contains_all, "interval": _interval,
           "uid_set": _uid_set, "fields": _fields, "no_claim": _no_claim}


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


def _wrong_lists(value, kind):
    last = value[-1]
    out = [value[1:], [], ", ".join(map(str, value)),
           value[:-1] + [last + "x" if isinstance(last, str) else last + 1],
           [[one] for one in value]]
    if kind != "contains_all":
        longer = ["x"] + value if kind == "order" else value + ["x"]
        out.append(longer)
    if kind in ("order", "interval", "exact"):
        out.append(value[::-1])
    if kind == "uid_set":
        out += [value + value[:1], [float(one) for one in value]]
    return out


def variants(value, grader):
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
        # An answer with more than is graded is wrong in what is graded.
        return _wrong_lists(value[:grader.get("k")], grader["kind"])
    out = []
    for name, one in value.items():
        out += [{**value, name: wrong}
                for wrong in variants(one, grader["fields"][name])]
    return out + [{}, {**value, "more": 1}, list(value.values())]
