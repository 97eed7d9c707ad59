// SPDX-License-Identifier: Apache-2.0
#include "trace/repair_times.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"

namespace lamina::trace {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// --- time stamps far from all others ---

// Closer than this, or than this many windows, is a pause, no outlier.
constexpr int64_t kLeastFarNs = 10 * kSecond;
constexpr int64_t kFarWindows = 20;
// Where no host event can say whether something happened there: pauses of
// programs are shorter.
constexpr int64_t kHourNs = 3600 * kSecond;
constexpr int64_t kFarWindowsAlone = 100;
// Outliers are few.
constexpr size_t kFewAtLeast = 4;
constexpr size_t kFewPart = 50;

struct Cluster {
  size_t begin = 0, end = 0;  // places in the order of starts
  size_t size() const { return end - begin; }
};

// The slices that `take` names, by start.
template <class Take>
std::vector<uint32_t> ByStart(const Slices& slices, const Take& take) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (take(slices.kind[i])) out.push_back(i);
  }
  const auto earlier = [&](uint32_t a, uint32_t b) {
    return slices.start_ns[a] < slices.start_ns[b];
  };
  if (!std::is_sorted(out.begin(), out.end(), earlier))
    std::stable_sort(out.begin(), out.end(), earlier);
  return out;
}

// Whether half of the slices lie in so small a part of the whole time that the
// others may be outliers: most traces are done with one pass.
template <class Take>
bool AreCrowded(const Slices& slices, const Take& take) {
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = std::numeric_limits<int64_t>::min();
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (!take(slices.kind[i])) continue;
    first = std::min(first, slices.start_ns[i]);
    last = std::max(last, slices.start_ns[i]);
  }
  if (last - first <= kLeastFarNs) return false;
  constexpr int64_t kBuckets = 64;
  // The largest cluster is a kFarWindows-th of the whole at most.
  constexpr size_t kWide = kBuckets / kFarWindows + 2;
  const int64_t width = (last - first) / kBuckets + 1;
  std::array<size_t, kBuckets> counts{};
  size_t all = 0;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (!take(slices.kind[i])) continue;
    ++counts[static_cast<size_t>((slices.start_ns[i] - first) / width)];
    ++all;
  }
  size_t inside = 0;
  for (size_t b = 0; b < counts.size(); ++b) {
    inside += counts[b];
    if (b >= kWide) inside -= counts[b - kWide];
    if (2 * inside >= all) return true;
  }
  return false;
}

// Parts without a start for `kLeastFarNs` between them.
std::vector<Cluster> Clusters(const Slices& slices,
                              const std::vector<uint32_t>& order) {
  std::vector<Cluster> out;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 ||
        slices.start_ns[order[i]] - slices.start_ns[order[i - 1]] > kLeastFarNs)
      out.push_back({i, i});
    out.back().end = i + 1;
  }
  return out;
}

// How far a cluster lies from the largest one, in the direction of time.
struct Outlier {
  uint32_t slice = 0;
  int64_t off_ns = 0;
};

class OutlierSearch {
 public:
  explicit OutlierSearch(const Trace& trace)
      : trace_(trace), slices_(trace.slices) {}

  std::vector<Outlier> Find() {
    const auto is_host = [](Kind kind) {
      return !IsDevice(kind) && kind != Kind::kGpuAnnotation &&
             kind != Kind::kOther && kind != Kind::kProfiler;
    };
    const auto is_device = [](Kind kind) {
      return IsDevice(kind) || kind == Kind::kGpuAnnotation;
    };
    const bool host = AreCrowded(slices_, is_host);
    const bool on_device = AreCrowded(slices_, is_device);
    if (!host && !on_device) return {};
    host_ = ByStart(slices_, is_host);
    Part(host_, [](int64_t far_ns, int64_t window_ns, bool, const Cluster&) {
      return far_ns > kHourNs && far_ns / kFarWindowsAlone > window_ns;
    });
    std::vector<uint32_t> out;
    for (const Outlier& outlier : out_) out.push_back(outlier.slice);
    std::sort(out.begin(), out.end());
    std::erase_if(host_, [&](uint32_t i) {
      return std::binary_search(out.begin(), out.end(), i);
    });
    const std::vector<uint32_t> device = ByStart(slices_, is_device);
    Part(device, [&](int64_t far_ns, int64_t window_ns, bool zero,
                     const Cluster& cluster) {
      if (far_ns / kFarWindows <= window_ns) return false;
      if (zero) return true;
      if (host_.empty())
        return far_ns > kHourNs && far_ns / kFarWindowsAlone > window_ns;
      return !HostWorked(slices_.start_ns[device[cluster.begin]],
                         slices_.start_ns[device[cluster.end - 1]]);
    });
    return std::move(out_);
  }

