// SPDX-License-Identifier: Apache-2.0
//
// Every change is one transaction. In a file it begins with BEGIN IMMEDIATE, so
// that two writers wait for each other instead of failing; on a server writers
// go on side by side, and what they share (texts) they add in one order, so
// that none waits for one that waits for it.
#include "runstore/store.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fmt/core.h>
#include <set>
#include <unistd.h>

#include "base/decimal.h"
#include "base/plugin.h"
#include "base/text.h"
#include "lamina/version.h"
#include "runstore/database.h"

namespace lamina::runstore {
namespace {

// What brings a store from schema i to i + 1.
constexpr const char* kSteps[] = {
    R"(
CREATE TABLE store(schema INTEGER NOT NULL, made_ns INTEGER NOT NULL,
                   made_by TEXT NOT NULL);
INSERT INTO store VALUES(0, 0, '');
-- Names of modules, ops and kernels of all runs, each once.
CREATE TABLE text(id INTEGER PRIMARY KEY, value TEXT NOT NULL UNIQUE);
CREATE TABLE run(
  id INTEGER PRIMARY KEY, content TEXT NOT NULL, name TEXT NOT NULL,
  source TEXT NOT NULL, format TEXT NOT NULL, bytes INTEGER NOT NULL,
  recorded_ns INTEGER, ordinal INTEGER, added_ns INTEGER NOT NULL,
  added_by TEXT NOT NULL, key TEXT NOT NULL, model TEXT NOT NULL,
  device TEXT NOT NULL, type TEXT NOT NULL, devices INTEGER NOT NULL,
  ranks INTEGER NOT NULL, world INTEGER, basis TEXT NOT NULL,
  lamina TEXT NOT NULL, analysis INTEGER NOT NULL, units BLOB NOT NULL,
  UNIQUE(content, analysis));
CREATE TABLE tag(
  run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY(run, name))
  WITHOUT ROWID;
CREATE TABLE env(
  run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY(run, name))
  WITHOUT ROWID;
-- Units of equal load; times of one unit in nanoseconds.
CREATE TABLE class(
  run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  no INTEGER NOT NULL, phase TEXT NOT NULL, name TEXT NOT NULL,
  units INTEGER NOT NULL, left_out INTEGER NOT NULL, share REAL NOT NULL,
  unit_p10 INTEGER, unit_p50 INTEGER, unit_p90 INTEGER, unit_mean REAL,
  kernel_p10 INTEGER, kernel_p50 INTEGER, kernel_p90 INTEGER, kernel_mean REAL,
  busy_p10 INTEGER, busy_p50 INTEGER, busy_p90 INTEGER, busy_mean REAL,
  PRIMARY KEY(run, no)) WITHOUT ROWID;
CREATE TABLE part(
  run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  phase TEXT NOT NULL, half TEXT NOT NULL, family TEXT NOT NULL,
  kernels REAL NOT NULL, ns REAL NOT NULL,
  PRIMARY KEY(run, phase, half, family)) WITHOUT ROWID;
CREATE TABLE module(
  run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  phase TEXT NOT NULL, path INTEGER NOT NULL, instances INTEGER NOT NULL,
  ns REAL NOT NULL, PRIMARY KEY(run, phase, path)) WITHOUT ROWID;
CREATE TABLE kernel(
  run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  phase TEXT NOT NULL, no INTEGER NOT NULL, name INTEGER NOT NULL,
  op INTEGER NOT NULL, family TEXT NOT NULL, calls REAL NOT NULL,
  ns REAL NOT NULL, PRIMARY KEY(run, phase, no)) WITHOUT ROWID;
)",
    R"(
CREATE TABLE baseline(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL,
  run INTEGER NOT NULL REFERENCES run(id), set_ns INTEGER NOT NULL,
  set_by TEXT NOT NULL, reason TEXT NOT NULL, until_ns INTEGER);
CREATE UNIQUE INDEX baseline_holds ON baseline(name) WHERE until_ns IS NULL;
)",
    R"(
-- What people decided about a run against another one; the newest holds.
CREATE TABLE decision(
  id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run(id),
  against INTEGER NOT NULL REFERENCES run(id), accepted INTEGER NOT NULL,
  reason TEXT NOT NULL, decided_by TEXT NOT NULL, decided_ns INTEGER NOT NULL);
)",
};
constexpr int kSchema = static_cast<int>(std::size(kSteps));

