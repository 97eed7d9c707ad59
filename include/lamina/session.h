// SPDX-License-Identifier: Apache-2.0
//
// A trace that is opened once and asked many times, from any thread.
//
//   auto session = lamina::Session::Open("trace.json.gz");
//   if (!session) return Say(session.error().ToString());
//   auto ops = (*session)->Get("ops");
//   auto slow = (*session)->Query(
//       "SELECT name, sum(dur_ns) AS ns FROM kernel GROUP BY name "
//       "ORDER BY ns DESC LIMIT 10");
//
// Tables have the names, columns and units of SQL: rows of the trace are
// singular (slice, op, kernel), tables of analyses plural (ops, kernels), and
// times are integers in nanoseconds, from the first event of the trace.
//
// Nothing here throws, prints, or stops the program for what it is given.
// Standard types cross the border of the library: a program and the library
// are built with the same standard library.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lamina/ask.h"
#include "lamina/engine.h"
#include "lamina/export.h"
#include "lamina/result.h"
#include "lamina/status.h"
#include "lamina/table.h"
#include "lamina/version.h"

namespace lamina {

// Ends work from another thread, or from a signal handler. Copies are one
// source; an operation that was told of it returns kCancelled soon, whether it
// reads, computes or waits for another thread that asks the same trace. What it
// had not finished is not kept; whoever asks next has it made.
class StopSource {
 public:
  StopSource() : flag_(std::make_shared<std::atomic<bool>>(false)) {}
  void Stop() const { flag_->store(true, std::memory_order_relaxed); }
  bool stopped() const { return flag_->load(std::memory_order_relaxed); }
  const std::atomic<bool>* flag() const { return flag_.get(); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

// How far work has come. Called from threads of the library, one at a time; it
// must return soon and not throw.
struct Progress {
  // "reading": in bytes, of many ranks in files; "analyses": in analyses
  std::string_view stage;
  uint64_t done = 0;
  uint64_t total = 0;  // 0: unknown
};
using ProgressFunction = std::function<void(const Progress&)>;

struct OpenOptions {
  int threads = 0;        // 0 or less: all cores; results do not depend on it
  std::string rules_dir;  // data files that extend the built-in ones
  std::string device;     // name or file; empty: what the trace says
  // Traces, or folders of them, in which the replayed graphs were captured;
  // with all their Python frames or only those of modules.
  std::vector<std::string> captures;
  bool captured_frames = false;
  // Output code of Inductor, logs that hold it, or folders of them: tables
  // compiled_kernel, compiled_kernels and compiled_nodes.
  std::vector<std::string> compiled;
  // Whether a large trace is kept in the cache of the user, as the program
  // does, and mapped from there when it is opened again; LAMINA_CACHE=off in
  // the environment overrules it. No result depends on it.
  bool cache = true;
  ProgressFunction progress;
  std::optional<StopSource> stop;
};

struct RunOptions {
  ProgressFunction progress;
  std::optional<StopSource> stop;
  bool allow_write = false;  // questions that make files
};

// The value of :name, @name or $name in a query; std::monostate is NULL.
using Parameter = std::variant<std::monostate, int64_t, double, std::string>;

struct QueryOptions {
  std::chrono::milliseconds time_limit{0};  // 0: none
  uint64_t max_rows = 0;                    // 0: any
  uint64_t max_bytes = 0;                   // of cells and texts; 0: any
  std::map<std::string, Parameter> params;
  bool allow_temp = false;  // TEMP tables and views, for this query
  std::optional<StopSource> stop;
};

struct TraceInfo {
  std::string path;         // as it was named
  std::string format;       // "kineto"; `lamina list formats` has all
  uint64_t file_bytes = 0;  // as stored
  uint64_t events = 0;      // records of every kind in the file
  uint64_t slices = 0;      // spans of time, on host and device
  uint64_t device_slices = 0;
  int64_t first_ns = 0;  // recorded time of the first event
  // Wall clock of recorded time 0, in nanoseconds since 1970.
  std::optional<int64_t> base_time_ns;
  std::optional<int64_t> rank;
  std::vector<std::string> devices;  // their names
  // Other facts that the profiler wrote: name and raw JSON text.
  std::vector<std::pair<std::string, std::string>> properties;
};

struct TableInfo {
  Schema schema;     // as Get() gives it
  std::string kind;  // "model", "result" or "view"
  std::string cost;  // what the first use pays: "free", "tree", "analysis"
};

// The tables that every trace has. Nothing is read or run.
LAMINA_API const std::vector<TableInfo>& ListTables();

struct NamedSession;
struct AskOptions;

class LAMINA_API Session {
 public:
  // Reads a trace of any known format ("-": standard input). Errors: kInput for
  // what cannot be read, kUsage for options that cannot be, kCancelled.
  static Result<std::shared_ptr<Session>> Open(const std::string& path,
                                               const OpenOptions& options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const TraceInfo& info() const;

  // A table by name, made on first use: once, however many threads ask. Tables
  // of analyses are kept for the life of the session, rows of the trace as long
  // as somebody holds them. Errors: kUsage for a name that there is not, with
  // the nearest one.
  Result<std::shared_ptr<const Table>> Get(std::string_view table,
                                           const RunOptions& options = {});

  // The result of the last statement of `sql` that gives rows; docs/sql.md says
  // what can be asked. Reads only. Errors: kUsage for wrong SQL, with line and
  // column; kLimit; kCancelled.
  Result<std::shared_ptr<const Table>> Query(std::string_view sql,
                                             const QueryOptions& options = {});

  // What `lamina report` says of the trace; kept for the last few options.
  // Errors: kUsage for an unknown layout or table, and for what is decided when
  // a trace is opened: `rules_dir`, `device`, `captures`.
  Result<std::shared_ptr<const Document>> Report(
      const ReportOptions& report = {}, const RunOptions& options = {});

  // A question to one trace (ListQuestions, `of_trace`), answered as the
  // program does with --format json, by the trace that is open; "trace" is not
  // given. The last few answers to what names no other file are kept, and made
  // once where several threads ask at a time. Errors:
  // kUsage for a question or parameter that there is not, with the nearest one,
  // for a value that cannot be, for what is decided when a trace is opened, and
  // for a question that makes files where that is not allowed; those of the
  // answer.
  Result<std::shared_ptr<const Document>> Ask(std::string_view question,
                                              const Params& params = {},
                                              const RunOptions& options = {});

  // The answer over the trace, as the first screen of the program shows it: a
  // JSON object, the key "answer" of `lamina report --format json`. What the
  // window was spent on, what limits it, what to change and what that saves;
  // times in nanoseconds, and in "shown" the words of a screen. Made once and
  // kept. Errors: those of a report.
  Result<std::shared_ptr<const std::string>> Answer(
      const RunOptions& options = {});

  // Writes the page of `lamina report -o path`. Errors: kUsage for a build
  // without a page or where `path` is an input; kInput for a file that cannot
  // be written.
  Status WritePage(const std::string& path, const RunOptions& options = {});

  struct Impl;

 private:
  friend Result<std::shared_ptr<const Table>> Query(
      const std::vector<NamedSession>& sessions, std::string_view sql,
      const QueryOptions& options);
  friend Result<std::shared_ptr<const Document>> Ask(std::string_view question,
                                                     const Params& params,
                                                     const AskOptions& options);
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// One query over several traces: their tables are NAME.kernel and so on.
struct NamedSession {
  std::string name;  // letters, digits and _
  std::shared_ptr<Session> session;
};
LAMINA_API Result<std::shared_ptr<const Table>> Query(
    const std::vector<NamedSession>& sessions, std::string_view sql,
    const QueryOptions& options);

struct AskOptions {
  int threads = 0;        // 0 or less: all cores; results do not depend on it
  std::string rules_dir;  // data files that extend the built-in ones
  bool cache = true;      // as in OpenOptions
  bool allow_write = false;  // questions that make files
  // Traces that are open: a parameter that has the path of one asks that one
  // instead of reading it again, with the captures and the device that it was
  // opened with. A question that names captures or a device itself is answered
  // with those: it reads the file again. They were all opened with the same
  // rules_dir.
  std::vector<std::shared_ptr<Session>> open;
  ProgressFunction progress;
  std::optional<StopSource> stop;
};

// Any question (ListQuestions): of two traces, many ranks, dumps, snapshots, or
// of none.
//
//   auto changes = lamina::Ask("diff", {{"a", "before.json"},
//                                       {"b", "after.json"}});
//
// Errors: as of Session::Ask.
LAMINA_API Result<std::shared_ptr<const Document>> Ask(
    std::string_view question, const Params& params = {},
    const AskOptions& options = {});

}  // namespace lamina
