// SPDX-License-Identifier: Apache-2.0
#include "engine/replay.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <tuple>

#include "analysis/common/cost_view.h"
#include "analysis/common/launchers.h"
#include "analysis/common/stats.h"
#include "base/byte_source.h"
#include "base/decimal.h"
#include "base/json/scan.h"
#include "engine/recorded_values.h"

namespace lamina::engine {
namespace {

using analysis::NodeId;
using emit::ReplayArgument;
using trace::SliceId;

constexpr size_t kMaxTensors = 4096;
constexpr size_t kMaxArguments = 256;

std::vector<int64_t> Integers(const std::vector<double>& values) {
  std::vector<int64_t> out;
  for (const double value : values) out.push_back(static_cast<int64_t>(value));
  return out;
}

class Planner {
 public:
  Planner(const analysis::Context& context, const ReplayOptions& options)
      : context_(context), trace_(context.trace), options_(options) {}

  Result<ReplayPlan> Run() {
    LAMINA_ASSIGN(const auto* const costs,
                  context_.Get<analysis::CostModels>());
    models_ = costs->models;
    LAMINA_ASSIGN(efficiency_, context_.Get<analysis::Efficiency>());
    LAMINA_TRY(Collect());
    default_type_ = CommonType();
    std::stable_sort(
        groups_.begin(), groups_.end(),
        [](const Group& a, const Group& b) { return a.time_ns > b.time_ns; });
    if (options_.top > 0 && groups_.size() > options_.top)
      groups_.erase(groups_.begin() + static_cast<ptrdiff_t>(options_.top),
                    groups_.end());
    ReplayPlan plan;
    const auto& device = efficiency_->device;
    if (device) plan.device = device->title;
    for (const Group& group : groups_) plan.rows.push_back(RowOf(group));
    return plan;
  }

 private:
  struct Group {
    NodeId first;
    int64_t count = 0;
    int64_t time_ns = 0;
    bool communication = false;
  };

  bool NameFits(NodeId node) const {
    const std::string_view name = context_.tree.name(node);
    if (options_.op.empty() || name == options_.op) return true;
    return name.size() > options_.op.size() + 2 &&
           name.ends_with(options_.op) &&
           name.substr(0, name.size() - options_.op.size()).ends_with("::");
  }
  bool ShapeFits(NodeId node) const {
    if (options_.shape.empty()) return true;
    const trace::OpArgs* args = trace_.Op(context_.tree.slice(node));
    return args != nullptr && args->dims.valid() &&
           json::Canonical(trace_.Text(args->dims))
                   .find(json::Canonical(options_.shape)) != std::string::npos;
  }

  Status Collect() {
    const tree::Tree& tree = context_.tree;
    if (options_.id) {
      LAMINA_ASSIGN(const NodeId node, NodeOf(*options_.id));
      Add(node, tree.DeviceWork(node));
      return {};
    }
    if (!options_.op.empty() || options_.outer) {
      bool known = false;
      for (uint32_t n = 0; n < tree.size(); ++n) {
        const NodeId node(n);
        if (!tree.IsOp(node) || !NameFits(node)) continue;
        known = true;
        if (tree.HasDeviceWork(node) && ShapeFits(node))
          Add(node, tree.DeviceWork(node));
      }
      if (groups_.empty()) {
        return Fail(UsageError(
            known ? "no call of the op launched device work with these shapes"
                  : "the trace has no op " + options_.op,
            "⟨lamina⟩ report TRACE ⟨only⟩ ops lists the ops that did"));
      }
      return {};
    }
    const analysis::Launchers launchers = analysis::CollectLaunchers(
        tree, [](SliceId) { return true; },
        [&](SliceId s) { return context_.device.launcher(s); });
    std::vector<bool> added(tree.size());
    for (const analysis::Launcher& launcher : launchers.list) {
      const NodeId outer = AttentionAbove(launcher.node);
      if (outer.valid()) {
        if (added[outer.value] || !ShapeFits(outer)) continue;
        added[outer.value] = true;
        Add(outer, tree.DeviceWork(outer));
      } else if (ShapeFits(launcher.node)) {
        Add(launcher.node, launchers.Work(launcher));
      }
    }
    if (groups_.empty()) {
      return Fail(UsageError("no op of the trace launched device work",
                             "record with ProfilerActivity.CPU and CUDA"));
    }
    return {};
  }

  // The op to run instead of an inner op of attention that has no cost of its
  // own: the innermost around it that has one. Invalid if there is none.
  NodeId AttentionAbove(NodeId launcher) const {
    const tree::Tree& tree = context_.tree;
    if (!tree.IsOp(launcher) || models_->Find(tree.name(launcher)) != nullptr)
      return {};
    for (NodeId n = tree.parent(launcher); n.valid(); n = tree.parent(n)) {
      if (!tree.IsOp(n)) continue;
      const std::string_view name = tree.name(n);
      if (context_.catalog.OpFamily(name) != "attention") return {};
      const trace::OpArgs* args = trace_.Op(tree.slice(n));
      if (models_->Find(name) != nullptr && emit::IsOpName(name) &&
          args != nullptr && args->dims.valid())
        return n;
    }
    return {};
  }