Error ErrorOf(const std::string& path, const Fault& fault) {
  using enum Fault::Kind;
  switch (fault.kind) {
    case kBusy:
      return InputError(
          path,
          fmt::format("is locked by another program for {} s", kBusySeconds),
          "wait until it has ended, or look for one that hangs");
    case kNoStore:
      return InputError(path, "is no store of runs",
                        "name one with ⟨store⟩; ⟨lamina⟩ runs add makes it");
    case kDamaged:
      return InputError(path, "is damaged",
                        "take a copy of it that was made before");
    case kFull:
      return InputError(path, "cannot grow: the disk is full");
    case kIo:
      return InputError(path,
                        "cannot be read or written: the disk is full, or "
                        "fails");
    case kReadOnly:
      return InputError(path, "cannot be written");
    case kCannotOpen:
      return InputError(path, "cannot be opened");
    case kUnreachable:
      return InputError(path, fault.text,
                        "passwords belong into ~/.pgpass or PGPASSFILE");
    case kUsage:
      return UsageError("the address of the store " + fault.text,
                        "postgresql://[USER@]HOST/DATABASE; passwords belong "
                        "into ~/.pgpass");
    case kOther:
      break;
  }
  return InputError(path, fault.text);
}

// A statement with its values. The first fault is kept; Next() is false then,
// and status() says it.
class Statement {
 public:
  Statement(Database& database, std::string_view sql)
      : database_(database), statement_(database.Prepare(sql)) {}

  template <class... Values>
  Statement& With(const Values&... values) {
    const std::array<Cell, sizeof...(values)> cells = {CellOf(values)...};
    statement_->Start(cells);
    return *this;
  }
  bool Next() { return statement_->Next(); }
  // Of a statement without rows.
  Status Run() {
    Next();
    return status();
  }
  Status status() const {
    if (statement_->fault())
      return Fail(ErrorOf(database_.name(), *statement_->fault()));
    return {};
  }

  int64_t Int(int column) const { return statement_->Int(column); }
  double Real(int column) const { return statement_->Real(column); }
  std::string Text(int column) const { return statement_->Text(column); }
  std::optional<int64_t> MaybeInt(int column) const {
    if (statement_->IsNull(column)) return std::nullopt;
    return Int(column);
  }

 private:
  static Cell CellOf(const std::string& text) { return text; }
  static Cell CellOf(std::string_view text) { return std::string(text); }
  static Cell CellOf(const char* text) { return std::string(text); }
  static Cell CellOf(double value) { return value; }
  template <class T>
  requires std::is_integral_v<T>
  static Cell CellOf(T value) { return static_cast<int64_t>(value); }
  static Cell CellOf(const std::optional<int64_t>& value) {
    return value ? Cell(*value) : Cell();
  }
  static Cell CellOf(const Bytes& bytes) { return bytes; }

  Database& database_;
  std::unique_ptr<Prepared> statement_;
};

Status Execute(Database& database, const char* sql) {
  if (const auto fault = database.Execute(sql))
    return Fail(ErrorOf(database.name(), *fault));
  return {};
}

// Undone unless it is committed.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) {}
  ~Transaction() {
    if (open_) database_.Execute("ROLLBACK");
  }
  Transaction(const Transaction&) = delete;
  Status Begin() {
    LAMINA_TRY(Execute(database_, "BEGIN IMMEDIATE"));
    open_ = true;
    return {};
  }
  Status Commit() {
    LAMINA_TRY(Execute(database_, "COMMIT"));
    open_ = false;
    return {};
  }

 private:
  Database& database_;
  bool open_ = false;
};

runs::Phase PhaseOf(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(runs::Phase::kPass); ++i) {
    if (runs::PhaseName(static_cast<runs::Phase>(i)) == name)
      return static_cast<runs::Phase>(i);
  }
  return runs::Phase::kPass;
}

constexpr const char* kRunColumns =
    "id, content, name, source, format, bytes, recorded_ns, ordinal, added_ns, "
    "added_by, key, model, device, type, devices, ranks, world, lamina, "
    "analysis";

Run ReadRun(const Statement& row) {
  Run run;
  run.id = row.Int(0);
  run.content = row.Text(1);
  run.name = row.Text(2);
  run.source = row.Text(3);
  run.format = row.Text(4);
  run.bytes = row.Int(5);
  run.recorded_ns = row.MaybeInt(6);
  run.ordinal = row.MaybeInt(7);
  run.added_ns = row.Int(8);
  run.added_by = row.Text(9);
  run.key = row.Text(10);
  run.model = row.Text(11);
  run.device = row.Text(12);
  run.type = row.Text(13);
  run.devices = row.Int(14);
  run.ranks = row.Int(15);
  run.world = row.MaybeInt(16);
  run.lamina = row.Text(17);
  run.analysis = row.Int(18);
  return run;
}

// Of a row whose first columns are run and no.
ClassRecord ReadClass(const Statement& row) {
  ClassRecord out;
  out.phase = PhaseOf(row.Text(2));
  out.name = row.Text(3);
  const auto units = static_cast<size_t>(row.Int(4));
  out.left_out = static_cast<size_t>(row.Int(5));
  out.share = row.Real(6);
  int column = 7;
  for (ClassTimes* times : {&out.unit, &out.kernel_time, &out.busy}) {
    times->units = units;
    times->p10_ns = row.Int(column);
    times->p50_ns = row.Int(column + 1);
    times->p90_ns = row.Int(column + 2);
    times->mean_ns = row.Real(column + 3);
    column += 4;
  }
  return out;
}

