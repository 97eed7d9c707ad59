// SPDX-License-Identifier: Apache-2.0
//
// Inside of the rule files: one fusion rule from its YAML, every fault with its
// place in the file.

#include "graph/passes/rule_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "graph/passes/pass.h"
#include "graph/pattern/rewrite.h"
#include "graph/pattern/rule.h"
#include "graph/print.h"
#include "rules/document.h"

namespace lamina::graph {

// `warnings` may be null.
Result<Rule> ReadRule(const rules::DataFile& file, const rules::Node& node,
                      std::vector<std::string>* warnings);

namespace {

constexpr size_t kMaxWarnings = 100;  // kept

constexpr std::string_view kRuleKeys[] = {
    "rule",     "title",      "stage",           "default",  "count",
    "boundary", "before",     "outputs",         "after",    "native",
    "produces", "guards",     "effect",          "limits",   "saves",
    "source",   "confidence", "hides_data_flow", "examples", "not",
    "rewrite",
};
constexpr std::string_view kRewriteKeys[] = {"before", "outputs", "after"};
constexpr std::string_view kGuardKeys[] = {"id", "text", "visible", "check"};
constexpr std::string_view kNotKeys[] = {"why", "text"};

class RuleReader {
 public:
  RuleReader(const rules::DataFile& file, std::vector<std::string>* warnings)
      : file_(file), warnings_(warnings) {}

  Result<Rule> Read(const rules::Node& node) {
    LAMINA_ASSIGN(const rules::Members members,
                  rules::Members::Of(file_, node, kRuleKeys));
    Rule rule;
    rule.file = file_.name;
    rule.line = node.line;
    LAMINA_ASSIGN(rule.name, members.Text("rule"));
    LAMINA_ASSIGN(rule.stage, members.Text("stage"));
    if (StageRank(rule.stage) >= StageOrder().size())
      Warn(*members.Find("stage"), "unknown stage '" + rule.stage + "'");
    rule.title = members.TextOr("title", "");
    rule.native = members.TextOr("native", "");
    rule.effect = members.TextOr("effect", "");
    rule.limits = members.TextOr("limits", "");
    rule.saves = members.TextOr("saves", "");
    rule.source = members.TextOr("source", "");
    rule.confidence = members.TextOr("confidence", "");
    LAMINA_ASSIGN(rule.boundary, members.BoolOr("boundary", false));
    LAMINA_ASSIGN(rule.hides_data_flow,
                  members.BoolOr("hides_data_flow", false));
    LAMINA_ASSIGN(rule.produces, members.Texts("produces"));
    LAMINA_ASSIGN(rule.examples, members.Texts("examples"));
    LAMINA_TRY(ReadChoices(members, rule));
    LAMINA_TRY(ReadGuards(members, rule));
    LAMINA_TRY(ReadPatterns(members, rule));
    LAMINA_TRY(ReadCounterExamples(members, rule));
    if (rule.produces.empty()) FindProduced(rule);
    return rule;
  }

 private:
  bool Warns() const {
    return warnings_ != nullptr && warnings_->size() < kMaxWarnings;
  }
  void Warn(const rules::Node& node, const std::string& what) {
    if (!Warns()) return;
    warnings_->push_back(
        fmt::format("{}:{}:{}: {}", file_.name, node.line, node.column, what));
  }

  // Where a place inside of a text stands in the file. The text of a block
  // ("|") begins on the next line, indented.
  rules::Node PlaceIn(const rules::Node& node, TextPlace place) const {
    rules::Node out = node;
    const bool block = node.text.find('\n') != std::string::npos;
    if (!block) {
      const bool quoted = Quoted(node);
      out.column += place.column - 1 + (quoted ? 1 : 0);
      return out;
    }
    out.line = FirstLine(node) + place.line - 1;
    out.column = Indentation(out.line) + place.column;
    return out;
  }

