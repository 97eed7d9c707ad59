// SPDX-License-Identifier: Apache-2.0
//
// The matcher is written as the search of graph/pattern would run it, from the
// last line on, so both find the same places. One file: finding and replacing
// share the names that bind.
#include "graph/generate/walk.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/text.h"
#include "graph/generate/python_text.h"
#include "graph/pattern/linear_form.h"
#include "graph/types.h"

namespace lamina::generate {
namespace {

using graph::Alternative;
using graph::Guard;
using graph::kNoSlot;
using graph::Pattern;
using graph::PatternLine;
using graph::PatternTerm;
using graph::Rule;
using graph::Slot;
using graph::Statement;
using graph::Term;
using Kind = graph::Term::Kind;

// Python allows twenty nested blocks.
constexpr size_t kMostLoops = 12;

Error CannotWalk(const Rule& rule, std::string_view what) {
  return UsageError(
      fmt::format("{}: {}", rule.name, what),
      "write the pass by hand, or a rule without it (⟨rules⟩ FILE)");
}

// Splits "a.{name:value}.b" at its option; false when there is none.
bool SplitOption(std::string_view text, std::string_view& head,
                 std::string& name, std::string& value,
                 std::string_view& tail) {
  const size_t open = text.find('{');
  const size_t close = text.find('}', open);
  if (open == std::string_view::npos || close == std::string_view::npos)
    return false;
  head = text.substr(0, open);
  tail = text.substr(close + 1);
  const std::string_view key = text.substr(open + 1, close - open - 1);
  const size_t colon = key.find(':');
  name = key.substr(0, colon);
  value = colon == std::string_view::npos ? "" : key.substr(colon + 1);
  return true;
}

class Finder {
 public:
  Finder(const Rule& rule, const Alternative& alternative,
         const std::map<std::string, std::string>& defaults, Needs& needs)
      : rule_(rule),
        alternative_(alternative),
        pattern_(alternative.pattern),
        defaults_(defaults),
        needs_(needs),
        bound_(pattern_.slots.size()) {}

  Result<std::string> Run(size_t number) {
    code_.Line(0, fmt::format("def _find_{}(self, node: Node, order: Dict[Node,"
                              " float]) -> Iterator[_Place]:",
                              number));
    code_.Line(1, "\"\"\"Places whose last line is `node`.\"\"\"");
    const auto anchor = static_cast<uint32_t>(pattern_.lines.size() - 1);
    code_.Line(depth_, NameOf(pattern_.anchor().slot) + " = node");
    bound_[pattern_.anchor().slot] = true;
    LAMINA_TRY(Line(anchor));
    for (const Pattern::Step& step : pattern_.plan) {
      if (!step.backward) {
        const uint32_t slot = pattern_.lines[step.line].slot;
        code_.Line(depth_, fmt::format("for {} in list({}.users):",
                                       NameOf(slot), NameOf(step.via)));
        Nest();
        bound_[slot] = true;
      }
      LAMINA_TRY(Line(step.line));
    }
    if (loops_ > kMostLoops)
      return Fail(CannotWalk(rule_, "too many orders of operands"));
    Users();
    for (const Guard& guard : rule_.guards) LAMINA_TRY(AddGuard(guard));
    LAMINA_TRY(Dimensions());
    Yield();
    return std::move(code_.text());
  }

 private:
  std::string NameOf(uint32_t slot) const {
    return Identifier(pattern_.slots[slot].name);
  }
  void Nest() {
    ++depth_;
    ++loops_;
  }
  void Unless(const std::string& condition) {
    const std::string line = "if " + condition + ":";
    if (4 * depth_ + 4 + line.size() <= kColumns) {
      code_.Line(depth_, line);
    } else {
      code_.Line(depth_, "if (\n    " + condition + "\n):");
    }
    code_.Line(depth_ + 1, loops_ > 0 ? "continue" : "return");
  }

