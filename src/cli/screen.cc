// SPDX-License-Identifier: Apache-2.0
#include "cli/screen.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <vector>

#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/text.h"

namespace lamina::cli {
namespace {

using findings::AnswerFix;
using findings::BarPart;
using findings::SharePercent;
using findings::Spent;
using findings::TimeForm;
using findings::TraceAnswer;

// How a part of the bar looks: in colour the idle ones are all shaded.
struct Look {
  const char* plain;
  char ascii;
  const char* colored;
  int red, green, blue;
  const char* sixteen;  // SGR
};
constexpr std::array<Look, findings::kSpent> kLooks = {{
    {"█", '#', "█", 0x80, 0x80, 0xff, "34"},
    {"▓", '=', "█", 0xd8, 0x5b, 0x0a, "33"},
    {"▒", '+', "▒", 0xc0, 0xb6, 0xbb, "37"},
    {"░", '-', "▒", 0xbe, 0x30, 0x01, "31"},
    {"░", '-', "▒", 0xf8, 0xa1, 0x74, "93"},
    {"░", '-', "▒", 0xf0, 0xd1, 0x05, "35"},
    {"░", '-', "▒", 0xc7, 0x5d, 0xc5, "36"},
    {"·", '.', "▒", 0x8a, 0x8d, 0x8d, "90"},
    {"·", '.', "▒", 0x6a, 0x6d, 0x6d, "90"},
    {"·", '.', "▒", 0x9f, 0x95, 0x94, "90"},
}};

class Screen {
 public:
  Screen(const TraceAnswer& answer, const ScreenOptions& options)
      : a_(answer),
        options_(options),
        width_(static_cast<size_t>(std::max(options.width, 40))),
        time_(answer.window_ns) {}

  std::string Make() {
    AddSentence();
    AddFacts();
    if (HasBar()) {
      AddBar();
      AddLegend();
    }
    AddWarnings(true);
    std::vector<std::string> head = std::move(lines_);
    lines_.clear();
    AddWarnings(false);
    const std::string more = More();
    std::vector<std::string> tail = std::move(lines_);
    lines_.clear();
    tail.push_back(more);
    if (HasBar()) AddHot(head, tail.size());
    if (a_.fixes.empty()) {
      if (HasBar() && a_.hot.empty()) {
        head.emplace_back();
        head.push_back(fmt::format("No fix found: {} of {} rules looked.",
                                   a_.looked, a_.rules));
      }
    } else {
      head.emplace_back();
      const size_t room = kScreenLines - head.size() - tail.size() - 1;
      AddFixes(room);
      head.insert(head.end(), lines_.begin(), lines_.end());
    }
    if (tail.size() > 1) tail.insert(tail.begin(), "");
    head.insert(head.end(), tail.begin(), tail.end());
    std::string out;
    for (const std::string& line : head) out += line + "\n";
    return out;
  }

 private:
  bool HasBar() const { return !a_.device_names.empty(); }

  std::string Style(std::string_view sgr, std::string_view text) const {
    return options_.color ? fmt::format("\x1b[{}m{}\x1b[0m", sgr, text)
                          : std::string(text);
  }
  std::string Bold(std::string_view text) const { return Style("1", text); }
  std::string Dim(std::string_view text) const { return Style("2", text); }
  const char* Arrow() const { return options_.ascii ? "->" : "→"; }
  const char* Minus() const { return options_.ascii ? "-" : "−"; }
  const char* Behind() const { return options_.ascii ? " > " : " › "; }

  // Cut to a number of cells, with a mark where something is missing.
  std::string Fit(std::string_view text, size_t cells) const {
    const std::string shown = EscapeTerminal(text);
    if (DisplayWidth(shown) <= cells) return shown;
    const std::string_view mark = options_.ascii ? "..." : "…";
    const size_t room = cells - std::min(cells, DisplayWidth(mark));
    return std::string(DisplayPrefix(shown, room)) + std::string(mark);
  }

  static std::string Pad(std::string text, size_t cells) {
    const size_t width = DisplayWidth(text);
    if (width < cells) text.append(cells - width, ' ');
    return text;
  }
  static std::string PadLeft(const std::string& text, size_t cells) {
    const size_t width = DisplayWidth(text);
    return width < cells ? std::string(cells - width, ' ') + text : text;
  }

  void AddSentence() {
    // A narrow terminal has two lines of it.
    std::string rest = a_.sentence;
    while (DisplayWidth(rest) > width_) {
      const size_t space = rest.rfind(' ', width_);
      if (space == std::string::npos || space == 0) break;
      lines_.push_back(Bold(rest.substr(0, space)));
      rest.erase(0, space + 1);
    }
    lines_.push_back(Bold(Fit(rest, width_)));
  }

