// SPDX-License-Identifier: Apache-2.0
//
// Why this file is long: one schema and one loop per table, and nothing else.
#include "memory/tables.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "base/counted.h"
#include "base/decimal.h"
#include "memory/stack_tree.h"

namespace lamina::memory {
namespace {

constexpr size_t kTimelineRows = 2000;
constexpr size_t kOverTimeRows = 256;
// Free space of a segment from which on it is worth knowing what pins it.
constexpr int64_t kPinnedFrom = int64_t{1} << 20;

constexpr auto kText = ColumnType::kText;
constexpr auto kInt = ColumnType::kInt;
constexpr auto kReal = ColumnType::kReal;
constexpr auto kBool = ColumnType::kBool;
constexpr auto kTime = ColumnType::kTime;
constexpr auto kBytes = Shown::kBytes;
constexpr auto kHidden = Shown::kHidden;

// A table with a column for the device where there are several.
class Sheet {
 public:
  Sheet(Schema schema, const Recording& recording)
      : devices_(recording.devices.size() > 1), table_(With(schema)) {}

  template <class... Values>
  void Add(const DeviceView& view, const Values&... values) {
    std::vector<Value> row;
    if (devices_) row.emplace_back(view.device->ordinal());
    (row.push_back(Value(values)), ...);
    table_.AddRow(row);
  }
  void AddRow(const DeviceView& view, const std::vector<Value>& values) {
    std::vector<Value> row;
    if (devices_) row.emplace_back(view.device->ordinal());
    row.insert(row.end(), values.begin(), values.end());
    table_.AddRow(row);
  }
  template <class Row>
  void Add(const DeviceView& view, const RowColumns<Row>& columns,
           const Row& row) {
    std::vector<Value> cells;
    for (const RowColumn<Row>& c : columns.columns)
      cells.push_back(c.cell(row));
    AddRow(view, cells);
  }
  size_t rows() const { return table_.rows(); }
  void MoveTo(ResultSet* result) {
    result->tables.push_back(std::move(table_));
  }

 private:
  Schema With(Schema& schema) const {
    if (devices_) {
      schema.columns.insert(schema.columns.begin(),
                            {"device", kInt, "Number of the device."});
    }
    return std::move(schema);
  }
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

void AddSummary(const DeviceView& view, Sheet& sheet) {
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
    sheet.Add(view, SummaryColumns(),
              {.measure = MeasureName(measure),
               .peak_bytes = peak.bytes,
               .peak_moment = peak.moment,
               .peak_time = SinceStart(device, peak.moment - 1),
               .at_start_bytes = LevelOf(start, measure),
               .at_end_bytes = LevelOf(end, measure),
               .at_peak_bytes = LevelOf(shown, measure)});
  }
  sheet.Add(view, SummaryColumns(),
            {.measure = "viewer", .peak_bytes = device.viewer_peak()});
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
             const std::vector<uint32_t>& active, Sheet& sheet) {
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
    sheet.Add(view, PeakColumns(),
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
               .first_event = *row->first >= 0 ? row->first : std::nullopt,
               .fact_bytes = row->by_confidence[3],
               .high_bytes = row->by_confidence[2],
               .medium_bytes = row->by_confidence[1],
               .low_bytes = row->by_confidence[0]});
  }
  size_t holes = 0;
  for (const SegmentState& segment : StateAt(device, view.moment))
    holes += segment.holes.size();
  const int64_t cached = at.reserved - at.active;
  sheet.Add(view, PeakColumns(),
            {.key_kind = kind,
             .key = "(cached, free)",
             .category = "",
             .confidence = "",
             .bytes = cached,
             .percent = PercentOf(cached, at.reserved),
             .requested_bytes = 0,
             .rounding_bytes = 0,
             .blocks = holes});
}

