// SPDX-License-Identifier: Apache-2.0
//
// lamina diff: what changed between two traces.
#include <algorithm>

#include "analysis/diff/diff.h"
#include "base/decimal.h"
#include "cli/commands.h"

namespace lamina::cli {
namespace {

constexpr size_t kTerminalRows = 10;

struct Options {
  std::vector<std::string> traces;
  std::string fail_above;
  std::string measure = "kernel_time";
  analysis::diff::Options diff;
};

int64_t Measured(const analysis::diff::Totals& totals,
                 const std::string& measure) {
  if (measure == "busy") return totals.busy_ns;
  if (measure == "total") return totals.total_ns;
  return totals.kernel_time_ns;
}

Result<int> RunDiff(const Options& options, Common& common) {
  std::optional<double> limit;
  if (!options.fail_above.empty()) {
    std::string text = options.fail_above;
    if (text.ends_with('%')) text.pop_back();
    limit = ParseDouble(text);
    if (!limit || !(*limit >= 0)) {
      return Fail(
          UsageError("--fail-above: expected a percentage", "for example 3%"));
    }
  }
  analysis::Settings settings;
  settings.threads = common.ThreadCount();
  std::vector<std::unique_ptr<engine::Session>> sessions;
  for (const std::string& path : options.traces) {
    LAMINA_ASSIGN(auto session, engine::Session::Open(path, common.Open()));
    sessions.push_back(std::move(session));
  }
  const bool python =
      std::any_of(sessions.begin(), sessions.end(), [&](const auto& session) {
        return analysis::diff::NeedsPythonStacks(session->trace(),
                                                 options.diff);
      });
  std::vector<const analysis::Context*> contexts;
  for (const auto& session : sessions) {
    LAMINA_ASSIGN(const analysis::Context* const context,
                  session->ContextFor(tree::LinkMode::kAuto, python, settings));
    contexts.push_back(context);
  }
  LAMINA_ASSIGN(const auto rules,
                analysis::layers::LoadRules(sessions[0]->data()));
  Document document;
  document.command = "diff";
  document.inputs = options.traces;
  int status = kFine;
  {
    const ScopedStage stage(&common.times, "compare");
    analysis::diff::Comparison comparison = analysis::diff::Compare(
        *contexts[0], *contexts[1], *rules, options.diff);
    document.result = std::move(comparison.result);
    const auto a = static_cast<double>(Measured(comparison.a, options.measure));
    const auto b = static_cast<double>(Measured(comparison.b, options.measure));
    if (limit && b - a > a * *limit / 100) status = kCheckFailed;
  }
  // On a terminal a table without rows says nothing, and the first rows of
  // each say most.
  if (common.format == "table") {
    if (common.top == 0) common.top = kTerminalRows;
    std::erase_if(document.result.tables,
                  [](const Table& table) { return table.rows() == 0; });
  }
  LAMINA_TRY(Write(document, common));
  return status;
}

Run Add(CLI::App& app, Common& common) {
  auto options = std::make_shared<Options>();
  app.add_option("traces", options->traces, "The trace before and after")
      ->required()
      ->expected(2);
  app.add_option("--fail-above", options->fail_above,
                 "Exit with 1 when B takes more than this share longer than "
                 "A: 3%");
  app.add_option("--measure", options->measure,
                 "What --fail-above looks at: the sum of device work, the "
                 "time in which the device was busy, or its whole window")
      ->check(CLI::IsMember({"kernel_time", "busy", "total"}))
      ->capture_default_str();
  app.add_flag("--python-stacks", options->diff.python,
               "Match all Python frames, not only modules");
  common.AddTo(app);
  return [options, &common] { return RunDiff(*options, common); };
}

}  // namespace

CommandInfo DiffCommand() {
  return {"diff", "What changed between two traces, and why",
          "lamina diff before.json.gz after.json.gz --fail-above 3%", &Add};
}

}  // namespace lamina::cli
