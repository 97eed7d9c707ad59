// SPDX-License-Identifier: Apache-2.0
//
// For tests.

#include "ingest/common/database.h"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <random>
#include <sqlite3.h>
#include <string>

#include "base/escape.h"
#include "ingest/common/id_table.h"
#include "ingest/common/table_reader.h"

namespace lamina::ingest {

// A database file in memory, made by statements.
inline std::string MakeDatabase(const std::string& statements) {
  sqlite3* connection = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &connection), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(
      sqlite3_exec(connection, statements.c_str(), nullptr, nullptr, &error),
      SQLITE_OK)
      << (error != nullptr ? error : "");
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(connection, "main", &size, 0);
  std::string out(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(connection);
  return out;
}

namespace {

std::unique_ptr<Database> Open(const std::string& bytes) {
  auto database = Database::OpenBytes("test.db", bytes);
  EXPECT_TRUE(database.has_value())
      << (database ? std::string() : database.error().ToString());
  return database ? std::move(*database) : nullptr;
}

TEST(Database, ListsOrdinaryTables) {
  const auto database = Open(
      MakeDatabase("CREATE TABLE a(id INTEGER PRIMARY KEY, \"two words\" TEXT);"
                   "CREATE TABLE b(x, y, PRIMARY KEY(x, y));"
                   "CREATE VIEW v AS SELECT 1 AS id;"
                   "CREATE INDEX i ON b(y);"));
  ASSERT_EQ(database->tables().size(), 2u);
  const DatabaseTable* a = database->Find("A");  // names ignore case
  ASSERT_NE(a, nullptr);
  EXPECT_TRUE(a->Has("Two Words"));
  EXPECT_FALSE(a->Has("three"));
  EXPECT_EQ(a->primary_key, "id");
  EXPECT_EQ(database->Find("b")->primary_key, "");
  EXPECT_EQ(database->Find("v"), nullptr);
}

TEST(Database, ReadsColumnsByNameAndType) {
  const auto database = Open(
      MakeDatabase("CREATE TABLE t(a, b, c); INSERT INTO t VALUES "
                   "(7, 'text', 1.5), (2.0, 8, NULL), (2.5, x'00', 9e18);"));
  Rows rows = database->Scan(database->Find("t"), {"b", "missing", "a", "c"});
  ASSERT_TRUE(rows.Next());
  EXPECT_EQ(rows.Text(0), "text");
  EXPECT_EQ(rows.Int(0), std::nullopt);
  EXPECT_EQ(rows.Int(1), std::nullopt);
  EXPECT_EQ(rows.IntOr(1, -1), -1);
  EXPECT_EQ(rows.Int(2), 7);
  EXPECT_EQ(rows.Real(3), 1.5);
  EXPECT_EQ(rows.Int(3), std::nullopt);
  ASSERT_TRUE(rows.Next());
  EXPECT_EQ(rows.Int(0), 8);
  EXPECT_EQ(rows.Text(0), std::nullopt);
  EXPECT_EQ(rows.Int(2), 2);
  EXPECT_EQ(rows.Real(3), std::nullopt);
  ASSERT_TRUE(rows.Next());
  EXPECT_EQ(rows.Text(0), std::nullopt);
  EXPECT_EQ(rows.Int(2), std::nullopt);
  // Beyond what a double holds exactly.
  EXPECT_EQ(rows.Int(3), std::nullopt);
  EXPECT_FALSE(rows.Next());
  EXPECT_EQ(rows.count(), 3u);
  EXPECT_EQ(rows.damage(), "");
}

TEST(Database, ForEachSeesWhatRowsSee) {
  const auto database = Open(
      MakeDatabase("CREATE TABLE t(a, b, c); INSERT INTO t VALUES "
                   "(7, 'text', 1.5), (2.0, 8, NULL), (2.5, x'00', 9e18);"));
  std::vector<std::string> seen;
  const PassEnd end = database->ForEach(
      database->Find("t"), {"b", "missing", "a", "c"}, [&](const Row& row) {
        EXPECT_EQ(row.Int(1), std::nullopt);
        EXPECT_EQ(row.Text(1), std::nullopt);
        EXPECT_EQ(row.Real(1), std::nullopt);
        seen.push_back(std::string(row.Text(0).value_or("-")) + " " +
                       std::to_string(row.IntOr(2, -1)) + " " +
                       std::to_string(row.Real(3).value_or(-1) > 1));
      });
  EXPECT_EQ(seen, (std::vector<std::string>{"text 7 1", "- 2 0", "- -1 1"}));
  EXPECT_EQ(end.rows, 3u);
  EXPECT_FALSE(end.stopped);
  EXPECT_EQ(end.damage, "");
  // None of the columns, no table.
  const auto none = [](const Row& row) { EXPECT_EQ(row.Int(0), std::nullopt); };
  EXPECT_EQ(database->ForEach(database->Find("t"), {"x"}, none).rows, 3u);
  EXPECT_EQ(database->ForEach(nullptr, {"a"}, none).rows, 0u);
}

TEST(Database, RangesOfRowIds) {
  const auto database = Open(MakeDatabase(
      "CREATE TABLE t(rowid, a); CREATE TABLE w(a PRIMARY KEY) WITHOUT ROWID;"
      "CREATE TABLE e(a); CREATE TABLE g(a, rowid AS (1), _rowid_ AS (2), "
      "oid AS (3)); INSERT INTO w VALUES (1);"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE "
      "i < 9000) INSERT INTO t(_rowid_, rowid, a) SELECT i * 2, 7, i FROM n;"));
  const DatabaseTable& t = *database->Find("t");
  EXPECT_EQ(t.row_id, "_rowid_");
  const auto cuts = database->Cuts(t, 5000);
  ASSERT_EQ(cuts.size(), 3u);
  uint64_t rows = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    RowRange range;
    if (i > 0) range.first = cuts[i - 1];
    if (i < cuts.size()) range.stop = cuts[i];
    int64_t last = 0;
    const PassEnd end = database->ForEach(
        &t, {"a"}, [&](const Row& row) { last = row.IntOr(0, 0); }, range);
    EXPECT_EQ(end.stopped, i < cuts.size());
    EXPECT_EQ(end.damage, "");
    rows += end.rows;
    EXPECT_EQ(last, static_cast<int64_t>(rows));
  }
  EXPECT_EQ(rows, 9000u);
  EXPECT_TRUE(database->Cuts(*database->Find("w"), 1).empty());
  EXPECT_TRUE(database->Cuts(*database->Find("e"), 1).empty());
  EXPECT_EQ(database->Find("g")->row_id, "");
  EXPECT_TRUE(database->Cuts(*database->Find("g"), 1).empty());
}

TEST(Database, ScansAMissingTableAsEmpty) {
  const auto database = Open(MakeDatabase("CREATE TABLE t(a);"));
  Rows rows = database->Scan(database->Find("other"), {"a"});
  EXPECT_FALSE(rows.Next());
  EXPECT_EQ(rows.damage(), "");
}

TEST(Database, LooksUpByKey) {
  const auto database =
      Open(MakeDatabase("CREATE TABLE t(id INTEGER PRIMARY KEY, text TEXT);"
                        "INSERT INTO t VALUES (3, 'three'), (5, 'five');"));
  const auto rows = database->Lookup(database->Find("t"), {"text"}, "id");
  rows->Restart(5);
  ASSERT_TRUE(rows->Next());
  EXPECT_EQ(rows->Text(0), "five");
  rows->Restart(4);
  EXPECT_FALSE(rows->Next());
  rows->Restart(3);
  ASSERT_TRUE(rows->Next());
  EXPECT_EQ(rows->Text(0), "three");
}

TEST(Database, HostileNamesAreQuoted) {
  const auto database =
      Open(MakeDatabase("CREATE TABLE \"a\"\"; DROP TABLE b; --\"(\"c\"\"d\");"
                        "INSERT INTO \"a\"\"; DROP TABLE b; --\" VALUES (4);"
                        "CREATE TABLE b(x);"));
  ASSERT_EQ(database->tables().size(), 2u);
  Rows rows = database->Scan(&database->tables()[0], {"c\"d"});
  ASSERT_TRUE(rows.Next());
  EXPECT_EQ(rows.Int(0), 4);
}

TEST(Database, RefusesWhatIsNoDatabase) {
  EXPECT_FALSE(Database::OpenBytes("x", ""));
  EXPECT_FALSE(Database::OpenBytes("x", std::string(5000, 'x')));
  EXPECT_FALSE(
      Database::OpenBytes("x", std::string(kSqliteMagic) + "and nothing"));
  EXPECT_FALSE(Database::Open("/no/such/file"));
}

// Any byte of the file may be wrong: the scan ends, says why, and never has
// more rows than the file has room for.
TEST(Database, SurvivesDamageAnywhere) {
  std::string statements = "CREATE TABLE t(a INTEGER, b TEXT);";
  for (int i = 0; i < 400; ++i) {
    statements += "INSERT INTO t VALUES (" + std::to_string(i) + ", 'row " +
                  std::to_string(i) + "');";
  }
  const std::string whole = MakeDatabase(statements);
  uint64_t damaged = 0;
  for (size_t at = 0; at < whole.size(); at += 37) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
    auto database = Database::OpenBytes("test.db", bytes);
    if (!database) continue;
    Rows rows = (*database)->Scan((*database)->Find("t"), {"a", "b"});
    while (rows.Next()) {
      rows.Int(0);
      rows.Text(1);
    }
    EXPECT_LE(rows.count(), whole.size());
    damaged += !rows.damage().empty();
  }
  EXPECT_GT(damaged, 0u);
  for (size_t size = 0; size < whole.size(); size += 511) {
    auto database = Database::OpenBytes("test.db", whole.substr(0, size));
    if (!database) continue;
    EXPECT_EQ((*database)->missing_bytes(), whole.size() - size);
    Rows rows = (*database)->Scan((*database)->Find("t"), {"a"});
    while (rows.Next()) {
    }
    EXPECT_LE(rows.count(), 400u);
  }
}