 private:
  bool HostWorked(int64_t from_ns, int64_t to_ns) const {
    const auto at = std::lower_bound(
        host_.begin(), host_.end(), from_ns - kSecond,
        [&](uint32_t i, int64_t ns) { return slices_.start_ns[i] < ns; });
    return at != host_.end() && slices_.start_ns[*at] <= to_ns + kSecond;
  }

  // Small clusters for which `is_wrong` says so.
  template <class Wrong>
  void Part(const std::vector<uint32_t>& order, const Wrong& is_wrong) {
    const std::vector<Cluster> clusters = Clusters(slices_, order);
    if (clusters.size() < 2) return;
    const Cluster main = *std::max_element(
        clusters.begin(), clusters.end(),
        [](const Cluster& a, const Cluster& b) { return a.size() < b.size(); });
    const int64_t first = slices_.start_ns[order[main.begin]];
    const int64_t last = slices_.start_ns[order[main.end - 1]];
    for (const Cluster& cluster : clusters) {
      if (cluster.begin == main.begin) continue;
      const int64_t start = slices_.start_ns[order[cluster.begin]];
      const int64_t end = slices_.start_ns[order[cluster.end - 1]];
      const bool before = end < first;
      const int64_t far_ns = before ? first - end : start - last;
      const bool zero = start == 0 && end == 0;
      const size_t few = zero ? order.size() / 2
                              : std::max(kFewAtLeast, order.size() / kFewPart);
      if (cluster.size() > few || 2 * cluster.size() >= order.size() ||
          !is_wrong(far_ns, last - first, zero, cluster))
        continue;
      for (size_t i = cluster.begin; i < cluster.end; ++i)
        out_.push_back({order[i], before ? -far_ns : far_ns});
    }
  }

  const Trace& trace_;
  const Slices& slices_;
  std::vector<uint32_t> host_;
  std::vector<Outlier> out_;
};

// "12.0 days" where HumanTime would give a million seconds.
std::string LongTime(int64_t ns) {
  constexpr int64_t kDayNs = 24 * kHourNs;
  const auto whole = [](int64_t n) { return GroupDigits(n); };
  if (ns >= 3 * kDayNs) return whole(ns / kDayNs) + " days";
  if (ns >= 3 * kHourNs) return whole(ns / kHourNs) + " hours";
  return HumanTime(ns);
}

std::string NamedEvent(const Trace& trace, uint32_t slice) {
  return Shorten(trace.Name(SliceId(slice)), 60) + " (event " +
         std::to_string(trace.slices.uid[slice]) + ")";
}

void LeaveOut(Trace& trace, std::vector<Outlier> outliers) {
  if (outliers.empty()) return;
  std::sort(
      outliers.begin(), outliers.end(),
      [](const Outlier& a, const Outlier& b) { return a.slice < b.slice; });
  Slices& slices = trace.slices;
  const Outlier first = outliers.front();
  const std::string text =
      Counted(outliers.size(), "event") +
      (outliers.size() == 1 ? " has a time stamp" : " have time stamps") +
      " far from all others and " + (outliers.size() == 1 ? "is" : "are") +
      " left out: the window is that of the rest. The first is " +
      NamedEvent(trace, first.slice) + "." + std::string(kAsRecorded) +
      LongTime(first.off_ns < 0 ? -first.off_ns : first.off_ns) +
      (first.off_ns < 0 ? " before" : " after") + " the rest.";
  size_t next = 0;
  size_t to = 0;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (next < outliers.size() && outliers[next].slice == i) {
      ++next;
      trace.diagnostics.Add(Effect::kLost, kTimeOutlier, text,
                            slices.offset[i]);
      continue;
    }
    slices.MoveRow(i, to++);
  }
  slices.Truncate(to);
}

