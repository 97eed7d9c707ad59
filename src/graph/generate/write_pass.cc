// SPDX-License-Identifier: Apache-2.0
//
// The order of writing: places in the dump, the form, the code, tests, what
// stands beside it, checks. One file: each step uses what the ones before
// found.
#include "graph/generate/write_pass.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/escape.h"
#include "base/text.h"
#include "graph/generate/pattern_form.h"
#include "graph/generate/test_text.h"
#include "graph/generate/walk.h"
#include "graph/passes/pass.h"
#include "graph/passes/rule_file.h"
#include "graph/types.h"

namespace lamina::generate {
namespace {

using Json = nlohmann::ordered_json;
using fusion::Mention;
using graph::Alternative;
using graph::Guard;
using graph::Rule;
using graph::Statement;
using graph::Term;
using Kind = graph::Term::Kind;

constexpr size_t kMostVariants = 4;

// Text that is safe in a docstring and in Markdown.
std::string DocText(std::string_view text) {
  std::string out;
  for (const char c : EscapeTerminal(text)) {
    if (c == '\\' || c == '"') out += c == '"' ? "'" : "\\";
    if (c != '"') out += c;
  }
  return out;
}

// Running text in lines of at most `width`, "- " in front of the first.
std::string Item(std::string_view text, size_t width = 92) {
  std::string out = "-";
  size_t column = 1;
  while (!text.empty()) {
    const std::string_view word = TakeUntil(text, ' ');
    if (column + 1 + word.size() > width) {
      out += "\n ";
      column = 1;
    }
    out += ' ';
    out += word;
    column += 1 + word.size();
  }
  return out + "\n";
}

bool UsesWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || (!IsWordCharacter(text[at - 1]) && text[at - 1] != '.')) &&
        (end == text.size() || !IsWordCharacter(text[end])))
      return true;
  }
  return false;
}

std::string WithoutOverload(std::string_view op) {
  const size_t first = op.find('.');
  const size_t second = op.find('.', first + 1);
  return std::string(op.substr(0, second));
}

class PassWriter {
 public:
  explicit PassWriter(const PassRequest& request)
      : request_(request), rule_(request.rule), api_(*request.api) {}

  Result<WrittenPass> Run() {
    LAMINA_TRY(Prepare());
    LAMINA_TRY(FindPlaces());
    LAMINA_TRY(LookUpOps());
    LAMINA_TRY(Code());
    Tests();
    LAMINA_TRY(Config());
    LAMINA_TRY(Fallbacks());
    out_.checks = CheckPass(request_, out_.files, test_names_);
    for (const CheckAnswer& check : out_.checks)
      out_.failed += check.answer == "fail";
    Beside();
    return std::move(out_);
  }

 private:
  Error Usage(std::string what, std::string hint = {}) const {
    return UsageError(rule_.name + ": " + std::move(what), std::move(hint));
  }

  Status Prepare() {
    const std::string& key = request_.key;
    const bool fine =
        !key.empty() && key[0] >= 'a' && key[0] <= 'z' &&
        std::all_of(key.begin(), key.end(), [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
        });
    if (!fine) {
      return Fail(UsageError("'" + EscapeTerminal(key) + "' is no key",
                             "⟨as⟩ takes small letters, digits and _"));
    }
    if (const Mention* taken =
            request_.index->Find(key, Mention::Kind::kTransform)) {
      return Fail(
          UsageError(fmt::format("the tree registers {} already, at {}:{}", key,
                                 taken->file, taken->line),
                     "⟨as⟩ KEY gives it another key"));
    }
    if (Contains("\n" + api_.default_yaml, "\n  " + key + ":")) {
      return Fail(
          UsageError(fmt::format("{}/config/default.yaml lists {} already",
                                 kAutoDeploy, key),
                     "⟨as⟩ KEY gives it another key"));
    }
    if (std::find(api_.stages.begin(), api_.stages.end(), rule_.stage) ==
        api_.stages.end()) {
      return Fail(
          Usage(fmt::format("the stage {} is none of this tree", rule_.stage),
                fmt::format("it has {}", fmt::join(api_.stages, ", "))));
    }
    if (!rule_.rewrites.empty()) rule_.alternatives = rule_.rewrites;
    rule_.rewrites.clear();
    if (!rule_.native.empty() || rule_.counting == graph::Counting::kGroup) {
      return Fail(
          Usage("it counts groups of nodes, which is code and no "
                "pattern",
                "write the pass by hand"));
    }
    const size_t before = rule_.alternatives.size();
    std::erase_if(rule_.alternatives, [](const Alternative& alternative) {
      return alternative.after.empty();
    });
    if (rule_.alternatives.empty()) {
      return Fail(Usage("the rule does not say what stands in place of a match",
                        "⟨kernel⟩ OP names an op that takes its values, "
                        "weights and literals in order"));
    }
    if (rule_.alternatives.size() < before) {
      out_.notes.push_back(Counted(before - rule_.alternatives.size(), "form") +
                           " of the rule has no replacement and is left out.");
    }
    // Vouched for by the user.
    std::erase_if(rule_.guards, [&](const Guard& guard) {
      const bool drop = guard.visible != Guard::Visible::kDump &&
                        guard.check.empty() &&
                        request_.assume.contains(guard.id);
      if (drop) out_.notes.push_back("Taken as given: " + guard.text + ".");
      return drop;
    });
    return {};
  }

