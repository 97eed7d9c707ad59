// SPDX-License-Identifier: Apache-2.0

#include "report/table/summary.h"

#include <algorithm>
#include <fmt/core.h>
#include <optional>

#include "base/byte_sink.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "report/common/writer.h"
#include "report/table/grid.h"

namespace lamina::report::table {

std::string Wrap(std::string_view text, int width, int indent) {
  std::string out;
  size_t column = 0;
  const auto limit = static_cast<size_t>(std::max(width, 30));
  size_t pos = 0;
  bool line_start = true;
  while (pos < text.size()) {
    const size_t space = text.find(' ', pos);
    const std::string_view word = text.substr(
        pos, space == std::string_view::npos ? text.npos : space - pos);
    const size_t size = DisplayWidth(word);
    if (!line_start && column + 1 + size > limit) {
      out += '\n';
      out.append(static_cast<size_t>(indent), ' ');
      column = static_cast<size_t>(indent);
    } else if (!line_start) {
      out += ' ';
      ++column;
    }
    line_start = false;
    out += word;
    column += size;
    if (space == std::string_view::npos) break;
    pos = space + 1;
  }
  return out;
}

std::string FormatNotes(std::span<const Note> notes, int width, bool color) {
  const Style style(color);
  std::string out;
  const auto print = [&](const Note& note, std::string_view lead,
                         std::string_view paint) {
    std::string text = EscapeTerminal(note.text);
    if (note.worth_ns) {
      // An estimate may be too low.
      const bool bound = note.claim.find("bound") != std::string::npos;
      text = fmt::format("{}{} ({}): {}", HumanTime(*note.worth_ns),
                         bound ? " at most" : "", note.claim, text);
    }
    const int indent = static_cast<int>(lead.size());
    out += std::string(paint) + std::string(lead) + std::string(style.reset);
    out += Wrap(text, width - indent, indent) + "\n";
  };
  for (const Note& note : notes) {
    if (note.severity == Severity::kVerdict) {
      out += std::string(style.bold) +
             Wrap(EscapeTerminal(note.text), width, 0) +
             std::string(style.reset) + "\n";
    }
  }
  // Warnings before the first opportunity are why it may not hold.
  const auto first = std::find_if(
      notes.begin(), notes.end(),
      [](const Note& note) { return note.severity == Severity::kOpportunity; });
  const auto warn = [&](auto begin, auto end) {
    for (; begin != end; ++begin) {
      if (begin->severity == Severity::kWarning)
        print(*begin, "  ! ", style.yellow);
    }
  };
  if (first != notes.end()) warn(notes.begin(), first);
  for (const Note& note : notes) {
    if (note.severity == Severity::kOpportunity) print(note, "  + ", "");
  }
  warn(first != notes.end() ? first : notes.begin(), notes.end());
  for (const Note& note : notes) {
    if (note.severity == Severity::kInfo) print(note, "  - ", style.dim);
  }
  return out;
}

namespace {

constexpr int kTimelineBarCells = 40;
constexpr size_t kTopRows = 8;

// The columns of `table` that are named, in that order.
lamina::Table Select(const lamina::Table& table,
                     std::initializer_list<std::string_view> columns) {
  Schema schema{table.schema().name, table.schema().doc, {}};
  std::vector<size_t> from;
  for (const std::string_view name : columns) {
    const auto index = table.schema().Find(name);
    if (!index) continue;
    Column column = table.schema().columns[*index];
    // What is chosen here is shown.
    if (column.shown == Shown::kHidden) column.shown = Shown::kPlain;
    schema.columns.push_back(std::move(column));
    from.push_back(*index);
  }
  lamina::Table out(std::move(schema));
  std::vector<Value> row(from.size());
  for (size_t r = 0; r < table.rows(); ++r) {
    for (size_t c = 0; c < from.size(); ++c) row[c] = table.At(r, from[c]);
    out.AddRow(row);
  }
  return out;
}

void AddTimeline(std::string& out, const lamina::Table& table,
                 const Style& style) {
  struct Part {
    std::string_view type;
    std::string_view title;
  };
  static constexpr Part kParts[] = {{"computation_time", "computing"},
                                    {"exposed_comm_time", "only communicating"},
                                    {"exposed_memcpy_time", "only copying"},
                                    {"idle_time", "idle"},
                                    {"micro_idle_time", "idle, short gaps"},
                                    {"macro_idle_time", "idle, long gaps"}};
  int64_t total = 0;
  size_t devices = 0;  // with rows of their own
  std::string_view shown = "all";
  for (size_t row = 0; row < table.rows(); ++row) {
    if (table.At(row, "type").text() != "total_time") continue;
    const std::string_view device = table.At(row, "device").text();
    if (device == "all") {
      total = table.At(row, "time_us").integer();
    } else if (device == "mean") {
      shown = "mean";
    } else {
      ++devices;
    }
  }
  if (total == 0) return;
  out += fmt::format(
      "\n{}timeline{}  {}window of {}{}{}\n", style.bold, style.reset,
      style.dim, HumanTime(total),
      devices == 0 ? "" : fmt::format(", mean of {} devices", devices),
      style.reset);
  for (const Part& part : kParts) {
    for (size_t row = 0; row < table.rows(); ++row) {
      if (table.At(row, "device").text() != shown ||
          table.At(row, "type").text() != part.type)
        continue;
      const int64_t ns = table.At(row, "time_us").integer();
      const double share = static_cast<double>(ns) / static_cast<double>(total);
      if (ns == 0 && part.type != "computation_time") continue;
      out += fmt::format("{:<18}  {:>8}  {:>5.1f} %  {}\n", part.title,
                         HumanTime(ns), 100.0 * share,
                         Bar(share, kTimelineBarCells));
      while (out.ends_with(" \n")) out.erase(out.size() - 2, 1);
    }
  }
}

void AddGrid(std::string& out, const lamina::Table* table,
             std::initializer_list<std::string_view> columns, int width,
             bool color, size_t rows) {
  if (table == nullptr || table->rows() == 0) return;
  GridOptions grid;
  grid.width = width;
  grid.color = color;
  grid.max_rows = rows;
  grid.count_hidden = false;
  out += "\n" + FormatGrid(Select(*table, columns), grid);
}

// The name of a column of whole numbers that tells rows apart, empty where all
// rows say the same.
std::string_view Varies(const lamina::Table* table, std::string_view column) {
  if (table == nullptr || !table->schema().Find(column)) return {};
  const auto number = [&](size_t row) -> std::optional<int64_t> {
    const Value value = table->At(row, column);
    if (value.null()) return std::nullopt;
    return value.integer();
  };
  for (size_t row = 1; row < table->rows(); ++row) {
    if (number(row) != number(0)) return column;
  }
  return {};
}

void AddSteps(std::string& out, const ResultSet& result, const Style& style) {
  const lamina::Table* table = result.Find("step_summary");
  if (table == nullptr || table->rows() == 0) return;
  const auto row_of = [&](std::string_view metric) -> std::optional<size_t> {
    for (size_t row = 0; row < table->rows(); ++row) {
      if (table->At(row, "metric").text() == metric) return row;
    }
    return std::nullopt;
  };
  const auto mean = [&](std::string_view metric) -> int64_t {
    const auto row = row_of(metric);
    return row ? table->At(*row, "mean_us").integer() : 0;
  };
  const auto host = row_of("host_us");
  if (!host) return;
  const int64_t steps = table->At(*host, "steps").integer();
  std::string line = fmt::format("{} with device work, ",
                                 Counted(static_cast<uint64_t>(steps), "step"));
  // A step that no other follows has no period.
  const auto period = row_of("period_us");
  if (period) {
    line += fmt::format("period {}",
                        HumanTime(table->At(*period, "mean_us").integer()));
    if (table->At(*period, "steps").integer() > 1) {
      line += fmt::format(" on average ({} p50, {} p99)",
                          HumanTime(table->At(*period, "p50_us").integer()),
                          HumanTime(table->At(*period, "p99_us").integer()));
    }
  } else {
    line += fmt::format("host {}", HumanTime(mean("host_us")));
  }
  line += fmt::format("; on the device {}", HumanTime(mean("device_us")));
  if (mean("overlap_us") > 0) {
    line += fmt::format(", {} of it beside the next step",
                        HumanTime(mean("overlap_us")));
  } else if (mean("busy_us") > mean(period ? "period_us" : "host_us")) {
    line += ", behind the host, which runs ahead";
  }
  line += fmt::format("; idle {}", HumanTime(mean("idle_us")));
  if (mean("exposed_comm_us") > 0) {
    line += fmt::format("; exposed communication {}",
                        HumanTime(mean("exposed_comm_us")));
  }
  out += fmt::format("\n{}steps{}  {}\n", style.bold, style.reset, line);
}

void AddHealth(std::string& out, const lamina::Table* table, const Style& style,
               int width) {
  if (table == nullptr) return;
  std::string lines;
  size_t ok = 0;
  for (size_t row = 0; row < table->rows(); ++row) {
    const std::string_view status = table->At(row, "status").text();
    const std::string_view check = table->At(row, "check").text();
    if (status == "ok") ++ok;
    // What the tables by op and the rooflines lack is said on the first screen.
    const bool lacks = status == "info" &&
                       (check == "modelled_device_time" || check == "shapes" ||
                        check == "host_ops" || check == "roofline_device");
    if (status != "warn" && status != "lost" && !lacks) continue;
    const std::string head =
        fmt::format("  {} {}: {}", status, check,
                    EscapeTerminal(table->At(row, "value").text()));
    lines += std::string(status == "lost"   ? style.red
                         : status == "warn" ? style.yellow
                                            : style.dim) +
             head + std::string(style.reset) + "\n       " +
             Wrap(table->At(row, "meaning").text(), width - 7, 7) + "\n";
  }
  out += fmt::format("\n{}trace health{}  {} ok{}\n", style.bold, style.reset,
                     Counted(ok, "check"), lines.empty() ? "" : ", but:");
  out += lines;
}

}  // namespace

std::string FormatSummary(const ResultSet& result, int width, bool color,
                          size_t top) {
  const Style style(color);
  const size_t rows = top > 0 ? top : kTopRows;
  std::string out = FormatNotes(result.notes, width, color);
  if (const lamina::Table* timeline = result.Find("gpu_timeline"))
    AddTimeline(out, *timeline, style);
  AddGrid(out, result.Find("op_categories"),
          {"category", "kernels", "kernel_time_us", "percent"}, width, color,
          rows);
  AddGrid(out, result.Find("ops"),
          {"op", "kernel", "family", "count", "kernel_time_us", "percent"},
          width, color, rows);
  // Without device work the host is what there is to see.
  const lamina::Table* families = result.Find("op_categories");
  if (families != nullptr && families->rows() == 0) {
    AddGrid(out, result.Find("unread_events"),
            {"source", "process", "of_device", "events", "time_us", "busy_us"},
            width, color, rows);
    AddGrid(out, result.Find("host_ops"),
            {"op", "calls", "total_us", "self_us", "percent_self"}, width,
            color, rows);
    AddGrid(out, result.Find("threads"),
            {"thread", "name", "role", "calls", "self_us", "share_of_window"},
            width, color, rows);
  }
  const lamina::Table* collectives = result.Find("collectives");
  AddGrid(out, collectives,
          {"collective", Varies(collectives, "device_index"),
           Varies(collectives, "stream"), "group", "group_size", "dtype",
           "in_bytes", "count", "kernel_time_us", "exposed_us"},
          width, color, rows);
  AddSteps(out, result, style);
  AddHealth(out, result.Find("trace_health"), style, width);
  std::string names;
  for (const lamina::Table& table : result.tables)
    names += (names.empty() ? "" : ", ") + table.name();
  out += fmt::format("\n{}{}{}\n", style.dim,
                     Wrap("one table in full: --only NAME (" + names +
                              "); all of them: --format csv -o DIR",
                          width, 0),
                     style.reset);
  return out;
}

// The terminal: notes first, then each table as aligned text.

namespace {

constexpr size_t kDefaultRows = 20;

Status Write(const Document& document, const WriteOptions& options) {
  LAMINA_ASSIGN(const auto sink, CreateFileSink(options.output));
  if (document.summary) {
    sink->Write(FormatSummary(document.result, options.width, options.color,
                              options.top));
    return sink->Close();
  }
  sink->Write(FormatNotes(document.result.notes, options.width, options.color));
  bool first = document.result.notes.empty();
  for (const lamina::Table& table : document.result.tables) {
    GridOptions grid;
    grid.width = options.width;
    grid.color = options.color;
    grid.max_rows = options.top > 0 ? options.top : kDefaultRows;
    if (!first) sink->Write("\n");
    first = false;
    sink->Write(FormatGrid(table, grid));
  }
  return sink->Close();
}

}  // namespace

WriterInfo Info() { return {"table", "aligned text for a terminal", &Write}; }

}  // namespace lamina::report::table
