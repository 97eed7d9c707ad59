// SPDX-License-Identifier: Apache-2.0
//
// Communication that nothing hides, and copies by direction, memory and size.
#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "analysis/common/collective.h"
#include "analysis/common/stats.h"
#include "analysis/host/tables.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "table/row_columns.h"

namespace lamina::analysis::host {
namespace {

using trace::kNoInt;

using OptionalText = std::optional<std::string_view>;
using OptionalInt = std::optional<int64_t>;

// One collective. Times in nanoseconds.
struct CommEvent {
  std::string_view device;
  int64_t stream = 0;
  std::string_view collective, kernel;
  OptionalText group, dtype;
  OptionalInt in_elements, in_bytes, out_bytes, group_size;
  int64_t uid = 0, start_ns = 0, time_ns = 0, hidden_ns = 0, alone_ns = 0,
          exposed_ns = 0;
  OptionalInt critical_ns, wait_ns, transfer_ns, early_ns, step;
  OptionalText layer;
  double bus_bytes = 0;  // what a link moves; 0: not known
  std::string overlapped;

  OptionalText overlapped_by() const { return TextOf(overlapped); }
  static OptionalText TextOf(const std::string& text) {
    return text.empty() ? std::nullopt : OptionalText(text);
  }
  // What moving took, with all waiting in it where nothing is known of that.
  int64_t moving_ns() const { return transfer_ns.value_or(time_ns); }
  std::optional<double> bus_gb_s() const {
    return Rate(bus_bytes, bus_bytes > 0 ? moving_ns() : 0);
  }
  // 1e9 bytes per second are bytes per nanosecond.
  static std::optional<double> Rate(double bytes, int64_t ns) {
    if (bytes <= 0 || ns <= 0) return std::nullopt;
    return bytes / static_cast<double>(ns);
  }
};

constexpr const char* kWaitDoc =
    "From its start to that of the last rank. Empty without the traces of all "
    "other ranks of its group (--ranks).";
constexpr const char* kTransferDoc =
    "Shortest duration of any rank: of the one that waited least. Empty "
    "without the traces of all other ranks of its group (--ranks).";
constexpr const char* kBusDoc =
    "Bytes that a link moves in the time of the transfer, 1e9 per second; "
    "without the other ranks over the whole time, so that it is at least "
    "this. Empty: bytes or ranks are not recorded.";
constexpr const char* kOverlappedDoc =
    "The three kernels that run beside it for longest, each with its time. "
    "Empty: none, or too many collectives at one time to look at each.";
constexpr const char* kCriticalDoc =
    "Of it, on the critical path (lamina path).";

const RowColumns<CommEvent>& CommEventColumns() {
  using R = CommEvent;
  static const RowColumns<R> columns{
      "comm_events",
      "Every collective: what hides it, and what of it the run waits for.",
      {{"device", ColumnType::kText, "process:device.", &R::device},
       {"stream", ColumnType::kInt, "Stream.", &R::stream},
       {"uid", ColumnType::kInt, "Event number.", &R::uid},
       {"start_us", ColumnType::kTime, "From the first event of the trace.",
        &R::start_ns},
       {"collective", ColumnType::kText, "As recorded; else from the kernel.",
        &R::collective},
       {"kernel", ColumnType::kText, "Kernel.", &R::kernel},
       {"process_group", ColumnType::kText, "As recorded.", &R::group},
       {"dtype", ColumnType::kText, "As recorded.", &R::dtype},
       {"in_bytes", ColumnType::kInt, "That go in.", &R::in_bytes,
        Shown::kBytes},
       {"out_bytes", ColumnType::kInt, "That come out.", &R::out_bytes,
        Shown::kBytes},
       {"group_size", ColumnType::kInt, "As recorded.", &R::group_size},
       {"time_us", ColumnType::kTime, "Duration.", &R::time_ns},
       {"hidden_us", ColumnType::kTime, "Beside computation of the device.",
        &R::hidden_ns},
       {"exposed_alone_us", ColumnType::kTime,
        "Outside computation, other collectives left out of account.",
        &R::alone_ns},
       {"exposed_us", ColumnType::kTime,
        "Outside computation; each moment belongs to the collective that "
        "began first.",
        &R::exposed_ns},
       {"critical_us", ColumnType::kTime, kCriticalDoc, &R::critical_ns},
       {"wait_us", ColumnType::kTime, kWaitDoc, &R::wait_ns},
       {"transfer_us", ColumnType::kTime, kTransferDoc, &R::transfer_ns},
       {"busbw_gb_per_s", ColumnType::kReal, kBusDoc, &R::bus_gb_s},
       {"launched_early_us", ColumnType::kTime,
        "From submitting to starting; empty: no call is known.", &R::early_ns},
       {"step", ColumnType::kInt, "Step of its launch.", &R::step},
       {"layer_name", ColumnType::kText, "Stack and number of its layer.",
        &R::layer},
       {"overlapped_by", ColumnType::kText, kOverlappedDoc,
        &R::overlapped_by}}};
  return columns;
}

// Collectives of one kind and size.
struct CommRow {
  CommEvent first;
  int64_t count = 0, time_ns = 0, hidden_ns = 0, alone_ns = 0, exposed_ns = 0;
  OptionalInt critical_ns, wait_ns, transfer_ns;
  double bus_bytes = 0;
  int64_t moving_ns = 0;  // of those with bus_bytes
  std::vector<int64_t> early;
  std::string overlapped;  // at the end

