// SPDX-License-Identifier: Apache-2.0
//
// The parameters that TraceLens shows of an op with a cost model: one column
// per parameter in the family sheets, a Python dict in the unified table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/models.h"

namespace lamina::compat::tracelens {

struct Param {
  std::string name;
  std::string python;  // literal: "16", "True", "(1, 2)", "'sum'", "None"

  // The cell of a family sheet: text without quotes, None is empty.
  std::optional<std::string> Cell() const;
};

// `cost` may be null; `strides` is the recorded text of the strides, JSON;
// `kernel` the name of the first kernel.
std::vector<Param> PerfParams(const cost::ModelSet& models,
                              const cost::OpModel& model,
                              const cost::Call& call, const cost::Cost* cost,
                              std::string_view strides,
                              std::string_view kernel);

// "{'M': 8944, 'N': 2816}".
std::string ParamsDict(const std::vector<Param>& params);

}  // namespace lamina::compat::tracelens