  std::string_view LineOf(uint32_t line) const {
    std::string_view text = file_.text;
    for (uint32_t i = 1; i < line; ++i) {
      const size_t end = text.find('\n');
      if (end == std::string_view::npos) return {};
      text.remove_prefix(end + 1);
    }
    return text.substr(0, text.find('\n'));
  }
  bool Quoted(const rules::Node& node) const {
    const std::string_view line = LineOf(node.line);
    return node.column <= line.size() &&
           (line[node.column - 1] == '\'' || line[node.column - 1] == '"');
  }
  // The line of the file with the first line of a block.
  uint32_t FirstLine(const rules::Node& node) const {
    const std::string_view first =
        std::string_view(node.text).substr(0, node.text.find('\n'));
    for (uint32_t line = node.line; line <= node.line + 1; ++line) {
      const std::string_view text = LineOf(line);
      const size_t at = text.find_first_not_of(' ');
      if (at != std::string_view::npos && text.substr(at) == first) return line;
    }
    return node.line + 1;
  }
  uint32_t Indentation(uint32_t line) const {
    const size_t at = LineOf(line).find_first_not_of(' ');
    return at == std::string_view::npos ? 0 : static_cast<uint32_t>(at);
  }

  tl::unexpected<Error> At(const rules::Node& node, const SyntaxError& error) {
    return Fail(file_.ErrorAt(PlaceIn(node, error.place), error.what));
  }

  Status ReadChoices(const rules::Members& members, Rule& rule) {
    const std::string state = members.TextOr("default", "on");
    if (state == "on") {
      rule.default_state = DefaultState::kOn;
    } else if (state == "off") {
      rule.default_state = DefaultState::kOff;
    } else if (state == "varies") {
      rule.default_state = DefaultState::kVaries;
    } else {
      return Fail(file_.ErrorAt(*members.Find("default"),
                                "expected on, off or varies"));
    }
    const std::string count = members.TextOr("count", "anchor");
    if (count == "anchor") {
      rule.counting = Counting::kAnchor;
    } else if (count == "group") {
      rule.counting = Counting::kGroup;
    } else if (count == "fixed_point") {
      rule.counting = Counting::kFixedPoint;
    } else {
      return Fail(file_.ErrorAt(*members.Find("count"),
                                "expected anchor, group or fixed_point"));
    }
    return {};
  }

  Status ReadGuards(const rules::Members& members, Rule& rule) {
    const rules::Node* const list = members.Find("guards");
    if (list == nullptr) return {};
    if (!list->IsList()) return Fail(file_.ErrorAt(*list, "expected a list"));
    for (const rules::Node& node : list->items) {
      LAMINA_ASSIGN(const rules::Members guard,
                    rules::Members::Of(file_, node, kGuardKeys));
      Guard out;
      LAMINA_ASSIGN(out.id, guard.Text("id"));
      LAMINA_ASSIGN(out.text, guard.Text("text"));
      const std::string visible = guard.TextOr("visible", "dump");
      if (visible == "value") {
        out.visible = Guard::Visible::kValue;
      } else if (visible == "kwarg") {
        out.visible = Guard::Visible::kKeyword;
      } else if (visible == "config") {
        out.visible = Guard::Visible::kConfig;
      } else if (visible != "dump") {
        return Fail(file_.ErrorAt(*guard.Find("visible"),
                                  "expected dump, value, kwarg or config"));
      }
      if (const rules::Node* const check = guard.Find("check")) {
        auto call = ParseCall(check->text);
        if (!call) return At(*check, call.error());
        out.check.push_back(std::move(*call));
        checks_.push_back(check);
      }
      rule.guards.push_back(std::move(out));
    }
    return {};
  }

  Status ReadPatterns(const rules::Members& members, Rule& rule) {
    const rules::Node* const before = members.Find("before");
    if (before == nullptr || before->kind == rules::Node::Kind::kNull) {
      if (members.Find("after") != nullptr)
        return Fail(members.ErrorAt("'after' without 'before'"));
      return {};
    }
    LAMINA_TRY(ReadAlternatives(members, *before, rule.alternatives));
    LAMINA_TRY(CheckGuards(rule));
    LAMINA_TRY(CheckGroup(members, rule));
    const rules::Node* const rewrites = members.Find("rewrite");
    if (rewrites == nullptr) return {};
    for (const rules::Node* const node : ItemsOf(*rewrites)) {
      LAMINA_ASSIGN(const rules::Members one,
                    rules::Members::Of(file_, *node, kRewriteKeys));
      const rules::Node* const lines = one.Find("before");
      if (lines == nullptr)
        return Fail(one.ErrorAt("the key 'before' is missing"));
      LAMINA_TRY(ReadAlternatives(one, *lines, rule.rewrites));
    }
    return {};
  }

