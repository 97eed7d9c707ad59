// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/table_reader.h"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <map>
#include <random>

#include "base/escape.h"
#include "ingest/common/make_database.h"

namespace lamina::ingest {
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
}  // namespace lamina::ingest
