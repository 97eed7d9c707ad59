// SPDX-License-Identifier: Apache-2.0
//
// Why this file is long: one loop per table, and nothing else.
#include "memory/tables.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "base/counted.h"
#include "base/decimal.h"
#include "memory/schemas.h"
#include "memory/stack_tree.h"

namespace lamina::memory {
namespace {

constexpr size_t kTimelineRows = 2000;
constexpr size_t kOverTimeRows = 256;
// Free space of a segment from which on it is worth knowing what pins it.
constexpr int64_t kPinnedFrom = int64_t{1} << 20;

// A table with a column for the device where there are several.
template <class Row>
class Sheet {
 public:
  Sheet(RowColumns<Row> columns, const Recording& recording)
      : columns_(std::move(columns)),
        devices_(recording.devices.size() > 1),
        table_(WithDevice()) {}

  void Add(const DeviceView& view, const Row& row) {
    std::vector<Value> cells;
    if (devices_) cells.emplace_back(view.device->ordinal());
    for (const RowColumn<Row>& c : columns_.columns)
      cells.push_back(c.Cell(row));
    table_.AddRow(cells);
  }
  size_t rows() const { return table_.rows(); }
  void MoveTo(ResultSet* result) {
    result->tables.push_back(std::move(table_));
  }

 private:
  Schema WithDevice() const {
    Schema schema = columns_.schema();
    if (devices_) {
      schema.columns.insert(
          schema.columns.begin(),
          {"device_index", ColumnType::kInt, "Number of the device."});
    }
    return schema;
  }
  RowColumns<Row> columns_;
  bool devices_;
  Table table_;
};

std::string Size(int64_t bytes) {
  return HumanBytes(static_cast<double>(bytes));
}

std::string_view Origin(const Allocation& a) {
  return a.before() ? "before" : "recorded";
}

std::string PoolOf(const int64_t* pool) {
  return fmt::format("{},{}", pool[0], pool[1]);
}

const Tag& TagOf(const DeviceView& view, const Allocation& a) {
  return view.device->snapshot().tags[a.tag];
}

// Stream and pool of an allocation: of its event, or of its segment.
struct Place {
  int64_t stream = 0;
  std::string pool;
};
Place PlaceOf(const DeviceView& view, const Allocation& a) {
  const auto& segments = view.device->segments();
  auto it = std::upper_bound(
      segments.begin(), segments.end(), a.address,
      [](int64_t at, const Segment* s) { return at < s->address; });
  const Segment* in = nullptr;
  if (it != segments.begin() &&
      a.address < (*std::prev(it))->address + (*std::prev(it))->size)
    in = *std::prev(it);
  const Tag& tag = TagOf(view, a);
  if (in != nullptr && (a.exact || !tag.has_pool))
    return {in->stream, PoolOf(in->pool)};
  return {tag.stream, PoolOf(tag.pool)};
}

std::optional<int64_t> Nanoseconds(int64_t time_us) {
  if (time_us == kNoTime || time_us > (int64_t{1} << 52) ||
      time_us < -(int64_t{1} << 52))
    return std::nullopt;
  return time_us * 1000;
}

// Time of an event from the first one.
std::optional<int64_t> SinceStart(const Device& device, Moment event) {
  if (event < 0 || event >= device.moments()) return std::nullopt;
  const auto at =
      Nanoseconds(device.events().time_us[static_cast<size_t>(event)]);
  const auto first = Nanoseconds(device.events().time_us[0]);
  if (!at || !first) return std::nullopt;
  return *at - *first;
}

std::optional<int64_t> EventOrNull(Moment event) {
  if (event == kNever) return std::nullopt;
  return event;
}

// Moments at which a bin of the timeline is shown.
std::vector<Moment> TimelineMoments(const DeviceView& view, size_t rows) {
  std::vector<Moment> out;
  const int64_t count = int64_t{view.last} - view.first + 1;
  const auto bins = std::min<int64_t>(count, static_cast<int64_t>(rows));
  for (int64_t bin = 0; bin < bins; ++bin) {
    const auto from = static_cast<Moment>(view.first + count * bin / bins);
    const auto to =
        static_cast<Moment>(view.first + count * (bin + 1) / bins - 1);
    Moment best = from;
    for (Moment m = from; m <= to; ++m) {
      if (view.device->active(m) > view.device->active(best)) best = m;
    }
    out.push_back(best);
  }
  return out;
}

// --- the tables ---

void AddSummary(const DeviceView& view, Sheet<SummaryRow>& sheet) {
  const Device& device = *view.device;
  Levels start, end, shown;
  device.Sweep([&](Moment m, const Levels& at) {
    if (m == view.first) start = at;
    if (m == view.last) end = at;
    if (m == view.moment) shown = at;
  });
  for (size_t k = 0; k < kMeasures; ++k) {
    const auto measure = static_cast<Measure>(k);
    const Peak peak = view.peaks[k];
    sheet.Add(view, {.measure = MeasureName(measure),
                     .peak_bytes = peak.bytes,
                     .peak_moment = peak.moment,
                     .peak_time = SinceStart(device, peak.moment - 1),
                     .at_start_bytes = LevelOf(start, measure),
                     .at_end_bytes = LevelOf(end, measure),
                     .at_peak_bytes = LevelOf(shown, measure)});
  }
  sheet.Add(view, {.measure = "viewer", .peak_bytes = device.viewer_peak()});
}

struct PeakSum {
  int64_t bytes = 0, requested = 0, largest = 0;
  size_t blocks = 0;
  std::optional<int64_t> first;
  int64_t by_confidence[4] = {};
  std::map<uint8_t, int64_t> by_category;
};

std::string ConfidenceText(const int64_t* by_confidence, int64_t bytes) {
  std::string out;
  for (int k = 3; k >= 0; --k) {
    if (by_confidence[k] == 0) continue;
    const std::string_view name = ConfidenceName(static_cast<Confidence>(k));
    if (by_confidence[k] == bytes) return std::string(name);
    out += fmt::format("{}{} {:.0f} %", out.empty() ? "" : ", ", name,
                       PercentOf(by_confidence[k], bytes));
  }
  return out;
}

void AddPeak(const DeviceView& view, std::string_view kind, size_t depth,
             const std::vector<uint32_t>& active, Sheet<PeakRow>& sheet) {
  const Device& device = *view.device;
  absl::flat_hash_map<std::string, PeakSum> rows;
  // Keys of stacks are long: made once per stack and category.
  const bool by_stack = kind != "category" && kind != "stream" &&
                        kind != "pool" && kind != "device";
  absl::flat_hash_map<uint64_t, PeakSum*> known;
  rows.reserve(by_stack ? device.snapshot().stacks.size() + 8 : 64);
  for (const uint32_t id : active) {
    const Allocation& a = device.allocations()[id];
    PeakSum* row = nullptr;
    if (by_stack) {
      PeakSum*& place =
          known[a.autograd_thread ? ~uint64_t{0}
                                  : uint64_t{a.stack} << 1 | a.before()];
      if (place == nullptr) {
        // Room for all was reserved: rows do not move.
        place = &rows[KeyOf(view, a, kind, depth)];
      }
      row = place;
    } else {
      row = &rows[KeyOf(view, a, kind, depth)];
    }
    row->bytes += a.bytes;
    row->requested += a.requested;
    row->largest = std::max(row->largest, a.bytes);
    ++row->blocks;
    if (!row->first || *row->first > a.start) row->first = a.start;
    row->by_confidence[static_cast<size_t>(a.confidence)] += a.bytes;
    row->by_category[a.category] += a.bytes;
  }
  std::vector<std::pair<std::string_view, const PeakSum*>> order;
  for (const auto& [key, row] : rows) order.emplace_back(key, &row);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second->bytes != b.second->bytes
               ? a.second->bytes > b.second->bytes
               : a.first < b.first;
  });
  const Levels at = device.At(view.moment);
  for (const auto& [key, row] : order) {
    std::string category;
    if (row->by_category.size() == 1) {
      category =
          CategoryName(static_cast<Category>(row->by_category.begin()->first));
    } else {
      const auto most = std::max_element(
          row->by_category.begin(), row->by_category.end(),
          [](const auto& a, const auto& b) { return a.second < b.second; });
      category = fmt::format("{} and others",
                             CategoryName(static_cast<Category>(most->first)));
    }
    sheet.Add(
        view,
        {.key_kind = kind,
         .key = key,
         .category = category,
         .confidence = ConfidenceText(row->by_confidence, row->bytes),
         .bytes = row->bytes,
         .percent = PercentOf(row->bytes, at.reserved),
         .requested_bytes = row->requested,
         .rounding_bytes = row->bytes - row->requested,
         .blocks = row->blocks,
         .largest_bytes = row->largest,
         .first_event = *row->first >= 0 ? std::optional<int64_t>(*row->first)
                                         : std::nullopt,
         .fact_bytes = row->by_confidence[3],
         .high_bytes = row->by_confidence[2],
         .medium_bytes = row->by_confidence[1],
         .low_bytes = row->by_confidence[0]});
  }
  size_t holes = 0;
  for (const SegmentState& segment : StateAt(device, view.moment))
    holes += segment.holes.size();
  const int64_t cached = at.reserved - at.active;
  sheet.Add(view, {.key_kind = kind,
                   .key = "(cached, free)",
                   .category = "",
                   .confidence = "",
                   .bytes = cached,
                   .percent = PercentOf(cached, at.reserved),
                   .requested_bytes = 0,
                   .rounding_bytes = 0,
                   .blocks = holes});
}

