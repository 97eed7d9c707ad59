// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: everything that touches a trace for lamina serve is here,
// in a process that may fall over.
#include "serve/trace_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <set>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include "base/escape.h"
#include "base/exit_status.h"
#include "base/leftovers.h"
#include "base/opened.h"
#include "base/parallel.h"
#include "base/process_memory.h"
#include "engine/memory.h"
#include "findings/answer.h"
#include "mcp/protocol/message.h"
#include "questions/compiled_input.h"
#include "questions/diff.h"
#include "questions/open_traces.h"
#include "questions/questions.h"
#include "questions/report.h"
#include "report/writers.h"
#include "serve/live.h"
#include "serve/worker.h"
#include "sql/database.h"

namespace lamina::serve {
namespace {

using mcp::Json;

constexpr uint64_t kMostRows = 10'000;
constexpr uint64_t kMostBytes = uint64_t{24} << 20;
// At a time, of SQL and of what the page asks; of both so many run.
constexpr size_t kMostQueries = 64;
constexpr size_t kMostRunning = 4;
// SQL may wait for what other SQL makes; what the page asks does not.
constexpr size_t kMostSqlRunning = 3;
constexpr size_t kMostSql = size_t{256} << 10;

std::string ErrorBody(const Error& error);

// The server takes an answer that is too large for damage, and ends the worker.
Frame Fitting(const Frame& frame) {
  if (frame.body.size() <= kMostFrameBytes) return frame;
  Error error = UsageError("the answer is larger than " +
                               std::to_string(kMostFrameBytes >> 20) + " MiB",
                           "ask for fewer columns, lanes or events");
  error.kind = ErrorKind::kLimit;
  return {frame.kind, frame.id, 504, ErrorBody(error)};
}

// Answers of several threads, whole frames each.
class Out {
 public:
  explicit Out(int file) : file_(file) {}
  void Write(const Frame& frame) {
    const std::string text = FrameText(Fitting(frame));
    const std::lock_guard lock(mutex_);
    for (size_t at = 0; at < text.size();) {
      const ssize_t wrote = ::write(file_, text.data() + at, text.size() - at);
      if (wrote > 0) {
        at += static_cast<size_t>(wrote);
      } else if (wrote < 0 && errno != EINTR) {
        _exit(kBadInput);  // nobody listens any more
      }
    }
  }

