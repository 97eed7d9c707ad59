// SPDX-License-Identifier: Apache-2.0

#include "dist/measure.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "analysis/common/stats.h"
#include "base/decimal.h"
#include "dist/archive.h"

namespace lamina::dist {

namespace {

using analysis::CollectiveElementBytes;
using analysis::MiddleOf;

int64_t BytesOf(int64_t elements, std::string_view dtype) {
  return analysis::CollectiveBytes(elements, dtype).value_or(kNoInt);
}

int64_t TimeOf(const RankSummary& rank, const std::vector<WorkItem>& items,
               std::string_view name) {
  for (const WorkItem& item : items) {
    if (rank.Text(item.name) == name) return item.ns;
  }
  return 0;
}

struct Excess {
  std::string_view name;
  int64_t ns = 0;
};

// The op on which the late rank spent most more than the median of the others.
Excess LargestExcess(const JoinedCall& call, size_t late,
                     std::vector<WorkItem> Call::*items) {
  const JoinedMember& me = call.members[late];
  Excess largest;
  for (const WorkItem& item : me.call->*items) {
    if (item.ns <= largest.ns) break;  // longest first: none can be larger
    const std::string_view name = me.rank->Text(item.name);
    std::vector<int64_t> others;
    for (size_t m = 0; m < call.members.size(); ++m) {
      if (m != late)
        others.push_back(
            TimeOf(*call.members[m].rank, call.members[m].call->*items, name));
    }
    const int64_t excess = item.ns - MiddleOf(std::move(others));
    if (excess > largest.ns) largest = {name, excess};
  }
  return largest;
}

void FindCause(const JoinedCall& call, size_t late, const Clocks& clocks,
               LateRank& out) {
  std::vector<int64_t> previous, idle, compute;
  const auto values = [&](size_t m) {
    const JoinedMember& member = call.members[m];
    const Call& c = *member.call;
    struct Values {
      int64_t previous, idle, compute;
    };
    return Values{clocks.Align(member.rank->rank, c.gap_start_ns), c.idle_ns,
                  c.start_ns - c.gap_start_ns - c.idle_ns};
  };
  for (size_t m = 0; m < call.members.size(); ++m) {
    if (m == late) continue;
    const auto v = values(m);
    previous.push_back(v.previous);
    idle.push_back(v.idle);
    compute.push_back(v.compute);
  }
  const auto mine = values(late);
  const int64_t by_previous = mine.previous - MiddleOf(std::move(previous));
  const int64_t by_idle = mine.idle - MiddleOf(std::move(idle));
  const int64_t by_compute = mine.compute - MiddleOf(std::move(compute));
  if (std::max({by_previous, by_idle, by_compute}) <= 0) return;
  if (by_compute >= by_idle && by_compute >= by_previous) {
    const Excess op = LargestExcess(call, late, &Call::device);
    out.cause = Cause::kCompute;
    out.cause_ns = op.ns > 0 ? op.ns : by_compute;
    out.cause_name = op.name;
  } else if (by_idle >= by_previous) {
    out.cause = Cause::kLaunch;
    out.cause_ns = by_idle;
    out.cause_name = LargestExcess(call, late, &Call::host).name;
  } else if (call.members[late].call->previous != kNoIndex) {
    out.cause = Cause::kPrevious;
    out.cause_ns = by_previous;
    out.cause_call = call.members[late].call->previous;
  }
}

// Calls of these kinds run on all ranks at some moment.
bool Overlaps(CollectiveKind kind) {
  return kind != CollectiveKind::kBroadcast &&
         kind != CollectiveKind::kReduce && kind != CollectiveKind::kGather &&
         kind != CollectiveKind::kScatter;
}

// Ends of a call that lie no further apart: all ranks left it together.
constexpr int64_t kTogetherNs = 10'000;
// Of more late ranks no cause is looked for.
constexpr size_t kMostCauses = 16;

// Parts of `whole` in proportion to `shares`; they add up to it.
std::vector<int64_t> Divide(int64_t whole, const std::vector<int64_t>& shares) {
  double sum = 0;
  for (const int64_t share : shares) sum += static_cast<double>(share);
  std::vector<int64_t> parts;
  double until = 0;
  int64_t given = 0;
  for (const int64_t share : shares) {
    until += static_cast<double>(share);
    const int64_t end =
        parts.size() + 1 == shares.size()
            ? whole
            : std::llround(static_cast<double>(whole) * until / sum);
    parts.push_back(end - given);
    given = end;
  }
  return parts;
}

// The members that came late, the last first. Late is late against the median
// of the others: two that come late together both are, although neither kept
// the other waiting. Less than half as late as the last is no reason to wait.
void FindLate(const std::vector<size_t>& by_start, MeasuredCall& out) {
  const size_t n = by_start.size();
  const auto start = [&](size_t place) {
    return out.members[by_start[place]].start_ns;
  };
  // Median of all starts but the one at `skip`.
  const auto median = [&](size_t skip) {
    const auto at = [&](size_t k) { return start(k < skip ? k : k + 1); };
    const int64_t low = at((n - 2) / 2);
    return low + (at((n - 1) / 2) - low) / 2;
  };
  if (n == 1) {
    out.late.emplace_back().rank = out.members[by_start[0]].rank;
    return;
  }
  int64_t most = start(n - 1) - median(n - 1);
  // Where most came late, the few that came early say how much.
  const bool most_late = most < (start(n - 1) - start(0)) / 2;
  const auto lateness = [&](size_t place) {
    return start(place) - (most_late ? start(0) : median(place));
  };
  most = lateness(n - 1);
  std::vector<int64_t> shares;
  for (size_t place = n; place-- > 0;) {
    const int64_t late_ns = lateness(place);
    if (place + 1 < n && (late_ns <= 0 || late_ns < most - most / 2)) break;
    LateRank& late = out.late.emplace_back();
    late.rank = out.members[by_start[place]].rank;
    late.late_ns = late_ns;
    shares.push_back(std::max<int64_t>(late_ns, 1));
  }
  const auto parts = Divide(out.wait_ns, shares);
  for (size_t i = 0; i < parts.size(); ++i) out.late[i].wait_ns = parts[i];
}

MeasuredCall MeasureCall(const JoinedCall& joined, const JoinedGroup& group,
                         const Clocks& clocks) {
  MeasuredCall out;
  const JoinedMember& first = joined.members.front();
  out.sequence = joined.sequence;
  out.kind = first.call->kind;
  out.by = joined.by;
  out.name = first.rank->Text(first.call->name);
  out.dtype = first.rank->Text(first.call->dtype);
  out.doubt = joined.doubt;
  out.source = first.call->source;
  out.destination = first.call->destination;
  out.ranks = joined.by == MatchedBy::kPeer ? 2
              : group.size != kNoInt
                  ? group.size
                  : static_cast<int64_t>(joined.members.size());
  int64_t first_end = INT64_MAX;
  int64_t last_end = INT64_MIN;
  int64_t last_start = INT64_MIN;
  out.start_ns = INT64_MAX;
  out.transfer_ns = INT64_MAX;
  for (size_t m = 0; m < joined.members.size(); ++m) {
    const JoinedMember& member = joined.members[m];
    const Call& c = *member.call;
    MeasuredMember measured;
    measured.rank = member.rank->rank;
    measured.call = c.number;
    measured.previous = c.previous;
    measured.step = c.step;
    measured.start_ns = clocks.Align(member.rank->rank, c.start_ns);
    measured.dur_ns = c.dur_ns;
    measured.in_bytes = BytesOf(c.in_elements, member.rank->Text(c.dtype));
    measured.file_ns = c.file_ns;
    measured.stream = c.stream;
    measured.in_elements = c.in_elements;
    measured.out_elements = c.out_elements;
    measured.in_split = member.rank->Text(c.in_split);
    measured.out_split = member.rank->Text(c.out_split);
    out.in_elements = std::max(out.in_elements, c.in_elements);
    out.out_elements = std::max(out.out_elements, c.out_elements);
    out.transfer_ns = std::min(out.transfer_ns, c.dur_ns);
    if (measured.start_ns < out.start_ns) {
      out.start_ns = measured.start_ns;
      out.early_rank = measured.rank;
    }
    if (measured.start_ns > last_start) {
      last_start = measured.start_ns;
      out.late_rank = measured.rank;
    }
    const int64_t end = measured.start_ns + c.dur_ns;
    first_end = std::min(first_end, end);
    last_end = std::max(last_end, end);
    out.members.push_back(measured);
  }
  out.bytes = BytesOf(
      analysis::MessageElements(out.kind, out.in_elements, out.out_elements),
      out.dtype);
  if (out.by == MatchedBy::kOrder && Overlaps(out.kind) &&
      last_start > first_end)
    out.doubt = "no overlap in time";
  out.start_skew_ns = last_start - out.start_ns;
  out.end_skew_ns = last_end - first_end;
  for (MeasuredMember& m : out.members) {
    m.wait_ns = std::min(last_start - m.start_ns, m.dur_ns);
    out.wait_ns += m.wait_ns;
  }
  // A kernel that is called SendRecv may be an all-to-all; where every rank of
  // the group was in it and left it together, all had waited for the last.
  out.synchronises =
      Synchronises(out.kind) ||
      (out.by != MatchedBy::kPeer && out.by != MatchedBy::kUnmatched &&
       joined.members.size() == group.present.size() &&
       out.end_skew_ns <= kTogetherNs);
  std::vector<size_t> by_start(out.members.size());
  std::iota(by_start.begin(), by_start.end(), size_t{0});
  // Of equals the lowest rank is the last.
  std::stable_sort(by_start.begin(), by_start.end(), [&](size_t a, size_t b) {
    return std::pair(out.members[a].start_ns, -static_cast<int64_t>(a)) <
           std::pair(out.members[b].start_ns, -static_cast<int64_t>(b));
  });
  FindLate(by_start, out);
  // The two ends of a transfer do different work.
  if (!out.comparable() || out.start_skew_ns == 0 ||
      (out.kind == CollectiveKind::kSendRecv && !out.synchronises))
    return out;
  for (size_t i = 0; i < std::min(out.late.size(), kMostCauses); ++i)
    FindCause(joined, by_start[by_start.size() - 1 - i], clocks, out.late[i]);
  return out;
}

void AddTraffic(const JoinedCall& call, const std::vector<int64_t>& members,
                std::map<std::pair<int64_t, int64_t>, Traffic>& traffic) {
  if (call.members.front().call->kind != CollectiveKind::kAllToAll) return;
  for (const JoinedMember& m : call.members) {
    const auto split = ParseRanks(m.rank->Text(m.call->in_split));
    if (split.size() != members.size()) continue;
    for (size_t peer = 0; peer < split.size(); ++peer) {
      const int64_t bytes = BytesOf(split[peer], m.rank->Text(m.call->dtype));
      if (bytes == kNoInt) continue;
      Traffic& t = traffic[{m.rank->rank, members[peer]}];
      t.source = m.rank->rank;
      t.destination = members[peer];
      t.bytes += bytes;
      ++t.calls;
    }
  }
}

}  // namespace

std::string_view CauseName(Cause cause) {
  switch (cause) {
    case Cause::kCompute:
      return "compute";
    case Cause::kLaunch:
      return "launch";
    case Cause::kPrevious:
      return "previous";
    case Cause::kNone:
      break;
  }
  return {};
}

void Measured::Append(Measured&& other) {
  const uint64_t shift = groups.size();
  for (auto& g : other.groups) groups.push_back(std::move(g));
  for (auto& c : other.calls) {
    c.group += shift;
    calls.push_back(std::move(c));
  }
  for (auto& t : other.traffic) {
    t.group += shift;
    traffic.push_back(t);
  }
  for (auto& l : other.lost) {
    l.group += shift;
    lost.push_back(l);
  }
}

std::vector<int64_t> ParseRanks(std::string_view text) {
  std::vector<int64_t> out;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end == i) {
      ++i;
      continue;
    }
    if (const auto value = ParseInt(text.substr(i, end - i)))
      out.push_back(*value);
    i = end;
  }
  return out;
}

