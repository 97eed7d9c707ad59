// SPDX-License-Identifier: Apache-2.0
//
// SQLite's virtual tables over Rows: columns, cursors, and the conditions that
// are tested before SQLite sees a row.
//
// A condition that is taken here is tested again by SQLite, so it may only
// leave out rows that SQLite would leave out too. A value of another type than
// the column is left to SQLite, whose rules of affinity and collation need no
// twin here. Only what is sure to be tested here is not tested again: whether a
// cell is null, and literals of the type of the column.
//
// Why it is longer than 250 lines: the callbacks of one module belong together.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <re2/re2.h>

#include "base/stop.h"
#include "base/text.h"
#include "sql/impl.h"

namespace lamina::sql {
namespace {

constexpr int kRowid = -1;
// Beside the operators of SQLite: an argument of a function.
constexpr int kArgument = 0;

struct Vtab : sqlite3_vtab {
  Database::Impl* impl = nullptr;
  const SchemaInput* schema = nullptr;      // of a table
  const TableDef* table = nullptr;          // or
  const TableFunction* function = nullptr;  // a function
  int shift = 0;                            // 1: the first column is the rank

  const std::vector<ColumnDef>& columns() const {
    return table != nullptr ? table->columns : function->columns;
  }
};

// A condition `column operator value` that rows must meet.
class Filter {
 public:
  Filter(int column, int op, const Value& value) : column_(column), op_(op) {
    if (value.kind() == Value::Kind::kText) {
      text_ = value.text();
      value_ = Value(text_);
      is_text_ = true;
    } else {
      value_ = value;
    }
    if (op == SQLITE_INDEX_CONSTRAINT_REGEXP) {
      RE2::Options quiet;
      quiet.set_log_errors(false);
      pattern_ = std::make_unique<RE2>(text_, quiet);
    }
  }
  Filter(Filter&& other) noexcept
      : column_(other.column_),
        op_(other.op_),
        is_text_(other.is_text_),
        text_(std::move(other.text_)),
        value_(is_text_ ? Value(text_) : other.value_),
        pattern_(std::move(other.pattern_)),
        seen_(std::move(other.seen_)) {}

  // Whether it can be tested here at all.
  bool usable() const { return pattern_ == nullptr || pattern_->ok(); }
  int column() const { return column_; }
  int op() const { return op_; }
  const Value& value() const { return value_; }

  bool Holds(const Value& cell) const {
    if (op_ == SQLITE_INDEX_CONSTRAINT_ISNULL) return IsNull(cell);
    if (op_ == SQLITE_INDEX_CONSTRAINT_ISNOTNULL) return !IsNull(cell);
    if (IsNull(cell)) return false;
    if (op_ == SQLITE_INDEX_CONSTRAINT_LIKE ||
        op_ == SQLITE_INDEX_CONSTRAINT_GLOB ||
        op_ == SQLITE_INDEX_CONSTRAINT_REGEXP)
      return HoldsPattern(cell);
    if (op_ == SQLITE_INDEX_CONSTRAINT_EQ && is_text_)
      return cell.kind() == Value::Kind::kText && cell.text() == text_;
    const int order = Compare(cell, value_);
    switch (op_) {
      case SQLITE_INDEX_CONSTRAINT_EQ:
        return order == 0;
      case SQLITE_INDEX_CONSTRAINT_LT:
        return order < 0;
      case SQLITE_INDEX_CONSTRAINT_LE:
        return order <= 0;
      case SQLITE_INDEX_CONSTRAINT_GT:
        return order > 0;
      case SQLITE_INDEX_CONSTRAINT_GE:
        return order >= 0;
      default:
        return true;
    }
  }

