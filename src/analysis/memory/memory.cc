// SPDX-License-Identifier: Apache-2.0
#include "analysis/memory/memory.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/counted.h"
#include "base/decimal.h"
#include "memory/tables.h"
#include "table/row_columns.h"

namespace lamina::analysis::memory {
namespace {

namespace mem = ::lamina::memory;
using trace::Kind;
using tree::NodeId;

constexpr int32_t kHost = 0;
constexpr size_t kTimelineRows = 2000;
constexpr int64_t kStill = std::numeric_limits<int64_t>::max();

std::string DeviceText(int32_t type, int32_t id) {
  switch (type) {
    case kHost:
      return "cpu";
    case 1:
      return fmt::format("cuda:{}", id);
    case 6:
      return fmt::format("hip:{}", id);
    case 12:
      return fmt::format("xpu:{}", id);
    case 13:
      return fmt::format("mps:{}", id);
    case 15:
      return fmt::format("hpu:{}", id);
    case 19:
      return fmt::format("mtia:{}", id);
    default:
      return fmt::format("device type {}:{}", type, id);
  }
}

// "[driver memory, pinned]": "pinned"; nothing for other names.
std::optional<std::string_view> DriverKind(std::string_view name) {
  constexpr std::string_view kDriver = "[driver memory";
  if (!name.starts_with(kDriver) || !name.ends_with(']')) return std::nullopt;
  name.remove_prefix(kDriver.size());
  name.remove_suffix(1);
  if (name.starts_with(", ")) name.remove_prefix(2);
  return name;
}

// What was open on the thread when an event happened.
struct Who {
  NodeId op;  // innermost op; invalid: none
  bool backward = false;
  bool optimizer = false;
  bool in_module = false;
};

struct Allocation {
  int64_t start = -1;    // event; -1: before the recording
  int64_t end = kStill;  // event
  int64_t bytes = 0;
  uint32_t instant = 0;
  mem::Category category = mem::Category::kUnknown;
  mem::Confidence confidence = mem::Confidence::kLow;
};

struct DeviceEvents {
  int32_t type = 0;
  int32_t id = 0;
  // Of the driver: what it gives is reserved, no caching allocator is recorded.
  bool driver = false;
  std::string kind;  // of the driver's memory: "pinned"; empty: usual
  std::vector<uint32_t> instants;  // by (time, place in the file)
  std::vector<uint32_t> failed;    // out of memory
};

// "cuda:0", "cuda:0 pinned".
std::string NameOf(const DeviceEvents& device) {
  std::string out = DeviceText(device.type, device.id);
  if (!device.kind.empty()) out += " " + device.kind;
  return out;
}

bool HasTotals(const Trace& trace, const DeviceEvents& device) {
  for (const uint32_t i : device.instants) {
    if (trace.memory[trace.instants.memory[i]].total_allocated != trace::kNoInt)
      return true;
  }
  return false;
}

std::vector<DeviceEvents> CollectDevices(const Trace& trace) {
  std::map<std::tuple<int32_t, int32_t, bool, std::string_view>, DeviceEvents>
      devices;
  for (uint32_t i = 0; i < trace.instants.size(); ++i) {
    const uint32_t row = trace.instants.memory[i];
    if (row == trace::kNoRow) continue;
    const trace::MemoryArgs& memory = trace.memory[row];
    const std::string_view name = trace.Text(trace.instants.name[i]);
    const auto kind = DriverKind(name);
    // Some drivers do not say how much they free.
    if (memory.bytes == trace::kNoInt &&
        (!kind || memory.address == trace::kNoInt))
      continue;
    DeviceEvents& device =
        devices[{memory.device_type, memory.device_id, kind.has_value(),
                 kind.value_or(std::string_view())}];
    device.type = memory.device_type;
    device.id = memory.device_id;
    device.driver = kind.has_value();
    device.kind = std::string(kind.value_or(std::string_view()));
    (name == "[OutOfMemory]" ? device.failed : device.instants).push_back(i);
  }
  std::vector<DeviceEvents> out;
  for (auto& [key, device] : devices) {
    const auto by_time = [&](uint32_t a, uint32_t b) {
      const int64_t x = trace.instants.time_ns[a];
      const int64_t y = trace.instants.time_ns[b];
      return x != y ? x < y : trace.instants.uid[a] < trace.instants.uid[b];
    };
    std::sort(device.instants.begin(), device.instants.end(), by_time);
    std::sort(device.failed.begin(), device.failed.end(), by_time);
    if (!device.instants.empty() || !device.failed.empty())
      out.push_back(std::move(device));
  }
  return out;
}

// Who was open at each memory event, by instant.
std::vector<Who> FindWho(const Context& context) {
  const Trace& trace = context.trace;
  std::vector<Who> out(trace.instants.size());
  const size_t tracks = trace.tracks.size();
  std::vector<std::vector<uint32_t>> events(tracks);
  for (uint32_t i = 0; i < trace.instants.size(); ++i) {
    if (trace.instants.memory[i] != trace::kNoRow)
      events[trace.instants.track[i].value].push_back(i);
  }
  std::vector<std::vector<uint32_t>> slices(tracks);
  for (uint32_t s = 0; s < trace.slices.size(); ++s) {
    const Kind kind = trace.slices.kind[s];
    if (kind != Kind::kOp && kind != Kind::kAnnotation) continue;
    const uint32_t track = trace.slices.track[s].value;
    if (!events[track].empty()) slices[track].push_back(s);
  }
  for (size_t track = 0; track < tracks; ++track) {
    std::vector<uint32_t>& at = events[track];
    std::sort(at.begin(), at.end(), [&](uint32_t a, uint32_t b) {
      return trace.instants.time_ns[a] < trace.instants.time_ns[b];
    });
    std::vector<uint32_t>& open = slices[track];
    const auto start = [&](uint32_t s) { return trace.slices.start_ns[s]; };
    const auto end = [&](uint32_t s) {
      return trace.slices.start_ns[s] + trace.slices.dur_ns[s];
    };
    std::sort(open.begin(), open.end(), [&](uint32_t a, uint32_t b) {
      if (start(a) != start(b)) return start(a) < start(b);
      return trace.slices.dur_ns[a] != trace.slices.dur_ns[b]
                 ? trace.slices.dur_ns[a] > trace.slices.dur_ns[b]
                 : a < b;
    });
    std::vector<uint32_t> stack;
    size_t next = 0;
    for (const uint32_t i : at) {
      const int64_t time = trace.instants.time_ns[i];
      // What has ended goes before more is put on it, or it stays below.
      for (; next < open.size() && start(open[next]) <= time; ++next) {
        while (!stack.empty() && end(stack.back()) <= start(open[next]))
          stack.pop_back();
        stack.push_back(open[next]);
      }
      while (!stack.empty() && end(stack.back()) <= time) stack.pop_back();
      Who& who = out[i];
      for (size_t k = stack.size(); k-- > 0;) {
        const uint32_t s = stack[k];
        if (end(s) <= time) continue;
        const std::string_view name = trace.Text(trace.slices.name[s]);
        who.optimizer |= name.starts_with("Optimizer.step");
        who.backward |= name.starts_with("autograd::engine");
        if (trace.slices.kind[s] == Kind::kOp && !who.op.valid())
          who.op = context.tree.node(tree::SliceId(s));
      }
      if (who.op.valid()) {
        who.backward |= context.tree.forward(who.op).valid();
        who.in_module = context.modules.OwnerOf(who.op).path.valid();
      }
    }
  }
  return out;
}

// Of the allocations of a device, by who made them and what they outlived.
void SetCategories(const std::vector<Who>& who, int64_t events,
                   std::vector<Allocation>* allocations) {
  std::vector<int64_t> backward, optimizer;
  for (const Allocation& a : *allocations) {
    if (a.start < 0) continue;
    if (who[a.instant].optimizer)
      optimizer.push_back(a.start);
    else if (who[a.instant].backward)
      backward.push_back(a.start);
  }
  std::sort(backward.begin(), backward.end());
  std::sort(optimizer.begin(), optimizer.end());
  for (Allocation& a : *allocations) {
    const bool freed = a.end != kStill;
    const auto inside = [&](const std::vector<int64_t>& at) {
      const auto it = std::upper_bound(at.begin(), at.end(), a.start);
      return it != at.end() && *it < std::min(a.end, events);
    };
    const auto set = [&](mem::Category category, mem::Confidence confidence) {
      a.category = category;
      a.confidence = confidence;
    };
    if (a.start < 0) {
      set(freed ? mem::Category::kUnknown : mem::Category::kResident,
          mem::Confidence::kLow);
      continue;
    }
    const Who& w = who[a.instant];
    if (w.optimizer) {
      set(freed ? mem::Category::kTemporary : mem::Category::kOptimizerState,
          mem::Confidence::kMedium);
    } else if (w.backward) {
      set(!freed || inside(optimizer) ? mem::Category::kGradient
                                      : mem::Category::kTemporary,
          mem::Confidence::kMedium);
    } else if (inside(backward)) {
      set(mem::Category::kActivation,
          w.in_module ? mem::Confidence::kMedium : mem::Confidence::kLow);
    } else if (freed) {
      set(mem::Category::kTemporary,
          w.in_module ? mem::Confidence::kMedium : mem::Confidence::kLow);
    }
  }
}

struct Curve {
  std::vector<int64_t> allocated, reserved;  // by moment; reserved may be empty
  uint64_t breaks = 0;
  uint64_t unmatched = 0;
  uint64_t by_size = 0;  // frees without an address
  std::vector<Allocation> allocations;
};

// Totals are stated or, where they are not, added up. Old profilers record no
// addresses: there a free is that of the latest block of its size, which gives
// the right sizes at every moment, if not always the right owner.
Curve MakeCurve(const Trace& trace, const DeviceEvents& device) {
  Curve out;
  const bool stated = HasTotals(trace, device);
  absl::flat_hash_map<int64_t, size_t> live;
  absl::flat_hash_map<int64_t, std::vector<size_t>> live_of_size;
  const auto row = [&](size_t i) -> const trace::MemoryArgs& {
    return trace.memory[trace.instants.memory[device.instants[i]]];
  };
  int64_t before = 0;
  if (stated && !device.instants.empty() &&
      row(0).total_allocated != trace::kNoInt)
    before = row(0).total_allocated - row(0).bytes;
  out.allocated.push_back(before);
  bool any_reserved = false;
  for (size_t i = 0; i < device.instants.size(); ++i) {
    trace::MemoryArgs memory = row(i);
    if (memory.bytes == trace::kNoInt) {
      const auto it = live.find(memory.address);
      memory.bytes = it == live.end() ? 0 : -out.allocations[it->second].bytes;
    }
    const int64_t sum = out.allocated.back() + memory.bytes;
    if (stated && memory.total_allocated != trace::kNoInt) {
      out.breaks += sum != memory.total_allocated;
      out.allocated.push_back(memory.total_allocated);
    } else {
      out.allocated.push_back(sum);
    }
    any_reserved |= memory.total_reserved != trace::kNoInt;
    out.reserved.push_back(
        memory.total_reserved == trace::kNoInt ? 0 : memory.total_reserved);
    const auto event = static_cast<int64_t>(i);
    const bool addressed = memory.address != trace::kNoInt;
    const bool frees = memory.bytes < 0 || row(i).bytes == trace::kNoInt;
    if (!frees) {
      if (!addressed) {
        live_of_size[memory.bytes].push_back(out.allocations.size());
      } else {
        const auto [at, is_new] =
            live.try_emplace(memory.address, out.allocations.size());
        if (!is_new) {  // the record of its free is lost
          out.allocations[at->second].end = event;
          at->second = out.allocations.size();
        }
      }
      out.allocations.push_back({event, kStill, memory.bytes,
                                 device.instants[i], mem::Category::kUnknown,
                                 mem::Confidence::kLow});
      continue;
    }
    std::optional<size_t> freed;
    if (!addressed) {
      ++out.by_size;
      auto& list = live_of_size[-memory.bytes];
      if (!list.empty()) {
        freed = list.back();
        list.pop_back();
      }
    } else if (const auto it = live.find(memory.address); it != live.end()) {
      freed = it->second;
      live.erase(it);
    }
    if (freed) {
      out.allocations[*freed].end = event;
    } else {
      ++out.unmatched;
      out.allocations.push_back({-1, event, -memory.bytes, device.instants[i],
                                 mem::Category::kUnknown,
                                 mem::Confidence::kLow});
    }
  }
  if (!stated) {
    // What was there before is at least what is freed without being made.
    int64_t lowest = 0;
    for (const int64_t level : out.allocated) lowest = std::min(lowest, level);
    for (int64_t& level : out.allocated) level -= lowest;
  }
  if (!any_reserved) out.reserved.clear();
  return out;
}

struct Row {
  int64_t bytes = 0, largest = 0;
  size_t blocks = 0;
  std::optional<int64_t> first;
  int64_t by_confidence[4] = {};
};

struct TimelineRow {
  std::string_view device;
  size_t moment;
  std::optional<int64_t> time, allocated, reserved;
};
const RowColumns<TimelineRow>& TimelineColumns() {
  static const RowColumns<TimelineRow> columns{
      "memory_timeline",
      "Memory over time: of each run of events the moment with most "
      "allocated.",
      {{"device", ColumnType::kText, "Device.", &TimelineRow::device},
       {"moment", ColumnType::kInt, "After this many events.",
        &TimelineRow::moment},
       {"time_us", ColumnType::kTime, "When, from the first event.",
        &TimelineRow::time},
       {"allocated", ColumnType::kInt, "Allocated bytes.",
        &TimelineRow::allocated, Shown::kBytes},
       {"reserved", ColumnType::kInt, "Reserved bytes.", &TimelineRow::reserved,
        Shown::kBytes}}};
  return columns;
}

struct FailedRow {
  std::string_view device;
  int64_t time, asked_bytes;
  std::optional<int64_t> allocated_bytes, reserved_bytes;
  std::string op;
};
const RowColumns<FailedRow>& FailedColumns() {
  static const RowColumns<FailedRow> columns{
      "memory_oom",
      "Allocations that failed.",
      {{"device", ColumnType::kText, "Device.", &FailedRow::device},
       {"time_us", ColumnType::kTime, "When, from the first event.",
        &FailedRow::time},
       {"asked_bytes", ColumnType::kInt, "Bytes that were asked.",
        &FailedRow::asked_bytes, Shown::kBytes},
       {"allocated_bytes", ColumnType::kInt, "Allocated then.",
        &FailedRow::allocated_bytes, Shown::kBytes},
       {"reserved_bytes", ColumnType::kInt, "Reserved then.",
        &FailedRow::reserved_bytes, Shown::kBytes},
       {"op", ColumnType::kText, "Op that asked.", &FailedRow::op}}};
  return columns;
}

struct HealthRow {
  std::string_view device, check;
  size_t value;
  std::string_view level, text;
};
const RowColumns<HealthRow>& HealthColumns() {
  static const RowColumns<HealthRow> columns{
      "memory_health",
      "What the events hold, lack and contradict.",
      {{"device", ColumnType::kText, "Device.", &HealthRow::device},
       {"check", ColumnType::kText, "What.", &HealthRow::check},
       {"amount", ColumnType::kInt, "How much of it.", &HealthRow::value},
       {"level", ColumnType::kText, "info or warning.", &HealthRow::level},
       {"text", ColumnType::kText, "What it means.", &HealthRow::text}}};
  return columns;
}

// A row that tables of snapshots have, too, and the device that it is of.
template <class Row>
struct OnDevice {
  std::string_view device;
  Row row;
};
// `columns` outlive the result.
template <class Row>
RowColumns<OnDevice<Row>> WithDevice(const RowColumns<Row>& columns) {
  RowColumns<OnDevice<Row>> out{
      columns.name,
      columns.doc,
      {{"device", ColumnType::kText, "Device.", &OnDevice<Row>::device}}};
  for (const RowColumn<Row>& c : columns.columns) {
    out.columns.push_back(
        {c.name(), c.type(), c.doc(),
         [&c](const OnDevice<Row>& row) { return c.Cell(row.row); },
         c.shown()});
  }
  return out;
}
const RowColumns<OnDevice<mem::SummaryRow>>& SummaryColumns() {
  static const auto columns = WithDevice(mem::SummaryColumns());
  return columns;
}
const RowColumns<OnDevice<mem::PeakRow>>& PeakColumns() {
  static const auto columns = WithDevice(mem::PeakColumns());
  return columns;
}

class Maker {
 public:
  Maker(const Context& context, const Options& options)
      : context_(context), options_(options), trace_(context.trace) {}

