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
    rows.emplace_back(reader.fields().begin(), reader.fields().end());
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
  // What is behind the last field is dropped, not that field.
  std::string numbers;
  for (size_t i = 0; i < CsvReader::kMaxFields + 5; ++i)
    numbers += std::to_string(i) + ",";
  EXPECT_EQ(ReadAllRows(numbers)[0].back(),
            std::to_string(CsvReader::kMaxFields - 1));
  const std::string text(CsvReader::kMaxRowBytes + 100, 'x');
  EXPECT_EQ(ReadAllRows(text, &damaged)[0][0].size(), CsvReader::kMaxRowBytes);
  EXPECT_TRUE(damaged);
}

// Were each field kept in a string of its own, a long one in another column of
// each row would add up to the limit of a row times that of the fields.
TEST(CsvReader, TheFieldsOfARowShareItsMemory) {
  auto source = OpenMemory("test.csv", "ab,\"c\"\"d\",,e\nf,ghi\n");
  CsvReader reader(std::move(*source));
  while (*reader.Next()) {
    for (size_t i = 1; i < reader.fields().size(); ++i) {
      const std::string_view before = reader.fields()[i - 1];
      EXPECT_EQ(reader.fields()[i].data(), before.data() + before.size());
    }
  }
}

// Rows do not depend on where the blocks of the input end.
TEST(CsvReader, ReadsAcrossBlocks) {
  constexpr size_t kBlock = size_t{1} << 18;
  const std::string tail = "\"q\"\"\r\n\",\r,x\r\ny,z\r\n";
  for (size_t before = kBlock - 20; before < kBlock + 2; ++before) {
    const std::string first(before, 'a');
    EXPECT_EQ(ReadAllRows(first + "," + tail),
              (Rows{{first, "q\"\r\n", "", "x"}, {"y", "z"}}));
  }
}

}  // namespace
}  // namespace lamina
