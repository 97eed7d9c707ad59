// SPDX-License-Identifier: Apache-2.0
#include "ingest/rpd/call_tables.h"

#include "base/decimal.h"

namespace lamina::ingest::rpd {

using trace::kNoInt;

namespace {

// Streams are numbers, or addresses as text.
int64_t StreamOf(const Row& row, int column) {
  if (const auto number = row.Int(column)) return *number;
  if (const auto text = row.Text(column))
    return ParseInt(*text).value_or(kNoInt);
  return kNoInt;
}

void AddLaunch(int, const Row& row, IdTable<Launch>& launches) {
  const auto id = row.Int(0);
  if (!id) return;
  Launch launch;
  launch.stream = StreamOf(row, 1);
  for (size_t axis = 0; axis < 3; ++axis) {
    const int column = 2 + static_cast<int>(axis);
    launch.grid[axis] = row.IntOr(column, 0);
    launch.workgroup[axis] = row.IntOr(column + 3, 0);
  }
  launch.group_bytes = row.IntOr(8, kNoInt);
  launches.Add(*id, launch);
}

void AddCopySize(int, const Row& row, IdTable<int64_t>& sizes) {
  const auto id = row.Int(0);
  const auto size = row.Int(1);
  if (id && size && *size >= 0) sizes.Add(*id, *size);
}

void AddLink(int, const Row& row, IdTable<int64_t>& links) {
  const auto op = row.Int(0);
  const auto api = row.Int(1);
  if (op && api) links.Add(*op, *api);
}

}  // namespace

CallTables::CallTables(TableReader* reader)
    : strings(*reader, reader->database(0).Find("rocpd_string"), "id",
              "string"),
      unique(*reader, reader->database(0).Find("rocpd_ustring"), "id",
             "string") {
  const Database& database = reader->database(0);
  launches = reader->Index<Launch>(
      database.Find("rocpd_kernelapi"),
      {"api_ptr_id", "stream", "gridX", "gridY", "gridZ", "workgroupX",
       "workgroupY", "workgroupZ", "groupSegmentSize"},
      &AddLaunch);
  copy_bytes = reader->Index<int64_t>(database.Find("rocpd_copyapi"),
                                      {"api_ptr_id", "size"}, &AddCopySize);
  api_of_op = reader->Index<int64_t>(database.Find("rocpd_api_ops"),
                                     {"op_id", "api_id"}, &AddLink);
}

}  // namespace lamina::ingest::rpd