  ResultSet Make() {
    std::vector<DeviceEvents> devices = CollectDevices(trace_);
    std::erase_if(devices, [&](const DeviceEvents& device) {
      const std::string name = NameOf(device);
      if (options_.device.empty()) return device.type == kHost;
      return name != options_.device &&
             name.substr(name.find(':') + 1) != options_.device &&
             DeviceText(device.type, device.id) != options_.device;
    });
    ResultSet result;
    if (devices.empty()) return result;
    who_ = FindWho(context_);
    Table summary(SummaryColumns().schema());
    std::vector<std::string_view> kinds;
    if (options_.every_kind) kinds = {"category", "module", "op"};
    Schema of_kind = PeakColumns().schema();
    Table peak(of_kind);
    std::vector<Table> tables;
    for (const std::string_view kind : kinds) {
      of_kind.name = "memory_peak_" + std::string(kind);
      tables.emplace_back(of_kind);
    }
    Table timeline(TimelineColumns().schema());
    Table failed(FailedColumns().schema());
    Table health(HealthColumns().schema());
    for (const DeviceEvents& device : devices) {
      const std::string name = NameOf(device);
      Curve curve = MakeCurve(trace_, device);
      SetCategories(who_, static_cast<int64_t>(device.instants.size()),
                    &curve.allocations);
      const auto highest =
          std::max_element(curve.allocated.begin(), curve.allocated.end());
      const int64_t moment = highest - curve.allocated.begin();
      AddSummary(name, device, curve, moment, &summary);
      AddPeak(name, device, curve, moment, options_.by, &peak);
      for (size_t k = 0; k < kinds.size(); ++k)
        AddPeak(name, device, curve, moment, kinds[k], &tables[k]);
      if (options_.timeline) AddTimeline(name, device, curve, &timeline);
      for (const uint32_t i : device.failed) {
        const trace::MemoryArgs& memory =
            trace_.memory[trace_.instants.memory[i]];
        FailedColumns().Add(
            failed, {.device = name,
                     .time = trace_.instants.time_ns[i] - trace_.first_ns,
                     .asked_bytes = std::abs(memory.bytes),
                     .allocated_bytes = Known(memory.total_allocated),
                     .reserved_bytes = Known(memory.total_reserved),
                     .op = OpOf(i)});
      }
      HealthColumns().Add(health, {.device = name,
                                   .check = "events",
                                   .value = device.instants.size(),
                                   .level = "info",
                                   .text = "Allocations and frees."});
      if (curve.breaks > 0)
        HealthColumns().Add(
            health,
            {.device = name,
             .check = "chain_breaks",
             .value = curve.breaks,
             .level = "warning",
             .text = "Stated totals that the events do not add up to; the "
                     "stated ones are used."});
      if (curve.by_size > 0)
        HealthColumns().Add(
            health,
            {.device = name,
             .check = "no_addresses",
             .value = curve.by_size,
             .level = "warning",
             .text = "Frees without an address: each is joined to the latest "
                     "block of its size, so owners are guesses."});
      if (curve.unmatched > 0)
        HealthColumns().Add(
            health,
            {.device = name,
             .check = "unmatched_frees",
             .value = curve.unmatched,
             .level = "info",
             .text = "Frees of what was allocated before the recording."});
      if (!HasTotals(trace_, device))
        HealthColumns().Add(
            health,
            {.device = name,
             .check = "no_totals",
             .value = 1,
             .level = "warning",
             .text = "The events state no totals: sums start at the least "
                     "that explains all frees."});
      Say(name, device, curve, moment, &result);
    }
    JoinPeaks(&result);
    result.tables.push_back(std::move(summary));
    result.tables.push_back(std::move(peak));
    for (Table& table : tables) result.tables.push_back(std::move(table));
    if (failed.rows() > 0) result.tables.push_back(std::move(failed));
    if (options_.timeline) {
      result.tables.push_back(std::move(timeline));
      result.tables.push_back(std::move(health));
    }
    return result;
  }

