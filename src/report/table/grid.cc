// SPDX-License-Identifier: Apache-2.0
#include "report/table/grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <span>
#include <vector>

#include "base/counted.h"
#include "base/cpp_name.h"
#include "base/decimal.h"
#include "base/escape.h"

namespace lamina::report::table {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kGoodText = 40;  // names can be told apart
constexpr size_t kFairText = 28;  // most of them
constexpr size_t kMinText = 18;
constexpr size_t kFewColumns = 7;
constexpr size_t kMaxText = 72;
constexpr int kBarCells = 12;
constexpr size_t kBarNumber = 5;  // "100.0"

bool IsText(const Column& column) { return column.type == ColumnType::kText; }

std::string Padded(std::string_view text, size_t width, bool right) {
  const size_t have = DisplayWidth(text);
  const std::string pad(width > have ? width - have : 0, ' ');
  return right ? pad + std::string(text) : std::string(text) + pad;
}

// A path of modules or files says most at its end.
bool IsPath(std::string_view text) {
  return text.find('/') != std::string_view::npos &&
         text.find_first_of(" [(<") == std::string_view::npos;
}

std::string_view Tail(std::string_view text, size_t width) {
  size_t cut = DisplayWidth(text) - width;
  // A wide character is dropped as a whole.
  while (true) {
    const std::string_view tail = text.substr(DisplayPrefix(text, cut).size());
    if (DisplayWidth(tail) <= width) return tail;
    ++cut;
  }
}

std::string Fit(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width <= 3) return std::string(DisplayPrefix(text, width));
  if (const std::string name = ShortCppName(text); name.size() < text.size())
    return Fit(name, width);
  if (IsPath(text)) return "..." + std::string(Tail(text, width - 3));
  return std::string(DisplayPrefix(text, width - 3)) + "...";
}

// "kernel_time_us" is shown as "kernel time": the unit stands in each cell.
std::string Heading(const Column& column) {
  std::string name = column.name;
  const bool percent =
      column.shown == Shown::kPercent || column.shown == Shown::kBar;
  if (name.ends_with("_us") && column.type == ColumnType::kTime) {
    name.resize(name.size() - 3);
  } else if (name.ends_with("_pct") && percent) {
    name.resize(name.size() - 4);
    name += " %";
  } else if (name.ends_with("_bytes") && column.shown == Shown::kBytes) {
    name.resize(name.size() - 6);
  }
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string HumanReal(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::fabs(value);
  if (value == std::floor(value) && size < 1e9)
    return GroupDigits(static_cast<int64_t>(value));
  if (size >= 1e6 || size < 1e-3) return fmt::format("{:.3g}", value);
  if (size >= 1000) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, size >= 100 ? 1 : size >= 1 ? 2 : 3);
}

}  // namespace

Style::Style(bool color) {
  if (!color) return;
  bold = "\x1b[1m";
  dim = "\x1b[2m";
  red = "\x1b[31m";
  yellow = "\x1b[33m";
  reset = "\x1b[0m";
}

std::string Bar(double share, int cells) {
  static constexpr std::array<std::string_view, 9> kEighths = {
      "",       "\u258F", "\u258E", "\u258D", "\u258C",
      "\u258B", "\u258A", "\u2589", "\u2588"};
  share = std::clamp(share, 0.0, 1.0);
  int eighths = static_cast<int>(std::lround(share * cells * 8));
  if (share > 0 && eighths == 0) eighths = 1;
  std::string out;
  int used = 0;
  for (; eighths >= 8; eighths -= 8, ++used) out += kEighths[8];
  if (eighths > 0) {
    out += kEighths[static_cast<size_t>(eighths)];
    ++used;
  }
  out.append(static_cast<size_t>(std::max(0, cells - used)), ' ');
  return out;
}

