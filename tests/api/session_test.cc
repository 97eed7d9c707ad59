// SPDX-License-Identifier: Apache-2.0
//
// A session as a program outside the project uses it: public headers only.
//
// Why it is longer than 250 lines: one sample, opened once, serves all tests.
#include <filesystem>
#include <gtest/gtest.h>
#include <lamina/session.h>
#include <thread>
#include <unistd.h>

#include "source_dir.h"

namespace lamina {
namespace {

const std::string kSamples = LAMINA_SOURCE_DIR "/samples/";

std::shared_ptr<Session> Open(const std::string& name,
                              const OpenOptions& options = {}) {
  auto session = Session::Open(kSamples + name, options);
  EXPECT_TRUE(session) << (session ? "" : session.error().ToString());
  return session ? *session : nullptr;
}

std::shared_ptr<Session> Sample() {
  static const auto session = Open("train_step.json.gz");
  return session;
}

// All cells, exact.
std::string Dump(const Table& table) {
  std::string out;
  for (const Column& column : table.schema().columns) out += column.name + ",";
  for (size_t row = 0; row < table.rows(); ++row) {
    out += "\n";
    for (size_t c = 0; c < table.columns(); ++c) {
      out += table.IsNull(row, c) ? "NULL" : CellText(table, row, c);
      out += ",";
    }
  }
  return out;
}

std::string Dump(const Result<std::shared_ptr<const Table>>& table) {
  return table ? Dump(**table) : table.error().ToString();
}

TEST(Session, SaysWhatItOpened) {
  const TraceInfo& info = Sample()->info();
  EXPECT_EQ(info.format, "kineto");
  EXPECT_EQ(info.path, kSamples + "train_step.json.gz");
  EXPECT_EQ(info.device_slices, 212U);
  EXPECT_GT(info.slices, info.device_slices);
  EXPECT_GE(info.events, info.slices);
  ASSERT_FALSE(info.devices.empty());
  EXPECT_EQ(info.devices[0], "NVIDIA H100 80GB HBM3");
}

TEST(Session, EveryListedTableComesAsListed) {
  ASSERT_GT(ListTables().size(), 50U);
  for (const TableInfo& info : ListTables()) {
    const auto table = Sample()->Get(info.schema.name);
    ASSERT_TRUE(table) << table.error().ToString();
    ASSERT_EQ((*table)->columns(), info.schema.columns.size());
    for (size_t c = 0; c < info.schema.columns.size(); ++c) {
      const Column& column = (*table)->schema().columns[c];
      EXPECT_EQ(column.name, info.schema.columns[c].name);
      EXPECT_EQ(column.type, info.schema.columns[c].type);
      EXPECT_FALSE(column.doc.empty()) << info.schema.name << column.name;
    }
  }
}

TEST(Session, TablesAreThoseOfSql) {
  for (const TableInfo& info : ListTables()) {
    const auto table = Sample()->Get(info.schema.name);
    const auto rows = Sample()->Query("SELECT * FROM " + info.schema.name);
    ASSERT_TRUE(table && rows) << info.schema.name;
    ASSERT_EQ((*table)->rows(), (*rows)->rows()) << info.schema.name;
    for (size_t row = 0; row < (*table)->rows(); ++row) {
      for (size_t c = 0; c < (*table)->columns(); ++c) {
        const Value a = (*table)->At(row, c), b = (*rows)->At(row, c);
        ASSERT_EQ(a.null(), b.null()) << info.schema.name << row << "," << c;
        if (a.kind() == Value::Kind::kText) {
          ASSERT_EQ(a.text(), b.text()) << info.schema.name;
        } else if (!a.null()) {
          ASSERT_EQ(a.real(), b.real()) << info.schema.name;
        }
      }
    }
  }
}

TEST(Session, KeepsWhatWasMade) {
  const auto first = Sample()->Get("kernels");
  const auto again = Sample()->Get("kernels");
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->get(), again->get());
  const auto report = Sample()->Report();
  const auto report_again = Sample()->Report();
  ASSERT_TRUE(report && report_again);
  EXPECT_EQ(report->get(), report_again->get());
  // Rows of the trace while somebody holds them.
  auto slices = Sample()->Get("slice");
  auto more = Sample()->Get("slice");
  ASSERT_TRUE(slices && more);
  EXPECT_EQ(slices->get(), more->get());
}

TEST(Session, ReportIsThatOfTheFunction) {
  ReportOptions options;
  options.only = {"kernels", "gpu_timeline"};
  const auto expected = MakeReport(kSamples + "train_step.json.gz", options);
  const auto found = Sample()->Report(options);
  ASSERT_TRUE(expected && found);
  ASSERT_EQ((*found)->result.tables.size(), expected->result.tables.size());
  for (size_t i = 0; i < expected->result.tables.size(); ++i) {
    EXPECT_EQ(Dump((*found)->result.tables[i]),
              Dump(expected->result.tables[i]));
  }
  ASSERT_EQ((*found)->result.notes.size(), expected->result.notes.size());
  EXPECT_EQ((*found)->inputs, expected->inputs);
}

TEST(Session, ErrorsAreValues) {
  const auto kind = [](const auto& result) {
    EXPECT_FALSE(result);
    return result ? ErrorKind::kInternal : result.error().kind;
  };
  EXPECT_EQ(kind(Session::Open("/nowhere/trace.json")), ErrorKind::kInput);
  EXPECT_EQ(kind(Session::Open("")), ErrorKind::kInput);
  OpenOptions device;
  device.device = "no such device";
  EXPECT_EQ(kind(Session::Open(kSamples + "train_step.json.gz", device)),
            ErrorKind::kUsage);
  OpenOptions captures;
  captures.captures = {"/nowhere"};
  EXPECT_EQ(kind(Session::Open(kSamples + "train_step.json.gz", captures)),
            ErrorKind::kInput);

  const auto table = Sample()->Get("kernelz");
  EXPECT_EQ(kind(table), ErrorKind::kUsage);
  EXPECT_EQ(table.error().hint, "did you mean 'kernel'?");
  EXPECT_EQ(kind(Sample()->Get("")), ErrorKind::kUsage);
  EXPECT_EQ(kind(Sample()->Get("x'; DROP TABLE slice")), ErrorKind::kUsage);

  EXPECT_EQ(kind(Sample()->Query("")), ErrorKind::kUsage);
  EXPECT_EQ(kind(Sample()->Query("-- nothing")), ErrorKind::kUsage);
  EXPECT_EQ(kind(Sample()->Query("SELECT")), ErrorKind::kUsage);
  EXPECT_EQ(kind(Sample()->Query("DELETE FROM slice")), ErrorKind::kUsage);
  EXPECT_EQ(kind(Sample()->Query(std::string("SELECT 1\0", 9))),
            ErrorKind::kUsage);
  EXPECT_EQ(kind(Sample()->Query("SELECT :x")), ErrorKind::kUsage);
  QueryOptions rows;
  rows.max_rows = 2;
  EXPECT_EQ(kind(Sample()->Query("SELECT uid FROM kernel", rows)),
            ErrorKind::kLimit);
  QueryOptions bytes;
  bytes.max_bytes = 100;
  EXPECT_EQ(kind(Sample()->Query("SELECT uid FROM kernel", bytes)),
            ErrorKind::kLimit);

  ReportOptions report;
  report.layout = "other";
  EXPECT_EQ(kind(Sample()->Report(report)), ErrorKind::kUsage);
  report = {};
  report.only = {"kernel"};
  EXPECT_EQ(kind(Sample()->Report(report)), ErrorKind::kUsage);
  report = {};
  report.device = "h100";
  EXPECT_EQ(kind(Sample()->Report(report)), ErrorKind::kUsage);

  EXPECT_EQ(kind(Query({}, "SELECT 1", {})), ErrorKind::kUsage);
  EXPECT_EQ(kind(Query({{"a", nullptr}}, "SELECT 1", {})), ErrorKind::kUsage);
  EXPECT_EQ(kind(Query({{"a b", Sample()}}, "SELECT 1", {})),
            ErrorKind::kUsage);
  // And it goes on.
  EXPECT_TRUE(Sample()->Query("SELECT 1"));
}

TEST(Session, ParametersHaveTypes) {
  QueryOptions options;
  options.params["i"] = int64_t{INT64_MAX};
  options.params["r"] = 0.5;
  options.params["t"] = std::string("a'b");
  options.params["n"] = std::monostate();
  EXPECT_EQ(Dump(Sample()->Query(
                "SELECT :i AS i, :r AS r, :t AS t, :n IS NULL AS n", options)),
            "i,r,t,n,\n9223372036854775807,0.5,a'b,1,");
}

// What copies records takes them from the file, at the places that it had.
TEST(Session, CopiesNothingOfAFileThatChanged) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("session_test" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::string path = (folder / "trace.json.gz").string();
  fs::copy_file(kSamples + "train_step.json.gz", path);
  const auto session = Session::Open(path, {});
  ASSERT_TRUE(session) << session.error().ToString();
  RunOptions options;
  options.allow_write = true;
  const auto slice = [&](const char* name) {
    return (*session)->Ask(
        "slice", {{"step", int64_t{0}}, {"output", (folder / name).string()}},
        options);
  };
  const auto made = slice("before.json");
  EXPECT_TRUE(made) << made.error().ToString();
  EXPECT_TRUE(fs::exists(folder / "before.json"));
  fs::copy_file(kSamples + "serve.json.gz", path,
                fs::copy_options::overwrite_existing);
  EXPECT_FALSE(slice("after.json"));
  EXPECT_FALSE(fs::exists(folder / "after.json"));
  fs::remove_all(folder);
}

TEST(Session, TempTablesLastOneQuery) {
  QueryOptions options;
  options.allow_temp = true;
  EXPECT_EQ(Dump(Sample()->Query("CREATE TEMP TABLE t AS SELECT 41 AS x; "
                                 "SELECT x + 1 AS y FROM t",
                                 options)),
            "y,\n42,");
  EXPECT_FALSE(Sample()->Query("SELECT x FROM t", options));
}

TEST(Session, SeveralTracesInOneQuery) {
  const auto other = Open("moe.json.gz");
  const auto counts = Query({{"a", Sample()}, {"b", other}},
                            "SELECT (SELECT count(*) FROM a.kernel) AS a, "
                            "(SELECT count(*) FROM b.kernel) AS b",
                            {});
  EXPECT_EQ(Dump(counts),
            "a,b,\n212," + std::to_string(other->info().device_slices) + ",");
}

TEST(Session, StopsBeforeAndWhileItReads) {
  OpenOptions options;
  options.stop.emplace();
  options.stop->Stop();
  auto session = Session::Open(kSamples + "train_step.json.gz", options);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().kind, ErrorKind::kCancelled);
  // From within the reading.
  for (const char* name : {"train_step.json.gz", "jax.xplane.pb"}) {
    OpenOptions early;
    early.stop.emplace();
    bool told = false;
    early.progress = [&](const Progress& progress) {
      EXPECT_EQ(progress.stage, "reading");
      told = true;
      early.stop->Stop();
    };
    const auto stopped = Session::Open(kSamples + name, early);
    EXPECT_TRUE(told) << name;
    ASSERT_FALSE(stopped) << name;
    EXPECT_EQ(stopped.error().kind, ErrorKind::kCancelled) << name;
  }
}

