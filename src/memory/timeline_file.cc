// SPDX-License-Identifier: Apache-2.0
#include "memory/timeline_file.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <vector>

#include "base/decimal.h"
#include "memory/tables.h"

namespace lamina::memory {
namespace {

// In the order of the files. What autograd keeps for itself is temporary.
constexpr std::array<Category, 8> kOrder = {
    Category::kParameter, Category::kOptimizerState, Category::kInput,
    Category::kTemporary, Category::kActivation,     Category::kGradient,
    Category::kTemporary, Category::kUnknown};

struct Point {
  std::optional<int64_t> time_ns;  // nothing: before the recording
  std::array<int64_t, kCategories> bytes{};
  int64_t total = 0;
};

// Reads lists of numbers; the texts of these files hold nothing else.
class Lists {
 public:
  explicit Lists(std::string_view text) : text_(text) {}

  bool Take(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::optional<int64_t> Number() {
    Skip();
    const size_t end =
        std::min(text_.find_first_not_of("+-.0123456789eE", at_), text_.size());
    const std::string_view digits = text_.substr(at_, end - at_);
    auto value = ParseInt(digits);
    if (!value) {
      const auto real = ParseDouble(digits);
      if (real && *real > -9e18 && *real < 9e18)
        value = static_cast<int64_t>(*real);
    }
    if (value) at_ = end;
    return value;
  }
  // "[1, 2, 3]"; nothing if it is none.
  std::optional<std::vector<int64_t>> Numbers() {
    if (!Take('[')) return std::nullopt;
    std::vector<int64_t> out;
    if (Take(']')) return out;
    do {
      const auto value = Number();
      if (!value) return std::nullopt;
      out.push_back(*value);
    } while (Take(','));
    if (!Take(']')) return std::nullopt;
    return out;
  }
  bool AtEnd() {
    Skip();
    return at_ == text_.size();
  }
  size_t at() const { return at_; }

 private:
  void Skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                  text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  std::string_view text_;
  size_t at_ = 0;
};

// [times in us, sizes]: nine numbers per time, the first one 0.
bool ReadSeries(Lists& in, std::vector<int64_t> times,
                std::vector<Point>* out) {
  if (!in.Take(',') || !in.Take('[')) return false;
  for (size_t i = 0; i < times.size(); ++i) {
    if (i > 0 && !in.Take(',')) return false;
    const auto sizes = in.Numbers();
    if (!sizes || sizes->size() != kOrder.size() + 1) return false;
    Point point;
    if (times[i] >= 0 && times[i] < (int64_t{1} << 52))
      point.time_ns = times[i] * 1000;
    for (size_t k = 0; k < kOrder.size(); ++k) {
      const int64_t bytes =
          std::clamp<int64_t>((*sizes)[k + 1], 0, int64_t{1} << 50);
      point.bytes[static_cast<size_t>(kOrder[k])] += bytes;
      point.total += bytes;
    }
    out->push_back(point);
  }
  return in.Take(']') && in.Take(']') && in.AtEnd();
}

bool AddRaw(const std::vector<int64_t>& row, std::vector<Point>* out) {
  if (row.size() != 4 || row[3] < 0 ||
      row[3] >= static_cast<int64_t>(kOrder.size()) ||
      row[2] > (int64_t{1} << 47) || row[2] < -(int64_t{1} << 47))
    return false;
  Point point;
  if (!out->empty()) point = out->back();
  point.time_ns = std::nullopt;
  if (row[0] >= 0) point.time_ns = row[0];
  const Category category = kOrder[static_cast<size_t>(row[3])];
  point.bytes[static_cast<size_t>(category)] += row[2];
  point.total += row[2];
  out->push_back(point);
  return true;
}

}  // namespace

bool LooksLikeTimeline(std::string_view head) {
  Lists in(head);
  return in.Take('[') && in.Take('[') && in.Number().has_value();
}

Result<ResultSet> ReadTimeline(const std::string& name, std::string_view text,
                               size_t rows) {
  Lists in(text);
  std::vector<Point> points;
  const auto wrong = [&] {
    return Fail(InputErrorAt(
        name, in.at(),
        "expected a memory timeline: [times, sizes], or a list of [time, "
        "action, bytes, category]",
        "write it with export_memory_timeline of torch.profiler"));
  };
  if (!in.Take('[')) return wrong();
  auto first = in.Numbers();
  if (!first) return wrong();
  bool raw = first->size() == 4;
  if (raw) {
    // Four times would look like a row; then lists of nine follow.
    raw = AddRaw(*first, &points);
    while (raw && in.Take(',')) {
      const auto row = in.Numbers();
      if (!row || !AddRaw(*row, &points)) return wrong();
    }
    if (raw && (!in.Take(']') || !in.AtEnd())) return wrong();
  }
  if (!raw && !ReadSeries(in, std::move(*first), &points)) return wrong();
  if (points.empty()) return wrong();

  const auto highest =
      static_cast<size_t>(std::max_element(points.begin(), points.end(),
                                           [](const Point& a, const Point& b) {
                                             return a.total < b.total;
                                           }) -
                          points.begin());
  int64_t start_ns = 0;
  for (size_t i = points.size(); i-- > 0;)
    if (points[i].time_ns) start_ns = *points[i].time_ns;
  const auto since = [&](size_t i) -> std::optional<int64_t> {
    if (!points[i].time_ns) return std::nullopt;
    return *points[i].time_ns - start_ns;
  };
  ResultSet result;
  result.tables.push_back(
      SummaryColumns().Make({{.measure = "allocated",
                              .peak_bytes = points[highest].total,
                              .peak_moment = static_cast<int64_t>(highest),
                              .peak_time = since(highest),
                              .at_start_bytes = points.front().total,
                              .at_end_bytes = points.back().total,
                              .at_peak_bytes = points[highest].total}}));
  std::vector<PeakRow> peak;
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t k = 0; k < kCategories; ++k) {
    if (points[highest].bytes[k] != 0)
      order.emplace_back(-points[highest].bytes[k], k);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [bytes, k] : order) {
    const std::string_view category = CategoryName(static_cast<Category>(k));
    peak.push_back({.key_kind = "category",
                    .key = category,
                    .category = category,
                    .confidence = "fact",
                    .bytes = -bytes,
                    .percent = PercentOf(-bytes, points[highest].total),
                    .fact_bytes = -bytes});
  }
  result.tables.push_back(PeakColumns().Make(peak));
  std::vector<TimelineRow> timeline;
  const size_t bins = std::min(points.size(), rows);
  for (size_t bin = 0; bin < bins; ++bin) {
    size_t best = points.size() * bin / bins;
    for (size_t i = best; i < points.size() * (bin + 1) / bins; ++i) {
      if (points[i].total > points[best].total) best = i;
    }
    timeline.push_back({.moment = static_cast<int64_t>(best),
                        .time = since(best),
                        .requested = std::nullopt,
                        .allocated = points[best].total,
                        .active = std::nullopt,
                        .reserved = std::nullopt,
                        .categories = points[best].bytes});
  }
  result.tables.push_back(TimelineColumns().Make(timeline));
  result.notes.push_back(MakeNote(
      Severity::kVerdict, "memory_peak",
      fmt::format("Peak {} allocated. The file holds sums by category: no "
                  "blocks, no stacks.",
                  HumanBytes(static_cast<double>(points[highest].total))),
      {{"memory_summary", "", "", {}}}));
  return result;
}

}  // namespace lamina::memory