Measured Measure(const JoinedGroup& group, const Clocks& clocks) {
  Measured out;
  out.groups.push_back({group.key, group.name, group.ranks, group.description,
                        group.size, group.present});
  std::vector<int64_t> members = ParseRanks(group.ranks);
  if (members.empty()) members = group.present;
  std::map<std::pair<int64_t, int64_t>, Traffic> traffic;
  for (const JoinedCall& call : group.calls) {
    out.calls.push_back(MeasureCall(call, group, clocks));
    AddTraffic(call, members, traffic);
  }
  for (const auto& [pair, t] : traffic) out.traffic.push_back(t);
  for (const LostCall& lost : group.lost) {
    const MeasuredCall& call = out.calls[lost.call];
    out.lost.push_back({0, call.sequence, call.kind, lost.rank, lost.inside});
  }
  return out;
}

// Fits and measured results between processes of one run; never in files, so
// there is no version.

// Found by argument, so in no unnamed namespace.
template <class Archive>
static void Fields(Archive& a, MeasuredMember& x) {
  a(x.rank, x.call, x.previous, x.step, x.start_ns, x.dur_ns, x.wait_ns,
    x.in_bytes, x.file_ns, x.stream, x.in_elements, x.out_elements, x.in_split,
    x.out_split);
}

