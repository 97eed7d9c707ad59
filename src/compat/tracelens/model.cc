// SPDX-License-Identifier: Apache-2.0

#include "compat/tracelens/model.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <tuple>

#include "analysis/common/launchers.h"
#include "analysis/common/recompute.h"
#include "analysis/common/stats.h"
#include "analysis/common/timeline.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/interval_set.h"
#include "compat/tracelens/kernel_details.h"
#include "compat/tracelens/measures.h"
#include "compat/tracelens/overlaps.h"
#include "compat/tracelens/python_text.h"
#include "compat/tracelens/sheets.h"

namespace lamina::compat::tracelens {

using analysis::Bucket;
using analysis::PeerBucket;

std::optional<double> Percent(double part, double whole) {
  if (whole == 0) return std::nullopt;
  return 100.0 * part / whole;
}

Model::Model(const Context& context, Options options)
    : context_(context), options_(options) {
  const Trace& trace = context_.trace;
  const tree::Tree& tree = context_.tree;
  if (options_.recompute) recompute_ = analysis::FindRecompute(tree);
  launchers_ = analysis::CollectLaunchers(
      tree,
      [&](SliceId s) {
        return PeerBucket(trace.KindOf(s), trace.Name(s)) !=
               Bucket::kCommunication;
      },
      [&](SliceId s) {
        return analysis::LauncherOf(tree, tree.launch(s), false);
      });
  launches_.reserve(launchers_.list.size());
  for (const Launcher& launcher : launchers_.list) {
    const auto work = launchers_.Work(launcher);
    Launch launch;
    launch.launcher = &launcher;
    launch.node = launcher.node;
    launch.category = Category(Name(launcher.node), work);
    launch.direct_ns = analysis::UnionOf(trace, work);
    launch.subtree_ns =
        analysis::UnionOf(trace, tree.DeviceWork(launcher.node));
    launch.kernels = work.size();
    launch.recompute = IsRecompute(launcher.node);
    direct_total_ns_ += launch.direct_ns;
    launch_of_.emplace(launch.node.value, launches_.size());
    launches_.push_back(launch);
  }
  for (uint32_t n = 0; n < tree.size() && gpu_only_; ++n)
    gpu_only_ = !tree.IsOp(NodeId(n));
  for (const SliceId s : trace.device_slices()) {
    if (tree.launched().empty() || tree.launch(s).valid())
      timeline_.push_back(s);
  }
  int64_t last = INT64_MIN;
  for (const SliceId s : timeline_) last = std::max(last, trace.End(s));
  if (!timeline_.empty()) total_time_ns_ = last - trace.Start(timeline_[0]);
}

const Launch* Model::LaunchOf(NodeId node) const {
  const auto it = launch_of_.find(node.value);
  return it == launch_of_.end() ? nullptr : &launches_[it->second];
}

std::string Model::Name(NodeId node) const {
  std::string_view name = tree().name(node);
  if (!options_.inference || !name.starts_with("sglang_profiler::"))
    return std::string(name);
  const size_t end = name.find_last_not_of("0123456789");
  if (end != std::string_view::npos && end + 1 < name.size() &&
      name[end] == '_')
    name = name.substr(0, end);
  return std::string(name);
}

std::string_view Model::Category(std::string_view name,
                                 std::span<const SliceId> work) const {
  if (const rules::OpEntry* entry = context_.catalog.Entry(name);
      entry != nullptr && !entry->category.empty())
    return entry->category;
  if (name.starts_with("triton")) return "triton";
  if (name.starts_with("record_param_comms")) return "record_param_comms";
  if (!work.empty()) {
    const std::string_view kernel = context_.trace.Name(work[0]);
    if (kernel.starts_with("void at::native")) {
      for (const std::string_view word :
           {"elementwise", "reduce", "multi_tensor_apply"}) {
        if (kernel.find(word) != std::string_view::npos) return word;
      }
    }
  }
  return "other";
}

std::string Model::ProcessName(NodeId node) const {
  const trace::Track& track = trace().TrackOf(tree().slice(node));
  return track.process_name.valid()
             ? std::string(trace().Text(track.process_name))
             : "Unknown";
}

std::string Model::ProcessLabel(NodeId node) const {
  const trace::Track& track = trace().TrackOf(tree().slice(node));
  return track.process_labels.valid()
             ? std::string(trace().Text(track.process_labels))
             : "Unknown";
}

std::string Model::ThreadName(NodeId node) const {
  const trace::Track& track = trace().TrackOf(tree().slice(node));
  return track.thread_name.valid()
             ? std::string(trace().Text(track.thread_name))
             : "Unknown";
}

std::optional<std::string> Model::List(StringId id, Form form) const {
  if (!id.valid()) return std::nullopt;
  const std::string_view json = trace().Text(id);
  return form == Form::kTuple ? PythonTuple(json) : PythonList(json);
}

std::optional<std::string> Model::Dims(NodeId node, Form form) const {
  const trace::OpArgs* op = trace().Op(tree().slice(node));
  return op ? List(op->dims, form) : std::nullopt;
}
std::optional<std::string> Model::Types(NodeId node, Form form) const {
  const trace::OpArgs* op = trace().Op(tree().slice(node));
  return op ? List(op->types, form) : std::nullopt;
}
std::optional<std::string> Model::Strides(NodeId node, Form form) const {
  const trace::OpArgs* op = trace().Op(tree().slice(node));
  return op ? List(op->strides, form) : std::nullopt;
}
std::optional<std::string> Model::Concrete(NodeId node, Form form) const {
  const trace::OpArgs* op = trace().Op(tree().slice(node));
  return op ? List(op->concrete, form) : std::nullopt;
}

Five Summary(std::vector<double> values) {
  Five out;
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double v : values) sum += v;
  out.mean = sum / n;
  out.median =
      (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
  out.min = values.front();
  out.max = values.back();
  if (values.size() > 1) {
    double squares = 0;
    for (const double v : values) squares += (v - *out.mean) * (v - *out.mean);
    out.std_dev = std::sqrt(squares / (n - 1));
  }
  return out;
}

void AppendFive(std::vector<Value>& row, const Five& five) {
  for (const auto& value :
       {five.mean, five.median, five.std_dev, five.min, five.max})
    row.emplace_back(value);
}

void Measures::Add(const Trace& trace, const std::vector<SliceId>& work,
                   const Priced* priced) {
  const int64_t ns = analysis::UnionOf(trace, work);
  kernel_ns += ns;
  kernel_us.push_back(Us(ns));
  if (priced == nullptr || !priced->cost || ns == 0) return;
  const double seconds = static_cast<double>(ns) / 1e9;
  tflops.push_back(priced->cost->flops / seconds / 1e12);
  tbs.push_back(priced->cost->bytes / seconds / 1e12);
  if (priced->roofline)
    roofline_percent.push_back(100 * priced->roofline->seconds / seconds);
}

void AppendRoofline(std::vector<Value>& row, const Priced* priced) {
  if (priced == nullptr || !priced->roofline) {
    row.insert(row.end(), 2, Value());
    return;
  }
  row.emplace_back(priced->roofline->seconds * 1e6);
  row.emplace_back(priced->roofline->compute_bound ? "COMPUTE_BOUND"
                                                   : "MEMORY_BOUND");
}

Value Intensity(const Priced* priced) {
  if (priced == nullptr || !priced->cost || priced->cost->bytes == 0) return {};
  return priced->cost->flops / priced->cost->bytes;
}

namespace {

constexpr size_t kNameLength = 64;

void AppendStream(std::string& out, int64_t stream) {
  out += stream == trace::kNoInt ? "None" : std::to_string(stream);
}

// Python cuts between characters, not between bytes.
std::string_view FirstCharacters(std::string_view text, size_t count) {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (starts && count-- == 0) return text.substr(0, i);
  }
  return text;
}

}  // namespace

