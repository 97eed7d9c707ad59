// SPDX-License-Identifier: Apache-2.0
#include "engine/idle_report.h"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <map>
#include <string>
#include <utility>

#include "analysis/common/stats.h"
#include "analysis/host/steady.h"
#include "analysis/host/tables.h"
#include "analysis/path/tables.h"
#include "base/counted.h"

namespace lamina::engine {
namespace {

namespace host = analysis::host;

// "72 % the host ran ops (aten::empty); 8 % optimizer": the largest causes.
std::string LargestCauses(const host::HostModel& model,
                          const host::Idle& idle) {
  constexpr size_t kMost = 3;
  constexpr int64_t kLeastPercent = 5;
  int64_t total = 0;
  for (const host::IdleSum& sum : idle.devices) total += sum.idle_ns();
  std::string text;
  size_t said = 0;
  for (const host::IdleShare& share : host::IdleShares(model, idle)) {
    if (said == kMost ||
        (said > 0 && 100 * share.time_ns < kLeastPercent * total))
      break;
    text += fmt::format("{}{:.0f} % {}", said == 0 ? "" : "; ",
                        analysis::PercentOf(share.time_ns, total),
                        host::ShareText(share));
    ++said;
  }
  return text;
}

Table* FindTable(ResultSet& result, std::string_view name) {
  const auto table =
      std::find_if(result.tables.begin(), result.tables.end(),
                   [&](const Table& t) { return t.name() == name; });
  return table == result.tables.end() ? nullptr : &*table;
}

// Writes each row anew, as `change` leaves it.
template <class Change>
void FillRows(Table& table, Change change) {
  Table out(table.schema());
  std::vector<Value> row(table.columns());
  for (size_t r = 0; r < table.rows(); ++r) {
    for (size_t c = 0; c < row.size(); ++c) row[c] = table.At(r, c);
    change(row);
    out.AddRow(row);
  }
  table = std::move(out);
}

// The parts of idle_gaps in the table gaps, by what ends a gap and its length.
void FillGapParts(const Table& idle, ResultSet& result) {
  Table* const gaps = FindTable(result, "gaps");
  if (gaps == nullptr || gaps->rows() == 0) return;
  const size_t next = idle.schema().IndexOf("next_uid");
  const size_t length = idle.schema().IndexOf("dur_us");
  const size_t text = idle.schema().IndexOf("parts");
  std::map<std::pair<int64_t, int64_t>, std::string> parts;
  for (size_t r = 0; r < idle.rows(); ++r) {
    if (idle.IsNull(r, next)) continue;
    parts.emplace(std::pair(idle.Int(r, next), idle.Int(r, length)),
                  idle.At(r, text).text());
  }
  const size_t uid = gaps->schema().IndexOf("uid");
  const size_t dur = gaps->schema().IndexOf("dur_us");
  const size_t out = gaps->schema().IndexOf("parts");
  FillRows(*gaps, [&](std::vector<Value>& row) {
    if (row[uid].null()) return;
    const auto it =
        parts.find(std::pair(row[uid].integer(), row[dur].integer()));
    if (it != parts.end()) row[out] = it->second;
  });
}

// Rows of idle_gaps for the parts of `gaps`: as many as there may be before
// those of `gaps` among several devices.
constexpr size_t kMostGaps = 1000;

}  // namespace

Status AddIdleCauses(Session& session, const analysis::Context& context,
                     ResultSet& result) {
  if (context.trace.device_slices().empty()) return {};
  LAMINA_ASSIGN(const IdleView* const view, session.IdleOf(context));
  const auto& [model, idle, path] = *view;
  host::TableOptions options;
  options.events = false;
  options.top = kMostGaps;
  ResultSet causes = host::IdleTables(model, idle, options);
  FillGapParts(*FindTable(causes, "idle_gaps"), result);
  const std::string text = LargestCauses(model, idle);
  for (Note& note : result.notes) {
    if (text.empty()) break;
    const Evidence evidence{"idle_causes", "scope", "device", {}};
    if (note.id == "device_idle") {
      note.text =
          "idle in " + Counted(idle.gaps.size(), "gap") + ": " + text + ".";
      note.evidence.insert(note.evidence.begin(), evidence);
    }
    static constexpr std::array<std::string_view, 5> kIdleVerdicts = {
        "launch_bound", "waits_on_host", "idle_host_blocked",
        "idle_after_launch", "idle"};
    if (note.severity == Severity::kVerdict &&
        std::find(kIdleVerdicts.begin(), kIdleVerdicts.end(), note.id) !=
            kIdleVerdicts.end()) {
      note.text += " Idle time: " + text + ".";
      note.evidence.push_back(evidence);
    }
  }
  for (Note& note : causes.notes) {
    if (note.id == "device_records_missing")
      result.notes.push_back(std::move(note));
  }
  for (Table& table : causes.tables) {
    if (table.name() == "idle_causes")
      result.tables.push_back(std::move(table));
  }
  return {};
}

Status AddStepVerdicts(Session& session, const analysis::Context& context,
                       ResultSet& result) {
  Table* const steps = FindTable(result, "steps");
  if (steps == nullptr || steps->rows() == 0) return {};
  LAMINA_ASSIGN(const analysis::path::Graph* const graph,
                session.PathOf(context));
  namespace path = analysis::path;
  // By number and begin of the step.
  struct Facts {
    path::Verdict verdict;
    path::PathSums sums;
    std::string_view flag;
  };
  std::map<std::pair<int64_t, int64_t>, Facts> facts;
  const auto& all = context.steps.steps();
  const auto of = [&](uint32_t step) -> Facts& {
    return facts[{all[step].number,
                  all[step].host.start_ns - context.trace.first_ns}];
  };
  for (const path::StepPath& step : path::StepPaths(*graph)) {
    Facts& own = of(step.step);
    own.verdict = VerdictOf(step.sums);
    own.sums = step.sums;
  }
  const auto flags = host::FlagSteps(graph->model());
  for (uint32_t i = 0; i < flags.size(); ++i) {
    of(i).flag = flags[i].warmup    ? "warmup"
                 : flags[i].cut     ? "cut"
                 : flags[i].outlier ? "outlier"
                                    : "";
  }
  const Schema& schema = steps->schema();
  const size_t number = schema.IndexOf("step");
  const size_t start = schema.IndexOf("start_us");
  const size_t verdict = schema.IndexOf("verdict");
  const size_t strength = schema.IndexOf("strength_percent");
  const size_t flag = schema.IndexOf("flag");
  const std::pair<size_t, path::PathClass> classes[] = {
      {schema.IndexOf("path_host_us"), path::PathClass::kHost},
      {schema.IndexOf("path_device_us"), path::PathClass::kDevice},
      {schema.IndexOf("path_comm_us"), path::PathClass::kComm},
      {schema.IndexOf("path_copy_us"), path::PathClass::kCopy},
      {schema.IndexOf("path_wait_us"), path::PathClass::kWait}};
  FillRows(*steps, [&](std::vector<Value>& row) {
    if (row[number].null()) return;
    const auto it =
        facts.find(std::pair(row[number].integer(), row[start].integer()));
    if (it == facts.end()) return;
    const Facts& own = it->second;
    if (!own.flag.empty()) row[flag] = own.flag;
    if (own.verdict.text.empty()) return;
    // Where no device works nothing tells what bounds a step.
    if (!context.trace.device_slices().empty()) {
      row[verdict] = own.verdict.text;
      row[strength] = own.verdict.percent;
    }
    for (const auto& [column, c] : classes) row[column] = own.sums.of(c);
  });
  return {};
}

Status AddLayerVerdicts(Session& session, const analysis::Context& context,
                        ResultSet& result) {
  namespace path = analysis::path;
  Table* const layers = FindTable(result, "layers");
  if (layers == nullptr || layers->rows() == 0) return {};
  LAMINA_ASSIGN(const path::Graph* const graph, session.PathOf(context));
  LAMINA_ASSIGN(const path::Window whole, path::FindWindow(*graph, ""));
  const auto chain = path::RecordedPath(*graph, whole.sink, whole.start_ns);
  const size_t pass = layers->schema().IndexOf("pass");
  const size_t start = layers->schema().IndexOf("start_us");
  const size_t wall = layers->schema().IndexOf("wall_us");
  const size_t verdict = layers->schema().IndexOf("verdict");
  const size_t strength = layers->schema().IndexOf("strength_percent");
  // Times of the table count from the first work of a device.
  const int64_t zero_ns =
      context.trace.Start(context.trace.device_slices().front());
  std::vector<path::Verdict> verdicts(layers->rows());  // cells look at them
  for (size_t r = 0; r < verdicts.size(); ++r) {
    const int64_t begin = layers->Int(r, start);
    int64_t end = begin + layers->Int(r, wall);
    if (r + 1 < verdicts.size() &&
        layers->Int(r + 1, pass) == layers->Int(r, pass) &&
        layers->Int(r + 1, start) > begin)
      end = layers->Int(r + 1, start);
    verdicts[r] = VerdictOf(SumWithin(chain, zero_ns + begin, zero_ns + end));
  }
  size_t at = 0;
  FillRows(*layers, [&](std::vector<Value>& row) {
    const path::Verdict& found = verdicts[at++];
    if (found.text.empty()) return;
    row[verdict] = found.text;
    row[strength] = found.percent;
  });
  return {};
}

Status AddGapParts(Session& session, const analysis::Context& context,
                   ResultSet& result) {
  LAMINA_ASSIGN(const Table idle, LongestIdleGaps(session, context, kMostGaps));
  FillGapParts(idle, result);
  return {};
}

Result<Table> LongestIdleGaps(Session& session,
                              const analysis::Context& context, size_t most) {
  LAMINA_ASSIGN(const IdleView* const view, session.IdleOf(context));
  host::TableOptions options;
  options.events = false;
  options.top = most;
  ResultSet result = host::IdleTables(view->model, view->idle, options);
  return std::move(*FindTable(result, "idle_gaps"));
}

}  // namespace lamina::engine
