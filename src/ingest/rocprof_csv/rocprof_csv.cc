// SPDX-License-Identifier: Apache-2.0
//
// Reader of the CSV files of rocprofv3 (a folder of them, or one) and of older
// versions of rocprof. See README.md in this folder for the format.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <filesystem>
#include <map>

#include "base/csv_reader.h"
#include "base/decimal.h"
#include "ingest/common/filler.h"
#include "ingest/common/nothing_read.h"
#include "ingest/common/rocm.h"
#include "ingest/rocprof_csv/reader.h"
#include "ingest/rocprof_csv/tables.h"

namespace lamina::ingest::rocprof_csv {
namespace {

using trace::Kind;
using trace::kNoInt;

namespace fs = std::filesystem;

// One file: rows with fields by column name.
class Sheet {
 public:
  explicit Sheet(std::unique_ptr<ByteSource> source)
      : reader_(std::move(source)) {}

  // Reads the header.
  Status Open() {
    LAMINA_ASSIGN(const bool any, reader_.Next());
    if (any) {
      header_.assign(reader_.fields().begin(), reader_.fields().end());
      // A mark of UTF-8 that editors leave.
      if (header_[0].starts_with("\xEF\xBB\xBF")) header_[0].erase(0, 3);
    }
    kind_ = KindOf(header_);
    return {};
  }
  TableKind kind() const { return kind_; }
  const std::string& name() const { return reader_.source().name(); }
  const CsvReader& reader() const { return reader_; }
  Result<bool> Next() { return reader_.Next(); }

  int Find(std::initializer_list<std::string_view> names) const {
    return Column(header_, names);
  }
  std::string_view Text(int column) const { return reader_.Field(column); }
  int64_t Int(int column) const {
    return ParseInt(reader_.Field(column)).value_or(kNoInt);
  }

 private:
  CsvReader reader_;
  std::vector<std::string> header_;
  TableKind kind_ = TableKind::kNone;
};

class Run {
 public:
  explicit Run(Filler* filler) : filler_(*filler), writer_(&filler->names()) {
    writer_.Bind(&filler_.segment());
  }

  Status Read(Sheet& sheet) {
    switch (sheet.kind()) {
      case TableKind::kAgents:
        return ReadAgents(sheet);
      case TableKind::kKernels:
        return ReadKernels(sheet);
      case TableKind::kCalls:
        return ReadCalls(sheet);
      case TableKind::kCopies:
        return ReadCopies(sheet);
      case TableKind::kOldKernels:
        return ReadOldKernels(sheet);
      case TableKind::kNone:
        break;
    }
    return {};
  }

  // Numbers of GPUs, in the order of their nodes.
  void NumberDevices() {
    int64_t number = 0;
    for (auto& [node, agent] : agents_) {
      if (!agent.gpu) continue;
      agent.number = number;
      agent.device.id = number++;
      filler_.builder().info().devices.push_back(agent.device);
    }
  }

 private:
  struct Agent {
    bool gpu = false;
    int64_t number = kNoInt;
    trace::DeviceInfo device;
  };

  // The rows of a sheet; `read` gets each.
  template <class Read>
  Status ForRows(Sheet& sheet, Read read) {
    while (true) {
      LAMINA_ASSIGN(const bool more, sheet.Next());
      if (!more) break;
      read();
      filler_.Next();
    }
    trace::Diagnostics& diagnostics = filler_.segment().diagnostics;
    if (sheet.reader().damaged()) {
      diagnostics.Add(trace::Effect::kLost, "rows_damaged",
                      "A CSV file ends inside a quoted field or has a row of "
                      "more than 16 MB.",
                      sheet.reader().offset());
    }
    if (const auto damage = sheet.reader().source().damage()) {
      diagnostics.Add(trace::Effect::kLost, "input_damaged",
                      "Part of the input cannot be read: " + damage->what + ".",
                      damage->offset);
    }
    return {};
  }

  uint32_t ProcessOf(const Sheet& sheet) {
    const int64_t pid = PidOfName(sheet.name());
    return processes_.try_emplace(pid, static_cast<uint32_t>(processes_.size()))
        .first->second;
  }
  rocm::Span SpanOf(const Sheet& sheet, int start, int end) const {
    rocm::Span span;
    span.start_ns = sheet.Int(start);
    span.end_ns = sheet.Int(end);
    span.offset = sheet.reader().offset();
    return span;
  }
  const Agent* AgentOf(std::string_view text) const {
    const auto it = agents_.find(AgentNumber(text));
    return it != agents_.end() ? &it->second : nullptr;
  }
  int64_t DeviceOf(std::string_view text) const {
    // "GPU 0" counts GPUs only.
    const Agent* agent = text.starts_with("GPU") ? nullptr : AgentOf(text);
    return agent != nullptr ? agent->number : AgentNumber(text);
  }

