# SPDX-License-Identifier: Apache-2.0
"""Whether a value is as a JSON schema says: the words that the schemas of the
Model Context Protocol and of lamina's tools use, and no others."""

# They describe, or say what a text looks like.
IGNORED = {"$schema", "$comment", "description", "title", "default", "format",
           "examples", "definitions", "$defs", "deprecated"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool,
         "null": type(None)}


def _is(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def why_not(value, schema, whole, at="$"):
    """What is wrong first, as text; None: nothing. `whole` is the schema that
    references are looked up in."""
    if schema is True:
        return None
    if schema is False:
        return f"{at} may not be there"
    for word, want in schema.items():
        wrong = None
        if word in IGNORED or word == "required" and not isinstance(value, dict):
            continue
        if word == "$ref":
            target = whole
            for part in want.lstrip("#/").split("/"):
                target = target[part]
            wrong = why_not(value, target, whole, at)
        elif word == "type":
            names = want if isinstance(want, list) else [want]
            if not any(_is(value, name) for name in names):
                wrong = f"{at} is no {want}: {str(value)[:80]}"
        elif word == "const":
            wrong = None if value == want else f"{at} is not {want!r}"
        elif word == "enum":
            wrong = None if value in want else f"{at} is none of {want}"
        elif word == "required":
            missing = [name for name in want if name not in value]
            wrong = f"{at} has no {missing[0]}" if missing else None
        elif word == "properties":
            if isinstance(value, dict):
                wrong = next(filter(None, (
                    why_not(value[name], one, whole, f"{at}.{name}")
                    for name, one in want.items() if name in value)), None)
        elif word == "additionalProperties":
            if isinstance(value, dict):
                wrong = next(filter(None, (
                    why_not(one, want, whole, f"{at}.{name}")
                    for name, one in value.items()
                    if name not in schema.get("properties", {}))), None)
        elif word == "propertyNames":
            if isinstance(value, dict):
                wrong = next(filter(None, (
                    why_not(name, want, whole, f"{at}:{name}")
                    for name in value)), None)
        elif word == "items":
            if isinstance(value, list):
                wrong = next(filter(None, (
                    why_not(one, want, whole, f"{at}[{i}]")
                    for i, one in enumerate(value))), None)
        elif word in ("anyOf", "oneOf"):
            each = [why_not(value, one, whole, at) for one in want]
            fits = each.count(None)
            if fits == 0:
                wrong = " or ".join(each)
            elif word == "oneOf" and fits > 1:
                wrong = f"{at} fits {fits} of oneOf"
        elif word == "allOf":
            wrong = next(filter(None, (why_not(value, one, whole, at)
                                       for one in want)), None)
        elif word in ("minimum", "maximum"):
            if _is(value, "number") and (
                    value < want if word == "minimum" else value > want):
                wrong = f"{at} is {value}, {word} {want}"
        elif word in ("minItems", "maxItems"):
            if isinstance(value, list) and (
                    len(value) < want if word == "minItems"
                    else len(value) > want):
                wrong = f"{at} has {len(value)} items, {word} {want}"
        elif word in ("minLength", "maxLength"):
            if isinstance(value, str) and (
                    len(value) < want if word == "minLength"
                    else len(value) > want):
                wrong = f"{at} has {len(value)} characters, {word} {want}"
        else:
            raise AssertionError(f"{at}: the word {word} is not known")
        if wrong:
            return wrong
    return None
