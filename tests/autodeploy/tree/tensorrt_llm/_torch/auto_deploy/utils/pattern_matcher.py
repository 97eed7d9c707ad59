# SPDX-License-Identifier: Apache-2.0
"""Search and replacement functions against a graph: what the real matcher does
with them, for functions of calls and literals with one or several results.
Both functions are traced; values match by their place; a value inside must have
the users of the pattern; results may have any."""
import inspect
from types import SimpleNamespace

from torch.fx import Graph, Node, trace


class ADPatternMatcherPass:
    def __init__(self):
        self.patterns = []

    def apply(self, graph):
        return sum(_apply(graph, *pattern) for pattern in self.patterns)


def register_ad_pattern(
    search_fn,
    replace_fn,
    patterns,
    dummy_args,
    trace_fn=None,
    ignore_types=(),
    op_ignore_types=None,
    scalar_workaround=None,
    exclusive_arg_names=(),
    extra_check=lambda match: True,
    skip_duplicates=False,
):
    names = list(inspect.signature(search_fn).parameters)
    assert len(names) == len(dummy_args)
    scalars = scalar_workaround or {}
    graph = Graph()
    values = [
        arg if name in scalars else graph.placeholder(name)
        for name, arg in zip(names, dummy_args)
    ]
    results = trace(graph, search_fn, values)
    back = {value: name for name, value in scalars.items()}
    assert len(back) == len(scalars)
    patterns.patterns.append((graph, results, back, names, replace_fn, extra_check))


def _apply(graph, search, results, scalars, names, replace_fn, extra_check):
    found = 0
    for anchor in list(graph.nodes):
        if anchor not in graph.nodes or anchor.op != "call_function":
            continue
        bound, values = {}, {}
        if not _match(results[-1], anchor, bound, values, scalars):
            continue
        if any(result not in bound for result in results):
            continue
        inside = {bound[node] for node in bound if node.op == "call_function"}
        closed = [bound[n] for n in bound if n.op == "call_function" and n not in results]
        if any(not set(node.users) <= inside for node in closed):
            continue
        match = SimpleNamespace(kwargs={name: values.get(name) for name in names})
        if not extra_check(match):
            continue
        with graph.inserting_before(anchor):
            new = trace(graph, replace_fn, [values[name] for name in names])
        for old, now in zip(results, new):
            now.meta = dict(bound[old].meta)
            bound[old].replace_all_uses_with(now)
        graph.eliminate_dead_code()
        found += 1
    return found


def _match(pattern, node, bound, values, scalars):
    if isinstance(pattern, (list, tuple)):
        return (
            isinstance(node, (list, tuple))
            and len(pattern) == len(node)
            and all(_match(p, n, bound, values, scalars) for p, n in zip(pattern, node))
        )
    if not isinstance(pattern, Node):
        if isinstance(pattern, (int, float)) and pattern in scalars and not isinstance(node, Node):
            name = scalars[pattern]
            return values.setdefault(name, node) == node
        return type(pattern) is type(node) and pattern == node
    if not isinstance(node, Node):
        return False
    if pattern in bound:
        return bound[pattern] is node
    bound[pattern] = node
    if pattern.op == "placeholder":
        values[pattern.target] = node
        return True
    return (
        node.op == "call_function"
        and node.target == pattern.target
        and not node.kwargs
        and _match(list(pattern.args), list(node.args), bound, values, scalars)
    )
