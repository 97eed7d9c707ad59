// SPDX-License-Identifier: Apache-2.0
//
// Why it is longer than 250 lines: the options of the public header in those of
// the folders below, for each question.
#include "lamina/session.h"

#include "api/guard.h"
#include "api/session_impl.h"
#include "base/parallel.h"
#include "base/status.h"
#include "engine/captures.h"
#include "engine/report.h"
#include "graph/compiled/compiled_join.h"
#include "questions/questions.h"
#include "rules/document.h"
#include "snapshot/cache.h"
#include "sql/database.h"
#include "sql/table_def.h"

namespace lamina {
namespace {

engine::Watch WatchOf(const RunOptions& options) {
  engine::Watch watch;
  watch.stop = api::FlagOf(options.stop);
  if (options.progress) {
    watch.progress = [&options](uint64_t done, uint64_t total) {
      options.progress({"analyses", done, total});
    };
  }
  return watch;
}

sql::QueryOptions QueryOf(const QueryOptions& options) {
  sql::QueryOptions out;
  out.time_limit = options.time_limit;
  out.max_rows = options.max_rows;
  out.max_bytes = options.max_bytes;
  out.params = options.params;
  out.stop = api::FlagOf(options.stop);
  return out;
}

// The last result of a query.
Result<std::shared_ptr<const Table>> RunIn(sql::Database& database,
                                           std::string_view sql,
                                           const QueryOptions& options) {
  LAMINA_ASSIGN(std::vector<Table> results,
                database.Run(sql, QueryOf(options)));
  if (results.empty()) {
    return Fail(UsageError("the query has no statement that gives rows",
                           "SELECT, VALUES or EXPLAIN"));
  }
  return std::make_shared<const Table>(std::move(results.back()));
}

TraceInfo InfoOf(const trace::Trace& trace, const std::string& path) {
  const trace::Info& info = trace.info;
  TraceInfo out;
  out.path = path;
  out.format = info.format;
  out.file_bytes = info.file_bytes;
  out.events = info.events;
  out.slices = trace.slices.size();
  out.device_slices = trace.device_slices().size();
  out.first_ns = trace.first_ns;
  out.base_time_ns = info.base_time_ns;
  out.rank = engine::RankOf(trace, path);
  for (const trace::DeviceInfo& device : info.devices)
    out.devices.push_back(device.name);
  out.properties = info.properties;
  return out;
}

// What is decided when a trace is opened cannot be another for one report.
Status CheckReport(const ReportOptions& options) {
  const auto given = [](const char* name) {
    return Fail(
        UsageError(std::string(name) + " is decided when the trace is opened",
                   "give it in OpenOptions"));
  };
  if (!options.rules_dir.empty()) return given("ReportOptions::rules_dir");
  if (!options.device.empty()) return given("ReportOptions::device");
  if (!options.captures.empty()) return given("ReportOptions::captures");
  return {};
}

}  // namespace

const std::vector<TableInfo>& ListTables() {
  static const std::vector<TableInfo> tables = [] {
    std::vector<TableInfo> out;
    for (const sql::TableDef& def : sql::Tables()) {
      out.push_back({sql::SchemaOf(def),
                     std::string(sql::TableKindName(def.kind)),
                     std::string(sql::CostName(def.cost))});
    }
    return out;
  }();
  return tables;
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

Result<std::shared_ptr<Session>> Session::Open(const std::string& path,
                                               const OpenOptions& options) {
  return api::Guarded(options.stop, [&]() -> Result<std::shared_ptr<Session>> {
    engine::OpenOptions open;
    open.threads = options.threads > 0 ? options.threads : DefaultThreads();
    open.rules_dir = options.rules_dir;
    open.device = options.device;
    open.captures = options.captures;
    open.captured_frames = options.captured_frames;
    open.stop = api::FlagOf(options.stop);
    open.cache = options.cache && !snapshot::IsOff();
    if (options.progress) {
      open.progress = [&options](uint64_t done, uint64_t total) {
        options.progress({"reading", done, total});
      };
    }
    LAMINA_ASSIGN(auto programs, graph::ReadAllPrograms(options.compiled));
    const uint64_t state = Impl::LookAt(path);
    LAMINA_ASSIGN(std::shared_ptr<engine::Session> session,
                  engine::Session::Open(path, open));
    if (!options.device.empty())
      LAMINA_TRY(session->input().Device().map([](const auto*) {}));
    auto impl = std::make_unique<Impl>();
    impl->opened.threads = open.threads;
    impl->opened.rules_dir = options.rules_dir;
    impl->opened.device = options.device;
    impl->opened.captures = options.captures;
    impl->opened.captured_frames = options.captured_frames;
    impl->opened.compiled = options.compiled;
    impl->opened.cache = options.cache;
    impl->info = InfoOf(session->trace(), path);
    impl->state = state;
    impl->session = std::move(session);
    if (!options.compiled.empty()) {
      impl->session->UseCompiled(
          std::make_shared<const std::vector<graph::CompiledProgram>>(
              std::move(programs)));
    }
    return std::shared_ptr<Session>(new Session(std::move(impl)));
  });
}

const TraceInfo& Session::info() const { return impl_->info; }

Result<std::shared_ptr<const Table>> Session::Get(std::string_view table,
                                                  const RunOptions& options) {
  using Found = Result<std::shared_ptr<const Table>>;
  return api::Guarded(options.stop, [&]() -> Found {
    const sql::TableDef* const def = sql::FindTable(table);
    if (def == nullptr) return Fail(sql::NoSuchTable(table));
    return impl_->tables_once.Get(
        impl_->mutex, std::string(table), [&] { return impl_->Known(table); },
        [&]() -> Found {
          if (def->kind == sql::TableKind::kView) {
            LAMINA_ASSIGN(auto database, impl_->Connect(false));
            LAMINA_ASSIGN(Table made, database->ReadView(*def, {}));
            impl_->Return(std::move(database));
            return impl_->Keep(*def, std::move(made));
          }
          LAMINA_ASSIGN(Table made, sql::ReadTable(*impl_->session, *def,
                                                   WatchOf(options)));
          return impl_->Keep(*def, std::move(made));
        });
  });
}

Result<std::shared_ptr<const Table>> Session::Query(
    std::string_view sql, const QueryOptions& options) {
  using Found = Result<std::shared_ptr<const Table>>;
  return api::Guarded(options.stop, [&]() -> Found {
    LAMINA_ASSIGN(auto database, impl_->Connect(options.allow_temp));
    Found result = RunIn(*database, sql, options);
    if (!options.allow_temp) impl_->Return(std::move(database));
    return result;
  });
}

Result<std::shared_ptr<const Document>> Session::Report(
    const ReportOptions& report, const RunOptions& options) {
  using Found = Result<std::shared_ptr<const Document>>;
  return api::Guarded(options.stop, [&]() -> Found {
    LAMINA_TRY(CheckReport(report));
    ReportOptions asked = report;
    asked.threads = impl_->opened.threads;
    asked.device = impl_->opened.device;
    const auto known = [&]() -> std::shared_ptr<const Document> {
      for (const auto& [of, document] : impl_->reports) {
        if (of == asked) return document;
      }
      return nullptr;
    };
    return impl_->reports_once.Get(impl_->mutex, asked, known, [&]() -> Found {
      LAMINA_ASSIGN(Document made,
                    engine::MakeReport(*impl_->session, asked, nullptr,
                                       WatchOf(options)));
      made.inputs = {impl_->info.path};
      questions::PutNames(made, PlainNames);
      auto document = std::make_shared<const Document>(std::move(made));
      const std::lock_guard lock(impl_->mutex);
      if (impl_->reports.size() == Impl::kReports)
        impl_->reports.erase(impl_->reports.begin());
      impl_->reports.emplace_back(asked, document);
      return document;
    });
  });
}

Result<std::shared_ptr<const Table>> Query(
    const std::vector<NamedSession>& sessions, std::string_view sql,
    const QueryOptions& options) {
  using Found = Result<std::shared_ptr<const Table>>;
  return api::Guarded(options.stop, [&]() -> Found {
    if (sessions.empty())
      return Fail(UsageError("a query needs a trace", "give one or more"));
    std::vector<sql::SchemaInput> schemas;
    for (const NamedSession& named : sessions) {
      if (named.session == nullptr) {
        return Fail(UsageError("the trace '" + named.name + "' is null",
                               "open it first"));
      }
      schemas.push_back({named.name, {named.session->impl_->session}, {}});
    }
    sql::DatabaseOptions open;
    open.allow_temp = options.allow_temp;
    LAMINA_ASSIGN(auto database, sql::Database::Open(std::move(schemas), open));
    return RunIn(*database, sql, options);
  });
}

}  // namespace lamina
