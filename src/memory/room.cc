// SPDX-License-Identifier: Apache-2.0
//
// Why an allocation failed, what would have made room for it, and what would
// lower the peak. All of it bounds: see questions.h.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

#include "base/decimal.h"
#include "memory/questions.h"

namespace lamina::memory {
namespace {

constexpr size_t kMostCandidates = 200;
// A temporary lives less than this share of the events.
constexpr int64_t kShortLife = 100;

std::string SizeText(int64_t bytes) {
  return HumanBytes(static_cast<double>(bytes));
}

// The run of neighbouring blocks in one segment that, freed, leaves a range of
// `asked` with the fewest active bytes.
std::optional<Room> BestRun(const Device& device,
                            const std::vector<const SegmentState*>& segments,
                            int64_t asked) {
  struct Window {
    int64_t freed, address, range;
    const SegmentState* segment;
    size_t from, to;  // blocks [from, to)
    bool operator<(const Window& other) const {
      return std::tie(freed, address, range) <
             std::tie(other.freed, other.address, other.range);
    }
  };
  std::optional<Window> best;
  const auto& all = device.allocations();
  for (const SegmentState* segment : segments) {
    const size_t n = segment->blocks.size();
    const auto end_of = [&](size_t k) {  // of what stands before block k
      return k == 0 ? segment->range.address
                    : all[segment->blocks[k - 1]].address +
                          all[segment->blocks[k - 1]].bytes;
    };
    const auto start_of = [&](size_t k) {
      return k == n ? segment->range.end() : all[segment->blocks[k]].address;
    };
    size_t to = 0;
    int64_t freed = 0;
    for (size_t from = 0; from <= n; ++from) {
      if (to < from) {
        to = from;
        freed = 0;
      }
      while (to < n && start_of(to) - end_of(from) < asked)
        freed += all[segment->blocks[to++]].bytes;
      const int64_t range = start_of(to) - end_of(from);
      if (range < asked) break;
      const Window window{freed, end_of(from), range, segment, from, to};
      if (!best || window < *best) best = window;
      if (from < to) freed -= all[segment->blocks[from]].bytes;
    }
  }
  if (!best) return std::nullopt;
  Room room;
  room.change = "free_run";
  room.bytes_freed = best->freed;
  room.range_bytes = best->range;
  room.blocks.assign(
      best->segment->blocks.begin() + static_cast<ptrdiff_t>(best->from),
      best->segment->blocks.begin() + static_cast<ptrdiff_t>(best->to));
  return room;
}

// The emptiest segments, emptied until the driver could serve the request.
std::optional<Room> EmptySegments(const std::vector<SegmentState>& segments,
                                  int64_t device_free, int64_t needed) {
  std::vector<const SegmentState*> order;
  for (const SegmentState& segment : segments) {
    if (segment.active > 0) order.push_back(&segment);
  }
  std::sort(order.begin(), order.end(),
            [](const SegmentState* a, const SegmentState* b) {
              const double x = static_cast<double>(a->active) /
                               static_cast<double>(a->range.size);
              const double y = static_cast<double>(b->active) /
                               static_cast<double>(b->range.size);
              return x != y ? x < y : a->range.address < b->range.address;
            });
  Room room;
  room.change = "empty_segments";
  room.range_bytes = device_free;
  for (const SegmentState* segment : order) {
    if (room.range_bytes >= needed) break;
    room.range_bytes += segment->range.size;
    room.bytes_freed += segment->active;
    room.blocks.insert(room.blocks.end(), segment->blocks.begin(),
                       segment->blocks.end());
  }
  if (room.range_bytes < needed) return std::nullopt;
  return room;
}

int64_t BytesOf(const Device& device, const std::vector<uint32_t>& ids) {
  int64_t sum = 0;
  for (const uint32_t id : ids) sum += device.allocations()[id].bytes;
  return sum;
}

void Explain(const Device& device, OutOfMemory* oom, int64_t other_largest,
             const std::string& other_class) {
  const int64_t asked = oom->asked;
  const int64_t cached = oom->all.reserved - oom->all.active;
  const std::string free_text =
      oom->device_free_known
          ? fmt::format("the driver had {} free", SizeText(oom->device_free))
          : "what the driver had free is not recorded";
  if (asked > oom->capacity - oom->resident) {
    oom->cause = "too_large";
    oom->text = fmt::format(
        "{} asked, but of {} capacity {} stay through the whole recording: no "
        "order of frees helps",
        SizeText(asked), SizeText(oom->capacity), SizeText(oom->resident));
  } else if (other_largest >= asked) {
    oom->cause = "other_class";
    oom->text = fmt::format(
        "{} asked; a free range of {} belongs to {}, which this request may "
        "not use",
        SizeText(asked), SizeText(other_largest), other_class);
  } else if (oom->of_class.free >= asked) {
    oom->cause = "fragmentation";
    oom->text =
        fmt::format("{} asked, {} free in {} ranges, the largest {}",
                    SizeText(asked), SizeText(oom->of_class.free),
                    oom->of_class.ranges, SizeText(oom->of_class.largest));
  } else if (oom->device_free + cached >= asked) {
    oom->cause = "stuck_reserve";
    oom->text = fmt::format(
        "{} asked; {} and {} of the reserve are free, in other classes or in "
        "split segments: expandable_segments:True or a smaller "
        "max_split_size_mb give {} back",
        SizeText(asked), free_text, SizeText(cached), SizeText(oom->all.stuck));
  } else {
    oom->cause = "device_full";
    std::map<std::string, int64_t> categories;
    for (const uint32_t id : ActiveAt(device, oom->event + 1)) {
      const Allocation& a = device.allocations()[id];
      categories[std::string(
          CategoryName(static_cast<Category>(a.category)))] += a.bytes;
    }
    std::vector<std::pair<int64_t, std::string>> order;
    for (const auto& [name, bytes] : categories)
      order.emplace_back(-bytes, name);
    std::sort(order.begin(), order.end());
    std::string list;
    for (size_t i = 0; i < order.size() && i < 5; ++i)
      list += (i == 0 ? "" : ", ") + order[i].second + " " +
              SizeText(-order[i].first);
    oom->text = fmt::format(
        "{} asked; {} and {} of the reserve are free: something must go ({})",
        SizeText(asked), free_text, SizeText(cached), list);
  }
}

}  // namespace

std::vector<OutOfMemory> FindOutOfMemory(const Device& device,
                                         const Attribution& attribution,
                                         const std::vector<Leak>& leaks,
                                         std::optional<int64_t> capacity) {
  std::vector<OutOfMemory> out;
  const Events& events = device.events();
  int64_t resident = 0;
  for (const Allocation& a : device.allocations()) {
    if (a.before() && !a.freed()) resident += a.bytes;
  }
  std::optional<std::vector<Saving>> savings;
  for (size_t i = 0; i < events.count(); ++i) {
    if (events.action[i] != Action::kOom) continue;
    OutOfMemory oom;
    oom.event = static_cast<Moment>(i);
    oom.asked = events.size[i];
    const int64_t rounded = device.allocator().Rounded(oom.asked);
    oom.segment = device.allocator().SegmentOf(rounded);
    oom.device_free_known = events.address[i] >= 0;
    oom.device_free = std::max<int64_t>(events.address[i], 0);
    oom.resident = resident;
    const Tag& tag = device.snapshot().tags[events.tag[i]];
    Range wanted;
    wanted.stream = tag.stream;
    wanted.pool[0] = tag.pool[0];
    wanted.pool[1] = tag.pool[1];
    wanted.small = device.allocator().IsSmall(rounded);
    const std::vector<SegmentState> state = StateAt(device, oom.event + 1);
    std::vector<const SegmentState*> mine;
    int64_t other = 0;
    std::string other_class;
    for (const SegmentState& segment : state) {
      oom.all.Add(segment);
      if (segment.range.SameClass(wanted)) {
        oom.of_class.Add(segment);
        mine.push_back(&segment);
      } else if (segment.largest_free > other) {
        other = segment.largest_free;
        other_class = fmt::format("stream {}, pool {},{}, {} segments",
                                  segment.range.stream, segment.range.pool[0],
                                  segment.range.pool[1],
                                  segment.range.small ? "small" : "large");
      }
    }
    const int64_t reserved = oom.all.reserved;
    oom.capacity = capacity ? *capacity : reserved + oom.device_free;
    Explain(device, &oom, other, other_class);
    if (auto run = BestRun(device, mine, oom.asked)) oom.room.push_back(*run);
    if (auto segments = EmptySegments(state, oom.device_free, oom.segment))
      oom.room.push_back(*segments);
    const Moment m = oom.event + 1;
    for (const Leak& leak : leaks) {
      if (leak.expected) continue;
      Room room;
      room.change = "fix_leak";
      for (const uint32_t id : ActiveAt(device, m)) {
        if (device.allocations()[id].stack == leak.stack &&
            !device.allocations()[id].before())
          room.blocks.push_back(id);
      }
      room.bytes_freed = BytesOf(device, room.blocks);
      if (room.bytes_freed > 0) oom.room.push_back(std::move(room));
    }
    const auto& forwards = attribution.forwards();
    if (std::binary_search(forwards.begin(), forwards.end(), oom.event) ||
        attribution.OfStack(events.stack[i]).forward) {
      Room room;
      room.change = "free_gradients";
      for (const uint32_t id : ActiveAt(device, m)) {
        if (device.allocations()[id].category ==
            static_cast<uint8_t>(Category::kGradient))
          room.blocks.push_back(id);
      }
      room.bytes_freed = BytesOf(device, room.blocks);
      if (room.bytes_freed > 0) oom.room.push_back(std::move(room));
    }
    if (!savings) savings = FindSavings(device, attribution, leaks);
    for (const Saving& saving : *savings) {
      if (saving.information || saving.change == "fix_leak" ||
          saving.change == "free_gradients" ||
          saving.saves <
              oom.asked - std::max(oom.of_class.largest, oom.device_free))
        continue;
      Room room;
      room.change =
          saving.change + (saving.where.empty() ? "" : ": " + saving.where);
      room.bytes_freed = saving.saves;
      oom.room.push_back(std::move(room));
    }
    // Cheapest first; the first two leave a range that is known to be enough.
    std::stable_sort(oom.room.begin(), oom.room.end(),
                     [](const Room& a, const Room& b) {
                       const bool x = a.range_bytes > 0;
                       const bool y = b.range_bytes > 0;
                       return x != y ? x : a.bytes_freed < b.bytes_freed;
                     });
    out.push_back(std::move(oom));
  }
  return out;
}

std::vector<Saving> FindSavings(const Device& device,
                                const Attribution& attribution,
                                const std::vector<Leak>& leaks) {
  std::vector<Saving> out;
  const Peak peak = device.peak(Measure::kActive);
  const Moment m = peak.moment;
  const auto& all = device.allocations();
  const auto& rules = attribution.rules().rules();
  const auto of = [](const Allocation& a) {
    return static_cast<Category>(a.category);
  };
  const auto add = [&](const std::string& change, const std::string& where,
                       const std::vector<uint32_t>& ids,
                       const std::string& bound,
                       Confidence confidence) -> Saving* {
    bool alive = false;
    for (const uint32_t id : ids) alive |= all[id].ActiveAt(m);
    if (!alive) return nullptr;
    Saving saving;
    saving.change = change;
    saving.where = where;
    saving.new_peak = PeakWithout(device, ids);
    saving.saves = peak.bytes - saving.new_peak;
    saving.blocks = ids.size();
    saving.bound = bound;
    saving.confidence = confidence;
    if (saving.saves <= 0) return nullptr;
    out.push_back(std::move(saving));
    return &out.back();
  };

  // Recompute: every prefix of a path of modules is a candidate.
  const auto is_saved = [&](const Allocation& a) {
    return a.rule < rules.size() ? rules[a.rule].id == "saved"
                                 : of(a) == Category::kActivation &&
                                       a.confidence == Confidence::kFact;
  };
  std::map<std::string, int64_t, std::less<>> prefixes;  // bytes at the peak
  const auto each_prefix = [](std::string_view module, const auto& f) {
    for (size_t at = 0; at != std::string_view::npos;) {
      at = module.find('/', at + 1);
      f(module.substr(0, at));
    }
  };
  for (const Allocation& a : all) {
    if (!a.ActiveAt(m) || !is_saved(a)) continue;
    each_prefix(attribution.Of(a).module, [&](std::string_view prefix) {
      auto it = prefixes.find(prefix);
      if (it == prefixes.end())
        it = prefixes.emplace(std::string(prefix), 0).first;
      it->second += a.bytes;
    });
  }
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [prefix, bytes] : prefixes)
    order.emplace_back(-bytes, prefix);
  std::sort(order.begin(), order.end());
  if (order.size() > kMostCandidates) order.resize(kMostCandidates);
  std::map<std::string, std::vector<uint32_t>, std::less<>> groups;
  for (const auto& [bytes, prefix] : order) groups[prefix];
  for (uint32_t id = 0; id < all.size(); ++id) {
    if (!is_saved(all[id])) continue;
    each_prefix(attribution.Of(all[id]).module, [&](std::string_view prefix) {
      const auto it = groups.find(prefix);
      if (it != groups.end()) it->second.push_back(id);
    });
  }
  // Of equal sets the longest path.
  std::map<std::vector<uint32_t>, std::string> longest;
  const auto depth = [](const std::string& path) {
    return std::count(path.begin(), path.end(), '/');
  };
  for (const auto& [prefix, ids] : groups) {
    std::string& best = longest[ids];
    if (best.empty() ||
        std::pair(depth(best), best) < std::pair(depth(prefix), prefix))
      best = prefix;
  }
  for (const auto& [ids, prefix] : longest) {
    Saving* const saving =
        add("recompute", prefix, ids, "at most", Confidence::kMedium);
    if (saving == nullptr) continue;
    // While the module is recomputed, what one run of it keeps is back.
    int64_t most = 0, run = 0;
    for (const Moment event : attribution.forwards()) {
      const uint32_t id = device.AllocationOf(static_cast<size_t>(event));
      const std::string& module = attribution.Of(all[id]).module;
      const bool inside =
          module.starts_with(prefix) &&
          (module.size() == prefix.size() || module[prefix.size()] == '/');
      if (!inside)
        run = 0;
      else if (is_saved(all[id]))
        most = std::max(most, run += all[id].bytes);
    }
    saving->recompute_bytes = most;
  }

