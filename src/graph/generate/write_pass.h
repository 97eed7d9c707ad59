// SPDX-License-Identifier: Apache-2.0
//
// An AutoDeploy pass from a rule: the transform, its tests, the entry of the
// configuration, a note, and what checks say of them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/fusion/kernel_lookup.h"
#include "graph/generate/python_text.h"
#include "graph/generate/tree_api.h"
#include "graph/graph.h"
#include "graph/pattern/rule.h"
#include "lamina/result.h"

namespace lamina::generate {

enum class Form : uint8_t { kChoose, kWalk, kPattern };

struct PassRequest {
  graph::Rule rule;
  bool mined = false;  // the rule was made from a candidate
  std::string key;
  const graph::Graph* graph = nullptr;  // may be null: the rule's examples
  std::string dump;                     // what to call it
  const TreeApi* api = nullptr;
  const fusion::SourceIndex* index = nullptr;
  const Templates* templates = nullptr;
  Form form = Form::kChoose;
  // Ids of guards that a dump cannot show and that the user vouches for.
  std::set<std::string> assume;
};

struct PassFile {
  std::string path;  // below the output folder
  std::string text;
};

struct CheckAnswer {
  std::string check;
  std::string answer;  // pass, fail, or not run
  std::string evidence;
};

struct WrittenPass {
  std::vector<PassFile> files;
  std::vector<CheckAnswer> checks;
  std::vector<std::string> notes;
  std::string form;
  std::string path;  // existing_kernel_path, triton_fallback_path, other
  size_t places = 0;
  size_t failed = 0;
};

// Errors (usage): the rule cannot be written as a pass, the key is taken, the
// stage is not one of the tree, nothing matches.
Result<WrittenPass> WritePass(const PassRequest& request);

// Checks files of a pass as they are: text by lamina, the rest by python3
// where there is one. `tests` are names that the test file must have.
std::vector<CheckAnswer> CheckPass(const PassRequest& request,
                                   const std::vector<PassFile>& files,
                                   const std::vector<std::string>& tests);

// A rule with one op in place of the nodes; its guards are what these places
// have in common. `places` are nodes of equal form in order of the graph.
Result<graph::Rule> RuleOfPlaces(
    const graph::Graph& graph,
    const std::vector<std::vector<graph::NodeId>>& places,
    const std::string& name, const std::string& title);

// Puts `op` in place of each form of the rule, with all values, weights and
// literals in order of their first use as operands.
Status ReplaceBy(graph::Rule& rule, std::string_view op);

// `pass_files` and `pass_checks`, with the notes.
ResultSet PassTables(const WrittenPass& pass);

// Where the pass and its test stand below the output folder.
std::string PassPath(std::string_view key);
std::string TestPath(const TreeApi& api, std::string_view key);

}  // namespace lamina::generate