  // The first place of each form, and places that differ in ops and types.
  Status FindPlaces() {
    examples_.resize(rule_.alternatives.size());
    variants_.resize(rule_.alternatives.size());
    std::map<size_t, std::set<std::string>> kinds;
    const auto look = [&](const graph::Graph& graph) {
      graph::FindOptions find;
      find.option = Option();
      const graph::RuleMatches found =
          graph::FindRule(graph::OpIndex(graph), rule_, find);
      for (const graph::RuleMatch& match : found.matches) {
        const Alternative& alternative = rule_.alternatives[match.alternative];
        LearnOptions(graph, alternative, match.match);
        auto example = ExampleOf(graph, alternative.pattern, match.match);
        if (!example) continue;
        std::string kind;
        for (const ExampleNode& node : example->nodes) {
          kind += node.op + "|";
          kind += graph::SplitResult(node.result).dtype;
        }
        if (kinds[match.alternative].size() < kMostVariants &&
            kinds[match.alternative].insert(kind).second)
          variants_[match.alternative].push_back(*example);
        if (!examples_[match.alternative])
          examples_[match.alternative] = std::move(*example);
      }
      return found.matches.size();
    };
    if (request_.graph != nullptr) {
      matches_ = look(*request_.graph);
      Rule assumed = rule_;
      std::erase_if(assumed.guards, [](const Guard& guard) {
        return guard.visible != Guard::Visible::kDump && guard.check.empty();
      });
      out_.places = graph::CountReplacements(*request_.graph, assumed);
      if (matches_ == 0) {
        out_.notes.push_back("Nothing in " + request_.dump +
                             " matches: shapes are those of the examples of "
                             "the rule.");
      }
    }
    if (matches_ == 0) {
      for (const std::string& text : rule_.examples) {
        const auto dump = graph::ParseExample(rule_.name, text);
        if (dump && !dump->graphs.empty()) look(dump->graphs[0]);
      }
    }
    const bool any =
        std::any_of(examples_.begin(), examples_.end(),
                    [](const auto& example) { return example.has_value(); });
    if (!any) {
      return Fail(
          Usage("nothing matches it, so nothing is known of its shapes",
                "give a dump with a match (⟨dump⟩), or examples in the rule"));
    }
    return {};
  }

  graph::OptionOf Option() {
    return [this](std::string_view name) {
      const auto found = raw_options_.find(std::string(name));
      return found == raw_options_.end() ? std::string() : found->second;
    };
  }

  // Options of the transform that a literal must equal: what the dump has.
  void LearnOptions(const graph::Graph& graph, const Alternative& alternative,
                    const graph::Match& match) {
    for (const Guard& guard : rule_.guards) {
      if (guard.check.empty() || guard.check[0].text != "option") continue;
      const auto& items = guard.check[0].items;
      const uint32_t slot = alternative.pattern.Find(items[0].text);
      if (slot == graph::kNoSlot || !match.slots[slot].bound) continue;
      std::string text(match.slots[slot].text);
      if (text.empty() && match.slots[slot].operand.valid())
        text = graph.operand(match.slots[slot].operand).text();
      if (const auto literal = Literal(text)) {
        raw_options_.try_emplace(items[1].text, text);
        options_.try_emplace(items[1].text, *literal);
      }
    }
  }