// --- clocks ---

// Profilers join their clocks to a few microseconds: below this nothing is
// moved.
constexpr int64_t kClockErrorNs = 5'000;
// No first work waits that long after its launch has returned.
constexpr int64_t kLongestWaitNs = kSecond;
// Fewer pairs show no clock.
constexpr size_t kFewestPairs = 4;
// No clock runs faster or slower than another by more than this part: delays
// that grow faster are those of a queue.
constexpr double kMostDrift = 0.02;

// A launch and the work that it launched.
struct Pair {
  int64_t call_start = 0, call_end = 0;
  int64_t work_start = 0, work_end = 0;
};

// Pairs of one device, whose clock is one.
struct DevicePairs {
  StringId pid;
  int64_t device = 0;
  std::vector<Pair> pairs;
  StringId host;  // process of the calls; invalid: several
  bool one_host = true;
};

struct Sync {
  int64_t start = 0, end = 0;
  StringId pid;
};

// How far the clock of a device is behind that of the host.
struct Skew {
  int64_t at_ns = 0;  // by the device
  double ns = 0;      // there
  double drift = 0;   // per ns after it

  int64_t Of(int64_t start_ns) const {
    return static_cast<int64_t>(
        std::floor(ns + drift * static_cast<double>(start_ns - at_ns)));
  }
};

class ClockRepair {
 public:
  explicit ClockRepair(Trace& trace) : trace_(trace) {}

  void Run() {
    if (trace_.device.empty() || trace_.api_calls.empty()) return;
    FindCalls();
    if (calls_.empty()) return;
    FindPairs();
    for (DevicePairs& device : devices_) Judge(device);
  }

 private:
  struct Call {
    uint32_t slice = 0;
    bool shared = false;  // by calls of several threads: whose is not known
  };

  void FindCalls() {
    const Slices& slices = trace_.slices;
    absl::flat_hash_map<uint32_t, bool> is_sync;
    for (uint32_t i = 0; i < slices.size(); ++i) {
      const ApiArgs* const api = trace_.Api(SliceId(i));
      if (api == nullptr) continue;
      const auto [known, is_new] =
          is_sync.try_emplace(slices.name[i].value, false);
      if (is_new) {
        const std::string_view name = trace_.Name(SliceId(i));
        known->second = name.starts_with("cudaDeviceSynchronize") ||
                        name.starts_with("hipDeviceSynchronize");
      }
      if (known->second) {
        syncs_.push_back({slices.start_ns[i],
                          slices.start_ns[i] + slices.dur_ns[i],
                          trace_.TrackOf(SliceId(i)).pid});
      }
      const int64_t key = api->correlation;
      if (key == kNoInt || key == 0) continue;
      const auto [it, fresh] = calls_.try_emplace(key, Call{i, false});
      if (fresh) continue;
      Call& call = it->second;
      call.shared |= slices.track[call.slice] != slices.track[i];
      if (slices.start_ns[i] < slices.start_ns[call.slice]) call.slice = i;
    }
  }

  void FindPairs() {
    const Slices& slices = trace_.slices;
    for (uint32_t i = 0; i < slices.size(); ++i) {
      const DeviceArgs* const args = trace_.Device(SliceId(i));
      if (args == nullptr) continue;
      const auto call = calls_.find(args->correlation);
      if (call == calls_.end() || call->second.shared) continue;
      const uint32_t c = call->second.slice;
      DevicePairs& of = Of(trace_.TrackOf(SliceId(i)).pid, args->device);
      const StringId host = trace_.TrackOf(SliceId(c)).pid;
      if (!of.host.valid()) of.host = host;
      of.one_host &= of.host == host;
      of.pairs.push_back(
          {slices.start_ns[c], slices.start_ns[c] + slices.dur_ns[c],
           slices.start_ns[i], slices.start_ns[i] + slices.dur_ns[i]});
    }
  }

  DevicePairs& Of(StringId pid, int64_t device) {
    for (DevicePairs& known : devices_) {
      if (known.pid == pid && known.device == device) return known;
    }
    devices_.push_back({pid, device, {}, {}, true});
    return devices_.back();
  }

