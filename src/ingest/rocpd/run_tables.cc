// SPDX-License-Identifier: Apache-2.0

#include "ingest/rocpd/run_tables.h"

#include <cmath>
#include <set>

#include "base/escape.h"
#include "ingest/common/rocm.h"

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

using trace::kNoInt;

namespace {

constexpr int kEvent = 10;
constexpr int kOwn = 11;  // the first column of the table's own

// "HIP_RUNTIME_API" -> "hip_api"; empty for what is no call.
std::string_view CallCategory(std::string_view category) {
  if (category.starts_with("HIP_")) return "hip_api";
  if (category.starts_with("HSA_")) return "hsa_api";
  if (category.starts_with("RCCL_")) return "rccl_api";
  if (category.starts_with("ROCDECODE_")) return "rocdecode_api";
  if (category.starts_with("ROCJPEG_")) return "rocjpeg_api";
  return {};
}

}  // namespace

RunThread::RunThread(RunTables* run, TableReader* reader, int worker)
    : run_(*run),
      worker_(worker),
      filler_(reader->filler(worker)),
      writer_(&filler_.names()),
      strings_(run->strings(), reader->database(worker), &filler_),
      symbols_(run->symbols().size()) {
  writer_.Bind(&filler_.segment());
}

rocm::Span RunThread::SpanOf(const Row& row) const {
  rocm::Span span;
  const auto time = [&](int column, int reference) -> int64_t {
    if (const auto value = row.Int(column)) return *value;
    const int64_t* found = run_.times().Find(row.IntOr(reference, kNoInt));
    return found != nullptr ? *found : kNoInt;
  };
  span.start_ns = time(0, 2);
  span.end_ns = time(1, 3);
  return span;
}

Place RunThread::PlaceOf(const Row& row) const {
  Place place;
  if (const Place* track = run_.tracks().Find(row.IntOr(4, kNoInt)))
    place = *track;
  const auto own = [&](int column, int64_t& value) {
    if (const auto found = row.Int(column)) value = *found;
  };
  own(5, place.pid);
  own(6, place.tid);
  own(7, place.agent);
  own(8, place.queue);
  own(9, place.stream);
  return place;
}

RunThread::LocalProcess RunThread::ProcessOf(int64_t row) {
  const auto it = processes_.find(row);
  if (it != processes_.end()) return it->second;
  const auto process = run_.ProcessOf(worker_, row);
  if (!process) return {0, StringPool::kEmpty};
  return processes_[row] = {process->index, filler_.Intern(process->pid)};
}

rocm::Thread RunThread::ThreadOf(const Place& place) {
  const auto it = run_.thread_ids().find(place.tid);
  return {ProcessOf(place.pid).pid,
          it != run_.thread_ids().end() ? it->second : 0};
}

int64_t RunThread::LaunchOf(uint32_t process, const Event& event) {
  const int64_t stack = run_.LaunchStack(event);
  if (stack == 0) return kNoInt;
  if (event.correlation == 0) {
    filler_.segment().diagnostics.Add(
        trace::Effect::kInfo, "linked_by_stack",
        "Device work without a correlation is joined to the call on the same "
        "place of the stack.",
        trace::Diagnostics::kNoOffset);
  }
  return rocm::Correlation(process, stack);
}

StringId RunThread::SymbolName(size_t place) {
  StringId& name = symbols_[place];
  if (!name.valid()) name = filler_.Intern(run_.symbols().at(place).name);
  return name;
}

void RunThread::Region(const Row& row) {
  const rocm::Span span = SpanOf(row);
  const Place place = PlaceOf(row);
  const Event event = run_.EventOf(row.Int(kEvent));
  const StringId name = strings_.Find(row.Int(kOwn));
  const StringId category = strings_.Find(event.category);
  const std::string_view calls = CallCategory(
      category.valid() ? filler_.names().Text(category) : std::string_view());
  if (calls.empty()) {
    writer_.AddMarker(span, ThreadOf(place),
                      name.valid() ? filler_.names().Text(name) : "");
  } else {
    rocm::Call call;
    call.span = span;
    call.thread = ThreadOf(place);
    call.name = name.valid() ? name : filler_.Intern("(unnamed call)");
    call.kind = rocm::CallKind(calls);
    call.category = calls;
    // What a call launches carries the number of its place on the stack.
    call.correlation =
        rocm::Correlation(ProcessOf(place.pid).index,
                          event.stack > 0 ? event.stack : event.correlation);
    writer_.Add(call);
  }
  filler_.Next();
}

