// SPDX-License-Identifier: Apache-2.0
//
// Every test is an edit of the example. The edit is made twice: on the lines of
// a dump, where lamina's matcher says how many places there are, and in Python.
// One file: all tests share the places.
#include "graph/generate/test_text.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/decimal.h"
#include "graph/generate/python_text.h"
#include "graph/pattern/linear_form.h"
#include "graph/types.h"

namespace lamina::generate {
namespace {

using graph::Alternative;
using graph::Guard;
using graph::PatternLine;
using graph::PatternTerm;
using graph::Rule;
using graph::Slot;
using graph::Statement;
using graph::Term;
using Kind = graph::Term::Kind;

std::string ArgText(const ExampleArg& arg) {
  switch (arg.kind) {
    case ExampleArg::Kind::kNode:
      return arg.text;
    case ExampleArg::Kind::kText:
      return Literal(arg.text).value_or("None");
    case ExampleArg::Kind::kList:
    case ExampleArg::Kind::kTuple:
      break;
  }
  std::vector<std::string> items;
  for (const ExampleArg& item : arg.items) items.push_back(ArgText(item));
  return Listed(items, arg.kind == ExampleArg::Kind::kTuple);
}

// Another literal of the same kind; empty: there is none.
std::string Other(const std::string& text) {
  if (IsWhole(text)) return std::to_string(*ParseInt(text) + 1);
  if (ParseDouble(text)) return "0.625";
  if (text == "True") return "False";
  if (text == "False") return "True";
  if (text == "None") return "1";
  if (text.starts_with("torch."))
    return text == "torch.float64" ? "torch.float16" : "torch.float64";
  return "other_word";
}

class TestWriter {
 public:
  explicit TestWriter(const TestInput& input)
      : input_(input), rule_(*input.rule) {}

  TestText Run() {
    size_t places = 0;
    for (const auto& example : input_.examples) places += example.has_value();
    for (size_t i = 0; i < input_.examples.size(); ++i) {
      if (!input_.examples[i]) continue;
      alternative_ = &rule_.alternatives[i];
      example_ = &*input_.examples[i];
      suffix_ = places > 1 ? fmt::format("_{}", i + 1) : "";
      place_ = fmt::format("place_{}", i + 1);
      Place();
      if (Count(*example_) != 1) continue;  // a dump cannot say: no test
      Match();
      TwoLayers();
      ExtraUsers();
      OperandOrder();
      Literals();
      Guards();
      NoMeta();
      Keywords();
      Metadata();
    }
    for (const Guard& guard : rule_.guards) {
      if (!guard.check.empty() || guard.visible == Guard::Visible::kDump)
        continue;
      if (input_.pattern_form) continue;
      Begin("guard_" + Identifier(guard.id));
      code_.Line(1, fmt::format("raise NotImplementedError(\n    {}\n)",
                                Quoted("Is it true for every place that " +
                                       guard.text + "? Then set ANSWERS.")));
      End();
    }
    out_.tests = std::move(code_.text());
    out_.places = std::move(places_.text());
    return std::move(out_);
  }

 private:
  size_t Count(const Example& example,
               const std::vector<std::string>& spies = {}) const {
    return CountMatches(rule_, DumpLines(example, spies), input_.option);
  }

  std::string TargetOf(const std::string& op) {
    if (op.starts_with("fn.")) out_.needs.functions.insert(op.substr(3));
    out_.needs.uses_operator |= op.starts_with("builtin.");
    return Target(op).value_or("None");
  }

