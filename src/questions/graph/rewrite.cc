// SPDX-License-Identifier: Apache-2.0
//
// lamina graph rewrite: what the transforms of a configuration would make of a
// dump.
#include <algorithm>
#include <cstdio>

#include "base/byte_sink.h"
#include "base/escape.h"
#include "graph/fusion/rewrite_report.h"
#include "graph/passes/pass.h"
#include "graph/print.h"
#include "questions/bodies.h"
#include "questions/graph/graph_input.h"
#include "questions/graph/rule_input.h"

namespace lamina::questions {
namespace {

struct GraphRewriteOptions {
  std::string input;
  std::string config;
  std::vector<std::string> overlays;
  std::vector<std::string> stages;
  std::vector<std::string> assume;
  std::string folder;
  std::string device;
  bool dump_all = false;
};

std::string DumpText(const graph::Dump& dump) {
  graph::Header header = dump.header;
  header.modules = static_cast<int64_t>(dump.graphs.size());
  std::string out = graph::HeaderText(header);
  for (const graph::Graph& graph : dump.graphs) graph::AppendGraph(out, graph);
  return out;
}

// A word as a shell takes it.
std::string Word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos)
    return text;
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

Result<Answer> RunRewrite(const GraphRewriteOptions& options, Asker& asker) {
  LAMINA_ASSIGN(const RuleInput rules, OpenRules(asker));
  LAMINA_ASSIGN(const auto ops, fusion::OpTable::Load(rules.data));
  LAMINA_ASSIGN(const graph::PipelineConfig config,
                graph::ReadPipelineConfig(options.config, options.overlays,
                                          options.stages));
  LAMINA_ASSIGN(const std::string path, graph::PickDump(options.input));
  LAMINA_ASSIGN(graph::Dump dump, ReadGraphDump(path, {}, asker));
  if (!dump.dialect.empty()) {
    return Fail(UsageError(EscapeTerminal(dump.name) +
                               ": only dumps of AutoDeploy are rewritten, "
                               "this one is '" +
                               std::string(dump.dialect) + "'",
                           "⟨lamina⟩ graph print --as autodeploy makes one of "
                           "it, without keywords"));
  }
  graph::DumpFile file;
  graph::ParseDumpName(path, file);
  const graph::PassRegistry registry(rules.set);
  LAMINA_ASSIGN(const fusion::Memory memory,
                ChooseMemory(rules, options.device, nullptr));
  const bool write = !options.folder.empty();
  if (write) LAMINA_TRY(MakeDirectory(options.folder));

  fusion::RewriteReport report(*ops, file, config, registry, *rules.groups,
                               memory);
  report.Begin(dump);
  graph::RunOptions run;
  run.assume.insert(options.assume.begin(), options.assume.end());
  std::string log;
  int64_t number = file.number;
  run.after = [&](const graph::PassReport& pass,
                  const graph::Dump& now) -> Status {
    ++number;
    std::string name;
    std::string text;
    if (pass.changed || options.dump_all) {
      text = DumpText(now);
      char digits[24];
      std::snprintf(digits, sizeof digits, "%03lld",
                    static_cast<long long>(number));
      name = std::string(digits) + "_" + pass.entry.stage + "_" +
             pass.entry.transform + ".txt";
      std::replace(name.begin(), name.end(), '/', '_');
      if (write) LAMINA_TRY(WriteFile(options.folder + "/" + name, text));
    }
    log += graph::SummaryLine(pass.entry, pass.time) + "\n";
    report.Add(pass, now, text, number, write ? name : std::string());
    return {};
  };
  {
    const ScopedStage stage(&asker.times, "rewrite");
    LAMINA_TRY(graph::RunPasses(dump, config, registry, run));
  }
  if (write) {
    std::vector<std::pair<std::string, std::string>> facts = {
        {"dump", path}, {"configuration", options.config}};
    for (const std::string& overlay : options.overlays)
      facts.emplace_back("overlay", overlay);
    for (const std::string& id : options.assume)
      facts.emplace_back("taken as given", id);
    std::string command = "lamina graph rewrite " + Word(path) + " --config " +
                          Word(options.config);
    for (const std::string& overlay : options.overlays)
      command += " --overlay " + Word(overlay);
    for (const std::string& id : options.assume)
      command += " --assume " + Word(id);
    report.Describe(std::move(facts), command + " -d " + Word(options.folder));
    LAMINA_TRY(WriteFile(options.folder + "/transform.log", log));
    LAMINA_TRY(
        WriteFile(options.folder + "/before_after.md", report.Markdown()));
  }
  Document document;
  document.command = "graph rewrite";
  document.inputs = {path, options.config};
  document.result = report.Finish();
  return Answer(std::move(document));
}

}  // namespace

Body DescribeGraphRewrite(Description& args, Asker& asker) {
  auto options = std::make_shared<GraphRewriteOptions>();
  args.Add("dump", options->input,
           "Dump to begin with, or a folder (its last dump)")
      .Required();
  args.Add("--config", options->config,
           "Transforms to run, in the form of AutoDeploy's default.yaml")
      .Required();
  args.Add("--overlay", options->overlays,
           "Files to lay over it, such as those of a model registry");
  args.Add("--stage-order", options->stages, "Another order of stages")
      .SplitAtCommas();
  args.Add("--assume", options->assume,
           "Ids of guards to take as given that a dump cannot show")
      .SplitAtCommas();
  AddDeviceOption(args, options->device);
  args.Add("-d,--dump-dir", options->folder,
           "Write the dump after each transform that changed it, "
           "transform.log and before_after.md to this folder");
  args.Flag("--dump-all", options->dump_all,
            "Also dumps of transforms that changed nothing");
  return [options, &asker] {
    // -o names the folder, too.
    if (options->folder.empty() && asker.output != "-")
      options->folder = asker.output;
    return RunRewrite(*options, asker);
  };
}

}  // namespace lamina::questions
