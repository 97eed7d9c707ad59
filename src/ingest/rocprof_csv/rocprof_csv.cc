// SPDX-License-Identifier: Apache-2.0
//
// The rows of kernels, calls, markers and copies as slices; also those of the
// tables of kernels that Ascend's profilers write.

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/decimal.h"
#include "base/opened.h"
#include "ingest/common/input.h"
#include "ingest/common/record_reader.h"
#include "ingest/common/rocm.h"
#include "ingest/rocprof_csv/reader.h"
#include "ingest/rocprof_csv/sheets.h"

namespace lamina::ingest::rocprof_csv {

// All must outlive the parser.
std::unique_ptr<RecordParser> MakeRowParser(const Sheets& sheets,
                                            const Agents& agents,
                                            const CounterTable& counters);

namespace {

using trace::kNoInt;

// What was made of a field, for rows that have the same text in it.
template <class T>
class Last {
 public:
  template <class Make>
  const T& Get(std::string_view text, Make make) {
    if (!value_ || text != text_) {
      value_ = make(text);
      text_ = text;
    }
    return *value_;
  }
  void Forget() { value_.reset(); }

 private:
  std::string text_;
  std::optional<T> value_;
};

// Where the columns of a sheet are; -1: it has none of that name.
struct Columns {
  int start = -1, end = -1, duration = -1, name = -1, type = -1, core = -1;
  int agent = -1, source = -1, target = -1, queue = -1, stream = -1;
  int correlation = -1, pid = -1, tid = -1, domain = -1, shared = -1;
  int registers = -1, dispatch = -1;
  std::array<int, 3> workgroup{-1, -1, -1}, grid{-1, -1, -1};
};

Columns ColumnsOf(const Sheet& sheet) {
  const auto find = [&](auto... names) { return sheet.Find({names...}); };
  if (sheet.kind() == TableKind::kAscend) {
    Columns columns;
    columns.start = find("Start Time(us)", "Task Start Time(us)");
    columns.duration = find("Duration(us)", "Task Duration(us)");
    columns.name = find("Name", "Op Name");
    columns.type = find("Type", "OP Type");
    columns.core = find("Accelerator Core", "Task Type");
    columns.agent = find("Device_id", "Device ID");
    columns.stream = find("Stream ID");
    return columns;
  }
  if (sheet.kind() == TableKind::kOldKernels) {
    return {.start = find("BeginNs"),
            .end = find("EndNs"),
            .duration = -1,
            .name = find("KernelName"),
            .type = -1,
            .core = -1,
            .agent = find("gpu-id"),
            .source = -1,
            .target = -1,
            .queue = find("queue-id"),
            .stream = -1,
            .correlation = -1,
            .pid = find("pid"),
            .tid = -1,
            .domain = -1,
            .shared = find("lds"),
            .registers = find("arch_vgpr"),
            .dispatch = -1,
            // Products over the three axes.
            .workgroup = {find("wgr"), -1, -1},
            .grid = {find("grd"), -1, -1}};
  }
  return {
      .start = find("Start_Timestamp"),
      .end = find("End_Timestamp"),
      .duration = -1,
      .name = find("Kernel_Name", "Direction", "Function"),
      .type = -1,
      .core = -1,
      .agent = find("Agent_Id"),
      .source = find("Source_Agent_Id"),
      .target = find("Destination_Agent_Id"),
      .queue = find("Queue_Id"),
      .stream = find("Stream_Id"),
      .correlation = find("Correlation_Id"),
      .pid = find("Process_Id"),
      .tid = find("Thread_Id"),
      .domain = find("Domain"),
      .shared = find("LDS_Block_Size", "Group_Segment_Size"),
      .registers = find("VGPR_Count"),
      .dispatch = find("Dispatch_Id"),
      .workgroup = {find("Workgroup_Size_X"), find("Workgroup_Size_Y"),
                    find("Workgroup_Size_Z")},
      .grid = {find("Grid_Size_X"), find("Grid_Size_Y"), find("Grid_Size_Z")}};
}

// Ids of streams are far below.
constexpr int64_t kCollectiveStream = 1'000'000;

class RowParser final : public RecordParser {
 public:
  RowParser(const Sheets& sheets, const Agents& agents,
            const CounterTable& counters)
      : sheets_(sheets),
        agents_(agents),
        counters_(counters),
        writer_(names()) {}

