// SPDX-License-Identifier: Apache-2.0
//
// The tables of `lamina path` over several ranks, in one file because all of
// them read the same chain.
#include "analysis/path/joined.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <optional>
#include <utility>

#include "analysis/common/collective.h"
#include "analysis/common/stats.h"
#include "analysis/path/chain_tables.h"
#include "base/decimal.h"
#include "base/escape.h"

namespace lamina::analysis::path {
namespace {

Schema RanksSchema() {
  return {
      "path_ranks",
      "The critical path by rank; path_us adds up to the window. A "
      "rank that is late, against the median of the others, is late by what "
      "its own path has more of.",
      {{"rank", ColumnType::kInt, "Rank."},
       {"path_us", ColumnType::kTime, "Time for which the chain runs here."},
       {"percent", ColumnType::kReal, "Share of the window.", Shown::kPercent},
       {"last", ColumnType::kInt,
        "Collectives of the chain to which it came last."},
       {"late_us", ColumnType::kTime,
        "By how much, against the median start of the others, in sum. Of sends "
        "and receives only what its own host lags, and what it computes more "
        "than the others in all: the ends of those before are no arrivals."},
       {"cause_kind", ColumnType::kText,
        "Kind of segment (docs/host.md) that its chain holds more of."},
       {"cause", ColumnType::kText, "Name of the op, call or kernel."},
       {"cause_us", ColumnType::kTime, "How much more, in sum."},
       {"host_us", ColumnType::kTime, "Of path_us."},
       {"device_us", ColumnType::kTime, "Of path_us."},
       {"comm_us", ColumnType::kTime, "Of path_us."},
       {"copy_us", ColumnType::kTime, "Of path_us."},
       {"wait_us", ColumnType::kTime, "Of path_us: waits and before_trace."},
       {"file", ColumnType::kText, "Its trace.", Shown::kHidden}}};
}

Schema CollectivesSchema() {
  return {
      "path_collectives",
      "Collectives through which the chain runs: who came last and why.",
      {{"start_us", ColumnType::kTime,
        "When the last rank came, from the first event."},
       {"name", ColumnType::kText, "Kernel on the last rank."},
       {"last_rank", ColumnType::kInt, "Who came last."},
       {"late_us", ColumnType::kTime,
        "Against the median start of the others."},
       {"wait_us", ColumnType::kTime, "What the others waited, in sum."},
       {"cause_kind", ColumnType::kText,
        "What the chain of the last rank holds more of since the collective "
        "before."},
       {"cause", ColumnType::kText, "Name of the op, call or kernel."},
       {"cause_us", ColumnType::kTime, "How much more."},
       {"ranks", ColumnType::kInt, "That took part."},
       {"uid", ColumnType::kInt, "Event number on the last rank.",
        Shown::kHidden}}};
}

Schema OwnersSchema() {
  return {
      "path_owners",
      "What the chain runs through, rank by rank.",
      {{"rank", ColumnType::kInt, "Rank."},
       {"class", ColumnType::kText, "As in path_summary."},
       {"kind", ColumnType::kText, "As in path_summary."},
       {"name", ColumnType::kText, "Kernel, op or call; \"-\": none."},
       {"count", ColumnType::kInt, "Segments."},
       {"time_us", ColumnType::kTime, "Time on the chain."},
       {"percent", ColumnType::kReal, "Share of the window.", Shown::kBar}}};
}

using Owner = std::pair<SegmentKind, std::string>;
using OwnerTimes = std::map<Owner, int64_t>;

// Which of two chains' differences is the largest; nothing above 0: none.
const std::pair<const Owner, int64_t>* Largest(const OwnerTimes& times) {
  const std::pair<const Owner, int64_t>* best = nullptr;
  for (const auto& entry : times) {
    if (entry.second > 0 && (best == nullptr || entry.second > best->second))
      best = &entry;
  }
  return best;
}

// How much later than the others a rank comes, collective by collective.
class Differences {
 public:
  // `spread_ns`: from the first to the last rank.
  void Add(int64_t ns, int64_t spread_ns) {
    all_.emplace_back(static_cast<double>(ns), static_cast<double>(spread_ns));
  }
  // Whether it comes late again and again: the mean is four of its standard
  // errors above 0, ten if there are only two. Collectives at which all come
  // at about the same time, because another stands right before, say nothing.
  bool Consistent() const {
    double widest = 0;
    for (const auto& [ns, spread] : all_) widest = std::max(widest, spread);
    double n = 0, sum = 0, squares = 0;
    for (const auto& [ns, spread] : all_) {
      if (10 * spread < widest) continue;
      n += 1;
      sum += ns;
      squares += ns * ns;
    }
    if (n < 2 || sum <= 0) return false;
    const double mean = sum / n;
    const double variance =
        std::max(0.0, squares / n - mean * mean) * n / (n - 1);
    return mean * mean > (n < 3 ? 100 : 16) * variance / n;
  }