  Result<NodeId> NodeOf(uint32_t uid) const {
    const auto& uids = trace_.slices.uid;
    const auto it = std::find(uids.begin(), uids.end(), uid);
    NodeId node;
    if (it != uids.end()) {
      const SliceId s(static_cast<uint32_t>(it - uids.begin()));
      if (trace::IsDevice(trace_.KindOf(s))) {
        node = context_.device.launcher(s);
      } else if (context_.tree.node(s).valid()) {
        node = context_.tree.EnclosingOp(context_.tree.node(s));
      }
    }
    if (!node.valid() || !context_.tree.IsOp(node)) {
      return Fail(UsageError(
          fmt::format("event {} is no op, and no work of one", uid),
          "event numbers are the columns first_uid and uid of the tables"));
    }
    return node;
  }

  void Add(NodeId node, std::span<const SliceId> work) {
    const SliceId slice = context_.tree.slice(node);
    const trace::OpArgs* args = trace_.Op(slice);
    const trace::OpArgs none;
    const trace::OpArgs& a = args != nullptr ? *args : none;
    const Key key(trace_.slices.name[slice.value], a.dims, a.types, a.strides,
                  a.concrete);
    const auto [it, is_new] = ids_.try_emplace(key, groups_.size());
    if (is_new) groups_.push_back({node});
    Group& group = groups_[it->second];
    ++group.count;
    for (const SliceId s : work) {
      group.time_ns += trace_.Duration(s);
      group.communication |= context_.device.communication(s);
    }
  }

  // The floating-point type that most tensors of the trace have: lists of
  // tensors are recorded without theirs.
  std::string CommonType() const {
    absl::flat_hash_map<StringId, size_t> counts;
    for (const trace::OpArgs& args : trace_.ops) {
      if (args.types.valid()) ++counts[args.types];
    }
    static constexpr std::string_view kTypes[] = {"float", "double",
                                                  "c10::Half", "c10::BFloat16"};
    size_t best = 0;
    std::string type = "float32";
    for (const std::string_view candidate : kTypes) {
      const std::string quoted = "\"" + std::string(candidate) + "\"";
      size_t count = 0;
      for (const auto& [id, n] : counts) {
        if (trace_.Text(id).find(quoted) != std::string_view::npos) count += n;
      }
      if (count > best) {
        best = count;
        type = TorchType(candidate);
      }
    }
    return type;
  }

  ReplayRow RowOf(const Group& group) const {
    const SliceId slice = context_.tree.slice(group.first);
    ReplayRow row;
    row.call.op = trace_.Name(slice);
    row.call.id = trace_.Uid(slice);
    row.call.count = group.count;
    row.call.kernel_time_ns = group.time_ns;
    row.call.mean_ns = analysis::RoundNs(static_cast<double>(group.time_ns) /
                                         static_cast<double>(group.count));
    const trace::OpArgs* args = trace_.Op(slice);
    if (args != nullptr && args->dims.valid())
      row.shapes = trace_.Text(args->dims);
    if (!context_.tree.IsOp(group.first)) {
      row.reason = "a launch without an op";
    } else if (group.communication) {
      row.reason = "communication needs its ranks";
    } else if (row.call.op.starts_with("triton_") &&
               emit::IsKernelName(row.call.op)) {
      row.reason = FillTriton(slice, args, row.call);
    } else if (!emit::IsOpName(row.call.op)) {
      row.reason = "the name is not that of an op of a library";
    } else if (args == nullptr || !args->dims.valid()) {
      row.reason = "no shapes were recorded (record_shapes=True)";
    } else {
      row.reason = FillArguments(*args, row.call);
    }
    if (row.reason.empty() && !row.call.triton) AddCost(*args, row.call);
    return row;
  }

  // The launch of a compiled Triton kernel, from the record of its op: which
  // file of the compiler's cache it is in. Returns why it cannot be run.
  std::string FillTriton(SliceId slice, const trace::OpArgs* args,
                         emit::ReplayCall& call) const {
    constexpr size_t kMaxRecord = 1 << 20;
    const char* const no_source =
        "a compiled Triton kernel: the recording does not say which file of "
        "the compiler's cache it is in";
    const uint32_t captured = trace_.captured.first;
    if (trace_.info.format != "kineto" || trace_.info.file == "-" ||
        (captured != trace::kNoRow && slice.value >= captured))
      return no_source;
    if (args == nullptr || !args->dims.valid())
      return "no shapes were recorded (record_shapes=True)";
    const auto text = ReadRange(trace_.info.file,
                                trace_.slices.offset[slice.value], kMaxRecord);
    if (!text) return no_source;
    const auto end = json::ScanValue(*text, 0);
    if (end.kind != json::ScanResult::Kind::kOk) return no_source;
    const auto record = nlohmann::json::parse(
        std::string_view(*text).substr(0, end.end), nullptr, false);
    if (!record.is_object() || !record.contains("args") ||
        !record["args"].is_object())
      return no_source;
    const auto field = [&](const char* name) -> std::string {
      const auto it = record["args"].find(name);
      return it != record["args"].end() && it->is_string()
                 ? it->get<std::string>()
                 : std::string();
    };
    emit::ReplayTriton triton;
    triton.hash = field("kernel_hash");
    if (!emit::IsSourceHash(triton.hash)) return no_source;
    triton.kernel = field("kernel_name");
    if (!emit::IsKernelName(triton.kernel)) triton.kernel = call.op;
    triton.grid = GridOf(field("grid"));
    std::string reason = FillArguments(*args, call);
    if (reason.empty()) call.triton = std::move(triton);
    return reason;
  }