 private:
  const int file_;
  std::mutex mutex_;
};

std::string ErrorBody(const Error& given) {
  const Error error = WithNames(given, OptionNames);
  static constexpr const char* kCodes[] = {"usage",     "input", "check",
                                           "cancelled", "limit", "internal"};
  Json out;
  Json& to = out["error"];
  to["code"] = kCodes[static_cast<int>(error.kind)];
  to["what"] = error.what;
  to["hint"] = error.hint;
  to["line"] = error.line;
  to["column"] = error.column;
  to["excerpt"] = error.excerpt;
  return mcp::DumpText(out);
}

int StatusOf(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kUsage:
      return 400;
    case ErrorKind::kInput:
    case ErrorKind::kCheck:
      return 422;
    case ErrorKind::kCancelled:
      return 499;
    case ErrorKind::kLimit:
      return 504;
    case ErrorKind::kInternal:
      return 500;
  }
  return 500;
}

// Numbers that a script cannot hold are texts.
Json CellOf(const Value& value) {
  constexpr int64_t kExact = int64_t{1} << 53;
  switch (value.kind()) {
    case Value::Kind::kNull:
      return nullptr;
    case Value::Kind::kText:
      return value.text();
    case Value::Kind::kInt:
      if (value.integer() > kExact || value.integer() < -kExact)
        return std::to_string(value.integer());
      return value.integer();
    case Value::Kind::kReal:
      return value.real();
    case Value::Kind::kBool:
      return value.boolean();
  }
  return nullptr;
}

Json TableJson(const Table& table, uint64_t total) {
  Json out;
  out["columns"] = Json::array();
  for (const Column& column : table.schema().columns) {
    Json one;
    one["name"] = column.name;
    one["type"] = column.type == ColumnType::kText   ? "text"
                  : column.type == ColumnType::kReal ? "real"
                                                     : "int";
    out["columns"].push_back(std::move(one));
  }
  out["total_rows"] = total;
  out["rows"] = Json::array();
  for (size_t row = 0; row < table.rows(); ++row) {
    Json cells = Json::array();
    for (size_t c = 0; c < table.columns(); ++c)
      cells.push_back(CellOf(table.At(row, c)));
    out["rows"].push_back(std::move(cells));
  }
  return out;
}

// {"sql": TEXT, "max_rows": N, "params": {NAME: VALUE}}.
Result<std::string> Answer(const std::string& body,
                           const std::vector<sql::SchemaInput>& schemas,
                           sql::QueryOptions query) {
  const auto asked = mcp::ParseMessage(body);
  if (!asked) return Fail(UsageError(asked.error().message));
  const char* const example = R"({"sql": "SELECT name FROM kernel"})";
  if (!asked->is_object() || !asked->contains("sql") ||
      !(*asked)["sql"].is_string())
    return Fail(UsageError("a query has a text sql", example));
  const auto sql = (*asked)["sql"].get<std::string>();
  if (sql.size() > kMostSql) return Fail(UsageError("the query is too long"));
  query.keep_rows = 1000;
  if (const auto rows = asked->find("max_rows"); rows != asked->end()) {
    if (!rows->is_number_unsigned() || *rows < 1 || *rows > kMostRows) {
      return Fail(UsageError("max_rows is a whole number from 1 to " +
                             std::to_string(kMostRows)));
    }
    query.keep_rows = rows->get<uint64_t>();
  }
  if (const auto params = asked->find("params"); params != asked->end()) {
    if (!params->is_object()) return Fail(UsageError("params is an object"));
    for (const auto& [name, value] : params->items()) {
      if (value.is_null()) {
        query.params[name] = std::monostate();
      } else if (value.is_number_unsigned() &&
                 value.get<uint64_t>() > INT64_MAX) {
        return Fail(UsageError("params: " + name +
                               " is beyond the whole numbers of SQL, which "
                               "end at " +
                               std::to_string(INT64_MAX)));
      } else if (value.is_number_integer()) {
        query.params[name] = value.get<int64_t>();
      } else if (value.is_number()) {
        query.params[name] = value.get<double>();
      } else if (value.is_string()) {
        query.params[name] = value.get<std::string>();
      } else {
        return Fail(UsageError("params holds numbers, texts and null"));
      }
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  LAMINA_ASSIGN(auto database, sql::Database::Open(schemas));
  LAMINA_ASSIGN(const auto tables, database->Run(sql, query));
  Json out;
  out["tables"] = Json::array();
  for (size_t i = 0; i < tables.size(); ++i) {
    out["tables"].push_back(TableJson(
        tables[i], i < database->row_counts().size() ? database->row_counts()[i]
                                                     : tables[i].rows()));
  }
  out["elapsed_ms"] = std::chrono::duration_cast<std::chrono::milliseconds>(
                          std::chrono::steady_clock::now() - begin)
                          .count();
  return mcp::DumpText(out);
}

// What the first screen says, in one line: the sentence and the first fix.
void AddSentence(const questions::Answer& answer, Json& facts) {
  if (answer.first == nullptr) return;
  std::string text = answer.first->sentence;
  if (!answer.first->fixes.empty()) {
    const findings::AnswerFix& fix = answer.first->fixes.front();
    text += " First: " + fix.todo + " (−" + findings::SharePercent(fix.share) +
            ").";
  }
  facts["verdict"] = Shorten(text, 2000);
}

// What the list of traces says of one that is open; `trace` is null for a
// memory snapshot, which holds no time: what is known of it is in its page.
Json FactsOf(const questions::Answer& answer, const trace::Trace* trace) {
  const Document& document = answer.document;
  Json out;
  for (const Note& note : document.result.notes) {
    if (note.severity != Severity::kVerdict) continue;
    out["verdict"] = Shorten(note.text, 2000);
    break;
  }
  AddSentence(answer, out);
  out["format"] = trace == nullptr ? "memory snapshot" : trace->info.format;
  if (trace == nullptr) return out;
  std::string devices;
  std::set<std::string_view> named;
  for (const trace::DeviceInfo& device : trace->info.devices) {
    if (named.insert(device.name).second)
      devices += (devices.empty() ? "" : ", ") + device.name;
  }
  out["devices"] = Shorten(devices, 500);
  out["events"] = trace->info.events;
  if (const Table* const steps = document.result.Find("steps"))
    out["steps"] = steps->rows();
  if (const Table* const parts = document.result.Find("gpu_timeline")) {
    for (size_t row = 0; row < parts->rows(); ++row) {
      if (parts->At(row, "device").text() != "all") continue;
      const int64_t time = parts->Int(row, parts->schema().IndexOf("time_us"));
      const std::string_view type = parts->At(row, "type").text();
      if (type == "total_time") out["wall_ns"] = time;
      if (type == "busy_time") out["busy_ns"] = time;
    }
  }
  return out;
}

class Queries {
 public:
  // `live` is null for a comparison. Where `sql_waits`, no SQL begins before
  // LetSqlBegin.
  Queries(std::shared_ptr<Out> out, std::vector<sql::SchemaInput> schemas,
          std::shared_ptr<const page::LiveTrace> live,
          std::chrono::milliseconds time_limit, bool sql_waits)
      : out_(std::move(out)),
        schemas_(std::move(schemas)),
        live_(std::move(live)),
        time_limit_(time_limit),
        sql_waits_(sql_waits) {}

  void Start(const Frame& frame) {
    const auto stop = std::make_shared<std::atomic<bool>>(false);
    {
      const std::lock_guard lock(mutex_);
      // What waits for places has its own limit: SQL that must wait does not
      // keep the page from asking.
      if (Of(frame).asked >= kMostQueries) {
        Error error = UsageError("too many queries of this trace at a time",
                                 "ask again when one has ended");
        out_->Write({'r', frame.id, 429, ErrorBody(error)});
        return;
      }
      ++Of(frame).asked;
      running_[frame.id] = stop;
    }
    std::thread([this, frame, stop] {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return MayRun(frame) || *stop; });
        ++Of(frame).running;
      }
      const auto text = AnswerTo(frame, *stop);
      Frame reply{'r', frame.id, 200, {}};
      reply.body = text ? *text : ErrorBody(text.error());
      if (!text) reply.status = StatusOf(text.error());
      {
        const std::lock_guard lock(mutex_);
        running_.erase(frame.id);
        --Of(frame).asked;
        --Of(frame).running;
        changed_.notify_all();
      }
      out_->Write(reply);
    }).detach();
  }
  void Cancel(uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = running_.find(id);
    if (found != running_.end()) *found->second = true;
    changed_.notify_all();
  }
  void LetSqlBegin() {
    const std::lock_guard lock(mutex_);
    sql_waits_ = false;
    changed_.notify_all();
  }