  Status Line(uint32_t index) {
    const PatternLine& line = pattern_.lines[index];
    const std::string name = NameOf(line.slot);
    const auto texts = SplitLines(alternative_.text);
    if (line.place.line > 0 && line.place.line <= texts.size())
      code_.Line(depth_, "# " + Shorten(texts[line.place.line - 1],
                                        kColumns - 4 * depth_ - 9));
    std::vector<std::string> targets;
    for (const std::string& target : line.targets) {
      const auto python = Target(target);
      if (!python)
        return Fail(CannotWalk(rule_, "the built-in function " + target));
      targets.push_back(*python);
      if (target.starts_with("fn.")) needs_.functions.insert(target.substr(3));
      needs_.uses_operator |= target.starts_with("builtin.");
    }
    needs_.helpers.insert({"operands", "same"});
    code_.Line(
        depth_,
        Bracketed(
            4 * depth_ + 4, fmt::format("{0}_args = _operands({0}, (", name),
            targets,
            fmt::format("{}), {}{})", targets.size() == 1 ? "," : "",
                        line.operands.size(), line.rest ? ", more=True" : "")));
    Unless(name + "_args is None");
    if (line.commutes) {
      code_.Line(depth_,
                 fmt::format("for {0}_args in ({0}_args, {0}_args[1::-1] + "
                             "{0}_args[2:]):",
                             name));
      Nest();
    }
    for (size_t i = 0; i < line.operands.size(); ++i) {
      LAMINA_TRY(
          Operand(fmt::format("{}_args[{}]", name, i), line.operands[i]));
    }
    return {};
  }

  Status Operand(const std::string& text, const PatternTerm& term) {
    const std::string name = term.slot == kNoSlot ? "" : NameOf(term.slot);
    const bool bound = term.slot != kNoSlot && bound_[term.slot];
    if (term.slot != kNoSlot && !bound) {
      code_.Line(depth_, name + " = " + text);
      bound_[term.slot] = true;
    }
    switch (term.kind) {
      case Kind::kValue:
      case Kind::kWeight:
        if (bound) {
          Unless(text + " is not " + name);
        } else if (pattern_.slots[term.slot].kind == Slot::Kind::kWeight) {
          Unless(fmt::format(
              "not isinstance({0}, Node) or {0}.op != \"get_attr\"", name));
        } else if (pattern_.slots[term.slot].kind != Slot::Kind::kResult) {
          Unless(fmt::format("not isinstance({}, Node)", name));
        }
        break;
      case Kind::kLiteral:
        Unless(bound ? fmt::format("not _same({}, {})", text, name)
                     : fmt::format("isinstance({}, Node)", name));
        break;
      case Kind::kAny:
        if (bound) Unless(fmt::format("not _same({}, {})", text, name));
        break;
      case Kind::kText: {
        const auto literal = Literal(term.text);
        if (!literal)
          return Fail(CannotWalk(rule_, "the literal " + term.text));
        Unless(fmt::format("not _same({}, {})", text, *literal));
        break;
      }
      case Kind::kList:
      case Kind::kTuple:
        Unless(
            fmt::format("not isinstance({0}, (list, tuple)) or len({0}) != {1}",
                        text, term.items.size()));
        for (size_t i = 0; i < term.items.size(); ++i)
          LAMINA_TRY(Operand(fmt::format("{}[{}]", text, i), term.items[i]));
        break;
      case Kind::kRest:
      case Kind::kCall:
        break;
    }
    return {};
  }

  void Users() {
    std::vector<std::string> nodes;
    std::vector<std::string> closed;
    for (const PatternLine& line : pattern_.lines) {
      nodes.push_back(NameOf(line.slot));
      if (!pattern_.slots[line.slot].output) closed.push_back(nodes.back());
    }
    code_.Line(depth_,
               Bracketed(4 * depth_ + 4, "inside = (", nodes, ")", true));
    if (nodes.size() > 1)
      Unless(fmt::format("len(set(inside)) != {}", nodes.size()));
    if (closed.empty()) return;
    needs_.helpers.insert("only_inside");
    code_.Line(depth_,
               Bracketed(4 * depth_ + 4, "closed = (", closed, ")", true));
    Unless("not _only_inside(closed, inside)");
  }

