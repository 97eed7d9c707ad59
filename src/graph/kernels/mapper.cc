// SPDX-License-Identifier: Apache-2.0

#include "graph/kernels/mapper.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <map>

namespace lamina::graph_kernels {

namespace {

using graph::KernelFit;
using graph::NodeId;

// Two choices whose scores differ by less are equally good.
constexpr float kAmbiguous = 0.5F;

// The hexadecimal number at the end of "mlir_fused_1a2b" or the name of a
// kernel "fused_kernel_1a2b(...)".
std::string_view HashBehind(std::string_view name, std::string_view prefix) {
  const size_t at = name.find(prefix);
  if (at == std::string_view::npos) return {};
  name.remove_prefix(at + prefix.size());
  const size_t end = name.find_first_not_of("0123456789abcdef");
  return name.substr(0, end);
}

}  // namespace

Mapper::Mapper(const trace::Trace& trace, const DumpView& dump,
               const graph::LaunchTable& launches, const Instructions& ran)
    : trace_(trace), dump_(dump), launches_(launches), ran_(ran) {}

void Mapper::TakeNodes(bool all) {
  nodes_.clear();
  ops_.clear();
  for (const NodeId id : dump_.graph.nodes()) {
    if (dump_.graph[id].kind != graph::NodeKind::kOp ||
        (!all && launches_.NeverLaunches(dump_.graph.op(id))))
      continue;
    nodes_.push_back(id);
    ops_.push_back(dump_.graph.op(id));
  }
}

// A kernel whose instruction is of another computation, as those of the body of
// a loop are, has no node here; order would only give it a wrong one.
bool Mapper::AlignInstructions(const GraphRuns& runs) {
  absl::flat_hash_map<std::string_view, uint32_t> by_name;
  for (size_t i = 0; i < nodes_.size(); ++i)
    by_name.try_emplace(dump_.graph[nodes_[i]].name, static_cast<uint32_t>(i));
  assigned_.assign(runs.slots.size(), {});
  bool any = false;
  for (size_t k = 0; k < runs.slots.size(); ++k) {
    // All replays must say the same.
    const trace::Instruction* one = nullptr;
    bool same = true;
    for (const Replay& replay : runs.replays) {
      if (!replay.slices[k].valid()) continue;
      const trace::Instruction* const own = ran_.Of(replay.slices[k]);
      if (own == nullptr || (one != nullptr && own->name != one->name))
        same = false;
      if (one == nullptr) one = own;
    }
    if (one == nullptr || !same) continue;
    const auto found = by_name.find(trace_.Text(one->name));
    if (found == by_name.end()) continue;
    // Names of a module before its optimisation may be those of others after.
    const std::string_view opcode = trace_.Text(one->opcode);
    if (!opcode.empty() && ops_[found->second].substr(4) != opcode) continue;
    assigned_[k] = {found->second, false, true, 1};
    any = true;
  }
  return any;
}

void Mapper::TakeCalls() {
  TakeNodes(true);
  launches_surely_.assign(nodes_.size(), false);
  calls_.assign(nodes_.size(), false);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const graph::Operand& operand : dump_.graph.Operands(nodes_[i])) {
      if (operand.text().starts_with("custom_call_target=\"__cu"))
        calls_[i] = true;
    }
    launches_surely_[i] = calls_[i] || ops_[i] == "hlo.fusion";
  }
}

bool Mapper::AlignNames(const std::vector<std::string_view>& kernels) {
  std::vector<std::string_view> names;
  for (const NodeId id : nodes_) names.push_back(dump_.graph[id].name);
  assigned_ = AlignByName(names, calls_, kernels);
  return std::any_of(assigned_.begin(), assigned_.end(),
                     [](const Assignment& one) { return one.by_name; });
}