 private:
  // Texts of a trace are interned: the place of a text decides, and the
  // pattern is asked about each once or little more.
  bool HoldsPattern(const Value& cell) const {
    if (cell.kind() != Value::Kind::kText) return true;
    const std::string_view text = cell.text();
    if (seen_.empty()) seen_.resize(1024);
    Seen& seen =
        seen_[(reinterpret_cast<uintptr_t>(text.data()) >> 3) % seen_.size()];
    if (seen.data != text.data() || seen.size != text.size() ||
        text.data() == nullptr) {
      seen.data = text.data();
      seen.size = text.size();
      const std::string copy(text);
      seen.holds =
          op_ == SQLITE_INDEX_CONSTRAINT_LIKE
              ? sqlite3_strlike(text_.c_str(), copy.c_str(), 0) == 0
          : op_ == SQLITE_INDEX_CONSTRAINT_GLOB
              ? sqlite3_strglob(text_.c_str(), copy.c_str()) == 0
              : RE2::PartialMatch(re2::StringPiece(text.data(), text.size()),
                                  *pattern_);
    }
    return seen.holds;
  }

  struct Seen {
    const char* data = nullptr;
    size_t size = 0;
    bool holds = false;
  };
  int column_;
  int op_;
  bool is_text_ = false;
  std::string text_;
  Value value_;
  std::unique_ptr<RE2> pattern_;
  // Of patterns alone: a join makes a filter for every row.
  mutable std::vector<Seen> seen_;
};

// A filter that is left to test, and how: on the cells of its column where they
// lie, of texts each once.
struct Test {
  const Filter* filter = nullptr;
  std::optional<Rows::Direct> direct;
  enum Verdict : uint8_t { kUnknown, kHolds, kFails };
  std::vector<Verdict> verdicts;  // by number of the text

  bool Holds(const Rows& rows, size_t row) {
    if (!direct) return filter->Holds(rows.Cell(row, filter->column()));
    if (direct->cells.IsNull(row)) return filter->Holds(Value());
    if (direct->texts == nullptr)
      return filter->Holds(Value(direct->cells.ints[row]));
    const uint32_t number = direct->cells.texts[row];
    Verdict& verdict = verdicts[number];
    if (verdict == kUnknown) {
      verdict = filter->Holds(direct->texts->Text(number)) ? kHolds : kFails;
    }
    return verdict == kHolds;
  }
};

struct Cursor : sqlite3_vtab_cursor {
  const Vtab& vtab() const { return *static_cast<const Vtab*>(pVtab); }

  // A join sets it to begin for every row of the table before: what is the same
  // each time is kept.
  struct Condition {
    int op = 0, column = 0;
  };
  std::string plan;
  std::vector<Condition> conditions;  // of `plan`, as are these columns
  uint64_t used = 0;
  std::vector<std::shared_ptr<const Rows>> opened;  // by source

  std::vector<Filter> filters;
  int key = -1;             // filter that an index answers
  std::vector<Test> tests;  // what the choice of rows does not answer
  // Where it stands: a source, and in it a row or a position in `chosen`.
  size_t source = 0;
  const Rows* rows = nullptr;
  bool by_choice = false;
  std::span<const uint32_t> chosen;  // in an index of `rows`, or in `room`
  std::vector<uint32_t> room;
  size_t at = 0;
  size_t end = 0;
  bool done = true;
  std::optional<int64_t> rank;  // only this source