  // New ops and functions: where they are defined, and what they write to.
  Status LookUpOps() {
    bool missing = false;
    bool compute = false;
    std::set<std::string> there;  // ops that the dump has
    for (const Alternative& alternative : rule_.alternatives) {
      for (const graph::PatternLine& line : alternative.pattern.lines) {
        for (const std::string& target : line.targets) {
          there.insert(WithoutOverload(target));
          if (target.starts_with("fn.") &&
              request_.index->Find(target, Mention::Kind::kDefinition) ==
                  nullptr)
            return Fail(NoFunction(target));
        }
      }
    }
    for (const Alternative& alternative : rule_.alternatives) {
      for (const Statement& line : alternative.after) {
        if (line.targets.empty()) continue;
        const std::string op = Filled(line.targets[0]);
        if (graph::IsOfPyTorch(op)) continue;
        compute = true;
        const std::string name =
            op.starts_with("fn.") ? op : WithoutOverload(op);
        const Mention* const found =
            request_.index->Find(name, Mention::Kind::kDefinition);
        if (found == nullptr && op.starts_with("fn.")) {
          return Fail(NoFunction(op));
        }
        if (found == nullptr && there.contains(name)) continue;
        if (found == nullptr) {
          missing = true;
          if (std::find(fallbacks_.begin(), fallbacks_.end(), name) ==
              fallbacks_.end())
            fallbacks_.push_back(name);
          risks_.push_back(name +
                           " is not in the tree: fallback/ has it as "
                           "torch ops, without a kernel");
          continue;
        }
        evidence_.push_back(
            fmt::format("{}: {}:{}", name, found->file, found->line));
        const auto written = MutatedOperands(*request_.index, name);
        if (written && written->empty()) continue;
        for (size_t i = 0; i < line.operands.size(); ++i) {
          const Term& term = line.operands[i];
          const bool value =
              term.kind == Kind::kValue || term.kind == Kind::kWeight;
          const bool hit =
              !written ||
              std::find(written->begin(), written->end(), i) != written->end();
          if (value && hit) mutated_.insert(term.text);
        }
      }
    }
    out_.path = missing   ? "triton_fallback_path"
                : compute ? "existing_kernel_path"
                          : "other";
    if (!mutated_.empty()) {
      risks_.push_back(fmt::format(
          "the new op writes to {}: places where something reads them later "
          "are left",
          fmt::join(mutated_, ", ")));
    }
    return {};
  }

  Error NoFunction(const std::string& op) const {
    return Usage("the tree defines no function " + op.substr(3),
                 "⟨kernel⟩ OP names an op to put in place instead");
  }

  // "a.{option:value}" with the value.
  static std::string Filled(std::string_view target) {
    const size_t open = target.find('{');
    const size_t close = target.find('}');
    if (open == std::string_view::npos || close == std::string_view::npos)
      return std::string(target);
    const std::string_view key = target.substr(open + 1, close - open - 1);
    const size_t colon = key.find(':');
    return std::string(target.substr(0, open)) +
           std::string(
               colon == std::string_view::npos ? "" : key.substr(colon + 1)) +
           std::string(target.substr(close + 1));
  }

  std::string PatternText() const {
    std::string out;
    for (size_t i = 0; i < rule_.alternatives.size(); ++i) {
      if (i > 0) out += "or\n";
      for (const auto text : SplitLines(rule_.alternatives[i].text)) {
        const std::string line = DocText(text);
        if (!line.empty()) out += "    " + Shorten(line, 92) + "\n";
      }
    }
    std::string guards;
    for (const Guard& guard : rule_.guards) {
      if (!guard.check.empty()) guards += Item("if " + DocText(guard.text));
    }
    return out + (guards.empty() ? "" : "\n") + guards;
  }

  static std::string TypeOf(const std::string& literal) {
    if (literal == "True" || literal == "False") return "bool";
    if (literal.starts_with('"')) return "str";
    if (literal == "None" || literal.starts_with("torch") ||
        literal.starts_with("float("))
      return "Any";
    if (literal.starts_with('[') || literal.starts_with('(')) return "list";
    return literal.find_first_of(".en") != std::string::npos ? "float" : "int";
  }

  void Imports(std::string& body, const Needs& needs, bool walk) const {
    std::string std_part;
    std::string absolute;
    std::vector<std::string> relative;
    if (UsesWord(body, "operator")) std_part += "import operator\n";
    if (walk) std_part += "from dataclasses import dataclass\n";
    std::vector<std::string> typing;
    for (const std::string_view name :
         {"Any", "Callable", "Dict", "Iterator", "List", "Optional", "Set",
          "Tuple", "Type"}) {
      if (UsesWord(body, name)) typing.emplace_back(name);
    }
    if (!typing.empty())
      std_part +=
          fmt::format("from typing import {}\n", fmt::join(typing, ", "));
    for (const std::string& function : needs.functions) {
      const Mention* const found =
          request_.index->Find("fn." + function, Mention::Kind::kDefinition);
      if (found == nullptr) continue;
      std::string module = found->file.substr(0, found->file.rfind(".py"));
      std::replace(module.begin(), module.end(), '/', '.');
      std::string root(kAutoDeploy);
      std::replace(root.begin(), root.end(), '/', '.');
      if (module.starts_with(root + ".")) {
        relative.push_back(fmt::format(
            "from ...{} import {}", module.substr(root.size() + 1), function));
      } else {
        absolute += fmt::format("from {} import {}\n", module, function);
      }
    }
    for (const std::string& op : fallbacks_)
      relative.push_back(
          fmt::format("from ...custom_ops import {}  # noqa: F401",
                      op.substr(op.find('.') + 1)));
    const auto from = [&](std::string_view symbol) {
      relative.push_back(
          fmt::format("from {} import {}", api_.ModuleOf(symbol), symbol));
    };
    from("ModelFactory");
    from("CachedSequenceInterface");
    if (UsesWord(body, "ad_logger")) from("ad_logger");
    if (UsesWord(body, "is_op")) from("is_op");
    if (!walk) {
      relative.push_back(fmt::format(
          "from {} import ADPatternMatcherPass, register_ad_pattern",
          api_.ModuleOf("register_ad_pattern")));
    }
    std::sort(relative.begin(), relative.end());
    std::vector<std::string> interface;
    for (const std::string_view name :
         {"BaseTransform", "SharedConfig", "TransformConfig", "TransformInfo",
          "TransformRegistry"}) {
      if (UsesWord(body, name)) interface.emplace_back(name);
    }
    const std::string graph = UsesWord(body, "Graph") ? "Graph, " : "";
    const std::string node = UsesWord(body, "Node") ? ", Node" : "";
    std::string text = std_part + "\nimport torch\nfrom torch.fx import " +
                       graph + "GraphModule" + node + "\n\n";
    if (!absolute.empty()) text += absolute + "\n";
    for (const std::string& line : relative) text += line + "\n";
    std::string last = "from ..interface import " +
                       fmt::format("{}", fmt::join(interface, ", "));
    if (last.size() > kColumns) {
      last = "from ..interface import (\n";
      for (const std::string& name : interface) last += "    " + name + ",\n";
      last += ")";
    }
    text += last + "\n";
    if (text.starts_with('\n')) text.erase(0, 1);
    constexpr std::string_view kHere = "<<imports>>\n";
    body.replace(body.find(kHere), kHere.size(), text);
  }