double RoundHundredths(double value) {
  return ParseDouble(fmt::format("{:.2f}", value)).value_or(value);
}

std::vector<SliceId> ByStart(const Trace& trace, std::vector<SliceId> work) {
  std::stable_sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
    return trace.Start(a) < trace.Start(b);
  });
  return work;
}

std::vector<KernelPlace> PlacesOf(const Trace& trace,
                                  const std::vector<SliceId>& work) {
  std::vector<KernelPlace> places;
  for (const SliceId s : work) {
    KernelPlace& place = places.emplace_back();
    place.name = trace.Name(s);
    place.stream = trace.Device(s)->stream;
    place.times_us = {Us(trace.Duration(s))};
  }
  return places;
}

std::vector<KernelPlace> SummarizePlaces(
    const std::vector<std::vector<KernelPlace>>& instances) {
  std::vector<KernelPlace> out;
  for (const auto& instance : instances) {
    if (instance.empty()) continue;
    if (out.empty()) {
      out = instance;
    } else if (out.size() == instance.size()) {
      for (size_t i = 0; i < out.size(); ++i)
        out[i].times_us.push_back(instance[i].times_us[0]);
    }
  }
  for (KernelPlace& place : out) {
    for (const double time : place.times_us) place.total_us += time;
  }
  std::stable_sort(
      out.begin(), out.end(), [](const KernelPlace& a, const KernelPlace& b) {
        return std::pair(a.total_us, a.name) < std::pair(b.total_us, b.name);
      });
  return out;
}

