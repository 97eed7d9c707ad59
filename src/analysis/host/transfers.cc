// SPDX-License-Identifier: Apache-2.0
//
// Communication that nothing hides, and copies by direction, memory and size.
#include <algorithm>
#include <bit>
#include <map>

#include "analysis/common/collective.h"
#include "analysis/common/stats.h"
#include "analysis/host/tables.h"

namespace lamina::analysis::host {
namespace {

using trace::kNoInt;

Schema CommSchema() {
  return {
      "comm_exposure",
      "Communication by kind and size, and how much of it no computation "
      "hides. Sums of exposed_us are the exposed time of a device.",
      {{"device", ColumnType::kText, "process:device."},
       {"stream", ColumnType::kInt, "Stream."},
       {"collective", ColumnType::kText, "As recorded; else from the kernel."},
       {"kernel", ColumnType::kText, "Kernel."},
       {"process_group", ColumnType::kText, "As recorded."},
       {"dtype", ColumnType::kText, "As recorded."},
       {"in_elements", ColumnType::kInt, "As recorded."},
       {"group_size", ColumnType::kInt, "As recorded."},
       {"count", ColumnType::kInt, "Collectives."},
       {"time_us", ColumnType::kTime, "Sum of durations."},
       {"hidden_us", ColumnType::kTime, "Beside computation of the device."},
       {"hidden_percent", ColumnType::kReal, "Its share.", Shown::kPercent},
       {"exposed_alone_us", ColumnType::kTime,
        "Outside computation, other collectives left out of account."},
       {"exposed_us", ColumnType::kTime,
        "Outside computation; each moment belongs to the collective that "
        "began first."},
       {"launched_early_us", ColumnType::kTime,
        "Median time from submitting to starting."}}};
}

Schema CopiesSchema() {
  return {
      "copies",
      "Copies by direction, memory and size (powers of two).",
      {{"device", ColumnType::kText, "process:device."},
       {"direction", ColumnType::kText,
        "HtoD, DtoH, DtoD, PtoP, HtoH; empty: not recorded."},
       {"memory", ColumnType::kText,
        "pageable, pinned or device, of the host's side."},
       {"up_to_bytes", ColumnType::kInt,
        "Largest of the size class; empty: no bytes are recorded.",
        Shown::kBytes},
       {"count", ColumnType::kInt, "Copies."},
       {"bytes", ColumnType::kInt, "Sum.", Shown::kBytes},
       {"time_us", ColumnType::kTime, "Sum of durations."},
       {"gb_per_s", ColumnType::kReal, "Bytes over time, 1e9 per second."},
       {"best_gb_per_s", ColumnType::kReal, "Of the fastest copy."},
       {"link_peak_gb_per_s", ColumnType::kReal,
        "Of the link in this direction, by the data of the device: PCIe to "
        "and from the host, NVLink or xGMI between devices, half of the "
        "memory's rate within one. Empty: not known."},
       {"peak_percent", ColumnType::kReal, "gb_per_s, of it.", Shown::kPercent},
       {"bound", ColumnType::kText,
        "latency: takes less than twice as long as the shortest copy of "
        "its direction and memory; else bandwidth."},
       {"exposed_us", ColumnType::kTime,
        "While nothing else ran on the device."},
       {"host_blocked_us", ColumnType::kTime,
        "Time of calls that returned when the copy was done."}}};
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
  return "";
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
  Transfers(const HostModel& model, const LinkPeaks& peaks)
      : model_(model), trace_(model.trace()), peaks_(peaks) {
    for (const Collective& c :
         CollectCollectives(model.context().tree, model.context().device))
      by_slice_[c.slice] = c;
  }

  ResultSet Make() {
    ResultSet result;
    Table comm(CommSchema());
    for (uint32_t d = 0; d < model_.devices().size(); ++d) Comm(comm, d);
    result.tables.push_back(std::move(comm));
    Table copies(CopiesSchema());
    for (uint32_t d = 0; d < model_.devices().size(); ++d) Copies(copies, d);
    result.tables.push_back(std::move(copies));
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

  void Comm(Table& table, uint32_t device) const {
    struct Sum {
      const trace::CollectiveArgs* args = nullptr;
      int64_t count = 0, time = 0, hidden = 0, alone = 0, exposed = 0;
      std::vector<int64_t> early;
    };
    const Cover compute = CoverOf(device, [&](SliceId s) {
      const WorkKind kind = model_.kind(s);
      return kind == WorkKind::kCompute || kind == WorkKind::kFill;
    });
    using Key =
        std::tuple<StringId, int64_t, std::string, int64_t, std::string>;
    std::map<Key, Sum> sums;
    int64_t reached = kNoInt;
    for (const SliceId s : model_.devices()[device].work) {
      if (model_.kind(s) != WorkKind::kComm) continue;
      const int64_t start = trace_.Start(s);
      const int64_t end = trace_.End(s);
      // What an earlier collective covers is its own.
      const int64_t from = std::max(start, std::min(reached, end));
      reached = std::max(reached, end);
      const auto found = by_slice_.find(s);
      const trace::CollectiveArgs* args =
          found == by_slice_.end() ? nullptr : found->second.args;
      std::string name, group;
      if (args != nullptr && args->name.valid()) {
        name = trace_.Text(args->name);
      } else if (found != by_slice_.end() &&
                 found->second.kind != CollectiveKind::kUnknown) {
        name = CollectiveKindName(found->second.kind);
      }
      if (args != nullptr && args->group.valid())
        group = trace_.Text(args->group);
      Sum& sum = sums[{trace_.slices.name[s.value],
                       trace_.streams[model_.stream(s)].stream, name,
                       args == nullptr ? kNoInt : args->in_elements, group}];
      sum.args = args;
      ++sum.count;
      sum.time += end - start;
      const int64_t hidden = compute.Over(start, end);
      sum.hidden += hidden;
      sum.alone += end - start - hidden;
      sum.exposed += end - from - compute.Over(from, end);
      const uint32_t c = model_.call(s);
      if (c != kNone)
        sum.early.push_back(
            std::max<int64_t>(0, start - model_.calls()[c].submit_ns));
    }
    std::vector<std::pair<Key, Sum>> rows(sums.begin(), sums.end());
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) {
                       return a.second.exposed > b.second.exposed;
                     });
    const auto text = [&](StringId id) {
      return id.valid() ? Value(trace_.Text(id)) : Value();
    };
    const auto number = [](int64_t value) {
      return value == kNoInt ? Value() : Value(value);
    };
    for (auto& [key, sum] : rows) {
      const trace::CollectiveArgs none;
      const trace::CollectiveArgs& args =
          sum.args == nullptr ? none : *sum.args;
      table.Add(model_.devices()[device].name, std::get<1>(key),
                std::get<2>(key), trace_.Text(std::get<0>(key)),
                text(args.group), text(args.dtype), number(std::get<3>(key)),
                number(args.group_size), sum.count, sum.time, sum.hidden,
                PercentOf(sum.hidden, sum.time), sum.alone, sum.exposed,
                sum.early.empty() ? Value() : Value(Pick(sum.early, 0.5)));
    }
  }

