// SPDX-License-Identifier: Apache-2.0
//
// What the sheets share: launchers, categories and names by the rules of
// TraceLens 1.0.0, which differ from lamina's own (see docs/tracelens.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/common/launchers.h"
#include "lamina/table.h"

namespace lamina::compat::tracelens {

using analysis::Context;
using analysis::Launcher;
using analysis::Launchers;
using analysis::NodeId;
using analysis::SliceId;
using analysis::Trace;

struct Options {
  bool inference = false;
  bool recompute = false;
  bool overlaps = false;   // the sheets *_kl_overlap, too
  bool rooflines = false;  // a device was given: columns of its roofline
};

// One launcher with the times of the peer: unions, not sums.
struct Launch {
  const Launcher* launcher = nullptr;
  NodeId node;
  std::string_view category;
  int64_t direct_ns = 0;   // union of its own kernels, without communication
  int64_t subtree_ns = 0;  // union of everything below, communication too
  size_t kernels = 0;
  bool recompute = false;
};

class Model {
 public:
  Model(const Context& context, Options options);

  const Context& context() const { return context_; }
  const Trace& trace() const { return context_.trace; }
  const tree::Tree& tree() const { return context_.tree; }
  const Options& options() const { return options_; }
  const std::vector<Launch>& launches() const { return launches_; }
  const Launchers& launchers() const { return launchers_; }
  // Null for what launches nothing itself.
  const Launch* LaunchOf(NodeId node) const;
  // Sum of direct_ns.
  int64_t direct_total_ns() const { return direct_total_ns_; }
  // Without ops of the host: sheets that need them are left out.
  bool gpu_only() const { return gpu_only_; }
  // What gpu_timeline is about, by start: work that is joined to a launch, or
  // all of a trace that records no launch of any.
  const std::vector<SliceId>& timeline() const { return timeline_; }
  // total_time of gpu_timeline.
  int64_t total_time_ns() const { return total_time_ns_; }

  // Name of an op or call; the inference layout drops the number that SGLang's
  // profiler appends to its ops.
  std::string Name(NodeId node) const;

  // Category of an op or call: registry, prefixes, else the first of `work`
  // (its own kernels by start).
  std::string_view Category(std::string_view name,
                            std::span<const SliceId> work) const;

  // Names from metadata events, "Unknown" if missing.
  std::string ProcessName(NodeId node) const;
  std::string ProcessLabel(NodeId node) const;
  std::string ThreadName(NodeId node) const;

  // Cells "Input Dims" ... of a node as Python tuples (grouped rows) or lists;
  // null without recorded arguments.
  enum class Form { kTuple, kList };
  std::optional<std::string> Dims(NodeId node, Form form) const;
  std::optional<std::string> Types(NodeId node, Form form) const;
  std::optional<std::string> Strides(NodeId node, Form form) const;
  std::optional<std::string> Concrete(NodeId node, Form form) const;

  // True below a frame of activation checkpointing's recomputation.
  bool IsRecompute(NodeId node) const {
    return !recompute_.empty() && recompute_[node.value];
  }

 private:
  std::optional<std::string> List(StringId id, Form form) const;

  const Context& context_;
  Options options_;
  Launchers launchers_;
  std::vector<Launch> launches_;
  std::unordered_map<uint32_t, size_t> launch_of_;  // by node
  std::vector<bool> recompute_;  // by node; empty: not asked for
  bool gpu_only_ = true;
  std::vector<SliceId> timeline_;
  int64_t direct_total_ns_ = 0;
  int64_t total_time_ns_ = 0;
};

inline double Us(int64_t ns) { return static_cast<double>(ns) / 1000.0; }
inline double Ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }
// 100 * part / whole; nothing when whole is 0.
std::optional<double> Percent(double part, double whole);

}  // namespace lamina::compat::tracelens
