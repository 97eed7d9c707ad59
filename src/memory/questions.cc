// SPDX-License-Identifier: Apache-2.0
#include "memory/questions.h"

#include <algorithm>
#include <map>
#include <re2/re2.h>

#include "rules/pattern_compiler.h"

namespace lamina::memory {
namespace {

// Ends of annotations whose name matches, as steps.
std::vector<Step> StepsOfAnnotations(const Device& device, const RE2& pattern) {
  const Snapshot& snapshot = device.snapshot();
  std::vector<std::pair<int64_t, const Annotation*>> ends;
  for (const Annotation& a : snapshot.annotations) {
    const std::string_view name = snapshot.strings[a.name];
    if (a.end && a.device == device.ordinal() && a.time_us != kNoTime &&
        RE2::PartialMatch({name.data(), name.size()}, pattern))
      ends.emplace_back(a.time_us, &a);
  }
  std::stable_sort(ends.begin(), ends.end(), [](const auto& a, const auto& b) {
    return a.first < b.first;
  });
  std::vector<Step> out;
  for (const auto& [time, a] : ends)
    out.push_back(
        {std::string(snapshot.strings[a->name]), device.MomentAt(time)});
  return out;
}

bool HasDigit(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

// A text of the user that changes and holds a number: a step ends before the
// first event with another one.
std::vector<Step> StepsOfMetadata(const Device& device) {
  const Snapshot& snapshot = device.snapshot();
  const Events& events = device.events();
  std::vector<Step> out;
  StringId last = StringPool::kEmpty;
  for (size_t i = 0; i < events.count(); ++i) {
    const StringId now = snapshot.tags[events.tag[i]].user_metadata;
    if (now == last) continue;
    if (HasDigit(snapshot.strings[last]))
      out.push_back(
          {std::string(snapshot.strings[last]), static_cast<Moment>(i)});
    last = now;
  }
  if (out.empty()) return out;
  if (HasDigit(snapshot.strings[last]))
    out.push_back({std::string(snapshot.strings[last]), device.moments()});
  return out;
}

// Maximal runs of allocations in steps of an optimizer.
std::vector<Step> StepsOfOptimizer(const Device& device,
                                   const Attribution& attribution) {
  const Events& events = device.events();
  std::vector<Step> out;
  Moment last = -1;
  const auto end = [&] {
    if (last >= 0)
      out.push_back(
          {"optimizer phase " + std::to_string(out.size()), last + 1});
    last = -1;
  };
  for (size_t i = 0; i < events.count(); ++i) {
    if (events.action[i] != Action::kAlloc) continue;
    const Allocation& a = device.allocations()[device.AllocationOf(i)];
    if (attribution.Of(a).optimizer)
      last = static_cast<Moment>(i);
    else
      end();
  }
  end();
  return out;
}

}  // namespace

Result<Steps> FindSteps(const Device& device, const Attribution& attribution,
                        const std::string& pattern) {
  Steps out;
  const auto of = [&](const std::string& text) {
    return StepsOfAnnotations(device, RE2(text, rules::QuietPatterns(1 << 20)));
  };
  if (!pattern.empty()) {
    std::unique_ptr<RE2> compiled;
    rules::PatternCompiler compiler;
    std::string wrong = compiler.Compile(pattern, pattern, compiled);
    if (!wrong.empty())
      return Fail(UsageError("--steps: " + wrong, "write it in RE2 syntax"));
    out.steps = StepsOfAnnotations(device, *compiled);
    out.source = "--steps";
    return out;
  }
  for (const char* usual : {R"(^ProfilerStep#\d+$)", R"(^Optimizer\.step#)"}) {
    out.steps = of(usual);
    out.source = "annotations";
    if (!out.steps.empty()) return out;
  }
  out.steps = StepsOfMetadata(device);
  out.source = "user_metadata";
  if (!out.steps.empty()) return out;
  out.steps = StepsOfOptimizer(device, attribution);
  out.source = out.steps.empty() ? "" : "optimizer";
  return out;
}

std::vector<Leak> FindLeaks(const Device& device, const Steps& steps,
                            size_t least_steps) {
  const size_t count = steps.steps.size();
  if (count < std::max<size_t>(least_steps, 3)) return {};
  std::vector<Moment> ends;
  for (const Step& step : steps.steps) ends.push_back(step.end);
  struct Change {
    size_t step;
    int64_t bytes;
    int64_t blocks;
  };
  struct Growth {
    std::vector<Change> changes;
    uint32_t allocation = 0;
  };
  std::map<uint32_t, Growth> stacks;
  for (uint32_t id = 0; id < device.allocations().size(); ++id) {
    const Allocation& a = device.allocations()[id];
    if (a.before()) continue;
    const auto first = static_cast<size_t>(
        std::lower_bound(ends.begin(), ends.end(), a.start + 1) - ends.begin());
    const auto last = static_cast<size_t>(
        std::upper_bound(ends.begin(), ends.end(), a.active_until) -
        ends.begin());
    if (first >= last) continue;
    Growth& growth = stacks[a.stack];
    if (growth.changes.empty()) growth.allocation = id;
    growth.changes.push_back({first, a.bytes, 1});
    if (last < count) growth.changes.push_back({last, -a.bytes, -1});
  }
  std::vector<Leak> out;
  std::vector<int64_t> bytes(count), blocks(count);
  for (const auto& [stack, growth] : stacks) {
    std::fill(bytes.begin(), bytes.end(), 0);
    std::fill(blocks.begin(), blocks.end(), 0);
    for (const Change& change : growth.changes) {
      bytes[change.step] += change.bytes;
      blocks[change.step] += change.blocks;
    }
    for (size_t k = 1; k < count; ++k) {
      bytes[k] += bytes[k - 1];
      blocks[k] += blocks[k - 1];
    }
    const size_t first = count >= 4 ? 1 : 0;
    Leak leak;
    bool falls = false;
    std::map<int64_t, size_t> usual;  // how often so many blocks came
    for (size_t k = first + 1; k < count; ++k) {
      falls |= bytes[k] < bytes[k - 1];
      leak.grown_steps += bytes[k] > bytes[k - 1];
      ++usual[blocks[k] - blocks[k - 1]];
    }
    const size_t changes = count - first - 1;
    if (falls || leak.grown_steps * 2 <= changes || leak.grown_steps < 2)
      continue;
    size_t most = 0;
    for (const auto& [n, times] : usual) {
      if (times < most) continue;
      most = times;
      leak.blocks_per_step = n;
    }
    leak.stack = stack;
    leak.allocation = growth.allocation;
    leak.first_bytes = bytes[first];
    leak.last_bytes = bytes[count - 1];
    leak.steps = count - first;
    leak.bytes_per_step =
        static_cast<double>(leak.last_bytes - leak.first_bytes) /
        static_cast<double>(changes);
    leak.confidence = changes == most       ? Confidence::kHigh
                      : changes - most == 1 ? Confidence::kMedium
                                            : Confidence::kLow;
    const auto category =
        static_cast<Category>(device.allocations()[leak.allocation].category);
    leak.expected = category == Category::kParameter ||
                    category == Category::kKvCache ||
                    category == Category::kWorkspace;
    out.push_back(leak);
  }
  std::sort(out.begin(), out.end(), [](const Leak& a, const Leak& b) {
    const int64_t x = a.last_bytes - a.first_bytes;
    const int64_t y = b.last_bytes - b.first_bytes;
    return x != y ? x > y : a.stack < b.stack;
  });
  return out;
}

std::vector<uint32_t> ActiveAt(const Device& device, Moment moment) {
  std::vector<uint32_t> out;
  for (uint32_t id = 0; id < device.allocations().size(); ++id) {
    if (device.allocations()[id].ActiveAt(moment)) out.push_back(id);
  }
  return out;
}

void FreeTotals::Add(const SegmentState& segment) {
  reserved += segment.range.size;
  active += segment.active;
  free += segment.free;
  ranges += segment.holes.size();
  largest = std::max(largest, segment.largest_free);
  stuck += segment.stuck;
  if (segment.active == 0) whole += segment.range.size;
  rounding += segment.active - segment.requested;
  unsplit += segment.unsplit;
  for (const FreeRange& hole : segment.holes)
    squares += static_cast<double>(hole.size) * static_cast<double>(hole.size);
}

double FreeTotals::fragmentation_percent() const {
  if (free == 0) return 0;
  return 100.0 *
         (1.0 - static_cast<double>(largest) / static_cast<double>(free));
}

FreeTotals TotalsOf(const std::vector<SegmentState>& segments) {
  FreeTotals out;
  for (const SegmentState& segment : segments) out.Add(segment);
  return out;
}

std::vector<SegmentState> StateAt(const Device& device, Moment moment) {
  std::vector<uint32_t> active = ActiveAt(device, moment);
  const auto& all = device.allocations();
  std::sort(active.begin(), active.end(), [&](uint32_t a, uint32_t b) {
    return all[a].address != all[b].address ? all[a].address < all[b].address
                                            : a < b;
  });
  std::vector<SegmentState> out;
  size_t next = 0;
  for (const Range& range : device.RangesAt(moment)) {
    SegmentState& segment = out.emplace_back();
    segment.range = range;
    while (next < active.size() && all[active[next]].address < range.address)
      ++next;
    int64_t at = range.address;
    const auto hole = [&](int64_t to) {
      if (to <= at) return;
      segment.holes.push_back({at, to - at});
      segment.free += to - at;
      segment.largest_free = std::max(segment.largest_free, to - at);
    };
    for (; next < active.size() && all[active[next]].address < range.end();
         ++next) {
      const Allocation& a = all[active[next]];
      hole(a.address);
      segment.blocks.push_back(active[next]);
      segment.active += a.bytes;
      segment.requested += a.requested;
      const int64_t rounded = device.allocator().Rounded(a.requested);
      if (a.bytes > rounded) segment.unsplit += a.bytes - rounded;
      at = std::max(at, a.address + a.bytes);
    }
    hole(range.end());
    if (segment.active == 0) continue;
    segment.stuck = segment.free;
    if (!range.expandable) continue;
    // Whole pages of an expandable segment can go back to the driver.
    const AllocatorRules& rules = device.allocator().rules();
    const int64_t page =
        range.small ? rules.small_segment : rules.large_segment;
    for (const FreeRange& free : segment.holes) {
      const int64_t first =
          (free.address - range.address + page - 1) / page * page;
      const int64_t last =
          (free.address + free.size - range.address) / page * page;
      if (last > first) segment.stuck -= last - first;
    }
  }
  // Born: by the events before.
  std::map<int64_t, Moment> born;
  const Events& events = device.events();
  for (Moment i = 0; i < moment; ++i) {
    const auto k = static_cast<size_t>(i);
    if (events.action[k] == Action::kSegmentAlloc ||
        events.action[k] == Action::kSegmentMap)
      born[events.address[k]] = i;
  }
  for (SegmentState& segment : out) {
    const auto it = born.find(segment.range.address);
    if (it != born.end()) segment.range.born = it->second;
  }
  return out;
}

int64_t PeakWithout(const Device& device,
                    const std::vector<uint32_t>& allocations) {
  std::vector<std::pair<Moment, int64_t>> changes;
  for (const uint32_t id : allocations) {
    const Allocation& a = device.allocations()[id];
    changes.emplace_back(a.start + 1, -a.bytes);
    if (a.freed() && a.active_until < device.moments())
      changes.emplace_back(a.active_until + 1, a.bytes);
  }
  std::sort(changes.begin(), changes.end());
  int64_t best = 0;
  int64_t gone = 0;
  Moment from = 0;
  for (size_t i = 0; i <= changes.size(); ++i) {
    const Moment to =
        i < changes.size() ? changes[i].first - 1 : device.moments();
    if (to >= from)
      best = std::max(best, device.HighestActive(from, to) + gone);
    if (i == changes.size()) break;
    gone += changes[i].second;
    from = std::max(from, changes[i].first);
  }
  return best;
}

}  // namespace lamina::memory