TEST(Database, TablesWithADamagedDefinitionAreNamed) {
  for (const char* damage : {"sql = 'CREATE TABLE u(a, \x01)'",
                             "sql = 'CREATX TABLE u(a)'", "type = 'tablx'"}) {
    const std::string bytes =
        MakeDatabase(std::string("CREATE TABLE t(a); INSERT INTO t VALUES (1);"
                                 "CREATE TABLE u(a); CREATE INDEX i ON t(a);"
                                 "CREATE VIEW v AS SELECT a FROM t;"
                                 "PRAGMA writable_schema = ON;"
                                 "UPDATE sqlite_master SET ") +
                     damage + " WHERE name = 'u';");
    auto database = Database::OpenBytes("test.db", bytes);
    ASSERT_TRUE(database) << damage;
    EXPECT_EQ((*database)->unreadable_tables(), std::vector<std::string>{"u"})
        << damage;
    EXPECT_FALSE((*database)->Has("u")) << damage;
  }
}

TEST(Database, EntriesThatLostTheirNameOrKindAreNotForgotten) {
  for (const char* damage :
       {"name = NULL", "name = ''", "type = NULL", "sql = NULL",
        "type = NULL, name = NULL, tbl_name = NULL, rootpage = NULL, "
        "sql = NULL"}) {
    const std::string bytes =
        MakeDatabase(std::string("CREATE TABLE t(a); CREATE TABLE u(a UNIQUE);"
                                 "PRAGMA writable_schema = ON;"
                                 "UPDATE sqlite_master SET ") +
                     damage + " WHERE name = 'u';");
    const auto database = Open(bytes);
    EXPECT_TRUE(database->Has("t")) << damage;
    EXPECT_FALSE(database->Has("u")) << damage;
    EXPECT_EQ(database->unreadable_tables().size(), 1u) << damage;
  }
}

