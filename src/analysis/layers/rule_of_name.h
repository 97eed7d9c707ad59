// SPDX-License-Identifier: Apache-2.0
//
// A table of patterns asked once per distinct name, not once per kernel: a
// trace has millions of kernels and a few thousand names.
#pragma once

#include <absl/container/flat_hash_map.h>

#include "rules/pattern_table.h"
#include "trace/trace.h"

namespace lamina::analysis::layers {

// Not synchronised.
class RuleOfName {
 public:
  RuleOfName(const rules::PatternTable& table, const trace::Trace& trace)
      : table_(table), trace_(trace) {}

  // Position of the first rule that matches the name of a slice, else kNone.
  int operator()(trace::SliceId s) {
    const StringId name = trace_.slices.name[s.value];
    const auto [it, is_new] = known_.try_emplace(name.value, 0);
    if (is_new) it->second = table_.Find(trace_.strings[name]);
    return it->second;
  }

 private:
  const rules::PatternTable& table_;
  const trace::Trace& trace_;
  absl::flat_hash_map<uint32_t, int> known_;
};

}  // namespace lamina::analysis::layers