  // The Python name of what a check names; nothing when this alternative has
  // no such name.
  std::optional<std::string> Named(const Term& term) const {
    const uint32_t slot = pattern_.Find(term.text);
    if (slot == kNoSlot || !bound_[slot]) return std::nullopt;
    return NameOf(slot);
  }

  void Shown(const std::vector<std::string>& names) {
    needs_.helpers.insert({"value", "shown_method"});
    Unless(fmt::format("not self._shown({})", fmt::join(names, ", ")));
  }

  Status AddGuard(const Guard& guard) {
    if (guard.check.empty()) {
      if (guard.visible == Guard::Visible::kDump) return {};
      needs_.open[guard.id] = guard.text;
      code_.Line(depth_, "# TODO: " + guard.text);
      Unless(fmt::format("not self.ANSWERS[{}]", Quoted(guard.id)));
      return {};
    }
    const Term& call = guard.check[0];
    std::vector<std::string> names;
    for (const Term& term : call.items) {
      if (term.kind == Kind::kText) continue;
      const auto name = Named(term);
      if (!name) return {};  // of another alternative
      names.push_back(*name);
    }
    const auto& items = call.items;
    const auto wrong = [&] {
      return Fail(CannotWalk(rule_, "the guard '" + guard.id + "'"));
    };
    code_.Line(depth_, "# " + guard.text);
    if (call.text == "rank") {
      Shown(names);
      Unless(
          fmt::format("len(_value({}).shape) != {}", names[0], items[1].text));
    } else if (call.text == "dtype") {
      std::vector<std::string> wanted;
      for (size_t i = 1; i < items.size(); ++i) wanted.push_back(items[i].text);
      Shown(names);
      Unless(fmt::format("_value({}).dtype not in {}", names[0],
                         Bracketed(0, "(", wanted, ")", true)));
    } else if (call.text == "same_dtype" || call.text == "same_shape") {
      const std::string_view what =
          call.text == "same_dtype" ? "dtype" : "shape";
      Shown(names);
      Unless(fmt::format("_value({}).{} != _value({}).{}", names[0], what,
                         names[1], what));
    } else if (call.text == "shape") {
      const auto dims = graph::DimsOf(items[1].text);
      if (!dims) return wrong();
      for (const std::string& dim : *dims) {
        if (!ParseInt(dim)) return wrong();
      }
      Shown(names);
      Unless(fmt::format("tuple(_value({}).shape) != {}", names[0],
                         Bracketed(0, "(", *dims, ")", true)));
    } else if (call.text == "divisible") {
      Shown(names);
      const std::string shape = fmt::format("_value({}).shape", names[0]);
      const int64_t dim = ParseInt(items[1].text).value_or(0);
      Unless(fmt::format("len({}) < {}", shape, dim < 0 ? -dim : dim + 1));
      Unless(fmt::format("not isinstance({0}[{1}], int) or {0}[{1}] % {2} != 0",
                         shape, dim, items[2].text));
    } else if (call.text == "grows_only") {
      Shown(names);
      needs_.helpers.insert("grows_only");
      Unless(
          fmt::format("not _grows_only(_value({}).shape, _value({}).shape, "
                      "{})",
                      names[0], names[1], items[2].text));
    } else if (call.text == "first_user") {
      Unless(
          fmt::format("any(order[u] < order[{1}] and u not in inside and "
                      "u.target != {1}.target for u in {0}.users)",
                      names[0], names[1]));
    } else if (call.text == "option") {
      const std::string& option = items[1].text;
      const auto found = defaults_.find(option);
      needs_.options.try_emplace(
          option, found == defaults_.end() ? "None" : found->second);
      Unless(fmt::format("not _same({}, self.config.{})", names[0],
                         Identifier(option)));
    } else {
      return wrong();
    }
    return {};
  }