bool IsOf(const Run& run, const std::pair<std::string, std::string>& where) {
  const auto& [name, value] = where;
  const auto tag = run.tags.find(name);
  if (tag != run.tags.end()) return tag->second == value;
  return (name == "name" && run.name == value) ||
         (name == "device" && run.device == value) ||
         (name == "key" && run.key == value) ||
         (name == "model" && run.model == value) ||
         (name == "format" && run.format == value);
}

bool ComesBefore(const Run& x, const Run& y) {
  const auto key = [](const Run& run) {
    return std::tuple(!run.ordinal, run.ordinal.value_or(0), run.TimeNs());
  };
  return std::tuple(key(x), std::string_view(x.name), x.id) <
         std::tuple(key(y), std::string_view(y.name), y.id);
}

}  // namespace

// --- the file ---

Store::Store(std::unique_ptr<Database> database)
    : path_(database->name()), database_(std::move(database)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

namespace {

bool IsAddress(std::string_view path) {
  return path.starts_with("postgresql://") || path.starts_with("postgres://");
}

Result<std::unique_ptr<Database>> OpenServer(const std::string& address) {
  const auto entry =
      LoadPlugin(kPostgresPluginFile, kPostgresEntry, "lamina-mpi");
  if (!entry) {
    return Fail(InputError(
        "a store on a server needs the plug-in for PostgreSQL", entry.error(),
        "install libpq5; where lamina is built, libpq-dev"));
  }
  Fault fault;
  std::unique_ptr<Database> database(reinterpret_cast<PostgresEntry>(*entry)(
      kPostgresInterface, address.c_str(), &fault));
  if (database == nullptr) {
    if (fault.text.empty()) fault.text = "the plug-in is of another version";
    return Fail(ErrorOf("the store on a server", fault));
  }
  return database;
}

Result<std::unique_ptr<Database>> OpenFile(const std::string& path,
                                           Store::Mode mode) {
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  if (!exists && mode == Store::Mode::kExisting) {
    return Fail(InputError(path, "there is no store of runs",
                           "⟨lamina⟩ runs add makes one"));
  }
  if (!exists) {
    const auto folder = std::filesystem::path(path).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, error);
  }
  Fault fault;
  auto database = OpenSqlite(path, !exists, fault);
  if (database == nullptr) return Fail(ErrorOf(path, fault));
  return database;
}

}  // namespace

Result<Store> Store::Open(const std::string& path, Mode mode, int schema) {
  LAMINA_ASSIGN(auto database,
                IsAddress(path) ? OpenServer(path) : OpenFile(path, mode));
  const bool server = database->is_server();
  Store store(std::move(database));
  LAMINA_TRY(store.Migrate(schema == kNewest ? kSchema : schema,
                           !server || mode == Mode::kCreate));
  return store;
}

Status Store::Migrate(int to, bool make) {
  // The schema of the file; -1: it has no tables.
  const auto schema = [&]() -> Result<int> {
    Statement any(*database_,
                  database_->is_server()
                      ? "SELECT count(*), count(*) FILTER (WHERE table_name = "
                        "'store') FROM information_schema.tables WHERE "
                        "table_schema = 'lamina'"
                      : "SELECT count(*), sum(name = 'store') FROM "
                        "sqlite_master WHERE type = 'table'");
    any.Next();
    LAMINA_TRY(any.status());
    if (any.Int(0) == 0) return -1;
    if (any.Int(1) == 1) {
      Statement row(*database_, "SELECT schema, made_by FROM store");
      if (row.Next() && row.Int(0) > 0) {
        if (row.Int(0) <= kSchema) return static_cast<int>(row.Int(0));
        return Fail(InputError(
            path_,
            fmt::format("has schema {}, and this program knows up to {}: it "
                        "was made by lamina {}",
                        row.Int(0), kSchema, row.Text(1)),
            "take that lamina, or a later one"));
      }
    }
    return Fail(InputError(path_, "is a database, but no store of runs",
                           "name another file with ⟨store⟩"));
  };
  LAMINA_ASSIGN(const int seen, schema());
  if (seen >= to) return {};
  if (seen < 0 && !make) {
    return Fail(InputError(path_, "there is no store of runs",
                           "⟨lamina⟩ runs add makes one"));
  }
  Transaction change(*database_);
  LAMINA_TRY(change.Begin());
  if (database_->is_server()) {
    LAMINA_TRY(Execute(*database_, "SELECT pg_advisory_xact_lock(7238211906)"));
    if (seen < 0)
      LAMINA_TRY(Execute(*database_, "CREATE SCHEMA IF NOT EXISTS lamina"));
  }
  // Another program may have done it by now.
  LAMINA_ASSIGN(const int from, schema());
  if (from >= to) return {};
  // A server has copies of its own.
  if (from > 0 && !database_->is_server()) {
    std::error_code error;
    const std::string copy = fmt::format("{}.before-{}", path_, to);
    std::filesystem::copy_file(
        path_, copy, std::filesystem::copy_options::overwrite_existing, error);
    if (error) {
      return Fail(InputError(copy, "cannot be written: " + error.message(),
                             "a store is copied before its schema changes"));
    }
  }
  for (int step = std::max(from, 0); step < to; ++step)
    LAMINA_TRY(Execute(*database_, kSteps[step]));
  Statement set(*database_,
                "UPDATE store SET schema = ?1, made_by = ?3, made_ns = CASE "
                "WHEN made_ns = 0 THEN ?2 ELSE made_ns END");
  LAMINA_TRY(set.With(to, NowNs(), Version()).Run());
  return change.Commit();
}