// The list of tables takes several pages, one of which is lost.
TEST(Database, RefusesAListOfTablesThatBreaksOff) {
  std::string statements;
  for (int i = 0; i < 60; ++i) {
    statements += "CREATE TABLE t" + std::to_string(i) + "(a" +
                  std::string(200, 'a') + ");";
  }
  const std::string whole = MakeDatabase(statements);
  constexpr size_t kPage = 4096;
  int refused = 0;
  for (size_t page = 1; page * kPage < whole.size(); ++page) {
    std::string bytes = whole;
    std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(page * kPage), kPage,
                '\0');
    const auto database = Database::OpenBytes("test.db", bytes);
    if (database) {
      EXPECT_EQ((*database)->tables().size(), 60u) << page;
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

// Tables that share their pages would be read as often as there are names.
TEST(Database, TablesThatShareTheirPagesAreNotReadForEver) {
  std::string statements = "CREATE TABLE t(a);";
  for (int i = 0; i < 2000; ++i)
    statements += "INSERT INTO t VALUES (" + std::to_string(i) + ");";
  statements += "PRAGMA writable_schema = ON;";
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "u" + std::to_string(i);
    statements += "INSERT INTO sqlite_master SELECT 'table', '" + name +
                  "', '" + name + "', rootpage, 'CREATE TABLE " + name +
                  "(a)' FROM sqlite_master WHERE name = 't';";
  }
  const std::string bytes = MakeDatabase(statements);
  const auto database = Open(bytes);
  ASSERT_EQ(database->tables().size(), 1001u);
  uint64_t count = 0;
  uint64_t damaged = 0;
  for (const DatabaseTable& table : database->tables()) {
    Rows rows = database->Scan(&table, {"a"});
    while (rows.Next()) ++count;
    damaged += !rows.damage().empty();
  }
  EXPECT_GT(count, 2000u);
  EXPECT_LE(count, bytes.size());
  EXPECT_GT(damaged, 0u);
}

}  // namespace

