// SPDX-License-Identifier: Apache-2.0
#include "engine/page_kernels.h"

namespace lamina::engine {

int64_t PageKernels::RowOf(const analysis::Context& context,
                           trace::SliceId slice, std::string_view trace_name) {
  // The op above the launch, else the launch: as in the kernels of a report.
  tree::NodeId parent = context.tree.launch(slice);
  if (parent.valid()) {
    const tree::NodeId op = context.tree.EnclosingOp(parent);
    if (op.valid()) parent = op;
  }
  return RowOf(trace_name, context.trace.Name(slice),
               parent.valid() ? context.tree.name(parent) : std::string_view(),
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
  Table table(
      {"kernels",
       "Kernels, copies and fills of which this page holds events.",
       {{"trace", ColumnType::kText, "Trace of the events."},
        {"kernel", ColumnType::kText, "Name."},
        {"op", ColumnType::kText,
         "Op that launched it; the call where there is none."},
        {"family", ColumnType::kText, "Family of the kernel."},
        {"count", ColumnType::kInt, "Events in this page."},
        {"kernel_time_us", ColumnType::kTime, "Sum of their durations."}}});
  for (const Row& row : rows_) {
    table.Add(row.trace, row.kernel, row.op, row.family, row.count,
              row.time_ns);
  }
  return table;
}

}  // namespace lamina::engine