  void Add(const CommEvent& e) {
    if (count++ == 0) first = e;
    time_ns += e.time_ns;
    hidden_ns += e.hidden_ns;
    alone_ns += e.alone_ns;
    exposed_ns += e.exposed_ns;
    Sum(critical_ns, e.critical_ns);
    Sum(wait_ns, e.wait_ns);
    Sum(transfer_ns, e.transfer_ns);
    if (e.bus_bytes > 0) {
      bus_bytes += e.bus_bytes;
      moving_ns += e.moving_ns();
    }
    // What differs is said of none.
    Keep(first.dtype, e.dtype);
    Keep(first.in_bytes, e.in_bytes);
    Keep(first.out_bytes, e.out_bytes);
    Keep(first.group_size, e.group_size);
    Keep(first.step, e.step);
    Keep(first.layer, e.layer);
    if (e.early_ns) early.push_back(*e.early_ns);
  }
  template <class T>
  static void Keep(std::optional<T>& common, const std::optional<T>& value) {
    if (common != value) common.reset();
  }
  static void Sum(OptionalInt& sum, OptionalInt value) {
    if (value) sum = sum.value_or(0) + *value;
  }
  OptionalInt early_ns() const {
    std::vector<int64_t> values = early;
    return values.empty() ? OptionalInt() : Pick(values, 0.5);
  }
};

const RowColumns<CommRow>& CommColumns() {
  using R = CommRow;
  static const RowColumns<R> columns{
      "comm_exposure",
      "Communication by kind and size, and how much of it no computation "
      "hides. Sums of exposed_us are the exposed time of a device.",
      {{"device", ColumnType::kText, "process:device.",
        [](const R& r) { return r.first.device; }},
       {"stream", ColumnType::kInt, "Stream.",
        [](const R& r) { return r.first.stream; }},
       {"collective", ColumnType::kText, "As recorded; else from the kernel.",
        [](const R& r) { return r.first.collective; }},
       {"kernel", ColumnType::kText, "Kernel.",
        [](const R& r) { return r.first.kernel; }},
       {"process_group", ColumnType::kText, "As recorded.",
        [](const R& r) { return r.first.group; }},
       {"dtype", ColumnType::kText, "As recorded, where all have one.",
        [](const R& r) { return r.first.dtype; }},
       {"in_elements", ColumnType::kInt, "As recorded.",
        [](const R& r) { return r.first.in_elements; }},
       {"group_size", ColumnType::kInt, "As recorded, where all have one.",
        [](const R& r) { return r.first.group_size; }},
       {"count", ColumnType::kInt, "Collectives.", &R::count},
       {"time_us", ColumnType::kTime, "Sum of durations.", &R::time_ns},
       {"hidden_us", ColumnType::kTime, "Beside computation of the device.",
        &R::hidden_ns},
       {"hidden_percent", ColumnType::kReal, "Its share.",
        [](const R& r) { return PercentOf(r.hidden_ns, r.time_ns); },
        Shown::kPercent},
       {"exposed_alone_us", ColumnType::kTime,
        "Outside computation, other collectives left out of account.",
        &R::alone_ns},
       {"exposed_us", ColumnType::kTime,
        "Outside computation; each moment belongs to the collective that "
        "began first.",
        &R::exposed_ns},
       {"launched_early_us", ColumnType::kTime,
        "Median time from submitting to starting.", &R::early_ns},
       {"critical_us", ColumnType::kTime, kCriticalDoc, &R::critical_ns},
       {"wait_us", ColumnType::kTime, kWaitDoc, &R::wait_ns},
       {"transfer_us", ColumnType::kTime, kTransferDoc, &R::transfer_ns},
       {"busbw_gb_per_s", ColumnType::kReal, kBusDoc,
        [](const R& r) { return CommEvent::Rate(r.bus_bytes, r.moving_ns); }},
       {"in_bytes", ColumnType::kInt, "That go into each, where all are alike.",
        [](const R& r) { return r.first.in_bytes; }, Shown::kBytes},
       {"out_bytes", ColumnType::kInt,
        "That come out of each, where all are alike.",
        [](const R& r) { return r.first.out_bytes; }, Shown::kBytes},
       {"step", ColumnType::kInt, "Step, where all are of one.",
        [](const R& r) { return r.first.step; }},
       {"layer_name", ColumnType::kText, "Layer, where all are of one.",
        [](const R& r) { return r.first.layer; }},
       {"overlapped_by", ColumnType::kText, kOverlappedDoc,
        [](const R& r) { return CommEvent::TextOf(r.overlapped); }}}};
  return columns;
}

// Time beside computation by the name of the kernel.
using BesideTimes = std::map<StringId, int64_t>;

// What computes on a device at a time. Streams are looked at one by one: on
// each, work follows work, so that few kernels lie beside a collective.
class Beside {
 public:
  template <class Keep>
  Beside(const HostModel& model, uint32_t device, const Keep& keep)
      : trace_(model.trace()),
        left_(kMostLooks * (model.devices()[device].work.size() + 1)) {
    std::map<uint32_t, size_t> at;
    for (const SliceId s : model.devices()[device].work) {
      if (!keep(s)) continue;
      const auto [it, is_new] = at.try_emplace(model.stream(s), lanes_.size());
      if (is_new) lanes_.emplace_back();
      Lane& lane = lanes_[it->second];
      lane.work.push_back(s);
      lane.reached.push_back(std::max(
          lane.reached.empty() ? kNoInt : lane.reached.back(), trace_.End(s)));
    }
  }