void AddAllocations(const DeviceView& view, std::vector<uint32_t> ids,
                    Sheet<AllocationRow>& sheet) {
  const Device& device = *view.device;
  const auto& all = device.allocations();
  std::sort(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) {
    return all[a].bytes != all[b].bytes ? all[a].bytes > all[b].bytes : a < b;
  });
  const auto& rules = view.attribution->rules().rules();
  for (const uint32_t id : ids) {
    const Allocation& a = all[id];
    const StackFacts& facts = view.attribution->Of(a);
    const Tag& tag = TagOf(view, a);
    const Place place = PlaceOf(view, a);
    const std::string address = fmt::format("{:#x}", a.address);
    const TraceFacts::Row* const known = view.TraceOf(a);
    const auto of_trace = [&](StringId TraceFacts::Row::*field) {
      const std::string_view text =
          known == nullptr ? "" : view.joined.texts[known->*field];
      return text.empty() ? std::nullopt : std::optional(text);
    };
    const auto start =
        a.before() ? std::optional<int64_t>(0) : SinceStart(device, a.start);
    const auto end = a.freed() ? SinceStart(device, a.active_until)
                               : SinceStart(device, device.moments() - 1);
    const Moment last = a.freed() ? a.active_until : device.moments();
    const auto step = std::upper_bound(
        view.steps.steps.begin(), view.steps.steps.end(), a.start,
        [](Moment m, const Step& s) { return m < s.end; });
    const auto& strings = device.snapshot().strings;
    sheet.Add(
        view,
        {.id = id,
         .address = address,
         .bytes = a.bytes,
         .requested_bytes = a.requested,
         .exact = a.exact,
         .start_event =
             a.before() ? std::nullopt : std::optional<int64_t>(a.start),
         .free_event =
             a.allocated_until < 0
                 ? std::nullopt
                 : std::optional<int64_t>(EventOrNull(a.allocated_until)),
         .end_event = EventOrNull(a.active_until),
         .start = a.before() ? std::nullopt : start,
         .lifetime = start && end ? std::optional<int64_t>(*end - *start)
                                  : std::nullopt,
         .lifetime_events = last - std::max<Moment>(a.start, 0),
         .category = CategoryName(static_cast<Category>(a.category)),
         .confidence = ConfidenceName(a.confidence),
         .rule = a.rule < rules.size()
                     ? std::optional<std::string_view>(rules[a.rule].id)
                     : std::nullopt,
         .op = view.Op(a),
         .module = view.Module(a, 0),
         .line = facts.line,
         .file = facts.file.empty()
                     ? std::nullopt
                     : std::optional<std::string_view>(facts.file),
         .line_number = facts.file.empty()
                            ? std::nullopt
                            : std::optional<int64_t>(facts.line_number),
         .function = facts.file.empty()
                         ? std::nullopt
                         : std::optional<std::string_view>(facts.function),
         .freed_line = a.free_stack == 0
                           ? std::nullopt
                           : std::optional<std::string_view>(
                                 view.attribution->OfStack(a.free_stack).line),
         .stream = place.stream,
         .pool = place.pool,
         .origin = Origin(a),
         .end_kind = EndKindName(a.end),
         .step = a.before() || view.steps.steps.empty()
                     ? std::nullopt
                     : std::optional<int64_t>(step - view.steps.steps.begin()),
         .stack = view.stack_numbers[a.stack],
         .compile_context = tag.compile_context == StringPool::kEmpty
                                ? std::nullopt
                                : std::optional<std::string_view>(
                                      strings[tag.compile_context]),
         .user_metadata =
             tag.user_metadata == StringPool::kEmpty
                 ? std::nullopt
                 : std::optional<std::string_view>(strings[tag.user_metadata]),
         .trace_step = of_trace(&TraceFacts::Row::step),
         .trace_thread = of_trace(&TraceFacts::Row::thread)});
  }
}

