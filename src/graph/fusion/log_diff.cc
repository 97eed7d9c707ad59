// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/log_diff.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "table/row_columns.h"

namespace lamina::fusion {
namespace {

using graph::LogEntry;
using graph::TransformStatus;

struct DiffRow {
  std::string_view stage, transform;
  uint32_t occurrence;
  std::optional<int64_t> matches_a, matches_b;
  std::string_view status_a, status_b;
  std::optional<int64_t> time_a, time_b;
  std::string_view verdict, class_, reason;
};

const RowColumns<DiffRow>& DiffColumns() {
  static const RowColumns<DiffRow> columns{
      "log_diff",
      "Every transform of two logs, in the order of the first.",
      {{"stage", ColumnType::kText, "Stage of the pipeline.", &DiffRow::stage},
       {"transform", ColumnType::kText, "Transform.", &DiffRow::transform},
       {"occurrence", ColumnType::kInt,
        "How often it ran before in the same log.", &DiffRow::occurrence,
        Shown::kHidden},
       {"matches_a", ColumnType::kInt, "Matches in the first log.",
        &DiffRow::matches_a},
       {"matches_b", ColumnType::kInt, "Matches in the second log.",
        &DiffRow::matches_b},
       {"status_a", ColumnType::kText, "What the first log says.",
        &DiffRow::status_a, Shown::kHidden},
       {"status_b", ColumnType::kText, "What the second log says.",
        &DiffRow::status_b, Shown::kHidden},
       {"time_a_us", ColumnType::kTime, "Time in the first run.",
        &DiffRow::time_a, Shown::kHidden},
       {"time_b_us", ColumnType::kTime, "Time in the second run.",
        &DiffRow::time_b, Shown::kHidden},
       {"verdict", ColumnType::kText, "regression, changed, new or same.",
        &DiffRow::verdict},
       {"class", ColumnType::kText,
        "What probably happened; which it was only the dumps of both runs "
        "(--dumps) can say.",
        &DiffRow::class_},
       {"reason", ColumnType::kText, "In words.", &DiffRow::reason}}};
  return columns;
}

struct Verdict {
  std::string verdict = "same";
  std::string cls;
  std::string reason;
};

class Comparer {
 public:
  Comparer(const graph::TransformLog& a, const graph::TransformLog& b,
           const LogDiffOptions& options)
      : a_(a), b_(b), options_(options) {
    layers_ = options.layers > 0 ? options.layers : GuessLayers(a);
  }

  LogDiff Run() {
    Table table(DiffColumns().schema());
    for (const LogEntry& entry : a_.entries)
      Add(table, &entry, b_.Find(entry.transform, entry.occurrence));
    for (const LogEntry& entry : b_.entries) {
      if (a_.Find(entry.transform, entry.occurrence) == nullptr)
        Add(table, nullptr, &entry);
    }
    out_.result.tables.push_back(std::move(table));
    return std::move(out_);
  }

 private:
  void Add(Table& table, const LogEntry* a, const LogEntry* b) {
    const Verdict verdict = Judge(a, b);
    const LogEntry& either = a != nullptr ? *a : *b;
    const auto matches = [](const LogEntry* e) {
      return e == nullptr ? std::optional<int64_t>() : e->matches;
    };
    const auto status = [](const LogEntry* e) {
      return e == nullptr ? std::string_view("missing") : Name(e->status);
    };
    const auto time = [](const LogEntry* e) {
      return e == nullptr ? std::optional<int64_t>() : e->total_ns;
    };
    DiffColumns().Add(table, {.stage = either.stage,
                              .transform = either.transform,
                              .occurrence = either.occurrence,
                              .matches_a = matches(a),
                              .matches_b = matches(b),
                              .status_a = status(a),
                              .status_b = status(b),
                              .time_a = time(a),
                              .time_b = time(b),
                              .verdict = verdict.verdict,
                              .class_ = verdict.cls,
                              .reason = verdict.reason});
    if (verdict.verdict != "regression") return;
    ++out_.regressions;
    out_.result.notes.push_back(MakeNote(
        Severity::kWarning, "match_regression",
        fmt::format("{}: {}{}.", either.transform, verdict.reason,
                    verdict.cls.empty() ? "" : " (" + verdict.cls + ")"),
        {{"log_diff", "transform", either.transform, {}}}));
  }

