// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <random>
#include <string>

#include "base/csv_rows.h"

namespace lamina {

namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows ReadAllRows(std::string_view text, bool* damaged = nullptr) {
  CsvRows reader(text);
  Rows rows;
  while (reader.Next())
    rows.emplace_back(reader.fields().begin(), reader.fields().end());
  if (damaged != nullptr) *damaged = reader.damage().has_value();
  return rows;
}

// Byte by byte: the slow twin.
Rows ReadSlowly(std::string_view text) {
  Rows rows;
  size_t i = 0;
  while (true) {
    while (i < text.size() && (text[i] == '\n' || text[i] == '\r')) ++i;
    if (i == text.size()) return rows;
    rows.emplace_back();
    for (bool more = true; more;) {
      std::string field;
      if (i < text.size() && text[i] == '"') {
        for (++i; i < text.size(); ++i) {
          if (text[i] == '"') {
            ++i;
            if (i == text.size() || text[i] != '"') break;
          }
          field += text[i];
        }
      }
      more = false;
      for (; i < text.size(); ++i) {
        if (text[i] == ',' || text[i] == '\n') {
          more = text[i++] == ',';
          break;
        }
        if (text[i] != '\r') field += text[i];
      }
      rows.back().push_back(field);
    }
  }
}

TEST(CsvRows, QuotesCommasAndLineEnds) {
  EXPECT_EQ(ReadAllRows("a,b\r\n\"x, \"\"y\"\"\nz\",2\n\n,\n"),
            (Rows{{"a", "b"}, {"x, \"y\"\nz", "2"}, {"", ""}}));
  EXPECT_EQ(ReadAllRows("last,line"), (Rows{{"last", "line"}}));
  EXPECT_EQ(ReadAllRows("last,"), (Rows{{"last", ""}}));
  EXPECT_EQ(ReadAllRows("\"\"\n"), (Rows{{""}}));
  EXPECT_EQ(ReadAllRows("\n\r\n"), Rows());
}

TEST(CsvRows, ReadsWhatItsSlowTwinReads) {
  std::mt19937 random(11);
  constexpr std::string_view kBytes = "ab,,\"\"\"\n\r";
  for (int i = 0; i < 20000; ++i) {
    std::string text(random() % 24, '\0');
    for (char& c : text) c = kBytes[random() % kBytes.size()];
    ASSERT_EQ(ReadAllRows(text), ReadSlowly(text))
        << testing::PrintToString(text);
  }
}

TEST(CsvRows, FieldsBeyondTheRowAreEmpty) {
  CsvRows reader("a,b,c\nd\n");
  ASSERT_TRUE(reader.Next());
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.begin(), 6u);
  EXPECT_EQ(reader.end(), 8u);
  EXPECT_EQ(reader.Field(0), "d");
  EXPECT_EQ(reader.Field(1), "");
  EXPECT_EQ(reader.Field(-1), "");
}

TEST(CsvRows, AnOpenQuoteEndsWithTheText) {
  bool damaged = false;
  EXPECT_EQ(ReadAllRows("a,\"b\nc", &damaged), (Rows{{"a", "b\nc"}}));
  EXPECT_TRUE(damaged);
  ReadAllRows("a,b\n", &damaged);
  EXPECT_FALSE(damaged);
}

TEST(CsvRows, ManyFieldsAreCutOff) {
  const std::string text = "a\n" + std::string(100'000, ',') + "\nnext";
  CsvRows reader(text);
  ASSERT_TRUE(reader.Next());
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.fields().size(), CsvRows::kMaxFields);
  EXPECT_EQ(reader.damage(), 2u);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.Field(0), "next");
  // What is behind the last field is dropped, not that field.
  std::string numbers;
  for (size_t i = 0; i < CsvRows::kMaxFields + 5; ++i)
    numbers += std::to_string(i) + ",";
  EXPECT_EQ(ReadAllRows(numbers)[0].back(),
            std::to_string(CsvRows::kMaxFields - 1));
}

// Fields that are put together keep their place while others follow.
TEST(CsvRows, FieldsOfARowStay) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "\"a\"\"" + std::to_string(i) + "\",";
  CsvRows reader(text);
  ASSERT_TRUE(reader.Next());
  for (int i = 0; i < 2000; ++i)
    ASSERT_EQ(reader.Field(i), "a\"" + std::to_string(i));
}

}  // namespace