  void Place() {
    // The input that the result of the place in front of it can be.
    chain_.clear();
    const ExampleNode* const last =
        example_->outputs.empty() ? nullptr
                                  : example_->Find(example_->outputs.back());
    for (const ExampleNode& node : example_->nodes) {
      if (chain_.empty() && !input_.writes && last != nullptr &&
          !last->result.empty() && node.kind == ExampleNode::Kind::kInput &&
          node.result == last->result)
        chain_ = node.name;
    }
    places_.Line(0, fmt::format("def {}(example, tag=\"\"{}):", place_,
                                chain_.empty() ? "" : ", chain=None"));
    places_.Line(1, "\"\"\"One place; returns its results.\"\"\"");
    for (const ExampleNode& node : example_->nodes) {
      const std::string value = ValueText(node.result);
      const std::string name = fmt::format("{} + tag", Quoted(node.name));
      std::string text;
      if (node.kind == ExampleNode::Kind::kOp) {
        std::vector<std::string> args;
        for (const ExampleArg& arg : node.args) args.push_back(ArgText(arg));
        text = Bracketed(4, node.name + " = example.call(",
                         {name, TargetOf(node.op),
                          Bracketed(0, "(", args, ")", true), value},
                         ")");
      } else {
        text = Bracketed(
            4,
            fmt::format(
                "{} = example.{}(", node.name,
                node.kind == ExampleNode::Kind::kInput ? "input" : "weight"),
            {name, value}, ")");
      }
      if (node.name == chain_) {
        places_.Line(1, node.name + " = chain");
        places_.Line(1, "if chain is None:");
        places_.Line(2, text);
      } else {
        places_.Line(1, text);
      }
    }
    places_.Line(1, Bracketed(4, "return (", example_->outputs, ")", true));
    places_.Blank();
    places_.Blank();
  }

  void Begin(const std::string& name) {
    out_.names.push_back("test_" + name);
    code_.Line(0, fmt::format("def test_{}():", name));
  }
  void Build() {
    code_.Line(1, "example = Example()");
    code_.Line(1, fmt::format("outputs = {}(example)", place_));
  }
  void Edit(const std::string& node, const std::string& text) {
    code_.Line(1, fmt::format("example.nodes[{}]{}", Quoted(node), text));
  }
  void Expect(size_t count) {
    if (count > 0) {
      code_.Line(1,
                 fmt::format("assert run(example, outputs)[1] == {}", count));
      return;
    }
    code_.Line(1, "gm, matches, before = run(example, outputs)");
    code_.Line(1, "assert matches == 0 and gm.code == before");
  }
  void End() {
    code_.Blank();
    code_.Blank();
  }

  // Targets of the replacement with their number, options by default.
  std::map<std::string, size_t> AfterTargets() {
    std::map<std::string, size_t> out;
    for (const Statement& line : alternative_->after) {
      if (line.targets.empty()) continue;
      std::string target = line.targets[0];
      const size_t open = target.find('{');
      const size_t close = target.find('}');
      if (open != std::string::npos && close != std::string::npos) {
        const std::string key = target.substr(open + 1, close - open - 1);
        const size_t colon = key.find(':');
        target = target.substr(0, open) +
                 (colon == std::string::npos ? "" : key.substr(colon + 1)) +
                 target.substr(close + 1);
      }
      ++out[TargetOf(target)];
    }
    return out;
  }

  bool ReplacesAll() const {
    return std::all_of(
        alternative_->pattern.slots.begin(), alternative_->pattern.slots.end(),
        [&](const Slot& slot) {
          return !slot.output || std::any_of(alternative_->after.begin(),
                                             alternative_->after.end(),
                                             [&](const Statement& line) {
                                               return line.result == slot.name;
                                             });
        });
  }

  void Match() {
    Begin("match" + suffix_);
    Build();
    code_.Line(1, "gm, matches, _ = run(example, outputs)");
    code_.Line(1, "assert matches == 1");
    if (ReplacesAll()) {
      std::map<std::string, size_t> counts = AfterTargets();
      for (const ExampleNode& node : example_->nodes) {
        if (node.kind == ExampleNode::Kind::kOp)
          counts.try_emplace(TargetOf(node.op), 0);
      }
      for (const auto& [target, number] : counts)
        code_.Line(1,
                   fmt::format("assert count(gm, {}) == {}", target, number));
    }
    End();
  }

  void TwoLayers() {
    const std::string last = example_->outputs.back();
    const Example second = example_->Copy("_2", chain_, last);
    Example both = *example_;
    both.nodes.insert(both.nodes.end(), second.nodes.begin(),
                      second.nodes.end());
    both.outputs.insert(both.outputs.end(), second.outputs.begin(),
                        second.outputs.end());
    const size_t expected = Count(both);
    Begin("two_layers" + suffix_);
    Build();
    code_.Line(1, fmt::format("outputs += {}(example, \"_2\"{})", place_,
                              chain_.empty() ? "" : ", chain=outputs[-1]"));
    Expect(expected);
    End();
  }

