# SPDX-License-Identifier: Apache-2.0
"""Known edits of a Kineto trace: what a comparison with the original has to
find is known exactly."""
import copy
import gzip
import json

HOST = ("cpu_op", "cuda_runtime", "cuda_driver", "python_function",
        "user_annotation")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def load(path):
    return json.loads(gzip.decompress(path.read_bytes()))


def save(document, path):
    path.write_text(json.dumps(document))


def end(event):
    return event["ts"] + event["dur"]


class Editor:
    """A trace and its edits. Ops are named by their event numbers of the
    original, which stay valid: removed events become empty ones at the end."""

    def __init__(self, document):
        self.document = copy.deepcopy(document)
        self.events = self.document["traceEvents"]

    def inside(self, outer):
        """Host events of the same thread in a span, itself included."""
        return [e for e in self.events
                if e.get("cat") in HOST and e.get("dur") is not None and
                e["tid"] == outer["tid"] and e["pid"] == outer["pid"] and
                outer["ts"] <= e["ts"] and end(e) <= end(outer) + 1e-6]

    def work(self, outer):
        """Device events launched inside a span."""
        launched = self.correlations(outer)
        return [e for e in self.events if e.get("cat") in DEVICE and
                e["args"].get("correlation") in launched]

    def correlations(self, outer):
        return {e["args"]["correlation"] for e in self.inside(outer)
                if e["cat"] in ("cuda_runtime", "cuda_driver") and
                "correlation" in e.get("args", {})}

    def flows(self, correlations):
        return [e for e in self.events
                if e.get("cat") == "ac2g" and e.get("id") in correlations]

    def slow(self, op, factor):
        for e in self.work(op):
            e["dur"] = round(e["dur"] * factor, 3)

    def remove(self, op):
        gone = {id(e) for e in self.inside(op) + self.work(op) +
                self.flows(self.correlations(op))}
        self.events[:] = [e for e in self.events if id(e) not in gone]

    def add(self, op):
        """Calls an op a second time, right behind itself."""
        correlations = self.correlations(op)
        new = copy.deepcopy(self.inside(op) + self.work(op) +
                            self.flows(correlations))
        at = end(op)
        shift = round(op["dur"] + 1, 3)
        first = 1 + max(e.get("args", {}).get("correlation", 0) or 0
                        for e in self.events)
        ids = {c: first + i for i, c in enumerate(sorted(correlations))}
        for e in self.events:
            if "ts" not in e:
                continue
            if e["ts"] >= at:
                e["ts"] = round(e["ts"] + shift, 3)
            elif e.get("cat") in HOST and "dur" in e and end(e) >= at and \
                    e is not op and e["ts"] <= op["ts"] and \
                    end(e) > end(op):
                e["dur"] = round(e["dur"] + shift, 3)
        for e in new:
            e["ts"] = round(e["ts"] + shift, 3)
            if e.get("cat") == "ac2g":
                e["id"] = ids[e["id"]]
            elif "correlation" in e.get("args", {}):
                e["args"]["correlation"] = ids[e["args"]["correlation"]]
        self.events.extend(new)

    def swap(self, first, second):
        """Exchanges two spans that follow one another on a thread."""
        left, right = self.inside(first), self.inside(second)
        left += self.flows_at(first)
        right += self.flows_at(second)
        back = second["ts"] - first["ts"]
        ahead = end(second) - end(first)
        for e in right:
            e["ts"] = round(e["ts"] - back, 3)
        for e in left:
            e["ts"] = round(e["ts"] + ahead, 3)

    def flows_at(self, outer):
        return [e for e in self.events if e.get("cat") == "ac2g" and
                e.get("ph") == "s" and e["tid"] == outer["tid"] and
                outer["ts"] <= e["ts"] <= end(outer)]
