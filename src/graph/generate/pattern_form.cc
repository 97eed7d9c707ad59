// SPDX-License-Identifier: Apache-2.0
//
// What the matcher of Inductor cannot say (open operand lists, weights, users)
// is refused or becomes its extra check. One file: reasons and texts go over
// the same parts of a rule.
#include "graph/generate/pattern_form.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "base/decimal.h"
#include "base/text.h"
#include "graph/generate/python_text.h"
#include "graph/generate/test_text.h"
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

// Numbers that stand for literals; none of them is likely in a graph.
constexpr std::string_view kFloats[] = {"0.113377", "0.221133", "0.331177",
                                        "0.441199"};
constexpr std::string_view kInts[] = {"17", "19", "23", "29"};
constexpr size_t kMostOrders = 8;

Error Cannot(const Rule& rule, std::string_view what) {
  return UsageError(fmt::format("{}: a pattern cannot say {}", rule.name, what),
                    "without ⟨match⟩ pattern the pass walks over the graph");
}

void ForEachTerm(const std::vector<PatternTerm>& terms,
                 const std::function<void(const PatternTerm&)>& visit) {
  for (const PatternTerm& term : terms) {
    visit(term);
    ForEachTerm(term.items, visit);
  }
}

// The numbers that stand at a literal of the pattern, by its slot.
struct Scalars {
  std::vector<uint32_t> slots;
  std::vector<std::string> values;
};

class PatternWriter {
 public:
  PatternWriter(const Rule& rule, Needs& needs) : rule_(rule), needs_(needs) {}

  Result<std::string> Run(const std::vector<PatternPlaces>& places) {
    for (const PatternPlaces& place : places) {
      const Alternative& alternative = rule_.alternatives[place.alternative];
      pattern_ = &alternative.pattern;
      number_ = place.alternative + 1;
      Arguments();
      LAMINA_TRY(Replacement(alternative));
      LAMINA_TRY(Check());
      size_t variant = 0;
      for (const Example& example : place.examples) {
        std::vector<uint32_t> commuting;
        for (uint32_t i = 0; i < pattern_->lines.size(); ++i) {
          if (pattern_->lines[i].commutes) commuting.push_back(i);
        }
        const size_t orders = size_t{1} << commuting.size();
        if (orders > kMostOrders)
          return Fail(Cannot(rule_, "so many orders of operands"));
        for (size_t order = 0; order < orders; ++order) {
          std::vector<bool> swapped(pattern_->lines.size());
          for (size_t i = 0; i < commuting.size(); ++i)
            swapped[commuting[i]] = (order >> i & 1) != 0;
          LAMINA_TRY(Search(alternative, example, swapped, ++variant));
        }
      }
    }
    code_.Line(0,
               "# Search, replacement, further conditions, dummy arguments, "
               "literals that vary.");
    code_.Line(0, "_PATTERNS = (");
    for (const std::string& row : rows_) code_.Line(1, row);
    code_.Line(0, ")");
    return std::move(code_.text());
  }

 private:
  std::string NameOf(uint32_t slot) const {
    return Identifier(pattern_->slots[slot].name);
  }

  // Tensors first, literals last.
  void Arguments() {
    tensors_.clear();
    scalars_.clear();
    for (uint32_t i = 0; i < pattern_->slots.size(); ++i) {
      const Slot::Kind kind = pattern_->slots[i].kind;
      if (kind == Slot::Kind::kValue || kind == Slot::Kind::kWeight)
        tensors_.push_back(i);
      if (kind == Slot::Kind::kLiteral) scalars_.push_back(i);
    }
    names_.clear();
    for (const auto* list : {&tensors_, &scalars_}) {
      for (const uint32_t slot : *list) names_.push_back(NameOf(slot));
    }
  }

  Result<std::string> Operand(const Term& term,
                              const std::map<std::string, std::string>& made) {
    const auto found = made.find(term.text);
    switch (term.kind) {
      case Kind::kValue:
      case Kind::kWeight:
      case Kind::kLiteral: {
        if (found != made.end()) return found->second;
        const uint32_t slot = pattern_->Find(term.text);
        if (slot == kNoSlot ||
            pattern_->slots[slot].kind == Slot::Kind::kResult)
          return Fail(Cannot(rule_, "an old result in the replacement"));
        return NameOf(slot);
      }
      case Kind::kText: {
        auto literal = Literal(term.text);
        if (!literal) return Fail(Cannot(rule_, "the literal " + term.text));
        return std::move(*literal);
      }
      case Kind::kList:
      case Kind::kTuple: {
        std::vector<std::string> items;
        for (const Term& item : term.items) {
          LAMINA_ASSIGN(std::string text, Operand(item, made));
          items.push_back(std::move(text));
        }
        return Listed(items, term.kind == Kind::kTuple);
      }
      default:
        return Fail(Cannot(rule_, "sizes, weights or open lists of operands"));
    }
  }

