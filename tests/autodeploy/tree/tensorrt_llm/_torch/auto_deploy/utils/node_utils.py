# SPDX-License-Identifier: Apache-2.0
from torch.fx import Node


def is_op(node, ops):
    """Whether a node calls one of the ops; a packet stands for its overloads."""
    if not isinstance(node, Node) or node.op != "call_function":
        return False
    targets = (node.target, getattr(node.target, "overloadpacket", node.target))
    return any(target == op for target in targets for op in ops)