  Status Code() {
    reasons_ = ReasonsForWalk(rule_, api_);
    walk_ = request_.form == Form::kWalk ||
            (request_.form == Form::kChoose && !reasons_.empty());
    Needs needs;
    std::string module;
    if (!walk_) {
      std::vector<PatternPlaces> places;
      for (size_t i = 0; i < variants_.size(); ++i) {
        if (!variants_[i].empty()) places.push_back({i, variants_[i]});
      }
      auto written = PatternModule(rule_, places, needs);
      if (!written && request_.form == Form::kPattern)
        return Fail(std::move(written).error());
      if (written) {
        module = std::move(*written);
      } else {
        reasons_.push_back(written.error().what);
        walk_ = true;
        needs = {};
      }
    }
    out_.form = walk_ ? "walk" : "pattern";
    std::map<std::string, std::string> values = Common();
    std::string methods;
    std::string forms;
    if (walk_) {
      std::vector<std::string> pairs;
      for (size_t i = 0; i < rule_.alternatives.size(); ++i) {
        LAMINA_ASSIGN(
            const std::string text,
            WalkMethods(rule_, rule_.alternatives[i], i + 1, options_, needs));
        methods += (methods.empty() ? "" : "\n") + text;
        pairs.push_back(
            fmt::format("(self._find_{0}, self._replace_{0})", i + 1));
      }
      forms = pairs.size() == 1 ? "(" + pairs[0] + ",)" : "self._forms()";
      if (pairs.size() > 1) {
        methods =
            "def _forms(self) -> List[Tuple[Callable, Callable]]:\n    "
            "\"\"\"Search and replacement of each form, the first that "
            "fits is taken.\"\"\"\n    " +
            Bracketed(8, "return [", pairs, "]", true) + "\n\n" + methods;
        size_t at = methods.find("return [\n");
        // The list stands at the indent of its method.
        for (at = at == std::string::npos ? at : methods.find('\n', at);
             at != std::string::npos && methods[at + 1] != '\n';
             at = methods.find('\n', at + 1))
          methods.insert(at + 1, "    ");
      }
      const bool several = pairs.size() > 1;
      if (several)
        methods =
            request_.templates->Fill("anchors_method", {}) + "\n" + methods;
      values["anchors"] =
          several ? "self._anchors(graph, order)" : "list(graph.nodes)";
      values["methods"] = methods;
      values["forms"] = forms;
      Helpers(needs, values);
    } else {
      std::string helpers;
      for (const std::string& helper : needs.helpers)
        helpers += request_.templates->Fill(helper, {}) + "\n\n";
      values["module"] = helpers + module + "\n\n";
      std::vector<std::string> arguments = {"scalar_workaround=scalars",
                                            "extra_check=check"};
      const auto& has = api_.matcher_parameters;
      if (std::find(has.begin(), has.end(), "skip_duplicates") != has.end())
        arguments.emplace_back("skip_duplicates=True");
      values["register_arguments"] =
          fmt::format("{},", fmt::join(arguments, ",\n"));
    }
    Options(needs, values);
    std::string facts;
    for (const std::string& reason : reasons_)
      facts += Item((walk_ ? "a walk: " : "against a pattern: ") + reason);
    for (const std::string& line : evidence_) facts += Item(line);
    if (!rule_.limits.empty()) facts += Item(DocText(rule_.limits));
    values["facts"] = facts;
    values["pattern"] = PatternText();
    values["imports"] = "<<imports>>";
    std::string text =
        request_.templates->Fill(walk_ ? "walk" : "pattern", values);
    Imports(text, needs, walk_);
    open_ = needs.open;
    out_.files.push_back({PassPath(request_.key), std::move(text)});
    return {};
  }

