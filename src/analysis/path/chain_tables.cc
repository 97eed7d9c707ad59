// SPDX-License-Identifier: Apache-2.0
#include "analysis/path/chain_tables.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/common/stats.h"
#include "analysis/path/segment_owner.h"
#include "table/row_columns.h"

namespace lamina::analysis::path {
namespace {

using OptionalText = std::optional<std::string_view>;
using OptionalInt = std::optional<int64_t>;

// Times in nanoseconds.
struct OwnerRow {
  std::string_view path_class, kind, name;
  OptionalText op;
  int64_t count, time;
  double percent;
  OptionalInt total, slack_min;
  OptionalText module;
};

const RowColumns<OwnerRow>& OwnerColumns() {
  static const RowColumns<OwnerRow> columns{
      "path_owners",
      "What the chain runs through: kernels, ops and calls.",
      {{"class", ColumnType::kText, "As in path_summary.",
        &OwnerRow::path_class},
       {"kind", ColumnType::kText, "As in path_summary.", &OwnerRow::kind},
       {"name", ColumnType::kText, "Kernel, op or call; \"-\": none.",
        &OwnerRow::name},
       {"op", ColumnType::kText,
        "Op that launched the first of them, or around it on the host.",
        &OwnerRow::op},
       {"count", ColumnType::kInt, "Segments.", &OwnerRow::count},
       {"time_us", ColumnType::kTime, "Time on the chain.", &OwnerRow::time},
       {"percent", ColumnType::kReal, "Share of the window.",
        &OwnerRow::percent, Shown::kBar},
       {"total_us", ColumnType::kTime,
        "Of device work: all its time, off the chain, too.", &OwnerRow::total},
       {"slack_min_us", ColumnType::kTime,
        "Of device work: how much its least slack one may grow for nothing.",
        &OwnerRow::slack_min},
       {"module", ColumnType::kText, "nn.Module of the first of them.",
        &OwnerRow::module}}};
  return columns;
}

struct SegmentRow {
  int64_t start, dur, rank;
  std::string_view path_class, kind, evidence;
  OwnerFacts owner;
};

template <class Member>
auto Of(Member OwnerFacts::*member) {
  return [member](const SegmentRow& row) { return row.owner.*member; };
}

RowColumns<SegmentRow> MakeSegmentColumns(bool ranks) {
  RowColumns<SegmentRow> columns{
      "path_segments",
      "The chain, segment by segment; they tile the window.",
      {{"start_us", ColumnType::kTime,
        ranks ? "From the first event, on the clock that all ranks share."
              : "From the first event.",
        &SegmentRow::start},
       {"dur_us", ColumnType::kTime, "Length.", &SegmentRow::dur}}};
  auto& all = columns.columns;
  if (ranks) {
    all.push_back({"rank", ColumnType::kInt, "Where.", &SegmentRow::rank});
  }
  const std::vector<RowColumn<SegmentRow>> rest = {
      {"class", ColumnType::kText, "As in path_summary.",
       &SegmentRow::path_class},
      {"kind", ColumnType::kText, "As in path_summary.", &SegmentRow::kind},
      {"evidence", ColumnType::kText,
       "recorded; inferred: hangs on an inferred wait; time: nothing "
       "recorded explains it.",
       &SegmentRow::evidence},
      {"uid", ColumnType::kInt, "Event number of the owner.",
       Of(&OwnerFacts::uid)},
      {"name", ColumnType::kText, "Name of the owner.", Of(&OwnerFacts::name)},
      {"op", ColumnType::kText,
       "Op that launched the owner, or around it on the host.",
       Of(&OwnerFacts::op)},
      {"step", ColumnType::kInt,
       "Step of device work; of time on the host, the one that holds its "
       "begin.",
       Of(&OwnerFacts::step)},
      {"track", ColumnType::kText, "Thread, or device and stream.",
       Of(&OwnerFacts::track)},
      {"module", ColumnType::kText, "nn.Module of the op.",
       Of(&OwnerFacts::module)},
      {"layer_name", ColumnType::kText,
       "Stack and number of the layer of device work.", Of(&OwnerFacts::layer)},
      {"thread", ColumnType::kText, "Of time on the host.",
       Of(&OwnerFacts::thread)},
      {"device_index", ColumnType::kInt, "Of device work.",
       Of(&OwnerFacts::device)},
      {"stream", ColumnType::kInt, "Of device work.", Of(&OwnerFacts::stream)}};
  all.insert(all.end(), rest.begin(), rest.end());
  return columns;
}

// `ranks`: with the rank of each.
const RowColumns<SegmentRow>& SegmentColumns(bool ranks) {
  static const RowColumns<SegmentRow> one = MakeSegmentColumns(false);
  static const RowColumns<SegmentRow> several = MakeSegmentColumns(true);
  return ranks ? several : one;
}

SegmentRow RowOf(const Segment& s, int64_t first_ns, int64_t rank) {
  return {.start = s.start_ns - first_ns,
          .dur = s.end_ns - s.start_ns,
          .rank = rank,
          .path_class = PathClassName(ClassOf(s.kind)),
          .kind = SegmentKindName(s.kind),
          .evidence = s.inferred ? "inferred"
                      : s.kind == SegmentKind::kSubmittedWait ||
                              s.kind == SegmentKind::kLeadIn
                          ? "time"
                          : "recorded",
          .owner = {}};
}

struct EdgeRow {
  OptionalInt from_uid, to_uid;
  std::string_view kind;
  int64_t work, slack;
  bool critical, inferred;
  OptionalText from_side, to_side;
  std::string_view readings;
};

const RowColumns<EdgeRow>& EdgeColumns() {
  static const RowColumns<EdgeRow> columns{
      "path_edges",
      "Every edge that is none between neighbours of one thread.",
      {{"from_uid", ColumnType::kInt, "Event number.", &EdgeRow::from_uid},
       {"to_uid", ColumnType::kInt, "Event number.", &EdgeRow::to_uid},
       {"kind", ColumnType::kText, "What joins them.", &EdgeRow::kind},
       {"work_us", ColumnType::kTime, "Least time from one to the other.",
        &EdgeRow::work},
       {"slack_us", ColumnType::kTime,
        "How much later the source may be without moving the target.",
        &EdgeRow::slack},
       {"critical", ColumnType::kBool, "It decided about the target.",
        &EdgeRow::critical},
       {"inferred", ColumnType::kBool, "It is not recorded.",
        &EdgeRow::inferred},
       {"from_side", ColumnType::kText,
        "Which point of the source: start or end.", &EdgeRow::from_side},
       {"to_side", ColumnType::kText, "Which point of the target.",
        &EdgeRow::to_side},
       {"readings", ColumnType::kText,
        "all, or those of best, low, high and delay in which it holds.",
        &EdgeRow::readings}}};
  return columns;
}

std::string_view ReadingsText(uint8_t readings) {
  static const auto texts = [] {
    constexpr const char* kNames[] = {"best", "low", "high", "delay"};
    std::array<std::string, host::kAllReadings + 1> all;
    for (size_t mask = 0; mask < all.size(); ++mask) {
      for (size_t i = 0; i < kReadings; ++i) {
        if ((mask >> i & 1) == 0) continue;
        if (!all[mask].empty()) all[mask] += ' ';
        all[mask] += kNames[i];
      }
    }
    all[host::kAllReadings] = "all";
    return all;
  }();
  return texts[readings];
}

// A node as a point of an event.
struct Point {
  OptionalInt uid;
  OptionalText side;
};

Point PointOf(const Graph& graph, uint32_t v) {
  const Trace& trace = graph.model().trace();
  if (graph.OfDevice(v)) {
    const bool start = (v - graph.first_device()) % 2 == 0;
    return {trace.Uid(graph.Work(v)), start ? "start" : "end"};
  }
  // It closes the event that was open before it, or opens the one behind it.
  const SliceId before = graph.owner(v);
  const SliceId behind =
      v + 1 < graph.first_device() ? graph.owner(v + 1) : SliceId();
  const int64_t time = graph.time(v);
  if (before.valid() && trace.End(before) == time)
    return {trace.EventOf(before), "end"};
  if (behind.valid() && trace.Start(behind) == time)
    return {trace.EventOf(behind), "start"};
  if (before.valid()) return {trace.EventOf(before), "inside"};
  if (behind.valid()) return {trace.EventOf(behind), "inside"};
  return {};
}

}  // namespace

std::pair<ChainOwners, PathSums> OwnersOfChain(const Graph& graph,
                                               const Window& window) {
  const Trace& trace = graph.model().trace();
  std::pair<ChainOwners, PathSums> found;
  auto& [rows, sums] = found;
  // Few owners come again and again: rows that were found lately.
  struct Known {
    SegmentKind kind = SegmentKind::kHost;
    StringId name;
    ChainOwner* row = nullptr;
  };
  std::vector<Known> known(256);
  ForSegments(
      graph, Recorded{graph}, window.sink, window.start_ns, kNoNode,
      [&](const Segment& s) {
        Add(sums, s, s.end_ns - s.start_ns);
        const StringId name =
            s.owner.valid() ? trace.slices.name[s.owner.value] : StringId();
        Known& lately =
            known[(name.value * 16 + static_cast<uint32_t>(s.kind)) % 256];
        if (lately.row == nullptr || lately.kind != s.kind ||
            lately.name != name) {
          lately = {s.kind, name, &rows[{s.kind, name}]};
        }
        lately.row->time_ns += s.end_ns - s.start_ns;
        ++lately.row->count;
        lately.row->first = s.owner;  // segments come backwards
      });
  return found;
}

WorkTotals TotalsOfWork(const Graph& graph, const Window& window) {
  const Trace& trace = graph.model().trace();
  WorkTotals totals;
  const std::vector<int64_t> slack = TotalSlack(graph, window.sink);
  for (size_t i = 0; i < graph.work().size(); ++i) {
    const SliceId s = graph.work()[i];
    const auto [it, is_new] = totals.try_emplace(
        trace.slices.name[s.value], std::pair(int64_t{0}, kNoSlack));
    it->second.first += trace.Duration(s);
    it->second.second =
        std::min(it->second.second, slack[graph.first_device() + 2 * i + 1]);
  }
  return totals;
}

std::vector<Schema> ChainSchemas() {
  return {OwnerColumns().schema(), SegmentColumns(false).schema(),
          EdgeColumns().schema()};
}

Table OwnersTable(const Graph& graph, const Window& window,
                  const ChainOwners& owners, const WorkTotals& totals) {
  const Trace& trace = graph.model().trace();
  std::vector<std::pair<std::pair<SegmentKind, StringId>, ChainOwner>> sorted(
      owners.begin(), owners.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.time_ns != b.second.time_ns
               ? a.second.time_ns > b.second.time_ns
               : a.first < b.first;
  });
  constexpr size_t kMost = 500;
  if (sorted.size() > kMost) sorted.resize(kMost);
  const SegmentOwners words(graph, nullptr);
  const int64_t length = graph.time(window.sink) - window.start_ns;
  Table table(OwnerColumns().schema());
  for (const auto& [key, row] : sorted) {
    const auto& [kind, name] = key;
    const auto total = totals.find(name);
    const bool device = IsWork(kind) && total != totals.end();
    OwnerColumns().Add(
        table,
        {.path_class = PathClassName(ClassOf(kind)),
         .kind = SegmentKindName(kind),
         .name = name.valid() ? trace.Text(name) : std::string_view("-"),
         .op = words.Op(row.first),
         .count = row.count,
         .time = row.time_ns,
         .percent = PercentOf(row.time_ns, length),
         .total = device ? OptionalInt(total->second.first) : std::nullopt,
         .slack_min = device && total->second.second != kNoSlack
                          ? OptionalInt(total->second.second)
                          : std::nullopt,
         .module = words.Module(row.first)});
  }
  return table;
}

