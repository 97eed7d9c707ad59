// SPDX-License-Identifier: Apache-2.0
//
// data/graphs/groups.yaml: what nodes are, by their names.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rules/document.h"
#include "rules/pattern_table.h"

namespace lamina::graph {

// A box of a drawing.
struct ClusterRule {
  std::string id;
  std::string title;
  std::vector<std::string> groups;
};

struct GroupRules {
  rules::PatternTable norm_ops;
  rules::PatternTable residual_norms;
  rules::PatternTable closing_ops;
  rules::PatternTable mla_ops;
  rules::PatternTable closing_weights;
  rules::PatternTable rope_buffers;
  rules::PatternTable op_groups;      // value: group, part: sub-group
  rules::PatternTable weight_groups;  // value: group, part: sub-group
  rules::PatternTable op_labels;      // value: label
  rules::PatternTable passing_ops;
  rules::PatternTable collective_ranks;        // value: operand, from 0
  rules::PatternTable collective_messages;     // value: what their size counts
  rules::PatternTable aux_streams;             // value: begin, end or wait
  std::vector<std::string> weight_owners;      // "self_attn"
  std::vector<std::string> weight_companions;  // ends of names: "_bias"
  std::vector<std::pair<std::string, std::string>> weight_labels;
  std::vector<ClusterRule> clusters;
  std::vector<std::pair<std::string, std::string>> sub_clusters;  // id, title
  std::vector<std::pair<std::string, std::string>> colours;       // group, #rgb

  static Result<std::shared_ptr<const GroupRules>> Load(
      const rules::DataSet& data);

  // The name of an op for people: a label of the table, else the target
  // without its namespaces.
  std::string LabelOf(std::string_view op) const;
  // Every table by name.
  std::vector<std::pair<std::string_view, const rules::PatternTable*>> Tables()
      const;
  std::string_view ColourOf(std::string_view group) const;
};

inline bool Matches(const rules::PatternTable& table, std::string_view name) {
  return table.Find(name) != rules::PatternTable::kNone;
}

}  // namespace lamina::graph