  void Judge(DevicePairs& device) {
    std::vector<Pair>& pairs = device.pairs;
    if (pairs.size() < kFewestPairs) return;
    std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
      return std::pair(a.call_start, a.work_start) <
             std::pair(b.call_start, b.work_start);
    });
    int64_t least = std::numeric_limits<int64_t>::max();
    int64_t least_after = least;
    size_t early = 0;
    for (const Pair& p : pairs) {
      least = std::min(least, p.work_start - p.call_start);
      least_after = std::min(least_after, p.work_start - p.call_end);
      early += p.work_start - p.call_start < -kClockErrorNs;
    }
    if (early > 0 && least < -kClockErrorNs) {
      // A few of very many are single bad records, no clock.
      if (early < std::max<size_t>(2, pairs.size() / 1000)) return;
      Move(device, least, early,
           GroupDigits(static_cast<int64_t>(early)) + " of " +
               Counted(pairs.size(), "device event") +
               (early == 1 ? " begins" : " begin") +
               " before the call that launched " +
               (early == 1 ? "it" : "them") + ", by up to " + LongTime(-least));
      return;
    }
    if (least_after > kLongestWaitNs) {
      Move(device, least, pairs.size(),
           "every device event begins " + LongTime(least) +
               " or more after the call that launched it");
      return;
    }
    Late(device, least);
  }

  // Device times by the least that cause and effect ask for: by one amount, or,
  // where clocks drift, by one that grows with time.
  void Move(DevicePairs& device, int64_t least_ns, size_t count,
            const std::string& why) {
    const std::optional<Skew> skew = Drifting(device.pairs);
    if (!skew) {
      Shift(device, -least_ns, count, why);
      return SayDrift(device.pairs);
    }
    int64_t first = std::numeric_limits<int64_t>::max();
    int64_t last = std::numeric_limits<int64_t>::min();
    for (const Pair& p : device.pairs) {
      first = std::min(first, p.work_start);
      last = std::max(last, p.work_start);
    }
    const int64_t begin = -skew->Of(first), end = -skew->Of(last);
    MoveDevice(device, [&](int64_t start) { return -skew->Of(start); });
    Say(count, why,
        Signed(begin) + " at their begin and " + Signed(end) + " at their end");
    trace_.diagnostics.Add(
        Effect::kOddity, kClocksDrift,
        "The clock of the device drifts against the host's: the shortest delay "
        "between launch and work changes by " +
            Signed(begin - end) +
            " over the recording. Device times were shifted by what each time "
            "asks for; latencies are true to the shortest delay.");
  }

  // How the shortest delays of the first and the last third of the launches
  // differ, where no line joins them.
  void SayDrift(const std::vector<Pair>& pairs) {
    const size_t third = pairs.size() / 3;
    if (third < 2) return;
    const auto least = [&](size_t from) {
      int64_t out = std::numeric_limits<int64_t>::max();
      for (size_t i = from; i < from + third; ++i)
        out = std::min(out, pairs[i].work_start - pairs[i].call_start);
      return out;
    };
    const int64_t drift = least(pairs.size() - third) - least(0);
    if (drift > -kClockErrorNs && drift < kClockErrorNs) return;
    trace_.diagnostics.Add(
        Effect::kOddity, kClocksDrift,
        "The clock of the device may drift against the host's: the shortest "
        "delay between launch and work changes by " +
            Signed(drift) + " over the recording. Latencies are true to that.");
  }

  static std::string Signed(int64_t ns) {
    return (ns < 0 ? "-" : "+") + LongTime(ns < 0 ? -ns : ns);
  }

  // The line below all delays that is the highest in the middle of the
  // recording: an edge of their lower hull. Nothing unless an idle device shows
  // it in the first and in the last third, and it is steep enough to be seen.
  static std::optional<Skew> Drifting(const std::vector<Pair>& pairs) {
    using Point = std::pair<int64_t, int64_t>;  // begin of work, delay
    std::vector<Point> points;
    for (const Pair& p : pairs)
      points.emplace_back(p.work_start, p.work_start - p.call_start);
    std::sort(points.begin(), points.end());
    const int64_t first = points.front().first, last = points.back().first;
    const auto rise = [](const Point& from, const Point& to) {
      return static_cast<double>(to.second - from.second) /
             static_cast<double>(std::max<int64_t>(1, to.first - from.first));
    };
    std::vector<Point> hull;
    for (const Point& point : points) {
      while (!hull.empty() &&
             (hull.back().first == point.first
                  ? hull.back().second >= point.second
                  : hull.size() > 1 &&
                        rise(hull[hull.size() - 2], point) <=
                            rise(hull[hull.size() - 2], hull.back())))
        hull.pop_back();
      if (hull.empty() || hull.back().first != point.first)
        hull.push_back(point);
    }
    const int64_t middle = first + (last - first) / 2;
    const auto behind =
        std::find_if(hull.begin(), hull.end(),
                     [&](const Point& point) { return point.first > middle; });
    if (behind == hull.begin() || behind == hull.end()) return std::nullopt;
    const Point from = *std::prev(behind);
    const Skew skew{from.first, static_cast<double>(from.second),
                    rise(from, *behind)};
    const int64_t change = skew.Of(last) - skew.Of(first);
    if (std::abs(skew.drift) > kMostDrift || std::abs(change) <= kClockErrorNs)
      return std::nullopt;
    // How far the shortest delay of a part lies above the line.
    const auto above = [&](int64_t begin, int64_t end) {
      int64_t least = std::numeric_limits<int64_t>::max();
      for (const auto& [start, delay] : points) {
        if (begin <= start && start <= end)
          least = std::min(least, delay - skew.Of(start));
      }
      return least;
    };
    const int64_t third = (last - first) / 3;
    const int64_t near = std::max(kClockErrorNs, std::abs(change) / 8);
    return above(first, first + third) <= near &&
                   above(last - third, last) <= near
               ? std::optional(skew)
               : std::nullopt;
  }

  // Work that ends after a call returned that waited for it.
  void Late(const DevicePairs& device, int64_t room_ns) {
    if (!device.one_host || DevicesOf(device.host) != 1) return;
    std::sort(syncs_.begin(), syncs_.end(),
              [](const Sync& a, const Sync& b) { return a.start < b.start; });
    size_t next = 0;
    int64_t last_end = std::numeric_limits<int64_t>::min();
    size_t judged = 0, violated = 0;
    int64_t most = 0;
    for (const Sync& sync : syncs_) {
      if (sync.pid != device.host) continue;
      const size_t before = next;
      while (next < device.pairs.size() &&
             device.pairs[next].call_end <= sync.start) {
        last_end = std::max(last_end, device.pairs[next].work_end);
        ++next;
      }
      if (next == before) continue;
      ++judged;
      const int64_t late = last_end - sync.end;
      violated += late > kClockErrorNs;
      most = std::max(most, late);
    }
    if (judged < 2 || 2 * violated < judged || most <= kClockErrorNs) return;
    // Work may move back only as far as its launches allow.
    Shift(device, -std::min(most, std::max<int64_t>(0, room_ns)), violated,
          "after " + GroupDigits(static_cast<int64_t>(violated)) + " of " +
              Counted(judged, "synchronisation") +
              " work still runs that it waited for, for up to " +
              LongTime(most));
  }

  size_t DevicesOf(StringId host) const {
    return static_cast<size_t>(
        std::count_if(devices_.begin(), devices_.end(),
                      [&](const DevicePairs& d) { return d.host == host; }));
  }

  void Shift(const DevicePairs& device, int64_t by_ns, size_t count,
             const std::string& why) {
    MoveDevice(device, [&](int64_t) { return by_ns; });
    Say(count, why, Signed(by_ns));
  }

  void Say(size_t count, const std::string& why, const std::string& by) {
    trace_.diagnostics.Add(
        Effect::kRepaired, kClocksDisagree,
        "The clocks of host and device disagree: " + why +
            ". Device times were shifted by " + by +
            ", the least that cause and effect ask for: latencies and causes "
            "of idle time are bounds, kernel times are exact.",
        Diagnostics::kNoOffset, count);
  }

  // Moves what a device did by what `by` says of its begin. Durations stay, and
  // work that came one after the other on a track still does: where there is no
  // room it follows at once.
  template <class By>
  void MoveDevice(const DevicePairs& device, const By& by) {
    Slices& slices = trace_.slices;
    std::vector<std::vector<uint32_t>> work(trace_.tracks.size());
    for (uint32_t i = 0; i < slices.size(); ++i) {
      const bool range = slices.kind[i] == Kind::kGpuAnnotation;
      const DeviceArgs* const args = trace_.Device(SliceId(i));
      if (!range && (args == nullptr || args->device != device.device))
        continue;
      if (trace_.TrackOf(SliceId(i)).pid != device.pid) continue;
      if (range) {
        slices.start_ns[i] += by(slices.start_ns[i]);
      } else {
        work[slices.track[i].value].push_back(i);
      }
    }
    std::vector<Moves> moves;
    for (std::vector<uint32_t>& track : work)
      moves.push_back(MoveTrack(std::move(track), by));
    Flows& flows = trace_.flows;
    for (size_t f = 0; f < flows.size(); ++f) {
      const Moves& own = moves[flows.track[f].value];
      if (own.empty()) continue;
      const auto behind = std::upper_bound(
          own.begin(), own.end(), flows.time_ns[f],
          [](int64_t time, const auto& move) { return time < move.first; });
      flows.time_ns[f] +=
          (behind == own.begin() ? *behind : *std::prev(behind)).second;
    }
  }

  // Starts as recorded, with by how much each was moved.
  using Moves = std::vector<std::pair<int64_t, int64_t>>;

  template <class By>
  Moves MoveTrack(std::vector<uint32_t> work, const By& by) {
    Slices& slices = trace_.slices;
    std::stable_sort(work.begin(), work.end(), [&](uint32_t a, uint32_t b) {
      return slices.start_ns[a] < slices.start_ns[b];
    });
    Moves moves;
    int64_t reached = std::numeric_limits<int64_t>::min();  // as recorded
    int64_t free = reached;                                 // now
    for (const uint32_t i : work) {
      const int64_t start = slices.start_ns[i];
      int64_t to = start + by(start);
      if (reached <= start) to = std::max(to, free);
      moves.emplace_back(start, to - start);
      reached = std::max(reached, start + slices.dur_ns[i]);
      free = std::max(free, to + slices.dur_ns[i]);
      slices.start_ns[i] = to;
    }
    return moves;
  }

  Trace& trace_;
  absl::flat_hash_map<int64_t, Call> calls_;
  std::vector<Sync> syncs_;
  std::vector<DevicePairs> devices_;
};

