// SPDX-License-Identifier: Apache-2.0
//
// May I believe this report? Coverage, what was lost, what looks impossible,
// what the recording lacks.
#include <algorithm>
#include <fmt/core.h>
#include <functional>
#include <string>
#include <vector>

#include "analysis/common/context.h"
#include "base/decimal.h"
#include "base/run_sort.h"

namespace lamina::analysis::health {
namespace {

Schema HealthSchema() {
  return {
      "trace_health",
      "How far the numbers can be trusted.",
      {{"check", ColumnType::kText, "Stable name of the check."},
       {"status", ColumnType::kText,
        "ok, info, warn, or lost (something is in no number)."},
       {"value", ColumnType::kText, "What was found."},
       {"meaning", ColumnType::kText,
        "What it means for the other tables and what to do."},
       {"count", ColumnType::kInt, "Events concerned.", Shown::kHidden},
       {"percent", ColumnType::kReal, "Share, where it is one.",
        Shown::kHidden},
       {"first_offset", ColumnType::kInt,
        "Byte in the unpacked input of the first of them.", Shown::kHidden}}};
}

class Health {
 public:
  explicit Health(const Context& context)
      : context_(context), trace_(context.trace), table_(HealthSchema()) {}

  Table Make() {
    Coverage();
    Costs();
    Recording();
    Launches();
    Structure();
    Records();
    return std::move(table_);
  }

 private:
  void Add(std::string_view check, std::string_view status,
           std::string_view value, std::string_view meaning,
           std::optional<int64_t> count = std::nullopt,
           std::optional<double> percent = std::nullopt,
           std::optional<int64_t> offset = std::nullopt) {
    table_.Add(check, status, value, meaning, count, percent, offset);
  }

  static std::string PercentText(double percent) {
    return fmt::format("{:.1f} %", percent);
  }

  void Coverage() {
    int64_t all = 0;
    int64_t linked = 0;
    int64_t categorised = 0;
    size_t linked_count = 0;
    std::vector<int64_t> by_reason(tree::kUnlinkedReasons, 0);
    std::vector<size_t> count_by_reason(tree::kUnlinkedReasons, 0);
    const size_t other = context_.catalog.FamilyIndex("other");
    for (const SliceId s : trace_.device_slices()) {
      const int64_t dur = trace_.Duration(s);
      all += dur;
      const auto reason = static_cast<size_t>(context_.tree.unlinked(s));
      by_reason[reason] += dur;
      ++count_by_reason[reason];
      if (context_.tree.launch(s).valid()) {
        linked += dur;
        ++linked_count;
      }
      if (context_.device.family(s) != other) categorised += dur;
    }
    const size_t count = trace_.device_slices().size();
    if (count == 0) {
      Add("device_work", "warn", "no GPU events",
          "The recording has no device activity: switch it on "
          "(ProfilerActivity.CUDA) and record work that uses the GPU. Host "
          "tables are complete.",
          0);
      return;
    }
    const auto share = [&](int64_t part) {
      return all > 0
                 ? 100.0 * static_cast<double>(part) / static_cast<double>(all)
                 : 100.0;
    };
    const double linked_share = share(linked);
    Add("linked_device_time", linked_share >= 99.5 ? "ok" : "warn",
        PercentText(linked_share),
        linked_share >= 99.5
            ? "Device time whose launch is in the trace."
            : "The rest has no launch in the trace: it is in gpu_timeline and "
              "kernels, and in op tables only as the row \"unlinked\".",
        static_cast<int64_t>(linked_count), linked_share);
    for (int r = 1; r < tree::kUnlinkedReasons; ++r) {
      const auto i = static_cast<size_t>(r);
      if (count_by_reason[i] == 0) continue;
      static constexpr std::string_view kMeanings[] = {
          "", "Device events carry neither correlation nor External id.",
          "Launched before the recording began, or by a call that was not "
          "traced.",
          "The flow event between call and work is missing.",
          "The trace has no host events: record CPU activity too."};
      Add("unlinked_" +
              std::string(UnlinkedName(static_cast<tree::Unlinked>(r))),
          "info",
          fmt::format("{} events, {}",
                      GroupDigits(static_cast<int64_t>(count_by_reason[i])),
                      HumanTime(by_reason[i])),
          kMeanings[r], static_cast<int64_t>(count_by_reason[i]),
          share(by_reason[i]));
    }
    const double known = share(categorised);
    Add("categorised_device_time", known >= 95 ? "ok" : "warn",
        PercentText(known),
        known >= 95 ? "Device time in a known category."
                    : "The rest is in the category \"other\": add its ops or "
                      "kernels to a file in --rules.",
        std::nullopt, known);
  }