Schema AllocationsSchema() {
  return {
      "memory_allocations",
      "Allocations that are active at the moment that is looked at, by bytes.",
      {{"id", kInt, "Number of the allocation.", kHidden},
       {"address", kText, "Where its block begins.", kHidden},
       {"bytes", kInt, "Bytes of its block.", kBytes},
       {"requested_bytes", kInt, "Bytes that were asked for.", kBytes},
       {"exact", kBool,
        "Whether the block is in the final state, not replayed.", kHidden},
       {"start_event", kInt, "Event that made it; empty: before all."},
       {"free_event", kInt, "Event that asked for its free.", kHidden},
       {"end_event", kInt, "Event after which others can use it."},
       {"start_us", kTime, "When, from the first event.", kHidden},
       {"lifetime_us", kTime, "How long it was active.", kHidden},
       {"lifetime_events", kInt, "For how many events it was active."},
       {"category", kText, "What it was for."},
       {"confidence", kText, "How well that is known."},
       {"rule", kText, "Rule that says so.", kHidden},
       {"op", kText, "Op that asked for it."},
       {"module", kText, "Calls of modules, file@line of the call.", kHidden},
       {"line", kText, "Line of the program's own code."},
       {"file", kText, "Path of that line.", kHidden},
       {"line_number", kInt, "Number of that line.", kHidden},
       {"function", kText, "Function of that line.", kHidden},
       {"freed_line", kText, "Line that freed it.", kHidden},
       {"stream", kInt, "Stream of its segment.", kHidden},
       {"pool", kText, "Private pool; 0,0 is the default one.", kHidden},
       {"origin", kText, "recorded, or before the recording.", kHidden},
       {"end_kind", kText,
        "freed; alive or pending in the final state; lost: its free was not "
        "recorded; unknown: neither freed nor in the final state.",
        kHidden},
       {"step", kInt, "Step in which it was made.", kHidden},
       {"stack", kInt, "Number of its stack; equal numbers, equal stacks.",
        kHidden},
       {"compile_context", kText, "Compiled graph, as recorded.", kHidden},
       {"user_metadata", kText, "The user's text, as recorded.", kHidden},
       {"trace_step", kText, "Step of the joined trace.", kHidden},
       {"trace_thread", kText, "Thread of the joined trace.", kHidden}}};
}

void AddAllocations(const DeviceView& view, std::vector<uint32_t> ids,
                    Sheet& sheet) {
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
      return text.empty() ? Value() : Value(text);
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
        view, id, address, a.bytes, a.requested, a.exact,
        a.before() ? Value() : Value(a.start),
        a.allocated_until < 0 ? Value() : Value(EventOrNull(a.allocated_until)),
        EventOrNull(a.active_until), a.before() ? std::nullopt : start,
        start && end ? Value(*end - *start) : Value(),
        last - std::max<Moment>(a.start, 0),
        CategoryName(static_cast<Category>(a.category)),
        ConfidenceName(a.confidence),
        a.rule < rules.size() ? Value(rules[a.rule].id) : Value(), view.Op(a),
        view.Module(a, 0), facts.line,
        facts.file.empty() ? Value() : Value(facts.file),
        facts.file.empty() ? Value() : Value(facts.line_number),
        facts.file.empty() ? Value() : Value(facts.function),
        a.free_stack == 0 ? Value()
                          : Value(view.attribution->OfStack(a.free_stack).line),
        place.stream, place.pool, Origin(a), EndKindName(a.end),
        a.before() || view.steps.steps.empty()
            ? Value()
            : Value(step - view.steps.steps.begin()),
        view.stack_numbers[a.stack],
        tag.compile_context == StringPool::kEmpty
            ? Value()
            : Value(strings[tag.compile_context]),
        tag.user_metadata == StringPool::kEmpty
            ? Value()
            : Value(strings[tag.user_metadata]),
        of_trace(&TraceFacts::Row::step), of_trace(&TraceFacts::Row::thread));
  }
}

