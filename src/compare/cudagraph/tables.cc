// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "base/counted.h"
#include "base/decimal.h"
#include "compare/cudagraph/annotate.h"

namespace lamina::cudagraph {
namespace {

double Percent(double part, double whole) {
  return whole > 0 ? 100.0 * part / whole : 0.0;
}

Schema ReplaySchema() {
  Schema schema{
      "annotate_replays",
      "One row per graph launch.",
      {{"replay", ColumnType::kInt, "From 0, by launch."},
       {"kernels", ColumnType::kInt, "Device events."},
       {"file", ColumnType::kInt,
        "Index of the capture trace; empty: this trace, or none fits."},
       {"segment", ColumnType::kInt, "Captured graph in that file."},
       {"batch", ColumnType::kInt, "Batch that the graph was captured for."}}};
  for (int level = 0; level < kLevels; ++level) {
    std::string name(LevelName(static_cast<Level>(level)));
    std::replace(name.begin(), name.end(), '-', '_');
    schema.columns.push_back(
        {name, ColumnType::kInt, "Kernels at this level of evidence."});
  }
  schema.columns.push_back({"unmatched_capture", ColumnType::kInt,
                            "Captured launches that no kernel comes from."});
  return schema;
}

Schema LevelSchema() {
  return {"annotate_levels",
          "Replayed kernels by evidence.",
          {{"level", ColumnType::kText, "Level of evidence."},
           {"confidence", ColumnType::kText,
            "fact, likely, partial, list or none."},
           {"kernels", ColumnType::kInt, "Device events."},
           {"percent", ColumnType::kReal, "Share of them.", Shown::kBar},
           {"time_us", ColumnType::kTime, "Sum of durations."},
           {"percent_time", ColumnType::kReal, "Share of the time.",
            Shown::kPercent}}};
}

Schema KernelSchema() {
  return {"annotate_kernels",
          "Every replayed kernel with what it was captured from.",
          {{"replay", ColumnType::kInt, "Graph launch."},
           {"position", ColumnType::kInt, "In the launch."},
           {"name", ColumnType::kText, "Kernel."},
           {"level", ColumnType::kText, "Level of evidence."},
           {"alternatives", ColumnType::kInt, "Equally good partners.",
            Shown::kHidden},
           {"op", ColumnType::kText, "Innermost op."},
           {"module", ColumnType::kText, "Path.", Shown::kHidden},
           {"layer", ColumnType::kInt, "Number of the layer."},
           {"line", ColumnType::kText, "Source line.", Shown::kHidden},
           {"dur_us", ColumnType::kTime, "Duration."},
           {"uid", ColumnType::kInt, "Event number.", Shown::kHidden}}};
}

Schema KeySchema(const char* name, const char* key, const char* doc) {
  return {name,
          doc,
          {{key, ColumnType::kText, "Name; empty: not known."},
           {"kernels", ColumnType::kInt, "Device events."},
           {"time_us", ColumnType::kTime, "Sum of durations."},
           {"percent", ColumnType::kReal, "Share of the replayed time.",
            Shown::kPercent},
           {"fact_us", ColumnType::kTime, "Of it, known for sure."},
           {"likely_us", ColumnType::kTime, "Of it, likely."},
           {"unknown_us", ColumnType::kTime, "Of it, the rest."}}};
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
  Table replays(ReplaySchema());
  Table rows(KernelSchema());
  for (const Replay& replay : annotation.replays) {
    int64_t counts[kLevels] = {};
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
      rows.Add(replay.number, i, trace.Name(replay.work[i]),
               LevelName(match.level), match.alternatives, tags.op, tags.module,
               tags.layer >= 0 ? Value(tags.layer) : Value(), tags.line, dur,
               trace.Uid(replay.work[i]));
    }
    std::vector<Value> cells = {replay.number, replay.work.size()};
    if (replay.segment >= 0) {
      const Segment& segment =
          annotation.segments[static_cast<size_t>(replay.segment)];
      cells.insert(
          cells.end(),
          {segment.file != Segment::kOwnTrace ? Value(segment.file) : Value(),
           segment.number,
           segment.batch >= 0 ? Value(segment.batch) : Value()});
    } else {
      cells.resize(cells.size() + 3);
    }
    for (const int64_t count : counts) cells.emplace_back(count);
    cells.emplace_back(std::count(used.begin(), used.end(), false));
    replays.AddRow(cells);
  }
  int64_t facts = 0;
  Table by_level(LevelSchema());
  for (int l = 0; l < kLevels; ++l) {
    const auto level = static_cast<Level>(l);
    if (ConfidenceOf(level) == Confidence::kFact) facts += levels[l].kernels;
    by_level.Add(LevelName(level), ConfidenceName(ConfidenceOf(level)),
                 levels[l].kernels,
                 Percent(static_cast<double>(levels[l].kernels),
                         static_cast<double>(kernels)),
                 levels[l].ns,
                 Percent(static_cast<double>(levels[l].ns),
                         static_cast<double>(time_ns)));
  }
  ResultSet result;
  result.tables.push_back(std::move(by_level));
  result.tables.push_back(std::move(replays));
  for (const auto& [schema, map] :
       {std::pair(KeySchema("annotate_ops", "op",
                            "Replayed time by the op it was captured from."),
                  &ops),
        std::pair(
            KeySchema("annotate_modules", "module", "Replayed time by module."),
            &modules)}) {
    Table table(schema);
    std::vector<std::pair<std::string, Sum>> sorted(map->begin(), map->end());
    std::stable_sort(
        sorted.begin(), sorted.end(),
        [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
    for (const auto& [key, sum] : sorted) {
      table.Add(
          key, sum.kernels, sum.ns,
          Percent(static_cast<double>(sum.ns), static_cast<double>(time_ns)),
          sum.fact_ns, sum.likely_ns, sum.ns - sum.fact_ns - sum.likely_ns);
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