std::string HumanCell(const lamina::Table& table, size_t row, size_t column) {
  const Value value = table.At(row, column);
  const Column& spec = table.schema().columns[column];
  if (value.null()) return IsText(spec) ? "" : "-";
  switch (spec.type) {
    case ColumnType::kText:
      return EscapeTerminal(value.text());
    case ColumnType::kBool:
      return value.boolean() ? "yes" : "no";
    case ColumnType::kTime:
      return HumanTime(value.integer());
    case ColumnType::kInt:
      if (spec.shown == Shown::kBytes)
        return HumanBytes(static_cast<double>(value.integer()));
      if (spec.shown == Shown::kCount)
        return HumanCount(static_cast<double>(value.integer()));
      return GroupDigits(value.integer());
    case ColumnType::kReal:
      if (spec.shown == Shown::kPercent || spec.shown == Shown::kBar)
        return fmt::format("{:.1f}", value.real());
      if (spec.shown == Shown::kBytes) return HumanBytes(value.real());
      if (spec.shown == Shown::kCount) return HumanCount(value.real());
      return HumanReal(value.real());
  }
  return {};
}

namespace {

// The columns of a table, narrowed until they fit.
class Grid {
 public:
  Grid(const lamina::Table& table, const GridOptions& options)
      : table_(table),
        rows_(std::min(table.rows(), options.max_rows)),
        style_(options.color) {
    ReadColumns();
    FitWidth(static_cast<size_t>(std::max(options.width, 40)));
  }

  size_t rows() const { return rows_; }
  // Columns left out.
  size_t hidden() const { return hidden_ + lanes_.size() - shown_; }
  const Style& style() const { return style_; }

  std::string Head() const {
    std::string line;
    for (const Lane& lane : Shown()) {
      const size_t width = lane.width + BarOf(lane);
      line +=
          Padded(Fit(lane.head, width), width, !lane.text && BarOf(lane) == 0);
      line.append(kGap, ' ');
    }
    return Trimmed(std::move(line));
  }

  std::string Row(size_t row) const {
    std::string line;
    for (const Lane& lane : Shown()) {
      line += Padded(Fit(lane.cells[row], lane.width), lane.width, !lane.text);
      if (BarOf(lane) > 0) {
        const Value value = table_.At(row, lane.column);
        const double share = value.null() ? 0 : value.real() / 100.0;
        line += " " + Bar(share, kBarCells);
      }
      line.append(kGap, ' ');
    }
    return Trimmed(std::move(line));
  }

 private:
  struct Lane {
    size_t column = 0;
    bool text = false;
    std::string head;
    std::vector<std::string> cells;
    size_t widest = 0;  // cell
    size_t bar = 0;     // width of the bars behind the cells
    size_t width = 0;
  };

  static std::string Trimmed(std::string line) {
    while (line.ends_with(' ')) line.pop_back();
    return line;
  }

