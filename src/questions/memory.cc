// SPDX-License-Identifier: Apache-2.0
//
// lamina memory: what fills the GPU, who put it there, what would make room.
#include "engine/memory.h"

#include <algorithm>
#include <array>

#include "base/decimal.h"
#include "questions/bodies.h"
#include "questions/memory_page.h"
#include "table/row_columns.h"

namespace lamina::questions {
namespace {

constexpr size_t kModuleDepth = 3;  // on a terminal

struct MemoryOptions {
  std::vector<std::string> files;
  engine::MemoryOptions memory;
  std::string device;
  std::string peak = "active";
  std::string capacity;
  std::string fail_above;
  bool fail_leaks = false;
  bool diff = false;
};

// "70GB", "512 MiB", "1000": bytes.
Result<int64_t> ParseBytes(std::string_view option, std::string text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"KiB", 1024.0},       {"MiB", 1048576.0},
      {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
      {"kB", 1e3},           {"KB", 1e3},
      {"MB", 1e6},           {"GB", 1e9},
      {"TB", 1e12},          {"B", 1}};
  const std::string given = text;
  double scale = 1;
  for (const auto& [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    text.resize(text.size() - unit.size());
    scale = factor;
    break;
  }
  while (text.ends_with(' ')) text.pop_back();
  const auto value = ParseDouble(text);
  if (!value || !(*value >= 0) || !(*value * scale < 1e18)) {
    return Fail(UsageError(
        std::string(option) + ": '" + given + "' is no number of bytes",
        "for example 70GB or 64GiB"));
  }
  return static_cast<int64_t>(*value * scale);
}

memory::Measure MeasureOf(const std::string& name) {
  for (size_t k = 0; k < memory::kMeasures; ++k) {
    if (memory::MeasureName(static_cast<memory::Measure>(k)) == name)
      return static_cast<memory::Measure>(k);
  }
  return memory::Measure::kActive;
}

Status Prepare(MemoryOptions& options, Asker& asker) {
  memory::TableOptions& tables = options.memory.tables;
  tables.peak = MeasureOf(options.peak);
  options.memory.device = options.device;
  if (!options.capacity.empty()) {
    LAMINA_ASSIGN(tables.capacity, ParseBytes("⟨capacity⟩", options.capacity));
  }
  const auto asked = [&](std::string_view name) {
    return std::find(asker.only.begin(), asker.only.end(), name) !=
           asker.only.end();
  };
  tables.every_kind = !asker.for_screen();
  for (const std::string& name : asker.only)
    tables.every_kind |= name.starts_with("memory_peak_");
  tables.over_time = asked("memory_fragmentation_over_time");
  if (tables.depth == 0 && asker.for_screen()) tables.depth = kModuleDepth;
  options.memory.rules_dir = asker.rules_dir;
  options.memory.threads = asker.ThreadCount();
  options.memory.progress = asker.Progress("reading");
  options.memory.read = asker.Open().read;
  return {};
}

// Rows of a table without the others; on a terminal the first tables say most.
constexpr std::string_view kTerminal[] = {
    "memory_summary",       "memory_peak", "memory_explain", "memory_join",
    "memory_oom",           "memory_room", "memory_leaks",   "memory_savings",
    "memory_fragmentation", "memory_ranks"};

void KeepShort(ResultSet& result) {
  std::erase_if(result.tables, [](const Table& table) {
    return table.rows() == 0 ||
           std::find(std::begin(kTerminal), std::end(kTerminal),
                     table.name()) == std::end(kTerminal);
  });
}

struct RankRow {
  std::string_view file;
  int64_t peak_bytes, delta_bytes;
  std::optional<std::string_view> category;
};

// One row per file: who uses most.
Table RanksTable(const std::vector<std::string>& files,
                 const std::vector<ResultSet>& results) {
  const RowColumns<RankRow> columns{
      "memory_ranks",
      "Peaks of active memory by file.",
      {{"file", ColumnType::kText, "File.", &RankRow::file},
       {"peak_bytes", ColumnType::kInt, "Highest active.", &RankRow::peak_bytes,
        Shown::kBytes},
       {"delta_bytes", ColumnType::kInt, "More than the median.",
        &RankRow::delta_bytes, Shown::kBytes},
       {"category", ColumnType::kText, "What most of it is for.",
        &RankRow::category}}};
  Table table(columns.schema());
  std::vector<int64_t> peaks;
  for (const ResultSet& result : results) {
    const Table* const summary = result.Find("memory_summary");
    int64_t peak = 0;
    for (size_t row = 0; summary != nullptr && row < summary->rows(); ++row) {
      if (summary->At(row, "measure").text() == "active")
        peak = std::max(peak, summary->At(row, "peak_bytes").integer());
    }
    peaks.push_back(peak);
  }
  std::vector<int64_t> sorted = peaks;
  std::sort(sorted.begin(), sorted.end());
  const int64_t median = sorted[sorted.size() / 2];
  for (size_t i = 0; i < files.size(); ++i) {
    const Table* const peak = results[i].Find("memory_peak");
    std::optional<std::string_view> category;
    if (peak != nullptr && peak->rows() > 0)
      category = peak->At(0, "key").text();
    columns.Add(table, {.file = files[i],
                        .peak_bytes = peaks[i],
                        .delta_bytes = peaks[i] - median,
                        .category = category});
  }
  return table;
}

// The tables of several files as one, with a column that names the file.
ResultSet JoinFiles(const std::vector<std::string>& files,
                    std::vector<ResultSet> results) {
  ResultSet out;
  out.tables.push_back(RanksTable(files, results));
  for (size_t i = 0; i < results.size(); ++i) {
    for (Note& note : results[i].notes) {
      note.text = files[i] + ": " + note.text;
      out.notes.push_back(std::move(note));
    }
    for (const Table& table : results[i].tables) {
      if (table.name() != "memory_summary" && table.name() != "memory_health")
        continue;
      Schema schema = table.schema();
      schema.columns.insert(schema.columns.begin(),
                            {"file", ColumnType::kText, "File."});
      if (schema.columns[1].name != "device_index") {
        schema.columns.insert(
            schema.columns.begin() + 1,
            {"device_index", ColumnType::kInt, "Number of the device."});
      }
      auto joined = std::find_if(
          out.tables.begin(), out.tables.end(),
          [&](const Table& other) { return other.name() == table.name(); });
      if (joined == out.tables.end()) {
        out.tables.emplace_back(schema);
        joined = std::prev(out.tables.end());
      }
      const bool has_device = table.schema().columns[0].name == "device_index";
      for (size_t row = 0; row < table.rows(); ++row) {
        std::vector<Value> values = {files[i]};
        if (!has_device) values.emplace_back();
        for (size_t c = 0; c < table.columns(); ++c)
          values.push_back(table.At(row, c));
        joined->AddRow(values);
      }
    }
  }
  return out;
}

// One trace among snapshots is the trace of their run.
Status FindTrace(MemoryOptions& options) {
  std::vector<std::string> traces;
  for (const std::string& file : options.files) {
    if (file != "-" && !engine::IsMemorySnapshot(file)) traces.push_back(file);
  }
  if (!options.memory.trace.empty()) {
    if (!traces.empty())
      return Fail(
          UsageError("⟨trace⟩ joins a trace to snapshots",
                     "give snapshots as files: " + traces[0] + " is none"));
    return {};
  }
  if (traces.size() != 1 || options.files.size() < 2) return {};
  options.memory.trace = traces[0];
  std::erase(options.files, traces[0]);
  return {};
}

Result<Answer> RunMemory(MemoryOptions& options, Asker& asker) {
  LAMINA_TRY(Prepare(options, asker));
  options.memory.times = &asker.times;
  std::optional<int64_t> limit;
  if (!options.fail_above.empty()) {
    LAMINA_ASSIGN(limit, ParseBytes("⟨fail_above⟩", options.fail_above));
  }
  if (options.diff) {
    if (options.files.size() != 2) {
      return Fail(UsageError("⟨diff⟩ compares two snapshots",
                             "name the one before and the one after"));
    }
    Document document;
    document.command = "memory";
    document.inputs = options.files;
    engine::Recordings recordings;
    LAMINA_ASSIGN(document.result,
                  engine::DiffMemory(options.files[0], options.files[1],
                                     options.memory, &recordings));
    return MemoryAnswer(std::move(document), std::move(recordings), asker);
  }
  LAMINA_TRY(FindTrace(options));
  std::vector<ResultSet> results;
  engine::Recordings recordings;
  // Only the page of one file shows more than tables.
  const bool keep = options.files.size() == 1 && asker.for_page();
  bool failed = false;
  for (const std::string& file : options.files) {
    LAMINA_ASSIGN(ResultSet result,
                  engine::MakeMemoryTables(file, options.memory,
                                           keep ? &recordings : nullptr));
    if (const Table* summary = result.Find("memory_summary")) {
      for (size_t row = 0; limit && row < summary->rows(); ++row) {
        if (summary->At(row, "measure").text() == options.peak &&
            summary->At(row, "peak_bytes").integer() > *limit)
          failed = true;
      }
    }
    if (const Table* leaks = result.Find("memory_leaks")) {
      for (size_t row = 0; options.fail_leaks && row < leaks->rows(); ++row) {
        if (leaks->At(row, "class").text() == "leak" &&
            leaks->At(row, "confidence").text() != "low")
          failed = true;
      }
    }
    results.push_back(std::move(result));
  }
  Document document;
  document.command = "memory";
  document.inputs = options.files;
  document.result = results.size() == 1
                        ? std::move(results[0])
                        : JoinFiles(options.files, std::move(results));
  if (asker.for_screen() && asker.only.empty()) KeepShort(document.result);
  Answer answer =
      MemoryAnswer(std::move(document), std::move(recordings), asker);
  answer.failed = failed;
  return answer;
}

}  // namespace

Body DescribeMemory(Description& args, Asker& asker) {
  auto options = std::make_shared<MemoryOptions>();
  memory::TableOptions& tables = options->memory.tables;
  args.Add("files", options->files,
           "Memory snapshots, or traces with memory events; several are ranks "
           "of one job")
      .Required();
  args.Add("--device", options->device,
           "Only this device: a number, or cpu in a trace");
  args.Add("--peak", options->peak, "Measure whose peak is looked at")
      .OneOf({"active", "allocated", "requested", "reserved"})
      .ShowDefault();
  args.Add("--at", tables.at,
           "Another moment: a number of events, end, oom, step:K or +12.5ms");
  args.Add("--by", tables.by, "Rows of memory_peak")
      .OneOf({"category", "module", "op", "line", "stack", "stream", "pool",
              "device"})
      .ShowDefault();
  args.Add("--trace", options->memory.trace,
           "Trace of the same run: ops, modules and steps of allocations");
  args.Add("--depth", tables.depth,
           "Calls of modules that are told apart (default: 3 on a terminal, "
           "all in files)")
      .Whole(1, 1000);
  args.Add("--steps", tables.steps, "Annotations that are steps (RE2)");
  args.Add("--own", tables.own, "Paths of the program's own code (RE2)");
  args.Add("--capacity", options->capacity,
           "Memory of the device: 80GB, 64GiB");
  args.Add("--leak-steps", tables.leak_steps,
           "Steps that a leak must be seen in")
      .Whole(3, 1'000'000)
      .ShowDefault();
  args.Add("--fail-above", options->fail_above,
           "Exit with 1 when the peak is higher: 70GB");
  args.Flag("--fail-leaks", options->fail_leaks,
            "Exit with 1 when there are leaks of high or medium confidence");
  args.Add("--from", tables.from, "First event that is looked at")
      .Whole(0, int64_t{1} << 31);
  args.Add("--to", tables.to, "Last event that is looked at")
      .Whole(0, int64_t{1} << 31);
  args.Flag("--diff", options->diff,
            "What differs between two snapshots at their peaks");
  args.Flag("--all", tables.all,
            "All allocations, not only those of the moment");
  args.Flag("--full", tables.full, "Every moment of the timeline, not 2000");
  args.Flag("--native", tables.native,
            "Native frames stay in the tree of stacks");
  args.Add("--explain", tables.explain,
           "Why the largest allocation of a line (train.py:12) has its "
           "category");
  args.Flag("--salvage", options->memory.salvage,
            "Use what is complete in a file that is cut off");
  return [options, &asker] { return RunMemory(*options, asker); };
}

}  // namespace lamina::questions
