// SPDX-License-Identifier: Apache-2.0
//
// lamina graph pass: a rule or a candidate as an AutoDeploy pass with tests.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/byte_sink.h"
#include "base/byte_source.h"
#include "base/escape.h"
#include "graph/fusion/candidates.h"
#include "graph/generate/write_pass.h"
#include "questions/bodies.h"
#include "questions/graph/graph_input.h"
#include "questions/graph/rule_input.h"

namespace lamina::questions {
namespace {

namespace fs = std::filesystem;

struct GraphPassOptions {
  std::string name;
  std::string dump;
  std::string section;
  graph::ParseOptions parse;
  std::string tree;
  std::string key;
  std::string form;
  std::string kernel;
  std::vector<std::string> assume;
  bool force = false;
  bool check_only = false;
};

// The nodes of a candidate's places, each in order of the graph.
std::vector<std::vector<graph::NodeId>> PlacesOf(
    const graph::Graph& graph, const fusion::Candidate& candidate) {
  std::vector<std::vector<graph::NodeId>> out;
  for (const fusion::CandidatePlace& place : candidate.places) {
    std::vector<graph::NodeId> nodes;
    std::string_view names = place.nodes;
    while (!names.empty()) {
      const size_t end = std::min(names.find(' '), names.size());
      const graph::NodeId id = graph.Find(names.substr(0, end));
      names.remove_prefix(std::min(end + 1, names.size()));
      if (id.valid()) nodes.push_back(id);
    }
    if (!nodes.empty() && (out.empty() || out.front().size() == nodes.size()))
      out.push_back(std::move(nodes));
  }
  return out;
}

Result<graph::Rule> RuleOfCandidate(const GraphPassOptions& options,
                                    const RuleInput& rules,
                                    const GraphInput& input) {
  LAMINA_ASSIGN(const auto ops, fusion::OpTable::Load(rules.data));
  const fusion::KernelLookup lookup(*ops, nullptr);
  fusion::CandidateOptions find;
  find.rules = &rules.set;
  find.groups = rules.groups.get();
  find.ops = ops.get();
  find.lookup = &lookup;
  const fusion::Candidates found = fusion::FindCandidates(*input.graph, find);
  std::vector<std::string_view> names;
  for (const graph::Rule& rule : rules.set.rules) names.push_back(rule.name);
  for (const fusion::Candidate& candidate : found.list) {
    names.push_back(candidate.name);
    if (candidate.name != options.name || !candidate.rule.empty()) continue;
    const auto places = PlacesOf(*input.graph, candidate);
    if (places.empty()) break;
    return generate::RuleOfPlaces(*input.graph, places, candidate.name,
                                  "Fuses a " + candidate.kind +
                                      " found by "
                                      "search");
  }
  const std::string_view near = rules::Nearest(options.name, names);
  return Fail(UsageError(
      "no rule and no candidate '" + EscapeTerminal(options.name) + "'",
      near.empty() ? "⟨lamina⟩ graph candidates DUMP lists what was found"
                   : "did you mean '" + std::string(near) + "'?"));
}

Result<Answer> RunPass(const GraphPassOptions& options, Asker& asker) {
  const std::string& folder = asker.output;
  if (folder == "-" || folder.empty())
    return Fail(UsageError("no folder to write to", "⟨output⟩ OUT names one"));
  LAMINA_ASSIGN(const RuleInput rules, OpenRules(asker));
  generate::PassRequest request;
  LAMINA_ASSIGN(const auto api, generate::ReadTreeApi(options.tree));
  LAMINA_ASSIGN(const auto index, fusion::ScanTree(options.tree));
  LAMINA_ASSIGN(const auto templates, generate::Templates::Load(rules.data));
  request.api = &api;
  request.index = &index;
  request.templates = &templates;
  request.assume.insert(options.assume.begin(), options.assume.end());
  if (options.form == "walk") request.form = generate::Form::kWalk;
  if (options.form == "pattern") request.form = generate::Form::kPattern;
  const graph::Rule* const rule = rules.set.Find(options.name);
  request.key = !options.key.empty() ? options.key
                : rule != nullptr    ? rule->name
                                     : "fuse_" + options.name;
  std::replace(request.key.begin(), request.key.end(), '.', '_');
  Document document;
  document.command = "graph pass";
  document.inputs = {options.tree};
  if (options.check_only) {
    std::vector<generate::PassFile> files;
    for (const std::string& path : {generate::PassPath(request.key),
                                    generate::TestPath(api, request.key)}) {
      LAMINA_ASSIGN(std::string text,
                    ReadAll((fs::path(folder) / path).string(), 8 << 20));
      files.push_back({path, std::move(text)});
    }
    std::error_code error;
    for (fs::directory_iterator it(fs::path(folder) / "fallback", error), end;
         !error && it != end; it.increment(error)) {
      LAMINA_ASSIGN(std::string text, ReadAll(it->path().string(), 8 << 20));
      files.push_back(
          {"fallback/" + it->path().filename().string(), std::move(text)});
    }
    generate::WrittenPass pass;
    pass.checks = generate::CheckPass(request, files, {});
    for (const generate::CheckAnswer& check : pass.checks)
      pass.failed += check.answer == "fail";
    document.result = generate::PassTables(pass);
    Answer answer(std::move(document));
    answer.failed = pass.failed > 0;
    return answer;
  }
  std::optional<GraphInput> input;
  if (!options.dump.empty()) {
    LAMINA_ASSIGN(
        input, OpenGraph(options.dump, options.section, asker, options.parse));
    request.graph = input->graph;
    request.dump = input->FileName();
    document.inputs.push_back(input->path);
  }
  if (rule != nullptr) {
    request.rule = *rule;
  } else {
    if (!input) {
      Error none = UnknownRule(rules, options.name);
      none.hint += "; a candidate needs the dump it was found in (⟨dump⟩)";
      return Fail(std::move(none));
    }
    LAMINA_ASSIGN(request.rule, RuleOfCandidate(options, rules, *input));
    request.mined = true;
  }
  if (!options.kernel.empty()) {
    LAMINA_TRY(generate::ReplaceBy(request.rule, options.kernel));
  } else if (request.mined) {
    LAMINA_TRY(generate::ReplaceBy(
        request.rule,
        "auto_deploy." +
            (request.key.starts_with("fuse_") ? request.key.substr(5)
                                              : request.key) +
            ".default"));
  }
  LAMINA_ASSIGN(const generate::WrittenPass pass, generate::WritePass(request));
  std::error_code error;
  for (const generate::PassFile& file : pass.files) {
    const fs::path path = fs::path(folder) / file.path;
    if (!options.force && fs::exists(path, error)) {
      return Fail(UsageError(path.string() + " is there already",
                             "⟨force⟩ replaces the files of a pass"));
    }
  }
  for (const generate::PassFile& file : pass.files) {
    const fs::path path = fs::path(folder) / file.path;
    LAMINA_TRY(MakeDirectory(path.parent_path().string()));
    LAMINA_TRY(WriteFile(path.string(), file.text));
  }
  document.result = generate::PassTables(pass);
  Answer answer(std::move(document));
  answer.failed = pass.failed > 0;
  return answer;
}

}  // namespace

Body DescribeGraphPass(Description& args, Asker& asker) {
  auto options = std::make_shared<GraphPassOptions>();
  args.Add("name", options->name,
           "Rule, or a candidate as ⟨graph_candidates()⟩ names it")
      .Required();
  args.Add("--tree", options->tree,
           "Source checkout of TensorRT-LLM that the pass is for; nothing in "
           "it is changed")
      .Required();
  args.Add("--dump", options->dump,
           "Dump that shapes come from, or a folder (its last dump; default: "
           "the examples of the rule)");
  args.Add("--section", options->section,
           "GraphModule to look at (default: the largest)");
  AddDialectOption(args, options->parse.dialect);
  args.Add("--as", options->key,
           "Key of the transform (default: the rule's name)");
  args.Add("--match", options->form,
           "walk or pattern (default: what fits the rule)")
      .OneOf({"walk", "pattern"});
  args.Add("--kernel", options->kernel,
           "Op in place of a match; takes its values, weights and literals in "
           "order");
  args.Add("--assume", options->assume,
           "Ids of guards to take as given that a dump cannot show")
      .SplitAtCommas();
  args.Flag("--force", options->force, "Replace files of an earlier run");
  args.Flag("--check-only", options->check_only,
            "Check the files in the folder of ⟨output⟩ as they are now");
  return [options, &asker] { return RunPass(*options, asker); };
}

}  // namespace lamina::questions