  const ExampleNode* NodeOfLine(const PatternLine& line) const {
    return example_->Find(
        Identifier(alternative_->pattern.slots[line.slot].name));
  }

  void ExtraUsers() {
    for (const PatternLine& line : alternative_->pattern.lines) {
      const ExampleNode* const node = NodeOfLine(line);
      if (node == nullptr || alternative_->pattern.slots[line.slot].output)
        continue;
      const size_t expected = Count(*example_, {node->name});
      if (expected > 0) continue;
      Begin("extra_user_" + node->name + suffix_);
      Build();
      code_.Line(1, fmt::format("outputs += (example.nodes[{}],)",
                                Quoted(node->name)));
      Expect(0);
      End();
    }
  }

  void OperandOrder() {
    for (const PatternLine& line : alternative_->pattern.lines) {
      const ExampleNode* const node = NodeOfLine(line);
      if (node == nullptr || node->args.size() < 2) continue;
      const auto is_node = [](const ExampleArg& arg) {
        return arg.kind == ExampleArg::Kind::kNode;
      };
      if (!is_node(node->args[0]) || !is_node(node->args[1]) ||
          node->args[0].text == node->args[1].text)
        continue;
      Example swapped = *example_;
      ExampleNode* const edit = swapped.Find(node->name);
      std::swap(edit->args[0], edit->args[1]);
      const size_t expected = Count(swapped);
      Begin("operand_order_" + node->name + suffix_);
      Build();
      Edit(node->name, fmt::format(".args = example.nodes[{0}].args[1::-1] + "
                                   "example.nodes[{0}].args[2:]",
                                   Quoted(node->name)));
      Expect(expected);
      End();
    }
  }

  // Operand `i` of a node by another literal.
  void OtherLiteral(const ExampleNode& node, size_t i) {
    const ExampleArg& arg = node.args[i];
    if (arg.kind != ExampleArg::Kind::kText) return;
    const std::string other = Other(arg.text);
    Example changed = *example_;
    changed.Find(node.name)->args[i].text = other;
    if (Count(changed) > 0) return;
    Begin(fmt::format("literal_{}_{}{}", node.name, i, suffix_));
    Build();
    code_.Line(1, fmt::format("args = list(example.nodes[{}].args)",
                              Quoted(node.name)));
    code_.Line(1, fmt::format("args[{}] = {}", i, Literal(other).value_or("")));
    Edit(node.name, ".args = tuple(args)");
    Expect(0);
    End();
  }

  void Literals() {
    for (const PatternLine& line : alternative_->pattern.lines) {
      const ExampleNode* const node = NodeOfLine(line);
      if (node == nullptr) continue;
      for (size_t i = 0; i < line.operands.size() && i < node->args.size(); ++i)
        OtherLiteral(*node, i);
    }
  }

  // What a value is with another type, size or rank.
  static std::string OtherType(const std::string& result) {
    const graph::ResultText parts = graph::SplitResult(result);
    return fmt::format(
        "{} : {}", parts.shape,
        parts.dtype == "torch.float64" ? "torch.int8" : "torch.float64");
  }
  static std::string OtherSize(const std::string& result, bool rank) {
    const graph::ResultText parts = graph::SplitResult(result);
    auto dims = graph::DimsOf(parts.shape);
    if (!dims) return {};
    if (rank || dims->empty()) {
      dims->emplace_back("1");
    } else {
      for (std::string& dim : *dims)
        dim = std::to_string(ParseInt(dim).value_or(0) + 1);
    }
    return fmt::format("{} : {}", graph::JoinedDims(*dims), parts.dtype);
  }