void RunThread::Dispatch(const Row& row) {
  const Place place = PlaceOf(row);
  const LocalProcess process = ProcessOf(place.pid);
  rocm::Dispatch dispatch;
  dispatch.span = SpanOf(row);
  dispatch.pid = process.pid;
  const size_t symbol = run_.symbols().Place(row.IntOr(kOwn, kNoInt));
  if (symbol < run_.symbols().size()) {
    dispatch.name = SymbolName(symbol);
    dispatch.kind = run_.symbols().at(symbol).kind;
    dispatch.registers = run_.symbols().at(symbol).registers;
  } else {
    dispatch.name =
        filler_.Intern("kernel " + std::to_string(row.IntOr(kOwn, 0)));
  }
  dispatch.device = run_.AgentOf(place.agent).number;
  dispatch.queue = place.queue;
  dispatch.stream = place.stream;
  dispatch.correlation = LaunchOf(process.index, run_.EventOf(row.Int(kEvent)));
  for (size_t axis = 0; axis < 3; ++axis) {
    const int column = kOwn + 1 + static_cast<int>(axis);
    dispatch.workgroup[axis] = row.IntOr(column, 0);
    dispatch.grid[axis] = row.IntOr(column + 3, 0);
  }
  dispatch.group_bytes = row.IntOr(kOwn + 7, kNoInt);
  const size_t slices = filler_.segment().slices.size();
  writer_.Add(dispatch);
  if (filler_.segment().slices.size() > slices)
    Counters(row.IntOr(kEvent, kNoInt));
  filler_.Next();
}

void RunThread::Counters(int64_t event) {
  auto& rows = filler_.segment().event_counters;
  const size_t first = rows.size();
  run_.TakeCounters(event, [&](const CounterValue& counter) {
    const size_t place = run_.counters().Place(counter.counter);
    StringId name;
    if (place < run_.counters().size()) {
      if (counters_.empty()) counters_.resize(run_.counters().size());
      StringId& known = counters_[place];
      if (!known.valid()) known = filler_.Intern(run_.counters().at(place));
      name = known;
    } else {
      name = filler_.Intern("counter " + std::to_string(counter.counter));
    }
    // Instances of one counter, as those of several engines, add up.
    for (size_t i = first; i < rows.size(); ++i) {
      if (rows[i].name != name) continue;
      rows[i].value += counter.value;
      return;
    }
    rows.push_back({counter.value, name, filler_.segment().next_uid});
  });
}

void RunThread::Copy(const Row& row) {
  const Place place = PlaceOf(row);
  const LocalProcess process = ProcessOf(place.pid);
  const Agent source = run_.AgentOf(row.Int(kOwn + 2));
  const Agent target = run_.AgentOf(row.Int(kOwn + 3));
  rocm::Copy copy;
  copy.span = SpanOf(row);
  copy.pid = process.pid;
  copy.name = strings_.Find(row.Int(kOwn));
  if (!copy.name.valid()) copy.name = filler_.Intern("MEMORY_COPY");
  copy.device = target.gpu ? target.number : source.number;
  copy.queue = place.queue;
  copy.stream = place.stream;
  copy.correlation = LaunchOf(process.index, run_.EventOf(row.Int(kEvent)));
  copy.bytes = row.IntOr(kOwn + 1, kNoInt);
  writer_.Add(copy);
  filler_.Next();
}

void RunThread::Allocation(const Row& row) {
  const Place place = PlaceOf(row);
  rocm::Allocation allocation;
  allocation.span = SpanOf(row);
  allocation.pid = ProcessOf(place.pid).pid;
  allocation.device = run_.AgentOf(place.agent).number;
  allocation.address = row.IntOr(kOwn + 1, kNoInt);
  const auto size = row.Int(kOwn + 2);
  const auto type = row.Text(kOwn);
  const bool released = type == "FREE" || type == "RECLAIM";
  // A release of unknown size must not count as nothing.
  if (size && *size > 0)
    allocation.bytes = released ? -*size : *size;
  else
    allocation.bytes = kNoInt;
  if (const auto level = row.Text(kOwn + 3)) {
    if (*level == "VIRTUAL") allocation.level = "virtual";
    if (*level == "SCRATCH") allocation.level = "scratch";
  }
  writer_.Add(allocation);
  filler_.Next();
}

void RunThread::ThreadName(const Row& row) {
  const auto name = row.Text(2);
  if (!name || name->empty() || !run_.Knows(row.IntOr(0, kNoInt))) return;
  trace::TrackFact fact;
  fact.track = filler_.names().InternTrack(
      ProcessOf(row.IntOr(0, kNoInt)).pid,
      filler_.Intern(std::to_string(row.IntOr(1, 0))));
  fact.what = trace::TrackFact::What::kThreadName;
  fact.text = filler_.Intern(*name);
  filler_.segment().facts.push_back(fact);
}

}  // namespace lamina::ingest::rocpd
