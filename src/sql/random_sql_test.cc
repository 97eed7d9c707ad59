// SPDX-License-Identifier: Apache-2.0
//
// Random queries give what plain SQLite gives on a copy of the tables.
//
// Every result cell is written by quote(), so that both sides are compared as
// texts with their types, and rows are sorted: without ORDER BY there is none.
//
// Why it is longer than 250 lines: half of it is the grammar of the queries.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <random>
#include <sqlite3.h>
#include <unistd.h>

#include "source_dir.h"
#include "sql/database.h"
#include "sql/table_def.h"

namespace lamina::sql {
namespace {

using Lines = std::vector<std::string>;

Lines Sorted(Lines lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}

// What SQLite says of the copy; an error is one line.
Lines RunPlain(sqlite3* db, const std::string& sql) {
  Lines out;
  const auto add = [](void* lines, int count, char** cells, char**) {
    std::string line;
    for (int i = 0; i < count; ++i)
      line += std::string(cells[i] ? cells[i] : "") + "|";
    static_cast<Lines*>(lines)->push_back(line);
    return 0;
  };
  if (sqlite3_exec(db, sql.c_str(), add, &out, nullptr) != SQLITE_OK)
    return {std::string("error: ") + sqlite3_errmsg(db)};
  return Sorted(std::move(out));
}

Lines RunOurs(Database& database, const std::string& sql) {
  const auto tables = database.Run(sql);
  if (!tables) return {"error: " + tables.error().what};
  Lines out;
  for (size_t r = 0; r < tables->front().rows(); ++r) {
    std::string line;
    for (size_t c = 0; c < tables->front().columns(); ++c)
      line += CellText(tables->front(), r, c) + "|";
    out.push_back(line);
  }
  return Sorted(std::move(out));
}

// Writes queries over tables that are there in full, of columns as listed.
class Writer {
  bool Chance(unsigned n) { return random_() % n == 0; }
  template <class List>
  auto Pick(const List& list) {
    return list[random_() % std::size(list)];
  }

 public:
  explicit Writer(unsigned seed) : random_(seed) {}

  std::string Query() {
    std::string out = Select(true);
    if (Chance(6)) {
      static const char* const kJoins[] = {" UNION ", " UNION ALL ", " EXCEPT ",
                                           " INTERSECT "};
      const size_t width = width_;
      out = Select(false, width) + Pick(kJoins) + Select(false, width);
    }
    return out;
  }

 private:
  struct Place {
    std::string alias;
    const TableDef* table;
  };

  // One, two or three tables, joined by columns that name rows of the other.
  std::string From(std::vector<Place>& places) {
    struct Join {
      const char *a, *on_a, *b, *on_b;
    };
    static const Join kJoins[] = {{"kernel", "op_uid", "op", "uid"},
                                  {"kernel", "launch_uid", "api_call", "uid"},
                                  {"kernel", "uid", "slice", "uid"},
                                  {"kernel", "name", "kernels", "kernel"},
                                  {"launch", "device_uid", "kernel", "uid"},
                                  {"op", "parent_uid", "node", "uid"},
                                  {"op", "name", "ops", "op"},
                                  {"slice", "arg_id", "op_arg", "id"},
                                  {"slice", "track_id", "track", "id"},
                                  {"node", "uid", "slice", "uid"},
                                  {"node", "parent_uid", "op", "uid"},
                                  {"flow", "uid", "slice", "uid"}};
    static const char* const kSingle[] = {
        "slice", "kernel", "op",           "api_call", "node",   "launch",
        "track", "ops",    "gaps",         "kernels",  "stream", "op_arg",
        "gap",   "busy",   "flow",         "category", "step",   "op_shapes",
        "note",  "steps",  "op_efficiency"};
    const auto add = [&](const char* name) {
      places.push_back({"t" + std::to_string(aliases_++), FindTable(name)});
      return std::string(name) + " AS " + places.back().alias;
    };
    if (!Chance(3)) return add(Pick(kSingle));
    const Join& join = kJoins[random_() % std::size(kJoins)];
    const bool turned = Chance(2);
    std::string out = add(turned ? join.b : join.a);
    out += Chance(3) ? " LEFT JOIN " : " JOIN ";
    out += add(turned ? join.a : join.b);
    const Place& first = places[places.size() - 2];
    const Place& second = places.back();
    out += " ON " + first.alias + "." + (turned ? join.on_b : join.on_a) +
           " = " + second.alias + "." + (turned ? join.on_a : join.on_b);
    return out;
  }

  std::string Column(const std::vector<Place>& places,
                     const ColumnDef** def = nullptr) {
    const Place& place = places[random_() % places.size()];
    const ColumnDef* column = nullptr;
    do {
      column = &place.table->columns[random_() % place.table->columns.size()];
    } while (column->hidden);
    if (def != nullptr) *def = column;
    return place.alias + ".\"" + column->name + "\"";
  }

  std::string Number() {
    return std::to_string(static_cast<int64_t>(random_() % 20000) - 100) +
           (Chance(5) ? ".5" : "");
  }
  std::string Literal() {
    static const char* const kTexts[] = {
        "'aten::mm'", "''",    "'op'", "'%mm%'", "'12'",   "'kernel'",
        "'a'",        "'[1]'", "NULL", "'gemm'", "x'0061'"};
    return Chance(3) ? Pick(kTexts) : Number();
  }