  std::string Returned(const std::map<std::string, std::string>& results) {
    std::vector<std::string> out;
    for (const Slot& slot : pattern_->slots) {
      if (!slot.output) continue;
      const auto found = results.find(slot.name);
      if (found != results.end()) out.push_back(found->second);
    }
    return out.size() == 1 ? out[0] : Bracketed(0, "", out, "");
  }

  Status Replacement(const Alternative& alternative) {
    code_.Line(0, Bracketed(0, fmt::format("def _replace_{}(", number_), names_,
                            "):"));
    std::map<std::string, std::string> made;
    for (const Statement& line : alternative.after) {
      if (line.targets.empty()) {
        LAMINA_ASSIGN(made[line.result], Operand(line.operands[0], made));
        continue;
      }
      const size_t options = needs_.options.size();
      LAMINA_ASSIGN(const std::string target,
                    AfterTarget(line.targets[0], needs_));
      if (needs_.options.size() > options || Contains(target, "self."))
        return Fail(Cannot(rule_, "an option in the replacement"));
      std::vector<std::string> operands;
      for (const Term& term : line.operands) {
        LAMINA_ASSIGN(std::string text, Operand(term, made));
        operands.push_back(std::move(text));
      }
      const std::string name = Identifier(line.result);
      code_.Line(1, Bracketed(4, fmt::format("{} = {}(", name, target),
                              operands, ")"));
      made[line.result] = name;
    }
    code_.Line(1, "return " + Returned(made));
    Gap();
    return {};
  }

  void Gap() {
    code_.Blank();
    code_.Blank();
  }

  // The guards as the extra check of the matcher.
  Status Check() {
    std::vector<std::string> lines;
    for (const uint32_t slot : tensors_) {
      if (pattern_->slots[slot].kind != Slot::Kind::kWeight) continue;
      lines.push_back(fmt::format("if match.kwargs[{}].op != \"get_attr\":",
                                  Quoted(NameOf(slot))));
    }
    for (const Guard& guard : rule_.guards) {
      if (guard.check.empty()) {
        if (guard.visible == Guard::Visible::kDump) continue;
        return Fail(Cannot(rule_, "the guard '" + guard.id + "'"));
      }
      LAMINA_TRY(GuardLines(guard, lines));
    }
    checked_ = !lines.empty();
    if (!checked_) return {};
    code_.Line(0, fmt::format("def _check_{}(match):", number_));
    code_.Line(1, "\"\"\"What the matcher does not look at.\"\"\"");
    code_.Line(1,
               "values = {name: getattr(node, \"meta\", {}).get(\"val\") "
               "for name, node in match.kwargs.items()}");
    for (const std::string& line : lines) {
      code_.Line(1, line);
      code_.Line(2, "return False");
    }
    code_.Line(1, "return True");
    Gap();
    return {};
  }

  Status GuardLines(const Guard& guard, std::vector<std::string>& out) {
    const Term& call = guard.check[0];
    std::vector<std::string> values;
    for (const Term& term : call.items) {
      if (term.kind == Kind::kText) continue;
      const uint32_t slot = pattern_->Find(term.text);
      if (slot == kNoSlot) return {};  // of another alternative
      if (std::find(tensors_.begin(), tensors_.end(), slot) == tensors_.end())
        return Fail(Cannot(rule_, "the guard '" + guard.id + "'"));
      values.push_back(fmt::format("values[{}]", Quoted(NameOf(slot))));
    }
    for (const std::string& value : values)
      out.push_back(fmt::format("if {} is None:", value));
    const auto& items = call.items;
    if (call.text == "rank") {
      out.push_back(
          fmt::format("if len({}.shape) != {}:", values[0], items[1].text));
    } else if (call.text == "dtype") {
      std::vector<std::string> wanted;
      for (size_t i = 1; i < items.size(); ++i) wanted.push_back(items[i].text);
      out.push_back(fmt::format("if {}.dtype not in {}:", values[0],
                                Bracketed(0, "(", wanted, ")", true)));
    } else if (call.text == "same_dtype" || call.text == "same_shape") {
      const std::string_view what =
          call.text == "same_dtype" ? "dtype" : "shape";
      out.push_back(
          fmt::format("if {}.{} != {}.{}:", values[0], what, values[1], what));
    } else if (call.text == "shape" && graph::DimsOf(items[1].text)) {
      out.push_back(fmt::format(
          "if tuple({}.shape) != {}:", values[0],
          Bracketed(0, "(", *graph::DimsOf(items[1].text), ")", true)));
    } else {
      return Fail(Cannot(rule_, "the guard '" + guard.id + "'"));
    }
    return {};
  }