void AddTree(const DeviceView& view, const std::vector<uint32_t>& active,
             bool native, Sheet<TreeRow>& sheet) {
  const StackTree tree =
      MakeStackTree(*view.device, *view.attribution, active, native);
  for (const StackTree::Row& row : tree.rows) {
    sheet.Add(view, {.depth = row.depth,
                     .name = row.name,
                     .bytes = row.bytes,
                     .self_bytes = row.self,
                     .blocks = row.blocks,
                     .percent = PercentOf(row.bytes, tree.rows.front().bytes)});
  }
}

void AddTimeline(const DeviceView& view, bool full, Sheet<TimelineRow>& sheet) {
  const Device& device = *view.device;
  std::vector<Moment> moments;
  if (full) {
    for (Moment m = view.first; m <= view.last; ++m) moments.push_back(m);
  } else {
    moments = TimelineMoments(view, kTimelineRows);
  }
  std::vector<int64_t> categories((moments.size() + 1) * kCategories);
  for (const Allocation& a : device.allocations()) {
    const auto from =
        std::upper_bound(moments.begin(), moments.end(), a.start) -
        moments.begin();
    const auto to =
        std::upper_bound(moments.begin(), moments.end(), a.active_until) -
        moments.begin();
    if (from >= to) continue;
    categories[static_cast<size_t>(from) * kCategories + a.category] += a.bytes;
    categories[static_cast<size_t>(to) * kCategories + a.category] -= a.bytes;
  }
  size_t next = 0;
  device.Sweep([&](Moment m, const Levels& at) {
    if (next == moments.size() || moments[next] != m) return;
    TimelineRow row{.moment = m,
                    .time = SinceStart(device, m - 1),
                    .requested = at.requested,
                    .allocated = at.allocated,
                    .active = at.active,
                    .reserved = at.reserved,
                    .categories = {}};
    for (size_t k = 0; k < kCategories; ++k) {
      if (next > 0)
        categories[next * kCategories + k] +=
            categories[(next - 1) * kCategories + k];
      row.categories[k] = categories[next * kCategories + k];
    }
    sheet.Add(view, row);
    ++next;
  });
}

void AddAlive(const DeviceView& view, Sheet<AliveRow>& sheet) {
  struct Row {
    int64_t bytes = 0;
    size_t blocks = 0;
    Moment oldest = kNever;
  };
  std::map<std::pair<std::string_view, uint8_t>, Row> rows;
  for (const Allocation& a : view.device->allocations()) {
    if (a.before() || a.freed()) continue;
    Row& row = rows[{view.attribution->Of(a).line, a.category}];
    row.bytes += a.bytes;
    ++row.blocks;
    row.oldest = std::min(row.oldest, a.start);
  }
  std::vector<std::pair<std::pair<std::string_view, uint8_t>, Row>> order(
      rows.begin(), rows.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) {
                     return a.second.bytes > b.second.bytes;
                   });
  for (const auto& [key, row] : order) {
    const auto step = std::upper_bound(
        view.steps.steps.begin(), view.steps.steps.end(), row.oldest,
        [](Moment m, const Step& s) { return m < s.end; });
    sheet.Add(view,
              {.line = key.first,
               .category = CategoryName(static_cast<Category>(key.second)),
               .bytes = row.bytes,
               .blocks = row.blocks,
               .oldest_step = view.steps.steps.empty()
                                  ? std::nullopt
                                  : std::optional<int64_t>(
                                        step - view.steps.steps.begin())});
  }
}

void AddLeaks(const DeviceView& view, const TableOptions& options,
              Sheet<LeakRow>& sheet) {
  const Device& device = *view.device;
  for (const Leak& leak : view.leaks) {
    const Allocation& a = device.allocations()[leak.allocation];
    const StackFacts& facts = view.attribution->Of(a);
    std::optional<int64_t> left;
    if (options.capacity && leak.bytes_per_step > 0) {
      left = static_cast<int64_t>(
          static_cast<double>(std::max<int64_t>(
              0, *options.capacity - device.peak(Measure::kReserved).bytes)) /
          leak.bytes_per_step);
    }
    sheet.Add(view,
              {.line = facts.line,
               .op = facts.op,
               .stack = view.stack_numbers[leak.stack],
               .first_bytes = leak.first_bytes,
               .last_bytes = leak.last_bytes,
               .bytes_per_step = leak.bytes_per_step,
               .blocks_per_step = leak.blocks_per_step,
               .grown_steps = leak.grown_steps,
               .steps = leak.steps,
               .confidence = ConfidenceName(leak.confidence),
               .class_ = leak.expected ? "grows" : "leak",
               .steps_left = left,
               .category = CategoryName(static_cast<Category>(a.category))});
  }
}

std::string PinnedBy(const DeviceView& view, const SegmentState& segment) {
  if (segment.free < kPinnedFrom || segment.blocks.empty()) return {};
  const auto& all = view.device->allocations();
  std::vector<uint32_t> blocks = segment.blocks;
  std::sort(blocks.begin(), blocks.end(), [&](uint32_t a, uint32_t b) {
    return all[a].bytes != all[b].bytes ? all[a].bytes > all[b].bytes : a < b;
  });
  const Allocation& a = all[blocks[0]];
  std::string out = fmt::format("{} ({}, {}, {})", view.attribution->Of(a).line,
                                CategoryName(static_cast<Category>(a.category)),
                                Size(a.bytes), EndKindName(a.end));
  if (blocks.size() > 1)
    out += fmt::format(" and {}", Counted(blocks.size() - 1, "other"));
  return out;
}