  // Adds what lies beside an interval. False: not done, and never again, as too
  // much was looked at.
  bool Add(const Interval& of, BesideTimes& sums) {
    for (const Lane& lane : lanes_) {
      size_t i = static_cast<size_t>(std::upper_bound(lane.reached.begin(),
                                                      lane.reached.end(),
                                                      of.start_ns) -
                                     lane.reached.begin());
      do {
        if (left_ == 0) return false;
        --left_;
        if (i == lane.work.size() || trace_.Start(lane.work[i]) >= of.end_ns)
          break;
        const SliceId s = lane.work[i++];
        const int64_t time = std::min(of.end_ns, trace_.End(s)) -
                             std::max(of.start_ns, trace_.Start(s));
        if (time > 0) sums[trace_.slices.name[s.value]] += time;
      } while (true);
    }
    return true;
  }

  // "gemm 12.500 us; gelu 3.000 us".
  std::string Text(const BesideTimes& sums) const {
    std::vector<std::pair<int64_t, std::string_view>> order;
    for (const auto& [name, time] : sums)
      order.emplace_back(-time, trace_.Text(name));
    constexpr size_t kMost = 3;
    const size_t count = std::min(kMost, order.size());
    std::partial_sort(order.begin(),
                      order.begin() + static_cast<ptrdiff_t>(count),
                      order.end());
    std::string text;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) text += "; ";
      text += order[i].second;
      text += " " + FormatMicroseconds(-order[i].first) + " us";
    }
    return text;
  }

