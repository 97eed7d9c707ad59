// SPDX-License-Identifier: Apache-2.0
//
// A database of rocmProfileData as a trace: texts and calls are read first,
// then the tables of operations and ranges piece by piece. Linear in rows.

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <iterator>

#include "base/decimal.h"
#include "ingest/common/id_table.h"
#include "ingest/common/input.h"
#include "ingest/common/rocm.h"
#include "ingest/common/table_reader.h"
#include "ingest/rpd/reader.h"

namespace lamina::ingest::rpd {

// What ops of a file refer to: texts, and facts about the calls that launched
// them.

struct Launch {
  int64_t stream = trace::kNoInt;
  std::array<int64_t, 3> grid{};
  std::array<int64_t, 3> workgroup{};
  int64_t group_bytes = trace::kNoInt;
};

// Of a call that an op may name.
struct CallFacts {
  int64_t pid = 0;
  bool grid_counts_items = false;  // work items; else blocks
};

// Filled before the records that need them and read-only for all threads then.
struct CallTables {
  explicit CallTables(TableReader* reader);

  TextTable strings;
  TextTable unique;             // of newer files: texts of arguments
  IdTable<Launch> launches;     // by call
  IdTable<int64_t> copy_bytes;  // by call
  IdTable<int64_t> api_of_op;
  IdTable<CallFacts> calls;  // filled when the calls are read
};

// One thread that makes the records of a file: names and caches of its own.

class FileThread {
 public:
  FileThread(const CallTables& tables, const Database& database,
             Filler* filler);

  // id, pid, tid, start, end, name, arguments
  void Call(const Row& row, IdTable<CallFacts>& calls);
  // id, device, queue, start, end, description, type
  void Op(const Row& row);
  // kind of device, device, kind of sample, time, value
  void Sample(const Row& row);

 private:
  StringId Pid(int64_t pid);
  std::string_view Text(StringId id) const {
    return id.valid() ? filler_.names().Text(id) : std::string_view();
  }
  void AddCopy(const rocm::Dispatch& op, const int64_t* api, StringId type);
  void AddKernel(rocm::Dispatch& op, const int64_t* api, StringId type,
                 StringId description);

  const CallTables& tables_;
  Filler& filler_;
  rocm::Writer writer_;
  TextNames strings_, unique_;
  absl::flat_hash_map<int64_t, StringId> pids_;
};

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

// Reader of rpd, the database of the rocmProfileData tracer. See README.md in
// this folder for the format.

namespace {

class File {
 public:
  explicit File(TableReader* reader) : reader_(*reader), tables_(reader) {
    for (int worker = 0; worker < reader->workers(); ++worker)
      threads_.emplace_back(tables_, reader->database(worker),
                            &reader->filler(worker));
  }

  void Read() {
    tables_.calls = reader_.Index<CallFacts>(
        Table("rocpd_api"),
        {"id", "pid", "tid", "start", "end", "apiName_id", "args_id"},
        [&](int worker, const Row& row, IdTable<CallFacts>& calls) {
          Thread(worker).Call(row, calls);
        });
    ForRows("rocpd_op",
            {"id", "gpuId", "queueId", "start", "end", "description_id",
             "opType_id"},
            &FileThread::Op);
    ForRows("rocpd_monitor",
            {"deviceType", "deviceId", "monitorType", "start", "value"},
            &FileThread::Sample);
    // Of the last five nothing is missed.
    static constexpr std::string_view kKnown[] = {"rocpd_api",
                                                  "rocpd_op",
                                                  "rocpd_api_ops",
                                                  "rocpd_kernelapi",
                                                  "rocpd_copyapi",
                                                  "rocpd_string",
                                                  "rocpd_ustring",
                                                  "rocpd_monitor",
                                                  "rocpd_metadata",
                                                  "rocpd_barrierop",
                                                  "rocpd_op_inputSignals",
                                                  "rocpd_kernelcodeobject",
                                                  "rocpd_stackframe"};
    NoteTablesNotRead(
        reader_.database(0),
        [](std::string_view name) {
          return std::find(std::begin(kKnown), std::end(kKnown), name) !=
                 std::end(kKnown);
        },
        reader_.builder().diagnostics());
  }

 private:
  const DatabaseTable* Table(std::string_view name) const {
    return reader_.database(0).Find(name);
  }
  FileThread& Thread(int worker) {
    return threads_[static_cast<size_t>(worker)];
  }
  void ForRows(std::string_view table, Columns columns,
               void (FileThread::*read)(const Row&)) {
    reader_.ForEach(Table(table), columns,
                    [&](int worker, size_t) -> TableReader::RowFunction {
                      FileThread& thread = Thread(worker);
                      return [&thread, read](const Row& row) {
                        (thread.*read)(row);
                      };
                    });
  }

  TableReader& reader_;
  CallTables tables_;
  std::deque<FileThread> threads_;
};

bool IsRpd(const Database& database) {
  return database.Has("rocpd_op") && database.Has("rocpd_api");
}

int Sniff(const Input& input) {
  if (input.directory() || !input.head().starts_with(kSqliteMagic)) return 0;
  const auto database = Database::Open(input.path());
  return database && IsRpd(**database) ? 97 : 0;
}

Result<trace::Trace> Read(Input& input, const ReadOptions& options) {
  LAMINA_ASSIGN(const auto database, Database::Open(input.path()));
  return ReadRpd(*database, options);
}

}  // namespace

Result<trace::Trace> ReadRpd(const Database& database,
                             const ReadOptions& options) {
  trace::TraceBuilder builder;
  NoteDatabase(database, "rpd", builder);
  {
    const ScopedStage stage(options.times, "read");
    TableReader reader(database, options, &builder);
    File(&reader).Read();
  }
  const ScopedStage stage(options.times, "index");
  trace::Trace trace = builder.Finish(options.threads);
  if (trace.slices.size() == 0) {
    return Fail(NothingRead(trace,
                            "the database has no kernel, copy, call or range",
                            "record with runTracer.sh"));
  }
  rocm::NoteMissing(trace);
  return trace;
}

FormatInfo Format() {
  return {"rpd",
          "rocmProfileData .rpd",
          "kernels, calls, copies, counters",
          &Sniff,
          &Read,
          "framework ops, shapes and modules, unless roctx ranges say them; "
          "Python stacks; groups and sizes of collectives."};
}

}  // namespace lamina::ingest::rpd
