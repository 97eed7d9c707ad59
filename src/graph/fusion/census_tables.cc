// SPDX-License-Identifier: Apache-2.0
//
// The tables of `lamina graph census`, of one file and of a folder.
#include <algorithm>
#include <deque>
#include <fmt/format.h>

#include "base/counted.h"
#include "base/escape.h"
#include "graph/fusion/census.h"
#include "table/row_columns.h"

namespace lamina::fusion {
namespace {

struct CensusRow {
  std::string_view file, stage, section, rule, layer;
  size_t matches, possible;
  std::string_view anchors;
};

const RowColumns<CensusRow>& CensusColumns() {
  static const RowColumns<CensusRow> columns{
      "census",
      "Matches of every rule per layer.",
      {{"file", ColumnType::kText, "Dump.", &CensusRow::file},
       {"stage", ColumnType::kText, "Stage of the dump.", &CensusRow::stage},
       {"section", ColumnType::kText, "Graph of the dump.", &CensusRow::section,
        Shown::kHidden},
       {"rule", ColumnType::kText, "Fusion rule.", &CensusRow::rule},
       {"layer", ColumnType::kText,
        "Layer of the last node of the match; of rules that run until "
        "nothing is left only the first round is told apart by layer.",
        &CensusRow::layer},
       {"matches", ColumnType::kInt, "Places that match.", &CensusRow::matches},
       {"possible", ColumnType::kInt,
        "Of them, with a guard that a dump cannot show.", &CensusRow::possible},
       {"anchors", ColumnType::kText, "Last node of each match.",
        &CensusRow::anchors, Shown::kHidden}}};
  return columns;
}

struct MatchRow {
  std::string_view file, section, rule, layer;
  bool possible;
  std::string_view nodes;
  uint32_t line;
};

const RowColumns<MatchRow>& MatchColumns() {
  static const RowColumns<MatchRow> columns{
      "matches",
      "Every match with its nodes.",
      {{"file", ColumnType::kText, "Dump.", &MatchRow::file},
       {"section", ColumnType::kText, "Graph of the dump.", &MatchRow::section,
        Shown::kHidden},
       {"rule", ColumnType::kText, "Fusion rule.", &MatchRow::rule},
       {"layer", ColumnType::kText, "Layer of the last node.",
        &MatchRow::layer},
       {"possible", ColumnType::kBool, "A guard holds that a dump cannot show.",
        &MatchRow::possible},
       {"nodes", ColumnType::kText, "Its nodes, in order.", &MatchRow::nodes},
       {"line", ColumnType::kInt, "Line of the first one in the dump.",
        &MatchRow::line}}};
  return columns;
}

// One file has no need of its name in every row, nor one graph.
Shown ShownIf(bool several) { return several ? Shown::kPlain : Shown::kHidden; }

struct RuleRow {
  std::string_view file, section, rule, stage, default_;
  size_t matches, possible;
  std::string per_layer;
  size_t near_misses;
  std::string reasons;
  size_t already;
  std::string hidden_guards;
};

RowColumns<RuleRow> RuleColumns(bool folder, bool sections) {
  return {
      "census_rules",
      "Every rule that a graph has something to say about.",
      {{"file", ColumnType::kText, "Dump.", &RuleRow::file, ShownIf(folder)},
       {"section", ColumnType::kText, "Graph of the dump.", &RuleRow::section,
        ShownIf(sections)},
       {"rule", ColumnType::kText, "Fusion rule.", &RuleRow::rule},
       {"stage", ColumnType::kText, "Stage in which AutoDeploy runs it.",
        &RuleRow::stage, Shown::kHidden},
       {"default", ColumnType::kText, "Whether it runs unasked.",
        &RuleRow::default_},
       {"matches", ColumnType::kInt, "Places that match.", &RuleRow::matches},
       {"possible", ColumnType::kInt,
        "Of them, with a guard that a dump cannot show.", &RuleRow::possible},
       {"per_layer", ColumnType::kText,
        "Matches by layers: 32 x 2 + 1 is two in each of 32 layers and "
        "one more.",
        &RuleRow::per_layer},
       {"near_misses", ColumnType::kInt,
        "Places that fail for one reason or two.", &RuleRow::near_misses},
       {"reasons", ColumnType::kText, "Those reasons.", &RuleRow::reasons},
       {"already", ColumnType::kInt, "Ops that its replacement leaves behind.",
        &RuleRow::already},
       {"hidden_guards", ColumnType::kText,
        "Conditions that a dump cannot show.", &RuleRow::hidden_guards,
        Shown::kHidden}}};
}

struct MissRow {
  std::string_view file, section, rule, layer, node, class_, evidence, user,
      anchor;
  std::optional<int64_t> line;
  size_t causes;
  std::string_view with;
};

RowColumns<MissRow> MissColumns(bool folder, bool sections) {
  return {
      "near_misses",
      "Places that would match but for one reason or two, a row per reason: "
      "one reason first, the rarest first.",
      {{"file", ColumnType::kText, "Dump.", &MissRow::file, ShownIf(folder)},
       {"section", ColumnType::kText, "Graph of the dump.", &MissRow::section,
        ShownIf(sections)},
       {"rule", ColumnType::kText,
        "Fusion rule; empty: a node that lost its metadata.", &MissRow::rule},
       {"layer", ColumnType::kText, "Layer of the last node of the pattern.",
        &MissRow::layer},
       {"node", ColumnType::kText, "Where the reason is.", &MissRow::node},
       {"class", ColumnType::kText, "Kind of the reason.", &MissRow::class_},
       {"evidence", ColumnType::kText, "What was found there.",
        &MissRow::evidence},
       {"user", ColumnType::kText, "The other user of an extra_user.",
        &MissRow::user, Shown::kHidden},
       {"anchor", ColumnType::kText, "Last node of the pattern.",
        &MissRow::anchor, Shown::kHidden},
       {"line", ColumnType::kInt, "Line of the node in the dump.",
        &MissRow::line},
       {"causes", ColumnType::kInt, "Reasons of the place.", &MissRow::causes,
        Shown::kHidden},
       {"with", ColumnType::kText, "The other reason.", &MissRow::with,
        Shown::kHidden}}};
}

// "32 x 2 + 1": how many layers have how many matches.
std::string Histogram(const RuleCount& count) {
  std::map<size_t, size_t, std::greater<>> layers;  // matches -> layers
  size_t outside = 0;
  for (const LayerCount& layer : count.layers) {
    if (layer.layer == "shared" || layer.layer == "epilogue") {
      outside += layer.matches;
    } else {
      ++layers[layer.matches];
    }
  }
  std::string out;
  for (const auto& [matches, number] : layers) {
    out += fmt::format("{}{} x {}", out.empty() ? "" : " + ", number, matches);
  }
  if (outside > 0)
    out += fmt::format("{}{}", out.empty() ? "" : " + ", outside);
  return out;
}

std::string Reasons(const RuleCount& count) {
  std::string out;
  for (const auto& [reason, number] : count.rejected)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", number, reason);
  return out;
}

std::string Hidden(const graph::Rule& rule) {
  std::string out;
  for (const std::string& guard : rule.HiddenGuards())
    out += (out.empty() ? "" : ", ") + guard;
  return out;
}

// Near misses of all graphs. One that a rule has in every layer says less than
// one that it has in a single place.
class MissRows {
 public:
  void Add(const std::string& file, const std::string& graph,
           const std::vector<NearMiss>& misses) {
    for (const NearMiss& miss : misses) {
      rows_.push_back({&file, &graph, &miss});
      ++count_[{file, miss.rule + " " + miss.miss}];
    }
  }

