// SPDX-License-Identifier: Apache-2.0
//
// The formula language of data/costs: expressions over the arguments of an op.
// It has numbers, lists and "unknown"; no loops, no state, no text but type
// names in calls, so a file from anywhere is safe to load and its cost is
// bounded by its length.
//
//   2 * M * N * K                     numbers, names defined before
//   dims(0)[0]   dims(0)[-1]          an element of a list
//   dims(0)[1:]                       a part of a list
//   size(0)                           bytes per element of argument 0
//   if(value(5), 2 * n, n)            value(5): the concrete argument
//   first(value(1), 128)              the first that is known
//   + - * / %   == != < <= > >=   and or not   ( )
//
// What is unknown (an argument that is not there, an index out of range, a type
// without a size) makes every result that needs it unknown.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cost/arguments.h"

namespace lamina::cost {

class Value {
 public:
  enum class Kind : uint8_t { kUnknown, kNumber, kList };

  Value() = default;
  Value(double number)  // NOLINT: values are written as plain numbers
      : kind_(Kind::kNumber), number_(number) {}
  explicit Value(std::vector<double> list)
      : kind_(Kind::kList), list_(std::move(list)) {}

  Kind kind() const { return kind_; }
  bool known() const { return kind_ != Kind::kUnknown; }
  bool is_number() const { return kind_ == Kind::kNumber; }
  bool is_list() const { return kind_ == Kind::kList; }
  double number() const { return number_; }
  const std::vector<double>& list() const { return list_; }

 private:
  Kind kind_ = Kind::kUnknown;
  double number_ = 0;
  std::vector<double> list_;
};

// What a formula sees.
struct Scope {
  const Call* call = nullptr;
  std::vector<Value> variables;  // by slot
};

class Formula {
 public:
  // Compiles text; `names` are the variables, by slot. An error holds the
  // offset in the text where it is.
  struct SyntaxError {
    size_t offset = 0;
    std::string what;
    std::string hint;
  };
  static tl::expected<Formula, SyntaxError> Compile(
      std::string_view text, const std::vector<std::string>& names);

  Value Evaluate(const Scope& scope) const;

 private:
  friend class Parser;
  enum class Op : uint8_t {
    kNumber,
    kVariable,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kModulo,
    kNegate,
    kNot,
    kAnd,
    kOr,
    kEqual,
    kUnequal,
    kLess,
    kLessEqual,
    kIndex,
    kSlice,
    kCall,
    kList
  };
  struct Node {
    Op op = Op::kNumber;
    double number = 0;   // kNumber
    uint32_t index = 0;  // kVariable: slot; kCall: number of the function
    std::string text;    // kCall: the type or op name in quotes, if any
    std::vector<uint32_t> children;  // kSlice: list, from, to (kNone: open)
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  Value Run(uint32_t node, const Scope& scope) const;

  std::vector<Node> nodes_;
  uint32_t root_ = 0;
};

// A function of the language. Arguments are evaluated before the call, except
// those of `if` and `first`.
struct Function {
  std::string_view name;
  int min_arguments;
  int max_arguments;
  std::string_view doc;
  Value (*run)(const Scope& scope, const std::vector<Value>& arguments,
               std::string_view text);
  bool takes_text = false;  // its last argument is a text in quotes
};
const std::vector<Function>& Functions();

}  // namespace lamina::cost