  std::map<std::string, std::string> Common() const {
    std::string header = api_.header;
    if (!Contains(header, "SPDX"))
      header = "# SPDX-License-Identifier: Apache-2.0\n";
    std::string title = DocText(rule_.title.empty() ? rule_.name : rule_.title);
    while (title.ends_with('.')) title.pop_back();
    return {{"header", header},
            {"title", Shorten(title, 70)},
            {"rule", DocText(rule_.name)},
            {"key", request_.key},
            {"class", ClassName(request_.key)},
            {"stage", rule_.stage},
            {"dump", DocText(request_.graph == nullptr
                                 ? std::string("the examples of the rule")
                                 : Shorten(request_.dump, 40))},
            {"apply_parameters",
             "self,\ngm: GraphModule,\ncm: CachedSequenceInterface,\nfactory: "
             "ModelFactory,\nshared_config: SharedConfig,"}};
  }

  void Helpers(const Needs& needs, std::map<std::string, std::string>& values) {
    const bool repeats = rule_.counting == graph::Counting::kFixedPoint;
    values["rounds"] = repeats ? "self._until_none_is_left(gm)"
                               : "self._replace_all(gm.graph)";
    if (repeats)
      values["round_method"] =
          request_.templates->Fill("round_method", {}) + "\n";
    std::vector<std::string> names = {
        "nodes",
        mutated_.empty() ? "insertion_point" : "insertion_point_mutating"};
    for (const std::string_view helper :
         {"operands", "same", "only_inside", "value", "grows_only", "meta",
          "computed"}) {
      if (needs.helpers.contains(std::string(helper)))
        names.emplace_back(helper);
    }
    std::vector<std::string> quoted;
    for (const std::string& name : mutated_) quoted.push_back(Quoted(name));
    const std::map<std::string, std::string> inner = {
        {"is_op", api_.has_is_op
                      ? "is_op(node, ops)"
                      : "(isinstance(node, Node) and node.op == "
                        "\"call_function\" and any(t in ops for t in "
                        "(node.target, getattr(node.target, "
                        "\"overloadpacket\", None))))"},
        {"mutated", fmt::format("{}", fmt::join(mutated_, ", "))},
        {"mutated_names", Bracketed(0, "(", quoted, ")", true)}};
    std::string text;
    for (const std::string& name : names) {
      text +=
          (text.empty() ? "" : "\n\n") + request_.templates->Fill(name, inner);
    }
    values["helpers"] = text;
    if (needs.helpers.contains("shown_method")) {
      values["methods"] = request_.templates->Fill("shown_method", {}) + "\n" +
                          values["methods"];
    }
  }

  void Options(const Needs& needs, std::map<std::string, std::string>& values) {
    std::string member;
    if (!needs.options.empty()) {
      const std::string name = ClassName(request_.key) + "Config";
      std::string text = fmt::format(
          "class {}(TransformConfig):\n    \"\"\"Options of the "
          "pass.\"\"\"\n\n",
          name);
      for (const auto& [option, value] : needs.options) {
        text += fmt::format("    {}: {} = {}\n", Identifier(option),
                            TypeOf(value), value);
        options_.try_emplace(option, value);
        entries_ += fmt::format("    {}: {}\n", option,
                                value.starts_with('"')
                                    ? value.substr(1, value.size() - 2)
                                : value == "None"  ? "null"
                                : value == "True"  ? "true"
                                : value == "False" ? "false"
                                                   : value);
      }
      values["config"] = text + "\n\n";
      member += fmt::format(
          "config: {0}\n\n@classmethod\ndef get_config_class(cls) -> "
          "Type[TransformConfig]:\n    return {0}\n\n",
          name);
    }
    if (!needs.open.empty() && walk_) {
      std::vector<std::string> items;
      for (const auto& [id, text] : needs.open)
        items.push_back(Quoted(id) + ": False");
      member = "# What no dump shows; False: no place is replaced.\n" +
               Bracketed(8, "ANSWERS = {", items, "}", true) + "\n\n" + member;
      for (const auto& [id, text] : needs.open)
        risks_.push_back("to be answered before it does anything: " + text +
                         " (ANSWERS, or --assume " + id + ")");
    }
    values["config_member"] = member;
    reads_shapes_ = needs.helpers.contains("shown_method");
  }

