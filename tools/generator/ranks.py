# SPDX-License-Identifier: Apache-2.0
"""Runs workloads of many ranks together: a collective ends on all members at
once, when the last has come and the data is moved."""


def run_together(workloads):
    """`workloads` are generators of Collective, in rank order."""
    waiting = {}  # index -> its Collective
    active = dict(enumerate(workloads))
    while active:
        for index in list(active):
            if index in waiting:
                continue
            try:
                waiting[index] = next(active[index])
            except StopIteration:
                del active[index]
        meetings = {}
        for index, call in waiting.items():
            meetings.setdefault((call.group, call.sequence), []).append(index)
        if not active and not waiting:
            return
        ready = {key: members for key, members in meetings.items()
                 if len(members) == (waiting[members[0]].size or len(active))}
        if not ready and active:
            raise RuntimeError(f"collectives do not meet: {meetings}")
        for members in ready.values():
            calls = [waiting.pop(index) for index in members]
            end = max(c.arrived_ns for c in calls) + calls[0].transfer_ns
            for call in calls:
                call.finish(end + call.late_end_ns)
