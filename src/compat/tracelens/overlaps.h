// SPDX-License-Identifier: Apache-2.0
//
// What ran on the device while the kernels of an op did: the extra columns of
// the sheets *_kl_overlap.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compat/tracelens/kernel_details.h"
#include "compat/tracelens/measures.h"
#include "compat/tracelens/model.h"

namespace lamina::compat::tracelens {

// Of one op.
struct OverlapInfo {
  std::string names;                 // Python list; empty: nothing overlaps
  std::vector<KernelPlace> details;  // one per name
  std::optional<double> share;       // of the op's own time: 0.25
};

// Two device events overlap that are joined to launches, on different streams,
// and run together for at least a microsecond. TraceLens means to leave out
// kernels of one op, but its reports have them; so have these.
class Overlaps {
 public:
  // Errors: kUsage for more pairs than memory is for.
  static Result<Overlaps> Find(const Model& model);

  OverlapInfo Of(const Trace& trace, std::span<const SliceId> kernels) const;
  // Of what the node launches itself; nothing for a node that launches nothing.
  OverlapInfo OfLauncher(const Model& model, NodeId node) const;
  // The same, or else of all its work.
  OverlapInfo OfOp(const Model& model, NodeId node,
                   std::span<const SliceId> work) const;

 private:
  std::vector<std::vector<SliceId>> partners_;  // by device argument row
};

// The cells of a row over the infos of its calls.
struct OverlapCells {
  explicit OverlapCells(const std::vector<OverlapInfo>& instances);
  static void AppendColumns(const std::string& details, Schema& schema);
  // What is appended points into this. `rounded`: the sheets of costs show the
  // share in hundredths, and 0 as the deviation of one call.
  void AppendTo(bool rounded, std::vector<Value>& cells) const;

  std::string details;
  std::optional<std::string> truncated;
  Five share;
};

}  // namespace lamina::compat::tracelens
