// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/judgement.h"

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>
#include <set>

#include "base/decimal.h"
#include "graph/target.h"

namespace lamina::fusion {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::Rule;

// A kernel for all words of a form; less is a guess.
constexpr double kSureScore = 0.99;
constexpr double kWorthPercent = 0.5;

// What would end the doubt.
std::string Settles(const Candidate& c, bool sure, bool worth) {
  if (!sure && !worth && !c.measured_ns)
    return "worth little by the estimate; a trace of a step would settle it";
  if (!sure && !worth) return "worth less than 0.5 % of the step";
  if (sure)
    return "a unit test of " + c.kernels[0].op +
           " against these ops would settle it";
  return "a trace of a step with kernels on nodes would settle it";
}

// What the ops of a form make doubtful.
void AddRisks(const Graph& graph, const Form& form, Candidate& c) {
  const std::vector<NodeId>& nodes = form.occurrences[0];
  if (form.kind == FormKind::kSiblings) return;
  const absl::flat_hash_set<NodeId> inside(nodes.begin(), nodes.end());
  size_t outputs = 0;
  bool mixed = false;
  bool keyword = false;
  bool symbolic = false;
  std::set<std::string_view> dtypes;
  for (const NodeId id : nodes) {
    const std::string_view op = graph.op(id);
    const graph::ResultText result = graph::SplitResult(graph[id].result);
    if (graph::DTypeBytes(result.dtype)) dtypes.insert(result.dtype);
    bool in = false;
    bool out = false;
    graph.ForEachUse(id, [&](graph::OperandId, const graph::Operand& use) {
      (inside.contains(use.owner()) ? in : out) = true;
    });
    outputs += out;
    mixed |= in && out;
    keyword |= graph::MatchesTarget(op, "aten.gelu");
    const bool reduces = graph::MatchesTarget(op, "aten.mean") ||
                         graph::MatchesTarget(op, "aten.sum") ||
                         graph::MatchesTarget(op, "aten.softmax");
    const std::vector<NodeId> inputs = graph.Inputs(id);
    if (reduces && !inputs.empty()) {
      const auto dims =
          graph::SplitShape(graph::SplitResult(graph[inputs[0]].result).shape);
      symbolic |= dims && !dims->empty() && !ParseInt(dims->back());
    }
  }
  if (dtypes.size() > 1)
    c.weaknesses.emplace_back("the element type changes inside");
  if (outputs > 1)
    c.weaknesses.push_back(fmt::format("{} results leave it", outputs));
  if (mixed) c.weaknesses.emplace_back("a value is used inside and outside");
  if (symbolic) c.risks.emplace_back("reduces over a symbolic dimension");
  if (keyword) c.risks.emplace_back("an op has a keyword that the dump drops");
}

}  // namespace

bool IsSwitchedOff(const Candidate& c) {
  return c.in_log.starts_with("disabled") || c.in_log == "off by default";
}

void JudgeKnown(const Rule& rule, const graph::TransformLog* log,
                Candidate& c) {
  c.in_log =
      rule.default_state == graph::DefaultState::kOff ? "off by default" : "";
  if (log != nullptr) {
    const graph::LogEntry* const entry = log->Find(rule.name);
    if (entry != nullptr) {
      c.in_log = entry->status == graph::TransformStatus::kApplied
                     ? fmt::format("{} matches", entry->matches.value_or(0))
                     : std::string(graph::Name(entry->status)) + " in the log";
    }
  }
  c.strengths.push_back("the transform exists: " + rule.name + " (" +
                        rule.source + ")");
  if (!rule.saves.empty()) c.strengths.push_back("saves " + rule.saves);
  if (!rule.limits.empty()) c.weaknesses.push_back(rule.limits);
  if (IsSwitchedOff(c)) c.weaknesses.push_back(c.in_log + ": enable it to try");
  if (rule.counting == graph::Counting::kGroup)
    c.weaknesses.emplace_back("what a larger GEMM saves needs a measurement");
  if (rule.hides_data_flow)
    c.risks.emplace_back("data flow moves into metadata");
  bool unknowable = false;
  for (const graph::Guard& guard : rule.guards) {
    if (guard.visible == graph::Guard::Visible::kDump) continue;
    if (guard.visible == graph::Guard::Visible::kConfig) continue;
    unknowable = true;
    c.risks.push_back(fmt::format("guard '{}' ({}): {}", guard.id,
                                  graph::Name(guard.visible), guard.text));
  }
  if (unknowable) {
    c.recommendation = "defer";
    c.risks.emplace_back(
        "a run with the transform enabled would settle it: its count in the "
        "log");
  } else {
    c.recommendation = "use_existing_kernel";
  }
  if (!c.kernels.empty() && c.kernels[0].score == 0 &&
      c.kernels[0].evidence.starts_with("not_found")) {
    c.weaknesses.push_back(c.kernels[0].op + ": " + c.kernels[0].evidence);
    c.recommendation = "defer";
  }
}

void JudgeMined(const Graph& graph, const Form& form, size_t min_layers,
                Candidate& c) {
  AddRisks(graph, form, c);
  const bool sure = !c.kernels.empty() && c.kernels[0].score >= kSureScore;
  const bool sibling = form.kind == FormKind::kSiblings;
  c.strengths.push_back(
      fmt::format("occurs {} times in {} layers", c.occurrences, c.layers));
  if (c.launches > 0)
    c.strengths.push_back(
        fmt::format("{} launches fewer per step", c.launches));
  if (!c.contains.empty())
    c.strengths.push_back("extends what " + c.contains + " matches");
  if (sibling)
    c.weaknesses.emplace_back("what a larger GEMM saves needs a measurement");
  if (sure && c.kernels[0].fit == Fit::kLayout)
    c.risks.push_back(c.kernels[0].op + ": " + c.kernels[0].why_not);
  if (c.kernels.empty()) {
    c.weaknesses.emplace_back("no known op computes this");
    for (const FoundKernel& other : c.not_fitting) {
      if (other.fit == Fit::kPart)
        c.weaknesses.push_back(other.op + ": " + other.why_not);
      if (other.fit == Fit::kUnknown) {
        c.risks.push_back("what " + other.op + " computes is not known");
      }
    }
  }
  const bool worth = c.percent_of_step.value_or(0) > kWorthPercent;
  if (sure && c.risks.empty()) {
    c.recommendation = "use_existing_kernel";
  } else if (!sure && !sibling && worth && c.risks.empty() &&
             c.layers >= min_layers) {
    c.recommendation = "needs_triton_fallback";
  } else {
    c.recommendation = "defer";
    c.risks.push_back(Settles(c, sure, worth));
  }
}

}  // namespace lamina::fusion
