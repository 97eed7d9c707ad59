// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/rewrite_report.h"

#include <absl/strings/str_join.h>
#include <algorithm>
#include <fmt/format.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "graph/layers/layers.h"
#include "graph/print.h"
#include "table/row_columns.h"

namespace lamina::fusion {
namespace {

// Lines of one place that the page shows.
constexpr size_t kShownLines = 24;
constexpr size_t kShownPlaces = 200;
constexpr size_t kShownBytes = 400;

// Cut behind an operand.
std::string Shortened(const std::string& line) {
  if (line.size() <= kShownBytes) return line;
  const size_t comma = line.rfind(", ", kShownBytes);
  return line.substr(0, comma == std::string::npos ? kShownBytes : comma + 1) +
         " ...";
}

struct StepRow {
  int64_t number;
  std::string_view stage, transform, status;
  std::optional<int64_t> matches;
  size_t left, ops;
  std::optional<int64_t> kernels_saved;
  std::optional<double> bytes_saved;
  std::optional<int64_t> estimate;
  std::string_view note, file;
};

struct OpRow {
  std::string_view transform, op;
  int64_t change;
};

}  // namespace

RewriteReport::RewriteReport(const OpTable& ops, const graph::DumpFile& file,
                             const graph::PipelineConfig& config,
                             const graph::PassRegistry& registry,
                             const graph::GroupRules& groups, Memory memory)
    : ops_(ops),
      file_(file),
      config_(config),
      registry_(registry),
      groups_(groups),
      memory_(std::move(memory)) {}

RewriteReport::State RewriteReport::Look(const graph::Dump& dump,
                                         std::string_view text) {
  State out;
  size_t number = 1;  // of the line at the front of `text`
  for (size_t g = 0; g < dump.graphs.size(); ++g) {
    const graph::Graph& graph = dump.graphs[g];
    const graph::Layers layers = graph::FindLayers(graph, groups_);
    std::vector<graph::NodeId> nodes;
    for (const graph::NodeId id : graph.nodes()) {
      Line line;
      graph::AppendNode(line.text, graph, id);
      const size_t at = text.find(line.text);
      if (at != std::string_view::npos) {
        number += static_cast<size_t>(
            std::count(text.begin(), text.begin() + at, '\n'));
        text.remove_prefix(at);
        line.number = number;
      }
      line.layer = layers.NameOf(layers.PlaceOf(id));
      out.lines.try_emplace(std::pair(g, std::string(graph[id].name)),
                            std::move(line));
      if (graph[id].kind != graph::NodeKind::kOp) continue;
      nodes.push_back(id);
      ++out.ops[std::string(graph.op(id))];
    }
    std::vector<std::string> assumed;
    const graph::Bindings bindings = ReferenceBindings(graph, {}, &assumed);
    if (assumed_.empty()) assumed_ = assumed;
    const Traffic traffic = Separate(graph, ops_, nodes, bindings);
    out.traffic.kernels += traffic.kernels;
    out.traffic.read_bytes += traffic.read_bytes;
    out.traffic.written_bytes += traffic.written_bytes;
    out.traffic.unknown += traffic.unknown;
  }
  return out;
}

void RewriteReport::Begin(const graph::Dump& dump) {
  now_ = Look(dump, graph::Print(dump));
}

// What was replaced, by the lines of the dumps in front of the transform and
// behind it. What came and is gone again is in neither.
void RewriteReport::AddPlaces(const State& next, Step& step) const {
  using Lines = decltype(State::lines);
  const auto find = [](const Lines& lines, size_t graph,
                       const std::vector<std::string>& names) {
    std::vector<const Lines::value_type*> out;
    for (const std::string& name : names) {
      const auto found = lines.find({graph, name});
      if (found != lines.end()) out.push_back(&*found);
    }
    std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) {
      return a->second.number < b->second.number;
    });
    return out;
  };
  for (const graph::Replacement& place : step.pass.places) {
    const auto removed = find(now_.lines, place.graph, place.removed);
    const auto added = find(next.lines, place.graph, place.added);
    Change change;
    change.removed = removed.size();
    change.added = added.size();
    if (!removed.empty()) {
      change.line_before = removed[0]->second.number;
      change.anchor = removed.back()->first.second;
      change.layer = removed.back()->second.layer;
    }
    if (!added.empty()) change.line_after = added[0]->second.number;
    step.places.push_back(std::move(change));
    if (std::any_of(step.examples.begin(), step.examples.end(),
                    [&](const Example& e) { return e.form == place.form; }))
      continue;
    Example& example = step.examples.emplace_back();
    example.form = place.form;
    for (const auto* line : removed)
      example.removed.push_back(line->second.text);
    for (const auto* line : added) example.added.push_back(line->second.text);
  }
}

