// SPDX-License-Identifier: Apache-2.0
//
// Why it is longer than 250 lines: one fixture (a sample, opened once) serves
// the tests of tables, push-down, functions, attacks and threads.
#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <set>
#include <sqlite3.h>
#include <thread>

#include "engine/report.h"
#include "source_dir.h"
#include "sql/database.h"
#include "sql/table_def.h"
#include "table/columns.h"
#include "trace/fields.h"

namespace lamina::sql {
namespace {

const std::string kSample =
    std::string(LAMINA_SOURCE_DIR) + "/samples/train_step.json.gz";

std::shared_ptr<engine::Session> Sample() {
  static const auto source = [] {
    engine::OpenOptions options;
    options.threads = 2;
    return std::shared_ptr<engine::Session>(
        *engine::Session::Open(kSample, options));
  }();
  return source;
}

std::unique_ptr<Database> OpenSample(DatabaseOptions options = {}) {
  auto database = Database::Open({{"main", {Sample()}, {}}}, options);
  EXPECT_TRUE(database.has_value());
  return *std::move(database);
}

// All cells of all results, for comparing.
std::string Dump(Database& database, const std::string& sql,
                 const QueryOptions& options = {}) {
  const auto tables = database.Run(sql, options);
  if (!tables) return "error: " + tables.error().what;
  std::string out;
  for (const Table& table : *tables) {
    for (size_t r = 0; r < table.rows(); ++r) {
      for (size_t c = 0; c < table.columns(); ++c) {
        if (c > 0) out += "|";
        if (table.At(r, c).null()) out += "NULL";
        AppendCellText(out, table, r, c);
      }
      out += "\n";
    }
  }
  return out;
}

TEST(Fields, EveryDocIsASentence) {
  const auto check = [](const auto& described) {
    EXPECT_TRUE(described.doc.ends_with('.')) << described.name;
  };
  trace::ForEachDescribed([&]<class Row>() {
    using trace::Described;
    EXPECT_TRUE(Described<Row>::kDoc.ends_with('.')) << Described<Row>::kName;
    std::apply([&](const auto&... field) { (check(field.info), ...); },
               Described<Row>::kFields);
  });
}

TEST(Tables, HaveNamesTypesAndDocs) {
  std::vector<std::string> names;
  for (const TableDef& table : Tables()) {
    names.push_back(table.name);
    EXPECT_TRUE(table.doc.ends_with('.')) << table.name;
    std::vector<std::string> columns;
    for (const ColumnDef& column : table.columns) {
      columns.push_back(column.name);
      EXPECT_FALSE(column.doc.empty()) << table.name << "." << column.name;
    }
    std::sort(columns.begin(), columns.end());
    EXPECT_EQ(std::unique(columns.begin(), columns.end()), columns.end())
        << table.name;
    EXPECT_EQ(table.open == nullptr, table.kind == TableKind::kView);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

// What the dictionary calls the column: of a time in microseconds the one in
// nanoseconds, unless no table has that.
const ColumnWord* WordOf(const std::string& column) {
  const ColumnWord* const word = FindColumnWord(column);
  if (word != nullptr || !column.ends_with("_us")) return word;
  return FindColumnWord(column.substr(0, column.size() - 2) + "ns");
}

TEST(Tables, ColumnsHaveTheTypeOfTheirNameAndNoNameIsLeftOver) {
  std::set<std::string_view> used;
  for (const TableDef& table : Tables()) {
    for (const ColumnDef& column : table.columns) {
      const ColumnWord* const word = WordOf(column.name);
      ASSERT_NE(word, nullptr)
          << table.name << "." << column.name
          << " is not in src/table/columns.cc: add it, or use a name that is";
      used.insert(word->name);
      const Type type = word->type == ColumnType::kText   ? Type::kText
                        : word->type == ColumnType::kReal ? Type::kReal
                                                          : Type::kInt;
      // Microseconds are decimal.
      if (word->name != column.name) continue;
      EXPECT_EQ(column.type, type) << table.name << "." << column.name;
    }
  }
  for (const ColumnWord& word : ColumnWords()) {
    EXPECT_TRUE(used.contains(word.name)) << word.name << " is of no table";
    EXPECT_TRUE(word.meaning.ends_with('.')) << word.name;
  }
}

TEST(Tables, EachCanBeRead) {
  const auto database = OpenSample();
  for (const TableDef& table : Tables()) {
    const auto rows = database->Run("SELECT * FROM " + table.name);
    ASSERT_TRUE(rows.has_value()) << table.name << rows.error().what;
    ASSERT_EQ(rows->size(), 1U) << table.name;
    size_t shown = 0;
    for (const ColumnDef& column : table.columns) shown += !column.hidden;
    EXPECT_EQ(rows->front().columns(), shown) << table.name;
  }
}

// Sums of what SQL shows are those of the model and of the report.
// A device has one name in all tables, so that they join.
TEST(Tables, JoinByDevice) {
  const auto database = OpenSample();
  const auto count = [&](const std::string& sql) {
    const auto rows = database->Run(sql);
    EXPECT_TRUE(rows.has_value()) << sql;
    return rows ? rows->front().Int(0, 0) : -1;
  };
  const int64_t kernels = count("SELECT count(*) FROM kernel");
  EXPECT_GT(kernels, 0);
  EXPECT_EQ(kernels, count("SELECT count(*) FROM kernel AS k JOIN "
                           "device_events AS d ON d.uid = k.uid AND "
                           "d.device = k.device"));
  EXPECT_EQ(kernels,
            count("SELECT count(*) FROM kernel AS k WHERE EXISTS (SELECT 1 "
                  "FROM busy AS b WHERE b.device = k.device AND "
                  "k.start_ns BETWEEN b.start_ns AND b.start_ns + b.dur_ns)"));
  EXPECT_EQ(0, count("SELECT count(*) FROM (SELECT device FROM busy UNION "
                     "SELECT device FROM idle_parts UNION SELECT device FROM "
                     "steps) WHERE device NOT IN (SELECT device FROM kernel)"));
}

TEST(Tables, SliceIsTheModel) {
  const auto database = OpenSample();
  const trace::Trace& trace = Sample()->trace();
  int64_t sum = 0;
  for (const int64_t dur : trace.slices.dur_ns) sum += dur;
  EXPECT_EQ(
      Dump(*database, "SELECT count(*), sum(dur_ns) FROM slice"),
      std::to_string(trace.slices.size()) + "|" + std::to_string(sum) + "\n");
  int64_t device = 0;
  for (const auto s : trace.device_slices()) device += trace.Duration(s);
  EXPECT_EQ(Dump(*database, "SELECT sum(dur_ns) FROM kernel"),
            std::to_string(device) + "\n");
}

TEST(Tables, ResultsAreThoseOfTheReport) {
  const auto database = OpenSample();
  ReportOptions options;
  options.threads = 2;
  const auto report = MakeReport(kSample, options);
  ASSERT_TRUE(report.has_value());
  for (const Table& table : report->result.tables) {
    if (FindTable(table.name()) == nullptr) {
      // Made for a report alone, from other tables.
      EXPECT_TRUE(table.name().starts_with("efficiency_") ||
                  table.name() == "idle_causes")
          << table.name();
      continue;
    }
    EXPECT_EQ(Dump(*database, "SELECT count(*) FROM " + table.name()),
              std::to_string(table.rows()) + "\n");
    for (const Column& column : table.schema().columns) {
      if (column.type != ColumnType::kTime) continue;
      const std::string ns =
          column.name.substr(0, column.name.size() - 3) + "_ns";
      const std::string found =
          Dump(*database, "SELECT total(" + ns + ") FROM " + table.name());
      EXPECT_EQ(std::stod(found), static_cast<double>(table.Sum(column.name)))
          << table.name() << "." << column.name;
    }
  }
}

// A condition that is tested before SQLite sees a row changes no result.
TEST(PushDown, ChangesNothing) {
  const auto with = OpenSample();
  DatabaseOptions off;
  off.push_down = false;
  const auto without = OpenSample(off);
  std::mt19937 random(7);
  const auto pick = [&](const auto& list) {
    return list[random() % std::size(list)];
  };
  const char* const kTables[] = {"slice", "kernel", "op",    "api_call",
                                 "node",  "launch", "track", "ops"};
  const char* const kOps[] = {"=", "<", "<=", ">", ">=", "IS", "IS NOT", "<>"};
  const char* const kTexts[] = {"'%mm%'",     "'a%'", "'%'",
                                "'aten::mm'", "''",   "'_%N_'"};
  const char* const kGlobs[] = {"'*mm*'", "'a*'", "'[a-m]*'"};
  for (int i = 0; i < 2000; ++i) {
    const TableDef& table = *FindTable(pick(kTables));
    std::string where;
    for (int k = 0; k < 1 + static_cast<int>(random() % 3); ++k) {
      const ColumnDef& column = pick(table.columns);
      where += where.empty() ? " WHERE " : " AND ";
      const std::string& name = column.name;
      switch (random() % 6) {
        case 0:
          where += name + " LIKE " + pick(kTexts);
          break;
        case 1:
          where += name + " GLOB " + pick(kGlobs);
          break;
        case 2:
          where += name + (random() % 2 ? " IS NULL" : " IS NOT NULL");
          break;
        case 3:
          where += name + " " + pick(kOps) + " " + pick(kTexts);
          break;
        case 4:
          where += name + " IN (1, 2.0, '3', NULL, 'op', 40, 4711)";
          break;
        default: {
          const std::string number =
              std::to_string(static_cast<int64_t>(random() % 20000) - 100) +
              (random() % 4 == 0 ? ".5" : "");
          where += name + " " + pick(kOps) + " " +
                   (random() % 5 == 0 ? "'" + number + "'" : number);
        }
      }
    }
    const std::string sql =
        "SELECT count(*), total(rowid), total(dur_ns)"
        " FROM " +
        table.name + where;
    const std::string sql_of =
        std::any_of(table.columns.begin(), table.columns.end(),
                    [](const ColumnDef& c) { return c.name == "dur_ns"; })
            ? sql
            : "SELECT count(*), total(rowid) FROM " + table.name + where;
    ASSERT_EQ(Dump(*with, sql_of), Dump(*without, sql_of)) << sql_of;
  }
  // Look-ups by an index, from another table.
  for (const char* sql :
       {"SELECT count(*), sum(k.dur_ns) FROM op o JOIN kernel k ON "
        "k.op_uid = o.uid",
        "SELECT count(*) FROM kernel k JOIN slice s ON s.uid = k.launch_uid",
        "SELECT count(*) FROM slice s JOIN op_arg a ON a.id = s.arg_id "
        "WHERE s.kind = 'op'",
        "SELECT count(*) FROM kernel k JOIN kernels t ON t.kernel = k.name",
        "SELECT count(*) FROM kernel k LEFT JOIN op o ON o.uid = k.op_uid "
        "WHERE o.uid IS NULL"})
    EXPECT_EQ(Dump(*with, sql), Dump(*without, sql)) << sql;
}

TEST(Functions, ExamplesRun) {
  const auto database = OpenSample();
  for (const FunctionInfo& f : Functions()) {
    const auto result = database->Run(f.example);
    EXPECT_TRUE(result.has_value())
        << f.name << ": " << (result ? "" : result.error().what);
    EXPECT_TRUE(f.doc.ends_with('.') || f.doc.ends_with("null.")) << f.name;
  }
}

TEST(Functions, GiveWhatTheyPromise) {
  const auto database = OpenSample();
  const auto one = [&](const std::string& sql) {
    return Dump(*database, "SELECT " + sql);
  };
  EXPECT_EQ(one("parse_time('1.5ms'), parse_time('20 us'), parse_time('7ns'), "
                "parse_time('3s'), parse_time('x')"),
            "1500000|20000|7|3000000000|NULL\n");
  EXPECT_EQ(one("'aten::mm' REGEXP '::m+$', regexp_extract('t_128x64', "
                "'([0-9]+)x([0-9]+)', 2), regexp_replace('a1b22', '[0-9]+', "
                "'N')"),
            "1|64|aNbN\n");
  EXPECT_EQ(one("numel('[[2, 3], [4]]'), dtype_bytes('c10::BFloat16')"),
            "10|2\n");
  EXPECT_EQ(one("flops('aten::mm', '[[4, 8], [8, 2]]', "
                "'[\"float\", \"float\"]')"),
            "128\n");
  // Costs are kept by their texts, whatever these hold.
  EXPECT_EQ(Dump(*database,
                 "SELECT bytes_moved('aten::mm', d, t) FROM (SELECT "
                 "'[[4, 8], [8, 2]]' d, '[\"float\", \"float\"]' || char(0) t "
                 "UNION ALL SELECT '[[4, 8], [8, 2]]' || char(0) || "
                 "'[\"float\", \"float\"]', '')"),
            "224\nNULL\n");
  EXPECT_EQ(one("class_name('Model_0/Linear_21'), module_depth('a/b/c')"),
            "Linear|2\n");
  EXPECT_EQ(Dump(*database,
                 "WITH t(x, w) AS (VALUES (1, 1), (2, 1), (3, 1), (10, 0)) "
                 "SELECT percentile(x, 50), percentile(x, 99), median(x), "
                 "mad(x), max_by(w, x), min_by(w, x), weighted_mean(x, w) "
                 "FROM t"),
            "2|10|2.5|1|0|1|2\n");
  EXPECT_EQ(Dump(*database,
                 "SELECT union_ns(s, d) FROM (SELECT 0 s, 10 d UNION ALL "
                 "SELECT 5, 10 UNION ALL SELECT 20, 1)"),
            "16\n");
}

// Every function over spans against a walk over every nanosecond.
TEST(Intervals, AreThoseOfAWalkOverEveryNanosecond) {
  const auto database = OpenSample();
  std::mt19937 random(11);
  constexpr int kEnd = 24;
  struct Item {
    int start, dur;
  };
  const auto make = [&] {
    std::vector<Item> out(random() % 7);
    for (Item& item : out)
      item = {static_cast<int>(random() % 16), static_cast<int>(random() % 8)};
    return out;
  };
  const auto sql_of = [](const std::vector<Item>& items) {
    std::string out = "SELECT 0 AS id, 0 AS start_ns, 0 AS dur_ns WHERE 0";
    for (size_t i = 0; i < items.size(); ++i) {
      out += " UNION ALL SELECT " + std::to_string(i) + ", " +
             std::to_string(items[i].start) + ", " +
             std::to_string(items[i].dur);
    }
    return "'" + out + "'";
  };
  const auto covers = [](const Item& item, int t) {
    return item.start <= t && t < item.start + item.dur;
  };
  for (int round = 0; round < 300; ++round) {
    const auto a = make(), b = make();
    int pairs = 0, left = 0, merged = 0, most = 0, self = 0;
    for (int t = 0; t < kEnd; ++t) {
      int in_a = 0, in_b = 0;
      for (const Item& item : a) in_a += covers(item, t);
      for (const Item& item : b) in_b += covers(item, t);
      pairs += in_a * in_b;
      left += in_b == 0 ? in_a : 0;
      merged += in_a > 0;
      most = std::max(most, in_a);
      self += in_a > 0;
    }
    const auto sum = [&](const std::string& call, const char* what) {
      return Dump(*database,
                  "SELECT coalesce(" + std::string(what) + ", 0) FROM " + call);
    };
    const std::string both = "(" + sql_of(a) + ", " + sql_of(b) + ")";
    const std::string first = "(" + sql_of(a) + ")";
    EXPECT_EQ(sum("interval_intersect" + both, "sum(dur_ns)"),
              std::to_string(pairs) + "\n");
    EXPECT_EQ(sum("interval_subtract" + both, "sum(dur_ns)"),
              std::to_string(left) + "\n");
    EXPECT_EQ(sum("interval_left_intersect" + both, "sum(dur_ns)"),
              std::to_string(pairs + left) + "\n");
    EXPECT_EQ(sum("interval_merged" + first, "sum(dur_ns)"),
              std::to_string(merged) + "\n");
    EXPECT_EQ(sum("interval_overlap_count" + first, "max(value)"),
              std::to_string(most) + "\n");
    EXPECT_EQ(sum("interval_flatten" + first, "sum(dur_ns)"),
              std::to_string(self) + "\n")
        << first;
    EXPECT_EQ(
        sum("interval_buckets(" + sql_of(a) + ", 0, 24, 5)", "sum(value)"),
        std::to_string(merged) + "\n");
    int gaps = 0;
    for (int t = 2; t < 20; ++t) {
      gaps += std::none_of(a.begin(), a.end(),
                           [&](const Item& item) { return covers(item, t); });
    }
    if (merged > 0) {
      EXPECT_EQ(sum("interval_gaps(" + sql_of(a) + ", 2, 20)", "sum(dur_ns)"),
                std::to_string(gaps) + "\n");
    }
  }
}

// What must not work, and that queries work as before afterwards.
TEST(Attacks, AreRefused) {
  const auto database = OpenSample();
  const char* const kAttacks[] = {
      "ATTACH '/tmp/x.db' AS x",
      "ATTACH DATABASE 'file:/etc/passwd?mode=ro' AS x",
      "DETACH DATABASE main",
      "VACUUM",
      "VACUUM INTO '/tmp/lamina_attack.db'",
      "CREATE TABLE t(x)",
      "CREATE TABLE main.t AS SELECT 1",
      "CREATE TEMP TABLE t(x)",
      "CREATE TEMPORARY VIEW v AS SELECT 1",
      "CREATE VIEW v AS SELECT 1",
      "CREATE INDEX i ON lamina_meta(key)",
      "CREATE TRIGGER t AFTER INSERT ON lamina_meta BEGIN SELECT 1; END",
      "CREATE TEMP TRIGGER t AFTER INSERT ON lamina_meta BEGIN SELECT 1; END",
      "CREATE VIRTUAL TABLE t USING lamina(slice)",
      "CREATE VIRTUAL TABLE t USING fts5(x)",
      "CREATE VIRTUAL TABLE t USING rtree(a,b,c)",
      "CREATE VIRTUAL TABLE temp.t USING dbstat",
      "DROP TABLE slice",
      "DROP VIEW collective_call",
      "DROP TABLE lamina_meta",
      "ALTER TABLE lamina_meta RENAME TO x",
      "ALTER TABLE lamina_meta ADD COLUMN y",
      "INSERT INTO lamina_meta VALUES('a', 'b')",
      "INSERT INTO slice(uid) VALUES(1)",
      "REPLACE INTO lamina_meta VALUES('a', 'b')",
      "UPDATE lamina_meta SET value = 'x'",
      "UPDATE slice SET dur_ns = 0",
      "DELETE FROM lamina_meta",
      "DELETE FROM slice",
      "INSERT INTO sqlite_schema VALUES('table','x','x',0,'')",
      "UPDATE sqlite_schema SET sql = ''",
      "DELETE FROM sqlite_schema",
      "PRAGMA writable_schema = 1",
      "PRAGMA journal_mode = WAL",
      "PRAGMA database_list",
      "PRAGMA trusted_schema = 1",
      "PRAGMA temp_store_directory = '/tmp'",
      "PRAGMA data_store_directory = '/tmp'",
      "PRAGMA hard_heap_limit = 1",
      "PRAGMA case_sensitive_like = 1",
      "PRAGMA query_only = 0",
      "PRAGMA module_list",
      "PRAGMA compile_options",
      "PRAGMA function_list; PRAGMA mmap_size = 1",
      "SELECT * FROM pragma_database_list",
      "SELECT * FROM pragma_compile_options",
      "SELECT load_extension('/tmp/x.so')",
      "SELECT load_extension('/tmp/x.so', 'f')",
      "SELECT fts3_tokenizer('simple')",
      "SELECT fts3_tokenizer('x', x'0000000000000000')",
      "SELECT readfile('/etc/passwd')",
      "SELECT writefile('/tmp/x', 'y')",
      "SELECT edit('x')",
      "SELECT * FROM dbstat",
      "SELECT * FROM sqlite_dbpage",
      "SELECT * FROM sqlite_stmt",
      "BEGIN",
      "BEGIN EXCLUSIVE",
      "COMMIT",
      "SAVEPOINT x",
      "ROLLBACK",
      "ALTER TABLE lamina_meta DROP COLUMN value",
      "ANALYZE",
      "EXPLAIN DELETE FROM lamina_meta",
      "WITH t AS (SELECT 1) INSERT INTO lamina_meta SELECT 1, 2",
      "SELECT * FROM interval_merged('DELETE FROM lamina_meta')",
      "SELECT * FROM interval_merged('ATTACH ''/tmp/x'' AS y')",
      "SELECT * FROM lamina",
      "SELECT zeroblob(1000000000)",
      "SELECT replace(hex(zeroblob(30000000)), '0', 'aaaa')",
  };
  static_assert(std::size(kAttacks) >= 60);
  const std::string before = Dump(*database, "SELECT count(*) FROM slice");
  for (const char* attack : kAttacks) {
    const auto result = database->Run(attack);
    EXPECT_FALSE(result.has_value()) << attack;
    if (!result) {
      EXPECT_FALSE(result.error().what.empty()) << attack;
    }
    // SQLite connects tables again after a refusal.
    EXPECT_EQ(Dump(*database, "SELECT count(*) FROM slice"), before) << attack;
  }
}

TEST(Attacks, TempTablesOnlyWhereAllowed) {
  DatabaseOptions options;
  options.allow_temp = true;
  const auto database = OpenSample(options);
  EXPECT_EQ(Dump(*database,
                 "CREATE TEMP TABLE t AS SELECT 1 AS x; INSERT INTO t VALUES "
                 "(2); SELECT sum(x) FROM t; DROP TABLE t"),
            "3\n");
  EXPECT_FALSE(database->Run("CREATE TABLE t(x)").has_value());
  EXPECT_FALSE(database->Run("DELETE FROM lamina_meta").has_value());
}

TEST(Errors, SayWhereAndWhatIsMeant) {
  const auto database = OpenSample();
  const auto error = [&](const std::string& sql) {
    const auto result = database->Run(sql);
    EXPECT_FALSE(result.has_value()) << sql;
    return result ? Error() : result.error();
  };
  const Error column = error("SELECT name,\n  durr_ns FROM kernel");
  EXPECT_EQ(column.kind, ErrorKind::kUsage);
  EXPECT_EQ(column.line, 2U);
  EXPECT_EQ(column.column, 3U);
  EXPECT_NE(column.hint.find("dur_ns"), std::string::npos) << column.hint;
  EXPECT_EQ(column.excerpt, "  durr_ns FROM kernel\n  ^");
  EXPECT_NE(error("SELECT * FROM kernell").hint.find("kernel"),
            std::string::npos);
  EXPECT_NE(error("SELECT percentle(1, 2)").hint.find("percentile"),
            std::string::npos);
  EXPECT_EQ(error("SELECT :x").kind, ErrorKind::kUsage);
  QueryOptions options;
  options.params["x"] = int64_t{41};
  EXPECT_EQ(Dump(*database, "SELECT :x + 1", options), "42\n");
}

TEST(Limits, EndAQuery) {
  const auto database = OpenSample();
  const std::string endless =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
      "SELECT count(*) FROM n";
  QueryOptions time;
  time.time_limit = std::chrono::milliseconds(30);
  auto result = database->Run(endless, time);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kLimit);
  EXPECT_NE(result.error().what.find("limit"), std::string::npos);
  QueryOptions rows;
  rows.max_rows = 3;
  EXPECT_FALSE(database->Run("SELECT uid FROM kernel", rows).has_value());
  EXPECT_TRUE(
      database->Run("SELECT uid FROM kernel LIMIT 3", rows).has_value());
  std::atomic<bool> stop = true;
  QueryOptions stopped;
  stopped.stop = &stop;
  result = database->Run(endless, stopped);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(Dump(*database, "SELECT 1"), "1\n");
}

// Texts of few characters, so that they meet often.
std::string RandomLiteral(std::mt19937& random) {
  const auto pick = [&](size_t n) { return random() % n; };
  if (pick(12) == 0) return "NULL";
  if (pick(12) == 0) return std::to_string(pick(2000));
  if (pick(12) == 0)
    return "x'61c3a4" + std::string(pick(2) == 0 ? "62'" : "'");
  static constexpr const char* kCharacters[] = {"a", "A", "b", "\u00e4", "%",
                                                "_", "*", "?", "[ab]",   " "};
  std::string text = "'";
  for (size_t n = pick(9); n > 0; --n)
    text += kCharacters[pick(std::size(kCharacters))];
  return text + "'";
}

TEST(Bounded, FunctionsAnswerAsThoseOfSqlite) {
  const auto database = OpenSample();
  sqlite3* plain = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &plain), SQLITE_OK);
  std::mt19937 random(7);
  for (int i = 0; i < 6000; ++i) {
    const std::string a = RandomLiteral(random), b = RandomLiteral(random),
                      c = RandomLiteral(random);
    const std::string asked[] = {"instr(" + a + "," + b + ")",
                                 "replace(" + a + "," + b + "," + c + ")",
                                 "trim(" + a + ")",
                                 "trim(" + a + "," + b + ")",
                                 "ltrim(" + a + "," + b + ")",
                                 "rtrim(" + a + "," + b + ")",
                                 a + " LIKE " + b,
                                 a + " LIKE " + b + " ESCAPE 'a'",
                                 a + " GLOB " + b,
                                 "printf('%5s|%.2f|%%|%*d|%-8.3s|', " + a +
                                     ",1.5," + std::to_string(random() % 9) +
                                     "," + b + "," + c + ")",
                                 "format(" + a + "," + b + ")"};
    const std::string sql = "SELECT quote(" + asked[random() % 11] + ")";
    sqlite3_stmt* statement = nullptr;
    ASSERT_EQ(sqlite3_prepare_v2(plain, sql.c_str(), -1, &statement, nullptr),
              SQLITE_OK);
    ASSERT_EQ(sqlite3_step(statement), SQLITE_ROW) << sql;
    const std::string expected =
        reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    EXPECT_EQ(Dump(*database, sql), expected + "\n") << sql;
  }
  sqlite3_close(plain);
}

// Each of these ran for minutes, whatever the limit of time: the test ends, or
// its own limit ends it.
TEST(Bounded, FunctionsEnd) {
  const auto database = OpenSample();
  QueryOptions options;
  options.time_limit = std::chrono::milliseconds(200);
  for (const char* sql :
       {"SELECT instr(hex(zeroblob(3e7)), hex(zeroblob(1e6)) || '1')",
        "SELECT length(replace(hex(zeroblob(3e7)), "
        "hex(zeroblob(100000)) || '1', 'x'))",
        "SELECT length(trim(hex(zeroblob(3e7)), "
        "replace(hex(zeroblob(1e6)), '0', 'x') || '0'))",
        "SELECT printf('%.*c', 2e9, 'x')", "SELECT format('%2000000000d', 1)",
        "SELECT hex(zeroblob(3e7)) LIKE '%' || hex(zeroblob(450)) || '1%'",
        "SELECT hex(zeroblob(3e7)) GLOB '*' || hex(zeroblob(450)) || '1*'",
        "SELECT length(replace(hex(zeroblob(3e7)), '0', 'xxxxxxxx'))"})
    (void)database->Run(sql, options);
  EXPECT_EQ(Dump(*database, "SELECT 1"), "1\n");
}

TEST(Ranks, TablesHaveTheRowsOfAll) {
  auto a = Sample();
  auto database = Database::Open({{"main", {a, a}, {0, 3}}}, {});
  ASSERT_TRUE(database.has_value());
  const auto single = OpenSample();
  const std::string sum = Dump(*single, "SELECT sum(dur_ns) FROM kernel");
  EXPECT_EQ(
      Dump(**database, "SELECT rank, sum(dur_ns) FROM kernel GROUP BY rank"),
      "0|" + sum + "3|" + sum);
  EXPECT_EQ(Dump(**database, "SELECT sum(dur_ns) FROM kernel WHERE rank = 3"),
            sum);
}

TEST(Schemas, AreNamed) {
  auto database =
      Database::Open({{"a", {Sample()}, {}}, {"b", {Sample()}, {}}}, {});
  ASSERT_TRUE(database.has_value());
  EXPECT_EQ(Dump(**database,
                 "SELECT (SELECT count(*) FROM a.kernel) = "
                 "(SELECT count(*) FROM b.kernel)"),
            "1\n");
  EXPECT_FALSE(Database::Open({{"a b", {Sample()}, {}}}, {}).has_value());
  EXPECT_FALSE(
      Database::Open({{"a", {Sample()}, {}}, {"a", {Sample()}, {}}}, {})
          .has_value());
}

TEST(Unlisted, TablesAreKnownByName) {
  DatabaseOptions options;
  options.allow_temp = true;
  const auto listed = OpenSample(options);
  options.listed = false;
  const auto known = OpenSample(options);
  for (const char* sql :
       {"SELECT count(*), sum(dur_ns) FROM kernel",
        "SELECT name, dur_ns FROM main.kernel WHERE name REGEXP 'gemm'",
        "SELECT count(*), sum(dur_ns) FROM collective_call",
        "SELECT op, count FROM ops ORDER BY op",
        "CREATE TEMP VIEW v AS SELECT sum(dur_ns) AS s FROM op; SELECT s FROM "
        "v",
        "SELECT count(*) FROM kernel k JOIN op o ON o.uid = k.op_uid"})
    EXPECT_EQ(Dump(*known, sql), Dump(*listed, sql)) << sql;
  EXPECT_EQ(
      Dump(*known, "SELECT count(*) FROM sqlite_schema WHERE type = 'table'"),
      "0\n");
  EXPECT_TRUE(
      Dump(*known, "SELECT 1 FROM kernel_").starts_with("error: no such"));
  EXPECT_TRUE(
      Dump(*known, "CREATE TABLE x(a)").starts_with("error: not allowed"));
}

// Rows of two columns: a group that never falls, and any values.
class Pairs : public Rows {
 public:
  explicit Pairs(std::vector<std::pair<int64_t, Value>> pairs)
      : pairs_(std::move(pairs)) {}
  size_t size() const override { return pairs_.size(); }
  Value Cell(size_t row, int column) const override {
    return column == 0 ? Value(pairs_[row].first) : pairs_[row].second;
  }