 private:
  struct Places {
    size_t asked = 0;    // that run or wait
    size_t running = 0;  // of these
  };
  static bool IsSql(const Frame& frame) { return frame.kind == 'q'; }
  Places& Of(const Frame& frame) { return IsSql(frame) ? sql_ : page_; }
  bool MayRun(const Frame& frame) const {
    return sql_.running + page_.running < kMostRunning &&
           (!IsSql(frame) || (!sql_waits_ && sql_.running < kMostSqlRunning));
  }

  Result<std::string> AnswerTo(const Frame& frame,
                               const std::atomic<bool>& stop) const {
    if (stop) return Fail(CancelledError());
    if (schemas_.empty()) {
      return Fail(UsageError("a memory snapshot holds no time to ask for",
                             "its page and lamina memory have its tables"));
    }
    if (frame.kind == 'q') {
      sql::QueryOptions query;
      query.time_limit = time_limit_;
      query.max_bytes = kMostBytes;
      query.stop = &stop;
      return Answer(frame.body, schemas_, query);
    }
    if (live_ == nullptr) {
      return Fail(UsageError("a comparison holds all of its events",
                             "ask one of its traces"));
    }
    return AnswerLive(frame.kind == 't'   ? LiveQuestion::kTiles
                      : frame.kind == 's' ? LiveQuestion::kSum
                                          : LiveQuestion::kFind,
                      frame.body, *live_,
                      {&stop, std::chrono::steady_clock::now() + time_limit_});
  }

  const std::shared_ptr<Out> out_;
  const std::vector<sql::SchemaInput> schemas_;
  const std::shared_ptr<const page::LiveTrace> live_;
  const std::chrono::milliseconds time_limit_;
  std::mutex mutex_;
  bool sql_waits_;
  std::condition_variable changed_;
  std::map<uint64_t, std::shared_ptr<std::atomic<bool>>> running_;
  Places sql_, page_;
};

