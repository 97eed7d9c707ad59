// SPDX-License-Identifier: Apache-2.0

#include "dist/job.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "analysis/host_tables/tables.h"
#include "base/escape.h"
#include "base/parallel.h"
#include "base/status.h"
#include "dist/clocks.h"
#include "dist/match.h"
#include "dist/partial.h"
#include "dist/summarize.h"

namespace lamina::dist {

namespace {

Partial ReadFiles(Channel& channel, const std::vector<std::string>& files,
                  const JobOptions& options) {
  const ScopedStage stage(options.times, "ranks");
  // With many files each is read on one thread; with few, on several.
  const auto readers = static_cast<int>(
      std::min<size_t>(static_cast<size_t>(options.load.threads),
                       std::max<size_t>(files.size(), 1)));
  LoadOptions load = options.load;
  load.threads = std::max(1, options.load.threads / readers);
  Partial own;
  std::mutex mutex;
  std::atomic<uint64_t> done = 0;
  channel.RunQueue(files.size(), readers, [&](size_t i) {
    Partial read;
    read.ranks = options.load_ranks ? options.load_ranks(files[i], i, load)
                                    : LoadRanks(files[i], i, load);
    const std::lock_guard lock(mutex);
    for (RankSummary& rank : read.ranks) own.ranks.push_back(std::move(rank));
    if (options.progress) options.progress(++done, files.size());
  });
  Merge(own, {});
  return own;
}

// The ranks of all processes without their calls.
std::vector<RankSummary> ShareHeads(Channel& channel, const Partial& own) {
  Partial heads;
  for (const RankSummary& rank : own.ranks) {
    heads.ranks.push_back(
        SelectGroups(rank, std::vector<bool>(rank.groups.size())));
  }
  if (channel.size() == 1) return std::move(heads.ranks);
  Partial all;
  for (const std::string& bytes : Share(channel, EncodePartial(heads))) {
    auto partial = DecodePartial(bytes, "a process of this run");
    LAMINA_CHECK(partial.has_value());
    Merge(all, std::move(*partial));
  }
  return std::move(all.ranks);
}

// The events of all ranks, at process 0.
decltype(Job::events) CollectEvents(Channel& channel, Partial& own) {
  decltype(Job::events) all;
  const auto take = [&](Partial& from) {
    for (RankSummary& rank : from.ranks)
      all[{rank.file_number, rank.part}] = std::exchange(rank.page, {});
  };
  if (channel.size() == 1) {
    take(own);
    return all;
  }
  std::vector<std::string> to(static_cast<size_t>(channel.size()));
  for (std::string& t : to) t = EncodeEvents({});
  to.front() = EncodeEvents(own);
  for (RankSummary& rank : own.ranks) rank.page = {};
  for (const std::string& bytes : channel.Exchange(std::move(to))) {
    auto partial = DecodeEvents(bytes);
    LAMINA_CHECK(partial.has_value());
    take(*partial);
  }
  return all;
}

// Ranks that nothing names are numbered in the order of the files.
void NumberPositions(std::vector<RankSummary>& heads) {
  for (size_t i = 0; i < heads.size(); ++i) {
    if (heads[i].is_position) heads[i].rank = static_cast<int64_t>(i);
  }
}

// Of two files of one rank the second is left out; a job has each once.
void LeaveOutTwins(std::vector<RankSummary>& heads) {
  std::map<int64_t, const RankSummary*> seen;
  for (RankSummary& rank : heads) {
    if (!rank.error.empty()) continue;
    const auto [it, is_new] = seen.try_emplace(rank.rank, &rank);
    if (is_new) continue;
    rank.error = "rank " + std::to_string(rank.rank) +
                 " is there already, in " + EscapeTerminal(it->second->file);
    rank.groups.clear();
    rank.steps.clear();
  }
}

// Which process joins which group: the largest group first, each to the
// process with the least to do so far.
std::map<std::string, int> ShareOutGroups(const std::vector<RankSummary>& heads,
                                          int processes) {
  std::map<std::string, uint64_t> calls;
  for (const RankSummary& rank : heads) {
    for (uint32_t g = 0; g < rank.groups.size(); ++g)
      calls[GroupKey(rank, g)] += rank.groups[g].calls;
  }
  std::vector<std::pair<uint64_t, std::string>> order;
  for (const auto& [key, count] : calls) order.emplace_back(count, key);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<uint64_t> load(static_cast<size_t>(processes));
  std::map<std::string, int> owners;
  for (const auto& [count, key] : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += count;
    owners[key] = static_cast<int>(least - load.begin());
  }
  return owners;
}

// Gives every process the calls of its groups, from all ranks.
Partial Redistribute(Channel& channel, Partial own,
                     const std::map<std::string, int>& owners) {
  if (channel.size() == 1) return own;
  std::vector<std::string> to;
  for (int process = 0; process < channel.size(); ++process) {
    Partial part;
    for (const RankSummary& rank : own.ranks) {
      std::vector<bool> groups(rank.groups.size());
      bool any = false;
      for (uint32_t g = 0; g < rank.groups.size(); ++g) {
        const auto it = owners.find(GroupKey(rank, g));
        groups[g] = it != owners.end() && it->second == process;
        any = any || groups[g];
      }
      if (any) part.ranks.push_back(SelectGroups(rank, groups));
    }
    to.push_back(EncodePartial(part));
  }
  own.ranks.clear();
  Partial mine;
  for (const std::string& bytes : channel.Exchange(std::move(to))) {
    auto partial = DecodePartial(bytes, "a process of this run");
    LAMINA_CHECK(partial.has_value());
    Merge(mine, std::move(*partial));
  }
  return mine;
}

std::vector<JoinedGroup> JoinGroups(const Partial& mine, int process,
                                    const std::map<std::string, int>& owners,
                                    int threads) {
  std::vector<const RankSummary*> by_rank;
  for (const RankSummary& rank : mine.ranks) by_rank.push_back(&rank);
  std::sort(by_rank.begin(), by_rank.end(),
            [](const auto* a, const auto* b) { return a->rank < b->rank; });
  std::map<std::string, std::vector<GroupPart>> parts;
  for (const RankSummary* rank : by_rank) {
    for (GroupPart& part : PartsOf(*rank)) {
      std::string key = GroupKey(*rank, part.group);
      if (owners.at(key) == process)
        parts[std::move(key)].push_back(std::move(part));
    }
  }
  std::vector<const std::vector<GroupPart>*> list;
  for (const auto& [key, members] : parts) list.push_back(&members);
  std::vector<JoinedGroup> joined(list.size());
  ParallelFor(threads, list.size(),
              [&](size_t i) { joined[i] = JoinGroup(*list[i]); });
  return joined;
}

Clocks AlignClocks(Channel& channel, const std::vector<JoinedGroup>& joined,
                   const std::vector<RankSummary>& heads,
                   const JobOptions& options) {
  std::vector<std::vector<ClockFit>> found(joined.size());
  ParallelFor(options.load.threads, joined.size(),
              [&](size_t i) { found[i] = FitClocks(joined[i]); });
  std::vector<ClockFit> own;
  for (const auto& fits : found)
    own.insert(own.end(), fits.begin(), fits.end());
  std::vector<ClockFit> all;
  for (const std::string& bytes : Share(channel, EncodeFits(own)))
    LAMINA_CHECK(DecodeFits(bytes, all));
  std::vector<RankOrigin> origins;
  for (const RankSummary& rank : heads) {
    if (rank.error.empty()) origins.push_back({rank.rank, rank.first_ns});
  }
  std::sort(origins.begin(), origins.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return Clocks(origins, std::move(all), options.raw_clocks);
}

}  // namespace

std::optional<Job> RunJob(Channel& channel,
                          const std::vector<std::string>& files,
                          const JobOptions& options) {
  Partial own = ReadFiles(channel, files, options);
  const ScopedStage stage(options.times, "join");
  decltype(Job::events) events;
  if (options.load.others) events = CollectEvents(channel, own);
  std::vector<RankSummary> heads = ShareHeads(channel, own);
  NumberPositions(heads);
  LeaveOutTwins(heads);
  if (options.read && channel.number() == 0)
    std::for_each(heads.begin(), heads.end(), options.read);
  std::map<std::pair<uint64_t, uint64_t>, const RankSummary*> by_place;
  for (const RankSummary& rank : heads)
    by_place[{rank.file_number, rank.part}] = &rank;
  for (RankSummary& rank : own.ranks)
    rank.rank = by_place.at({rank.file_number, rank.part})->rank;
  std::erase_if(own.ranks, [&](const RankSummary& rank) {
    return !by_place.at({rank.file_number, rank.part})->error.empty();
  });
  const auto owners = ShareOutGroups(heads, channel.size());
  // From here on a process knows some groups of all ranks instead of all groups
  // of some ranks.
  const Partial mine = Redistribute(channel, std::move(own), owners);
  const auto joined =
      JoinGroups(mine, channel.number(), owners, options.load.threads);
  Clocks clocks = AlignClocks(channel, joined, heads, options);
  std::vector<Measured> measured(joined.size());
  ParallelFor(options.load.threads, joined.size(),
              [&](size_t i) { measured[i] = Measure(joined[i], clocks); });
  if (channel.size() > 1) {
    std::vector<std::string> to(static_cast<size_t>(channel.size()));
    for (std::string& t : to) t = EncodeMeasured({});
    to.front() = EncodeMeasured(measured);
    measured.clear();
    for (const std::string& bytes : channel.Exchange(std::move(to)))
      LAMINA_CHECK(DecodeMeasured(bytes, measured));
  }
  if (channel.number() != 0) return std::nullopt;
  std::sort(measured.begin(), measured.end(),
            [](const Measured& a, const Measured& b) {
              return a.groups.front().key < b.groups.front().key;
            });
  Job job{std::move(heads), std::move(clocks), {}, std::move(events)};
  for (Measured& m : measured) job.measured.Append(std::move(m));
  return job;
}

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