  size_t row() const { return by_choice ? chosen[at] : at; }
  void Read(const char* text, bool with_columns);
};

// "COLUMNS;OPERATOR:COLUMN;..." of BestIndex(), without columns that of
// BestIndexOfFunction().
void Cursor::Read(const char* text, bool with_columns) {
  if (!plan.empty() && plan == text) return;
  plan = text;
  conditions.clear();
  opened.clear();
  std::string_view left = plan;
  if (with_columns)
    used =
        std::strtoull(std::string(TakeUntil(left, ';')).c_str(), nullptr, 10);
  while (!left.empty()) {
    Condition& one = conditions.emplace_back();
    std::sscanf(std::string(TakeUntil(left, ';')).c_str(), "%d:%d", &one.op,
                &one.column);
  }
}

int FailWith(Vtab& vtab, Error error) {
  sqlite3_free(vtab.zErrMsg);
  vtab.zErrMsg = sqlite3_mprintf("%s", error.what.c_str());
  if (!vtab.impl->failed) vtab.impl->failed = std::move(error);
  return SQLITE_ERROR;
}

std::string InQuotes(std::string_view name) {
  return "\"" + std::string(name) + "\"";
}

std::string Declaration(const Vtab& vtab) {
  std::string text = "CREATE TABLE x(";
  const bool typed = vtab.function == nullptr || !vtab.function->shown;
  bool first = true;
  const auto add = [&](std::string_view name, std::string_view type,
                       bool hidden) {
    if (!first) text += ", ";
    first = false;
    text += InQuotes(name) + " " + std::string(type);
    if (hidden) text += " HIDDEN";
  };
  if (vtab.shift != 0) add("rank", "INTEGER", false);
  for (const ColumnDef& column : vtab.columns())
    add(column.name, typed ? TypeName(column.type) : "", column.hidden);
  if (vtab.function != nullptr) {
    for (const std::string& arg : vtab.function->args) add(arg, "", true);
  }
  return text + ")";
}

int Declare(sqlite3* db, Vtab& vtab) {
  // After a refused statement SQLite connects again, and the authorizer must
  // not refuse the declaration itself.
  vtab.impl->declaring = true;
  const int rc = sqlite3_declare_vtab(db, Declaration(vtab).c_str());
  vtab.impl->declaring = false;
  if (rc == SQLITE_OK) sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
  return rc;
}

int Connect(sqlite3* db, void* aux_pointer, int argc, const char* const* argv,
            sqlite3_vtab** out, char** message) {
  const auto& aux = *static_cast<Database::Impl::ModuleAux*>(aux_pointer);
  auto vtab = std::make_unique<Vtab>();
  vtab->impl = aux.impl;
  vtab->function = aux.function;
  if (aux.table != nullptr) {
    vtab->schema = &aux.impl->schemas.front();
    vtab->table = aux.table;
  } else if (aux.function == nullptr) {
    for (const SchemaInput& schema : aux.impl->schemas) {
      if (argc > 3 && schema.name == argv[1]) vtab->schema = &schema;
    }
    vtab->table = argc > 3 ? FindTable(argv[3]) : nullptr;
    if (vtab->schema == nullptr || vtab->table == nullptr) {
      *message = sqlite3_mprintf("no such table of lamina");
      return SQLITE_ERROR;
    }
  }
  if (vtab->schema != nullptr)
    vtab->shift = vtab->schema->ranks.empty() ? 0 : 1;
  const int rc = Declare(db, *vtab);
  if (rc == SQLITE_OK) *out = vtab.release();
  return rc;
}

int Create(sqlite3* db, void* aux, int argc, const char* const* argv,
           sqlite3_vtab** out, char** message) {
  return Connect(db, aux, argc, argv, out, message);
}

int Disconnect(sqlite3_vtab* vtab) {
  delete static_cast<Vtab*>(vtab);
  return SQLITE_OK;
}

// Rows of the first source, where that costs nothing to say: by what the trace
// holds, so that a plan does not depend on what was asked before.
double Estimate(const Vtab& vtab) {
  if (vtab.table == nullptr) return 100;
  const std::string_view name = vtab.table->name;
  double rows = vtab.table->kind == TableKind::kResult ? 200 : 20000;
  const trace::Trace& trace = vtab.schema->sources.front()->trace();
  const auto slices = static_cast<double>(trace.slices.size());
  const auto device = static_cast<double>(trace.device.size());
  const auto ops = static_cast<double>(trace.ops.size());
  const auto calls = static_cast<double>(trace.api_calls.size());
  if (name == "slice") rows = slices;
  if (name == "kernel" || name == "launch" || name == "device_events")
    rows = device;
  if (name == "host_events") rows = slices - device;
  if (name == "op" || name == "op_arg") rows = ops;
  if (name == "node" || name == "api_call") rows = ops + calls;
  // Of a gap there are a few, and few calls wait.
  if (name == "idle_parts") rows = 2 * device;
  if (name == "sync_calls") rows = calls / 30;
  return std::max(rows, 10.0) *
         static_cast<double>(vtab.schema->sources.size());
}

bool IsRange(int op) {
  return op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE ||
         op == SQLITE_INDEX_CONSTRAINT_GT || op == SQLITE_INDEX_CONSTRAINT_GE;
}
bool IsPattern(int op) {
  return op == SQLITE_INDEX_CONSTRAINT_LIKE ||
         op == SQLITE_INDEX_CONSTRAINT_GLOB ||
         op == SQLITE_INDEX_CONSTRAINT_REGEXP;
}

// Whether FilterRows() tests the condition for every row.
bool Surely(const Vtab& vtab, sqlite3_index_info* info, int i, int op,
            int column) {
  if (column < 0 || IsPattern(op)) return false;
  if (op == SQLITE_INDEX_CONSTRAINT_ISNULL ||
      op == SQLITE_INDEX_CONSTRAINT_ISNOTNULL)
    return true;
  sqlite3_value* known = nullptr;
  if (sqlite3_vtab_rhs_value(info, i, &known) != SQLITE_OK || known == nullptr)
    return false;
  const int type = sqlite3_value_type(known);
  return vtab.columns()[static_cast<size_t>(column)].type == Type::kText
             ? type == SQLITE_TEXT
             : type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

int BestIndexOfFunction(const Vtab& vtab, sqlite3_index_info* info) {
  const int first = static_cast<int>(vtab.function->columns.size());
  std::vector<int> place(vtab.function->args.size(), -1);
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& c = info->aConstraint[i];
    if (c.iColumn < first || c.op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    // An argument that is not known yet: another order of tables is needed.
    if (!c.usable) return SQLITE_CONSTRAINT;
    place[static_cast<size_t>(c.iColumn - first)] = i;
  }
  if (info->nOrderBy == 1 && info->aOrderBy[0].desc == 0 &&
      info->aOrderBy[0].iColumn == vtab.function->sorted)
    info->orderByConsumed = static_cast<int>(vtab.function->sorted >= 0);
  std::string plan;
  int count = 0;
  for (size_t a = 0; a < place.size(); ++a) {
    if (place[a] < 0) {
      if (a < vtab.function->required) return SQLITE_CONSTRAINT;
      continue;
    }
    auto& usage = info->aConstraintUsage[place[a]];
    usage.argvIndex = ++count;
    usage.omit = 1;
    plan += std::to_string(kArgument) + ":" + std::to_string(a) + ";";
  }
  info->idxStr = sqlite3_mprintf("%s", plan.c_str());
  info->needToFreeIdxStr = 1;
  info->estimatedCost = 50;
  info->estimatedRows = 50;
  return SQLITE_OK;
}

int BestIndex(sqlite3_vtab* base, sqlite3_index_info* info) {
  const Vtab& vtab = *static_cast<const Vtab*>(base);
  if (vtab.function != nullptr) return BestIndexOfFunction(vtab, info);
  const double rows = Estimate(vtab);
  double left = rows;
  double cost = rows;
  // Columns that the query reads; bit 63 stands for all from there on.
  const uint64_t all = uint64_t{1} << 63;
  uint64_t used = info->colUsed >> vtab.shift;
  if ((info->colUsed & all) != 0) used |= all | (all >> 1);
  std::string plan = std::to_string(used) + ";";
  int count = 0;
  int key = -1;
  bool one = false;
  const auto take = [&](int i, int op, int column) {
    info->aConstraintUsage[i].argvIndex = ++count;
    info->aConstraintUsage[i].omit = Surely(vtab, info, i, op, column);
    plan += std::to_string(op) + ":" + std::to_string(column) + ";";
  };
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& c = info->aConstraint[i];
    const int op = c.op;
    if (!c.usable) continue;
    if (vtab.shift != 0 && c.iColumn == 0) {
      // Which sources are opened at all.
      if (op == SQLITE_INDEX_CONSTRAINT_EQ) {
        take(i, op, -2);
        left /= static_cast<double>(vtab.schema->sources.size());
        cost = left;
      }
      continue;
    }
    if (c.iColumn < 0) {
      if (op == SQLITE_INDEX_CONSTRAINT_EQ && vtab.shift == 0) {
        take(i, op, kRowid);
        left = 1;
        cost = 1;
        one = true;
      }
      continue;
    }
    if (!vtab.impl->options.push_down) continue;
    const int column = c.iColumn - vtab.shift;
    const ColumnDef& def = vtab.columns()[static_cast<size_t>(column)];
    const bool text = def.type == Type::kText;
    if (op == SQLITE_INDEX_CONSTRAINT_ISNULL ||
        op == SQLITE_INDEX_CONSTRAINT_ISNOTNULL) {
      take(i, op, column);
      left = std::max(1.0, left / 2);
      continue;
    }
    if (IsPattern(op)) {
      if (!text) continue;
      take(i, op, column);
      left = std::max(1.0, left / 4);
      continue;
    }
    if (op == SQLITE_INDEX_CONSTRAINT_EQ) {
      if (text && std::strcmp(sqlite3_vtab_collation(info, i), "BINARY") != 0)
        continue;
      take(i, op, column);
      // A value that is known now is looked up once in this query: Choose()
      // says whether an index pays, but for what is sorted anyway. One that
      // comes from another table is looked up again and again.
      sqlite3_value* known = nullptr;
      const bool literal = sqlite3_vtab_rhs_value(info, i, &known) == SQLITE_OK;
      const bool unique =
          def.name == "uid" || def.name == "id" || def.name == "node_id";
      // Other events name an event a few times.
      constexpr double kNaming = 10;
      if (key < 0 && (!literal || unique)) {
        key = count - 1;
        left = unique                       ? 1
               : def.name.ends_with("_uid") ? std::min(left, kNaming)
                                            : std::max(1.0, left / 100);
        cost = 5 + left;
      } else {
        left = std::max(1.0, left / 10);
      }
      continue;
    }
    if (IsRange(op) && !text) {
      take(i, op, column);
      left = std::max(1.0, left / 3);
    }
  }
  info->idxNum = key;
  info->idxStr = sqlite3_mprintf("%s", plan.c_str());
  info->needToFreeIdxStr = 1;
  info->estimatedCost = std::min(cost, rows) + left;
  info->estimatedRows = static_cast<sqlite3_int64>(std::max(1.0, left));
  if (one) info->idxFlags |= SQLITE_INDEX_SCAN_UNIQUE;
  return SQLITE_OK;
}

int Open(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
  *out = new Cursor();
  return SQLITE_OK;
}

int Close(sqlite3_vtab_cursor* cursor) {
  delete static_cast<Cursor*>(cursor);
  return SQLITE_OK;
}

// Moves on to a row that meets all conditions.
void Seek(Cursor& c) {
  for (; c.at < c.end; ++c.at) {
    const size_t row = c.row();
    bool holds = true;
    for (size_t t = 0; holds && t < c.tests.size(); ++t)
      holds = c.tests[t].Holds(*c.rows, row);
    if (holds) return;
  }
}

// All filters are tested but the one that an index has answered.
void SetTests(Cursor& c, const Filter* answered) {
  // What a look at cells where they lie needs pays for many rows.
  constexpr size_t kMany = 1000;
  c.tests.clear();
  for (const Filter& filter : c.filters) {
    if (&filter == answered) continue;
    Test& test = c.tests.emplace_back();
    test.filter = &filter;
    if (c.end - c.at < kMany) continue;
    test.direct = c.rows->DirectOf(filter.column());
    if (test.direct && test.direct->texts != nullptr)
      test.verdicts.assign(test.direct->texts->texts(), Test::kUnknown);
  }
}

// Narrows what is read by an index, and by the order of columns. False when
// the query must end.
bool Choose(Cursor& c, Database::Impl& impl) {
  bool stopped = false;
  const auto stop = [&] { return stopped = impl.MustStop(); };
  const Filter* answered = nullptr;  // by an index
  c.by_choice = false;
  c.at = 0;
  c.end = c.rows->size();
  if (c.key >= 0 && c.key < static_cast<int>(c.filters.size())) {
    const Filter& filter = c.filters[static_cast<size_t>(c.key)];
    c.chosen = c.rows->Equal(filter.column(), filter.value(), c.room, stop);
    c.by_choice = true;
    c.end = c.chosen.size();
    answered = &filter;
  }
  // Texts of a column that many queries ask for: the rarest.
  for (const Filter& filter : c.filters) {
    if (c.key >= 0 || filter.op() != SQLITE_INDEX_CONSTRAINT_EQ ||
        filter.value().kind() != Value::Kind::kText ||
        !c.rows->WorthIndex(filter.column()))
      continue;
    const auto found =
        c.rows->Equal(filter.column(), filter.value(), c.room, stop);
    if (found.size() >= c.end) continue;
    c.chosen = found;
    c.by_choice = true;
    c.end = found.size();
    answered = &filter;
  }
  if (stopped) return false;
  // A few are read sooner than narrowed.
  constexpr size_t kFew = 8;
  for (const Filter& filter : c.filters) {
    if (c.end - c.at <= kFew) break;
    if (!IsRange(filter.op()) || !c.rows->Ascending(filter.column())) continue;
    // The rows that meet it stand together, also among those of an index, which
    // rise: at the front for < and <=, at the back for > and >=.
    const bool front = filter.op() == SQLITE_INDEX_CONSTRAINT_LT ||
                       filter.op() == SQLITE_INDEX_CONSTRAINT_LE;
    size_t low = c.at, high = c.end;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      const size_t row = c.by_choice ? c.chosen[middle] : middle;
      if (filter.Holds(c.rows->Cell(row, filter.column())) == front) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    (front ? c.end : c.at) = low;
  }
  SetTests(c, answered);
  return true;
}

// Opens the rows of the source where the cursor stands, or of a later one.
int Enter(Cursor& c) {
  auto& vtab = *static_cast<Vtab*>(c.pVtab);
  const auto& sources = vtab.schema->sources;
  for (; c.source < sources.size(); ++c.source) {
    if (c.rank && vtab.schema->ranks[c.source] != *c.rank) continue;
    c.opened.resize(sources.size());
    auto& kept = c.opened[c.source];
    if (kept == nullptr) {
      auto rows = EndedByStop(
          vtab.impl->stop, [&]() -> Result<std::shared_ptr<const Rows>> {
            LAMINA_ASSIGN(auto made, OpenRows(*sources[c.source], *vtab.table,
                                              {vtab.impl->stop, nullptr}));
            LAMINA_TRY(made->Prepare(c.used));
            return made;
          });
      if (!rows) return FailWith(vtab, rows.error());
      kept = *std::move(rows);
    }
    c.rows = kept.get();
    if (vtab.impl->MustStop()) return SQLITE_INTERRUPT;
    if (!Choose(c, *vtab.impl)) return SQLITE_INTERRUPT;
    Seek(c);
    if (c.at < c.end) return SQLITE_OK;
  }
  c.done = true;
  return SQLITE_OK;
}

int FilterFunction(Cursor& c, Vtab& vtab, const char* plan, int argc,
                   sqlite3_value** argv) {
  c.Read(plan, false);
  std::vector<Value> args(vtab.function->args.size());
  for (int i = 0; i < std::min<int>(argc, std::ssize(c.conditions)); ++i)
    args[static_cast<size_t>(c.conditions[i].column)] = ValueOf(argv[i]);
  auto rows = EndedByStop(
      vtab.impl->stop, [&] { return vtab.function->call(*vtab.impl, args); });
  if (!rows) return FailWith(vtab, rows.error());
  c.opened = {*std::move(rows)};
  c.rows = c.opened[0].get();
  c.by_choice = false;
  c.at = 0;
  c.end = c.rows->size();
  c.done = c.end == 0;
  return SQLITE_OK;
}

int FilterRows(sqlite3_vtab_cursor* base, int key, const char* plan, int argc,
               sqlite3_value** argv) {
  Cursor& c = *static_cast<Cursor*>(base);
  auto& vtab = *static_cast<Vtab*>(c.pVtab);
  if (vtab.function != nullptr)
    return FilterFunction(c, vtab, plan, argc, argv);
  c.filters.clear();
  c.key = -1;
  c.rank.reset();
  c.source = 0;
  c.done = false;
  std::optional<int64_t> rowid;
  c.Read(plan, true);
  for (int i = 0; i < std::min<int>(argc, std::ssize(c.conditions)); ++i) {
    const auto [op, column] = c.conditions[static_cast<size_t>(i)];
    const int type = sqlite3_value_type(argv[i]);
    // No row is equal to, less or greater than what is not known: the row of
    // another table has no such key.
    if (type == SQLITE_NULL && op != SQLITE_INDEX_CONSTRAINT_ISNULL &&
        op != SQLITE_INDEX_CONSTRAINT_ISNOTNULL) {
      c.done = true;
      return SQLITE_OK;
    }
    if (column == -2 || column == kRowid) {
      if (type != SQLITE_INTEGER) continue;
      (column == kRowid ? rowid : c.rank) = sqlite3_value_int64(argv[i]);
      continue;
    }
    const bool text =
        vtab.columns()[static_cast<size_t>(column)].type == Type::kText;
    const bool unary = op == SQLITE_INDEX_CONSTRAINT_ISNULL ||
                       op == SQLITE_INDEX_CONSTRAINT_ISNOTNULL;
    // Values of another type follow rules of SQLite.
    if (!unary && (text ? type != SQLITE_TEXT
                        : type != SQLITE_INTEGER && type != SQLITE_FLOAT))
      continue;
    Filter filter(column, op, ValueOf(argv[i]));
    if (!filter.usable()) continue;
    if (i == key) c.key = static_cast<int>(c.filters.size());
    c.filters.push_back(std::move(filter));
  }
  const int rc = Enter(c);
  if (rc == SQLITE_OK && rowid && !c.done) {
    // Only without ranks: the row is the id.
    const auto row = static_cast<uint64_t>(*rowid);
    c.by_choice = false;
    if (*rowid < 0 || row >= c.rows->size()) {
      c.done = true;
    } else {
      c.at = row;
      c.end = row + 1;
      SetTests(c, nullptr);
      Seek(c);
      c.done = c.at >= c.end;
    }
  }
  return rc;
}

int Next(sqlite3_vtab_cursor* base) {
  Cursor& c = *static_cast<Cursor*>(base);
  ++c.at;
  if (c.vtab().function == nullptr && !c.tests.empty()) Seek(c);
  if (c.at < c.end) return SQLITE_OK;
  if (c.vtab().function != nullptr) {
    c.done = true;
    return SQLITE_OK;
  }
  ++c.source;
  return Enter(c);
}

int Eof(sqlite3_vtab_cursor* cursor) {
  return static_cast<Cursor*>(cursor)->done;
}

int ColumnOf(sqlite3_vtab_cursor* base, sqlite3_context* context, int column) {
  const Cursor& c = *static_cast<const Cursor*>(base);
  const Vtab& vtab = c.vtab();
  if (vtab.function != nullptr) {
    // Arguments are known to SQLite; it does not ask for them.
    if (column < static_cast<int>(vtab.function->columns.size())) {
      SetResult(context, c.rows->Cell(c.row(), column),
                vtab.function->shown ? SQLITE_STATIC : SQLITE_TRANSIENT);
    }
    return SQLITE_OK;
  }
  if (column < vtab.shift) {
    sqlite3_result_int64(context, vtab.schema->ranks[c.source]);
    return SQLITE_OK;
  }
  // Texts live as long as the source, and that as long as the connection.
  SetResult(context, c.rows->Cell(c.row(), column - vtab.shift), SQLITE_STATIC);
  return SQLITE_OK;
}

int Rowid(sqlite3_vtab_cursor* base, sqlite3_int64* out) {
  const Cursor& c = *static_cast<const Cursor*>(base);
  *out = static_cast<sqlite3_int64>((uint64_t{c.source} << 40) | c.row());
  return SQLITE_OK;
}

sqlite3_module ModuleOf(bool table) {
  sqlite3_module module = {};
  module.iVersion = 1;
  module.xCreate = table ? &Create : nullptr;
  module.xConnect = &Connect;
  module.xBestIndex = &BestIndex;
  module.xDisconnect = &Disconnect;
  module.xDestroy = &Disconnect;
  module.xOpen = &Open;
  module.xClose = &Close;
  module.xFilter = &FilterRows;
  module.xNext = &Next;
  module.xEof = &Eof;
  module.xColumn = &ColumnOf;
  module.xRowid = &Rowid;
  return module;
}

}  // namespace

Value ValueOf(sqlite3_value* value) {
  switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
      return static_cast<int64_t>(sqlite3_value_int64(value));
    case SQLITE_FLOAT:
      return sqlite3_value_double(value);
    case SQLITE_TEXT: {
      // As bytes: of a text without a zero behind it, as ours are, SQLite
      // would make a copy that has one.
      const auto* text = static_cast<const char*>(sqlite3_value_blob(value));
      return std::string_view(text,
                              static_cast<size_t>(sqlite3_value_bytes(value)));
    }
    default:
      return {};
  }
}

