// SPDX-License-Identifier: Apache-2.0
//
// Reader of rpd, the database of the rocmProfileData tracer. See README.md in
// this folder for the format.
#include <algorithm>
#include <deque>
#include <iterator>

#include "ingest/common/database_trace.h"
#include "ingest/common/nothing_read.h"
#include "ingest/common/rocm.h"
#include "ingest/rpd/call_tables.h"
#include "ingest/rpd/file_thread.h"
#include "ingest/rpd/reader.h"

namespace lamina::ingest::rpd {
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
