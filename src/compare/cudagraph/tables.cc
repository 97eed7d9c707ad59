// SPDX-License-Identifier: Apache-2.0
//
// What may be said of a replayed kernel, from its match.

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <map>

#include "base/counted.h"
#include "base/decimal.h"
#include "compare/cudagraph/annotate.h"
#include "compare/cudagraph/names.h"
#include "table/row_columns.h"

namespace lamina::cudagraph {

using trace::SliceId;

namespace {

// The longest common start of two paths, cut at a separator.
std::string Common(const std::string& a, const std::string& b,
                   std::string_view separator) {
  size_t end = 0;
  for (size_t pos = 0;;) {
    const size_t x = std::min(a.find(separator, pos), a.size());
    const size_t y = std::min(b.find(separator, pos), b.size());
    if (x != y || a.compare(pos, x - pos, b, pos, y - pos) != 0) break;
    end = x;
    if (x == a.size() || y == b.size()) break;
    pos = x + separator.size();
  }
  return a.substr(0, end);
}

}  // namespace

std::vector<std::string> Annotation::OpsByName(const trace::Trace& trace,
                                               SliceId kernel) const {
  const auto it = ops_by_name.find(TokenOfWork(trace, kernel));
  return it == ops_by_name.end() ? std::vector<std::string>() : it->second;
}

const Tags* Annotation::PartnerOf(const Replay& replay, size_t position) const {
  const Match& match = MatchesOf(replay)[position];
  if (match.partner == Match::kNoPartner || replay.segment < 0) return nullptr;
  return &segments[static_cast<size_t>(replay.segment)].launches[match.partner];
}

Tags Annotation::TagsOf(const Replay& replay, size_t position) const {
  if (const Tags* partner = PartnerOf(replay, position)) return *partner;
  const Match& match = MatchesOf(replay)[position];
  if (replay.segment < 0) return {};
  const auto& launches = segments[static_cast<size_t>(replay.segment)].launches;
  if (match.level != Level::kScope) return {};
  const Tags& before = launches[match.before];
  const Tags& after = launches[match.after];
  Tags tags;
  tags.module = Common(before.module, after.module, "/");
  tags.layer = before.layer == after.layer ? before.layer : -1;
  return tags;
}

double Annotation::FactShare() const {
  size_t all = 0;
  size_t facts = 0;
  for (const Replay& replay : replays) {
    for (const Match& match : MatchesOf(replay)) {
      ++all;
      facts += ConfidenceOf(match.level) == Confidence::kFact;
    }
  }
  return all > 0 ? static_cast<double>(facts) / static_cast<double>(all) : 0;
}

namespace {

double Percent(double part, double whole) {
  return whole > 0 ? 100.0 * part / whole : 0.0;
}

struct ReplayRow {
  uint32_t replay;
  size_t kernels;
  std::optional<uint32_t> file, segment;
  std::optional<int64_t> batch;
  std::array<int64_t, kLevels> levels;  // kernels by level
  int64_t unmatched_capture;
};

RowColumns<ReplayRow> ReplayColumns() {
  RowColumns<ReplayRow> out{
      "annotate_replays",
      "One row per graph launch.",
      {{"replay", ColumnType::kInt, "From 0, by launch.", &ReplayRow::replay},
       {"kernels", ColumnType::kInt, "Device events.", &ReplayRow::kernels},
       {"file", ColumnType::kInt,
        "Index of the capture trace; empty: this trace, or none fits.",
        &ReplayRow::file},
       {"segment", ColumnType::kInt, "Captured graph in that file.",
        &ReplayRow::segment},
       {"batch", ColumnType::kInt, "Batch that the graph was captured for.",
        &ReplayRow::batch}}};
  static const std::array<std::string, kLevels> names = [] {
    std::array<std::string, kLevels> made;
    for (size_t level = 0; level < kLevels; ++level) {
      made[level] = LevelName(static_cast<Level>(level));
      std::replace(made[level].begin(), made[level].end(), '-', '_');
    }
    return made;
  }();
  for (size_t level = 0; level < kLevels; ++level) {
    out.columns.emplace_back(
        names[level].c_str(), ColumnType::kInt,
        "Kernels at this level of evidence.",
        [level](const ReplayRow& row) { return row.levels[level]; });
  }
  out.columns.emplace_back("unmatched_capture", ColumnType::kInt,
                           "Captured launches that no kernel comes from.",
                           &ReplayRow::unmatched_capture);
  return out;
}

struct LevelRow {
  std::string_view level, confidence;
  int64_t kernels;
  double percent;
  int64_t time;
  double percent_time;
};

const RowColumns<LevelRow>& LevelColumns() {
  static const RowColumns<LevelRow> columns{
      "annotate_levels",
      "Replayed kernels by evidence.",
      {{"level", ColumnType::kText, "Level of evidence.", &LevelRow::level},
       {"confidence", ColumnType::kText, "fact, likely, partial, list or none.",
        &LevelRow::confidence},
       {"kernels", ColumnType::kInt, "Device events.", &LevelRow::kernels},
       {"percent", ColumnType::kReal, "Share of them.", &LevelRow::percent,
        Shown::kBar},
       {"time_us", ColumnType::kTime, "Sum of durations.", &LevelRow::time},
       {"percent_time", ColumnType::kReal, "Share of the time.",
        &LevelRow::percent_time, Shown::kPercent}}};
  return columns;
}

struct KernelRow {
  uint32_t replay;
  size_t position;
  std::string_view name, level;
  uint32_t alternatives;
  std::string_view op, module;
  std::optional<int64_t> layer;
  std::string_view line;
  int64_t dur;
  uint32_t uid;
};

const RowColumns<KernelRow>& KernelColumns() {
  static const RowColumns<KernelRow> columns{
      "annotate_kernels",
      "Every replayed kernel with what it was captured from.",
      {{"replay", ColumnType::kInt, "Graph launch.", &KernelRow::replay},
       {"position", ColumnType::kInt, "In the launch.", &KernelRow::position},
       {"name", ColumnType::kText, "Kernel.", &KernelRow::name},
       {"level", ColumnType::kText, "Level of evidence.", &KernelRow::level},
       {"alternatives", ColumnType::kInt, "Equally good partners.",
        &KernelRow::alternatives, Shown::kHidden},
       {"op", ColumnType::kText, "Innermost op.", &KernelRow::op},
       {"module", ColumnType::kText, "Path.", &KernelRow::module,
        Shown::kHidden},
       {"layer", ColumnType::kInt, "Number of the layer.", &KernelRow::layer},
       {"line", ColumnType::kText, "Source line.", &KernelRow::line,
        Shown::kHidden},
       {"dur_us", ColumnType::kTime, "Duration.", &KernelRow::dur},
       {"uid", ColumnType::kInt, "Event number.", &KernelRow::uid,
        Shown::kHidden}}};
  return columns;
}

struct KeyRow {
  std::string_view key;
  int64_t kernels, time;
  double percent;
  int64_t fact, likely, unknown;
};

RowColumns<KeyRow> KeyColumns(const char* name, const char* key,
                              const char* doc) {
  return {
      name,
      doc,
      {{key, ColumnType::kText, "Name; empty: not known.", &KeyRow::key},
       {"kernels", ColumnType::kInt, "Device events.", &KeyRow::kernels},
       {"time_us", ColumnType::kTime, "Sum of durations.", &KeyRow::time},
       {"percent", ColumnType::kReal, "Share of the replayed time.",
        &KeyRow::percent, Shown::kPercent},
       {"fact_us", ColumnType::kTime, "Of it, known for sure.", &KeyRow::fact},
       {"likely_us", ColumnType::kTime, "Of it, likely.", &KeyRow::likely},
       {"unknown_us", ColumnType::kTime, "Of it, the rest.",
        &KeyRow::unknown}}};
}

}  // namespace

ResultSet AnnotationTables(const analysis::Context& context,
                           const Annotation& annotation) {
  const trace::Trace& trace = context.trace;
  struct Sum {
    int64_t kernels = 0, ns = 0, fact_ns = 0, likely_ns = 0;
  };
  Sum levels[kLevels];
  std::map<std::string, Sum> ops;
  std::map<std::string, Sum> modules;
  int64_t kernels = 0;
  int64_t time_ns = 0;
  const RowColumns<ReplayRow> replay_columns = ReplayColumns();
  Table replays(replay_columns.schema());
  Table rows(KernelColumns().schema());
  for (const Replay& replay : annotation.replays) {
    std::array<int64_t, kLevels> counts{};
    std::vector<bool> used;
    if (replay.segment >= 0) {
      used.assign(annotation.segments[static_cast<size_t>(replay.segment)]
                      .launches.size(),
                  false);
    }
    for (size_t i = 0; i < replay.work.size(); ++i) {
      const Match& match = annotation.MatchesOf(replay)[i];
      const int64_t dur = trace.Duration(replay.work[i]);
      const Tags* partner = annotation.PartnerOf(replay, i);
      const Tags shared =
          partner != nullptr ? Tags() : annotation.TagsOf(replay, i);
      const Tags& tags = partner != nullptr ? *partner : shared;
      const auto level = static_cast<size_t>(match.level);
      ++counts[level];
      ++levels[level].kernels;
      levels[level].ns += dur;
      ++kernels;
      time_ns += dur;
      if (match.partner != Match::kNoPartner) used[match.partner] = true;
      const Confidence confidence = ConfidenceOf(match.level);
      for (auto& [key, map] :
           {std::pair<const std::string&, std::map<std::string, Sum>&>(tags.op,
                                                                       ops),
            std::pair<const std::string&, std::map<std::string, Sum>&>(
                tags.module, modules)}) {
        Sum& sum = map[key];
        ++sum.kernels;
        sum.ns += dur;
        if (!key.empty() && confidence == Confidence::kFact) sum.fact_ns += dur;
        if (!key.empty() && confidence == Confidence::kLikely)
          sum.likely_ns += dur;
      }
      KernelColumns().Add(
          rows,
          {.replay = replay.number,
           .position = i,
           .name = trace.Name(replay.work[i]),
           .level = LevelName(match.level),
           .alternatives = match.alternatives,
           .op = tags.op,
           .module = tags.module,
           .layer = tags.layer >= 0 ? std::optional(tags.layer) : std::nullopt,
           .line = tags.line,
           .dur = dur,
           .uid = trace.Uid(replay.work[i])});
    }
    ReplayRow row{
        .replay = replay.number,
        .kernels = replay.work.size(),
        .file = {},
        .segment = {},
        .batch = {},
        .levels = counts,
        .unmatched_capture = std::count(used.begin(), used.end(), false)};
    if (replay.segment >= 0) {
      const Segment& segment =
          annotation.segments[static_cast<size_t>(replay.segment)];
      if (segment.file != Segment::kOwnTrace) row.file = segment.file;
      row.segment = segment.number;
      if (segment.batch >= 0) row.batch = segment.batch;
    }
    replay_columns.Add(replays, row);
  }
  int64_t facts = 0;
  Table by_level(LevelColumns().schema());
  for (int l = 0; l < kLevels; ++l) {
    const auto level = static_cast<Level>(l);
    if (ConfidenceOf(level) == Confidence::kFact) facts += levels[l].kernels;
    LevelColumns().Add(
        by_level, {.level = LevelName(level),
                   .confidence = ConfidenceName(ConfidenceOf(level)),
                   .kernels = levels[l].kernels,
                   .percent = Percent(static_cast<double>(levels[l].kernels),
                                      static_cast<double>(kernels)),
                   .time = levels[l].ns,
                   .percent_time = Percent(static_cast<double>(levels[l].ns),
                                           static_cast<double>(time_ns))});
  }
  ResultSet result;
  result.tables.push_back(std::move(by_level));
  result.tables.push_back(std::move(replays));
  for (const auto& [columns, map] :
       {std::pair(KeyColumns("annotate_ops", "op",
                             "Replayed time by the op it was captured from."),
                  &ops),
        std::pair(KeyColumns("annotate_modules", "module",
                             "Replayed time by module."),
                  &modules)}) {
    Table table(columns.schema());
    std::vector<std::pair<std::string, Sum>> sorted(map->begin(), map->end());
    std::stable_sort(
        sorted.begin(), sorted.end(),
        [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
    for (const auto& [key, sum] : sorted) {
      columns.Add(table, {.key = key,
                          .kernels = sum.kernels,
                          .time = sum.ns,
                          .percent = Percent(static_cast<double>(sum.ns),
                                             static_cast<double>(time_ns)),
                          .fact = sum.fact_ns,
                          .likely = sum.likely_ns,
                          .unknown = sum.ns - sum.fact_ns - sum.likely_ns});
    }
    result.tables.push_back(std::move(table));
  }
  result.tables.push_back(std::move(rows));
  if (annotation.replays.empty()) {
    result.notes.push_back(MakeNote(Severity::kVerdict, "no_replays",
                                    "No graph is replayed in this trace."));
  } else {
    result.notes.push_back(MakeNote(
        Severity::kVerdict, "annotated",
        fmt::format("{} of {} replayed kernels in {} are matched for sure "
                    "({:.1f} %); {}.",
                    GroupDigits(facts), GroupDigits(kernels),
                    Counted(annotation.replays.size(), "launch", "launches"),
                    100.0 * annotation.FactShare(),
                    Counted(annotation.alignments.size(), "alignment")),
        {{"annotate_levels", "", "", {}}}));
  }
  const auto unmatched =
      std::count_if(annotation.replays.begin(), annotation.replays.end(),
                    [](const Replay& replay) { return replay.segment < 0; });
  if (unmatched > 0) {
    result.notes.push_back(MakeNote(
        Severity::kWarning, "no_match",
        fmt::format(
            "No match for {} of {}: no captured segment explains their "
            "kernels. Is the capture of the same model, batch and software?",
            GroupDigits(static_cast<int64_t>(unmatched)),
            Counted(annotation.replays.size(), "launch", "launches")),
        {{"annotate_replays", "", "", {}}}));
  }
  return result;
}

}  // namespace lamina::cudagraph