// --- runs ---

Result<bool> Store::Add(const Record& record, const std::string& by) {
  const std::string units = PackUnits(record.classes, record.units);
  Transaction change(*database_);
  LAMINA_TRY(change.Begin());
  // Of two that add the same content at once the second one waits, and finds
  // it.
  Statement insert(
      *database_,
      "INSERT INTO run(content, name, source, format, bytes, recorded_ns, "
      "ordinal, added_ns, added_by, key, model, device, type, devices, ranks, "
      "world, basis, lamina, analysis, units) VALUES(?, ?, ?, ?, ?, ?, ?, ?, "
      "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(content, analysis) DO "
      "NOTHING RETURNING id");
  const bool is_new =
      insert
          .With(record.content, record.name, record.source, record.format,
                record.bytes, record.recorded_ns, record.ordinal, NowNs(), by,
                record.key, record.model, record.device, record.type,
                record.devices, record.ranks, record.world, record.basis,
                Version(), kAnalysis, Bytes{units})
          .Next();
  LAMINA_TRY(insert.status());
  int64_t run = 0;
  if (is_new) {
    run = insert.Int(0);
    insert.Next();  // the statement ends
  } else {
    Statement known(*database_,
                    "SELECT id FROM run WHERE content = ? AND analysis = ?");
    known.With(record.content, kAnalysis).Next();
    LAMINA_TRY(known.status());
    run = known.Int(0);
  }
  for (const auto& [name, value] : record.tags) {
    Statement tag(*database_,
                  "INSERT INTO tag VALUES(?, ?, ?) ON CONFLICT(run, name) DO "
                  "UPDATE SET value = excluded.value");
    LAMINA_TRY(tag.With(run, name, value).Run());
  }
  if (is_new) LAMINA_TRY(InsertParts(run, record));
  LAMINA_TRY(change.Commit());
  return is_new;
}

Status Store::Replace(const Run& old, const Record& record) {
  const std::string units = PackUnits(record.classes, record.units);
  Transaction change(*database_);
  LAMINA_TRY(change.Begin());
  Statement update(
      *database_,
      "UPDATE run SET format = ?1, bytes = ?2, key = ?3, model = ?4, device = "
      "?5, type = ?6, devices = ?7, ranks = ?8, world = ?9, basis = ?10, "
      "lamina "
      "= ?11, analysis = ?12, units = ?13 WHERE id = ?14");
  LAMINA_TRY(update
                 .With(record.format, record.bytes, record.key, record.model,
                       record.device, record.type, record.devices, record.ranks,
                       record.world, record.basis, Version(), kAnalysis,
                       Bytes{units}, old.id)
                 .Run());
  for (const char* table : {"env", "class", "part", "module", "kernel"}) {
    LAMINA_TRY(Statement(*database_,
                         fmt::format("DELETE FROM {} WHERE run = ?", table))
                   .With(old.id)
                   .Run());
  }
  LAMINA_TRY(InsertParts(old.id, record));
  return change.Commit();
}

namespace {

// Of a phase those kernels with most time, and the rest as one.
std::vector<std::pair<size_t, runs::KernelPart>> KernelRows(
    const runs::Account& account) {
  constexpr size_t kMostKernels = 200;
  std::vector<std::pair<size_t, runs::KernelPart>> out;
  std::map<runs::Phase, std::pair<size_t, runs::KernelPart>> of_phase;
  for (const runs::KernelPart& one : account.kernels) {
    auto& [count, rest] = of_phase[one.phase];
    if (count++ < kMostKernels) {
      out.emplace_back(count, one);
      continue;
    }
    rest.phase = one.phase;
    rest.name = "(rest)";
    rest.calls += one.calls;
    rest.ns += one.ns;
  }
  for (const auto& [phase, counted] : of_phase) {
    if (counted.first > kMostKernels) out.emplace_back(0, counted.second);
  }
  return out;
}

}  // namespace

