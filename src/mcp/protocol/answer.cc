// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: what stands in an answer and what it costs are counted in
// one place, byte by byte.
#include "mcp/protocol/answer.h"

#include <absl/strings/escaping.h>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "mcp/protocol/message.h"
#include "table/units.h"

namespace lamina::mcp {
namespace {

constexpr size_t kShortText = 160;
constexpr size_t kLongText = 4000;
// Of a note; less where a page would show none at all.
constexpr size_t kNoteText[] = {700, 250, 80};
// Rows of a table before the next one has its turn.
constexpr size_t kFirstRows = 5;

// Bytes of a text inside a JSON string.
size_t CostOf(std::string_view text) { return JsonQuote(text).size() - 2; }

std::string CutText(std::string_view text, size_t most) {
  return Shorten(RepairUtf8(text), most);
}

bool IsTime(const Column& column) {
  return column.type == ColumnType::kTime ||
         (column.type == ColumnType::kInt && column.name.ends_with("_ns"));
}

Json ColumnJson(const Column& column) {
  Json out;
  out["name"] = NameInNs(column);
  switch (column.type) {
    case ColumnType::kText:
      out["type"] = "text";
      break;
    case ColumnType::kReal:
      out["type"] = "real";
      break;
    case ColumnType::kBool:
      out["type"] = "bool";
      break;
    default:
      out["type"] = "int";
  }
  out["unit"] = UnitOfName(NameInNs(column));
  return out;
}

// Names in text: a time stands with its unit in each cell.
std::string Heading(const Table& table) {
  const auto bare = [](const Column& column) {
    return IsTime(column) && column.name.size() > 3
               ? column.name.substr(0, column.name.size() - 3)
               : column.name;
  };
  const auto& columns = table.schema().columns;
  std::string out;
  for (const Column& column : columns) {
    std::string name = bare(column);
    const auto same =
        std::count_if(columns.begin(), columns.end(),
                      [&](const Column& other) { return bare(other) == name; });
    if (same > 1) name = column.name;
    out +=
        (out.empty() ? "" : " | ") + EscapeTerminal(CutText(name, kShortText));
  }
  return out;
}

struct Line {
  Json row = Json::array();
  std::string text;
  bool cut = false;
};

Line MakeLine(const Table& table, size_t row, size_t most) {
  Line line;
  for (size_t c = 0; c < table.columns(); ++c) {
    const Column& column = table.schema().columns[c];
    const Value value = table.At(row, c);
    std::string shown = "-";
    Json cell;
    switch (value.kind()) {
      case Value::Kind::kNull:
        break;
      case Value::Kind::kText: {
        std::string text = CutText(value.text(), most);
        line.cut |=
            text.size() != value.text().size() || value.text().size() > most;
        shown = EscapeTerminal(text);
        cell = std::move(text);
        break;
      }
      case Value::Kind::kBool:
        cell = value.boolean();
        shown = value.boolean() ? "yes" : "no";
        break;
      case Value::Kind::kInt:
        cell = value.integer();
        if (IsTime(column)) {
          shown = HumanTime(value.integer());
        } else if (column.shown == Shown::kBytes) {
          shown = HumanBytes(static_cast<double>(value.integer()));
        } else {
          shown = std::to_string(value.integer());
        }
        break;
      case Value::Kind::kReal:
        if (std::isfinite(value.real())) {
          cell = value.real();
          shown = fmt::format("{:.6g}", value.real());
        }
    }
    line.row.push_back(std::move(cell));
    line.text += (c > 0 ? " | " : "") + shown;
  }
  line.text += '\n';
  return line;
}

Json NoteJson(const Note& note, size_t most) {
  constexpr size_t kMostEvents = 20;
  Json out;
  out["severity"] = SeverityName(note.severity);
  out["id"] = note.id;
  out["text"] = CutText(note.text, most);
  if (note.worth_ns) out["worth_ns"] = *note.worth_ns;
  if (!note.claim.empty()) out["claim"] = note.claim;
  Json uids = Json::array();
  for (const Evidence& evidence : note.evidence) {
    for (const uint32_t event : evidence.events) {
      if (uids.size() < kMostEvents) uids.push_back(event);
    }
  }
  if (!uids.empty()) out["uids"] = std::move(uids);
  return out;
}

std::string NoteText(const Note& note, size_t most) {
  std::string out = fmt::format("{}: {}", SeverityName(note.severity),
                                EscapeTerminal(CutText(note.text, most)));
  if (note.worth_ns) {
    // "bound 144 us, 27 us of it in short kernels, too".
    const size_t comma = std::min(note.claim.find(','), note.claim.size());
    out += fmt::format(" ({} {}{})", note.claim.substr(0, comma),
                       HumanTime(*note.worth_ns), note.claim.substr(comma));
  }
  return out + "\n";
}

// For hosts that show a model the text alone.
std::string NextText(const Next& next) {
  return fmt::format("next: {} {} ({})\n", next.tool,
                     EscapeTerminal(DumpText(next.arguments)), next.why);
}

// The one sentence that a reader in a hurry takes.
std::string SummaryOf(const ResultSet& result) {
  constexpr size_t kMost = 300;
  for (const Note& note : result.notes) {
    if (note.severity == Severity::kVerdict) return CutText(note.text, kMost);
  }
  return result.notes.empty() ? "" : CutText(result.notes[0].text, kMost);
}

std::string MakeCursor(const Position& position, uint64_t key) {
  std::string text = fmt::format("{:016x}.{}", key, position.notes);
  for (const size_t rows : position.rows) text += fmt::format(".{}", rows);
  return absl::WebSafeBase64Escape(text);
}

// A table as it grows row by row.
struct Growing {
  Json json;  // without rows
  Json rows = Json::array();
  std::string head;
  std::string lines;
  size_t first = 0;
};

std::string TableHead(const Table& table) {
  return "\n" + EscapeTerminal(table.name()) + "\n" + Heading(table) + "\n";
}

class Builder {
 public:
  Builder(const Made& made, const Position& from, const AnswerOptions& options)
      : made_(made),
        result_(made.document.result),
        options_(options),
        budget_(static_cast<size_t>(static_cast<double>(options.max_tokens) *
                                    kBytesPerToken)),
        position_(from),
        tables_(result_.tables.size()) {
    position_.rows.resize(tables_.size());
  }

