// SPDX-License-Identifier: Apache-2.0
//
// The nn.Module tree with device time: what each module launched itself and
// with everything below it. Backward work belongs to the module of its
// forward op. Work outside every module is a row of its own, so the self
// times add up to all linked work.
#include <algorithm>
#include <string>
#include <vector>

#include "analysis/common/context.h"

namespace lamina::analysis::modules {
namespace {

Schema ModulesSchema() {
  return {"modules",
          "Device time by nn.Module, in order of the hierarchy.",
          {{"module", ColumnType::kText,
            "Path from the root; \"(outside)\" for work in no module."},
           {"class", ColumnType::kText, "Class of the module.", Shown::kHidden},
           {"parent", ColumnType::kText, "Path of the parent.", Shown::kHidden},
           {"depth", ColumnType::kInt, "0 for roots.", Shown::kHidden},
           {"calls", ColumnType::kInt, "Times it was called."},
           {"kernels", ColumnType::kInt, "Device slices inside, all levels."},
           {"kernel_time_us", ColumnType::kTime,
            "Sum of durations inside, all levels."},
           {"percent", ColumnType::kReal, "Share of all linked device time.",
            Shown::kBar},
           {"self_kernel_time_us", ColumnType::kTime,
            "Of work launched in no module below."},
           {"backward_kernel_time_us", ColumnType::kTime,
            "Part of kernel_time_us that is backward work."},
           {"host_us", ColumnType::kTime, "Host time of the calls.",
            Shown::kHidden}}};
}

struct Sums {
  int64_t self = 0;
  int64_t total = 0;
  int64_t backward = 0;
  int64_t host = 0;
  size_t kernels = 0;
};

Result<ResultSet> Run(const Context& context) {
  const tree::Modules& modules = context.modules;
  const Trace& trace = context.trace;
  ResultSet result;
  Table table(ModulesSchema());
  if (modules.empty()) {
    result.tables.push_back(std::move(table));
    return result;
  }
  const auto& paths = modules.paths();
  std::vector<Sums> sums(paths.size());
  Sums outside;
  int64_t all = 0;
  for (const SliceId s : context.tree.launched()) {
    const int64_t dur = trace.Duration(s);
    all += dur;
    const auto owner = modules.OwnerOf(context.tree.launch(s));
    Sums& self = owner.path.valid() ? sums[owner.path.value] : outside;
    self.self += dur;
    self.total += dur;
    ++self.kernels;
    if (owner.backward) self.backward += dur;
  }
  for (const tree::Modules::Call& call : modules.calls())
    sums[call.path.value].host += trace.HostTime(call.slice);
  // Children stand behind their parents: add up from the end.
  for (size_t i = paths.size(); i-- > 0;) {
    if (!paths[i].parent.valid()) continue;
    Sums& parent = sums[paths[i].parent.value];
    parent.total += sums[i].total;
    parent.backward += sums[i].backward;
    parent.kernels += sums[i].kernels;
  }
  const auto percent = [&](int64_t ns) {
    return all > 0 ? Value(100.0 * static_cast<double>(ns) /
                           static_cast<double>(all))
                   : Value();
  };
  for (const tree::ModulePathId id : modules.Preorder()) {
    const uint32_t i = id.value;
    const std::string_view recorded = trace.Text(paths[i].name);
    const Sums& s = sums[i];
    const std::string path = modules.PathText(id);
    const std::string parent =
        paths[i].parent.valid() ? modules.PathText(paths[i].parent) : "";
    table.Add(path, tree::Modules::ClassName(recorded),
              paths[i].parent.valid() ? Value(parent) : Value(), paths[i].depth,
              paths[i].calls, s.kernels, s.total, percent(s.total), s.self,
              s.backward, s.host);
  }
  table.Add("(outside)", "", std::nullopt, 0, std::nullopt, outside.kernels,
            outside.total, percent(outside.total), outside.self,
            outside.backward, std::nullopt);
  result.tables.push_back(std::move(table));
  return result;
}

}  // namespace

AnalysisInfo Info() {
  return {"modules", "Device time by nn.Module.",
          [] { return std::vector<Schema>{ModulesSchema()}; }, &Run};
}

}  // namespace lamina::analysis::modules