Result<std::map<std::string, int64_t>> Store::NumbersOf(
    const std::set<std::string>& texts) {
  std::map<std::string, int64_t> out;
  Statement insert(*database_,
                   "INSERT INTO text(value) VALUES(?) ON CONFLICT(value) DO "
                   "NOTHING");
  Statement find(*database_, "SELECT id FROM text WHERE value = ?");
  for (const std::string& text : texts) {
    bool known = find.With(text).Next();
    LAMINA_TRY(find.status());
    if (!known) {
      LAMINA_TRY(insert.With(text).Run());
      find.With(text).Next();
      LAMINA_TRY(find.status());
    }
    out[text] = find.Int(0);
  }
  return out;
}

Status Store::InsertParts(int64_t run, const Record& record) {
  const auto put = [&](std::string_view sql, const auto&... values) {
    return Statement(*database_, sql).With(values...).Run();
  };
  for (const auto& [name, value] : record.environment)
    LAMINA_TRY(put("INSERT INTO env VALUES(?, ?, ?)", run, name, value));
  for (size_t i = 0; i < record.classes.size(); ++i) {
    const ClassRecord& one = record.classes[i];
    LAMINA_TRY(put(
        "INSERT INTO class VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "?, ?, ?, ?)",
        run, i, runs::PhaseName(one.phase), one.name, one.unit.units,
        one.left_out, one.share, one.unit.p10_ns, one.unit.p50_ns,
        one.unit.p90_ns, one.unit.mean_ns, one.kernel_time.p10_ns,
        one.kernel_time.p50_ns, one.kernel_time.p90_ns, one.kernel_time.mean_ns,
        one.busy.p10_ns, one.busy.p50_ns, one.busy.p90_ns, one.busy.mean_ns));
  }
  Statement part(*database_, "INSERT INTO part VALUES(?, ?, ?, ?, ?, ?)");
  for (const runs::Part& one : record.account.parts) {
    LAMINA_TRY(part.With(run, runs::PhaseName(one.phase), one.half, one.family,
                         one.kernels, one.ns)
                   .Run());
  }
  const auto kernels = KernelRows(record.account);
  std::set<std::string> texts;
  for (const runs::ModulePart& one : record.account.modules)
    texts.insert(one.path);
  for (const auto& [no, one] : kernels) texts.insert({one.name, one.op});
  LAMINA_ASSIGN(const auto numbers, NumbersOf(texts));
  // Two texts that a database cannot tell apart are one module.
  Statement module(*database_,
                   "INSERT INTO module VALUES(?, ?, ?, ?, ?) ON CONFLICT(run, "
                   "phase, path) DO UPDATE SET ns = module.ns + excluded.ns");
  for (const runs::ModulePart& one : record.account.modules) {
    LAMINA_TRY(module
                   .With(run, runs::PhaseName(one.phase), numbers.at(one.path),
                         one.instances, one.ns)
                   .Run());
  }
  Statement kernel(*database_,
                   "INSERT INTO kernel VALUES(?, ?, ?, ?, ?, ?, ?, ?)");
  for (const auto& [no, one] : kernels) {
    LAMINA_TRY(kernel
                   .With(run, runs::PhaseName(one.phase), no,
                         numbers.at(one.name), numbers.at(one.op), one.family,
                         one.calls, one.ns)
                   .Run());
  }
  return {};
}

Result<std::vector<Run>> Store::Runs(const Where& where) {
  std::vector<Run> out;
  absl::flat_hash_map<int64_t, size_t> at;
  Statement rows(*database_, fmt::format("SELECT {} FROM run", kRunColumns));
  while (rows.Next()) {
    at.emplace(rows.Int(0), out.size());
    out.push_back(ReadRun(rows));
  }
  LAMINA_TRY(rows.status());
  Statement tags(*database_, "SELECT run, name, value FROM tag");
  while (tags.Next()) {
    const auto run = at.find(tags.Int(0));
    if (run != at.end())
      out[run->second].tags.emplace(tags.Text(1), tags.Text(2));
  }
  LAMINA_TRY(tags.status());
  Statement classes(*database_, "SELECT * FROM class ORDER BY run, no");
  while (classes.Next()) {
    const auto run = at.find(classes.Int(0));
    if (run != at.end()) out[run->second].classes.push_back(ReadClass(classes));
  }
  LAMINA_TRY(classes.status());
  std::erase_if(out, [&](const Run& run) {
    return !std::all_of(where.begin(), where.end(),
                        [&](const auto& one) { return IsOf(run, one); });
  });
  std::sort(out.begin(), out.end(), ComesBefore);
  return out;
}

