// SPDX-License-Identifier: Apache-2.0
#include "questions/description.h"

#include <algorithm>
#include <utility>

namespace lamina::questions {

Param::Param(std::string spelled, Field target, std::string sentence)
    : option(std::move(spelled)), field(target), doc(std::move(sentence)) {}

Param& Param::Required() {
  required = true;
  return *this;
}

Param& Param::OneOf(std::vector<std::string> values) {
  choices = std::move(values);
  return *this;
}

Param& Param::Whole(int64_t from, int64_t to) {
  low_whole = from;
  high_whole = to;
  return Within(static_cast<double>(from), static_cast<double>(to));
}

Param& Param::Within(double from, double to) {
  low = from;
  high = to;
  return *this;
}

Param& Param::ShowDefault() {
  shows_default = true;
  return *this;
}

Param& Param::Count(int min, int max) {
  count = {min, max};
  return *this;
}

Param& Param::SplitAtCommas() {
  split_at_commas = true;
  return *this;
}

Param& Param::OneWord() {
  one_word = true;
  return *this;
}

Param& Param::ValueName(std::string name) {
  value_name = std::move(name);
  return *this;
}

Param& Param::In(Group heading) {
  group = heading;
  return *this;
}

std::string Param::LongOption() const {
  const size_t comma = option.find(',');
  return comma == std::string::npos || option.starts_with("--")
             ? option.substr(0, comma)
             : option.substr(comma + 1);
}

std::string Param::Name() const {
  std::string name = LongOption();
  name.erase(0, is_input() ? 0 : 2);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

ParamType Param::type() const {
  if (std::holds_alternative<bool*>(field)) return ParamType::kFlag;
  if (std::holds_alternative<double*>(field)) return ParamType::kReal;
  if (std::holds_alternative<std::string*>(field) || many())
    return ParamType::kText;
  return ParamType::kInt;
}

Param& Description::Add(std::string spelled, Field field, std::string doc) {
  return params_.emplace_back(std::move(spelled), field, std::move(doc));
}

void Description::Check(std::function<std::string()> check) {
  checks_.push_back(std::move(check));
}

NamesOf Description::Options() const {
  return [this](std::string_view name) -> std::optional<std::string> {
    for (const Param& param : params_) {
      if (param.Name() == name)
        return param.option.substr(0, param.option.find(','));
    }
    return OptionNames(name);
  };
}

Param* Description::Find(std::string_view option) {
  for (Param& param : params_) {
    if (param.LongOption() == option) return &param;
  }
  return nullptr;
}

std::string Description::FailedCheck() const {
  for (const auto& check : checks_) {
    std::string wrong = check();
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace lamina::questions