  Table MakeTable(bool folder, bool sections) {
    const RowColumns<MissRow> columns = MissColumns(folder, sections);
    Table table(columns.schema());
    std::stable_sort(rows_.begin(), rows_.end(),
                     [this](const Row& a, const Row& b) {
                       if (a.miss->causes != b.miss->causes)
                         return a.miss->causes < b.miss->causes;
                       return CountOf(a) < CountOf(b);
                     });
    for (const Row& row : rows_) {
      const NearMiss& miss = *row.miss;
      columns.Add(table,
                  {.file = *row.file,
                   .section = *row.graph,
                   .rule = miss.rule,
                   .layer = miss.layer,
                   .node = miss.node,
                   .class_ = miss.miss,
                   .evidence = miss.evidence,
                   .user = miss.other,
                   .anchor = miss.anchor,
                   .line = miss.line > 0 ? std::optional<int64_t>(miss.line)
                                         : std::nullopt,
                   .causes = miss.causes,
                   .with = miss.with});
    }
    return table;
  }

 private:
  struct Row {
    const std::string* file;
    const std::string* graph;
    const NearMiss* miss;
  };
  size_t CountOf(const Row& row) const {
    return count_.at({*row.file, row.miss->rule + " " + row.miss->miss});
  }
  std::vector<Row> rows_;
  std::map<std::pair<std::string, std::string>, size_t> count_;
};

struct StageRow {
  std::string_view rule, log;
  std::optional<int64_t> before;
  std::string_view agrees;
  std::vector<size_t> counts;  // by file
};

// Matches of a rule at each file, with what the log counts.
class StageTable {
 public:
  StageTable(const std::vector<FileCensus>& files, const graph::RuleSet& rules,
             const graph::TransformLog* log)
      : files_(files), rules_(rules), log_(log) {}

