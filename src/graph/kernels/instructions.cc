// SPDX-License-Identifier: Apache-2.0
#include "graph/kernels/instructions.h"

#include <algorithm>

namespace lamina::graph_kernels {

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
