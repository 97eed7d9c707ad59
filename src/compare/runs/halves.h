// SPDX-License-Identifier: Apache-2.0
//
// Which half of a transformer layer device work belongs to: attention or
// feed_forward, by the classes of modules (data/halves), else by the sequence
// of kernels of a unit.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/runs/units.h"
#include "rules/pattern_table.h"

namespace lamina::runs {

// The rules of data/halves. Errors: data files that cannot be used.
Result<rules::PatternTable> HalfRules(const Context& any);

// By modules.
class Halves {
 public:
  Halves(const Context& context, const rules::PatternTable& rules);

  // attention, feed_forward or outside; nothing where no module tells.
  std::optional<std::string_view> Of(SliceId s) const;

 private:
  // The half before which a module of a layer stands; the last for those at
  // its end.
  std::string_view Behind(uint32_t layer, uint32_t module) const;

  const Context& context_;
  const tree::Modules& modules_;
  std::vector<std::string> own_;  // by path
  std::vector<std::vector<uint32_t>> children_;
  std::vector<bool> layer_;
};

// Of each kernel of a unit, in the order of its work, without modules: the
// attention half begins at the norm before the product of matrices that comes
// before an attention kernel, the other at the next norm behind it. What the
// last layer has more of than those before it is outside. Empty where the
// sequence has no norms around attention.
std::vector<std::string_view> HalvesBySequence(const Unit& unit);

}  // namespace lamina::runs