// --- durations ---

// An event that cannot have lasted: this many later ones of its stream began
// and ended in it, and it is this much longer than those like it.
constexpr size_t kRunOver = 5;
constexpr int64_t kTimesLonger = 10;
// Shorter overlaps are the drain of a kernel or the error of a clock.
constexpr int64_t kLeastOverlapNs = 50'000;
// How many later events are looked at before one is suspected.
constexpr size_t kMostLooks = 1024;

class DurationRepair {
 public:
  explicit DurationRepair(Trace& trace) : trace_(trace) {}

  void Run() {
    for (const Stream& stream : trace_.streams) {
      if (stream.stream == kNoInt) continue;  // no stream was recorded
      Look(stream.slices);
    }
    if (!count_) return;
    trace_.diagnostics.Add(
        Effect::kRepaired, kImpossibleDuration,
        Counted(count_, "device event") +
            (count_ == 1 ? " has a duration" : " have durations") +
            " that cannot be: work of a stream runs in order, but " + text_,
        offset_, count_);
  }

 private:
  void Look(const std::vector<SliceId>& stream) {
    std::vector<size_t> suspects;  // places
    // Where many events hold others, the tracks are no streams.
    const size_t most = std::max<size_t>(2, stream.size() / 50);
    for (size_t i = 0; i + kRunOver < stream.size(); ++i) {
      if (RunOver(stream, i, kMostLooks) < kRunOver) continue;
      suspects.push_back(i);
      if (suspects.size() > most) return;
    }
    if (suspects.empty()) return;
    const auto usual = Usual(stream, suspects);
    for (const size_t at : suspects) {
      const SliceId s = stream[at];
      if (trace_.Duration(s) / kTimesLonger <=
          usual.at(trace_.slices.name[s.value].value))
        continue;
      Cap(stream, at);
    }
  }