  // How much of the linked time, without communication, has a cost model, and
  // which device the rooflines are for.
  void Costs() {
    if (context_.efficiency == nullptr || trace_.device_slices().empty())
      return;
    const CostView& view = *context_.efficiency->costs;
    int64_t all = 0;
    int64_t costed = 0;
    int64_t estimated = 0;
    for (const CostView::Call& call : view.calls()) {
      const CostView::Group& group = view.groups()[call.group];
      int64_t sum = 0;
      for (const SliceId s : view.Work(call)) sum += trace_.Duration(s);
      all += sum;
      if (!group.cost) continue;
      costed += sum;
      if (group.cost->fidelity == cost::Fidelity::kEstimated) estimated += sum;
    }
    if (all == 0) return;
    const auto share = [&](int64_t part) {
      return 100.0 * static_cast<double>(part) / static_cast<double>(all);
    };
    Add("modelled_device_time", share(costed) >= 90 ? "ok" : "info",
        fmt::format("{}, {} estimated", PercentText(share(costed)),
                    PercentText(share(estimated))),
        "Linked device time without communication whose op has a cost model; "
        "op_efficiency says why the rest has none.",
        std::nullopt, share(costed));
    const auto& device = context_.efficiency->device;
    if (!device) {
      const std::string name =
          trace_.info.devices.empty() ? "" : trace_.info.devices[0].name;
      Add("roofline_device", "info", name.empty() ? "not recorded" : name,
          "No rooflines: give the device with --device (lamina list devices).");
      return;
    }
    std::string meaning = "Peaks: " + device->source + ".";
    if (device->assumed)
      meaning += " Told by memory and capability: the trace has no name.";
    if (device->scaled)
      meaning += " Scaled to the multiprocessors of the trace.";
    Add("roofline_device", device->assumed ? "info" : "ok", device->title,
        meaning);
  }

  void Recording() {
    const trace::Info& info = trace_.info;
    if (!info.format_lacks.empty())
      Add("format", "info", info.format,
          "Not in such files: " + info.format_lacks);
    bool shapes = false;
    bool ops = false;
    for (const trace::OpArgs& op : trace_.ops) {
      ops = true;
      if (op.dims.valid()) {
        shapes = true;
        break;
      }
    }
    size_t python = 0;
    for (size_t i = 0; i < trace_.slices.size() && python == 0; ++i)
      python += trace_.slices.kind[i] == trace::Kind::kPython;
    // Options of torch.profiler help only where it can record these.
    const bool possible = info.format_lacks.empty();
    if (!ops) {
      Add("host_ops", "info", "none",
          possible ? "No framework ops: tables by op show API calls. Record "
                     "CPU activity."
                   : "No framework ops: tables by op show API calls.");
    }
    if (ops && (shapes || possible)) {
      Add("shapes", shapes ? "ok" : "info", shapes ? "recorded" : "none",
          shapes ? "Ops carry their argument shapes."
                 : "Record with record_shapes=True for op_shapes and cost "
                   "models.");
    }
    if (python > 0 || possible) {
      Add("python_stacks", python > 0 ? "ok" : "info",
          python > 0 ? "recorded" : "none",
          python > 0 ? "Python frames are there."
                     : "Record with with_stack=True for source lines and "
                       "modules.");
    }
    const tree::Modules& modules = context_.modules;
    if (!modules.empty() || possible) {
      Add("modules", modules.empty() ? "info" : "ok",
          modules.empty()
              ? "none"
              : fmt::format("{} calls of {} modules", modules.calls().size(),
                            modules.paths().size()),
          modules.empty()
              ? "Record with with_stack=True (and with_modules=True) for the "
                "module tree."
              : "nn.Module calls are in the trace.");
    }
    LaunchFlows();
    Add("steps", context_.steps.steps().empty() ? "info" : "ok",
        context_.steps.steps().empty()
            ? "none"
            : fmt::format("{}", context_.steps.steps().size()),
        context_.steps.steps().empty()
            ? "No step ranges: call profiler.step() for figures per step."
            : "Step ranges are in the trace.");
  }

