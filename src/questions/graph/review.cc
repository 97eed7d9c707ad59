// SPDX-License-Identifier: Apache-2.0
//
// lamina graph review: the checklist for a fusion, from two runs.
#include "graph/fusion/review.h"

#include <filesystem>

#include "questions/bodies.h"
#include "questions/graph/rule_input.h"

namespace lamina::questions {
namespace {

struct GraphReviewOptions {
  std::string before;
  std::string after;
  std::vector<std::string> logs;
  std::string rule;
  std::string config;
  std::vector<std::string> overlays;
  std::string tree;
  bool note = false;
};

Result<fusion::Run> OpenRun(const std::string& folder, const std::string& log) {
  namespace fs = std::filesystem;
  fusion::Run run;
  run.folder = folder;
  LAMINA_ASSIGN(run.files, graph::ListDumps(folder));
  std::string path = log;
  std::error_code error;
  const fs::path beside = fs::path(folder) / "transform.log";
  if (path.empty() && fs::is_regular_file(beside, error))
    path = beside.string();
  if (!path.empty()) {
    LAMINA_ASSIGN(run.log, graph::ReadTransformLog(path));
  }
  return run;
}

Result<Answer> RunReview(const GraphReviewOptions& options, Asker& asker) {
  LAMINA_ASSIGN(const RuleInput rules, OpenRules(asker));
  fusion::ReviewInput input;
  input.rule = rules.set.Find(options.rule);
  if (input.rule == nullptr) return Fail(UnknownRule(rules, options.rule));
  input.rules = &rules.set;
  input.census.groups = rules.groups;
  const auto log = [&](size_t i) {
    return i < options.logs.size() ? options.logs[i] : std::string();
  };
  LAMINA_ASSIGN(input.before, OpenRun(options.before, log(0)));
  LAMINA_ASSIGN(input.after, OpenRun(options.after, log(1)));
  std::optional<graph::PipelineConfig> config;
  if (!options.config.empty()) {
    LAMINA_ASSIGN(config,
                  graph::ReadPipelineConfig(options.config, options.overlays));
    input.config = &*config;
    input.overlays = options.overlays;
  }
  std::optional<fusion::SourceIndex> tree;
  if (!options.tree.empty()) {
    LAMINA_ASSIGN(tree, fusion::ScanTree(options.tree));
    input.tree = &*tree;
  }
  LAMINA_ASSIGN(const fusion::Review review, fusion::ReviewFusion(input));
  Document document;
  document.command = "graph review";
  document.inputs = {options.before, options.after};
  document.result = fusion::ReviewTables(review);
  Answer answer(std::move(document));
  if (options.note) answer.below = "\n" + review.note;
  answer.failed = review.failed > 0;
  return answer;
}

}  // namespace

Body DescribeGraphReview(Description& args, Asker& asker) {
  auto options = std::make_shared<GraphReviewOptions>();
  args.Add("before", options->before, "Dumps of the run before").Required();
  args.Add("after", options->after, "Dumps of the run after").Required();
  args.Add("--rule", options->rule, "The fusion under review").Required();
  args.Add("--log", options->logs,
           "Logs of both runs (default: transform.log of the folders)")
      .Count(1, 2);
  args.Add("--config", options->config,
           "Configuration of the pipeline, as for graph rewrite");
  args.Add("--overlay", options->overlays, "Files laid over it");
  args.Add("--tree", options->tree,
           "Source checkout to look for the registration and tests");
  args.Flag("--note", options->note, "Also print the note of the iteration");
  return [options, &asker] { return RunReview(*options, asker); };
}

}  // namespace lamina::questions