  void Copies(Table& table, uint32_t device) const {
    struct Sum {
      int64_t count = 0, bytes = 0, time = 0, exposed = 0, blocked = 0;
      double best = 0;
    };
    const Cover other = CoverOf(
        device, [&](SliceId s) { return model_.kind(s) != WorkKind::kCopy; });
    std::map<std::tuple<std::string_view, std::string_view, int>, Sum> sums;
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
      Sum& sum = sums[{direction, memory, size}];
      ++sum.count;
      sum.time += ns;
      if (bytes > 0) {
        sum.bytes += bytes;
        if (ns > 0)
          sum.best = std::max(
              sum.best, static_cast<double>(bytes) / static_cast<double>(ns));
      }
      const int64_t end = trace_.End(s);
      const int64_t from = std::max(trace_.Start(s), std::min(reached, end));
      reached = std::max(reached, end);
      sum.exposed += end - from - other.Over(from, end);
      const auto [it, is_new] = shortest.try_emplace({direction, memory}, ns);
      it->second = std::min(it->second, ns);
      const uint32_t c = model_.call(s);
      if (c == kNone) continue;
      const Call& call = model_.calls()[c];
      if (call.staged ||
          (model_.Work(call).size() == 1 && end <= trace_.End(call.slice)))
        sum.blocked += trace_.Duration(call.slice);
    }
    for (const auto& [key, sum] : sums) {
      const auto& [direction, memory, size] = key;
      const bool known = size >= 0;
      const double rate =
          known && sum.time > 0
              ? static_cast<double>(sum.bytes) / static_cast<double>(sum.time)
              : 0;
      const double peak =
          PeakOf(direction, peaks_, model_.devices().size()) / 1e9;
      table.Add(
          model_.devices()[device].name, direction, memory,
          known ? Value(size < 62 ? int64_t{1} << size : sum.bytes) : Value(),
          sum.count, known ? Value(sum.bytes) : Value(), sum.time,
          known && sum.time > 0 ? Value(rate) : Value(),
          sum.best > 0 ? Value(sum.best) : Value(),
          peak > 0 ? Value(peak) : Value(),
          peak > 0 && rate > 0 ? Value(100 * rate / peak) : Value(),
          sum.time < 2 * sum.count * shortest[{direction, memory}]
              ? "latency"
              : "bandwidth",
          sum.exposed, sum.blocked);
    }
  }

  const HostModel& model_;
  const Trace& trace_;
  const LinkPeaks& peaks_;
  std::map<SliceId, Collective> by_slice_;
};

}  // namespace

ResultSet TransferTables(const HostModel& model, const LinkPeaks& peaks) {
  return Transfers(model, peaks).Make();
}

std::vector<Schema> TransferSchemas() { return {CommSchema(), CopiesSchema()}; }

}  // namespace lamina::analysis::host