Result<Run> Store::Find(const std::string& word) {
  LAMINA_ASSIGN(std::vector<Run> runs, Runs({}));
  const auto none = [&](const std::string& hint) {
    return Fail(UsageError(
        fmt::format("there is no run '{}' in {}", word, path_), hint));
  };
  if (word == "latest") {
    if (runs.empty()) return none("the store is empty");
    return runs.back();
  }
  constexpr std::string_view kBaseline = "baseline:";
  std::optional<int64_t> id = ParseInt(word);
  if (word.starts_with(kBaseline)) {
    LAMINA_ASSIGN(const auto baselines, Baselines());
    for (const Baseline& one : baselines) {
      if (one.name == word.substr(kBaseline.size()) && !one.until_ns)
        id = one.run;
    }
    if (!id) return none("⟨lamina⟩ runs baseline list lists them");
  }
  for (const Run& run : runs) {
    if (id && run.id == *id) return run;
  }
  for (size_t i = runs.size(); i-- > 0;) {
    if (runs[i].name == word) return runs[i];
  }
  constexpr size_t kShortest = 6;
  if (word.size() >= kShortest) {
    for (const Run& run : runs) {
      if (run.content.starts_with(word)) return run;
    }
  }
  return none("⟨lamina⟩ runs list lists them");
}

Result<runs::KeptSide> Store::SideOf(const Run& run) {
  Statement row(*database_, "SELECT units, basis FROM run WHERE id = ?");
  if (!row.With(run.id).Next()) {
    LAMINA_TRY(row.status());
    return Fail(InputError(path_, fmt::format("run {} is gone", run.id)));
  }
  runs::KeptSide out;
  auto units = UnpackUnits(run.classes, row.Text(0));
  if (!units) {
    return Fail(InputError(
        path_, fmt::format("the units of run {} are damaged", run.id)));
  }
  out.units = std::move(*units);
  out.units.basis = row.Text(1);
  out.model = run.model;
  out.device = run.device;
  out.type = run.type;
  if (run.ranks > 1) out.ranks = fmt::format("{} ranks", run.ranks);
  LAMINA_ASSIGN(out.parts, PartsOf(run.id));
  return out;
}

Result<Tags> Store::EnvironmentOf(int64_t run) {
  Tags out;
  Statement rows(*database_, "SELECT name, value FROM env WHERE run = ?");
  rows.With(run);
  while (rows.Next()) out.emplace(rows.Text(0), rows.Text(1));
  LAMINA_TRY(rows.status());
  return out;
}

Result<std::vector<runs::Part>> Store::PartsOf(int64_t run) {
  std::vector<runs::Part> out;
  Statement parts(*database_,
                  "SELECT phase, half, family, kernels, ns FROM part WHERE "
                  "run = ? ORDER BY phase, half, family");
  parts.With(run);
  while (parts.Next()) {
    out.push_back({PhaseOf(parts.Text(0)), parts.Text(1), parts.Text(2),
                   parts.Real(3), parts.Real(4)});
  }
  LAMINA_TRY(parts.status());
  return out;
}

Result<runs::Account> Store::AccountOf(int64_t run) {
  runs::Account out;
  LAMINA_ASSIGN(out.parts, PartsOf(run));
  Statement modules(*database_,
                    "SELECT phase, value, instances, ns FROM module JOIN text "
                    "ON text.id = path WHERE run = ? ORDER BY ns DESC, value");
  modules.With(run);
  while (modules.Next()) {
    out.modules.push_back({PhaseOf(modules.Text(0)), modules.Text(1),
                           static_cast<size_t>(modules.Int(2)),
                           modules.Real(3)});
  }
  LAMINA_TRY(modules.status());
  Statement kernels(*database_,
                    "SELECT phase, n.value, o.value, family, calls, ns FROM "
                    "kernel JOIN text n ON n.id = kernel.name JOIN text o ON "
                    "o.id = op WHERE run = ? ORDER BY ns DESC, n.value");
  kernels.With(run);
  while (kernels.Next()) {
    out.kernels.push_back({PhaseOf(kernels.Text(0)), kernels.Text(1),
                           kernels.Text(2), kernels.Text(3), kernels.Real(4),
                           kernels.Real(5)});
  }
  LAMINA_TRY(kernels.status());
  return out;
}

// --- metrics ---

