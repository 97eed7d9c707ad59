// SPDX-License-Identifier: Apache-2.0
#include "ingest/rpd/file_thread.h"

#include "base/decimal.h"

namespace lamina::ingest::rpd {

using trace::Kind;
using trace::kNoInt;

namespace {

// Calls whose grid counts work items; all others count blocks.
bool GridCountsItems(std::string_view call) {
  return call.starts_with("hipExt") || call.starts_with("hipHcc");
}

// Blocks become the work items that dispatches count.
void CountItems(rocm::Dispatch& op) {
  constexpr int64_t kMostExtent = int64_t{1} << 31;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (op.grid[axis] >= 0 && op.grid[axis] < kMostExtent &&
        op.workgroup[axis] > 0 && op.workgroup[axis] < kMostExtent)
      op.grid[axis] *= op.workgroup[axis];
  }
}

}  // namespace

FileThread::FileThread(const CallTables& tables, const Database& database,
                       Filler* filler)
    : tables_(tables),
      filler_(*filler),
      writer_(&filler->names()),
      strings_(tables.strings, database, filler),
      unique_(tables.unique, database, filler) {
  writer_.Bind(&filler_.segment());
}

StringId FileThread::Pid(int64_t pid) {
  StringId& name = pids_[pid];
  if (!name.valid()) name = filler_.Intern(std::to_string(pid));
  return name;
}

void FileThread::Call(const Row& row, IdTable<CallFacts>& calls) {
  const auto id = row.Int(0);
  const int64_t pid = row.IntOr(1, 0);
  rocm::Span span;
  span.start_ns = row.IntOr(3, kNoInt);
  span.end_ns = row.IntOr(4, kNoInt);
  const rocm::Thread thread = {Pid(pid), row.IntOr(2, 0)};
  const StringId name = strings_.Find(row.Int(5));
  const std::string_view text = Text(name);
  const bool marker = text == "UserMarker";
  if (id) calls.Add(*id, {pid, !marker && GridCountsItems(text)});
  if (marker) {
    const auto argument = row.Int(6);
    const StringId message = tables_.unique.empty() ? strings_.Find(argument)
                                                    : unique_.Find(argument);
    writer_.AddMarker(span, thread, Text(message));
  } else {
    rocm::Call call;
    call.span = span;
    call.thread = thread;
    call.name = name.valid() ? name : filler_.Intern("(unnamed call)");
    call.kind = rocm::CallKind(text);
    call.category = call.kind == Kind::kDriver ? "hsa_api" : "hip_api";
    call.correlation = rocm::Correlation(0, id);
    writer_.Add(call);
  }
  filler_.Next();
}

void FileThread::Op(const Row& row) {
  rocm::Dispatch op;
  op.span.start_ns = row.IntOr(3, kNoInt);
  op.span.end_ns = row.IntOr(4, kNoInt);
  op.device = row.IntOr(1, kNoInt);
  op.queue = row.IntOr(2, kNoInt);
  op.stream = op.queue;
  const int64_t* api = tables_.api_of_op.Find(row.IntOr(0, kNoInt));
  const CallFacts* call = api != nullptr ? tables_.calls.Find(*api) : nullptr;
  op.pid = Pid(call != nullptr ? call->pid : 0);
  if (api != nullptr) op.correlation = rocm::Correlation(0, *api);
  const StringId type = strings_.Find(row.Int(6));
  const StringId description = strings_.Find(row.Int(5));
  if (Text(type).starts_with("Copy")) {
    AddCopy(op, api, type);
  } else {
    AddKernel(op, api, type, description);
  }
  filler_.Next();
}

void FileThread::AddCopy(const rocm::Dispatch& op, const int64_t* api,
                         StringId type) {
  rocm::Copy copy;
  copy.span = op.span;
  copy.pid = op.pid;
  copy.name = type;
  copy.device = op.device;
  copy.queue = op.queue;
  copy.stream = op.stream;
  copy.correlation = op.correlation;
  if (api != nullptr) {
    if (const int64_t* bytes = tables_.copy_bytes.Find(*api))
      copy.bytes = *bytes;
  }
  writer_.Add(copy);
}

void FileThread::AddKernel(rocm::Dispatch& op, const int64_t* api,
                           StringId type, StringId description) {
  const bool described = description.valid() && !Text(description).empty();
  op.name = described ? description : type;
  std::string_view name = Text(op.name);
  if (const auto plain = rocm::PlainKernelName(name); plain != name) {
    name = plain;
    op.name = filler_.Intern(name);
  }
  if (name.empty()) op.name = filler_.Intern("(unnamed kernel)");
  op.kind =
      Text(type).starts_with("Fill") ? Kind::kMemset : rocm::KernelKind(name);
  const Launch* launch = api != nullptr ? tables_.launches.Find(*api) : nullptr;
  if (launch != nullptr) {
    if (launch->stream != kNoInt) op.stream = launch->stream;
    op.workgroup = launch->workgroup;
    op.group_bytes = launch->group_bytes;
    op.grid = launch->grid;
    const CallFacts* call = tables_.calls.Find(*api);
    if (call == nullptr || !call->grid_counts_items) CountItems(op);
  }
  writer_.Add(op);
}

void FileThread::Sample(const Row& row) {
  const auto start = row.Int(3);
  std::optional<double> value = row.Real(4);
  if (!value) {
    // Kept as text.
    if (const auto text = row.Text(4)) value = ParseDouble(*text);
  }
  const auto type = row.Text(2);
  if (start && value && type) {
    const std::string device = std::string(row.Text(0).value_or("")) + " " +
                               std::to_string(row.IntOr(1, 0));
    filler_.AddCounter(*start, filler_.Intern(*type), filler_.Intern("value"),
                       filler_.names().InternTrack(filler_.Intern("0"),
                                                   filler_.Intern(device)),
                       *value);
  }
  filler_.Next();
}

}  // namespace lamina::ingest::rpd