 private:
  static std::optional<int64_t> Known(int64_t bytes) {
    return bytes == trace::kNoInt ? std::nullopt : std::optional(bytes);
  }

  std::string OpOf(uint32_t instant) const {
    const Who& who = who_[instant];
    return who.op.valid() ? std::string(context_.tree.name(who.op))
                          : "(outside)";
  }

  std::string KeyOf(const Allocation& a, std::string_view kind) const {
    if (kind == "category") return std::string(mem::CategoryName(a.category));
    if (a.start < 0) return "(before)";
    if (kind == "module") {
      const Who& who = who_[a.instant];
      if (!who.op.valid()) return "(outside)";
      const auto owner = context_.modules.OwnerOf(who.op);
      return owner.path.valid() ? context_.modules.PathText(owner.path)
                                : "(outside)";
    }
    return OpOf(a.instant);
  }

  std::optional<int64_t> TimeOf(const DeviceEvents& device,
                                int64_t moment) const {
    if (moment <= 0) return std::nullopt;
    return trace_.instants
               .time_ns[device.instants[static_cast<size_t>(moment) - 1]] -
           trace_.first_ns;
  }

  void AddSummary(const std::string& name, const DeviceEvents& device,
                  const Curve& curve, int64_t moment, Table* table) const {
    const auto at = static_cast<size_t>(moment);
    SummaryColumns().Add(
        *table, {.device = name,
                 .row = {.measure = device.driver ? "reserved" : "allocated",
                         .peak_bytes = curve.allocated[at],
                         .peak_moment = moment,
                         .peak_time = TimeOf(device, moment),
                         .at_start_bytes = curve.allocated.front(),
                         .at_end_bytes = curve.allocated.back(),
                         .at_peak_bytes = curve.allocated[at]}});
    if (curve.reserved.empty()) return;
    const auto highest =
        std::max_element(curve.reserved.begin(), curve.reserved.end());
    const int64_t when = highest - curve.reserved.begin() + 1;
    SummaryColumns().Add(
        *table, {.device = name,
                 .row = {.measure = "reserved",
                         .peak_bytes = *highest,
                         .peak_moment = when,
                         .peak_time = TimeOf(device, when),
                         .at_end_bytes = curve.reserved.back(),
                         .at_peak_bytes =
                             moment > 0 ? std::optional(curve.reserved[at - 1])
                                        : std::nullopt}});
  }

