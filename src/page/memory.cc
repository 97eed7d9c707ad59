// SPDX-License-Identifier: Apache-2.0
#include "page/memory.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <numeric>

#include "base/escape.h"
#include "base/json/writer.h"
#include "render/html/page.h"

namespace lamina::page {
namespace {

using memory::Action;
using memory::Allocation;
using memory::Device;
using memory::DeviceView;
using memory::kNever;
using memory::Moment;

constexpr int64_t kUnit = 512;

// A range of the driver with its life.
struct LivingRange {
  memory::Range range;
  Moment born = 0;
  Moment dead = 0;
};

// All ranges that there ever were. An expandable one that is cut ends there,
// and what is left of it goes on as it was.
std::vector<LivingRange> RangesOf(const Device& device) {
  const Moment end = device.moments() + 1;
  std::map<int64_t, LivingRange> live;
  std::vector<LivingRange> out;
  for (const memory::Range& range : device.RangesAt(0))
    live.emplace(range.address, LivingRange{range, 0, end});
  const auto cut = [&](int64_t from, int64_t to, Moment dead) {
    auto it = live.upper_bound(from);
    if (it != live.begin()) --it;
    while (it != live.end() && it->second.range.address < to) {
      LivingRange one = it->second;
      if (one.range.end() <= from) {
        ++it;
        continue;
      }
      it = live.erase(it);
      const auto part = [&](int64_t begin, int64_t stop) {
        LivingRange piece = one;
        piece.range.address = begin;
        piece.range.size = stop - begin;
        return piece;
      };
      if (one.range.address < from)
        live.emplace(one.range.address, part(one.range.address, from));
      if (one.range.end() > to) live.emplace(to, part(to, one.range.end()));
      out.push_back(part(std::max(from, one.range.address),
                         std::min(to, one.range.end())));
      out.back().dead = dead;
    }
  };
  const memory::Events& e = device.events();
  for (size_t i = 0; i < e.count(); ++i) {
    const auto after = static_cast<Moment>(i + 1);
    const bool maps = e.action[i] == Action::kSegmentMap;
    if (maps || e.action[i] == Action::kSegmentAlloc) {
      cut(e.address[i], e.address[i] + e.size[i], after);
      memory::Range range;
      const memory::Tag& tag = device.snapshot().tags[e.tag[i]];
      range.address = e.address[i];
      range.size = e.size[i];
      range.stream = tag.stream;
      range.pool[0] = tag.pool[0];
      range.pool[1] = tag.pool[1];
      range.small = range.size <= device.allocator().rules().small_segment;
      range.expandable = maps;
      live.emplace(range.address, LivingRange{range, after, end});
    } else if (e.action[i] == Action::kSegmentFree ||
               e.action[i] == Action::kSegmentUnmap) {
      cut(e.address[i], e.address[i] + e.size[i], after);
    }
  }
  for (const auto& [address, one] : live) out.push_back(one);
  std::erase_if(out, [](const LivingRange& one) {
    return one.range.size <= 0 || one.dead <= one.born;
  });
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return std::tie(a.range.address, a.born) <
           std::tie(b.range.address, b.born);
  });
  return out;
}

// Addresses without the gaps between what is used.
class Map {
 public:
  void Add(int64_t from, int64_t to) { parts_.push_back({from, to, 0}); }
  void Close() {
    std::sort(parts_.begin(), parts_.end());
    std::vector<Part> joined;
    for (const Part& part : parts_) {
      if (!joined.empty() && part.from <= joined.back().to)
        joined.back().to = std::max(joined.back().to, part.to);
      else
        joined.push_back(part);
    }
    int64_t place = 0;
    for (Part& part : joined) {
      part.place = place;
      place += (part.to - part.from + kUnit - 1) / kUnit;
    }
    parts_ = std::move(joined);
    size_ = place;
  }
  int64_t Place(int64_t address) const {
    const auto it = std::upper_bound(
        parts_.begin(), parts_.end(), address,
        [](int64_t a, const Part& part) { return a < part.from; });
    if (it == parts_.begin()) return 0;
    const Part& part = *std::prev(it);
    return part.place + (address - part.from) / kUnit;
  }
  bool Holds(int64_t address) const {
    const auto it = std::upper_bound(
        parts_.begin(), parts_.end(), address,
        [](int64_t a, const Part& part) { return a < part.from; });
    return it != parts_.begin() && address < std::prev(it)->to;
  }
  int64_t size() const { return size_; }

