// SPDX-License-Identifier: Apache-2.0
#include "dist/path_ranks.h"

#include <algorithm>
#include <map>

#include "analysis/host_tables/tables.h"
#include "base/escape.h"
#include "dist/clocks.h"
#include "dist/match.h"
#include "dist/summarize.h"

namespace lamina::dist {

using analysis::host::HostModel;
using analysis::path::Graph;

Result<PathRanks> PathRanks::Open(const std::vector<std::string>& files,
                                  const engine::OpenOptions& open,
                                  const analysis::host::Options& options,
                                  bool layers) {
  PathRanks out;
  std::deque<RankSummary> summaries;
  std::vector<std::vector<analysis::Collective>> collectives;
  analysis::Settings settings;
  settings.threads = open.threads;
  for (const std::string& file : files) {
    LAMINA_ASSIGN(auto session, engine::Session::Open(file, open));
    LAMINA_ASSIGN(const analysis::Context* const context,
                  session->ContextFor(tree::LinkMode::kAuto, false, settings));
    const std::vector<Lanes> lanes = FindRanks(*context);
    if (lanes.size() != 1) {
      return Fail(UsageError(
          EscapeTerminal(file) + " holds " + std::to_string(lanes.size()) +
              " ranks",
          "several traces are joined rank by rank: give a file of each; of "
          "this one alone, ⟨lamina⟩ path FILE shows the path"));
    }
    const auto named = session->trace().info.rank;
    const int64_t rank = named ? *named
                               : RankOfName(file).value_or(
                                     static_cast<int64_t>(out.ranks_.size()));
    for (const auto& other : out.ranks_) {
      if (other.rank == rank) {
        return Fail(UsageError("rank " + std::to_string(rank) + " is in " +
                                   EscapeTerminal(other.file) + " and in " +
                                   EscapeTerminal(file),
                               "give each rank once"));
      }
    }
    summaries.push_back(Summarize(*context, lanes[0], rank));
    summaries.back().rank = rank;
    collectives.push_back(CollectivesOf(*context, lanes[0]));
    out.models_.push_back(HostModel::Build(*context, options));
    out.graphs_.push_back(Graph::Build(out.models_.back()));
    if (out.graphs_.back().sink() == analysis::path::kNoNode) {
      return Fail(InputError(file, "has no ops, calls or device work"));
    }
    out.ranks_.push_back({rank, file, &out.graphs_.back(), nullptr});
    if (layers) {
      LAMINA_ASSIGN(const auto* const found,
                    context->Get<analysis::layers::LayerModel>());
      out.layers_.push_back(
          analysis::host_tables::LayersOfWork(session->trace(), *found));
      out.ranks_.back().layers = &out.layers_.back();
    }
    out.sessions_.push_back(std::move(session));
  }

  std::map<int64_t, uint32_t> part_of;
  std::vector<RankOrigin> origins;
  for (uint32_t i = 0; i < out.ranks_.size(); ++i) {
    part_of[out.ranks_[i].rank] = i;
    origins.push_back({out.ranks_[i].rank, summaries[i].first_ns});
  }
  std::sort(origins.begin(), origins.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  std::map<std::string, std::vector<GroupPart>> groups;
  for (const auto& [rank, part] : part_of) {
    for (GroupPart& own : PartsOf(summaries[part])) {
      std::string key = GroupKey(summaries[part], own.group);
      groups[std::move(key)].push_back(std::move(own));
    }
  }
  std::vector<JoinedGroup> joined;
  std::vector<ClockFit> fits;
  for (const auto& [key, parts] : groups) {
    joined.push_back(JoinGroup(parts));
    for (ClockFit& fit : FitClocks(joined.back())) fits.push_back(fit);
  }
  const Clocks clocks(origins, std::move(fits), false);
  for (const RankClock& clock : clocks.ranks()) {
    if (clock.known && clock.reference == clocks.ranks()[0].reference) continue;
    return Fail(InputError(
        out.ranks_[part_of.at(clock.rank)].file,
        "rank " + std::to_string(clock.rank) +
            " cannot be joined to the others by a collective that all leave "
            "together: nothing tells how their clocks differ, and no path "
            "joins them",
        "give ranks of one job that communicate; `⟨ranks()⟩` shows which "
        "do"));
  }

  std::vector<analysis::path::JoinPart> parts;
  for (uint32_t i = 0; i < out.ranks_.size(); ++i) {
    const int64_t rank = out.ranks_[i].rank;
    const int64_t base = BaseOf(out.sessions_[i]->trace());
    parts.push_back({&out.graphs_[i], [&clocks, rank, base](int64_t t) {
                       return clocks.Align(rank, base + t);
                     }});
    const int64_t first = clocks.Align(rank, summaries[i].first_ns);
    if (i == 0 || first < out.first_ns_) out.first_ns_ = first;
  }
  std::vector<analysis::path::JoinedWork> works;
  for (const JoinedGroup& group : joined) {
    for (const JoinedCall& call : group.calls) {
      if (call.members.size() < 2 || !call.doubt.empty()) continue;
      analysis::path::JoinedWork work;
      for (const JoinedMember& member : call.members) {
        const uint32_t part = part_of.at(member.rank->rank);
        work.members.emplace_back(part,
                                  collectives[part][member.call->number].slice);
      }
      works.push_back(std::move(work));
    }
  }
  out.joined_ = std::make_unique<Graph>(Graph::Join(parts, works));
  return out;
}

}  // namespace lamina::dist
