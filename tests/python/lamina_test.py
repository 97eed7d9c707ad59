# SPDX-License-Identifier: Apache-2.0
"""The module against the program, and against its own promises."""
import ctypes
import csv
import gc
import inspect
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref

import lamina
import numpy
import pandas

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples/train_step.json.gz"


def program(*arguments):
    return subprocess.run([os.environ["LAMINA"], *map(str, arguments)],
                          capture_output=True, text=True, check=True).stdout


def from_program(sql):
    return list(csv.reader(io.StringIO(
        program("query", SAMPLE, sql, "--format", "csv"))))


class CompiledTest(unittest.TestCase):
    def test_kernels_say_what_they_compute(self):
        trace = ROOT / "samples/compiled.json"
        code = ROOT / "samples/dialects/torch_trace.log"
        sql = "SELECT uid, ops, lines FROM compiled_kernel ORDER BY uid"
        rows = list(csv.reader(io.StringIO(program(
            "query", trace, "--compiled", code, sql, "--format", "csv"))))
        with lamina.open(trace, compiled=[code]) as t:
            found = list(zip(*t.query(sql).to_dict().values()))
        self.assertGreater(len(found), 20)
        self.assertEqual([[str(row[0]), *row[1:]] for row in found], rows[1:])
        with lamina.open(trace) as t:
            self.assertEqual(len(t.table("compiled_kernel")), 0)
        with self.assertRaises(lamina.InputError):
            lamina.open(trace, compiled=["/nowhere"])


class TableTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.t = lamina.open(SAMPLE)

    def test_every_table_is_that_of_the_program(self):
        for info in lamina.list_tables():
            with self.subTest(info.name):
                table = self.t.table(info.name)
                self.assertEqual(table.columns, info.columns)
                if info.name == "kernel":  # also with the costly columns
                    continue
                rows = from_program(f"SELECT * FROM {info.name}")
                if not rows:
                    self.assertEqual(len(table), 0)
                    continue
                self.assertEqual(table.column_names, rows[0])
                self.assertEqual(len(table), len(rows) - 1)
                for found, expected in zip(table, rows[1:]):
                    for cell, text in zip(found, expected):
                        if isinstance(cell, float):
                            self.assertEqual(cell, float(text))
                        else:
                            self.assertEqual("" if cell is None else str(cell),
                                             text)

    def test_columns_are_the_memory_of_the_table(self):
        table = self.t.query("SELECT uid, dur_ns, dur_ns / 3.0 AS third, name "
                             "FROM kernel")
        for name, dtype in (("uid", "int64"), ("dur_ns", "int64"),
                            ("third", "float64")):
            column = table[name]
            self.assertEqual(column.dtype, dtype)
            self.assertFalse(column.flags.owndata)
            self.assertFalse(column.flags.writeable)
            again = table[name]
            self.assertEqual(column.__array_interface__["data"],
                             again.__array_interface__["data"])
            self.assertTrue(numpy.shares_memory(column, again))
        with self.assertRaises(ValueError):
            table["uid"][0] = 1
        names = table["name"]
        self.assertEqual(names.codes.dtype, "int32")
        self.assertTrue(numpy.shares_memory(names.codes,
                                            table["name"].codes))
        self.assertEqual(len(set(names.categories)), len(names.categories))
        # pandas takes them as they are.
        frame = table.to_pandas()
        self.assertTrue(numpy.shares_memory(frame["third"].to_numpy(),
                                            table["third"]))

    def test_columns_outlive_table_and_trace(self):
        trace = lamina.open(SAMPLE)
        column = trace.query("SELECT dur_ns FROM kernel ORDER BY uid")["dur_ns"]
        expected = column.tolist()
        gone = weakref.ref(trace)
        del trace
        gc.collect()
        self.assertIsNone(gone())
        self.assertEqual(column.tolist(), expected)
        self.assertEqual(sum(expected),
                         int(from_program("SELECT sum(dur_ns) FROM kernel")[1][0]))

    def test_nulls(self):
        table = self.t.query(
            "SELECT * FROM (VALUES (1, 1.5, 'a'), (NULL, NULL, NULL), "
            "(3, 2.5, '')) ")
        self.assertEqual([tuple(row) for row in table],
                         [(1, 1.5, "a"), (None, None, None), (3, 2.5, "")])
        numbers = table["column1"]
        self.assertEqual(numbers.mask.tolist(), [False, True, False])
        frame = table.to_pandas()
        self.assertEqual([str(d) for d in frame.dtypes],
                         ["Int64", "Float64", "category"])
        self.assertEqual(frame.isna().sum().tolist(), [1, 1, 1])
        self.assertEqual(table[1], (None, None, None))
        self.assertEqual(table[-1].column2, 2.5)

    def test_pandas_is_the_csv(self):
        rows = from_program("SELECT * FROM kernels")
        frame = self.t.kernels.to_pandas()
        expected = pandas.read_csv(io.StringIO(program(
            "query", SAMPLE, "SELECT * FROM kernels", "--format", "csv")),
            float_precision="round_trip")
        self.assertEqual(list(frame.columns), rows[0])
        for name in frame.columns:
            self.assertEqual(
                frame[name].astype(object).where(frame[name].notna(), None)
                .tolist(),
                expected[name].astype(object).where(expected[name].notna(),
                                                    None).tolist(), name)
        us = self.t.kernels.to_pandas(time="us")
        self.assertIn("kernel_time_us", us)
        self.assertEqual((us["kernel_time_us"] * 1000).round().tolist(),
                         frame["kernel_time_ns"].tolist())
        delta = self.t.kernels.to_pandas(time="timedelta")
        self.assertEqual(delta["kernel_time"].sum().value,
                         frame["kernel_time_ns"].sum())
        with self.assertRaises(lamina.UsageError):
            self.t.kernels.to_pandas(time="hours")

    def test_empty_results(self):
        table = self.t.query("SELECT uid, name FROM kernel WHERE 0")
        self.assertEqual(len(table), 0)
        self.assertEqual(list(table), [])
        self.assertEqual(list(table.to_pandas().columns), ["uid", "name"])
        repr(table), table._repr_html_(), table.__arrow_c_stream__()

    def test_notebook_escapes(self):
        table = self.t.query("SELECT '<script>&' AS \"<b>\"")
        page = table._repr_html_()
        self.assertNotIn("<script>", page)
        self.assertNotIn("<b>", page)
        self.assertIn("&lt;script&gt;&amp;", page)

    def test_broken_utf8_is_repaired(self):
        table = self.t.query("SELECT cast(x'61ff62' AS TEXT) AS t")
        self.assertEqual(table["t"][0], "a\ufffdb")


