// SPDX-License-Identifier: Apache-2.0
//
// What a question takes, described once and bound to the fields of a struct:
// name, type, default, range, values and meaning of each parameter. The command
// line makes its options of it (cli/arguments.h); all others set the fields
// themselves (Fill).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/names_in_text.h"
#include "base/status.h"
#include "lamina/ask.h"

namespace lamina::questions {

// Under which heading --help lists an option.
enum class Group : uint8_t {
  kInput,
  kAnalysis,
  kOutput,
  kPage,
  kGeneral,
  kHidden,
};

// The field that a parameter sets; it holds the default before.
using Field = std::variant<bool*, std::string*, int*, int64_t*, uint32_t*,
                           uint64_t*, double*, std::optional<int64_t>*,
                           std::optional<uint32_t>*, std::vector<std::string>*>;

// One parameter. What it may be is said right where it is added.
class Param {
 public:
  Param(std::string spelled, Field target, std::string sentence);

  Param& Required();
  Param& OneOf(std::vector<std::string> values);
  // Whole numbers, or numbers, from `low` to `high`.
  Param& Whole(int64_t low, int64_t high);
  Param& Within(double low, double high);
  // The value that the field has now is the default that is told.
  Param& ShowDefault();
  // So many values.
  Param& Count(int min, int max);

  // On a command line: "a,b" is two values;
  Param& SplitAtCommas();
  // it takes one word each time it is given, so that an input may follow;
  Param& OneWord();
  // --help calls the value so, and lists it in this group.
  Param& ValueName(std::string name);
  Param& In(Group heading);

  // "--layer" of "-n,--layer"; of an input its name.
  std::string LongOption() const;
  // Its name in messages (base/names_in_text.h): "min_share" of "--min-share".
  std::string Name() const;
  bool is_input() const { return !option.starts_with('-'); }
  ParamType type() const;
  bool many() const {
    return std::holds_alternative<std::vector<std::string>*>(field);
  }

  const std::string option;  // "--min-share", "-n,--layer", or "trace"
  const Field field;
  const std::string doc;
  bool required = false;
  std::vector<std::string> choices;  // all values, if they are few
  std::optional<int64_t> low_whole, high_whole;
  std::optional<double> low, high;  // of any number
  bool shows_default = false;
  std::optional<std::pair<int, int>> count;
  bool split_at_commas = false, one_word = false;
  std::string value_name;
  std::optional<Group> group;  // none: that which the option's name stands for
  // Set by who fills the fields: whether it was given.
  bool given = false;
};

// The parameters of one question. Those who add to it keep the fields alive as
// long as it is used.
class Description {
 public:
  // `spelled` is "--long", "-s,--long" or, of an input, its name.
  Param& Add(std::string spelled, Field field, std::string doc);
  template <class T>
  Param& Add(std::string spelled, T& field, std::string doc) {
    return Add(std::move(spelled), Field(&field), std::move(doc));
  }
  Param& Flag(std::string spelled, bool& field, std::string doc) {
    return Add(std::move(spelled), Field(&field), std::move(doc));
  }
  // Called when the fields are set; says what is wrong with them together, or
  // nothing.
  void Check(std::function<std::string()> check);

  // In messages on a command line: the option itself, short where it can be.
  NamesOf Options() const;
  // Null: there is none. `option` is a long option or the name of an input.
  Param* Find(std::string_view option);
  bool has_checks() const { return !checks_.empty(); }
  // What the first check says that is not met; empty: all are.
  std::string FailedCheck() const;
  std::deque<Param>& params() { return params_; }
  const std::deque<Param>& params() const { return params_; }

 private:
  std::deque<Param> params_;
  std::vector<std::function<std::string()>> checks_;
};

}  // namespace lamina::questions