  void LaunchFlows() {
    std::vector<int64_t> starts;
    std::vector<int64_t> ends;
    // Kineto ends a flow at every API call that launched nothing, too.
    std::vector<bool> on_device(trace_.tracks.size(), false);
    for (const SliceId s : trace_.device_slices())
      on_device[trace_.slices.track[s.value].value] = true;
    const trace::Flows& flows = trace_.flows;
    for (size_t f = 0; f < flows.size(); ++f) {
      if (flows.kind[f] != trace::FlowKind::kLaunch) continue;
      if (flows.phase[f] == trace::FlowPhase::kStart) {
        starts.push_back(flows.id[f]);
      } else if (on_device[flows.track[f].value]) {
        ends.push_back(flows.id[f]);
      }
    }
    if (starts.empty() && ends.empty()) {
      if (trace_.device.empty() || !trace_.info.format_lacks.empty()) return;
      Add("launch_flows", "info", "none",
          "No ac2g flow events; launches are found by correlation.");
      return;
    }
    RunSort(starts, 1, std::less<>());
    RunSort(ends, 1, std::less<>());
    Orphans("flows_without_end", starts, ends,
            "ac2g flows that begin at a launch and end nowhere: the device "
            "work is not in the trace.");
    Orphans("flows_without_start", ends, starts,
            "ac2g flows that end at device work and begin nowhere: the launch "
            "is not in the trace.");
  }

  // Counts the values of the sorted `some` that the sorted `others` lack.
  void Orphans(std::string_view check, const std::vector<int64_t>& some,
               const std::vector<int64_t>& others, std::string_view meaning) {
    int64_t count = 0;
    auto other = others.begin();
    for (const int64_t id : some) {
      while (other != others.end() && *other < id) ++other;
      count += other == others.end() || *other != id;
    }
    if (count > 0) Add(check, "info", GroupDigits(count), meaning, count);
  }

  void Launches() {
    // Launch calls whose work is not in the file; graph launches.
    size_t without_work = 0;
    size_t graph_launches = 0;
    size_t graph_kernels = 0;
    for (uint32_t n = 0; n < context_.tree.size(); ++n) {
      const NodeId node(n);
      if (!trace::IsApiCall(context_.tree.kind(node))) continue;
      const std::string_view name = context_.tree.name(node);
      const bool graph = name.find("GraphLaunch") != std::string_view::npos;
      const bool launch =
          graph || name.find("LaunchKernel") != std::string_view::npos;
      // A captured call need not be replayed.
      if (!launch || trace_.captured.Has(context_.tree.slice(node))) continue;
      const size_t work = context_.tree.DeviceWork(node).size();
      if (graph) {
        ++graph_launches;
        graph_kernels += work;
      }
      without_work += work == 0;
    }
    if (without_work > 0) {
      Add("launches_without_work", "info",
          GroupDigits(static_cast<int64_t>(without_work)),
          "Launch calls whose device work is not in the trace: it ran after "
          "the end of the recording, or the events were dropped.",
          static_cast<int64_t>(without_work));
    }
    if (graph_launches > 0) {
      const std::string value =
          fmt::format("{} launches, {} device events", graph_launches,
                      GroupDigits(static_cast<int64_t>(graph_kernels)));
      if (trace_.captured.empty()) {
        Add("graph_launches", "info", value,
            "Replayed work has no op of its own: give the capture trace with "
            "--capture to see ops, shapes and modules.",
            static_cast<int64_t>(graph_launches));
      } else {
        Replayed(value, graph_kernels);
      }
    }
  }