  // Gradients that a forward before the peak found.
  std::vector<uint32_t> ids;
  const auto& forwards = attribution.forwards();
  for (uint32_t id = 0; id < all.size(); ++id) {
    if (of(all[id]) != Category::kGradient) continue;
    const auto it =
        std::upper_bound(forwards.begin(), forwards.end(), all[id].start);
    if (it != forwards.end() && *it < m) ids.push_back(id);
  }
  add("free_gradients", "", ids, "at most", Confidence::kMedium);

  // Leaks, by line.
  std::map<std::string, std::vector<uint32_t>> by_line;
  std::map<uint32_t, std::string> leaky;
  for (const Leak& leak : leaks) {
    leaky[leak.stack] = attribution.Of(all[leak.allocation]).line;
  }
  if (!leaky.empty()) {
    for (uint32_t id = 0; id < all.size(); ++id) {
      const auto it = leaky.find(all[id].stack);
      if (it != leaky.end()) by_line[it->second].push_back(id);
    }
  }
  for (const auto& [line, group] : by_line)
    add("fix_leak", line, group, "at most", Confidence::kMedium);

  // Short temporaries, by line.
  by_line.clear();
  std::map<std::string, int64_t> at_peak;
  for (uint32_t id = 0; id < all.size(); ++id) {
    const Allocation& a = all[id];
    if (of(a) != Category::kTemporary || !a.freed() || a.before()) continue;
    if (int64_t{a.active_until - a.start} * kShortLife >= device.moments())
      continue;
    const std::string& line = attribution.Of(a).line;
    by_line[line].push_back(id);
    if (a.ActiveAt(m)) at_peak[line] += a.bytes;
  }
  size_t taken = 0;
  for (const auto& [line, bytes] : at_peak) {
    if (++taken > kMostCandidates) break;
    add("temporaries", line, by_line[line], "at most", Confidence::kMedium);
  }

