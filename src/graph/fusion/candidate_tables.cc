// SPDX-License-Identifier: Apache-2.0
//
// The tables of `lamina graph candidates`.
#include <algorithm>
#include <fmt/format.h>

#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "graph/fusion/candidates.h"

namespace lamina::fusion {
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

bool IsFound(const Candidate& c) {
  return std::any_of(c.kernels.begin(), c.kernels.end(),
                     [](const FoundKernel& k) { return k.score > 0; });
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
          "for {} nodes: the sizes (--bind) or the device (--device) are not "
          "those of the trace.",
          found.memory.Text(), Counted(names.size(), "candidate"),
          Joined(names, ", ", 4), names.size() == 1 ? "its" : "their"));
  for (const std::string& name : names)
    note.evidence.push_back({"candidates", "candidate", name, {}});
  return note;
}

}  // namespace

ResultSet CandidateTables(const Candidates& found, const std::string& file,
                          size_t top) {
  ResultSet out;
  Table table(
      {"candidates",
       "What could be fused, the best first: what transforms exist for, then "
       "those that are switched off, then what was found by search.",
       {{"rank", ColumnType::kInt, "From 1."},
        {"candidate", ColumnType::kText, "Short name."},
        {"kind", ColumnType::kText, "Kind of the subgraph.", Shown::kHidden},
        {"occurrences", ColumnType::kInt, "Places of the graph."},
        {"layers", ColumnType::kText, "Layers that hold them.", Shown::kHidden},
        {"saving_us", ColumnType::kTime, "Time that a step can save at most."},
        {"claim", ColumnType::kText,
         "What the saving is. estimate: launches and bytes only; bound: "
         "measured time less what the fused kernel needs at least; unsure: a "
         "bound by a trace that does not fit well; none, with the rule that "
         "it makes possible; unknown, and why."},
        {"percent_of_step", ColumnType::kReal, "Of the time of a step.",
         Shown::kPercent},
        {"kernel", ColumnType::kText,
         "Existing op: the last that transforms put in place, or the one "
         "that computes this."},
        {"net_us", ColumnType::kTime,
         "Saving beyond the candidates in front, of places that share no node "
         "with theirs.",
         Shown::kHidden},
        {"recommendation", ColumnType::kText,
         "use_existing_kernel, needs_triton_fallback or defer."},
        {"in_log", ColumnType::kText, "What the log says of the transform."},
        {"kernels", ColumnType::kText, "Existing ops, the next one first.",
         Shown::kHidden},
        {"launches_saved", ColumnType::kInt, "Per step.", Shown::kHidden},
        {"bytes_saved", ColumnType::kInt, "Per step.", Shown::kHidden},
        {"launches_saved_per_layer", ColumnType::kReal,
         "Of the layers that hold it.", Shown::kHidden},
        {"bytes_saved_per_layer", ColumnType::kReal,
         "Of the layers that hold it.", Shown::kHidden},
        {"measured_us", ColumnType::kTime,
         "Kernel time of its nodes per step; empty without a trace.",
         Shown::kHidden},
        {"saving_per_layer_us", ColumnType::kTime,
         "Saving of a step by its layers.", Shown::kHidden},
        {"lookup", ColumnType::kText, "found or not_found.", Shown::kHidden},
        {"match", ColumnType::kText,
         "sure, or possible: a condition that a dump cannot show.",
         Shown::kHidden},
        {"rule", ColumnType::kText, "Known rule.", Shown::kHidden},
        {"contains", ColumnType::kText, "Known rules it goes beyond.",
         Shown::kHidden},
        {"anchors", ColumnType::kText, "Last nodes.", Shown::kHidden},
        {"line", ColumnType::kInt, "Line of the first place in the dump.",
         Shown::kHidden},
        {"strengths", ColumnType::kText, "In favour.", Shown::kHidden},
        {"weaknesses", ColumnType::kText, "Against.", Shown::kHidden},
        {"risks", ColumnType::kText, "What may go wrong.", Shown::kHidden},
        {"pattern", ColumnType::kText, "First place as a pattern.",
         Shown::kHidden}}});
  Table kernels({"candidate_kernels",
                 "Existing ops of each candidate, with evidence.",
                 {{"candidate", ColumnType::kText, "Candidate."},
                  {"op", ColumnType::kText, "Op."},
                  {"score", ColumnType::kReal,
                   "1: it computes this, 0: it does not or nobody knows."},
                  {"fit", ColumnType::kText,
                   "equal; layout: the same on operands in another form; "
                   "part: some of the steps; conflict: something else; "
                   "unknown: what it computes is not known."},
                  {"why_not", ColumnType::kText, "What speaks against it."},
                  {"evidence", ColumnType::kText, "Where it is defined."},
                  {"test", ColumnType::kText, "A test of it."}}});
  Table places(
      {"candidate_places",
       "Where each candidate stands.",
       {{"candidate", ColumnType::kText, "Candidate."},
        {"layer", ColumnType::kText, "Layer of the last node."},
        {"nodes", ColumnType::kText, "Its nodes, in order."},
        {"measured_us", ColumnType::kTime,
         "Kernel time of them per step; empty without a trace."},
        {"line", ColumnType::kInt, "Line of the first one in the dump."}}});
  size_t rank = 0;
  for (const Candidate& c : found.list) {
    if (++rank > top) break;
    for (const CandidatePlace& place : c.places) {
      places.Add(c.name, place.layer, place.nodes, place.measured_ns,
                 place.line);
    }
    const double layers = static_cast<double>(std::max<size_t>(c.layers, 1));
    std::optional<int64_t> per_layer;
    if (c.saving_ns)
      per_layer =
          *c.saving_ns / static_cast<int64_t>(std::max<size_t>(c.layers, 1));
    table.Add(rank, c.name, c.kind, c.occurrences, c.layer_names, c.saving_ns,
              c.claim, c.percent_of_step, MainKernel(c), c.net_ns,
              c.recommendation, c.in_log, KernelNames(c), c.launches, c.bytes,
              static_cast<double>(c.launches) / layers,
              static_cast<double>(c.bytes) / layers, c.measured_ns, per_layer,
              IsFound(c) ? "found" : "not_found",
              c.possible ? "possible" : "sure", c.rule, c.contains,
              Joined(c.anchors, " ", kShownAnchors), c.first_line,
              Joined(c.strengths, "; ", 99), Joined(c.weaknesses, "; ", 99),
              Joined(c.risks, "; ", 99), c.pattern);
    for (const auto* const some : {&c.kernels, &c.not_fitting}) {
      for (const FoundKernel& kernel : *some) {
        kernels.Add(c.name, kernel.op, kernel.score, Name(kernel.fit),
                    kernel.why_not,
                    kernel.evidence.empty() ? "not found" : kernel.evidence,
                    kernel.tests);
      }
    }
  }
  (void)file;
  Table overlaps(
      {"candidate_overlaps",
       "Candidates that share nodes: their savings cannot be added.",
       {{"a", ColumnType::kText, "The one in front."},
        {"b", ColumnType::kText, "The other."},
        {"shared_places", ColumnType::kInt, "Places of b with nodes of a."},
        {"saving_us", ColumnType::kTime,
         "Of both together: all of a, and b where it is apart."}}});
  for (const Overlap& overlap : found.overlaps) {
    if (overlap.b >= top) continue;
    overlaps.Add(found.list[overlap.a].name, found.list[overlap.b].name,
                 overlap.shared_places, overlap.saving_ns);
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
                 fmt::format("{} more candidates; --top N lists them.",
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
  out.notes.push_back(MakeNote(
      Severity::kInfo, "keywords",
      "Dumps drop keyword arguments: an edge or an option may be missing."));
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
    out += "Affected graph pattern:\n\n```\n" + c.pattern + "\n```\n\n";
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
    out += "Worth:\n";
    out += fmt::format("- {} launches and {} fewer per step\n", c.launches,
                       HumanBytes(static_cast<double>(c.bytes)));
    if (c.saving_ns) {
      out += fmt::format("- at most {} per step", HumanTime(*c.saving_ns));
      if (c.percent_of_step)
        out += fmt::format(" ({:.1f} % of it)", *c.percent_of_step);
      out += fmt::format(", {}\n", c.claim);
    } else {
      out += fmt::format("- saving {}\n", c.claim);
    }
    const auto list = [&](std::string_view title,
                          const std::vector<std::string>& lines) {
      if (lines.empty()) return;
      out += fmt::format("{}:\n", title);
      for (const std::string& line : lines) out += fmt::format("- {}\n", line);
    };
    list("Strengths", c.strengths);
    list("Weaknesses", c.weaknesses);
    list("Risks", c.risks);
  }
  return out;
}

}  // namespace lamina::fusion