  // Of "grid(100,)" or "grid(2, 3)"; empty for other forms.
  static std::vector<int64_t> GridOf(std::string_view text) {
    std::vector<int64_t> out;
    if (!text.starts_with("grid(") || !text.ends_with(')')) return out;
    text = text.substr(5, text.size() - 6);
    while (!text.empty()) {
      const size_t comma = std::min(text.find(','), text.size());
      const std::string_view part = text.substr(0, comma);
      text.remove_prefix(std::min(comma + 1, text.size()));
      const size_t first = part.find_first_not_of(' ');
      if (first == std::string_view::npos) continue;
      const auto value = ParseInt(part.substr(first));
      if (!value || *value < 0 || out.size() == 3) return {};
      out.push_back(*value);
    }
    return out;
  }

  // Returns why the arguments cannot be rebuilt.
  std::string FillArguments(const trace::OpArgs& args,
                            emit::ReplayCall& call) const {
    const auto text = [&](StringId id) {
      return id.valid() ? trace_.Text(id) : std::string_view();
    };
    const auto recorded = cost::ParseCall(
        call.op, text(args.dims), text(args.types), text(args.concrete));
    // Strides have the form of shapes.
    const auto strides = cost::ParseCall(call.op, text(args.strides), {}, {});
    if (!recorded || recorded->arguments.size() > kMaxArguments)
      return "the recorded arguments are not usable";
    const bool has_strides = strides && strides->has_shapes;
    for (size_t i = 0; i < recorded->arguments.size(); ++i) {
      const cost::Argument& from = recorded->arguments[i];
      const cost::Argument* step = has_strides && i < strides->arguments.size()
                                       ? &strides->arguments[i]
                                       : nullptr;
      ReplayArgument& to = call.arguments.emplace_back();
      if (from.is_list || from.type == "TensorList") {
        to.kind = ReplayArgument::Kind::kTensors;
        if (from.list.size() > kMaxTensors)
          return "a list has too many tensors";
        const std::string_view known = TorchType(from.type);
        for (size_t k = 0; k < from.list.size(); ++k) {
          ReplayArgument& tensor = to.tensors.emplace_back();
          tensor.kind = ReplayArgument::Kind::kTensor;
          tensor.dtype = known.empty() ? default_type_ : std::string(known);
          tensor.dims = Integers(from.list[k]);
          if (step != nullptr && k < step->list.size() &&
              step->list[k].size() == tensor.dims.size())
            tensor.strides = Integers(step->list[k]);
        }
        continue;
      }
      const std::string_view type = TorchType(from.type);
      if (!type.empty()) {
        to.kind = ReplayArgument::Kind::kTensor;
        to.dtype = type;
        to.dims = Integers(from.dims);
        if (step != nullptr && step->dims.size() == to.dims.size())
          to.strides = Integers(step->dims);
        continue;
      }
      if (!from.dims.empty())
        return fmt::format("argument {} has a type that is not known", i);
      if (from.concrete.empty()) continue;
      if (auto value = JsonOf(from.concrete)) {
        to.kind = ReplayArgument::Kind::kValue;
        to.value = std::move(*value);
      }
    }
    return {};
  }

  void AddCost(const trace::OpArgs& args, emit::ReplayCall& call) const {
    const cost::OpModel* model = models_->Find(call.op);
    if (model == nullptr) return;
    const auto text = [&](StringId id) {
      return id.valid() ? trace_.Text(id) : std::string_view();
    };
    const auto recorded = cost::ParseCall(
        call.op, text(args.dims), text(args.types), text(args.concrete));
    if (!recorded) return;
    const auto cost = models_->Evaluate(*model, *recorded);
    if (!cost) return;
    call.flops = cost->flops;
    call.bytes = cost->bytes;
    const auto& device = efficiency_->device;
    if (!device) return;
    const auto roofline = cost::RooflineOf(*cost, *device, cost->Spec());
    if (roofline) call.roofline_ns = analysis::RoundNs(roofline->seconds * 1e9);
  }

  using Key = std::tuple<StringId, StringId, StringId, StringId, StringId>;

  const analysis::Context& context_;
  const trace::Trace& trace_;
  const ReplayOptions& options_;
  std::shared_ptr<const cost::ModelSet> models_;
  const analysis::Efficiency* efficiency_ = nullptr;
  std::string default_type_;
  std::vector<Group> groups_;
  absl::flat_hash_map<Key, size_t> ids_;
};

}  // namespace

Result<ReplayPlan> PlanReplay(const analysis::Context& context,
                              const ReplayOptions& options) {
  return Planner(context, options).Run();
}

}  // namespace lamina::engine