  // Patterns and what replaces them.
  Status ReadAlternatives(const rules::Members& members,
                          const rules::Node& before,
                          std::vector<Alternative>& out) {
    LAMINA_ASSIGN(const std::vector<std::string> outputs,
                  members.Texts("outputs"));
    const size_t first = out.size();
    for (const rules::Node* const text : ItemsOf(before)) {
      if (!text->IsScalar()) return Fail(file_.ErrorAt(*text, "expected text"));
      auto statements = ParseStatements(text->text);
      if (!statements) return At(*text, statements.error());
      auto pattern =
          CompilePattern(*statements, OutputsOf(*statements, outputs));
      if (!pattern) return At(*text, pattern.error());
      WarnTargets(*text, *statements);
      out.push_back({std::move(*pattern), {}, text->text});
    }
    return ReadAfter(members, std::span(out).subspan(first));
  }

  // Ops of their own that the replacements leave behind, without overload and
  // with the default of every option.
  static void FindProduced(Rule& rule) {
    const auto add = [&](const std::vector<Alternative>& alternatives) {
      for (const Alternative& alternative : alternatives) {
        for (const Statement& line : alternative.after) {
          if (line.targets.empty()) continue;
          std::string target = line.targets[0];
          if (IsOfPyTorch(target)) continue;
          if (target.ends_with(".default")) target.resize(target.size() - 8);
          for (size_t open; (open = target.find('{')) != std::string::npos;) {
            const size_t close = target.find('}', open);
            const size_t colon = target.find(':', open);
            if (close == std::string::npos || colon > close) break;
            target = target.substr(0, open) +
                     target.substr(colon + 1, close - colon - 1) +
                     target.substr(close + 1);
          }
          if (std::find(rule.produces.begin(), rule.produces.end(), target) ==
              rule.produces.end())
            rule.produces.push_back(target);
        }
      }
    };
    add(rule.alternatives);
    add(rule.rewrites);
  }

  // One text or a list of texts.
  static std::vector<const rules::Node*> ItemsOf(const rules::Node& node) {
    std::vector<const rules::Node*> out;
    if (!node.IsList()) return {&node};
    for (const rules::Node& item : node.items) out.push_back(&item);
    return out;
  }

  // The last line is an output always.
  static std::vector<std::string> OutputsOf(
      const std::vector<Statement>& statements,
      const std::vector<std::string>& named) {
    std::vector<std::string> out;
    for (const std::string& name : named) {
      for (const Statement& statement : statements) {
        if (statement.result == name) out.push_back(name);
      }
    }
    if (!statements.empty()) out.push_back(statements.back().result);
    return out;
  }

  // A target without a namespace is a method or module: rarely meant.
  void WarnTargets(const rules::Node& text,
                   const std::vector<Statement>& statements) {
    for (const Statement& statement : statements) {
      for (const std::string& target : statement.targets) {
        if (target.find('.') == std::string::npos && Warns()) {
          Warn(PlaceIn(text, statement.target_place),
               "unknown target '" + target + "': no namespace");
        }
      }
    }
  }

  // Every name of a check must be in one alternative at least.
  Status CheckGuards(const Rule& rule) {
    size_t check = 0;
    for (const Guard& guard : rule.guards) {
      if (guard.check.empty()) continue;
      const rules::Node& node = *checks_[check++];
      SyntaxError error;
      bool fits = false;
      for (const Alternative& alternative : rule.alternatives) {
        auto done = ValidateCheck(guard.check[0], alternative.pattern);
        if (done) {
          fits = true;
        } else {
          error = done.error();
        }
      }
      if (!fits) return At(node, error);
    }
    return {};
  }