std::string DetailsCell(const std::vector<KernelPlace>& places) {
  std::string out = "[";
  for (const KernelPlace& place : places) {
    if (out.size() > 1) out += ", ";
    const Five five = Summary(place.times_us);
    // NumPy divides by n here, not by n - 1.
    const auto n = static_cast<double>(place.times_us.size());
    const double deviation =
        five.std_dev ? *five.std_dev * std::sqrt((n - 1) / n) : 0;
    out += "{'name': ";
    AppendPythonQuoted(out, place.name);
    out += ", 'stream': ";
    AppendStream(out, place.stream);
    if (place.overlap)
      out += ", 'overlap_pct': " + FormatDouble(*place.overlap);
    out += ", 'count': " + std::to_string(place.times_us.size());
    const std::pair<const char*, double> numbers[] = {
        {"total_duration_us", place.total_us},
        {"mean_duration_us", *five.mean},
        {"median_duration_us", *five.median},
        {"std_dev_duration_us", deviation},
        {"min_duration_us", *five.min},
        {"max_duration_us", *five.max}};
    for (const auto& [name, value] : numbers)
      out += std::string(", '") + name + "': " + FormatDouble(value);
    out += "}";
  }
  return out + "]";
}

std::optional<std::string> TruncatedCell(
    const std::vector<KernelPlace>& places) {
  if (places.empty()) return std::nullopt;
  std::string out = "[";
  for (const KernelPlace& place : places) {
    if (out.size() > 1) out += ", ";
    std::string name(FirstCharacters(place.name, kNameLength));
    if (name.size() < place.name.size()) name += "...";
    out += "{'name': ";
    AppendPythonQuoted(out, name);
    out += ", 'stream': ";
    AppendStream(out, place.stream);
    out += ", 'mean_duration_us': " +
           FormatDouble(RoundHundredths(*Summary(place.times_us).mean)) + "}";
  }
  return out + "]";
}

namespace {

constexpr int64_t kNoiseNs = 1000;
constexpr size_t kMostPairs = 50'000'000;

int64_t Together(const Trace& trace, SliceId a, SliceId b) {
  return std::min(trace.End(a), trace.End(b)) -
         std::max(trace.Start(a), trace.Start(b));
}

std::optional<double> Rounded(const std::optional<double>& value) {
  return value ? std::optional(RoundHundredths(*value)) : std::nullopt;
}

}  // namespace

Result<Overlaps> Overlaps::Find(const Model& model) {
  const Trace& trace = model.trace();
  const tree::Tree& tree = model.tree();
  struct Active {
    SliceId slice;
    int64_t stream;
  };
  Overlaps out;
  out.partners_.resize(trace.device.size());
  const auto partners = [&](SliceId s) -> std::vector<SliceId>& {
    return out.partners_[trace.slices.detail[s.value]];
  };
  std::vector<Active> active;
  size_t pairs = 0;
  for (const SliceId s : trace.device_slices()) {  // by start
    const NodeId launch = tree.launch(s);
    if (!launch.valid() || trace.Duration(s) <= 0) continue;
    std::erase_if(active, [&](const Active& a) {
      return trace.End(a.slice) <= trace.Start(s);
    });
    const Active now{s, trace.Device(s)->stream};
    for (const Active& a : active) {
      if (now.stream != trace::kNoInt && now.stream == a.stream) continue;
      if (Together(trace, s, a.slice) < kNoiseNs) continue;
      partners(s).push_back(a.slice);
      partners(a.slice).push_back(s);
      if (++pairs > kMostPairs) {
        return Fail(UsageError(
            "⟨overlaps⟩: more than 50,000,000 pairs of device events overlap",
            "leave out ⟨overlaps⟩, or cut the trace with ⟨slice()⟩"));
      }
    }
    active.push_back(now);
  }
  for (auto& list : out.partners_) {
    std::sort(list.begin(), list.end(), [&](SliceId a, SliceId b) {
      return trace.Uid(a) < trace.Uid(b);
    });
  }
  return out;
}

