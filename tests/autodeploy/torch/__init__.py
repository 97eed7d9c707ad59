# SPDX-License-Identifier: Apache-2.0
"""As much of PyTorch as generated passes and their tests need: names of types
and ops, and tensors that have a shape and a type and no data."""
from . import cuda, fx, library, nn, testing  # noqa: F401


class dtype:
    def __init__(self, name, floating):
        self.name, self.is_floating_point = name, floating

    def __repr__(self):
        return "torch." + self.name


for _name in ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn"):
    globals()[_name] = dtype(_name, True)
for _name in ("int64", "int32", "int16", "int8", "uint8", "bool"):
    globals()[_name] = dtype(_name, False)


class Tensor:
    def __init__(self, shape, kind):
        self.shape, self.dtype = tuple(shape), kind

    def transpose(self, a, b):
        shape = list(self.shape)
        shape[a], shape[b] = shape[b], shape[a]
        return Tensor(shape, self.dtype)

    def contiguous(self):
        return self

    def reshape(self, *shape):
        size = 1
        for dim in self.shape:
            size *= dim
        return Tensor((size,) if shape == (-1,) else shape, self.dtype)

    def to(self, kind):
        return Tensor(self.shape, kind)


def device(name):
    return ("device", name)


def empty(shape, dtype=None, device=None):
    return Tensor(shape, dtype)


def zeros(*shape):
    return Tensor(shape, globals()["float32"])


class _Overload(fx.Target):
    """An op; called while a function is traced it becomes a node."""

    def __init__(self, name, packet=None):
        self.name = name
        if packet is not None:
            self.overloadpacket = packet

    def __call__(self, *args):
        return fx.traced(self, args)

    def __repr__(self):
        return "torch.ops." + self.name


class _Packet(_Overload):
    def __init__(self, name):
        super().__init__(name)
        self.overloads = {}

    def __getattr__(self, overload):
        if overload.startswith("_") or overload == "overloadpacket":
            raise AttributeError(overload)
        return self.overloads.setdefault(
            overload, _Overload(f"{self.name}.{overload}", self))


class _Namespace:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, op):
        if op.startswith("__"):
            raise AttributeError(op)
        packet = _Packet(f"{self._name}.{op}")
        setattr(self, op, packet)
        return packet


class _Ops:
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        space = _Namespace(name)
        setattr(self, name, space)
        return space


ops = _Ops()
