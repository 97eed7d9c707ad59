// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/attribution.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <string>
#include <tuple>

#include "analysis/common/device_fold.h"
#include "compare/cudagraph/calls.h"
#include "table/row_columns.h"

namespace lamina::cudagraph {
namespace {

using trace::SliceId;

struct AttributionRow {
  uint32_t replay;
  size_t position;
  std::string_view level, confidence;
  uint32_t alternatives;
  std::string other_ops;
  std::string_view op, module, line, capture;
  std::optional<uint32_t> segment, launch;
  int64_t kernels, kernel_time;
};

const RowColumns<AttributionRow>& AttributionColumns() {
  static const RowColumns<AttributionRow> columns{
      "graph_attribution",
      "Replayed kernels by what they were captured from; replays with the "
      "same kernels share a row.",
      {{"replay", ColumnType::kInt, "The first with these kernels.",
        &AttributionRow::replay},
       {"position", ColumnType::kInt, "In the replay.",
        &AttributionRow::position},
       {"level", ColumnType::kText, "Level of evidence.",
        &AttributionRow::level},
       {"confidence", ColumnType::kText, "fact, likely, partial, list or none.",
        &AttributionRow::confidence},
       {"alternatives", ColumnType::kInt,
        "Captured launches that fit equally well.",
        &AttributionRow::alternatives},
       {"other_ops", ColumnType::kText,
        "Ops of the captured launches of this name, where several fit.",
        &AttributionRow::other_ops},
       {"op", ColumnType::kText, "Innermost op of the launch.",
        &AttributionRow::op},
       {"module", ColumnType::kText, "Path of its module.",
        &AttributionRow::module},
       {"line", ColumnType::kText, "Its source line.", &AttributionRow::line,
        Shown::kHidden},
       {"capture", ColumnType::kText,
        "Trace of the capture; empty: this trace, or none fits.",
        &AttributionRow::capture},
       {"segment", ColumnType::kInt, "Captured graph in that trace.",
        &AttributionRow::segment},
       {"launch", ColumnType::kInt,
        "Position of the captured launch in its graph.",
        &AttributionRow::launch},
       {"kernels", ColumnType::kInt, "Device events.",
        &AttributionRow::kernels},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations.",
        &AttributionRow::kernel_time}}};
  return columns;
}

// Distinct ops of the launches with this name, in their order.
std::vector<std::string> OpsOf(const Segment& segment,
                               const std::string& token) {
  std::vector<std::string> ops;
  for (const Tags& tags : segment.launches) {
    if (tags.name != token || tags.op.empty()) continue;
    if (std::find(ops.begin(), ops.end(), tags.op) == ops.end())
      ops.push_back(tags.op);
    if (ops.size() == Annotation::kMaxListed) break;
  }
  return ops;
}

std::vector<std::string> OtherOps(const trace::Trace& trace,
                                  const Annotation& annotation,
                                  const Replay& replay, size_t position) {
  const Match& match = annotation.MatchesOf(replay)[position];
  const SliceId kernel = replay.work[position];
  if (match.level == Level::kAmbiguous)
    return annotation.OpsByName(trace, kernel);
  if (match.alternatives <= 1 || replay.segment < 0) return {};
  return OpsOf(annotation.segments[static_cast<size_t>(replay.segment)],
               TokenOfWork(trace, kernel));
}

}  // namespace

Attribution AttributionOf(const trace::Trace& trace,
                          const Annotation& annotation,
                          const std::vector<std::string>& files) {
  // By alignment, segment and position.
  using Key = std::tuple<uint32_t, int32_t, size_t>;
  struct Place {
    const Replay* replay;
    size_t position;
  };
  analysis::DeviceFold<Key, Place> fold(trace);
  for (const Replay& replay : annotation.replays) {
    for (size_t i = 0; i < replay.work.size(); ++i) {
      fold.Add(replay.work[i], Key(replay.alignment, replay.segment, i),
               {&replay, i});
    }
  }
  Attribution result{Table(AttributionColumns().schema()), {}};
  for (const auto& [place, kernels, ns] : fold.rows()) {
    const auto& [replay, position] = place;
    const Match& match = annotation.MatchesOf(*replay)[position];
    const Tags tags = annotation.TagsOf(*replay, position);
    const Segment* segment =
        replay->segment >= 0
            ? &annotation.segments[static_cast<size_t>(replay->segment)]
            : nullptr;
    const bool elsewhere =
        segment != nullptr && segment->file != Segment::kOwnTrace;
    AttributionColumns().Add(
        result.table,
        {.replay = replay->number,
         .position = position,
         .level = LevelName(match.level),
         .confidence = ConfidenceName(ConfidenceOf(match.level)),
         .alternatives = match.alternatives,
         .other_ops = fmt::format(
             "{}",
             fmt::join(OtherOps(trace, annotation, *replay, position), ", ")),
         .op = tags.op,
         .module = tags.module,
         .line = tags.line,
         .capture = elsewhere ? std::string_view(files[segment->file])
                              : std::string_view(),
         .segment =
             segment != nullptr ? std::optional(segment->number) : std::nullopt,
         .launch = match.partner != Match::kNoPartner
                       ? std::optional(match.partner)
                       : std::nullopt,
         .kernels = kernels,
         .kernel_time = ns});
  }
  result.row_of = fold.TakeRowOf();
  return result;
}

}  // namespace lamina::cudagraph
