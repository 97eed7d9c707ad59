// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocpd/run_tables.h"

#include <cmath>
#include <set>

#include "base/escape.h"
#include "ingest/common/rocm_agent.h"
#include "ingest/rocpd/run_thread.h"

namespace lamina::ingest::rocpd {

using trace::kNoInt;

namespace {

constexpr std::string_view kStringTable = "rocpd_string";

}  // namespace

std::vector<std::string> FindRuns(const Database& database) {
  std::set<std::string> suffixes;
  for (const DatabaseTable& table : database.tables()) {
    const std::string_view name = table.name;
    if (!name.starts_with(kStringTable)) continue;
    const std::string_view suffix = name.substr(kStringTable.size());
    if (suffix.empty() || suffix[0] == '_') suffixes.emplace(suffix);
  }
  return {suffixes.begin(), suffixes.end()};
}

RunTables::RunTables(TableReader* reader, std::string suffix,
                     uint32_t* processes)
    : reader_(*reader),
      database_(reader->database(0)),
      suffix_(std::move(suffix)),
      process_count_(*processes),
      strings_(*reader, Table("string"), "id", "string") {
  ReadProcesses();
  ReadAgents();
  ReadEvents();
  ReadCallStacks();
  ReadSymbols();
  ReadCounters();
  ReadTimes();
  for (int worker = 0; worker < reader->workers(); ++worker)
    threads_.emplace_back(this, reader, worker);
}

RunTables::~RunTables() = default;

void RunTables::ForFew(std::string_view name, Columns columns,
                       const TableReader::RowFunction& read) {
  const DatabaseTable* table = Table(name);
  const PassEnd end = database_.ForEach(table, columns, read);
  if (table != nullptr) NoteBreak(*table, end, reader_.builder().diagnostics());
}

void RunTables::ReadProcesses() {
  ForFew("info_node", {"hostname"}, [&](const Row& row) {
    reader_.builder().info().properties.emplace_back(
        "hostname", JsonQuote(row.Text(0).value_or("")));
  });
  ForFew("info_process", {"id", "pid"}, [&](const Row& row) {
    const auto id = row.Int(0);
    if (!id || processes_.contains(*id)) return;
    processes_[*id] = {process_count_++, std::to_string(row.IntOr(1, 0))};
  });
  ForFew("info_thread", {"id", "tid"}, [&](const Row& row) {
    const auto id = row.Int(0);
    const auto tid = row.Int(1);
    if (id && tid) thread_ids_.try_emplace(*id, *tid);
  });
}

void RunTables::ReadAgents() {
  simdjson::dom::parser parser;
  trace::Info& info = reader_.builder().info();
  const bool first = info.devices.empty();
  ForFew("info_agent",
         {"id", "type", "type_index", "name", "product_name", "extdata"},
         [&](const Row& row) {
           const auto id = row.Int(0);
           if (!id) return;
           Agent agent;
           agent.gpu = row.Text(1) == "GPU";
           if (agent.gpu) agent.number = row.IntOr(2, kNoInt);
           if (!agents_.try_emplace(*id, agent).second || !agent.gpu || !first)
             return;
           trace::DeviceInfo device;
           simdjson::dom::element facts;
           const auto text = row.Text(5);
           if (text && parser.parse(text->data(), text->size()).get(facts) ==
                           simdjson::SUCCESS)
             device = rocm::DeviceOf(facts, agent.number);
           device.id = agent.number == kNoInt ? 0 : agent.number;
           for (const int column : {4, 3}) {
             if (device.name.empty())
               device.name = row.Text(column).value_or("");
           }
           info.devices.push_back(std::move(device));
         });
}

void RunTables::ReadEvents() {
  events_ = reader_.Index<Event>(
      Table("event"),
      {"id", "category_id", "stack_id", "parent_stack_id", "correlation_id"},
      [](int, const Row& row, IdTable<Event>& events) {
        if (const auto id = row.Int(0)) {
          events.Add(*id, {row.IntOr(1, kNoInt), row.IntOr(2, 0),
                           row.IntOr(3, 0), row.IntOr(4, 0)});
        }
      });
}

// What is called stands in the table of regions.
void RunTables::ReadCallStacks() {
  bool parents = false;
  for (size_t i = 0; i < events_.size() && !parents; ++i) {
    const Event& event = events_.at(i);
    parents = event.correlation == 0 && event.parent != 0;
  }
  if (!parents) return;
  ForFew("region", {"event_id"}, [&](const Row& row) {
    const int64_t stack = EventOf(row.Int(0)).stack;
    if (stack != 0) call_stacks_.insert(stack);
  });
}

int64_t RunTables::LaunchStack(const Event& event) const {
  if (event.correlation != 0) return event.correlation;
  if (event.parent != 0 && !call_stacks_.contains(event.stack))
    return event.parent;
  return event.stack;
}

void RunTables::ReadSymbols() {
  symbols_ = reader_.Index<Symbol>(
      Table("info_kernel_symbol"),
      {"id", "display_name", "kernel_name", "arch_vgpr_count"},
      [](int, const Row& row, IdTable<Symbol>& symbols) {
        const auto id = row.Int(0);
        auto name = row.Text(1);
        if (!name || name->empty()) name = row.Text(2);
        if (!id || !name) return;
        const std::string_view plain = rocm::PlainKernelName(*name);
        symbols.Add(*id, {std::string(plain), rocm::KernelKind(plain),
                          row.IntOr(3, kNoInt)});
      });
}

void RunTables::ReadCounters() {
  counters_ = reader_.Index<std::string>(
      Table("info_pmc"), {"id", "name", "symbol"},
      [](int, const Row& row, IdTable<std::string>& counters) {
        const auto id = row.Int(0);
        auto name = row.Text(1);
        if (!name || name->empty()) name = row.Text(2);
        if (id && name) counters.Add(*id, std::string(*name));
      });
  counter_values_ = reader_.Index<CounterValue>(
      Table("pmc_event"), {"event_id", "pmc_id", "value"},
      [](int, const Row& row, IdTable<CounterValue>& values) {
        const auto event = row.Int(0);
        const auto counter = row.Int(1);
        const auto value = row.Real(2);
        if (event && counter && value && std::isfinite(*value))
          values.Add(*event, {*event, *counter, *value});
      });
}

void RunTables::ReadTimes() {
  times_ =
      reader_.Index<int64_t>(Table("timestamp"), {"id", "value"},
                             [](int, const Row& row, IdTable<int64_t>& times) {
                               const auto id = row.Int(0);
                               const auto value = row.Int(1);
                               if (id && value) times.Add(*id, *value);
                             });
  tracks_ = reader_.Index<rocpd::Place>(
      Table("track"), {"id", "pid", "tid", "agent_id", "queue_id", "stream_id"},
      [](int, const Row& row, IdTable<rocpd::Place>& tracks) {
        if (const auto id = row.Int(0)) {
          tracks.Add(*id, {row.IntOr(1, kNoInt), row.IntOr(2, kNoInt),
                           row.IntOr(3, kNoInt), row.IntOr(4, kNoInt),
                           row.IntOr(5, kNoInt)});
        }
      });
}

std::optional<Process> RunTables::ProcessOf(int worker, int64_t row) {
  std::optional<Process> process;
  const auto known = [&] {
    const auto it = processes_.find(row);
    if (it != processes_.end()) process = it->second;
    return process.has_value();
  };
  reader_.InTurn(worker, known, [&] {
    process = processes_[row] = {process_count_++, "unknown"};
  });
  return process;
}

Agent RunTables::AgentOf(std::optional<int64_t> row) const {
  const auto it = agents_.find(row.value_or(kNoInt));
  return it != agents_.end() ? it->second : Agent();
}

Event RunTables::EventOf(std::optional<int64_t> row) const {
  const Event* event = events_.Find(row.value_or(kNoInt));
  return event != nullptr ? *event : Event();
}

// --------------------------------------------------------------------------

void RunTables::ForRows(std::string_view table, Columns columns,
                        void (RunThread::*read)(const Row&)) {
  reader_.ForEach(Table(table), columns,
                  [&](int worker, size_t) -> TableReader::RowFunction {
                    RunThread& thread = threads_[static_cast<size_t>(worker)];
                    return [&thread, read](const Row& row) {
                      (thread.*read)(row);
                    };
                  });
}

void RunTables::ReadRegions() {
  ForRows("region", {LAMINA_ROCPD_COMMON, "name_id"}, &RunThread::Region);
}

void RunTables::ReadDispatches() {
  ForRows("kernel_dispatch",
          {LAMINA_ROCPD_COMMON, "kernel_id", "workgroup_size_x",
           "workgroup_size_y", "workgroup_size_z", "grid_size_x", "grid_size_y",
           "grid_size_z", "group_segment_size"},
          &RunThread::Dispatch);
}

void RunTables::ReadCopies() {
  ForRows(
      "memory_copy",
      {LAMINA_ROCPD_COMMON, "name_id", "size", "src_agent_id", "dst_agent_id"},
      &RunThread::Copy);
}

void RunTables::ReadAllocations() {
  ForRows("memory_allocate",
          {LAMINA_ROCPD_COMMON, "type", "address", "size", "level"},
          &RunThread::Allocation);
}

void RunTables::ReadNames() {
  ForRows("info_thread", {"pid", "tid", "name"}, &RunThread::ThreadName);
}

void RunTables::AddKnown(std::set<std::string>& names) const {
  for (const std::string_view name :
       {"arg", "event", "info_agent", "info_code_object", "info_kernel_symbol",
        "info_node", "info_pmc", "info_process", "info_queue", "info_stream",
        "info_thread", "kernel_dispatch", "memory_allocate", "memory_copy",
        "metadata", "region", "string", "timestamp", "track"})
    names.insert(Name(name));
  // Of counters those of kernels are read.
  if (counter_values_.size() > 0 && counters_taken_ >= counter_values_.size())
    names.insert(Name("pmc_event"));
}

}  // namespace lamina::ingest::rocpd
