// SPDX-License-Identifier: Apache-2.0
#include "dist/merge.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <set>

#include "base/byte_sink.h"
#include "base/byte_source.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "dist/tables.h"
#include "emit/chrome/copy.h"
#include "emit/chrome/merge.h"
#include "lamina/version.h"
#include "table/row_columns.h"

namespace lamina::dist {
namespace {

using trace::Trace;

struct Process {
  std::string pid;
  int64_t device = kNoInt;  // of a process of device work
};

// What the second pass needs to know of a trace.
struct Facts {
  std::string format;
  int64_t base_ns = 0;
  int64_t largest_id = 0;  // of flows, correlations and Python frames
  int64_t largest_pid = 0;
  std::vector<Process> processes;
  std::string devices;  // deviceProperties as lamina writes them
};

std::string DevicesOf(const Trace& trace) {
  std::string out = "[";
  for (const trace::DeviceInfo& device : trace.info.devices) {
    if (out.size() > 1) out += ',';
    out += fmt::format("{{\"id\":{},\"name\":{}", device.id,
                       JsonQuote(device.name));
    const auto add = [&](std::string_view key, int64_t value) {
      if (value != kNoInt) out += fmt::format(",\"{}\":{}", key, value);
    };
    add("totalGlobalMem", device.memory_bytes);
    add("computeMajor", device.compute_major);
    add("computeMinor", device.compute_minor);
    add("numSms", device.sm_count);
    add("clockRate", device.clock_khz);
    out += '}';
  }
  return out + "]";
}

Facts FactsOf(const Trace& trace) {
  Facts facts;
  facts.format = trace.info.format;
  const auto base = trace.info.base_time_ns;
  facts.base_ns = base && trace::IsUsableTime(*base) ? *base : 0;
  facts.devices = DevicesOf(trace);
  const auto id = [&](int64_t value) {
    facts.largest_id = std::max(facts.largest_id, value);
  };
  for (const auto& args : trace.device) {
    id(args.correlation);
    id(args.external_id);
  }
  for (const auto& args : trace.api_calls) {
    id(args.correlation);
    id(args.external_id);
  }
  for (const auto& args : trace.ops) id(args.external_id);
  for (const auto& args : trace.python) id(args.id);
  for (size_t i = 0; i < trace.flows.size(); ++i) id(trace.flows.id[i]);

  std::map<std::string_view, int64_t> devices;
  for (const trace::Stream& stream : trace.streams)
    devices.try_emplace(trace.Text(stream.pid), stream.device);
  std::set<std::string_view> seen;
  for (const trace::Track& track : trace.tracks) {
    const std::string_view pid = trace.Text(track.pid);
    if (!seen.insert(pid).second) continue;
    const auto device = devices.find(pid);
    facts.processes.push_back(
        {std::string(pid), device != devices.end() ? device->second : kNoInt});
    if (const auto number = ParseInt(pid))
      facts.largest_pid = std::max(facts.largest_pid, std::abs(*number));
  }
  return facts;
}

// The power of ten above a number.
int64_t PowerAbove(int64_t value) {
  int64_t power = 1;
  while (power <= value && power < kNoInt / -100) power *= 10;
  return power;
}

// Numbers for the processes of a rank: rank x power + pid as long as Perfetto
// can hold that in 32 bits, else rank x 1000 + position.
emit::MergedRank Plan(const RankSummary& rank, const Facts& facts,
                      int64_t id_power, int64_t pid_power, bool short_pids) {
  emit::MergedRank out;
  out.rank = rank.rank;
  out.id_shift = rank.rank * id_power;
  size_t hosts = 0;
  for (const Process& process : facts.processes)
    hosts += process.device == kNoInt && ParseInt(process.pid).has_value();
  for (size_t i = 0; i < facts.processes.size(); ++i) {
    const Process& process = facts.processes[i];
    const auto number = ParseInt(process.pid);
    emit::MergedProcess merged;
    merged.pid = process.pid;
    const auto position = static_cast<int64_t>(i);
    // Texts get the last numbers of the rank.
    merged.merged_pid = short_pids ? rank.rank * 1000 + position % 1000
                        : number   ? rank.rank * pid_power + *number
                                   : (rank.rank + 1) * pid_power - 1 - position;
    if (process.device != kNoInt) {
      merged.name = fmt::format("RANK {} - GPU {}", rank.rank, process.device);
    } else if (!number) {
      merged.name = fmt::format("RANK {} - {}", rank.rank, process.pid);
    } else if (hosts > 1) {
      merged.name = fmt::format("RANK {} - CPU {}", rank.rank, process.pid);
    } else {
      merged.name = fmt::format("RANK {} - CPU", rank.rank);
    }
    merged.sort_index =
        rank.rank * 1000 +
        (process.device != kNoInt ? 500 + position : position % 500);
    out.processes.push_back(std::move(merged));
  }
  return out;
}

struct MergedRow {
  std::optional<int64_t> rank;
  std::optional<uint64_t> events, left_out, broken;
  std::optional<int64_t> offset, id_shift;
  std::string_view file, error;
};

const RowColumns<MergedRow>& MergedColumns() {
  static const RowColumns<MergedRow> columns{
      "merged",
      "One row per input.",
      {{"rank", ColumnType::kInt, "Rank; empty if left out.", &MergedRow::rank},
       {"events", ColumnType::kInt, "Records written.", &MergedRow::events},
       {"left_out", ColumnType::kInt,
        "Records of the profiler itself, and Python frames without "
        "--python.",
        &MergedRow::left_out},
       {"broken", ColumnType::kInt, "Records that could not be read.",
        &MergedRow::broken, Shown::kHidden},
       {"offset_us", ColumnType::kTime,
        "Offset of its clock that was taken off; empty without "
        "--align-clocks or where it is unknown.",
        &MergedRow::offset},
       {"id_shift", ColumnType::kInt, "Added to its ids.", &MergedRow::id_shift,
        Shown::kHidden},
       {"file", ColumnType::kText, "Input.", &MergedRow::file},
       {"error", ColumnType::kText, "Why it is left out.", &MergedRow::error}}};
  return columns;
}

}  // namespace

Result<ResultSet> MergeTraces(const std::vector<std::string>& files,
                              const std::string& output,
                              const MergeOptions& options) {
  std::vector<Facts> facts(files.size());
  JobOptions settings = options.job;
  settings.raw_clocks = !options.align_clocks;
  settings.load.inspect = [&](const analysis::Context& context, const Lanes&,
                              uint64_t file, uint64_t part) {
    if (part == 0) facts[file] = FactsOf(context.trace);
  };
  const auto channel = MakeLocalChannel();
  auto job = RunJob(*channel, files, settings);
  int64_t largest_id = 0;
  int64_t largest_pid = 0;
  int64_t largest_rank = 0;
  int64_t base_ns = INT64_MAX;
  const Facts* first = nullptr;
  for (RankSummary& rank : job->ranks) {
    const Facts& f = facts[rank.file_number];
    if (rank.error.empty() && f.format != "kineto")
      rank.error = "a trace of the format " + f.format +
                   "; only Chrome JSON can be merged";
    if (!rank.error.empty()) continue;
    if (first == nullptr) first = &f;
    largest_id = std::max(largest_id, f.largest_id);
    largest_pid = std::max(largest_pid, f.largest_pid);
    largest_rank = std::max(largest_rank, rank.rank);
    base_ns = std::min(base_ns, f.base_ns);
  }
  if (first == nullptr) {
    return Fail(InputError(files.front(),
                           "no input can be merged: " + job->ranks[0].error,
                           "give one Chrome JSON trace per rank"));
  }
  const int64_t id_power = PowerAbove(largest_id);
  const int64_t pid_power = PowerAbove(largest_pid + 100);
  const bool short_pids = pid_power > INT32_MAX / (largest_rank + 1);

  LAMINA_ASSIGN(const auto sink, CreateFileSink(output));
  sink->Write(
      fmt::format("{{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\","
                  "\"baseTimeNanoseconds\":{},\"deviceProperties\":{},"
                  "\"merged_by\":\"lamina {}\",\"traceEvents\":[\n",
                  base_ns, first->devices, Version()));
  ResultSet result;
  Table table(MergedColumns().schema());
  emit::MergedProcess named;
  for (const RankSummary& rank : job->ranks) {
    if (!rank.error.empty()) {
      MergedColumns().Add(table, {.rank = {},
                                  .events = {},
                                  .left_out = {},
                                  .broken = {},
                                  .offset = {},
                                  .id_shift = {},
                                  .file = rank.file,
                                  .error = rank.error});
      continue;
    }
    // A file with several ranks is written once, as the first of them.
    if (rank.part > 0) continue;
    const Facts& f = facts[rank.file_number];
    emit::MergedRank plan = Plan(rank, f, id_power, pid_power, short_pids);
    plan.python = options.python;
    if (named.name.empty() && !plan.processes.empty())
      named = plan.processes.front();
    plan.clock = [&](int64_t ns) {
      return job->clocks.Align(rank.rank, f.base_ns + ns) - base_ns;
    };
    LAMINA_ASSIGN(auto source, OpenByteSource(rank.file));
    LAMINA_ASSIGN(const emit::MergeCounts counts,
                  emit::AppendRank(std::move(source), plan,
                                   options.job.load.threads, *sink));
    std::optional<int64_t> offset;
    for (const RankClock& clock : job->clocks.ranks()) {
      if (clock.rank == rank.rank && clock.known && options.align_clocks)
        offset = clock.offset_ns;
    }
    MergedColumns().Add(table, {.rank = rank.rank,
                                .events = counts.written,
                                .left_out = counts.left_out,
                                .broken = counts.broken,
                                .offset = offset,
                                .id_shift = plan.id_shift,
                                .file = rank.file,
                                .error = ""});
  }
  // A record without a comma behind it ends the list: one that is there.
  std::string last;
  emit::AppendName(last, "process_name", named.merged_pid, 0, named.name);
  last.erase(last.rfind(','));
  sink->Write(last + "\n]}\n");
  LAMINA_TRY(sink->Close());
  for (size_t row = 0; row < table.rows(); ++row) {
    const Value broken = table.At(row, "broken");
    if (broken.null() || broken.integer() == 0) continue;
    const std::string file(table.At(row, "file").text());
    result.notes.push_back(MakeNote(
        Severity::kWarning, "broken_records",
        fmt::format("{}: {} could not be read and left out (⟨report()⟩ says "
                    "why: trace_health).",
                    file,
                    Counted(static_cast<uint64_t>(broken.integer()), "record")),
        {{"merged", "file", file, {}}}));
  }
  result.tables.push_back(std::move(table));
  if (options.align_clocks) AddClockNotes(*job, result);
  for (const RankSummary& rank : job->ranks) {
    if (rank.error.empty()) continue;
    result.notes.push_back(
        MakeNote(Severity::kWarning, "unusable_input",
                 rank.file + " is left out: " + rank.error + ".",
                 {{"merged", "file", rank.file, {}}}));
  }
  return result;
}

}  // namespace lamina::dist