template <class Archive>
static void Fields(Archive& a, LateRank& x) {
  a(x.rank, x.late_ns, x.wait_ns, x.cause, x.cause_ns, x.cause_name,
    x.cause_call);
}

template <class Archive>
static void Fields(Archive& a, MeasuredCall& x) {
  a(x.group, x.sequence, x.kind, x.by, x.name, x.dtype, x.doubt, x.bytes,
    x.in_elements, x.out_elements, x.source, x.destination, x.ranks, x.start_ns,
    x.start_skew_ns, x.end_skew_ns, x.transfer_ns, x.late_rank, x.early_rank,
    x.wait_ns, x.synchronises, x.late, x.members);
}

template <class Archive>
static void Fields(Archive& a, Traffic& x) {
  a(x.group, x.source, x.destination, x.bytes, x.calls);
}

template <class Archive>
static void Fields(Archive& a, MeasuredLoss& x) {
  a(x.group, x.sequence, x.kind, x.rank, x.inside);
}

template <class Archive>
static void Fields(Archive& a, MeasuredGroup& x) {
  a(x.key, x.name, x.ranks, x.description, x.size, x.present);
}

template <class Archive>
static void Fields(Archive& a, Measured& x) {
  a(x.groups, x.calls, x.traffic, x.lost);
}