  void Parse(const Chunk& chunk, trace::Segment& segment) override {
    writer_.Bind(&segment);
    segment_ = &segment;
    BeginSheet(*sheets_[chunk.array]);
    CsvRows rows(chunk.text);
    rows_ = &rows;
    for (; rows.Next(); ++segment.next_uid) {
      rocm::Span span;
      if (sheet_->kind() != TableKind::kAscend) {
        span.start_ns = Int(columns_.start);
        span.end_ns = Int(columns_.end);
      }
      span.offset = chunk.offset + rows.begin();
      AddRow(span);
    }
    AddRowDamage(rows, chunk, segment.diagnostics);
  }

 private:
  void BeginSheet(const Sheet& sheet) {
    if (sheet_ == &sheet) return;
    sheet_ = &sheet;
    columns_ = ColumnsOf(sheet);
    sheet_pid_ = writer_.Intern(std::to_string(sheet.pid()));
    pid_.Forget();
  }
  std::string_view Text(int column) const { return rows_->Field(column); }
  int64_t Int(int column) const {
    return column < 0 ? kNoInt : ParseInt(Text(column)).value_or(kNoInt);
  }
  int64_t Correlation() const {
    return rocm::Correlation(sheet_->process(), Int(columns_.correlation));
  }

  void AddRow(const rocm::Span& span) {
    switch (sheet_->kind()) {
      case TableKind::kKernels:
      case TableKind::kOldKernels:
        return AddKernel(span);
      case TableKind::kCalls:
        return AddCall(span);
      case TableKind::kCopies:
        return AddCopy(span);
      case TableKind::kAscend:
        return AddAscend(span.offset);
      case TableKind::kAgents:
      case TableKind::kCounters:
      case TableKind::kNone:
        return;
    }
  }

  void AddKernel(const rocm::Span& span) {
    const bool old = sheet_->kind() == TableKind::kOldKernels;
    const std::string_view name = rocm::PlainKernelName(Text(columns_.name));
    rocm::Dispatch dispatch;
    dispatch.span = span;
    dispatch.pid = old ? Process() : sheet_pid_;
    dispatch.name = writer_.Intern(name);
    dispatch.kind = rocm::KernelKind(name);
    dispatch.device = old ? Int(columns_.agent) : DeviceOf(columns_.agent);
    dispatch.queue = Int(columns_.queue);
    // Files without streams have a lane per queue.
    dispatch.stream =
        columns_.stream >= 0 ? Int(columns_.stream) : dispatch.queue;
    dispatch.correlation = Correlation();
    for (size_t axis = 0; axis < 3; ++axis) {
      dispatch.workgroup[axis] = Axis(columns_.workgroup[axis], old);
      dispatch.grid[axis] = Axis(columns_.grid[axis], old);
    }
    dispatch.group_bytes = Int(columns_.shared);
    dispatch.registers = Int(columns_.registers);
    if (!counters_.empty()) {
      const auto* const values =
          counters_.Find(sheet_->process(), Int(columns_.dispatch));
      if (values != nullptr) AddCounters(*values, *names(), *segment_);
    }
    writer_.Add(dispatch);
  }
  // The old form has one column for all axes.
  int64_t Axis(int column, bool old) const {
    return old && column < 0 ? 1 : Int(column);
  }

  // Times are microseconds with digits behind the point. A task of a graph has
  // a name of its own ("ZerosLike46"): it is called by its type.
  void AddAscend(uint64_t offset) {
    // msprof puts a tab behind long numbers, against spreadsheets.
    const auto time = [&](int column) {
      std::string_view text = Text(column);
      while (text.ends_with('\t') || text.ends_with(' ')) text.remove_suffix(1);
      return ParseMicroseconds(text);
    };
    const auto start = time(columns_.start);
    const auto duration = time(columns_.duration);
    if (!start || !duration) {
      segment_->diagnostics.Add(trace::Effect::kLost, "event_without_time",
                                "A row has no start or no duration.", offset);
      return;
    }
    const auto known = [](std::string_view text) {
      return !text.empty() && text != "N/A";
    };
    const std::string_view type = Text(columns_.type);
    rocm::Dispatch dispatch;
    dispatch.span = {start->ns, start->ns + duration->ns, offset};
    dispatch.name = writer_.Intern(known(type) ? type : Text(columns_.name));
    if (Text(columns_.core) == "SDMA") {
      dispatch.kind = trace::Kind::kMemcpy;
    } else {
      dispatch.category = "npu_kernel";
    }
    dispatch.device = columns_.agent < 0 ? 0 : Int(columns_.agent);
    dispatch.pid = device_pid_.Get(Text(columns_.agent), [&](auto) {
      return writer_.Intern(std::to_string(dispatch.device));
    });
    dispatch.stream = Int(columns_.stream);
    // Collectives have no stream in the table: they get one of their own.
    if (dispatch.stream == kNoInt) dispatch.stream = kCollectiveStream;
    writer_.Add(dispatch);
  }

