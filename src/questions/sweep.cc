// SPDX-License-Identifier: Apache-2.0
//
// lamina sweep: traces at several loads, and how each part grows with them.
#include "serving/sweep.h"

#include <algorithm>
#include <filesystem>

#include "engine/find_traces.h"
#include "engine/report.h"
#include "questions/bodies.h"

namespace lamina::questions {
namespace {

struct SweepParams {
  std::vector<std::string> traces;
  std::string x = "auto";
  std::string group = "half";
  std::string phase = "auto";
  bool steady = false;
};

serving::SweepOptions SweepOptionsOf(const SweepParams& params) {
  using serving::SweepOptions;
  SweepOptions out;
  static const std::vector<std::string> kLoads = {"auto", "batch", "context",
                                                  "tokens", "requests"};
  static const std::vector<std::string> kGroups = {"half", "family", "module",
                                                   "kernel"};
  const auto index = [](const std::vector<std::string>& names,
                        const std::string& name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  out.load = static_cast<SweepOptions::Load>(index(kLoads, params.x));
  out.group = static_cast<SweepOptions::Group>(index(kGroups, params.group));
  if (params.phase == "decode") out.phase = runs::Phase::kDecode;
  if (params.phase == "prefill") out.phase = runs::Phase::kPrefill;
  if (params.phase == "mixed") out.phase = runs::Phase::kMixed;
  out.steady = params.steady;
  return out;
}

Result<Answer> AskSweep(const SweepParams& params, Asker& asker) {
  std::vector<std::string> names;
  for (const Schema& schema : serving::SweepSchemas())
    names.push_back(schema.name);
  LAMINA_TRY(engine::CheckOnly(asker.only, names));
  LAMINA_ASSIGN(const std::vector<std::string> files,
                engine::FindTraces(params.traces));
  std::vector<std::shared_ptr<engine::Session>> sessions;
  std::vector<serving::SweptTrace> traces;
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  for (const std::string& file : files) {
    LAMINA_ASSIGN(auto session, asker.OpenTrace(file));
    LAMINA_ASSIGN(const analysis::Context* const context,
                  session->ContextFor(tree::LinkMode::kAuto, false, settings));
    traces.push_back({std::filesystem::path(file).filename(), context});
    sessions.push_back(std::move(session));
  }
  const ScopedStage stage(&asker.times, "sweep");
  Document document;
  document.command = "sweep";
  document.inputs = files;
  LAMINA_ASSIGN(document.result,
                serving::SweepTraces(traces, SweepOptionsOf(params)));
  if (asker.for_screen()) {
    constexpr size_t kRows = 12;
    if (asker.top == 0) asker.top = kRows;
    // A row per part and load is for files and pages.
    if (asker.only.empty()) {
      std::erase_if(document.result.tables,
                    [](const Table& table) { return table.name() == "sweep"; });
    }
  }
  return Answer(std::move(document));
}

}  // namespace

Body DescribeSweep(Description& args, Asker& asker) {
  auto params = std::make_shared<SweepParams>();
  args.Add("traces", params->traces,
           "Traces of one model, one per load or one with several; folders and "
           "patterns of them")
      .Required();
  args.Add("--x", params->x,
           "The load: requests that generate, their mean context, tokens of a "
           "pass, or prompts; auto: the first of which there are several")
      .OneOf({"auto", "batch", "context", "tokens", "requests"})
      .ShowDefault();
  args.Add("--group", params->group, "What is a part of a pass")
      .OneOf({"half", "family", "module", "kernel"})
      .ShowDefault();
  args.Add("--phase", params->phase,
           "Passes that are taken; auto: those with most time")
      .OneOf({"auto", "decode", "prefill", "mixed"})
      .ShowDefault();
  args.Flag("--steady", params->steady,
            "Of each trace the stretch of even load alone");
  asker.AddCapturesTo(args);
  return [params, &asker] { return AskSweep(*params, asker); };
}

}  // namespace lamina::questions
