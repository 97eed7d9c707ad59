// SPDX-License-Identifier: Apache-2.0
//
// lamina._core: the C++ library for Python. Tables as arrays of numpy that
// point into them, as streams of Arrow, and calls that let other threads of
// Python run and end on Ctrl-C. What reads well in Python is in lamina/*.py.
//
// Why it is longer than 250 lines: one module, and a function for each name.
#include <future>
#include <lamina/arrow.h>
#include <lamina/session.h>
#include <mutex>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include "table/text_codes.h"

namespace py = pybind11;

namespace {

// A text of the trace: broken UTF-8 becomes U+FFFD.
py::str Text(std::string_view text) {
  PyObject* const out = PyUnicode_DecodeUTF8(
      text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (out == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(out);
}

[[noreturn]] void Raise(const lamina::Error& error) {
  static constexpr const char* kNames[] = {"usage",     "input", "check",
                                           "cancelled", "limit", "internal"};
  const auto kind = static_cast<size_t>(error.kind);
  const py::object made =
      py::module_::import("lamina._errors")
          .attr("make")(kind < std::size(kNames) ? kNames[kind] : "",
                        Text(error.ToString()), Text(error.what),
                        Text(error.hint), Text(error.file), error.line,
                        error.column);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  throw py::error_already_set();
}

template <class T>
T Get(lamina::Result<T> result) {
  if (!result) Raise(result.error());
  return *std::move(result);
}

void Check(const lamina::Status& status) {
  if (!status) Raise(status.error());
}

// Runs `work(progress)` on a thread of its own. This one waits for it without
// the interpreter's lock, looks for signals ten times a second and calls
// `progress`; what either raises ends the work and is raised here.
template <class Work>
auto Run(const lamina::StopSource& stop, const py::object& progress,
         Work work) {
  struct Latest {
    std::mutex mutex;
    std::string stage;
    uint64_t done = 0, total = 0;
    bool news = false;
  };
  Latest latest;
  lamina::ProgressFunction tell;
  if (!progress.is_none()) {
    tell = [&latest](const lamina::Progress& now) {
      const std::lock_guard lock(latest.mutex);
      latest.stage = now.stage;
      latest.done = now.done;
      latest.total = now.total;
      latest.news = true;
    };
  }
  auto future = std::async(std::launch::async, [&] { return work(tell); });
  try {
    while (true) {
      bool ready = false;
      {
        const py::gil_scoped_release release;
        ready = future.wait_for(std::chrono::milliseconds(100)) ==
                std::future_status::ready;
      }
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (!progress.is_none()) {
        Latest now;
        {
          const std::lock_guard lock(latest.mutex);
          now.stage = latest.stage;
          now.done = latest.done;
          now.total = latest.total;
          now.news = std::exchange(latest.news, false);
        }
        if (now.news) progress(now.stage, now.done, now.total);
      }
      if (ready) return future.get();
    }
  } catch (...) {
    stop.Stop();
    const py::gil_scoped_release release;
    if (future.valid()) future.wait();
    throw;
  }
}

struct PyTable {
  std::shared_ptr<const lamina::Table> table;
  std::map<size_t, py::tuple> codes;  // what TextCodes() gave

  const lamina::Column& Column(size_t column) const {
    if (column >= table->columns()) throw py::index_error("no such column");
    return table->schema().columns[column];
  }
};

py::list Columns(const PyTable& self) {
  py::list out;
  for (const lamina::Column& column : self.table->schema().columns) {
    static constexpr const char* kTypes[] = {"text", "int", "real", "bool",
                                             "int"};
    out.append(py::make_tuple(Text(lamina::NameInNs(column)),
                              kTypes[static_cast<size_t>(column.type)],
                              Text(column.doc)));
  }
  return out;
}

// An array over memory of the table, which it keeps alive; nobody may write.
template <class T>
py::array ArrayOver(const PyTable& self, std::span<const T> items) {
  auto* const kept = new std::shared_ptr<const lamina::Table>(self.table);
  const py::capsule base(kept, [](void* pointer) {
    delete static_cast<std::shared_ptr<const lamina::Table>*>(pointer);
  });
  static constexpr T kNothing{};
  py::array_t<T> out(static_cast<py::ssize_t>(items.size()),
                     items.empty() ? &kNothing : items.data(), base);
  out.attr("flags").attr("writeable") = false;
  return out;
}

py::array Numbers(const PyTable& self, size_t column) {
  const lamina::Column& info = self.Column(column);
  const lamina::ColumnView view = self.table->View(column);
  if (info.type == lamina::ColumnType::kText)
    throw py::type_error("a column of texts has codes()");
  if (info.type == lamina::ColumnType::kReal)
    return ArrayOver(self, view.reals);
  return ArrayOver(self, view.ints);
}

// True where a cell is null; None when there is no null.
py::object Nulls(const PyTable& self, size_t column) {
  self.Column(column);
  const lamina::ColumnView view = self.table->View(column);
  if (view.present.empty()) return py::none();
  py::array_t<bool> out(static_cast<py::ssize_t>(self.table->rows()));
  bool* const cells = out.mutable_data();
  for (size_t row = 0; row < self.table->rows(); ++row)
    cells[row] = view.IsNull(row);
  return out;
}

// The codes of a column of texts, -1 for null, and the texts that they count.
py::tuple Codes(PyTable& self, size_t column) {
  if (self.Column(column).type != lamina::ColumnType::kText)
    throw py::type_error("a column of numbers has numbers()");
  if (const auto it = self.codes.find(column); it != self.codes.end())
    return it->second;
  auto found =
      std::make_unique<lamina::TextCodes>(lamina::CodesOf(*self.table, column));
  py::list texts;
  for (const uint32_t text : found->texts)
    texts.append(Text(self.table->Text(text)));
  const auto size = static_cast<py::ssize_t>(found->codes.size());
  const int32_t* const data = found->codes.data();
  static constexpr int32_t kNothing = 0;
  const py::capsule base(found.release(), [](void* pointer) {
    delete static_cast<lamina::TextCodes*>(pointer);
  });
  py::array_t<int32_t> codes(size, size == 0 ? &kNothing : data, base);
  codes.attr("flags").attr("writeable") = false;
  const py::tuple out = py::make_tuple(codes, texts);
  self.codes.emplace(column, out);
  return out;
}

// A capsule as the Arrow PyCapsule interface wants it: whoever takes what is
// inside marks it as released.
template <class T>
py::capsule Capsule(std::unique_ptr<T> exported, const char* name) {
  PyObject* const out =
      PyCapsule_New(exported.get(), name, [](PyObject* capsule) {
        auto* const kept = static_cast<T*>(
            PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
        if (kept->release != nullptr) kept->release(kept);
        delete kept;
      });
  if (out == nullptr) {
    exported->release(exported.get());
    throw py::error_already_set();
  }
  exported.release();
  return py::reinterpret_steal<py::capsule>(out);
}

py::capsule ArrowStream(const PyTable& self) {
  auto out = std::make_unique<ArrowArrayStream>();
  Check(lamina::ExportStream(self.table, out.get()));
  return Capsule(std::move(out), "arrow_array_stream");
}

py::capsule ArrowSchemaOf(const PyTable& self) {
  auto out = std::make_unique<ArrowSchema>();
  Check(lamina::ExportSchema(self.table->schema(), out.get()));
  return Capsule(std::move(out), "arrow_schema");
}

py::object OrNone(const std::optional<int64_t>& value) {
  return value ? py::object(py::int_(*value)) : py::none();
}

struct PySession {
  std::shared_ptr<lamina::Session> session;
  pid_t pid = getpid();

  // The locks of a session may have been held when the process was copied.
  lamina::Session& Ask() const {
    if (getpid() != pid) {
      throw std::runtime_error(
          "a trace that was opened before fork() cannot be asked after it: "
          "open it again");
    }
    return *session;
  }
};

PySession Open(const std::string& path, int threads, const std::string& rules,
               const std::string& device,
               const std::vector<std::string>& captures, bool captured_frames,
               const std::vector<std::string>& compiled, bool cache,
               const py::object& progress) {
  lamina::OpenOptions options;
  options.threads = threads;
  options.rules_dir = rules;
  options.device = device;
  options.captures = captures;
  options.captured_frames = captured_frames;
  options.compiled = compiled;
  options.cache = cache;
  options.stop.emplace();
  return {Get(Run(*options.stop, progress, [&](const auto& tell) {
    options.progress = tell;
    return lamina::Session::Open(path, options);
  }))};
}

py::dict Info(const PySession& self) {
  const lamina::TraceInfo& info = self.session->info();
  py::dict out;
  out["path"] = Text(info.path);
  out["format"] = Text(info.format);
  out["file_bytes"] = info.file_bytes;
  out["events"] = info.events;
  out["slices"] = info.slices;
  out["device_slices"] = info.device_slices;
  out["first_ns"] = info.first_ns;
  out["base_time_ns"] = OrNone(info.base_time_ns);
  out["rank"] = OrNone(info.rank);
  py::list devices;
  for (const std::string& device : info.devices) devices.append(Text(device));
  out["devices"] = devices;
  py::dict properties;
  for (const auto& [name, value] : info.properties)
    properties[Text(name)] = Text(value);
  out["properties"] = properties;
  return out;
}

PyTable TableOf(const PySession& self, const std::string& name,
                const py::object& progress) {
  lamina::Session& session = self.Ask();
  lamina::RunOptions options;
  options.stop.emplace();
  return {Get(Run(*options.stop, progress,
                  [&](const auto& tell) {
                    options.progress = tell;
                    return session.Get(name, options);
                  })),
          {}};
}

lamina::QueryOptions QueryOptionsOf(const py::dict& params, double time_limit,
                                    uint64_t max_rows, bool allow_temp) {
  lamina::QueryOptions options;
  options.time_limit =
      std::chrono::milliseconds(static_cast<int64_t>(time_limit * 1000 + 0.5));
  options.max_rows = max_rows;
  options.allow_temp = allow_temp;
  for (const auto& [name, value] : params) {
    lamina::Parameter& parameter = options.params[py::cast<std::string>(name)];
    if (value.is_none()) {
      parameter = std::monostate();
    } else if (py::isinstance<py::str>(value)) {
      parameter = py::cast<std::string>(value);
    } else if (PyIndex_Check(value.ptr()) != 0) {  // numpy's numbers, too
      parameter = py::cast<int64_t>(
          py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr())));
    } else {
      parameter = static_cast<double>(
          py::float_(py::reinterpret_borrow<py::object>(value)));
    }
  }
  options.stop.emplace();
  return options;
}

PyTable Query(const PySession& self, const std::string& sql,
              const py::dict& params, double time_limit, uint64_t max_rows,
              bool allow_temp) {
  lamina::Session& session = self.Ask();
  const lamina::QueryOptions options =
      QueryOptionsOf(params, time_limit, max_rows, allow_temp);
  return {Get(Run(*options.stop, py::none(),
                  [&](const auto&) { return session.Query(sql, options); })),
          {}};
}

PyTable QueryAll(const std::vector<std::pair<std::string, PySession>>& traces,
                 const std::string& sql, const py::dict& params,
                 double time_limit, uint64_t max_rows, bool allow_temp) {
  std::vector<lamina::NamedSession> sessions;
  for (const auto& [name, trace] : traces) {
    trace.Ask();
    sessions.push_back({name, trace.session});
  }
  const lamina::QueryOptions options =
      QueryOptionsOf(params, time_limit, max_rows, allow_temp);
  return {Get(Run(*options.stop, py::none(),
                  [&](const auto&) {
                    return lamina::Query(sessions, sql, options);
                  })),
          {}};
}

// Inputs, tables and notes.
py::tuple DocumentOf(const std::shared_ptr<const lamina::Document>& document) {
  py::list inputs;
  for (const std::string& input : document->inputs) inputs.append(Text(input));
  py::list tables;
  for (const lamina::Table& table : document->result.tables) {
    tables.append(
        PyTable{std::shared_ptr<const lamina::Table>(document, &table), {}});
  }
  py::list notes;
  for (const lamina::Note& note : document->result.notes) {
    py::list evidence;
    for (const lamina::Evidence& proof : note.evidence) {
      evidence.append(py::make_tuple(Text(proof.table), Text(proof.column),
                                     Text(proof.value), proof.events));
    }
    notes.append(py::make_tuple(
        Text(lamina::SeverityName(note.severity)), Text(note.id),
        Text(note.text), OrNone(note.worth_ns), Text(note.claim), evidence));
  }
  return py::make_tuple(inputs, tables, notes);
}

py::tuple Report(const PySession& self, const std::string& layout,
                 const std::vector<std::string>& only, bool recompute,
                 bool python_stacks, const std::string& link, bool overlaps,
                 int64_t short_kernel_ns, std::optional<int64_t> micro_idle_ns,
                 std::optional<int64_t> tokens, const py::object& progress) {
  lamina::Session& session = self.Ask();
  lamina::ReportOptions report;
  report.layout = layout;
  report.only = only;
  report.recompute = recompute;
  report.python_stacks = python_stacks;
  report.link = link;
  report.overlaps = overlaps;
  report.short_kernel_ns = short_kernel_ns;
  report.micro_idle_ns = micro_idle_ns;
  report.tokens = tokens;
  lamina::RunOptions options;
  options.stop.emplace();
  const std::shared_ptr<const lamina::Document> document =
      Get(Run(*options.stop, progress, [&](const auto& tell) {
        options.progress = tell;
        return session.Report(report, options);
      }));
  return DocumentOf(document);
}

py::str AnswerOf(const PySession& self, const py::object& progress) {
  lamina::Session& session = self.Ask();
  lamina::RunOptions options;
  options.stop.emplace();
  return Text(*Get(Run(*options.stop, progress, [&](const auto& tell) {
    options.progress = tell;
    return session.Answer(options);
  })));
}

void WritePage(const PySession& self, const std::string& path,
               const py::object& progress) {
  lamina::Session& session = self.Ask();
  lamina::RunOptions options;
  options.stop.emplace();
  Check(Run(*options.stop, progress, [&](const auto& tell) {
    options.progress = tell;
    return session.WritePage(path, options);
  }));
}

// What Python gives for a parameter: texts that are no Unicode do not come from
// it, numbers of numpy do.
lamina::ParamValue ValueOf(const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) return py::cast<bool>(value);
  if (py::isinstance<py::str>(value)) return py::cast<std::string>(value);
  if (PyIndex_Check(value.ptr()) != 0) {
    return py::cast<int64_t>(
        py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr())));
  }
  if (py::isinstance<py::list>(value))
    return py::cast<std::vector<std::string>>(value);
  return static_cast<double>(
      py::float_(py::reinterpret_borrow<py::object>(value)));
}

