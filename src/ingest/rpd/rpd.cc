// SPDX-License-Identifier: Apache-2.0
//
// Reader of rpd, the database of the rocmProfileData tracer. See README.md in
// this folder for the format.
#include <absl/container/flat_hash_map.h>

#include "base/decimal.h"
#include "base/text.h"
#include "ingest/common/database_trace.h"
#include "ingest/common/id_table.h"
#include "ingest/common/nothing_read.h"
#include "ingest/common/rocm.h"
#include "ingest/common/text_table.h"
#include "ingest/rpd/reader.h"

namespace lamina::ingest::rpd {
namespace {

using trace::Kind;
using trace::kNoInt;

// Calls whose grid counts work items; all others count blocks.
bool GridCountsItems(std::string_view call) {
  return call.starts_with("hipExt") || call.starts_with("hipHcc");
}

class File {
 public:
  File(const Database& database, Filler* filler)
      : database_(database),
        filler_(*filler),
        writer_(&filler->names()),
        strings_(database, Table("rocpd_string"), "id", "string", filler),
        unique_(database, Table("rocpd_ustring"), "id", "string", filler) {
    writer_.Bind(&filler_.segment());
    Rows rows = database_.Scan(Table("rocpd_ustring"), {"id"});
    has_unique_ = rows.Next();
  }

  void Read() {
    ReadLaunches();
    ReadCopySizes();
    ReadLinks();
    ReadCalls();
    ReadOps();
    ReadMonitor();
  }

 private:
  struct Launch {
    int64_t stream = kNoInt;
    std::array<int64_t, 3> grid{};
    std::array<int64_t, 3> workgroup{};
    int64_t group_bytes = kNoInt;
  };

  const DatabaseTable* Table(std::string_view name) const {
    return database_.Find(name);
  }
  template <class Read>
  void Scan(std::string_view name,
            std::initializer_list<std::string_view> columns, Read read) {
    const DatabaseTable* table = Table(name);
    Rows rows = database_.Scan(table, columns);
    while (rows.Next()) read(rows);
    if (table != nullptr) NoteBreak(*table, rows, filler_);
  }
  std::string_view Text(StringId id) const {
    return id.valid() ? filler_.names().Text(id) : std::string_view();
  }
  // Streams are numbers, or addresses as text.
  static int64_t StreamOf(const Rows& rows, int column) {
    if (const auto number = rows.Int(column)) return *number;
    if (const auto text = rows.Text(column))
      return ParseInt(*text).value_or(kNoInt);
    return kNoInt;
  }

  void ReadLaunches() {
    Scan("rocpd_kernelapi",
         {"api_ptr_id", "stream", "gridX", "gridY", "gridZ", "workgroupX",
          "workgroupY", "workgroupZ", "groupSegmentSize"},
         [&](const Rows& rows) {
           const auto id = rows.Int(0);
           if (!id) return;
           Launch launch;
           launch.stream = StreamOf(rows, 1);
           for (size_t axis = 0; axis < 3; ++axis) {
             const int column = 2 + static_cast<int>(axis);
             launch.grid[axis] = rows.IntOr(column, 0);
             launch.workgroup[axis] = rows.IntOr(column + 3, 0);
           }
           launch.group_bytes = rows.IntOr(8, kNoInt);
           launches_.Add(*id, launch);
         });
    launches_.Finish();
  }

  void ReadCopySizes() {
    Scan("rocpd_copyapi", {"api_ptr_id", "size"}, [&](const Rows& rows) {
      const auto id = rows.Int(0);
      const auto size = rows.Int(1);
      if (id && size && *size >= 0) copy_bytes_.Add(*id, *size);
    });
    copy_bytes_.Finish();
  }

  void ReadLinks() {
    Scan("rocpd_api_ops", {"op_id", "api_id"}, [&](const Rows& rows) {
      const auto op = rows.Int(0);
      const auto api = rows.Int(1);
      if (op && api) api_of_op_.Add(*op, *api);
    });
    api_of_op_.Finish();
  }

  void ReadCalls() {
    Scan("rocpd_api",
         {"id", "pid", "tid", "start", "end", "apiName_id", "args_id"},
         [&](const Rows& rows) {
           const auto id = rows.Int(0);
           rocm::Span span;
           span.start_ns = rows.IntOr(3, kNoInt);
           span.end_ns = rows.IntOr(4, kNoInt);
           const rocm::Thread thread = {
               filler_.Intern(std::to_string(rows.IntOr(1, 0))),
               rows.IntOr(2, 0)};
           const StringId name = strings_.Find(rows.Int(5));
           const std::string_view text = Text(name);
           if (id) pids_.Add(*id, thread.pid);
           if (text == "UserMarker") {
             const auto argument = rows.Int(6);
             const StringId message =
                 has_unique_ ? unique_.Find(argument) : strings_.Find(argument);
             writer_.AddMarker(span, thread, Text(message));
           } else {
             rocm::Call call;
             call.span = span;
             call.thread = thread;
             call.name = name.valid() ? name : filler_.Intern("(unnamed call)");
             call.kind = rocm::CallKind(text);
             call.category = call.kind == Kind::kDriver ? "hsa_api" : "hip_api";
             call.correlation = rocm::Correlation(0, id);
             if (id && GridCountsItems(text)) counts_items_.Add(*id, true);
             writer_.Add(call);
           }
           filler_.Next();
         });
    pids_.Finish();
    counts_items_.Finish();
  }

