// SPDX-License-Identifier: Apache-2.0
//
// Tables through Arrow's C interfaces, read as a consumer of others would.
#include <cstring>
#include <gtest/gtest.h>
#include <lamina/arrow.h>

namespace lamina {
namespace {

std::shared_ptr<const Table> Example(int rows) {
  Table table({"example",
               "An example.",
               {{"text", ColumnType::kText, "A text."},
                {"count", ColumnType::kInt, "A count."},
                {"kernel_time_us", ColumnType::kTime, "A time."},
                {"percent", ColumnType::kReal, "A share."},
                {"flag", ColumnType::kBool, ""}}});
  for (int i = 0; i < rows; ++i) {
    const Value text = i % 5 == 3   ? Value()
                       : i % 5 == 4 ? Value("broken \xff")
                                    : Value(i % 2 == 0 ? "even" : "");
    table.Add(text, i, i % 3 == 0 ? Value() : Value(1000 * i), i / 2.0,
              i % 3 == 1);
  }
  return std::make_shared<const Table>(std::move(table));
}

bool Bit(const void* bits, int64_t i) {
  return (static_cast<const uint8_t*>(bits)[i / 8] >> (i % 8) & 1) != 0;
}

bool IsNull(const ArrowArray& array, int64_t i) {
  return array.buffers[0] != nullptr && !Bit(array.buffers[0], i);
}

std::string TextAt(const ArrowArray& array, int64_t i) {
  const auto code = static_cast<const int32_t*>(array.buffers[1])[i];
  const ArrowArray& texts = *array.dictionary;
  EXPECT_LT(code, texts.length);
  const auto* ends = static_cast<const int64_t*>(texts.buffers[1]);
  return std::string(static_cast<const char*>(texts.buffers[2]) + ends[code],
                     static_cast<size_t>(ends[code + 1] - ends[code]));
}

TEST(Arrow, SchemaSaysTypesAndMeaning) {
  ArrowSchema schema;
  ASSERT_TRUE(ExportSchema(Example(0)->schema(), &schema));
  EXPECT_STREQ(schema.format, "+s");
  ASSERT_EQ(schema.n_children, 5);
  const char* const kNames[] = {"text", "count", "kernel_time_ns", "percent",
                                "flag"};
  const char* const kFormats[] = {"i", "l", "l", "g", "b"};
  for (int i = 0; i < 5; ++i) {
    EXPECT_STREQ(schema.children[i]->name, kNames[i]);
    EXPECT_STREQ(schema.children[i]->format, kFormats[i]);
    EXPECT_EQ(schema.children[i]->flags, ARROW_FLAG_NULLABLE);
    EXPECT_EQ(schema.children[i]->dictionary != nullptr, i == 0);
  }
  EXPECT_STREQ(schema.children[0]->dictionary->format, "U");
  // One pair, as the interface encodes it.
  const char* metadata = schema.children[1]->metadata;
  ASSERT_NE(metadata, nullptr);
  int32_t numbers[2];
  std::memcpy(numbers, metadata, sizeof numbers);
  EXPECT_EQ(numbers[0], 1);
  EXPECT_EQ(std::string(metadata + 8, static_cast<size_t>(numbers[1])),
            "lamina.doc");
  EXPECT_EQ(std::string(metadata + 8 + numbers[1] + 4, 8), "A count.");
  EXPECT_EQ(schema.children[4]->metadata, nullptr);
  schema.release(&schema);
  EXPECT_EQ(schema.release, nullptr);
}

TEST(Arrow, CellsAreThoseOfTheTable) {
  for (const int rows : {0, 1, 63, 64, 65, 200}) {
    const auto table = Example(rows);
    ArrowArray array;
    ASSERT_TRUE(ExportArray(table, &array));
    ASSERT_EQ(array.length, rows);
    ASSERT_EQ(array.n_children, 5);
    for (int c = 0; c < 5; ++c) {
      const ArrowArray& column = *array.children[c];
      ASSERT_EQ(column.length, rows);
      ASSERT_EQ(column.n_buffers, 2);
      ASSERT_NE(column.buffers[1], nullptr);
      int64_t nulls = 0;
      for (int i = 0; i < rows; ++i) {
        const Value cell =
            table->At(static_cast<size_t>(i), static_cast<size_t>(c));
        ASSERT_EQ(IsNull(column, i), cell.null()) << c << " " << i;
        nulls += cell.null();
        if (cell.null()) continue;
        switch (c) {
          case 0:
            EXPECT_EQ(TextAt(column, i), cell.text() == "broken \xff"
                                             ? "broken \xef\xbf\xbd"
                                             : cell.text());
            break;
          case 3:
            EXPECT_EQ(static_cast<const double*>(column.buffers[1])[i],
                      cell.real());
            break;
          case 4:
            EXPECT_EQ(Bit(column.buffers[1], i), cell.boolean());
            break;
          default:
            EXPECT_EQ(static_cast<const int64_t*>(column.buffers[1])[i],
                      cell.integer());
        }
      }
      EXPECT_EQ(column.null_count, nulls);
    }
    // Numbers lie where they lay.
    if (rows > 0) {
      EXPECT_EQ(array.children[1]->buffers[1], table->View(1).ints.data());
      EXPECT_EQ(array.children[3]->buffers[1], table->View(3).reals.data());
    }
    array.release(&array);
    EXPECT_EQ(array.release, nullptr);
  }
}

// A consumer may take a child, and keep it longer than all the rest.
TEST(Arrow, ChildrenLiveAlone) {
  ArrowArray array;
  auto table = Example(100);
  ASSERT_TRUE(ExportArray(table, &array));
  const std::weak_ptr<const Table> watched = table;
  table.reset();
  ArrowArray numbers = *array.children[1];
  array.children[1]->release = nullptr;
  ArrowArray texts = *array.children[0];
  array.children[0]->release = nullptr;
  array.release(&array);
  EXPECT_EQ(static_cast<const int64_t*>(numbers.buffers[1])[99], 99);
  EXPECT_EQ(TextAt(texts, 2), "even");
  EXPECT_FALSE(watched.expired());
  numbers.release(&numbers);
  texts.release(&texts);
  EXPECT_TRUE(watched.expired());
}

TEST(Arrow, StreamGivesOneArray) {
  ArrowArrayStream stream;
  ASSERT_TRUE(ExportStream(Example(7), &stream));
  ArrowSchema schema;
  ASSERT_EQ(stream.get_schema(&stream, &schema), 0);
  EXPECT_EQ(schema.n_children, 5);
  schema.release(&schema);
  ArrowArray array;
  ASSERT_EQ(stream.get_next(&stream, &array), 0);
  EXPECT_EQ(array.length, 7);
  ArrowArray end;
  ASSERT_EQ(stream.get_next(&stream, &end), 0);
  EXPECT_EQ(end.release, nullptr);
  EXPECT_EQ(stream.get_last_error(&stream), nullptr);
  stream.release(&stream);
  EXPECT_EQ(stream.release, nullptr);
  // What it gave outlives it.
  EXPECT_EQ(static_cast<const int64_t*>(array.children[1]->buffers[1])[6], 6);
  array.release(&array);
}

TEST(Arrow, NullPointersAreErrors) {
  ArrowArray array;
  ArrowArrayStream stream;
  EXPECT_FALSE(ExportSchema({}, nullptr));
  EXPECT_FALSE(ExportArray(Example(1), nullptr));
  EXPECT_FALSE(ExportArray(nullptr, &array));
  EXPECT_FALSE(ExportStream(nullptr, &stream));
  EXPECT_FALSE(ExportStream(Example(1), nullptr));
}

}  // namespace
}  // namespace lamina