  void AddTo(ResultSet& out) {
    const RowColumns<StageRow> columns = StageColumns();
    Table table(columns.schema());
    for (const graph::Rule& rule : rules_.rules) AddRule(columns, rule, table);
    if (table.rows() > 0) out.tables.push_back(std::move(table));
    out.notes.insert(out.notes.end(), notes_.begin(), notes_.end());
  }

 private:
  RowColumns<StageRow> StageColumns() {
    RowColumns<StageRow> out{
        "census_stages",
        "Matches of every rule after each transform.",
        {{"rule", ColumnType::kText, "Fusion rule.", &StageRow::rule},
         {"log", ColumnType::kText,
          "Matches that the log counts for it, or what it says instead.",
          &StageRow::log},
         {"before", ColumnType::kInt,
          "Matches in the last dump in front of it.", &StageRow::before},
         {"agrees", ColumnType::kText,
          "Whether the log and that dump say the same; empty when "
          "they cannot be compared, since a dump is missing.",
          &StageRow::agrees}}};
    for (size_t i = 0; i < files_.size(); ++i) {
      const graph::DumpFile& file = files_[i].file;
      const char* const name =
          texts_.emplace_back(fmt::format("{:03}", file.number)).c_str();
      const char* const doc =
          texts_.emplace_back("Matches in " + file.name + ".").c_str();
      out.columns.emplace_back(
          name, ColumnType::kInt, doc, [i](const StageRow& row) {
            return row.counts[i] > 0 ? std::optional(row.counts[i])
                                     : std::nullopt;
          });
    }
    return out;
  }

  void AddRule(const RowColumns<StageRow>& columns, const graph::Rule& rule,
               Table& table) {
    std::vector<size_t> counts;
    size_t most = 0;
    for (const FileCensus& file : files_) {
      counts.push_back(file.Matches(rule));
      most = std::max(most, counts.back());
    }
    const graph::LogEntry* const entry =
        log_ == nullptr ? nullptr : log_->Find(rule.name);
    const bool logged = entry != nullptr && entry->matches.value_or(0) > 0;
    if (most == 0 && !logged) return;
    std::string log;
    if (entry != nullptr) {
      log = entry->status == graph::TransformStatus::kApplied
                ? std::to_string(entry->matches.value_or(0))
                : std::string(graph::Name(entry->status));
    }
    const Front front = InFront(entry);
    std::optional<int64_t> before;
    if (front.file) before = static_cast<int64_t>(counts[*front.file]);
    const std::string agrees = Agrees(rule, entry, before, front.complete);
    columns.Add(table, {.rule = rule.name,
                        .log = log,
                        .before = before,
                        .agrees = agrees,
                        .counts = counts});
    if (agrees == "no") {
      notes_.push_back(MakeNote(
          Severity::kWarning, "census_conflict",
          fmt::format("{}: the log counts {} matches, and {} holds {}.",
                      rule.name, entry->matches.value_or(0),
                      files_[*front.file].file.name, *before)));
    }
  }

  // The last dump in front of a transform.
  struct Front {
    std::optional<size_t> file;
    // No transform in between changed the graph without leaving its dump.
    bool complete = false;
  };
  Front InFront(const graph::LogEntry* entry) const {
    Front out;
    if (entry == nullptr) return out;
    const auto place = [this](const graph::LogEntry* e) {
      return static_cast<size_t>(e - log_->entries.data());
    };
    const size_t mine = place(entry);
    size_t last = 0;
    for (size_t i = 0; i < files_.size(); ++i) {
      const graph::LogEntry* const wrote =
          log_->Find(files_[i].header.transform);
      if (wrote == nullptr || place(wrote) >= mine) continue;
      out.file = i;
      last = place(wrote);
    }
    out.complete = out.file.has_value();
    for (size_t i = last + 1; i < mine && out.complete; ++i)
      out.complete = log_->entries[i].matches.value_or(0) == 0;
    return out;
  }

  // A difference counts only when the dump is what the transform saw.
  static std::string Agrees(const graph::Rule& rule,
                            const graph::LogEntry* entry,
                            std::optional<int64_t> before, bool complete) {
    if (entry == nullptr || !before || rule.alternatives.empty() ||
        entry->status == graph::TransformStatus::kDisabled)
      return "";
    if (entry->matches.value_or(0) == *before) return "yes";
    return complete ? "no" : "";
  }