  void AddFacts() {
    std::vector<std::string> facts = {time_.Text(a_.window_ns) + " window"};
    if (HasBar()) {
      facts.push_back("MFU " + findings::MfuWords(a_));
      facts.push_back("limited by " + findings::LimitWords(a_.limited_by));
    }
    if (a_.known >= 2) {
      facts.push_back(fmt::format("all fixes {} {} {}",
                                  time_.Text(a_.window_ns), Arrow(),
                                  time_.Text(a_.window_ns - a_.together_ns)));
    }
    // Why there is no MFU before what limits.
    if (HasBar() && !a_.mfu.value &&
        DisplayWidth(facts[0] + facts[1] + facts[2]) + 6 > width_)
      facts[1] = "MFU unknown";
    std::string line;
    for (const std::string& fact : facts) {
      const std::string next = line + (line.empty() ? "" : "   ") + fact;
      if (!line.empty() && DisplayWidth(next) > width_) continue;
      line = next;
    }
    lines_.push_back(Fit(line, width_));
  }

  // Cells of each part: by largest remainder, and one for what has half a
  // percent.
  std::vector<size_t> Cells() const {
    double all = 0;
    for (const BarPart& part : a_.bar) all += static_cast<double>(part.ns);
    std::vector<size_t> cells(a_.bar.size());
    if (all <= 0) return cells;
    std::vector<std::pair<double, size_t>> rests;
    size_t used = 0;
    for (size_t i = 0; i < cells.size(); ++i) {
      const double exact =
          static_cast<double>(a_.bar[i].ns) / all * static_cast<double>(width_);
      cells[i] = static_cast<size_t>(exact);
      if (cells[i] == 0 && a_.bar[i].share >= 0.005) {
        cells[i] = 1;
      } else {
        rests.emplace_back(exact - std::floor(exact), i);
      }
      used += cells[i];
    }
    std::stable_sort(
        rests.begin(), rests.end(),
        [](const auto& x, const auto& y) { return x.first > y.first; });
    for (size_t i = 0; used < width_ && i < rests.size(); ++i, ++used)
      ++cells[rests[i].second];
    while (used > width_) {
      --*std::max_element(cells.begin(), cells.end());
      --used;
    }
    return cells;
  }

  std::string Colored(Spent spent, size_t cells) const {
    const Look& look = kLooks[static_cast<size_t>(spent)];
    std::string text;
    for (size_t i = 0; i < cells; ++i) {
      if (options_.ascii) {
        text += look.ascii;
      } else {
        text += options_.color ? look.colored : look.plain;
      }
    }
    if (!options_.color || text.empty()) return text;
    const std::string sgr =
        options_.true_color
            ? fmt::format("38;2;{};{};{}", look.red, look.green, look.blue)
            : std::string(look.sixteen);
    return Style(sgr, text);
  }

  void AddBar() {
    const std::vector<size_t> cells = Cells();
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i)
      line += Colored(a_.bar[i].spent, cells[i]);
    lines_.push_back(std::move(line));
  }

  void AddLegend() {
    std::vector<const BarPart*> parts;
    for (const BarPart& part : a_.bar) {
      if (part.ns > 0) parts.push_back(&part);
    }
    std::stable_sort(
        parts.begin(), parts.end(),
        [](const BarPart* x, const BarPart* y) { return x->ns > y->ns; });
    double left = 0;
    for (const BarPart* const part : parts) left += part->share;
    const auto other = [](double share) {
      return "   other " + SharePercent(share);
    };
    std::string line;
    size_t used = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const BarPart& part = *parts[i];
      const std::string text =
          fmt::format(" {} {} {}", findings::SpentWords(part.spent),
                      HumanTime(part.ns), SharePercent(part.share));
      const size_t needs = (i > 0 ? 3 : 0) + 1 + DisplayWidth(text);
      const bool last = i + 1 == parts.size();
      const size_t rest = last ? 0 : DisplayWidth(other(left - part.share));
      if (i > 0 && (part.share < 0.005 || used + needs + rest > width_)) break;
      line += (i > 0 ? "   " : "") + Colored(part.spent, 1) + text;
      used += needs;
      left -= part.share;
      if (last) left = 0;
    }
    if (left > 1e-9 && used + DisplayWidth(other(left)) <= width_)
      line += other(left);
    lines_.push_back(std::move(line));
  }

  // "at model.py:40 > modeling_owlv2.py:410 forward"; empty: not known.
  std::string Place(const AnswerFix& fix) const {
    const std::string place = findings::PlaceWords(fix, Behind());
    return place.empty() ? place : "at " + place;
  }

  // "bound 43.3-46.0 ms, likely"
  std::string How(const AnswerFix& fix) const {
    std::string text(fix.how);
    const std::string from = time_.Number(fix.before_ns - fix.high_ns);
    const std::string to = time_.Number(fix.before_ns - fix.low_ns);
    if (width_ >= 120 && from != to && fix.sure != "open")
      text += fmt::format(" {}-{} {}", from, to, time_.unit);
    return text + ", " + std::string(fix.sure);
  }