  // Sizes that become literals of the new ops must be numbers.
  Status Dimensions() {
    std::set<std::string> done;
    for (const Statement& line : alternative_.after) {
      for (const Term& term : line.operands) {
        if (term.kind != Kind::kCall || term.items.empty()) continue;
        if (term.text != "dim" && term.text != "dtype") continue;
        const auto name = Named(term.items[0]);
        if (!name) return Fail(CannotWalk(rule_, "a size of a new value"));
        Shown({*name});
        if (term.text == "dtype") continue;
        const int64_t dim = ParseInt(term.items[1].text).value_or(0);
        const std::string shape = fmt::format("_value({}).shape", *name);
        Unless(fmt::format("len({}) < {}", shape, dim < 0 ? -dim : dim + 1));
        Unless(fmt::format("not isinstance({}[{}], int)", shape, dim));
      }
    }
    return {};
  }

  void Yield() {
    std::vector<std::string> values;
    std::vector<std::string> outputs;
    for (uint32_t i = 0; i < pattern_.slots.size(); ++i) {
      if (!bound_[i]) continue;
      values.push_back(
          fmt::format("{}: {}", Quoted(pattern_.slots[i].name), NameOf(i)));
      if (pattern_.slots[i].output) outputs.push_back(NameOf(i));
    }
    const PatternLine& anchor = pattern_.anchor();
    if (anchor.rest) {
      values.push_back(fmt::format("\"...\": {}_args[{}:]", NameOf(anchor.slot),
                                   anchor.operands.size()));
    }
    code_.Line(depth_,
               Bracketed(4 * depth_ + 4, "values = {", values, "}", true));
    code_.Line(depth_, fmt::format("yield _Place(values, inside, {})",
                                   Bracketed(0, "(", outputs, ")", true)));
  }

  const Rule& rule_;
  const Alternative& alternative_;
  const Pattern& pattern_;
  const std::map<std::string, std::string>& defaults_;
  Needs& needs_;
  std::vector<bool> bound_;
  Code code_;
  size_t depth_ = 1;
  size_t loops_ = 0;
};

class Replacer {
 public:
  Replacer(const Rule& rule, const Alternative& alternative, Needs& needs)
      : rule_(rule),
        alternative_(alternative),
        pattern_(alternative.pattern),
        needs_(needs) {}

  Result<std::string> Run(size_t number) {
    code_.Line(
        0, fmt::format("def _replace_{}(\n    self, graph: Graph, v: Dict[str, "
                       "Any], number: int\n) -> List[Tuple[Node, Node]]:",
                       number));
    code_.Line(1,
               "\"\"\"Adds the new nodes; pairs of old and new results.\"\"\"");
    for (const Statement& line : alternative_.after) LAMINA_TRY(Add(line));
    std::vector<std::string> pairs;
    for (const auto& [old, now] : pairs_)
      pairs.push_back(fmt::format("(v[{}], {})", Quoted(old), now));
    code_.Line(1, Bracketed(8, "return [", pairs, "]"));
    return std::move(code_.text());
  }

 private:
  bool IsOutput(const std::string& name) const {
    const uint32_t slot = pattern_.Find(name);
    return slot != kNoSlot && pattern_.slots[slot].output;
  }

  Result<std::string> Value(const Term& term) {
    const auto made = made_.find(term.text);
    if (made != made_.end()) return made->second;
    const uint32_t slot = pattern_.Find(term.text);
    if (slot == kNoSlot) return Fail(CannotWalk(rule_, "%" + term.text));
    if (pattern_.slots[slot].kind == Slot::Kind::kResult)
      return Fail(
          CannotWalk(rule_, "a new line that reads the old %" + term.text));
    return fmt::format("v[{}]", Quoted(term.text));
  }

