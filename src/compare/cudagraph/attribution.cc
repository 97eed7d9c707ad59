// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/attribution.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <string>
#include <tuple>

#include "analysis/common/device_fold.h"
#include "compare/cudagraph/calls.h"

namespace lamina::cudagraph {
namespace {

using trace::SliceId;

Schema AttributionSchema() {
  return {"graph_attribution",
          "Replayed kernels by what they were captured from; replays with the "
          "same kernels share a row.",
          {{"replay", ColumnType::kInt, "The first with these kernels."},
           {"position", ColumnType::kInt, "In the replay."},
           {"level", ColumnType::kText, "Level of evidence."},
           {"confidence", ColumnType::kText,
            "fact, likely, partial, list or none."},
           {"alternatives", ColumnType::kInt,
            "Captured launches that fit equally well."},
           {"other_ops", ColumnType::kText,
            "Ops of the captured launches of this name, where several fit."},
           {"op", ColumnType::kText, "Innermost op of the launch."},
           {"module", ColumnType::kText, "Path of its module."},
           {"line", ColumnType::kText, "Its source line.", Shown::kHidden},
           {"capture", ColumnType::kText,
            "Trace of the capture; empty: this trace, or none fits."},
           {"segment", ColumnType::kInt, "Captured graph in that trace."},
           {"launch", ColumnType::kInt,
            "Position of the captured launch in its graph."},
           {"kernels", ColumnType::kInt, "Device events."},
           {"kernel_time_us", ColumnType::kTime, "Sum of their durations."}}};
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
  Attribution result{Table(AttributionSchema()), {}};
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
    result.table.Add(
        replay->number, position, LevelName(match.level),
        ConfidenceName(ConfidenceOf(match.level)), match.alternatives,
        fmt::format(
            "{}",
            fmt::join(OtherOps(trace, annotation, *replay, position), ", ")),
        tags.op, tags.module, tags.line,
        elsewhere ? std::string_view(files[segment->file]) : std::string_view(),
        segment != nullptr ? Value(segment->number) : Value(),
        match.partner != Match::kNoPartner ? Value(match.partner) : Value(),
        kernels, ns);
  }
  result.row_of = fold.TakeRowOf();
  return result;
}

}  // namespace lamina::cudagraph
