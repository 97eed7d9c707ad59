// SPDX-License-Identifier: Apache-2.0
//
// What ops and kernels are: families ("attention"), the group that shares a
// colour, and the category of the TraceLens layout. All of it is data
// (data/labels, data/ops, data/costs, data/kernels).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/string_pool.h"
#include "rules/document.h"
#include "rules/pattern_table.h"

namespace lamina::rules {

struct Family {
  std::string name;
  std::string group;
  std::string title;
};

// What the registry knows of an op by its exact name.
struct OpEntry {
  std::string family;
  std::string model;     // cost model; empty: none
  std::string sheet;     // family sheet of the TraceLens layout
  std::string category;  // its category
  std::string backward_category;
  std::string unit;  // matrix, vector or empty
};

class Catalog {
 public:
  static Result<std::shared_ptr<const Catalog>> Load(const DataSet& data);

  const std::vector<Family>& families() const { return families_; }
  // Index of a family; that of "other" for an unknown name.
  size_t FamilyIndex(std::string_view name) const;
  const Family& family(size_t index) const { return families_[index]; }

  // Registry entry of an op, null if it has none. Exact name.
  const OpEntry* Entry(std::string_view op) const;
  // Family of an op by name: registry, list, the name without a trailing
  // underscore, patterns. Empty when nothing is known.
  std::string_view OpFamily(std::string_view op) const;
  // Family of a kernel by its name; "other" if no rule matches. Generated
  // Triton kernels are told by the ops in their name.
  std::string_view KernelFamily(std::string_view kernel) const;
  const PatternTable& kernel_table() const { return kernels_; }
  const PatternTable& op_table() const { return op_patterns_; }
  // Names of ranges: "step" for those that are steps, "other" for those that
  // never are.
  const PatternTable& step_table() const { return steps_; }
  // Names of frames and ranges in which a thread waits for other processes:
  // "outside" for those that do nothing else, "perhaps", or "inside" for work
  // of this process.
  const PatternTable& outside_table() const { return outside_; }

 private:
  Status LoadFamilies(const DataSet& data);
  Status LoadOps(const DataSet& data);
  Status LoadKernels(const DataSet& data);
  Status CheckFamily(const DataFile& file, const Node& node,
                     std::string_view name) const;

  std::vector<Family> families_;
  TextMap<OpEntry> registry_;
  TextMap<std::string> op_families_;
  PatternTable op_patterns_;
  PatternTable kernels_;
  PatternTable steps_;
  PatternTable outside_;
};

// Family of a compiled Triton kernel from the op names in its own name:
// triton_{poi,red,per,for,tem}_fused_<ops>_<number>. Empty for other names.
std::string_view GeneratedFamily(std::string_view kernel);

}  // namespace lamina::rules