  void AddFixes(size_t room) {
    const bool wide = width_ >= 120;
    const bool one_line = width_ >= 160;
    const size_t per = one_line ? 1 : 2;
    const size_t most = std::min(a_.fixes.size(), room / per);
    constexpr size_t kTitle = findings::kMostTodo + 1;
    const size_t number = DisplayWidth(time_.Text(a_.window_ns));
    for (size_t i = 0; i < most; ++i) {
      const AnswerFix& fix = a_.fixes[i];
      std::string line =
          fmt::format("{}  {}", i + 1, Bold(Fit(fix.todo, kTitle - 1)));
      line.append(
          kTitle - std::min(kTitle, DisplayWidth(Fit(fix.todo, kTitle - 1))),
          ' ');
      if (wide) line += PadLeft(time_.Text(fix.before_ns), number) + " ";
      line += std::string(Arrow()) + " " +
              PadLeft(time_.Text(fix.after_ns), number) + " ";
      line += Style("32", PadLeft(Minus() + SharePercent(fix.share), 7));
      const std::string place = Fit(Place(fix), width_);
      const std::string action = fix.text.empty() ? "" : fix.text.front();
      if (width_ >= 80) line += "  " + Dim(How(fix));
      if (one_line) {
        const size_t used = 3 + kTitle + 2 * number + 4 + 8 + 2 + 34;
        line +=
            std::string(34 - std::min<size_t>(34, DisplayWidth(How(fix))), ' ');
        line += Dim(Fit(place.empty() ? action : place, width_ - used));
      }
      lines_.push_back(std::move(line));
      if (one_line) continue;
      std::string below = place.empty() ? action : place;
      if (wide && !place.empty() && !action.empty()) below += "   " + action;
      lines_.push_back("   " + Dim(Fit(below, width_ - 3)));
    }
  }

  // Ops that take much of the time, in the lines that fixes leave.
  void AddHot(std::vector<std::string>& head, size_t tail) const {
    const size_t per = width_ >= 160 ? 1 : 2;
    const size_t taken = head.size() + tail + 3 + per * a_.fixes.size();
    size_t room = kScreenLines - std::min(kScreenLines, taken);
    bool first = true;
    for (const std::string& text : a_.hot) {
      const std::vector<std::string> lines =
          Wrapped(EscapeTerminal(text), width_ - 2);
      if (lines.size() + (first ? 1 : 0) > room) return;
      if (first) {
        head.emplace_back();
        --room;
      }
      first = false;
      room -= lines.size();
      for (size_t i = 0; i < lines.size(); ++i)
        head.push_back((i == 0 ? "* " : "  ") + lines[i]);
    }
  }

  // At blanks, a word that is too long at its last cell.
  static std::vector<std::string> Wrapped(std::string_view text, size_t cells) {
    std::vector<std::string> lines;
    while (DisplayWidth(text) > cells) {
      const std::string_view most = DisplayPrefix(text, cells);
      size_t end = text[most.size()] == ' ' ? most.size() : most.rfind(' ');
      if (end == std::string_view::npos || end == 0) end = most.size();
      lines.emplace_back(text.substr(0, end));
      text.remove_prefix(end);
      while (text.starts_with(' ')) text.remove_prefix(1);
    }
    lines.emplace_back(text);
    return lines;
  }

  // Two at most; those that make all numbers doubtful stand in the head.
  void AddWarnings(bool first) {
    constexpr size_t kMost = 2;
    for (const findings::AnswerWarning& warning : a_.warnings) {
      if (warning.first != first || warnings_shown_ == kMost) continue;
      lines_.push_back(Style("33", "!") + " " +
                       Fit(findings::WarningWords(warning), width_ - 2));
      ++warnings_shown_;
    }
  }

  std::string More() const {
    std::string rest;
    if (a_.smaller > 0) rest += fmt::format(" | {} smaller", a_.smaller);
    if (const size_t left = a_.warnings.size() - warnings_shown_; left > 0)
      rest += fmt::format(" | {}", Counted(left, "more warning"));
    const std::string input =
        options_.input.empty() ? "TRACE" : EscapeTerminal(options_.input);
    std::string text =
        "more: lamina report " + input + " --full | --open" + rest;
    if (DisplayWidth(text) > width_)
      text = "more: lamina report TRACE --full | --open" + rest;
    return Dim(Fit(text, width_));
  }

  const TraceAnswer& a_;
  const ScreenOptions& options_;
  const size_t width_;
  const TimeForm time_;
  std::vector<std::string> lines_;
  size_t warnings_shown_ = 0;
};

}  // namespace

std::string FormatScreen(const TraceAnswer& answer,
                         const ScreenOptions& options) {
  return Screen(answer, options).Make();
}

}  // namespace lamina::cli