  void ReadOps() {
    const StringId no_process = filler_.Intern("0");
    Scan("rocpd_op",
         {"id", "gpuId", "queueId", "start", "end", "description_id",
          "opType_id"},
         [&](const Rows& rows) {
           rocm::Dispatch op;
           op.span.start_ns = rows.IntOr(3, kNoInt);
           op.span.end_ns = rows.IntOr(4, kNoInt);
           op.device = rows.IntOr(1, kNoInt);
           op.queue = rows.IntOr(2, kNoInt);
           op.stream = op.queue;
           op.pid = no_process;
           const int64_t* api = api_of_op_.Find(rows.IntOr(0, kNoInt));
           if (api != nullptr) {
             op.correlation = rocm::Correlation(0, *api);
             if (const StringId* pid = pids_.Find(*api)) op.pid = *pid;
           }
           const StringId type = strings_.Find(rows.Int(6));
           const StringId description = strings_.Find(rows.Int(5));
           AddOp(op, api, type, description);
           filler_.Next();
         });
  }

  void AddOp(rocm::Dispatch& op, const int64_t* api, StringId type,
             StringId description) {
    const std::string_view kind = Text(type);
    const bool described = description.valid() && !Text(description).empty();
    if (kind.starts_with("Copy")) {
      rocm::Copy copy;
      copy.span = op.span;
      copy.pid = op.pid;
      copy.name = type;
      copy.device = op.device;
      copy.queue = op.queue;
      copy.stream = op.stream;
      copy.correlation = op.correlation;
      if (api != nullptr) {
        if (const int64_t* bytes = copy_bytes_.Find(*api)) copy.bytes = *bytes;
      }
      writer_.Add(copy);
      return;
    }
    std::string_view name = described ? Text(description) : kind;
    name = rocm::PlainKernelName(name);
    op.name = filler_.Intern(name.empty() ? "(unnamed kernel)" : name);
    op.kind = kind.starts_with("Fill") ? Kind::kMemset : rocm::KernelKind(name);
    const Launch* launch = api != nullptr ? launches_.Find(*api) : nullptr;
    if (launch != nullptr) {
      if (launch->stream != kNoInt) op.stream = launch->stream;
      op.workgroup = launch->workgroup;
      op.group_bytes = launch->group_bytes;
      op.grid = launch->grid;
      constexpr int64_t kMostExtent = int64_t{1} << 31;
      if (counts_items_.Find(*api) == nullptr) {
        for (size_t axis = 0; axis < 3; ++axis) {
          if (op.grid[axis] >= 0 && op.grid[axis] < kMostExtent &&
              op.workgroup[axis] > 0 && op.workgroup[axis] < kMostExtent)
            op.grid[axis] *= op.workgroup[axis];
        }
      }
    }
    writer_.Add(op);
  }

  void ReadMonitor() {
    Scan("rocpd_monitor",
         {"deviceType", "deviceId", "monitorType", "start", "value"},
         [&](const Rows& rows) {
           const auto start = rows.Int(3);
           std::optional<double> value = rows.Real(4);
           if (!value) {
             // Kept as text.
             if (const auto text = rows.Text(4)) value = ParseDouble(*text);
           }
           const auto type = rows.Text(2);
           if (start && value && type) {
             const std::string device = std::string(rows.Text(0).value_or("")) +
                                        " " + std::to_string(rows.IntOr(1, 0));
             filler_.AddCounter(
                 *start, filler_.Intern(*type), filler_.Intern("value"),
                 filler_.names().InternTrack(filler_.Intern("0"),
                                             filler_.Intern(device)),
                 *value);
           }
           filler_.Next();
         });
  }

  const Database& database_;
  Filler& filler_;
  rocm::Writer writer_;
  TextTable strings_;
  TextTable unique_;  // of newer files: texts of arguments
  bool has_unique_ = false;
  IdTable<Launch> launches_;     // by call
  IdTable<int64_t> copy_bytes_;  // by call
  IdTable<int64_t> api_of_op_;
  IdTable<StringId> pids_;      // by call
  IdTable<bool> counts_items_;  // calls whose grid counts work items
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
    Filler filler(&builder);
    File(database, &filler).Read();
    filler.Flush();
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