void AddSegments(const DeviceView& view, std::vector<SegmentState> segments,
                 Sheet<SegmentRow>& sheet) {
  std::sort(segments.begin(), segments.end(),
            [](const SegmentState& a, const SegmentState& b) {
              return a.stuck != b.stuck ? a.stuck > b.stuck
                                        : a.range.address < b.range.address;
            });
  for (const SegmentState& s : segments) {
    sheet.Add(view, {.address = fmt::format("{:#x}", s.range.address),
                     .stream = s.range.stream,
                     .pool = PoolOf(s.range.pool),
                     .type = s.range.small ? "small" : "large",
                     .expandable = s.range.expandable,
                     .total_bytes = s.range.size,
                     .active_bytes = s.active,
                     .requested_bytes = s.requested,
                     .blocks = s.blocks.size(),
                     .free_bytes = s.free,
                     .free_ranges = s.holes.size(),
                     .largest_free_bytes = s.largest_free,
                     .stuck_bytes = s.stuck,
                     .rounding_bytes = s.active - s.requested,
                     .pinned_by = PinnedBy(view, s),
                     .born_event = s.range.born < 0
                                       ? std::nullopt
                                       : std::optional<int64_t>(s.range.born)});
  }
}

std::string ClassName(const Range& range) {
  return fmt::format("stream {}, pool {},{}, {}", range.stream, range.pool[0],
                     range.pool[1], range.small ? "small" : "large");
}

void AddFragmentation(const DeviceView& view,
                      const std::vector<SegmentState>& segments,
                      Sheet<FragmentationRow>& sheet) {
  std::map<std::string, FreeTotals> classes;
  for (const SegmentState& s : segments) classes[ClassName(s.range)].Add(s);
  const auto add = [&](const std::string& name, const FreeTotals& t) {
    const auto reserved = static_cast<double>(t.reserved);
    sheet.Add(
        view,
        {.class_ = name,
         .reserved_bytes = t.reserved,
         .free_bytes = t.free,
         .free_ranges = t.ranges,
         .largest_free_bytes = t.largest,
         .fragmentation_percent = t.fragmentation_percent(),
         .whole_free_bytes = t.whole,
         .split_free_bytes = t.stuck,
         .rounding_bytes = t.rounding,
         .unsplit_bytes = t.unsplit,
         .score = t.reserved == 0 ? 0.0 : t.squares / (reserved * reserved)});
  };
  add("all", TotalsOf(segments));
  for (const auto& [name, totals] : classes) add(name, totals);
}

void AddOverTime(const DeviceView& view, Sheet<OverTimeRow>& sheet) {
  std::set<Moment> moments;
  const int64_t count = int64_t{view.last} - view.first;
  for (size_t i = 0; i < kOverTimeRows; ++i) {
    moments.insert(static_cast<Moment>(
        view.first + count * static_cast<int64_t>(i) /
                         static_cast<int64_t>(kOverTimeRows - 1)));
  }
  for (const Peak& peak : view.peaks) moments.insert(peak.moment);
  const Events& events = view.device->events();
  for (size_t i = 0; i < events.count(); ++i) {
    if (events.action[i] == Action::kOom)
      moments.insert(static_cast<Moment>(i + 1));
  }
  for (const Moment m : moments) {
    const FreeTotals t = TotalsOf(StateAt(*view.device, m));
    sheet.Add(view, {.moment = m,
                     .time = SinceStart(*view.device, m - 1),
                     .cached_bytes = t.reserved - t.active,
                     .whole_free_bytes = t.whole,
                     .stuck_bytes = t.stuck});
  }
}

// The line and category of the largest of these blocks, and how many there are.
std::pair<std::string, std::string> NameOf(const DeviceView& view,
                                           const std::vector<uint32_t>& ids) {
  if (ids.empty()) return {};
  const auto& all = view.device->allocations();
  const uint32_t largest = *std::max_element(
      ids.begin(), ids.end(),
      [&](uint32_t a, uint32_t b) { return all[a].bytes < all[b].bytes; });
  std::set<std::string_view> categories;
  for (const uint32_t id : ids)
    categories.insert(CategoryName(static_cast<Category>(all[id].category)));
  std::string line = view.attribution->Of(all[largest]).line;
  if (ids.size() > 1) line += " and " + Counted(ids.size() - 1, "other block");
  return {line, fmt::format("{}", fmt::join(categories, ", "))};
}

void AddSettings(const Recording& recording, ResultSet* result) {
  Table table(SettingColumns().schema());
  auto settings = recording.snapshot->settings;
  std::sort(settings.begin(), settings.end());
  for (const auto& [key, value] : settings)
    SettingColumns().Add(table,
                         {.key = key, .value = value, .default_ = false});
  if (!recording.snapshot->has_settings) {
    SettingColumns().Add(
        table, {.key = "max_split_size", .value = "-1", .default_ = true});
    SettingColumns().Add(
        table,
        {.key = "expandable_segments", .value = "False", .default_ = true});
  }
  result->tables.push_back(std::move(table));
}

