// SPDX-License-Identifier: Apache-2.0

#include "graph/fusion/review_facts.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "base/byte_source.h"
#include "base/text.h"
#include "graph/dialects/read.h"
#include "graph/pattern/pattern.h"
#include "graph/types.h"
#include "graph/verify.h"

namespace lamina::fusion {

namespace {

using graph::DumpFile;
using graph::LogEntry;
using graph::Rule;

Result<DumpFacts> Look(const ReviewInput& input, const DumpFile& file) {
  LAMINA_ASSIGN(const graph::Dump dump, graph::ReadDump(file.path));
  DumpFacts out;
  CensusOptions options = input.census;
  options.rules.clear();
  graph::RuleSet one;
  one.rules.push_back(*input.rule);
  for (const graph::Graph& graph : dump.graphs) {
    for (const auto& [op, count] : graph::OpCounts(graph))
      out.ops[std::string(op)] += count;
    const GraphCensus census = TakeCensus(graph, one, options);
    out.without_metadata += census.metadata.size();
    for (const RuleCount& count : census.rules) {
      out.matches += count.matches;
      for (const auto& [reason, number] : count.rejected)
        out.rejected[reason] += number;
    }
  }
  return out;
}

const DumpFile* Own(const fusion::Run& run, const std::string& name) {
  for (const DumpFile& file : run.files) {
    if (file.transform == name) return &file;
  }
  return nullptr;
}

// The last dump in front of a transform, by the order of the log or of the
// numbers.
const DumpFile* InFront(const fusion::Run& run, const std::string& name) {
  const DumpFile* const own = Own(run, name);
  const LogEntry* const entry = run.log ? run.log->Find(name) : nullptr;
  const DumpFile* best = nullptr;
  for (const DumpFile& file : run.files) {
    if (own != nullptr) {
      if (file.number < own->number) best = &file;
      continue;
    }
    const LogEntry* const wrote =
        run.log ? run.log->Find(file.transform) : nullptr;
    if (entry != nullptr && wrote != nullptr && wrote < entry) best = &file;
  }
  return best;
}

const LogEntry* EntryOf(const fusion::Run& run, const std::string& name) {
  return run.log ? run.log->Find(name) : nullptr;
}

// Whether both runs are one folder, or hold equal files under equal names.
bool IsSameRun(const fusion::Run& a, const fusion::Run& b) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::equivalent(a.folder, b.folder, error)) return true;
  if (a.files.empty() || a.files.size() != b.files.size()) return false;
  for (size_t i = 0; i < a.files.size(); ++i) {
    if (a.files[i].name != b.files[i].name) return false;
    const auto one = ReadAll(a.files[i].path, graph::kMaxDumpBytes);
    const auto two = ReadAll(b.files[i].path, graph::kMaxDumpBytes);
    if (!one || !two || *one != *two) return false;
  }
  return true;
}

}  // namespace

Result<ReviewFacts> ReadFacts(const ReviewInput& input) {
  const std::string& name = input.rule->name;
  const std::vector<DumpFile>& before = input.before.files;
  const std::vector<DumpFile>& after = input.after.files;
  ReviewFacts out;
  out.same_run = IsSameRun(input.before, input.after);
  out.own = Own(input.after, name);
  out.in_front = InFront(input.after, name);
  if (out.in_front == nullptr && out.own == nullptr && !after.empty())
    out.in_front = &after.back();
  if (out.in_front != nullptr) {
    LAMINA_ASSIGN(out.front, Look(input, *out.in_front));
  }
  if (out.own != nullptr) {
    LAMINA_ASSIGN(out.done, Look(input, *out.own));
  }
  if (!before.empty()) {
    LAMINA_ASSIGN(out.last_before, Look(input, before.back()));
  }
  if (!after.empty()) {
    LAMINA_ASSIGN(out.last_after, Look(input, after.back()));
  }
  out.log_before = EntryOf(input.before, name);
  out.log_after = EntryOf(input.after, name);
  return out;
}