// Who looks for findings beside an open trace takes as much again as this
// share of what that holds: 0.6 of ten million events, and room for others.
// Without room the process would end with what it could still answer.
constexpr double kFindingsShare = 0.75;

// Why there is no room for findings; empty where there is.
std::string NoRoomForFindings() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return {};
  const ProcessMemory now = MemoryOfThisProcess();
  const auto wanted = static_cast<double>(now.data_bytes) +
                      kFindingsShare * static_cast<double>(now.own_bytes);
  if (wanted <= static_cast<double>(limit.rlim_cur)) return {};
  return fmt::format(
      "the process would need about {:.1f} GB to look for them, and "
      "--memory-gb allows {:.1f}",
      wanted / 1e9, static_cast<double>(limit.rlim_cur) / 1e9);
}

// The command line that gives the tables of the page.
questions::CommandWords WordsOf(const WorkerOptions& options, bool compares) {
  questions::GivenWords words;
  words.command = {compares ? "diff" : "report"};
  words.inputs = options.traces;
  for (const std::string& code : options.compiled)
    words.options.push_back({"--compiled", {code}});
  for (const std::string& capture : options.captures)
    words.options.push_back({"--capture", {capture}});
  return questions::CommandWords(words);
}

Result<questions::Answer> AskForPage(const WorkerOptions& options,
                                     bool findings_later,
                                     questions::Asker& asker) {
  if (options.traces.size() == 2) {
    questions::DiffParams params;
    params.traces = options.traces;
    return questions::AskDiff(params, asker);
  }
  questions::ReportParams params;
  params.trace = options.traces[0];
  params.findings_later = findings_later;
  params.html_max_events = static_cast<size_t>(options.page_events);
  params.compiled = options.compiled;
  return questions::AskReport(params, asker);
}

// Opens and writes the page, whose document it gives.
Result<questions::Answer> OpenAll(
    const WorkerOptions& options, bool findings_later,
    const questions::OpenedTraces& traces,
    const std::function<void(uint64_t, uint64_t)>& progress,
    const std::function<void(page::LiveTrace&& live)>& live) {
  questions::Asker asker;
  asker.traces = &traces;
  asker.progress = [&](const std::string&) { return progress; };
  asker.detail = questions::Detail::kPage;
  asker.page_mb = options.page_mb;
  asker.threads = options.threads;
  asker.captures = options.captures;
  questions::PageRequest page;
  page.output = options.page;
  page.words = WordsOf(options, options.traces.size() == 2);
  page.live = live;
  const questions::Body body = [&]() -> Result<questions::Answer> {
    LAMINA_ASSIGN(questions::Answer answer,
                  AskForPage(options, findings_later, asker));
    questions::PutNames(answer, OptionNames);
    if (answer.page) {
      LAMINA_TRY(answer.page(answer.document, page));
      return answer;
    }
    report::WriteOptions write;
    write.output = page.output;
    write.threads = options.threads;
    write.words = page.words.Words();
    LAMINA_TRY(report::FindWriter("html")->write(answer.document, write));
    return answer;
  };
  LAMINA_ASSIGN(questions::Answer answer, questions::Complete(body, asker));
  answer.page = nullptr;  // it is written, and knows who asked
  return answer;
}

}  // namespace