void AddTree(const DeviceView& view, const std::vector<uint32_t>& active,
             bool native, Sheet& sheet) {
  const StackTree tree =
      MakeStackTree(*view.device, *view.attribution, active, native);
  for (const StackTree::Row& row : tree.rows) {
    sheet.Add(view, row.depth, row.name, row.bytes, row.self, row.blocks,
              PercentOf(row.bytes, tree.rows.front().bytes));
  }
}

void AddTimeline(const DeviceView& view, bool full, Sheet& sheet) {
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
    std::vector<Value> row = {m,
                              SinceStart(device, m - 1),
                              at.requested,
                              at.allocated,
                              at.active,
                              at.reserved};
    for (size_t k = 0; k < kCategories; ++k) {
      if (next > 0)
        categories[next * kCategories + k] +=
            categories[(next - 1) * kCategories + k];
      row.emplace_back(categories[next * kCategories + k]);
    }
    sheet.AddRow(view, row);
    ++next;
  });
}

void AddAlive(const DeviceView& view, Sheet& sheet) {
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
    sheet.Add(view, key.first, CategoryName(static_cast<Category>(key.second)),
              row.bytes, row.blocks,
              view.steps.steps.empty()
                  ? Value()
                  : Value(step - view.steps.steps.begin()));
  }
}