 private:
  std::vector<std::pair<double, double>> all_;
};

class JoinedMaker {
 public:
  JoinedMaker(const JoinedView& view, const Window& window,
              const std::vector<Segment>& segments)
      : view_(view),
        graph_(view.graph),
        window_(window),
        segments_(segments),
        length_(graph_.time(window.sink) - window.start_ns),
        excess_(view.ranks.size()),
        last_(view.ranks.size(), 0),
        late_(view.ranks.size(), 0),
        paired_(view.ranks.size(), 0),
        differences_(view.ranks.size()),
        by_time_(view.ranks.size()) {
    for (uint32_t v = 0; v < graph_.nodes(); ++v) {
      if (graph_.chain(v) != EdgeKind::kNone || graph_.OfDevice(v))
        by_time_[graph_.PartOf(v)].push_back(v);
    }
    for (std::vector<uint32_t>& nodes : by_time_) {
      std::stable_sort(nodes.begin(), nodes.end(), [&](uint32_t a, uint32_t b) {
        return graph_.time(a) < graph_.time(b);
      });
    }
  }

  // Fills what Ranks() shows, too.
  Table Collectives() {
    std::map<uint32_t, const Graph::JoinedNode*> known;
    for (const Graph::JoinedNode& c : graph_.collectives()) known[c.node] = &c;
    // Those of the chain, from the last back to the first.
    std::vector<std::pair<const Graph::JoinedNode*, uint32_t>> passed;
    for (uint32_t v = window_.sink; graph_.time(v) > window_.start_ns;) {
      const uint32_t critical = graph_.critical(v);
      if (critical == kNoNode) break;
      const uint32_t u =
          critical == kChain ? v - 1 : graph_.edges()[critical].from;
      if (const auto it = known.find(v); it != known.end())
        passed.emplace_back(it->second, graph_.PartOf(u));
      v = u;
    }
    std::reverse(passed.begin(), passed.end());
    Table table(CollectivesSchema());
    int64_t from = window_.start_ns;
    staged_ = false;
    for (const auto& [joined, last] : passed) {
      AddCollective(table, *joined, last, from);
      from = graph_.time(joined->node);
    }
    AddPaired();
    return table;
  }

  Table Ranks() const {
    std::vector<PathSums> sums(view_.ranks.size());
    for (const Segment& s : segments_) {
      sums[graph_.PartOf(s.node)].kind[static_cast<size_t>(s.kind)] +=
          s.end_ns - s.start_ns;
    }
    std::vector<size_t> order(sums.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return sums[a].total() > sums[b].total();
    });
    Table table(RanksSchema());
    for (const size_t i : order) {
      const PathSums& own = sums[i];
      const auto* cause = Largest(excess_[i]);
      table.Add(view_.ranks[i].rank, own.total(),
                PercentOf(own.total(), length_), last_[i], late_[i],
                cause ? Value(SegmentKindName(cause->first.first)) : Value(),
                cause ? Value(cause->first.second) : Value(),
                cause ? Value(cause->second) : Value(),
                own.of(PathClass::kHost), own.of(PathClass::kDevice),
                own.of(PathClass::kComm), own.of(PathClass::kCopy),
                own.of(PathClass::kWait) + own.of(PathClass::kBeforeTrace),
                view_.ranks[i].file);
    }
    return table;
  }

