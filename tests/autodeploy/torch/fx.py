# SPDX-License-Identifier: Apache-2.0
"""Graphs of nodes with users in order, as torch.fx has them."""
import contextlib


class Target:
    """What call_function nodes call: equal only to itself."""

    overloadpacket = None


def _map(value, function):
    if isinstance(value, (list, tuple)):
        return type(value)(_map(item, function) for item in value)
    return function(value) if isinstance(value, Node) else value


class Node:
    def __init__(self, graph, name, op, target, args, kwargs):
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.meta, self.users = {}, {}
        self.prev = self.next = self
        self._args, self._kwargs = (), {}
        self.args, self.kwargs = args, kwargs or {}

    def _inputs(self):
        found = []
        _map([self._args, list(self._kwargs.values())],
             lambda node: found.append(node) or node)
        return found

    def _update(self, args, kwargs):
        for node in self._inputs():
            node.users.pop(self, None)
        self._args, self._kwargs = tuple(args), dict(kwargs)
        for node in self._inputs():
            node.users[self] = None

    args = property(lambda self: self._args,
                    lambda self, value: self._update(value, self._kwargs))
    kwargs = property(lambda self: self._kwargs,
                      lambda self, value: self._update(self._args, value))

    def replace_all_uses_with(self, other):
        for user in list(self.users):
            def swap(node):
                return other if node is self else node
            user._update(_map(user.args, swap),
                         {k: _map(v, swap) for k, v in user.kwargs.items()})

    def __getitem__(self, key):
        import operator
        return traced(operator.getitem, (self, key))

    def __repr__(self):
        return self.name


class _Nodes:
    def __init__(self, graph):
        self.graph = graph

    def __iter__(self):
        node = self.graph._root.next
        while node is not self.graph._root:
            following = node.next
            yield node
            node = following

    def __contains__(self, node):
        return any(node is other for other in self)


class Graph:
    def __init__(self):
        self._root = Node(self, "", "root", "", (), {})
        self._before, self._names = self._root, set()

    @property
    def nodes(self):
        return _Nodes(self)

    def _name(self, base):
        name, i = base, 0
        while name in self._names:
            i += 1
            name = f"{base}_{i}"
        self._names.add(name)
        return name

    def create_node(self, op, target, args=(), kwargs=None, name="node"):
        node = Node(self, self._name(name), op, target, args, kwargs)
        last = self._before.prev
        last.next = self._before.prev = node
        node.prev, node.next = last, self._before
        return node

    def placeholder(self, name):
        return self.create_node("placeholder", name, name=name)

    def get_attr(self, name):
        return self.create_node("get_attr", name, name=name)

    def call_function(self, target, args=(), kwargs=None):
        name = getattr(target, "name", None) or getattr(target, "__name__", "node")
        return self.create_node("call_function", target, args, kwargs, name.replace(".", "_"))

    def output(self, result):
        return self.create_node("output", "output", (result,), name="output")

    @contextlib.contextmanager
    def inserting_before(self, node):
        before, self._before = self._before, node
        yield
        self._before = before

    def erase_node(self, node):
        assert not node.users, f"{node} is used"
        node._update((), {})
        node.prev.next, node.next.prev = node.next, node.prev

    def eliminate_dead_code(self):
        for node in reversed(list(self.nodes)):
            if not node.users and node.op in ("call_function", "get_attr"):
                self.erase_node(node)

    def lint(self):
        seen = set()
        for node in self.nodes:
            for used in node._inputs():
                assert used in seen, f"{node} uses {used} in front of its definition"
            seen.add(node)

    def __str__(self):
        return "\n".join(
            f"{n.name} = {n.op} {n.target!r} {n.args} {n.kwargs}" for n in self.nodes)


class GraphModule:
    def __init__(self, root, graph):
        self.root, self.graph = root, graph
        for node in graph.nodes:
            assert node.op != "get_attr" or node.target in root._buffers
        self.recompile()

    def recompile(self):
        self.code = str(self.graph)


_tracing = []


def traced(target, args):
    assert _tracing, f"{target} has no data to work on"
    return _tracing[-1].call_function(target, args)


def trace(graph, function, values):
    """The results of a function as nodes of a graph."""
    _tracing.append(graph)
    out = function(*values)
    _tracing.pop()
    return list(out) if isinstance(out, (list, tuple)) else [out]
