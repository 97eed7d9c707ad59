// SPDX-License-Identifier: Apache-2.0
//
// Reader of the CSV files of rocprofv3 (a folder of them, or one) and of older
// versions of rocprof. See README.md in this folder for the format.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <filesystem>

#include "base/files_below.h"
#include "base/opened.h"
#include "ingest/common/nothing_read.h"
#include "ingest/common/rocm.h"
#include "ingest/rocprof_csv/agents.h"
#include "ingest/rocprof_csv/counters.h"
#include "ingest/rocprof_csv/reader.h"
#include "ingest/rocprof_csv/row_parser.h"
#include "ingest/rocprof_csv/sheets.h"

namespace lamina::ingest::rocprof_csv {
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
  {
    const ScopedStage stage(options.times, "read");
    Sheets sheets;
    for (auto& source : sources) {
      info.file_bytes += source->stored_size();
      sheets.push_back(std::make_unique<Sheet>(std::move(source)));
      LAMINA_TRY(sheets.back()->Open());
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