 private:
  // For each work of the device. A file that was made to take time has more.
  static constexpr size_t kMostLooks = 64;
  struct Lane {
    std::vector<SliceId> work;     // by start
    std::vector<int64_t> reached;  // the latest end up to each
  };
  const Trace& trace_;
  std::vector<Lane> lanes_;
  size_t left_;
};

// Copies of one direction, memory and size class.
struct CopyRow {
  std::string_view device, direction, memory;
  int size = 0;             // bytes as a power of two; -1: not recorded
  double peak_gb_s = 0;     // 0: not known
  int64_t shortest_ns = 0;  // of its direction and memory
  int64_t count = 0, bytes = 0, time_ns = 0, exposed_ns = 0, blocked_ns = 0;
  OptionalInt critical_ns;
  double best = 0;

  bool known() const { return size >= 0; }
  OptionalInt up_to() const {
    if (!known()) return std::nullopt;
    return size < 62 ? int64_t{1} << size : bytes;
  }
  OptionalInt sum() const {
    return known() ? OptionalInt(bytes) : std::nullopt;
  }
  std::optional<double> rate() const {
    if (!known() || time_ns <= 0) return std::nullopt;
    return static_cast<double>(bytes) / static_cast<double>(time_ns);
  }
  std::optional<double> peak_percent() const {
    const auto own = rate();
    if (!own || *own <= 0 || peak_gb_s <= 0) return std::nullopt;
    return 100 * *own / peak_gb_s;
  }
  static std::optional<double> Above0(double value) {
    return value > 0 ? std::optional(value) : std::nullopt;
  }
};

const RowColumns<CopyRow>& CopyColumns() {
  using R = CopyRow;
  static const RowColumns<R> columns{
      "copies",
      "Copies by direction, memory and size (powers of two).",
      {{"device", ColumnType::kText, "process:device.", &R::device},
       {"direction", ColumnType::kText,
        "HtoD, DtoH, DtoD, PtoP, HtoH; empty: not recorded.", &R::direction},
       {"memory", ColumnType::kText,
        "pageable, pinned or device, of the host's side.", &R::memory},
       {"up_to_bytes", ColumnType::kInt,
        "Largest of the size class; empty: no bytes are recorded.", &R::up_to,
        Shown::kBytes},
       {"count", ColumnType::kInt, "Copies.", &R::count},
       {"bytes", ColumnType::kInt, "Sum.", &R::sum, Shown::kBytes},
       {"time_us", ColumnType::kTime, "Sum of durations.", &R::time_ns},
       {"gb_per_s", ColumnType::kReal, "Bytes over time, 1e9 per second.",
        &R::rate},
       {"best_gb_per_s", ColumnType::kReal, "Of the fastest copy.",
        [](const R& r) { return R::Above0(r.best); }},
       {"link_peak_gb_per_s", ColumnType::kReal,
        "Of the link in this direction, by the data of the device: PCIe to "
        "and from the host, NVLink or xGMI between devices, half of the "
        "memory's rate within one. Empty: not known.",
        [](const R& r) { return R::Above0(r.peak_gb_s); }},
       {"peak_percent", ColumnType::kReal, "gb_per_s, of it.", &R::peak_percent,
        Shown::kPercent},
       {"bound", ColumnType::kText,
        "latency: takes less than twice as long as the shortest copy of "
        "its direction and memory; else bandwidth.",
        [](const R& r) -> std::string_view {
          return r.time_ns < 2 * r.count * r.shortest_ns ? "latency"
                                                         : "bandwidth";
        }},
       {"exposed_us", ColumnType::kTime,
        "While nothing else ran on the device.", &R::exposed_ns},
       {"host_blocked_us", ColumnType::kTime,
        "Time of calls that returned when the copy was done.", &R::blocked_ns},
       {"critical_us", ColumnType::kTime,
        "Of time_us, on the critical path (lamina path).", &R::critical_ns}}};
  return columns;
}