  void AddPeak(const std::string& name, const DeviceEvents&, const Curve& curve,
               int64_t moment, std::string_view kind, Table* table) const {
    std::map<std::string, Row> rows;
    int64_t known = 0;
    const auto take = [&](const std::string& key, int64_t bytes,
                          mem::Confidence confidence, int64_t first,
                          size_t blocks) {
      Row& row = rows[key];
      row.bytes += bytes;
      row.largest = std::max(row.largest, bytes);
      row.blocks += blocks;
      row.by_confidence[static_cast<size_t>(confidence)] += bytes;
      if (first >= 0 && (!row.first || first < *row.first)) row.first = first;
      known += bytes;
    };
    for (const Allocation& a : curve.allocations) {
      if (a.start < moment && moment <= a.end)
        take(KeyOf(a, kind), a.bytes, a.confidence, a.start, 1);
    }
    const int64_t peak = curve.allocated[static_cast<size_t>(moment)];
    if (peak != known) {
      take(kind == "category" ? "resident" : "(before, never freed)",
           peak - known, mem::Confidence::kLow, -1, 0);
    }
    const int64_t reserved =
        moment > 0 && !curve.reserved.empty()
            ? curve.reserved[static_cast<size_t>(moment) - 1]
            : 0;
    if (reserved > peak) {
      Row& row = rows["(cached, free)"];
      row.bytes = reserved - peak;
    }
    std::vector<std::pair<std::string, Row>> order(rows.begin(), rows.end());
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) {
                       const bool x = a.first == "(cached, free)";
                       const bool y = b.first == "(cached, free)";
                       return x != y ? y : a.second.bytes > b.second.bytes;
                     });
    const int64_t whole = std::max(reserved, peak);
    for (const auto& [key, row] : order) {
      int best = -1;
      for (int k = 0; k < 4; ++k) {
        if (row.by_confidence[k] > 0 &&
            (best < 0 || row.by_confidence[k] > row.by_confidence[best]))
          best = k;
      }
      mem::PeakRow out{.key_kind = kind,
                       .key = key,
                       .bytes = row.bytes,
                       .percent = mem::PercentOf(row.bytes, whole),
                       .blocks = row.blocks,
                       .largest_bytes = row.largest,
                       .first_event = row.first,
                       .fact_bytes = row.by_confidence[3],
                       .high_bytes = row.by_confidence[2],
                       .medium_bytes = row.by_confidence[1],
                       .low_bytes = row.by_confidence[0]};
      if (kind == "category") out.category = key;
      if (best >= 0)
        out.confidence =
            mem::ConfidenceName(static_cast<mem::Confidence>(best));
      PeakColumns().Add(*table, {.device = name, .row = out});
    }
  }