OverlapInfo Overlaps::Of(const Trace& trace,
                         std::span<const SliceId> kernels) const {
  OverlapInfo info;
  const int64_t own_ns = analysis::UnionOf(trace, kernels);
  if (own_ns == 0) return info;
  const auto own = static_cast<double>(own_ns);
  std::vector<SliceId> order(kernels.begin(), kernels.end());
  std::sort(order.begin(), order.end(),
            [&](SliceId a, SliceId b) { return trace.Uid(a) < trace.Uid(b); });
  struct Group {
    std::string_view name;
    int64_t stream;
    double dur_us = 0;
    double share = 0;
    double count = 0;
  };
  std::vector<Group> groups;
  int64_t together_ns = 0;
  for (const SliceId kernel : order) {
    std::vector<Interval> common;
    for (const SliceId other : partners_[trace.slices.detail[kernel.value]]) {
      const std::string_view name = trace.Name(other);
      auto it =
          std::find_if(groups.begin(), groups.end(),
                       [&](const Group& group) { return group.name == name; });
      if (it == groups.end()) {
        groups.push_back({name, trace.Device(other)->stream});
        it = groups.end() - 1;
      }
      const double part =
          static_cast<double>(Together(trace, kernel, other)) / own;
      it->dur_us += Us(trace.Duration(other));
      it->share += RoundHundredths(part);
      ++it->count;
      common.push_back({std::max(trace.Start(kernel), trace.Start(other)),
                        std::min(trace.End(kernel), trace.End(other))});
    }
    together_ns += IntervalSet::Of(std::move(common)).length_ns();
  }
  if (groups.empty()) return info;
  info.names = "[";
  for (const Group& group : groups) {
    if (info.names.size() > 1) info.names += ", ";
    AppendPythonQuoted(info.names, group.name);
    KernelPlace& place = info.details.emplace_back();
    place.name = group.name;
    place.stream = group.stream;
    place.overlap = RoundHundredths(group.share / group.count);
    place.times_us = {RoundHundredths(group.dur_us / group.count)};
  }
  info.names += "]";
  info.share = RoundHundredths(static_cast<double>(together_ns) / own);
  return info;
}

OverlapInfo Overlaps::OfLauncher(const Model& model, NodeId node) const {
  const Launch* launch = model.LaunchOf(node);
  if (launch == nullptr) return {};
  return Of(model.trace(), model.launchers().Work(*launch->launcher));
}

OverlapInfo Overlaps::OfOp(const Model& model, NodeId node,
                           std::span<const SliceId> work) const {
  OverlapInfo info = OfLauncher(model, node);
  return info.share ? info : Of(model.trace(), work);
}

OverlapCells::OverlapCells(const std::vector<OverlapInfo>& instances) {
  std::vector<std::vector<KernelPlace>> lists;
  std::vector<double> shares;
  for (const OverlapInfo& info : instances) {
    lists.push_back(info.details);
    if (info.share) shares.push_back(*info.share);
  }
  const std::vector<KernelPlace> places = SummarizePlaces(lists);
  details = DetailsCell(places);
  truncated = TruncatedCell(places);
  share = Summary(std::move(shares));
}

void OverlapCells::AppendColumns(const std::string& details, Schema& schema) {
  schema.columns.push_back(Text(details));
  schema.columns.push_back(Text("trunc_overlapping_kernels_details"));
  for (const char* statistic : kStatistics)
    schema.columns.push_back(Number(std::string("overlap_pct_") + statistic));
}

void OverlapCells::AppendTo(bool rounded, std::vector<Value>& cells) const {
  cells.emplace_back(details);
  cells.emplace_back(truncated);
  if (!rounded) {
    AppendFive(cells, share);
    return;
  }
  Five five = share;
  if (five.mean && !five.std_dev) five.std_dev = 0;
  for (const auto& value :
       {five.mean, five.median, five.std_dev, five.min, five.max})
    cells.emplace_back(Rounded(value));
}

}  // namespace lamina::compat::tracelens