namespace {

std::string RandomText(std::mt19937& random, size_t size) {
  constexpr std::string_view kBytes = "ab,,,\"\"\"\n\n\r";
  std::string text(size, '\0');
  for (char& c : text) c = kBytes[random() % kBytes.size()];
  return text;
}

// Where the rows of a text end, by reading them.
std::vector<size_t> EndsOf(std::string_view text) {
  std::vector<size_t> ends;
  CsvRows rows(text);
  while (rows.Next()) {
    if (text[rows.end() - 1] == '\n' && !rows.damage())
      ends.push_back(rows.end());
  }
  return ends;
}

TEST(CsvRowScanner, FindsTheEndsOfRowsInPieces) {
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = RandomText(random, 1 + random() % 30);
    const std::vector<size_t> ends = EndsOf(text);
    CsvRowScanner scanner;
    size_t begin = 0;
    size_t last = 0;
    while (begin < text.size()) {
      const size_t size = 1 + random() % 8;
      const std::string_view piece = std::string_view(text).substr(begin, size);
      if (const size_t end = scanner.LastEnd(piece)) last = begin + end;
      begin += piece.size();
    }
    // An empty line is the end of no row, but rows may be cut there, too.
    const size_t expected = ends.empty() ? 0 : ends.back();
    ASSERT_GE(last, expected) << testing::PrintToString(text);
    for (size_t at = expected; at < last; ++at)
      ASSERT_TRUE(text[at] == '\n' || text[at] == '\r')
          << testing::PrintToString(text);
  }
}

TEST(CsvCutter, ChunksHaveTheRowsOfTheFile) {
  std::mt19937 random(9);
  for (int i = 0; i < 40; ++i) {
    const std::string text = "x" + RandomText(random, random() % 60'000);
    std::vector<std::pair<size_t, std::vector<std::string>>> expected, found;
    CsvRows all(text);
    while (all.Next()) {
      expected.emplace_back(
          all.begin(),
          std::vector<std::string>(all.fields().begin(), all.fields().end()));
    }
    auto source = OpenMemory("test.csv", text);
    ASSERT_TRUE(source.has_value());
    CsvCutter cutter(std::move(*source));
    Chunk chunk;
    size_t chunks = 0;
    while (*cutter.Next(chunk)) {
      ++chunks;
      CsvRows rows(chunk.text);
      while (rows.Next()) {
        found.emplace_back(chunk.offset + rows.begin(),
                           std::vector<std::string>(rows.fields().begin(),
                                                    rows.fields().end()));
      }
    }
    EXPECT_EQ(found, expected);
    EXPECT_EQ(cutter.offset(), text.size());
    EXPECT_FALSE(cutter.damage().has_value());
  }
}

TEST(CsvCutter, LongRowsAreCutOff) {
  const std::string first = "a,b\n";
  const std::string text = first + "\"" +
                           std::string(CsvCutter::kMaxRowBytes * 2, '\n') +
                           "\"\n\"next\"\n";
  auto source = OpenMemory("test.csv", text);
  CsvCutter cutter(std::move(*source));
  Chunk chunk;
  ASSERT_TRUE(*cutter.Next(chunk));
  EXPECT_EQ(chunk.text, first);
  EXPECT_FALSE(cutter.damage().has_value());
  ASSERT_TRUE(*cutter.Next(chunk));
  EXPECT_EQ(chunk.text.size(), CsvCutter::kMaxRowBytes);
  EXPECT_EQ(cutter.damage(), first.size());
  ASSERT_TRUE(*cutter.Next(chunk));
  EXPECT_EQ(chunk.text, "\"next\"\n");
  EXPECT_FALSE(*cutter.Next(chunk));
}

TEST(CsvCutter, EndsWithoutALineEnd) {
  auto source = OpenMemory("test.csv", "a\n\"b");
  CsvCutter cutter(std::move(*source));
  Chunk chunk;
  ASSERT_TRUE(*cutter.Next(chunk));
  EXPECT_EQ(chunk.text, "a\n\"b");
  EXPECT_FALSE(*cutter.Next(chunk));
}

}  // namespace

}  // namespace lamina