Status Mapper::Align(const GraphRuns& runs) {
  std::vector<std::string_view> names;
  for (const Slot& slot : runs.slots) names.push_back(trace_.Text(slot.name));
  named_ = false;
  if (dump_.graph.dialect == "hlo") {
    TakeCalls();
    named_ = (!ran_.empty() && AlignInstructions(runs)) || AlignNames(names);
  }
  if (named_) return {};
  TakeNodes(false);
  LAMINA_ASSIGN(assigned_, AlignKernels(ops_, names, launches_));
  return {};
}

double Mapper::Fit() const {
  size_t mapped = 0;
  std::vector<bool> has(nodes_.size(), false);
  for (const Assignment& one : assigned_) {
    if (one.node == Assignment::kNone) continue;
    ++mapped;
    has[one.node] = true;
  }
  size_t needed = 0;
  size_t found = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (named_ ? !launches_surely_[i]
               : launches_.MayLaunchNothing(ops_[i]) ||
                     launches_.RulesFor(ops_[i]).empty())
      continue;
    ++needed;
    found += has[i] ? 1 : 0;
  }
  if (assigned_.empty() || needed == 0) return 0;
  const auto share = [](size_t part, size_t of) {
    return static_cast<double>(part) / static_cast<double>(of);
  };
  return share(mapped, assigned_.size()) * share(found, needed);
}

void Mapper::Apply(KernelMap& map) const {
  for (size_t k = 0; k < assigned_.size(); ++k) {
    MappedKernel& kernel = map.kernels[k];
    const Assignment& one = assigned_[k];
    if (one.node == Assignment::kNone) continue;
    kernel.node = nodes_[one.node];
    kernel.fit = one.by_name               ? KernelFit::kExact
                 : one.margin < kAmbiguous ? KernelFit::kAmbiguous
                                           : KernelFit::kLikely;
  }
  Judge(map);
  // A kernel without a node is of the layer around it.
  int last = -1;
  std::string last_name = "shared";
  for (MappedKernel& kernel : map.kernels) {
    if (kernel.node.valid()) {
      const graph::Place place = dump_.layers.PlaceOf(kernel.node);
      last = place >= 0 && place != graph::kEpilogue ? place : -1;
      last_name = dump_.layers.NameOf(place);
    }
    kernel.layer = last;
    kernel.layer_name = last_name;
  }
}

// "sure": a rule names the kernel, nothing else fits as well, and all layers
// of the kind agree. "exact": the same hash in both names, or one of a kind.
void Mapper::Judge(KernelMap& map) const {
  absl::flat_hash_map<std::string_view, size_t> ops;
  absl::flat_hash_map<std::string_view, size_t> names;
  for (const std::string_view op : ops_) ++ops[op];
  for (const MappedKernel& kernel : map.kernels) ++names[kernel.full_name];
  // What each node launched, as text, by its place in its kind of layer.
  absl::flat_hash_map<NodeId, std::string> launched;
  for (const MappedKernel& kernel : map.kernels) {
    if (kernel.node.valid())
      launched[kernel.node] += std::string(kernel.full_name) + "\n";
  }
  std::map<std::pair<uint32_t, size_t>, std::pair<std::string, bool>> agree;
  absl::flat_hash_map<NodeId, std::pair<uint32_t, size_t>> where;
  const auto& layers = dump_.layers.layers;
  for (size_t l = 0; l < layers.size(); ++l) {
    for (size_t i = 0; i < layers[l].nodes.size(); ++i) {
      const NodeId id = layers[l].nodes[i];
      const std::pair<uint32_t, size_t> key = {dump_.kinds.of_layer[l], i};
      where[id] = key;
      const auto [found, fresh] = agree.try_emplace(key, launched[id], true);
      if (!fresh && found->second.first != launched[id])
        found->second.second = false;
    }
  }
  for (size_t k = 0; k < map.kernels.size(); ++k) {
    MappedKernel& kernel = map.kernels[k];
    if (!kernel.node.valid() || kernel.fit != KernelFit::kLikely) continue;
    const std::string_view op = dump_.graph.op(kernel.node);
    const std::string_view hash = HashBehind(op, "mlir_fused_");
    if (hash.size() >= 4 &&
        hash == HashBehind(kernel.full_name, "fused_kernel_")) {
      kernel.fit = KernelFit::kExact;
      continue;
    }
    if (!assigned_[k].by_rule) continue;
    if (ops[op] == 1 && names[kernel.full_name] == 1) {
      kernel.fit = KernelFit::kExact;
      continue;
    }
    const auto found = where.find(kernel.node);
    const bool same = found == where.end() || agree[found->second].second;
    // Kernels of several streams by start are in no certain order.
    if (same && (map.runs.order_by_id || map.runs.streams() == 1))
      kernel.fit = KernelFit::kSure;
  }
}

