// SPDX-License-Identifier: Apache-2.0

#include "ingest/rocprof_csv/sheets.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/decimal.h"
#include "ingest/common/rocm.h"
#include "trace/trace.h"

namespace lamina::ingest::rocprof_csv {

int Column(const std::vector<std::string>& header,
           std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto it = std::find(header.begin(), header.end(), name);
    if (it != header.end()) return static_cast<int>(it - header.begin());
  }
  return -1;
}

TableKind KindOf(const std::vector<std::string>& header) {
  const auto has = [&](std::string_view name) {
    return Column(header, {name}) >= 0;
  };
  if (has("KernelName") && has("BeginNs") && has("EndNs"))
    return TableKind::kOldKernels;
  if ((has("Accelerator Core") && has("Start Time(us)") &&
       has("Duration(us)")) ||
      (has("Op Name") && has("Task Start Time(us)") &&
       has("Task Duration(us)")))
    return TableKind::kAscend;
  // Counters of rocprof-compute, by dispatch: their times are not measured.
  if (has("Dispatch_ID") && has("GPU_ID") && !has("Queue_ID") && !has("PID"))
    return TableKind::kNone;
  if (has("Agent_Type") && has("Node_Id")) return TableKind::kAgents;
  if (!has("Start_Timestamp") || !has("End_Timestamp")) return TableKind::kNone;
  if (has("Kernel_Name")) {
    return has("Counter_Name") && has("Counter_Value") ? TableKind::kCounters
                                                       : TableKind::kKernels;
  }
  if (has("Direction")) return TableKind::kCopies;
  if (has("Function")) return TableKind::kCalls;
  return TableKind::kNone;
}

int64_t PidOfName(std::string_view path) {
  const std::string_view name = path.substr(path.find_last_of('/') + 1);
  size_t digits = 0;
  while (digits < name.size() && name[digits] >= '0' && name[digits] <= '9')
    ++digits;
  if (digits == 0 || digits > 18 || name.substr(digits, 1) != "_") return 0;
  return ParseInt(name.substr(0, digits)).value_or(0);
}

int64_t AgentNumber(std::string_view text) {
  const size_t space = text.find_last_of(' ');
  if (space != std::string_view::npos) text.remove_prefix(space + 1);
  const auto number = ParseInt(text);
  return number && *number >= 0 ? *number : trace::kNoInt;
}

namespace {

void AddLostRows(uint64_t offset, trace::Diagnostics& diagnostics) {
  diagnostics.Add(trace::Effect::kLost, "rows_damaged",
                  "A CSV file ends inside a quoted field or has a row of "
                  "more than 16 MB.",
                  offset);
}

}  // namespace

void AddRowDamage(const CsvRows& rows, const Chunk& chunk,
                  trace::Diagnostics& diagnostics) {
  if (const auto row = rows.damage())
    AddLostRows(chunk.offset + *row, diagnostics);
}

Status Sheet::Open() {
  LAMINA_ASSIGN(const bool any, cutter_.Next(first_));
  CsvRows rows(any ? first_.text : std::string_view());
  if (rows.Next()) {
    header_.assign(rows.fields().begin(), rows.fields().end());
    // A mark of UTF-8 that editors leave.
    if (header_[0].starts_with("\xEF\xBB\xBF")) header_[0].erase(0, 3);
    header_bytes_ = rows.end();
    first_.text.remove_prefix(rows.end());
    first_.offset += rows.end();
  }
  kind_ = KindOf(header_);
  return {};
}

Result<bool> Sheet::Next(Chunk& chunk) {
  if (first_.text.empty()) return cutter_.Next(chunk);
  chunk = std::exchange(first_, Chunk());
  return true;
}

void Sheet::AddDamage(trace::Diagnostics& diagnostics) const {
  if (const auto row = cutter_.damage()) AddLostRows(*row, diagnostics);
  if (const auto damage = source().damage()) {
    diagnostics.Add(trace::Effect::kLost, "input_damaged",
                    "Part of the input cannot be read: " + damage->what + ".",
                    damage->offset);
  }
}

Result<bool> SheetStream::Next(Chunk& chunk) {
  for (; sheet_ < sheets_.size(); ++sheet_, any_ = false) {
    Sheet& sheet = *sheets_[sheet_];
    // Those were read before.
    if (sheet.kind() == TableKind::kNone ||
        sheet.kind() == TableKind::kAgents ||
        sheet.kind() == TableKind::kCounters)
      continue;
    LAMINA_ASSIGN(const bool more, sheet.Next(chunk));
    if (!more) {
      sheet.AddDamage(diagnostics_);
      continue;
    }
    if (sheet.kind() == TableKind::kCopies && !any_) {
      diagnostics_.Add(
          trace::Effect::kInfo, "copies_without_bytes",
          "CSV files have no sizes of copies: write JSON or a database for "
          "them.");
    }
    any_ = true;
    chunk.array = static_cast<uint32_t>(sheet_);
    chunk.sequence = sequence_++;
    return true;
  }
  return false;
}

uint64_t SheetStream::stored_position() const {
  uint64_t sum = 0;
  for (const auto& sheet : sheets_) sum += sheet->source().stored_position();
  return sum;
}

uint64_t SheetStream::stored_size() const {
  uint64_t sum = 0;
  for (const auto& sheet : sheets_) sum += sheet->source().stored_size();
  return sum;
}

using trace::kNoInt;

Status Agents::Read(Sheet& sheet, trace::Segment& segment) {
  const int node = sheet.Find({"Node_Id"});
  const int type = sheet.Find({"Agent_Type"});
  const int units = sheet.Find({"Cu_Count"});
  const int product = sheet.Find({"Product_Name"});
  const int name = sheet.Find({"Name"});
  Chunk chunk;
  while (true) {
    LAMINA_ASSIGN(const bool more, sheet.Next(chunk));
    if (!more) break;
    CsvRows rows(chunk.text);
    for (; rows.Next(); ++segment.next_uid) {
      const auto id = ParseInt(rows.Field(node));
      if (!id) continue;
      Agent agent;
      agent.gpu = rows.Field(type) == "GPU" || rows.Field(type) == "2";
      agent.device.name = rows.Field(product);
      if (agent.device.name.empty()) agent.device.name = rows.Field(name);
      agent.device.sm_count = ParseInt(rows.Field(units)).value_or(kNoInt);
      agents_.try_emplace(*id, std::move(agent));
    }
    AddRowDamage(rows, chunk, segment.diagnostics);
  }
  sheet.AddDamage(segment.diagnostics);
  return {};
}

std::vector<trace::DeviceInfo> Agents::Number() {
  std::vector<trace::DeviceInfo> devices;
  for (auto& [node, agent] : agents_) {
    if (!agent.gpu) continue;
    agent.number = agent.device.id = static_cast<int64_t>(devices.size());
    devices.push_back(agent.device);
  }
  return devices;
}

const Agent* Agents::Find(std::string_view text) const {
  const auto it = agents_.find(AgentNumber(text));
  return it != agents_.end() ? &it->second : nullptr;
}

int64_t Agents::DeviceOf(std::string_view text) const {
  // "GPU 0" counts GPUs only.
  const Agent* agent = text.starts_with("GPU") ? nullptr : Find(text);
  return agent != nullptr ? agent->number : AgentNumber(text);
}

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
