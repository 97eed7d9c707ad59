// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <vector>

#include "tree/tree.h"

namespace lamina::tree {

// Joins device slices to the calls that launched them; used by Tree::Build.
class Linker {
 public:
  explicit Linker(Tree& tree) : tree_(tree), trace_(*tree.trace_) {}
  void Run();

 private:
  int64_t KeyOf(const trace::ApiArgs& api) const {
    return by_correlation_ ? api.correlation : api.external_id;
  }
  int64_t KeyOf(const trace::DeviceArgs& device) const {
    return by_correlation_ ? device.correlation : device.external_id;
  }
  void ChooseKey();
  void LinkAuto();
  void LinkByEndsOfFlows();
  // By device row, for work whose key is one of these, in order.
  std::vector<NodeId> CallsOfOwnProcess(
      const std::vector<int64_t>& shared) const;
  // By device row: the launch of work whose id stands on several launches of
  // kernels; invalid where it is not known.
  using PairedByOrder = absl::flat_hash_map<size_t, NodeId>;
  PairedByOrder PairByOrder(const std::vector<int64_t>& shared) const;
  // Kernels that carry the id of one launch of several in a row.
  void SpreadOverLaunches();
  void LinkByFlow();
  void LinkCaptured();
  void Arrange();

  Tree& tree_;
  const Trace& trace_;
  bool by_correlation_ = true;
};

}  // namespace lamina::tree
