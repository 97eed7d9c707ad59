// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof_csv/row_parser.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/decimal.h"
#include "ingest/common/rocm.h"

namespace lamina::ingest::rocprof_csv {
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
  int start, end, name, agent, source, target, queue, stream, correlation, pid,
      tid, domain, shared, registers, dispatch;
  std::array<int, 3> workgroup, grid;
};

Columns ColumnsOf(const Sheet& sheet) {
  const auto find = [&](auto... names) { return sheet.Find({names...}); };
  if (sheet.kind() == TableKind::kOldKernels) {
    return {.start = find("BeginNs"),
            .end = find("EndNs"),
            .name = find("KernelName"),
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
      .name = find("Kernel_Name", "Direction", "Function"),
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
      span.start_ns = Int(columns_.start);
      span.end_ns = Int(columns_.end);
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
  Last<StringId> pid_;
  Last<int64_t> device_;
};

}  // namespace

std::unique_ptr<RecordParser> MakeRowParser(const Sheets& sheets,
                                            const Agents& agents,
                                            const CounterTable& counters) {
  return std::make_unique<RowParser>(sheets, agents, counters);
}

}  // namespace lamina::ingest::rocprof_csv
