// SPDX-License-Identifier: Apache-2.0
//
// data/launches: which kernels an op of a graph can launch, and short names of
// kernels.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rules/document.h"

namespace re2 {
class RE2;
}

namespace lamina::graph {

// One kernel that an op is expected to launch.
struct LaunchStep {
  std::shared_ptr<const re2::RE2> match;
  std::shared_ptr<const re2::RE2> except;  // may be null
  uint32_t min = 1;
  uint32_t max = 1;

  bool Matches(std::string_view kernel) const;
};

// What an op launches, in order.
struct LaunchRule {
  std::string op;
  std::vector<LaunchStep> steps;
};

class LaunchTable {
 public:
  static Result<std::shared_ptr<const LaunchTable>> Load(
      const rules::DataSet& data);

  // Ops that never launch, and those that launch only when there is something
  // to do.
  bool NeverLaunches(std::string_view op) const;
  bool MayLaunchNothing(std::string_view op) const;
  // The alternatives for an op, users' rows first; empty for unknown ops.
  std::vector<const LaunchRule*> RulesFor(std::string_view op) const;

  // A kernel name for drawings, at most 80 bytes.
  std::string ShortName(std::string_view kernel) const;

 private:
  friend class LaunchLoader;
  struct ShortRule {
    std::shared_ptr<const re2::RE2> match;
    std::string name;
  };
  std::vector<std::string> no_kernel_;
  std::vector<std::string> maybe_no_kernel_;
  std::vector<LaunchRule> rules_;
  std::vector<ShortRule> short_names_;
};

}  // namespace lamina::graph