namespace {

constexpr uint64_t kRowsPerPiece = 100;

// Rows of different lengths, so that pages differ; ids with gaps.
std::string Table(int rows) {
  std::string statements = "CREATE TABLE t(a INTEGER, b TEXT); BEGIN;";
  for (int i = 0; i < rows; ++i) {
    statements += "INSERT INTO t(rowid, a, b) VALUES (" +
                  std::to_string(i * 3 + i % 3) + ", " + std::to_string(i) +
                  ", '" + std::string(static_cast<size_t>(i % 90), 'x') +
                  std::to_string(i) + "');";
  }
  return MakeDatabase(statements + "COMMIT;");
}

struct Read {
  std::vector<std::string> names;  // of the slices, in their order
  std::vector<std::string> lost;   // what diagnostics say
  std::vector<int64_t> numbers;    // given on first use
  size_t pieces = 0;

  friend bool operator==(const Read&, const Read&) = default;
};

// The table through a reader: each row becomes a slice with its text as name,
// and the number of its class in the order of first use as time.
Read ReadOn(int threads, const std::string& bytes) {
  Read read;
  auto database = Database::OpenBytes("test.db", bytes);
  if (!database) return read;
  trace::TraceBuilder builder;
  ReadOptions options;
  options.threads = threads;
  TableReader reader(**database, options, &builder, kRowsPerPiece);
  EXPECT_EQ(reader.workers(), threads);
  std::map<int64_t, int64_t> numbers;
  // Twice: names that only dropped pieces used are used again.
  for (int pass = 0; pass < 2; ++pass) {
    read.pieces = reader.ForEach(
        (*database)->Find("t"), {"a", "b"},
        [&](int worker, size_t) -> TableReader::RowFunction {
          Filler& filler = reader.filler(worker);
          return [&, worker](const Row& row) {
            const int64_t key = row.IntOr(0, 0) / 250;
            int64_t number = 0;
            reader.InTurn(
                worker,
                [&] {
                  const auto it = numbers.find(key);
                  if (it != numbers.end()) number = it->second;
                  return it != numbers.end();
                },
                [&] {
                  number = static_cast<int64_t>(numbers.size());
                  numbers[key] = number;
                });
            filler.segment().AddSlice(
                number, 1, filler.Intern(row.Text(1).value_or("?")),
                trace::Kind::kOther, filler.names().InternCategory("c"),
                filler.names().InternTrack(filler.Intern("p"),
                                           filler.Intern("t")),
                trace::Diagnostics::kNoOffset);
            filler.Next();
          };
        });
  }
  const trace::Trace trace = builder.Finish(1);
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    read.names.emplace_back(trace.Name(trace::SliceId(i)));
    read.numbers.push_back(trace.slices.start_ns[i]);
  }
  for (const trace::Diagnostic& entry : trace.diagnostics.Sorted())
    read.lost.push_back(entry.text);
  return read;
}

// The same by one pass, twice.
Read ReadPlainly(const std::string& bytes) {
  Read read;
  auto database = Database::OpenBytes("test.db", bytes);
  if (!database) return read;
  for (int pass = 0; pass < 2; ++pass) {
    (*database)->ForEach((*database)->Find("t"), {"b"}, [&](const Row& row) {
      read.names.push_back(RepairUtf8(row.Text(0).value_or("?")));
    });
  }
  return read;
}

TEST(TableReader, ReadsAllRowsInOrderOnAnyNumberOfThreads) {
  const std::string bytes = Table(3000);
  const Read plain = ReadPlainly(bytes);
  ASSERT_EQ(plain.names.size(), 6000u);
  for (const int threads : {1, 2, 5}) {
    const Read read = ReadOn(threads, bytes);
    EXPECT_EQ(read.names, plain.names);
    EXPECT_GT(read.pieces, 3u);
    EXPECT_TRUE(read.lost.empty());
    for (size_t i = 0; i < 3000; ++i)
      ASSERT_EQ(read.numbers[i], static_cast<int64_t>(i / 250));
  }
}

