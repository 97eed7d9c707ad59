// SPDX-License-Identifier: Apache-2.0
#include "report/table/grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <vector>

#include "base/decimal.h"
#include "base/escape.h"

namespace lamina::report::table {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kMinText = 18;
constexpr size_t kMaxText = 72;
constexpr int kBarCells = 12;

bool IsText(const Column& column) { return column.type == ColumnType::kText; }

std::string Padded(std::string_view text, size_t width, bool right) {
  const size_t have = DisplayWidth(text);
  const std::string pad(width > have ? width - have : 0, ' ');
  return right ? pad + std::string(text) : std::string(text) + pad;
}

std::string Fit(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width <= 3) return std::string(DisplayPrefix(text, width));
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
      if (spec.shown == Shown::kPercent)
        return fmt::format("{:.1f}", value.real());
      if (spec.shown == Shown::kBar) {
        return fmt::format("{:5.1f} {}", value.real(),
                           Bar(value.real() / 100.0, kBarCells));
      }
      if (spec.shown == Shown::kBytes) return HumanBytes(value.real());
      if (spec.shown == Shown::kCount) return HumanCount(value.real());
      return HumanReal(value.real());
  }
  return {};
}

std::string FormatGrid(const lamina::Table& table, const GridOptions& options) {
  const Style style(options.color);
  const auto& columns = table.schema().columns;
  const size_t rows = std::min(table.rows(), options.max_rows);

  struct Shape {
    size_t column;
    std::string head;
    std::vector<std::string> cells;
    size_t width = 0;
  };
  std::vector<Shape> shapes;
  size_t hidden = 0;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].shown == Shown::kHidden) {
      ++hidden;
      continue;
    }
    Shape shape{c, Heading(columns[c]), {}, 0};
    shape.width = DisplayWidth(shape.head);
    for (size_t row = 0; row < rows; ++row) {
      shape.cells.push_back(HumanCell(table, row, c));
      shape.width = std::max(shape.width, DisplayWidth(shape.cells.back()));
    }
    // A text column with nothing in it tells nothing.
    if (IsText(columns[c]) && rows > 0 &&
        std::all_of(shape.cells.begin(), shape.cells.end(),
                    [](const std::string& cell) { return cell.empty(); }))
      continue;
    if (IsText(columns[c])) shape.width = std::min(shape.width, kMaxText);
    shapes.push_back(std::move(shape));
  }
  const auto total = [&] {
    size_t sum = 0;
    for (const Shape& shape : shapes) sum += shape.width + kGap;
    return sum > 0 ? sum - kGap : 0;
  };
  const auto width = static_cast<size_t>(std::max(options.width, 40));
  // Shrink the widest text column, cell by cell.
  while (total() > width) {
    Shape* widest = nullptr;
    for (Shape& shape : shapes) {
      if (IsText(columns[shape.column]) && shape.width > kMinText &&
          (widest == nullptr || shape.width > widest->width))
        widest = &shape;
    }
    if (widest == nullptr) break;
    --widest->width;
  }
  while (total() > width && shapes.size() > 2) {
    shapes.pop_back();
    ++hidden;
  }

  std::string out;
  if (options.title) {
    out += fmt::format("{}{}{}  {}{}{}\n", style.bold, table.name(),
                       style.reset, style.dim, table.schema().doc, style.reset);
  }
  std::string line;
  for (const Shape& shape : shapes) {
    if (!line.empty()) line.append(kGap, ' ');
    line += Padded(Fit(shape.head, shape.width), shape.width,
                   !IsText(columns[shape.column]) &&
                       columns[shape.column].shown != Shown::kBar);
  }
  while (line.ends_with(' ')) line.pop_back();
  out += std::string(style.dim) + line + std::string(style.reset) + "\n";
  for (size_t row = 0; row < rows; ++row) {
    line.clear();
    bool first = true;
    for (const Shape& shape : shapes) {
      if (!first) line.append(kGap, ' ');
      first = false;
      line += Padded(Fit(shape.cells[row], shape.width), shape.width,
                     !IsText(columns[shape.column]));
    }
    while (line.ends_with(' ')) line.pop_back();
    out += line + "\n";
  }
  std::string more;
  if (table.rows() == 0) more = "(no rows)";
  if (table.rows() > rows)
    more = fmt::format("... {} more rows", table.rows() - rows);
  if (hidden > 0 && options.count_hidden) {
    more += fmt::format("{}{} more columns in csv and json",
                        more.empty() ? "... " : ", ", hidden);
  }
  if (!more.empty())
    out += std::string(style.dim) + more + std::string(style.reset) + "\n";
  return out;
}

}  // namespace lamina::report::table