  void Tests() {
    TestInput input;
    input.rule = &rule_;
    input.pattern_form = !walk_;
    input.writes = !mutated_.empty();
    input.examples = examples_;
    input.option = Option();
    TestText tests = WriteTests(input);
    std::map<std::string, std::string> values = Common();
    std::string text =
        "from pathlib import Path\n\nimport pytest\nimport torch\n\n";
    if (tests.needs.uses_operator) text.insert(0, "import operator\n");
    text += "import tensorrt_llm._torch.auto_deploy.custom_ops  # noqa: F401\n";
    for (const std::string& function : tests.needs.functions) {
      const Mention* const found =
          request_.index->Find("fn." + function, Mention::Kind::kDefinition);
      if (found == nullptr) {
        // A function of the dump that the tree does not have.
        text += fmt::format("{} = None  # not in the tree\n", function);
        continue;
      }
      std::string module = found->file.substr(0, found->file.rfind(".py"));
      std::replace(module.begin(), module.end(), '/', '.');
      text += fmt::format("from {} import (\n    {},\n)\n", module, function);
    }
    text +=
        "from tensorrt_llm._torch.auto_deploy.transform import interface\n"
        "from tensorrt_llm._torch.auto_deploy.transform.interface import "
        "SharedConfig, TransformRegistry\n";
    text += fmt::format(
        "from tensorrt_llm._torch.auto_deploy.transform.library import (  # "
        "noqa: F401\n    {},\n)\n",
        request_.key);
    values["imports"] = text;
    values["places"] = tests.places;
    values["tests"] = tests.tests;
    for (size_t i = 0; i < examples_.size() && !values.contains("place"); ++i) {
      if (examples_[i]) values["place"] = fmt::format("place_{}", i + 1);
    }
    if (!open_.empty() && walk_) {
      values["answers"] =
          "transform.ANSWERS = dict.fromkeys(cls.ANSWERS, True)";
    }
    test_names_ = tests.names;
    test_names_.insert(test_names_.end(), {"test_numerics", "test_disabled"});
    out_.files.push_back({TestPath(api_, request_.key),
                          request_.templates->Fill("test", values)});
  }

  Status Config() {
    std::string entry =
        fmt::format("  {}:\n    stage: {}\n    enabled: false\n", request_.key,
                    rule_.stage);
    const auto& fields = api_.config_fields;
    if (reads_shapes_ && std::find(fields.begin(), fields.end(),
                                   "requires_shape_prop") != fields.end())
      entry += "    requires_shape_prop: true\n";
    entry += entries_;
    const auto with = WithConfigEntry(api_, rule_.stage, entry);
    if (!with) {
      out_.notes.emplace_back(
          "The tree has no config/default.yaml with a stage to stand behind: "
          "the entry is in NOTE.md.");
      risks_.push_back("put this into the configuration: " + entry);
      return {};
    }
    const std::string file = std::string(kAutoDeploy) + "/config/default.yaml";
    out_.files.push_back(
        {"default.yaml.diff", UnifiedDiff(file, api_.default_yaml, *with)});
    if (!api_.walks_library) {
      const std::string init =
          std::string(kAutoDeploy) + "/transform/library/__init__.py";
      out_.files.push_back(
          {"library_init.diff",
           UnifiedDiff(init, api_.library_init,
                       api_.library_init +
                           fmt::format("from . import {}  # noqa: F401\n",
                                       request_.key))});
    }
    return {};
  }

  // A fallback's body: the ops of the example with the names of the rule.
  std::string BodyArg(const ExampleArg& arg, const graph::PatternTerm* term,
                      const graph::Pattern& pattern) const {
    if (term != nullptr && (term->kind == Kind::kLiteral ||
                            (term->kind == Kind::kAny && !term->text.empty())))
      return Identifier(pattern.slots[term->slot].name);
    if (arg.kind == ExampleArg::Kind::kNode) return arg.text;
    if (arg.kind == ExampleArg::Kind::kText)
      return Literal(arg.text).value_or("None");
    std::vector<std::string> items;
    for (size_t i = 0; i < arg.items.size(); ++i) {
      const bool inner = term != nullptr && i < term->items.size();
      items.push_back(
          BodyArg(arg.items[i], inner ? &term->items[i] : nullptr, pattern));
    }
    return Listed(items, arg.kind == ExampleArg::Kind::kTuple);
  }

  static std::string ParameterType(const std::string& literal) {
    if (literal.starts_with('['))
      return literal.find('.') != std::string::npos ? "List[float]"
                                                    : "List[int]";
    const std::string type = TypeOf(literal);
    return type == "Any" ? "Optional[float]" : type;
  }

  Status Fallbacks() {
    for (const std::string& op : fallbacks_) {
      for (size_t i = 0; i < rule_.alternatives.size(); ++i) {
        const Alternative& alternative = rule_.alternatives[i];
        const auto line =
            std::find_if(alternative.after.begin(), alternative.after.end(),
                         [&](const Statement& one) {
                           return !one.targets.empty() &&
                                  WithoutOverload(Filled(one.targets[0])) == op;
                         });
        if (line == alternative.after.end() || !examples_[i]) continue;
        LAMINA_TRY(Fallback(op, *line, alternative, *examples_[i]));
        break;
      }
    }
    return {};
  }

