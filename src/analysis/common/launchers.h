// SPDX-License-Identifier: Apache-2.0
//
// Launchers: the ops (or, without one, the API calls) that device work
// belongs to, one entry per call, with the work each launched itself.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "analysis/common/device_view.h"

namespace lamina::analysis {

struct Launcher {
  NodeId node;
  uint32_t begin = 0;  // of its own work in Launchers::work
  uint32_t end = 0;
};

struct Launchers {
  std::vector<Launcher> list;  // by start of the launcher
  std::vector<SliceId> work;   // per launcher by start

  std::span<const SliceId> Work(const Launcher& launcher) const {
    return {work.data() + launcher.begin, work.data() + launcher.end};
  }
};

// Linked device slices for which `keep` holds, by `launcher_of`.
Launchers CollectLaunchers(const tree::Tree& tree,
                           const std::function<bool(SliceId)>& keep,
                           const std::function<NodeId(SliceId)>& launcher_of);

// Sum of durations, and length of the union, of slices in any order.
int64_t SumOf(const Trace& trace, std::span<const SliceId> slices);
int64_t UnionOf(const Trace& trace, std::span<const SliceId> slices);

}  // namespace lamina::analysis