void AddHealth(const Recording& recording, const DeviceView& view,
               Sheet<HealthRow>& sheet) {
  const Health& h = view.device->health();
  const Device& device = *view.device;
  const auto add = [&](std::string_view check, int64_t value,
                       std::string_view level, std::string_view text,
                       std::optional<int64_t> first = std::nullopt) {
    sheet.Add(view, {.check = check,
                     .value = value,
                     .first_event = first,
                     .level = level,
                     .text = text});
  };
  const auto if_any = [&](std::string_view check, uint64_t value,
                          std::string_view level, std::string_view text,
                          std::optional<int64_t> first = std::nullopt) {
    if (value > 0) add(check, static_cast<int64_t>(value), level, text, first);
  };
  for (size_t k = 0; k < kActions; ++k) {
    if_any("events " + std::string(ActionName(static_cast<Action>(k))),
           h.actions[k], "info", "Events of this kind.");
  }
  constexpr std::string_view kRecord =
      "torch.cuda.memory._record_memory_history(max_entries=1000000, "
      "stacks=\"all\", context=\"all\") before the model is built";
  if (device.moments() == 0)
    add("no_events", 1, "warning",
        fmt::format("The file holds the final state only; to see who "
                    "allocated it and when, call {}.",
                    kRecord));
  const int64_t before = device.active(0);
  if (before > 0 && device.moments() > 0) {
    int64_t unknown = 0;
    for (const Allocation& a : device.allocations())
      if (a.ActiveAt(0) && a.stack == 0) unknown += a.bytes;
    add("before_bytes", before, "info",
        fmt::format(
            "Active before the first event ({:.1f} % of the peak): {}",
            PercentOf(before, device.peak(Measure::kActive).bytes),
            unknown == 0
                ? std::string("its stacks are those of the final state.")
                : fmt::format(
                      "of {} nobody recorded who allocated it. Call {}.",
                      unknown == before ? "all" : Size(unknown), kRecord)));
  }
  if_any("uncertain_bytes", static_cast<uint64_t>(h.uncertain_bytes), "info",
         "Blocks from before the recording may be larger by this together.");
  if_any("lost_free", h.lost_free, "warning",
         "An address was allocated again without a free: events are missing.");
  if_any("frees_without_alloc", h.frees_without_alloc, "info",
         "Frees of what was allocated before the recording, or before the "
         "first event that a full ring kept; a file does not tell which.");
  if_any("size_differs", h.size_differs, "warning",
         "A free named another size than its allocation.");
  if_any("final_size_differs", h.final_size_differs, "warning",
         "A block of the final state was asked for with another size.");
  if_any("not_in_final_state", h.not_in_final_state, "warning",
         "Never freed and not in the final state: the recording ended before "
         "the snapshot, or events were lost. Totals at the end are upper "
         "bounds.");
  if_any("replay_checked", h.replay_checked, "info",
         "Blocks whose replayed size could be held against the final state.");
  if_any("replay_differs", h.replay_differs, "warning",
         h.sizes_rounded_only
             ? "This allocator splits in another way than the replay: sizes "
               "are rounded requests."
             : "Replayed sizes that differ from the final state.");
  if_any("snapshot_checked", h.snapshot_checked, "info",
         "Events that state the active bytes.");
  if_any(
      "snapshot_differs", h.snapshot_differs, "warning",
      "Stated active bytes differ from the replayed ones.",
      h.snapshot_first >= 0 ? std::optional(h.snapshot_first) : std::nullopt);
  if_any("stated_sizes", h.stated_differs ? 1 : 0, "warning",
         "Sums that segments state differ from those of their blocks.");
  if_any("inconsistent", h.inconsistent, "warning",
         "Moments at which more was active than reserved: events are missing.",
         h.inconsistent_first);
  if_any("segment_size_differs", h.segment_size_differs, "info",
         "Segments of a size that the allocator's constants do not give.");
  if (device.moments() > 0) {
    if_any("no_time", h.no_time, "info", "Events without a time.");
    const bool frames = device.snapshot().stacks.size() > 1;
    if (!frames)
      add("no_stacks", 1, "warning",
          fmt::format("No event has a stack; call {}.", kRecord));
    if (view.attribution->any_native())
      add("native_stacks", 1, "info", "Stacks hold native frames.");
    else if (frames)
      add("native_stacks", 0, "info",
          "Stacks hold Python frames only: no ops; stacks=\"all\" records "
          "native ones.");
  }
  if (!recording.snapshot->has_settings)
    add("settings_assumed", 1, "info",
        "The file states no settings of the allocator; the defaults are used.");
  for (const auto& [reason, lost] : recording.snapshot->lost) {
    std::string text = "Left out or repaired.";
    if (reason == "unknown_action") text = "Events of an unknown kind.";
    if (reason == "unknown_key") text = "Keys that nothing is known about.";
    if (reason == "bad_text") text = "Texts that were no UTF-8.";
    if (reason == "wide_address") {
      text =
          "Addresses from 2^63 on, as some devices have them: they are shown "
          "less 2^63.";
    }
    if (reason == "big_int") text = "Integers beyond 64 bits.";
    if (reason == "truncated")
      text = "The file is cut off; what was complete is used.";
    if (reason == "trailing_bytes") text = "Bytes follow the end of the data.";
    if (!lost.what.empty()) text += " First: " + lost.what + ".";
    if (lost.first_offset && *lost.first_offset > 0)
      text += fmt::format(" At byte {}.", *lost.first_offset);
    add(reason, static_cast<int64_t>(lost.count),
        reason == "unknown_key" ? "info" : "warning", text);
  }
}

// Why the largest allocation of a line has its category.
Status AddExplanation(const DeviceView& view, const TableOptions& options,
                      Sheet<ExplainRow>& sheet) {
  const Device& device = *view.device;
  const Allocation* largest = nullptr;
  for (const Allocation& a : device.allocations()) {
    const std::string& line = view.attribution->Of(a).line;
    if (line != options.explain &&
        line.substr(0, line.find(' ')) != options.explain)
      continue;
    if (largest == nullptr || a.bytes > largest->bytes) largest = &a;
  }
  if (largest == nullptr) return {};
  const Rules& rules = view.attribution->rules();
  const CategoryRule* const rule = largest->rule < rules.rules().size()
                                       ? &rules.rules()[largest->rule]
                                       : nullptr;
  const Life life = view.attribution->LifeOf(device, *largest);
  const auto add = [&](std::string_view what, const std::string& value) {
    sheet.Add(view, {.what = what, .value = value});
  };
  add("line", view.attribution->Of(*largest).line);
  add("largest", fmt::format("{} bytes, {} requested", largest->bytes,
                             largest->requested));
  add("category",
      fmt::format("{} ({})",
                  CategoryName(static_cast<Category>(largest->category)),
                  ConfidenceName(largest->confidence)));
  if (rule != nullptr) {
    add("rule", fmt::format("{}: {} ({}:{})", rule->id,
                            rule->text.empty() ? "always" : rule->text,
                            rule->source, rule->line));
  }
  add("lifetime",
      fmt::format("{}, {}{}{}", Origin(*largest), EndKindName(largest->end),
                  life.backward ? ", outlived a backward" : "",
                  life.optimizer ? ", outlived an optimizer step" : ""));
  const Snapshot& snapshot = device.snapshot();
  const uint64_t bit = rule == nullptr ? 0 : uint64_t{1} << largest->rule;
  for (const uint32_t id : snapshot.stacks.Of(largest->stack)) {
    const Frame& frame = snapshot.stacks.frame(id);
    const FrameText text{snapshot.strings[frame.name],
                         snapshot.strings[frame.file]};
    const bool matched = IsPython(text.file)
                             ? (rules.PythonMask(text) & bit) != 0
                             : (rules.NativeMask(text.name) & bit) != 0;
    add(matched ? "frame (matched)" : "frame",
        fmt::format("{}:{} {}", text.file, frame.line, text.name));
  }
  for (const uint32_t id : snapshot.stacks.Of(largest->free_stack)) {
    const Frame& frame = snapshot.stacks.frame(id);
    add("freed at", fmt::format("{}:{} {}", snapshot.strings[frame.file],
                                frame.line, snapshot.strings[frame.name]));
  }
  return {};
}