void SetResult(sqlite3_context* context, const Value& value,
               sqlite3_destructor_type lifetime) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      sqlite3_result_null(context);
      break;
    case Value::Kind::kText:
      sqlite3_result_text64(
          context, value.text().data() == nullptr ? "" : value.text().data(),
          value.text().size(), lifetime, SQLITE_UTF8);
      break;
    case Value::Kind::kInt:
    case Value::Kind::kBool:
      sqlite3_result_int64(context, value.integer());
      break;
    case Value::Kind::kReal:
      if (std::isfinite(value.real())) {
        sqlite3_result_double(context, value.real());
      } else {
        sqlite3_result_null(context);
      }
      break;
  }
}

namespace {

// Of neither a function nor a table: for CREATE VIRTUAL TABLE.
void AddModule(Database::Impl& impl, const char* name,
               const TableFunction* function, const TableDef* table) {
  static const sqlite3_module kCreated = ModuleOf(true);
  static const sqlite3_module kByName = ModuleOf(false);
  impl.aux.push_back(std::make_unique<Database::Impl::ModuleAux>(
      Database::Impl::ModuleAux{&impl, function, table}));
  sqlite3_create_module(
      impl.db, name,
      function == nullptr && table == nullptr ? &kCreated : &kByName,
      impl.aux.back().get());
}

}  // namespace

void RegisterFunction(Database::Impl& impl, const TableFunction& function) {
  AddModule(impl, function.name.c_str(), &function, nullptr);
}

void RegisterTables(Database::Impl& impl) {
  AddModule(impl, "lamina", nullptr, nullptr);
  if (!impl.options.listed && !impl.schemas.empty()) {
    for (const TableDef& table : Tables()) {
      if (table.kind != TableKind::kView)
        AddModule(impl, table.name.c_str(), nullptr, &table);
    }
  }
  for (const TableFunction& f : TreeFunctions()) RegisterFunction(impl, f);
  for (const TableFunction& f : IntervalFunctions()) RegisterFunction(impl, f);
}

}  // namespace lamina::sql
