// SPDX-License-Identifier: Apache-2.0

#include "dist/summarize.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>
#include <tuple>

#include "analysis/common/stats.h"
#include "analysis/common/timeline.h"
#include "base/decimal.h"
#include "base/string_pool.h"
#include "dist/rank_events.h"
#include "engine/session.h"

namespace lamina::dist {

namespace {

using trace::SliceId;
using tree::NodeId;

// What a summary keeps of one gap. Shorter ops explain no late start, and calls
// that overlap by thousands must not make the work quadratic.
constexpr size_t kItems = 24;
constexpr int64_t kShortestNs = 500;
constexpr size_t kMostSlices = 4096;

NamedTimes Longest(
    const absl::flat_hash_map<std::string_view, int64_t>& times) {
  NamedTimes out;
  for (const auto& [name, ns] : times) {
    if (ns >= kShortestNs) out.emplace_back(name, ns);
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (out.size() > kItems) out.resize(kItems);
  return out;
}

}  // namespace

GapFinder::GapFinder(const analysis::Context& context,
                     const std::vector<bool>& lanes,
                     const std::vector<analysis::Collective>& calls)
    : context_(context), calls_(calls) {
  const trace::Trace& trace = context.trace;
  const auto n = static_cast<uint32_t>(calls.size());
  std::vector<uint32_t> by_end(n);
  std::iota(by_end.begin(), by_end.end(), 0U);
  std::stable_sort(by_end.begin(), by_end.end(), [&](uint32_t a, uint32_t b) {
    return trace.End(calls[a].slice) < trace.End(calls[b].slice);
  });
  previous_.assign(n, kNoIndex);
  size_t ended = 0;
  for (uint32_t i = 0; i < n; ++i) {
    while (ended < n &&
           trace.End(calls[by_end[ended]].slice) <= trace.Start(calls[i].slice))
      ++ended;
    // A call of length 0 ends where it starts and comes before no other.
    if (ended > 0 && by_end[ended - 1] != i) previous_[i] = by_end[ended - 1];
  }

  launch_before_.assign(n, NodeId());
  std::vector<std::pair<NodeId, uint32_t>> launches;
  for (uint32_t i = 0; i < n; ++i) {
    const NodeId launch = context.tree.launch(calls[i].slice);
    if (launch.valid()) launches.emplace_back(launch, i);
  }
  std::sort(launches.begin(), launches.end());
  for (size_t i = 1; i < launches.size(); ++i) {
    const auto track = [&](NodeId node) {
      return trace.slices.track[context.tree.slice(node).value];
    };
    if (track(launches[i - 1].first) == track(launches[i].first))
      launch_before_[launches[i].second] = launches[i - 1].first;
  }

  for (const SliceId s : trace.device_slices()) {
    if (context.device.communication(s) || !lanes[trace.Device(s)->lane.value])
      continue;
    work_.push_back(s);
    const int64_t end = trace.End(s);
    latest_end_.push_back(
        latest_end_.empty() ? end : std::max(end, latest_end_.back()));
  }
}

Gap GapFinder::Before(uint32_t call) const {
  const trace::Trace& trace = context_.trace;
  Gap gap;
  gap.previous = previous_[call];
  const int64_t end = trace.Start(calls_[call].slice);
  gap.start_ns = gap.previous == kNoIndex
                     ? trace.first_ns
                     : trace.End(calls_[gap.previous].slice);
  const auto last = static_cast<size_t>(
      std::partition_point(work_.begin(), work_.end(),
                           [&](SliceId s) { return trace.Start(s) < end; }) -
      work_.begin());
  auto first = static_cast<size_t>(
      std::partition_point(latest_end_.begin(), latest_end_.end(),
                           [&](int64_t e) { return e <= gap.start_ns; }) -
      latest_end_.begin());
  if (last > kMostSlices) first = std::max(first, last - kMostSlices);
  absl::flat_hash_map<std::string_view, int64_t> times;
  IntervalSet busy;
  for (size_t i = first; i < last; ++i) {
    const SliceId s = work_[i];
    const Interval part{std::max(trace.Start(s), gap.start_ns),
                        std::min(trace.End(s), end)};
    if (part.length_ns() <= 0) continue;
    busy.AppendSorted(part);
    // A copy says itself what is copied; the op is often one of many.
    const NodeId launcher = context_.device.launcher(s);
    const bool copy = trace.KindOf(s) == trace::Kind::kMemcpy;
    times[launcher.valid() && !copy ? context_.tree.name(launcher)
                                    : trace.Name(s)] += part.length_ns();
  }
  const std::vector<Interval> idle = busy.Gaps({gap.start_ns, end});
  for (const Interval& i : idle) gap.idle_ns += i.length_ns();
  gap.device = Longest(times);
  gap.host = HostTimes(call, idle);
  return gap;
}

// What the launching thread did between the launch before and this one while
// the device had nothing to do: self times of events, and the rest.
NamedTimes GapFinder::HostTimes(uint32_t call,
                                const std::vector<Interval>& idle) const {
  const tree::Tree& tree = context_.tree;
  const trace::Trace& trace = context_.trace;
  const NodeId launch = tree.launch(calls_[call].slice);
  const NodeId before = launch_before_[call];
  if (!launch.valid() || !before.valid() || idle.empty()) return {};
  const int64_t begin = trace.Start(tree.slice(before));
  const int64_t end = trace.Start(tree.slice(launch));
  const auto idle_in = [&](int64_t from, int64_t to) {
    to = std::min(to, end);
    auto it = std::partition_point(
        idle.begin(), idle.end(),
        [&](const Interval& i) { return i.end_ns <= from; });
    int64_t sum = 0;
    for (; it != idle.end() && it->start_ns < to; ++it)
      sum += std::min(it->end_ns, to) - std::max(it->start_ns, from);
    return sum;
  };
  absl::flat_hash_map<std::string_view, int64_t> times;
  int64_t outside = idle_in(begin, end);
  if (outside <= 0) return {};
  for (NodeId n = before; n.value < launch.value; n = NodeId(n.value + 1)) {
    const SliceId s = tree.slice(n);
    const int64_t ns = idle_in(trace.Start(s), trace.End(s));
    if (ns <= 0) continue;
    times[tree.name(n)] += ns;
    const NodeId parent = tree.parent(n);
    if (parent.valid() && parent >= before) {
      times[tree.name(parent)] -= ns;
    } else {
      outside -= ns;
    }
  }
  if (outside > 0) times["(outside of ops)"] += outside;
  return Longest(times);
}

namespace {

using analysis::Bucket;
using analysis::Collective;
using trace::SliceId;
using trace::Trace;

// Texts of a summary, in order of first use; text 0 is empty.
class Texts {
 public:
  explicit Texts(std::vector<std::string>& list) : list_(list) {
    list_.assign(1, "");
  }
  uint32_t operator()(std::string_view text) {
    const StringId id = pool_.Intern(text);
    if (id.value == list_.size()) list_.emplace_back(text);
    return id.value;
  }