Table SegmentsTable(const Graph& graph, const std::vector<Segment>& segments,
                    const host::WorkLayers* layers) {
  const int64_t first_ns = graph.model().trace().first_ns;
  const SegmentOwners words(graph, layers);
  RowWriter<SegmentRow> table(SegmentColumns(false));
  for (const Segment& s : segments) {
    SegmentRow row = RowOf(s, first_ns, 0);
    row.owner = words.Of(s);
    table.Add(row);
  }
  return table.Take();
}

Table JoinedSegmentsTable(const JoinedView& view,
                          const std::vector<Segment>& segments) {
  std::vector<SegmentOwners> words;
  words.reserve(view.ranks.size());
  for (const JoinedRank& rank : view.ranks)
    words.emplace_back(*rank.graph, rank.layers);
  RowWriter<SegmentRow> table(SegmentColumns(true));
  for (const Segment& s : segments) {
    const uint32_t part = view.graph.PartOf(s.node);
    const JoinedRank& rank = view.ranks[part];
    SegmentRow row = RowOf(s, view.first_ns, rank.rank);
    row.owner = words[part].Of(OwnSegment(view.graph, part, *rank.graph, s));
    table.Add(row);
  }
  return table.Take();
}

Table EdgesTable(const Graph& graph) {
  RowWriter<EdgeRow> table(EdgeColumns());
  for (uint32_t e = 0; e < graph.edges().size(); ++e) {
    const Edge& edge = graph.edges()[e];
    const Point from = PointOf(graph, edge.from), to = PointOf(graph, edge.to);
    table.Add({.from_uid = from.uid,
               .to_uid = to.uid,
               .kind = EdgeKindName(edge.kind),
               .work = edge.work_ns,
               .slack = graph.time(edge.to) - graph.residual(edge.to) -
                        graph.time(edge.from) - edge.work_ns,
               .critical = graph.critical(edge.to) == e,
               .inferred = edge.inferred,
               .from_side = from.side,
               .to_side = to.side,
               .readings = ReadingsText(edge.readings)});
  }
  return table.Take();
}

}  // namespace lamina::analysis::path
