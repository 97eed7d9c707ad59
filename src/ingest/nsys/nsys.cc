// SPDX-License-Identifier: Apache-2.0
//
// Reader of Nsight Systems: the SQLite export, and the recording itself where
// the exporter is installed. See README.md in this folder for the format.

#include <algorithm>
#include <filesystem>

#include "base/byte_source.h"
#include "base/child_process.h"
#include "base/opened.h"
#include "ingest/common/input.h"
#include "ingest/common/table_reader.h"
#include "ingest/nsys/export_file.h"
#include "ingest/nsys/reader.h"
#include "trace/builder.h"

namespace lamina::ingest::nsys {

namespace {

bool IsActivity(const DatabaseTable& table) {
  return table.name.starts_with("CUPTI_ACTIVITY_KIND_");
}

// An exporter that is stopped leaves the first page empty.
bool IsBlank(std::string_view head) {
  constexpr size_t kHeader = 100;
  return head.size() >= 4096 &&
         std::all_of(head.begin(), head.begin() + kHeader,
                     [](char c) { return c == '\0'; });
}

bool IsExport(const Database& database) {
  const auto& tables = database.tables();
  if (std::any_of(tables.begin(), tables.end(), IsActivity)) return true;
  // Without CUDA: the texts and what else the recorder always writes.
  static constexpr std::string_view kOthers[] = {
      "NVTX_EVENTS",
      "META_DATA_EXPORT",
      "META_DATA_CAPTURE",
      "EXPORT_META_DATA",
      "OSRT_API",
      "SCHED_EVENTS",
      "TARGET_INFO_SESSION_START_TIME"};
  return database.FindVersion("StringIds") != nullptr &&
         std::any_of(std::begin(kOthers), std::end(kOthers),
                     [&](std::string_view name) {
                       return database.FindVersion(name) != nullptr;
                     });
}

// What the recorder was asked for, as far as the export says it.
std::string Asked(const trace::Info& info) {
  for (const auto& [key, value] : info.properties) {
    if (key == "COLLECT_CUDA_TRACE" && value == "\"true\"") {
      return "CUDA was traced (COLLECT_CUDA_TRACE=true), so the program made "
             "no call or the driver refused: see the table DIAGNOSTIC_EVENT";
    }
  }
  return "record with nsys profile --trace=cuda,nvtx";
}

// The format of a recording is not public: a binary file that no reader knows,
// with a name that the recorder gives.
bool IsRecording(const Input& input) {
  for (const std::string_view end : {".nsys-rep", ".qdrep"}) {
    if (input.path().ends_with(end) && !input.head().starts_with(kSqliteMagic))
      return input.head().find('\0') != std::string::npos;
  }
  return false;
}

int Sniff(const Input& input) {
  if (input.directory()) return 0;
  if (IsBlank(input.head())) return 4;
  if (IsRecording(input)) return 3;
  if (!input.head().starts_with(kSqliteMagic)) return 0;
  // Any database: this reader says what is missing.
  const auto database = Database::Open(input.path());
  return database && IsExport(**database) ? 95 : 4;
}

Result<trace::Trace> Read(Input& input, const ReadOptions& options) {
  const std::string& path = input.path();
  const std::string& head = input.head();
  if (IsBlank(head)) {
    return Fail(InputErrorAt(path, 0,
                             "the file begins with an empty page: an "
                             "incomplete export of Nsight Systems",
                             "run nsys export again and let it finish"));
  }
  if (!head.starts_with(kSqliteMagic)) {
    std::unique_ptr<ExportedFile> file;
    {
      const ScopedStage stage(options.times, "export");
      LAMINA_ASSIGN(file, ExportedFile::Make(path));
    }
    LAMINA_ASSIGN(const auto database, Database::Open(file->path()));
    LAMINA_ASSIGN(trace::Trace trace, ReadNsys(*database, options));
    trace.info.file = path;
    return trace;
  }
  LAMINA_ASSIGN(const auto database, Database::Open(path));
  return ReadNsys(*database, options);
}

}  // namespace

Result<trace::Trace> ReadNsys(const Database& database,
                              const ReadOptions& options) {
  const std::string& path = database.name();
  if (!IsExport(database) && database.missing_bytes() > 0) {
    return Fail(InputErrorAt(path, database.file_bytes(),
                             "the database is cut off here, and no table of a "
                             "trace is left",
                             "copy or export it again"));
  }
  const auto has = [&](std::string_view table) { return database.Has(table); };
  if (has("CANN_API") || (has("TASK") && has("STRING_IDS"))) {
    return Fail(InputError(path,
                           "this is a database of Ascend's profiler, which is "
                           "not read yet",
                           "give the trace_view.json of the same recording"));
  }
  if (!IsExport(database)) {
    return Fail(
        InputError(path, "the SQLite database is not a trace that lamina reads",
                   "give an export of Nsight Systems (nsys export "
                   "--type sqlite), a rocpd or an rpd database"));
  }
  const auto& tables = database.tables();
  if (database.Has("Version") ||
      std::any_of(tables.begin(), tables.end(), [](const DatabaseTable& t) {
        return IsActivity(t) && t.Has("_id_");
      })) {
    return Fail(InputError(path,
                           "this is a database of nvprof, which is not read",
                           "record with Nsight Systems: nsys profile "
                           "--trace=cuda,nvtx"));
  }
  trace::TraceBuilder builder;
  NoteDatabase(database, "nsys", builder);
  {
    const ScopedStage stage(options.times, "read");
    TableReader reader(database, options, &builder);
    ExportFile file(&reader);
    file.ReadRanges();
    file.ReadCalls();
    file.ReadGraphNodes();
    file.ReadOverhead();
    file.ReadKernels();
    file.ReadCopies();
    file.ReadFills();
    file.ReadGraphRuns();
    file.ReadSyncs();
    file.ReadMemory();
    file.ReadMetrics();
    file.ReadOsCalls();
    file.CloseOpenRanges();
    file.ReadThreadStates();
    file.ReadTrackNames();
    file.NoteFacts();
  }
  const ScopedStage stage(options.times, "index");
  trace::Trace trace = builder.Finish(options.threads);
  if (trace.slices.size() == 0) {
    return Fail(NothingRead(trace,
                            "the export of Nsight Systems has no CUDA record "
                            "(no table of CUPTI) and no range",
                            Asked(trace.info)));
  }
  return trace;
}

FormatInfo Format() {
  return {"nsys",
          "Nsight Systems .sqlite",
          "kernels, calls, NVTX, graph nodes",
          &Sniff,
          &Read,
          "framework ops, shapes and modules, unless NVTX ranges say them "
          "(emit_nvtx); Python stacks; groups and sizes of collectives."};
}

namespace fs = std::filesystem;

Result<std::unique_ptr<ExportedFile>> ExportedFile::Make(
    const std::string& path) {
  const auto exporter = FindProgram("nsys");
  if (!exporter) {
    return Fail(InputError(path,
                           "is a recording of Nsight Systems, which only its "
                           "own exporter reads, and nsys is not installed",
                           "export it where it was recorded: nsys export "
                           "--type sqlite FILE.nsys-rep"));
  }
  std::unique_ptr<ExportedFile> file(new ExportedFile);
  LAMINA_ASSIGN(file->folder_, MakeTemporaryFolder());
  file->path_ = file->folder_.path() + "/export.sqlite";
  ReadAlso(file->path_);
  std::error_code error;
  // Large recordings take minutes.
  constexpr std::chrono::minutes kLimit{60};
  LAMINA_ASSIGN(const ChildResult result,
                RunChild({*exporter, "export", "--type", "sqlite", "--output",
                          file->path_, fs::absolute(path, error).string()},
                         "", kLimit));
  if (result.exit_status != 0 || !fs::exists(file->path_, error)) {
    std::string said = result.err.empty() ? result.out : result.err;
    while (said.ends_with('\n')) said.pop_back();
    said = said.substr(said.rfind('\n') + 1);
    std::string what = result.timed_out ? "nsys export took more than an hour"
                                        : "nsys export failed";
    if (!said.empty()) what += ": " + said;
    return Fail(InputError(path, what,
                           "the recording may be of a newer version than the "
                           "installed nsys"));
  }
  return file;
}

}  // namespace lamina::ingest::nsys