  Table Owners() const {
    std::map<std::pair<uint32_t, Owner>, std::pair<int64_t, int64_t>> rows;
    for (const Segment& s : segments_) {
      auto& [time, count] = rows[{graph_.PartOf(s.node), OwnerOf(s)}];
      time += s.end_ns - s.start_ns;
      ++count;
    }
    std::vector<
        std::pair<std::pair<uint32_t, Owner>, std::pair<int64_t, int64_t>>>
        sorted(rows.begin(), rows.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) {
                       return a.second.first > b.second.first;
                     });
    constexpr size_t kMost = 500;
    if (sorted.size() > kMost) sorted.resize(kMost);
    Table table(OwnersSchema());
    for (const auto& [key, row] : sorted) {
      const auto& [kind, name] = key.second;
      table.Add(view_.ranks[key.first].rank, PathClassName(ClassOf(kind)),
                SegmentKindName(kind), name, row.second, row.first,
                PercentOf(row.first, length_));
    }
    return table;
  }

  void Say(ResultSet& result) const {
    const Verdict verdict = VerdictOf(Sum(segments_));
    if (!verdict.text.empty()) {
      result.notes.push_back(MakeNote(
          Severity::kInfo, "path_verdict",
          fmt::format("{}: {:.0f} % of the chain through {} ranks; it takes "
                      "{}.",
                      verdict.text, verdict.percent, view_.ranks.size(),
                      HumanTime(length_)),
          {{"path_summary", "percent", {}, {}}}));
    }
    size_t worst = 0;
    int64_t all = 0;
    for (size_t i = 0; i < late_.size(); ++i) {
      all += late_[i];
      if (late_[i] > late_[worst]) worst = i;
    }
    // Half of what all ranks are late, and a share of the time that matters:
    // 5 %, or 1 % if it is late again and again, not by chance.
    const double percent = PercentOf(late_[worst], length_);
    if (all == 0 || 2 * late_[worst] < all || percent < 1 ||
        (percent < 5 && !differences_[worst].Consistent())) {
      result.notes.push_back(
          MakeNote(Severity::kInfo, "nobody_late",
                   "No rank holds the others up for 5 % of the time, or again "
                   "and again for 1 %.",
                   {{"path_ranks", "late_us", {}, {}}}));
      return;
    }
    const auto* cause = Largest(excess_[worst]);
    std::string text = fmt::format(
        "Rank {} comes last to {} collectives and holds the others up for {} "
        "({:.1f} % of the time)",
        view_.ranks[worst].rank, last_[worst], HumanTime(late_[worst]),
        PercentOf(late_[worst], length_));
    if (cause != nullptr) {
      text += fmt::format(": its chain has {} more of {}{}",
                          HumanTime(cause->second),
                          SegmentKindName(cause->first.first),
                          cause->first.second == "-"
                              ? ""
                              : " in " + EscapeTerminal(cause->first.second));
    }
    result.notes.push_back(MakeNote(Severity::kWarning, "late_rank", text + ".",
                                    {{"path_ranks", "late_us", {}, {}}}));
  }

 private:
  Owner OwnerOf(const Segment& s) const {
    if (!s.owner.valid()) return {s.kind, "-"};
    return {
        s.kind,
        std::string(graph_.model(graph_.PartOf(s.node)).trace().Name(s.owner))};
  }

  // What a rank's own chain to `node` is made of since `from`.
  OwnerTimes ChainOf(uint32_t part, uint32_t node, int64_t from) const {
    OwnerTimes times;
    for (const Segment& s : RecordedPath(graph_, node, from)) {
      if (graph_.PartOf(s.node) == part)
        times[OwnerOf(s)] += s.end_ns - s.start_ns;
    }
    return times;
  }