  Status Fallback(const std::string& op, const Statement& line,
                  const Alternative& alternative, const Example& example) {
    const graph::Pattern& pattern = alternative.pattern;
    std::vector<std::string> parameters;
    for (size_t i = 0; i < line.operands.size(); ++i) {
      const Term& term = line.operands[i];
      if (term.kind == Kind::kValue || term.kind == Kind::kWeight) {
        parameters.push_back(Identifier(term.text) + ": torch.Tensor");
        continue;
      }
      std::string literal =
          term.kind == Kind::kText ? Literal(term.text).value_or("None") : "";
      std::string name = fmt::format("operand_{}", i);
      if (term.kind == Kind::kLiteral || term.kind == Kind::kAny) {
        name = Identifier(term.text);
        for (const graph::PatternLine& one : pattern.lines) {
          const ExampleNode* const node =
              example.Find(Identifier(pattern.slots[one.slot].name));
          for (size_t k = 0; node != nullptr && k < one.operands.size(); ++k) {
            if (one.operands[k].slot != graph::kNoSlot &&
                pattern.slots[one.operands[k].slot].name == term.text &&
                k < node->args.size() &&
                node->args[k].kind != ExampleArg::Kind::kNode)
              literal = BodyArg(node->args[k], nullptr, pattern);
          }
        }
      }
      parameters.push_back(name + ": " + ParameterType(literal));
    }
    std::vector<std::string> results;
    if (pattern.Find(line.result) != graph::kNoSlot) {
      results.push_back(Identifier(line.result));
    } else if (!line.annotation.empty()) {
      const Term& like = line.annotation[0];
      if (like.kind == Kind::kValue) results.push_back(Identifier(like.text));
      for (const Term& item : like.items)
        results.push_back(Identifier(item.text));
    }
    // The ops that lead to the results, and nothing that is no operand.
    std::set<std::string> needed(results.begin(), results.end());
    std::set<std::string> given;
    for (const std::string& parameter : parameters)
      given.insert(parameter.substr(0, parameter.find(':')));
    bool whole = !results.empty();
    for (size_t i = example.nodes.size(); i-- > 0;) {
      const ExampleNode& node = example.nodes[i];
      if (!needed.contains(node.name)) continue;
      whole &= node.kind == ExampleNode::Kind::kOp || given.contains(node.name);
      for (const ExampleArg& arg : node.args) AddNames(arg, needed);
    }
    for (const std::string& result : results)
      whole &= example.Find(result) != nullptr;
    if (!whole) {
      return Fail(Usage("the tree does not define " + op +
                            ", and the rule does not say what it computes",
                        "⟨kernel⟩ OP names another op"));
    }
    std::string body;
    std::string operators;
    for (const ExampleNode& node : example.nodes) {
      if (node.kind != ExampleNode::Kind::kOp || !needed.contains(node.name))
        continue;
      const graph::PatternLine* own = nullptr;
      for (const graph::PatternLine& one : pattern.lines) {
        if (Identifier(pattern.slots[one.slot].name) == node.name) own = &one;
      }
      std::vector<std::string> args;
      for (size_t i = 0; i < node.args.size(); ++i) {
        const bool named = own != nullptr && i < own->operands.size();
        args.push_back(BodyArg(node.args[i],
                               named ? &own->operands[i] : nullptr, pattern));
      }
      const std::string target = Target(node.op).value_or("None");
      if (node.op.starts_with("builtin.")) operators = "import operator\n";
      body +=
          Bracketed(4, fmt::format("{} = {}(", node.name, target), args, ")") +
          "\n";
    }
    body += Bracketed(4, "return ", results, "") + "\n";
    const std::string name = op.substr(op.find('.') + 1);
    const bool one = results.size() == 1;
    const std::string returns =
        one ? "torch.Tensor"
            : fmt::format("Tuple[{}]",
                          fmt::join(std::vector<std::string>(results.size(),
                                                             "torch.Tensor"),
                                    ", "));
    const auto signature = [&](const std::string& function) {
      return Bracketed(0, fmt::format("def {}(", function), parameters,
                       fmt::format(") -> {}:", returns));
    };
    std::map<std::string, std::string> values = Common();
    values["op"] = op;
    values["function"] = name;
    values["schema"] = fmt::format("{}::{}", op.substr(0, op.find('.')), name);
    values["signature"] = signature(name);
    values["fake_signature"] = signature("_");
    values["body"] = body;
    std::vector<std::string> typing;
    const std::string all = values["signature"];
    for (const std::string_view word : {"List", "Optional", "Tuple"}) {
      if (UsesWord(all, word)) typing.emplace_back(word);
    }
    values["imports"] =
        operators +
        (typing.empty() ? std::string()
                        : fmt::format("from typing import {}\n",
                                      fmt::join(typing, ", "))) +
        (operators.empty() && typing.empty() ? "" : "\n") + "import torch\n";
    out_.files.push_back({"fallback/" + name + ".py",
                          request_.templates->Fill("fallback", values)});
    return {};
  }