void AddNotes(const Recording& recording, const DeviceView& view,
              const std::vector<Saving>& savings,
              const std::vector<OutOfMemory>& ooms, ResultSet* result) {
  const Device& device = *view.device;
  const std::string prefix = recording.devices.size() > 1
                                 ? fmt::format("Device {}: ", device.ordinal())
                                 : "";
  const Levels at = device.At(view.moment);
  int64_t categories[kCategories] = {};
  for (const Allocation& a : device.allocations()) {
    if (a.ActiveAt(view.moment)) categories[a.category] += a.bytes;
  }
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t k = 0; k < kCategories; ++k) {
    if (categories[k] > 0) order.emplace_back(-categories[k], k);
  }
  std::sort(order.begin(), order.end());
  std::string parts;
  for (size_t i = 0; i < order.size() && i < 4; ++i) {
    parts += fmt::format("{}{} {:.0f} %", i == 0 ? ": " : ", ",
                         CategoryName(static_cast<Category>(order[i].second)),
                         PercentOf(-order[i].first, at.active));
  }
  const auto note = [&](Severity severity, const std::string& id,
                        const std::string& text, const std::string& table) {
    result->notes.push_back(
        MakeNote(severity, id, prefix + text, {{table, "", "", {}}}));
  };
  const bool at_peak =
      view.moment == view.peaks[static_cast<size_t>(Measure::kActive)].moment;
  note(Severity::kVerdict, "memory_peak",
       fmt::format(
           "{} {} active of {} reserved, {}{}.",
           at_peak ? "Peak" : "At the chosen moment", Size(at.active),
           Size(at.reserved),
           device.moments() == 0
               ? "when the snapshot was taken"
               : fmt::format("at event {} of {}", GroupDigits(view.moment),
                             GroupDigits(device.moments())),
           parts),
       "memory_peak");
  size_t told = 0;
  for (const Saving& saving : savings) {
    const double percent =
        PercentOf(saving.saves, device.peak(saving.of).bytes);
    if (saving.information || told == 5 || percent < 1.0) continue;
    ++told;
    std::string what = saving.change;
    if (!saving.where.empty()) what += " " + saving.where;
    note(Severity::kOpportunity, "memory_saving",
         fmt::format("{}: at most {} ({:.1f} % of the peak{}). Savings do not "
                     "add up.",
                     what, Size(saving.saves), percent,
                     saving.of == Measure::kReserved ? " of reserved" : ""),
         "memory_savings");
  }
  for (const Leak& leak : view.leaks) {
    if (leak.expected) continue;
    note(Severity::kWarning, "memory_leak",
         fmt::format(
             "{} grows by {} per step in {} of {} steps ({} "
             "confidence).",
             view.attribution->Of(device.allocations()[leak.allocation]).line,
             Size(static_cast<int64_t>(leak.bytes_per_step)), leak.grown_steps,
             leak.steps - 1, ConfidenceName(leak.confidence)),
         "memory_leaks");
  }
  for (const OutOfMemory& oom : ooms) {
    note(Severity::kWarning, "memory_oom",
         fmt::format("Event {} ran out of memory ({}): {}.", oom.event,
                     oom.cause, oom.text),
         "memory_oom");
  }
  const int64_t resident = categories[static_cast<size_t>(Category::kResident)];
  if (resident * 100 > at.active && device.moments() > 0) {
    note(Severity::kInfo, "memory_resident",
         fmt::format("{} were there before the recording and through all of "
                     "it: parameters, states, buffers; nothing says which. "
                     "Record from before the model is built to see who.",
                     Size(resident)),
         "memory_peak");
  }
  if (view.steps.steps.empty() && device.moments() > 0) {
    note(Severity::kInfo, "memory_no_steps",
         "No steps are known, so none are compared: record under "
         "torch.profiler with a schedule, or set user_metadata per step.",
         "memory_summary");
  }
}

Result<Moment> MomentOf(const DeviceView& view, const std::string& text) {
  const Device& device = *view.device;
  const auto wrong = [&](const std::string& why) {
    return Fail(UsageError("--at " + text + ": " + why,
                           "a moment from 0 to " +
                               std::to_string(device.moments()) +
                               ", end, oom, step:K or +12.5ms"));
  };
  if (text == "end") return device.moments();
  if (text == "oom") {
    for (Moment i = 0; i < device.moments(); ++i) {
      if (device.events().action[static_cast<size_t>(i)] == Action::kOom)
        return i + 1;
    }
    return wrong("no event ran out of memory");
  }
  if (text.starts_with("step:")) {
    const auto k = ParseInt(std::string_view(text).substr(5));
    if (!k || *k < 0 || *k >= static_cast<int64_t>(view.steps.steps.size()))
      return wrong("there are " + Counted(view.steps.steps.size(), "step"));
    return view.steps.steps[static_cast<size_t>(*k)].end;
  }
  if (text.starts_with('+')) {
    double scale = 0;
    std::string_view number = std::string_view(text).substr(1);
    for (const auto& [unit, us] :
         {std::pair<std::string_view, double>{"ms", 1e3},
          {"us", 1},
          {"s", 1e6}}) {
      if (!number.ends_with(unit)) continue;
      number.remove_suffix(unit.size());
      scale = us;
      break;
    }
    const auto value = ParseDouble(number);
    const int64_t first =
        device.moments() > 0 ? device.events().time_us[0] : kNoTime;
    if (scale == 0 || !value || !(*value >= 0 && *value < 1e12))
      return wrong("expected a time like +12.5ms");
    if (first == kNoTime) return wrong("the events have no times");
    return device.MomentAt(first + static_cast<int64_t>(*value * scale));
  }
  const auto moment = ParseInt(text);
  if (!moment || *moment < 0 || *moment > device.moments())
    return wrong("there is no such moment");
  return static_cast<Moment>(*moment);
}

}  // namespace