void RewriteReport::Add(const graph::PassReport& pass, const graph::Dump& dump,
                        std::string_view text, int64_t number,
                        const std::string& written) {
  Step step;
  step.pass = pass;
  step.number = number;
  step.file = written;
  step.before = step.after = now_.traffic;
  if (pass.changed) {
    State next = Look(dump, text);
    step.after = next.traffic;
    std::map<std::string, int64_t> change;
    for (const auto& [op, count] : now_.ops)
      change[op] -= static_cast<int64_t>(count);
    for (const auto& [op, count] : next.ops)
      change[op] += static_cast<int64_t>(count);
    for (const auto& [op, by] : change) {
      if (by != 0) step.ops.emplace_back(op, by);
    }
    std::stable_sort(step.ops.begin(), step.ops.end(),
                     [](const auto& a, const auto& b) {
                       return std::abs(a.second) > std::abs(b.second);
                     });
    AddPlaces(next, step);
    now_ = std::move(next);
  }
  steps_.push_back(std::move(step));
}

ResultSet RewriteReport::Finish() const {
  ResultSet out;
  const RowColumns<StepRow> columns{
      "rewrite",
      "What each transform did, in the order of the pipeline.",
      {{"number", ColumnType::kInt, "Number of its dump.", &StepRow::number},
       {"stage", ColumnType::kText, "Stage.", &StepRow::stage},
       {"transform", ColumnType::kText, "Transform.", &StepRow::transform},
       {"status", ColumnType::kText, "applied, skipped, disabled or failed.",
        &StepRow::status},
       {"matches", ColumnType::kInt, "Replacements.", &StepRow::matches},
       {"left", ColumnType::kInt, "Matches that were left as they were.",
        &StepRow::left},
       {"ops", ColumnType::kInt, "Ops of the graph afterwards.", &StepRow::ops},
       {"kernels_saved", ColumnType::kInt,
        "Kernels that need no launch any more, by the op table.",
        &StepRow::kernels_saved},
       {"bytes_saved", ColumnType::kReal,
        "Bytes that no op reads or writes any more, at the reference sizes.",
        &StepRow::bytes_saved, Shown::kBytes},
       {"estimate_us", ColumnType::kTime,
        "What that is worth at most per step: an estimate by launches and the "
        "bandwidth of the device.",
        &StepRow::estimate},
       {"note", ColumnType::kText, "Why matches were left or nothing ran.",
        &StepRow::note},
       {"file", ColumnType::kText, "Dump that was written.", &StepRow::file,
        Shown::kHidden}}};
  Table table(columns.schema());
  const RowColumns<OpRow> op_columns{
      "rewrite_ops",
      "Ops whose number a transform changed.",
      {{"transform", ColumnType::kText, "Transform.", &OpRow::transform},
       {"op", ColumnType::kText, "Normalised target.", &OpRow::op},
       {"change", ColumnType::kInt, "More or fewer of them.", &OpRow::change}}};
  Table ops(op_columns.schema());
  std::vector<std::string> unknown;
  std::vector<std::string> hidden;
  for (const Step& step : steps_) {
    const graph::PassReport& pass = step.pass;
    size_t left = 0;
    std::string note = pass.note;
    for (const auto& [reason, count] : pass.left) {
      left += count;
      note +=
          fmt::format("{}{} left: {}", note.empty() ? "" : "; ", count, reason);
    }
    const int64_t kernels = static_cast<int64_t>(step.before.kernels) -
                            static_cast<int64_t>(step.after.kernels);
    const int64_t bytes = step.before.bytes() - step.after.bytes();
    std::optional<int64_t> saved_kernels;
    std::optional<double> saved_bytes;
    std::optional<int64_t> saved_ns;
    if (pass.changed) {
      saved_kernels = kernels;
      saved_bytes = static_cast<double>(bytes);
      saved_ns = EstimateNs(kernels, bytes, memory_);
    }
    columns.Add(table, {.number = step.number,
                        .stage = pass.entry.stage,
                        .transform = pass.entry.transform,
                        .status = graph::Name(pass.entry.status),
                        .matches = pass.entry.matches,
                        .left = left,
                        .ops = pass.nodes_after,
                        .kernels_saved = saved_kernels,
                        .bytes_saved = saved_bytes,
                        .estimate = saved_ns,
                        .note = note,
                        .file = step.file});
    for (const auto& [op, by] : step.ops)
      op_columns.Add(
          ops, {.transform = pass.entry.transform, .op = op, .change = by});
    const graph::Pass* const known = registry_.Find(pass.entry.transform);
    if (known == nullptr &&
        pass.entry.status != graph::TransformStatus::kDisabled)
      unknown.push_back(EscapeTerminal(pass.entry.transform));
    if (known != nullptr && pass.changed) {
      for (const graph::Rule* const rule : known->rules) {
        if (rule->hides_data_flow) hidden.push_back(rule->name);
      }
    }
  }
  std::vector<std::string> missing;
  for (const graph::Pass& pass : registry_.passes()) {
    if (config_.Find(pass.name) == nullptr) missing.push_back(pass.name);
  }
  if (!unknown.empty()) {
    out.notes.push_back(MakeNote(Severity::kWarning, "unknown_transform",
                                 "Unknown transforms did nothing: " +
                                     absl::StrJoin(unknown, ", ") + "."));
  }
  if (!hidden.empty()) {
    out.notes.push_back(
        MakeNote(Severity::kWarning, "hidden_data_flow",
                 "Data flow moved into metadata that a dump does not show: " +
                     absl::StrJoin(hidden, ", ") + "."));
  }
  if (!missing.empty()) {
    out.notes.push_back(MakeNote(
        Severity::kInfo, "not_configured",
        fmt::format("{} passes are not in the configuration and did not run.",
                    missing.size())));
  }
  out.notes.push_back(MakeNote(
      Severity::kInfo, "estimate",
      fmt::format("Savings are estimates with {} us per launch and {}, "
                  "not measurements",
                  FormatDouble(static_cast<double>(kLaunchNs) / 1000),
                  memory_.Text()) +
          (assumed_.empty() ? std::string(".")
                            : ", for " + absl::StrJoin(assumed_, ", ") + ".")));
  out.tables.push_back(std::move(table));
  if (ops.rows() > 0) out.tables.push_back(std::move(ops));
  return out;
}