  // Members of a group share the first operand of the last line, and those of
  // merge_linears multiply it with a weight.
  Status CheckGroup(const rules::Members& members, const Rule& rule) {
    if (!rule.native.empty() &&
        (rule.native != kMergeLinears || rule.counting != Counting::kGroup)) {
      return Fail(file_.ErrorAt(*members.Find("native"),
                                "expected merge_linears, with 'count: group'"));
    }
    if (rule.counting != Counting::kGroup) return {};
    for (const Alternative& alternative : rule.alternatives) {
      const Pattern& pattern = alternative.pattern;
      const auto is = [](const PatternLine& line, size_t at, Term::Kind kind) {
        return at < line.operands.size() && line.operands[at].kind == kind;
      };
      if (!is(pattern.anchor(), 0, Term::Kind::kValue)) {
        return Fail(file_.ErrorAt(
            *members.Find("before"),
            "'count: group' needs a value %x that the last line begins with"));
      }
      const PatternLine& first = pattern.lines.front();
      if (rule.native == kMergeLinears &&
          (!is(first, 0, Term::Kind::kValue) ||
           !is(first, 1, Term::Kind::kWeight))) {
        return Fail(file_.ErrorAt(
            *members.Find("before"),
            "merge_linears needs lines like %y = linear(%x, !w)"));
      }
    }
    return {};
  }

  // One text for all alternatives that it fits, or one per alternative.
  Status ReadAfter(const rules::Members& members,
                   std::span<Alternative> alternatives) {
    const rules::Node* const after = members.Find("after");
    if (after == nullptr) return {};
    const std::vector<const rules::Node*> texts = ItemsOf(*after);
    if (texts.size() != 1 && texts.size() != alternatives.size()) {
      return Fail(file_.ErrorAt(
          *after, fmt::format("expected one text or one per alternative ({})",
                              alternatives.size())));
    }
    for (size_t i = 0; i < alternatives.size(); ++i) {
      const rules::Node& text = *texts[texts.size() > 1 ? i : 0];
      if (text.kind == rules::Node::Kind::kNull) continue;
      auto statements = ParseStatements(text.text);
      if (!statements) return At(text, statements.error());
      if (auto done = ValidateTemplate(*statements, alternatives[i].pattern);
          !done)
        return At(text, done.error());
      alternatives[i].after = std::move(*statements);
    }
    return {};
  }

  Status ReadCounterExamples(const rules::Members& members, Rule& rule) {
    const rules::Node* const list = members.Find("not");
    if (list == nullptr) return {};
    if (!list->IsList()) return Fail(file_.ErrorAt(*list, "expected a list"));
    for (const rules::Node& node : list->items) {
      LAMINA_ASSIGN(const rules::Members one,
                    rules::Members::Of(file_, node, kNotKeys));
      CounterExample out;
      out.why = one.TextOr("why", "");
      LAMINA_ASSIGN(out.text, one.Text("text"));
      rule.counter_examples.push_back(std::move(out));
    }
    return {};
  }

