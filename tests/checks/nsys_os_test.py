#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the operating system recorded of threads (OSRT_API, SCHED_EVENTS of an
export of Nsight Systems): the table that says what the host did in an idle gap
against a slow twin, to the nanosecond, on made exports with damaged rows.

usage: nsys_os_test.py LAMINA [FIRST_SEED [SEEDS]]
"""
import json
import pathlib
import random
import sqlite3
import sys

from common import Checks, Exact, lamina, temporary
from profilers import Strings, insert

PID = 77 << 24
MAIN, HELPER, SLEEPER, STRANGER = PID | 1, PID | 2, PID | 3, (99 << 24) | 9
MS = 1_000_000

# What rules know of the names below; the others have none.
RULES = {"read": "file_io", "fopen64": "file_io", "mmap": "host_memory",
         "poll": "waits_for_thread", "futex": "waits_for_thread",
         "pthread_cond_wait": "waits_for_thread",
         "pthread_mutex_lock": "waits_for_thread", "recvmsg": "messages",
         "enumerate(DataLoader)#Iter.__next__": "data_loader",
         "aten::item": "read_device_value"}
OS_NAMES = ["read", "fopen64", "mmap", "poll", "futex", "pthread_cond_wait",
            "pthread_mutex_lock", "recvmsg", "ioctl", "backtrace", "open"]
RANGES = ["aten::mm", "aten::item", "aten::add", "phase one",
          "enumerate(DataLoader)#Iter.__next__", "epoch"]
STATES = {1: "preempted", 2: "blocked", 3: "blocked", 4: "blocked",
          5: "gone", 6: "off", 7: "blocked", 8: "blocked", 0: "off",
          99: "off", None: "off"}


class Export:
    """A made recording, and what a reader has to see of it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.kernels, self.calls, self.ranges = [], [], []
        self.os_rows, self.sched = [], []  # as they are written
        self.counts = {}  # of trace_health
        self.plain = self.random.random() < 0.25  # an older export
        self.enum = not self.plain and self.random.random() < 0.5
        self.make()

    def length(self, least, most):
        return int(least * (most / least) ** self.random.random())

    def count(self, reason, by=1):
        self.counts[reason] = self.counts.get(reason, 0) + by

    def make(self):
        draw = self.random
        now, free = 1000 + draw.randrange(1000), 0
        for number in range(1, 25):
            now = self.stretch(now)
            duration = draw.randrange(4000, 6000)
            self.calls.append((now, now + duration, MAIN, number,
                               "cudaLaunchKernel"))
            start = max(now + draw.randrange(7000, 9000), free)
            free = start + self.length(2000, 200_000)
            self.kernels.append((start, free, number))
            now += duration + draw.randrange(100, 2000)
        self.end = now
        self.background()
        self.schedule()
        self.damage()
        draw.shuffle(self.sched)

    def stretch(self, now):
        """What the launching thread does before a launch."""
        for _ in range(self.random.randrange(0, 3)):
            start = now + self.random.randrange(50, 5000)
            end = start + self.length(2000, 2 * MS)
            kind = self.random.randrange(4)
            if kind == 0:
                self.calls.append((start, end, MAIN, 0,
                                   "cudaStreamIsCapturing"))
            elif kind < 3:
                name = self.random.choice(RANGES)
                self.ranges.append((start, end, MAIN, name))
            self.inside(start, end, 0)
            now = end + (self.length(100, 3 * MS)
                         if self.random.random() < 0.5 else 10)
        return now

    def inside(self, start, end, depth):
        """Calls of the system, one within another."""
        at = start
        while depth < 3 and self.random.random() < 0.7:
            begin = at + self.random.randrange(0, max(1, (end - at) // 3))
            stop = begin + self.random.randrange(0, max(1, end - begin))
            self.os_rows.append((begin, stop, MAIN,
                                 self.random.choice(OS_NAMES)))
            self.inside(begin, stop, depth + 1)
            at = stop
            if at >= end:
                break

    def background(self):
        """Other threads: one works now and then, one never wakes."""
        at = self.random.randrange(0, MS)
        while at < self.end:
            end = at + self.length(1000, 2 * MS)
            self.ranges.append((at, end, HELPER, "aten::copy_"))
            at = end + self.length(10_000, 4 * MS)
        self.os_rows.append((500, None, SLEEPER, "pthread_cond_wait"))
        self.count("os_call_without_end")

    def schedule(self):
        for thread in (MAIN, HELPER, STRANGER):
            if thread == MAIN and self.random.random() < 0.2:
                continue
            at, on = self.random.randrange(-5000, MS), True
            while at < self.end + MS:
                state = None if on else self.random.choice(list(STATES))
                self.sched.append((at, int(on) * 3, thread, state))
                at += self.length(100, 3 * MS)
                # Now and then a record is lost.
                on = on if self.random.random() < 0.05 else not on

    def damage(self):
        draw, rows = self.random, self.os_rows
        rows.append((None, 700, MAIN, "read"))
        rows.append((9000, 8000, MAIN, "read"))
        rows.append(("soon", 8000, MAIN, "read"))
        self.count("time_out_of_range", 3)
        rows.append((9000, 9500, None, "read"))
        self.count("os_call_without_thread")
        for _ in range(3):  # overlaps that no program makes
            start = draw.randrange(1000, self.end)
            rows.append((start, start + self.length(1000, MS), MAIN,
                         draw.choice(OS_NAMES)))
        start = draw.randrange(1000, self.end)
        rows.append((start, start + 5000, MAIN, None))  # not in StringIds
        self.count("os_call_without_name")
        if draw.random() < 0.3:  # the launching thread hangs at the end
            rows.append((self.end - 1000, None, MAIN, "futex"))
            self.count("os_call_without_end")
        draw.shuffle(rows)
        self.sched += [(None, 1, MAIN, None), (5000, None, MAIN, 1),
                       (5000, 1, None, None)]
        self.count("thread_state_unusable", 3)
        self.count("thread_states_of_others")

    def write(self, path):
        strings = Strings()
        work = [(s, e, 0, 7, c, PID, strings["gemm"])
                for s, e, c in self.kernels]
        calls = [(s, e, t, c or None, strings[n + "_v7000"])
                 for s, e, t, c, n in self.calls]
        ranges = [(s, e, 59, n + (f", op_id = {i}" if "::" in n else ""), t)
                  for i, (s, e, t, n) in enumerate(self.ranges)]
        os_rows = [(s, e, t, 10 ** 6 if n is None else strings[n])
                   for s, e, t, n in self.os_rows]
        with sqlite3.connect(path) as db:
            insert(db, "CUPTI_ACTIVITY_KIND_KERNEL", "start, end, deviceId, "
                   "streamId, correlationId, globalPid, demangledName", work)
            insert(db, "CUPTI_ACTIVITY_KIND_RUNTIME", "start, end, globalTid, "
                   "correlationId, nameId", calls)
            insert(db, "NVTX_EVENTS", "start, end, eventType, text, globalTid",
                   ranges)
            if self.plain:
                insert(db, "OSRT_API", "start, end, globalTid, nameId",
                       os_rows)
                insert(db, "SCHED_EVENTS", "id integer primary key, start, "
                       "cpu, isSchedIn, globalTid",
                       [(i, s, 0, on, t)
                        for i, (s, on, t, _) in enumerate(self.sched)])
            else:
                insert(db, "OSRT_API", "start, end, eventClass, globalTid, "
                       "correlationId, nameId, returnValue, nestingLevel, "
                       "callchainId",
                       [(s, e, i % 3 * 400 + 27, t, i, n, 0, 0, None)
                        for i, (s, e, t, n) in enumerate(os_rows)])
                insert(db, "SCHED_EVENTS", "start, cpu, isSchedIn, globalTid, "
                       "threadState, threadBlock",
                       [(s, 0, on, t, why, None)
                        for s, on, t, why in self.sched])
            if self.enum:  # numbers may change; the names count
                names = ["Unknown", "Running", "Interruptible",
                         "Uninterruptible", "Stopped", "Terminated",
                         "Unscheduled", "Waiting", "OSRuntime"]
                insert(db, "ENUM_SAMPLING_THREAD_STATE", "id, name, label",
                       [(i, n, n) for i, n in enumerate(names)])
            insert(db, "ThreadNames", "globalTid, nameId",
                   [(HELPER, strings["autograd"])])
            insert(db, "StringIds", "id integer primary key, value",
                   strings.rows())


class Twin:
    """The same answer, every instant looked at on its own."""

    def __init__(self, export):
        self.export = export
        self.counts = dict(export.counts)
        usable = [[s, e, t, n or "(unnamed call)"]
                  for s, e, t, n in export.os_rows
                  if isinstance(s, int) and t is not None and
                  (e is None or e >= s)]
        spans = [r[:2] for r in export.kernels + export.calls + export.ranges]
        spans += [(s, s if e is None else e) for s, e, _, _ in usable]
        self.first = min(s for s, _ in spans)
        self.last = max(e for _, e in spans)
        for row in usable:
            row[1] = self.last if row[1] is None else row[1]
        self.os = self.cut(usable)
        self.states = self.states_of(MAIN)
        self.states_of(HELPER)
        if export.plain:
            self.counts["thread_states_plain"] = 1

    def cut(self, rows):
        """Calls of a thread that overlap: the earlier ends."""
        rows.sort(key=lambda r: (r[2], r[0], -r[1]))
        for i, row in enumerate(rows):
            for outer in rows[:i]:
                if outer[2] == row[2] and row[0] < outer[1] < row[1]:
                    outer[1] = row[0]
                    self.count("os_calls_overlap")
        return rows

    def count(self, reason):
        self.counts[reason] = self.counts.get(reason, 0) + 1

    def states_of(self, thread):
        rows = [(s, bool(on), why) for s, on, t, why in self.export.sched
                if t == thread and s is not None and on is not None]
        rows.sort(key=lambda r: r[0])
        states = []
        for row, behind in zip(rows, rows[1:] + [None]):
            start, on, why = row
            if behind and behind[1] == on:
                self.count("thread_state_unpaired")
                continue
            what = "running" if on else \
                "off" if self.export.plain else STATES[why]
            end = min(behind[0] if behind else self.last, self.last)
            start = max(start, self.first)
            if what != "gone" and end > start:
                states.append((start, end, what))
        return states

    def near(self):
        """Events of the thread that reach into the time in question, with what
        they are. One that outlasts what is around it ends with that, if that
        does."""
        events = [(s, e, "op" if "::" in n else "annotation", n)
                  for s, e, t, n in self.export.ranges if t == MAIN]
        events += [(s, e, "call", n) for s, e, t, _, n in self.export.calls]
        events += [(s, e, "os", n) for s, e, t, n in self.os if t == MAIN]
        events = [x for x in events if x[1] > x[0] and
                  any(x[0] < e and b < x[1] for b, e in self.wanted)]
        return sorted(events, key=lambda x: (x[0], -x[1]))

    def label(self, time):
        """(activity, name, whether anything of the thread covers it)."""
        rank = ["nothing", "os_call", "annotation", "python", "call", "op"]
        label, ends = ("nothing", ""), []
        open_labels, kinds = [], []
        for start, end, kind, name in self.events:
            if start > time:
                break
            # What goes on past a call of the system is not inside of it: two
            # recorders do not agree to the nanosecond.
            while ends and (ends[-1] <= start or (
                    kind != "os" and kinds[-1] == "os" and ends[-1] < end)):
                for of_open in (ends, open_labels, kinds):
                    of_open.pop()
            outer = open_labels[-1] if ends else ("nothing", "")
            end = min(end, ends[-1]) if ends else end
            known = outer[0] not in rank
            if end <= start:
                continue
            if kind == "os":
                if known or outer[0] == "call":
                    own = outer
                elif name in RULES:
                    own = (RULES[name], name)
                else:
                    own = outer if outer[0] != "nothing" else ("os_call", name)
                    own = ("os_call", name) if outer[0] == "os_call" else own
            elif name in RULES:
                own = (RULES[name], name)
            elif known:
                own = outer
            elif kind == "op":
                own = ("op", name)
            else:
                own = outer if rank.index(outer[0]) > rank.index(kind) \
                    else (kind, name)
            ends.append(end)
            open_labels.append(own)
            kinds.append(kind)
        while ends and ends[-1] <= time:
            ends.pop()
            open_labels.pop()
        return open_labels[-1] if ends else label

    def others(self):
        """Ops and calls per thread: what counts as work of another one."""
        out = {"1": [], "autograd": []}
        out["1"] += [r[:2] for r in self.export.calls]
        for s, e, t, n in self.export.ranges:
            if "::" in n:
                out["1" if t == MAIN else "autograd"].append((s, e))
        return out

    def gap(self, a, s):
        """Pieces of the time before the launch in which nothing changes."""
        marks = {a, s}
        host = [r[:2] for r in self.export.calls + self.export.ranges]
        own = [(b, e) for b, e, t, _ in self.os if t == MAIN]
        on = [(b, e) for b, e, w in self.states
              if w in ("running", "preempted")]
        for b, e in host + own + [x[:2] for x in self.states]:
            marks |= {b, e}
        marks = sorted(m for m in marks if a <= m <= s)
        pieces = []
        for b, e in zip(marks, marks[1:]):
            def within(intervals):
                return any(x <= b and e <= y for x, y in intervals)
            state = next((x for x in self.states if x[0] <= b < x[1]), None)
            pieces.append([b, e, within(host), within(own) or within(on),
                           state])
        quiet = sum(p[1] - p[0] for p in pieces if not p[2] and not p[3])
        if quiet < MS:
            quiet = 0
        return [(*p, bool(quiet and not p[2] and not p[3])) for p in pieces]

    def labelled(self, pieces):
        """Parts: (start, end, cause, activity, detail)."""
        parts, silent = [], []
        for b, e, any_host, _, state, no_work in pieces:
            if no_work:
                parts.append((b, e, "no_work", None, None))
                silent = []
                continue
            what, name = self.label(b)
            plain = what in ("nothing", "os_call", "annotation", "call", "op")
            if state and state[2] == "preempted":
                what = "preempted"
            elif state and state[2] == "running":
                what = "running" if what == "nothing" else what
            elif state and plain:
                what = "blocked" if state[2] == "blocked" else "off_processor"
            if what in ("nothing", "blocked", "off_processor") and not name:
                # Which thread worked is asked of the whole of a silence.
                if not silent or silent[-1][1] != b or \
                        (silent[0][4], silent[0][5]) != (what, state):
                    silent = []
                silent.append([b, e, len(parts), any_host, what, state])
                parts.append(None)
                if any_host:
                    for x in silent:
                        if x[3]:
                            parts[x[2]] = (*x[:2], "host_bound",
                                           "other_thread", "?")
                else:
                    parts[-1] = (b, e, "host_bound", what, "")
                self.name(silent, parts)
            else:
                silent = []
                parts.append((b, e, "host_bound", what, name))
        return self.merged(parts)

    def name(self, silent, parts):
        begin, end = silent[0][0], silent[-1][1]
        who = ""
        if end - begin >= 100_000:
            most = 0
            for thread, intervals in sorted(self.others().items()):
                covered, reached = 0, begin
                for s, e in sorted(intervals):
                    s, e = max(s, reached), min(e, end)
                    if e > s:
                        covered += e - s
                        reached = e
                if covered > most:
                    most, who = covered, thread
        for x in silent:
            if x[3]:
                parts[x[2]] = (*x[:2], "host_bound", "other_thread", who)

    @staticmethod
    def merged(parts):
        out = []
        for part in parts:
            if out and out[-1][1] == part[0] and out[-1][2:] == part[2:]:
                out[-1] = (out[-1][0], *part[1:])
            else:
                out.append(part)
        return out

    def parts(self):
        launches = {c: s for s, _, _, c, n in self.export.calls if c}
        gaps, reached = [], None
        for start, end, number in sorted(self.export.kernels):
            if reached is not None and start > reached:
                stop = min(start, max(reached, launches[number]))
                if stop > reached:
                    gaps.append(self.gap(reached, stop))
            reached = end if reached is None else max(reached, end)
        self.wanted = [p[:2] for gap in gaps for p in gap if not p[5]]
        self.events = self.near()
        out = [part for gap in gaps for part in self.labelled(gap)]
        return [(b - self.first, e - b, *rest) for b, e, *rest in out]


def tables(command, trace, *args):
    return json.loads(lamina(command, trace, "--format", "json", *args).stdout,
                      parse_float=Exact)["tables"]


def parts_of(trace, *args):
    rows = tables("host", trace, "--only", "idle_parts", *args)["idle_parts"]
    found = []
    for r in rows:
        if r["cause"] not in ("host_bound", "no_work"):
            continue
        row = (r["start_us"].ns, r["dur_us"].ns, r["cause"], r["activity"],
               r["detail"])
        if r["cause"] == "host_bound":
            row = (*row[:3], row[3] or "", row[4] or "")
        found.append(row)
    return found


def check_random(checks, folder, seed):
    export = Export(seed)
    path = folder / f"made-{seed}.sqlite"
    export.write(path)
    twin = Twin(export)
    expected = [(*p[:3], p[3], p[4]) if p[2] == "no_work" else p
                for p in twin.parts()]
    found = parts_of(path)
    for have, want in zip(found, expected):
        if have != want:
            checks.equal(f"seed {seed}: part", have, want)
            break
    checks.equal(f"seed {seed}: parts", len(found), len(expected))
    checks.equal(f"seed {seed}: one thread", parts_of(path, "--threads", "1"),
                 found)
    # Sums of a stream take another way than the parts of a device.
    sums = {}
    for row in tables("host", path, "--by", "stream",
                      "--only", "idle_causes")["idle_causes"]:
        key = row["scope"], row["cause"]
        sums[key] = sums.get(key, 0) + row["time_us"].ns
    for cause in ("no_work", "host_bound"):
        checks.equal(f"seed {seed}: {cause} of the stream",
                     sums.get(("stream", cause)), sums.get(("device", cause)))
    health = {r["check"]: r["count"] for r in
              tables("report", path, "--only", "trace_health")["trace_health"]}
    checks.equal(f"seed {seed}: what was skipped or mended",
                 {k: health.get(k) for k in twin.counts}, twin.counts)
    return {p[3] for p in expected if p[3]}


def check_converted(checks, folder):
    """Written as another format it says the same."""
    path = folder / "made-3.sqlite"
    expected = parts_of(path)
    for name in ("out.json", "out.pftrace"):
        lamina("convert", path, "-o", folder / name)
        checks.equal(f"converted to {name}", parts_of(folder / name), expected)


def write_steps(path, state, with_states=True):
    """Steps of 20 launches; in three of them the thread leaves its processor
    for 2 ms inside an op, in a state."""
    strings, now, number = Strings(), 0, 0
    kernels, calls, ranges, sched = [], [], [], [(0, 0, 1, MAIN, None)]
    for step in range(6):
        begin = now
        for i in range(20):
            number += 1
            start = now + 100
            if i in (5, 9, 14):
                sched += [(start + 500, 0, 0, MAIN, state),
                          (start + 2 * MS, 0, 1, MAIN, None)]
                now += 2 * MS
            call = now + 5000
            calls.append((call, call + 4000, MAIN, number,
                          strings["cudaLaunchKernel_v7000"]))
            kernels.append((call + 8000, call + 38_000, 0, 7, number, PID,
                            strings["gemm"]))
            now = call + 5000
            name = ("aten::mm", "aten::add", "aten::mul")[i % 3]
            ranges.append((start, now, 59, f"{name}, op_id = {number}", MAIN))
            now += 30_000
        ranges.append((begin, now, 59, f"ProfilerStep#{step}", MAIN))
    with sqlite3.connect(path) as db:
        insert(db, "CUPTI_ACTIVITY_KIND_KERNEL", "start, end, deviceId, "
               "streamId, correlationId, globalPid, demangledName", kernels)
        insert(db, "CUPTI_ACTIVITY_KIND_RUNTIME", "start, end, globalTid, "
               "correlationId, nameId", calls)
        insert(db, "NVTX_EVENTS", "start, end, eventType, text, globalTid",
               ranges)
        if with_states:
            insert(db, "SCHED_EVENTS", "start, cpu, isSchedIn, globalTid, "
                   "threadState", sched)
        insert(db, "StringIds", "id integer primary key, value",
               strings.rows())


def check_finding(checks, folder):
    """Put aside by the scheduler: a fact. Asleep: not that finding. Without
    the scheduler: a guess."""
    for state, with_states, confidence in ((1, True, "fact"), (2, True, None),
                                           (1, False, "hint")):
        path = folder / f"steps-{state}-{with_states}.sqlite"
        write_steps(path, state, with_states)
        found = json.loads(lamina("diagnose", path, "--format",
                                  "json").stdout)["findings"]
        rows = [f for f in found if f["rule"] == "host.preempted"]
        checks.equal(f"state {state}, recorded {with_states}",
                     [f["confidence"] for f in rows],
                     [confidence] if confidence else [])


def main():
    checks = Checks()
    seen = set()
    with temporary() as out:
        folder = pathlib.Path(out)
        first, count = [*map(int, sys.argv[2:]), *(0, 12)[len(sys.argv) - 2:]]
        for seed in range(first, first + count):
            seen |= check_random(checks, folder, seed)
        check_converted(checks, folder)
        check_finding(checks, folder)
    for what in ("preempted", "blocked", "off_processor", "running", "os_call",
                 "file_io", "waits_for_thread", "data_loader", "other_thread",
                 "nothing", "op", "call"):
        checks.true(f"some part is {what}", what in seen)
    checks.finish()


main()
