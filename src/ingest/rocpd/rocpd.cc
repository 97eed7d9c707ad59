// SPDX-License-Identifier: Apache-2.0
//
// Reader of rocpd, the database of rocprofv3 and rocprof-sys. See README.md in
// this folder for the format.
#include <algorithm>
#include <set>
#include <string>

#include "ingest/common/input.h"
#include "ingest/common/rocm.h"
#include "ingest/common/table_reader.h"
#include "ingest/rocpd/reader.h"
#include "ingest/rocpd/run_tables.h"

namespace lamina::ingest::rocpd {
namespace {

bool IsRocpd(const Database& database) {
  const auto& tables = database.tables();
  return std::any_of(tables.begin(), tables.end(), [](const DatabaseTable& t) {
    return t.name == "rocpd_metadata" || t.name.starts_with("rocpd_metadata_");
  });
}

int Sniff(const Input& input) {
  if (input.directory() || !input.head().starts_with(kSqliteMagic)) return 0;
  const auto database = Database::Open(input.path());
  // An rpd database has a table of metadata, too.
  return database && IsRocpd(**database) && !(*database)->Has("rocpd_op") ? 97
                                                                          : 0;
}

Result<trace::Trace> Read(Input& input, const ReadOptions& options) {
  LAMINA_ASSIGN(const auto database, Database::Open(input.path()));
  return ReadRocpd(*database, options);
}

}  // namespace

Result<trace::Trace> ReadRocpd(const Database& database,
                               const ReadOptions& options) {
  trace::TraceBuilder builder;
  NoteDatabase(database, "rocpd", builder);
  {
    const ScopedStage stage(options.times, "read");
    TableReader reader(database, options, &builder);
    uint32_t processes = 0;
    std::set<std::string> known;
    for (const std::string& suffix : FindRuns(database)) {
      RunTables run(&reader, suffix, &processes);
      run.ReadRegions();
      run.ReadDispatches();
      run.ReadCopies();
      run.ReadAllocations();
      run.ReadNames();
      run.AddKnown(known);
    }
    NoteTablesNotRead(
        database,
        [&](std::string_view name) {
          return known.contains(std::string(name));
        },
        builder.diagnostics());
  }
  const ScopedStage stage(options.times, "index");
  trace::Trace trace = builder.Finish(options.threads);
  if (trace.slices.size() == 0) {
    return Fail(NothingRead(trace,
                            "the database has no kernel, copy, call or range",
                            "record with rocprofv3 --runtime-trace"));
  }
  rocm::NoteMissing(trace);
  return trace;
}

FormatInfo Format() {
  return {"rocpd",
          "rocprofv3, rocprof-sys .db",
          "kernels, calls, copies, roctx",
          &Sniff,
          &Read,
          "framework ops, shapes and modules, unless roctx ranges say them; "
          "Python stacks; groups and sizes of collectives."};
}

}  // namespace lamina::ingest::rocpd