template <class Archive>
static void Fields(Archive& a, ClockFit& x) {
  a(x.rank, x.reference, x.origin_ns, x.offset_ns, x.drift, x.drift_error,
    x.spread_ns, x.largest_ns, x.calls);
}

std::string EncodeMeasured(const std::vector<Measured>& list) {
  Encoder out;
  out(list);
  return out.Take();
}

bool DecodeMeasured(std::string_view bytes, std::vector<Measured>& list) {
  Decoder in(bytes);
  std::vector<Measured> read;
  in(read);
  if (!in.ok() || !in.at_end()) return false;
  std::move(read.begin(), read.end(), std::back_inserter(list));
  return true;
}

std::string EncodeFits(const std::vector<ClockFit>& fits) {
  Encoder out;
  out(fits);
  return out.Take();
}

bool DecodeFits(std::string_view bytes, std::vector<ClockFit>& fits) {
  Decoder in(bytes);
  std::vector<ClockFit> read;
  in(read);
  if (!in.ok() || !in.at_end()) return false;
  fits.insert(fits.end(), read.begin(), read.end());
  return true;
}

namespace {

// Theil and Sen: the median of the slopes of all pairs.
void Fit(LinkSeries& series) {
  const auto& sizes = series.sizes;
  // Sizes that are nearly the same say nothing about the slope.
  if (sizes.size() < 2 ||
      sizes.back().link_bytes < 2 * sizes.front().link_bytes)
    return;
  std::vector<double> slopes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (size_t j = i + 1; j < sizes.size(); ++j) {
      slopes.push_back(
          static_cast<double>(sizes[j].transfer_ns - sizes[i].transfer_ns) /
          (sizes[j].link_bytes - sizes[i].link_bytes));
    }
  }
  const double slope = Median(slopes);
  if (!(slope > 0)) return;
  std::vector<double> rests;
  for (const LinkSize& size : sizes) {
    rests.push_back(static_cast<double>(size.transfer_ns) -
                    slope * size.link_bytes);
  }
  series.bytes_per_ns = 1 / slope;
  series.latency_ns = std::max(0.0, Median(rests));
}

}  // namespace

std::vector<LinkSeries> FindLinks(const Measured& measured) {
  using Key = std::tuple<std::string_view, CollectiveKind, int64_t>;
  std::map<Key, std::map<int64_t, std::vector<int64_t>>> found;
  for (const MeasuredCall& call : measured.calls) {
    const bool whole = static_cast<int64_t>(call.members.size()) >= call.ranks;
    if (!call.comparable() || !whole || call.bytes <= 0 ||
        call.transfer_ns <= 0 || BusFactor(call.kind, call.ranks) <= 0)
      continue;
    const MeasuredGroup& group = measured.groups[call.group];
    const std::string_view name =
        group.description.empty() ? group.name : group.description;
    found[Key{name, call.kind, call.ranks}][call.bytes].push_back(
        call.transfer_ns);
  }
  std::vector<LinkSeries> out;
  for (auto& [key, sizes] : found) {
    LinkSeries series;
    series.description = std::get<0>(key);
    series.kind = std::get<1>(key);
    series.ranks = std::get<2>(key);
    for (auto& [bytes, times] : sizes) {
      std::sort(times.begin(), times.end());
      series.sizes.push_back(
          {bytes,
           static_cast<double>(bytes) * BusFactor(series.kind, series.ranks),
           times[times.size() / 2], times.size()});
    }
    Fit(series);
    out.push_back(std::move(series));
  }
  return out;
}

}  // namespace lamina::dist