  Status Search(const Alternative& alternative, const Example& example,
                const std::vector<bool>& swapped, size_t variant) {
    (void)alternative;
    const std::string id = fmt::format("{}_{}", number_, variant);
    code_.Line(0,
               Bracketed(0, fmt::format("def _search_{}(", id), names_, "):"));
    std::map<std::string, std::string> results;
    for (uint32_t i = 0; i < pattern_->lines.size(); ++i) {
      const PatternLine& line = pattern_->lines[i];
      const ExampleNode* const node = example.Find(NameOf(line.slot));
      if (node == nullptr)
        return Fail(Cannot(rule_, "a line that may be missing"));
      if (line.rest) return Fail(Cannot(rule_, "open lists of operands"));
      std::vector<std::string> operands;
      for (const PatternTerm& term : line.operands) {
        LAMINA_ASSIGN(std::string text, SearchOperand(term));
        operands.push_back(std::move(text));
      }
      if (swapped[i]) std::swap(operands[0], operands[1]);
      needs_.uses_operator |= node->op.starts_with("builtin.");
      if (node->op.starts_with("fn."))
        needs_.functions.insert(node->op.substr(3));
      code_.Line(1, Bracketed(4,
                              fmt::format("{} = {}(", NameOf(line.slot),
                                          Target(node->op).value_or("")),
                              operands, ")"));
      results[pattern_->slots[line.slot].name] = NameOf(line.slot);
    }
    code_.Line(1, "return " + Returned(results));
    Gap();
    LAMINA_ASSIGN(const Scalars numbers, Numbers(example));
    std::vector<std::string> dummies;
    for (const uint32_t slot : tensors_) {
      const ExampleNode* const node = example.Find(NameOf(slot));
      const std::string value =
          node == nullptr ? "None" : ValueText(node->result);
      if (value == "None" || value.front() == '(')
        return Fail(Cannot(rule_, "a value of unknown shape"));
      dummies.push_back(value);
    }
    dummies.insert(dummies.end(), numbers.values.begin(), numbers.values.end());
    std::string scalars;
    for (size_t i = 0; i < numbers.slots.size(); ++i) {
      scalars +=
          fmt::format("{}{}: {}", i > 0 ? ", " : "",
                      Quoted(NameOf(numbers.slots[i])), numbers.values[i]);
    }
    code_.Line(0, fmt::format("def _dummy_args_{}():", id));
    code_.Line(1, Bracketed(4, "return [", dummies, "]"));
    Gap();
    rows_.push_back(fmt::format(
        "(_search_{0}, _replace_{1}, {2}, _dummy_args_{0}, {{{3}}}),", id,
        number_, checked_ ? fmt::format("_check_{}", number_) : "_always",
        scalars));
    needs_.helpers.insert("tensor");
    if (!checked_) needs_.helpers.insert("always");
    return {};
  }

  Result<std::string> SearchOperand(const PatternTerm& term) {
    switch (term.kind) {
      case Kind::kValue:
      case Kind::kWeight:
      case Kind::kLiteral:
        return NameOf(term.slot);
      case Kind::kText: {
        auto literal = Literal(term.text);
        if (!literal) return Fail(Cannot(rule_, "the literal " + term.text));
        return std::move(*literal);
      }
      case Kind::kList:
      case Kind::kTuple: {
        std::vector<std::string> items;
        for (const PatternTerm& item : term.items) {
          LAMINA_ASSIGN(std::string text, SearchOperand(item));
          items.push_back(std::move(text));
        }
        return Listed(items, term.kind == Kind::kTuple);
      }
      default:
        return Fail(Cannot(rule_, "'_' and '?'"));
    }
  }