  // Later events of other launches that begin and end inside of it, among the
  // next `looks`.
  size_t RunOver(const std::vector<SliceId>& stream, size_t at,
                 size_t looks) const {
    const SliceId s = stream[at];
    const int64_t end = trace_.End(s);
    if (end - trace_.Start(stream[at + 1]) < kLeastOverlapNs) return 0;
    // An early end of the stream's next event is the quick answer.
    if (trace_.Start(stream[at + kRunOver]) >= end) return 0;
    const DeviceArgs* const own = trace_.Device(s);
    if (trace_.KindOf(s) == Kind::kGraph) return 0;
    size_t over = 0;
    const size_t last = at + 1 + std::min(looks, stream.size() - at - 1);
    for (size_t i = at + 1; i < last; ++i) {
      if (trace_.Start(stream[i]) >= end) break;
      if (trace_.End(stream[i]) > end) continue;
      const DeviceArgs* const other = trace_.Device(stream[i]);
      // Branches of one graph run side by side.
      if (own->correlation != kNoInt && own->correlation != 0 &&
          own->correlation == other->correlation)
        continue;
      if (own->graph_id != kNoInt && own->graph_id != 0 &&
          own->graph_id == other->graph_id &&
          own->graph_node_id != other->graph_node_id)
        continue;
      ++over;
    }
    return over;
  }

