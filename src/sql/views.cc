// SPDX-License-Identifier: Apache-2.0
//
// Questions that are a SELECT over the other tables.
#include "sql/table_def.h"

namespace lamina::sql {
namespace {

TableDef View(std::string name, std::string doc, Cost cost,
              std::vector<ColumnDef> columns, std::string select) {
  TableDef table;
  table.name = std::move(name);
  table.doc = std::move(doc);
  table.kind = TableKind::kView;
  table.cost = cost;
  table.columns = std::move(columns);
  table.select = std::move(select);
  return table;
}

}  // namespace

void AddViews(std::vector<TableDef>& tables) {
  tables.push_back(View(
      "collective_call", "Communication on the device, one row per kernel.",
      Cost::kTree,
      {{"uid", Type::kInt, "Event number of the kernel."},
       {"name", Type::kText, "Name of the kernel."},
       {"collective", Type::kText, "Collective, where it is recorded."},
       {"process_group", Type::kText, "Process group."},
       {"process_group_ranks", Type::kText, "Ranks of the group, as recorded."},
       {"group_size", Type::kInt, "Ranks in the group."},
       {"dtype", Type::kText, "Element type."},
       {"in_elements", Type::kInt, "Elements of the input."},
       {"out_elements", Type::kInt, "Elements of the output."},
       {"start_ns", Type::kInt, "Start, from the first event."},
       {"dur_ns", Type::kInt, "Duration."},
       {"device", Type::kText, "process:device."},
       {"stream", Type::kInt, "Stream as recorded."},
       {"step", Type::kInt, "Number of the step that launched it."}},
      "SELECT uid, name, collective, process_group, process_group_ranks, "
      "group_size, dtype, in_elements, out_elements, start_ns, dur_ns, "
      "device, stream, step "
      "FROM kernel WHERE bucket = 'communication'"));
  tables.push_back(
      View("forward_backward",
           "Ops of the forward pass with their backward ops.", Cost::kTree,
           {{"forward_uid", Type::kInt, "Event number of the forward op."},
            {"forward_op", Type::kText, "Its name."},
            {"forward_device_ns", Type::kInt, "Its device time."},
            {"backward_uid", Type::kInt, "Event number of the backward op."},
            {"backward_op", Type::kText, "Its name."},
            {"backward_device_ns", Type::kInt, "Its device time."}},
           "SELECT f.uid AS forward_uid, f.name AS forward_op, "
           "f.device_time_ns AS forward_device_ns, b.uid AS backward_uid, "
           "b.name AS backward_op, b.device_time_ns AS backward_device_ns "
           "FROM op AS f JOIN op AS b ON b.uid = f.backward_uid"));
  tables.push_back(View(
      "allocation", "Allocations and frees over time.", Cost::kFree,
      {{"uid", Type::kInt, "Event number."},
       {"time_ns", Type::kInt, "When, from the first event."},
       {"device_index", Type::kInt, "Device number; -1 stands for the host."},
       {"bytes", Type::kInt, "Size; negative: freed."},
       {"total_allocated_bytes", Type::kInt, "Allocated after it."},
       {"total_reserved_bytes", Type::kInt, "Reserved after it."},
       {"address", Type::kInt, "Address."}},
      "SELECT i.uid AS uid, i.time_ns AS time_ns, m.device_index AS "
      "device_index, "
      "m.bytes AS bytes, m.total_allocated_bytes AS total_allocated_bytes, "
      "m.total_reserved_bytes AS total_reserved_bytes, m.address AS address "
      "FROM instant AS i JOIN memory_event AS m ON m.id = i.memory_event_id"));
}

}  // namespace lamina::sql
