// SPDX-License-Identifier: Apache-2.0
//
// What the parameters of every family are written with: Python literals, and
// the arguments and parameters of the call at hand.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compat/tracelens/perf_params.h"
#include "cost/models.h"

namespace lamina::compat::tracelens {

using List = std::vector<double>;

// Python literals.
std::string Whole(double value);
std::string Bool(bool value);
std::string Quoted(std::string_view text);
std::string Join(const std::vector<std::string>& items);  // as a tuple
std::string Tuple(const List& values);
// A length-1 list stands for all dimensions.
std::string Spread(const List& values, size_t rank);

class ParamBuilder {
 public:
  // As PerfParams(); what is given must outlive the builder.
  ParamBuilder(const cost::ModelSet& models, const cost::OpModel& model,
               const cost::Call& call, const cost::Cost* cost,
               std::string_view strides, std::string_view kernel);

  void Add(std::string name, std::string python) {
    params_.push_back({std::move(name), std::move(python)});
  }
  std::vector<Param> Take() { return std::move(params_); }

  const cost::ModelSet& models() const { return models_; }
  const cost::OpModel& model() const { return model_; }
  const std::string& model_name() const { return model_.model->name; }
  const std::string& sheet() const { return model_.sheet; }
  const cost::Call& call() const { return call_; }
  std::string_view kernel() const { return kernel_; }

  // Arguments by position; beyond the last one they are empty.
  const cost::Argument& Arg(size_t i) const;
  const List& Dims(size_t i) const { return Arg(i).dims; }
  const std::string& Text(size_t i) const { return Arg(i).concrete; }
  List ListOf(size_t i) const;
  bool Tensor(size_t i) const;
  // As literals.
  std::string Type(size_t i) const { return Quoted(Arg(i).type); }
  std::string TypeOrNone(size_t i) const {
    return Tensor(i) ? Type(i) : "None";
  }
  std::string Stride(size_t i) const;

  // Parameters of the model by name; null, "None" and false without a cost.
  const cost::Value* Find(std::string_view name) const;
  std::string Number(std::string_view name) const;
  bool Flag(std::string_view name) const;

 private:
  const cost::ModelSet& models_;
  const cost::OpModel& model_;
  const cost::Call& call_;
  std::string_view kernel_;
  const std::vector<cost::Value>* values_;
  nlohmann::json strides_ = nlohmann::json::array();
  std::vector<Param> params_;
};

}  // namespace lamina::compat::tracelens