lamina::Params ParamsOf(const py::dict& given) {
  lamina::Params params;
  for (const auto& [name, value] : given)
    params.emplace(py::cast<std::string>(name), ValueOf(value));
  return params;
}

py::tuple AskTrace(const PySession& self, const std::string& question,
                   const py::dict& given, bool allow_write,
                   const py::object& progress) {
  lamina::Session& session = self.Ask();
  const lamina::Params params = ParamsOf(given);
  lamina::RunOptions options;
  options.allow_write = allow_write;
  options.stop.emplace();
  return DocumentOf(Get(Run(*options.stop, progress, [&](const auto& tell) {
    options.progress = tell;
    return session.Ask(question, params, options);
  })));
}

py::tuple AskAny(const std::string& question, const py::dict& given,
                 const std::vector<PySession>& traces, int threads,
                 const std::string& rules, bool cache, bool allow_write,
                 const py::object& progress) {
  const lamina::Params params = ParamsOf(given);
  lamina::AskOptions options;
  for (const PySession& trace : traces) {
    trace.Ask();
    options.open.push_back(trace.session);
  }
  options.threads = threads;
  options.rules_dir = rules;
  options.cache = cache;
  options.allow_write = allow_write;
  options.stop.emplace();
  return DocumentOf(Get(Run(*options.stop, progress, [&](const auto& tell) {
    options.progress = tell;
    return lamina::Ask(question, params, options);
  })));
}