  void ReadColumns() {
    const auto& columns = table_.schema().columns;
    for (size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].shown == Shown::kHidden) {
        ++hidden_;
        continue;
      }
      Lane lane;
      lane.column = c;
      lane.text = IsText(columns[c]);
      // The result of a query has the names that the query gave.
      lane.head = table_.schema().doc.empty() ? EscapeTerminal(columns[c].name)
                                              : Heading(columns[c]);
      for (size_t row = 0; row < rows_; ++row) {
        lane.cells.push_back(HumanCell(table_, row, c));
        lane.widest = std::max(lane.widest, DisplayWidth(lane.cells.back()));
      }
      // A text column with nothing in it tells nothing.
      if (lane.text && rows_ > 0 && lane.widest == 0 &&
          !table_.schema().doc.empty())
        continue;
      if (columns[c].shown == Shown::kBar) {
        lane.widest = std::max(lane.widest, kBarNumber);
        lane.bar = 1 + kBarCells;
      }
      lanes_.push_back(std::move(lane));
    }
  }

  // Texts lose what they can spare; then columns behind the bars go, then the
  // bars, then columns and texts in turn.
  void FitWidth(size_t width) {
    const size_t all = lanes_.size();
    if (Fits(width, all, true, kGoodText)) return;
    // The columns that a wide table exists for stay; bars make room for them.
    if (MoveKeptForward()) {
      for (size_t columns = all; columns > kFewColumns; --columns) {
        if (Fits(width, columns, false, kMinText)) return;
      }
    }
    const auto bar = std::find_if(lanes_.begin(), lanes_.end(),
                                  [](const Lane& lane) { return lane.bar; });
    const size_t to_bar = static_cast<size_t>(bar - lanes_.begin()) + 1;
    if (to_bar <= all && Fits(width, to_bar, true, kFairText)) return;
    for (size_t columns = all; columns >= kFewColumns; --columns) {
      if (Fits(width, columns, false, kFairText)) return;
    }
    size_t columns = std::min(all, kFewColumns);
    while (!Fits(width, columns, false, kMinText) && columns > 2) --columns;
  }

  // Puts the columns of kKept behind the first and the one of the time; false
  // if there are none.
  bool MoveKeptForward() {
    static constexpr std::string_view kKept[] = {
        "flops_per_s", "bound", "percent_of_roofline", "above_roofline_us"};
    const auto name = [&](const Lane& lane) -> std::string_view {
      return table_.schema().columns[lane.column].name;
    };
    const auto place = [&](const Lane& lane) {
      if (name(lane) == "kernel_time_us" || name(lane) == "busy_us") return 1;
      return std::find(std::begin(kKept), std::end(kKept), name(lane)) !=
                     std::end(kKept)
                 ? 2
                 : 3;
    };
    if (lanes_.size() < 2 ||
        table_.schema().Find("percent_of_roofline") == std::nullopt)
      return false;
    std::stable_sort(
        lanes_.begin() + 1, lanes_.end(),
        [&](const Lane& a, const Lane& b) { return place(a) < place(b); });
    return true;
  }

  // Lays out the first `columns`, texts no shorter than `least`.
  bool Fits(size_t width, size_t columns, bool bars, size_t least) {
    shown_ = columns;
    bars_ = bars;
    for (Lane& lane : lanes_) {
      const size_t head = DisplayWidth(lane.head);
      lane.width = std::max(lane.widest, head - std::min(head, BarOf(lane)));
      if (lane.text) lane.width = std::min(lane.width, kMaxText);
    }
    // Shrinks the widest text, cell by cell.
    for (size_t total = Total(); total > width; --total) {
      Lane* widest = nullptr;
      for (Lane& lane : Shown()) {
        if (lane.text && lane.width > least &&
            (widest == nullptr || lane.width > widest->width))
          widest = &lane;
      }
      if (widest == nullptr) return false;
      --widest->width;
    }
    return true;
  }

  std::span<Lane> Shown() { return {lanes_.data(), shown_}; }
  std::span<const Lane> Shown() const { return {lanes_.data(), shown_}; }
  size_t BarOf(const Lane& lane) const { return bars_ ? lane.bar : 0; }
  size_t Total() const {
    size_t sum = 0;
    for (const Lane& lane : Shown()) sum += lane.width + BarOf(lane) + kGap;
    return sum > 0 ? sum - kGap : 0;
  }

  const lamina::Table& table_;
  size_t rows_ = 0;
  Style style_;
  std::vector<Lane> lanes_;
  size_t hidden_ = 0;  // by the schema
  size_t shown_ = 0;   // of lanes_, the first ones
  bool bars_ = true;
};

}  // namespace

std::string FormatGrid(const lamina::Table& table, const GridOptions& options) {
  const Grid grid(table, options);
  const Style& style = grid.style();
  std::string out;
  if (options.title && !table.schema().doc.empty()) {
    out += fmt::format("{}{}{}  {}{}{}\n", style.bold, table.name(),
                       style.reset, style.dim, table.schema().doc, style.reset);
  }
  out += fmt::format("{}{}{}\n", style.dim, grid.Head(), style.reset);
  for (size_t row = 0; row < grid.rows(); ++row) out += grid.Row(row) + "\n";
  std::string more;
  if (table.rows() == 0) more = "(no rows)";
  if (table.rows() > grid.rows())
    more = "... " + Counted(table.rows() - grid.rows(), "more row");
  if (grid.hidden() > 0 && options.count_hidden) {
    more += fmt::format("{}{} in csv and json", more.empty() ? "... " : ", ",
                        Counted(grid.hidden(), "more column"));
  }
  if (!more.empty())
    out += fmt::format("{}{}{}\n", style.dim, more, style.reset);
  return out;
}

}  // namespace lamina::report::table