  void AddCall(const rocm::Span& span) {
    const std::string_view area = Text(columns_.domain);
    const rocm::Thread thread = {Process(),
                                 std::max<int64_t>(Int(columns_.tid), 0)};
    if (area.starts_with("MARKER")) {
      writer_.AddMarker(span, thread, Text(columns_.name));
      return;
    }
    rocm::Call call;
    call.span = span;
    call.thread = thread;
    call.name = writer_.Intern(Text(columns_.name));
    call.kind = rocm::CallKind(area);
    call.category = area.starts_with("HSA")    ? "hsa_api"
                    : area.starts_with("RCCL") ? "rccl_api"
                                               : "hip_api";
    call.correlation = Correlation();
    writer_.Add(call);
  }

  void AddCopy(const rocm::Span& span) {
    rocm::Copy copy;
    copy.span = span;
    copy.pid = sheet_pid_;
    copy.name = writer_.Intern(Text(columns_.name));
    const Agent* to = agents_.Find(Text(columns_.target));
    copy.device = agents_.DeviceOf(
        Text(to == nullptr || to->gpu ? columns_.target : columns_.source));
    copy.stream = Int(columns_.stream);
    copy.correlation = Correlation();
    writer_.Add(copy);
  }

  StringId Process() {
    return pid_.Get(Text(columns_.pid), [&](std::string_view text) {
      const bool old = sheet_->kind() == TableKind::kOldKernels;
      return text.empty() && !old ? sheet_pid_ : writer_.Intern(text);
    });
  }
  int64_t DeviceOf(int column) {
    return device_.Get(Text(column), [&](std::string_view text) {
      return agents_.DeviceOf(text);
    });
  }

  const Sheets& sheets_;
  const Agents& agents_;
  const CounterTable& counters_;
  rocm::Writer writer_;
  trace::Segment* segment_ = nullptr;
  const Sheet* sheet_ = nullptr;
  const CsvRows* rows_ = nullptr;
  Columns columns_{};
  StringId sheet_pid_;
  Last<StringId> pid_, device_pid_;
  Last<int64_t> device_;
};

}  // namespace

std::unique_ptr<RecordParser> MakeRowParser(const Sheets& sheets,
                                            const Agents& agents,
                                            const CounterTable& counters) {
  return std::make_unique<RowParser>(sheets, agents, counters);
}

// Reader of the CSV files of rocprofv3 (a folder of them, or one) and of older
// versions of rocprof. See README.md in this folder for the format.

namespace {

namespace fs = std::filesystem;

// CSV files of a folder and of the folders in it (one per host), by name.
std::vector<std::string> FilesOf(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(NameToRead(path).text(), error)) return {path};
  constexpr int kMostDepth = 1;
  std::vector<std::string> files = FilesBelow(path, kMostDepth);
  std::erase_if(files, [](const std::string& file) {
    return !file.ends_with(".csv") && !file.ends_with(".csv.gz");
  });
  return files;
}

TableKind KindOfHead(std::string_view head) {
  if (head.empty() || head.find('\0') != std::string_view::npos)
    return TableKind::kNone;
  auto source = OpenMemory("head", head.substr(0, head.find('\n')));
  if (!source) return TableKind::kNone;
  Sheet sheet(std::move(*source));
  return sheet.Open() ? sheet.kind() : TableKind::kNone;
}

int Sniff(const Input& input) {
  if (!input.directory())
    return KindOfHead(input.head()) != TableKind::kNone ? 90 : 0;
  for (const std::string& file : FilesOf(input.path())) {
    const auto head = ReadHead(file, kHeadBytes);
    if (head && KindOfHead(*head) != TableKind::kNone) return 60;
  }
  return 0;
}

Result<trace::Trace> Read(Input& input, const ReadOptions& options) {
  std::vector<std::unique_ptr<ByteSource>> sources;
  if (!input.directory()) {
    LAMINA_ASSIGN(auto source, input.Open());
    sources.push_back(std::move(source));
    return ReadCsvFiles(input.path(), std::move(sources), options);
  }
  for (const std::string& file : FilesOf(input.path())) {
    auto source = OpenByteSource(file);
    // An empty file in a folder is a table without rows.
    if (source) sources.push_back(std::move(*source));
  }
  return ReadCsvFiles(input.path(), std::move(sources), options);
}

Status ReadAgents(const Sheets& sheets, Agents& agents,
                  trace::TraceBuilder& builder) {
  trace::LocalNames names;
  trace::Segment segment(&names);
  for (const auto& sheet : sheets) {
    if (sheet->kind() == TableKind::kAgents)
      LAMINA_TRY(agents.Read(*sheet, segment));
  }
  segment.Seal();
  builder.Append(segment);
  builder.info().devices = agents.Number();
  return {};
}

// Correlation ids count within a process.
void NumberProcesses(const Sheets& sheets) {
  absl::flat_hash_map<int64_t, uint32_t> numbers;
  for (const auto& sheet : sheets) {
    const TableKind kind = sheet->kind();
    if (kind != TableKind::kKernels && kind != TableKind::kCounters &&
        kind != TableKind::kCalls && kind != TableKind::kCopies)
      continue;
    sheet->SetProcess(
        numbers.try_emplace(sheet->pid(), static_cast<uint32_t>(numbers.size()))
            .first->second);
  }
}

Status ReadCounters(const Sheets& sheets, const Agents& agents,
                    CounterTable& counters, trace::TraceBuilder& builder) {
  trace::LocalNames names;
  trace::Segment segment(&names);
  for (const auto& sheet : sheets) {
    if (sheet->kind() != TableKind::kCounters) continue;
    const bool with_kernels =
        std::any_of(sheets.begin(), sheets.end(), [&](const auto& other) {
          return other->kind() == TableKind::kKernels &&
                 other->process() == sheet->process();
        });
    LAMINA_TRY(counters.Read(*sheet, agents, !with_kernels, names, segment));
  }
  segment.Seal();
  builder.Append(segment);
  return {};
}

}  // namespace