  // What it did between these times, on its chain or off it. Two chains of
  // about the same length, one along the host and one along the device, would
  // else look like more host work on one rank and more device work on another.
  OwnerTimes DoneBy(uint32_t part, uint32_t node, int64_t from) const {
    OwnerTimes times = ChainOf(part, node, from);
    OwnerTimes done;
    const auto& nodes = by_time_[part];
    auto it = std::partition_point(nodes.begin(), nodes.end(), [&](uint32_t v) {
      return graph_.time(v) <= from;
    });
    for (; it != nodes.end() && graph_.time(*it) <= graph_.time(node); ++it) {
      const uint32_t v = *it;
      if (graph_.chain(v) == EdgeKind::kNone) {
        // Start of device work: how long its stream had nothing to do.
        for (const uint32_t e : graph_.In(v)) {
          const Edge& edge = graph_.edges()[e];
          if (edge.kind != EdgeKind::kOrder) continue;
          const int64_t gap =
              graph_.time(v) - std::max(from, graph_.time(edge.from));
          if (gap <= 0) continue;
          Segment s = {0, 0, SegmentKind::kDeviceGap, edge.owner, v, false};
          done[OwnerOf(s)] += gap;
          s.kind = SegmentKind::kSubmittedWait;
          done[OwnerOf(s)] += gap;
        }
        continue;
      }
      const int64_t begin = std::max(from, graph_.time(v - 1));
      const Segment s = {
          begin, graph_.time(v), WorkSegment(graph_.chain(v)), graph_.owner(v),
          v,     false};
      if (s.end_ns > begin) done[OwnerOf(s)] += s.end_ns - begin;
    }
    for (const auto& [owner, ns] : done)
      times[owner] = std::max(times[owner], ns);
    return times;
  }

