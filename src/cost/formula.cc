// SPDX-License-Identifier: Apache-2.0
#include "cost/formula.h"

#include <algorithm>
#include <cmath>

namespace lamina::cost {
namespace {

// A position in a list; negative ones count from its end.
std::optional<size_t> Position(const Value& index, size_t size, bool end) {
  if (!index.is_number()) return std::nullopt;
  const double at = index.number() < 0
                        ? index.number() + static_cast<double>(size)
                        : index.number();
  const double limit = static_cast<double>(size) - (end ? 0 : 1);
  if (end) return static_cast<size_t>(std::clamp(at, 0.0, limit));
  if (!(at >= 0 && at <= limit) || at != std::floor(at)) return std::nullopt;
  return static_cast<size_t>(at);
}

}  // namespace

Value Formula::Evaluate(const Scope& scope) const { return Run(root_, scope); }

Value Formula::Run(uint32_t index, const Scope& scope) const {
  const Node& node = nodes_[index];
  const auto child = [&](size_t i) { return Run(node.children[i], scope); };
  switch (node.op) {
    case Op::kNumber:
      return node.number;
    case Op::kVariable:
      return scope.variables[node.index];
    case Op::kList: {
      std::vector<double> list;
      for (size_t i = 0; i < node.children.size(); ++i) {
        const Value item = child(i);
        if (!item.is_number()) return {};
        list.push_back(item.number());
      }
      return Value(std::move(list));
    }
    case Op::kIndex: {
      const Value list = child(0);
      if (!list.is_list()) return {};
      const auto at = Position(child(1), list.list().size(), false);
      return at ? Value(list.list()[*at]) : Value();
    }
    case Op::kSlice: {
      const Value list = child(0);
      if (!list.is_list()) return {};
      const size_t size = list.list().size();
      size_t from = 0;
      size_t to = size;
      if (node.children[1] != kNone) {
        const auto at = Position(child(1), size, true);
        if (!at) return {};
        from = *at;
      }
      if (node.children[2] != kNone) {
        const auto at = Position(child(2), size, true);
        if (!at) return {};
        to = *at;
      }
      const auto begin = list.list().begin();
      if (from >= to) return Value(std::vector<double>());
      return Value(std::vector<double>(begin + static_cast<ptrdiff_t>(from),
                                       begin + static_cast<ptrdiff_t>(to)));
    }
    case Op::kCall: {
      const Function& function = Functions()[node.index];
      if (function.name == "if") {
        const Value condition = child(0);
        if (!condition.is_number()) return {};
        return child(condition.number() != 0 ? 1 : 2);
      }
      if (function.name == "first") {
        for (size_t i = 0; i < node.children.size(); ++i) {
          Value value = child(i);
          if (value.known()) return value;
        }
        return {};
      }
      std::vector<Value> arguments;
      for (size_t i = 0; i < node.children.size(); ++i)
        arguments.push_back(child(i));
      return function.run(scope, arguments, node.text);
    }
    case Op::kNegate:
    case Op::kNot: {
      const Value value = child(0);
      if (!value.is_number()) return {};
      return node.op == Op::kNot ? Value(value.number() == 0 ? 1.0 : 0.0)
                                 : Value(-value.number());
    }
    default:
      break;
  }
  const Value left = child(0);
  if (!left.is_number()) return {};
  // Known without its right side.
  if (node.op == Op::kAnd && left.number() == 0) return 0.0;
  if (node.op == Op::kOr && left.number() != 0) return 1.0;
  const Value right = child(1);
  if (!right.is_number()) return {};
  const double a = left.number();
  const double b = right.number();
  switch (node.op) {
    case Op::kAdd:
      return a + b;
    case Op::kSubtract:
      return a - b;
    case Op::kMultiply:
      return a * b;
    case Op::kDivide:
      return b == 0 ? Value() : Value(a / b);
    case Op::kModulo:
      return b == 0 ? Value() : Value(std::fmod(a, b));
    case Op::kAnd:
    case Op::kOr:
      return b != 0 ? 1.0 : 0.0;
    case Op::kEqual:
      return a == b ? 1.0 : 0.0;
    case Op::kUnequal:
      return a != b ? 1.0 : 0.0;
    case Op::kLess:
      return a < b ? 1.0 : 0.0;
    default:
      return a <= b ? 1.0 : 0.0;
  }
}

}  // namespace lamina::cost
