// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/param_builder.h"

#include <algorithm>

#include "base/decimal.h"
#include "base/escape.h"
#include "cost/dtype.h"

namespace lamina::compat::tracelens {
namespace {

// The numbers of a JSON array.
List Numbers(const nlohmann::json& array) {
  List values;
  for (const auto& item : array) {
    if (item.is_number()) values.push_back(item.get<double>());
  }
  return values;
}

}  // namespace

std::string Whole(double value) {
  std::string out;
  AppendNumber(out, value);
  return out;
}

std::string Bool(bool value) { return value ? "True" : "False"; }

std::string Quoted(std::string_view text) {
  std::string out;
  AppendPythonQuoted(out, text);
  return out;
}

std::string Join(const std::vector<std::string>& items) {
  std::string out = "(";
  for (const std::string& item : items) {
    if (out.size() > 1) out += ", ";
    out += item;
  }
  return out + (items.size() == 1 ? ",)" : ")");
}

std::string Tuple(const List& values) {
  std::vector<std::string> items;
  for (const double value : values) items.push_back(Whole(value));
  return Join(items);
}

// A length-1 list stands for all dimensions.
std::string Spread(const List& values, size_t rank) {
  return Tuple(values.size() == 1 && rank > 1 ? List(rank, values[0]) : values);
}

ParamBuilder::ParamBuilder(const cost::ModelSet& models,
                           const cost::OpModel& model, const cost::Call& call,
                           const cost::Cost* cost, std::string_view strides,
                           std::string_view kernel)
    : models_(models),
      model_(model),
      call_(call),
      kernel_(kernel),
      values_(cost != nullptr ? &cost->parameters : nullptr) {
  auto json =
      nlohmann::json::parse(strides.begin(), strides.end(), nullptr, false);
  if (json.is_array()) strides_ = std::move(json);
}

const cost::Argument& ParamBuilder::Arg(size_t i) const {
  static const cost::Argument kNone;
  return i < call_.arguments.size() ? call_.arguments[i] : kNone;
}

bool ParamBuilder::Tensor(size_t i) const {
  return cost::IsTensorType(Arg(i).type);
}

std::string ParamBuilder::Stride(size_t i) const {
  if (i >= strides_.size() || !strides_[i].is_array()) return "None";
  const List values = Numbers(strides_[i]);
  return values.size() == strides_[i].size() ? Tuple(values) : "None";
}

List ParamBuilder::ListOf(size_t i) const {
  const auto json = nlohmann::json::parse(Text(i), nullptr, false);
  return json.is_array() ? Numbers(json) : List();
}

const cost::Value* ParamBuilder::Find(std::string_view name) const {
  if (values_ == nullptr) return nullptr;
  const auto& names = model_.model->parameters;
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) return nullptr;
  return &(*values_)[static_cast<size_t>(it - names.begin())];
}

std::string ParamBuilder::Number(std::string_view name) const {
  const cost::Value* value = Find(name);
  return value != nullptr && value->is_number() ? Whole(value->number())
                                                : "None";
}

bool ParamBuilder::Flag(std::string_view name) const {
  const cost::Value* value = Find(name);
  return value != nullptr && value->is_number() && value->number() != 0;
}

}  // namespace lamina::compat::tracelens
