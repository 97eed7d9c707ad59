// SPDX-License-Identifier: Apache-2.0
//
// What every device slice is: its bucket in the timeline, its family and what
// says so, its launcher. Computed once and shared by all analyses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rules/catalog.h"
#include "tree/tree.h"

namespace lamina::analysis {

using trace::SliceId;
using trace::Trace;
using tree::NodeId;

enum class Bucket : uint8_t { kCompute, kCommunication, kMemcpy };

// The buckets of TraceLens: by kind and by a few words in the name.
Bucket PeerBucket(trace::Kind kind, std::string_view name);

enum class FamilyBy : uint8_t {
  kCollective,  // it is communication
  kOp,          // an op above its launch
  kName,        // its own name
  kKind,        // it is a copy or a fill
  kNothing      // no rule knows it: "other"
};
struct FamilyDecision {
  NodeId op;           // kOp
  uint8_t family = 0;  // index into Catalog::families()
  FamilyBy by = FamilyBy::kNothing;
};

class DeviceView {
 public:
  static DeviceView Build(const tree::Tree& tree, const rules::Catalog& catalog,
                          int threads);

  // Bucket by the words of TraceLens or by the kernel table, which knows more
  // collectives than NCCL's.
  Bucket bucket(SliceId s) const { return bucket_[Row(s)]; }
  // Index into Catalog::families(): that of the innermost op that has one,
  // else that of the kernel's name.
  size_t family(SliceId s) const { return family_[Row(s)].family; }
  const FamilyDecision& family_decision(SliceId s) const {
    return family_[Row(s)];
  }
  // The op that launched a linked slice, else the API call. Invalid when
  // unlinked.
  NodeId launcher(SliceId s) const { return launcher_[Row(s)]; }
  // Family of a kernel name alone.
  size_t kernel_family(SliceId s) const {
    return kernel_family_[trace_->slices.name[s.value].value];
  }
  bool communication(SliceId s) const {
    return bucket(s) == Bucket::kCommunication;
  }

 private:
  uint32_t Row(SliceId s) const { return trace_->slices.detail[s.value]; }

  const Trace* trace_ = nullptr;
  std::vector<Bucket> bucket_;
  std::vector<FamilyDecision> family_;
  std::vector<NodeId> launcher_;
  std::vector<uint8_t> kernel_family_;  // by StringId
};

// The nearest op above a launch that stands for the work: Python frames are
// passed through, an op literally named "execute" is skipped. With
// `through_calls` API calls inside API calls are passed through as well;
// TraceLens stops there. The launch itself when there is no such op.
NodeId LauncherOf(const tree::Tree& tree, NodeId launch, bool through_calls);

// The name that the rules for ops are asked about: that of the slice, of an HLO
// instruction "hlo::" and what it does.
std::string FamilyName(const Trace& trace, SliceId s);

}  // namespace lamina::analysis
