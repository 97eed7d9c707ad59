# SPDX-License-Identifier: Apache-2.0
"""One event of a trace and the way from it to others."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from ._trace import Trace

# What the tables say of an event besides what all have, by its kind.
_TABLES = {"op": "op", "annotation": "annotation", "runtime": "api_call",
           "driver": "api_call", "kernel": "kernel", "memcpy": "kernel",
           "memset": "kernel", "graph": "kernel"}


COLUMNS = "uid, name, kind, start_ns, dur_ns"


class Event:
    """An event by its number. Times are nanoseconds, `start_ns` from the first
    event. Further columns of its table are attributes: `e.dims` of an op,
    `e.stream` of a kernel; `e.args` has them all. NULL is None."""

    def __init__(self, trace: Trace, uid: int, name: str, kind: str,
                 start_ns: int, dur_ns: int):
        self._trace = trace
        self._args: Optional[dict[str, Any]] = None
        self.uid = uid
        self.name = name
        self.kind = kind
        self.start_ns = start_ns
        self.dur_ns = dur_ns

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.dur_ns

    @property
    def args(self) -> dict[str, Any]:
        """Every column that the table of its kind has for it."""
        if self._args is None:
            table = _TABLES.get(self.kind, "slice")
            found = self._trace.query(
                f"SELECT * FROM {table} WHERE uid = :uid", {"uid": self.uid})
            if len(found) == 0:
                found = self._trace.query(
                    "SELECT * FROM slice WHERE uid = :uid", {"uid": self.uid})
            self._args = dict(zip(found.column_names, found[0]))
        return self._args

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self.args:
            raise AttributeError(
                f"{self!r} has no '{name}'; it has {', '.join(self.args)}")
        return self.args[name]

    def _walk(self, function: str, kind: Optional[str] = None,
              arguments: str = ":uid") -> list[Event]:
        found = self._trace.query(
            f"SELECT {COLUMNS} FROM {function}({arguments})",
            {"uid": self.uid, "kind": kind})
        return [Event(self._trace, *row) for row in found]

    def _one(self, uid: Optional[int]) -> Optional[Event]:
        return None if uid is None else self._trace.event(uid)

    @property
    def parent(self) -> Optional[Event]:
        """What it was called from; of device work, the call that launched
        it."""
        above = self.ancestors
        return above[0] if above else None

    @property
    def ancestors(self) -> list[Event]:
        """Innermost first."""
        return self._walk("ancestors")

    @property
    def callstack(self) -> list[str]:
        """Names from the outermost to its own."""
        found = self._trace.query("SELECT name FROM callstack(:uid)",
                                  {"uid": self.uid})
        return list(found["name"])

    @property
    def children(self) -> list[Event]:
        """Events right below it, device work that it launched too."""
        return self._walk("children")

    @property
    def kernels(self) -> list[Event]:
        """All device work that was launched inside of it."""
        return self._walk("subtree_kernels")

    @property
    def launched(self) -> list[Event]:
        """Device work that this call launched itself."""
        return self._walk("launched")

    def descendants(self, kind: Optional[str] = None) -> list[Event]:
        """All below it, or those of one kind."""
        return self._walk("descendants", kind, ":uid, :kind")

    @property
    def launch(self) -> Optional[Event]:
        """The call that launched this device work."""
        return self._one(self.args.get("launch_uid"))

    @property
    def forward(self) -> Optional[Event]:
        """The forward op of a backward op."""
        return self._one(self.args.get("forward_uid"))

    @property
    def backward(self) -> Optional[Event]:
        """The backward op of a forward op."""
        return self._one(self.args.get("backward_uid"))

    @property
    def device_time_ns(self) -> int:
        """Sum of the device work inside of it."""
        found = self._trace.query(
            "SELECT coalesce(sum(dur_ns), 0) AS ns FROM subtree_kernels(:uid)",
            {"uid": self.uid})
        return int(found[0].ns)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Event) and self.uid == other.uid
                and self._trace is other._trace)

    def __hash__(self) -> int:
        return hash((id(self._trace), self.uid))

    def __repr__(self) -> str:
        return (f"<Event {self.uid} {self.kind} {self.name!r} "
                f"{self.dur_ns / 1000:.3f} us>")
