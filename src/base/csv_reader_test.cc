// SPDX-License-Identifier: Apache-2.0
#include "base/csv_reader.h"

#include <gtest/gtest.h>

namespace lamina {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows ReadAllRows(std::string_view text, bool* damaged = nullptr) {
  auto source = OpenMemory("test.csv", text);
  EXPECT_TRUE(source.has_value());
  CsvReader reader(std::move(*source));
  Rows rows;
  while (*reader.Next()) {
    rows.emplace_back(
        reader.fields().begin(),
        reader.fields().begin() + static_cast<ptrdiff_t>(reader.count()));
  }
  if (damaged != nullptr) *damaged = reader.damaged();
  return rows;
}

TEST(CsvReader, QuotesCommasAndLineEnds) {
  EXPECT_EQ(ReadAllRows("a,b\r\n\"x, \"\"y\"\"\nz\",2\n\n,\n"),
            (Rows{{"a", "b"}, {"x, \"y\"\nz", "2"}, {"", ""}}));
  EXPECT_EQ(ReadAllRows("last,line"), (Rows{{"last", "line"}}));
  EXPECT_EQ(ReadAllRows("\"\"\n"), (Rows{{""}}));
}

TEST(CsvReader, FieldsBeyondTheRowAreEmpty) {
  auto source = OpenMemory("test.csv", "a,b,c\nd\n");
  CsvReader reader(std::move(*source));
  ASSERT_TRUE(*reader.Next());
  ASSERT_TRUE(*reader.Next());
  EXPECT_EQ(reader.offset(), 6u);
  EXPECT_EQ(reader.Field(0), "d");
  EXPECT_EQ(reader.Field(1), "");
  EXPECT_EQ(reader.Field(-1), "");
}

TEST(CsvReader, AnOpenQuoteEndsWithTheData) {
  bool damaged = false;
  EXPECT_EQ(ReadAllRows("a,\"b\nc", &damaged), (Rows{{"a", "b\nc"}}));
  EXPECT_TRUE(damaged);
  ReadAllRows("a,b\n", &damaged);
  EXPECT_FALSE(damaged);
}

TEST(CsvReader, LongRowsAreCutOff) {
  bool damaged = false;
  const std::string commas(100'000, ',');
  const Rows rows = ReadAllRows(commas + "\nnext", &damaged);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].size(), CsvReader::kMaxFields);
  EXPECT_EQ(rows[1], std::vector<std::string>{"next"});
  EXPECT_TRUE(damaged);
  const std::string text(CsvReader::kMaxRowBytes + 100, 'x');
  EXPECT_EQ(ReadAllRows(text, &damaged)[0][0].size(), CsvReader::kMaxRowBytes);
  EXPECT_TRUE(damaged);
}

}  // namespace
}  // namespace lamina