// What carries a copy of this direction; 0: not known. With several devices
// some profilers call copies between them DtoD, too.
double PeakOf(std::string_view direction, const LinkPeaks& peaks,
              size_t devices) {
  if (direction == "HtoD" || direction == "DtoH") return peaks.host;
  if (direction == "PtoP") return peaks.device;
  // Every byte is read and written.
  return direction == "DtoD" && devices == 1 ? peaks.memory / 2 : 0;
}

// "Memcpy HtoD (Pageable -> Device)".
std::string_view DirectionOf(std::string_view name) {
  for (const std::string_view word : {"HtoD", "DtoH", "DtoD", "PtoP", "HtoH"}) {
    if (name.find(word) != std::string_view::npos) return word;
  }
  const auto has = [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  };
  if (has("HostToDevice")) return "HtoD";
  if (has("DeviceToHost")) return "DtoH";
  return has("DeviceToDevice") ? "DtoD" : "";
}
std::string_view MemoryOf(std::string_view name) {
  const auto has = [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  };
  if (has("Pageable")) return "pageable";
  if (has("Pinned")) return "pinned";
  return has("Device") ? "device" : "";
}

class Transfers {
 public:
  Transfers(const HostModel& model, const LinkPeaks& peaks,
            const WorkFacts& facts)
      : model_(model),
        trace_(model.trace()),
        peaks_(peaks),
        facts_(facts),
        events_(CommEventColumns().schema()),
        comm_(CommColumns().schema()),
        copies_(CopyColumns().schema()) {
    for (const Collective& c :
         CollectCollectives(model.context().tree, model.context().device))
      by_slice_[c.slice] = c;
  }

  ResultSet Make(bool events) {
    for (uint32_t d = 0; d < model_.devices().size(); ++d) {
      Comm(d, events);
      Copies(d);
    }
    ResultSet result;
    result.tables.push_back(std::move(comm_));
    if (events) result.tables.push_back(std::move(events_));
    result.tables.push_back(std::move(copies_));
    if (groups_left_out_ > 0) {
      result.notes.push_back(MakeNote(
          Severity::kInfo, "overlapped_by_left_out",
          "overlapped_by is empty in " + Counted(groups_left_out_, "row") +
              " of comm_exposure" +
              (events ? " and in " + Counted(events_left_out_, "row") +
                            " of comm_events"
                      : "") +
              " for which something computes beside the communication: too "
              "much runs at one time to look at all of it.",
          {{"comm_exposure", "overlapped_by", "", {}}}));
    }
    return result;
  }

 private:
  template <class Keep>
  Cover CoverOf(uint32_t device, const Keep& keep) const {
    std::vector<Interval> intervals;
    for (const SliceId s : model_.devices()[device].work) {
      if (keep(s)) intervals.push_back({trace_.Start(s), trace_.End(s)});
    }
    return Cover(std::move(intervals));
  }
  uint32_t Row(SliceId s) const { return trace_.slices.detail[s.value]; }

