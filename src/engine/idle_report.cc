// SPDX-License-Identifier: Apache-2.0
#include "engine/idle_report.h"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <string>
#include <utility>

#include "analysis/common/stats.h"
#include "analysis/host/tables.h"
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

}  // namespace

Status AddIdleCauses(const analysis::Context& context,
                     const rules::DataSet& data, ResultSet& result) {
  if (context.trace.device_slices().empty()) return {};
  LAMINA_ASSIGN(const auto rules, host::LoadRules(data));
  const host::HostModel model = host::HostModel::Build(context, {});
  const host::Idle idle = host::FindIdle(model, *rules);
  host::TableOptions options;
  options.events = false;
  ResultSet causes = host::IdleTables(model, idle, options);
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

Result<Table> LongestIdleGaps(const analysis::Context& context,
                              const rules::DataSet& data, size_t most) {
  LAMINA_ASSIGN(const auto rules, host::LoadRules(data));
  const host::HostModel model = host::HostModel::Build(context, {});
  host::TableOptions options;
  options.events = false;
  options.top = most;
  ResultSet result =
      host::IdleTables(model, host::FindIdle(model, *rules), options);
  const auto table =
      std::find_if(result.tables.begin(), result.tables.end(),
                   [](const Table& t) { return t.name() == "idle_gaps"; });
  return std::move(*table);
}

}  // namespace lamina::engine