TEST(Session, StopsQuestionsAndAnswersTheNext) {
  const auto session = Open("train_step.json.gz");
  RunOptions stopped;
  stopped.stop.emplace();
  stopped.stop->Stop();
  const auto table = session->Get("kernels", stopped);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().kind, ErrorKind::kCancelled);
  const auto report = session->Report({}, stopped);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::kCancelled);
  QueryOptions query;
  query.stop = stopped.stop;
  const auto rows = session->Query("SELECT * FROM kernels", query);
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().kind, ErrorKind::kCancelled);

  uint64_t most = 0;
  RunOptions watched;
  watched.progress = [&](const Progress& progress) {
    EXPECT_LE(progress.done, progress.total);
    most = std::max(most, progress.done);
  };
  ASSERT_TRUE(session->Report({}, watched));
  EXPECT_GT(most, 5U);
  EXPECT_TRUE(session->Get("kernels"));
}

// An endless query ends from another thread.
TEST(Session, StopsARunningQuery) {
  QueryOptions options;
  options.stop.emplace();
  std::thread stopper([&] { options.stop->Stop(); });
  const auto result = Sample()->Query(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
      "SELECT count(*) FROM n",
      options);
  stopper.join();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kCancelled);
}

// Many threads ask one fresh session at once, each in another order, and all
// see what one thread sees.
TEST(Session, ThreadsSeeTheSame) {
  const std::vector<std::string> tables = {"kernels", "ops",    "slice",
                                           "note",    "kernel", "layer_types",
                                           "gaps",    "mfu_run"};
  std::vector<std::string> known;
  for (const TableInfo& info : ListTables()) known.push_back(info.schema.name);
  std::vector<std::string> asked;
  for (const std::string& table : tables) {
    if (std::find(known.begin(), known.end(), table) != known.end())
      asked.push_back(table);
  }
  ASSERT_GE(asked.size(), 6U);
  std::vector<std::string> expected;
  for (const std::string& table : asked)
    expected.push_back(Dump(Sample()->Get(table)));
  const std::string sum = Dump(Sample()->Query("SELECT sum(dur_ns) FROM op"));
  const size_t notes = (*Sample()->Report())->result.notes.size();
  const auto session = Open("train_step.json.gz");
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < asked.size(); ++i) {
        const size_t q = (i * 5 + t) % asked.size();
        wrong += Dump(session->Get(asked[q])) != expected[q];
        wrong += Dump(session->Query("SELECT sum(dur_ns) FROM op")) != sum;
      }
      const auto report = session->Report();
      wrong += !report || (*report)->result.notes.size() != notes;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Tables outlive their session.
TEST(Session, TablesOutliveIt) {
  std::shared_ptr<const Table> kernels, rows;
  {
    const auto session = Open("train_step.json.gz");
    kernels = *session->Get("kernel");
    rows = *session->Query("SELECT name FROM kernel");
  }
  EXPECT_EQ(kernels->rows(), 212U);
  EXPECT_FALSE(rows->At(211, size_t{0}).text().empty());
}

}  // namespace
}  // namespace lamina