  // Half of the bytes, or all of them elsewhere.
  for (const Category category :
       {Category::kParameter, Category::kGradient, Category::kOptimizerState,
        Category::kActivation}) {
    const std::string name(CategoryName(category));
    int64_t bytes = 0;
    ids.clear();
    for (uint32_t id = 0; id < all.size(); ++id) {
      if (of(all[id]) != category) continue;
      ids.push_back(id);
      if (all[id].ActiveAt(m)) bytes += all[id].bytes;
    }
    if (bytes == 0) continue;
    Saving half;
    half.change = "fewer_bits";
    half.where = name;
    half.saves = bytes / 2;
    half.new_peak = peak.bytes - half.saves;
    half.blocks = ids.size();
    half.bound = "information";
    half.information = true;
    out.push_back(half);
    const bool in_optimizer =
        std::binary_search(attribution.optimizers().begin(),
                           attribution.optimizers().end(), m - 1);
    if ((category == Category::kOptimizerState ||
         category == Category::kParameter) &&
        !in_optimizer)
      add("offload", name, ids, "at most", Confidence::kLow);
  }

  const bool expandable =
      device.allocator().expandable() ||
      device.health().actions[static_cast<size_t>(Action::kSegmentMap)] > 0 ||
      std::any_of(device.segments().begin(), device.segments().end(),
                  [](const Segment* segment) { return segment->expandable; });
  if (!expandable) {
    const int64_t multiple = device.allocator().rules().segment_multiple;
    const int64_t packed = (peak.bytes + multiple - 1) / multiple * multiple;
    const int64_t reserved = device.peak(Measure::kReserved).bytes;
    if (reserved > packed) {
      Saving saving;
      saving.change = "expandable_segments";
      saving.of = Measure::kReserved;
      saving.saves = reserved - packed;
      saving.new_peak = packed;
      saving.bound = "at most, of reserved";
      saving.confidence = Confidence::kMedium;
      out.push_back(saving);
    }
  }
  Saving rounding;
  rounding.change = "rounding";
  for (const Allocation& a : all) {
    if (!a.ActiveAt(m)) continue;
    rounding.saves += a.bytes - a.requested;
    ++rounding.blocks;
  }
  rounding.new_peak = peak.bytes - rounding.saves;
  rounding.bound = "information";
  rounding.information = true;
  if (rounding.saves > 0) out.push_back(rounding);
  std::sort(out.begin(), out.end(), [](const Saving& a, const Saving& b) {
    if (a.saves != b.saves) return a.saves > b.saves;
    return std::tie(a.change, a.where) < std::tie(b.change, b.where);
  });
  return out;
}

}  // namespace lamina::memory
