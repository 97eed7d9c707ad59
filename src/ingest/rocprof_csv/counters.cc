// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof_csv/counters.h"

#include <map>

#include "base/decimal.h"
#include "ingest/common/rocm.h"

namespace lamina::ingest::rocprof_csv {
namespace {

using trace::kNoInt;

struct CounterColumns {
  explicit CounterColumns(const Sheet& sheet)
      : start(sheet.Find({"Start_Timestamp"})),
        end(sheet.Find({"End_Timestamp"})),
        name(sheet.Find({"Kernel_Name"})),
        agent(sheet.Find({"Agent_Id"})),
        queue(sheet.Find({"Queue_Id"})),
        stream(sheet.Find({"Stream_Id"})),
        correlation(sheet.Find({"Correlation_Id"})),
        dispatch(sheet.Find({"Dispatch_Id", "Correlation_Id"})),
        pid(sheet.Find({"Process_Id"})),
        grid(sheet.Find({"Grid_Size"})),
        workgroup(sheet.Find({"Workgroup_Size"})),
        shared(sheet.Find({"LDS_Block_Size"})),
        registers(sheet.Find({"VGPR_Count"})),
        counter(sheet.Find({"Counter_Name"})),
        value(sheet.Find({"Counter_Value"})) {}

  int start, end, name, agent, queue, stream, correlation, dispatch, pid, grid,
      workgroup, shared, registers, counter, value;
};

struct Counted {
  rocm::Dispatch dispatch;
  std::vector<CounterValue> values;
};

}  // namespace

void AddCounters(const std::vector<CounterValue>& values,
                 trace::LocalNames& names, trace::Segment& segment) {
  for (const CounterValue& one : values) {
    segment.event_counters.push_back(
        {one.value, names.Intern(one.name), segment.next_uid});
  }
}

Status CounterTable::Read(Sheet& sheet, const Agents& agents, bool emit,
                          trace::LocalNames& names, trace::Segment& segment) {
  const CounterColumns columns(sheet);
  rocm::Writer writer(&names);
  writer.Bind(&segment);
  // Dispatches in the order of the file; a run of a second pass has numbers of
  // its own, in files of its own.
  std::vector<Counted> dispatches;
  std::map<std::pair<int64_t, int64_t>, size_t> places;  // pid, dispatch
  size_t rows_read = 0;
  Chunk chunk;
  while (true) {
    LAMINA_ASSIGN(const bool more, sheet.Next(chunk));
    if (!more) break;
    CsvRows rows(chunk.text);
    while (rows.Next()) {
      ++rows_read;
      const auto number = [&](int column) {
        return column < 0 ? kNoInt
                          : ParseInt(rows.Field(column)).value_or(kNoInt);
      };
      const int64_t pid = number(columns.pid);
      const int64_t id = number(columns.dispatch);
      const auto [it, is_new] =
          places.try_emplace({pid, id}, dispatches.size());
      // Rows without an id are dispatches each.
      if (is_new || id == kNoInt) {
        it->second = dispatches.size();
        Counted& one = dispatches.emplace_back();
        rocm::Dispatch& d = one.dispatch;
        const std::string_view name =
            rocm::PlainKernelName(rows.Field(columns.name));
        d.span = {number(columns.start), number(columns.end),
                  chunk.offset + rows.begin()};
        d.pid = writer.Intern(pid != kNoInt ? std::to_string(pid)
                                            : std::to_string(sheet.pid()));
        d.name = writer.Intern(name);
        d.kind = rocm::KernelKind(name);
        d.device = agents.DeviceOf(rows.Field(columns.agent));
        d.queue = number(columns.queue);
        d.stream = columns.stream >= 0 ? number(columns.stream) : d.queue;
        d.correlation =
            rocm::Correlation(sheet.process(), number(columns.correlation));
        // One number for all axes.
        d.workgroup = {number(columns.workgroup), 1, 1};
        d.grid = {number(columns.grid), 1, 1};
        d.group_bytes = number(columns.shared);
        d.registers = number(columns.registers);
      }
      const auto value = ParseDouble(rows.Field(columns.value));
      const std::string_view counter = rows.Field(columns.counter);
      if (!value || counter.empty()) continue;
      CounterValue one{std::string(counter), *value};
      if (!emit && id != kNoInt)
        counters_[{sheet.process(), id}].push_back(one);
      dispatches[it->second].values.push_back(std::move(one));
    }
    AddRowDamage(rows, chunk, segment.diagnostics);
  }
  sheet.AddDamage(segment.diagnostics);
  if (rows_read > 0) {
    segment.diagnostics.Add(
        trace::Effect::kInfo, "counter_rows",
        "Rows of counters, one per dispatch and counter: they are values of "
        "dispatches (table counter_kernels), no dispatches.",
        trace::Diagnostics::kNoOffset, rows_read);
  }
  if (!emit) return {};
  for (const Counted& one : dispatches) {
    AddCounters(one.values, names, segment);
    writer.Add(one.dispatch);
    ++segment.next_uid;
  }
  return {};
}

const std::vector<CounterValue>* CounterTable::Find(uint32_t process,
                                                    int64_t dispatch) const {
  const auto it = counters_.find({process, dispatch});
  return it == counters_.end() ? nullptr : &it->second;
}

}  // namespace lamina::ingest::rocprof_csv