py::list ListQuestions() {
  static constexpr const char* kTypes[] = {"flag", "int", "real", "text"};
  static constexpr const char* kRoles[] = {"value", "path", "output"};
  py::list out;
  for (const lamina::QuestionInfo& info : lamina::ListQuestions()) {
    py::list params;
    for (const lamina::ParamInfo& param : info.params) {
      params.append(py::make_tuple(param.name, param.option, param.doc,
                                   kTypes[static_cast<size_t>(param.type)],
                                   kRoles[static_cast<size_t>(param.role)],
                                   param.required, param.many, param.choices,
                                   param.low, param.high, param.default_text,
                                   param.at_opening));
    }
    out.append(py::make_tuple(info.name, info.command, info.title, info.doc,
                              params, info.of_trace, info.writes));
  }
  return out;
}

py::list ListTables() {
  py::list out;
  for (const lamina::TableInfo& info : lamina::ListTables()) {
    py::list columns;
    for (const lamina::Column& column : info.schema.columns) {
      static constexpr const char* kTypes[] = {"text", "int", "real", "bool",
                                               "int"};
      columns.append(py::make_tuple(
          column.name, kTypes[static_cast<size_t>(column.type)], column.doc));
    }
    out.append(py::make_tuple(info.schema.name, info.schema.doc, info.kind,
                              info.cost, columns));
  }
  return out;
}

}  // namespace

PYBIND11_MODULE(_core, m) {
  m.attr("version") = std::string(lamina::Version());
  m.def("list_tables", &ListTables);
  m.def("open", &Open);
  m.def("query", &QueryAll);
  m.def("list_questions", &ListQuestions);
  m.def("ask", &AskAny);
  py::class_<PyTable>(m, "Table")
      .def_property_readonly(
          "name", [](const PyTable& self) { return Text(self.table->name()); })
      .def_property_readonly(
          "doc",
          [](const PyTable& self) { return Text(self.table->schema().doc); })
      .def_property_readonly("columns", &Columns)
      .def("__len__", [](const PyTable& self) { return self.table->rows(); })
      .def("numbers", &Numbers)
      .def("nulls", &Nulls)
      .def("codes", &Codes)
      .def("arrow_stream", &ArrowStream)
      .def("arrow_schema", &ArrowSchemaOf);
  py::class_<PySession>(m, "Session")
      .def_property_readonly("info", &Info)
      .def("table", &TableOf)
      .def("query", &Query)
      .def("report", &Report)
      .def("answer", &AnswerOf)
      .def("page", &WritePage)
      .def("ask", &AskTrace);
}
