// SPDX-License-Identifier: Apache-2.0
//
// lamina host: why the device waits, and what launching costs.
#include <algorithm>

#include "analysis/host/sequences.h"
#include "analysis/host/tables.h"
#include "cli/commands.h"

namespace lamina::cli {
namespace {

namespace host = analysis::host;

struct Options {
  std::string trace;
  std::string by = "device";
  std::string step;
  std::string infer = "on";
  bool no_sync_records = false;
};

// Position of the step with this number.
Result<std::optional<uint32_t>> FindStep(const tree::Steps& steps,
                                         const std::string& text) {
  if (text.empty()) return std::optional<uint32_t>();
  const auto& all = steps.steps();
  for (uint32_t i = 0; i < all.size(); ++i) {
    if (std::to_string(all[i].number) == text) return std::optional(i);
  }
  return Fail(UsageError("--step: the trace has no step " + text,
                         all.empty()
                             ? "it has no steps"
                             : "steps: " + std::to_string(all.front().number) +
                                   " to " + std::to_string(all.back().number)));
}

Result<int> RunHost(const Options& options, Common& common) {
  LAMINA_ASSIGN(auto session, common.OpenTrace(options.trace));
  LAMINA_ASSIGN(const auto rules, host::LoadRules(session->data()));
  analysis::Settings settings;
  settings.threads = common.ThreadCount();
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  host::TableOptions tables;
  tables.by = options.by;
  tables.top = common.top;
  LAMINA_ASSIGN(tables.step, FindStep(context->steps, options.step));
  // A row for every part or launch is nothing to look at.
  tables.events = common.format != "table" || !common.only.empty();
  Document document;
  document.command = "host";
  document.inputs = {options.trace};
  document.inputs.insert(document.inputs.end(), common.captures.begin(),
                         common.captures.end());
  {
    const ScopedStage stage(&common.times, "host");
    host::Options model_options;
    model_options.sync_records = !options.no_sync_records;
    model_options.infer = options.infer == "on";
    const host::HostModel model =
        host::HostModel::Build(*context, model_options);
    const host::Idle idle = host::FindIdle(model, *rules);
    document.result = host::IdleTables(model, idle, tables);
    document.result.Append(host::LaunchTables(model, tables));
    document.result.tables.push_back(
        host::SequenceTable(model, host::FindSequences(model, idle)));
    document.result.Append(host::TransferTables(model));
    document.result.Append(host::RangeTables(model));
    document.result.Append(host::StepTables(model, idle));
  }
  if (common.format == "table" && common.only.empty()) {
    std::erase_if(document.result.tables,
                  [](const Table& table) { return table.rows() == 0; });
  }
  LAMINA_TRY(Write(document, common));
  return kFine;
}

Run Add(Arguments& args, Common& common) {
  auto options = std::make_shared<Options>();
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
  common.AddCapturesTo(args);
  common.AddTo(args);
  return [options, &common] { return RunHost(*options, common); };
}

}  // namespace

CommandInfo HostCommand() {
  return {"host", "Why the device waits: idle causes, launches, queues",
          "lamina host trace.json.gz --by step", &Add};
}

}  // namespace lamina::cli
