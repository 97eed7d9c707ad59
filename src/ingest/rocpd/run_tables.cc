// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocpd/run_tables.h"

#include <algorithm>
#include <array>
#include <set>

#include "ingest/common/rocm_agent.h"

namespace lamina::ingest::rocpd {

using trace::Kind;
using trace::kNoInt;

namespace {

// The first columns of a scan over records, in both layouts: A has times and
// places in the row, B refers to tables of them.
#define LAMINA_ROCPD_COMMON                                                   \
  "start", "end", "start_id", "end_id", "track_id", "pid", "tid", "agent_id", \
      "queue_id", "stream_id", "event_id"
constexpr int kEvent = 10;
constexpr int kOwn = 11;  // the first column of the table's own

constexpr std::string_view kStringTable = "rocpd_string";

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

RunTables::RunTables(const Database& database, std::string suffix,
                     Filler* filler, uint32_t* processes)
    : database_(database),
      suffix_(std::move(suffix)),
      filler_(*filler),
      processes_(*processes),
      writer_(&filler->names()),
      strings_(database, Table("string"), "id", "string", filler) {
  writer_.Bind(&filler_.segment());
  ReadProcesses();
  ReadAgents();
  ReadEvents();
  ReadSymbols();
  ReadTimes();
}

void RunTables::ReadProcesses() {
  ForRows("info_process", {"id", "pid", "init", "fini"}, [&](const Rows& rows) {
    const auto row = rows.Int(0);
    if (!row || process_rows_.contains(*row)) return;
    process_rows_[*row] = {processes_++,
                           filler_.Intern(std::to_string(rows.IntOr(1, 0)))};
  });
  ForRows("info_thread", {"id", "tid"}, [&](const Rows& rows) {
    const auto row = rows.Int(0);
    const auto tid = rows.Int(1);
    if (row && tid) thread_ids_.try_emplace(*row, *tid);
  });
}

void RunTables::ReadAgents() {
  simdjson::dom::parser parser;
  trace::Info& info = filler_.builder().info();
  const bool first = info.devices.empty();
  ForRows(
      "info_agent",
      {"id", "type", "type_index", "name", "product_name", "extdata"},
      [&](const Rows& rows) {
        const auto row = rows.Int(0);
        if (!row) return;
        Agent agent;
        agent.gpu = rows.Text(1) == "GPU";
        if (agent.gpu) agent.number = rows.IntOr(2, kNoInt);
        if (!agents_.try_emplace(*row, agent).second || !agent.gpu || !first)
          return;
        trace::DeviceInfo device;
        simdjson::dom::element facts;
        const auto text = rows.Text(5);
        if (text && parser.parse(text->data(), text->size()).get(facts) ==
                        simdjson::SUCCESS)
          device = rocm::DeviceOf(facts, agent.number);
        device.id = agent.number == kNoInt ? 0 : agent.number;
        for (const int column : {4, 3}) {
          if (device.name.empty()) device.name = rows.Text(column).value_or("");
        }
        info.devices.push_back(std::move(device));
      });
}

void RunTables::ReadEvents() {
  ForRows("event", {"id", "category_id", "stack_id", "correlation_id"},
          [&](const Rows& rows) {
            const auto row = rows.Int(0);
            if (!row) return;
            events_.Add(*row, {strings_.Find(rows.Int(1)), rows.IntOr(2, 0),
                               rows.IntOr(3, 0)});
          });
  events_.Finish();
}

void RunTables::ReadSymbols() {
  ForRows("info_kernel_symbol",
          {"id", "display_name", "kernel_name", "arch_vgpr_count"},
          [&](const Rows& rows) {
            const auto row = rows.Int(0);
            if (!row) return;
            auto name = rows.Text(1);
            if (!name || name->empty()) name = rows.Text(2);
            if (!name) return;
            const std::string_view plain = rocm::PlainKernelName(*name);
            symbols_.try_emplace(
                *row, Symbol{filler_.Intern(plain), rocm::KernelKind(plain),
                             rows.IntOr(3, kNoInt)});
          });
}

void RunTables::ReadTimes() {
  ForRows("timestamp", {"id", "value"}, [&](const Rows& rows) {
    const auto row = rows.Int(0);
    const auto value = rows.Int(1);
    if (row && value) times_.Add(*row, *value);
  });
  times_.Finish();
  ForRows("track", {"id", "pid", "tid", "agent_id", "queue_id", "stream_id"},
          [&](const Rows& rows) {
            const auto row = rows.Int(0);
            if (!row) return;
            tracks_.Add(*row, {rows.IntOr(1, kNoInt), rows.IntOr(2, kNoInt),
                               rows.IntOr(3, kNoInt), rows.IntOr(4, kNoInt),
                               rows.IntOr(5, kNoInt)});
          });
  tracks_.Finish();
}

// --------------------------------------------------------------------------

rocm::Span RunTables::SpanOf(const Rows& rows) const {
  rocm::Span span;
  const auto time = [&](int column, int reference) -> int64_t {
    if (const auto value = rows.Int(column)) return *value;
    const int64_t* found = times_.Find(rows.IntOr(reference, kNoInt));
    return found != nullptr ? *found : kNoInt;
  };
  span.start_ns = time(0, 2);
  span.end_ns = time(1, 3);
  return span;
}

RunTables::Place RunTables::PlaceOf(const Rows& rows) const {
  Place place;
  if (const Place* track = tracks_.Find(rows.IntOr(4, kNoInt))) place = *track;
  const auto own = [&](int column, int64_t& value) {
    if (const auto found = rows.Int(column)) value = *found;
  };
  own(5, place.pid);
  own(6, place.tid);
  own(7, place.agent);
  own(8, place.queue);
  own(9, place.stream);
  return place;
}

const RunTables::Process& RunTables::ProcessOf(int64_t row) {
  const auto [it, is_new] = process_rows_.try_emplace(row);
  if (is_new) it->second = {processes_++, filler_.Intern("unknown")};
  return it->second;
}

rocm::Thread RunTables::ThreadOf(const Place& place) {
  const auto it = thread_ids_.find(place.tid);
  return {ProcessOf(place.pid).pid, it != thread_ids_.end() ? it->second : 0};
}

RunTables::Agent RunTables::AgentOf(std::optional<int64_t> row) const {
  const auto it = agents_.find(row.value_or(kNoInt));
  return it != agents_.end() ? it->second : Agent();
}

RunTables::Event RunTables::EventOf(std::optional<int64_t> row) const {
  const Event* event = events_.Find(row.value_or(kNoInt));
  return event != nullptr ? *event : Event();
}

void RunTables::ReadRegions() {
  ForRows("region", {LAMINA_ROCPD_COMMON, "name_id"}, [&](const Rows& rows) {
    const rocm::Span span = SpanOf(rows);
    const Place place = PlaceOf(rows);
    const Event event = EventOf(rows.Int(kEvent));
    const StringId name = strings_.Find(rows.Int(kOwn));
    const std::string_view category =
        event.category.valid() ? filler_.names().Text(event.category) : "";
    const std::string_view calls = CallCategory(category);
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
  });
}

void RunTables::ReadDispatches() {
  ForRows("kernel_dispatch",
          {LAMINA_ROCPD_COMMON, "kernel_id", "workgroup_size_x",
           "workgroup_size_y", "workgroup_size_z", "grid_size_x", "grid_size_y",
           "grid_size_z", "group_segment_size"},
          [&](const Rows& rows) {
            const Place place = PlaceOf(rows);
            const Process& process = ProcessOf(place.pid);
            rocm::Dispatch dispatch;
            dispatch.span = SpanOf(rows);
            dispatch.pid = process.pid;
            const auto symbol = symbols_.find(rows.IntOr(kOwn, kNoInt));
            if (symbol != symbols_.end()) {
              dispatch.name = symbol->second.name;
              dispatch.kind = symbol->second.kind;
              dispatch.registers = symbol->second.registers;
            } else {
              dispatch.name = filler_.Intern(
                  "kernel " + std::to_string(rows.IntOr(kOwn, 0)));
            }
            dispatch.device = AgentOf(place.agent).number;
            dispatch.queue = place.queue;
            dispatch.stream = place.stream;
            dispatch.correlation = rocm::Correlation(
                process.index, EventOf(rows.Int(kEvent)).correlation);
            for (size_t axis = 0; axis < 3; ++axis) {
              const int column = kOwn + 1 + static_cast<int>(axis);
              dispatch.workgroup[axis] = rows.IntOr(column, 0);
              dispatch.grid[axis] = rows.IntOr(column + 3, 0);
            }
            dispatch.group_bytes = rows.IntOr(kOwn + 7, kNoInt);
            writer_.Add(dispatch);
            filler_.Next();
          });
}

void RunTables::ReadCopies() {
  ForRows(
      "memory_copy",
      {LAMINA_ROCPD_COMMON, "name_id", "size", "src_agent_id", "dst_agent_id"},
      [&](const Rows& rows) {
        const Place place = PlaceOf(rows);
        const Process& process = ProcessOf(place.pid);
        const Agent source = AgentOf(rows.Int(kOwn + 2));
        const Agent target = AgentOf(rows.Int(kOwn + 3));
        rocm::Copy copy;
        copy.span = SpanOf(rows);
        copy.pid = process.pid;
        copy.name = strings_.Find(rows.Int(kOwn));
        if (!copy.name.valid()) copy.name = filler_.Intern("MEMORY_COPY");
        copy.device = target.gpu ? target.number : source.number;
        copy.queue = place.queue;
        copy.stream = place.stream;
        copy.correlation = rocm::Correlation(
            process.index, EventOf(rows.Int(kEvent)).correlation);
        copy.bytes = rows.IntOr(kOwn + 1, kNoInt);
        writer_.Add(copy);
        filler_.Next();
      });
}

void RunTables::ReadAllocations() {
  ForRows("memory_allocate", {LAMINA_ROCPD_COMMON, "type", "address", "size"},
          [&](const Rows& rows) {
            const Place place = PlaceOf(rows);
            rocm::Allocation allocation;
            allocation.span = SpanOf(rows);
            allocation.pid = ProcessOf(place.pid).pid;
            allocation.device = AgentOf(place.agent).number;
            allocation.address = rows.IntOr(kOwn + 1, kNoInt);
            const auto size = rows.Int(kOwn + 2);
            const bool released =
                rows.Text(kOwn) == "FREE" || rows.Text(kOwn) == "RECLAIM";
            // A release of unknown size must not count as nothing.
            if (size && *size > 0)
              allocation.bytes = released ? -*size : *size;
            else
              allocation.bytes = kNoInt;
            writer_.Add(allocation);
            filler_.Next();
          });
}

void RunTables::ReadNames() {
  ForRows("info_thread", {"pid", "tid", "name"}, [&](const Rows& rows) {
    const auto name = rows.Text(2);
    const auto process = process_rows_.find(rows.IntOr(0, kNoInt));
    if (!name || name->empty() || process == process_rows_.end()) return;
    trace::TrackFact fact;
    fact.track = filler_.names().InternTrack(
        process->second.pid, filler_.Intern(std::to_string(rows.IntOr(1, 0))));
    fact.what = trace::TrackFact::What::kThreadName;
    fact.text = filler_.Intern(*name);
    filler_.segment().facts.push_back(fact);
  });
}

void RunTables::NoteUnread() {
  for (const std::string_view name : {"pmc_event", "sample"}) {
    Rows rows = database_.Scan(Table(name), {"id"});
    if (!rows.Next()) continue;
    filler_.segment().diagnostics.Add(
        trace::Effect::kInfo, "tables_not_read",
        "Tables with records that lamina does not use: counters, samples.");
  }
}

}  // namespace lamina::ingest::rocpd
