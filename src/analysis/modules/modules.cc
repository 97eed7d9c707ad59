// SPDX-License-Identifier: Apache-2.0
//
// The nn.Module tree with device time: what each module launched itself and
// with everything below it. Backward work belongs to the module of its
// forward op. Work outside every module is a row of its own, so the self
// times add up to all linked work.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/common/context.h"
#include "table/row_columns.h"

namespace lamina::analysis::modules {
namespace {

// Times in nanoseconds.
struct ModuleRow {
  std::string module;
  std::string_view class_name;
  std::optional<std::string> parent;
  uint32_t depth;
  std::optional<uint32_t> calls;
  size_t kernels;
  int64_t kernel_time;
  std::optional<double> percent;
  int64_t self_kernel_time, backward_kernel_time;
  std::optional<int64_t> host;
};
const RowColumns<ModuleRow>& ModuleColumns() {
  static const RowColumns<ModuleRow> columns{
      "modules",
      "Device time by nn.Module, in order of the hierarchy.",
      {{"module", ColumnType::kText,
        "Path from the root; \"(outside)\" for work in no module.",
        &ModuleRow::module},
       {"class", ColumnType::kText, "Class of the module.",
        &ModuleRow::class_name, Shown::kHidden},
       {"parent", ColumnType::kText, "Path of the parent.", &ModuleRow::parent,
        Shown::kHidden},
       {"depth", ColumnType::kInt, "0 for roots.", &ModuleRow::depth,
        Shown::kHidden},
       {"calls", ColumnType::kInt, "Times it was called.", &ModuleRow::calls},
       {"kernels", ColumnType::kInt, "Device slices inside, all levels.",
        &ModuleRow::kernels},
       {"kernel_time_us", ColumnType::kTime,
        "Sum of durations inside, all levels.", &ModuleRow::kernel_time},
       {"percent", ColumnType::kReal, "Share of all linked device time.",
        &ModuleRow::percent, Shown::kBar},
       {"self_kernel_time_us", ColumnType::kTime,
        "Of work launched in no module below.", &ModuleRow::self_kernel_time},
       {"backward_kernel_time_us", ColumnType::kTime,
        "Part of kernel_time_us that is backward work.",
        &ModuleRow::backward_kernel_time},
       {"host_us", ColumnType::kTime, "Host time of the calls.",
        &ModuleRow::host, Shown::kHidden}}};
  return columns;
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
  std::vector<ModuleRow> rows;
  if (modules.empty()) {
    result.tables.push_back(ModuleColumns().Make(rows));
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
    return all > 0 ? std::optional(100.0 * static_cast<double>(ns) /
                                   static_cast<double>(all))
                   : std::nullopt;
  };
  for (const tree::ModulePathId id : modules.Preorder()) {
    const uint32_t i = id.value;
    const std::string_view recorded = trace.Text(paths[i].name);
    const Sums& s = sums[i];
    rows.push_back(
        {.module = modules.PathText(id),
         .class_name = tree::Modules::ClassName(recorded),
         .parent = paths[i].parent.valid()
                       ? std::optional(modules.PathText(paths[i].parent))
                       : std::nullopt,
         .depth = paths[i].depth,
         .calls = paths[i].calls,
         .kernels = s.kernels,
         .kernel_time = s.total,
         .percent = percent(s.total),
         .self_kernel_time = s.self,
         .backward_kernel_time = s.backward,
         .host = s.host});
  }
  rows.push_back({.module = "(outside)",
                  .class_name = "",
                  .parent = std::nullopt,
                  .depth = 0,
                  .calls = std::nullopt,
                  .kernels = outside.kernels,
                  .kernel_time = outside.total,
                  .percent = percent(outside.total),
                  .self_kernel_time = outside.self,
                  .backward_kernel_time = outside.backward,
                  .host = std::nullopt});
  result.tables.push_back(ModuleColumns().Make(rows));
  return result;
}

}  // namespace

AnalysisInfo Info() {
  return {"modules", "Device time by nn.Module.",
          [] { return std::vector<Schema>{ModuleColumns().schema()}; }, &Run};
}

}  // namespace lamina::analysis::modules