const TraceFacts::Row* DeviceView::TraceOf(const Allocation& a) const {
  const auto id = static_cast<size_t>(&a - device->allocations().data());
  return id < joined.of.size() ? &joined.of[id] : nullptr;
}

std::string_view DeviceView::Op(const Allocation& a) const {
  const TraceFacts::Row* const row = TraceOf(a);
  return row != nullptr && row->op.valid()
             ? joined.texts[row->op]
             : std::string_view(attribution->Of(a).op);
}

std::string_view DeviceView::Module(const Allocation& a, size_t depth) const {
  const TraceFacts::Row* const row = TraceOf(a);
  const std::string_view module = row != nullptr && row->module.valid()
                                      ? joined.texts[row->module]
                                      : attribution->Of(a).module;
  if (depth == 0) return module;
  size_t at = 0;
  for (size_t k = 0; k < depth; ++k) {
    at = module.find('/', at == 0 ? 0 : at + 1);
    if (at == std::string::npos) return module;
  }
  return module.substr(0, at);
}

std::string KeyOf(const DeviceView& view, const Allocation& a,
                  std::string_view kind, size_t depth) {
  const StackFacts& facts = view.attribution->Of(a);
  if (kind == "category")
    return std::string(CategoryName(static_cast<Category>(a.category)));
  if (kind == "module") return std::string(view.Module(a, depth));
  if (kind == "op") return std::string(view.Op(a));
  if (kind == "line") return facts.line;
  if (kind == "stream") return std::to_string(PlaceOf(view, a).stream);
  if (kind == "pool") return PlaceOf(view, a).pool;
  if (kind == "device") return std::to_string(view.device->ordinal());
  // The stack, outermost first.
  return StackText(*view.device, a);
}

Result<Recording> MakeRecording(Snapshot snapshot,
                                const std::shared_ptr<const Rules>& rules,
                                const AllocatorRules& allocator,
                                const TableOptions& options) {
  Recording out;
  out.snapshot = std::make_unique<Snapshot>(std::move(snapshot));
  out.allocator =
      std::make_unique<Allocator>(allocator, out.snapshot->settings);
  std::vector<int64_t> ordinals = DevicesOf(*out.snapshot);
  if (options.device) {
    if (std::find(ordinals.begin(), ordinals.end(), *options.device) ==
        ordinals.end()) {
      return Fail(
          UsageError(fmt::format("--device {}: {} has no such device",
                                 *options.device, out.snapshot->file),
                     fmt::format("it has {}", fmt::join(ordinals, ", "))));
    }
    ordinals = {*options.device};
  }
  for (const int64_t ordinal : ordinals) {
    DeviceView& view = out.devices.emplace_back();
    view.device =
        std::make_unique<Device>(*out.snapshot, ordinal, *out.allocator);
    LAMINA_ASSIGN(view.attribution,
                  Attribution::Make(rules, view.device.get(), {options.own}));
    LAMINA_ASSIGN(view.steps,
                  FindSteps(*view.device, *view.attribution, options.steps));
    view.stack_numbers.resize(out.snapshot->stacks.size());
    uint32_t stacks = 0;
    for (const Allocation& a : view.device->allocations()) {
      if (a.stack != 0 && view.stack_numbers[a.stack] == 0)
        view.stack_numbers[a.stack] = ++stacks;
    }
    view.leaks = FindLeaks(*view.device, view.steps, options.leak_steps);
    const Device& device = *view.device;
    const auto clamp = [&](int64_t event) {
      return static_cast<Moment>(
          std::clamp<int64_t>(event, 0, device.moments()));
    };
    view.first = options.from ? clamp(*options.from) : 0;
    view.last = options.to ? clamp(*options.to + 1) : device.moments();
    if (view.first > view.last)
      return Fail(UsageError("--from lies behind --to", "swap them"));
    if (!options.from && !options.to) {
      for (size_t k = 0; k < kMeasures; ++k)
        view.peaks[k] = device.peak(static_cast<Measure>(k));
    } else {
      device.Sweep([&](Moment m, const Levels& at) {
        if (m < view.first || m > view.last) return;
        for (size_t k = 0; k < kMeasures; ++k) {
          const int64_t level = LevelOf(at, static_cast<Measure>(k));
          if (m == view.first || level > view.peaks[k].bytes)
            view.peaks[k] = {level, m};
        }
      });
    }
    view.moment = view.peaks[static_cast<size_t>(options.peak)].moment;
    if (!options.at.empty()) {
      LAMINA_ASSIGN(view.moment, MomentOf(view, options.at));
    }
  }
  return out;
}

