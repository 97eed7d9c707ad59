// SPDX-License-Identifier: Apache-2.0
#include "lamina/table.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "table/row_columns.h"

namespace lamina {
namespace {

Table AllTypes() {
  return Table({"t",
                "Every type.",
                {{"text", ColumnType::kText, "A text."},
                 {"count", ColumnType::kInt, "An integer."},
                 {"share", ColumnType::kReal, "A real."},
                 {"flag", ColumnType::kBool, "A flag."},
                 {"dur_us", ColumnType::kTime, "A time."}}});
}

TEST(Table, KeepsValuesOfEveryType) {
  Table table = AllTypes();
  table.Add("a", 7, 0.5, true, int64_t{1500});
  table.Add(std::nullopt, std::nullopt, std::nullopt, std::nullopt,
            std::nullopt);
  table.Add("a", -1, 2, false, int64_t{-1});
  ASSERT_EQ(table.rows(), 3U);
  EXPECT_EQ(table.At(0, "text").text(), "a");
  EXPECT_EQ(table.At(0, "share").real(), 0.5);
  EXPECT_TRUE(table.At(0, "flag").boolean());
  EXPECT_EQ(table.At(2, "share").real(), 2.0);
  for (size_t c = 0; c < table.columns(); ++c) {
    EXPECT_FALSE(table.IsNull(0, c));
    EXPECT_TRUE(table.IsNull(1, c));
    EXPECT_TRUE(table.At(1, c).null());
    EXPECT_FALSE(table.IsNull(2, c));
  }
  EXPECT_EQ(table.Sum("count"), 6);
  EXPECT_EQ(table.Sum("dur_us"), 1499);
}

TEST(Table, NullsBeforeTheFirstValueStayNull) {
  Table table = AllTypes();
  table.Add("a", std::nullopt, 1.0, true, int64_t{0});
  table.Add("b", 2, 1.0, true, int64_t{0});
  EXPECT_TRUE(table.IsNull(0, 1));
  EXPECT_EQ(table.Int(1, 1), 2);
}

// Cells come from members, functions and optionals; order and type are those
// of the columns.
TEST(RowColumns, ARowIsWhatItsColumnsSay) {
  struct Row {
    std::string name;
    int64_t dur = 0;
    std::optional<double> share;
  };
  const RowColumns<Row> columns{
      "t",
      "Rows.",
      {{"dur_us", ColumnType::kTime, "A time.", &Row::dur, Shown::kHidden},
       {"name", ColumnType::kText, "A text.", &Row::name},
       {"letters", ColumnType::kInt, "Its length.",
        [](const Row& row) { return row.name.size(); }},
       {"share", ColumnType::kReal, "A share.", &Row::share}}};
  const Table table =
      columns.Make({{"long enough for the heap", 1500, 0.25}, {"b", -1, {}}});
  ASSERT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.schema().columns[0].shown, Shown::kHidden);
  EXPECT_EQ(table.At(0, "name").text(), "long enough for the heap");
  EXPECT_EQ(table.At(0, "letters").integer(), 24);
  EXPECT_EQ(table.At(0, "dur_us").integer(), 1500);
  EXPECT_EQ(table.At(0, "share").real(), 0.25);
  EXPECT_EQ(table.At(1, "dur_us").integer(), -1);
  EXPECT_TRUE(table.At(1, "share").null());
}

// Columns where they lie, against cell by cell; nulls stand in whole words.
TEST(Table, ViewsAreTheCells) {
  for (const size_t first_null : {0U, 1U, 63U, 64U, 65U, 200U}) {
    Table table = AllTypes();
    const auto add = [&](size_t row) {
      const auto number = static_cast<int64_t>(row);
      if (row >= first_null && row % 3 == first_null % 3) {
        table.Add(std::nullopt, number, std::nullopt, std::nullopt, number);
      } else {
        table.Add(row % 2 ? "odd" : "", number, number / 4.0, row % 2 == 0,
                  number);
      }
    };
    const auto check = [&] {
      for (size_t c = 0; c < table.columns(); ++c) {
        const ColumnView view = table.View(c);
        if (!view.present.empty()) {
          ASSERT_EQ(view.present.size(), (table.rows() + 63) / 64);
        }
        for (size_t row = 0; row < table.rows(); ++row) {
          const Value cell = table.At(row, c);
          ASSERT_EQ(view.IsNull(row), cell.null()) << row << " " << c;
          if (cell.null()) continue;
          switch (table.schema().columns[c].type) {
            case ColumnType::kText:
              EXPECT_EQ(table.Text(view.texts[row]), cell.text());
              break;
            case ColumnType::kReal:
              EXPECT_EQ(view.reals[row], cell.real());
              break;
            case ColumnType::kBool:
              EXPECT_EQ(view.ints[row] != 0, cell.boolean());
              break;
            case ColumnType::kInt:
            case ColumnType::kTime:
              EXPECT_EQ(view.ints[row], cell.integer());
          }
        }
      }
    };
    for (size_t row = 0; row < 150; ++row) add(row);
    check();
    table.Truncate(70);
    check();
    for (size_t row = 70; row < 230; ++row) add(row);
    check();
  }
}

TEST(Table, TimesAreNamedByTheirUnit) {
  EXPECT_EQ(NameInNs({"dur_us", ColumnType::kTime, ""}), "dur_ns");
  EXPECT_EQ(NameInNs({"dur", ColumnType::kTime, ""}), "dur_ns");
  EXPECT_EQ(NameInNs({"mean_us", ColumnType::kReal, ""}), "mean_us");
}

TEST(Table, CellsAreExact) {
  Table table = AllTypes();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  table.Add("x", kMax, 0.1, true, int64_t{-1});
  table.Add("", std::numeric_limits<int64_t>::min(), 1e300, false, kMax);
  table.Add("", 0, std::nan(""), false, int64_t{1000});
  EXPECT_EQ(CellText(table, 0, 1), "9223372036854775807");
  EXPECT_EQ(CellText(table, 0, 2), "0.1");
  EXPECT_EQ(CellText(table, 0, 3), "True");
  EXPECT_EQ(CellText(table, 0, 4), "-0.001");
  EXPECT_EQ(CellText(table, 1, 1), "-9223372036854775808");
  EXPECT_EQ(std::stod(CellText(table, 1, 2)), 1e300);
  EXPECT_EQ(CellText(table, 1, 4), "9223372036854775.807");
  EXPECT_EQ(CellText(table, 2, 4), "1.000");
}

TEST(Table, TruncateKeepsTheFirstRows) {
  Table table = AllTypes();
  for (int i = 0; i < 5; ++i) table.Add("r", i, 0.0, false, int64_t{i});
  table.Truncate(9);
  EXPECT_EQ(table.rows(), 5U);
  table.Truncate(2);
  ASSERT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.Sum("count"), 1);
  table.Add("new", 10, 0.0, false, int64_t{0});
  EXPECT_EQ(table.At(2, "text").text(), "new");
}

TEST(TableDeathTest, ARowOfTheWrongShapeStopsTheProgram) {
  Table table = AllTypes();
  EXPECT_DEATH(table.Add("a"), "");
  EXPECT_DEATH(table.schema().IndexOf("nowhere"), "");
}

}  // namespace
}  // namespace lamina