  struct Part {
    int64_t from, to, place;
    bool operator<(const Part& other) const { return from < other.from; }
  };
  const std::vector<Part>& parts() const { return parts_; }

 private:
  std::vector<Part> parts_;
  int64_t size_ = 0;
};

// Columns that grow together.
class Columns {
 public:
  Columns(std::string name, std::vector<std::string> columns)
      : name_(std::move(name)),
        names_(std::move(columns)),
        values_(names_.size()) {}
  template <typename... Values>
  void Add(Values... values) {
    size_t c = 0;
    (values_[c++].push_back(static_cast<int64_t>(values)), ...);
    LAMINA_CHECK(c == names_.size());
  }
  size_t rows() const { return values_[0].size(); }
  // The first column grows slowly.
  void MoveTo(render::Page& page) const {
    render::Block block(name_, rows());
    for (size_t c = 0; c < names_.size(); ++c)
      block.Add(names_[c], values_[c], c == 0);
    page.blocks.push_back(std::move(block));
  }

 private:
  std::string name_;
  std::vector<std::string> names_;
  std::vector<std::vector<int64_t>> values_;
};

class MemoryWriter {
 public:
  explicit MemoryWriter(render::Page* page) : page_(*page), json_(facts_) {
    json_.Array();
  }

  void Add(const DeviceView& view, const std::string& name, int part);
  void Finish();

 private:
  size_t StackOf(const DeviceView& view, uint32_t stack,
                 const std::string& line, std::string_view op,
                 std::string_view module);
  void AddEvents(const DeviceView& view, const Map& map);

  render::Page& page_;
  std::string facts_;
  json::Writer json_;
  Columns allocs_{
      "memory_allocs",
      {"born", "held", "wait", "bytes", "spare", "place", "stack", "free_stack",
       "category", "confidence", "rule", "stream", "final"}};
  Columns ranges_{
      "memory_ranges",
      {"place", "size", "born", "dead", "address", "stream", "pool", "kind"}};
  Columns reserved_{"memory_reserved", {"moment", "bytes"}};
  Columns times_{"memory_times", {"time"}};
  Columns events_{"memory_events",
                  {"event", "action", "bytes", "place", "stack"}};
  Columns tags_{"memory_tags", {"event", "text"}};
  Columns parts_{"memory_parts", {"place", "address"}};
  Columns stacks_{"memory_stacks", {"frames", "line", "op", "module"}};
  Columns frames_{"memory_frames", {"text"}};
  // Of the device that is being added: stack, line, op, module to number + 1.
  absl::flat_hash_map<std::array<int64_t, 4>, size_t> numbers_;
};

size_t MemoryWriter::StackOf(const DeviceView& view, uint32_t stack,
                             const std::string& line, std::string_view op,
                             std::string_view module) {
  const std::array<int64_t, 4> key = {stack, page_.strings.Id(line),
                                      page_.strings.Id(op),
                                      page_.strings.Id(module)};
  const auto [it, added] = numbers_.try_emplace(key, 0);
  if (!added) return it->second;
  const memory::Snapshot& snapshot = view.device->snapshot();
  for (const uint32_t id : snapshot.stacks.Of(stack)) {
    const memory::Frame& frame = snapshot.stacks.frame(id);
    std::string text(snapshot.strings[frame.file]);
    if (frame.line > 0) text += fmt::format(":{}", frame.line);
    text += fmt::format(" {}", snapshot.strings[frame.name]);
    if (!snapshot.strings[frame.fx].empty())
      text += fmt::format("  [{}]", snapshot.strings[frame.fx]);
    frames_.Add(page_.strings.Id(text));
  }
  stacks_.Add(frames_.rows(), key[1], key[2], key[3]);
  return it->second = stacks_.rows();  // 0: none
}