// Whatever a byte of the file is, the rows are those of one pass, and the
// number of threads changes nothing.
TEST(TableReader, ReadsOfADamagedTableWhatOnePassReads) {
  const std::string whole = Table(3000);
  std::mt19937 random(3);
  uint64_t damaged = 0;
  for (int round = 0; round < 150; ++round) {
    std::string bytes = whole;
    const size_t at = random() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 + random() % 255));
    const Read one = ReadOn(1, bytes);
    const Read three = ReadOn(3, bytes);
    EXPECT_EQ(one.lost, three.lost) << at;
    EXPECT_TRUE(one == three) << at;
    const Read plain = ReadPlainly(bytes);
    const auto [a, b] = std::mismatch(one.names.begin(), one.names.end(),
                                      plain.names.begin(), plain.names.end());
    EXPECT_TRUE(one.names == plain.names)
        << "byte " << at << ": " << one.names.size() << " rows, not "
        << plain.names.size() << ", the first other one at "
        << a - one.names.begin();
    damaged += !one.lost.empty();
  }
  EXPECT_GT(damaged, 0u);
}

TEST(TableReader, IndexIsOneTableOfAllPieces) {
  const std::string bytes = Table(3000);
  auto database = Database::OpenBytes("test.db", bytes);
  ASSERT_TRUE(database.has_value());
  trace::TraceBuilder builder;
  ReadOptions options;
  options.threads = 3;
  TableReader reader(**database, options, &builder, kRowsPerPiece);
  bool whole = false;
  const auto index =
      reader.Index<int64_t>((*database)->Find("t"), {"a"},
                            [](int, const Row& row, IdTable<int64_t>& rows) {
                              rows.Add(row.IntOr(0, 0), row.IntOr(0, 0) * 2);
                            },
                            &whole);
  EXPECT_TRUE(whole);
  ASSERT_EQ(index.size(), 3000u);
  for (int64_t i = 0; i < 3000; ++i) ASSERT_EQ(*index.Find(i), 2 * i);
}

TEST(TableReader, AMissingTableHasNoPieces) {
  auto database = Database::OpenBytes("test.db", Table(1));
  ASSERT_TRUE(database.has_value());
  trace::TraceBuilder builder;
  ReadOptions options;
  options.threads = 2;
  TableReader reader(**database, options, &builder);
  EXPECT_EQ(reader.ForEach(nullptr, {"a"},
                           [](int, size_t) {
                             ADD_FAILURE();
                             return TableReader::RowFunction();
                           }),
            0u);
}

TEST(TableReader, EndsWhereItIsStopped) {
  auto database = Database::OpenBytes("test.db", Table(3000));
  ASSERT_TRUE(database.has_value());
  for (const int threads : {1, 3}) {
    std::atomic<bool> stop = false;
    trace::TraceBuilder builder;
    ReadOptions options;
    options.threads = threads;
    options.stop = &stop;
    TableReader reader(**database, options, &builder, kRowsPerPiece);
    std::atomic<int> rows = 0;
    reader.ForEach((*database)->Find("t"), {"a"}, [&](int, size_t) {
      return [&](const Row&) {
        ++rows;
        stop = true;
      };
    });
    // Each thread finishes the piece that it has.
    EXPECT_GT(rows, 0);
    EXPECT_LT(rows, 3000);
  }
}

}  // namespace

namespace {

TEST(IdTable, FindsLikeAMapWhateverTheOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    IdTable<int> table;
    IdTable<int> parts[3];
    std::map<int64_t, int> slow;
    const int rows = static_cast<int>(random() % 20);
    const bool dense = random() % 2 == 0;
    for (int i = 0; i < rows; ++i) {
      const int64_t id =
          dense ? i - 3 : static_cast<int64_t>(random() % 25) - 12;
      parts[i * 3 / rows].Add(id, i);
      slow.try_emplace(id, i);  // the first of equal ids
    }
    for (IdTable<int>& part : parts) table.Append(std::move(part));
    table.Finish();
    for (int64_t id = -15; id < 30; ++id) {
      const int* found = table.Find(id);
      const auto it = slow.find(id);
      ASSERT_EQ(found != nullptr, it != slow.end()) << id;
      if (found != nullptr) {
        EXPECT_EQ(*found, it->second) << id;
        EXPECT_EQ(table.at(table.Place(id)), it->second) << id;
      }
    }
  }
}

TEST(IdTable, ExtremeIds) {
  IdTable<int> table;
  table.Add(std::numeric_limits<int64_t>::min(), 1);
  table.Add(std::numeric_limits<int64_t>::max(), 2);
  table.Finish();
  ASSERT_NE(table.Find(std::numeric_limits<int64_t>::max()), nullptr);
  EXPECT_EQ(*table.Find(std::numeric_limits<int64_t>::max()), 2);
  EXPECT_EQ(table.Find(0), nullptr);
  EXPECT_EQ(IdTable<int>().Find(0), nullptr);
}

}  // namespace

}  // namespace lamina::ingest