Result<std::vector<MetricRow>> Store::Values(const std::string& metric) {
  std::vector<MetricRow> out;
  const auto read = [&](const std::string& sql,
                        const auto&... values) -> Status {
    Statement rows(*database_, sql);
    rows.With(values...);
    while (rows.Next())
      out.push_back({rows.Int(0), rows.Text(1), rows.Real(2), rows.Real(3)});
    return rows.status();
  };
  const std::string of_class =
      "SELECT run, phase || ': ' || name, {}, share FROM class WHERE units > 0";
  const auto column = [&](const char* name) {
    return fmt::format(fmt::runtime(of_class), name);
  };
  // Rows of a phase: the share is that of its classes.
  const auto of_phase = [](std::string_view table, std::string_view where) {
    return fmt::format(
        "SELECT t.run, t.phase, SUM(t.ns), (SELECT SUM(share) FROM class c "
        "WHERE c.run = t.run AND c.phase = t.phase) FROM {} WHERE {} GROUP BY "
        "t.run, t.phase",
        table, where);
  };
  const size_t colon = metric.find(':');
  const std::string kind = metric.substr(0, colon);
  const std::string name =
      colon == std::string::npos ? std::string() : metric.substr(colon + 1);
  Status read_all;
  if (metric == "unit") {
    read_all = read(column("unit_p50"));
  } else if (metric == "kernel") {
    read_all = read(column("kernel_p50"));
  } else if (metric == "busy") {
    read_all = read(column("busy_p50"));
  } else if (metric == "idle") {
    read_all = read(of_phase("part t", "family = 'idle'"));
  } else if (runs::PhaseName(PhaseOf(metric)) == metric) {
    read_all = read(column("unit_p50") + " AND phase = ?", metric);
  } else if (kind == "part" && !name.empty()) {
    const size_t slash = name.find('/');
    read_all = slash == std::string::npos
                   ? read(of_phase("part t", "?1 IN (half, family)"), name)
                   : read(of_phase("part t", "half = ? AND family = ?"),
                          name.substr(0, slash), name.substr(slash + 1));
  } else if (kind == "module" && !name.empty()) {
    // A class of modules with all that is below it.
    const std::string module_holds =
        fmt::format("{}('/' || value || '/', '/' || ?1 || '/') > 0",
                    database_->is_server() ? "strpos" : "instr");
    read_all = read(
        of_phase("module t JOIN text ON text.id = t.path", module_holds), name);
  } else if (kind == "op" && !name.empty()) {
    read_all = read(
        of_phase("kernel t", "t.op = (SELECT id FROM text WHERE value = ?1)"),
        name);
  } else {
    return Fail(UsageError(
        "there is no metric '" + metric + "'",
        "there are unit, kernel, busy, idle, a phase (train, eval, prefill, "
        "decode, mixed, pass), part:HALF/FAMILY, module:CLASS and op:NAME"));
  }
  LAMINA_TRY(std::move(read_all));
  return out;
}

// --- baselines ---

Status Store::SetBaseline(const std::string& name, const Run& run,
                          const std::string& by, const std::string& reason) {
  Transaction change(*database_);
  LAMINA_TRY(change.Begin());
  const int64_t now = NowNs();
  LAMINA_TRY(Statement(*database_,
                       "UPDATE baseline SET until_ns = ? WHERE name = ? AND "
                       "until_ns IS NULL")
                 .With(now, name)
                 .Run());
  LAMINA_TRY(Statement(*database_,
                       "INSERT INTO baseline(name, run, set_ns, set_by, "
                       "reason) VALUES(?, ?, ?, ?, ?)")
                 .With(name, run.id, now, by, reason)
                 .Run());
  return change.Commit();
}

Status Store::EndBaseline(const std::string& name) {
  Transaction change(*database_);
  LAMINA_TRY(change.Begin());
  Statement end(*database_,
                "UPDATE baseline SET until_ns = ? WHERE name = ? AND until_ns "
                "IS NULL RETURNING id");
  const bool held = end.With(NowNs(), name).Next();
  LAMINA_TRY(end.status());
  if (held) end.Next();
  if (!held) {
    return Fail(UsageError("there is no baseline '" + name + "'",
                           "⟨lamina⟩ runs baseline list lists them"));
  }
  return change.Commit();
}

Result<std::vector<Baseline>> Store::Baselines() {
  std::vector<Baseline> out;
  Statement rows(*database_,
                 "SELECT b.name, b.run, r.name, b.set_ns, b.set_by, b.reason, "
                 "b.until_ns FROM baseline b JOIN run r ON r.id = b.run ORDER "
                 "BY b.name, b.id DESC");
  while (rows.Next()) {
    out.push_back({rows.Text(0), rows.Int(1), rows.Text(2), rows.Int(3),
                   rows.Text(4), rows.Text(5), rows.MaybeInt(6)});
  }
  LAMINA_TRY(rows.status());
  return out;
}

// --- decisions ---

Status Store::Decide(const Run& run, const Run& against, bool accepted,
                     const std::string& by, const std::string& reason) {
  Transaction change(*database_);
  LAMINA_TRY(change.Begin());
  LAMINA_TRY(Statement(*database_,
                       "INSERT INTO decision(run, against, accepted, reason, "
                       "decided_by, decided_ns) VALUES(?, ?, ?, ?, ?, ?)")
                 .With(run.id, against.id, accepted, reason, by, NowNs())
                 .Run());
  return change.Commit();
}

