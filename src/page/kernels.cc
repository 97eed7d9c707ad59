// SPDX-License-Identifier: Apache-2.0
#include "page/kernels.h"

namespace lamina::page {

std::string_view LauncherName(const analysis::Context& context,
                              trace::SliceId slice) {
  tree::NodeId parent = context.tree.launch(slice);
  if (!parent.valid()) return {};
  const tree::NodeId op = context.tree.EnclosingOp(parent);
  return context.tree.name(op.valid() ? op : parent);
}

int64_t PageKernels::RowOf(const analysis::Context& context,
                           trace::SliceId slice, std::string_view trace_name) {
  return RowOf(trace_name, context.trace.Name(slice),
               LauncherName(context, slice),
               context.catalog.family(context.device.family(slice)).name,
               context.trace.Duration(slice));
}

int64_t PageKernels::RowOf(std::string_view trace_name, std::string_view kernel,
                           std::string_view op, std::string_view family,
                           int64_t dur_ns) {
  const auto [it, is_new] = ids_.try_emplace(
      std::tuple(std::string(trace_name), std::string(kernel), std::string(op)),
      rows_.size());
  if (is_new) {
    rows_.push_back({std::string(trace_name), std::string(kernel),
                     std::string(op), std::string(family)});
  }
  Row& row = rows_[it->second];
  ++row.count;
  row.time_ns += dur_ns;
  return static_cast<int64_t>(it->second) + 1;
}

Table PageKernels::Take() const {
  Schema schema{
      "kernels",
      "Kernels, copies and fills of which this page holds events.",
      {{"trace", ColumnType::kText, "Trace of the events."},
       {"kernel", ColumnType::kText, "Name."},
       {"op", ColumnType::kText,
        "Op that launched it; the call where there is none."},
       {"family", ColumnType::kText, "Family of the kernel."},
       {"count", ColumnType::kInt, "Events in this page."},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations."}}};
  const bool named = !rows_.empty() && !rows_.front().trace.empty();
  if (!named) schema.columns.erase(schema.columns.begin());
  Table table(std::move(schema));
  for (const Row& row : rows_) {
    std::vector<Value> cells{row.kernel, row.op, row.family, row.count,
                             row.time_ns};
    if (named) cells.insert(cells.begin(), Value(row.trace));
    table.AddRow(cells);
  }
  return table;
}

}  // namespace lamina::page