  void Guards() {
    for (const Guard& guard : rule_.guards) {
      if (guard.check.empty()) continue;
      const Term& call = guard.check[0];
      const bool type = call.text == "dtype" || call.text == "same_dtype";
      if (call.text == "all_users" || call.text == "first_user" ||
          call.text == "option")
        continue;
      for (const Term& term : call.items) {
        const bool value =
            term.kind == Kind::kValue || term.kind == Kind::kWeight;
        const ExampleNode* const node =
            value ? example_->Find(Identifier(term.text)) : nullptr;
        if (node == nullptr || node->result.empty()) continue;
        const std::string other =
            type ? OtherType(node->result)
                 : OtherSize(node->result, call.text == "rank");
        if (other.empty()) continue;
        Example changed = *example_;
        changed.Find(node->name)->result = other;
        if (Count(changed) > 0) continue;
        Begin(fmt::format("{}_{}_{}{}", type ? "dtype" : "shape",
                          Identifier(guard.id), node->name, suffix_));
        Build();
        Edit(node->name, ".meta[\"val\"] = " + ValueText(other));
        Expect(0);
        End();
      }
    }
  }

  void NoMeta() {
    if (input_.pattern_form) return;  // Inductor's matcher reads every value
    Example bare = *example_;
    for (ExampleNode& node : bare.nodes) node.result.clear();
    Begin("no_meta" + suffix_);
    Build();
    code_.Line(1, "for node in example.graph.nodes:");
    code_.Line(2, "node.meta.clear()");
    Expect(Count(bare));
    End();
  }

  void Keywords() {
    for (const PatternLine& line : alternative_->pattern.lines) {
      const ExampleNode* const node = NodeOfLine(line);
      if (node == nullptr) continue;
      Begin("keyword_" + node->name + suffix_);
      Build();
      Edit(node->name, ".kwargs = {\"lamina_not_shown\": 1}");
      // No line of a rule is such a call.
      Example other = *example_;
      other.Find(node->name)->op = "lamina.not_shown";
      Expect(Count(other));
      End();
    }
  }

  void Metadata() {
    if (!ReplacesAll()) return;
    std::vector<std::string> known;
    for (const std::string& output : example_->outputs) {
      const ExampleNode* const node = example_->Find(output);
      known.push_back(node != nullptr && !node->result.empty() &&
                              node->result.front() != '('
                          ? output
                          : std::string());
    }
    Begin("metadata_kept" + suffix_);
    Build();
    code_.Line(1, "old = [node.meta.get(\"val\") for node in outputs]");
    code_.Line(1, "gm, matches, _ = run(example, outputs)");
    code_.Line(1, "assert matches == 1");
    code_.Line(1,
               "last = next(n for n in gm.graph.nodes if n.op == \"output\")");
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i].empty()) continue;
      code_.Line(1, fmt::format("new = last.args[0][{}].meta[\"val\"]", i));
      code_.Line(1, fmt::format("assert new.shape == old[{0}].shape and "
                                "new.dtype == old[{0}].dtype",
                                i));
    }
    End();
  }

  const TestInput& input_;
  const Rule& rule_;
  const Alternative* alternative_ = nullptr;
  const Example* example_ = nullptr;
  std::string suffix_;
  std::string place_;
  std::string chain_;
  Code places_;
  Code code_;
  TestText out_;
};

std::string OneValue(std::string_view shape, std::string_view dtype) {
  const auto dims = graph::DimsOf(shape);
  if (!dims || !graph::DTypeBytes(dtype)) return "None";
  return fmt::format("tensor({}, {})", Bracketed(0, "(", *dims, ")", true),
                     dtype);
}

}  // namespace

std::string ValueText(std::string_view result) {
  if (result.empty()) return "None";
  const graph::ResultText parts = graph::SplitResult(result);
  if (!parts.tuple) return OneValue(parts.shape, parts.dtype);
  const auto shapes = graph::SplitTuple(parts.shape);
  const auto dtypes = graph::SplitTuple(parts.dtype);
  std::vector<std::string> items;
  for (size_t i = 0; i < shapes.size() && i < dtypes.size(); ++i)
    items.push_back(OneValue(shapes[i], dtypes[i]));
  return Bracketed(0, "(", items, ")", true);
}

TestText WriteTests(const TestInput& input) { return TestWriter(input).Run(); }

}  // namespace lamina::generate
