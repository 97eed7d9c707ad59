// SPDX-License-Identifier: Apache-2.0
//
// lamina convert: any trace in the form that a viewer or another tool reads.
#include <filesystem>
#include <fmt/core.h>

#include "base/byte_sink.h"
#include "base/byte_source.h"
#include "base/decimal.h"
#include "emit/chrome/copy.h"
#include "emit/chrome/trace_writer.h"
#include "emit/memory/snapshot_writer.h"
#include "emit/perfetto/trace_writer.h"
#include "engine/memory.h"
#include "questions/bodies.h"
#include "questions/trace_output.h"
#include "table/row_columns.h"
#include "trace/module_frames.h"

namespace lamina::questions {
namespace {

struct ConvertOptions {
  std::string trace;
  bool no_args = false;
};

struct ConvertRow {
  std::string_view file, input_format;
  size_t slices, instants, counters, overlaps;
  int64_t shift;
};

const RowColumns<ConvertRow>& ConvertColumns() {
  static const RowColumns<ConvertRow> columns{
      "converted",
      "What was written.",
      {{"file", ColumnType::kText, "Name.", &ConvertRow::file},
       {"input_format", ColumnType::kText, "Form of the input.",
        &ConvertRow::input_format},
       {"slices", ColumnType::kInt, "Spans.", &ConvertRow::slices},
       {"instants", ColumnType::kInt, "Instants.", &ConvertRow::instants},
       {"counters", ColumnType::kInt, "Samples of counters.",
        &ConvertRow::counters},
       {"overlaps", ColumnType::kInt,
        "Spans on tracks of their own, as they overlap without nesting.",
        &ConvertRow::overlaps},
       {"shift_us", ColumnType::kTime,
        "Added to every time, so that none is negative.", &ConvertRow::shift}}};
  return columns;
}

// Slices of a device; the rest of its allocations is in the counters.
constexpr size_t kMostSlices = 100'000;

Result<Answer> ConvertSnapshot(const ConvertOptions& options, Asker& asker) {
  engine::MemoryOptions memory;
  memory.rules_dir = asker.rules_dir;
  LAMINA_ASSIGN(const memory::Recording recording,
                engine::OpenRecording(options.trace, memory));
  emit::WrittenSnapshot written;
  {
    const ScopedStage stage(&asker.times, "write");
    LAMINA_ASSIGN(const auto sink, CreateFileSink(asker.output));
    written = emit::WriteSnapshot(recording, kMostSlices, *sink);
    LAMINA_TRY(sink->Close());
  }
  Document document;
  document.command = "convert";
  document.inputs = {options.trace};
  Table table(ConvertColumns().schema());
  ConvertColumns().Add(table, {.file = asker.output,
                               .input_format = "memsnap",
                               .slices = written.slices,
                               .instants = 0,
                               .counters = written.counters,
                               .overlaps = written.overlaps,
                               .shift = 0});
  document.result.tables.push_back(std::move(table));
  if (written.left_out > 0) {
    document.result.notes.push_back(MakeNote(
        Severity::kInfo, "slices_left_out",
        fmt::format("{} smaller allocations are no slices; the counters have "
                    "them.",
                    written.left_out)));
  }
  return Answer(std::move(document));
}

Result<Answer> RunConvert(const ConvertOptions& options, Asker& asker) {
  const std::string output = asker.output;
  const bool perfetto = emit::perfetto::IsPerfettoName(output);
  const bool json = output.ends_with(".json") || output.ends_with(".json.gz");
  if (!perfetto && !json) {
    return Fail(
        UsageError("⟨output⟩: expected a name that ends in .pftrace, "
                   ".pftrace.gz, .json or "
                   ".json.gz",
                   "the ending says what is written"));
  }
  if (engine::IsMemorySnapshot(options.trace)) {
    if (!perfetto) {
      return Fail(
          UsageError("⟨output⟩: a memory snapshot becomes a Perfetto trace",
                     "give a name that ends in .pftrace"));
    }
    return ConvertSnapshot(options, asker);
  }
  LAMINA_ASSIGN(auto session, asker.OpenTrace(options.trace));
  const trace::Trace& trace = session->trace();
  emit::perfetto::Written written;
  {
    const ScopedStage stage(&asker.times, "write");
    // A copy keeps every argument. What a pipe gave is gone.
    if (!perfetto && trace.info.format == "kineto" &&
        std::filesystem::is_regular_file(options.trace)) {
      LAMINA_ASSIGN(const emit::CopyLoss loss,
                    emit::CopyFile(options.trace, output, {}, {}));
      WarnOfLoss(options.trace, loss, asker);
    } else {
      LAMINA_ASSIGN(const auto sink, CreateFileSink(output));
      if (perfetto) {
        emit::perfetto::Extras extras;
        extras.args_of_slices = !options.no_args;
        written = emit::perfetto::WriteTrace(trace, extras, *sink);
      } else {
        const emit::WrittenJson made = emit::WriteChromeTrace(trace, *sink);
        written.overlaps = made.overlaps;
        written.shift_ns = made.shift_ns;
      }
      LAMINA_TRY(sink->Close());
    }
  }
  Document document;
  document.command = "convert";
  document.inputs = {options.trace};
  Table table(ConvertColumns().schema());
  ConvertColumns().Add(table, {.file = output,
                               .input_format = trace.info.format,
                               .slices = trace::RecordedSlices(trace),
                               .instants = trace.instants.size(),
                               .counters = trace.counters.size(),
                               .overlaps = written.overlaps,
                               .shift = written.shift_ns});
  document.result.tables.push_back(std::move(table));
  return Answer(std::move(document));
}

}  // namespace

Body DescribeConvert(Description& args, Asker& asker) {
  auto options = std::make_shared<ConvertOptions>();
  args.Add("trace", options->trace, "Trace file").Required();
  args.Flag("--no-args", options->no_args,
            "Perfetto: names and times only, for very large traces");
  return [options, &asker] { return RunConvert(*options, asker); };
}

}  // namespace lamina::questions
