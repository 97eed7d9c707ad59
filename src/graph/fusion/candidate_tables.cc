// SPDX-License-Identifier: Apache-2.0

#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "graph/fusion/candidates.h"
#include "graph/types.h"
#include "table/row_columns.h"

namespace lamina::fusion {

namespace {

using graph::Graph;
using graph::NodeId;
using graph::Rule;

// A kernel for all words of a form; less is a guess.
constexpr double kSureScore = 0.99;
constexpr double kWorthPercent = 0.5;

// Whether an existing op, or the transform that needs none, was found.
bool IsFound(const Candidate& c) {
  return std::any_of(c.kernels.begin(), c.kernels.end(),
                     [](const FoundKernel& k) { return k.score > 0; });
}

// Compilers that fuse element-wise ops by themselves behind the dump.
bool FusesItself(const Graph& graph) { return !graph.dialect.empty(); }

// The dump or test of another compiler that says what it makes of these ops.
std::string OfItsCompiler(const Graph& graph) {
  return graph.dialect == "mlir" || graph.dialect == "hlo"
             ? "the HLO behind the fusion passes (--xla_dump_to): whether the "
               "compiler puts these ops into one fusion"
             : "Inductor's output code (TORCH_LOGS=output_code): whether one "
               "generated kernel has these ops";
}

void Defer(Candidate& c, std::string settled_by) {
  c.recommendation = "defer";
  c.settled_by = std::move(settled_by);
}

// What would end the doubt about products of one input.
constexpr const char* kMeasureJoined =
    "a measurement of one GEMM of the joined width against the separate ones";

// What would end the doubt about a mined form of AutoDeploy.
std::string Settles(const Candidate& c, bool sure, bool sibling) {
  if (sure) return "a unit test of " + c.kernels[0].op + " against these ops";
  if (sibling) return kMeasureJoined;
  if (!c.measured_ns) return "a trace of a step (⟨trace⟩): what its nodes take";
  return "a trace of another batch size: it takes less than 0.5 % of this step";
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

void JudgeKnown(const Graph& graph, const Rule& rule,
                const graph::TransformLog* log, Candidate& c) {
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
  const std::string op = c.kernels.empty() ? std::string() : c.kernels[0].op;
  if (!IsFound(c)) {
    if (!c.kernels.empty())
      c.weaknesses.push_back(op + ": " +
                             (c.kernels[0].evidence.empty()
                                  ? "not in the built-in table"
                                  : c.kernels[0].evidence));
    Defer(c, "a source tree that defines " + (op.empty() ? rule.name : op) +
                 " (⟨tree⟩)");
  } else if (FusesItself(graph)) {
    c.risks.push_back(
        fmt::format("the rule is made for dumps of AutoDeploy, this one is "
                    "'{}'",
                    graph.dialect));
    Defer(c, "a dump of this model by AutoDeploy in front of " + rule.name);
  } else if (unknowable) {
    Defer(c, "a run with the transform enabled: its count in the log");
  } else if (rule.counting == graph::Counting::kGroup) {
    Defer(c, kMeasureJoined);
  } else {
    c.recommendation = "use_existing_kernel";
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
  const bool own = sure && c.kernels[0].op.starts_with("aten.");
  if (sure && c.risks.empty() && (own || !FusesItself(graph))) {
    c.recommendation = "use_existing_kernel";
  } else if (FusesItself(graph) && !sibling && !own) {
    if (sure)
      c.risks.push_back(c.kernels[0].op +
                        " belongs to TensorRT-LLM, the dump does not");
    Defer(c, OfItsCompiler(graph));
  } else if (!sure && !IsFound(c) && !sibling && worth && c.risks.empty() &&
             c.layers >= min_layers) {
    c.recommendation = "needs_triton_fallback";
  } else {
    Defer(c, Settles(c, sure, sibling));
  }
}

// The tables of `lamina graph candidates`.

namespace {

constexpr size_t kShownAnchors = 4;

std::string Joined(const std::vector<std::string>& words,
                   std::string_view between, size_t most) {
  std::string out;
  for (size_t i = 0; i < words.size() && i < most; ++i) {
    if (i > 0) out += between;
    out += words[i];
  }
  if (words.size() > most)
    out += fmt::format("{}... {} more", between, words.size() - most);
  return out;
}

std::string KernelNames(const Candidate& c) {
  std::string out;
  for (const FoundKernel& kernel : c.kernels)
    out += (out.empty() ? "" : ", ") + kernel.op;
  return out;
}

// The op that is left when all transforms ran; of a search the nearest.
std::string MainKernel(const Candidate& c) {
  if (c.kernels.empty()) return {};
  const FoundKernel* last = &c.kernels.front();
  // Of the ops that one transform leaves behind the first is the usual one.
  for (const FoundKernel& kernel : c.kernels) {
    if (c.rule.empty()) break;
    const size_t at = kernel.evidence.rfind("by ");
    const size_t had = last->evidence.rfind("by ");
    const auto by = [](const std::string& text, size_t from) {
      return from == std::string::npos ? std::string() : text.substr(from);
    };
    if (by(kernel.evidence, at) != by(last->evidence, had)) last = &kernel;
  }
  const std::string& op = last->op;
  return op.substr(op.find('.') + 1);
}

// A bound above what was measured cannot be one: the sizes or the device are
// not those of the trace.
std::optional<Note> MoreThanMeasured(const Candidates& found) {
  std::vector<std::string> names;
  for (const Candidate& c : found.list) {
    if (c.more_than_measured) names.push_back(c.name);
  }
  if (names.empty()) return std::nullopt;
  Note note = MakeNote(
      Severity::kWarning, "more_than_measured",
      fmt::format(
          "At {} the bytes of {} ({}) need longer than the trace measured "
          "for {} nodes: the sizes (⟨bind⟩) or the device (⟨device⟩) are not "
          "those of the trace.",
          found.memory.Text(), Counted(names.size(), "candidate"),
          Joined(names, ", ", 4), names.size() == 1 ? "its" : "their"));
  for (const std::string& name : names)
    note.evidence.push_back({"candidates", "candidate", name, {}});
  return note;
}

struct CandidateRow {
  size_t rank;
  std::string_view candidate, kind;
  size_t occurrences;
  std::string_view layers;
  std::optional<int64_t> saving;
  std::string_view claim;
  std::optional<double> percent_of_step;
  std::string kernel;
  std::optional<int64_t> net;
  std::string_view recommendation, in_log;
  std::string kernels;
  int64_t launches_saved, bytes_saved;
  double launches_saved_per_layer, bytes_saved_per_layer;
  std::optional<int64_t> measured, saving_per_layer;
  std::string_view lookup, match, rule, contains;
  std::string anchors;
  uint32_t line;
  std::string strengths, weaknesses, risks;
  std::string_view settled_by;
  std::string_view pattern;
};

struct KernelRow {
  std::string_view candidate, op;
  double score;
  std::string_view fit, why_not;
  std::string evidence;
  std::string_view test;
};

struct PlaceRow {
  std::string_view candidate, layer, nodes;
  std::optional<int64_t> measured;
  uint32_t line;
};

struct OverlapRow {
  std::string_view a, b;
  size_t shared_places;
  std::optional<int64_t> saving;
};

}  // namespace

ResultSet CandidateTables(const Candidates& found, const std::string& file,
                          size_t top) {
  ResultSet out;
  const RowColumns<CandidateRow> columns{
      "candidates",
      "What could be fused, the best first: what transforms exist for, then "
      "those that are switched off, then what was found by search.",
      {{"rank", ColumnType::kInt, "From 1.", &CandidateRow::rank},
       {"candidate", ColumnType::kText, "Short name.",
        &CandidateRow::candidate},
       {"kind", ColumnType::kText, "Kind of the subgraph.", &CandidateRow::kind,
        Shown::kHidden},
       {"occurrences", ColumnType::kInt, "Places of the graph.",
        &CandidateRow::occurrences},
       {"layers", ColumnType::kText, "Layers that hold them.",
        &CandidateRow::layers, Shown::kHidden},
       {"saving_us", ColumnType::kTime, "Time that a step can save at most.",
        &CandidateRow::saving},
       {"claim", ColumnType::kText,
        "What the saving is. estimate: launches and bytes only; bound: "
        "measured time less what the fused kernel needs at least; unsure: a "
        "bound by a trace that does not fit well; none, with the rule that "
        "it makes possible; unknown, and why.",
        &CandidateRow::claim},
       {"percent_of_step", ColumnType::kReal, "Of the time of a step.",
        &CandidateRow::percent_of_step, Shown::kPercent},
       {"kernel", ColumnType::kText,
        "Existing op: the last that transforms put in place, or the one "
        "that computes this.",
        &CandidateRow::kernel},
       {"net_us", ColumnType::kTime,
        "Saving beyond the candidates in front, of places that share no node "
        "with theirs.",
        &CandidateRow::net, Shown::kHidden},
       {"recommendation", ColumnType::kText,
        "use_existing_kernel, needs_triton_fallback or defer.",
        &CandidateRow::recommendation},
       {"in_log", ColumnType::kText, "What the log says of the transform.",
        &CandidateRow::in_log},
       {"kernels", ColumnType::kText, "Existing ops, the next one first.",
        &CandidateRow::kernels, Shown::kHidden},
       {"launches_saved", ColumnType::kInt, "Per step.",
        &CandidateRow::launches_saved, Shown::kHidden},
       {"bytes_saved", ColumnType::kInt, "Per step.",
        &CandidateRow::bytes_saved, Shown::kHidden},
       {"launches_saved_per_layer", ColumnType::kReal,
        "Of the layers that hold it.", &CandidateRow::launches_saved_per_layer,
        Shown::kHidden},
       {"bytes_saved_per_layer", ColumnType::kReal,
        "Of the layers that hold it.", &CandidateRow::bytes_saved_per_layer,
        Shown::kHidden},
       {"measured_us", ColumnType::kTime,
        "Kernel time of its nodes per step; empty without a trace.",
        &CandidateRow::measured, Shown::kHidden},
       {"saving_per_layer_us", ColumnType::kTime,
        "Saving of a step by its layers.", &CandidateRow::saving_per_layer,
        Shown::kHidden},
       {"lookup", ColumnType::kText, "found or not_found.",
        &CandidateRow::lookup, Shown::kHidden},
       {"match", ColumnType::kText,
        "sure, or possible: a condition that a dump cannot show.",
        &CandidateRow::match, Shown::kHidden},
       {"rule", ColumnType::kText, "Known rule.", &CandidateRow::rule,
        Shown::kHidden},
       {"contains", ColumnType::kText, "Known rules it goes beyond.",
        &CandidateRow::contains, Shown::kHidden},
       {"anchors", ColumnType::kText, "Last nodes.", &CandidateRow::anchors,
        Shown::kHidden},
       {"line", ColumnType::kInt, "Line of the first place in the dump.",
        &CandidateRow::line, Shown::kHidden},
       {"strengths", ColumnType::kText, "In favour.", &CandidateRow::strengths,
        Shown::kHidden},
       {"weaknesses", ColumnType::kText, "Against.", &CandidateRow::weaknesses,
        Shown::kHidden},
       {"risks", ColumnType::kText, "What may go wrong.", &CandidateRow::risks,
        Shown::kHidden},
       {"settled_by", ColumnType::kText,
        "Of defer: the dump or test that would settle it.",
        &CandidateRow::settled_by, Shown::kHidden},
       {"pattern", ColumnType::kText, "First place as a pattern.",
        &CandidateRow::pattern, Shown::kHidden}}};
  Table table(columns.schema());
  const RowColumns<KernelRow> kernel_columns{
      "candidate_kernels",
      "Existing ops of each candidate, with evidence.",
      {{"candidate", ColumnType::kText, "Candidate.", &KernelRow::candidate},
       {"op", ColumnType::kText, "Op.", &KernelRow::op},
       {"score", ColumnType::kReal,
        "1: it computes this, 0: it does not or nobody knows.",
        &KernelRow::score},
       {"fit", ColumnType::kText,
        "equal; layout: the same on operands in another form; "
        "part: some of the steps; conflict: something else; "
        "unknown: what it computes is not known.",
        &KernelRow::fit},
       {"why_not", ColumnType::kText, "What speaks against it.",
        &KernelRow::why_not},
       {"evidence", ColumnType::kText, "Where it is defined.",
        &KernelRow::evidence},
       {"test", ColumnType::kText, "A test of it.", &KernelRow::test}}};
  Table kernels(kernel_columns.schema());
  const RowColumns<PlaceRow> place_columns{
      "candidate_places",
      "Where each candidate stands.",
      {{"candidate", ColumnType::kText, "Candidate.", &PlaceRow::candidate},
       {"layer", ColumnType::kText, "Layer of the last node.",
        &PlaceRow::layer},
       {"nodes", ColumnType::kText, "Its nodes, in order.", &PlaceRow::nodes},
       {"measured_us", ColumnType::kTime,
        "Kernel time of them per step; empty without a trace.",
        &PlaceRow::measured},
       {"line", ColumnType::kInt, "Line of the first one in the dump.",
        &PlaceRow::line}}};
  Table places(place_columns.schema());
  size_t rank = 0;
  for (const Candidate& c : found.list) {
    if (++rank > top) break;
    for (const CandidatePlace& place : c.places) {
      place_columns.Add(places, {.candidate = c.name,
                                 .layer = place.layer,
                                 .nodes = place.nodes,
                                 .measured = place.measured_ns,
                                 .line = place.line});
    }
    const double layers = static_cast<double>(std::max<size_t>(c.layers, 1));
    std::optional<int64_t> per_layer;
    if (c.saving_ns)
      per_layer =
          *c.saving_ns / static_cast<int64_t>(std::max<size_t>(c.layers, 1));
    columns.Add(
        table,
        {.rank = rank,
         .candidate = c.name,
         .kind = c.kind,
         .occurrences = c.occurrences,
         .layers = c.layer_names,
         .saving = c.saving_ns,
         .claim = c.claim,
         .percent_of_step = c.percent_of_step,
         .kernel = MainKernel(c),
         .net = c.net_ns,
         .recommendation = c.recommendation,
         .in_log = c.in_log,
         .kernels = KernelNames(c),
         .launches_saved = c.launches,
         .bytes_saved = c.bytes,
         .launches_saved_per_layer = static_cast<double>(c.launches) / layers,
         .bytes_saved_per_layer = static_cast<double>(c.bytes) / layers,
         .measured = c.measured_ns,
         .saving_per_layer = per_layer,
         .lookup = IsFound(c) ? "found" : "not_found",
         .match = c.possible ? "possible" : "sure",
         .rule = c.rule,
         .contains = c.contains,
         .anchors = Joined(c.anchors, " ", kShownAnchors),
         .line = c.first_line,
         .strengths = Joined(c.strengths, "; ", 99),
         .weaknesses = Joined(c.weaknesses, "; ", 99),
         .risks = Joined(c.risks, "; ", 99),
         .settled_by = c.settled_by,
         .pattern = c.pattern});
    for (const auto* const some : {&c.kernels, &c.not_fitting}) {
      for (const FoundKernel& kernel : *some) {
        kernel_columns.Add(
            kernels, {.candidate = c.name,
                      .op = kernel.op,
                      .score = kernel.score,
                      .fit = Name(kernel.fit),
                      .why_not = kernel.why_not,
                      .evidence = kernel.evidence.empty() ? "not found"
                                                          : kernel.evidence,
                      .test = kernel.tests});
      }
    }
  }
  (void)file;
  const RowColumns<OverlapRow> overlap_columns{
      "candidate_overlaps",
      "Candidates that share nodes: their savings cannot be added.",
      {{"a", ColumnType::kText, "The one in front.", &OverlapRow::a},
       {"b", ColumnType::kText, "The other.", &OverlapRow::b},
       {"shared_places", ColumnType::kInt, "Places of b with nodes of a.",
        &OverlapRow::shared_places},
       {"saving_us", ColumnType::kTime,
        "Of both together: all of a, and b where it is apart.",
        &OverlapRow::saving}}};
  Table overlaps(overlap_columns.schema());
  for (const Overlap& overlap : found.overlaps) {
    if (overlap.b >= top) continue;
    overlap_columns.Add(overlaps, {.a = found.list[overlap.a].name,
                                   .b = found.list[overlap.b].name,
                                   .shared_places = overlap.shared_places,
                                   .saving = overlap.saving_ns});
  }
  if (!found.overlaps.empty()) {
    int64_t sum = 0;
    int64_t net = 0;
    for (const Candidate& c : found.list) {
      sum += c.saving_ns.value_or(0);
      net += c.net_ns.value_or(0);
    }
    out.notes.push_back(MakeNote(
        Severity::kInfo, "overlaps",
        fmt::format("Candidates share nodes: taken in this order they save at "
                    "most {} together, not the sum {} of the column.",
                    HumanTime(net), HumanTime(sum))));
  }
  out.tables.push_back(std::move(table));
  out.tables.push_back(std::move(places));
  out.tables.push_back(std::move(kernels));
  out.tables.push_back(std::move(overlaps));
  if (found.list.size() > top) {
    out.notes.push_back(
        MakeNote(Severity::kInfo, "more_candidates",
                 fmt::format("{} more candidates; ⟨top⟩ N lists them.",
                             found.list.size() - top)));
  }
  if (found.bounded) {
    out.notes.push_back(
        MakeNote(Severity::kWarning, "search_bounded",
                 "The search reached its bound: candidates may be missing."));
  }
  if (auto note = MoreThanMeasured(found))
    out.notes.push_back(*std::move(note));
  std::string text =
      found.measured
          ? "Savings are bounds: measured kernel time less what a fused kernel "
            "needs at least at " +
                found.memory.Text()
          : fmt::format(
                "Savings are estimates with {} us per launch and {}; a step is "
                "estimated at {}",
                FormatDouble(static_cast<double>(kLaunchNs) / 1000),
                found.memory.Text(), HumanTime(found.step_ns));
  if (!found.assumed.empty()) text += ", for " + Joined(found.assumed, ", ", 8);
  out.notes.push_back(MakeNote(Severity::kInfo, "claim", text + "."));
  if (!found.no_rules_for.empty()) {
    out.notes.push_back(MakeNote(
        Severity::kInfo, "not_applicable",
        "Known rules are written in ops of PyTorch and were not asked of a "
        "graph in '" +
            found.no_rules_for + "'; what is listed are forms that repeat."));
  }
  if (found.keywords_dropped) {
    out.notes.push_back(MakeNote(
        Severity::kInfo, "keywords",
        "Dumps drop keyword arguments: an edge or an option may be missing."));
  }
  return out;
}

std::string CandidateMarkdown(const Candidates& found, const std::string& file,
                              size_t top) {
  std::string out;
  size_t rank = 0;
  for (const Candidate& c : found.list) {
    if (++rank > top) break;
    if (rank > 1) out += "\n";
    out += fmt::format("Candidate: {}\n", c.name);
    out += "Affected graph pattern:\n```\n" + c.pattern + "\n```\n";
    out += fmt::format("{} places{}{}\n", c.occurrences,
                       c.layer_names.empty() ? "" : ", layers ", c.layer_names);
    out += fmt::format("Existing kernel lookup: {}\n",
                       IsFound(c) ? "found" : "not_found");
    out += "Evidence:\n";
    for (const FoundKernel& kernel : c.kernels) {
      out +=
          fmt::format("- {}: {}{}\n", kernel.op,
                      kernel.evidence.empty() ? "not found" : kernel.evidence,
                      kernel.tests.empty() ? "" : ", test " + kernel.tests);
    }
    for (const FoundKernel& kernel : c.not_fitting)
      out += fmt::format("- not {}: {}\n", kernel.op, kernel.why_not);
    out += fmt::format("- {}:{}: %{}\n", EscapeTerminal(file), c.first_line,
                       Joined(c.anchors, ", %", kShownAnchors));
    if (!c.in_log.empty()) out += fmt::format("- log: {}\n", c.in_log);
    out += fmt::format("Recommendation: {}\n", c.recommendation);
    out += "Strengths / weaknesses / risks:\n";
    const auto list = [&](std::string_view what,
                          const std::vector<std::string>& lines) {
      for (const std::string& line : lines)
        out += fmt::format("- {}: {}\n", what, line);
    };
    list("strength", c.strengths);
    out += fmt::format("- {}: {} launches and {} fewer per step\n",
                       c.launches > 0 || c.bytes > 0 ? "strength" : "weakness",
                       c.launches, HumanBytes(static_cast<double>(c.bytes)));
    if (c.saving_ns) {
      out += fmt::format(
          "- strength: at most {} per step{}, {}\n", HumanTime(*c.saving_ns),
          c.percent_of_step
              ? fmt::format(" ({:.1f} % of it)", *c.percent_of_step)
              : "",
          c.claim);
    } else {
      out += fmt::format("- weakness: saving {}\n", c.claim);
    }
    list("weakness", c.weaknesses);
    list("risk", c.risks);
    if (!c.settled_by.empty())
      out += fmt::format("- settled by: {}\n", c.settled_by);
  }
  return out;
}

}  // namespace lamina::fusion