  Result<std::string> Operand(const Term& term) {
    switch (term.kind) {
      case Kind::kValue:
      case Kind::kWeight:
        return Value(term);
      case Kind::kLiteral:
      case Kind::kAny:
        return fmt::format("v[{}]", Quoted(term.text));
      case Kind::kRest:
        return std::string("*v[\"...\"]");
      case Kind::kText: {
        if (term.text == "{k}") return std::string("number");
        std::string_view head;
        std::string_view tail;
        std::string name;
        std::string value;
        if (SplitOption(term.text, head, name, value, tail)) {
          if (!head.empty() || !tail.empty() || name == "u")
            return Fail(CannotWalk(rule_, "the literal " + term.text));
          needs_.options[name] = Literal(value).value_or("None");
          return "self.config." + Identifier(name);
        }
        auto literal = Literal(term.text);
        if (!literal)
          return Fail(CannotWalk(rule_, "the literal " + term.text));
        return std::move(*literal);
      }
      case Kind::kList:
      case Kind::kTuple: {
        std::vector<std::string> items;
        for (const Term& item : term.items) {
          LAMINA_ASSIGN(std::string text, Operand(item));
          items.push_back(std::move(text));
        }
        return Listed(items, term.kind == Kind::kTuple);
      }
      case Kind::kCall:
        break;
    }
    if (term.text == "weight")
      return Fail(CannotWalk(rule_, "a new weight in the replacement"));
    // A size of an old result is known without the result.
    const std::string value = AnyValue(term.items[0]);
    if (term.text == "dtype") return value + ".meta[\"val\"].dtype";
    return fmt::format("{}.meta[\"val\"].shape[{}]", value, term.items[1].text);
  }

  std::string Computed(const std::string& function,
                       const std::vector<std::string>& nodes) {
    needs_.helpers.insert("computed");
    return fmt::format("_computed({}, {})", function, fmt::join(nodes, ", "));
  }

  // The value of a new node by the annotation of its line.
  Result<std::string> Annotated(const Term& term) {
    if (term.kind == Kind::kValue || term.kind == Kind::kWeight) {
      return AnyValue(term) + ".meta.get(\"val\")";
    }
    std::vector<std::string> nodes;
    std::vector<std::string> texts;
    for (const Term& item : term.items) {
      const bool value =
          item.kind == Kind::kValue || item.kind == Kind::kWeight;
      if (value) {
        nodes.push_back(AnyValue(item));
      } else {
        texts.push_back(item.text);
      }
    }
    if (term.kind == Kind::kTuple && texts.empty())
      return Computed("lambda *a: a", nodes);
    if (term.kind != Kind::kCall || nodes.empty()) return std::string("None");
    if (term.text == "transpose")
      return Computed(
          fmt::format("lambda a: a.transpose({})", fmt::join(texts, ", ")),
          nodes);
    if (term.text == "flat") return Computed("lambda a: a.reshape(-1)", nodes);
    if (term.text == "cast")
      return Computed(fmt::format("lambda a: a.to({})", texts[0]), nodes);
    if (term.text == "concat")
      return Computed(fmt::format("lambda *a: torch.cat(a, {})", texts.back()),
                      nodes);
    return std::string("None");
  }
  // A value by its name; for a description old results are there as well.
  std::string AnyValue(const Term& term) const {
    if (pattern_.Find(term.text) != kNoSlot)
      return fmt::format("v[{}]", Quoted(term.text));
    const auto made = made_.find(term.text);
    return made == made_.end() ? "None" : made->second;
  }