  Status ReadAgents(Sheet& sheet) {
    const int node = sheet.Find({"Node_Id"});
    const int type = sheet.Find({"Agent_Type"});
    const int units = sheet.Find({"Cu_Count"});
    const int product = sheet.Find({"Product_Name"});
    const int name = sheet.Find({"Name"});
    return ForRows(sheet, [&] {
      const int64_t id = sheet.Int(node);
      if (id == kNoInt) return;
      Agent agent;
      agent.gpu = sheet.Text(type) == "GPU" || sheet.Text(type) == "2";
      agent.device.name = sheet.Text(product);
      if (agent.device.name.empty()) agent.device.name = sheet.Text(name);
      agent.device.sm_count = sheet.Int(units);
      agents_.try_emplace(id, std::move(agent));
    });
  }

  Status ReadKernels(Sheet& sheet) {
    const uint32_t process = ProcessOf(sheet);
    const StringId pid =
        filler_.Intern(std::to_string(PidOfName(sheet.name())));
    const int start = sheet.Find({"Start_Timestamp"});
    const int end = sheet.Find({"End_Timestamp"});
    const int name = sheet.Find({"Kernel_Name"});
    const int agent = sheet.Find({"Agent_Id"});
    const int queue = sheet.Find({"Queue_Id"});
    const int stream = sheet.Find({"Stream_Id"});
    const int correlation = sheet.Find({"Correlation_Id"});
    const int shared = sheet.Find({"LDS_Block_Size", "Group_Segment_Size"});
    const int registers = sheet.Find({"VGPR_Count"});
    const std::array<int, 3> workgroup = {sheet.Find({"Workgroup_Size_X"}),
                                          sheet.Find({"Workgroup_Size_Y"}),
                                          sheet.Find({"Workgroup_Size_Z"})};
    const std::array<int, 3> grid = {sheet.Find({"Grid_Size_X"}),
                                     sheet.Find({"Grid_Size_Y"}),
                                     sheet.Find({"Grid_Size_Z"})};
    return ForRows(sheet, [&] {
      const std::string_view text = rocm::PlainKernelName(sheet.Text(name));
      rocm::Dispatch dispatch;
      dispatch.span = SpanOf(sheet, start, end);
      dispatch.pid = pid;
      dispatch.name = filler_.Intern(text);
      dispatch.kind = rocm::KernelKind(text);
      dispatch.device = DeviceOf(sheet.Text(agent));
      dispatch.queue = sheet.Int(queue);
      // Files without streams have a lane per queue.
      dispatch.stream = stream >= 0 ? sheet.Int(stream) : dispatch.queue;
      dispatch.correlation = rocm::Correlation(process, sheet.Int(correlation));
      for (size_t axis = 0; axis < 3; ++axis) {
        dispatch.workgroup[axis] = sheet.Int(workgroup[axis]);
        dispatch.grid[axis] = sheet.Int(grid[axis]);
      }
      dispatch.group_bytes = sheet.Int(shared);
      dispatch.registers = sheet.Int(registers);
      writer_.Add(dispatch);
    });
  }

  Status ReadCalls(Sheet& sheet) {
    const uint32_t process = ProcessOf(sheet);
    const int start = sheet.Find({"Start_Timestamp"});
    const int end = sheet.Find({"End_Timestamp"});
    const int domain = sheet.Find({"Domain"});
    const int function = sheet.Find({"Function"});
    const int pid = sheet.Find({"Process_Id"});
    const int tid = sheet.Find({"Thread_Id"});
    const int correlation = sheet.Find({"Correlation_Id"});
    return ForRows(sheet, [&] {
      const std::string_view area = sheet.Text(domain);
      const rocm::Span span = SpanOf(sheet, start, end);
      const rocm::Thread thread = {
          filler_.Intern(sheet.Text(pid).empty()
                             ? std::to_string(PidOfName(sheet.name()))
                             : std::string(sheet.Text(pid))),
          std::max<int64_t>(sheet.Int(tid), 0)};
      if (area.starts_with("MARKER")) {
        writer_.AddMarker(span, thread, sheet.Text(function));
        return;
      }
      rocm::Call call;
      call.span = span;
      call.thread = thread;
      call.name = filler_.Intern(sheet.Text(function));
      call.kind = rocm::CallKind(area);
      call.category = area.starts_with("HSA")    ? "hsa_api"
                      : area.starts_with("RCCL") ? "rccl_api"
                                                 : "hip_api";
      call.correlation = rocm::Correlation(process, sheet.Int(correlation));
      writer_.Add(call);
    });
  }