  void AddCollective(Table& table, const Graph::JoinedNode& joined,
                     uint32_t last, int64_t from) {
    const int64_t time = graph_.time(joined.node);
    OwnerTimes excess;
    std::vector<OwnerTimes> others;
    std::vector<int64_t> starts;                        // of the others
    std::vector<std::pair<uint32_t, int64_t>> members;  // part, start
    int64_t waited = 0;
    SliceId slice;
    for (const auto& [part, own] : joined.work.members) {
      const uint32_t start = graph_.NodeOfWork(part, own);
      members.emplace_back(part, graph_.time(start));
      if (part == last) {
        excess = ChainOf(part, start, from);
        slice = own;
        continue;
      }
      others.push_back(DoneBy(part, start, from));
      starts.push_back(graph_.time(start));
      waited += time - starts.back();
    }
    const int64_t late = time - MiddleOf(starts);
    std::map<Owner, std::vector<int64_t>> theirs;
    for (const OwnerTimes& chain : others) {
      for (const auto& [owner, ns] : chain) theirs[owner].push_back(ns);
    }
    for (auto& [owner, times] : theirs) {
      times.resize(others.size(), 0);
      excess[owner] -= MiddleOf(times);
    }
    // Behind sends and receives the stages come to others one by one, too.
    const bool pair = IsPair(joined, last, slice);
    if (pair || staged_) {
      AddPair(last, late, excess);
    } else {
      late_[last] += late;
      if (late > 0) {
        for (const auto& [owner, ns] : excess) excess_[last][owner] += ns;
      }
    }
    staged_ = pair;
    const auto* cause = late > 0 ? Largest(excess) : nullptr;
    ++last_[last];
    const auto [first, end] = std::minmax_element(
        members.begin(), members.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    for (size_t i = 0; i < members.size(); ++i) {
      std::vector<int64_t> rest;
      for (size_t j = 0; j < members.size(); ++j) {
        if (j != i) rest.push_back(members[j].second);
      }
      differences_[members[i].first].Add(
          members[i].second - MiddleOf(std::move(rest)),
          end->second - first->second);
    }
    const Trace& trace = graph_.model(last).trace();
    table.Add(time - view_.first_ns, trace.Name(slice), view_.ranks[last].rank,
              late, waited,
              cause ? Value(SegmentKindName(cause->first.first)) : Value(),
              cause ? Value(cause->first.second) : Value(),
              cause ? Value(cause->second) : Value(),
              joined.work.members.size(), trace.EventOf(slice));
  }

  // A send with its receive. Stages of a pipeline come to them one after the
  // other, and that is nobody's fault.
  bool IsPair(const Graph::JoinedNode& joined, uint32_t part,
              SliceId slice) const {
    const Trace& trace = graph_.model(part).trace();
    const trace::DeviceArgs* const args = trace.Device(slice);
    const trace::CollectiveArgs* const call =
        args == nullptr ? nullptr : trace.Collective(args->collective);
    return joined.work.members.size() == 2 &&
           (CollectiveKindOf(trace.Name(slice)) == CollectiveKind::kSendRecv ||
            (call != nullptr && call->name.valid() &&
             CollectiveKindOf(trace.Text(call->name)) ==
                 CollectiveKind::kSendRecv));
  }

  // What of its lateness is its own: the lag of its host, which counts, and its
  // computation, which counts as far as it has more of it than the others.
  void AddPair(uint32_t last, int64_t late, OwnerTimes& excess) {
    std::erase_if(excess, [](const auto& entry) {
      return ClassOf(entry.first.first) == PathClass::kComm;
    });
    int64_t host = 0, device = 0;
    for (const auto& [owner, ns] : excess) {
      if (ns <= 0) continue;
      (ClassOf(owner.first) == PathClass::kHost ? host : device) += ns;
    }
    host = std::min(host, std::max<int64_t>(0, late));
    late_[last] += host;
    paired_[last] += std::min(device, std::max<int64_t>(0, late - host));
    if (late <= 0) return;
    for (const auto& [owner, ns] : excess) {
      if (ClassOf(owner.first) == PathClass::kHost) {
        excess_[last][owner] += ns;
      } else {
        pair_excess_[{last, owner}] += ns;
      }
    }
  }

  void AddPaired() {
    std::vector<int64_t> work;  // of the devices of each rank
    for (uint32_t part = 0; part < view_.ranks.size(); ++part) {
      const Graph& own = *view_.ranks[part].graph;
      int64_t sum = 0;
      for (uint32_t v = own.first_device() + 1; v < own.nodes(); v += 2) {
        if (own.chain(v) != EdgeKind::kComm) sum += own.chain_work(v);
      }
      work.push_back(sum);
    }
    for (uint32_t part = 0; part < work.size(); ++part) {
      std::vector<int64_t> others = work;
      others.erase(others.begin() + part);
      if (others.empty() || paired_[part] == 0) continue;
      const int64_t more = work[part] - MiddleOf(std::move(others));
      if (more <= 0) continue;
      late_[part] += std::min(paired_[part], more);
      for (const auto& [key, ns] : pair_excess_) {
        if (key.first == part) excess_[part][key.second] += std::min(ns, more);
      }
    }
  }

  const JoinedView& view_;
  const Graph& graph_;
  const Window& window_;
  const std::vector<Segment>& segments_;
  const int64_t length_;
  std::vector<OwnerTimes> excess_;  // by part
  std::vector<int64_t> last_, late_;
  // Of sends and receives: lateness by computation, and what that is.
  std::vector<int64_t> paired_;
  bool staged_ = false;  // the collective before was one of these
  std::map<std::pair<uint32_t, Owner>, int64_t> pair_excess_;
  std::vector<Differences> differences_;  // of all collectives of the chain
  std::vector<std::vector<uint32_t>> by_time_;  // nodes of each part
};

}  // namespace