using trace::Instruction;
using trace::kNoInt;
using trace::SliceId;

std::string_view ModuleOf(const graph::Graph& graph) {
  constexpr std::string_view kHead = "HloModule ";
  const std::string_view file = graph.file();
  // What stands in front of the graph ends with its head.
  size_t end = file.size();
  const std::string_view head = graph.head;
  if (head.data() >= file.data() && head.data() <= file.data() + file.size())
    end = static_cast<size_t>(head.data() - file.data()) + head.size();
  std::string_view before = file.substr(0, end);
  for (;;) {
    const size_t at = before.rfind(kHead);
    if (at == std::string_view::npos) return {};
    if (at > 0 && before[at - 1] != '\n' && before[at - 1] != ' ') {
      before = before.substr(0, at);
      continue;
    }
    std::string_view name = before.substr(at + kHead.size());
    name = name.substr(0, name.find_first_of(", \t\r\n("));
    return name;
  }
}

Instructions::Instructions(const trace::Trace& trace, std::string_view module)
    : trace_(trace), module_(module) {
  if (module.empty()) return;
  any_ = std::any_of(
      trace.instructions.begin(), trace.instructions.end(),
      [&](const Instruction& one) { return trace.Text(one.module) == module; });
  if (!any_) return;
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    const SliceId s(i);
    if (const trace::ApiArgs* api = trace.Api(s)) {
      if (api->correlation != kNoInt) launch_.try_emplace(api->correlation, s);
      continue;
    }
    if (trace.InstructionOf(s) == nullptr) continue;
    const trace::OpArgs* op = trace.Op(s);
    if (op->external_id != kNoInt)
      by_external_id_.try_emplace(op->external_id, s);
    runs_[trace.slices.track[i].value].push_back(
        {trace.Start(s), trace.End(s), s});
  }
  for (auto& [track, runs] : runs_) {
    std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
      return a.start_ns < b.start_ns;
    });
  }
}

const Instruction* Instructions::OfOp(SliceId op) const {
  const Instruction* const out = trace_.InstructionOf(op);
  return out != nullptr && trace_.Text(out->module) == module_ ? out : nullptr;
}

const Instruction* Instructions::Of(SliceId kernel) const {
  const trace::DeviceArgs* const args = trace_.Device(kernel);
  if (!any_ || args == nullptr) return nullptr;
  if (args->external_id != kNoInt) {
    const auto found = by_external_id_.find(args->external_id);
    if (found != by_external_id_.end()) return OfOp(found->second);
  }
  const auto launch = launch_.find(args->correlation);
  if (args->correlation == kNoInt || launch == launch_.end()) return nullptr;
  // The run around the launch: one of a thread ends where the next begins.
  const auto runs = runs_.find(trace_.slices.track[launch->second.value].value);
  if (runs == runs_.end()) return nullptr;
  const int64_t time = trace_.Start(launch->second);
  const auto behind = std::upper_bound(
      runs->second.begin(), runs->second.end(), time,
      [](int64_t t, const Run& one) { return t < one.start_ns; });
  if (behind == runs->second.begin() || std::prev(behind)->end_ns < time)
    return nullptr;
  return OfOp(std::prev(behind)->op);
}

}  // namespace lamina::graph_kernels