  void AddTimeline(const std::string& name, const DeviceEvents& device,
                   const Curve& curve, Table* table) const {
    const size_t count = curve.allocated.size();
    const size_t bins = std::min(count, kTimelineRows);
    for (size_t bin = 0; bin < bins; ++bin) {
      size_t best = count * bin / bins;
      for (size_t m = best; m < count * (bin + 1) / bins; ++m) {
        if (curve.allocated[m] > curve.allocated[best]) best = m;
      }
      TimelineColumns().Add(
          *table,
          {.device = name,
           .moment = best,
           .time = TimeOf(device, static_cast<int64_t>(best)),
           .allocated = device.driver ? std::nullopt
                                      : std::optional(curve.allocated[best]),
           .reserved = device.driver ? std::optional(curve.allocated[best])
                       : best > 0 && !curve.reserved.empty()
                           ? std::optional(curve.reserved[best - 1])
                           : std::nullopt});
    }
  }

  void Say(const std::string& name, const DeviceEvents& device,
           const Curve& curve, int64_t moment, ResultSet* result) const {
    const int64_t peak = curve.allocated[static_cast<size_t>(moment)];
    std::string text = fmt::format(
        "{}: peak {} {}", name, HumanBytes(static_cast<double>(peak)),
        device.driver ? "reserved from the driver" : "allocated");
    const int64_t reserved =
        curve.reserved.empty()
            ? 0
            : *std::max_element(curve.reserved.begin(), curve.reserved.end());
    // Less than what is allocated: the field is there and not filled (JAX).
    if (reserved >= peak) {
      text += fmt::format(" ({} reserved at most)",
                          HumanBytes(static_cast<double>(reserved)));
    }
    text += fmt::format(", after {}.",
                        Counted(static_cast<uint64_t>(moment), "memory event"));
    result->notes.push_back(MakeNote(Severity::kInfo, "memory_peak", text,
                                     {{"memory_summary", "", "", {}}}));
    if (!device.failed.empty()) {
      result->notes.push_back(
          MakeNote(Severity::kWarning, "memory_oom",
                   fmt::format("{}: {} failed for lack of memory.", name,
                               Counted(device.failed.size(), "allocation")),
                   {{"memory_oom", "", "", {}}}));
    }
  }