std::string PathOf(const Rule& rule, const SourceIndex* tree) {
  if (rule.produces.empty()) return "other";
  if (tree == nullptr) return "existing_kernel_path (no tree)";
  for (std::string_view op : rule.produces) {
    if (graph::IsOfPyTorch(op)) continue;
    if (op.ends_with(".default")) op.remove_suffix(8);
    const Mention* const found = tree->Find(op, Mention::Kind::kDefinition);
    if (found == nullptr)
      return fmt::format("triton_fallback_path ({} is not in the tree)", op);
    // A kernel of its own, in the file of the op.
    const bool triton =
        std::any_of(tree->mentions.begin(), tree->mentions.end(),
                    [&](const Mention& mention) {
                      return mention.kind == Mention::Kind::kTriton &&
                             mention.file == found->file;
                    });
    if (!triton) continue;
    // That other transforms use as well: then it is an existing kernel.
    const bool shared = std::any_of(
        tree->mentions.begin(), tree->mentions.end(),
        [&](const Mention& mention) {
          return mention.kind == Mention::Kind::kUse && mention.name == op &&
                 Contains(mention.file, "transform/library/") &&
                 !Contains(mention.file, rule.name);
        });
    if (!shared)
      return fmt::format("triton_fallback_path ({} at {}:{})", op, found->file,
                         found->line);
  }
  return "existing_kernel_path";
}

std::string SaidOf(const LogEntry* entry) {
  if (entry == nullptr) return "not in the log";
  if (entry->status != graph::TransformStatus::kApplied)
    return std::string(graph::Name(entry->status));
  return fmt::format("{} matches", entry->matches.value_or(0));
}

bool IsNamedBy(const Rule& rule, std::string_view op) {
  const auto fits = [&](const std::string& target) {
    return graph::MatchesTarget(op, target);
  };
  if (std::any_of(rule.produces.begin(), rule.produces.end(), fits))
    return true;
  for (const auto* list : {&rule.alternatives, &rule.rewrites}) {
    for (const graph::Alternative& alternative : *list) {
      for (const graph::PatternLine& line : alternative.pattern.lines) {
        if (std::any_of(line.targets.begin(), line.targets.end(), fits))
          return true;
      }
      for (const graph::Statement& line : alternative.after) {
        for (const std::string& target : line.targets) {
          if (graph::MatchesTarget(op, target)) return true;
        }
      }
    }
  }
  // Results are taken apart by items; that belongs to any replacement.
  return op == "builtin.getitem" || graph::IsCast(op);
}

using graph::Rule;

std::string ReviewNote(const Rule& rule, const ReviewFacts& facts,
                       const std::vector<Item>& items,
                       const std::string& changes, const std::string& path) {
  std::string note;
  const auto fails = [&](std::string_view id) {
    return std::any_of(items.begin(), items.end(), [&](const Item& item) {
      return item.id == id && item.answer == Answer::kFail;
    });
  };
  note += fmt::format("Candidate: {}\n", rule.name);
  note += fmt::format("Path: {}\n", path);
  note += fmt::format("Rationale:\n- {}\n", rule.title);
  if (!rule.saves.empty()) note += fmt::format("- saves {}\n", rule.saves);
  const bool valid =
      !fails("structure") && !fails("one_change") && !fails("contradiction");
  note += fmt::format("Graph validation: {}", valid ? "pass" : "fail");
  if (facts.own != nullptr) note += " - " + facts.own->name;
  if (!changes.empty()) note += ": " + changes;
  note += "\n";
  note += fmt::format("Summary logs: {} before, {} after\n",
                      SaidOf(facts.log_before), SaidOf(facts.log_after));
  for (const Item& item : items) {
    if (item.id == "tested") note += fmt::format("Tests: {}\n", item.evidence);
  }
  note += "Open risks:\n";
  bool any = false;
  for (const Item& item : items) {
    if (item.answer == Answer::kPass) continue;
    any = true;
    note += fmt::format("- {}: {} ({})\n", item.question, Name(item.answer),
                        item.evidence);
  }
  for (const std::string& guard : rule.HiddenGuards()) {
    any = true;
    note += fmt::format("- guard {} does not show in a dump\n", guard);
  }
  if (!any) note += "- none known\n";
  note += "Next, in this order: dumps, unit tests, integration or accuracy.\n";
  return note;
}

}  // namespace lamina::fusion
