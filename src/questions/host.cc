// SPDX-License-Identifier: Apache-2.0
//
// lamina host: why the device waits, and what launching costs.
#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <span>

#include "analysis/host/counters.h"
#include "analysis/host/sequences.h"
#include "analysis/host_tables/tables.h"
#include "base/parallel.h"
#include "dist/rank_events.h"
#include "engine/find_traces.h"
#include "engine/report.h"
#include "questions/bodies.h"

namespace lamina::questions {
namespace {

namespace host = analysis::host;
namespace host_tables = analysis::host_tables;

struct HostOptions {
  std::string trace;
  std::string by = "device";
  std::string step;
  std::string infer = "on";
  bool no_sync_records = false;
  std::vector<std::string> ranks;
};

// Position of the step with this number.
Result<std::optional<uint32_t>> FindStep(const tree::Steps& steps,
                                         const std::string& text) {
  if (text.empty()) return std::optional<uint32_t>();
  const auto& all = steps.steps();
  for (uint32_t i = 0; i < all.size(); ++i) {
    if (std::to_string(all[i].number) == text) return std::optional(i);
  }
  return Fail(UsageError("⟨step⟩: the trace has no step " + text,
                         all.empty()
                             ? "it has no steps"
                             : "steps: " + std::to_string(all.front().number) +
                                   " to " + std::to_string(all.back().number)));
}

bool Names(const std::vector<std::string>& only,
           std::span<const std::string_view> tables) {
  return std::any_of(only.begin(), only.end(), [&](const std::string& name) {
    return std::find(tables.begin(), tables.end(), name) != tables.end();
  });
}

// The tables that are asked for, in the order of the list, and what is made
// with them. `ranks`: what other ranks say of collectives.
Result<ResultSet> MakeTables(const analysis::Context& context,
                             const host::TableOptions& options,
                             host::RankTimesOf ranks,
                             const std::vector<std::string>& only) {
  const auto has = [&](std::initializer_list<std::string_view> names) {
    return only.empty() || Names(only, names);
  };
  LAMINA_ASSIGN(const auto* const model, context.Get<host::HostModel>());
  LAMINA_ASSIGN(const auto* const idle, context.Get<host::Idle>());
  struct Group {
    std::vector<Schema> schemas;
    std::function<Result<ResultSet>()> make;
  };
  const Group groups[] = {
      {host::IdleSchemas(),
       [&] { return host::IdleTables(*model, *idle, options); }},
      {host::LaunchSchemas(),
       [&] {
         // Finding layers takes as long as all else here: only where a row
         // per launch is asked for, or layers are.
         return host_tables::LaunchTables(
             context, options,
             options.by == "layer" ||
                 (options.events && has({"launch_events"})));
       }},
      {host::SequenceSchemas(),
       [&] { return host_tables::SequenceTables(context); }},
      {host::TransferSchemas(),
       [&] {
         return host_tables::TransferTables(context, options.events,
                                            std::move(ranks));
       }},
      {host::CounterSchemas(),
       [&] { return host_tables::CounterTables(context, options.events); }},
      {host::RangeSchemas(), [&] { return host_tables::RangeTables(context); }},
  };
  constexpr size_t kGroups = std::size(groups);
  std::array<bool, kGroups> wanted{};
  for (size_t g = 0; g < kGroups; ++g) {
    std::vector<std::string_view> names;
    for (const Schema& schema : groups[g].schemas) names.push_back(schema.name);
    wanted[g] = only.empty() || Names(only, names);
  }
  std::array<Result<ResultSet>, kGroups> made;
  ParallelFor(context.settings.threads, kGroups, [&](size_t g) {
    if (wanted[g]) made[g] = groups[g].make();
  });
  ResultSet result;
  for (Result<ResultSet>& part : made) {
    if (!part) return Fail(part.error());
    result.Append(std::move(*part));
  }
  return result;
}

std::vector<std::string> TableNames() {
  std::vector<std::string> names;
  for (const auto& schemas : {host::IdleSchemas(), host::LaunchSchemas(),
                              host::SequenceSchemas(), host::TransferSchemas(),
                              host::CounterSchemas(), host::RangeSchemas()}) {
    for (const Schema& schema : schemas) names.push_back(schema.name);
  }
  return names;
}

Result<Answer> RunHost(const HostOptions& options, Asker& asker) {
  LAMINA_TRY(engine::CheckOnly(asker.only, TableNames()));
  LAMINA_ASSIGN(auto session, asker.OpenTrace(options.trace));
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  settings.sync_records = !options.no_sync_records;
  settings.infer_waits = options.infer == "on";
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  host::TableOptions tables;
  tables.by = options.by;
  tables.top = asker.top;
  LAMINA_ASSIGN(tables.step, FindStep(context->steps, options.step));
  // A row for every part or launch is nothing to look at.
  tables.events = asker.only.empty() ? !asker.for_screen()
                                     : Names(asker.only, host::EventTables());
  Document document;
  document.command = "host";
  document.inputs = {options.trace};
  document.inputs.insert(document.inputs.end(), asker.captures.begin(),
                         asker.captures.end());
  host::RankTimesOf ranks;
  if (!options.ranks.empty()) {
    if (options.trace == "-") {
      return Fail(UsageError("⟨ranks⟩ reads the trace together with the others",
                             "give a file instead of standard input"));
    }
    LAMINA_ASSIGN(const auto files, engine::FindTraces(options.ranks));
    dist::LoadOptions load;
    load.threads = asker.ThreadCount();
    load.rules_dir = asker.rules_dir;
    load.open = asker.OpenRank();
    load.catalog = session->shared_catalog();
    LAMINA_ASSIGN(ranks,
                  dist::TimesAmongRanks(*context, options.trace, files, load));
    document.inputs.insert(document.inputs.end(), files.begin(), files.end());
  }
  if (options.by == "layer") {
    LAMINA_ASSIGN(const auto* const found,
                  context->Get<analysis::layers::LayerModel>());
    tables.layer_of = [layers =
                           host_tables::LayersOfWork(context->trace, *found),
                       &trace = context->trace](trace::SliceId s) {
      return std::string(layers.Of(trace.slices.detail[s.value]).value_or(""));
    };
  }
  {
    const ScopedStage stage(&asker.times, "host tables");
    LAMINA_ASSIGN(document.result,
                  MakeTables(*context, tables, std::move(ranks), asker.only));
  }
  if (context->trace.device_slices().empty()) {
    document.result.notes.push_back(MakeNote(
        Severity::kInfo, "no_device_work",
        "No device work is recorded: nothing says when a device waited.",
        {{"idle_causes", "time_us", {}, {}}}));
  }
  if (asker.for_screen() && asker.only.empty()) {
    std::erase_if(document.result.tables,
                  [](const Table& table) { return table.rows() == 0; });
  }
  return Answer(std::move(document));
}

}  // namespace

Body DescribeHost(Description& args, Asker& asker) {
  auto options = std::make_shared<HostOptions>();
  args.Add("trace", options->trace, "Trace file").Required();
  args.Add("--by", options->by,
           "Idle time also by stream, step, layer, annotation or op")
      .OneOf({"device", "stream", "step", "layer", "annotation", "op"})
      .ShowDefault();
  args.Add("--step", options->step, "Only gaps that work of this step ended");
  args.Flag("--no-sync-records", options->no_sync_records,
            "Take no notice of what the profiler recorded of waits");
  args.Add("--infer", options->infer,
           "Whether waits that are not recorded are inferred from times")
      .OneOf({"on", "off"})
      .ShowDefault();
  args.Add("--ranks", options->ranks,
           "Traces of the other ranks, a folder or a pattern: comm_exposure "
           "then says how long collectives waited for them");
  asker.AddCapturesTo(args);
  asker.AddRegionTo(args, false);
  return [options, &asker] { return RunHost(*options, asker); };
}

}  // namespace lamina::questions