void RewriteReport::Describe(
    std::vector<std::pair<std::string, std::string>> facts,
    std::string command) {
  facts_ = std::move(facts);
  command_ = std::move(command);
}

std::string RewriteReport::Markdown() const {
  std::string out =
      fmt::format("# {}: before and after\n\n", EscapeTerminal(file_.name));
  for (const auto& [name, value] : facts_)
    out += fmt::format("- {}: {}\n", name, EscapeTerminal(value));
  if (!assumed_.empty())
    out += fmt::format("- sizes: {}\n", absl::StrJoin(assumed_, ", "));
  out += fmt::format("- savings: estimates with {} us per launch and {}\n\n",
                     FormatDouble(static_cast<double>(kLaunchNs) / 1000),
                     memory_.Text());
  out +=
      "| # | stage | transform | status | matches | left | ops | kernels | "
      "bytes |\n|--:|---|---|---|--:|--:|--:|--:|--:|\n";
  const auto bytes = [](const Traffic& traffic) {
    return HumanBytes(static_cast<double>(traffic.bytes()));
  };
  for (const Step& step : steps_) {
    const graph::PassReport& pass = step.pass;
    size_t left = 0;
    for (const auto& [reason, count] : pass.left) left += count;
    out += fmt::format(
        "| {:03} | {} | {} | {} | {} | {} | {} -> {} | {} -> {} | {} -> {} "
        "|\n",
        step.number, EscapeTerminal(pass.entry.stage),
        EscapeTerminal(pass.entry.transform), graph::Name(pass.entry.status),
        pass.entry.matches.value_or(0), left, pass.nodes_before,
        pass.nodes_after, step.before.kernels, step.after.kernels,
        bytes(step.before), bytes(step.after));
  }
  for (const Step& step : steps_) {
    const graph::PassReport& pass = step.pass;
    if (!pass.changed && pass.left.empty()) continue;
    out += fmt::format("\n## {}\n\n{} matches.", pass.entry.transform,
                       pass.entry.matches.value_or(0));
    for (size_t i = 0; i < step.ops.size(); ++i) {
      out += fmt::format("{} {} x{:+}", i == 0 ? " Ops:" : ",",
                         step.ops[i].first, step.ops[i].second);
    }
    if (!step.ops.empty()) out += ".";
    out += "\n";
    for (const auto& [reason, count] : pass.left)
      out += fmt::format("\n{} left: {}.\n", count, EscapeTerminal(reason));
    if (!pass.changed) continue;
    const auto lines = [&](const std::vector<std::string>& from, char sign) {
      for (size_t i = 0; i < from.size() && i < kShownLines; ++i)
        out += fmt::format("{} {}\n", sign, Shortened(from[i]));
      if (from.size() > kShownLines)
        out += fmt::format("{} ... {} more\n", sign, from.size() - kShownLines);
    };
    for (const Example& example : step.examples) {
      out += step.examples.size() == 1
                 ? "\nThe first place:\n"
                 : fmt::format("\nThe first place of form {} of the rule:\n",
                               example.form + 1);
      out += "\n```diff\n";
      lines(example.removed, '-');
      lines(example.added, '+');
      out += "```\n";
    }
    out +=
        "\n| layer | anchor | line before | lines gone | line after | lines "
        "new |\n|---|---|--:|--:|--:|--:|\n";
    for (size_t i = 0; i < step.places.size() && i < kShownPlaces; ++i) {
      const Change& one = step.places[i];
      const auto cell = [](size_t count, size_t line) {
        return count > 0 ? std::to_string(line) : std::string();
      };
      out += fmt::format("| {} | {}{} | {} | {} | {} | {} |\n",
                         EscapeTerminal(one.layer), one.removed > 0 ? "%" : "",
                         EscapeTerminal(one.anchor),
                         cell(one.removed, one.line_before), one.removed,
                         cell(one.added, one.line_after), one.added);
    }
    if (step.places.size() > kShownPlaces)
      out += fmt::format("\n{} more.\n", step.places.size() - kShownPlaces);
  }
  std::string idle;
  for (const Step& step : steps_) {
    const graph::PassReport& pass = step.pass;
    if (pass.changed) continue;
    const bool known = registry_.Find(pass.entry.transform) != nullptr;
    idle +=
        fmt::format("- {}: {}{}{}\n", EscapeTerminal(pass.entry.transform),
                    graph::Name(pass.entry.status),
                    known ? "" : ", not known here: it did nothing",
                    pass.note.empty() ? "" : ", " + EscapeTerminal(pass.note));
  }
  if (!idle.empty()) out += "\n## Changed nothing\n\n" + idle;
  size_t missing = 0;
  for (const graph::Pass& pass : registry_.passes())
    missing += config_.Find(pass.name) == nullptr;
  out += "\n## In all\n\n";
  if (!steps_.empty()) {
    const Traffic& first = steps_.front().before;
    const Traffic& last = steps_.back().after;
    const int64_t kernels = static_cast<int64_t>(first.kernels) -
                            static_cast<int64_t>(last.kernels);
    const int64_t moved = first.bytes() - last.bytes();
    out += fmt::format("- ops {} -> {}, kernels {} -> {}, bytes {} -> {}\n",
                       steps_.front().pass.nodes_before,
                       steps_.back().pass.nodes_after, first.kernels,
                       last.kernels, bytes(first), bytes(last));
    out += fmt::format(
        "- at most {} per step by the estimate\n",
        HumanTime(std::max<int64_t>(0, EstimateNs(kernels, moved, memory_))));
    if (last.unknown > 0)
      out += fmt::format("- {} values without a known size count nothing\n",
                         last.unknown);
  }
  out += fmt::format(
      "- {} passes are not in the configuration and did not run\n", missing);
  out +=
      "- never rewritten, because a dump does not say enough: caches, "
      "quantised linears and experts, expert loops, generated kernels, "
      "streams\n";
  if (!command_.empty())
    out +=
        "\n## To repeat it\n\n```sh\n" + EscapeTerminal(command_) + "\n```\n";
  return out;
}

}  // namespace lamina::fusion