  Verdict Judge(const LogEntry* a, const LogEntry* b) const {
    if (a == nullptr) return {"new", "", "only in the second log"};
    const int64_t before = a->matches.value_or(0);
    if (b == nullptr) {
      if (a->status == TransformStatus::kDisabled)
        return {"changed", "gone", "only in the first log"};
      return {"regression", "gone", "not in the second log"};
    }
    if (b->status == TransformStatus::kFailed &&
        a->status != TransformStatus::kFailed) {
      return {"regression", "failed",
              b->message.empty() ? "failed in the second run" : b->message};
    }
    if (b->status == TransformStatus::kDisabled &&
        a->status != TransformStatus::kDisabled) {
      // A transform that matched nothing is no loss, but the change is one.
      return {before > 0 ? "regression" : "changed", "disabled",
              before > 0
                  ? fmt::format("{} matches before, disabled now", before)
                  : std::string("disabled in the second run")};
    }
    if (a->status == TransformStatus::kDisabled &&
        b->status != TransformStatus::kDisabled)
      return {"changed", "", "enabled in the second run"};
    return Count(*a, *b);
  }

  Verdict Count(const LogEntry& a, const LogEntry& b) const {
    const int64_t before = a.matches.value_or(0);
    const int64_t after = b.matches.value_or(0);
    if (before == after) return {};
    const std::string counts = fmt::format("{} -> {}", before, after);
    if (after == 0) return {"regression", Class(a, b), counts};
    const double lost = 100.0 * static_cast<double>(before - after) /
                        static_cast<double>(std::max<int64_t>(before, 1));
    if (after < before && lost > options_.max_drop_percent)
      return {"regression", Class(a, b), counts};
    if (layers_ > 1 && before > 0 && before % layers_ == 0 &&
        after % layers_ != 0) {
      return {"regression", Class(a, b),
              fmt::format("{}, no multiple of the {} layers", counts, layers_)};
    }
    return {"changed", "", counts};
  }

  // What probably took the matches.
  std::string Class(const LogEntry& a, const LogEntry& b) const {
    // What the second log itself says of it comes first.
    if (b.has_valid_shapes == false && a.has_valid_shapes != false)
      return "shapes not valid";
    if (b.status == TransformStatus::kSkipped) return "skipped";
    std::string found;
    if (options_.reason) found = options_.reason(b.transform);
    return found.empty() ? "unknown cause" : found;
  }

  const graph::TransformLog& a_;
  const graph::TransformLog& b_;
  const LogDiffOptions& options_;
  int64_t layers_ = 0;
  LogDiff out_;
};

}  // namespace

int64_t GuessLayers(const graph::TransformLog& log) {
  std::map<int64_t, size_t> seen;
  for (const LogEntry& entry : log.entries) {
    const int64_t count = entry.matches.value_or(0);
    if (count <= 1) continue;
    if (entry.transform.starts_with("insert_cached") &&
        entry.transform.ends_with("attention"))
      return count;
    ++seen[count];
  }
  int64_t best = 0;
  size_t most = 1;  // one transform alone says nothing
  for (const auto& [count, times] : seen) {
    if (times > most) {
      best = count;
      most = times;
    }
  }
  return best;
}

LogDiff CompareLogs(const graph::TransformLog& a, const graph::TransformLog& b,
                    const LogDiffOptions& options) {
  return Comparer(a, b, options).Run();
}

}  // namespace lamina::fusion