  // What is known of a collective but for what hides it.
  CommEvent EventOf(uint32_t device, SliceId s) const {
    static const Collective kUnknown;
    static const trace::CollectiveArgs kNothing;
    const auto found = by_slice_.find(s);
    const Collective& c = found == by_slice_.end() ? kUnknown : found->second;
    const trace::CollectiveArgs& args = c.args == nullptr ? kNothing : *c.args;
    const auto text = [&](StringId id) {
      return id.valid() ? OptionalText(trace_.Text(id)) : std::nullopt;
    };
    const auto number = [](int64_t value) {
      return value == kNoInt ? std::nullopt : OptionalInt(value);
    };
    CommEvent e;
    e.device = model_.devices()[device].name;
    e.stream = trace_.streams[model_.stream(s)].stream;
    if (args.name.valid()) {
      e.collective = trace_.Text(args.name);
    } else if (c.kind != CollectiveKind::kUnknown) {
      e.collective = CollectiveKindName(c.kind);
    }
    e.kernel = trace_.Name(s);
    e.group = text(args.group);
    e.dtype = text(args.dtype);
    e.in_elements = number(args.in_elements);
    const std::string_view dtype = trace_.Text(args.dtype);
    e.in_bytes = CollectiveBytes(args.in_elements, dtype);
    e.out_bytes = CollectiveBytes(args.out_elements, dtype);
    e.group_size = number(args.group_size);
    const auto bytes = CollectiveBytes(
        MessageElements(c.kind, args.in_elements, args.out_elements), dtype);
    if (bytes && c.kind != CollectiveKind::kUnknown && args.group_size > 0) {
      e.bus_bytes =
          static_cast<double>(*bytes) * BusFactor(c.kind, args.group_size);
    }
    e.uid = static_cast<int64_t>(trace_.Uid(s));
    e.start_ns = trace_.Start(s) - trace_.first_ns;
    e.time_ns = trace_.Duration(s);
    e.critical_ns = facts_.PathOf(Row(s));
    if (const auto it = facts_.ranks.find(s); it != facts_.ranks.end()) {
      e.wait_ns = it->second.wait_ns;
      e.transfer_ns = it->second.transfer_ns;
    }
    if (const uint32_t call = model_.call(s); call != kNone) {
      e.early_ns = std::max<int64_t>(
          0, trace_.Start(s) - model_.calls()[call].submit_ns);
    }
    const auto& steps = model_.context().steps;
    e.step = steps.NumberOf(steps.StepOf(s));
    e.layer = facts_.layers.Of(Row(s));
    return e;
  }