Result<ResultSet> MakeTables(const Recording& recording,
                             const TableOptions& options) {
  ResultSet result;
  Sheet<SummaryRow> summary(SummaryColumns(), recording);
  Sheet<PeakRow> peak(PeakColumns(), recording);
  static constexpr std::string_view kKinds[] = {"category", "module", "op",
                                                "line", "stack"};
  std::vector<Sheet<PeakRow>> kinds;
  if (options.every_kind) {
    RowColumns<PeakRow> columns = PeakColumns();
    for (const std::string_view kind : kKinds) {
      columns.name = "memory_peak_" + std::string(kind);
      kinds.emplace_back(columns, recording);
    }
  }
  Sheet<SavingRow> savings(SavingColumns(), recording);
  Sheet<LeakRow> leaks(LeakColumns(), recording);
  Sheet<OutOfMemoryRow> oom(OutOfMemoryColumns(), recording);
  Sheet<RoomRow> room(RoomColumns(), recording);
  Sheet<FragmentationRow> fragmentation(FragmentationColumns(), recording);
  Sheet<SegmentRow> segments(SegmentColumns(), recording);
  Sheet<PoolRow> pools(PoolColumns(), recording);
  Sheet<StepRow> steps(StepColumns(), recording);
  Sheet<AliveRow> alive(AliveColumns(), recording);
  Sheet<AllocationRow> allocations(AllocationColumns(), recording);
  Sheet<TreeRow> tree(TreeColumns(), recording);
  Sheet<TimelineRow> timeline(TimelineColumns(), recording);
  Sheet<HealthRow> health(HealthColumns(), recording);
  Sheet<OverTimeRow> over_time(OverTimeColumns(), recording);
  Sheet<ExplainRow> explain(ExplainColumns(), recording);

  for (const DeviceView& view : recording.devices) {
    const Device& device = *view.device;
    const std::vector<uint32_t> active = ActiveAt(device, view.moment);
    AddSummary(view, summary);
    AddPeak(view, options.by, options.depth, active, peak);
    for (size_t k = 0; k < kinds.size(); ++k)
      AddPeak(view, kKinds[k], options.depth, active, kinds[k]);
    const std::vector<Saving> found =
        FindSavings(device, *view.attribution, view.leaks);
    for (const Saving& s : found) {
      savings.Add(view, {.change = s.change,
                         .where = s.where,
                         .saves_bytes = s.saves,
                         .percent = PercentOf(s.saves, device.peak(s.of).bytes),
                         .new_peak_bytes = s.new_peak,
                         .recompute_bytes = s.recompute_bytes,
                         .blocks = s.blocks,
                         .bound = s.bound,
                         .confidence = ConfidenceName(s.confidence)});
    }
    AddLeaks(view, options, leaks);
    std::vector<OutOfMemory> ooms = FindOutOfMemory(
        device, *view.attribution, view.leaks, options.capacity);
    for (const OutOfMemory& o : ooms) {
      const uint32_t stack =
          device.events().stack[static_cast<size_t>(o.event)];
      oom.Add(view,
              {.event = o.event,
               .time = SinceStart(device, o.event),
               .asked_bytes = o.asked,
               .segment_bytes = o.segment,
               .device_free_bytes = o.device_free_known
                                        ? std::optional<int64_t>(o.device_free)
                                        : std::nullopt,
               .free_bytes = o.of_class.free,
               .free_ranges = o.of_class.ranges,
               .largest_free_bytes = o.of_class.largest,
               .whole_free_bytes = o.all.whole,
               .split_free_bytes = o.all.stuck,
               .cause = o.cause,
               .line = view.attribution->OfStack(stack).line,
               .category = "",
               .text = o.text});
      for (const Room& r : o.room) {
        const auto [line, category] = NameOf(view, r.blocks);
        room.Add(view,
                 {.oom_event = o.event,
                  .change = r.change,
                  .line = line,
                  .category = category,
                  .bytes_freed = r.bytes_freed,
                  .range_bytes = r.range_bytes > 0
                                     ? std::optional<int64_t>(r.range_bytes)
                                     : std::nullopt});
      }
    }
    const std::vector<SegmentState> state = StateAt(device, view.moment);
    AddFragmentation(view, state, fragmentation);
    std::map<std::tuple<int64_t, std::string, bool>,
             std::pair<int64_t, int64_t>>
        by_pool;
    for (const SegmentState& s : state) {
      auto& row =
          by_pool[{s.range.stream, PoolOf(s.range.pool), !s.range.small}];
      row.first += s.range.size;
      row.second += s.active;
    }
    for (const auto& [key, row] : by_pool) {
      pools.Add(view, {.stream = std::get<0>(key),
                       .pool = std::get<1>(key),
                       .type = std::get<2>(key) ? "large" : "small",
                       .reserved_bytes = row.first,
                       .active_bytes = row.second});
    }
    AddSegments(view, state, segments);
    Moment start = 0;
    for (size_t k = 0; k < view.steps.steps.size(); ++k) {
      const Step& step = view.steps.steps[k];
      if (step.end < start) continue;
      steps.Add(view, {.step = k,
                       .name = step.name,
                       .start_event = start,
                       .end_event = step.end,
                       .peak_bytes = device.HighestActive(start, step.end),
                       .end_bytes = device.active(step.end),
                       .delta_bytes =
                           device.active(step.end) - device.active(start)});
      start = step.end;
    }
    AddAlive(view, alive);
    if (options.all) {
      std::vector<uint32_t> ids;
      for (uint32_t id = 0; id < device.allocations().size(); ++id) {
        const Allocation& a = device.allocations()[id];
        if (a.start < view.last && a.active_until >= view.first)
          ids.push_back(id);
      }
      AddAllocations(view, std::move(ids), allocations);
    } else {
      AddAllocations(view, active, allocations);
    }
    AddTree(view, active, options.native, tree);
    AddTimeline(view, options.full, timeline);
    AddHealth(recording, view, health);
    if (options.over_time) AddOverTime(view, over_time);
    if (!options.explain.empty())
      LAMINA_TRY(AddExplanation(view, options, explain));
    AddNotes(recording, view, found, ooms, &result);
  }
  if (!options.explain.empty()) {
    if (explain.rows() == 0) {
      return Fail(UsageError(
          "--explain: no allocation is of line '" + options.explain + "'",
          "lines stand in memory_peak --by line"));
    }
    explain.MoveTo(&result);
  }
  summary.MoveTo(&result);
  peak.MoveTo(&result);
  for (auto& kind : kinds) kind.MoveTo(&result);
  oom.MoveTo(&result);
  room.MoveTo(&result);
  leaks.MoveTo(&result);
  savings.MoveTo(&result);
  fragmentation.MoveTo(&result);
  segments.MoveTo(&result);
  pools.MoveTo(&result);
  steps.MoveTo(&result);
  alive.MoveTo(&result);
  allocations.MoveTo(&result);
  tree.MoveTo(&result);
  timeline.MoveTo(&result);
  if (options.over_time) over_time.MoveTo(&result);
  AddSettings(recording, &result);
  health.MoveTo(&result);
  return result;
}

}  // namespace lamina::memory