  // How long events like the suspects last, by name: the median of that name
  // without suspects, else the longest of the stream.
  absl::flat_hash_map<uint32_t, int64_t> Usual(
      const std::vector<SliceId>& stream,
      const std::vector<size_t>& suspects) const {
    const auto name = [&](size_t at) {
      return trace_.slices.name[stream[at].value].value;
    };
    absl::flat_hash_map<uint32_t, std::vector<int64_t>> same;
    for (const size_t at : suspects) same.try_emplace(name(at));
    int64_t longest = 0;
    auto next = suspects.begin();
    for (size_t i = 0; i < stream.size(); ++i) {
      if (next != suspects.end() && *next == i) {
        ++next;
        continue;
      }
      longest = std::max(longest, trace_.Duration(stream[i]));
      const auto it = same.find(name(i));
      if (it != same.end()) it->second.push_back(trace_.Duration(stream[i]));
    }
    absl::flat_hash_map<uint32_t, int64_t> usual;
    for (auto& [id, durations] : same) {
      const auto middle = durations.begin() + durations.size() / 2;
      if (durations.size() >= 3)
        std::nth_element(durations.begin(), middle, durations.end());
      usual[id] = durations.size() < 3 ? longest : *middle;
    }
    return usual;
  }

  void Cap(const std::vector<SliceId>& stream, size_t at) {
    const SliceId s = stream[at];
    const size_t over = RunOver(stream, at, stream.size());
    size_t next = at + 1;  // of those that begin together none bounds it
    while (next + 1 < stream.size() &&
           trace_.Start(stream[next]) == trace_.Start(s))
      ++next;
    const int64_t capped = trace_.Start(stream[next]) - trace_.Start(s);
    if (count_++ == 0) {
      offset_ = trace_.slices.offset[s.value];
      text_ = NamedEvent(trace_, s.value) + " ends after " +
              Counted(over, "later event") +
              " of its stream. Such an event is counted until the next one "
              "begins (" +
              LongTime(capped) + ")." + std::string(kAsRecorded) +
              LongTime(trace_.Duration(s)) + ".";
    }
    trace_.slices.dur_ns[s.value] = capped;
  }

  Trace& trace_;
  uint64_t count_ = 0;
  uint64_t offset_ = Diagnostics::kNoOffset;
  std::string text_;
};

}  // namespace

void RepairStarts(Trace& trace) {
  LeaveOut(trace, OutlierSearch(trace).Find());
  ClockRepair(trace).Run();
}

void RepairDurations(Trace& trace) { DurationRepair(trace).Run(); }

}  // namespace lamina::trace