Result<trace::Trace> ReadCsvFiles(
    const std::string& name, std::vector<std::unique_ptr<ByteSource>> sources,
    const ReadOptions& options) {
  trace::TraceBuilder builder;
  trace::Info& info = builder.info();
  info.format = "rocprof_csv";
  info.file = name;
  info.plain = sources.size() == 1 && sources[0]->plain();
  std::vector<TableKind> ours;
  {
    const ScopedStage stage(options.times, "read");
    Sheets sheets;
    for (auto& source : sources) {
      info.file_bytes += source->stored_size();
      sheets.push_back(std::make_unique<Sheet>(std::move(source)));
      LAMINA_TRY(sheets.back()->Open());
      ours.push_back(sheets.back()->kind());
    }
    // What rows refer to first.
    Agents agents;
    LAMINA_TRY(ReadAgents(sheets, agents, builder));
    NumberProcesses(sheets);
    CounterTable counters;
    LAMINA_TRY(ReadCounters(sheets, agents, counters, builder));
    SheetStream stream(&sheets);
    const auto next = [&](Chunk& chunk) {
      if (options.progress)
        options.progress(stream.stored_position(), stream.stored_size());
      return stream.Next(chunk);
    };
    LAMINA_TRY(ReadChunks(next, options, builder, [&] {
      return MakeRowParser(sheets, agents, counters);
    }));
    builder.diagnostics().Merge(stream.diagnostics());
    for (const auto& sheet : sheets) info.input_bytes += sheet->bytes();
  }
  const ScopedStage stage(options.times, "index");
  trace::Trace trace = builder.Finish(options.threads);
  if (trace.slices.size() == 0) {
    return Fail(NothingRead(trace,
                            "no kernel, copy, call or range in the table",
                            "give the folder that rocprofv3 wrote, or its "
                            "kernel_trace.csv"));
  }
  const bool ascend = std::ranges::any_of(
      ours, [](TableKind kind) { return kind == TableKind::kAscend; });
  if (ascend) {
    trace.info.format = "ascend_csv";
    trace.info.format_lacks =
        "ops, launches, the host and steps: give the trace_view.json beside it";
  } else {
    rocm::NoteMissing(trace);
  }
  return trace;
}

FormatInfo Format() {
  return {"rocprof_csv",
          "rocprofv3 and rocprof CSV",
          "kernels, calls, copies, roctx",
          &Sniff,
          &Read,
          "framework ops, shapes and modules, unless roctx ranges say them; "
          "Python stacks; groups and sizes of collectives; sizes of copies and "
          "allocations."};
}

}  // namespace lamina::ingest::rocprof_csv