  void Comm(uint32_t device, bool events) {
    const auto computes = [&](SliceId s) {
      const WorkKind kind = model_.kind(s);
      return kind == WorkKind::kCompute || kind == WorkKind::kFill;
    };
    const Cover compute = CoverOf(device, computes);
    std::optional<Beside> beside;
    using Key = std::tuple<StringId, int64_t, std::string_view, int64_t,
                           std::string_view>;
    std::map<Key, std::pair<CommRow, std::optional<BesideTimes>>> sums;
    int64_t reached = kNoInt;
    for (const SliceId s : model_.devices()[device].work) {
      if (model_.kind(s) != WorkKind::kComm) continue;
      if (!beside) beside.emplace(model_, device, computes);
      const int64_t start = trace_.Start(s);
      const int64_t end = trace_.End(s);
      // What an earlier collective covers is its own.
      const int64_t from = std::max(start, std::min(reached, end));
      reached = std::max(reached, end);
      CommEvent e = EventOf(device, s);
      e.hidden_ns = compute.Over(start, end);
      e.alone_ns = end - start - e.hidden_ns;
      e.exposed_ns = end - from - compute.Over(from, end);
      auto& [row, names] =
          sums[{trace_.slices.name[s.value], e.stream, e.collective,
                e.in_elements.value_or(kNoInt), e.group.value_or("")}];
      if (row.count == 0) names.emplace();
      BesideTimes own;
      if (e.hidden_ns > 0 && !beside->Add({start, end}, own)) {
        names.reset();
        ++events_left_out_;
      } else {
        if (events) e.overlapped = beside->Text(own);
        if (names) {
          for (const auto& [name, time] : own) (*names)[name] += time;
        }
      }
      if (events) CommEventColumns().Add(events_, e);
      row.Add(e);
    }
    std::vector<const CommRow*> rows;
    for (auto& [key, sum] : sums) {
      auto& [row, names] = sum;
      if (names) {
        row.overlapped = beside->Text(*names);
      } else {
        ++groups_left_out_;
      }
      rows.push_back(&row);
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const CommRow* a, const CommRow* b) {
                       return a->exposed_ns > b->exposed_ns;
                     });
    for (const CommRow* row : rows) CommColumns().Add(comm_, *row);
  }

  void Copies(uint32_t device) {
    const Cover other = CoverOf(
        device, [&](SliceId s) { return model_.kind(s) != WorkKind::kCopy; });
    std::map<std::tuple<std::string_view, std::string_view, int>, CopyRow> sums;
    std::map<std::pair<std::string_view, std::string_view>, int64_t> shortest;
    int64_t reached = kNoInt;
    for (const SliceId s : model_.devices()[device].work) {
      if (model_.kind(s) != WorkKind::kCopy) continue;
      const std::string_view name = trace_.Name(s);
      const std::string_view direction = DirectionOf(name);
      const std::string_view memory = MemoryOf(name);
      const int64_t bytes = trace_.Device(s)->bytes;
      const int64_t ns = trace_.Duration(s);
      const int size = bytes < 0 ? -1
                                 : std::bit_width(static_cast<uint64_t>(
                                       std::max<int64_t>(bytes, 1) - 1));
      CopyRow& row = sums[{direction, memory, size}];
      ++row.count;
      row.time_ns += ns;
      CommRow::Sum(row.critical_ns, facts_.PathOf(Row(s)));
      if (bytes > 0) {
        row.bytes += bytes;
        if (ns > 0)
          row.best = std::max(
              row.best, static_cast<double>(bytes) / static_cast<double>(ns));
      }
      const int64_t end = trace_.End(s);
      const int64_t from = std::max(trace_.Start(s), std::min(reached, end));
      reached = std::max(reached, end);
      row.exposed_ns += end - from - other.Over(from, end);
      const auto [it, is_new] = shortest.try_emplace({direction, memory}, ns);
      it->second = std::min(it->second, ns);
      const uint32_t c = model_.call(s);
      if (c == kNone) continue;
      const Call& call = model_.calls()[c];
      if (call.staged ||
          (model_.Work(call).size() == 1 && end <= trace_.End(call.slice)))
        row.blocked_ns += trace_.Duration(call.slice);
    }
    for (auto& [key, row] : sums) {
      std::tie(row.direction, row.memory, row.size) = key;
      row.device = model_.devices()[device].name;
      row.shortest_ns = shortest[{row.direction, row.memory}];
      row.peak_gb_s =
          PeakOf(row.direction, peaks_, model_.devices().size()) / 1e9;
      CopyColumns().Add(copies_, row);
    }
  }

  const HostModel& model_;
  const Trace& trace_;
  const LinkPeaks& peaks_;
  const WorkFacts& facts_;
  std::map<SliceId, Collective> by_slice_;
  Table events_, comm_, copies_;
  // Rows of which overlapped_by is not known.
  uint64_t events_left_out_ = 0, groups_left_out_ = 0;
};

}  // namespace

ResultSet TransferTables(const HostModel& model, const LinkPeaks& peaks,
                         const WorkFacts& facts, bool events) {
  return Transfers(model, peaks, facts).Make(events);
}

std::vector<Schema> TransferSchemas() {
  return {CommColumns().schema(), CommEventColumns().schema(),
          CopyColumns().schema()};
}

}  // namespace lamina::analysis::host
