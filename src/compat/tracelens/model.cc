// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/model.h"

#include <algorithm>

#include "analysis/common/recompute.h"
#include "analysis/common/timeline.h"
#include "compat/tracelens/python_text.h"

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

}  // namespace lamina::compat::tracelens