void AddLeaks(const DeviceView& view, const TableOptions& options,
              Sheet& sheet) {
  const Device& device = *view.device;
  for (const Leak& leak : view.leaks) {
    const Allocation& a = device.allocations()[leak.allocation];
    const StackFacts& facts = view.attribution->Of(a);
    Value left;
    if (options.capacity && leak.bytes_per_step > 0) {
      left = Value(static_cast<int64_t>(
          static_cast<double>(std::max<int64_t>(
              0, *options.capacity - device.peak(Measure::kReserved).bytes)) /
          leak.bytes_per_step));
    }
    sheet.Add(view, facts.line, facts.op, view.stack_numbers[leak.stack],
              leak.first_bytes, leak.last_bytes, leak.bytes_per_step,
              leak.blocks_per_step, leak.grown_steps, leak.steps,
              ConfidenceName(leak.confidence), leak.expected ? "grows" : "leak",
              left, CategoryName(static_cast<Category>(a.category)));
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
                 Sheet& sheet) {
  std::sort(segments.begin(), segments.end(),
            [](const SegmentState& a, const SegmentState& b) {
              return a.stuck != b.stuck ? a.stuck > b.stuck
                                        : a.range.address < b.range.address;
            });
  for (const SegmentState& s : segments) {
    sheet.Add(view, fmt::format("{:#x}", s.range.address), s.range.stream,
              PoolOf(s.range.pool), s.range.small ? "small" : "large",
              s.range.expandable, s.range.size, s.active, s.requested,
              s.blocks.size(), s.free, s.holes.size(), s.largest_free, s.stuck,
              s.active - s.requested, PinnedBy(view, s),
              s.range.born < 0 ? Value() : Value(s.range.born));
  }
}

std::string ClassName(const Range& range) {
  return fmt::format("stream {}, pool {},{}, {}", range.stream, range.pool[0],
                     range.pool[1], range.small ? "small" : "large");
}

void AddFragmentation(const DeviceView& view,
                      const std::vector<SegmentState>& segments, Sheet& sheet) {
  std::map<std::string, FreeTotals> classes;
  for (const SegmentState& s : segments) classes[ClassName(s.range)].Add(s);
  const auto add = [&](const std::string& name, const FreeTotals& t) {
    const auto reserved = static_cast<double>(t.reserved);
    sheet.Add(view, name, t.reserved, t.free, t.ranges, t.largest,
              t.fragmentation_percent(), t.whole, t.stuck, t.rounding,
              t.unsplit,
              t.reserved == 0 ? 0.0 : t.squares / (reserved * reserved));
  };
  add("all", TotalsOf(segments));
  for (const auto& [name, totals] : classes) add(name, totals);
}

void AddOverTime(const DeviceView& view, Sheet& sheet) {
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
    sheet.Add(view, m, SinceStart(*view.device, m - 1), t.reserved - t.active,
              t.whole, t.stuck);
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
  Table table({"memory_settings",
               "Settings of the allocator.",
               {{"key", kText, "Setting."},
                {"value", kText, "Its value."},
                {"default", kBool, "Whether the file does not say it."}}});
  auto settings = recording.snapshot->settings;
  std::sort(settings.begin(), settings.end());
  for (const auto& [key, value] : settings) table.Add(key, value, false);
  if (!recording.snapshot->has_settings) {
    table.Add("max_split_size", "-1", true);
    table.Add("expandable_segments", "False", true);
  }
  result->tables.push_back(std::move(table));
}

void AddHealth(const Recording& recording, const DeviceView& view,
               Sheet& sheet) {
  const Health& h = view.device->health();
  const Device& device = *view.device;
  const auto add = [&](std::string_view check, int64_t value,
                       std::string_view level, std::string_view text,
                       std::optional<int64_t> first = std::nullopt) {
    sheet.Add(view, check, value, first, level, text);
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
    std::string text = "Left out or mended.";
    if (reason == "unknown_action") text = "Events of an unknown kind.";
    if (reason == "unknown_key") text = "Keys that nothing is known about.";
    if (reason == "bad_text") text = "Texts that were no UTF-8.";
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
                      Sheet& sheet) {
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
    sheet.Add(view, what, value);
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

const RowColumns<SummaryRow>& SummaryColumns() {
  static const RowColumns<SummaryRow> columns{
      "memory_summary",
      "Peaks of what was requested, allocated (blocks), active (with blocks "
      "that wait for streams) and reserved (with the cache).",
      {{"measure", kText,
        "requested, allocated, active, reserved; viewer: the maximum that "
        "PyTorch's viewer shows.",
        &SummaryRow::measure},
       {"peak_bytes", kInt, "Highest value.", &SummaryRow::peak_bytes, kBytes},
       {"peak_moment", kInt, "After this many events, the first time.",
        &SummaryRow::peak_moment},
       {"peak_time_us", kTime, "When, from the first event.",
        &SummaryRow::peak_time},
       {"at_start_bytes", kInt, "Before the first event.",
        &SummaryRow::at_start_bytes, kBytes},
       {"at_end_bytes", kInt, "After the last event.",
        &SummaryRow::at_end_bytes, kBytes},
       {"at_peak_bytes", kInt, "At the moment that is looked at.",
        &SummaryRow::at_peak_bytes, kBytes}}};
  return columns;
}

const RowColumns<PeakRow>& PeakColumns() {
  static const RowColumns<PeakRow> columns{
      "memory_peak",
      "What is active at the moment that is looked at; with the cache it is "
      "what is reserved.",
      {{"key_kind", kText, "What the rows are.", &PeakRow::key_kind, kHidden},
       {"key", kText, "Of these allocations.", &PeakRow::key},
       {"category", kText, "What they were for.", &PeakRow::category, kHidden},
       {"confidence", kText, "How well that is known, by bytes.",
        &PeakRow::confidence},
       {"bytes", kInt, "Bytes of blocks.", &PeakRow::bytes, kBytes},
       {"percent", kReal, "Share of what is reserved.", &PeakRow::percent,
        Shown::kBar},
       {"requested_bytes", kInt, "Bytes that were asked for.",
        &PeakRow::requested_bytes, kHidden},
       {"rounding_bytes", kInt, "Lost to rounding and unsplit blocks.",
        &PeakRow::rounding_bytes, kBytes},
       {"blocks", kInt, "Blocks; of the cache, its free ranges.",
        &PeakRow::blocks},
       {"largest_bytes", kInt, "The largest block.", &PeakRow::largest_bytes,
        kBytes},
       {"first_event", kInt, "The first event that made one of them.",
        &PeakRow::first_event, kHidden},
       {"fact_bytes", kInt, "Bytes whose category is a fact.",
        &PeakRow::fact_bytes, kHidden},
       {"high_bytes", kInt, "... is known with high confidence.",
        &PeakRow::high_bytes, kHidden},
       {"medium_bytes", kInt, "... with medium confidence.",
        &PeakRow::medium_bytes, kHidden},
       {"low_bytes", kInt, "... with low confidence.", &PeakRow::low_bytes,
        kHidden}}};
  return columns;
}

Schema TimelineSchema() {
  Schema schema = {
      "memory_timeline",
      "Memory over time: of each run of events the moment with most active.",
      {{"moment", kInt, "After this many events."},
       {"time_us", kTime, "When, from the first event."},
       {"requested", kInt, "Requested bytes.", kBytes},
       {"allocated", kInt, "Allocated bytes.", kBytes},
       {"active", kInt, "Active bytes.", kBytes},
       {"reserved", kInt, "Reserved bytes.", kBytes}}};
  for (size_t k = 0; k < kCategories; ++k) {
    const std::string name(CategoryName(static_cast<Category>(k)));
    schema.columns.push_back(
        {name, kInt, "Active bytes of this category.", kHidden});
  }
  return schema;
}

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
                                std::shared_ptr<const Rules> rules,
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
  Sheet summary(SummaryColumns().schema(), recording);
  Sheet peak(PeakColumns().schema(), recording);
  static constexpr std::string_view kKinds[] = {"category", "module", "op",
                                                "line", "stack"};
  std::vector<Sheet> kinds;
  if (options.every_kind) {
    Schema schema = PeakColumns().schema();
    for (const std::string_view kind : kKinds) {
      schema.name = "memory_peak_" + std::string(kind);
      kinds.emplace_back(schema, recording);
    }
  }
  Sheet savings(
      {"memory_savings",
       "What would lower the peak, each alone and at most: savings "
       "do not add up.",
       {{"change", kText, "What to change."},
        {"where", kText, "Where."},
        {"saves_bytes", kInt, "How much lower the peak is.", kBytes},
        {"percent", kReal,
         "Share of the peak: of active, or of reserved where the bound says "
         "so.",
         Shown::kPercent},
        {"new_peak_bytes", kInt, "The peak then.", kBytes},
        {"recompute_bytes", kInt,
         "What is back while one run of the module is recomputed.", kBytes},
        {"blocks", kInt, "Blocks taken out."},
        {"bound", kText,
         "at most: the true saving is not larger; information: "
         "nothing to change."},
        {"confidence", kText, "How well the blocks are known."}}},
      recording);
  Sheet leaks(
      {"memory_leaks",
       "Stacks whose bytes at the ends of steps never fall and mostly grow.",
       {{"line", kText, "Who allocates."},
        {"op", kText, "Op that asked for it."},
        {"stack", kInt, "Number of the stack.", kHidden},
        {"first_bytes", kInt, "At the end of the first step.", kBytes},
        {"last_bytes", kInt, "At the end of the last step.", kBytes},
        {"bytes_per_step", kReal, "Mean growth.", kBytes},
        {"blocks_per_step", kInt, "Usual growth in blocks."},
        {"grown_steps", kInt, "Steps in which it grew."},
        {"steps", kInt, "Steps that were looked at."},
        {"confidence", kText,
         "high: every step adds as many blocks; medium: all but one."},
        {"class", kText, "leak; grows: meant to stay."},
        {"steps_left", kInt, "Steps until the capacity is reached."},
        {"category", kText, "What it was for.", kHidden}}},
      recording);
  Sheet oom(
      {"memory_oom",
       "Allocations that failed, and why.",
       {{"event", kInt, "Event."},
        {"time_us", kTime, "When, from the first event."},
        {"asked_bytes", kInt, "Rounded bytes that were asked.", kBytes},
        {"segment_bytes", kInt, "Segment that it would need.", kHidden},
        {"device_free_bytes", kInt, "Free bytes of the driver.", kBytes},
        {"free_bytes", kInt, "Free in its stream, pool and size class.",
         kBytes},
        {"free_ranges", kInt, "In how many ranges."},
        {"largest_free_bytes", kInt, "The largest of them.", kBytes},
        {"whole_free_bytes", kInt, "Segments without active blocks.", kHidden},
        {"split_free_bytes", kInt, "Free in split segments: stuck.", kHidden},
        {"cause", kText, "Why it failed."},
        {"line", kText, "Who asked."},
        {"category", kText, "Empty: nothing tells.", kHidden},
        {"text", kText, "The cause in words.", kHidden}}},
      recording);
  Sheet room({"memory_room",
              "What would have made room for an allocation that failed.",
              {{"oom_event", kInt, "Event that failed."},
               {"change", kText,
                "free_run: neighbouring blocks of a segment; empty_segments: "
                "the emptiest segments, given back."},
               {"line", kText, "Whose blocks."},
               {"category", kText, "What they were for."},
               {"bytes_freed", kInt, "Active bytes that go.", kBytes},
               {"range_bytes", kInt, "The range that this leaves.", kBytes}}},
             recording);
  Sheet fragmentation(
      {"memory_fragmentation",
       "Free space at the moment that is looked at. A request can only use "
       "its own stream, pool and size class.",
       {{"class", kText, "Stream, pool and size class."},
        {"reserved_bytes", kInt, "Bytes of segments.", kBytes},
        {"free_bytes", kInt, "Free bytes in them.", kBytes},
        {"free_ranges", kInt, "In how many ranges."},
        {"largest_free_bytes", kInt, "The largest range.", kBytes},
        {"fragmentation_percent", kReal, "100 (1 - largest / free).",
         Shown::kPercent},
        {"whole_free_bytes", kInt, "Segments that could be given back.",
         kBytes},
        {"split_free_bytes", kInt, "Free, and stuck in used segments.", kBytes},
        {"rounding_bytes", kInt, "Blocks beyond what was asked.", kBytes},
        {"unsplit_bytes", kInt, "Of it, blocks that were not split.", kHidden},
        {"score", kReal,
         "Squares of the free ranges / square of the reserved bytes, as "
         "PyTorch's viewer prints.",
         kHidden}}},
      recording);
  Sheet segments(
      {"memory_segments",
       "Segments at the moment that is looked at, most stuck bytes first.",
       {{"address", kText, "Where it begins."},
        {"stream", kInt, "Its stream.", kHidden},
        {"pool", kText, "Private pool; 0,0 is the default one.", kHidden},
        {"type", kText, "small or large."},
        {"expandable", kBool, "Whether it can grow.", kHidden},
        {"total_bytes", kInt, "Its bytes.", kBytes},
        {"active_bytes", kInt, "Active in it.", kBytes},
        {"requested_bytes", kInt, "Requested in it.", kHidden},
        {"blocks", kInt, "Active blocks."},
        {"free_bytes", kInt, "Free in it.", kBytes},
        {"free_ranges", kInt, "Free ranges."},
        {"largest_free_bytes", kInt, "The largest free range.", kBytes},
        {"stuck_bytes", kInt, "Free, and not to be given back.", kBytes},
        {"rounding_bytes", kInt, "Lost to rounding.", kHidden},
        {"pinned_by", kText, "Its largest active block."},
        {"born_event", kInt, "Event that got it; empty: before all.",
         kHidden}}},
      recording);
  Sheet pools({"memory_pools",
               "Who pays for streams and private pools, at the moment that is "
               "looked at.",
               {{"stream", kInt, "Stream."},
                {"pool", kText, "Private pool; 0,0 is the default one."},
                {"type", kText, "small or large."},
                {"reserved_bytes", kInt, "Reserved.", kBytes},
                {"active_bytes", kInt, "Active.", kBytes}}},
              recording);
  Sheet steps({"memory_steps",
               "Memory by step.",
               {{"step", kInt, "Number."},
                {"name", kText, "Name."},
                {"start_event", kInt, "First event."},
                {"end_event", kInt, "Event behind the last one."},
                {"peak_bytes", kInt, "Highest active.", kBytes},
                {"end_bytes", kInt, "Active at its end.", kBytes},
                {"delta_bytes", kInt, "More than at its start.", kBytes}}},
              recording);
  Sheet alive({"memory_alive",
               "Recorded allocations that were never freed, by line.",
               {{"line", kText, "Who allocated."},
                {"category", kText, "What for."},
                {"bytes", kInt, "Bytes of blocks.", kBytes},
                {"blocks", kInt, "Blocks."},
                {"oldest_step", kInt, "Step of the oldest one."}}},
              recording);
  Sheet allocations(AllocationsSchema(), recording);
  Sheet tree({"memory_tree",
              "Stacks of what is active, outermost frame first.",
              {{"depth", kInt, "Depth."},
               {"name", kText, "Frame, or op."},
               {"bytes", kInt, "Bytes of it and below.", kBytes},
               {"self_bytes", kInt, "Bytes of it alone.", kBytes},
               {"blocks", kInt, "Blocks."},
               {"percent", kReal, "Share of active.", Shown::kBar}}},
             recording);
  Sheet timeline(TimelineSchema(), recording);
  Sheet health({"memory_health",
                "What the recording holds, lacks and contradicts.",
                {{"check", kText, "What was looked at."},
                 {"value", kInt, "How much of it."},
                 {"first_event", kInt, "Where first."},
                 {"level", kText, "info or warning."},
                 {"text", kText, "What it means."}}},
               recording);
  Sheet over_time({"memory_fragmentation_over_time",
                   "Cache and what of it is stuck, over time.",
                   {{"moment", kInt, "After this many events."},
                    {"time_us", kTime, "When, from the first event."},
                    {"cached_bytes", kInt, "Reserved and free.", kBytes},
                    {"whole_free_bytes", kInt, "In empty segments.", kBytes},
                    {"stuck_bytes", kInt, "In used ones.", kBytes}}},
                  recording);
  Sheet explain({"memory_explain",
                 "Why the largest allocation of a line has its category.",
                 {{"what", kText, "What."}, {"value", kText, "Value."}}},
                recording);

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
      savings.Add(view, s.change, s.where, s.saves,
                  PercentOf(s.saves, device.peak(s.of).bytes), s.new_peak,
                  s.recompute_bytes, s.blocks, s.bound,
                  ConfidenceName(s.confidence));
    }
    AddLeaks(view, options, leaks);
    std::vector<OutOfMemory> ooms = FindOutOfMemory(
        device, *view.attribution, view.leaks, options.capacity);
    for (const OutOfMemory& o : ooms) {
      const uint32_t stack =
          device.events().stack[static_cast<size_t>(o.event)];
      oom.Add(view, o.event, SinceStart(device, o.event), o.asked, o.segment,
              o.device_free_known ? Value(o.device_free) : Value(),
              o.of_class.free, o.of_class.ranges, o.of_class.largest,
              o.all.whole, o.all.stuck, o.cause,
              view.attribution->OfStack(stack).line, "", o.text);
      for (const Room& r : o.room) {
        const auto [line, category] = NameOf(view, r.blocks);
        room.Add(view, o.event, r.change, line, category, r.bytes_freed,
                 r.range_bytes > 0 ? Value(r.range_bytes) : Value());
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
      pools.Add(view, std::get<0>(key), std::get<1>(key),
                std::get<2>(key) ? "large" : "small", row.first, row.second);
    }
    AddSegments(view, state, segments);
    Moment start = 0;
    for (size_t k = 0; k < view.steps.steps.size(); ++k) {
      const Step& step = view.steps.steps[k];
      if (step.end < start) continue;
      steps.Add(view, k, step.name, start, step.end,
                device.HighestActive(start, step.end), device.active(step.end),
                device.active(step.end) - device.active(start));
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
  for (Sheet& kind : kinds) kind.MoveTo(&result);
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
