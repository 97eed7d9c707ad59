// SPDX-License-Identifier: Apache-2.0
//
// data/dialects: common names for the ops of other compilers, so that rules
// written in aten find them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_pool.h"
#include "rules/document.h"

namespace lamina::graph {

struct OpMapping {
  std::string to;
  // Only when an operand is a tensor; `otherwise` else (may be empty: as
  // written).
  bool tensor = false;
  std::string otherwise;
  // Names of the parameters in order: keywords go to their positions.
  std::vector<std::string> args;
};

class OpsMap {
 public:
  static Result<std::shared_ptr<const OpsMap>> Load(const rules::DataSet& data);
  // The one of the program, without overlay.
  static const OpsMap& Builtin();

  // Null for ops that keep their name.
  const OpMapping* Find(std::string_view target) const;
  size_t size() const { return by_target_.size(); }

 private:
  std::vector<OpMapping> mappings_;
  TextMap<size_t> by_target_;
};

}  // namespace lamina::graph