 private:
  std::vector<std::string>& list_;
  StringPool pool_;
};

std::vector<CallStats> CollectStats(const Trace& trace,
                                    const std::vector<Collective>& calls,
                                    Texts& texts) {
  using Key = std::tuple<std::string_view, std::string_view, std::string_view,
                         std::string_view, std::string_view, std::string_view,
                         int64_t, int64_t, int64_t, int64_t>;
  std::map<Key, std::vector<int64_t>> found;
  for (const Collective& c : calls) {
    if (c.args == nullptr) continue;
    const trace::CollectiveArgs& a = *c.args;
    const trace::DeviceArgs& device = *trace.Device(c.slice);
    if (!a.group.valid() || !a.group_ranks.valid() || !a.dtype.valid() ||
        !a.in_split.valid() || !a.out_split.valid() || !a.name.valid() ||
        a.group_size == kNoInt || a.in_elements == kNoInt ||
        a.out_elements == kNoInt || device.stream == kNoInt)
      continue;
    found[Key{trace.Text(a.group), trace.Text(a.group_ranks),
              trace.Text(a.name), trace.Text(a.dtype), trace.Text(a.in_split),
              trace.Text(a.out_split), a.group_size, a.in_elements,
              a.out_elements, device.stream}]
        .push_back(trace.Duration(c.slice));
  }
  std::vector<CallStats> out;
  for (auto& [key, times] : found) {
    const analysis::Stats stats = analysis::Summarize(times);
    const auto& [group, ranks, name, dtype, in_split, out_split, size, in,
                 out_elements, stream] = key;
    CallStats row;
    row.group = texts(group);
    row.ranks = texts(ranks);
    row.name = texts(name);
    row.dtype = texts(dtype);
    row.in_split = texts(in_split);
    row.out_split = texts(out_split);
    row.size = size;
    row.in_elements = in;
    row.out_elements = out_elements;
    row.stream = stream;
    row.count = static_cast<int64_t>(stats.count);
    row.sum_ns = stats.sum;
    row.min_ns = stats.min;
    row.max_ns = stats.max;
    row.mean_ns = stats.mean;
    row.deviation_ns = stats.std_dev.value_or(-1);
    out.push_back(row);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const CallStats& a, const CallStats& b) {
                     return a.sum_ns > b.sum_ns;
                   });
  return out;
}

bool Within(const Trace& trace, const Lanes& lanes, SliceId s) {
  return lanes[trace.Device(s)->lane.value];
}

std::vector<StepTimes> TimeSteps(const analysis::Context& context,
                                 const Lanes& lanes, int64_t base,
                                 const std::vector<bool>& is_peer) {
  const Trace& trace = context.trace;
  const auto& steps = context.steps.steps();
  std::vector<std::vector<SliceId>> work(steps.size() + 1);
  for (const SliceId s : trace.device_slices()) {
    if (!Within(trace, lanes, s)) continue;
    work[StepIndex(context, s)].push_back(s);
  }
  std::vector<StepTimes> out(steps.size() + 1);
  for (size_t i = 0; i < out.size(); ++i) {
    StepTimes& times = out[i];
    if (i < steps.size()) times.number = steps[i].number;
    const analysis::Timeline t = analysis::MakeTimeline(
        trace, work[i], [&](SliceId s) { return context.device.bucket(s); });
    IntervalSet peer;
    for (const SliceId s : work[i]) {
      if (is_peer[trace.slices.detail[s.value]])
        peer.AppendSorted({trace.Start(s), trace.End(s)});
    }
    times.start_ns = base + t.window.start_ns;
    times.device_ns = t.total_ns;
    times.busy_ns = t.busy_ns;
    times.compute_ns = t.computation_ns;
    times.comm_ns = t.communication.length_ns();
    times.exposed_comm_ns = t.exposed_communication_ns;
    times.peer_ns = peer.length_ns();
    if (!t.computation.empty()) {
      const auto compute = t.computation.intervals();
      IntervalSet middle;
      middle.AppendSorted({compute.front().start_ns, compute.back().end_ns});
      times.peer_exposed_ns =
          peer.Minus(t.computation).Intersect(middle).length_ns();
      times.first_compute_ns = base + compute.front().start_ns;
      times.last_compute_ns = base + compute.back().end_ns;
    }
  }
  return out;
}

int64_t PartOutside(const Interval& interval, const IntervalSet& set) {
  const auto all = set.intervals();
  auto it = std::partition_point(
      all.begin(), all.end(),
      [&](const Interval& i) { return i.end_ns <= interval.start_ns; });
  int64_t covered = 0;
  for (; it != all.end() && it->start_ns < interval.end_ns; ++it) {
    covered += std::min(it->end_ns, interval.end_ns) -
               std::max(it->start_ns, interval.start_ns);
  }
  return interval.length_ns() - covered;
}

void FillGroup(const Trace& trace, const trace::CollectiveArgs& args,
               Texts& texts, GroupName& group) {
  group.name = texts(trace.Text(args.group));
  group.ranks = texts(trace.Text(args.group_ranks));
  group.description = texts(trace.Text(args.group_desc));
  group.size = args.group_size;
}

// Of a group of two, "[3, 7]", the other rank than `rank`; else kNoInt.
int64_t OtherOfTwo(std::string_view ranks, int64_t rank) {
  std::vector<int64_t> all;
  for (size_t i = 0; i < ranks.size() && all.size() < 3;) {
    const size_t begin = i;
    while (i < ranks.size() && ranks[i] >= '0' && ranks[i] <= '9') ++i;
    if (i == begin) {
      ++i;
    } else if (const auto number = ParseInt(ranks.substr(begin, i - begin))) {
      all.push_back(*number);
    }
  }
  if (all.size() != 2 || (all[0] != rank && all[1] != rank)) return kNoInt;
  return all[0] == rank ? all[1] : all[0];
}

void FillArgs(const Trace& trace, const trace::CollectiveArgs& args,
              int64_t rank, Texts& texts, Call& call) {
  call.dtype = texts(trace.Text(args.dtype));
  call.in_split = texts(trace.Text(args.in_split));
  call.out_split = texts(trace.Text(args.out_split));
  call.sequence = args.sequence;
  call.in_elements = args.in_elements;
  call.out_elements = args.out_elements;
  if (call.kind != CollectiveKind::kSendRecv) return;
  // A send names whom it sends to, a receive from whom; the other end is this
  // rank.
  const std::string_view name = trace.Text(args.name);
  call.source = args.src_rank;
  call.destination = args.dst_rank;
  const bool sends = name.ends_with("send");  // not "sendrecv", which is both
  const bool receives = name.ends_with("recv") && !name.ends_with("sendrecv");
  if (sends) call.source = rank;
  if (receives) call.destination = rank;
  // Older profilers name no peer; of a group of two it is the other one.
  int64_t& peer = sends ? call.destination : call.source;
  if ((sends || receives) && peer == kNoInt)
    peer = OtherOfTwo(trace.Text(args.group_ranks), rank);
}

}  // namespace

std::vector<Lanes> FindRanks(const analysis::Context& context) {
  const Trace& trace = context.trace;
  const size_t n = trace.streams.size();
  std::map<std::pair<std::string_view, int64_t>, Lanes> ranks;
  for (const trace::Stream& stream : trace.streams) {
    const bool communicates =
        std::any_of(stream.slices.begin(), stream.slices.end(),
                    [&](SliceId s) { return context.device.communication(s); });
    if (communicates)
      ranks.try_emplace({trace.Text(stream.pid), stream.device}, Lanes(n));
  }
  if (ranks.size() <= 1) return {Lanes(n, true)};
  for (size_t i = 0; i < n; ++i) {
    const trace::Stream& stream = trace.streams[i];
    const auto it = ranks.find({trace.Text(stream.pid), stream.device});
    if (it != ranks.end()) it->second[i] = true;
  }
  std::vector<Lanes> out;
  for (auto& [key, lanes] : ranks) out.push_back(std::move(lanes));
  return out;
}

// Times of a recording are relative to its base time where it has one.
int64_t BaseOf(const Trace& trace) {
  const auto base = trace.info.base_time_ns;
  if (!base || !trace::IsUsableTime(*base)) return 0;
  // Hostile times: the sum must be a usable time as well.
  const auto order = trace.device_slices();
  const bool fits =
      trace::IsUsableTime(*base + trace.first_ns) &&
      (order.empty() || trace::IsUsableTime(*base + trace.Start(order.back())));
  return fits ? *base : 0;
}

std::vector<Collective> CollectivesOf(const analysis::Context& context,
                                      const Lanes& lanes) {
  std::vector<Collective> all =
      analysis::CollectCollectives(context.tree, context.device);
  std::erase_if(all, [&](const Collective& c) {
    return !Within(context.trace, lanes, c.slice);
  });
  return all;
}

uint32_t StepIndex(const analysis::Context& context, SliceId slice) {
  const auto outside = static_cast<uint32_t>(context.steps.steps().size());
  if (outside == 0) return 0;
  const uint32_t step = context.steps.StepOf(slice);
  return step == tree::Steps::kOutside ? outside : step;
}

RankSummary Summarize(const analysis::Context& context, const Lanes& lanes,
                      int64_t rank) {
  const Trace& trace = context.trace;
  RankSummary out;
  Texts texts(out.texts);
  const int64_t base = BaseOf(trace);
  out.rank = rank;
  out.world_size = trace.info.world_size.value_or(kNoInt);
  out.devices = static_cast<int64_t>(trace.info.devices.size());
  out.first_ns = base + trace.first_ns;
  out.events = trace.info.events;
  out.input_bytes = trace.info.input_bytes;
  out.losses = trace::FindLosses(trace.diagnostics);

  const std::vector<Collective> all = CollectivesOf(context, lanes);
  out.stats = CollectStats(trace, all, texts);
  // Without arguments nothing says that a SendRecv kernel is no all-to-all.
  std::vector<bool> is_peer(trace.device.size());
  for (const Collective& c : all) {
    if (c.kind == CollectiveKind::kSendRecv && c.args != nullptr)
      is_peer[trace.slices.detail[c.slice.value]] = true;
  }
  out.steps = TimeSteps(context, lanes, base, is_peer);

  IntervalSet compute;
  for (const SliceId s : trace.device_slices()) {
    if (Within(trace, lanes, s) && context.device.bucket(s) == Bucket::kCompute)
      compute.AppendSorted({trace.Start(s), trace.End(s)});
  }
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> groups;
  const GapFinder gaps(context, lanes, all);
  out.calls.resize(all.size());
  for (uint32_t i = 0; i < all.size(); ++i) {
    const Collective& c = all[i];
    Call& call = out.calls[i];
    call.number = i;
    call.kind = c.kind;
    call.stream = trace.Device(c.slice)->stream;
    call.start_ns = base + trace.Start(c.slice);
    call.file_ns = trace.Start(c.slice);
    call.dur_ns = trace.Duration(c.slice);
    call.exposed_ns =
        PartOutside({trace.Start(c.slice), trace.End(c.slice)}, compute);
    call.step = StepIndex(context, c.slice);
    GroupName group;
    if (c.args != nullptr) {
      FillGroup(trace, *c.args, texts, group);
      FillArgs(trace, *c.args, out.rank, texts, call);
    }
    call.name = texts(c.args != nullptr && c.args->name.valid()
                          ? trace.Text(c.args->name)
                          : trace.Name(c.slice));
    const auto [it, is_new] = groups.try_emplace(
        {group.name, group.ranks}, static_cast<uint32_t>(out.groups.size()));
    if (is_new) out.groups.push_back(group);
    call.group = it->second;
    ++out.groups[call.group].calls;

    const Gap gap = gaps.Before(i);
    call.previous = gap.previous;
    call.gap_start_ns = base + gap.start_ns;
    call.idle_ns = gap.idle_ns;
    for (const auto& [name, ns] : gap.device)
      call.device.push_back({texts(name), ns});
    for (const auto& [name, ns] : gap.host)
      call.host.push_back({texts(name), ns});
  }
  return out;
}

namespace {

bool IsLetter(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

std::optional<int64_t> RankOfName(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto number_at = [&](size_t at) -> std::optional<int64_t> {
    size_t end = at;
    while (end < name.size() && is_digit(name[end])) ++end;
    return ParseInt(std::string_view(name).substr(at, end - at));
  };
  for (size_t at = name.find("rank"); at != std::string::npos;
       at = name.find("rank", at + 1)) {
    size_t digits = at + 4;
    if (digits < name.size() && !is_digit(name[digits])) ++digits;
    if (digits < name.size() && is_digit(name[digits]))
      return number_at(digits);
  }
  std::optional<size_t> only;
  for (size_t i = 0; i < name.size(); ++i) {
    if (!is_digit(name[i]) || (i > 0 && is_digit(name[i - 1]))) continue;
    if (only) return std::nullopt;
    only = i;
  }
  if (!only) return std::nullopt;
  // Other numbers are versions, dates, processes: "rocprof-908",
  // "4711_results".
  const size_t word_end =
      *only > 0 && !IsLetter(name[*only - 1]) ? *only - 1 : *only;
  size_t word = word_end;
  while (word > 0 && IsLetter(name[word - 1])) --word;
  static constexpr std::array<std::string_view, 5> kWords = {
      "r", "trace", "worker", "gpu", "device"};
  const auto before = std::string_view(name).substr(word, word_end - word);
  const size_t end = name.find_first_not_of("0123456789", *only);
  const bool bare =
      *only == 0 && (end == std::string::npos || name[end] == '.');
  if (!bare && std::find(kWords.begin(), kWords.end(), before) == kWords.end())
    return std::nullopt;
  return number_at(*only);
}

namespace {

Result<std::vector<RankSummary>> Load(const std::string& path,
                                      uint64_t file_number,
                                      const LoadOptions& options) {
  engine::OpenOptions open;
  open.threads = options.threads;
  open.rules_dir = options.rules_dir;
  open.catalog = options.catalog;
  open.origins = options.origins;
  std::shared_ptr<engine::Session> session;
  if (options.open) {
    LAMINA_ASSIGN(session, options.open(path, file_number, open));
  } else {
    LAMINA_ASSIGN(session, engine::Session::Open(path, open));
  }
  analysis::Settings settings;
  settings.threads = options.threads;
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  std::optional<int64_t> rank = session->trace().info.rank;
  if (!rank) rank = RankOfName(path);
  const std::vector<Lanes> parts = FindRanks(*context);
  std::vector<RankSummary> out;
  for (const Lanes& lanes : parts) {
    out.push_back(Summarize(*context, lanes, rank.value_or(0)));
    out.back().is_position = !rank || parts.size() > 1;
    if (options.others)
      out.back().page = FindEvents(*context, lanes, *options.others);
    if (options.inspect)
      options.inspect(*context, lanes, file_number, out.size() - 1);
  }
  return out;
}

}  // namespace

std::vector<RankSummary> LoadRanks(const std::string& path,
                                   uint64_t file_number,
                                   const LoadOptions& options) {
  std::vector<RankSummary> ranks;
  auto loaded = Load(path, file_number, options);
  if (loaded) {
    ranks = std::move(*loaded);
  } else {
    RankSummary& rank = ranks.emplace_back();
    rank.error = loaded.error().what;
    rank.texts.assign(1, "");
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].file = path;
    ranks[i].file_number = file_number;
    ranks[i].part = i;
  }
  return ranks;
}

}  // namespace lamina::dist