class ArrowTest(unittest.TestCase):
    """A consumer in ctypes that knows the interface alone."""

    class Schema(ctypes.Structure):
        pass

    class Array(ctypes.Structure):
        pass

    class Stream(ctypes.Structure):
        pass

    Schema._fields_ = [
        ("format", ctypes.c_char_p), ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
        ("dictionary", ctypes.POINTER(Schema)),
        ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))),
        ("private_data", ctypes.c_void_p)]
    Array._fields_ = [
        ("length", ctypes.c_int64), ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        ("children", ctypes.POINTER(ctypes.POINTER(Array))),
        ("dictionary", ctypes.POINTER(Array)),
        ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))),
        ("private_data", ctypes.c_void_p)]
    Stream._fields_ = [
        ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream),
                                        ctypes.POINTER(Schema))),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream),
                                      ctypes.POINTER(Array))),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))),
        ("private_data", ctypes.c_void_p)]

    def pointer(self, capsule, name, kind):
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype = ctypes.c_void_p
        get.argtypes = [ctypes.py_object, ctypes.c_char_p]
        return ctypes.cast(get(capsule, name), ctypes.POINTER(kind))

    def test_stream(self):
        table = lamina.open(SAMPLE).query(
            "SELECT uid, dur_ns / 2.0 AS half, name FROM kernel")
        capsule = table.__arrow_c_stream__()
        stream = self.pointer(capsule, b"arrow_array_stream", self.Stream)
        schema, array = self.Schema(), self.Array()
        self.assertEqual(stream[0].get_schema(stream, ctypes.byref(schema)), 0)
        self.assertEqual([schema.children[i][0].name for i in range(3)],
                         [b"uid", b"half", b"name"])
        self.assertEqual([schema.children[i][0].format for i in range(3)],
                         [b"l", b"g", b"i"])
        self.assertEqual(schema.children[2][0].dictionary[0].format, b"U")
        schema.release(ctypes.byref(schema))
        self.assertEqual(stream[0].get_next(stream, ctypes.byref(array)), 0)
        self.assertEqual(array.length, len(table))
        uids = table["uid"]
        self.assertEqual(array.children[0][0].buffers[1],
                         uids.__array_interface__["data"][0])
        # The array outlives the stream, the table and the trace.
        stream[0].release(stream)
        expected = list(table["name"])
        del capsule, table, uids
        gc.collect()
        names = array.children[2][0]
        codes = (ctypes.c_int32 * array.length).from_address(names.buffers[1])
        texts = names.dictionary[0]
        ends = (ctypes.c_int64 * (texts.length + 1)).from_address(
            texts.buffers[1])
        found = [ctypes.string_at(texts.buffers[2] + ends[c],
                                  ends[c + 1] - ends[c]).decode()
                 for c in codes]
        self.assertEqual(found, expected)
        array.release(ctypes.byref(array))
        self.assertFalse(array.release)

    def test_capsules_that_nobody_takes(self):
        table = lamina.open(SAMPLE).query("SELECT name FROM kernel")
        for _ in range(100):
            table.__arrow_c_stream__()
            table.__arrow_c_schema__()

    def test_pyarrow_and_polars_where_they_are(self):
        table = lamina.open(SAMPLE).kernels
        try:
            import pyarrow
        except ImportError:
            pass
        else:
            taken = pyarrow.RecordBatchReader.from_stream(table).read_all()
            taken.validate(full=True)
            self.assertEqual(taken.to_pydict(), table.to_dict())
        try:
            import polars
        except ImportError:
            pass
        else:
            self.assertEqual(
                polars.DataFrame(table).to_dict(as_series=False),
                table.to_dict())