  // A number for every literal that varies, which stands nowhere else.
  Result<Scalars> Numbers(const Example& example) {
    std::vector<std::string> taken;
    for (const PatternLine& line : pattern_->lines) {
      ForEachTerm(line.operands, [&](const PatternTerm& term) {
        if (term.kind == Kind::kText) taken.push_back(term.text);
      });
    }
    Scalars out;
    size_t floats = 0;
    size_t ints = 0;
    for (const uint32_t slot : scalars_) {
      std::string value;
      for (const PatternLine& line : pattern_->lines) {
        const ExampleNode* const node = example.Find(NameOf(line.slot));
        for (size_t i = 0; i < line.operands.size(); ++i) {
          if (line.operands[i].kind == Kind::kLiteral &&
              line.operands[i].slot == slot && node != nullptr &&
              i < node->args.size())
            value = node->args[i].text;
        }
      }
      const bool whole = IsWhole(value);
      if (!whole && !ParseDouble(value))
        return Fail(Cannot(rule_, "the literal $" + pattern_->slots[slot].name +
                                      ", which is no number"));
      const auto is_taken = [&](std::string_view text) {
        return std::any_of(taken.begin(), taken.end(),
                           [&](const std::string& other) {
                             const auto a = ParseDouble(other);
                             const auto b = ParseDouble(text);
                             return a && b && *a == *b;
                           });
      };
      // Small whole numbers are everywhere, and True is 1.
      bool fits =
          !is_taken(value) && !(whole && std::abs(*ParseInt(value)) < 10);
      while (!fits) {
        size_t& next = whole ? ints : floats;
        if (next == std::size(kInts))
          return Fail(Cannot(rule_, "so many literals"));
        value = whole ? kInts[next] : kFloats[next];
        ++next;
        fits = !is_taken(value);
      }
      taken.push_back(value);
      out.slots.push_back(slot);
      out.values.push_back(value);
    }
    return out;
  }

  const Rule& rule_;
  Needs& needs_;
  const Pattern* pattern_ = nullptr;
  size_t number_ = 0;
  bool checked_ = false;
  std::vector<uint32_t> tensors_;
  std::vector<uint32_t> scalars_;
  std::vector<std::string> names_;
  std::vector<std::string> rows_;
  Code code_;
};

}  // namespace

std::vector<std::string> ReasonsForWalk(const Rule& rule, const TreeApi& api) {
  std::vector<std::string> out;
  const auto add = [&](std::string_view reason) {
    if (std::find(out.begin(), out.end(), reason) == out.end())
      out.emplace_back(reason);
  };
  if (api.matcher_parameters.empty())
    add("the tree has no register_ad_pattern");
  for (const std::string_view needed :
       {"search_fn", "replace_fn", "patterns", "dummy_args",
        "scalar_workaround", "extra_check"}) {
    if (!api.matcher_parameters.empty() &&
        std::find(api.matcher_parameters.begin(), api.matcher_parameters.end(),
                  needed) == api.matcher_parameters.end())
      add(fmt::format("register_ad_pattern has no {}", needed));
  }
  if (rule.counting != graph::Counting::kAnchor)
    add("the rule counts groups or repeats until nothing is left");
  if (!rule.guards.empty()) {
    for (const Guard& guard : rule.guards) {
      if (!guard.check.empty() || guard.visible != Guard::Visible::kDump)
        add("guards look at shapes, types, users or the configuration");
    }
  }
  if (rule.alternatives.size() > 4) add("more than four alternatives");
  for (const Alternative& alternative : rule.alternatives) {
    size_t outputs = 0;
    for (const Slot& slot : alternative.pattern.slots) {
      outputs += slot.output;
      if (slot.kind == Slot::Kind::kWeight)
        add("a pattern cannot tell weights from values");
      if (slot.kind == Slot::Kind::kAny) add("any operand may stand at '?'");
    }
    if (outputs > 1) add("more than one result");
    for (const PatternLine& line : alternative.pattern.lines) {
      if (line.commutes) add("operands may be swapped");
      if (line.rest) add("open list of operands");
      if (line.targets.size() > 1) add("one of several ops");
      ForEachTerm(line.operands, [&](const PatternTerm& term) {
        if (term.kind == Kind::kAny) add("any operand may stand at '_'");
      });
    }
    for (const Statement& line : alternative.after) {
      for (const std::string& target : line.targets) {
        if (Contains(target, "{")) add("an option in the replacement");
      }
      for (const Term& term : line.operands) {
        if (term.kind == Kind::kCall || term.kind == Kind::kRest ||
            (term.kind == Kind::kText && Contains(term.text, "{")))
          add("the replacement takes sizes, options or open lists");
      }
    }
  }
  return out;
}

Result<std::string> PatternModule(const Rule& rule,
                                  const std::vector<PatternPlaces>& places,
                                  Needs& needs) {
  return PatternWriter(rule, needs).Run(places);
}

}  // namespace lamina::generate