Scenario Lift(const Graph& joined, uint32_t part, const Graph& own,
              const Scenario& scenario) {
  // Work on the common clock may be shorter by what clocks drift, and the
  // transfer of a collective is a part of its time: it changes as the whole.
  const auto scaled = [](int64_t work, int64_t was, int64_t becomes) {
    return was <= 0 ? becomes
                    : static_cast<int64_t>(static_cast<__int128>(work) *
                                           becomes / was);
  };
  Scenario out;
  for (const auto& [v, work] : scenario.chains) {
    const uint32_t node = joined.NodeOf(part, v);
    const auto edge = joined.collective_edges().find(node);
    if (edge == joined.collective_edges().end()) {
      out.chains.emplace_back(
          node, scaled(joined.chain_work(node), own.chain_work(v), work));
    } else {
      out.edges.emplace_back(edge->second,
                             scaled(joined.edges()[edge->second].work_ns,
                                    own.chain_work(v), work));
    }
  }
  for (const auto& [e, work] : scenario.edges) {
    const uint32_t edge = joined.EdgeOf(part, e);
    out.edges.emplace_back(edge, scaled(joined.edges()[edge].work_ns,
                                        own.edges()[e].work_ns, work));
  }
  for (const uint32_t v : scenario.unexplained)
    out.unexplained.push_back(joined.NodeOf(part, v));
  // A collective that is joined is nothing but transfer; one that is not waits
  // for ranks that are in no file.
  constexpr size_t kHigh = 2;
  for (const auto& [v, work] : scenario.collectives) {
    const uint32_t node = joined.NodeOf(part, v);
    const auto edge = joined.collective_edges().find(node);
    if (edge == joined.collective_edges().end()) {
      out.collectives.emplace_back(node, work);
    } else {
      out.edges.emplace_back(edge->second,
                             scaled(joined.edges()[edge->second].work_ns,
                                    own.chain_work(v), work[kHigh]));
    }
  }
  for (const auto& [v, work] : scenario.peers) {
    const uint32_t node = joined.NodeOf(part, v);
    if (!joined.collective_edges().contains(node))
      out.peers.emplace_back(node, work);
  }
  for (const uint32_t e : scenario.dropped)
    out.dropped.push_back(joined.EdgeOf(part, e));
  return out;
}

Result<Window> FindJoinedWindow(const JoinedView& view,
                                const std::string& text) {
  const Graph& graph = view.graph;
  Window window;
  window.start_ns = graph.start_ns();
  window.sink = graph.sink();
  if (text.empty()) return window;
  bool any = false;
  std::optional<Error> error;
  for (uint32_t part = 0; part < view.ranks.size(); ++part) {
    const Graph& own = *view.ranks[part].graph;
    const auto found = FindWindow(own, text);
    if (!found) {
      if (!error) error = found.error();
      continue;
    }
    // The window starts where its first node does.
    const uint32_t sink = graph.NodeOf(part, found->sink);
    const int64_t start =
        graph.time(sink) - (own.time(found->sink) - found->start_ns);
    if (!any || start < window.start_ns) window.start_ns = start;
    if (!any || graph.time(sink) > graph.time(window.sink)) window.sink = sink;
    if (!any) window.name = found->name;
    any = true;
  }
  if (!any) return Fail(std::move(*error));
  return window;
}

ResultSet JoinedTables(const JoinedView& view, const Window& window,
                       const std::vector<Segment>& segments,
                       const TableOptions& options) {
  JoinedMaker tables(view, window, segments);
  ResultSet result;
  Table collectives = tables.Collectives();
  tables.Say(result);
  result.tables.push_back(tables.Ranks());
  result.tables.push_back(SummaryTable(view.graph, window, Sum(segments)));
  result.tables.push_back(std::move(collectives));
  result.tables.push_back(tables.Owners());
  if (options.segments) {
    result.tables.push_back(JoinedSegmentsTable(view, segments));
    result.tables.push_back(GraphTable(view.graph));
  }
  return result;
}

Result<Table> JoinedWhatIfTable(const JoinedView& view, const Window& window,
                                const std::vector<Segment>& segments,
                                const std::vector<std::string>& specs) {
  const PathSums recorded = Sum(segments);
  WhatIfRows rows(view.graph, window, recorded);
  for (const std::string& spec : specs) {
    Scenario all;
    bool any = false;
    std::optional<Error> error;
    for (uint32_t part = 0; part < view.ranks.size(); ++part) {
      const auto own = ParseScenario(*view.ranks[part].graph, spec);
      if (!own) {
        if (!error) error = own.error();
        continue;
      }
      any = true;
      all.Add(Lift(view.graph, part, *view.ranks[part].graph, *own));
    }
    if (!any) return Fail(std::move(*error));
    rows.Add(spec, all);
  }
  return rows.Take();
}

}  // namespace lamina::analysis::path