  // What views and casts of known values are.
  std::string Inferred(const Statement& line) {
    const std::string& target = line.targets[0];
    if (line.operands.empty() || line.operands[0].kind != Kind::kValue)
      return "None";
    const std::string first = AnyValue(line.operands[0]);
    std::vector<std::string> texts;
    for (size_t i = 1; i < line.operands.size(); ++i) {
      if (line.operands[i].kind != Kind::kText) return "None";
      texts.push_back(line.operands[i].text);
    }
    if (target == "builtin.getitem" && texts.size() == 1)
      return Computed(fmt::format("lambda a: a[{}]", texts[0]), {first});
    if (graph::MatchesTarget(target, "aten.transpose") && texts.size() == 2)
      return Computed(
          fmt::format("lambda a: a.transpose({})", fmt::join(texts, ", ")),
          {first});
    if (graph::MatchesTarget(target, "aten.contiguous"))
      return Computed("lambda a: a.contiguous()", {first});
    return "None";
  }

  Status Add(const Statement& line) {
    if (line.targets.empty()) {
      LAMINA_ASSIGN(const std::string to, Value(line.operands[0]));
      pairs_.emplace_back(line.result, to);
      return {};
    }
    if (line.shared)
      return Fail(CannotWalk(rule_, "a node that several places share (&)"));
    LAMINA_ASSIGN(const std::string target,
                  AfterTarget(line.targets[0], needs_));
    std::vector<std::string> operands;
    for (const Term& term : line.operands) {
      LAMINA_ASSIGN(std::string text, Operand(term));
      operands.push_back(std::move(text));
    }
    const bool output = IsOutput(line.result);
    std::string value;
    if (!line.annotation.empty()) {
      LAMINA_ASSIGN(value, Annotated(line.annotation[0]));
    } else if (output) {
      value = fmt::format("v[{}].meta.get(\"val\")", Quoted(line.result));
    } else {
      value = Inferred(line);
    }
    const std::string name = Identifier(line.result);
    const std::string args = Bracketed(0, "(", operands, ")", true);
    code_.Line(1, Bracketed(8, name + " = graph.call_function(",
                            {target, "args=" + args}, ")"));
    const std::string like =
        output ? line.result : pattern_.slots[pattern_.anchor().slot].name;
    needs_.helpers.insert("meta");
    code_.Line(
        1, Bracketed(8, "_meta(",
                     {name, fmt::format("v[{}]", Quoted(like)), value}, ")"));
    made_[line.result] = name;
    if (output) pairs_.emplace_back(line.result, name);
    return {};
  }

  const Rule& rule_;
  const Alternative& alternative_;
  const Pattern& pattern_;
  Needs& needs_;
  Code code_;
  std::map<std::string, std::string> made_;
  std::vector<std::pair<std::string, std::string>> pairs_;
};

}  // namespace

Result<std::string> AfterTarget(const std::string& target, Needs& needs) {
  std::string_view head;
  std::string_view tail;
  std::string name;
  std::string value;
  if (!SplitOption(target, head, name, value, tail)) {
    const auto python = Target(target);
    if (!python) return Fail(UsageError("the built-in function " + target, ""));
    if (target.starts_with("fn.")) needs.functions.insert(target.substr(3));
    needs.uses_operator |= target.starts_with("builtin.");
    return *python;
  }
  needs.options[name] = Quoted(value);
  const size_t dot = head.rfind('.');
  const size_t end = std::min(tail.find('.'), tail.size());
  return fmt::format("getattr(torch.ops.{}, f\"{}{{self.config.{}}}{}\"){}",
                     head.substr(0, dot), head.substr(dot + 1),
                     Identifier(name), tail.substr(0, end), tail.substr(end));
}

Result<std::string> WalkMethods(
    const Rule& rule, const Alternative& alternative, size_t number,
    const std::map<std::string, std::string>& option_defaults, Needs& needs) {
  LAMINA_ASSIGN(std::string out,
                Finder(rule, alternative, option_defaults, needs).Run(number));
  LAMINA_ASSIGN(const std::string replace,
                Replacer(rule, alternative, needs).Run(number));
  return out + "\n" + replace;
}

}  // namespace lamina::generate