// The events that no allocation tells of: those of segments, failed ones, and
// frees that change nothing. What the recorder noted beside events, where it
// changes.
void MemoryWriter::AddEvents(const DeviceView& view, const Map& map) {
  const Device& device = *view.device;
  const memory::Snapshot& snapshot = device.snapshot();
  const memory::Events& e = device.events();
  std::string last;
  uint32_t last_tag = 0;
  for (size_t i = 0; i < e.count(); ++i) {
    if (i == 0 || e.tag[i] != last_tag) {
      const memory::Tag& tag = snapshot.tags[last_tag = e.tag[i]];
      std::string text(snapshot.strings[tag.user_metadata]);
      const std::string_view compiled = snapshot.strings[tag.compile_context];
      if (!compiled.empty() && compiled != "N/A")
        text +=
            fmt::format("{}compiled {}", text.empty() ? "" : ", ", compiled);
      if (text != last) tags_.Add(i, page_.strings.Id(text));
      last = std::move(text);
    }
    const auto event = static_cast<Moment>(i);
    if (const uint32_t id = device.AllocationOf(i);
        id != memory::kNoAllocation) {
      const Allocation& a = device.allocations()[id];
      if (a.start == event || a.allocated_until == event ||
          a.active_until == event)
        continue;
    }
    // What follows these actions has no address.
    const bool placed =
        e.action[i] <= Action::kSegmentUnmap && map.Holds(e.address[i]);
    const memory::StackFacts& facts = view.attribution->OfStack(e.stack[i]);
    events_.Add(i, static_cast<int>(e.action[i]), e.size[i],
                placed ? map.Place(e.address[i]) + 1 : 0,
                e.stack[i] == 0 ? 0
                                : StackOf(view, e.stack[i], facts.line,
                                          facts.op, facts.module));
  }
}