  Status ReadCopies(Sheet& sheet) {
    const uint32_t process = ProcessOf(sheet);
    const StringId pid =
        filler_.Intern(std::to_string(PidOfName(sheet.name())));
    const int start = sheet.Find({"Start_Timestamp"});
    const int end = sheet.Find({"End_Timestamp"});
    const int direction = sheet.Find({"Direction"});
    const int stream = sheet.Find({"Stream_Id"});
    const int source = sheet.Find({"Source_Agent_Id"});
    const int target = sheet.Find({"Destination_Agent_Id"});
    const int correlation = sheet.Find({"Correlation_Id"});
    bool any = false;
    LAMINA_TRY(ForRows(sheet, [&] {
      any = true;
      rocm::Copy copy;
      copy.span = SpanOf(sheet, start, end);
      copy.pid = pid;
      copy.name = filler_.Intern(sheet.Text(direction));
      const Agent* to = AgentOf(sheet.Text(target));
      copy.device = to == nullptr || to->gpu ? DeviceOf(sheet.Text(target))
                                             : DeviceOf(sheet.Text(source));
      copy.stream = sheet.Int(stream);
      copy.correlation = rocm::Correlation(process, sheet.Int(correlation));
      writer_.Add(copy);
    }));
    if (any) {
      filler_.segment().diagnostics.Add(
          trace::Effect::kInfo, "copies_without_bytes",
          "CSV files have no sizes of copies: write JSON or a database for "
          "them.");
    }
    return {};
  }

  Status ReadOldKernels(Sheet& sheet) {
    const int start = sheet.Find({"BeginNs"});
    const int end = sheet.Find({"EndNs"});
    const int name = sheet.Find({"KernelName"});
    const int gpu = sheet.Find({"gpu-id"});
    const int queue = sheet.Find({"queue-id"});
    const int pid = sheet.Find({"pid"});
    const int grid = sheet.Find({"grd"});
    const int workgroup = sheet.Find({"wgr"});
    const int shared = sheet.Find({"lds"});
    const int registers = sheet.Find({"arch_vgpr"});
    return ForRows(sheet, [&] {
      const std::string_view text = rocm::PlainKernelName(sheet.Text(name));
      rocm::Dispatch dispatch;
      dispatch.span = SpanOf(sheet, start, end);
      dispatch.pid = filler_.Intern(sheet.Text(pid));
      dispatch.name = filler_.Intern(text);
      dispatch.kind = rocm::KernelKind(text);
      dispatch.device = sheet.Int(gpu);
      dispatch.queue = sheet.Int(queue);
      dispatch.stream = dispatch.queue;
      // Products over the three axes.
      dispatch.workgroup = {sheet.Int(workgroup), 1, 1};
      dispatch.grid = {sheet.Int(grid), 1, 1};
      dispatch.group_bytes = sheet.Int(shared);
      dispatch.registers = sheet.Int(registers);
      writer_.Add(dispatch);
    });
  }

  Filler& filler_;
  rocm::Writer writer_;
  std::map<int64_t, Agent> agents_;                   // by node
  absl::flat_hash_map<int64_t, uint32_t> processes_;  // by pid in the name
};

// CSV files of a folder and of the folders in it (one per host), by name.
std::vector<std::string> FilesOf(const std::string& path) {
  std::vector<std::string> files;
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  constexpr int kMostDepth = 1;
  fs::recursive_directory_iterator it(
      path, fs::directory_options::skip_permission_denied, error);
  for (const auto end = fs::recursive_directory_iterator(); !error && it != end;
       it.increment(error)) {
    if (it.depth() >= kMostDepth) it.disable_recursion_pending();
    std::error_code ignored;
    const std::string name = it->path().filename().string();
    if (it->is_regular_file(ignored) &&
        (name.ends_with(".csv") || name.ends_with(".csv.gz")))
      files.push_back(it->path().string());
  }
  std::sort(files.begin(), files.end());
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

}  // namespace

Result<trace::Trace> ReadCsvFiles(
    const std::string& name, std::vector<std::unique_ptr<ByteSource>> sources,
    const ReadOptions& options) {
  trace::TraceBuilder builder;
  trace::Info& info = builder.info();
  info.format = "rocprof_csv";
  info.file = name;
  info.plain = sources.size() == 1 && sources[0]->plain();
  {
    const ScopedStage stage(options.times, "read");
    Filler filler(&builder);
    Run run(&filler);
    std::vector<std::unique_ptr<Sheet>> sheets;
    for (auto& source : sources) {
      info.file_bytes += source->stored_size();
      sheets.push_back(std::make_unique<Sheet>(std::move(source)));
      LAMINA_TRY(sheets.back()->Open());
    }
    // What rows refer to first.
    for (const bool agents : {true, false}) {
      for (const auto& sheet : sheets) {
        if ((sheet->kind() == TableKind::kAgents) == agents)
          LAMINA_TRY(run.Read(*sheet));
        if (!agents) info.input_bytes += sheet->reader().bytes();
      }
      if (agents) run.NumberDevices();
    }
    filler.Flush();
  }
  const ScopedStage stage(options.times, "index");
  trace::Trace trace = builder.Finish(options.threads);
  if (trace.slices.size() == 0) {
    return Fail(NothingRead(trace,
                            "no kernel, copy, call or range in the table",
                            "give the folder that rocprofv3 wrote, or its "
                            "kernel_trace.csv"));
  }
  rocm::NoteMissing(trace);
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
