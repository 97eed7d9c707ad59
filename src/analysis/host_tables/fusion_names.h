// SPDX-License-Identifier: Apache-2.0
//
// Which fusion rule (data/fusions) kernels on a stream look like, by the ops
// that launched them. Rules describe graphs; of a stream only the order of the
// ops is known. So a hit says which rule to try on the graph and proves
// nothing.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/common/input.h"
#include "graph/launch_rules/launch_rules.h"
#include "rules/document.h"
#include "tree/tree.h"

namespace lamina::analysis::host_tables {

class FusionNames {
 public:
  static constexpr std::string_view kFact = "fusion rules";
  static Result<FusionNames> Of(const Input& input) { return Load(input.data); }

  static Result<FusionNames> Load(const rules::DataSet& data);

  // The rule that takes most of kernels that follow each other; empty for none.
  // A form of a rule fits when its ops come one after the other, each with all
  // kernels of one call. Ops that launch nothing count on neither side, copies
  // may be missing on either. `launchers`: the op of each kernel, or an API
  // call; what is around it counts as well (aten::matmul around aten::bmm).
  std::string_view Find(const tree::Tree& tree,
                        std::span<const tree::NodeId> launchers) const;

 private:
  struct Op {
    std::vector<std::string> names;  // one of these, as "aten.mul"
    bool may_miss = false;
  };
  struct Form {
    std::string rule;
    std::vector<Op> ops;
  };

  bool MayMiss(std::string_view op) const;
  // Kernels from the begin that the form takes; 0: it does not fit.
  size_t Fits(const Form& form, const tree::Tree& tree,
              std::span<const tree::NodeId> launchers) const;

  std::shared_ptr<const graph::LaunchTable> launches_;
  std::vector<Form> forms_;
};

}  // namespace lamina::analysis::host_tables