 private:
  std::vector<std::pair<int64_t, Value>> pairs_;
};

TEST(Shown, RowsAreATableUntilOthersTakeItsPlace) {
  const auto database = OpenSample();
  database->Show("pair", {"part", "value"},
                 std::make_shared<Pairs>(std::vector<std::pair<int64_t, Value>>{
                     {0, 1}, {0, "x"}, {0, Value()}, {2, 2.5}}),
                 0);
  EXPECT_EQ(Dump(*database, "SELECT part, value, typeof(value) FROM pair"),
            "0|1|integer\n0|x|text\n0|NULL|null\n2|2.5|real\n");
  EXPECT_EQ(Dump(*database,
                 "SELECT part, count(*), max(value) FROM pair GROUP BY part"),
            "0|3|x\n2|1|2.5\n");
  database->Show("pair", {"part", "other"},
                 std::make_shared<Pairs>(
                     std::vector<std::pair<int64_t, Value>>{{7, "y"}}));
  EXPECT_EQ(Dump(*database, "SELECT part || other FROM pair"), "7y\n");
  EXPECT_TRUE(Dump(*database, "SELECT value FROM pair").starts_with("error"));
}

bool Never() { return false; }

// The index finds what a look at every row finds.
TEST(Rows, EqualAsAScan) {
  std::mt19937_64 random(7);  // NOLINT: the same numbers each time
  const std::string texts[] = {"a", "b", ""};
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double odd[] = {kInf, -kInf, std::numeric_limits<double>::quiet_NaN()};
  // Beyond 2^53 a double does not hold every integer.
  const int64_t large[] = {INT64_MIN,
                           INT64_MIN + 1,
                           -(int64_t{1} << 53),
                           int64_t{1} << 53,
                           (int64_t{1} << 53) + 1,
                           9'200'000'000'000'000'512,
                           INT64_MAX - 1023,
                           INT64_MAX};
  std::vector<Value> wanted = {
      Value(), "a",   "",     "c",     1.5,    1.0,     -1e300, 1e300,
      kInf,    -kInf, 0x1p53, -0x1p53, 0x1p63, -0x1p63, 9.2e18, 0x1p63 - 1024};
  for (int64_t n = -4; n < 6; ++n) wanted.emplace_back(n);
  for (const int64_t n : large) {
    wanted.emplace_back(n);
    wanted.emplace_back(static_cast<double>(n));
  }
  size_t found_large = 0;
  for (unsigned round = 0; round < 200; ++round) {
    // Integers, some of them truths, or large, or nearly all distinct; with
    // reals; texts.
    const unsigned kinds = round % 4;
    const size_t count = round % 40 == 3 ? 5000 : random() % 40;
    std::vector<std::pair<int64_t, Value>> pairs;
    for (size_t i = 0; i < count; ++i) {
      const auto number = static_cast<int64_t>(random() % 7) - 3;
      Value value = number;
      if (kinds == 0 && random() % 4 == 0) value = number > 0;
      if (kinds == 1 && random() % 4 == 0) value = 0.5 * double(number);
      if (kinds == 1 && random() % 9 == 0) value = odd[random() % 3];
      if (kinds == 2) value = texts[random() % 3];
      if (kinds == 3 && random() % 3 == 0) value = large[random() % 8];
      if (kinds == 3 && count > 40 && random() % 9 != 0)
        value = static_cast<int64_t>(random() % 4000) - 100;
      if (random() % 5 == 0) value = Value();
      pairs.emplace_back(0, value);
    }
    if (round % 7 == 0) {
      for (size_t i = 0; i < pairs.size(); ++i)
        pairs[i].second = static_cast<int64_t>(i);
    }
    const Pairs rows(pairs);
    for (const Value& value : wanted) {
      std::vector<uint32_t> expected, room;
      for (uint32_t i = 0; i < rows.size(); ++i) {
        const Value cell = rows.Cell(i, 1);
        if (!IsNull(cell) && !value.null() && Compare(cell, value) == 0)
          expected.push_back(i);
      }
      const auto found = rows.Equal(1, value, room, &Never);
      EXPECT_EQ(std::vector<uint32_t>(found.begin(), found.end()), expected);
      found_large += value.kind() == Value::Kind::kReal &&
                     value.real() > 9e18 && !found.empty();
    }
  }
  EXPECT_GT(found_large, 0U);
}

// An index whose making was stopped is made by who asks next.
TEST(Rows, IndexStopsAndIsMadeLater) {
  std::vector<std::pair<int64_t, Value>> pairs;
  for (int64_t i = 0; i < 200'000; ++i)
    pairs.emplace_back(200'000 - i, i % 3 == 0 ? "a" : "b");
  const Pairs rows(pairs);
  std::vector<uint32_t> room;
  size_t asked = 0;
  const auto at_once = [&] { return ++asked > 0; };
  EXPECT_TRUE(rows.Equal(1, "a", room, at_once).empty());
  EXPECT_TRUE(rows.Equal(0, 7, room, at_once).empty());
  EXPECT_EQ(asked, 2U);
  EXPECT_EQ(rows.Equal(1, "a", room, &Never).size(), 66'667U);
  const auto found = rows.Equal(0, 7, room, &Never);
  EXPECT_EQ(std::vector<uint32_t>(found.begin(), found.end()),
            std::vector<uint32_t>{199'993});
}

// A text that an index finds, in a range of a sorted column.
TEST(PushDown, TextsInARange) {
  const std::string sql =
      "SELECT a.rowid, (SELECT group_concat(b.rowid) FROM kernel b WHERE "
      "b.name = (SELECT name FROM kernel LIMIT 1) AND b.start_ns >= a.start_ns "
      "AND b.start_ns < a.start_ns + 3000000), (SELECT group_concat(b.rowid) "
      "FROM kernel b WHERE b.start_ns > a.start_ns - 3000000 AND b.start_ns <= "
      "a.start_ns AND b.name = '" +
      [] {
        const std::string name = Dump(*OpenSample(),
                                      "SELECT name FROM kernel GROUP BY name "
                                      "ORDER BY count(*) DESC LIMIT 1");
        return name.substr(0, name.size() - 1);
      }() +
      "') FROM kernel a";
  DatabaseOptions off;
  off.push_down = false;
  const std::string expected = Dump(*OpenSample(off), sql);
  EXPECT_NE(expected.find(','), std::string::npos) << expected;
  EXPECT_EQ(Dump(*OpenSample(), sql), expected);
}

// Connections of many threads share one source and see the same.
TEST(Threads, ShareASource) {
  engine::OpenOptions options;
  options.threads = 2;
  const auto source = std::shared_ptr<engine::Session>(
      *engine::Session::Open(kSample, options));
  const char* const kQueries[] = {
      "SELECT count(*), sum(dur_ns) FROM kernel",
      "SELECT op, count FROM ops ORDER BY op",
      "SELECT layer, sum(dur_ns) FROM kernel GROUP BY layer",
      "SELECT count(*) FROM kernel k JOIN op o ON o.uid = k.op_uid",
      "SELECT note FROM note",
      "SELECT name FROM callstack((SELECT max(uid) FROM kernel))"};
  std::vector<std::string> expected;
  for (const char* sql : kQueries) expected.push_back(Dump(*OpenSample(), sql));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      auto database = Database::Open({{"main", {source}, {}}}, {});
      for (size_t i = 0; i < std::size(kQueries); ++i) {
        const size_t q = (i + t) % std::size(kQueries);
        wrong += Dump(**database, kQueries[q]) != expected[q];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace lamina::sql