  const rules::DataFile& file_;
  std::vector<std::string>* warnings_;
  std::vector<const rules::Node*> checks_;
};

}  // namespace

Result<Rule> ReadRule(const rules::DataFile& file, const rules::Node& node,
                      std::vector<std::string>* warnings) {
  return RuleReader(file, warnings).Read(node);
}

namespace {

constexpr size_t kMaxRuleFile = size_t{16} << 20;
constexpr size_t kMaxRules = 10'000;  // of one file

}  // namespace

const std::vector<std::string_view>& StageOrder() {
  static const std::vector<std::string_view> order = {
      "factory",   "export",      "post_export",      "pattern_matcher",
      "sharding",  "weight_load", "post_load_fusion", "cache_init",
      "visualize", "export_onnx", "compile",
  };
  return order;
}

size_t StageRank(std::string_view stage) {
  const auto& order = StageOrder();
  return static_cast<size_t>(std::find(order.begin(), order.end(), stage) -
                             order.begin());
}

const Rule* RuleSet::Find(std::string_view name) const {
  for (const Rule& rule : rules) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

Result<std::vector<Rule>> ReadRules(const rules::DataFile& file,
                                    std::vector<std::string>* warnings) {
  constexpr std::string_view kKeys[] = {"rules"};
  LAMINA_ASSIGN(const rules::Members members,
                rules::Members::Of(file, file.root, kKeys));
  const rules::Node* const list = members.Find("rules");
  if (list == nullptr || !list->IsList())
    return Fail(members.ErrorAt("expected a list 'rules'"));
  std::vector<Rule> out;
  if (list->items.size() > kMaxRules)
    return Fail(file.ErrorAt(*list, "too many rules"));
  for (const rules::Node& node : list->items) {
    LAMINA_ASSIGN(Rule rule, ReadRule(file, node, warnings));
    for (const Rule& other : out) {
      if (other.name != rule.name) continue;
      return Fail(file.ErrorAt(*node.Find("rule"),
                               "the rule '" + rule.name + "' occurs twice"));
    }
    out.push_back(std::move(rule));
  }
  return out;
}

Result<RuleSet> LoadRuleSet(const rules::DataSet& data,
                            const std::string& extra) {
  RuleSet set;
  const auto add = [&](std::vector<Rule>&& rules) {
    for (Rule& rule : rules) {
      const auto old =
          std::find_if(set.rules.begin(), set.rules.end(),
                       [&](const Rule& r) { return r.name == rule.name; });
      if (old == set.rules.end()) {
        set.rules.push_back(std::move(rule));
      } else {
        *old = std::move(rule);
      }
    }
  };
  LAMINA_ASSIGN(auto files, data.Load("fusions"));
  // The last one wins here: the user's files come first in the list.
  std::reverse(files.begin(), files.end());
  for (const auto& file : files) {
    LAMINA_ASSIGN(auto rules, ReadRules(*file, &set.warnings));
    add(std::move(rules));
  }
  if (!extra.empty()) {
    LAMINA_ASSIGN(std::string text, ReadAll(extra, kMaxRuleFile));
    LAMINA_ASSIGN(const rules::DataFile file,
                  rules::ParseYaml(extra, std::move(text)));
    LAMINA_ASSIGN(auto rules, ReadRules(file, &set.warnings));
    add(std::move(rules));
  }
  std::stable_sort(set.rules.begin(), set.rules.end(),
                   [](const Rule& a, const Rule& b) {
                     return StageRank(a.stage) < StageRank(b.stage);
                   });
  return set;
}

// The examples and counter-examples of a rule, held against its patterns.

Result<Dump> ParseExample(const std::string& name, std::string_view lines) {
  Header header;
  header.transform = "example";
  header.stage = "example";
  std::string text = HeaderText(header) + SectionHead("(root)");
  text += lines;
  return ParseDump(name, std::move(text));
}

std::vector<std::string> CheckRuleExamples(const Rule& rule) {
  std::vector<std::string> out;
  FindOptions options;
  options.near_misses = true;
  const auto find = [&](std::string_view text) -> std::optional<RuleMatches> {
    auto dump = ParseExample(rule.name, text);
    if (!dump || dump->graphs.empty() || !dump->diagnostics.empty()) {
      out.push_back(rule.name + ": an example is no sound dump: " +
                    (dump ? Format(dump->diagnostics, rule.name)
                          : dump.error().ToString()));
      return std::nullopt;
    }
    return FindRule(OpIndex(dump->graphs[0]), rule, options);
  };
  for (size_t i = 0; i < rule.examples.size(); ++i) {
    const auto found = find(rule.examples[i]);
    if (found && found->matches.size() != 1) {
      out.push_back(fmt::format("{}: example {} has {} matches, expected 1",
                                rule.name, i + 1, found->matches.size()));
    }
  }
  for (size_t i = 0; i < rule.counter_examples.size(); ++i) {
    const CounterExample& example = rule.counter_examples[i];
    const auto found = find(example.text);
    if (!found) continue;
    if (!found->matches.empty()) {
      out.push_back(
          fmt::format("{}: counter-example {} matches", rule.name, i + 1));
    }
    if (example.why.empty()) continue;
    const bool named =
        std::any_of(found->near_misses.begin(), found->near_misses.end(),
                    [&](const RuleMatch& miss) {
                      return miss.match.deviations.size() == 1 &&
                             Name(miss.match.deviations[0].miss) == example.why;
                    });
    if (named) continue;
    std::string reasons;
    for (const RuleMatch& miss : found->near_misses)
      reasons += " " + std::string(Name(miss.match.deviations[0].miss));
    out.push_back(fmt::format(
        "{}: counter-example {} is no near miss for '{}' (found:{})", rule.name,
        i + 1, example.why, reasons));
  }
  return out;
}

}  // namespace lamina::graph