  // Of the replayed work, how much has its captured call.
  void Replayed(const std::string& value, size_t graph_kernels) {
    size_t facts = 0;
    size_t likely = 0;
    const trace::Captured& captured = trace_.captured;
    for (size_t row = 0; row < captured.calls.size(); ++row) {
      if (!captured.calls[row].valid()) continue;
      ++(captured.facts[row] != 0 ? facts : likely);
    }
    const size_t rest = graph_kernels - facts - likely;
    Add("graph_launches", rest == 0 && likely == 0 ? "ok" : "info", value,
        fmt::format("{} stand below the call that they were captured from for "
                    "sure, {} below the likely one, {} below the launch. "
                    "Captured calls have no host time.",
                    GroupDigits(static_cast<int64_t>(facts)),
                    GroupDigits(static_cast<int64_t>(likely)),
                    GroupDigits(static_cast<int64_t>(rest))),
        static_cast<int64_t>(facts));
  }

  void Structure() {
    const size_t dropped = context_.tree.dropped_by_overlap();
    if (dropped > 0) {
      Add("dropped_by_overlap", "warn",
          GroupDigits(static_cast<int64_t>(dropped)),
          "Host events that overlap another by 1 us or more without nesting; "
          "they are not in the call tree.",
          static_cast<int64_t>(dropped));
    }
    const size_t popped = context_.tree.popped_by_overlap();
    if (popped > 0) {
      Add("closed_early_by_overlap", "info",
          GroupDigits(static_cast<int64_t>(popped)),
          "Host events that bleed over the end of their parent by less than "
          "1 us; they count as its sibling.",
          static_cast<int64_t>(popped));
    }
    // Work of one stream runs in order: overlap means clipped or bad times.
    size_t overlaps = 0;
    uint64_t offset = 0;
    size_t long_ones = 0;
    constexpr int64_t kDay = int64_t{86400} * 1000000000;
    for (const trace::Stream& stream : trace_.streams) {
      int64_t end = 0;
      bool first = true;
      for (const SliceId s : stream.slices) {
        if (!first && trace_.Start(s) < end) {
          if (overlaps == 0) offset = trace_.slices.offset[s.value];
          ++overlaps;
        }
        first = false;
        end = std::max(end, trace_.End(s));
        long_ones += trace_.Duration(s) > kDay;
      }
    }
    if (overlaps > 0) {
      Add("overlaps_on_a_stream", "warn",
          GroupDigits(static_cast<int64_t>(overlaps)),
          "Device events of one stream overlap, which hardware does not do: "
          "clock effects or bad durations. busy_us counts the overlap once, "
          "kernel_time_us twice.",
          static_cast<int64_t>(overlaps), std::nullopt,
          offset != trace::Diagnostics::kNoOffset
              ? std::optional(static_cast<int64_t>(offset))
              : std::nullopt);
    }
    if (long_ones > 0) {
      Add("suspicious_kernels", "warn",
          GroupDigits(static_cast<int64_t>(long_ones)),
          "Device events longer than a day.", static_cast<int64_t>(long_ones));
    }
  }

  void Records() {
    for (const trace::Diagnostic& d : trace_.diagnostics.Sorted()) {
      std::string_view status = "info";
      if (d.effect == trace::Effect::kLost) status = "lost";
      if (d.effect == trace::Effect::kOddity ||
          d.effect == trace::Effect::kRepaired)
        status = "warn";
      std::string value = GroupDigits(static_cast<int64_t>(d.count));
      if (d.bytes > 0) value += ", " + HumanBytes(static_cast<double>(d.bytes));
      if (!d.first_offsets.empty())
        value += fmt::format(", first at byte {}", d.first_offsets[0]);
      Add(d.reason, status, value, d.text, static_cast<int64_t>(d.count),
          std::nullopt,
          d.first_offsets.empty()
              ? std::nullopt
              : std::optional(static_cast<int64_t>(d.first_offsets[0])));
    }
    Add("events", "info", GroupDigits(static_cast<int64_t>(trace_.info.events)),
        "Records of all phases in the input.",
        static_cast<int64_t>(trace_.info.events));
  }

  const Context& context_;
  const Trace& trace_;
  Table table_;
};

Result<ResultSet> Run(const Context& context) {
  ResultSet result;
  result.tables.push_back(Health(context).Make());
  return result;
}

}  // namespace

AnalysisInfo Info() {
  return {"health", "Coverage, losses and oddities of the trace.",
          [] { return std::vector<Schema>{HealthSchema()}; }, &Run};
}

}  // namespace lamina::analysis::health