  const std::vector<FileCensus>& files_;
  const graph::RuleSet& rules_;
  const graph::TransformLog* log_;
  std::vector<Note> notes_;
  std::deque<std::string> texts_;  // of columns
};

// What the rules cannot say of graphs that are not of AutoDeploy.
void AddDialectNotes(const std::vector<FileCensus>& files, ResultSet& out) {
  std::map<std::string, size_t> none;      // graphs by dialect
  std::map<std::string, size_t> possible;  // matches by dialect
  for (const FileCensus& file : files) {
    for (const GraphCensus& graph : file.graphs) {
      if (!graph.applicable) ++none[graph.dialect];
      if (graph.unnamed) {
        out.notes.push_back(MakeNote(
            Severity::kInfo, "no_weights",
            fmt::format("No input of graph '{}' is known to be a weight: rules "
                        "with weights cannot match. The graph of dynamo beside "
                        "the file, or a whole log, names them.",
                        EscapeTerminal(graph.graph))));
      }
      if (graph.dialect.empty()) continue;
      for (const RuleCount& count : graph.rules)
        possible[graph.dialect] += count.matches;
    }
  }
  for (const auto& [dialect, graphs] : none) {
    out.notes.push_back(MakeNote(
        Severity::kInfo, "not_applicable",
        fmt::format("Not applicable to {} in '{}': the rules are written in "
                    "ops of PyTorch. That none matches says nothing; `lamina "
                    "graph candidates` finds forms that repeat.",
                    Counted(graphs, "graph"), dialect)));
  }
  for (const auto& [dialect, matches] : possible) {
    if (matches == 0) continue;
    out.notes.push_back(MakeNote(
        Severity::kInfo, "another_dialect",
        fmt::format("{} possible in '{}', not sure: the rules are made for "
                    "dumps of AutoDeploy, whose transforms do not run there.",
                    matches == 1 ? "The match is"
                                 : fmt::format("All {} matches are", matches),
                    dialect)));
  }
}

}  // namespace

ResultSet CensusTables(const std::vector<FileCensus>& files,
                       const graph::RuleSet& rules,
                       const graph::TransformLog* log) {
  ResultSet out;
  const bool folder = files.size() > 1;
  const bool sections =
      std::any_of(files.begin(), files.end(),
                  [](const FileCensus& one) { return one.graphs.size() > 1; });
  const RowColumns<RuleRow> rule_columns = RuleColumns(folder, sections);
  Table summary(rule_columns.schema());
  Table census(CensusColumns().schema());
  Table matches(MatchColumns().schema());
  MissRows rows;
  for (const FileCensus& file : files) {
    const std::string& name = file.file.name;
    for (const GraphCensus& graph : file.graphs) {
      for (const RuleCount& count : graph.rules) {
        const graph::Rule& rule = *count.rule;
        rule_columns.Add(summary, {.file = name,
                                   .section = graph.graph,
                                   .rule = rule.name,
                                   .stage = rule.stage,
                                   .default_ = graph::Name(rule.default_state),
                                   .matches = count.matches,
                                   .possible = count.possible,
                                   .per_layer = Histogram(count),
                                   .near_misses = count.near_places,
                                   .reasons = Reasons(count),
                                   .already = count.already,
                                   .hidden_guards = Hidden(rule)});
        for (const MatchPlace& place : count.places) {
          MatchColumns().Add(matches, {.file = name,
                                       .section = graph.graph,
                                       .rule = rule.name,
                                       .layer = place.layer,
                                       .possible = place.possible,
                                       .nodes = place.nodes,
                                       .line = place.line});
        }
        size_t left = count.matches;
        for (const LayerCount& layer : count.layers) {
          std::string anchors;
          for (const std::string& anchor : layer.anchors)
            anchors += (anchors.empty() ? "" : " ") + anchor;
          CensusColumns().Add(census, {.file = name,
                                       .stage = file.header.stage,
                                       .section = graph.graph,
                                       .rule = rule.name,
                                       .layer = layer.layer,
                                       .matches = layer.matches,
                                       .possible = layer.possible,
                                       .anchors = anchors});
          left -= std::min(left, layer.matches);
        }
        // Later rounds of a rule that runs until nothing is left.
        if (left > 0) {
          CensusColumns().Add(census, {.file = name,
                                       .stage = file.header.stage,
                                       .section = graph.graph,
                                       .rule = rule.name,
                                       .layer = "later",
                                       .matches = left,
                                       .possible = 0,
                                       .anchors = ""});
        }
        if (count.given_up > 0) {
          out.notes.push_back(MakeNote(
              Severity::kWarning, "search_given_up",
              fmt::format("{}: the search for {} was given up at {}; the "
                          "number of matches is a lower bound.",
                          EscapeTerminal(name), rule.name,
                          Counted(count.given_up, "node"))));
        }
        rows.Add(name, graph.graph, count.near_misses);
      }
      rows.Add(name, graph.graph, graph.metadata);
    }
  }
  AddDialectNotes(files, out);
  out.tables.push_back(std::move(summary));
  out.tables.push_back(rows.MakeTable(folder, sections));
  if (folder) StageTable(files, rules, log).AddTo(out);
  out.tables.push_back(std::move(census));
  out.tables.push_back(std::move(matches));
  return out;
}

}  // namespace lamina::fusion