  // Devices of which the same is true share a sentence.
  static void JoinPeaks(ResultSet* result) {
    std::vector<Note> out;
    std::map<std::string, size_t> places;  // by what is true
    std::map<size_t, std::vector<std::string>> names;
    for (Note& note : result->notes) {
      const size_t colon = note.text.find(": peak ");
      if (note.id != "memory_peak" || colon == std::string::npos) {
        out.push_back(std::move(note));
        continue;
      }
      const auto [it, is_new] =
          places.try_emplace(note.text.substr(colon), out.size());
      names[it->second].push_back(note.text.substr(0, colon));
      if (is_new) out.push_back(std::move(note));
    }
    for (const auto& [tail, at] : places) {
      const auto& list = names[at];
      if (list.size() > 1)
        out[at].text = fmt::format("{} devices ({} to {}), each{}", list.size(),
                                   list.front(), list.back(), tail);
    }
    result->notes = std::move(out);
  }

  const Context& context_;
  const Options& options_;
  const Trace& trace_;
  std::vector<Who> who_;
};

Result<ResultSet> Run(const Context& context) {
  return MakeMemory(context, Options());
}

}  // namespace

ResultSet MakeMemory(const Context& context, const Options& options) {
  return Maker(context, options).Make();
}

std::map<int64_t, std::vector<MemoryEvent>> EventsByDevice(
    const Context& context) {
  std::map<int64_t, std::vector<MemoryEvent>> out;
  const Trace& trace = context.trace;
  const std::vector<Who> who = FindWho(context);
  for (const DeviceEvents& events : CollectDevices(trace)) {
    if (events.type == kHost || events.driver) continue;
    for (const uint32_t i : events.instants) {
      const trace::MemoryArgs& memory = trace.memory[trace.instants.memory[i]];
      out[events.id].push_back({trace.instants.time_ns[i], memory.address,
                                memory.bytes, i, who[i].op});
    }
  }
  return out;
}

AnalysisInfo Info() {
  return {"memory", "Memory of devices where the trace has memory events.",
          [] {
            return std::vector<Schema>{SummaryColumns().schema(),
                                       PeakColumns().schema()};
          },
          &Run};
}

}  // namespace lamina::analysis::memory