class TraceTest(unittest.TestCase):
    def test_info(self):
        info = lamina.open(SAMPLE).info
        self.assertEqual(info.format, "kineto")
        self.assertEqual(info.path, str(SAMPLE))
        self.assertEqual(info.devices, ["NVIDIA H100 80GB HBM3"])
        self.assertEqual(info.device_slices, 212)

    def test_errors(self):
        with self.assertRaises(lamina.InputError) as caught:
            lamina.open("/nowhere/trace.json")
        self.assertIsInstance(caught.exception, OSError)
        self.assertEqual(caught.exception.kind, "input")
        t = lamina.open(SAMPLE)
        with self.assertRaises(lamina.UsageError) as caught:
            t.table("kernelz")
        self.assertIn("kernel", caught.exception.hint)
        with self.assertRaises(lamina.UsageError) as caught:
            t.query("SELECT name,\n  durr FROM kernel")
        self.assertEqual((caught.exception.line, caught.exception.column),
                         (2, 3))
        self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaises(lamina.UsageError):
            t.query("DELETE FROM slice")
        with self.assertRaises(lamina.LimitError):
            t.query("SELECT uid FROM kernel", max_rows=3)
        with self.assertRaises(lamina.LimitError):
            t.query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
                    "FROM n) SELECT count(*) FROM n", time_limit=0.05)
        with self.assertRaises(AttributeError):
            t.kernelz
        with self.assertRaises(KeyError):
            t.kernels.column("nam")
        with self.assertRaises(TypeError):
            t.query("SELECT :x", {"x": object()})
        self.assertEqual(t.query("SELECT 1 AS one")[0].one, 1)

    def test_parameters(self):
        row = lamina.open(SAMPLE).query(
            "SELECT :i AS i, :r AS r, :t AS t, :n AS n, :b AS b, :u AS u",
            {"i": 2**62, "r": 0.25, "t": "x'y", "n": None, "b": True,
             "u": numpy.int64(7)})[0]
        self.assertEqual(tuple(row), (2**62, 0.25, "x'y", None, 1, 7))

    def test_report(self):
        t = lamina.open(SAMPLE)
        report = t.report()
        self.assertIn("GPU is busy", report.verdict)
        self.assertEqual(
            report["kernels"]["kernel_time_ns"].sum(),
            int(from_program("SELECT sum(dur_ns) FROM kernel")[1][0]))
        only = t.report(only=["ops"], layout="native")
        self.assertEqual(list(only.tables), ["ops"])
        self.assertTrue(all(note.severity for note in only.notes))
        sheets = t.report(layout="tracelens", link="auto")
        self.assertIn("gpu_timeline", sheets.tables)

    def test_several_traces(self):
        a = lamina.open(SAMPLE)
        b = lamina.open(ROOT / "samples/moe.json.gz")
        row = lamina.query("SELECT (SELECT count(*) FROM a.kernel) AS a, "
                           "(SELECT count(*) FROM b.kernel) AS b", a=a, b=b)[0]
        self.assertEqual(row.a, a.info.device_slices)
        self.assertEqual(row.b, b.info.device_slices)
        with self.assertRaises(lamina.UsageError):
            lamina.query("SELECT 1")

    def test_progress_and_what_it_raises(self):
        told = []
        lamina.open(SAMPLE, progress=lambda *now: told.append(now))
        self.assertTrue(all(stage == "reading" for stage, _, _ in told))

        class Enough(Exception):
            pass

        def enough(*_):
            raise Enough
        t = lamina.open(SAMPLE)
        with self.assertRaises(Enough):
            t.table("kernels", progress=enough)
            t.report(progress=enough)
        self.assertGreater(len(t.kernels), 0)

    def test_control_c_ends_a_query(self):
        t = lamina.open(SAMPLE)
        timer = threading.Timer(
            0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            t.query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
                    "FROM n) SELECT count(*) FROM n")
        timer.join()
        self.assertEqual(t.query("SELECT 1 AS one")[0].one, 1)

    def test_threads(self):
        expected = lamina.open(SAMPLE).ops.to_dict()
        t = lamina.open(SAMPLE)
        wrong = []

        def ask(number):
            for _ in range(5):
                if t.ops.to_dict() != expected:
                    wrong.append(number)
                if t.query("SELECT :n AS n", {"n": number})[0].n != number:
                    wrong.append(number)
        threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_after_fork_it_says_so(self):
        t = lamina.open(SAMPLE)
        held = t.kernels
        child = os.fork()
        if child == 0:
            status = 1
            try:
                len(held.to_dict())
                t.query("SELECT 1")
            except RuntimeError:
                status = 0
            os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_nothing_leaks(self):
        t = lamina.open(SAMPLE)

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        for round_ in range(300):
            if round_ == 50:
                before = resident()
            table = t.query("SELECT * FROM slice")
            table["name"], table["dur_ns"], table.__arrow_c_stream__()
        # 250 rounds of a table of a quarter MB.
        self.assertLess(resident() - before, 20e6)