  std::string Condition(const std::vector<Place>& places, int depth = 0) {
    const ColumnDef* def = nullptr;
    const std::string column = Column(places, &def);
    static const char* const kOps[] = {"=",  "<",  "<=", ">",
                                       ">=", "<>", "IS", "IS NOT"};
    static const char* const kLikes[] = {"'%mm%'", "'a%'", "'%'",
                                         "'_%N_'", "''",   "'%[%'"};
    static const char* const kGlobs[] = {"'*mm*'", "'a*'", "'[a-m]*'"};
    switch (random_() % (depth < 2 ? 11 : 7)) {
      case 0:
        return column + (Chance(2) ? " IS NULL" : " IS NOT NULL");
      case 1:
        return column + (Chance(4) ? " NOT LIKE " : " LIKE ") + Pick(kLikes);
      case 2:
        return column + " GLOB " + Pick(kGlobs);
      case 3:
        return column + " IN (" + Literal() + ", " + Literal() + ", " +
               Literal() + ")";
      case 4:
        return column + " BETWEEN " + Number() + " AND " + Number();
      case 5:
        return column + " " + Pick(kOps) + " " + Column(places);
      case 6:
        return column + " " + Pick(kOps) + " " + Literal();
      case 7:
        return "(" + Condition(places, depth + 1) + " OR " +
               Condition(places, depth + 1) + ")";
      case 8:
        return "NOT (" + Condition(places, depth + 1) + ")";
      case 9: {
        std::vector<Place> inner;
        const std::string from = From(inner);
        return column + (Chance(3) ? " NOT IN " : " IN ") + "(SELECT " +
               Column(inner) + " FROM " + from + " WHERE " +
               Condition(inner, depth + 1) + ")";
      }
      default: {
        std::vector<Place> inner;
        const std::string from = From(inner);
        return "EXISTS (SELECT 1 FROM " + from + " WHERE " + Column(inner) +
               " = " + column + " AND " + Condition(inner, depth + 1) + ")";
      }
    }
  }

  std::string Aggregate(const std::vector<Place>& places) {
    const ColumnDef* def = nullptr;
    const std::string column = Column(places, &def);
    switch (random_() % 5) {
      case 0:
        return "count(*)";
      case 1:
        return "count(DISTINCT " + column + ")";
      case 2:
        return "min(" + column + ")";
      case 3:
        return "max(" + column + ")";
      default:
        // Sums of reals depend on the order of rows.
        return def->type == Type::kInt ? "sum(" + column + " % 1000000)"
                                       : "count(" + column + ")";
    }
  }

  std::string Select(bool may_order, size_t width = 0) {
    width_ = width > 0 ? width : 1 + random_() % 4;
    std::vector<Place> places;
    const std::string from = From(places);
    const bool grouped = Chance(2);
    const size_t keys = grouped ? random_() % 3 : 0;
    std::string group;
    std::string out = Chance(8) ? "SELECT DISTINCT " : "SELECT ";
    for (size_t i = 0; i < width_; ++i) {
      if (i > 0) out += ", ";
      std::string cell;
      if (grouped && i >= keys) {
        cell = Aggregate(places);
      } else {
        cell = Column(places);
        if (grouped) group += (group.empty() ? "" : ", ") + cell;
      }
      out += "quote(" + cell + ")";
    }
    out += " FROM " + from;
    for (unsigned i = random_() % 3; i > 0; --i)
      out += (out.find(" WHERE ") == std::string::npos ? " WHERE " : " AND ") +
             Condition(places);
    if (!group.empty()) out += " GROUP BY " + group;
    if (!group.empty() && Chance(3)) out += " HAVING count(*) > 1";
    if (may_order && Chance(3)) {
      // All columns: rows that are equal in order are equal.
      for (size_t i = 0; i < width_; ++i) {
        out += (i == 0 ? " ORDER BY " : ", ") + std::to_string(i + 1) +
               (Chance(2) ? " DESC" : "");
      }
      if (Chance(2)) out += " LIMIT " + std::to_string(random_() % 20);
    }
    return out;
  }

  std::mt19937 random_;
  size_t width_ = 1;
  int aliases_ = 0;
};

TEST(RandomSql, IsThatOfSqliteOnACopy) {
  engine::OpenOptions options;
  options.threads = 2;
  const auto source = std::shared_ptr<engine::Session>(*engine::Session::Open(
      LAMINA_SOURCE_DIR "/samples/train_step.json.gz", options));
  auto database = Database::Open({{"main", {source}, {}}}, {});
  ASSERT_TRUE(database);
  const std::string path =
      (std::filesystem::temp_directory_path() /
       ("lamina_random_sql_" + std::to_string(getpid()) + ".sqlite"))
          .string();
  ASSERT_TRUE((*database)->Export(path, "", true));
  sqlite3* copy = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path.c_str(), &copy, SQLITE_OPEN_READONLY, nullptr),
            SQLITE_OK);
  int with_rows = 0;
  for (unsigned seed = 1; seed <= 1500; ++seed) {
    const std::string sql = Writer(seed).Query();
    const Lines expected = RunPlain(copy, sql);
    ASSERT_EQ(RunOurs(**database, sql), expected) << seed << ": " << sql;
    with_rows += !expected.empty() && !expected[0].starts_with("error");
  }
  // The queries are about something.
  EXPECT_GT(with_rows, 700);
  sqlite3_close(copy);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace lamina::sql