Result<std::vector<Decision>> Store::Decisions() {
  std::vector<Decision> out;
  Statement rows(
      *database_,
      "SELECT d.run, a.name, d.against, b.name, d.accepted, "
      "d.reason, d.decided_by, d.decided_ns FROM decision d JOIN run "
      "a ON a.id = d.run JOIN run b ON b.id = d.against ORDER BY "
      "d.id DESC");
  while (rows.Next()) {
    out.push_back({rows.Int(0), rows.Text(1), rows.Int(2), rows.Text(3),
                   rows.Int(4) != 0, rows.Text(5), rows.Text(6), rows.Int(7)});
  }
  LAMINA_TRY(rows.status());
  return out;
}

Result<std::optional<Decision>> Store::DecisionOn(int64_t run,
                                                  int64_t against) {
  LAMINA_ASSIGN(const auto all, Decisions());
  for (const Decision& one : all) {
    if (one.run == run && one.against == against) return one;
  }
  return std::nullopt;
}

// --- what is removed ---

Status Store::Remove(const std::vector<int64_t>& runs) {
  Transaction change(*database_);
  LAMINA_TRY(change.Begin());
  // Who adds a run meanwhile needs its texts.
  if (database_->is_server())
    LAMINA_TRY(Execute(*database_, "LOCK TABLE text IN EXCLUSIVE MODE"));
  // Baselines of the past go with their runs.
  Statement past(*database_,
                 "DELETE FROM baseline WHERE run = ? AND until_ns IS NOT NULL");
  Statement remove(*database_, "DELETE FROM run WHERE id = ?");
  for (const int64_t run : runs) {
    LAMINA_TRY(past.With(run).Run());
    LAMINA_TRY(remove.With(run).Run());
  }
  LAMINA_TRY(
      Execute(*database_,
              "DELETE FROM text WHERE id NOT IN (SELECT path FROM module "
              "UNION SELECT name FROM kernel UNION SELECT op FROM "
              "kernel)"));
  LAMINA_TRY(change.Commit());
  // A server uses the room again.
  return database_->is_server() ? Status() : Execute(*database_, "VACUUM");
}

// --- names and times ---

Result<std::string> StorePath(std::string store) {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (store.empty()) store = variable("LAMINA_STORE");
  if (store.empty()) {
    std::string folder = variable("XDG_DATA_HOME");
    if (folder.empty() && !variable("HOME").empty())
      folder = variable("HOME") + "/.local/share";
    if (folder.empty()) {
      return Fail(UsageError("there is no folder for a store of runs",
                             "name a file with ⟨store⟩"));
    }
    store = folder + "/lamina/runs.sqlite";
  }
  constexpr std::string_view kSqlite = "sqlite:";
  if (store.starts_with(kSqlite)) store = store.substr(kSqlite.size());
  const size_t scheme = store.find("://");
  if (scheme == std::string::npos) return store;
  // What is secret in it must not come back in a message.
  const std::string_view rest = std::string_view(store).substr(scheme + 3);
  const std::string_view user = rest.substr(0, rest.find('@'));
  if ((user.size() < rest.size() && Contains(user, ":")) ||
      Contains(rest, "password=")) {
    return Fail(UsageError(
        "an address with a password is refused: everybody on this machine "
        "can read it in the list of processes",
        "passwords belong into ~/.pgpass or PGPASSFILE"));
  }
  if (!IsAddress(store)) {
    return Fail(UsageError(
        "there is no such kind of store: " + store.substr(0, scheme) + "://",
        "a file, or postgresql://[USER@]HOST/DATABASE"));
  }
  return store;
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string DateText(int64_t ns) {
  const auto seconds = static_cast<time_t>(ns / 1'000'000'000);
  struct tm utc {};
  gmtime_r(&seconds, &utc);
  char text[40];
  const size_t size = std::strftime(text, sizeof(text), "%FT%TZ", &utc);
  return {text, size};
}

std::optional<int64_t> ParseDate(std::string_view text) {
  constexpr int64_t kSecond = 1'000'000'000, kLatest = 9'000'000'000;
  if (const auto seconds = ParseDouble(text)) {
    if (!(*seconds > 0) || *seconds > kLatest) return std::nullopt;
    return static_cast<int64_t>(*seconds * 1e3) * (kSecond / 1000);
  }
  struct tm utc {};
  const std::string copy(text);
  for (const char* form : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S",
                           "%Y-%m-%dT%H:%M", "%Y-%m-%d"}) {
    utc = {};
    const char* const end = strptime(copy.c_str(), form, &utc);
    if (end == nullptr) continue;
    const std::string_view rest = end;
    if (!rest.empty() && rest != "Z" && rest != "+00:00") continue;
    return static_cast<int64_t>(timegm(&utc)) * kSecond;
  }
  return std::nullopt;
}

std::string UserName() {
  for (const char* name : {"USER", "LOGNAME"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return fmt::format("user {}", getuid());
}

}  // namespace lamina::runstore