  static void AddNames(const ExampleArg& arg, std::set<std::string>& out) {
    if (arg.kind == ExampleArg::Kind::kNode) out.insert(arg.text);
    for (const ExampleArg& item : arg.items) AddNames(item, out);
  }

  void Beside() {
    std::map<std::string, std::string> values = Common();
    values["path"] = out_.path;
    values["form"] = out_.form;
    values["places"] = request_.graph == nullptr ? "no dump was given"
                                                 : std::to_string(out_.places);
    std::string api;
    for (const ApiFact& fact : api_.facts) {
      if (fact.name == "apply" || fact.name == "info")
        api +=
            (api.empty() ? "" : "; ") + fact.form + " (" + fact.evidence + ")";
    }
    values["api"] = api;
    std::string reasons;
    for (const std::string& reason : reasons_) reasons += Item(reason, 86);
    if (reasons.empty())
      reasons = Item("a pattern says all that the rule says");
    values["reasons"] = reasons;
    for (const std::string& op : fallbacks_) {
      values["copy_fallback"] +=
          fmt::format("cp fallback/{}.py TREE/{}/custom_ops/\n",
                      op.substr(op.find('.') + 1), kAutoDeploy);
    }
    values["here"] = "$OLDPWD/";
    if (!api_.walks_library)
      values["second_diff"] =
          "(cd TREE && git apply $OLDPWD/library_init.diff)\n";
    values["test"] = TestPath(api_, request_.key);
    if (!api_.test_folder_exists)
      risks_.push_back("the tree has none of the known folders for tests");
    for (const CheckAnswer& check : out_.checks) {
      if (check.answer != "pass")
        risks_.push_back("check " + check.check + ": " + check.answer + ", " +
                         check.evidence);
    }
    std::string risks;
    for (const std::string& risk : risks_) risks += Item(DocText(risk), 86);
    values["risks"] =
        risks.empty() ? Item("numerics were not measured", 86) : risks;
    out_.files.push_back({"NOTE.md", request_.templates->Fill("note", values)});
    Json json;
    json["key"] = request_.key;
    json["rule"] = rule_.name;
    json["mined"] = request_.mined;
    json["dump"] = request_.graph == nullptr ? "" : request_.dump;
    if (request_.graph != nullptr) {
      json["section"] = request_.graph->name();
      json["graph_hash"] = fmt::format("{:016x}", GraphHash());
      json["matches"] = out_.places;
    }
    json["form"] = out_.form;
    json["reasons"] = reasons_;
    json["path"] = out_.path;
    json["api"] = Json::array();
    for (const ApiFact& fact : api_.facts) {
      json["api"].push_back({{"fact", fact.name},
                             {"form", fact.form},
                             {"evidence", fact.evidence}});
    }
    json["ops"] = evidence_;
    json["checks"] = Json::array();
    for (const CheckAnswer& check : out_.checks) {
      json["checks"].push_back({{"check", check.check},
                                {"answer", check.answer},
                                {"evidence", check.evidence}});
    }
    json["tests"] = test_names_;
    json["risks"] = risks_;
    out_.files.push_back(
        {"pass.json",
         json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"});
    for (const std::string& risk : risks_)
      out_.notes.push_back("Open: " + risk + ".");
  }

  uint64_t GraphHash() const {
    uint64_t hash = 0;
    for (const graph::NodeId id : request_.graph->nodes())
      hash = hash * 31 + Fnv1a(request_.graph->Line(id));
    return hash;
  }

  const PassRequest& request_;
  Rule rule_;
  const TreeApi& api_;
  WrittenPass out_;
  size_t matches_ = 0;
  bool walk_ = true;
  bool reads_shapes_ = false;
  std::vector<std::optional<Example>> examples_;
  std::vector<std::vector<Example>> variants_;
  std::map<std::string, std::string> options_;      // Python literals
  std::map<std::string, std::string> raw_options_;  // as in the dump
  std::set<std::string> mutated_;
  std::vector<std::string> fallbacks_;
  std::vector<std::string> evidence_;
  std::vector<std::string> reasons_;
  std::vector<std::string> risks_;
  std::map<std::string, std::string> open_;
  std::string entries_;
  std::vector<std::string> test_names_;
};

}  // namespace

std::string PassPath(std::string_view key) {
  return fmt::format("{}/transform/library/{}.py", kAutoDeploy, key);
}

std::string TestPath(const TreeApi& api, std::string_view key) {
  return fmt::format("{}/test_{}.py", api.test_folder, key);
}

Result<WrittenPass> WritePass(const PassRequest& request) {
  return PassWriter(request).Run();
}

}  // namespace lamina::generate