Result<int> RunServeWorker(const WorkerOptions& options) {
  // Frames and nothing else: whatever prints, prints to stderr.
  const int file = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (file < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    return Fail(InputError("standard output", "cannot be taken"));
  std::signal(SIGPIPE, SIG_IGN);
  for (size_t i = 0; i < options.files.size(); ++i)
    ReadInstead(options.traces.at(i), options.files[i]);
  const auto out = std::make_shared<Out>(file);
  const auto traces = std::make_shared<questions::OpenTraces>(
      options.threads, UINT64_MAX, options.captures);
  questions::OpenTraces::Opening how;
  questions::OpenedTraces known;
  known.captures = options.captures;
  // The page, its live questions and SQL are of one reading of each file.
  std::mutex opening;
  std::map<std::string, std::shared_ptr<engine::Session>> opened;
  known.open =
      [&](const std::string& path) -> Result<std::shared_ptr<engine::Session>> {
    LAMINA_ASSIGN(auto session, traces->Open(path, how));
    const std::lock_guard lock(opening);
    auto& first_one = opened[path];
    if (first_one == nullptr) first_one = session;
    if (first_one == session) return session;
    return Fail(InputError(path, "changed while it was opened",
                           "open it again when it is written"));
  };
  std::shared_ptr<page::LiveTrace> live;
  const auto keep = [&](page::LiveTrace&& of) {
    live = std::make_shared<page::LiveTrace>(std::move(of));
    live->owner = opened.at(options.traces[0]);
  };
  auto next = std::chrono::steady_clock::now();
  how.progress = [&](uint64_t done, uint64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next) return;
    next = now + std::chrono::milliseconds(100);
    out->Write({'p', 0, 0, std::to_string(done) + ' ' + std::to_string(total)});
  };
  const bool snapshots = std::all_of(
      options.traces.begin(), options.traces.end(), engine::IsMemorySnapshot);
  struct stat size {};
  const bool later_findings =
      !snapshots && options.traces.size() == 1 &&
      ::stat(NameToRead(options.traces[0]).text().c_str(), &size) == 0 &&
      static_cast<uint64_t>(size.st_size) > options.late_findings_bytes;
  auto answer = OpenAll(options, later_findings, known, how.progress, keep);
  const auto refuse = [&](const Error& error) {
    Json body;
    body["error"] = WithNames(error, OptionNames).ToString();
    out->Write({'o', 0, 422, mcp::DumpText(body)});
    RemoveLeftovers();
    _exit(kBadInput);
  };
  if (!answer) refuse(answer.error());
  Document& document = answer->document;
  how.progress = nullptr;
  std::vector<sql::SchemaInput> schemas;
  const auto programs = questions::ReadCompiled(options.compiled);
  if (!programs) refuse(programs.error());
  const std::array<const char*, 2> names = {"a", "b"};
  const size_t asked = snapshots ? 0 : options.traces.size();
  const trace::Trace* first = nullptr;
  for (size_t i = 0; i < asked; ++i) {
    const auto session = known.open(options.traces[i]);
    if (!session) refuse(session.error());
    if (i == 0) first = &(*session)->trace();
    (*session)->UseCompiled(*programs);
    schemas.push_back(
        {options.traces.size() == 1 ? "main" : names[i], {*session}, {}});
  }
  Json facts = FactsOf(*answer, first);
  // A trace without work of a device has none to wait for.
  const auto& notes = document.result.notes;
  const bool later =
      std::any_of(notes.begin(), notes.end(),
                  [](const Note& note) { return note.id == "findings_later"; });
  if (later) facts["findings"] = "coming";
  page::KeepEventTables(document);
  if (live != nullptr) live->document = std::move(document);
  // Never taken down: queries may still run when the program ends.
  // What looks for findings holds the trace: SQL would spend its time waiting.
  auto* const queries =
      new Queries(out, std::move(schemas), live, options.time_limit, later);
  out->Write({'o', 0, 200, mcp::DumpText(facts)});
  if (later) {
    std::thread([&options, &opened, out, queries, facts]() mutable {
      // What was read is asked, whatever the file is by now.
      questions::OpenedTraces read;
      read.captures = options.captures;
      read.open = [&opened](const std::string& path)
          -> Result<std::shared_ptr<engine::Session>> {
        return opened.at(path);
      };
      std::string why = NoRoomForFindings();
      if (why.empty()) {
        // Answers are those of the first reading of the page.
        const auto found =
            OpenAll(options, false, read, {}, [](page::LiveTrace&&) {});
        if (found) AddSentence(*found, facts);
        why = found ? "here" : WithNames(found.error(), OptionNames).ToString();
      }
      facts["findings"] = why;
      out->Write({'o', 0, 200, mcp::DumpText(facts)});
      queries->LetSqlBegin();
    }).detach();
  }
  FrameReader reader;
  std::array<char, 65536> buffer;
  while (!reader.damaged()) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    reader.Feed({buffer.data(), static_cast<size_t>(got)});
    while (const auto frame = reader.Next()) {
      if (frame->kind == 'c')
        queries->Cancel(frame->id);
      else
        queries->Start(*frame);
    }
  }
  RemoveLeftovers();
  _exit(kFine);
}

}  // namespace lamina::serve