  tl::expected<Answer, Problem> Run(const std::string& trace,
                                    const std::vector<std::string>& inputs,
                                    uint64_t key);

 private:
  bool Fits(size_t cost) {
    if (used_ + cost > budget_) return false;
    used_ += cost;
    return true;
  }
  bool Left(size_t t) const {
    return position_.rows[t] < result_.tables[t].rows();
  }
  void AddAnswer(Json& out, std::string& text);
  void AddNotes();
  bool AddRow(size_t t);
  Problem TooSmall(size_t t) const;

  const Made& made_;
  const ResultSet& result_;
  const AnswerOptions& options_;
  const size_t budget_;
  size_t used_ = 0;
  size_t needed_ = 0;  // for the row that did not fit
  Position position_;
  std::vector<std::optional<Growing>> tables_;
  Json notes_ = Json::array();
  std::string note_lines_;
  bool cut_ = false;
};

// At most half of a page, where it shall not leave the others without room;
// then the text alone.
void Builder::AddAnswer(Json& out, std::string& text) {
  if (made_.answer.is_null()) return;
  const size_t lines = CostOf(made_.answer_text) + 4;
  const size_t both = lines + DumpText(made_.answer).size() + 12;
  const size_t room = (budget_ - used_) / 2;
  if (lines > room) return;
  text = made_.answer_text + "\n";
  used_ += both <= room ? both : lines;
  if (both <= room) out["answer"] = made_.answer;
}

// They come first and may leave little to rows, but something.
void Builder::AddNotes() {
  const size_t most =
      tables_.empty() ? budget_ : used_ + (budget_ - used_) * 2 / 3;
  const auto add = [&](const Note& note, size_t bytes) {
    Json json = NoteJson(note, bytes);
    const std::string line = NoteText(note, bytes);
    const size_t cost = DumpText(json).size() + 1 + CostOf(line);
    if (used_ + cost > most) return false;
    used_ += cost;
    notes_.push_back(std::move(json));
    note_lines_ += line;
    ++position_.notes;
    return true;
  };
  while (position_.notes < result_.notes.size()) {
    const Note& note = result_.notes[position_.notes];
    bool added = add(note, kNoteText[0]);
    for (size_t i = 1; !added && notes_.empty() && i < std::size(kNoteText);
         ++i)
      added = add(note, kNoteText[i]);
    if (!added) break;
  }
}

bool Builder::AddRow(size_t t) {
  const Table& table = result_.tables[t];
  std::optional<Growing>& growing = tables_[t];
  size_t cost = 0;
  std::optional<Growing> fresh;
  if (!growing) {
    fresh.emplace();
    fresh->first = position_.rows[t];
    fresh->head = TableHead(table);
    fresh->json["name"] = table.name();
    Json& columns = fresh->json["columns"] = Json::array();
    for (const Column& column : table.schema().columns)
      columns.push_back(ColumnJson(column));
    // Numbers of rows and what stands around them.
    constexpr size_t kAround = 120;
    cost = DumpText(fresh->json).size() + CostOf(fresh->head) + kAround;
  }
  Line line = MakeLine(table, position_.rows[t],
                       options_.full_names ? kLongText : kShortText);
  cost += DumpText(line.row).size() + 1 + CostOf(line.text);
  if (!Fits(cost)) {
    needed_ = std::max(needed_, used_ + cost);
    return false;
  }
  if (fresh) growing = std::move(fresh);
  growing->rows.push_back(std::move(line.row));
  growing->lines += line.text;
  cut_ |= line.cut;
  ++position_.rows[t];
  return true;
}

Problem Builder::TooSmall(size_t t) const {
  const Table& table = result_.tables[t];
  const auto tokens = static_cast<int64_t>(
      std::ceil(static_cast<double>(needed_) / kBytesPerToken));
  return UsageError(
      fmt::format("max_tokens {} is too small for a row of {} with {}",
                  options_.max_tokens, table.name(),
                  Counted(table.columns(), "column")),
      fmt::format("give max_tokens {} or more, or ask query for fewer columns",
                  tokens));
}

tl::expected<Answer, Problem> Builder::Run(
    const std::string& trace, const std::vector<std::string>& inputs,
    uint64_t key) {
  Answer answer;
  Json& out = answer.structured;
  out["question"] = made_.document.command;
  out["state"] = "complete";
  if (!trace.empty()) out["trace"] = trace;
  out["inputs"] = inputs;
  const bool first_page =
      position_.notes == 0 &&
      std::all_of(position_.rows.begin(), position_.rows.end(),
                  [](size_t row) { return row == 0; });
  out["summary"] = first_page ? SummaryOf(result_) : "";
  Json next = Json::array();
  if (first_page) {
    for (const Next& one : made_.next) {
      next.push_back(
          {{"tool", one.tool}, {"arguments", one.arguments}, {"why", one.why}});
    }
  }
  // The frame, with room for the longest cursor and for numbers.
  Position end{result_.notes.size(), {}};
  for (const Table& table : result_.tables) end.rows.push_back(table.rows());
  constexpr size_t kFrame = 320;
  size_t next_text = 0;
  if (first_page) {
    for (const Next& one : made_.next) next_text += NextText(one).size();
  }
  used_ = DumpText(out).size() + DumpText(next).size() + next_text +
          2 * MakeCursor(end, key).size() + kFrame;
  // Tables of which this page shows nothing are named.
  size_t named = 0;
  for (const Table& table : result_.tables)
    named += DumpText({{"name", table.name()}, {"total_rows", 0}}).size() + 12;
  const bool name_omitted = named < budget_ / 4;
  if (name_omitted) used_ += named;
  if (used_ > budget_) {
    return tl::make_unexpected(Problem(UsageError(
        fmt::format("max_tokens {} is too small for this answer",
                    options_.max_tokens),
        fmt::format(
            "give max_tokens {} or more",
            static_cast<int64_t>(used_ / kBytesPerToken) + kFirstRows * 100))));
  }
  std::string answer_lines;
  if (first_page) AddAnswer(out, answer_lines);
  AddNotes();
  // A first look at each table, then the rest in order.
  for (size_t t = 0; t < tables_.size(); ++t) {
    for (size_t i = 0; i < kFirstRows && Left(t) && AddRow(t); ++i) {
    }
  }
  for (size_t t = 0; t < tables_.size(); ++t) {
    while (tables_[t] && Left(t) && AddRow(t)) {
    }
  }
  bool truncated = position_.notes < result_.notes.size();
  bool any = !notes_.empty();
  std::optional<size_t> first_left;
  for (size_t t = 0; t < tables_.size(); ++t) {
    any |= tables_[t].has_value();
    truncated |= Left(t);
    if (Left(t) && !first_left) first_left = t;
  }
  if (truncated && !any) {
    return tl::make_unexpected(
        first_left ? TooSmall(*first_left)
                   : Problem(UsageError(fmt::format(
                         "max_tokens {} is too small", options_.max_tokens))));
  }

  out["notes"] = std::move(notes_);
  answer.text = answer_lines + note_lines_;
  Json& tables = out["tables"] = Json::array();
  Json omitted = Json::array();
  for (size_t t = 0; t < tables_.size(); ++t) {
    const size_t total = result_.tables[t].rows();
    if (!tables_[t]) {
      if (name_omitted && (Left(t) || first_page))
        omitted.push_back(
            {{"name", result_.tables[t].name()}, {"total_rows", total}});
      continue;
    }
    Growing& growing = *tables_[t];
    const size_t shown = growing.rows.size();
    growing.json["rows"] = std::move(growing.rows);
    growing.json["first"] = growing.first;
    growing.json["shown"] = shown;
    growing.json["total_rows"] = total;
    tables.push_back(std::move(growing.json));
    if (shown < total) {
      growing.head.insert(growing.head.find('\n', 1),
                          fmt::format(", rows {} to {} of {}", growing.first,
                                      growing.first + shown - 1, total));
    }
    answer.text += growing.head + growing.lines;
  }
  if (!omitted.empty()) out["omitted"] = std::move(omitted);
  out["truncated"] = truncated;
  out["full_names"] = !cut_;
  out["next_cursor"] = nullptr;
  if (truncated) {
    const std::string cursor = MakeCursor(position_, key);
    out["next_cursor"] = cursor;
    answer.text += "\nnext: cursor \"" + cursor + "\"\n";
  }
  if (answer.text.empty()) answer.text = "no rows\n";
  if (!next.empty()) {
    if (!truncated) answer.text += "\n";
    for (const Next& one : made_.next) answer.text += NextText(one);
    out["next"] = std::move(next);
  }
  return answer;
}

}  // namespace

tl::expected<Answer, Problem> MakeAnswer(const Made& made,
                                         const std::string& trace,
                                         const std::vector<std::string>& inputs,
                                         const Position& from, uint64_t key,
                                         const AnswerOptions& options) {
  return Builder(made, from, options).Run(trace, inputs, key);
}

Result<Position> ReadCursor(const std::string& cursor, uint64_t key,
                            const Document& document) {
  const auto wrong = [] {
    return Fail(UsageError(
        "the cursor does not belong to this call",
        "repeat the call with the arguments of the answer that gave the "
        "cursor, or without it; a changed input starts anew"));
  };
  std::string text;
  if (!absl::WebSafeBase64Unescape(cursor, &text)) return wrong();
  const std::string head = fmt::format("{:016x}.", key);
  if (!text.starts_with(head)) return wrong();
  std::vector<size_t> numbers;
  for (size_t at = head.size(); at <= text.size();) {
    const size_t end = std::min(text.find('.', at), text.size());
    const std::string digits = text.substr(at, end - at);
    const auto number = ParseInt(digits);
    if (!number || *number < 0 || digits.size() > 10) return wrong();
    numbers.push_back(static_cast<size_t>(*number));
    at = end + 1;
  }
  const auto& tables = document.result.tables;
  if (numbers.size() != tables.size() + 1 ||
      numbers[0] > document.result.notes.size())
    return wrong();
  Position position{numbers[0], {numbers.begin() + 1, numbers.end()}};
  for (size_t t = 0; t < tables.size(); ++t) {
    if (position.rows[t] > tables[t].rows()) return wrong();
  }
  return position;
}

}  // namespace lamina::mcp