void MemoryWriter::Add(const DeviceView& view, const std::string& name,
                       int part) {
  const Device& device = *view.device;
  numbers_.clear();
  const size_t first_alloc = allocs_.rows();
  const size_t first_range = ranges_.rows();
  const size_t first_reserved = reserved_.rows();
  const size_t first_time = times_.rows();
  const size_t first_event = events_.rows();
  const size_t first_tag = tags_.rows();
  const size_t first_part = parts_.rows();

  const std::vector<LivingRange> ranges = RangesOf(device);
  Map map;
  for (const LivingRange& one : ranges)
    map.Add(one.range.address, one.range.end());
  for (const Allocation& a : device.allocations())
    map.Add(a.address, a.address + std::max<int64_t>(a.bytes, 1));
  map.Close();
  for (const Map::Part& one : map.parts())
    parts_.Add(one.place, page_.strings.Id(fmt::format("0x{:x}", one.from)));
  for (const LivingRange& one : ranges) {
    const memory::Range& r = one.range;
    ranges_.Add(
        map.Place(r.address), r.size, one.born, one.dead,
        page_.strings.Id(fmt::format("0x{:x}", r.address)),
        page_.strings.Id(fmt::format("{}", r.stream)),
        page_.strings.Id(r.pool[0] == 0 && r.pool[1] == 0
                             ? std::string("default")
                             : fmt::format("{}.{}", r.pool[0], r.pool[1])),
        (r.small ? 1 : 0) + (r.expandable ? 2 : 0));
  }

  std::vector<uint32_t> order(device.allocations().size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
    const Allocation& a = device.allocations()[x];
    const Allocation& b = device.allocations()[y];
    // Of those from before, what stays lies at the bottom.
    return std::tuple(a.start, a.before() ? -int64_t{a.active_until} : 0,
                      a.address) <
           std::tuple(b.start, b.before() ? -int64_t{b.active_until} : 0,
                      b.address);
  });
  const int64_t end = int64_t{device.moments()} + 1;
  const auto behind = [&](Moment until) {
    return until == kNever ? end : int64_t{until} + 1;
  };
  const auto& rules = view.attribution->rules().rules();
  for (const uint32_t id : order) {
    const Allocation& a = device.allocations()[id];
    const int64_t born = int64_t{a.start} + 1;
    const int64_t dead = std::max(behind(a.active_until), born);
    const int64_t freed = std::clamp(behind(a.allocated_until), born, dead);
    const memory::StackFacts& freed_at =
        view.attribution->OfStack(a.free_stack);
    allocs_.Add(born, freed - born, dead - freed, a.bytes,
                a.bytes - a.requested, map.Place(a.address),
                StackOf(view, a.stack, view.attribution->Of(a).line, view.Op(a),
                        view.Module(a, 0)),
                a.free_stack == 0 ? 0
                                  : StackOf(view, a.free_stack, freed_at.line,
                                            freed_at.op, freed_at.module),
                a.category, static_cast<int>(a.confidence),
                page_.strings.Id(rules[a.rule].id),
                page_.strings.Id(
                    fmt::format("{}", device.snapshot().tags[a.tag].stream)),
                a.exact ? 1 : 0);
  }
  int64_t last = -1;
  device.Sweep([&](Moment m, const memory::Levels& at) {
    if (m > 0 && at.reserved == last) return;
    reserved_.Add(m, last = at.reserved);
  });
  AddEvents(view, map);
  const memory::Events& e = device.events();
  int64_t start = memory::kNoTime;
  for (size_t i = 0; i < e.count(); ++i) {
    if (start == memory::kNoTime) start = e.time_us[i];
  }
  int64_t now = 0;
  for (size_t i = 0; start != memory::kNoTime && i < e.count(); ++i) {
    // The order of events decides, not the clock.
    if (e.time_us[i] != memory::kNoTime)
      now = std::max(now, e.time_us[i] - start);
    times_.Add(now);
  }

  json_.Object();
  json_.Text("name", name);
  json_.Int("part", part);
  json_.Int("device", device.ordinal());
  json_.Int("moments", device.moments());
  json_.Int("moment", view.moment);
  json_.Int("peak", device.peak(memory::Measure::kActive).moment);
  json_.Int("units", map.size());
  const auto rows = [&](const char* key, size_t from, size_t to) {
    json_.Array(key);
    json_.Raw(std::to_string(from));
    json_.Raw(std::to_string(to));
    json_.Close();
  };
  rows("allocs", first_alloc, allocs_.rows());
  rows("ranges", first_range, ranges_.rows());
  rows("reserved", first_reserved, reserved_.rows());
  rows("times", first_time, times_.rows());
  rows("events", first_event, events_.rows());
  rows("tags", first_tag, tags_.rows());
  rows("parts", first_part, parts_.rows());
  json_.Array("marks");
  for (size_t k = 0; k < view.steps.steps.size() && k < 1000; ++k) {
    json_.Object();
    json_.Text("text", view.steps.steps[k].name);
    json_.Int("moment", view.steps.steps[k].end);
    json_.Close();
  }
  for (size_t i = 0; i < e.count(); ++i) {
    if (e.action[i] != Action::kOom) continue;
    json_.Object();
    json_.Text("text", "out of memory");
    json_.Int("moment", static_cast<int64_t>(i));
    json_.Int("asked", e.size[i]);
    json_.Close();
  }
  json_.Close();
  json_.Close();
}

void MemoryWriter::Finish() {
  json_.Close();
  page_.facts.emplace_back("memory", facts_);
  std::string categories = "[";
  for (size_t c = 0; c < memory::kCategories; ++c) {
    categories +=
        (c > 0 ? "," : "") +
        JsonQuote(memory::CategoryName(static_cast<memory::Category>(c)));
  }
  page_.facts.emplace_back("memory_categories", categories + "]");
  for (const Columns* columns : {&allocs_, &ranges_, &reserved_, &times_,
                                 &events_, &tags_, &parts_, &stacks_, &frames_})
    columns->MoveTo(page_);
}

}  // namespace

Status WriteMemoryPage(const std::vector<const memory::Recording*>& recordings,
                       const Document& document,
                       const MemoryPageOptions& options) {
  render::Page page(document);
  page.redact = options.redact;
  if (!options.words.empty()) {
    page.commands.push_back(
        {"memory", options.words, render::TableNames(document.result), {}});
  }
  MemoryWriter writer(&page);
  for (size_t part = 0; part < recordings.size(); ++part) {
    for (const DeviceView& view : recordings[part]->devices) {
      std::string name = recordings.size() > 1 ? (part == 0 ? "A " : "B ") : "";
      name += fmt::format("GPU {}", view.device->ordinal());
      writer.Add(view, name, static_cast<int>(part));
    }
  }
  writer.Finish();
  return render::WritePageFile(page, options.output, options.threads);
}

}  // namespace lamina::page