class QuestionTest(unittest.TestCase):
    """What the answers say is held by the check questions."""

    @classmethod
    def setUpClass(cls):
        cls.t = lamina.open(ROOT / "samples/serve.json.gz")

    def same(self, a, b):
        self.assertEqual({name: table.to_dict() for name, table in
                          a.tables.items()},
                         {name: table.to_dict() for name, table in
                          b.tables.items()})
        self.assertEqual(a.notes, b.notes)

    def test_questions_are_described(self):
        questions = {q.name: q for q in lamina.questions()}
        self.assertIn("graph_layer", questions)
        self.assertEqual(questions["graph_layer"].command, "graph layer")
        stage = next(p for p in questions["layers"].params
                     if p.name == "stage")
        self.assertEqual((stage.type, stage.role, stage.default, stage.option),
                         ("text", "value", "all", "--stage"))
        self.assertIn("decode", stage.choices)
        for question in questions.values():
            if question.of_trace and question.name not in ("report", "event"):
                method = getattr(lamina.Trace, question.name)
                keywords = inspect.signature(method).parameters
                for param in question.params:
                    name = param.name + ("_" if param.name == "from" else "")
                    self.assertEqual(
                        name in keywords,
                        param.name != "trace" and not param.at_opening)
                self.assertIn(question.doc.split(".")[0].split(" ")[0],
                              inspect.getdoc(method))

    def test_methods_ask(self):
        self.same(self.t.layers(stage="decode", layer=0),
                  self.t.ask("layers", stage="decode", layer="0"))
        self.same(self.t.layers(), lamina.ask(
            "layers", trace=ROOT / "samples/serve.json.gz"))
        self.same(self.t.tree(min_share=numpy.float64(2.5),
                              depth=numpy.int32(3)),
                  self.t.ask("tree", min_share=2.5, depth=3, by=None))
        self.assertIsNot(self.t.layers(), None)
        # Its tables are attributes and items.
        layers = self.t.layers(only=numpy.array(["passes"]))
        self.assertEqual(list(layers.tables), ["passes"])
        self.assertIs(layers.passes, layers["passes"])
        self.assertIn("passes", dir(layers))
        with self.assertRaisesRegex(AttributeError, "tables: passes"):
            layers.kernels
        with self.assertRaisesRegex(KeyError, "tables: passes"):
            layers["kernels"]

    def test_traces_that_are_open_are_not_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.json.gz"
            shutil.copyfile(ROOT / "samples/moe.json.gz", path)
            b = lamina.open(path, cache=False)
            expected = lamina.diff(ROOT / "samples/serve.json.gz", path)
            path.unlink()
            self.same(lamina.diff(self.t, b), expected)
            self.same(lamina.ask("layers", trace=b), b.layers())
            with self.assertRaises(lamina.InputError):
                lamina.diff(self.t, path)

    def test_others(self):
        d = lamina.dump(ROOT / "samples/dumps")
        self.assertEqual(repr(d), f"<Dump '{ROOT}/samples/dumps'>")
        self.same(d.layer(3), lamina.ask("graph_layer", layer=3,
                                         dump=ROOT / "samples/dumps"))
        self.same(d.census(), d.ask("graph_census"))
        first = lamina.dump(ROOT / "samples/dumps/001_export_export_to_gm.txt")
        self.same(first.diff(d.path), lamina.ask("graph_diff", a=first.path,
                                                 b=d.path))
        ranks = sorted(str(p) for p in (ROOT / "samples/ranks").glob("*gz")
                       if "truth" not in p.name)
        self.same(lamina.ranks(ranks), lamina.ranks(ROOT / "samples/ranks"))
        self.same(lamina.ranks(ranks, threads=1), lamina.ranks(ranks))
        replay = lamina.open(ROOT / "samples/graphs/replay.json.gz")
        self.same(replay.annotate(from_=ROOT / "samples/graphs/capture.json.gz"),
                  replay.ask("annotate", **{
                      "from": ROOT / "samples/graphs/capture.json.gz"}))
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "part.json"
            kept = self.t.slice(output, step=1)
            self.assertGreater(len(kept["slice"]), 0)
            self.assertGreater(lamina.open(output).info.slices, 0)
            with self.assertRaisesRegex(lamina.UsageError, "makes files"):
                self.t.ask("slice", output=output, step=1)

    def test_errors(self):
        for message, kind, ask in (
                ("did you mean 'layers'", lamina.UsageError,
                 lambda: self.t.ask("laers")),
                ("did you mean 'stage'", lamina.UsageError,
                 lambda: self.t.ask("layers", stge="decode")),
                ("none of its values", lamina.UsageError,
                 lambda: self.t.layers(stage="fast")),
                ("expected true or false", lamina.UsageError,
                 lambda: self.t.layers(variants="yes")),
                ("too large a number", lamina.UsageError,
                 lambda: self.t.tree(depth=2**70)),
                ("not a dict", lamina.UsageError,
                 lambda: self.t.tree(depth={})),
                ("not a bytes", lamina.UsageError,
                 lambda: self.t.layers(only=[b"passes"])),
                ("uid is missing", lamina.UsageError,
                 lambda: self.t.ask("event")),
                ("the trace is this one", lamina.UsageError,
                 lambda: self.t.ask("layers", trace=self.t)),
                ("decided when the trace is opened", lamina.UsageError,
                 lambda: self.t.ask("layers", capture="x")),
                ("no question to one trace", lamina.UsageError,
                 lambda: self.t.ask("ranks", paths="x")),
                ("cannot open", lamina.InputError,
                 lambda: lamina.ask("layers", trace="/nowhere.json"))):
            with self.subTest(message):
                with self.assertRaisesRegex(kind, message):
                    ask()

    def test_notebooks(self):
        shown = self.t.layers()._repr_html_()
        self.assertIn("<h4", shown)
        self.assertIn("<table>", shown)
        self.assertEqual(repr(self.t.ask("report")),
                         self.t.ask("report").verdict)
        cost = lamina.cost("aten::mm", "[[8,8],[8,8]]", "bf16")
        self.assertEqual(repr(cost), "<Report cost: cost (7)>")

    def test_threads(self):
        expected = {q: lamina.open(SAMPLE).ask(q).tables.keys()
                    for q in ("layers", "tree", "host", "diagnose")}
        t = lamina.open(SAMPLE)
        wrong = []

        def ask(number):
            for question, tables in expected.items():
                found = t.ask(question, top=number + 1).tables
                if found.keys() != tables:
                    wrong.append(question)
        threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_control_c_and_progress_end_the_reading(self):
        class Enough(Exception):
            pass

        def enough(stage, done, total):
            raise Enough
        with self.assertRaises(Enough):
            lamina.ranks(ROOT / "samples/ranks", progress=enough)
        with tempfile.TemporaryDirectory() as folder:
            # Nobody writes to it: the reading would wait for ever.
            path = pathlib.Path(folder) / "pipe.json"
            os.mkfifo(path)
            writer = threading.Timer(0.2, self.feed, (path,))
            writer.start()
            with self.assertRaises(KeyboardInterrupt):
                lamina.ask("layers", trace=path, cache=False)
            writer.join()
        self.assertGreater(len(self.t.layers().tables), 3)

    def feed(self, path):
        """Records without an end, until nobody reads them."""
        record = (b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,'
                  b'"ts":1,"dur":1,"args":{"device":0,"stream":7}},\n')
        with open(path, "wb") as pipe:
            pipe.write(b'{"traceEvents":[\n')
            try:
                for n in range(200):
                    pipe.write(record * 10000)
                    if n == 3:
                        os.kill(os.getpid(), signal.SIGINT)
            except BrokenPipeError:
                pass


class EventTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.t = lamina.open(SAMPLE)

    def test_walks(self):
        kernel = self.t.event(int(self.t.query(
            "SELECT min(uid) AS uid FROM kernel WHERE op = 'aten::mm'")[0].uid))
        self.assertEqual(kernel.kind, "kernel")
        self.assertEqual(kernel.op, "aten::mm")
        launch = kernel.launch
        self.assertIn(kernel, launch.launched)
        self.assertEqual(kernel.parent, launch)
        op = launch.parent
        self.assertEqual(op.name, "aten::mm")
        self.assertIn(launch, op.children)
        self.assertIn(kernel, op.kernels)
        self.assertIn(kernel, op.descendants("kernel"))
        self.assertEqual(op.device_time_ns,
                         sum(k.dur_ns for k in op.kernels))
        self.assertEqual(kernel.callstack[-1], kernel.name)
        self.assertEqual([e.name for e in kernel.ancestors][::-1],
                         kernel.callstack[:-1])
        self.assertTrue(op.dims.startswith("[["))
        self.assertEqual(op.end_ns - op.start_ns, op.dur_ns)
        with self.assertRaises(AttributeError):
            op.nothing
        with self.assertRaises(KeyError):
            self.t.event(10**9)

    def test_forward_and_backward(self):
        pair = self.t.query("SELECT * FROM forward_backward LIMIT 1")[0]
        forward = self.t.event(pair.forward_uid)
        self.assertEqual(forward.backward.uid, pair.backward_uid)
        self.assertEqual(forward.backward.forward, forward)

    def test_every_event_is_below_a_root(self):
        below = sum(1 + len([e for e in root.descendants()
                             if e.kind in ("op", "runtime", "driver")])
                    for root in self.t.roots)
        self.assertEqual(below,
                         self.t.query("SELECT count(*) AS n FROM node")[0].n)

    def test_events_by_condition(self):
        found = self.t.events("kind = 'kernel' AND dur_ns > :least",
                              {"least": 400_000})
        self.assertGreater(len(found), 4)
        self.assertTrue(all(e.dur_ns > 400_000 for e in found))


if __name__ == "__main__":
    unittest.main(verbosity=0 if len(sys.argv) < 2 else 2)
